"""Checks of the numbers that users give; each returns the number as a float or says
what it must be.
"""

import math
import numbers

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidInputError


def check_epsilon(epsilon: float) -> float:
    """ε, the privacy level."""
    if (
        not 1e-12
        <= _between("epsilon", epsilon, 0, math.inf, "must be a positive, finite number")
        <= 1e9
    ):
        raise InvalidInputError(
            f"epsilon must be a positive number between 1e-12 and 1e9; got {epsilon!r}"
        )
    return float(epsilon)


def check_sigma(sigma: float) -> float:
    """σ, the standard deviation of a Gaussian or sub-Gaussian reward."""
    return _between(
        "sigma", sigma, 1e-100, 1e100, "must be a positive number between 1e-100 and 1e100"
    )


def check_delta(delta: float) -> float:
    """δ, the error rate."""
    if _between("delta", delta, 0, 1, "must lie strictly between 0 and 1") < 1e-100:
        raise InvalidInputError(
            f"delta must lie strictly between 0 and 1, and be at least 1e-100; got {delta!r}"
        )
    return float(delta)


def check_gamma(gamma: float) -> float:
    """γ, the slack of (ε, γ)-privacy."""
    return _between("gamma", gamma, 0, 1, "must lie strictly between 0 and 1")


def check_beta(beta: float) -> float:
    """β, the leader's share of the samples."""
    if not 1e-6 <= _between("beta", beta, 0, 1, "must lie strictly between 0 and 1") <= 1 - 1e-6:
        raise InvalidInputError(
            f"beta must lie strictly between 0 and 1, by at least 1e-6; got {beta!r}"
        )
    return float(beta)


def check_arms(arms: int) -> int:
    """K, the number of arms."""
    if isinstance(arms, bool) or not isinstance(arms, numbers.Integral) or arms < 2:
        raise InvalidInputError(f"arms must be a whole number, 2 or more; got {arms!r}")
    return int(arms)


def check_whole(name: str, value: float, least: int, most: int | None = None) -> int:
    """A whole number in a range; 1e6 counts as one."""
    range_ = f"{least} or more" if most is None else f"from {least} to {most:g}"
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    whole = real and (isinstance(value, int) or math.isfinite(value))
    if not whole or int(value) != value or value < least or (most is not None and value > most):
        got = repr(value)
        raise InvalidInputError(
            f"{name} must be a whole number, {range_}; got {got if len(got) < 40 else 'another'}"
        )
    return int(value)


def check_counts(counts: ArrayLike) -> Floats:
    """Numbers of samples behind a mean."""
    array = np.asarray(counts, dtype=np.float64)
    if not ((array >= 1) & (array < math.inf)).all():
        raise InvalidInputError("counts must be finite numbers, 1 or more")
    return array


def check_unit(name: str, values: ArrayLike) -> Floats:
    """Probabilities or means."""
    array = np.asarray(values, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInputError(f"{name} must lie in [0, 1]")
    return array


def _between(name: str, value: float, low: float, high: float, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not low < value < high:
        raise InvalidInputError(f"{name} {rule}; got {value!r}")
    return float(value)
