"""Bets against "arm a is best", each a small pure function beside the lemma that makes
it fair. The docs page "Betting elimination" has the lemmas by the same numbers.

Every bet is made from one number, the *score* T of an arm and its rival: a weighted sum
of what was released about both. Its noise is paid for either by its moment or by its
tail.
"""

import math
from typing import NamedTuple

from discreet.leaf import leaf

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
POCKET, KAPPA = 0.2, 0.4
"""Of a tail bet: the share kept, and the power of the calibrator."""


class Slopes(NamedTuple):
    """How a score weighs the releases about an arm (own) and its rival."""

    own: float
    """l_a: minus the weight of the arm's sum."""
    own_count: float
    """c_a: the weight of the number of its people."""
    rival: float
    """l_c: the weight of the rival's sum."""
    rival_count: float
    """c_c: the weight of the number of its people."""
    step: float
    """d: what a person of the arm stakes; odds times d is the same for both."""
    own_swing: float
    """4 sinh(l_a / 2)^2, for the price of the noise in the arm's sum."""
    rival_swing: float
    """4 sinh(l_c / 2)^2"""


@leaf
def slopes(fall: float, rise: float, centre: float, ratio: float) -> Slopes:
    """The score's weights (Lemma 1) at tilt lambda, for odds of the arm that are
    `ratio` times its rival's; fall = 1 - exp(-lambda), rise = exp(lambda) - 1.

    A person of the arm multiplies money by 1 - d (r - centre), one of the rival by 1 +
    d' (r - centre), d' = ratio d: the centre cancels in the mean over coins. Both
    slopes are at most lambda.
    """
    d = min(fall / (1 - centre * fall), rise / (1 + centre * rise) / ratio)
    e, rest = d * ratio, 1 - centre
    own_fail, own_hit = 1 + centre * d, 1 - rest * d
    rival_fail, rival_hit = 1 - centre * e, 1 + rest * e
    own_count, rival_count = log_of(centre * d), log_of(-centre * e)
    return Slopes(
        own_count - log_of(-rest * d),
        own_count,
        log_of(rest * e) - rival_count,
        rival_count,
        d,
        d * d / (own_fail * own_hit),
        e * e / (rival_fail * rival_hit),
    )


@leaf
def log_of(gain: float) -> float:
    """log(1 + gain) to 1e-9 of itself and to 1e-15, the quicker way where that does."""
    return math.log(1 + gain) if abs(gain) > 1e-6 else math.log1p(gain)


@leaf
def noise_price(slope: float, epsilon: float, sigma: float = 0.0) -> float:
    """m(slope) = log E exp(slope Z) for discrete Laplace Z of parameter epsilon (Lemma
    2): log[(cosh eps - 1) / (cosh eps - cosh slope)]. With a sigma, at least that of
    discrete Gaussian noise.
    """
    if sigma > 0:
        return gaussian_price(slope, 0.0, sigma)
    if epsilon == math.inf:
        return 0.0
    ratio = math.exp((slope - epsilon) / 2) * math.expm1(-slope) / math.expm1(-epsilon)
    return -math.log1p(-ratio * ratio)


@leaf
def price_of_two(swing: float, other: float, level: float) -> float:
    """m(l) + m(l') from 4 sinh(l / 2)^2 and 4 sinh(l' / 2)^2, with `level` = 4
    sinh(epsilon / 2)^2; 0 for a second noise that is not there.
    """
    return -math.log((1 - swing / level) * (1 - other / level))


@leaf
def gaussian_price(slope: float, other: float, sigma: float) -> float:
    """At least log E exp(slope Z + other Z') for two discrete Gaussian noises (Lemma
    2'); 0 for a second noise that is not there.
    """
    return sigma * sigma * (slope * slope + other * other) / 2


@leaf
def log_tail_one(beta: float, epsilon: float) -> float:
    """log A of one noise with slope beta epsilon (Lemma 4): A = sup_u e^u P(slope Z >=
    u).
    """
    rest = 1 / (1 + math.exp(epsilon))
    if beta >= math.exp(-epsilon):
        return math.log1p(-rest)
    turn = beta / (1 + beta)
    return beta * math.log(turn / rest) + math.log1p(-turn)


