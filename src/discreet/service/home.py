"""What the service has at hand: the store, its trials, opened once and shared by all
callers, and the threads that wait for the disk in place of the event loop.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from discreet.service.access import NotHereError, Visitor
from discreet.service.events import Events
from discreet.service.limits import Bounds, Limits
from discreet.service.metrics import Metrics
from discreet.service.remember import Remembered
from discreet.service.tokens import Tokens
from discreet.trials.calls import Caller, Steps
from discreet.trials.listing import Listed, list_trials
from discreet.trials.store.database import Store
from discreet.trials.store.doors import Doors
from discreet.trials.trial import Trial
from discreet.validate import quoted

Found = TypeVar("Found")
THREADS = 128
"""Calls that wait for the disk at once; those that wait together share a commit."""
KEPT = 256
"""Trials whose status is kept while it is fresh."""
FRESH = 1.0
"""Seconds for which a status is: so long does a change that was made by another server
take to be seen.
"""
MOST_OPEN = 64
"""Trials that are kept open: each has connections of its own."""


def _wake(loop: asyncio.AbstractEventLoop, done: "asyncio.Future[None]") -> None:
    """Go on where a job was waited for, unless nobody waits any more."""

    def wake() -> None:
        if not done.done():
            done.set_result(None)

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(wake)


class Home:
    """A service's store and what is open of it."""

    def __init__(self, url: str, who: str = "discreet serve", bounds: Bounds | None = None) -> None:
        self.url = url
        self.who = who
        self.bounds = bounds or Bounds()
        self.metrics = Metrics()
        self.limits = Limits(self.bounds, self.metrics)
        self.stopping = False
        """Whether the service ends: what is under way is answered, and nothing else."""
        self.store = Store(url)
        self.doors = Doors(self.store)
        self.tokens = Tokens(self.doors)
        self._threads = ThreadPoolExecutor(THREADS, "trial")
        self._lock = threading.Lock()
        self._trials: dict[str, Trial] = {}
        self._statuses = Remembered[msgspec.Raw](KEPT, FRESH)
        self.events = Events(self)

    async def run(self, work: Callable[..., Found], *about: Any) -> Found:
        """Do something that waits for the disk, while others are served."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *about)

    async def follow(self, trial: Trial, steps: Steps[Found]) -> Found:
        """Have jobs of a caller done, one after the other, with those of all callers
        who came at the same time: no thread waits for each of them.
        """
        loop = asyncio.get_running_loop()
        try:
            job = next(steps)
            while True:
                done = loop.create_future()
                trial.put(job, self._threads.submit, partial(_wake, loop, done))
                await done
                job = steps.send(job.found())
        except StopIteration as end:
            found: Found = end.value
            return found

    def stop(self) -> None:
        """Refuse what comes from now on, and end the streams."""
        self.stopping = True
        self.events.stop()

    def close(self) -> None:
        """Let what is under way end, and close all connections."""
        self._threads.shutdown()
        for trial in self._trials.values():
            trial.close()
        self.store.close()

    # --- trials -----------------------------------------------------------------------

    def trial(self, name: str) -> Trial:
        """The trial of a name, opened once."""
        if kept := self.opened(name):
            return kept
        self.check_there(name)
        found = Trial.open(self.url, name, who=self.who)
        with self._lock:
            kept = self._trials.setdefault(name, found)
            spare = list(self._trials)[:-MOST_OPEN]
            gone = [self._trials.pop(one) for one in spare]
        for one in gone:
            one.close()
        return kept

    def opened(self, name: str) -> Trial | None:
        """The trial of a name, if it is open."""
        with self._lock:
            return self._trials.get(name)

    def caller(self, name: str, visitor: Visitor) -> Caller:
        """A trial, for whoever calls: bound to the site of its token."""
        return self.trial(name).caller(visitor.who, visitor.site)

    def status(self, name: str) -> msgspec.Raw:
        """The status of a trial as JSON, computed once for all who ask within a second
        and after the last change that was made here.
        """
        return self._statuses.get(
            name, lambda: msgspec.Raw(msgspec.json.encode(self.trial(name).status()))
        )

    def changed(self, name: str) -> None:
        """Something was done to a trial: whoever looks at it is told."""
        self._statuses.forget(name)
        self.events.stir(name)

    def listed(self, visitor: Visitor) -> list[Listed]:
        """The trials within a visitor's reach."""
        return [one for one in list_trials(self.url) if visitor.sees(one.name)]

    def published(self, name: str) -> bool:
        """Whether anyone may see what may be published of a trial."""
        return name in self.doors.published()

    def check_there(self, name: str | None) -> None:
        """Refuse a trial that is not there; of the others nobody learns the names."""
        if name is not None and name not in self.store.names():
            raise NotHereError(f"there is no trial {quoted(name)} here")
