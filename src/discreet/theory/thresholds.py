"""Stopping thresholds, confidence bonuses and radii, as functions of counts and as
tables over phases.

Counts may be scalars or arrays (NumPy broadcasting), so a table is a threshold on a
grid of counts. Names follow the paper: c^G `c_gaussian`, c^{G,ε} `c_private`, the cases
of c̃^{G,ε} `c_star_low` and `c_star_high`. Those that are not the paper's are proved in
the docs ("Theory and proofs"): SHARP `c_star_sharp`, with how the cases are combined,
and c^KL `c_bernoulli`.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError
from discreet.jit import jit
from discreet.numerics import minimise, solve_increasing
from discreet.validation import (
    check_arms,
    check_counts,
    check_delta,
    check_epsilon,
    check_gamma,
    check_rho,
    check_sigma,
    quote,
)

SIGMA = 0.5  # rewards in [0, 1] are 1/2-sub-Gaussian


def c_g(x: ArrayLike) -> Floats:
    """Return C_G(x), the least of (g_G(λ) + x)/λ over λ in (1/2, 1] (Eq.
    def_C_gaussian_KK18Mixtures).

    The valley is searched in log(1 − λ), in which it is never narrow.
    """
    x = np.asarray(x, dtype=np.float64)
    if not ((x > 0) & (x < math.inf)).all():
        raise InvalidInputError("C_G is defined for finite x > 0")
    return np.frombuffer(_compute_c_g(x.tobytes())).reshape(x.shape).copy()[()]


@lru_cache(maxsize=64)
def _compute_c_g(numbers: bytes) -> bytes:
    """Return C_G of these numbers; kept, as strategies that differ in other parts share
    their thresholds.
    """
    x = np.frombuffer(numbers)

    def value(log_rest: Floats) -> Floats:
        lam = -np.expm1(log_rest)
        exploration = 2 * lam - 2 * lam * np.log(4 * lam) + np.log(zeta(2 * lam)) - log_rest / 2
        return np.asarray((exploration + x) / lam)

    found = minimise(value, np.full_like(x, -40.0), np.full_like(x, math.log(0.5) - 1e-9))
    return found.tobytes()


def zeta(s: ArrayLike) -> Floats:
    """Return Riemann's ζ(s) for s in (1, 2], by Euler–Maclaurin summation from n = 10
    on.
    """
    s = np.asarray(s, dtype=np.float64)
    start = 10.0
    total = sum(n**-s for n in range(1, 10)) + start ** (1 - s) / (s - 1) + start**-s / 2
    term = s * start ** (-s - 1)
    for k, bernoulli in enumerate(
        (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
    ):
        total = total + bernoulli * term
        term = term * (s + 2 * k + 1) * (s + 2 * k + 2) / start**2
    return np.asarray(total)


def w_bar(x: ArrayLike) -> Floats:
    """Return W̄_{-1}(x): the w ≥ 1 with w − log w = x ≥ 1 (Lemma property_W_lambert),
    by Newton on v = w − 1.
    """
    x = np.asarray(x, dtype=np.float64)
    if not ((x >= 1) & (x < math.inf)).all():
        raise InvalidInputError("W̄ is defined for finite x ≥ 1")
    rest = x - 1
    v = np.where(rest < 1, np.sqrt(2 * rest) + 2 * rest / 3, rest + np.log1p(rest))
    for _ in range(6):
        with np.errstate(invalid="ignore"):
            v = np.where(v > 0, v - (v - np.log1p(v) - rest) * (1 + v) / v, v)
    return np.asarray(1 + v)


def compute_phase_number(count: ArrayLike) -> Floats:
    """Return k(x) = log2 x + 2 (Eq. TTUCB_global_v1): the phase of an arm whose local
    count is x, from phase 2 on.
    """
    return np.asarray(np.log2(check_counts(count)) + 2)


def c_gaussian(count_a: ArrayLike, count_b: ArrayLike, arms: int, delta: float) -> Floats:
    """Return c^G: for means of all samples so far, without privacy (Eq.
    threshold_non_private).
    """
    return _compute_c_gaussian(
        check_counts(count_a),
        check_counts(count_b),
        check_arms(arms),
        np.asarray(check_delta(delta)),
    )


def c_bernoulli(count_a: ArrayLike, count_b: ArrayLike, arms: int, delta: float) -> Floats:
    """Return c^KL = log((K−1)/δ) + log(4 sqrt(n m)), against W^KL: for means of all
    samples so far, of rewards in [0, 1]; proved in the docs by a mixture over Bernoulli
    laws.
    """
    a, b = check_counts(count_a), check_counts(count_b)
    return np.asarray(kl_constant(arms, delta) + np.log(a) / 2 + np.log(b) / 2)


def kl_constant(arms: int, delta: float) -> float:
    """Return log(4 (K−1)/δ), the part of c^KL that does not depend on counts."""
    return math.log(4 * (check_arms(arms) - 1) / check_delta(delta))


def c_forgetting(
    count_a: ArrayLike, count_b: ArrayLike, arms: int, delta: float, s: float = 2.0
) -> Floats:
    """Return c^G(ω, δ/(ζ(s)² k_a^s k_b^s)), s > 1: for means of the last phase without
    noise, DAF at ε = ∞ (Lemma delta_correct_threshold_TTUCB_non_private).
    """
    a, b = check_counts(count_a), check_counts(count_b)
    if not 1 < s <= 2:
        raise InvalidInputError(f"s lies in (1, 2] here; got {quote(s)}")
    spent = float(zeta(s)) ** 2 * (compute_phase_number(a) * compute_phase_number(b)) ** s
    return _compute_c_gaussian(a, b, check_arms(arms), check_delta(delta) / spent)


def c_private(
    count_a: ArrayLike,
    count_b: ArrayLike,
    arms: int,
    delta: float,
    epsilon: float,
    sigma: float = SIGMA,
) -> Floats:
    """Return c^{G,ε} of AdaP-TT (Eq. threshold_TTUCB_global_v1)."""
    a, b = check_counts(count_a), check_counts(count_b)
    arms, delta, scale = (
        check_arms(arms),
        check_delta(delta),
        check_epsilon(epsilon) * check_sigma(sigma),
    )
    spent = compute_phase_number(a) ** 2 * compute_phase_number(b) ** 2 * math.pi**4 / 18
    noise = sum(
        np.log(math.pi**2 * arms * compute_phase_number(n) ** 2 / (3 * delta)) ** 2 / n
        for n in (a, b)
    )
    return 2 * _compute_c_gaussian(a, b, arms, delta / spent) + noise / scale**2


def h(count: ArrayLike, arms: int, delta: float) -> Floats:
    """Return h(x, δ): bounds N (mean − μ)²/(2σ²) for all arms and phases at once (Lemma
    on AdaP-TT*'s δ-correctness).
    """
    count = check_counts(count)
    inner = 2 * _compute_laplace_log(count, arms, delta) + 4 * np.log(4 + np.log(count)) + 0.5
    return w_bar(inner) / 2


def c_star_low(
    count_a: ArrayLike,
    count_b: ArrayLike,
    arms: int,
    delta: float,
    epsilon: float,
    sigma: float = SIGMA,
) -> Floats:
    """Return the first case of c̃^{G,ε}, to be compared with W^G (Eq.
    threshold_TTUCB_global_v2).
    """
    a, b = check_counts(count_a), check_counts(count_b)
    cross = sum(
        np.sqrt(h(n, arms, delta) / n) * _compute_laplace_log(n, arms, delta) for n in (a, b)
    )
    half = c_private(a, b, arms, 2 * delta / 3, epsilon, sigma) / 2
    return half + math.sqrt(2) / (epsilon * sigma) * cross


def c_star_high(
    count_a: ArrayLike,
    count_b: ArrayLike,
    arms: int,
    delta: float,
    epsilon: float,
    sigma: float = SIGMA,
) -> Floats:
    """Return the second case of c̃^{G,ε} as printed, for gaps ≥ ε/2 and W^{G,ε} (Eq.
    threshold_TTUCB_global_v2).
    """
    a, b = check_counts(count_a), check_counts(count_b)
    epsilon, sigma = check_epsilon(epsilon), check_sigma(sigma)
    later = np.maximum(compute_phase_number(a), compute_phase_number(b))
    spread = np.sqrt(a * h(a, arms, delta)) + np.sqrt(b * h(b, arms, delta))
    noise = np.log(math.pi**2 * arms * later / (2 * delta)) / (2 * sigma**2)
    return noise + epsilon / (2 * math.sqrt(2) * sigma) * spread


def c_star_sharp(
    count_a: ArrayLike,
    count_b: ArrayLike,
    arms: int,
    delta: float,
    epsilon: float,
    sigma: float = SIGMA,
) -> Floats:
    """Return the second case with each arm's share g of the harmonic mean (SHARP),
    smaller and with a full proof (docs).
    """
    a, b = check_counts(count_a), check_counts(count_b)
    epsilon, sigma, total = check_epsilon(epsilon), check_sigma(sigma), a + b
    noise = (
        b * _compute_laplace_log(a, arms, delta) + a * _compute_laplace_log(b, arms, delta)
    ) / total
    spread = (b * np.sqrt(a * h(a, arms, delta)) + a * np.sqrt(b * h(b, arms, delta))) / total
    return np.asarray(noise / (4 * sigma**2) + epsilon / (2 * math.sqrt(2) * sigma) * spread)


def bonus_gaussian(
    count: ArrayLike, total: float, sigma: float = SIGMA, s: float = 1.2, alpha: float = 1.2
) -> Floats:
    """Return b^G of an arm with this count out of `total` (Eq. TTUCB_Gaussian)."""
    count = check_counts(count)
    return np.asarray(np.sqrt(2 * sigma**2 * alpha * (1 + s) * np.log(total) / count))


def bonus_private(count: ArrayLike, epsilon: float) -> Floats:
    """Return b^{G,ε} of an arm with this local count (Eq. TTUCB_global_v1)."""
    rate = compute_phase_number(count) / check_counts(count)
    return np.asarray(np.sqrt(rate) + rate / epsilon)


def empirical_gaussian(count_a: ArrayLike, count_b: ArrayLike, delta: float) -> Floats:
    """Return the published experiments' log((1 + log t)/δ), with t the samples behind
    the two means; no guarantee.
    """
    samples = check_counts(count_a) + check_counts(count_b)
    return np.asarray(np.log((1 + np.log(samples)) / check_delta(delta)))


def empirical_private(
    count_a: ArrayLike, count_b: ArrayLike, delta: float, epsilon: float
) -> Floats:
    """Return the published experiments' threshold of AdaP-TT, against W with σ = 1; no
    guarantee.
    """
    a, b = check_counts(count_a), check_counts(count_b)
    log = math.log(1 / check_delta(delta))
    return (
        log
        + np.log1p(np.log(a))
        + np.log1p(np.log(b))
        + (1 / a + 1 / b) * (log / check_epsilon(epsilon)) ** 2
    )


def empirical_star(
    count_a: ArrayLike, count_b: ArrayLike, delta: float, epsilon: float, sigma: float = SIGMA
) -> tuple[Floats, Floats]:
    """Return AdaP-TT*'s threshold as δ → 0, displayed after its lemma: first and second
    case; no guarantee.
    """
    a, b = check_counts(count_a), check_counts(count_b)
    log, epsilon, sigma = (
        math.log(1 / check_delta(delta)),
        check_epsilon(epsilon),
        check_sigma(sigma),
    )
    cross = math.sqrt(2) / (epsilon * sigma) * (1 / np.sqrt(a) + 1 / np.sqrt(b)) * log**1.5
    low = log + (1 / a + 1 / b) * log**2 / (2 * (epsilon * sigma) ** 2) + cross
    high = log / (2 * sigma**2) + epsilon / (2 * math.sqrt(2) * sigma) * (
        np.sqrt(a) + np.sqrt(b)
    ) * math.sqrt(log)
    return low, high


class Epoch(NamedTuple):
    """One epoch of DP-SE: pulls of each active arm, and the two radii of its private
    means.
    """

    pulls: int
    radius: float
    noise_radius: float


def dp_se_epoch(epoch: int, active: int, epsilon: float, delta: float) -> Epoch:
    """Return R_e, h_e and c_e of DP-SE (Sajed & Sheffet); drop an arm that trails the
    best by over 2(h_e + c_e).
    """
    if not 1 <= epoch <= 500 or int(epoch) != epoch:
        raise InvalidInputError(f"epochs count from 1 and end long before 500; got {quote(epoch)}")
    pulls = compute_epoch_length(
        check_arms(active), epoch, check_epsilon(epsilon), check_delta(delta)
    )
    return Epoch(
        pulls,
        compute_sampling_radius(active, epoch, pulls, delta),
        compute_noise_radius(active, epoch, pulls, epsilon, delta),
    )


@jit
def compute_epoch_length(active: int, epoch: int, epsilon: float, delta: float) -> int:
    """Return R_e: fresh samples of each active arm in this epoch, aimed at gaps of
    2^-e.
    """
    aim = 2.0**-epoch
    sampling = 32.0 * math.log(8.0 * active * epoch * epoch / delta) / (aim * aim)
    privacy = 8.0 * math.log(4.0 * active * epoch * epoch / delta) / (epsilon * aim)
    return math.floor(max(sampling, privacy) + 1.0)


@jit
def compute_sampling_radius(active: int, epoch: int, length: int, delta: float) -> float:
    """Return h_e: how far an epoch's mean may lie from the true one."""
    return math.sqrt(math.log(8.0 * active * epoch * epoch / delta) / (2.0 * length))


@jit
def compute_noise_radius(
    active: int, epoch: int, length: int, epsilon: float, delta: float
) -> float:
    """Return c_e: how far noise may carry an epoch's mean."""
    return math.log(4.0 * active * epoch * epoch / delta) / (epsilon * length)


@jit
def compute_epoch_radius(
    active: int, epoch: int, length: int, epsilon: float, delta: float
) -> float:
    """Return 2 (h_e + c_e): how far below the best private mean an arm may lie and
    stay.
    """
    return 2.0 * (
        compute_sampling_radius(active, epoch, length, delta)
        + compute_noise_radius(active, epoch, length, epsilon, delta)
    )


def gaussian_scale(epsilon: float, gamma: float) -> float:
    """Return the least s for which N(0, s²) makes a reward in [0, 1] (ε, γ)-private
    (Balle & Wang 2018, Theorem 8).

    Rounded up by 1e-9 of itself, so that rounding errors stay on the private side. The
    paper's sqrt(2 log(1.25/γ))/ε is larger where it is valid (ε < 1) and not private
    where it is not.
    """
    if not (1e-9 <= check_epsilon(epsilon) <= 1e6 and 1e-15 <= check_gamma(gamma) <= 0.999):
        raise InvalidInputError(
            "Gaussian noise is calibrated for epsilon in [1e-9, 1e6] and gamma in [1e-15, 0.999]"
        )

    def slack(log_s: float) -> float:
        s = math.exp(log_s)
        seen, covered = (
            _compute_log_tail(epsilon * s - 1 / (2 * s)),
            epsilon + _compute_log_tail(epsilon * s + 1 / (2 * s)),
        )
        return math.log(gamma) - seen - math.log1p(-math.exp(min(covered - seen, -1e-16)))

    return math.exp(solve_increasing(slack, -math.log(epsilon) / 2)) * (1 + 1e-9)


def noisy_sigma(scale: float, sigma: float = SIGMA) -> float:
    """Return σ of a reward after Gaussian noise of this scale: sqrt(σ² + s²), which W^G
    and b^G must use.
    """
    return math.hypot(sigma, scale)


def _compute_c_gaussian(a: Floats, b: Floats, arms: int, delta: Floats) -> Floats:
    core = 2 * c_g(np.log((arms - 1) / delta) / 2)
    return np.asarray(core + 2 * np.log(4 + np.log(a)) + 2 * np.log(4 + np.log(b)))


def _compute_laplace_log(count: Floats, arms: int, delta: float) -> Floats:
    """Return log(A k²) with A = π²K/(2δ): bounds ε N |Y| for all arms and phases at
    once.
    """
    return np.asarray(
        np.log(
            math.pi**2
            * check_arms(arms)
            * compute_phase_number(count) ** 2
            / (2 * check_delta(delta))
        )
    )


def _compute_log_tail(u: float) -> float:
    """Return log P(Z > u) for a standard normal Z, also where the probability itself is
    too small for a float.
    """
    if u < 30:
        return math.log(math.erfc(u / math.sqrt(2)) / 2)
    inverse = 1 / u**2
    series = 1 - inverse * (
        1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse * (1 - 9 * inverse)))
    )
    return -(u**2) / 2 - math.log(u * math.sqrt(2 * math.pi)) + math.log(series)


