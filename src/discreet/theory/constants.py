"""Upper-bound constants and complexities: what the paper proves about its strategies,
as δ → 0.
"""

import math

import numpy as np

from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.roots import increasing_root
from discreet.theory.costs import gap_is_large
from discreet.theory.times import CharacteristicTime, t_gaussian_beta, t_relaxed_beta
from discreet.validate import check_arms, check_epsilon, check_sigma, quoted


def complexity(instance: Instance, sigma: float = 0.5) -> float:
    """H(ν) = 2σ² Σ_a Δ_a^{-2}, between half the Gaussian time and that time (Eq.
    T_KL_Gaussian).
    """
    return float(2 * check_sigma(sigma) ** 2 * (instance.gaps**-2.0).sum())


def private_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """H(ν, ε) = 2σ² Σ_a Δ_{ε,a}^{-2} with Δ_{ε,a} = ε(sqrt(1 + 2Δ_a/ε) − 1), as in the
    notation appendix.

    The main text has no 2σ²: its value is this one at σ = sqrt(1/2).
    """
    ratio = 2 * instance.gaps / check_epsilon(epsilon)
    shrunk = epsilon * ratio / (np.sqrt(1 + ratio) + 1)
    return float(2 * check_sigma(sigma) ** 2 * (shrunk**-2.0).sum())


def relaxed_complexity(instance: Instance, epsilon: float, sigma: float = 0.5) -> float:
    """H(ν_{G,ε}) = 2σ² Σ_a 1/(Δ_a min{Δ_a, ε/2}); twice it bounds T*_KL(ν_{G,ε}) from
    above.
    """
    clipped = instance.gaps * np.minimum(instance.gaps, check_epsilon(epsilon) / 2)
    return float(2 * check_sigma(sigma) ** 2 * (1 / clipped).sum())


def upper_constant_ctb_tt(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5
) -> float:
    """CTB-TT: limsup of E[τ]/log(1/δ) is at most (1 + 2/(e^ε − 1))² T*_β, for distinct
    means (Section 3.2).
    """
    return _ctb_tt(t_gaussian_beta(instance, beta, sigma), check_epsilon(epsilon))


def upper_constant_adap_tt(
    instance: Instance, epsilon: float, beta: float = 0.5, sigma: float = 0.5
) -> float:
    """AdaP-TT: limsup of E[τ]/log(1/δ) is at most 4 T*_β (1 + sqrt(1 +
    Δ_max²/(2σ⁴ε²))), for distinct means.
    """
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
    """All upper-bound constants by strategy, from T*_β and T*_β(ν_{G,ε}) where these
    are known already.
    """
    star = instance, gaussian, relaxed, check_epsilon(epsilon)
    return {
        "ctb-tt": _ctb_tt(gaussian, epsilon),
        "adap-tt": _adap_tt(instance, gaussian, epsilon, sigma),
        "adap-tt-star": _adap_tt_star(*star, max(beta, 1 - beta), sigma),
        "adap-tt-star-proved": _adap_tt_star(*star, 1.0, sigma),
    }


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

    K log2 E[τ] with one episode per arm, log2 E[τ] with one global episode.
    """
    if episodes not in ("arm", "global"):
        raise InvalidInputError(f"episodes are 'arm' or 'global'; got {quoted(episodes)}")
    if not 1 <= samples < math.inf:
        raise InvalidInputError(f"the expected samples must be at least 1; got {samples}")
    check_arms(arms)
    return (arms if episodes == "arm" else 1) * math.log2(samples)
