"""A simulated run of betting elimination: where its outcomes and noise are drawn. kernel.py compiles these functions.

A reward of any law on [0, 1] is rounded at random to a bit, so the sum of a batch is binomial, whatever the law. Drawn
in each round, for each active arm in turn: the sum of its batch, then two geometric variables for the noise.
"""

import math

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.strategies.betting.rounds import (
    PULLS,
    RELEASES,
    SUM,
    Bets,
    Book,
    Setting,
    announce,
    front_runner,
    new_book,
    plan,
    settle,
)

Generator = np.random.Generator


def draw_release(rng: Generator, length: int, mean: float, setting: Setting) -> float:
    """What is released about a batch: its sum of bits, behind randomised response or discrete Laplace noise."""
    total = rng.binomial(length, min(max(0.5 + setting.scale * (mean - 0.5), 0.0), 1.0))
    if setting.epsilon < math.inf:
        p = -math.expm1(-setting.epsilon)
        total += rng.geometric(p) - rng.geometric(p)
    return float(total)


def note(trace: Floats, rounds: int, samples: int, length: int, book: Book) -> None:
    """State after a round, as far as `trace` has rows: samples, arms not out, batch, rounds, then released means."""
    if rounds <= trace.shape[0]:
        trace[rounds - 1, 0] = samples
        trace[rounds - 1, 1] = book.out.size - book.out.sum()
        trace[rounds - 1, 2] = length
        trace[rounds - 1, 3] = rounds
        for a in range(book.out.size):
            trace[rounds - 1, 4 + a] = book.total[a, SUM] / book.total[a, PULLS]


def play_betting(
    rng: Generator,
    means: Floats,
    bets: Bets,
    setting: Setting,
    max_samples: int,
    pulls: Ints,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`.

    The last batch before the cap is shortened to fit. A run that the cap ends names its front runner.
    """
    arms = means.size
    book = new_book(arms)
    samples, rounds, n, length, best = 0, 0, 0, setting.first, -1
    pulls[:] = 0
    while best < 0:
        leader, second, octave, weight = announce(rounds, book)
        length = min(length, (max_samples - samples) // weight)
        if length < 1:
            return samples, front_runner(book), False, rounds
        for a in range(arms):
            if book.active[a]:
                batch = length * 2**octave if a == leader else length
                book.fresh[a, SUM] = draw_release(rng, batch, means[a], setting)
                book.fresh[a, PULLS], book.fresh[a, RELEASES] = batch, 1
                pulls[a] += batch
        samples += length * weight
        n += length
        best = settle(rounds, n, leader, second, octave, bets, setting, book)
        rounds += 1
        note(trace, rounds, samples, length, book)
        if best < 0:
            length = plan(n, setting, book)
    return samples, best, True, rounds


LEAVES = (draw_release, note, play_betting)
