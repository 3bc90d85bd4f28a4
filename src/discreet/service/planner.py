"""Plans for the page of a new trial, within a second or two: few simulated trials, each
plan made once, and the simulations compiled before anybody waits for them.
"""

import threading
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from discreet.instance import Bernoulli, Instance
from discreet.planning.plan import Plan, plan
from discreet.planning.power import Power
from discreet.planning.scenarios import gap_scenarios
from discreet.service.remember import Remembered

RUNS = 100
MOST_ARMS = 10
"""Arms up to which power is simulated at other differences too."""
AT_ONCE = 2
"""Plans that are made at the same time; whoever wants another waits."""
_plans = Remembered[Plan](128)
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
        scenario = gap_scenarios(2, 0.5, 0.5)
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
            scenarios = gap_scenarios(arms, gap, base)
            return plan(scenarios, runs=RUNS, power=arms <= MOST_ARMS, **settings)

    made = _plans.get((arms, key), make)
    cases: dict[str, Instance] = {
        words: Bernoulli(scenario.means, list(names)) for words, scenario in made.scenarios.items()
    }
    ways = tuple(replace(way, start=start) for way in made.ways)
    power = tuple(_in_units(point, width) for point in made.power)
    return replace(made, scenarios=cases, ways=ways, power=power, start=start)


def _in_units(point: Power, width: float | None) -> Power:
    """A point of a power curve with its difference in the units of the range."""
    return point if width is None else replace(point, difference=round(point.gap * width, 12))
