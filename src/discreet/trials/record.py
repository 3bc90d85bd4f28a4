"""The public record of a live trial, and the state that follows from its events.

Nothing here knows a database, and nothing makes noise: whoever has the record can
follow it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import NoConvergenceError
from discreet.strategies.run import Dealing, Place, Run, Totals, new_run
from discreet.strategies.strategy import Strategy
from discreet.trials.conduct import Conduct
from discreet.trials.protocol import Protocol
from discreet.trials.responses import payable_delta

BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    NoConvergenceError,
)
"""What reading something raises that is not what we wrote."""


# --- the state ------------------------------------------------------------------------


def live_noise(strategy: Strategy) -> float | None:
    """The standard deviation, in rewards, of Gaussian responses; only OpenDP's own map
    knows it.
    """
    if strategy.gamma is None or not strategy.part.gamma:
        return None
    from discreet.trials.mechanisms import gaussian_noise_scale

    return gaussian_noise_scale(float(strategy.epsilon or 0), strategy.gamma)


def live_run(strategy: Strategy, arms: int, people: int, dealing: Dealing) -> Run:
    """A live run of at most so many people; its thresholds pay for discrete noise."""
    delta, noise = payable_delta(strategy), live_noise(strategy)
    return new_run(strategy, arms, people, delta, noise, dealing)


@dataclass
class Public:
    """What is public and changes: the run, and what is known beside it."""

    protocol: Protocol
    run: Run
    conduct: Conduct
    releases: int = 0
    stopped: bool = False
    conclusive: bool = False
    cursor: int = 0
    """For strategies that learn from every answer: how many answers are taken in, in
    the order of assignment.
    """

    def dump(self) -> str:
        """Return the state as text."""
        state = {
            "releases": self.releases,
            "stopped": self.stopped,
            "conclusive": self.conclusive,
            "cursor": self.cursor,
            "course": self.run.dump(),
            "conduct": self.conduct.dump(),
        }
        return json.dumps(state)

    def load(self, text: str) -> None:
        """Load the state that `dump` wrote."""
        state = json.loads(text)
        self.conduct = Conduct.load(state["conduct"])
        self.run.cap = self.conduct.maximum
        self.run.load(state["course"])
        self.releases, self.cursor = _whole(state["releases"]), _whole(state["cursor"])
        self.stopped, self.conclusive = _flag(state["stopped"]), _flag(state["conclusive"])

    def end(self) -> dict[str, Any]:
        """The trial is over: what the record says about it."""
        self.stopped = True
        self.conclusive = self.run.stopped
        return {"conclusive": self.conclusive, "recommendation": self.run.recommendation}


def _whole(value: Any) -> int:
    """A count, as it was written."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def fresh(protocol: Protocol) -> Public:
    """A trial that has not begun."""
    run = live_run(protocol.strategy, len(protocol.arms), protocol.max_people, protocol.dealt)
    return Public(protocol, run, Conduct(protocol.max_people, list(protocol.arms)))


# --- a release ------------------------------------------------------------------------


class Release(NamedTuple):
    """What is published about a batch of one arm (or one answer), in units of the
    grid.
    """

    arm: int
    phase: int
    size: int
    sum: int | None
    """None if the batch only entered the number of another arm, its margin."""
    near: int | None = None
    """How close its outcomes are to the announced centre, where that is released."""


def release(
    due: Sequence[Place],
    totals: Sequence[Totals | None],
    grid: int,
    noisy: Callable[[Totals], Totals],
    decide: Callable[..., None],
) -> list[Release]:
    """One release, live or rehearsed, of what a run has combined: noise on each total,
    and decisions from the noisy numbers alone.
    """
    shown = [None if total is None else noisy(total) for total in totals]
    with np.errstate(all="ignore"):  # no warning, made an error, may follow a draw
        decide(*in_rewards([total for total in shown if total is not None], 1 / grid))
    return [
        Release(*batch, None) if total is None else Release(*batch, *total)
        for batch, total in zip(due, shown, strict=True)
    ]


def in_rewards(totals: Sequence[Totals], unit: float) -> list[list[float]]:
    """What was released, on the scale of rewards: sums, and beside them closeness where
    it is released.
    """
    sums = [total.sum * unit for total in totals]
    near = [total.near * unit for total in totals if total.near is not None]
    return [sums, near] if near else [sums]
