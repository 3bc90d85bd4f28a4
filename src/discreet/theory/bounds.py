"""Everything the theory says of one instance: how many samples, how to spread them,
when privacy is free.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._types import Floats
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, Gaussian, Instance, check_bounded, check_instance
from discreet.numerics import solve_increasing
from discreet.scale import YES_NO
from discreet.tabular import Tabular
from discreet.theory import times
from discreet.theory.divergences import is_gap_large, kl_up
from discreet.theory.times import (
    CharacteristicTime,
    lower_bound,
    t_gaussian,
    t_gaussian_beta,
    t_relaxed_beta,
    tightest,
)
from discreet.trust import TRUSTS, check_trust
from discreet.validation import (
    check_arms,
    check_delta,
    check_epsilon,
    check_levels,
    check_sigma,
    convert_to_float,
    quote,
)


def complexity(instance: Instance, sigma: float | None = None) -> float:
    """Return H(ν) = 2σ² Σ_a Δ_a^{-2}, between half the Gaussian time and that time (Eq.
    T_KL_Gaussian); the instance's own σ unless another is given.
    """
    own = instance.sigma if sigma is None else check_sigma(sigma)
    return float(2 * own**2 * (instance.gaps**-2.0).sum())


def private_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """Return H(ν, ε) = 2σ² Σ_a Δ_{ε,a}^{-2} with Δ_{ε,a} = ε(sqrt(1 + 2Δ_a/ε) − 1), as
    in the notation appendix.

    The main text has no 2σ²: its value is this one at σ = sqrt(1/2).
    """
    check_bounded(instance)
    ratio = 2 * instance.gaps / check_epsilon(epsilon)
    shrunk = epsilon * ratio / (np.sqrt(1 + ratio) + 1)
    return float(2 * check_sigma(sigma) ** 2 * (shrunk**-2.0).sum())


def relaxed_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """Return H(ν_{G,ε}) = 2σ² Σ_a 1/(Δ_a min{Δ_a, ε/2}); twice it bounds T*_KL(ν_{G,ε})
    from above.
    """
    check_bounded(instance)
    clipped = instance.gaps * np.minimum(instance.gaps, check_epsilon(epsilon) / 2)
    return float(2 * check_sigma(sigma) ** 2 * (1 / clipped).sum())


def randomised_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """Return H(ν_ε) = (1 + 2/(e^ε − 1))² H(ν), of the arms after randomised response
    (Section 3.2).
    """
    check_bounded(instance)
    return complexity(instance, sigma) / TRUSTS["local"].shrink(check_epsilon(epsilon)) ** 2


def ctb_tt_order(instance: Instance, epsilon: float, alpha: float = 1.2) -> float:
    """Return (H(ν_ε) log H(ν_ε))^α: CTB-TT's expected samples at any δ are of this
    order as H(ν_ε) grows (Section 3.2, s = α = 1.2, β = 1/2).

    The paper gives no constant, so it is an order and not a bound.
    """
    if not 1 < convert_to_float(alpha) < math.inf:
        raise InvalidInputError(f"alpha must be a number larger than 1; got {quote(alpha)}")
    hardness = randomised_complexity(instance, epsilon)
    return float((hardness * max(math.log(hardness), 0.0)) ** alpha)


def upper_constant_ttucb(
    instance: Instance, beta: float | str = 0.5, sigma: float | None = None
) -> float:
    """Return the constant of TTUCB: limsup of E[τ]/log(1/δ) is at most T*_β for
    distinct means (Section 2.2); with β = "ids" T* itself (Section 3.2).
    """
    return _compute_share_time(instance, beta, sigma).value


def upper_constant_ttucb_batched(
    instance: Instance, beta: float = 0.5, sigma: float | None = None
) -> float:
    """Return the constant of TTUCB in batches: limsup of E[τ]/log(1/δ) is at most 2
    T*_β, for distinct means (appendix on rounds).
    """
    return 2 * t_gaussian_beta(instance, beta, sigma).value


def batches_limit(instance: Instance, beta: float = 0.5, sigma: float | None = None) -> float:
    """Return the bound on the batches of TTUCB in batches: limsup of E[batches] − K
    log2 log(1/δ) is at most K log2(2 T*_β), for distinct means (appendix on rounds).
    """
    return instance.arms * math.log2(upper_constant_ttucb_batched(instance, beta, sigma))


def upper_constant_ctb_tt(
    instance: Instance, epsilon: float, beta: float | str = 0.5, sigma: float = 0.5
) -> float:
    """Return the constant of CTB-TT: limsup of E[τ]/log(1/δ) is at most (1 + 2/(e^ε −
    1))² T*_β, for distinct means (Section 3.2); with β = "ids" T* in place of T*_β.
    """
    check_bounded(instance)
    return _compute_ctb_tt(_compute_share_time(instance, beta, sigma), check_epsilon(epsilon))


def upper_constant_adap_tt(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5
) -> float:
    """Return the constant of AdaP-TT: limsup of E[τ]/log(1/δ) is at most 4 T*_β (1 +
    sqrt(1 + Δ_max²/(2σ⁴ε²))), for distinct means.
    """
    check_bounded(instance)
    return _compute_adap_tt(
        instance, t_gaussian_beta(instance, beta, sigma), check_epsilon(epsilon), sigma
    )


def upper_constant_adap_tt_star(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5, proved: bool = False
) -> float:
    """Return the constant of AdaP-TT*: limsup of E[τ]/log(1/δ) for distinct means, by
    the main text's theorem (the appendix is older).

    For Δ_max ≥ ε/2 the printed constant has max{β, 1−β} where the paper's argument
    gives 1: `proved` takes 1.
    """
    times = t_gaussian_beta(instance, beta, sigma), t_relaxed_beta(instance, epsilon, beta, sigma)
    return _compute_adap_tt_star(
        instance, *times, epsilon, 1.0 if proved else max(beta, 1 - beta), sigma
    )


def upper_constants(
    instance: Instance,
    epsilon: float,
    gaussian: CharacteristicTime,
    relaxed: CharacteristicTime,
    beta: float = 0.5,
    sigma: float = 0.5,
) -> dict[str, float]:
    """Return all upper-bound constants of private strategies, from T*_β and
    T*_β(ν_{G,ε}) if these are known already.
    """
    star = instance, gaussian, relaxed, check_epsilon(epsilon)
    return {
        "ctb-tt": _compute_ctb_tt(gaussian, epsilon),
        "ctb-tt-ids": _compute_ctb_tt(t_gaussian(instance, sigma), epsilon),
        "adap-tt": _compute_adap_tt(instance, gaussian, epsilon, sigma),
        "adap-tt-star": _compute_adap_tt_star(*star, max(beta, 1 - beta), sigma),
        "adap-tt-star-proved": _compute_adap_tt_star(*star, 1.0, sigma),
    }


def _compute_share_time(
    instance: Instance, beta: float | str, sigma: float | None
) -> CharacteristicTime:
    """Return T*_β, or T* for IDS."""
    if isinstance(beta, str):
        if beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {quote(beta)}")
        return t_gaussian(instance, sigma)
    return t_gaussian_beta(instance, beta, sigma)


def _compute_ctb_tt(gaussian: CharacteristicTime, epsilon: float) -> float:
    return gaussian.value / math.tanh(epsilon / 2) ** 2


def _compute_adap_tt(
    instance: Instance, gaussian: CharacteristicTime, epsilon: float, sigma: float
) -> float:
    noise = float(instance.gaps.max()) / (math.sqrt(2) * sigma**2 * epsilon)
    return 4 * gaussian.value * (1 + math.hypot(1, noise))


def _compute_adap_tt_star(
    instance: Instance,
    gaussian: CharacteristicTime,
    relaxed: CharacteristicTime,
    epsilon: float,
    share: float,
    sigma: float,
) -> float:
    if is_gap_large(max(instance.means), min(instance.means), epsilon / 2):
        return 2 * relaxed.value * g2(epsilon**2 * relaxed.value * share / 4) / sigma**2
    return 4 * gaussian.value * g1(float(instance.gaps.max()) / (sigma**2 * epsilon))


def g1(y: float) -> float:
    """Return the largest x with x² < x + y sqrt(2x) + y²/4 (Theorem: AdaP-TT*); g1(0) =
    1.
    """
    if not 0 <= y < 1e100:
        raise InvalidInputError(f"g1 is defined for y ≥ 0, and computed below 1e100; got {y}")
    return solve_increasing(lambda x: x - 1 - (y * math.sqrt(2 / x) + y**2 / (4 * x)), 1 + y)


def g2(y: float) -> float:
    """Return 1 + 2/(sqrt(1 + 1/y) − 1) = y (1 + sqrt(1 + 1/y))² (Theorem: AdaP-TT*);
    tends to 1 as y → 0.
    """
    if not 0 < y < math.inf:
        raise InvalidInputError(f"g2 is defined for y > 0; got {y}")
    return (math.sqrt(y) + math.sqrt(y + 1)) ** 2


def rounds_bound(samples: float, arms: int, episodes: str = "arm") -> float:
    """Bound the rounds of adaptivity of a doubling strategy with `samples` expected
    samples (appendix on rounds).

    K log2 E[τ] with one episode per arm, log2 E[τ] with one global episode. Of three or
    more arms the paper's global one has no finite E[τ]; if arms yield it has (docs,
    "Theory and proofs", section 5).
    """
    known = ("arm", "global", "global-yielding")
    if episodes not in known:
        raise InvalidInputError(f"episodes are one of {', '.join(known)}; got {quote(episodes)}")
    if not 1 <= samples < math.inf:
        raise InvalidInputError(f"the expected samples must be at least 1; got {samples}")
    check_arms(arms)
    return (arms if episodes == "arm" else 1) * math.log2(samples)


def least_samples(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> float:
    """Return the largest lower bound known for all strategies with that privacy: by the
    tightest time for Bernoulli arms and for Gaussian ones, the floor for others.
    """
    if instance.is_bounded and instance.outcomes != YES_NO:
        return floor_bound(instance, delta, epsilon, trust)
    arms = instance.as_bernoulli() if instance.is_bounded else instance
    return lower_bound(tightest(arms, epsilon, trust), delta)


def floor_bound(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> float:
    """Bound from below the samples on average of every strategy that is δ-correct for
    all laws on [0, 1], and ε-private with this trust; 0 for δ ≥ 1/2.

    Without an ε it is the floor of strategies without privacy.
    """
    return float(floor_by_arm(instance, delta, epsilon, trust).sum())


def floor_by_arm(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> Floats:
    """Return the floor under the expected samples of each arm, of which `floor_bound`
    is the sum.
    """
    odds = max(0.0, math.log1p(-check_delta(delta)) - math.log(delta))
    share = _find_share(instance)
    model = check_trust(trust)
    if epsilon is None or not model.is_private:
        return (1 - delta) * odds / _compute_cost(share, math.inf)
    found = (1 - delta) * odds / _compute_cost(share, check_epsilon(epsilon))
    if model.randomised:
        found = np.maximum(found, (1 - 2 * delta) * odds / _compute_response_cost(share, epsilon))
    return found


def _find_share(instance: Instance) -> Floats:
    """Return which share of an arm's rewards must become 1, for the best arm 0, to
    change who is best.
    """
    check_bounded(instance)
    room = 1 - np.array(instance.means)
    room[instance.best] = instance.means[instance.best]
    return np.asarray(np.minimum(instance.gaps / room, 1.0))


def _compute_cost(share: Floats, epsilon: float) -> Floats:
    """Return −log(1 − q(1 − e^−ε)), what a sample tells at most about such a change; q
    = `share`.
    """
    with np.errstate(divide="ignore"):
        told = -np.log1p(share * math.expm1(-epsilon))
    return np.asarray(np.minimum(told, epsilon))


def _compute_response_cost(share: Floats, epsilon: float) -> Floats:
    """Return what an ε-private message tells at most: the kl of two randomised
    responses, to 0 and to a bit that is 1 with probability q = `share`.
    """
    decay = math.exp(-min(epsilon, 600.0))
    low, high = np.full_like(share, decay / (1 + decay)), np.full_like(share, 1 / (1 + decay))
    off = share * math.tanh(epsilon / 2)
    return kl_up(low, high, off, low + off, high * ((1 - share) + share * decay))


LEFT_OUT = ("floor", "floor_global", "floor_local", "t_tv", "t_tv2")
"""What is not written where there is none."""


@dataclass(frozen=True, eq=False)
class PrivateBounds:
    """What holds at one privacy level ε. Times and constants multiply log(1/δ); bounds
    are numbers of samples.

    `lower_bound_local` follows from the local time T*_ℓ alone; as ε-local DP implies
    ε-global DP, a local strategy also obeys the global bound, and
    `lower_bound_local_both` is the larger of the two. The costs say how many times as
    many samples are needed as without privacy.

    Everything except the floors is for Bernoulli arms, or for strategies that round
    each outcome to a bit. The floors, which exist for arms that are not Bernoulli, hold
    for every strategy.
    """

    epsilon: float
    t_local: CharacteristicTime
    t_global: CharacteristicTime
    t_epsilon: CharacteristicTime
    t_relaxed: CharacteristicTime
    t_relaxed_beta: CharacteristicTime
    lower_bound_local: float
    lower_bound_global: float
    lower_bound_local_both: float
    lower_bound_local_paper: float
    lower_bound_global_paper: float
    cost_local: float
    cost_global: float
    regime_local: str
    regime_global: str
    upper_constant: dict[str, float]
    private_complexity: float
    relaxed_complexity: float
    randomised_complexity: float
    ctb_tt_order: float
    floor_global: float | None = None
    floor_local: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON; times as numbers, their allocations under
        `allocation`.
        """
        return _convert_to_plain(vars(self))


