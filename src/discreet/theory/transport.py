"""What it costs to move one arm past the best one, solved for the share of the samples
that makes it cost so much.

For a suboptimal arm a the cost is ω_* G_a(ω_a/ω_*), with G_a concave. A transport knows
its ceiling (the limit of G_a) and, for a level y below it, the share x_a at which G_a
reaches y and the pull y x_a'(y) − x_a(y): all that `equilibrium` asks of it.
Derivations: docs, "Theory and proofs", section 3.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from discreet.arrays import Floats
from discreet.errors import NoConvergenceError
from discreet.theory.divergences import (
    NOTHING,
    Move,
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
        """A level below every limit, rising with a number in which ½ log Σ pulls is
        almost a line of slope 1.
        """

    def position(self, level: float) -> float:
        """The number for a level, or one not far from it."""

    def inverse(self, level: float) -> Inverse:
        """Shares and pulls at a level below every limit."""


def unit(position: float) -> float:
    """The logistic map of the line onto (0, 1)."""
    return 1 / (1 + math.exp(-min(max(position, -700.0), 700.0)))


class Bounded:
    """Levels as those of a Gaussian arm, from the limit alone."""

    limit: Floats

    def level(self, position: float) -> float:
        """See `Transport`."""
        return float(self.limit.min()) * unit(position)

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
        """x = y/(c − y), and y x' − x = x²."""
        share = level / (self.ceiling - level)
        return Inverse(share, share * share)


class Capped(Bounded):
    """G(x) = c min(1, x): total variation. The ceiling c is reached, at x = 1."""

    def __init__(self, ceiling: Floats) -> None:
        self.ceiling = self.limit = self.even = ceiling[np.newaxis]

    def inverse(self, level: float) -> Inverse:
        """x = y/c, which pulls nothing."""
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
        """The share at a level close by, on the tangent; at the ceiling a large
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
        """What is known of G before any level is asked for: its limit, and at some z
        its level and rate.
        """
        self._per_ceiling = 1 / ceiling
        height, slope = self._height(even, rate, EVERY)
        self._tangent = z, height, np.minimum(np.maximum(slope, 0.1), 10)
        self.even, self.ceiling = even.reshape(self._costs, -1), ceiling.reshape(self._costs, -1)
        self.limit = np.minimum(
            self.ceiling, 100 * self.even
        )  # kl may be unbounded; no solution comes near this

    def inverse(self, level: float) -> Inverse:
        """Shares and pulls at this level."""
        share, pull = self._solve(level + 0 * self._gaps)
        return Inverse(share.reshape(self._costs, -1), pull.reshape(self._costs, -1))

    def _solve(self, target: Floats) -> tuple[Floats, Floats]:
        """Newton on z, from the tangent where it was solved last; of many columns, the
        unsettled ones only go on.

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
        """Newton's step, unless it leaves the bracket or does not halve every other
        time; a settled z stays.
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
        """The height and its rate, kept finite where rounding pushes the level to
        either end.
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
        """The points of these columns at z."""

    @abstractmethod
    def _retreat(
        self, search: Search, point: Point, low: Floats, high: Floats, columns: Any
    ) -> tuple[Floats, Floats]:
        """A better lower end for z, and where to go if Newton's step is no good."""
