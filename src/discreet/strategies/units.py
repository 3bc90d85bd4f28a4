"""What is summed of an outcome, and in which units: bits, fine units, or three levels.

A function of the strategy alone, so of the protocol: simulations and live trials ask
the same.
"""

import math
from typing import TYPE_CHECKING

from discreet._types import Floats
from discreet.scale import NUMBERS
from discreet.theory import thresholds

if TYPE_CHECKING:
    from discreet.strategies.strategy import Strategy


def compute_noise_scale(strategy: "Strategy") -> float:
    """Return the standard deviation of the Gaussian noise on each sample; 0 for every
    other estimator.
    """
    if strategy.epsilon is None or strategy.gamma is None or not strategy.spec.gamma:
        return 0.0
    return thresholds.gaussian_scale(strategy.epsilon, strategy.gamma)


def compute_sum_noise(strategy: "Strategy") -> float:
    """Return the standard deviation of the Gaussian noise on each released sum of
    rewards; 0 where that is Laplace noise, or none.
    """
    if strategy.is_pure or not strategy.trust_model.noised:
        return 0.0
    if strategy.rho is not None:
        return thresholds.sum_scale(strategy.rho)
    levels = float(strategy.epsilon or 0), float(strategy.gamma or 0)
    return thresholds.sum_scale(thresholds.zcdp_rho(*levels))


def compute_two_variance(strategy: "Strategy", noise: float | None = None) -> float:
    """Return 2σ² in the stopping rule's cost; the published experiments take a σ twice
    as large (1 for rewards in [0, 1]).
    """
    sigma = _sigma(strategy, noise)
    doubled = strategy.threshold == "empirical" and strategy.cost == "gaussian"
    return 2 * (2 * sigma) ** 2 if doubled else 2 * sigma**2


def compute_bonus_scale(strategy: "Strategy", noise: float | None = None) -> float:
    """Return 2σ² α (1 + s) of b^G."""
    return 2 * _sigma(strategy, noise) ** 2 * strategy.alpha * (1 + strategy.s)


def _sigma(strategy: "Strategy", noise: float | None) -> float:
    own = thresholds.SIGMA if strategy.sigma is None else strategy.sigma
    return thresholds.noisy_sigma(compute_noise_scale(strategy) if noise is None else noise, own)


def replace_nan(shares: Floats) -> list[float | None]:
    """Return None in the place of NaN."""
    return [None if math.isnan(share) else share for share in shares.tolist()]


BITS, BUMP, LEVELS = 0, 1, 2
"""What outcomes become: bits; fine units with their closeness to a centre; one of the
levels 0, centre and 1, randomised where the person is.
"""
MIN_LEVELS_EPSILON = 1.5
"""From this epsilon on numbers are sent as one of three levels; below, a bit says
more.
"""
FINE_UNITS = 20
"""Outcomes are in units of 2^-20 where noise need not be on bits: a billion people add
up to 2^50.
"""
CENTRE_UNITS = 1024
"""Centres are multiples of 1/1024, so that they can be announced in a few digits."""


def choose_kind(strategy: "Strategy") -> int:
    """Return what outcomes become if means are bet on; BITS for strategies that know
    bits only.
    """
    if not strategy.spec.bits or strategy.outcomes != NUMBERS:
        return BITS
    if strategy.trust_model.randomised:
        return LEVELS if (strategy.epsilon or 0) >= MIN_LEVELS_EPSILON else BITS
    return BUMP


def is_rounded_to_bits(strategy: "Strategy") -> bool:
    """Return whether outcomes are rounded at random to bits, so that means are all that
    a law of rewards has to say.
    """
    return strategy.spec.bits and choose_kind(strategy) == BITS


def choose_grid(strategy: "Strategy") -> int:
    """Return how many units an outcome of 1.0 has inside the privacy boundary: 1 for
    bits, else fine units. The units of noise at the smallest ε must still fit a 64-bit
    number.

    The units of noise at the smallest ε must still fit a 64-bit number.
    """
    if is_rounded_to_bits(strategy):
        return 1
    if choose_kind(strategy) == LEVELS:
        return CENTRE_UNITS
    epsilon = strategy.epsilon if strategy.trust_model.noised and strategy.epsilon else 1.0
    return int(2 ** min(max(40 + math.floor(math.log2(epsilon)), 0), FINE_UNITS))
