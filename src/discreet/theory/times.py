"""What is possible: characteristic times with their allocations, lower and upper
bounds, switch points.

Every function takes an `Instance`. Those built on kl or total variation are for
Bernoulli arms; the Gaussian ones and their relaxations use the means alone. Formulas
and proofs: docs, "Theory and proofs".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet._types import Floats
from discreet.errors import InvalidInputError, NoConvergenceError
from discreet.instances import Bernoulli, Gaussian, Instance, check_bounded, check_instance
from discreet.numerics import solve_newton
from discreet.theory.transport import (
    Capped,
    Inverse,
    Kl,
    Mixed,
    PrivateKl,
    Quadratic,
    Transport,
    map_to_unit,
)
from discreet.trust import check_trust
from discreet.validation import (
    check_beta,
    check_delta,
    check_epsilon,
    check_sigma,
    convert_to_float,
    quote,
)


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
        """Return a time that no level between this one and the highest goes below."""
        return self.slope + self.intercept / highest


@np.errstate(all="ignore")
def solve_equilibrium(transports: Sequence[Transport]) -> tuple[float, Floats]:
    """Return T and the shares x_a at the optimal allocation, for the minimum of these
    costs.

    Secant steps on the height; where they do not close in, because the pulls jump, the
    next level is where the tangents from below and above meet. Any two such tangents
    also bound T from below.
    """
    ceiling = _find_ceiling(transports)
    reached = min(
        (float(t.ceiling.min()) for t in transports if isinstance(t, Capped)), default=np.inf
    )
    if reached == ceiling:
        corner = _invert(transports, ceiling)
        if corner.pull.sum() <= 1:
            return float(1 + corner.share.sum()) / ceiling, corner.share
    below: Try | None = None
    above: Try | None = None
    now, rate, longest, slow = (
        _try(transports, _guess_position(transports, ceiling, 2)),
        1.0,
        1.0,
        False,
    )
    for _ in range(200):
        below, above = (now, above) if now.intercept >= 0 else (below, now)
        step = -now.height / rate
        if abs(now.intercept * step) <= 1e-15:  # so much of T is left to gain
            return now.time, now.share
        position, meet = now.position + math.copysign(min(abs(step), longest), step), ceiling
        if below and above:
            meet = _intersect(below, above)
            if slow and len(transports) > 1:
                position = max(transport.position(meet) for transport in transports)
            position = _choose_between(below, above, position)
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
def is_equilibrium(level: float, shares: Floats, others: Sequence[Transport]) -> bool:
    """Return whether an equilibrium stays one under these costs too: none asks for a
    larger share at its level.
    """
    return all(
        level < transport.limit.min() and bool((transport.inverse(level).share <= shares).all())
        for transport in others
    )


@np.errstate(all="ignore")
def solve_equilibrium_at(beta: float, transport: Transport) -> tuple[float, Floats]:
    """Return T_β and the shares, the best arm's allocation held at β: β Σ x_a = 1 − β
    and T_β = 1/(β y).
    """
    ceiling, others = _find_ceiling([transport]), (1 - beta) / beta

    def excess(position: float) -> tuple[float, float]:
        part = map_to_unit(position)
        share, pull = transport.inverse(ceiling * part)
        total = float(share.sum())
        return math.log(total / others) if total < math.inf else math.inf, (
            1 + float(pull.sum()) / total
        ) * (1 - part)

    level = ceiling * map_to_unit(
        solve_newton(excess, _guess_position([transport], ceiling, 1, others))
    )
    return 1 / (beta * level), transport.inverse(level).share[0]


def _try(transports: Sequence[Transport], position: float) -> Try:
    level = min(transport.level(position) for transport in transports)
    share, pull = _invert(transports, level)
    total, pulls = float(share.sum()), float(pull.sum())
    height = 0.5 * math.log(min(max(pulls, 1e-30), 1e30))
    return Try(
        position, level, share, (1 + total) / level, 1 - pulls, (total + pulls) / level, height
    )


def _intersect(below: Try, above: Try) -> float:
    """Return the level where the two tangents meet; the upper one where rounding or an
    infinity leaves none between.
    """
    apart = above.slope - below.slope
    meet = (below.intercept - above.intercept) / apart if apart > 0 else math.nan
    return meet if below.level < meet < above.level else above.level


def _choose_between(below: Try, above: Try, position: float) -> float:
    """Return this position if it lies between the two, else where the line through
    their heights is zero.
    """
    if below.position < position < above.position:
        return position
    share = below.height / (below.height - above.height)
    return below.position + min(max(share, 0.01), 0.99) * (above.position - below.position)


def _find_ceiling(transports: Sequence[Transport]) -> float:
    """Return the level to stay below."""
    return min(float(transport.limit.min()) for transport in transports)


def _guess_position(
    transports: Sequence[Transport], ceiling: float, power: int, others: float = 1.0
) -> float:
    """Return the position for Gaussian laws that cost as much at equal weights, all
    arms as hard as the hardest.
    """
    even = np.concatenate([transport.even for transport in transports]).min(axis=0)
    least = float(even.min())
    crowd = float(((least / even) ** power).sum()) ** (1 / power)
    level = min(2 * least * others / (others + crowd), 0.999 * ceiling)
    return max(transport.position(level) for transport in transports)


def _invert(transports: Sequence[Transport], level: float) -> Inverse:
    """Return the largest share of each arm among all its costs, and the pull that
    belongs to it.
    """
    found = [transport.inverse(level) for transport in transports]
    if len(found) == 1 and len(found[0].share) == 1:
        return Inverse(found[0].share[0], found[0].pull[0])
    shares = np.concatenate([inverse.share for inverse in found])
    pulls = np.concatenate([inverse.pull for inverse in found])
    winner, arms = shares.argmax(axis=0), np.arange(shares.shape[1])
    return Inverse(shares[winner, arms], pulls[winner, arms])


MIN_GAP = 1e-9


@dataclass(frozen=True, eq=False)
class CharacteristicTime:
    """The characteristic time T*, and the allocation ω* that attains it, in the
    instance's own order of arms.

    No strategy can need fewer than T* · kl(1−δ, δ) samples on average.
    """

    value: float
    allocation: Floats

    def __float__(self) -> float:
        """Return the time itself."""
        return self.value

    def scaled(self, factor: float) -> "CharacteristicTime":
        """Return the time if every sample told 1/factor times as much; the allocation
        stays the same.
        """
        if not 0 < convert_to_float(factor) < math.inf:
            raise InvalidInputError(f"factor must be a positive number; got {quote(factor)}")
        return CharacteristicTime(float(factor) * self.value, self.allocation)


def t_kl(instance: Instance) -> CharacteristicTime:
    """Return T*_KL, without privacy (Garivier & Kaufmann; Eq. characteristic_time with
    d = KL), of Bernoulli or of Gaussian arms.
    """
    if isinstance(instance, Gaussian):
        return t_gaussian(instance)
    best, means = _split_bernoulli_arms(instance)
    return _make_time(instance, *solve_equilibrium([Kl(best, means)]))


def t_kl_beta(instance: Instance, beta: float = 0.5) -> CharacteristicTime:
    """Return T*_KL,β: T*_KL with the best arm's share of the samples held at β."""
    if isinstance(instance, Gaussian):
        return t_gaussian_beta(instance, beta)
    best, means = _split_bernoulli_arms(instance)
    return _make_time(instance, *solve_equilibrium_at(check_beta(beta), Kl(best, means)))


