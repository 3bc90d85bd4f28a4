"""A simulated run of betting elimination: where its outcomes and noise are drawn.

A reward of any law on [0, 1] is rounded at random to a bit, so the sum of a batch is
binomial, whatever the law. Drawn in each round, for each active arm in turn: the sum of
its batch, then two geometric variables for the noise.
"""

import math

from discreet.arrays import Floats, Ints
from discreet.leaf import leaf
from discreet.simulation.laws import Generator, Laws
from discreet.simulation.outcome import Outcome, no_trace
from discreet.simulation.runner import Runner, one_by_one
from discreet.strategies.betting.bets import BettingRules, Setting, betting_rules
from discreet.strategies.betting.evidence import PULLS, RELEASES, SUM
from discreet.strategies.betting.rounds import (
    Book,
    Round,
    batch_of,
    first_round,
    front_runner,
    new_book,
    next_round,
)
from discreet.strategies.strategy import Strategy


@leaf(allocates=True)
def draw_release(rng: Generator, length: int, mean: float, setting: Setting) -> float:
    """What is released about a batch: its sum of bits, behind randomised response or
    discrete Laplace noise.
    """
    total = rng.binomial(length, min(max(0.5 + setting.scale * (mean - 0.5), 0.0), 1.0))
    if setting.epsilon < math.inf:
        p = -math.expm1(-setting.epsilon)
        total += rng.geometric(p) - rng.geometric(p)
    return float(total)


@leaf(allocates=True)
def draw_round(rng: Generator, means: Floats, now: Round, setting: Setting, book: Book) -> None:
    """The releases of a round into `book.fresh`."""
    for a in range(means.size):
        if book.active[a]:
            batch = batch_of(a, now)
            book.fresh[a, SUM] = draw_release(rng, batch, means[a], setting)
            book.fresh[a, PULLS], book.fresh[a, RELEASES] = batch, 1


@leaf(allocates=True)
def note(trace: Floats, rounds: int, samples: int, length: int, book: Book) -> None:
    """State after a round, as far as `trace` has rows: samples, arms not out, batch,
    rounds, then released means.
    """
    if rounds <= trace.shape[0]:
        trace[rounds - 1, 0] = samples
        trace[rounds - 1, 1] = book.out.size - book.out.sum()
        trace[rounds - 1, 2] = length
        trace[rounds - 1, 3] = rounds
        for a in range(book.out.size):
            trace[rounds - 1, 4 + a] = book.total[a, SUM] / book.total[a, PULLS]


@leaf(allocates=True)
def run_betting(
    rng: Generator, means: Floats, rules: BettingRules, cap: int, pulls: Ints, trace: Floats
) -> Outcome:
    """One run; writes `pulls` and `trace`.

    The last batch before the cap is shortened to fit. A run that the cap ends names its
    front runner.
    """
    book = new_book(pulls.size)
    pulls[:] = 0
    now = first_round(rules.setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        draw_round(rng, means, now, rules.setting, book)
        for a in range(pulls.size):
            if book.active[a]:
                pulls[a] += batch_of(a, now)
        length = now.length
        now = next_round(now, rules.bets, rules.setting, cap, book)
        note(trace, now.number, now.samples, length, book)
    stopped = now.winner >= 0
    return Outcome(now.samples, now.winner if stopped else front_runner(book), stopped, now.number)


def runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """bet-se on these laws. Rewards are rounded to bits, so their means are all that a
    law has to say.
    """
    from discreet.simulation.compile import compiled

    arms = laws.mean.size
    rules, run, none = betting_rules(strategy, arms), compiled(run_betting), no_trace(arms)
    return one_by_one(lambda rng, pulls: run(rng, laws.mean, rules, cap, pulls, none))
