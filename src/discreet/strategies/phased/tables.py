"""A phased strategy as tables and codes over the phases of its grid: where words become
numbers.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.strategies import scales
from discreet.strategies.custom import CustomBonus, CustomGrid, CustomThreshold, checked_table
from discreet.strategies.strategy import Strategy
from discreet.strategies.top_two import SAMPLINGS
from discreet.theory import concentrated, thresholds
from discreet.theory.costs import GAUSSIAN, PRIVATE

LOW, SPLIT, EITHER = 0, 1, 2
"""Codes of the stopping rules, see `decide.passes`."""
COSTS = {"gaussian": GAUSSIAN, "private": PRIVATE}
LONGEST = 1024
"""Phases of a grid of your own: its tables hold as many rows."""
PHASES = 62
"""Doubling reaches 2^61 pulls, far beyond any cap."""


class PhasedRules(NamedTuple):
    """How to decide between releases of a phased estimator. Phases count from 1; row
    and column 0 are unused.
    """

    sampling: int
    """A code of `top_two`: every rule but TS_TC."""
    cost: int
    """GAUSSIAN or PRIVATE: the transportation cost of the challenger."""
    stop: int
    """LOW, SPLIT or EITHER."""
    half_epsilon: float
    """epsilon / 2 of W^{G,eps}; infinity without privacy."""
    two_variance: float
    """2 sigma^2 in the costs of the stopping rule."""
    beta: float
    """Share of the leader, in (0, 1). Unused under IDS."""
    ids: bool
    """Information-directed selection instead of a fixed share."""
    bonus: Floats
    """bonus[phase]."""
    low: Floats
    """low[phase of the recommended arm, phase of the other arm]."""
    high: Floats
    """high[...] likewise."""
    bonus_scale: float
    """2 sigma^2 alpha (1 + s) of b^G, which also depends on all counts (DPA); 0 for
    `bonus` by phase.
    """
    forget: bool
    """DAF uses the samples of the last phase only, DPA all samples."""
    grid: Ints
    """grid[k]: pulls of an arm when its phase k is complete; grid[1] = 1. Unused with
    one global episode.
    """
    sigma: float
    """The scale of Gaussian noise on sums; 0 if noise is Laplace noise, or none."""


def phased_rules(strategy: Strategy, arms: int) -> PhasedRules:
    """The rules of a phased strategy, with tables over the phases of its grid.

    Tables take longer to make than many a run; those without functions of one's own are
    kept.
    """
    data = all(
        isinstance(part, str) for part in (strategy.threshold, strategy.bonus, strategy.grid)
    )
    return _kept_rules(strategy, arms) if data else _phased_rules(strategy, arms)


@lru_cache(maxsize=32)
def _kept_rules(strategy: Strategy, arms: int) -> PhasedRules:
    return _phased_rules(strategy, arms)


def _phased_rules(strategy: Strategy, arms: int) -> PhasedRules:
    counts = phase_counts(strategy)
    low, high = pair_thresholds(strategy, arms)(counts[:, np.newaxis], counts)
    square = (len(counts), len(counts))
    return PhasedRules(
        sampling=SAMPLINGS[strategy.sampling],
        cost=COSTS[strategy.cost],
        stop=_stop(strategy),
        half_epsilon=math.inf if strategy.epsilon is None else strategy.epsilon / 2,
        two_variance=scales.two_variance(strategy),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=checked_table("bonus", phase_bonus(strategy)(counts), counts.shape),
        low=checked_table("threshold", low, square),
        high=checked_table("threshold", high, square),
        bonus_scale=scales.bonus_scale(strategy)
        if not strategy.part.forgets and strategy.bonus == "ucb"
        else 0.0,
        forget=strategy.part.forgets,
        grid=grid(strategy),
        sigma=scales.sum_noise(strategy),
    )


def grid(strategy: Strategy) -> Ints:
    """grid[k]: an arm's pulls when its phase k is complete; entry 0 is not used."""
    if isinstance(strategy.grid, str):
        return np.concatenate([[0], 2 ** np.arange(PHASES, dtype=np.int64)])
    pulls = [0]
    while pulls[-1] < 2**61 and len(pulls) <= LONGEST:
        try:
            pulls.append(min(int(strategy.grid.function(len(pulls))), 2**62))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"the grid {strategy.grid.name!r} must give whole numbers: {error}"
            ) from None
        if pulls[-1] <= pulls[-2]:
            raise InvalidInputError(
                f"the grid {strategy.grid.name!r} must grow: phase {len(pulls) - 1} does not"
            )
    if pulls[1] != 1:
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} must be 1 for phase 1: one sample of each arm first"
        )
    return np.array(pulls, dtype=np.int64)