def t_gaussian(instance: Instance, sigma: float | None = None) -> CharacteristicTime:
    """Return T*_KL of Gaussian arms with these means and standard deviation σ (Eq.
    T_KL_Gaussian); the instance's own σ unless another is given, 1/2 for rewards in [0,
    1].
    """
    return _make_time(instance, *solve_equilibrium([_compute_gaussian(instance, sigma)]))


def t_gaussian_beta(
    instance: Instance, beta: float = 0.5, sigma: float | None = None
) -> CharacteristicTime:
    """Return T*_KL,β of Gaussian arms with these means and standard deviation σ (Eq.
    T_KL_Gaussian).
    """
    return _make_time(
        instance, *solve_equilibrium_at(check_beta(beta), _compute_gaussian(instance, sigma))
    )


def t_tv(instance: Instance) -> CharacteristicTime:
    """Return T*_TV = Σ_a 1/Δ_a (with Δ_* = Δ_min), allocation in proportion to 1/Δ_a
    (Eq. global_explicit_relaxation).
    """
    _split_bernoulli_arms(instance)
    inverse = 1 / instance.gaps
    return CharacteristicTime(float(inverse.sum()), _make_read_only(inverse / inverse.sum()))


def t_tv2(instance: Instance) -> CharacteristicTime:
    """Return T*_TV², half the Gaussian time with σ = 1 (Corollary: relaxing the local
    DP lower bound).
    """
    _split_bernoulli_arms(instance)
    return t_gaussian(instance, 1.0).scaled(0.5)


