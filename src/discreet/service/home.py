"""What the service has at hand: the store, its trials, opened once and shared by all
callers, and the threads that wait for the disk in place of the event loop.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from discreet.errors import InvalidInputError
from discreet.service.access import NotHereError, Visitor
from discreet.service.clerk import Clerk
from discreet.service.clerking import MOST_OPEN
from discreet.service.events import Events
from discreet.service.forecasts import Forecasts
from discreet.service.limits import Bounds, Limits
from discreet.service.metrics import Metrics
from discreet.service.remember import Remembered
from discreet.service.tokens import Tokens, check_site
from discreet.trials.calls import Caller, Steps
from discreet.trials.chain import Event
from discreet.trials.kept import Kept
from discreet.trials.listing import Listed, list_trials
from discreet.trials.store.database import Store
from discreet.trials.store.doors import Doors, Token
from discreet.trials.store.guard import Untold
from discreet.trials.together import Job
from discreet.trials.trial import Trial
from discreet.validate import quoted

Found = TypeVar("Found")
THREADS = 128
"""Calls that wait for the disk at once; those that wait together share a commit."""
KEPT = 256
"""Trials, and parts of them, that are kept while they are fresh."""
FRESH = 1.0
"""Seconds for which a status is: so long does a change that was made by another server
take to be seen. As long counts a try to write to the store.
"""


class Alarm:
    """Wakes those who wait for jobs, from the thread that did them: the event loop is
    called once for all that are done, and not once for each.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done = deque[asyncio.Future[None]]()
        self._rings = False

    def wake(self, done: "asyncio.Future[None]") -> None:
        """Wake whoever waits for this; called from any thread."""
        self._done.append(done)
        if not self._rings:
            self._rings = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._rings = False  # before the look: who comes after it rings again
        while self._done:
            done = self._done.popleft()
            if not done.done():
                done.set_result(None)


