"""A simulated run of a strategy of your own: ask, draw, tell, in plain Python.

Drawn from a run's Generator: one reward a sample, and between them whatever the
strategy draws.
"""

import numbers
from typing import Any

from discreet.arrays import Ints
from discreet.errors import InvalidInputError
from discreet.simulation.laws import Generator, Laws, draw_for
from discreet.simulation.outcome import Outcome
from discreet.simulation.own import OwnStrategy, Rule
from discreet.simulation.runner import Runner, one_by_one
from discreet.strategies.strategy import Strategy
from discreet.validate import quoted

BY_PERSON = True
"""Arms may drift, see `engine.runner_of`."""


def run_own(rule: Rule, rng: Generator, laws: Laws, cap: int, pulls: Ints) -> Outcome:
    """One run; writes `pulls`. A strategy that stops right at the cap has stopped, as
    all others have.
    """
    name, samples = type(rule).__qualname__, 0
    while (asked := rule.ask()) is not None and samples < cap:
        arm = _arm(asked, pulls.size, f"{name}.ask gave", "or None to stop")
        reward = draw_for(rng, laws, arm, samples)
        pulls[arm] += 1
        samples += 1
        rule.tell(arm, reward)
    if samples == 0:
        raise InvalidInputError(
            f"{name} stopped before its first sample: ask must name an arm first"
        )
    when = "when it stops" if asked is None else "also when the cap ends a run"
    named = _arm(rule.recommendation, pulls.size, f"{name}.recommendation is", when)
    return Outcome(samples, named, asked is None, _rounds(name, getattr(rule, "rounds", samples)))


def _arm(given: Any, arms: int, what: str, also: str) -> int:
    """The arm that was given, or what it must be."""
    if not _whole(given) or not 0 <= given < arms:
        raise InvalidInputError(
            f"{what} {quoted(given)}: it must be an arm, a whole number from 0 to {arms - 1}, "
            f"{also}"
        )
    return int(given)


def _rounds(name: str, given: Any) -> int:
    if not _whole(given) or not 0 <= given < 2**63:
        raise InvalidInputError(
            f"{name}.rounds is {quoted(given)}: it must count releases, or be left out"
        )
    return int(given)


def _whole(given: Any) -> bool:
    return isinstance(given, numbers.Integral) and not isinstance(given, bool)


def runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """A strategy of your own, on these laws."""
    assert isinstance(strategy, OwnStrategy)
    arms = laws.mean.size
    return one_by_one(lambda rng, pulls: run_own(strategy.start(arms, rng), rng, laws, cap, pulls))
