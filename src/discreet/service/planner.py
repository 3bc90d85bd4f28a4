"""Plans for the page of a new trial, within a second or two: few simulated trials, each
plan made once, and the simulations compiled before anybody waits for them.
"""

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from discreet.instances import Bernoulli, Instance
from discreet.planning.forecast import Forecast, forecast
from discreet.planning.plan import Plan, plan
from discreet.planning.power import Power
from discreet.planning.scenarios import make_gap_scenarios
from discreet.service import observability
from discreet.service.cache import OnceCache
from discreet.strategies.run import Run

MOST = 256
"""Trials of which a forecast is kept."""
LEAST = 30.0
"""Seconds between two forecasts of a trial: some release with every answer."""
TOO_LONG = "continuations of this trial take too long to simulate"
FAILED = "the simulation failed; the service's log says where"


@dataclass(frozen=True)
class ForecastState:
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
        self._kept: OrderedDict[str, ForecastState] = OrderedDict()
        self._wanted = set[str]()

    def see(self, name: str, key: str, seed: int, run: Callable[[], Run]) -> ForecastState | None:
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
            seen = ForecastState(key, found, "" if found else TOO_LONG, time.monotonic())
        except Exception as error:
            observability.unexpected(error, "forecast")
            seen = ForecastState(key, None, FAILED, time.monotonic())
        with self._lock:
            self._wanted.discard(name)
            self._kept[name] = seen
            self._kept.move_to_end(name)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)


RUNS = 100
MOST_ARMS = 10
"""Arms up to which power is simulated at other differences too."""
AT_ONCE = 2
"""Plans that are made at the same time; whoever wants another waits."""
_plans = OnceCache[Plan](128)
_turn = threading.Semaphore(AT_ONCE)
_lock = threading.Lock()
_ready = threading.Event()
_dated = threading.Event()
"""Whether plans in days are ready too: their simulations are others."""
_begun = threading.Event()


def warm() -> None:
    """Compile what plans need, in the background: cold it takes a minute or two, once
    on a machine.
    """
    with _lock:
        if _begun.is_set():
            return
        _begun.set()
    threading.Thread(target=_compile, name="warm", daemon=True).start()


def ready(seconds: float = 0.0, days: bool = False) -> bool:
    """Whether a plan takes a second or two now, in people or also in days; waits so
    long for it.
    """
    return (_dated if days else _ready).wait(seconds)


def _compile() -> None:
    try:
        scenario = make_gap_scenarios(2, 0.5, 0.5)
        days: dict[str, Any] = {"accrual": 5.0, "delay": 1.0}
        later: dict[str, Any] = {**days, "deadline": 3.0, "enrolment": "continuous"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan(scenario, [1.0], 0.2, runs=1)
            _ready.set()
            for calendar in (days, later):
                plan(scenario, [1.0], 0.2, runs=1, **calendar)
    finally:
        _ready.set()
        _dated.set()


def planned(
    key: Hashable,
    names: Sequence[str],
    gap: float,
    base: float,
    start: date | None = None,
    width: float | None = None,
    **settings: Any,
) -> Plan:
    """The plan for a difference worth finding. The same settings have the same key;
    what the arms are called, when it starts and how wide the range of outcomes is, if
    these are numbers, need no other simulations.
    """
    arms = len(names)

    def make() -> Plan:
        with _turn, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scenarios = make_gap_scenarios(arms, gap, base)
            return plan(scenarios, runs=RUNS, power=arms <= MOST_ARMS, **settings)

    made = _plans.get((arms, key), make)
    cases: dict[str, Instance] = {
        words: Bernoulli(scenario.means, list(names)) for words, scenario in made.scenarios.items()
    }
    ways = tuple(replace(way, start=start) for way in made.enrolments)
    power = tuple(_in_units(point, width) for point in made.power)
    return replace(made, scenarios=cases, enrolments=ways, power=power, start=start)


def _in_units(point: Power, width: float | None) -> Power:
    """A point of a power curve with its difference in the units of the range."""
    return point if width is None else replace(point, difference=round(point.gap * width, 12))
