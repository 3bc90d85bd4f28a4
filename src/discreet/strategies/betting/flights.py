"""Rounds under way as they are stored."""

from typing import Any

import numpy as np

from discreet.strategies.betting.ahead import Flight
from discreet.strategies.betting.plan import Plan

PLANNED: dict[str, type] = {
    "odds": int,
    "length": int,
    "centre": float,
    "dear": bool,
    "margin": bool,
    "fine": bool,
}
FLIGHT: dict[str, type] = {
    "number": int,
    "heavy": int,
    "planned": int,
    "lasted": float,
    "since": int,
    "closed": bool,
    "void": bool,
}
"""What is stored of a round under way, under these names for ever; beside them who is
`playing`, and how many each arm was `dealt`.
"""


def people_in(flight: Flight) -> int:
    """Everybody dealt in a round."""
    return int(np.add.reduce(flight.dealt))


def dumped(flight: Flight) -> dict[str, Any]:
    """A round under way in plain types."""
    state = {name: kind(getattr(flight, name)) for name, kind in FLIGHT.items()}
    state |= {name: kind(getattr(flight.plan, name)) for name, kind in PLANNED.items()}
    return {**state, "playing": flight.playing.tolist(), "dealt": flight.dealt.tolist()}


def loaded(state: dict[str, Any]) -> Flight:
    """What `dumped` wrote."""
    plan = Plan(**{name: kind(state[name]) for name, kind in PLANNED.items()})
    by_arm: dict[str, Any] = {
        "playing": np.array(state["playing"], np.bool_),
        "dealt": np.array(state["dealt"], np.int64),
    }
    about: dict[str, Any] = {name: kind(state[name]) for name, kind in FLIGHT.items()}
    return Flight(**about, plan=plan, **by_arm)
