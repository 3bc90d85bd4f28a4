"""A strategy that learns from every sample, as tables and codes: where words become
numbers.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.leaf import leaf
from discreet.strategies import scales
from discreet.strategies.custom import CustomBonus, CustomThreshold, checked_table
from discreet.strategies.strategy import Strategy
from discreet.strategies.top_two import SAMPLINGS
from discreet.theory import thresholds
from discreet.theory.costs import GAUSSIAN, KL

ITERATED, CLOCK, TABLE, MIXTURE = 0, 1, 2, 3
"""Codes of the thresholds, see `decide.stream_threshold`."""
UCB, BONUS_TABLE = 0, 1
"""Codes of the bonuses, see `decide.stream_bonus`."""
CELLS = 64
"""Cells per octave of a table over counts, see `count_cell`."""
COSTS = {"gaussian": GAUSSIAN, "kl": KL}
OCTAVES = 48
"""Tables over counts reach 64 * 2**48 samples, far beyond any cap."""


class StreamRules(NamedTuple):
    """How to decide when every sample is released (MLE, CTB, Gaussian noise)."""

    sampling: int
    two_variance: float
    """2 sigma^2 in W^G of the stopping rule (sigma = 1 for `empirical`)."""
    beta: float
    ids: bool
    bonus: int
    """UCB or BONUS_TABLE."""
    bonus_scale: float
    """2 sigma^2 alpha (1 + s) of b^G."""
    bonus_table: Floats
    """Over `count_cell` of the arm's count, for BONUS_TABLE."""
    threshold: int
    """ITERATED, CLOCK, TABLE or MIXTURE."""
    constant: float
    """The part of the threshold that does not depend on counts."""
    threshold_table: Floats
    """Over `count_cell`, nondecreasing, for TABLE; the threshold adds the entries of
    both arms.
    """
    cost: int = GAUSSIAN
    """GAUSSIAN or KL: the transportation cost of challenger and stopping rule."""


def stream_rules(strategy: Strategy, arms: int, noise: float | None = None) -> StreamRules:
    """The rules of a strategy that releases every sample; `noise` is the Gaussian noise
    if not as in simulations.
    """
    kind, constant, table = ITERATED, 0.0, np.zeros(1)
    if isinstance(strategy.threshold, CustomThreshold):
        kind, table = TABLE, _count_table("threshold", strategy.threshold.function)
        if (np.diff(table[1:]) < 0).any():
            raise InvalidInputError(
                f"the threshold {strategy.threshold.name!r} must not fall as the count grows"
            )
    elif strategy.threshold == "empirical":
        kind, constant = CLOCK, math.log(1 / strategy.delta)
    elif strategy.cost == "kl":
        kind, constant = MIXTURE, thresholds.kl_constant(arms, strategy.delta)
    else:
        constant = 2 * float(thresholds.c_g(math.log((arms - 1) / strategy.delta) / 2))
    bonus, bonus_table = UCB, np.zeros(1)
    if isinstance(strategy.bonus, CustomBonus):
        bonus, bonus_table = BONUS_TABLE, _count_table("bonus", strategy.bonus.function)
    return StreamRules(
        sampling=SAMPLINGS[strategy.sampling],
        two_variance=scales.two_variance(strategy, noise),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=bonus,
        bonus_scale=scales.bonus_scale(strategy, noise),
        bonus_table=bonus_table,
        threshold=kind,
        constant=constant,
        threshold_table=table,
        cost=COSTS[strategy.cost],
    )


@leaf
def count_cell(count: int) -> int:
    """Index of a count in a table: exact up to 127, then 64 cells per octave."""
    shift = 0
    rest = count
    while rest >= 2 * CELLS:
        rest >>= 1
        shift += 1
    return CELLS * shift + rest


def count_table(function: Callable[[float], float]) -> Floats:
    """A function of a count as a table over `count_cell`, for TABLE and BONUS_TABLE.

    Exact up to 127 samples; beyond, a cell takes the largest value at its two ends, so
    that a monotone function is never understated, and by less than its change over 1/64
    of an octave.
    """
    table = np.zeros(CELLS * (OCTAVES + 2))
    for cell in range(1, table.size):
        shift = max(cell // CELLS - 1, 0)
        first = (cell - CELLS * shift) << shift
        table[cell] = max(function(float(first)), function(float(first + (1 << shift) - 1)))
    return table


def _count_table(what: str, function: Callable[..., Any]) -> Floats:
    try:
        table = count_table(lambda count: float(function(count)))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"your {what} must give a number for each count: {error}") from None
    return checked_table(what, table, table.shape)
