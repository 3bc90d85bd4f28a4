"""Group commit: callers share transactions, which one thread writes.

A commit waits for the disk. Tasks that are queued meanwhile share the next transaction.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.trials.inputs import MAX_BATCH

if TYPE_CHECKING:
    from discreet.trials.transaction import TrialTransaction

Result = TypeVar("Result")
COMMIT_DELAY = 0.0003
"""Seconds for which the writer waits for more, if the last transaction had several."""


@dataclass(eq=False)
class Task(Generic[Result]):
    """Work for one transaction, and its result."""

    work: "Callable[[TrialTransaction], Result | None]"
    """The work. It returns None if it enrols and no round is open."""
    user: str = ""
    """The caller, for the audit trail."""
    site: str | None = None
    """The site that the caller is bound to, if any."""
    key: bytes | None = None
    """The text of the idempotency key, if there is one."""
    ids: tuple[str, ...] = ()
    """Ids of the assignments that the work is about."""
    participants: int = 1
    """Number of participants that the work is about: it bounds a transaction."""
    enrols: bool = False
    """True if it assigns participants: late outcomes are expired before."""
    sets_clock: bool = False
    """True if it is done though the clock has gone back."""
    needs_round: bool = False
    """True if it found no open round, and waits until one is opened."""
    future: "Future[Result]" = field(default_factory=Future)
    """The result that the caller waits for."""

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        """Set the result or the error. Each caller gets an error object of its own."""
        if error is None:
            self.future.set_result(result)
        else:
            own = type(error)(*error.args) if isinstance(error, DiscreetError) else error
            self.future.set_exception(own)


Commit = Callable[[list[Task[Any]]], None]
"""Runs tasks in a transaction; those that it does not finish are queued again."""


class GroupCommit:
    """Run the tasks of many callers in shared transactions, one after the other."""

    def __init__(self) -> None:
        self.renew()
        _group_commits.add(self)

    def renew(self) -> None:
        """Start with an empty queue: who queued before a fork is not in the child."""
        self._lock = threading.Lock()
        self._queue: list[Task[Any]] = []
        self._is_writing = False
        self._writer = ThreadPoolExecutor(1, "writer")

    def submit(self, task: Task[Result], commit: Commit) -> "Future[Result]":
        """Queue a task, and start to write unless the writer is at work. Return its
        future result. If the wait for it ends early, the task is done all the same.
        (`commit` is not kept: its owner would not be freed when it is dropped.)
        """
        task.future.set_running_or_notify_cancel()
        with self._lock:
            self._queue.append(task)
            if not self._is_writing:
                self._is_writing = True
                self._writer.submit(self._write, commit)
        return task.future

    def _write(self, commit: Commit) -> None:
        """Commit until the queue is empty."""
        had_several = False
        while tasks := self._take(had_several):
            had_several = len(tasks) > 1
            try:
                commit(tasks)
            except BaseException as error:
                for task in tasks:
                    if not task.future.done():
                        task.finish(error=error)
            with self._lock:
                self._queue[:0] = [task for task in tasks if not task.future.done()]

    def _take(self, had_several: bool) -> list[Task[Any]]:
        """Take the first tasks, at least one, with at most MAX_BATCH participants in
        total.
        """
        if had_several:
            time.sleep(COMMIT_DELAY)
        with self._lock:
            totals = accumulate(task.participants for task in self._queue)
            number = max(sum(total <= MAX_BATCH for total in totals), 1)
            tasks, self._queue = self._queue[:number], self._queue[number:]
            self._is_writing = bool(tasks)
        return tasks


_group_commits: weakref.WeakSet[GroupCommit] = weakref.WeakSet()


def _renew_in_child() -> None:
    """Start every queue anew in a forked process: no other thread is in the child."""
    for group_commit in _group_commits:
        group_commit.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_in_child)