@leaf
def log_tail_two(one: float, other: float, epsilon: float) -> float:
    """log A of two noises with slopes one epsilon and other epsilon (Lemma 4); infinite
    where no A is enough.
    """
    high, low, rest = max(one, other), min(one, other), 1 / (1 + math.exp(epsilon))
    top = 1 - rest
    if low > 0.98 * high:
        return _log_tail_equal(high, low, top, rest)
    apart, sums = high - low, high + low
    a = top * top * high / apart + top * rest * high / sums
    c = top * top * low / apart - top * rest * low / sums
    k, q = 1 / high - 1, 1 / low - 1
    if c * q >= a * k:
        if k == 0:
            return math.log(a)
        u = math.log(c * q / (a * k)) / (q - k)
        return math.log(a * math.exp(-k * u) - c * math.exp(-q * u))
    a = rest * rest * high / apart + top * rest * high / sums
    c = rest * rest * low / apart - top * rest * low / sums
    left, right = 0.0, 1.0
    for _ in range(12):
        t = (left + right) / 2
        x, y = a * math.exp(-t / high), c * math.exp(-t / low)
        if x / high - y / low > 1 - x + y:
            left = t
        else:
            right = t
    return math.log1p(-a * math.exp(-right / high) + c * math.exp(-right / low)) - left


@leaf
def _log_tail_equal(high: float, low: float, top: float, rest: float) -> float:
    """The same for two nearly equal slopes: the larger for both above zero, the smaller
    for both below.
    """
    if high >= 1:
        return math.inf
    k = 1 / high - 1
    u = max(0.0, 1 / k - high / top)
    best = math.log(top * top * (1 + u / high) + top * rest) - k * u
    if rest <= low:
        return best
    left, right = 0.0, 1.0
    for _ in range(12):
        t = (left + right) / 2
        x = math.exp(-t / low)
        below = x * (rest * rest * (1 + t / low) + top * rest)
        if x * (rest * rest * t / low + top * rest) / low > 1 - below:
            left = t
        else:
            right = t
    x = math.exp(-right / low)
    below = x * (rest * rest * (1 + right / low) + top * rest)
    return max(best, math.log1p(-below) - left)


@leaf
def gaussian_tail(slope: float, other: float, sigma: float) -> float:
    """log A of two discrete Gaussian noises (Lemma 4'), by their moment or by the tail
    of the normal law, whichever is less; 0 for a second noise that is not there.

    sup_x e^{sx} P(N >= x) is at an x in [s - 1/s, s]: bisection leaves a bracket, of
    which the upper end counts in one factor and the lower in the other.
    """
    price, s = gaussian_price(slope, other, sigma), sigma * math.hypot(slope, other)
    if s < 1:
        return price
    left, right = s - 1 / s, s
    for _ in range(12):
        x = (left + right) / 2
        tail = math.erfc(x * ROOT_HALF) / 2
        if math.exp(-x * x / 2) < s * ROOT_TWO_PI * tail:
            left = x
        else:
            right = x
    tail = math.log(math.erfc(left * ROOT_HALF) / 2)
    return min(price, slope + other + s * right + tail)


@leaf
def tail_bet(log_p: float, sigma: float, log_alpha: float) -> float:
    """The log of what a stake becomes that bets on the p-value exp(log_p) (Lemma 5).

    The share sigma is won 1/alpha times over if p <= alpha; of the rest a pocket is
    kept and the other part grows with kappa p^(kappa - 1).
    """
    log_p = min(log_p, 0.0)
    value = log_sum(
        math.log((1 - sigma) * POCKET),
        math.log((1 - sigma) * (1 - POCKET) * KAPPA) + (KAPPA - 1) * log_p,
    )
    if sigma > 0 and log_p <= log_alpha:
        value = log_sum(value, math.log(sigma) - log_alpha)
    return value


@leaf
def log_sum(x: float, y: float) -> float:
    """log(e^x + e^y)"""
    high = max(x, y)
    return high + math.log(math.exp(x - high) + math.exp(y - high))
