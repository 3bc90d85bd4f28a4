"""Evidence: the money that bets have won against "this arm is best"; p-values and
intervals follow from it.

A *ledger* row is (released sum, pulls behind it, releases). Octave i of a ledger: the
leader of a round is pulled 2**i times as often as the others and bet on with tilt /
2**i, so both sides of a bet move alike when x does.
"""

import math

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.leaf import leaf
from discreet.strategies.betting.bets import OCTAVES, Bets, Setting

SUM, PULLS, RELEASES = 0, 1, 2
"""Columns of a ledger."""
ALONE, TOGETHER = 0.05, 0.90
"""Shares of the stake: on `down` alone and on `up` alone, on their product."""
FEELS = 0.1
"""Tilts below FEELS / sqrt(n) have nothing to say about n pulls and are left out."""
ROUNDING = 1e-14
"""Nats a pull that floating point may have invented: never counted as evidence."""


@leaf(allocates=True)
def felt(bets: Bets, pulls: float) -> int:
    """How many tilts, from the largest, can say something about so many pulls."""
    count = 4
    while count < bets.tilt.size and bets.tilt[count] ** 2 * pulls >= FEELS**2:
        count += 1
    return count


@leaf(allocates=True)
def side(x: float, rows: Floats, j: int, sign: float, bets: Bets) -> tuple[float, float, float]:
    """(log, slope, curvature) in x of the factor of one side of a bet: sign -1 for
    `down`, +1 for `up`.
    """
    value, slope, curve = 0.0, 0.0, 0.0
    for i in range(OCTAVES):
        pulls = rows[i, PULLS]
        if pulls > 0:
            change = bets.rise[i, j] if sign > 0 else bets.fall[i, j]
            ratio = change / (1 + x * change)
            value += (
                sign * bets.tilt[j] * 0.5**i * rows[i, SUM]
                - pulls * math.log1p(x * change)
                - rows[i, RELEASES] * bets.price[i, j]
            )
            slope -= pulls * ratio
            curve += pulls * ratio * ratio
    return value, slope, curve


@leaf(allocates=True)
def log_evidence(
    x: float, own: Floats, rival: Floats, zeta: float, count: int, bets: Bets
) -> tuple[float, float, float]:
    """(log E, slope, curvature) at x: the money won if the arm's mean is x and its
    rivals' at most x - zeta.

    Convex in x, as the logarithm of a sum of exponentials of convex functions.
    """
    top, money, pull, bend = -math.inf, 0.0, 0.0, 0.0
    for j in range(count):
        down, down_slope, down_curve = side(x, own, j, -1.0, bets)
        up, up_slope, up_curve = side(x - zeta, rival, j, 1.0, bets)
        for part in range(3):
            log, slope, curve = bets.stake[j], 0.0, 0.0
            log += math.log(TOGETHER) if part == 1 else math.log(ALONE)
            if part < 2:
                log, slope, curve = log + down, slope + down_slope, curve + down_curve
            if part > 0:
                log, slope, curve = log + up, slope + up_slope, curve + up_curve
            if log > top:
                shrink = math.exp(top - log)
                money, pull, bend, top = money * shrink, pull * shrink, bend * shrink, log
            weight = math.exp(log - top)
            money += weight
            pull += weight * slope
            bend += weight * (curve + slope * slope)
    pull /= money
    return top + math.log(money), pull, bend / money - pull * pull


@leaf(allocates=True)
def infimum(
    x: float,
    low: float,
    high: float,
    own: Floats,
    rival: Floats,
    zeta: float,
    count: int,
    bets: Bets,
    target: float,
    tolerance: float,
) -> tuple[float, float]:
    """(lower, upper) bounds of the infimum of log E over [low, high], starting at x.

    Stops as soon as both are on one side of the target, or within the tolerance. The
    lower bound is a tangent of a convex function over the bracket that holds its
    minimum: rigorous at every step. Newton's steps, and every third time the bracket's
    middle.
    """
    lower, upper = -math.inf, math.inf
    for step in range(200):
        value, slope, curve = log_evidence(x, own, rival, zeta, count, bets)
        upper = min(upper, value)
        if slope > 0:
            high = x
        else:
            low = x
        lower = max(lower, value + slope * ((low if slope > 0 else high) - x))
        if upper < target or lower >= target or upper - lower <= tolerance:
            break
        x = x - slope / curve if curve > 0 and step % 3 < 2 else low
        if not low < x < high:
            x = (low + high) / 2
    return lower, upper


