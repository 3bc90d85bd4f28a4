"""What a range of outcomes costs: the same trial with a wider one, and with a tight
one.

Rewards are outcomes divided by the width of the range, so a range that is wider than
need be makes differences small beside the noise of privacy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Progress
from discreet.planning.people import People, people_of
from discreet.planning.simulations import Simulations, right
from discreet.sampled import Sampled
from discreet.scale import CLIP, REFUSE, Scale, ends_of, suggest_range
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.validate import check_whole

RUNS = 200
GIVEN, WIDER, TIGHTEST = "given", "twice as wide", "tightest round one"
LEAST_HINT = 1e-6


@dataclass(frozen=True)
class RangeCost:
    """How many people a trial takes with one range of outcomes."""

    name: str
    """`given`, `twice as wide` (around the same middle, but an end at 0 stays), or
    `tightest round one`, round numbers that hold the data without room.
    """
    low: float
    high: float
    strategy: Strategy
    runs: int
    samples: People
    correct: float
    """Share of the trials that end with the right answer (in time)."""
    unstopped: int
    times: float | None
    """Mean people, as a multiple of those with the given range."""

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {
            **vars(self),
            "strategy": self.strategy.name,
            "epsilon": self.strategy.epsilon,
            "samples": vars(self.samples),
        }


def plan_ranges(
    outcomes: Mapping[str, ArrayLike],
    range: tuple[float, float],
    strategy: Strategy,
    direction: str = "max",
    outside: str = REFUSE,
    runs: int = RUNS,
    seed: int = 0,
    max_people: int | None = None,
    progress: Progress | None = None,
) -> tuple[RangeCost, ...]:
    """How many people a strategy takes with this range of outcomes, with one twice as
    wide, and with tight round numbers that hold the data, if these are tighter.

    `outcomes` are past ones in the experimenter's units, by the arms' names, as
    `discreet.past.read_outcomes` reads them; `direction` and `outside` are those of
    `Sampled.of`. If outcomes are clipped, the range need not contain them all, so there
    is then no tightest one. A hint is in units of rewards, so it is rescaled with the
    range.
    """
    check_strategy(strategy)
    if max_people is not None:
        check_whole("max_people", max_people, least=2)
    given = Scale(*ends_of(range), direction)
    Sampled.of(outcomes, (given.low, given.high), direction, outside)
    ranges = {GIVEN: (given.low, given.high), WIDER: _twice(given)}
    if outside != CLIP and (tight := _tight(outcomes, given)) != ranges[GIVEN]:
        ranges[TIGHTEST] = tight
    simulations = Simulations(runs, seed, progress)
    simulations.expect(len(ranges))
    rows: list[RangeCost] = []
    for name, ends in ranges.items():
        arms = Sampled.of(outcomes, ends, direction, outside)
        planned = _rescaled(strategy, (given.high - given.low) / (ends[1] - ends[0]))
        results = simulations(arms, planned, max_people)
        samples = people_of(results, max_people is not None)
        first = rows[0].samples.mean if rows else samples.mean
        rows.append(
            RangeCost(
                name=name,
                low=ends[0],
                high=ends[1],
                strategy=planned,
                runs=results.runs,
                samples=samples,
                correct=right(results) / results.runs,
                unstopped=results.unstopped,
                times=samples.mean / first if samples.mean and first else None,
            )
        )
    return tuple(rows)


def _twice(scale: Scale) -> tuple[float, float]:
    """Twice as wide around the same middle; an end at 0 is likely one of nature, and
    stays.
    """
    if 0 in (scale.low, scale.high):
        return 2 * scale.low, 2 * scale.high
    half = (scale.high - scale.low) / 2
    return scale.low - half, scale.high + half


def _tight(outcomes: Mapping[str, ArrayLike], given: Scale) -> tuple[float, float]:
    """Round numbers that hold the data, so that they do not tell its smallest and
    largest outcome; not wider than the given range.
    """
    low, high = suggest_range(np.concatenate([np.asarray(some) for some in outcomes.values()]), 0)
    return max(low, given.low), min(high, given.high)


def _rescaled(strategy: Strategy, factor: float) -> Strategy:
    """The strategy with its hint for rewards so many times as large."""
    if strategy.hint == 0:
        return strategy
    return strategy.with_(hint=min(max(strategy.hint * factor, LEAST_HINT), 1.0))
