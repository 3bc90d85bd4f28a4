"""One-dimensional solvers for the problems that `theory` and `statistics` reduce theirs
to.

Written here and not taken from SciPy: importing SciPy costs more than all of `discreet
bounds`.
"""

import math
from collections.abc import Callable

import numpy as np

from discreet._types import Floats
from discreet.errors import NoConvergenceError


def solve_increasing(function: Callable[[float], float], guess: float, step: float = 0.5) -> float:
    """Return where an increasing function changes sign, jumps included: the bracket
    grows from `guess`, then shrinks.

    Shrinking is Chandrupatla's method: inverse quadratic interpolation where it is
    safe, else bisection.
    """
    low = high = guess
    at_low = at_high = function(guess)
    for _ in range(100):
        if at_low <= 0 <= at_high:
            return _shrink(function, low, at_low, high, at_high)
        if at_low > 0:
            high, at_high = low, at_low
            low, step = low - step, 2 * step
            at_low = function(low)
        else:
            low, at_low = high, at_high
            high, step = high + step, 2 * step
            at_high = function(high)
    raise NoConvergenceError(f"no change of sign found around {guess!r}: please report this input")


def solve_newton(function: Callable[[float], tuple[float, float]], guess: float) -> float:
    """Return the root of an increasing function given with its slope: Newton's method,
    inside a bracket once there is one.
    """
    low, high, at, before_last, last = -math.inf, math.inf, guess, math.inf, math.inf
    for _ in range(200):
        value, slope = function(at)
        low, high = (at, high) if value < 0 else (low, at)
        step = min(3.0, max(-3.0, -value / slope)) if slope > 0 else math.copysign(3.0, -value)
        if abs(step) <= 1e-7 or high - low <= 1e-14 * abs(at):
            return at + step if abs(step) <= 1e-7 else at
        if high - low < math.inf and not (low < at + step < high and abs(step) <= before_last / 2):
            step = (low + high) / 2 - at
        before_last, last, at = last, abs(step), at + step
    raise NoConvergenceError(f"no root found from {guess!r}: please report this input")


def _shrink(function: Callable[[float], float], a: float, fa: float, b: float, fb: float) -> float:
    c, fc, share = a, fa, 0.5
    for _ in range(200):
        if fa == 0 or fb == 0:
            return a if fa == 0 else b
        if abs(b - a) <= 1e-13 * max(1.0, abs(a), abs(b)):
            return a if abs(fa) < abs(fb) else b
        middle = a + share * (b - a)
        value = function(middle)
        if math.copysign(1, value) == math.copysign(1, fa):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = middle, value
        share = _choose_share(a, fa, b, fb, c, fc)
    raise NoConvergenceError(f"no root found between {a!r} and {b!r}: please report this input")


def _choose_share(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """Choose how far to go from a towards b next: by inverse quadratic interpolation
    where Chandrupatla allows it.
    """
    if c in (a, b) or fb in (fa, fc) or fa == fc:
        return 0.5
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    margin = 1e-15 / abs(b - a)
    return min(1 - margin, max(margin, share)) if margin < 0.5 else 0.5


def minimise(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Return the least value of a function with one valley between `low` and `high`,
    elementwise, by golden section.

    The place is found to half the digits only, which gives the value itself to full
    precision.
    """
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    at_x, at_y = function(x), function(y)
    for _ in range(45):
        left = at_x < at_y
        a, b = np.where(left, a, x), np.where(left, y, b)
        fresh = np.where(left, b - ratio * (b - a), a + ratio * (b - a))
        at_fresh = function(fresh)
        x, y = np.where(left, fresh, y), np.where(left, x, fresh)
        at_x, at_y = np.where(left, at_fresh, at_y), np.where(left, at_x, at_fresh)
    return np.minimum(at_x, at_y)


def compute_clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return an exact interval for a probability that was seen `hits` times in
    `trials`: quantiles of two beta laws.
    """
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else _compute_beta_quantile(tail, hits, trials - hits + 1)
    high = 1.0 if hits == trials else 1 - _compute_beta_quantile(tail, trials - hits, hits + 1)
    return low, high


def bound_one_sided(hits: int, trials: int, tail: float) -> tuple[float, float]:
    """Return Clopper–Pearson bounds from below and above, each wrong with probability
    at most `tail`.
    """
    return compute_clopper_pearson(hits, trials, 1 - 2 * min(tail, 0.499))


def divide_error(level: float, bounds: int) -> float:
    """Return the tail that each of so many bounds may have for all to hold at this
    confidence level (Bonferroni).
    """
    return (1 - level) / bounds


def _compute_beta_quantile(chance: float, a: int, b: int) -> float:
    position = solve_increasing(
        lambda z: _compute_beta_cdf(_compute_logistic(z), _compute_logistic(-z), a, b) - chance,
        math.log(a / b),
    )
    return _compute_logistic(position)


def _compute_logistic(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def _compute_beta_cdf(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b) with rest = 1 − x: the continued fraction DLMF 8.17.22, by
    Lentz's method.

    It takes about as many terms as the square root of max(a, b), on the side of the
    mean where it converges fast.
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - _compute_beta_cdf(rest, x, b, a)
    log_front = (
        a * math.log(x) + b * math.log(rest) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    )
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value, m = d, 0
    while m < 10**6:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + even * d), 1 + even / c
        value *= c * d
        d, c = 1 / (1 + odd * d), 1 + odd / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * value / a
