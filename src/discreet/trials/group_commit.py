"""Group commit: callers share transactions, which one thread writes.

A commit waits for the disk. Tasks that are queued meanwhile share the next transaction.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, TypeVar

from discreet.trials.desk import Task
from discreet.trials.intake import MOST_AT_ONCE
from discreet.trials.interrupts import Later, renew_after_fork

Result = TypeVar("Result")
COMMIT_DELAY = 0.0003
"""Seconds for which the writer waits for more, if the last transaction had several."""


class GroupCommit:
    """Run the tasks of many callers in shared transactions, one after the other."""

    def __init__(self, commit: Callable[[list[Task[Any]]], None]) -> None:
        self._commit = commit
        """Runs tasks in one transaction; those that it does not finish come again."""
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start with an empty queue: who queued before a fork is not in the child."""
        self._lock = threading.Lock()
        self._queue: list[Task[Any]] = []
        self._is_writing = False
        self._writer = ThreadPoolExecutor(1, "writer")

    def run(self, task: Task[Result]) -> Result:
        """Run a task, with those that wait at the same time, and return its result.
        Ctrl-C takes effect afterwards.
        """
        done = threading.Event()
        task.wake = done.set
        with Later():
            self._submit(task)
            done.wait()
        return task.get()

    async def run_async(self, task: Task[Result]) -> Result:
        """Do the same while the event loop serves others."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        task.wake = lambda: loop.call_soon_threadsafe(done.set)
        self._submit(task)
        await done.wait()
        return task.get()

    def _submit(self, task: Task[Any]) -> None:
        """Queue a task, and start to write if nobody does."""
        with self._lock:
            self._queue.append(task)
            if not self._is_writing:
                self._is_writing = True
                self._writer.submit(self._write)

    def _write(self) -> None:
        """Commit until the queue is empty."""
        had_several = False
        while tasks := self._take(had_several):
            had_several = len(tasks) > 1
            try:
                self._commit(tasks)
            except BaseException as error:
                for task in tasks:
                    if not task.done:
                        task.finish(error=error)
            with self._lock:
                self._queue[:0] = [task for task in tasks if not task.done]

    def _take(self, had_several: bool) -> list[Task[Any]]:
        """Take the first tasks, at least one, with at most MOST_AT_ONCE participants in
        total.
        """
        if had_several:
            time.sleep(COMMIT_DELAY)
        with self._lock:
            sums = accumulate(task.participants for task in self._queue)
            number = max(sum(total <= MOST_AT_ONCE for total in sums), 1)
            tasks, self._queue = self._queue[:number], self._queue[number:]
            self._is_writing = bool(tasks)
        return tasks
