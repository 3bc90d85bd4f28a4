"""A strategy as the tables and codes that decision.py decides by: where words become numbers.

The simulator and the live trial both take their rules from here.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.strategies import decision
from discreet.strategies.betting import rounds as betting
from discreet.strategies.strategy import CustomBonus, CustomGrid, CustomThreshold, Strategy
from discreet.theory import thresholds as threshold

LONGEST = 1024  # phases of a grid of your own: its tables hold as many rows
PHASES = 62  # doubling reaches 2^61 pulls, far beyond any cap
SAMPLINGS = {
    "top-two": decision.TOP_TWO,
    "uniform": decision.UNIFORM,
    "lucb": decision.LUCB,
    "elimination": decision.ELIMINATION,
}
COSTS = {"gaussian": decision.GAUSSIAN, "private": decision.PRIVATE}


def phased_rules(strategy: Strategy, arms: int) -> decision.PhasedRules:
    """The rules of a phased strategy, with tables over the phases of its grid."""
    counts = phase_counts(strategy)
    low, high = pair_thresholds(strategy, arms)(counts[:, np.newaxis], counts)
    square = (len(counts), len(counts))
    return decision.PhasedRules(
        sampling=SAMPLINGS[strategy.sampling],
        cost=COSTS[strategy.cost],
        stop=_stop(strategy),
        half_epsilon=math.inf if strategy.epsilon is None else strategy.epsilon / 2,
        two_variance=two_variance(strategy),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=_table("bonus", phase_bonus(strategy)(counts), counts.shape),
        low=_table("threshold", low, square),
        high=_table("threshold", high, square),
        bonus_scale=_bonus_scale(strategy) if strategy.epsilon is None and strategy.bonus == "ucb" else 0.0,
    )


def stream_rules(strategy: Strategy, arms: int, noise: float | None = None) -> decision.StreamRules:
    """The rules of a strategy that releases every sample; `noise` is the Gaussian noise if not as in simulations."""
    kind, constant, table = decision.ITERATED, 0.0, np.zeros(1)
    if isinstance(strategy.threshold, CustomThreshold):
        kind, table = decision.TABLE, _count_table("threshold", strategy.threshold.function)
        if (np.diff(table[1:]) < 0).any():
            raise InvalidInputError(f"the threshold {strategy.threshold.name!r} must not fall as the count grows")
    elif strategy.threshold == "empirical":
        kind, constant = decision.CLOCK, math.log(1 / strategy.delta)
    else:
        constant = 2 * float(threshold.c_g(math.log((arms - 1) / strategy.delta) / 2))
    bonus, bonus_table = decision.UCB, np.zeros(1)
    if isinstance(strategy.bonus, CustomBonus):
        bonus, bonus_table = decision.BONUS_TABLE, _count_table("bonus", strategy.bonus.function)
    return decision.StreamRules(
        sampling=SAMPLINGS[strategy.sampling],
        cost=COSTS[strategy.cost],
        half_epsilon=math.inf,
        two_variance=two_variance(strategy, noise),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=bonus,
        bonus_scale=_bonus_scale(strategy, noise),
        bonus_table=bonus_table,
        threshold=kind,
        constant=constant,
        threshold_table=table,
    )


def betting_rules(strategy: Strategy, arms: int) -> tuple[betting.Bets, betting.Setting]:
    """The bets and the setting of bet-se."""
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    top_two = strategy.sampling == "top-two"
    setting = betting.make_setting(arms, epsilon, strategy.delta, strategy.trust, strategy.zeta, top_two)
    return betting.make_bets(epsilon, strategy.trust), setting


def grid(strategy: Strategy) -> Ints:
    """grid[k]: an arm's pulls when its phase k is complete; entry 0 is not used."""
    if isinstance(strategy.grid, str):
        return np.concatenate([[0], 2 ** np.arange(PHASES, dtype=np.int64)])
    pulls = [0]
    while pulls[-1] < 2**61 and len(pulls) <= LONGEST:
        try:
            pulls.append(min(int(strategy.grid.function(len(pulls))), 2**62))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"the grid {strategy.grid.name!r} must give whole numbers: {error}") from None
        if pulls[-1] <= pulls[-2]:
            raise InvalidInputError(f"the grid {strategy.grid.name!r} must grow: phase {len(pulls) - 1} does not")
    if pulls[1] != 1:
        raise InvalidInputError(f"the grid {strategy.grid.name!r} must be 1 for phase 1: one sample of each arm first")
    return np.array(pulls, dtype=np.int64)


def phase_counts(strategy: Strategy) -> Floats:
    """The samples behind an arm's mean in each phase of the grid; 1 in the unused entry 0."""
    pulls = grid(strategy).astype(np.float64)
    counts = np.diff(pulls, prepend=0.0) if strategy.estimator == "daf" else pulls
    return np.maximum(counts, 1.0)


