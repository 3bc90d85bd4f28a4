"""The game behind every characteristic time, reduced to one dimension.

1/T = sup over allocations ω of min over a ≠ * of cost_a(ω_*, ω_a), and every cost is
ω_* G_a(ω_a/ω_*) with G_a concave. With x_a(y) the share ω_a/ω_* at which G_a reaches
the level y, a convex function,

    1/T = max over y of y / (1 + Σ_a x_a(y)),  attained where
    Σ_a (y x_a'(y) − x_a(y)) = 1,

and the left side of that equation only grows with y. The minimum of several costs is
the maximum of their shares. Derivations: docs, "Theory and proofs", section 3.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.errors import NoConvergenceError
from discreet.roots import newton_root
from discreet.theory.transport import Capped, Inverse, Transport, unit


class Try(NamedTuple):
    """A level, at ceiling/(1 + e^{−position}): what it gives, and the tangent there of
    1 + Σ x_a(y).
    """

    position: float
    level: float
    share: Floats
    time: float
    intercept: float
    """1 − Σ pulls: positive below the best level, negative above it."""
    slope: float
    height: float
    """½ log Σ pulls, in the position almost a line of slope 1, exactly one for two
    Gaussian arms.
    """

    def bound(self, highest: float) -> float:
        """No level between this one and the highest gives a time below this."""
        return self.slope + self.intercept / highest


@np.errstate(all="ignore")
def equilibrium(transports: Sequence[Transport]) -> tuple[float, Floats]:
    """T and the shares x_a at the optimal allocation, for the minimum of these costs.

    Secant steps on the height; where they do not close in, because the pulls jump, the
    next level is where the tangents from below and above meet. Any two such tangents
    also bound T from below.
    """
    ceiling = _ceiling(transports)
    reached = min(
        (float(t.ceiling.min()) for t in transports if isinstance(t, Capped)), default=np.inf
    )
    if reached == ceiling:
        corner = _inverse(transports, ceiling)
        if corner.pull.sum() <= 1:
            return float(1 + corner.share.sum()) / ceiling, corner.share
    below: Try | None = None
    above: Try | None = None
    now, rate, longest, slow = _try(transports, _guess(transports, ceiling, 2)), 1.0, 1.0, False
    for _ in range(200):
        below, above = (now, above) if now.intercept >= 0 else (below, now)
        step = -now.height / rate
        if abs(now.intercept * step) <= 1e-15:  # so much of T is left to gain
            return now.time, now.share
        position, meet = now.position + math.copysign(min(abs(step), longest), step), ceiling
        if below and above:
            meet = _meet(below, above)
            if slow and len(transports) > 1:
                position = max(transport.position(meet) for transport in transports)
            position = _between(below, above, position)
        if below:
            least = below.bound(meet)
            for end in (below, above or below):
                if end.time - least <= 2e-15 * least:
                    return end.time, end.share
            if position == below.position or (
                above and position == above.position
            ):  # the pulls jump here
                return least, (above or below).share
        before, now, longest = now, _try(transports, position), longest + 1
        slow = abs(now.height / before.height) > 0.5
        rate = max((now.height - before.height) / (now.position - before.position), 0.0) or 1.0
    raise NoConvergenceError(f"no level found below {ceiling!r}: please report this instance")


@np.errstate(all="ignore")
def stays(level: float, shares: Floats, others: Sequence[Transport]) -> bool:
    """Whether an equilibrium stays one under these costs too: none asks for a larger
    share at its level.
    """
    return all(
        level < transport.limit.min() and bool((transport.inverse(level).share <= shares).all())
        for transport in others
    )


@np.errstate(all="ignore")
def equilibrium_at(beta: float, transport: Transport) -> tuple[float, Floats]:
    """T_β and the shares, the best arm's allocation held at β: β Σ x_a = 1 − β and T_β
    = 1/(β y).
    """
    ceiling, others = _ceiling([transport]), (1 - beta) / beta

    def excess(position: float) -> tuple[float, float]:
        part = unit(position)
        share, pull = transport.inverse(ceiling * part)
        total = float(share.sum())
        return math.log(total / others) if total < math.inf else math.inf, (
            1 + float(pull.sum()) / total
        ) * (1 - part)

    level = ceiling * unit(newton_root(excess, _guess([transport], ceiling, 1, others)))
    return 1 / (beta * level), transport.inverse(level).share[0]


def _try(transports: Sequence[Transport], position: float) -> Try:
    level = min(transport.level(position) for transport in transports)
    share, pull = _inverse(transports, level)
    total, pulls = float(share.sum()), float(pull.sum())
    height = 0.5 * math.log(min(max(pulls, 1e-30), 1e30))
    return Try(
        position, level, share, (1 + total) / level, 1 - pulls, (total + pulls) / level, height
    )


def _meet(below: Try, above: Try) -> float:
    """The level where the two tangents meet; the upper one where rounding or an
    infinity leaves none between.
    """
    apart = above.slope - below.slope
    meet = (below.intercept - above.intercept) / apart if apart > 0 else math.nan
    return meet if below.level < meet < above.level else above.level


def _between(below: Try, above: Try, position: float) -> float:
    """This position if it lies between the two, else where the line through their
    heights is zero.
    """
    if below.position < position < above.position:
        return position
    share = below.height / (below.height - above.height)
    return below.position + min(max(share, 0.01), 0.99) * (above.position - below.position)


def _ceiling(transports: Sequence[Transport]) -> float:
    """The level to stay below."""
    return min(float(transport.limit.min()) for transport in transports)


def _guess(
    transports: Sequence[Transport], ceiling: float, power: int, others: float = 1.0
) -> float:
    """The position for Gaussian laws that cost as much at equal weights, all arms as
    hard as the hardest.
    """
    even = np.concatenate([transport.even for transport in transports]).min(axis=0)
    least = float(even.min())
    crowd = float(((least / even) ** power).sum()) ** (1 / power)
    level = min(2 * least * others / (others + crowd), 0.999 * ceiling)
    return max(transport.position(level) for transport in transports)


def _inverse(transports: Sequence[Transport], level: float) -> Inverse:
    """The largest share of each arm among all its costs, and the pull that belongs to
    it.
    """
    found = [transport.inverse(level) for transport in transports]
    if len(found) == 1 and len(found[0].share) == 1:
        return Inverse(found[0].share[0], found[0].pull[0])
    shares = np.concatenate([inverse.share for inverse in found])
    pulls = np.concatenate([inverse.pull for inverse in found])
    winner, arms = shares.argmax(axis=0), np.arange(shares.shape[1])
    return Inverse(shares[winner, arms], pulls[winner, arms])
