"""Bets of bet-se against "arm a is at least as good as its rival", each a small pure
function beside the lemma that makes it fair, and what a run is played with.

Every bet is made from one number, the *score* of an arm and its rival: a weighted sum
of what was released about both. Its noise is paid for by its moment generating function
(a moment bet) or by its tail (a tail bet). The docs page "Betting elimination"
has the lemmas.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats
from discreet.jit import jit
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS, choose_grid, choose_kind, compute_sum_noise
from discreet.trust import check_trust

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
TILT_COUNT = 20
"""Number of tilts, one an octave, down to 4.0e-6: that for gaps that take 10^12
participants.
"""
LARGEST_TILT_SHARE = 0.7
"""The largest tilt of a moment bet where sums are noised, as a share of ε."""
TAIL_TILT_SHARE = 1 - 1e-9
"""The tilt of a tail bet as a share of ε: below 1 by more than floating point loses."""
GAUSSIAN_TAIL_TILT = 0.8
"""With Gaussian noise the tilt of a tail bet is so many times root(2 log(1/δ)) / σ."""
CALIBRATOR_POWER = 0.4
"""κ of the calibrator κ p^(κ - 1)."""
LOG_TAIL_MARGIN = 1e-6
"""Nats added to the log of every tail constant: more than TAIL_TILT_SHARE can take off,
and floating point, which loses up to 5e-7 of `price_noise` at a slope near epsilon.
"""
CLOSENESS_SHARE = 0.8
"""The largest weight of closeness in a score, as a share of ε."""
CLOSENESS_MARGIN = 1 - 1e-9
"""Factor by which weights of closeness are lowered, against floating point."""


class Bets(NamedTuple):
    """The mixture of bets, tilts falling."""

    tilt: Floats
    """lambda_j"""
    stake: Floats
    """The log of its share of the stake."""


class BettingSetting(NamedTuple):
    """Everything public that a run is played with."""

    epsilon: float
    """The ε of the noise in a release; infinity without noise. For Gaussian noise, for plans
    only: that of Laplace noise with the same variance.
    """
    scale: float
    """tanh(epsilon/2) for randomised response, else 1: released means lie in [low,
    high] = 1/2 -+ scale/2.
    """
    low: float
    high: float
    indifference_zone: float
    """Indifference zone, on that scale."""
    target_difference: float
    """The target difference, on that scale; 0 if nothing is expected."""
    target: float
    """The log of the wealth that eliminates an arm."""
    zone_target: float
    """The log of the wealth that shows an arm to be in the indifference zone of the leader."""
    kind: int
    """The kind of what outcomes become, see `discreet.strategies.units`."""
    grid: int
    """Units of an outcome."""
    level_error: float
    """The chance of each level that is not the true one; 0 but for levels."""
    sigma: float
    """The scale of discrete Gaussian noise; 0 if noise is Laplace noise, or none."""
    tail_tilt: float
    """The tilt of a tail bet."""


class BettingRules(NamedTuple):
    """Everything public that a run is played with, and the bets."""

    bets: Bets
    setting: BettingSetting


def make_setting(
    arms: int,
    epsilon: float,
    delta: float,
    trust: str = "global",
    indifference_zone: float = 0.0,
    target_difference: float = 0.0,
    kind: int = BITS,
    grid: int = 1,
    sigma: float = 0.0,
) -> BettingSetting:
    """Make the setting for K arms; `trust` is global (noisy sums), local (randomised
    response) or none (epsilon unused). A `sigma` says all about the noise; `epsilon` is
    then that of Laplace noise with its variance.
    """
    scale, noise = compute_shrinkage(epsilon, trust, kind), check_trust(trust).noise(epsilon)
    share = 0.5 if indifference_zone > 0 else 1.0  # half of delta for each of the two ways to stop
    target, tail_tilt = -math.log(share * delta), noise * TAIL_TILT_SHARE
    if sigma > 0:
        tail_tilt = GAUSSIAN_TAIL_TILT * math.sqrt(2 * target) / sigma
    return BettingSetting(
        epsilon=noise,
        scale=scale,
        low=0.5 - scale / 2,
        high=0.5 + scale / 2,
        indifference_zone=indifference_zone * scale,
        target_difference=target_difference * scale,
        target=target,
        zone_target=math.log(arms - 1) - math.log(0.5 * delta),
        kind=kind,
        grid=grid,
        level_error=compute_level_error(epsilon) if kind == LEVELS else 0.0,
        sigma=sigma,
        tail_tilt=tail_tilt,
    )


def compute_level_error(epsilon: float) -> float:
    """Return 1/(e^epsilon + 2): the chance with which a level is sent that is not the
    true one.
    """
    return math.exp(-epsilon) / (1 + 2 * math.exp(-epsilon))


def compute_shrinkage(epsilon: float, trust: str, kind: int) -> float:
    """Return what is left of a difference of means in what is collected."""
    return (
        1 - 3 * compute_level_error(epsilon)
        if kind == LEVELS
        else check_trust(trust).shrink(epsilon)
    )


def make_bets(
    epsilon: float, trust: str = "global", target_difference: float = 0.0, kind: int = BITS
) -> Bets:
    """Make the mixture: one tilt an octave; the share of octave o falls off like
    1/o**2.

    Noise allows tilts below epsilon only: the larger ones pass their share to one below
    it. A target difference draws two fifths of the stake to the tilts that suit it.
    """
    scale = compute_shrinkage(epsilon, trust, kind)
    octave = np.arange(TILT_COUNT) + 0.5
    tilt: Floats = np.asarray(3.0 * scale * 0.5**octave, np.float64)
    stake: Floats = np.asarray(1 / (1 + ((octave - 3.5) / 1.5) ** 2), np.float64)
    stake /= stake.sum()
    if target_difference > 0:
        off = np.log2(tilt / (2 * target_difference * scale))
        near = (1 + (off / np.where(off < 0, 0.7, 2.0)) ** 2) ** -2.0
        stake = 0.6 * stake + 0.4 * near / near.sum()
    high = tilt >= epsilon / 2
    if check_trust(trust).noised and high.any():
        tilt = np.r_[LARGEST_TILT_SHARE * epsilon, tilt[~high]]
        stake = np.r_[stake[high].sum(), stake[~high]]
    return Bets(tilt, np.asarray(np.log(stake)))


def make_betting_rules(strategy: Strategy, arms: int) -> BettingRules:
    """Make the bets and the setting of bet-se.

    Gaussian noise forbids no tilt: the largest is a little more than one noise makes
    best use of.
    """
    trust, target_difference, sigma = (
        strategy.trust,
        strategy.target_difference,
        compute_sum_noise(strategy),
    )
    kind, grid = choose_kind(strategy), choose_grid(strategy)
    epsilon = top = math.inf if strategy.epsilon is None else strategy.epsilon
    if sigma > 0:
        epsilon = math.sqrt(2.0) / sigma
        top = 1.1 * math.sqrt(2 * (2 - math.log(strategy.delta))) / sigma
    setting = make_setting(
        arms,
        epsilon,
        strategy.delta,
        trust,
        strategy.indifference_zone,
        target_difference,
        kind,
        grid,
        sigma,
    )
    return BettingRules(make_bets(top, trust, target_difference, kind), setting)


# --- scores ---------------------------------------------------------------------------


class Slopes(NamedTuple):
    """Weights of the releases about an arm (own) and its rival in a score."""

    own: float
    """l_a: minus the weight of the arm's sum."""
    own_count: float
    """c_a: the weight of the number of its participants."""
    rival: float
    """l_c: the weight of the rival's sum."""
    rival_count: float
    """c_c: the weight of the number of its participants."""
    step: float
    """d: what a participant of the arm stakes; odds times d is the same for both."""


