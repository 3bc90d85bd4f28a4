"""Upper-bound constants and complexities: what the paper proves about its strategies,
as δ → 0.
"""

import math

import numpy as np

from discreet.errors import InvalidInputError
from discreet.instance import Instance, check_bounded
from discreet.roots import increasing_root
from discreet.theory.costs import gap_is_large
from discreet.theory.times import (
    CharacteristicTime,
    t_gaussian,
    t_gaussian_beta,
    t_relaxed_beta,
)
from discreet.trust import TRUSTS
from discreet.validate import check_arms, check_epsilon, check_sigma, quoted, real


def complexity(instance: Instance, sigma: float | None = None) -> float:
    """H(ν) = 2σ² Σ_a Δ_a^{-2}, between half the Gaussian time and that time (Eq.
    T_KL_Gaussian); the instance's own σ unless another is given.
    """
    own = instance.sigma if sigma is None else check_sigma(sigma)
    return float(2 * own**2 * (instance.gaps**-2.0).sum())


def private_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """H(ν, ε) = 2σ² Σ_a Δ_{ε,a}^{-2} with Δ_{ε,a} = ε(sqrt(1 + 2Δ_a/ε) − 1), as in the
    notation appendix.

    The main text has no 2σ²: its value is this one at σ = sqrt(1/2).
    """
    check_bounded(instance)
    ratio = 2 * instance.gaps / check_epsilon(epsilon)
    shrunk = epsilon * ratio / (np.sqrt(1 + ratio) + 1)
    return float(2 * check_sigma(sigma) ** 2 * (shrunk**-2.0).sum())


def relaxed_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """H(ν_{G,ε}) = 2σ² Σ_a 1/(Δ_a min{Δ_a, ε/2}); twice it bounds T*_KL(ν_{G,ε}) from
    above.
    """
    check_bounded(instance)
    clipped = instance.gaps * np.minimum(instance.gaps, check_epsilon(epsilon) / 2)
    return float(2 * check_sigma(sigma) ** 2 * (1 / clipped).sum())


def randomised_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """H(ν_ε) = (1 + 2/(e^ε − 1))² H(ν), of the arms after randomised response (Section
    3.2).
    """
    check_bounded(instance)
    return complexity(instance, sigma) / TRUSTS["local"].shrink(check_epsilon(epsilon)) ** 2


def ctb_tt_order(instance: Instance, epsilon: float, alpha: float = 1.2) -> float:
    """(H(ν_ε) log H(ν_ε))^α: CTB-TT's expected samples at any δ are of this order as
    H(ν_ε) grows (Section 3.2, s = α = 1.2, β = 1/2).

    The paper gives no constant, so it is an order and not a bound.
    """
    if not 1 < real(alpha) < math.inf:
        raise InvalidInputError(f"alpha must be a number larger than 1; got {quoted(alpha)}")
    hardness = randomised_complexity(instance, epsilon)
    return float((hardness * max(math.log(hardness), 0.0)) ** alpha)


def upper_constant_ttucb(
    instance: Instance, beta: float | str = 0.5, sigma: float | None = None
) -> float:
    """TTUCB: limsup of E[τ]/log(1/δ) is at most T*_β for distinct means (Section 2.2);
    with β = "ids" T* itself (Section 3.2).
    """
    return _share_time(instance, beta, sigma).value


def upper_constant_ttucb_batched(
    instance: Instance, beta: float = 0.5, sigma: float | None = None
) -> float:
    """TTUCB in batches: limsup of E[τ]/log(1/δ) is at most 2 T*_β, for distinct means
    (appendix on rounds).
    """
    return 2 * t_gaussian_beta(instance, beta, sigma).value


def batches_limit(instance: Instance, beta: float = 0.5, sigma: float | None = None) -> float:
    """TTUCB in batches: limsup of E[batches] − K log2 log(1/δ) is at most K log2(2
    T*_β), for distinct means (appendix on rounds).
    """
    return instance.arms * math.log2(upper_constant_ttucb_batched(instance, beta, sigma))


def upper_constant_ctb_tt(
    instance: Instance, epsilon: float, beta: float | str = 0.5, sigma: float = 0.5
) -> float:
    """CTB-TT: limsup of E[τ]/log(1/δ) is at most (1 + 2/(e^ε − 1))² T*_β, for distinct
    means (Section 3.2); with β = "ids" T* in place of T*_β.
    """
    check_bounded(instance)
    return _ctb_tt(_share_time(instance, beta, sigma), check_epsilon(epsilon))


