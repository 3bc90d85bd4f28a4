"""How often bet-se ever puts out arm 0, in rounds that are dealt here and otherwise
played with the package's leaves: by sums as the simulator does, or person by person, as
coins, a fixed cycle or permuted blocks deal them, whatever drifts.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.jit import jit
from discreet.simulation.betting import draw_noise, draw_round
from discreet.simulation.laws import Generator, Laws
from discreet.strategies.betting.bets import BettingRules, BettingSetting
from discreet.strategies.betting.book import COUNT, SUM, Book, Round, find_odds, new_book
from discreet.strategies.betting.rounds import (
    announce_first,
    release_difference,
    settle_and_announce,
)

SUMS, SIMPLE, CYCLE, BLOCKS = 0, 1, 2, 3
"""How people are dealt; a block has one place for each 1 of the odds."""
STEADY, LINE, STEP, SEASON, SITES, STAFF = 0, 1, 2, 3, 4, 5
"""What moves the means of all arms alike. Staff guess the next arm, the one of two that
has had fewer people, and pick better people for arm 1.
"""


class Field(NamedTuple):
    """Where people come from and how they are dealt."""

    randomisation: int = SUMS
    drift: int = STEADY
    size: float = 0.0
    span: float = 1.0
    """In people."""


@jit
def shift(person: int, guess: int, field: Field) -> float:
    """What a person adds to the mean of every arm."""
    phase, sign = person / field.span, 1.0
    if field.drift == LINE:
        sign = 2 * min(phase, 1.0) - 1
    elif field.drift == STEP:
        sign = -1.0 if phase < 1 else 1.0
    elif field.drift == SEASON:
        sign = math.sin(2 * math.pi * phase)
    elif field.drift == SITES:
        sign = -1.0 if phase % 2 < 1 else 1.0
    elif field.drift == STAFF:
        sign = 1.0 if guess == 1 else -1.0
    return sign * field.size


@jit(allocates=True)
def places_of(now: Round, book: Book) -> Ints:
    """One arm for each 1 of the odds, in order."""
    places, k = np.zeros(now.weight, np.int64), 0
    for a in range(book.active.size):
        if book.active[a]:
            for _ in range(find_odds(a, now)):
                places[k] = a
                k += 1
    return places


@jit
def deal(rng: Generator, i: int, places: Ints, randomisation: int) -> int:
    """The arm of person i of a round; blocks are shuffled where they stand."""
    k = i % places.size
    if randomisation == SIMPLE:
        k = int(rng.random() * places.size)
    elif randomisation == BLOCKS:
        other = k + int(rng.random() * (places.size - k))
        places[k], places[other] = places[other], places[k]
    return int(places[k])


@jit(allocates=True)
def deal_round(
    rng: Generator, means: Floats, field: Field, now: Round, setting: BettingSetting, book: Book
) -> None:
    """The releases of a round into `book.fresh`, person by person."""
    places, arm = places_of(now, book), 1
    book.fresh[:] = 0
    for i in range(now.length * now.weight):
        more = book.fresh[1, COUNT] - book.fresh[0, COUNT]
        guess = 1 - arm if more == 0 else (0 if more > 0 else 1)
        arm = deal(rng, i, places, field.randomisation)
        mean = means[arm] + shift(now.samples + i, guess, field)
        mean = 0.5 + setting.scale * (mean - 0.5)
        book.fresh[arm, SUM] += 1 if rng.random() < mean else 0
        book.fresh[arm, COUNT] += 1
    if now.difference:
        release_difference(draw_noise(rng, now, setting), 0.0, now, book)
    else:
        for a in range(means.size):
            if book.active[a]:
                book.fresh[a, SUM] += draw_noise(rng, now, setting)


@jit(allocates=True)
def runs_with_best_out(
    rng: Generator, laws: Laws, field: Field, rules: BettingRules, cap: int, runs: int
) -> int:
    """Of so many runs, those in which arm 0 is out after some round."""
    found, pulls = 0, np.zeros(laws.mean.size, np.int64)
    for _ in range(runs):
        book = new_book(pulls.size, rules.bets.tilt.size)
        now = announce_first(rules.setting, cap, book)
        while now.winner < 0 and now.length >= 1 and not book.eliminated[0]:
            if field.randomisation == SUMS:
                draw_round(rng, laws, now, rules.setting, pulls, book)
            else:
                deal_round(rng, laws.mean, field, now, rules.setting, book)
            now, book = settle_and_announce(now, rules.bets, rules.setting, cap, book)
        found += book.eliminated[0]
    return found
