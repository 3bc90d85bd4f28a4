"""The allocation of T*_KL for Bernoulli means, which Track-and-Stop tracks with
`cost="kl"` (Garivier & Kaufmann 2016, Section 2.2).

With p the best mean, q another one and x the share of that arm over the best arm's,
moving both to m = (p + x q)/(1 + x) costs g(x) = kl(p, m) + x kl(q, m). At the optimum
all costs are one level y, and the ratios kl(p, m)/kl(q, m) add up to 1. Solved by
Newton's method from the last allocation, inside a bracket, so that it ends wherever it
begins.
"""

import math
from typing import NamedTuple

from discreet.arrays import Floats
from discreet.leaf import leaf


class Sides(NamedTuple):
    """A pair of arms at one share."""

    best: float
    """kl(p, m)."""
    other: float
    """kl(q, m), which is also the slope of g."""
    pull: float
    """The slope in y of kl(p, m)/kl(q, m)."""


@leaf
def excess(part: float) -> float:
    """u − log(1 + u), with full precision for a small u."""
    if abs(part) < 1e-3:
        return part * part * (0.5 - part * (1 / 3 - part * (0.25 - part * (0.2 - part / 6))))
    return part - math.log1p(part)


@leaf
def kl_from(mean: float, off: float) -> float:
    """kl(mean, mean + off), with full relative precision for a small `off`; 0 log 0 =
    0.
    """
    low = mean * excess(off / mean) if mean > 0.0 else off
    high = (1.0 - mean) * excess(-off / (1.0 - mean)) if mean < 1.0 else -off
    return low + high


@leaf
def sides_at(best: float, other: float, share: float) -> Sides:
    """The pair with this share of the other arm."""
    gap, part = best - other, share / (1.0 + share)
    rest = 1.0 / (1.0 + share)
    first, second = kl_from(best, -gap * part), kl_from(other, gap * rest)
    middle = best - gap * part
    turn = gap * gap / (middle * (1.0 - middle)) * rest * rest
    return Sides(first, second, turn * (part * second + rest * first) / (second * second * second))


@leaf
def share_at(best: float, other: float, level: float, start: float) -> float:
    """x with g(x) = level. As g is concave, Newton's steps stay below the root from the
    second one on.
    """
    share = start
    for _ in range(200):
        sides = sides_at(best, other, share)
        step = (level - sides.best - share * sides.other) / sides.other
        share = max(share + step, 0.5 * share)
        if abs(step) <= 1e-13 * share:
            break
    return share


@leaf
def fill_kl_allocation(best: int, mean: Floats, weights: Floats) -> None:
    """ω* of T*_KL for these means, the best one larger than all others; `weights` holds
    the last one, or zeros.
    """
    low, high, level = 0.0, math.inf, math.inf
    for arm in range(mean.size):
        if arm != best:
            gap = mean[best] - mean[arm]
            known = weights[best] > 0.0 and weights[arm] > 0.0
            share = weights[arm] / weights[best] if known else 1.0
            sides = sides_at(mean[best], mean[arm], share)
            level = min(level, sides.best + share * sides.other)
            if mean[arm] > 0.0:
                high = min(high, kl_from(mean[best], -gap))
            weights[arm] = share
    weights[best] = 1.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for arm in range(mean.size):
            if arm != best:
                weights[arm] = share_at(mean[best], mean[arm], level, weights[arm])
                sides = sides_at(mean[best], mean[arm], weights[arm])
                total += sides.best / sides.other
                slope += sides.pull
        if total > 1.0:
            high = level
        else:
            low = level
        root = math.sqrt(total)
        step = 2.0 * root * (1.0 - root) / slope
        if abs(step) <= 1e-12 * level:
            break
        level += step
        if not low < level < high:
            level = 0.5 * (low + high) if high < math.inf else 2.0 * low
    total = 0.0
    for arm in range(mean.size):
        total += weights[arm]
    for arm in range(mean.size):
        weights[arm] /= total