ROUNDING_MARGIN = 1e-9
"""By so much of itself a scale is rounded up, so that errors of rounding stay on the
private side.
"""
MIN_LOG_ORDER = -36.0
"""The log of α − 1 below which the conversion gives 1 to all digits."""


def zcdp_gamma(rho: float, epsilon: float) -> float:
    """Return the smallest γ for which ρ-zCDP is known to be (ε, γ)-DP: the infimum over
    α > 1 of e^{(α−1)(αρ−ε)} (1 − 1/α)^α / (α − 1) (Canonne, Kamath & Steinke 2020,
    Proposition 7 and Corollary 13).
    """
    return math.exp(min(_compute_log_gamma(check_rho(rho), check_epsilon(epsilon)), 0.0))


def _compute_log_gamma(rho: float, epsilon: float) -> float:
    def slope(log_order: float) -> float:
        order = math.exp(log_order)  # α − 1
        rest = math.log1p(1 / order) if log_order > MIN_LOG_ORDER else -log_order
        return (2 * order + 1) * rho - epsilon - rest

    log_order = solve_increasing(slope, math.log1p(epsilon / rho))
    if log_order < MIN_LOG_ORDER:
        return 0.0
    order = math.exp(log_order)
    shrink = (order + 1) * math.log1p(1 / order)
    return order * ((order + 1) * rho - epsilon) - shrink - math.log(order)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: float, gamma: float) -> float:
    """Return the largest ρ for which ρ-zCDP is known to be (ε, γ)-DP: the inverse of
    `zcdp_gamma`, by bisection.

    (√(ε + log 1/γ) − √(log 1/γ))² always is (Bun & Steinke 2016, Proposition 1.3).
    """
    if not (1e-5 <= check_epsilon(epsilon) <= 1e4 and 1e-15 <= check_gamma(gamma) <= 0.01):
        raise InvalidInputError(
            "Gaussian noise is calibrated for epsilon in [1e-5, 1e4] and gamma in [1e-15, 0.01]"
        )
    allowed = math.log(gamma)
    low = (math.sqrt(epsilon - allowed) - math.sqrt(-allowed)) ** 2
    high = epsilon + 1.0
    while high - low > 1e-13 * high:
        middle = math.sqrt(low * high)
        if _compute_log_gamma(middle, epsilon) <= allowed:
            low = middle
        else:
            high = middle
    return low