def phase_bonus(strategy: Strategy) -> Callable[[Any], Floats]:
    """The leader's bonus by an arm's local count. Without privacy it is b^G instead, which needs all counts."""
    if isinstance(strategy.bonus, CustomBonus):
        custom = strategy.bonus.function
        return lambda count: np.asarray(custom(count), dtype=np.float64)
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    return lambda count: threshold.bonus_private(count, epsilon)


def pair_thresholds(strategy: Strategy, arms: int) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """The thresholds (low, high) of a phased strategy, as a function of the two counts, see `decision.passes`."""
    delta, epsilon = strategy.delta, strategy.epsilon
    if isinstance(strategy.threshold, CustomThreshold):
        custom = strategy.threshold.function
        return lambda a, b: _twice(np.asarray(custom(a, b), dtype=np.float64))
    if epsilon is None:
        if strategy.threshold == "empirical":
            return lambda a, b: _twice(threshold.empirical_gaussian(a, b, delta))
        return lambda a, b: _twice(threshold.c_gaussian(a, b, arms, delta))
    if strategy.cost == "gaussian":
        if strategy.threshold == "empirical":
            return lambda a, b: _twice(threshold.empirical_private(a, b, delta, epsilon))
        return lambda a, b: _twice(threshold.c_private(a, b, arms, delta, epsilon))
    if strategy.threshold == "empirical":
        return lambda a, b: threshold.empirical_star(a, b, delta, epsilon)
    high = threshold.c_star_sharp if strategy.threshold == "proved" else threshold.c_star_high
    return lambda a, b: (threshold.c_star_low(a, b, arms, delta, epsilon), high(a, b, arms, delta, epsilon))


def noise_scale(strategy: Strategy) -> float:
    """The standard deviation of the Gaussian noise on each sample; 0 for every other estimator."""
    if strategy.epsilon is None or strategy.gamma is None:
        return 0.0
    return threshold.gaussian_scale(strategy.epsilon, strategy.gamma)


def two_variance(strategy: Strategy, noise: float | None = None) -> float:
    """2σ² in the stopping rule's cost; the published experiments take a σ twice as large (1 for rewards in [0, 1])."""
    sigma = _sigma(strategy, noise)
    doubled = strategy.threshold == "empirical" and strategy.cost == "gaussian"
    return 2 * (2 * sigma) ** 2 if doubled else 2 * sigma**2


def _bonus_scale(strategy: Strategy, noise: float | None = None) -> float:
    return 2 * _sigma(strategy, noise) ** 2 * strategy.alpha * (1 + strategy.s)


def _sigma(strategy: Strategy, noise: float | None) -> float:
    return threshold.noisy_sigma(noise_scale(strategy) if noise is None else noise)


def _stop(strategy: Strategy) -> int:
    if strategy.cost == "gaussian" or isinstance(strategy.threshold, CustomThreshold):
        return decision.LOW
    return decision.EITHER if strategy.threshold == "proved" else decision.SPLIT


def _twice(values: Floats) -> tuple[Floats, Floats]:
    return values, values


def _table(what: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Values of a function as the table a kernel reads: of the right shape and without NaN, or refused."""
    array = np.asarray(values, dtype=np.float64)
    try:
        table = np.ascontiguousarray(np.broadcast_to(array, shape)).copy()
    except ValueError:
        raise InvalidInputError(
            f"your {what} must give one number for each count: asked for the shape {shape}, got {array.shape}"
        ) from None
    if np.isnan(table).any():
        raise InvalidInputError(f"your {what} gives NaN for some counts")
    return table


def _count_table(what: str, function: Callable[..., Any]) -> Floats:
    try:
        table = decision.count_table(lambda count: float(function(count)))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"your {what} must give a number for each count: {error}") from None
    return _table(what, table, table.shape)


def check_grid(strategy: Strategy, cap: int) -> None:
    """Refuse a grid that ends before the cap, and our thresholds on a grid they do not cover.

    Our thresholds pay for phase k only if the count reaches 2^{k−2}.
    """
    if not isinstance(strategy.grid, CustomGrid):
        return
    if grid(strategy)[-1] < cap:
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} has more than {LONGEST} phases before {cap:g} samples: let it grow "
            "faster, or give a smaller max_samples"
        )
    unpaid = isinstance(strategy.threshold, CustomThreshold) or strategy.threshold == "empirical"
    if unpaid or strategy.estimator == "dpa":
        return
    counts = phase_counts(strategy)[1:]
    if (counts < np.exp2(np.arange(1, len(counts) + 1) - 2.0)).any():
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} renews means more often than doubling, which our thresholds do not pay "
            "for: give a CustomThreshold with it, or a grid that at least doubles"
        )