def upper_constant_adap_tt(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5
) -> float:
    """AdaP-TT: limsup of E[τ]/log(1/δ) is at most 4 T*_β (1 + sqrt(1 +
    Δ_max²/(2σ⁴ε²))), for distinct means.
    """
    check_bounded(instance)
    return _adap_tt(instance, t_gaussian_beta(instance, beta, sigma), check_epsilon(epsilon), sigma)


def upper_constant_adap_tt_star(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5, proved: bool = False
) -> float:
    """AdaP-TT*: limsup of E[τ]/log(1/δ) for distinct means, by the main text's theorem
    (the appendix is older).

    For Δ_max ≥ ε/2 the printed constant has max{β, 1−β} where the paper's argument
    gives 1: `proved` takes 1.
    """
    times = t_gaussian_beta(instance, beta, sigma), t_relaxed_beta(instance, epsilon, beta, sigma)
    return _adap_tt_star(instance, *times, epsilon, 1.0 if proved else max(beta, 1 - beta), sigma)


def upper_constants(
    instance: Instance,
    epsilon: float,
    gaussian: CharacteristicTime,
    relaxed: CharacteristicTime,
    beta: float = 0.5,
    sigma: float = 0.5,
) -> dict[str, float]:
    """All upper-bound constants of private strategies, from T*_β and T*_β(ν_{G,ε})
    where these are known already.
    """
    star = instance, gaussian, relaxed, check_epsilon(epsilon)
    return {
        "ctb-tt": _ctb_tt(gaussian, epsilon),
        "ctb-tt-ids": _ctb_tt(t_gaussian(instance, sigma), epsilon),
        "adap-tt": _adap_tt(instance, gaussian, epsilon, sigma),
        "adap-tt-star": _adap_tt_star(*star, max(beta, 1 - beta), sigma),
        "adap-tt-star-proved": _adap_tt_star(*star, 1.0, sigma),
    }


def _share_time(instance: Instance, beta: float | str, sigma: float | None) -> CharacteristicTime:
    """T*_β, or T* for IDS."""
    if isinstance(beta, str):
        if beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {quoted(beta)}")
        return t_gaussian(instance, sigma)
    return t_gaussian_beta(instance, beta, sigma)


def _ctb_tt(gaussian: CharacteristicTime, epsilon: float) -> float:
    return gaussian.value / math.tanh(epsilon / 2) ** 2


def _adap_tt(
    instance: Instance, gaussian: CharacteristicTime, epsilon: float, sigma: float
) -> float:
    noise = float(instance.gaps.max()) / (math.sqrt(2) * sigma**2 * epsilon)
    return 4 * gaussian.value * (1 + math.hypot(1, noise))


def _adap_tt_star(
    instance: Instance,
    gaussian: CharacteristicTime,
    relaxed: CharacteristicTime,
    epsilon: float,
    share: float,
    sigma: float,
) -> float:
    if gap_is_large(max(instance.means), min(instance.means), epsilon / 2):
        return 2 * relaxed.value * g2(epsilon**2 * relaxed.value * share / 4) / sigma**2
    return 4 * gaussian.value * g1(float(instance.gaps.max()) / (sigma**2 * epsilon))


def g1(y: float) -> float:
    """The largest x with x² < x + y sqrt(2x) + y²/4 (Theorem: AdaP-TT*); g1(0) = 1."""
    if not 0 <= y < 1e100:
        raise InvalidInputError(f"g1 is defined for y ≥ 0, and computed below 1e100; got {y}")
    return increasing_root(lambda x: x - 1 - (y * math.sqrt(2 / x) + y**2 / (4 * x)), 1 + y)


def g2(y: float) -> float:
    """1 + 2/(sqrt(1 + 1/y) − 1) = y (1 + sqrt(1 + 1/y))² (Theorem: AdaP-TT*); tends to
    1 as y → 0.
    """
    if not 0 < y < math.inf:
        raise InvalidInputError(f"g2 is defined for y > 0; got {y}")
    return (math.sqrt(y) + math.sqrt(y + 1)) ** 2


def rounds_bound(samples: float, arms: int, episodes: str = "arm") -> float:
    """Rounds of adaptivity of a doubling strategy with `samples` expected samples
    (appendix on rounds).

    K log2 E[τ] with one episode per arm, log2 E[τ] with one global episode. Of three or
    more arms the paper's global one has no finite E[τ]; if arms yield it has (docs,
    "Theory and proofs", section 5).
    """
    known = ("arm", "global", "global-yielding")
    if episodes not in known:
        raise InvalidInputError(f"episodes are one of {', '.join(known)}; got {quoted(episodes)}")
    if not 1 <= samples < math.inf:
        raise InvalidInputError(f"the expected samples must be at least 1; got {samples}")
    check_arms(arms)
    return (arms if episodes == "arm" else 1) * math.log2(samples)
