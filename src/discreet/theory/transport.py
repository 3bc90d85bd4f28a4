"""What it costs to move one arm past the best one, solved for the share of the samples
that makes it cost so much.

For a suboptimal arm a the cost is ω_* G_a(ω_a/ω_*), with G_a concave. A transport knows
its ceiling (the limit of G_a) and, for a level y below it, the share x_a at which G_a
reaches y and the pull y x_a'(y) − x_a(y): all that `solve_equilibrium` asks of it.
Derivations: docs, "Theory and proofs", section 3.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from discreet._types import Floats
from discreet.errors import NoConvergenceError
from discreet.theory.divergences import (
    NOTHING,
    Move,
    PrivateUp,
    Rise,
    Turn,
    kl_rise,
    kl_up,
    square_rise,
)

MANY = 500  # columns from which on it pays to go on with the unsettled ones only
EVERY = slice(None)


class Inverse(NamedTuple):
    """At some level, a row for each cost and a column for each arm: share x_a = ω_a/ω_*
    and pull y x_a' − x_a.
    """

    share: Floats
    pull: Floats


class Transport(Protocol):
    """One or more costs (rows) for each suboptimal arm (columns)."""

    ceiling: Floats
    limit: Floats
    """A level above every solution, at most the ceiling."""
    even: Floats
    """G_a(1), the level where the arm has as many samples as the best one, or another
    to compare the arms by.
    """

    def level(self, position: float) -> float:
        """Return a level below every limit, rising with a number in which ½ log Σ pulls
        is almost a line of slope 1.
        """

    def position(self, level: float) -> float:
        """Return the number for a level, or one not far from it."""

    def inverse(self, level: float) -> Inverse:
        """Return shares and pulls at a level below every limit."""


def map_to_unit(position: float) -> float:
    """Return the logistic map of the line onto (0, 1)."""
    return 1 / (1 + math.exp(-min(max(position, -700.0), 700.0)))


class Bounded:
    """Levels as those of a Gaussian arm, from the limit alone."""

    limit: Floats

    def level(self, position: float) -> float:
        """See `Transport`."""
        return float(self.limit.min()) * map_to_unit(position)

    def position(self, level: float) -> float:
        """See `Transport`."""
        return math.log(level / (float(self.limit.min()) - level))


class Quadratic(Bounded):
    """G(x) = c x/(1 + x): Gaussian laws, squared total variation, the relaxed time; c
    is the ceiling.
    """

    def __init__(self, ceiling: Floats) -> None:
        self.ceiling = self.limit = ceiling[np.newaxis]
        self.even = self.ceiling / 2

    def inverse(self, level: float) -> Inverse:
        """Return x = y/(c − y), and y x' − x = x²."""
        share = level / (self.ceiling - level)
        return Inverse(share, share * share)


class Capped(Bounded):
    """G(x) = c min(1, x): total variation. The ceiling c is reached, at x = 1."""

    def __init__(self, ceiling: Floats) -> None:
        self.ceiling = self.limit = self.even = ceiling[np.newaxis]

    def inverse(self, level: float) -> Inverse:
        """Return x = y/c, which pulls nothing."""
        return Inverse(level / self.ceiling, np.zeros_like(self.ceiling))


class Point(NamedTuple):
    """A point of the curve G: share x, level G(x), far = G'(x), pull = near/far, and
    the level's rate in z.
    """

    share: Floats
    level: Floats
    far: Floats
    pull: Floats
    rate: Floats

    def along(self, miss: Floats) -> Floats:
        """Return the share at a level close by, on the tangent; at the ceiling a large
        correction is but noise.
        """
        more = miss / self.far
        return self.share + np.where(np.abs(more) <= 1e-6 * self.share, more, 0.0)


class Search(NamedTuple):
    """Where a search for the point at a level stands: z, the bracket around it, the
    sizes of the last two steps.
    """

    target: Floats
    goal: Floats
    tolerance: Floats
    z: Floats
    low: Floats
    high: Floats
    last: Floats
    before_last: Floats


