"""The mixture of bets and the public setting of a run of bet-se. The docs page "Betting
elimination" has the proofs.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.strategies.strategy import Strategy
from discreet.trust import check_trust

OCTAVES = 5
"""The leader is pulled up to 2**4 times as often as the others."""
LONGEST = 2**50
"""Of a first batch; beyond every cap."""


class Bets(NamedTuple):
    """The mixture of bets: tilt[j], largest first; the last three [i, j] for lead
    octave i.
    """

    tilt: Floats
    """lambda_j"""
    stake: Floats
    """The log of its share of the stake."""
    fall: Floats
    """exp(-lambda_j / 2**i) - 1"""
    rise: Floats
    """exp(+lambda_j / 2**i) - 1"""
    price: Floats
    """m(lambda_j / 2**i): what the noise of one release costs."""


class Setting(NamedTuple):
    """Everything public that a run is played with."""

    epsilon: float
    """Of the noise in a release; infinity without noise."""
    scale: float
    """tanh(epsilon/2) for randomised response, else 1: released means lie in [low,
    high] = 1/2 -+ scale/2.
    """
    low: float
    high: float
    zeta: float
    """Indifference gap, on that scale."""
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
) -> Setting:
    """The setting for K arms; `trust` is global (noisy sums), local (randomised
    response) or none (epsilon unused).
    """
    model = check_trust(trust)
    scale = model.shrink(epsilon)
    share = 0.5 if zeta > 0 else 1.0  # half of delta for each of the two ways to stop
    first = 12 / epsilon if model.noised else 2 / max(scale, 1e-9) ** 2
    return Setting(
        epsilon=model.noise(epsilon),
        scale=scale,
        low=0.5 - scale / 2,
        high=0.5 + scale / 2,
        zeta=zeta * scale,
        target=-math.log(share * delta),
        zeta_target=math.log(arms - 1) - math.log(0.5 * delta),
        first=math.ceil(min(first, LONGEST)) + 2,
        top_two=top_two,
    )


def make_bets(epsilon: float, trust: str = "global", grid: int = 1) -> Bets:
    """Two tilts an octave, down to where no count can feel them; the share of octave o
    falls off like 1/o**2.

    Noise allows tilts below epsilon only. The larger ones pass their share to 0.8 and
    0.6 epsilon, which is right if the gaps are large against epsilon. `grid` is the g
    of rewards rounded to multiples of 1/g (1: bits).
    """
    model = check_trust(trust)
    if grid < 1:
        raise InvalidInputError(f"grid must be 1 or more; got {grid!r}")
    octave = (np.arange(120) + 0.5) / 2
    tilt = 3.0 * model.shrink(epsilon) * 0.5**octave
    stake = 1 / (1 + ((octave - 3.5) / 1.5) ** 2)
    stake /= stake.sum()
    if model.noised:
        high = tilt >= epsilon / 2
        if high.any():
            tilt = np.r_[0.8 * epsilon, 0.6 * epsilon, tilt[~high]]
            stake = np.r_[np.full(2, stake[high].sum() / 2), stake[~high]]
    tilts = tilt / 2.0 ** np.arange(OCTAVES)[:, np.newaxis]
    price = noise_price(tilts / grid, epsilon / grid) if model.noised else np.zeros_like(tilts)
    return Bets(tilt, np.log(stake), np.expm1(-tilts), np.expm1(tilts), price)


def noise_price(tilt: Floats, epsilon: float) -> Floats:
    """m(tilt) = log E exp(tilt Z) for discrete Laplace Z: log[(cosh eps - 1) / (cosh
    eps - cosh tilt)].
    """

    def log_sinh(z: Floats | float) -> Floats:
        return np.asarray(z + np.log(-np.expm1(-2 * np.asarray(z))))

    cost = (
        2 * log_sinh(epsilon / 2) - log_sinh((epsilon + tilt) / 2) - log_sinh((epsilon - tilt) / 2)
    )
    return np.asarray(np.maximum(cost, 0.0))


class BettingRules(NamedTuple):
    """Everything public that a run is played with."""

    bets: Bets
    setting: Setting


def betting_rules(strategy: Strategy, arms: int) -> BettingRules:
    """The bets and the setting of bet-se."""
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    top_two = strategy.sampling == "top-two"
    setting = make_setting(arms, epsilon, strategy.delta, strategy.trust, strategy.zeta, top_two)
    return BettingRules(make_bets(epsilon, strategy.trust), setting)