@leaf(allocates=True)
def rounding(rows: Floats, other: Floats) -> float:
    """Nats that rounding errors may have added to the evidence of these ledgers."""
    pulls = 0.0
    for i in range(OCTAVES):
        pulls += rows[i, PULLS] + other[i, PULLS]
    return ROUNDING * pulls


def log_p_value(own: Floats, rival: Floats, n: float, bets: Bets, setting: Setting) -> float:
    """The log of the smallest delta at which the arm would be out now (keep the running
    minimum).
    """
    low, high = setting.low, setting.high
    lower = infimum(
        (low + high) / 2, low, high, own, rival, 0.0, felt(bets, n), bets, math.nan, 1e-6
    )[0]
    return min(0.0, rounding(own, rival) - lower)


def log_doubt(x: float, total: Floats, count: int, bets: Bets) -> tuple[float, float]:
    """(log of the money against "the mean is x", slope): half bets on below, half on
    above. Convex in x.
    """
    top, money, pull = -math.inf, 0.0, 0.0
    for j in range(count):
        for sign in (-1.0, 1.0):
            change = bets.rise[0, j] if sign > 0 else bets.fall[0, j]
            log = bets.stake[j] - math.log(2.0) + sign * bets.tilt[j] * total[SUM]
            log -= total[PULLS] * math.log1p(x * change) + total[RELEASES] * bets.price[0, j]
            slope = -total[PULLS] * change / (1 + x * change)
            if log > top:
                shrink = math.exp(top - log)
                money, pull, top = money * shrink, pull * shrink, log
            money += math.exp(log - top)
            pull += slope * math.exp(log - top)
    return float(top + math.log(money)), pull / money


def interval(total: Floats, alpha: float, bets: Bets, setting: Setting) -> tuple[float, float]:
    """Anytime-valid confidence interval (level 1 - alpha) for an arm's mean, from
    everything released about it.

    The values of x that nobody has won 1/alpha against: an interval because the money
    is convex in x. Bisection rounds outwards. Behind randomised response it is mapped
    back to the scale of rewards.
    """
    if not 0 < alpha < 1:
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha!r}")
    count = felt(bets, total[PULLS])
    target = -math.log(alpha) + ROUNDING * total[PULLS]
    low, high = setting.low, setting.high
    for _ in range(60):  # the minimum of a convex function, by its slope
        x = (low + high) / 2
        if log_doubt(x, total, count, bets)[1] > 0:
            high = x
        else:
            low = x
    ends = [low, high]  # what is left if no value survives: only noise beyond alpha does this
    if log_doubt(low, total, count, bets)[0] < target:
        ends = [
            _crossing(low, end, target, total, count, bets) for end in (setting.low, setting.high)
        ]
    low = 0.0 if ends[0] <= setting.low else 0.5 + (ends[0] - 0.5) / setting.scale
    high = 1.0 if ends[1] >= setting.high else 0.5 + (ends[1] - 0.5) / setting.scale
    return max(low, 0.0), min(high, 1.0)


def _crossing(
    inside: float, outside: float, target: float, total: Floats, count: int, bets: Bets
) -> float:
    """Where the money reaches the target between a value inside the interval and an end
    of all values.
    """
    if log_doubt(outside, total, count, bets)[0] >= target:
        for _ in range(50):
            x = (inside + outside) / 2
            if log_doubt(x, total, count, bets)[0] >= target:
                outside = x
            else:
                inside = x
    return outside
