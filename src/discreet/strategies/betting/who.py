"""Who plays the next round of bet-se: whoever is announced, the guarantees hold."""

import math

from discreet.leaf import leaf
from discreet.strategies.betting.book import PULLS, Book, count, front_runner, gap_of, pair_row
from discreet.strategies.betting.tilts import Setting

WAKE = 32
"""An arm that just went out is pulled again once the others have 32 times its pulls."""


@leaf
def overslept(a: int, n: int, setting: Setting, book: Book) -> bool:
    """Whether an arm that is out has slept too long.

    The more money was won against it the longer it sleeps (root of the surplus): a
    mistake has barely crossed.
    """
    sleep = WAKE * math.exp(min(book.money[a] - setting.target, 700.0) / 2)
    return bool(book.total[a, PULLS] * sleep < n)


@leaf
def everyone_out(book: Book) -> bool:
    """Whether no arm is left, which starts all over with everybody."""
    return count(book.out) == book.out.size


@leaf
def who_plays(n: int, setting: Setting, book: Book) -> None:
    """Elimination: all arms that are not out, those that overslept, and everyone if
    everyone is out.
    """
    everyone = everyone_out(book)
    for a in range(book.out.size):
        book.active[a] = everyone or not book.out[a] or overslept(a, n, setting, book)


@leaf
def pair_up(n: int, setting: Setting, book: Book) -> int:
    """Top Two: the leader and a challenger play; returns the challenger.

    Of the arms that are in (of all if none is), the leader has the largest mean and the
    challenger the smallest transportation cost gap^2 / (variance of the gap). Arms that
    overslept, or are in and have less than about half their share n/K of the pulls, go
    first, the least pulled of them before the others.
    """
    everyone, leader = everyone_out(book), front_runner(book)
    challenger, overdue, fewest, least = -1, -1, math.inf, math.inf
    for a in range(book.out.size):
        book.active[a] = a == leader
        if a != leader:
            asleep = book.out[a] and not everyone
            pulls = book.total[a, PULLS] if asleep else met(a, leader, setting, book)
            late = overslept(a, n, setting, book) if asleep else pulls * 2 * book.out.size < n
            if late and pulls < fewest:
                overdue, fewest = a, pulls
            if not asleep:
                gap, variance = gap_of(a, leader, book)
                if gap * gap / variance < least:
                    challenger, least = a, gap * gap / variance
    challenger = overdue if overdue >= 0 else challenger
    book.active[challenger] = True
    return challenger


@leaf
def met(a: int, leader: int, setting: Setting, book: Book) -> float:
    """People of an arm that count against its being overdue: with an indifference gap
    those of rounds with this leader for rival.
    """
    if setting.zeta == 0:
        return float(book.total[a, PULLS])
    row = pair_row(a, leader, book)
    return float(book.met[row]) if row >= 0 else 0.0