@dataclass(frozen=True, eq=False)
class Bounds(
    Tabular,
    rows="per_epsilon",
    shown="epsilon floor_global floor_local lower_bound_global lower_bound_local_both cost_global "
    "cost_local best delta floor lower_bound rounded_to_bits",
):
    """The characteristic times of an instance, and its bounds at an error rate δ and
    some privacy levels.

    If the arms are not Bernoulli, `floor` is a lower bound for all strategies that keep
    their error rate for all laws on [0, 1]. The times and the other bounds are then
    those of the arms after each outcome is rounded at random to a bit
    (`rounded_to_bits`): they hold for strategies that round in this way, and others may
    take fewer samples.

    Gaussian arms have no private quantities: no total variation, no switch points, and
    privacy is never free.
    """

    instance: Instance
    delta: float
    beta: float
    sigma: float
    t_kl: CharacteristicTime
    t_kl_beta: CharacteristicTime
    t_gaussian: CharacteristicTime
    t_gaussian_beta: CharacteristicTime
    t_tv: CharacteristicTime | None
    t_tv2: CharacteristicTime | None
    complexity: float
    lower_bound: float
    lower_bound_paper: float
    switch_epsilon: dict[str, float]
    free_epsilon: float
    upper_constant: dict[str, float]
    batches_limit: float
    per_epsilon: tuple[PrivateBounds, ...]
    floor: float | None = None

    @property
    def rounded_to_bits(self) -> bool:
        """Return whether everything except the floors is about outcomes rounded to
        bits.
        """
        return self.floor is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON; an infinite `free_epsilon` (privacy is never
        free) becomes null.
        """
        fields = dict(vars(self))
        fields["instance"] = self.instance.describe()
        fields["best"] = self.instance.names[self.instance.best]
        fields["free_epsilon"] = self.free_epsilon if math.isfinite(self.free_epsilon) else None
        fields["per_epsilon"] = [row.to_dict() for row in self.per_epsilon]
        if self.rounded_to_bits:
            fields["rounded_to_bits"] = True
        return _convert_to_plain(fields)


def bounds(
    instance: Instance,
    epsilons: Sequence[float] = (),
    delta: float = 0.05,
    beta: float = 0.5,
    sigma: float | None = None,
) -> Bounds:
    """Return all quantities of `theory` for an instance: without privacy, and for each
    ε of `epsilons`.

    The leader's share in the β-times is `beta` (β). The standard deviation in the
    Gaussian times is `sigma` (σ): if left out, 1/2, or that of the arms if they are
    Gaussian. If the arms are not Bernoulli, only the floor holds for every strategy;
    the rest holds once each outcome is rounded to a bit. Gaussian arms take no ε.
    """
    levels = check_levels(epsilons)
    arms = _choose_arms(instance)
    if levels:
        check_bounded(arms)
    sigma = arms.sigma if sigma is None else sigma
    t_kl, t_gaussian = times.t_kl(arms), times.t_gaussian(arms, sigma)
    t_beta = times.t_gaussian_beta(arms, beta, sigma)
    plain = Bounds(
        instance=instance,
        delta=delta,
        beta=beta,
        sigma=sigma,
        t_kl=t_kl,
        t_kl_beta=times.t_kl_beta(arms, beta),
        t_gaussian=t_gaussian,
        t_gaussian_beta=t_beta,
        t_tv=None,
        t_tv2=None,
        complexity=complexity(arms, sigma),
        lower_bound=times.lower_bound(t_kl, delta),
        lower_bound_paper=times.lower_bound_paper(t_kl, delta),
        switch_epsilon={},
        free_epsilon=math.inf,
        upper_constant={
            "ttucb": t_beta.value,
            "ttucb-ids": t_gaussian.value,
            "ttucb-batched": 2 * t_beta.value,
        },
        batches_limit=batches_limit(arms, beta, sigma),
        per_epsilon=(),
    )
    if arms.is_bounded:
        plain = _add_private(plain)
    rows = tuple(_bound_at(plain, epsilon) for epsilon in levels)
    return Bounds(**{**vars(plain), "per_epsilon": rows})


def _add_private(plain: Bounds) -> Bounds:
    """Add what is about privacy at any ε, and the floor."""
    arms, t_kl = _choose_arms(plain.instance), plain.t_kl
    t_tv, t_tv2 = times.t_tv(arms), plain.t_gaussian.scaled(1 / (2 * plain.sigma**2))
    yes_no = plain.instance.outcomes == YES_NO
    return replace(
        plain,
        t_tv=t_tv,
        t_tv2=t_tv2,
        switch_epsilon={
            "local": times.inverse_local_factor(t_tv2.value / t_kl.value),
            "global": t_tv.value / t_kl.value,
        },
        free_epsilon=times.free_epsilon(arms, t_kl),
        floor=None if yes_no else floor_bound(plain.instance, plain.delta),
    )


def _choose_arms(instance: Instance) -> Instance:
    """Return the arms that the times are for: Bernoulli or Gaussian ones."""
    known = isinstance(instance, Bernoulli | Gaussian)
    return instance if known else check_instance(instance).as_bernoulli()


def _bound_at(plain: Bounds, epsilon: float) -> PrivateBounds:
    instance, delta, beta, sigma = (
        _choose_arms(plain.instance),
        plain.delta,
        plain.beta,
        plain.sigma,
    )
    t_local, t_global, t_epsilon = (
        time(instance, epsilon, plain.t_kl)
        for time in (times.t_local, times.t_global, times.t_epsilon)
    )
    t_relaxed_beta = times.t_relaxed_beta(instance, epsilon, beta, sigma)
    hardest = times.harder(t_local, t_epsilon)
    floors: dict[str, float] = {}
    if plain.rounded_to_bits:
        for trust in ("global", "local"):
            floors[f"floor_{trust}"] = floor_bound(plain.instance, delta, epsilon, trust)
    return PrivateBounds(
        epsilon=float(epsilon),
        t_local=t_local,
        t_global=t_global,
        t_epsilon=t_epsilon,
        t_relaxed=times.t_relaxed(instance, epsilon, sigma),
        t_relaxed_beta=t_relaxed_beta,
        lower_bound_local=times.lower_bound(t_local, delta),
        lower_bound_global=times.lower_bound(t_epsilon, delta),
        lower_bound_local_both=times.lower_bound(hardest, delta),
        lower_bound_local_paper=times.lower_bound_paper(t_local, delta),
        lower_bound_global_paper=times.lower_bound_paper(t_global, delta),
        cost_local=hardest.value / plain.t_kl.value,
        cost_global=t_epsilon.value / plain.t_kl.value,
        regime_local="high" if epsilon < plain.switch_epsilon["local"] else "low",
        regime_global=_name_global_regime(epsilon, plain),
        upper_constant=upper_constants(
            instance, epsilon, plain.t_gaussian_beta, t_relaxed_beta, beta, sigma
        ),
        private_complexity=private_complexity(instance, epsilon, sigma),
        relaxed_complexity=relaxed_complexity(instance, epsilon, sigma),
        randomised_complexity=randomised_complexity(instance, epsilon, sigma),
        ctb_tt_order=ctb_tt_order(instance, epsilon),
        **floors,
    )


def _name_global_regime(epsilon: float, plain: Bounds) -> str:
    if epsilon >= plain.free_epsilon:
        return "free"
    return "high" if epsilon < plain.switch_epsilon["global"] else "low"


def _convert_to_plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return times as numbers, their allocations gathered under one key, and neither
    floors nor times if there are none.
    """
    fields = {key: some for key, some in fields.items() if some is not None or key not in LEFT_OUT}
    times = {key: value for key, value in fields.items() if isinstance(value, CharacteristicTime)}
    result = {key: value.value if key in times else value for key, value in fields.items()}
    return {**result, "allocation": {key: time.allocation.tolist() for key, time in times.items()}}
