"""Group commit: threads of one process share transactions.

A commit waits for the disk. Tasks that are queued meanwhile share the next transaction:
one thread leads and runs them all, and the others find their task done.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from discreet.errors import DiscreetError, StoreError
from discreet.trials.intake import MOST_AT_ONCE
from discreet.trials.interrupts import Later, renew_after_fork
from discreet.trials.store.reasons import UNSURE

if TYPE_CHECKING:
    from discreet.trials.desk import Desk

Result = TypeVar("Result")
Commit = Callable[[list["Task[Any]"]], None]
"""Run tasks in one transaction, up to one that draws, and finish or fail each."""
COMMIT_DELAY = 0.0003
"""Seconds for which a leader waits for more, if the last transaction had several."""


@dataclass(eq=False)
class Task(Generic[Result]):
    """Work for one transaction, and its result."""

    work: "Callable[[Desk], Result]"
    who: str = ""
    """Who calls, for the journal."""
    site: str | None = None
    """Where the caller is bound to, if anywhere."""
    request: bytes | None = None
    """The text of the key under which the work is done once, if it has one."""
    ids: tuple[str, ...] = ()
    """Ids of the assignments that the work is about."""
    participants: int = 1
    """How many participants the work is about: it bounds a transaction."""
    any_clock: bool = False
    """Whether it is done though the clock has gone back."""
    done: bool = False
    result: Result | None = None
    error: BaseException | None = None
    called: threading.Event = field(default_factory=threading.Event)
    """Set when the task is done, or its thread is to lead."""

    def fail(self, error: BaseException) -> None:
        """Set the error; each caller raises one of its own."""
        self.error = type(error)(*error.args) if isinstance(error, DiscreetError) else error
        self.done = True


class GroupCommit:
    """Run tasks of several threads in shared transactions."""

    def __init__(self) -> None:
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start with an empty queue: who queued before a fork is not in the child."""
        self._lock = threading.Lock()
        self._queue: list[Task[Any]] = []
        self._taken: list[Task[Any]] = []
        """Tasks that the leader commits."""
        self._leader: Task[Any] | None = None
        """The task whose thread leads."""
        self._had_several = False

    def run(self, task: Task[Result], commit: Commit) -> Result:
        """Run a task, with those that wait at the same time, and return its result.
        Ctrl-C takes effect afterwards: an interrupted leader would fail the others.
        """
        with Later():
            try:
                with self._lock:
                    self._queue.append(task)
                    if leads := self._leader is None:
                        self._leader = task
                if not leads:
                    task.called.wait()
                if not task.done:  # this thread leads
                    if self._had_several:
                        time.sleep(COMMIT_DELAY)
                    with self._lock:
                        sums = accumulate(task.participants for task in self._queue)
                        number = max(sum(total <= MOST_AT_ONCE for total in sums), 1)
                        self._taken, self._queue = self._queue[:number], self._queue[number:]
                        self._had_several = number > 1
                    commit(self._taken)
                    self._leave(task)
            except BaseException as error:
                self._break_off(task, error)
        if task.error is not None:
            raise task.error
        return cast(Result, task.result)

    def _break_off(self, own: Task[Any], error: BaseException) -> None:
        """Fail the tasks that this thread commits, and leave. What a signal's handler
        raised in between is raised again.
        """
        leads, is_known = self._leader is own, isinstance(error, Exception)
        for task in self._taken if leads else ():
            if not task.done:
                words = f"the call that wrote was broken off, and {UNSURE}"
                task.fail(error if is_known else StoreError(words))
        self._leave(own)
        if not (leads and is_known and own.done):
            raise error

    def _leave(self, own: Task[Any]) -> None:
        """Forget a task. If its thread leads, wake the threads of the tasks that are
        done, and have that of the next one lead.
        """
        with self._lock:
            if self._leader is not own:
                self._queue = [task for task in self._queue if task is not own]
                return
            for task in self._taken:
                if task.done:
                    task.called.set()
            left = [task for task in self._taken + self._queue if not task.done]
            self._taken, self._queue = [], [task for task in left if task is not own]
            self._leader = self._queue[0] if self._queue else None
            if self._leader is not None:
                self._leader.called.set()