def zcdp_epsilon(rho: float, gamma: float) -> float:
    """Return the smallest ε for which ρ-zCDP is known to be (ε, γ)-DP; 0 where γ alone
    is enough.
    """
    log = math.log(check_gamma(gamma))
    if _compute_log_gamma(check_rho(rho), 0.0) <= log:
        return 0.0
    most = rho + 2 * math.sqrt(-rho * log)
    root = solve_increasing(
        lambda e: log - _compute_log_gamma(rho, math.exp(e)), math.log(most), 0.1
    )
    return math.exp(root) * (1 + ROUNDING_MARGIN)


def sum_scale(rho: float) -> float:
    """Return σ of Gaussian noise that makes a sum ρ-zCDP to which one person adds 0 to
    1.
    """
    return math.sqrt(0.5 / check_rho(rho)) * (1 + ROUNDING_MARGIN)


# --- AdaP-TT with Gaussian noise ------------------------------------------------------


def c_concentrated(
    count_a: ArrayLike, count_b: ArrayLike, arms: int, delta: float, scale: float
) -> Floats:
    """Return the threshold of AdaP-TT with Gaussian noise of this scale on sums,
    against W^G with σ = 1/2: log((K−1) (π²/6)² k_a² k_b²/δ), times how much larger
    noise makes the variance of the difference of the two means (docs, "AdaP-TT with Gaussian
    noise").
    """
    a, b = check_counts(count_a), check_counts(count_b)
    spent = (math.pi**2 / 6 * compute_phase_number(a) * compute_phase_number(b)) ** 2
    nats = np.log((check_arms(arms) - 1) * spent / check_delta(delta))
    noisy = mean_variance(a, scale) + mean_variance(b, scale)
    return np.asarray(nats * noisy / (mean_variance(a, 0.0) + mean_variance(b, 0.0)))


def bonus_concentrated(count: ArrayLike, scale: float) -> Floats:
    """Return the leader's bonus in AdaP-TT with Gaussian noise: b^{G,ε} without noise,
    times how much wider noise makes a mean.
    """
    wider = mean_variance(count, scale) / mean_variance(count, 0.0)
    return np.asarray(bonus_private(count, math.inf) * np.sqrt(wider))


def mean_variance(count: ArrayLike, scale: float) -> Floats:
    """Bound from above the variance of a mean of so many rewards in [0, 1] whose sum
    has Gaussian noise: 1/(4n) + s²/n², by which it is sub-Gaussian too.
    """
    n = check_counts(count)
    return np.asarray(0.25 / n + (scale / n) ** 2)
