"""What a plan is made for: success rates that are given, or all that a few words may
mean.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet import theory
from discreet._types import Progress
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, Drifting, Instance
from discreet.past_data import Sampled
from discreet.planning.rows import Simulations, Spread, count_correct, summarise_participants
from discreet.scale import CLIP, REFUSE, Scale, check_range, suggest_range
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.validation import (
    check_arms,
    check_levels,
    check_share,
    check_whole,
    convert_to_float,
    quote,
)
from discreet.wording import shorten

RANGE_RUNS = 200
GIVEN, WIDER, TIGHTEST = "given", "twice as wide", "tightest round one"
MIN_TARGET_DIFFERENCE = 1e-6


@dataclass(frozen=True)
class RangeCost:
    """Hold how many participants a trial takes with one range of outcomes."""

    name: str
    """`given`, `twice as wide` (around the same middle, but an end at 0 stays), or
    `tightest round one`, round numbers that hold the data without room.
    """
    low: float
    high: float
    strategy: Strategy
    runs: int
    participants: Spread
    correct: float
    """Share of the trials that end with the correct result (in time)."""
    unstopped: int
    times: float | None
    """Mean participants, as a multiple of those with the given range."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return {
            **vars(self),
            "strategy": self.strategy.name,
            "epsilon": self.strategy.epsilon,
            "participants": vars(self.participants),
        }


def plan_ranges(
    outcomes: Mapping[str, ArrayLike],
    range: tuple[float, float],
    strategy: Strategy,
    direction: str = "max",
    out_of_range: str = REFUSE,
    runs: int = RANGE_RUNS,
    seed: int = 0,
    max_participants: int | None = None,
    progress: Progress | None = None,
) -> tuple[RangeCost, ...]:
    """Simulate how many participants a strategy takes with this range of outcomes, with
    one twice as wide, and with tight round numbers that hold the data, if these are
    tighter.

    `outcomes` are past ones in the experimenter's units, by the arms' names, as
    `discreet.past_data.read_past_outcomes` reads them; `direction` and `outside` are those of
    `Sampled.from_outcomes`. If outcomes are clipped, the range need not contain them all, so there
    is then no tightest one. A target difference is in units of rewards, so it is rescaled with the
    range.
    """
    check_strategy(strategy)
    if max_participants is not None:
        check_whole("max_participants", max_participants, least=2)
    given = Scale(*check_range(range), direction)
    Sampled.from_outcomes(outcomes, (given.low, given.high), direction, out_of_range)
    ranges = {GIVEN: (given.low, given.high), WIDER: _double_range(given)}
    if out_of_range != CLIP and (tight := _tighten_range(outcomes, given)) != ranges[GIVEN]:
        ranges[TIGHTEST] = tight
    simulations = Simulations(runs, seed, progress)
    simulations.expect(len(ranges))
    rows: list[RangeCost] = []
    for name, ends in ranges.items():
        arms = Sampled.from_outcomes(outcomes, ends, direction, out_of_range)
        planned = _rescale_target(strategy, (given.high - given.low) / (ends[1] - ends[0]))
        results = simulations(arms, planned, max_participants)
        samples = summarise_participants(results, max_participants is not None)
        first = rows[0].participants.mean if rows else samples.mean
        rows.append(
            RangeCost(
                name=name,
                low=ends[0],
                high=ends[1],
                strategy=planned,
                runs=results.runs,
                participants=samples,
                correct=count_correct(results) / results.runs,
                unstopped=results.unstopped,
                times=samples.mean / first if samples.mean and first else None,
            )
        )
    return tuple(rows)


def _double_range(scale: Scale) -> tuple[float, float]:
    """Return a range twice as wide around the same middle; an end at 0 is likely one of
    nature, and stays.
    """
    if 0 in (scale.low, scale.high):
        return 2 * scale.low, 2 * scale.high
    half = (scale.high - scale.low) / 2
    return scale.low - half, scale.high + half


def _tighten_range(outcomes: Mapping[str, ArrayLike], given: Scale) -> tuple[float, float]:
    """Return round numbers that hold the data, so that they do not tell its smallest
    and largest outcome; not wider than the given range.
    """
    low, high = suggest_range(np.concatenate([np.asarray(some) for some in outcomes.values()]), 0)
    return max(low, given.low), min(high, given.high)


