"""Transportation costs of Bernoulli arms: by kl, d_ε, or the lesser of kl and TV².

Each is a `transport.Curve`: what it costs to move two means together.
"""

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.theory.divergences import (
    NOTHING,
    PrivateUp,
    Rise,
    Turn,
    kl_rise,
    kl_up,
    square_rise,
)
from discreet.theory.transport import Curve, Point, Search

EVERY = slice(None)


class Kl(Curve):
    """near and far are kl: the best m is the mean of μ* and μ_a weighted by 1 and x,
    and z = log x.
    """

    @np.errstate(all="ignore")
    def __init__(self, best: float, means: Floats) -> None:
        super().__init__(best, means)
        self._prepare()
        nothing, half = np.zeros_like(self._gaps), np.full_like(self._p, 0.5)
        whole, (near, far) = self._values(
            np.array([[self._gaps, nothing], self._offs(half, EVERY)]), EVERY
        )
        self._measure(whole[0], near + far, far, nothing)

    def _prepare(self) -> None:
        """Whatever the values need."""

    def _values(self, off: Floats, columns: Any) -> Floats:
        """Near and far after moves by these offs."""
        return kl_up(*self._move(off, columns))

    def _offs(self, weights: Floats, columns: Any) -> Floats:
        """How far either arm moves, given the other's weight, the two adding up to
        1.
        """
        return np.asarray(weights * self._gaps[columns])

    def _point(self, z: Floats, columns: Any) -> Point:
        rise = np.exp(np.array([-z, z]))
        near, far = self._values(self._offs(1 / (1 + rise), columns), columns)
        share = rise[1]
        rate = share * far
        return Point(share, near + rate, far, near / far, rate)

    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        """G is concave: where its tangent reaches the target, G does not yet."""
        low = np.fmax(low, np.log(point.share + (search.target - point.level) / point.far))
        return low, low


class ByMean(Curve):
    """Curves followed by z = log(s/t) for m = μ* − sΔ = μ_a + tΔ, with x = −near'/far'
    there.

    Shares up to a first one may keep m = μ*: then G is a straight line up to the level
    `floor`, which pulls nothing.
    """

    def _survey(self) -> None:
        """Floor, ceiling and the rest that `Curve` wants to know."""
        start = self._start()
        parts = np.zeros(
            (3, *self._p.shape)
        )  # m at μ*, m at μ_a, and where the first search starts
        parts[0, 0], parts[0, 1], parts[1, 0], parts[2] = 1e-200, 1, 1, _parts(start)
        values, slopes, bends = self._rise(parts, EVERY)
        self._far = values[0, 1]
        self._floor = np.fmax(slopes[0, 0] / slopes[0, 1] * self._far, 0.0)
        point = self._assemble(parts[2], Rise(values[2], slopes[2], bends[2]), EVERY)
        self._measure(values[1, 0], point.level, point.rate, start)

    def _start(self) -> Floats:
        """Where the first search starts."""
        return np.zeros_like(self._gaps)

    @abstractmethod
    def _rise(self, st: Floats, columns: Any) -> Rise:
        """Near and far with their derivatives, after moves by these parts of the
        gaps.
        """

    def _solve(self, target: Floats) -> tuple[Floats, Floats]:
        straight = target <= self._floor
        if not straight.any():
            return super()._solve(target)
        above = np.minimum(2 * self._floor, (self._floor + self.ceiling.ravel()) / 2)
        share, pull = super()._solve(np.where(straight, above, target))
        return np.where(straight, target / self._far, share), np.where(straight, 0.0, pull)

    def _point(self, z: Floats, columns: Any) -> Point:
        st = _parts(z)
        return self._assemble(st, self._rise(st, columns), columns)

    def _assemble(self, st: Floats, rise: Rise, columns: Any) -> Point:
        (near, far), (fall, climb), (near_bend, far_bend) = rise
        share = fall / climb
        rate = st[0] * st[1] * self._gaps[columns] * (near_bend + share * far_bend) * far / climb
        return Point(share, near + share * far, far, near / far, rate)

    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        return low, (low + high) / 2


class PrivateKl(ByMean):
    """near and far are d_ε. Both turn almost linear for small ε, but near/far stays
    close to s/t.
    """

    @np.errstate(all="ignore")
    def __init__(self, best: float, means: Floats, epsilon: float) -> None:
        super().__init__(best, means)
        self._private = PrivateUp(epsilon)
        self._turn = self._private.turn(self._p, self._p_bar)
        bend = self._private.s * self._gaps  # G bends within about this much of log x
        self._tolerance = np.minimum(np.sqrt(1e-15 * bend), 1e-9)
        self._hardest = np.flatnonzero(self._gaps == self._gaps.min())
        self._lead = slice(self._hardest[0], self._hardest[0] + 1)
        bends = np.log(self._turn.reach / np.maximum(self._gaps - self._turn.reach, NOTHING))
        near, far = np.where(self._p > NOTHING, bends, -np.inf)  # from 0 there is no kl to leave
        self._bends = near, -far
        self._survey()
        self.limit = self.ceiling

    def _start(self) -> Floats:
        """Left of where near turns, which arms other than the hardest reach but for
        large ε; 0 if that is nowhere.
        """
        near = self._bends[0]
        return np.where(near > -np.inf, np.minimum(near - 1, 0.0), 0.0)

    def level(self, position: float) -> float:
        """The level of the hardest arms where their z is the position: there the next
        search starts for them.
        """
        point = self._point(np.array([position]), self._lead)
        height, slope = self._height(point.level, point.rate, self._lead)
        for each, value in zip(self._tangent, (position, height, slope), strict=True):
            each[self._hardest] = value
        return float(point.level[0])

    def position(self, level: float) -> float:
        """What it would be for Gaussian laws."""
        return math.log(level / (2 * float(self.even.min()) - level))

    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        """Up to where near turns, log G is almost z; beyond, and to get there, by way
        of the turns.
        """
        near, far = (each[columns] for each in self._bends)
        retreat = (low + high) / 2
        for turn in (far, near):
            retreat = np.where((low < turn) & (turn < high), turn, retreat)
        straight = search.z + np.log(search.target / point.level)
        good = (search.z <= near) & (near < far) & (low < straight) & (straight < high)
        return low, np.where(good, straight, retreat)

    def _rise(self, st: Floats, columns: Any) -> Rise:
        turn = Turn(*(each[:, columns] for each in self._turn))
        return self._private.rise(self._move(st * self._gaps[columns], columns), turn)


class Mixed(ByMean):
    """One side kl, the other factor · TV²: first near kl and far squared, then the
    other way round.
    """

    @np.errstate(all="ignore")
    def __init__(self, best: float, means: Floats, factor: float) -> None:
        super().__init__(best, means, costs=2)
        self._factor, first = factor, np.arange(len(self._gaps)) < len(means)
        self._plain = np.array([first, ~first])
        self._survey()

    def _rise(self, st: Floats, columns: Any) -> Rise:
        move = self._move(st * self._gaps[columns], columns)
        pairs = zip(kl_rise(*move), square_rise(move.off, self._factor), strict=True)
        return Rise(*(np.where(self._plain[:, columns], kl, square) for kl, square in pairs))


def _parts(z: Floats) -> Floats:
    """s and t, adding up to 1, with z = log(s/t)."""
    return np.asarray(1 / (1 + np.exp(np.array([-z, z]))))
