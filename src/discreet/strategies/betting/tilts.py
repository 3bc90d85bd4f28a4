"""The mixture of bets and the public setting of a run of bet-se. The docs page "Betting
elimination" has the proofs.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.strategies.strategy import Strategy
from discreet.trust import check_trust

TILTS = 40
"""Down to 3.4e-6, the tilt for gaps that take 10^12 people."""
LOUD = 0.25
"""Tilts from LOUD epsilon on bet by tails where noise is dear, others by moments."""
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
    """Of the noise in a release; infinity without noise."""
    level: float
    """4 sinh(epsilon / 2)^2, by which noise is priced; infinity without noise."""
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


def make_setting(
    arms: int,
    epsilon: float,
    delta: float,
    trust: str = "global",
    zeta: float = 0.0,
    top_two: bool = False,
    hint: float = 0.0,
) -> Setting:
    """The setting for K arms; `trust` is global (noisy sums), local (randomised
    response) or none (epsilon unused).
    """
    model = check_trust(trust)
    scale = model.shrink(epsilon)
    share = 0.5 if zeta > 0 else 1.0  # half of delta for each of the two ways to stop
    first = (
        (FIRST_TWO if arms == 2 else FIRST) / epsilon if model.noised else 2 / max(scale, 1e-9) ** 2
    )
    return Setting(
        epsilon=model.noise(epsilon),
        level=4 * math.sinh(epsilon / 2) ** 2 if model.noise(epsilon) < 700 else math.inf,
        scale=scale,
        low=0.5 - scale / 2,
        high=0.5 + scale / 2,
        zeta=zeta * scale,
        hint=hint * scale,
        target=-math.log(share * delta),
        zeta_target=math.log(arms - 1) - math.log(0.5 * delta),
        first=math.ceil(min(first, LONGEST)) + 2,
        top_two=top_two,
    )


def make_bets(epsilon: float, trust: str = "global", hint: float = 0.0) -> Bets:
    """Two tilts an octave; the share of octave o falls off like 1/o**2.

    Noise allows tilts below epsilon only. The larger ones pass their share to 0.8 and
    0.6 epsilon, which is right if the gaps are large against epsilon. A hint draws two
    fifths of the stake to the tilts that suit it.
    """
    model = check_trust(trust)
    octave = (np.arange(TILTS) + 0.5) / 2
    tilt = 3.0 * model.shrink(epsilon) * 0.5**octave
    stake = 1 / (1 + ((octave - 3.5) / 1.5) ** 2)
    stake /= stake.sum()
    if hint > 0:
        off = np.log2(tilt / (2 * hint * model.shrink(epsilon)))
        near = (1 + (off / np.where(off < 0, 0.7, 2.0)) ** 2) ** -2.0
        stake = 0.6 * stake + 0.4 * near / near.sum()
    loud = 0
    if model.noised:
        high = tilt >= epsilon / 2
        if high.any():
            tilt = np.r_[0.8 * epsilon, 0.6 * epsilon, tilt[~high]]
            stake = np.r_[np.full(2, stake[high].sum() / 2), stake[~high]]
        loud = int((tilt >= LOUD * epsilon).sum())
    rest = np.r_[np.cumsum(stake[::-1])[::-1], 0.0]
    return Bets(tilt, -np.expm1(-tilt), np.expm1(tilt), np.log(stake), rest, loud)


class BettingRules(NamedTuple):
    """Everything public that a run is played with."""

    bets: Bets
    setting: Setting


def betting_rules(strategy: Strategy, arms: int) -> BettingRules:
    """The bets and the setting of bet-se."""
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    top_two, hint = strategy.sampling == "top-two", strategy.hint
    setting = make_setting(
        arms, epsilon, strategy.delta, strategy.trust, strategy.zeta, top_two, hint
    )
    return BettingRules(make_bets(epsilon, strategy.trust, hint), setting)
