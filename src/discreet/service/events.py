"""The public changes of trials, as a stream to whoever listens.

However many listen to a trial, it is looked at once: a task for each trial that
somebody listens to asks the database once a second for the head of the record, and is
woken by changes that were made here.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from discreet.service import observability
from discreet.service.auth import Principal
from discreet.trials.listing import find_trial
from discreet.trials.verbs import SITE
from discreet.validation import read_whole

if TYPE_CHECKING:
    from discreet.service.state import AppState

POLL = 1.0
"""Seconds between two looks at a trial that others may have changed."""
LEAST = 0.1
"""Seconds between two looks at a trial at least, however much happens there."""
HEARTBEAT = 15.0
"""Seconds after which a stream says that it is still there, so that nobody on the way
closes it.
"""
RECHECK = 2.0
"""Seconds between two looks at whether those who listen still may."""


class Change(NamedTuple):
    """A trial as it is now, as it is sent to those who see it, and to a site."""

    seq: int
    whole: bytes
    bare: bytes


@dataclass(eq=False)
class Listener:
    """Somebody who listens."""

    principal: Principal
    over: bool = False
    """Whether it may not any more."""


class Watcher:
    """Looks at one trial, for all who listen to it."""

    def __init__(self, app_state: "AppState", name: str) -> None:
        self.name = name
        self.listeners = set[Listener]()
        self.now: Change | None = None
        self.gone = False
        """Whether there is no such trial any more."""
        self.news = asyncio.Event()
        """Set, and replaced, when there is something to send or to end."""
        self._home = app_state
        self._stirred = asyncio.Event()
        self._checked = time.monotonic()
        self.task = asyncio.get_running_loop().create_task(self._watch())

    def stir(self) -> None:
        """Look for changes now."""
        self._stirred.set()

    def wake(self) -> None:
        """Have all who listen look up."""
        self.news.set()
        self.news = asyncio.Event()

    async def _watch(self) -> None:
        while True:
            self._stirred.clear()
            try:
                await self._look()
            except Exception as error:
                observability.unexpected(error, "events")
            await asyncio.sleep(LEAST)
            try:
                async with asyncio.timeout(POLL - LEAST):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        found = await self._home.run(find_trial, self._home.store, self.name)
        if found is None:
            self.gone = True
            self.wake()
            return
        seq, head, listed = found
        if self.now is None or seq != self.now.seq:
            said: dict[str, str | int] = {
                "head": head,
                "participants": listed.participants,
                "state": listed.state,
            }
            self.now = Change(seq, _event(seq, said), _event(seq, {"head": head}))
            self.wake()
        if time.monotonic() - self._checked >= RECHECK:
            self._checked = time.monotonic()
            await self._recheck()

    async def _recheck(self) -> None:
        """End the streams of tokens that were revoked or have expired, and of anyone if
        the trial is no longer published.
        """
        listeners = list(self.listeners)
        tokens = {
            one.principal.token.number for one in listeners if one.principal.token is not None
        }
        valid = await self._home.run(self._home.token_table.find_valid, tokens)
        published = await self._home.run(self._home.published, self.name)
        for one in listeners:
            token = one.principal.token
            fits = token is not None and token.number in valid
            still = one.principal if fits else Principal(wrong=token is not None)
            one.over = not still.may("events", self.name, published)
        if any(one.over for one in listeners):
            self.wake()


def _event(seq: int, said: dict[str, str | int]) -> bytes:
    return b"id: %d\nevent: changed\ndata: %s\n\n" % (seq, msgspec.json.encode(said))


class Events:
    """Who listens to which trial. Used in the event loop's thread, but for `stir`."""

    def __init__(self, app_state: "AppState") -> None:
        self._home = app_state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watchers: dict[str, Watcher] = {}

    async def stream(self, name: str, principal: Principal, after: str) -> AsyncIterator[bytes]:
        """What happens to a trial from now on, and how it is now, unless that is what
        `after` names; until the principal may not see it any more.
        """
        self._loop = asyncio.get_running_loop()
        watcher = self._watchers.get(name)
        if watcher is None:
            watcher = self._watchers[name] = Watcher(self._home, name)
        listener = Listener(principal)
        watcher.listeners.add(listener)
        try:
            sent = read_whole(after)
            while not (listener.over or watcher.gone or self._home.stopping):
                news, now = watcher.news, watcher.now
                if now is not None and now.seq != sent:
                    sent = now.seq
                    yield now.bare if principal.role == SITE else now.whole
                    continue
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await news.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            watcher.listeners.discard(listener)
            if not watcher.listeners and self._watchers.get(name) is watcher:
                watcher.task.cancel()
                del self._watchers[name]

    def stir(self, name: str) -> None:
        """A trial may have changed; called from any thread."""
        if name in self._watchers and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stir, name)

    def stop(self) -> None:
        """End all streams; called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)

    def _stir(self, name: str) -> None:
        if name in self._watchers:
            self._watchers[name].stir()

    def _wake_all(self) -> None:
        for watcher in self._watchers.values():
            watcher.wake()
