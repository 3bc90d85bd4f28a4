"""Callers in one process who share a transaction: a commit waits for the disk, and what
comes meanwhile waits for the next one together.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.trials.desk import Desk
from discreet.trials.store.interrupts import Later

Found = TypeVar("Found")


class Job(Generic[Found]):
    """What one caller wants to be done in a transaction."""

    def __init__(self, work: Callable[[Desk], Found], any_clock: bool = False) -> None:
        self.work = work
        self.any_clock = any_clock
        """Whether it is done though the clock has gone back."""
        self.done = False
        self.error: BaseException | None = None
        self._found: list[Found] = []

    def run(self, desk: Desk) -> None:
        """Do it; `done` is said when it is on disk."""
        self._found = [self.work(desk)]

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


class Together:
    """A line of jobs. Whoever finds nobody at work does all that wait, and the others
    find theirs done.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._line = threading.Condition()
        self._jobs: list[Job[Any]] = []
        self._busy = False

    def do(self, job: Job[Found], serve: Callable[[list[Job[Any]]], None]) -> Found:
        """Have a job done, with others or by itself: by us, with `serve`, or by whoever
        is at work already.
        """
        if self._pid != os.getpid():
            self._begin()
        with Later():
            self._join(job, serve)
        return job.found()

    def _join(self, job: Job[Any], serve: Callable[[list[Job[Any]]], None]) -> None:
        with self._line:
            self._jobs.append(job)
            while self._busy and not job.done:
                self._line.wait()
            if job.done:
                return
            self._busy, jobs, self._jobs = True, self._jobs, []
        try:
            serve(jobs)
        except BaseException as error:
            for one in jobs:
                if not one.done:
                    one.error, one.done = error, True
        finally:
            with self._line:
                self._busy = False
                self._line.notify_all()