def _rescale_target(strategy: Strategy, factor: float) -> Strategy:
    """Return the strategy with its target difference for rewards so many times as
    large.
    """
    if strategy.target_difference == 0:
        return strategy
    return strategy.with_(
        target_difference=min(max(strategy.target_difference * factor, MIN_TARGET_DIFFERENCE), 1.0)
    )


@dataclass(frozen=True)
class GapScenarios:
    """Hold what "K arms, the best at least `gap` better than the rest, success rates
    around `base`" may mean.

    `shapes` are instances that fit these words, by name. `find_hardest` says which of them
    is the hardest. Strategies that take a target difference are planned with the gap as their
    target difference.
    """

    arms: int
    gap: float
    base: float
    shapes: dict[str, Bernoulli] = field(compare=False)

    def find_hardest(
        self, epsilons: Sequence[float] = (), trust: str = "global"
    ) -> tuple[str, Bernoulli]:
        """Return the shape with the largest lower bound, in the geometric mean over no
        privacy and all the privacy levels.

        With the best arm held fixed, all others tied exactly `gap` below it is the
        hardest: raising another arm's mean makes every alternative in which it is best
        cheaper. Where the two success rates lie depends on how "around" is read, and
        outcomes tell the least near 1/2; so the shapes are compared numerically.
        """

        levels = check_levels(epsilons)

        def hardness(shape: Bernoulli) -> float:
            return sum(
                math.log(theory.tightest(shape, epsilon, trust).value)
                for epsilon in (None, *levels)
            )

        return max(self.shapes.items(), key=lambda item: hardness(item[1]))


def make_gap_scenarios(arms: int, gap: float, base: float) -> GapScenarios:
    """Make the instances with `arms` arms, the best at least `gap` better than the rest
    and success rates around `base`.

    `base` may be the rate of all arms but the best, of the best, or the middle between
    them. The shapes "one rival" and "ladder" put the other arms further below.
    """
    check_arms(arms)
    gap = check_share("gap", gap)
    if not 0 <= convert_to_float(base) <= 1:
        raise InvalidInputError(f"base is a success rate and must lie in [0, 1]; got {quote(base)}")
    base = float(base)
    rest, middle = arms - 1, base + gap / 2
    means = {
        "rest at the base": [base + gap] + [base] * rest,
        "base in the middle": [middle] + [base - gap / 2] * rest,
        "best at the base": [base] + [base - gap] * rest,
    }
    if arms > 2:
        pair = [middle, base - gap / 2]
        means["one rival"] = pair + [max(0.0, middle - 2 * gap)] * (arms - 2)
        means["ladder"] = pair + [max(0.0, middle - i * gap) for i in range(2, arms)]
    rounded = {name: [round(mean, 12) for mean in shape] for name, shape in means.items()}
    fitting = {
        name: Bernoulli(shape)
        for name, shape in rounded.items()
        if min(shape) >= 0 and max(shape) <= 1
    }
    if not fitting:
        raise InvalidInputError(
            f"no success rates around {base:g} differ by {gap:g} within [0, 1]: choose a smaller "
            "gap or another base"
        )
    return GapScenarios(arms, gap, base, fitting)


def name_scenarios(
    scenarios: Any, levels: list[float], trust: str, ties: bool = False
) -> dict[str, Instance]:
    """Return the scenarios by name; `ties` if the best arm may share its place."""
    if isinstance(scenarios, GapScenarios):
        name, hardest = scenarios.find_hardest(levels, trust)
        described = f"{scenarios.arms} arms, gap {scenarios.gap:g}, base {scenarios.base:g}"
        return {f"{described}: {name}": hardest}
    instances = [scenarios] if isinstance(scenarios, Instance) else scenarios
    listed = isinstance(instances, list | tuple)
    if (
        not listed
        or not instances
        or not all(isinstance(instance, Instance) for instance in instances)
    ):
        raise InvalidInputError(
            "scenarios must be an instance, a list of instances, or what make_gap_scenarios returns"
        )
    cases: dict[str, Instance] = {}
    for instance in instances:
        if instance.is_unique or not ties or isinstance(instance, Drifting):
            _ = instance.gaps  # refuses a tie, and arms that drift
        known = isinstance(instance, Sampled) and instance.scale is not None
        arms = map(shorten, instance.names) if known else (f"{mean:g}" for mean in instance.means)
        shown = ", ".join(islice(arms, 6))
        name = f"{shown}{', …' if instance.arms > 6 else ''}"
        cases[name if name not in cases else f"{name} ({len(cases) + 1})"] = instance
    return cases
