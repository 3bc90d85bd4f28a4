"""Divergences between Bernoulli laws: kl, total variation, and d_ε for ε-global
privacy.

All take scalars or arrays, keep full relative precision where the two means are close,
and know the limits 0 · log 0 = 0 and kl(p, 0) = ∞. What measures an upward `Move`
serves the characteristic times in `theory`; those are kernels, called with NumPy's
warnings off.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.jit import jit
from discreet.validation import check_epsilon, check_unit

GAUSSIAN, PRIVATE, KL = 0, 1, 2
"""Codes of W^G, W^{G,ε} and W^KL."""
MEAN_ULPS = 4 * 2.0**-52
"""Rounding error that a difference of two means may carry, relative to the larger of
them.
"""


@jit
def is_gap_large(mean_best: float, mean_other: float, half_epsilon: float) -> bool:
    """Return whether the gap is at least epsilon / 2, the second case of c~^{G,eps}.

    Equality is the second case, and floats misjudge it (0.95 - 0.9 < 0.05), so a gap
    short of epsilon / 2 by no more than the rounding error of the means counts as
    equal.
    """
    size = max(abs(mean_best), abs(mean_other))
    return mean_best - mean_other >= half_epsilon - MEAN_ULPS * size


@jit
def compute_numerator(cost: int, gap: float, half_epsilon: float) -> float:
    """Return d of a cost W = d / (2 sigma^2 (1/n + 1/m)): gap^2, or gap min(epsilon/2,
    gap); zero for a gap <= 0.
    """
    if gap <= 0.0:
        return 0.0
    if cost == PRIVATE:
        return gap * min(half_epsilon, gap)
    return gap * gap


@jit
def compute_transport_cost(
    top: float, inverse_best: float, inverse_other: float, two_variance: float
) -> float:
    """Return W of the pair from its numerator and the inverse counts."""
    return top / (two_variance * (inverse_best + inverse_other))


@jit
def compute_kl_beside(mean: float, off: float) -> float:
    """Return kl(mean, mean + off), with full precision for a small `off`; 0 log 0 = 0."""
    total = 0.0
    if mean > 0.0:
        total -= mean * math.log1p(off / mean)
    if mean < 1.0:
        total -= (1.0 - mean) * math.log1p(-off / (1.0 - mean))
    return total


@jit
def compute_kl_part(mean: float, other: float, count: int, count_other: int) -> float:
    """Return what an arm adds to W^KL: its count times kl from its mean to that of both
    arms together.
    """
    return count * compute_kl_beside(mean, (other - mean) * (count_other / (count + count_other)))


@jit
def compute_kl_cost(
    mean_best: float, mean_other: float, count_best: int, count_other: int
) -> float:
    """Return W^KL, the least n kl(mean, x) + m kl(other mean, x) over x; zero for a gap
    <= 0.
    """
    if mean_best <= mean_other:
        return 0.0
    return compute_kl_part(mean_best, mean_other, count_best, count_other) + compute_kl_part(
        mean_other, mean_best, count_other, count_best
    )


def kl(p: ArrayLike, q: ArrayLike) -> Floats:
    """Return kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)), the divergence of
    Bernoulli(p) from Bernoulli(q).
    """
    with np.errstate(all="ignore"):
        return kl_up(*_make_upward(check_unit("p", p), check_unit("q", q)))


def tv(p: ArrayLike, q: ArrayLike) -> Floats:
    """Return the total variation distance of Bernoulli(p) and Bernoulli(q): the
    distance of their means.
    """
    return np.abs(check_unit("p", p) - check_unit("q", q))


def d_epsilon(p: ArrayLike, q: ArrayLike, epsilon: float) -> Floats:
    """Return d_ε(p, q) = inf over r of ε · abs(p − r) + kl(r, q) (Jourdan & Azize
    2025): what privacy leaves of kl.
    """
    private = PrivateUp(check_epsilon(epsilon))
    with np.errstate(all="ignore"):
        move = _make_upward(check_unit("p", p), check_unit("q", q))
        return private(move, private.turn(move.p, move.p_bar))


def compute_randomised_mean(mean: ArrayLike, epsilon: float) -> Floats:
    """Return μ_ε, the mean of ε-randomised responses to rewards of this mean (Lemma of
    Ren et al. on CTB).
    """
    share = math.tanh(check_epsilon(epsilon) / 2)  # (e^ε − 1)/(e^ε + 1), without overflow
    return (check_unit("mean", mean) - 0.5) * share + 0.5


class Rise(NamedTuple):
    """The value, slope and curvature of a divergence from p up to q = p + off as a
    function of off.
    """

    value: Floats
    slope: Floats
    curvature: Floats


class Move(NamedTuple):
    """An upward move from p to q = p + off; 1 − p and 1 − q are kept too, with the
    digits they would lose.

    p and 1 − p are never exactly 0 but at least `NOTHING`, so that the formulas need no
    special cases.
    """

    p: Floats
    p_bar: Floats
    off: Floats
    q: Floats
    q_bar: Floats


NOTHING = 1e-300


def kl_up(p: Floats, p_bar: Floats, off: Floats, q: Floats, q_bar: Floats) -> Floats:
    """Return kl(p, q) along a move (its fields are the arguments)."""
    up, down = _compute_excess(np.array([off / p, -off / p_bar]), np.array([q / p, q_bar / p_bar]))
    return np.asarray(p * up + p_bar * down)


def kl_rise(p: Floats, p_bar: Floats, off: Floats, q: Floats, q_bar: Floats) -> Rise:
    """Return kl(p, q) along a move, with its derivatives in off."""
    return Rise(
        kl_up(p, p_bar, off, q, q_bar), off / (q * q_bar), p / q / q + p_bar / q_bar / q_bar
    )


def square_rise(off: Floats, factor: float) -> Rise:
    """Return factor · off², the squared total variation with its privacy factor."""
    return Rise(factor * off**2, 2 * factor * off, np.full_like(off, 2 * factor))


class Turn(NamedTuple):
    """The point where d⁺_ε leaves kl: at q = g(p) = p e^ε / (1 + p(e^ε − 1)). As g − p
    and 1 − g.
    """

    reach: Floats
    bar: Floats


class PrivateUp:
    """d⁺_ε(p, q) along a move: kl up to q = g(p), from there the private branch.

    Beyond g the value is kl(p, g) + log((1 − g s)/(1 − q s)) with s = 1 − e^{−ε}, and
    the slope s/(1 − q s).
    """

    def __init__(self, epsilon: float) -> None:
        epsilon = min(
            epsilon, 600.0
        )  # e^{-600} is already nothing beside any mean, and e^{600} does not overflow
        self.s, self.decay = -math.expm1(-epsilon), math.exp(-epsilon)  # s = 1 − e^{−ε}

    def turn(self, p: Floats, p_bar: Floats) -> Turn:
        """Return where kl ends, for moves that start at p."""
        scale = self.decay + p * self.s
        return Turn(p * p_bar * self.s / scale, p_bar * self.decay / scale)

    def __call__(self, move: Move, turn: Turn) -> Floats:
        """Return the divergence along a move."""
        return self._value(move, turn, self._rest(move))

    def rise(self, move: Move, turn: Turn) -> Rise:
        """Return the divergence along a move, with its derivatives in off: the slope is
        the smaller one of the branches'.
        """
        p, p_bar, off, q, q_bar = move
        rest = self._rest(move)
        plain, private = off / (q * q_bar), self.s / rest
        bend = np.where(plain < private, p / q / q + p_bar / q_bar / q_bar, private * private)
        return Rise(self._value(move, turn, rest), np.minimum(plain, private), bend)

    def _rest(self, move: Move) -> Floats:
        """Return 1 − q s, without cancellation."""
        return np.asarray(move.q_bar + move.q * self.decay)

    def _value(self, move: Move, turn: Turn, rest: Floats) -> Floats:
        p, p_bar, off, _, q_bar = move
        plain = np.minimum(off, turn.reach)
        value = kl_up(p, p_bar, plain, p + plain, np.maximum(q_bar, turn.bar))
        past = np.where(
            turn.bar < turn.reach, turn.bar - q_bar, off - turn.reach
        )  # q − g, with more digits
        return np.asarray(value + np.log1p(np.maximum(past, 0.0) * (self.s / rest)))


def _make_upward(p: Floats, q: Floats) -> Move:
    """Return the move from p to q, mirrored at 1/2 where it goes down: d(p, q) = d(1−p,
    1−q).
    """
    up = q >= p
    return Move(
        np.maximum(np.where(up, p, 1 - p), NOTHING),
        np.maximum(np.where(up, 1 - p, p), NOTHING),
        np.abs(q - p),
        np.where(up, q, 1 - q),
        np.where(up, 1 - q, q),
    )


def _compute_excess(u: Floats, one_plus_u: Floats) -> Floats:
    """Return u − log(1 + u) ≥ 0, to full relative precision also for tiny u and for u
    near −1.

    With r = u/(2+u), log(1+u) = 2(r + r³/3 + r⁵/5 + …) and u − 2r = u r.
    """
    r = u / (1 + one_plus_u)
    square = r * r
    series = square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square / 11))))
    return np.where(np.abs(u) < 0.03, r * (u - 2 * series), u - np.log(one_plus_u))
