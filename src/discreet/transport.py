"""The game behind every characteristic time, reduced to one dimension.

1/T = sup over allocations ω of min over a ≠ * of cost_a(ω_*, ω_a), and every cost is ω_* G_a(ω_a/ω_*) with
G_a concave. With x_a(y) the share ω_a/ω_* at which G_a reaches the level y,

    1/T = max over y of y / (1 + Σ_a x_a(y)),   attained where   Σ_a (y x_a'(y) − x_a(y)) = 1,

and the left side of that equation only grows with y. A transport therefore only has to know its ceiling (the
limit of G_a) and, for a level below it, the pair (x_a, y x_a' − x_a), called share and pull here. The minimum
of several costs is the maximum of their shares. Derivations: docs, "Theory and proofs".
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.divergence import NOTHING, Move, Rise
from discreet.errors import NoConvergenceError
from discreet.solve import increasing_root

FloatArray = NDArray[np.float64]


class Inverse(NamedTuple):
    """At some level, a row for each cost and a column for each arm: share x_a = ω_a/ω_* and pull y x_a' − x_a."""

    share: FloatArray
    pull: FloatArray


class Transport(Protocol):
    """One or more costs (rows) for each suboptimal arm (columns)."""

    ceiling: FloatArray
    limit: FloatArray
    """A level above every solution, at most the ceiling."""

    def inverse(self, level: float) -> Inverse:
        """Shares and pulls at a level below every limit."""


class Quadratic:
    """G(x) = c x/(1 + x): Gaussian laws, squared total variation, the relaxed time; c is the ceiling."""

    def __init__(self, ceiling: FloatArray) -> None:
        self.ceiling = self.limit = ceiling[np.newaxis]

    def inverse(self, level: float) -> Inverse:
        """x = y/(c − y), and y x' − x = x²."""
        share = level / (self.ceiling - level)
        return Inverse(share, share**2)


class Capped:
    """G(x) = c min(1, x): total variation. The ceiling c is reached, at x = 1."""

    def __init__(self, ceiling: FloatArray) -> None:
        self.ceiling = self.limit = ceiling[np.newaxis]

    def inverse(self, level: float) -> Inverse:
        """x = y/c, which pulls nothing."""
        return Inverse(level / self.ceiling, np.zeros_like(self.ceiling))