def t_local(
    instance: Instance, epsilon: float, known: CharacteristicTime | None = None
) -> CharacteristicTime:
    """Return T*_ℓ(ν; ε) under ε-local DP: the divergence is min{kl, c(ε) TV²} for each
    arm (Theorem: local lower bound).

    Here and below, `known` is T*_KL where the caller has it: privacy may cost nothing.
    """
    best, means = _split_bernoulli_arms(instance)
    factor = local_factor(min(check_epsilon(epsilon), 50.0))  # beyond, kl is the smaller one by far
    if factor <= 2:  # by Pinsker's inequality c(ε) TV² is the smaller one everywhere
        return t_tv2(instance).scaled(1 / factor)
    ends = np.array([best, means.min()])
    if (
        2 * factor * (ends * (1 - ends)).min() >= 1
    ):  # kl(p, q) is at most TV²/(2 m(1−m)) for some m from p to q
        return known or t_kl(instance)
    others: list[Transport] = [Quadratic(factor * (best - means) ** 2), Mixed(best, means, factor)]
    return _solve_least(instance, known, others)


def t_global(
    instance: Instance, epsilon: float, known: CharacteristicTime | None = None
) -> CharacteristicTime:
    """Return T*_g(ν; ε) under ε-global DP: the smaller of the KL and ε times the TV
    cost (Theorem: global lower bound).
    """
    best, means = _split_bernoulli_arms(instance)
    return _solve_least(instance, known, [Capped(check_epsilon(epsilon) * (best - means))])


def t_epsilon(
    instance: Instance, epsilon: float, known: CharacteristicTime | None = None
) -> CharacteristicTime:
    """Return T*_ε under ε-global DP with the divergence d_ε, the tightest known
    (Jourdan & Azize 2025).
    """
    best, means = _split_bernoulli_arms(instance)
    if check_epsilon(epsilon) >= _compute_log_odds_gap(best, float(means.min())):
        return known or t_kl(instance)  # d_ε is kl wherever a mean may be moved to
    if known and epsilon >= free_epsilon(instance, known):
        return known
    return _make_time(instance, *solve_equilibrium([PrivateKl(best, means, epsilon)]))


def tightest(
    instance: Instance,
    epsilon: float | None,
    trust: str = "global",
    known: CharacteristicTime | None = None,
) -> CharacteristicTime:
    """Return the largest time known to hold for (instance, ε, trust): no strategy with
    that privacy can beat it.

    Without an ε it is T*_KL. ε-local DP implies ε-global DP, so with local trust it is
    the larger of T*_ℓ and T*_ε.
    """
    if epsilon is None:
        return known or t_kl(instance)
    private = t_epsilon(instance, epsilon, known)
    if not check_trust(trust).randomised:
        return private
    return harder(t_local(instance, epsilon, known), private)


def harder(one: CharacteristicTime, other: CharacteristicTime) -> CharacteristicTime:
    """Return the larger one of two times that both hold."""
    return one if one.value > other.value else other


def switch_epsilon(instance: Instance, trust: str = "global") -> float:
    """Return the ε below which privacy with this trust costs samples, by the paper's
    formula.
    """
    return (
        switch_epsilon_local(instance)
        if check_trust(trust).randomised
        else switch_epsilon_global(instance)
    )


def t_relaxed(instance: Instance, epsilon: float, sigma: float = 0.5) -> CharacteristicTime:
    """Return T*_KL(ν_{G,ε}): Gaussian arms whose wide gaps are clipped by privacy (Eq.
    global_explicit_relaxation).
    """
    return _make_time(instance, *solve_equilibrium([_compute_relaxed(instance, epsilon, sigma)]))


def t_relaxed_beta(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5
) -> CharacteristicTime:
    """Return T*_KL,β(ν_{G,ε}), what AdaP-TT* aims at (Eq. relaxed_characteristic_time)."""
    return _make_time(
        instance,
        *solve_equilibrium_at(check_beta(beta), _compute_relaxed(instance, epsilon, sigma)),
    )


def local_factor(epsilon: float) -> float:
    """Return c(ε) = min{4, e^{2ε}} (e^ε − 1)² (Theorem: local lower bound); infinite
    past ε = 354, where floats end.
    """
    if check_epsilon(epsilon) > 354:
        return math.inf
    return min(4.0, math.exp(min(2 * epsilon, 2.0))) * math.expm1(epsilon) ** 2


def switch_epsilon_global(instance: Instance) -> float:
    """Return T*_TV/T*_KL: below this ε the TV part of the global lower bound takes over
    (Section 4.1).
    """
    return t_tv(instance).value / t_kl(instance).value


def switch_epsilon_local(instance: Instance) -> float:
    """Return the ε with c(ε) = T*_TV²/T*_KL, below which local privacy costs samples
    (Section 3.1), in closed form.
    """
    return inverse_local_factor(t_tv2(instance).value / t_kl(instance).value)


