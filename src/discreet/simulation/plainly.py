"""Simulated runs as they stand, in plain Python: where a few are enough, and compiling
a loop would take longer than all of them.
"""

from collections.abc import Callable

import numpy as np

from discreet.simulation.laws import Generator, Laws
from discreet.simulation.loops.betting import run_betting
from discreet.simulation.loops.epochs import run_epochs
from discreet.simulation.loops.phased import run_phased
from discreet.simulation.loops.stream import collected, run_stream, steps_alone
from discreet.simulation.outcome import Outcome, no_trace
from discreet.strategies.betting.bets import make_betting_rules
from discreet.strategies.phased.tables import phased_rules
from discreet.strategies.scales import noise_scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream.tables import stream_rules

Player = Callable[[Generator], Outcome]
"""Plays one run."""


def plain_player(strategy: Strategy, laws: Laws, cap: int) -> Player | None:
    """What plays runs of a strategy on these laws, with the numbers that its compiled
    loop would draw from the same Generator; None for a family that is not in
    `FAMILIES`, and for one global episode.
    """
    if strategy.part.family not in FAMILIES or strategy.together:
        return None
    return FAMILIES[strategy.part.family](strategy, laws, cap)


def _betting(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = (
        make_betting_rules(strategy, arms),
        np.zeros(arms, np.int64),
        no_trace(arms),
    )
    return lambda rng: run_betting(rng, laws, rules, cap, pulls, none)


def _epochs(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    epsilon, pulls, none = float(strategy.epsilon or 0), np.zeros(arms, np.int64), no_trace(arms)
    return lambda rng: run_epochs(rng, laws, epsilon, strategy.delta, cap, pulls, none)


def _phased(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = phased_rules(strategy, arms), np.zeros(arms, np.int64), no_trace(arms)
    epsilon = strategy.trust_model.noise(strategy.epsilon)
    return lambda rng: run_phased(rng, laws, epsilon, rules, True, cap, pulls, none)


def _stream(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = stream_rules(strategy, arms), np.zeros(arms, np.int64), no_trace(arms)
    answers, noise = collected(strategy, laws), noise_scale(strategy)
    alone = steps_alone(rules, answers, noise, cap)
    return lambda rng: run_stream(rng, answers, noise, rules, alone, cap, pulls, none)


FAMILIES = {"betting": _betting, "epochs": _epochs, "phased": _phased, "stream": _stream}
"""Who can be played so; a family without an entry is simulated compiled all the
same.
"""