class Convex:
    """G(x) = inf over m in [μ_a, μ*] of near(m) + x far(m), with convex near (falling in m) and far (rising).

    At the best m, x = −near'/far'; the level near + x far falls as m grows, and the pull is near/far. The
    unknown is z = log(s/t) for m = μ* − sΔ = μ_a + tΔ, in which log(level/(ceiling − level)) is almost a
    straight line (exactly one for Gaussian laws), so that Newton needs few steps at any scale.

    `sides` measures moves stacked as [near, far], the near one mirrored at 1/2 so that it rises too.
    """

    def __init__(self, best: float, means: FloatArray, sides: Callable[[Move], Rise], costs: int = 1) -> None:
        self._sides = sides
        self._gaps = best - means
        start = np.array([np.full_like(means, 1 - best), means])[:, np.newaxis]
        self._p = np.maximum(start, NOTHING)
        self._p_bar = np.maximum(np.array([np.full_like(means, best), 1 - means])[:, np.newaxis], NOTHING)
        ones, zeros = np.ones((costs, len(means))), np.zeros((costs, len(means)))
        with np.errstate(all="ignore"):
            close = self._measure(np.full_like(ones, 1e-200), ones)
            self._slope = close.value[1]
            first = close.slope[0] / close.slope[1]  # smaller shares keep m = μ*: there G(x) = x far(μ*)
            self._floor = np.where(first > 0, first * self._slope, 0.0)
            self.ceiling = self._measure(ones, zeros).value[0]
            middle = self._point(zeros)[1]
            self._tangent = zeros, self._height(middle), ones
            self.limit = np.minimum(self.ceiling, 100 * middle)  # kl may be unbounded; no solution comes near this

    def inverse(self, level: float) -> Inverse:
        """Newton on z, each arm inside a bracket of its own, from the tangent where it was solved last.

        Below the floor of an arm its G is a straight line, which pulls nothing.
        """
        straight = level <= self._floor
        target = np.where(straight, np.minimum(2 * self._floor, (self._floor + self.ceiling) / 2), level)
        goal = self._height(target)
        noise = 1e-15 * (target / (target - self._floor) + 1 / (1 - target / self.ceiling))  # of goal itself
        z, height, slope = self._tangent
        z = np.clip(z + (goal - height) / slope, -690, 690)
        low, high = np.full_like(z, -700.0), np.full_like(z, 700.0)
        last = before_last = np.full_like(z, np.inf)
        settled = False
        for _ in range(200):
            share, reached, slope, pull = self._point(z)
            if settled:
                self._tangent = z, goal, np.clip(slope, 0.1, 10)
                return Inverse(np.where(straight, level / self._slope, share), np.where(straight, 0.0, pull))
            miss = self._height(reached) - goal
            miss = np.where(np.isnan(miss), np.copysign(np.inf, z), miss)  # infinity times zero, far out
            low, high = np.where(miss < 0, z, low), np.where(miss > 0, z, high)
            step = np.where(slope < 1e30, miss / slope, np.nan)  # steeper is an overflow at the edge of floats
            tiny = (np.abs(step) <= 1e-9) | (np.abs(miss) <= noise) | (high - low <= 1e-9)
            settled = bool(tiny.all())
            quick = np.abs(step) <= before_last / 2  # else Newton goes round in circles: halve the bracket
            safe = tiny | ((z - step > low) & (z - step < high) & quick)
            fresh = np.where(safe, z - step, (low + high) / 2)
            before_last, last, z = last, np.abs(fresh - z), fresh
        raise NoConvergenceError(f"no share found for the level {level!r}: please report this instance")

    def _height(self, level: FloatArray) -> FloatArray:
        """log((level − floor)/(1 − level/ceiling)); infinite where rounding pushes the level to either end."""
        above, below = np.maximum(level - self._floor, 0.0), np.maximum(1 - level / self.ceiling, 0.0)
        return np.asarray(np.log(above) - np.log(below))

    def _point(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Share, level, the slope of its height in z, and pull at the m that z stands for."""
        rise = np.exp(-np.abs(z))
        small, large = rise / (1 + rise), 1 / (1 + rise)
        s, t = np.where(z > 0, large, small), np.where(z > 0, small, large)
        (near, far), (fall, climb), (near_bend, far_bend) = self._measure(s, t)
        share = fall / climb
        level = near + share * far
        rate = s * t * self._gaps * (near_bend + share * far_bend) * far / climb
        slope = rate * (1 / (level - self._floor) + 1 / (self.ceiling - level))
        return share, level, slope, near / far

    def _measure(self, s: FloatArray, t: FloatArray) -> Rise:
        off = np.array([s, t]) * self._gaps
        q = self._p + off
        return self._sides(Move(self._p, self._p_bar, off, q, q[::-1]))


@np.errstate(all="ignore")
def equilibrium(transports: Sequence[Transport]) -> tuple[float, FloatArray]:
    """T and the shares x_a at the optimal allocation, for the minimum of these costs."""
    ceiling = _ceiling(transports)
    reached = min((float(t.ceiling.min()) for t in transports if isinstance(t, Capped)), default=np.inf)
    if reached == ceiling:
        corner = _inverse(transports, ceiling)
        if corner.pull.sum() <= 1:
            return float(1 + corner.share.sum()) / ceiling, corner.share

    def excess(position: float) -> float:
        pull = float(_inverse(transports, ceiling * _unit(position)).pull.sum())
        return (pull - 1) / (pull + 1) if pull < np.inf else 1.0

    level = ceiling * _unit(increasing_root(excess, -0.5 * np.log(_crowd(transports, 2))))
    share = _inverse(transports, level).share
    return float(1 + share.sum()) / level, share


@np.errstate(all="ignore")
def equilibrium_at(beta: float, transport: Transport) -> tuple[float, FloatArray]:
    """T_β and the shares, the best arm's allocation held at β: β Σ x_a = 1 − β and T_β = 1/(β y)."""
    ceiling, others = _ceiling([transport]), (1 - beta) / beta

    def excess(position: float) -> float:
        total = float(transport.inverse(ceiling * _unit(position)).share.sum())
        return (total - others) / (total + others) if total < np.inf else 1.0

    level = ceiling * _unit(increasing_root(excess, np.log(others / _crowd([transport], 1))))
    return 1 / (beta * level), transport.inverse(level).share[0]


def _ceiling(transports: Sequence[Transport]) -> float:
    """The level to stay below."""
    return min(float(transport.limit.min()) for transport in transports)


def _crowd(transports: Sequence[Transport], power: int) -> float:
    """How many arms as hard as the hardest would be about as hard as all of them."""
    ceilings = np.concatenate([transport.ceiling for transport in transports]).min(axis=0)
    return float(((_ceiling(transports) / ceilings) ** power).sum()) or 1.0


def _inverse(transports: Sequence[Transport], level: float) -> Inverse:
    """The largest share of each arm among all its costs, and the pull that belongs to it."""
    found = [transport.inverse(level) for transport in transports]
    shares = np.concatenate([inverse.share for inverse in found])
    pulls = np.concatenate([inverse.pull for inverse in found])
    winner, arms = shares.argmax(axis=0), np.arange(shares.shape[1])
    return Inverse(shares[winner, arms], pulls[winner, arms])


def _unit(position: float) -> float:
    """The logistic map of the line onto (0, 1)."""
    return float(1 / (1 + np.exp(-position)))
