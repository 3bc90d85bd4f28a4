"""A round of betting elimination: announced, played, settled; all from released sums
and public counts.

Evidence against "arm a is best" is money won by betting, round after round, that a's
release is low and that of an announced rival is high. An arm is *out* while the money,
at the value x of its mean that is worst for the gambler, is at least 1/delta. The docs
page "Betting elimination" has the proofs.

An arm keeps

* total     one row: everything released about it                                 -> its
  mean, its interval
* own[i]    its releases of rounds that were bet on, at lead octave i             -> the
  `down` factor
* rival[i]  those of the rivals announced for it in the same rounds               -> the
  `up` factor

Simulated runs, live runs and the way of a run all go through `first_round`, the
releases into `book.fresh`, and `next_round`.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats
from discreet.leaf import leaf
from discreet.strategies.betting.bets import OCTAVES, Bets, Setting
from discreet.strategies.betting.evidence import PULLS, SUM, felt, infimum, log_evidence, rounding

WAKE = 32
"""An arm that just went out is pulled again once the others have 32 times its pulls."""


class Book(NamedTuple):
    """What a run remembers: released sums, counts, and what was decided from them."""

    total: Floats
    """[arm, column]"""
    own: Floats
    """[arm, octave, column]"""
    rival: Floats
    """[arm, octave, column]"""
    fresh: Floats
    """[arm, column]: the releases of this round."""
    money: Floats
    """log E of each arm, between its mean and the leader's, when it was last judged."""
    out: Flags
    active: Flags
    """Who plays the next round."""


@leaf(allocates=True)
def new_book(arms: int) -> Book:
    """Nothing released yet, everyone plays."""
    return Book(
        np.zeros((arms, 3)),
        np.zeros((arms, OCTAVES, 3)),
        np.zeros((arms, OCTAVES, 3)),
        np.zeros((arms, 3)),
        np.zeros(arms),
        np.zeros(arms, np.bool_),
        np.ones(arms, np.bool_),
    )


class Round(NamedTuple):
    """A round as it is announced, before anybody is asked; one whose `winner` is an arm
    is the end.
    """

    number: int
    """Rounds played before."""
    leader: int
    second: int
    """The runner-up: the leader's own rival."""
    octave: int
    """The leader is pulled 2**octave times as often as each other arm that plays."""
    weight: int
    """Pulls of all together for each pull of one."""
    length: int
    """Pulls of each arm but the leader; below 1 if no round fits below the cap any
    more.
    """
    n: int
    """Pulls, before, of an arm that played every round."""
    samples: int
    """Pulls of all arms before."""
    winner: int
    """The arm to stop with; -1 if the round is to be played."""


@leaf(allocates=True)
def first_round(setting: Setting, cap: int, book: Book) -> Round:
    """The first round of a run of at most `cap` samples."""
    return announce(0, 0, 0, setting.first, cap, book)


@leaf(allocates=True)
def next_round(now: Round, bets: Bets, setting: Setting, cap: int, book: Book) -> Round:
    """Settle the bets of a round with the releases in `book.fresh`, and announce the
    next one.
    """
    n, samples = now.n + now.length, now.samples + now.length * now.weight
    winner = settle(now, n, bets, setting, book)
    if winner >= 0:
        return Round(
            now.number + 1, now.leader, now.second, now.octave, now.weight, 0, n, samples, winner
        )
    return announce(now.number + 1, n, samples, plan(n, setting, book), cap, book)


