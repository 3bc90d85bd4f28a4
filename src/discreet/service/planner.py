"""Plans for the page of a new trial, within a second or two: few simulated trials, each
plan made once, and the simulations compiled before anybody waits for them.
"""

import threading
import warnings
from collections.abc import Hashable
from typing import Any

from discreet.planning.plan import Plan, plan
from discreet.planning.scenarios import gap_scenarios
from discreet.service.remember import Remembered

RUNS = 100
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


def planned(key: Hashable, arms: int, gap: float, base: float, **settings: Any) -> Plan:
    """The plan for a difference worth finding; the same settings have the same key."""

    def make() -> Plan:
        with _turn, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plan(gap_scenarios(arms, gap, base), runs=RUNS, power=False, **settings)

    return _plans.get(key, make)