class Seen:
    """A trial as it was at a moment, for however many look at it: each part of what
    they see is computed by the first who wants it.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.status = trial.status()
        self._parts = Remembered[Any](KEPT)

    def part(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """What is kept under a key."""
        found: Found = self._parts.get(key, make)
        return found

    def text(self) -> msgspec.Raw:
        """The status as JSON."""
        return self.part("text", lambda: msgspec.Raw(msgspec.json.encode(self.status)))

    def said(self) -> dict[str, Any]:
        """The status as a document; not to be changed."""
        return self.part("said", self.status.to_dict)

    def record(self, most: int, before: int | None) -> list[Event]:
        """The last of the events before one of them."""
        return self.part(("record", most, before), lambda: self.trial.record(most, before))


class Home:
    """A service's store and what is open of it."""

    def __init__(self, url: str, who: str = "discreet serve", bounds: Bounds | None = None) -> None:
        self.url = Untold(url)
        self.who = who
        self.bounds = bounds or Bounds()
        self.metrics = Metrics()
        self.limits = Limits(self.bounds, self.metrics)
        self.stopping = False
        """Whether the service ends: what is under way is answered, and nothing else."""
        Store(url).close()  # who starts the service is told what is wrong, and where
        self.store = Store(self.url)
        self._noting = Store(self.url)
        self.doors = Doors(self.store, self._noting)
        self.tokens = Tokens(self.doors)
        self._threads = ThreadPoolExecutor(THREADS, "trial")
        self._lock = threading.Lock()
        self._trials: dict[str, Trial] = {}
        self._seen = Remembered[Seen](KEPT, FRESH)
        self._alarm: Alarm | None = None
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}
        """What is done once for all who want it at the same moment: tokens that are
        looked up, by their secrets, and trials that are opened.
        """
        self._tried = (-FRESH, False)
        """When it was last tried to write to the store, and whether it could be."""
        self._callers = 0
        """Who wait for jobs at this moment."""
        self._clerk = Clerk(str(url), self._put, self.run) if self.store.dialect.files else None
        if self._clerk is not None:
            clerk = self._clerk
            self.metrics.watch_process("discreet_clerk", lambda: clerk.process)
        self.events = Events(self)
        self.forecasts = Forecasts()

    async def run(self, work: Callable[..., Found], *about: Any) -> Found:
        """Do something that waits for the disk, while others are served."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *about)

    async def token_of(self, secret: str) -> Token | None:
        """The token of a secret, looked up once for all who call with it at the same
        moment.
        """
        found = self.tokens.find_recent(secret)
        if found is not None:
            return found
        return await self._shared("token", self.tokens.find_token, secret)

    async def trial_of(self, name: str) -> Trial:
        """The trial of a name, opened once for all who want it at the same moment."""
        found = self.opened(name)
        return await self._shared("trial", self.trial, name) if found is None else found

    async def is_writable(self) -> bool:
        """Return whether the store can be written, tried once for all who ask within a
        second: anyone may ask.
        """
        at, writable = self._tried
        if time.monotonic() - at < FRESH:
            return writable
        return await self._shared("writable", self._try_to_write, "")

    def _try_to_write(self, _: str) -> bool:
        try:
            self.doors.try_to_write()
            writable = True
        except Exception:  # whatever it is, callers are better served elsewhere
            writable = False
        self._tried = (time.monotonic(), writable)
        return writable

    async def _shared(self, what: str, work: Callable[[str], Found], about: str) -> Found:
        found = self._under_way.get((what, about))
        if found is None:
            found = asyncio.ensure_future(self.run(work, about))
            found.add_done_callback(lambda _: self._under_way.pop((what, about), None))
            self._under_way[what, about] = found
        shared: Found = await asyncio.shield(found)
        return shared

    async def follow(self, trial: Trial, steps: Steps[Found]) -> Found:
        """Have jobs of a caller done, one after the other, with those of all callers
        who came at the same time: no thread waits for each of them.
        """
        loop, clerk = asyncio.get_running_loop(), self._clerk
        self._callers += 1
        try:
            if clerk is not None:
                await clerk.hire(self._callers)
            job = next(steps)
            while True:
                done = loop.create_future()
                if clerk is not None and clerk.takes(job):
                    clerk.put(trial, job, done)
                else:
                    self._put(trial, job, done)
                await done
                job = steps.send(job.found())
        except StopIteration as end:
            found: Found = end.value
            return found
        finally:
            self._callers -= 1

    def _put(self, trial: Kept, job: Job[Any, Any], done: "asyncio.Future[None]") -> None:
        """Have a job done in a thread of this process."""
        if self._alarm is None:
            self._alarm = Alarm(done.get_loop())
        trial.put(job, self._threads.submit, partial(self._alarm.wake, done))

    def stop(self) -> None:
        """Refuse what comes from now on, and end the streams."""
        self.stopping = True
        self.events.stop()

    def close(self) -> None:
        """Let what is under way end, and close all connections."""
        self.forecasts.close()
        if self._clerk is not None:
            self._clerk.close()
        self._threads.shutdown()
        for trial in self._trials.values():
            trial.close()
        self.store.close()
        self._noting.close()

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
        for one in gone if kept is found else [found, *gone]:
            one.close()
        return kept

    def opened(self, name: str) -> Trial | None:
        """The trial of a name, if it is open."""
        with self._lock:
            return self._trials.get(name)

    def caller(self, name: str, visitor: Visitor) -> Caller:
        """A trial, for whoever calls: bound to the site of its token, which was checked
        when the token was made.
        """
        return Caller(self.trial(name), visitor.who, visitor.site)

    def seen(self, name: str) -> "Seen":
        """A trial as it is now, computed once for all who look within a second and
        after the last change that was made here.
        """
        return self._seen.get(name, lambda: Seen(self.trial(name)))

    def changed(self, name: str) -> None:
        """Something was done to a trial: whoever looks at it is told."""
        self._seen.forget(name)
        self.events.stir(name)

    def listed(self, visitor: Visitor) -> list[Listed]:
        """The trials within a visitor's reach."""
        return [one for one in list_trials(self.url) if visitor.sees(one.name)]

    def check_site(self, name: str | None, site: str | None) -> None:
        """Refuse a site that a trial with named sites does not have."""
        if name is not None and site is not None:
            check_site(self.trial(name).protocol, self.seen(name).status, site)

    def publish(self, name: str, who: str) -> None:
        """Let anyone see a trial; not while its staff are blinded."""
        trial = self.trial(name)
        if trial.protocol.blind and not trial.status().stopped:
            raise InvalidInputError(
                "staff of this trial are blinded, and would see on the public page how the arms "
                "are doing: publish it after its end"
            )
        self.doors.publish(name, who)

    def published(self, name: str) -> bool:
        """Whether anyone may see what may be published of a trial."""
        return name in self.doors.published()

    def check_there(self, name: str | None) -> None:
        """Refuse a trial that is not there; of the others nobody learns the names."""
        if name is not None and name not in self.store.names():
            raise NotHereError(f"there is no trial {quoted(name)} here")