@jit
def compute_slopes(tilt: float, centre: float, ratio: float) -> Slopes:
    """Return the score's weights (Lemma 1) at this tilt, for odds of the arm that are
    `ratio` times its rival's.

    A participant of the arm multiplies wealth by 1 - d (r - centre), one of the rival
    by 1 + d' (r - centre), d' = ratio d: the centre cancels in the mean over the
    randomisation. Both slopes are at most the tilt.
    """
    fall, rise = -math.expm1(-tilt), math.expm1(tilt)
    d = min(fall / (1 - centre * fall), rise / (1 + centre * rise) / ratio)
    e, rest = d * ratio, 1 - centre
    own_count, rival_count = math.log1p(centre * d), math.log1p(-centre * e)
    return Slopes(
        own_count - math.log1p(-rest * d),
        own_count,
        math.log1p(rest * e) - rival_count,
        rival_count,
        d,
    )


# --- what noise costs -----------------------------------------------------------------


@jit
def price_noise(slope: float, epsilon: float, sigma: float = 0.0) -> float:
    """Return m(slope) = log E exp(slope Z) for discrete Laplace Z of parameter epsilon
    (Lemma 2): log[(cosh eps - 1) / (cosh eps - cosh slope)]. With a sigma, return at
    least that of discrete Gaussian noise.
    """
    if sigma > 0:
        return sigma * sigma * slope * slope / 2
    if epsilon == math.inf:
        return 0.0
    ratio = math.exp((slope - epsilon) / 2) * math.expm1(-slope) / math.expm1(-epsilon)
    return -math.log1p(-ratio * ratio)


@jit
def price_fine_noise(slope: float, epsilon: float) -> float:
    """Return at least log E exp(slope Z) for the noise Z of a sum in fine units,
    whatever the units (Lemma N5).
    """
    share = slope / epsilon
    return -math.log1p(-share * share)


@jit
def compute_log_tail_constant(tick: float) -> float:
    """Return log sup_w e^w P(tick Z >= w) for discrete Laplace Z of parameter `tick`
    (Lemma 4), with a margin for floating point.
    """
    return LOG_TAIL_MARGIN - math.log1p(math.exp(-tick))


