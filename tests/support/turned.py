"""The clock of a service's event loop, which tests turn: hours go by at once, and how
busy the machine is does not matter.
"""

import threading
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

import uvicorn
import uvloop

SOON = 60.0
"""Seconds within which a loop that is not stuck goes on."""


class _Due:
    """What happens at a time, once."""

    def __init__(self, at: float, work: Callable[[], Any]) -> None:
        self.at, self.work, self.done = at, work, False

    def __call__(self) -> None:
        if not self.done:
            self.done = True
            self.work()


class Turned(uvloop.Loop):
    """A loop whose clock can be put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self._later = list[tuple[_Due, Any]]()

    def time(self) -> float:
        """What its clock says."""
        return super().time() + self.ahead

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Any:
        """Also what others of the loop's methods do later comes by here."""
        due = _Due(self.time() + delay, partial(callback, *args))
        handle = super().call_later(delay, due, context=context)
        self._later.append((due, handle))
        return handle

    def turn(self, seconds: float) -> None:
        """Put the clock forward, from another thread: what was due until then has
        happened when this returns.
        """
        done = threading.Event()
        self.call_soon_threadsafe(self._turn, seconds, done)
        assert done.wait(SOON), "the loop does not go on"

    def _turn(self, seconds: float, done: threading.Event) -> None:
        self.ahead += seconds
        waiting = sorted(self._later, key=lambda one: one[0].at)
        self._later = []
        for due, handle in waiting:
            if handle.cancelled() or due.done:
                continue
            if due.at > self.time():
                self._later.append((due, handle))
                continue
            handle.cancel()
            due()
        done.set()


def turn(server: uvicorn.Server, seconds: float) -> None:
    """Put the clock of a server forward; it was made with a loop of this kind."""
    loop = server.servers[0].get_loop()
    assert isinstance(loop, Turned)
    loop.turn(seconds)
