"""Closeness: the second number in a release of outcomes that are numbers.

An outcome near an announced centre tells more than the bit it would be rounded to. How
close it is, a bump over [0, 1], is summed and released beside the outcome itself; the
pair costs no more ε than the outcome alone. The docs page "Outcomes that are numbers"
has the lemmas.
"""

import math
from typing import NamedTuple

from discreet.leaf import leaf
from discreet.strategies.units import LEVELS

SHARE = 0.8
"""The largest weight of closeness in a score, as a share of epsilon."""
LOWER = 1 - 1e-9
"""Weights are lowered by more than floating point can have added."""


@leaf
def rho(tilt: float, y: float) -> float:
    """log(1 - y + y e^tilt) - tilt y: what rounding y to a bit costs a score."""
    return math.log1p(y * math.expm1(tilt)) - tilt * y


@leaf
def height(centre: float) -> float:
    """The top of the bump, h_c: as high as the pair's sensitivity allows."""
    return math.e * min(rho(-1.0, centre), rho(1.0, centre))


class Bump(NamedTuple):
    """How close an outcome of 0 to `grid` units is to the centre: q_c in units."""

    grid: int
    centre: float
    below: float
    """h_c / rho_-1(c), in units: the bump up to its centre is this times rho_-1."""
    above: float
    """h_c / rho_1(c), in units."""


@leaf
def bump_of(centre: float, grid: int) -> Bump:
    """The bump around a centre."""
    top = grid * height(centre)
    return Bump(grid, centre, top / rho(-1.0, centre), top / rho(1.0, centre))


@leaf
def closeness(units: int, bump: Bump) -> int:
    """Q: q_c in whole units, at most the distance to either end, whatever floating
    point does: the privacy of the pair rests on that.
    """
    y = units / bump.grid
    q = bump.below * rho(-1.0, y) if y < bump.centre else bump.above * rho(1.0, y)
    return max(0, min(math.floor(q), units, bump.grid - units))


def possible_near(total: int, near: int, count: int, grid: int, centre: float, kind: int) -> bool:
    """Whether so many outcomes with this sum can be so close, all in units.

    Closeness is at most that of the mean, as the bump is concave (with slopes up to 1,
    and two roundings); of levels it is the number at the middle, and with those at the
    top not more than there are.
    """
    if not count:
        return near == 0
    if kind != LEVELS:
        mean = closeness(total // count, bump_of(centre, grid))
        return 0 <= near <= min(total, count * grid - total, count * (mean + 2))
    top = total - round(centre * near)
    return near % grid == top % grid == 0 <= min(near, top) and near + top <= count * grid


@leaf
def near_weight(tilt: float, centre: float, kind: int, epsilon: float) -> float:
    """B: the weight of closeness in a score that weighs outcomes by `tilt`.

    Such that B q(y) <= rho_tilt(y) for all y (Lemma 2), and below epsilon. Where only
    the levels 0, centre and 1 are sent it is rho itself.
    """
    if kind == LEVELS:
        return rho(tilt, centre)
    size = abs(tilt)
    if size <= 1:
        weight = rho(tilt, centre) / height(centre)
    else:
        steep = math.e * (size - 1 + math.exp(-size))
        weight = rho(math.copysign(1.0, tilt), centre) / height(centre) * steep
    return min(weight * LOWER, SHARE * epsilon)


@leaf
def most_near(centre: float, kind: int) -> float:
    """What closeness is for an outcome at the centre."""
    return 1.0 if kind == LEVELS else height(centre)


@leaf
def fine_price(slope: float, epsilon: float) -> float:
    """At least log E exp(slope Z) for the noise Z of a sum in fine units, whatever the
    units (Lemma 5).
    """
    share = slope / epsilon
    return -math.log1p(-share * share)
