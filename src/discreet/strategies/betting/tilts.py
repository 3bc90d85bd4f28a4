"""The mixture of bets and the public setting of a run of bet-se. The docs page "Betting
elimination" has the proofs.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.strategies.scales import sum_noise
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS, grid_of, kind_of
from discreet.trust import check_trust

TILTS = 40
"""Down to 3.4e-6, the tilt for gaps that take 10^12 people."""
LOUD = 0.25
"""Tilts from LOUD times the largest on bet by tails where noise is dear, others by
moments.
"""
FIRST, FIRST_TWO = 10.0, 13.0
"""The first round has FIRST / epsilon people an arm; of two arms."""
LONGEST = 2**50
"""Of a round; beyond every cap."""


class Bets(NamedTuple):
    """The mixture of bets, tilts falling."""

    tilt: Floats
    """lambda_j"""
    fall: Floats
    """1 - exp(-lambda_j)"""
    rise: Floats
    """exp(lambda_j) - 1"""
    stake: Floats
    """The log of its share of the stake."""
    rest: Floats
    """What tilts j and after have of the stake, for j from 0 to their number."""
    loud: int
    """How many of them are loud."""


class Setting(NamedTuple):
    """Everything public that a run is played with."""

    epsilon: float
    """Of the noise in a release; infinity without noise. Of Gaussian noise, for plans
    only: that of Laplace noise with the same variance.
    """
    level: float
    """4 sinh(epsilon / 2)^2, by which noise on bits is priced; infinity without
    noise.
    """
    scale: float
    """tanh(epsilon/2) for randomised response, else 1: released means lie in [low,
    high] = 1/2 -+ scale/2.
    """
    low: float
    high: float
    zeta: float
    """Indifference gap, on that scale."""
    hint: float
    """The difference one expects to find, on that scale; 0 if nothing is expected."""
    target: float
    """The log of the money that puts an arm out."""
    zeta_target: float
    """The log of the money that shows an arm less than zeta better than the leader."""
    first: int
    """Length of the first batch."""
    top_two: bool
    """Whether a round is for the leader and one challenger only."""
    kind: int
    """What outcomes become, see `discreet.strategies.units`."""
    grid: int
    """Units of an outcome."""
    tick: float
    """epsilon / grid: what one unit of noise costs."""
    slip: float
    """The chance of each level that is not the true one; 0 but for levels."""
    sigma: float
    """The scale of discrete Gaussian noise; 0 if noise is Laplace noise, or none."""
    top: float
    """The largest tilt of a tail bet."""


def make_setting(
    arms: int,
    epsilon: float,
    delta: float,
    trust: str = "global",
    zeta: float = 0.0,
    top_two: bool = False,
    hint: float = 0.0,
    kind: int = BITS,
    grid: int = 1,
    sigma: float = 0.0,
) -> Setting:
    """The setting for K arms; `trust` is global (noisy sums), local (randomised
    response) or none (epsilon unused). With a sigma, which says all about noise,
    `epsilon` is that of `plan_epsilon`.
    """
    model, noise = check_trust(trust), check_trust(trust).noise(epsilon)
    scale = scale_of(epsilon, trust, kind)
    share = 0.5 if zeta > 0 else 1.0  # half of delta for each of the two ways to stop
    first = (
        (FIRST_TWO if arms == 2 else FIRST) / epsilon if model.noised else 2 / max(scale, 1e-9) ** 2
    )
    return Setting(
        epsilon=noise,
        level=4 * math.sinh(epsilon / 2) ** 2 if noise < 700 else math.inf,
        scale=scale,
        low=0.5 - scale / 2,
        high=0.5 + scale / 2,
        zeta=zeta * scale,
        hint=hint * scale,
        target=-math.log(share * delta),
        zeta_target=math.log(arms - 1) - math.log(0.5 * delta),
        first=math.ceil(min(first, LONGEST)) + 2,
        top_two=top_two,
        kind=kind,
        grid=grid,
        tick=noise / grid,
        slip=slip_of(epsilon) if kind == LEVELS else 0.0,
        sigma=sigma,
        top=top_of(noise, delta, sigma),
    )


def plan_epsilon(sigma: float) -> float:
    """The epsilon of Laplace noise with the variance of this Gaussian noise."""
    return math.sqrt(2.0) / sigma


def top_of(epsilon: float, delta: float, sigma: float = 0.0) -> float:
    """The largest tilt: epsilon; with Gaussian noise, which forbids none, a little more
    than one noise makes best use of.
    """
    return 1.1 * math.sqrt(2 * (2 - math.log(delta))) / sigma if sigma > 0 else epsilon


def slip_of(epsilon: float) -> float:
    """1/(e^epsilon + 2): the chance with which a level is sent that is not the true
    one.
    """
    return math.exp(-epsilon) / (1 + 2 * math.exp(-epsilon))


def scale_of(epsilon: float, trust: str, kind: int) -> float:
    """What is left of a difference of means in what is collected."""
    return 1 - 3 * slip_of(epsilon) if kind == LEVELS else check_trust(trust).shrink(epsilon)


def make_bets(
    epsilon: float,
    trust: str = "global",
    hint: float = 0.0,
    kind: int = BITS,
    top: float | None = None,
) -> Bets:
    """Two tilts an octave; the share of octave o falls off like 1/o**2.

    Noise allows tilts below `top` only, which is epsilon unless it is Gaussian. The
    larger ones pass their share to 0.8 and 0.6 of that, which is right if the gaps are
    large against noise. A hint draws two
    fifths of the stake to the tilts that suit it.
    """
    model, scale = check_trust(trust), scale_of(epsilon, trust, kind)
    octave = (np.arange(TILTS) + 0.5) / 2
    tilt = 3.0 * scale * 0.5**octave
    stake = 1 / (1 + ((octave - 3.5) / 1.5) ** 2)
    stake /= stake.sum()
    if hint > 0:
        off = np.log2(tilt / (2 * hint * scale))
        near = (1 + (off / np.where(off < 0, 0.7, 2.0)) ** 2) ** -2.0
        stake = 0.6 * stake + 0.4 * near / near.sum()
    loud = 0
    if model.noised:
        most = epsilon if top is None else top
        high = tilt >= most / 2
        if high.any():
            tilt = np.r_[0.8 * most, 0.6 * most, tilt[~high]]
            stake = np.r_[np.full(2, stake[high].sum() / 2), stake[~high]]
        loud = int((tilt >= LOUD * most).sum())
    rest = np.r_[np.cumsum(stake[::-1])[::-1], 0.0]
    return Bets(tilt, -np.expm1(-tilt), np.expm1(tilt), np.log(stake), rest, loud)


class BettingRules(NamedTuple):
    """Everything public that a run is played with."""

    bets: Bets
    setting: Setting


def betting_rules(strategy: Strategy, arms: int) -> BettingRules:
    """The bets and the setting of bet-se."""
    epsilon, sigma = math.inf if strategy.epsilon is None else strategy.epsilon, sum_noise(strategy)
    if sigma > 0:
        epsilon = plan_epsilon(sigma)
    top_two, hint, trust = strategy.sampling == "top-two", strategy.hint, strategy.trust
    kind, grid, delta = kind_of(strategy), grid_of(strategy), strategy.delta
    setting = make_setting(
        arms, epsilon, delta, trust, strategy.zeta, top_two, hint, kind, grid, sigma
    )
    return BettingRules(make_bets(epsilon, trust, hint, kind, setting.top), setting)
