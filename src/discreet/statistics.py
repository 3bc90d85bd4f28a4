"""Exact bounds on probabilities from counts: what simulations and audits conclude
with.
"""

import math

from discreet.roots import increasing_root


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """An exact interval for a probability that was seen `hits` times in `trials`:
    quantiles of two beta laws.
    """
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else _beta_quantile(tail, hits, trials - hits + 1)
    high = 1.0 if hits == trials else 1 - _beta_quantile(tail, trials - hits, hits + 1)
    return low, high


def one_sided(hits: int, trials: int, tail: float) -> tuple[float, float]:
    """Clopper–Pearson bounds from below and above, each wrong with probability at most
    `tail`.
    """
    return clopper_pearson(hits, trials, 1 - 2 * min(tail, 0.499))


def bonferroni(level: float, bounds: int) -> float:
    """The tail that each of so many bounds may have for all to hold at this confidence
    level.
    """
    return (1 - level) / bounds


def _beta_quantile(chance: float, a: int, b: int) -> float:
    position = increasing_root(
        lambda z: _beta_cdf(_logistic(z), _logistic(-z), a, b) - chance, math.log(a / b)
    )
    return _logistic(position)


def _logistic(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def _beta_cdf(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b) with rest = 1 − x: the continued fraction DLMF 8.17.22, by Lentz's
    method.

    It takes about as many terms as the square root of max(a, b), on the side of the
    mean where it converges fast.
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(rest, x, b, a)
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