class Curve(Bounded, ABC):
    """G(x) = inf over m in [μ_a, μ*] of near(m) + x far(m), with convex near (falling
    in m) and far (rising).

    A subclass follows the curve by a number z in which its height log((level −
    floor)/(1 − level/ceiling)) is almost a straight line, exactly one for Gaussian
    laws: Newton then needs few steps at any scale. Moves are stacked as [near, far],
    the near one mirrored at 1/2 so that it rises too. A column is an arm; several costs
    of the same arms stand side by side.
    """

    def __init__(self, best: float, means: Floats, costs: int = 1) -> None:
        self._costs, self._gaps = costs, np.concatenate([best - means] * costs)
        p = np.empty((2, len(self._gaps)))
        p[0], p[1] = 1 - best, np.concatenate([means] * costs)
        self._p = np.maximum(p, NOTHING)
        p[0], p[1] = best, 1 - p[1]
        self._p_bar = np.maximum(p, NOTHING)
        self._floor = np.zeros_like(self._gaps)
        self._tolerance = np.full_like(self._gaps, 1e-9)
        self._open = [np.full_like(self._gaps, each) for each in (-700, 700, np.inf)]

    def _measure(self, ceiling: Floats, even: Floats, rate: Floats, z: Floats) -> None:
        """Return what is known of G before any level is asked for: its limit, and at
        some z its level and rate.
        """
        self._per_ceiling = 1 / ceiling
        height, slope = self._height(even, rate, EVERY)
        self._tangent = z, height, np.minimum(np.maximum(slope, 0.1), 10)
        self.even, self.ceiling = even.reshape(self._costs, -1), ceiling.reshape(self._costs, -1)
        self.limit = np.minimum(
            self.ceiling, 100 * self.even
        )  # kl may be unbounded; no solution comes near this

    def inverse(self, level: float) -> Inverse:
        """Return shares and pulls at this level."""
        share, pull = self._solve(level + 0 * self._gaps)
        return Inverse(share.reshape(self._costs, -1), pull.reshape(self._costs, -1))

    def _solve(self, target: Floats) -> tuple[Floats, Floats]:
        """Solve for z by Newton, from the tangent where it was solved last; of many
        columns, the unsettled ones only go on.

        The last step is taken along the tangent of G itself, which errs by the square
        of the tolerance.
        """
        columns: Any = EVERY
        search, found = self._begin(target), np.empty((5, len(target)))
        for _ in range(200):
            point = self._point(search.z, columns)
            height, slope = self._height(point.level, point.rate, columns)
            miss = search.target - point.level
            done = np.abs(miss) <= np.maximum(
                search.tolerance * point.share * point.far, 1e-15 * search.target
            )
            settled = np.count_nonzero(done)
            many_settled = settled > max(len(done) // 2, MANY)
            if settled == len(done) or many_settled:
                found[:, columns] = point.along(miss), point.pull, search.z, height, slope
            if settled == len(done):
                self._tangent = found[2], found[3], np.minimum(np.maximum(found[4], 0.1), 10)
                return found[0], found[1]
            search = self._step(
                search, point, np.where(done, 0.0, (height - search.goal) / slope), columns
            )
            if many_settled:
                rest = np.flatnonzero(~done)
                columns, search = (
                    np.arange(len(target))[columns][rest],
                    Search(*(each[rest] for each in search)),
                )
        raise NoConvergenceError(
            f"no share found for the level {target[0]!r}: please report this instance"
        )

    def _begin(self, target: Floats) -> Search:
        z, height, slope = self._tangent
        goal = self._height(target, target, EVERY)[0]
        z = np.minimum(np.maximum(z + (goal - height) / slope, -690), 690)
        low, high, last = self._open
        return Search(target, goal, self._tolerance, z, low, high, last, last)

    def _step(self, search: Search, point: Point, step: Floats, columns: Any) -> Search:
        """Take Newton's step, unless it leaves the bracket or does not halve every
        other time; a settled z stays.
        """
        z, low, high = search.z, search.low, search.high
        level = np.where(
            np.isnan(point.level), z * np.inf, point.level
        )  # infinity times zero, far out
        low, high = (
            np.where(level < search.target, z, low),
            np.where(level > search.target, z, high),
        )
        low, retreat = self._retreat(search, point, low, high, columns)
        fresh = z - step
        safe = (fresh > low) & (fresh < high) & (np.abs(step) <= search.before_last / 2)
        fresh = np.where(safe | (step == 0), fresh, retreat)
        tolerance = np.where(high - low <= 1e-15, np.inf, search.tolerance)
        return Search(
            search.target, search.goal, tolerance, fresh, low, high, np.abs(fresh - z), search.last
        )

    def _height(self, level: Floats, rate: Floats, columns: Any) -> tuple[Floats, Floats]:
        """Return the height and its rate, kept finite where rounding pushes the level
        to either end.
        """
        above = np.maximum(level - self._floor[columns], NOTHING)
        per_ceiling = self._per_ceiling[columns]
        below = np.maximum(1 - level * per_ceiling, 1e-17)
        return np.log(above / below), rate * (1 / above + per_ceiling / below)

    def _move(self, off: Floats, columns: Any) -> Move:
        p, p_bar = self._p[:, columns], self._p_bar[:, columns]
        q = p + off
        return Move(p, p_bar, off, q, q[..., ::-1, :])

    @abstractmethod
    def _point(self, z: Floats, columns: Any) -> Point:
        """Return the points of these columns at z."""

    @abstractmethod
    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        """Return a better lower end for z, and where to go if Newton's step is no good."""


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
        """Prepare whatever the values need."""

    def _values(self, off: Floats, columns: Any) -> Floats:
        """Return near and far after moves by these offs."""
        return kl_up(*self._move(off, columns))

    def _offs(self, weights: Floats, columns: Any) -> Floats:
        """Return how far either arm moves, given the other's weight, the two adding up
        to 1.
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
        """Return the point where the tangent reaches the target: G is concave, so G
        does not reach it yet.
        """
        low = np.fmax(low, np.log(point.share + (search.target - point.level) / point.far))
        return low, low


class ByMean(Curve):
    """Curves followed by z = log(s/t) for m = μ* − sΔ = μ_a + tΔ, with x = −near'/far'
    there.

    Shares up to a first one may keep m = μ*: then G is a straight line up to the level
    `floor`, which pulls nothing.
    """

    def _survey(self) -> None:
        """Return floor, ceiling and the rest that `Curve` wants to know."""
        start = self._start()
        parts = np.zeros(
            (3, *self._p.shape)
        )  # m at μ*, m at μ_a, and where the first search starts
        parts[0, 0], parts[0, 1], parts[1, 0], parts[2] = 1e-200, 1, 1, _split(start)
        values, slopes, bends = self._rise(parts, EVERY)
        self._far = values[0, 1]
        self._floor = np.fmax(slopes[0, 0] / slopes[0, 1] * self._far, 0.0)
        point = self._assemble(parts[2], Rise(values[2], slopes[2], bends[2]), EVERY)
        self._measure(values[1, 0], point.level, point.rate, start)

    def _start(self) -> Floats:
        """Return where the first search starts."""
        return np.zeros_like(self._gaps)

    @abstractmethod
    def _rise(self, st: Floats, columns: Any) -> Rise:
        """Return near and far with their derivatives, after moves by these parts of the
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
        st = _split(z)
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
        """Return the start left of where near turns, which arms other than the hardest
        reach but for large ε; 0 if that is nowhere.
        """
        near = self._bends[0]
        return np.where(near > -np.inf, np.minimum(near - 1, 0.0), 0.0)

    def level(self, position: float) -> float:
        """Return the level of the hardest arms where their z is the position: there the
        next search starts for them.
        """
        point = self._point(np.array([position]), self._lead)
        height, slope = self._height(point.level, point.rate, self._lead)
        for each, value in zip(self._tangent, (position, height, slope), strict=True):
            each[self._hardest] = value
        return float(point.level[0])

    def position(self, level: float) -> float:
        """Return what it would be for Gaussian laws."""
        return math.log(level / (2 * float(self.even.min()) - level))

    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        """Search up to where near turns, where log G is almost z; beyond, and to get
        there, by way of the turns.
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


def _split(z: Floats) -> Floats:
    """Return s and t, adding up to 1, with z = log(s/t)."""
    return np.asarray(1 / (1 + np.exp(np.array([-z, z]))))