def inverse_local_factor(factor: float) -> float:
    """Return the ε with c(ε) = factor; 0.58224 for the factor 2 at which Pinsker's
    inequality is tight.
    """
    if not 0 < factor < math.inf:
        raise InvalidInputError(f"c(ε) is a positive number; got {factor}")
    root = math.sqrt(factor)
    if root <= 2:  # up to ε = log 2: e^ε (e^ε − 1) = root
        return math.log1p(2 * root / (1 + math.sqrt(1 + 4 * root)))
    return math.log1p(root / 2)


def free_epsilon(instance: Instance, known: CharacteristicTime | None = None) -> float:
    """Return the least ε with T*_ε = T*_KL: from it on privacy costs nothing (docs,
    "Theory and proofs", section 4.3). Infinite if the best mean is 1 or another one 0.

    It is as far in log odds as the optimal allocation of T*_KL moves a mean: both the
    best and the other one meet at m_a.
    """
    best, means = _split_bernoulli_arms(instance)
    if best == 1 or means.min() == 0:
        return math.inf
    allocation = (known or t_kl(instance)).allocation
    share = np.delete(allocation, instance.best) / allocation[instance.best]
    down, up = (best - means) * share / (1 + share), (best - means) / (1 + share)
    fall = np.log1p(down / (1 - best)) - np.log1p(-down / best)
    rise = np.log1p(up / means) - np.log1p(-up / (1 - means))
    return float(np.maximum(fall, rise).max())


def lower_bound(time: CharacteristicTime | float, delta: float) -> float:
    """Return T · kl(1−δ, δ): no δ-correct strategy has fewer expected samples; 0 for δ
    ≥ 1/2.
    """
    if check_delta(delta) >= 0.5:
        return 0.0
    return float(time) * (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def lower_bound_paper(time: CharacteristicTime | float, delta: float) -> float:
    """Return T · log(1/(2.4 δ)), the paper's looser form of `lower_bound`; 0 where the
    logarithm is negative.
    """
    return float(time) * max(0.0, -math.log(2.4 * check_delta(delta)))


def _split_bernoulli_arms(instance: Instance) -> tuple[float, Floats]:
    """Return the best mean and the others', for the quantities that hold for Bernoulli
    arms only.
    """
    _compute_gaps(instance)
    check_bounded(instance)
    if not isinstance(instance, Bernoulli):
        raise InvalidInputError(
            f"this quantity is for Bernoulli arms, not {type(instance).__name__}: use "
            "instance.as_bernoulli(), the arms as they are once each reward r is rounded to a "
            "Bernoulli(r) bit"
        )
    best = instance.best
    return instance.means[best], np.array(instance.means[:best] + instance.means[best + 1 :])


def _compute_log_odds_gap(high: float, low: float) -> float:
    """Return how far apart two means are in log odds; infinite if one of them is sure."""
    if high == 1 or low == 0:
        return math.inf
    return math.log(high) + math.log1p(-low) - math.log(low) - math.log1p(-high)


def _compute_gaps(instance: Instance) -> Floats:
    best, gaps = check_instance(instance).best, instance.gaps
    gaps = np.concatenate((gaps[:best], gaps[best + 1 :]))
    if gaps.min() < MIN_GAP:
        raise InvalidInputError(
            f"the best arm leads by only {gaps.min():.3g}: times are computed for gaps of at "
            f"least {MIN_GAP:g}"
        )
    return gaps


def _compute_gaussian(instance: Instance, sigma: float | None) -> Quadratic:
    own = check_instance(instance).sigma if sigma is None else check_sigma(sigma)
    return Quadratic(_compute_gaps(instance) ** 2 / (2 * own**2))


def _compute_relaxed(instance: Instance, epsilon: float, sigma: float) -> Quadratic:
    gaps = _compute_gaps(instance)
    check_bounded(instance)
    return Quadratic(
        gaps * np.minimum(gaps, check_epsilon(epsilon) / 2) / (2 * check_sigma(sigma) ** 2)
    )


def _solve_least(
    instance: Instance, known: CharacteristicTime | None, others: Sequence[Transport]
) -> CharacteristicTime:
    """Return the time for the least of the KL cost and these others; T*_KL itself if
    that is known and they do not count.
    """
    if known:
        weight = float(known.allocation[instance.best])
        shares = np.delete(known.allocation, instance.best) / weight
        if is_equilibrium(1 / (known.value * weight), shares, others):
            return known
    return _make_time(instance, *solve_equilibrium([Kl(*_split_bernoulli_arms(instance)), *others]))


def _make_time(instance: Instance, value: float, shares: Floats) -> CharacteristicTime:
    best = instance.best
    allocation = np.concatenate((shares[:best], (1.0,), shares[best:]))
    return CharacteristicTime(value, _make_read_only(allocation / allocation.sum()))


def _make_read_only(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