@leaf(allocates=True)
def announce(number: int, n: int, samples: int, length: int, cap: int, book: Book) -> Round:
    """A round fixed before it is played; the last one before the cap is shortened to
    fit.
    """
    leader, second = leaders(book.active, True, book.total)
    playing = 0
    for a in range(book.active.size):
        if book.active[a]:
            playing += 1
    octave = lead_octave(playing) if number > 0 else 0
    weight = playing - 1 + 2**octave
    return Round(
        number,
        leader,
        second,
        octave,
        weight,
        min(length, (cap - samples) // weight),
        n,
        samples,
        -1,
    )


@leaf(allocates=True)
def batch_of(arm: int, now: Round) -> int:
    """How many outcomes of an arm that plays a round asks for."""
    return now.length * 2**now.octave if arm == now.leader else now.length


@leaf(allocates=True)
def mean_of(arm: int, total: Floats, setting: Setting) -> float:
    """The arm's released mean, clipped to where means can lie."""
    return float(min(max(total[arm, SUM] / total[arm, PULLS], setting.low), setting.high))


@leaf(allocates=True)
def leaders(marks: Flags, wanted: bool, total: Floats) -> tuple[int, int]:
    """The two arms marked as wanted with the largest released means (ties: lowest
    index; unpulled arms count as 0).
    """
    first, second, best, next_best = -1, -1, -math.inf, -math.inf
    for a in range(total.shape[0]):
        if marks[a] == wanted:
            mean = total[a, SUM] / max(total[a, PULLS], 1.0)
            if mean > best:
                first, second, best, next_best = a, first, mean, best
            elif mean > next_best:
                second, next_best = a, mean
    return first, second


@leaf(allocates=True)
def lead_octave(active: int) -> int:
    """i such that pulling the leader 2**i times as often is best, roughly 2**i =
    sqrt(rivals).
    """
    return min(max(math.floor(0.5 * math.log2(active - 1.0) + 0.3), 0), OCTAVES - 1)


@leaf(allocates=True)
def enter(a: int, other: int, octave: int, octave_other: int, book: Book) -> None:
    """Write this round's releases into arm a's bets against its announced rival."""
    for column in range(3):
        book.own[a, octave, column] += book.fresh[a, column]
        book.rival[a, octave_other, column] += book.fresh[other, column]


@leaf(allocates=True)
def settle(now: Round, n: int, bets: Bets, setting: Setting, book: Book) -> int:
    """Enter the releases in `book.fresh`, judge the arms that played; the arm to stop
    with, or -1.

    n counts this round's batch too. No bet was made on the first round: nobody knew a
    rival.
    """
    for a in range(book.active.size):
        if book.active[a]:
            for column in range(3):
                book.total[a, column] += book.fresh[a, column]
            if now.number > 0 and a != now.leader:
                enter(a, now.leader, 0, now.octave, book)
    if now.number > 0:
        enter(now.leader, now.second, now.octave, 0, book)
    judge(n, bets, setting, book)
    return winner(n, bets, setting, book)


@leaf(allocates=True)
def judge(n: int, bets: Bets, setting: Setting, book: Book) -> None:
    """Set out[a] and money[a] of every arm that played.

    Money that is not enough between the arm's mean and the leader's is not enough: the
    infimum is computed only if it is.
    """
    count = felt(bets, n)
    leader, _ = leaders(book.active, True, book.total)
    for a in range(book.active.size):
        if book.active[a]:
            x = (mean_of(a, book.total, setting) + mean_of(leader, book.total, setting)) / 2
            own, rival = book.own[a], book.rival[a]
            book.money[a], _, _ = log_evidence(x, own, rival, 0.0, count, bets)
            target = setting.target + rounding(own, rival)
            lower = -math.inf
            if book.money[a] >= target:
                lower, _ = infimum(
                    x, setting.low, setting.high, own, rival, 0.0, count, bets, target, 0.0
                )
            book.out[a] = lower >= target


@leaf(allocates=True)
def winner(n: int, bets: Bets, setting: Setting, book: Book) -> int:
    """The arm to stop with, or -1: the only arm left, or one that no arm left beats by
    zeta.
    """
    leader, second = leaders(book.out, False, book.total)
    if second < 0 or setting.zeta == 0:
        return leader if second < 0 else -1
    count = felt(bets, n)
    low = min(setting.low + setting.zeta, setting.high)
    for a in range(book.out.size):
        if not book.out[a] and a != leader:
            own, other = book.own[a], book.own[leader]
            target = setting.zeta_target + rounding(own, other)
            middle = (low + setting.high) / 2
            lower, _ = infimum(
                middle, low, setting.high, own, other, setting.zeta, count, bets, target, 0.0
            )
            if lower < target:
                return -1
    return leader


@leaf(allocates=True)
def plan(n: int, setting: Setting, book: Book) -> int:
    """Set who plays the next round; the length of its batch."""
    if setting.top_two:
        challenger = pair_up(n, setting, book)
        return next_batch(int(book.total[challenger, PULLS]), book.active, True, setting, book)
    who_plays(n, setting, book)
    return next_batch(n, book.out, False, setting, book)


@leaf(allocates=True)
def front_runner(book: Book) -> int:
    """Whom an unfinished run would name: the largest mean of the arms that are in, of
    all if all are out.
    """
    leader, _ = leaders(book.out, False, book.total)
    return leader if leader >= 0 else leaders(book.out, True, book.total)[0]


@leaf(allocates=True)
def overslept(a: int, n: int, setting: Setting, book: Book) -> bool:
    """Whether an arm that is out has slept too long.

    The more money was won against it the longer it sleeps (root of the surplus): a
    mistake has barely crossed.
    """
    sleep = WAKE * math.exp(min(book.money[a] - setting.target, 700.0) / 2)
    return bool(book.total[a, PULLS] * sleep < n)


@leaf(allocates=True)
def everyone_out(book: Book) -> bool:
    """Whether no arm is left, which starts all over with everybody."""
    left = 0
    for a in range(book.out.size):
        if not book.out[a]:
            left += 1
    return left == 0


@leaf(allocates=True)
def who_plays(n: int, setting: Setting, book: Book) -> None:
    """Elimination: all arms that are not out, those that overslept, and everyone if
    everyone is out.
    """
    everyone = everyone_out(book)
    for a in range(book.out.size):
        book.active[a] = everyone or not book.out[a] or overslept(a, n, setting, book)


@leaf(allocates=True)
def pair_up(n: int, setting: Setting, book: Book) -> int:
    """Top Two: the leader and a challenger play; returns the challenger.

    Of the arms that are in (of all if none is), the leader has the largest mean and the
    challenger the smallest transportation cost gap^2 / (1/N + 1/N_leader). Arms that
    overslept, or are in and have less than about half their share n/K of the pulls, go
    first, the least pulled of them before the others.
    """
    everyone, leader = everyone_out(book), front_runner(book)
    challenger, overdue, fewest, least = -1, -1, math.inf, math.inf
    for a in range(book.out.size):
        book.active[a] = a == leader
        if a != leader:
            pulls, asleep = book.total[a, PULLS], book.out[a] and not everyone
            late = overslept(a, n, setting, book) if asleep else pulls * 2 * book.out.size < n
            if late and pulls < fewest:
                overdue, fewest = a, pulls
            if not asleep:
                gap = (
                    book.total[leader, SUM] / book.total[leader, PULLS] - book.total[a, SUM] / pulls
                )
                cost = gap * gap / (1 / pulls + 1 / book.total[leader, PULLS])
                if cost < least:
                    challenger, least = a, cost
    challenger = overdue if overdue >= 0 else challenger
    book.active[challenger] = True
    return challenger


@leaf(allocates=True)
def gain(length: float, gap: float, variance: float, setting: Setting) -> float:
    """Nats a batch should win for an arm that lies `gap` below the leader: sampling and
    noise in series.
    """
    sampling = length * gap * gap / (8 * variance)
    if setting.epsilon == math.inf:
        return 2 * sampling
    pull = setting.epsilon * length * gap / 2
    noise = pull - 1 + math.exp(-pull)
    return 2 * sampling * noise / max(sampling + noise, 1e-300)


@leaf(allocates=True)
def next_batch(n: int, marks: Flags, wanted: bool, setting: Setting, book: Book) -> int:
    """Length of the next batch, with an eye on the arms marked as wanted. No guarantee
    depends on it.

    While noise dominates (eps^2 n < 50) a release is dear: a batch is as long as it
    takes, with a margin, to finish the arm nearest to going out, within [n/5, 2n].
    Later batches are short: 3 % of n, but not below 40/eps^2.
    """
    information = setting.epsilon**2 * n
    dear = 1 / (1 + information / 50)
    shortest = min(max(40 / information, 0.03), 0.2) * n
    goal = setting.target + 8 * dear - 4
    leader, _ = leaders(marks, wanted, book.total)
    length = shortest
    while length < 2 * n:
        for a in range(marks.size):
            if marks[a] == wanted and a != leader:
                top, own = mean_of(leader, book.total, setting), mean_of(a, book.total, setting)
                middle = (top + own) / 2
                variance = max(middle * (1 - middle), 0.01)
                if (
                    book.money[a] + gain(length, top - own + setting.zeta, variance, setting)
                    >= goal
                ):
                    return math.ceil(length)
        length *= 1.1
    return 2 * n
