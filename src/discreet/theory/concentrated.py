"""Concentrated privacy (ρ-zCDP) and what it is in terms of ε and γ.

Noise N(0, σ²), or its discrete law on the whole numbers, on a sum to which one person
adds 0 to 1 is ρ-zCDP with ρ = 1/(2σ²) (Bun & Steinke 2016; Canonne, Kamath & Steinke
2020, Theorem 4). Live trials let OpenDP say the same, see `trials.mechanisms`.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.roots import increasing_root
from discreet.theory import thresholds
from discreet.validate import (
    check_arms,
    check_counts,
    check_delta,
    check_epsilon,
    check_gamma,
    check_rho,
)

ROUNDED = 1e-9
"""By so much of itself a scale is rounded up, so that errors of rounding stay on the
private side.
"""
LEAST_ORDER = -36.0
"""The log of α − 1 below which the conversion gives 1 to all digits."""


def zcdp_gamma(rho: float, epsilon: float) -> float:
    """The smallest γ for which ρ-zCDP is known to be (ε, γ)-DP: the infimum over α > 1
    of e^{(α−1)(αρ−ε)} (1 − 1/α)^α / (α − 1) (Canonne, Kamath & Steinke 2020,
    Proposition 7 and Corollary 13).
    """
    return math.exp(min(_log_gamma(check_rho(rho), check_epsilon(epsilon)), 0.0))


def _log_gamma(rho: float, epsilon: float) -> float:
    def slope(log_order: float) -> float:
        order = math.exp(log_order)  # α − 1
        rest = math.log1p(1 / order) if log_order > LEAST_ORDER else -log_order
        return (2 * order + 1) * rho - epsilon - rest

    log_order = increasing_root(slope, math.log1p(epsilon / rho))
    if log_order < LEAST_ORDER:
        return 0.0
    order = math.exp(log_order)
    shrink = (order + 1) * math.log1p(1 / order)
    return order * ((order + 1) * rho - epsilon) - shrink - math.log(order)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: float, gamma: float) -> float:
    """The largest ρ for which ρ-zCDP is known to be (ε, γ)-DP: the inverse of
    `zcdp_gamma`, by bisection.

    (√(ε + log 1/γ) − √(log 1/γ))² always is (Bun & Steinke 2016, Proposition 1.3).
    """
    if not (1e-5 <= check_epsilon(epsilon) <= 1e4 and 1e-15 <= check_gamma(gamma) <= 0.01):
        raise InvalidInputError(
            "Gaussian noise is calibrated for epsilon in [1e-5, 1e4] and gamma in [1e-15, 0.01]"
        )
    allowed = math.log(gamma)
    low = (math.sqrt(epsilon - allowed) - math.sqrt(-allowed)) ** 2
    high = epsilon + 1.0
    while high - low > 1e-13 * high:
        middle = math.sqrt(low * high)
        if _log_gamma(middle, epsilon) <= allowed:
            low = middle
        else:
            high = middle
    return low


def zcdp_epsilon(rho: float, gamma: float) -> float:
    """The smallest ε for which ρ-zCDP is known to be (ε, γ)-DP; 0 where γ alone is
    enough.
    """
    log = math.log(check_gamma(gamma))
    if _log_gamma(check_rho(rho), 0.0) <= log:
        return 0.0
    most = rho + 2 * math.sqrt(-rho * log)
    root = increasing_root(lambda e: log - _log_gamma(rho, math.exp(e)), math.log(most), 0.1)
    return math.exp(root) * (1 + ROUNDED)


def sum_scale(rho: float) -> float:
    """σ of Gaussian noise that makes a sum ρ-zCDP to which one person adds 0 to 1."""
    return math.sqrt(0.5 / check_rho(rho)) * (1 + ROUNDED)


# --- AdaP-TT with Gaussian noise ------------------------------------------------------


def c_concentrated(
    count_a: ArrayLike, count_b: ArrayLike, arms: int, delta: float, scale: float
) -> Floats:
    """The threshold of AdaP-TT with Gaussian noise of this scale on sums, against W^G
    with σ = 1/2: log((K−1) (π²/6)² k_a² k_b²/δ), times how much larger noise makes the
    variance of the difference of the two means (docs, "Beyond pure ε").
    """
    a, b = check_counts(count_a), check_counts(count_b)
    spent = (math.pi**2 / 6 * thresholds.phase_number(a) * thresholds.phase_number(b)) ** 2
    nats = np.log((check_arms(arms) - 1) * spent / check_delta(delta))
    noisy = mean_variance(a, scale) + mean_variance(b, scale)
    return np.asarray(nats * noisy / (mean_variance(a, 0.0) + mean_variance(b, 0.0)))


def bonus_concentrated(count: ArrayLike, scale: float) -> Floats:
    """The leader's bonus in AdaP-TT with Gaussian noise: b^{G,ε} without noise, times
    how much wider noise makes a mean.
    """
    wider = mean_variance(count, scale) / mean_variance(count, 0.0)
    return np.asarray(thresholds.bonus_private(count, math.inf) * np.sqrt(wider))


def mean_variance(count: ArrayLike, scale: float) -> Floats:
    """At least the variance of a mean of so many rewards in [0, 1] whose sum has
    Gaussian noise: 1/(4n) + s²/n², by which it is sub-Gaussian too.
    """
    n = check_counts(count)
    return np.asarray(0.25 / n + (scale / n) ** 2)