@jit
def compute_log_gaussian_tail_constant(slope: float, other: float, sigma: float) -> float:
    """Return at least log sup_u e^u P(slope Z + other Z' >= u) for two discrete
    Gaussian noises (Lemma C2), with a margin for floating point: by their moment or by
    the tail of the normal law, whichever is less; `other` is 0 for one noise.

    sup_x e^{sx} P(N >= x) is at an x in [s - 1/s, s]: bisection leaves a bracket, of
    which the upper end counts in one factor and the lower in the other.
    """
    s = sigma * math.hypot(slope, other)
    if s < 1:
        return LOG_TAIL_MARGIN + s * s / 2
    left, right = s - 1 / s, s
    for _ in range(12):
        x = (left + right) / 2
        if math.exp(-x * x / 2) < s * ROOT_TWO_PI * math.erfc(x * ROOT_HALF) / 2:
            left = x
        else:
            right = x
    tail = slope + other + s * right + math.log(math.erfc(left * ROOT_HALF) / 2)
    return LOG_TAIL_MARGIN + min(s * s / 2, tail)


@jit
def compute_log_tail_payoff(log_p: float, sigma: float, log_alpha: float) -> float:
    """Return the log of what a stake becomes that bets on the p-value exp(log_p) (Lemma
    5): the share sigma is multiplied by 1/alpha if p <= alpha and lost otherwise, the
    rest is multiplied by kappa p^(kappa - 1).
    """
    log_p = min(log_p, 0.0)
    value = math.log((1 - sigma) * CALIBRATOR_POWER) + (CALIBRATOR_POWER - 1) * log_p
    if sigma > 0 and log_p <= log_alpha:
        hit = math.log(sigma) - log_alpha
        high = max(value, hit)
        value = high + math.log(math.exp(value - high) + math.exp(hit - high))
    return value


# --- closeness, of outcomes that are numbers ------------------------------------------


@jit
def compute_rounding_cost(tilt: float, y: float) -> float:
    """Return rho_tilt(y) = log(1 - y + y e^tilt) - tilt y: what rounding y to a bit
    costs a score.
    """
    return math.log1p(y * math.expm1(tilt)) - tilt * y


@jit
def compute_bump_height(centre: float) -> float:
    """Return the height of the bump at its centre, h_c, with which it is as high as the
    pair's sensitivity allows. That is its maximum for centres between 0.418 and 0.582;
    for others the bump goes on rising towards 1/2, up to 0.418 or 0.582.
    """
    return math.e * min(compute_rounding_cost(-1.0, centre), compute_rounding_cost(1.0, centre))


class Bump(NamedTuple):
    """The bump q_c in units: closeness to the centre of an outcome of 0 to `grid` units."""

    grid: int
    centre: float
    below: float
    """h_c / rho_-1(c), in units: the bump up to its centre is this times rho_-1."""
    above: float
    """h_c / rho_1(c), in units."""


@jit
def make_bump(centre: float, grid: int) -> Bump:
    """Make the bump around a centre."""
    top = grid * compute_bump_height(centre)
    return Bump(
        grid,
        centre,
        top / compute_rounding_cost(-1.0, centre),
        top / compute_rounding_cost(1.0, centre),
    )


@jit
def measure_closeness(units: int, bump: Bump) -> int:
    """Return Q: q_c in whole units, at most the distance to either end, whatever
    floating point does: the privacy of the pair rests on that.
    """
    y = units / bump.grid
    if y < bump.centre:
        q = bump.below * compute_rounding_cost(-1.0, y)
    else:
        q = bump.above * compute_rounding_cost(1.0, y)
    return max(0, min(math.floor(q), units, bump.grid - units))


def is_possible_closeness(
    total: int, near: int, count: int, grid: int, centre: float, kind: int
) -> bool:
    """Return whether so many outcomes with this sum can be so close, all in units.

    Closeness is at most that of the mean, as the bump is concave (with slopes up to 1,
    and two roundings); of levels it is the number at the middle, and with those at the
    top not more than there are.
    """
    if not count:
        return near == 0
    if kind != LEVELS:
        mean = measure_closeness(total // count, make_bump(centre, grid))
        return 0 <= near <= min(total, count * grid - total, count * (mean + 2))
    top = total - round(centre * near)
    return near % grid == top % grid == 0 <= min(near, top) and near + top <= count * grid


@jit
def choose_closeness_weight(tilt: float, centre: float, kind: int, epsilon: float) -> float:
    """Return B: the weight of closeness in a score that weighs outcomes by `tilt`.

    B q(y) <= rho_tilt(y) for all y (Lemma N2), and B is below epsilon. Where
    only the levels 0, centre and 1 are sent it is rho itself.
    """
    if kind == LEVELS:
        return compute_rounding_cost(tilt, centre)
    size, height = abs(tilt), compute_bump_height(centre)
    if size <= 1:
        weight = compute_rounding_cost(tilt, centre) / height
    else:
        steep = math.e * (size - 1 + math.exp(-size))
        weight = compute_rounding_cost(math.copysign(1.0, tilt), centre) / height * steep
    return min(weight * CLOSENESS_MARGIN, CLOSENESS_SHARE * epsilon)


@jit
def compute_central_closeness(centre: float, kind: int) -> float:
    """Return the closeness of an outcome at the centre; others may have more, see
    `compute_bump_height`.
    """
    return 1.0 if kind == LEVELS else compute_bump_height(centre)
