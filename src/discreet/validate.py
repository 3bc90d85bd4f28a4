"""Checks of the numbers that users give; each returns the number as a float or says what it must be."""

import math
import numbers

from discreet.errors import InvalidInputError


def check_epsilon(epsilon: float) -> float:
    """ε, the privacy level."""
    return _between("epsilon", epsilon, 0, math.inf, "must be a positive, finite number")


def check_sigma(sigma: float) -> float:
    """σ, the standard deviation of a Gaussian or sub-Gaussian reward."""
    return _between("sigma", sigma, 0, math.inf, "must be a positive, finite number")


def check_delta(delta: float) -> float:
    """δ, the error rate."""
    return _between("delta", delta, 0, 1, "must lie strictly between 0 and 1")


def check_gamma(gamma: float) -> float:
    """γ, the slack of (ε, γ)-privacy."""
    return _between("gamma", gamma, 0, 1, "must lie strictly between 0 and 1")


def check_beta(beta: float) -> float:
    """β, the leader's share of the samples."""
    return _between("beta", beta, 0, 1, "must lie strictly between 0 and 1")


def _between(name: str, value: float, low: float, high: float, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not low < value < high:
        raise InvalidInputError(f"{name} {rule}; got {value!r}")
    return float(value)
