"""Callers in one process who share a transaction: a commit waits for the disk, and what
comes meanwhile waits for the next one together.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.trials.desk import Desk
from discreet.trials.store.interrupts import Later

Found = TypeVar("Found")
Item = TypeVar("Item")
Work = Callable[[Desk, list[Item]], Sequence[Found]]
"""What is done for one caller or for several who want the same: of each item, what came
of it.
"""


class Job(Generic[Item, Found]):
    """What one caller wants to be done in a transaction."""

    def __init__(
        self,
        work: Work[Item, Found],
        item: Item,
        alike: Any = None,
        ids: Sequence[str] = (),
        people: int = 1,
        any_clock: bool = False,
    ) -> None:
        self.work = work
        self.item = item
        self.alike = alike
        """Jobs with the same are done at once; None: by itself."""
        self.ids = ids
        """Must be known before others are kept waiting for it."""
        self.people = people
        self.any_clock = any_clock
        """Whether it is done though the clock has gone back."""
        self.done = False
        self.called = threading.Event()
        """Whoever waits is called when it is done, or to see to all that wait."""
        self.error: BaseException | None = None
        self._found: list[Found] = []

    def finish(self, found: Found) -> None:
        """What came of it; `done` is said when it is on disk."""
        self._found = [found]

    def fail(self, error: BaseException) -> None:
        """It is done, in vain."""
        self.error, self.done = error, True

    def found(self) -> Found:
        """What came of it."""
        if self.error is not None:
            raise self._own_error()
        return self._found[0]

    def _own_error(self) -> BaseException:
        """An error that several callers hear, for each of them anew."""
        error = self.error
        assert error is not None
        return type(error)(*error.args) if isinstance(error, DiscreetError) else error


def run_alike(desk: Desk, jobs: Sequence[Job[Any, Any]]) -> None:
    """Do jobs that are alike, at once."""
    found = jobs[0].work(desk, [job.item for job in jobs])
    for job, one in zip(jobs, found, strict=True):
        job.finish(one)


def grouped(jobs: Sequence[Job[Any, Any]]) -> list[list[Job[Any, Any]]]:
    """Jobs that are alike together. They were all waiting at the same time, so that any
    order is as good.
    """
    groups: dict[Any, list[Job[Any, Any]]] = {}
    for job in jobs:
        groups.setdefault(id(job) if job.alike is None else job.alike, []).append(job)
    return list(groups.values())


_RENEWING = threading.Lock()
"""Held by the first thread of a forked process that comes: nobody of its line is
left.
"""


class Together:
    """A line of jobs. Whoever finds nobody at work does all that wait, and the others
    find theirs done.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._line = threading.Lock()
        self._jobs: list[Job[Any, Any]] = []
        self._busy = False
        self._pid = os.getpid()

    def do(self, job: Job[Any, Found], serve: Callable[[list[Job[Any, Any]]], None]) -> Found:
        """Have a job done, with others or by itself: by us, with `serve`, or by whoever
        is at work already.
        """
        if self._pid != os.getpid():
            with _RENEWING:
                if self._pid != os.getpid():
                    self._begin()
        with Later():
            self._join(job, serve)
        return job.found()

    def _join(self, job: Job[Any, Any], serve: Callable[[list[Job[Any, Any]]], None]) -> None:
        with self._line:
            self._jobs.append(job)
            leads, self._busy = not self._busy, True
        if not leads:
            job.called.wait()
            if job.done:
                return
        with self._line:
            jobs, self._jobs = self._jobs, []
        try:
            serve(jobs)
        except BaseException as error:
            for one in jobs:
                if not one.done:
                    one.fail(error)
        finally:
            self._hand_on(jobs)

    def _hand_on(self, jobs: list[Job[Any, Any]]) -> None:
        """Call those whose jobs are done, and the first of those who came meanwhile."""
        with self._line:
            self._busy = bool(self._jobs)
            calls = jobs + self._jobs[:1]
        for one in calls:
            one.called.set()