def phase_counts(strategy: Strategy) -> Floats:
    """The samples behind an arm's mean in each phase of the grid; 1 in the unused entry
    0.
    """
    pulls = grid(strategy).astype(np.float64)
    counts = np.diff(pulls, prepend=0.0) if strategy.part.forgets else pulls
    return np.maximum(counts, 1.0)


def phase_bonus(strategy: Strategy) -> Callable[[Any], Floats]:
    """The leader's bonus by an arm's local count. Without privacy it is b^G instead,
    which needs all counts.
    """
    if isinstance(strategy.bonus, CustomBonus):
        custom = strategy.bonus.function
        return lambda count: np.asarray(custom(count), dtype=np.float64)
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    if (sigma := scales.sum_noise(strategy)) > 0:
        return lambda count: concentrated.bonus_concentrated(count, sigma)
    return lambda count: thresholds.bonus_private(count, epsilon)


def pair_thresholds(strategy: Strategy, arms: int) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """The thresholds (low, high) of a phased strategy, as a function of the two counts,
    see `decide.passes`.
    """
    if isinstance(strategy.threshold, CustomThreshold):
        custom = strategy.threshold.function
        return lambda a, b: _twice(np.asarray(custom(a, b), dtype=np.float64))
    if strategy.threshold == "empirical":
        return _empirical_thresholds(strategy.delta, strategy.epsilon, strategy.cost)
    delta, epsilon, sigma = strategy.delta, strategy.epsilon, scales.sum_noise(strategy)
    if sigma > 0:
        return lambda a, b: _twice(concentrated.c_concentrated(a, b, arms, delta, sigma))
    if epsilon is None:
        plain = thresholds.c_forgetting if strategy.part.forgets else thresholds.c_gaussian
        return lambda a, b: _twice(plain(a, b, arms, delta))
    if strategy.cost == "gaussian":
        return lambda a, b: _twice(thresholds.c_private(a, b, arms, delta, epsilon))
    high = thresholds.c_star_sharp if strategy.threshold == "proved" else thresholds.c_star_high
    return lambda a, b: (
        thresholds.c_star_low(a, b, arms, delta, epsilon),
        high(a, b, arms, delta, epsilon),
    )


def _empirical_thresholds(
    delta: float, epsilon: float | None, cost: str
) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """Those of the published experiments."""
    if epsilon is None:
        return lambda a, b: _twice(thresholds.empirical_gaussian(a, b, delta))
    if cost == "gaussian":
        return lambda a, b: _twice(thresholds.empirical_private(a, b, delta, epsilon))
    return lambda a, b: thresholds.empirical_star(a, b, delta, epsilon)


def _stop(strategy: Strategy) -> int:
    if strategy.cost == "gaussian" or isinstance(strategy.threshold, CustomThreshold):
        return LOW
    return EITHER if strategy.threshold == "proved" else SPLIT


def _twice(values: Floats) -> tuple[Floats, Floats]:
    return values, values


def check_grid(strategy: Strategy, cap: int) -> None:
    """Refuse a grid that ends before the cap, and our thresholds on a grid they do not
    cover.

    Our thresholds pay for phase k only if the count reaches 2^{k−2}.
    """
    if not isinstance(strategy.grid, CustomGrid):
        return
    if grid(strategy)[-1] < cap:
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} has more than {LONGEST} phases before {cap:g} "
            "samples: let it grow faster, or give a smaller max_samples"
        )
    unpaid = isinstance(strategy.threshold, CustomThreshold) or strategy.threshold == "empirical"
    if unpaid or not strategy.part.forgets:
        return
    counts = phase_counts(strategy)[1:]
    if (counts < np.exp2(np.arange(1, len(counts) + 1) - 2.0)).any():
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} renews means more often than doubling, which our "
            "thresholds do not pay for: give a CustomThreshold with it, or a grid that at least "
            "doubles"
        )
