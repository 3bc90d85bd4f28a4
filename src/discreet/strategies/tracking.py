"""Track-and-Stop's sampling (Garivier & Kaufmann 2016): C-tracking of the allocation
that is best for the released means.

Everything here stands before the wall: it takes numerators of the costs between
released means, and public counts. Shares are whole numbers of `UNITS`, so that what an
arm is owed is added up without rounding, and ties are ties.
"""

import math

from discreet.arrays import Floats, Ints
from discreet.leaf import leaf

UNITS = 2**20
"""Units that make one sample: no run that fits below a cap overflows 64 bits."""


@leaf
def tied_arms(best: int, tops: Floats) -> int:
    """How many other arms have the best arm's mean."""
    tied = 0
    for arm in range(tops.size):
        if arm != best and tops[arm] <= 0.0:
            tied += 1
    return tied


@leaf
def fill_allocation(best: int, tops: Floats, weights: Floats) -> None:
    """ω* of costs W = d/(1/n + 1/m) with the numerators `tops` against the best arm.

    At the optimum every arm's cost is the same level y, so that x_a = ω_a/ω_* =
    y/(d_a − y), and Σ x_a² = 1. Arms as good as the best one (d = 0) share what the
    limit of equal small gaps gives them, and leave nothing to the others.
    """
    least, tied = math.inf, tied_arms(best, tops)
    for arm in range(tops.size):
        if arm != best:
            least = min(least, tops[arm])
    level = allocation_level(best, tops, least) if tied == 0 else 0.0
    total = 1.0
    for arm in range(tops.size):
        if arm != best:
            if tied > 0:
                weights[arm] = 1.0 / math.sqrt(tied) if tops[arm] <= 0.0 else 0.0
            else:
                part = level * (least / tops[arm])
                weights[arm] = part / (1.0 - part)
            total += weights[arm]
    weights[best] = 1.0
    for arm in range(tops.size):
        weights[arm] /= total


@leaf
def allocation_level(best: int, tops: Floats, least: float) -> float:
    """y / min d, from 0 to 1/2: where the length of the vector x is 1.

    The length is convex and grows with y, and is at least 1 at 1/2. From there Newton's
    steps go down to the root and never past it, and end when rounding leaves no step.
    """
    level = 0.5
    for _ in range(100):
        square, slope = 0.0, 0.0
        for arm in range(tops.size):
            if arm != best:
                ratio = least / tops[arm]
                rest = 1.0 - level * ratio
                share = level * ratio / rest
                square += share * share
                slope += share * ratio / (rest * rest)
        length = math.sqrt(square)
        lower = level - (length - 1.0) * length / slope
        if not lower < level:
            break
        level = lower
    return level


@leaf
def floor_of(samples: int, arms: int) -> float:
    """ε_t = 1/(2 sqrt(K² + t)): the least share of every arm (their Section 3.1)."""
    return 0.5 / math.sqrt(1.0 * arms * arms + samples)


@leaf
def cut_for(floor: float, weights: Floats) -> float:
    """What the projection takes off larger shares: Σ max{floor, ω_a − cut} = 1.

    max{floor, ω − cut} is a nearest allocation in the maximum norm whose shares are all
    at least the floor.
    """
    cut, inside = 0.0, -1
    for _ in range(weights.size + 1):
        total, above = -1.0, 0
        for arm in range(weights.size):
            if weights[arm] - cut > floor:
                total += weights[arm]
                above += 1
            else:
                total += floor
        if above == inside:
            break
        cut, inside = total / above, above
    return cut


@leaf
def owe(best: int, weights: Floats, samples: int, owed: Ints) -> None:
    """Add one sample's shares to what every arm is owed; the best arm takes what
    rounding leaves.
    """
    arms = weights.size
    floor = floor_of(samples, arms)
    cut = cut_for(floor, weights)
    rest = UNITS
    for arm in range(arms):
        if arm != best:
            units = max(int(UNITS * max(floor, weights[arm] - cut) + 0.5), 1)
            owed[arm] += units
            rest -= units
    owed[best] += rest


@leaf
def most_owed(owed: Ints, pulls: Ints) -> int:
    """The arm furthest behind what it is owed, ties to the lowest index. (Everyone is
    owed the first sample, which counts on neither side.)
    """
    chosen = 0
    for arm in range(1, pulls.size):
        if owed[arm] - UNITS * pulls[arm] > owed[chosen] - UNITS * pulls[chosen]:
            chosen = arm
    return chosen
