"""How trials that go on may end: simulated in the background, one at a time, from what
is public, and kept until the next release.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from discreet.planning.forecast import Forecast, forecast
from discreet.service import logs
from discreet.strategies.run import Run

MOST = 256
"""Trials of which a forecast is kept."""
LEAST = 30.0
"""Seconds between two forecasts of a trial: some release with every answer."""
TOO_LONG = "continuations of this trial take too long to simulate"
FAILED = "the simulation failed; the service's log says where"


@dataclass(frozen=True)
class Seen:
    """What is known of how a trial may end."""

    key: str
    """What it depends on: the releases so far, and what managers did."""
    found: Forecast | None = None
    reason: str = ""
    """Why there is none, if there never will be one at this key."""
    at: float = 0.0


class Forecasts:
    """The last forecast of each trial."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "forecast")
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Seen] = OrderedDict()
        self._wanted = set[str]()

    def see(self, name: str, key: str, seed: int, run: Callable[[], Run]) -> Seen | None:
        """The last one of a trial, None if there is none yet. If the trial has gone on
        since, another one is begun, from a copy of its run.
        """
        with self._lock:
            seen = self._kept.get(name)
            fresh = seen is not None and seen.key == key
            early = seen is not None and time.monotonic() - seen.at < LEAST
            if not (fresh or early or name in self._wanted):
                self._wanted.add(name)
                with suppress(RuntimeError):  # the service ends
                    self._thread.submit(self._make, name, key, seed, run)
        return seen

    def known(self, name: str) -> str:
        """What changes when there is another one."""
        with self._lock:
            seen = self._kept.get(name)
        return "" if seen is None else seen.key

    def close(self) -> None:
        """Begin no other one."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, name: str, key: str, seed: int, run: Callable[[], Run]) -> None:
        try:
            found = forecast(run(), seed)
            seen = Seen(key, found, "" if found else TOO_LONG, time.monotonic())
        except Exception as error:
            logs.unexpected(error, "forecast")
            seen = Seen(key, None, FAILED, time.monotonic())
        with self._lock:
            self._wanted.discard(name)
            self._kept[name] = seen
            self._kept.move_to_end(name)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
