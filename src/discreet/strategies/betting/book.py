"""What a run of bet-se remembers, and a round as it is announced."""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.betting.bets import Slopes
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.units import LEVELS

SUM, COUNT, RELEASES, PULLS = 0, 1, 2, 3
"""Columns of `Book.total`: a sum, the people behind it, the releases it came in, and
all people of the arm. `Book.fresh` has the first two, and NEAR.
"""
NEAR = 2
"""Column of `Book.fresh`: how close the outcomes behind a sum are to the centre."""
FOLLOWER, LEADER, EVEN = 0, 1, 2
"""The scores of a round, by the odds of an arm and of its rival: all followers of a
leader with larger odds share one, the leader has another. Where the arm with the larger
odds is not the leader, most have the odds 1 to 1.
"""
OWN, OWN_COUNT, RIVAL, RIVAL_COUNT, STEP, COST, OWN_NEAR, RIVAL_NEAR = 0, 1, 2, 3, 4, 5, 6, 7
"""A score's weights in a table, and what its noise costs: for moment bets m of each
slope, for tail bets log A. The last two are there if closeness is released.
"""
LOST = 50.0
"""Nats behind the best tilt after which a tilt's money counts for nothing."""
PRIOR = 12.0
"""One over the variance of a uniform law: a mean nobody has seen."""


class Book(NamedTuple):
    """What a run remembers: money, totals, and what was decided from them."""

    wealth: Floats
    """[arm, tilt]: log money won against "this arm is best"; from 0."""
    total: Floats
    """[arm, column]"""
    mean: Floats
    """[arm]: for planning, from all releases."""
    precision: Floats
    """[arm]: one over the variance of `mean`."""
    fresh: Floats
    """[arm, column]: the releases of this round."""
    close: Floats
    """Of all releases of closeness: their sum, what it would be with all outcomes at
    their centres, and their number.
    """
    money: Floats
    """[arm]: log of all its money, when it was last judged."""
    out: Flags
    active: Flags
    """Who plays the next round."""
    slot: Ints
    """[arm]: with an indifference gap, the place in `pair` of the bets with this arm
    for rival; -1 if there were none.
    """
    pair: Floats
    """[row, tilt], see `pair_row`: log money won against "this arm is better than that
    rival by zeta or more".
    """
    met: Floats
    """[row]: people of the arm in those rounds."""


@leaf(allocates=True)
def new_book(arms: int, tilts: int) -> Book:
    """Nothing released yet, everyone plays."""
    return Book(
        np.zeros((arms, tilts)),
        np.zeros((arms, 4)),
        np.full(arms, 0.5),
        np.full(arms, PRIOR),
        np.zeros((arms, 3)),
        np.zeros(3),
        np.zeros(arms),
        np.zeros(arms, np.bool_),
        np.ones(arms, np.bool_),
        np.full(arms, -1),
        np.zeros((0, tilts)),
        np.zeros(0),
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
    heavy: int
    """The arm with the larger odds: the leader, but for rounds that were opened ahead.
    With equal odds always the leader.
    """
    odds: int
    """Its coin, against 1 for each other arm that plays."""
    weight: int
    """The sum of all odds."""
    length: int
    """People for each 1 of the odds; below 1 if no round fits below the cap."""
    centre: float
    """x0 of the scores."""
    dear: bool
    """Whether noise is dear: loud tilts bet by tails."""
    margin: bool
    """Whether one number is released, the leader's margin over the best of the others,
    in place of a sum an arm.
    """
    fine: bool
    """Whether outcomes are summed as the numbers they are, with their closeness to the
    centre; otherwise each is rounded to a bit.
    """
    sigma: Floats
    """[arm]: the share of a tail bet that goes all in."""
    pick: Ints
    """[arm]: the tilt of its tail bet, a row of `tails`."""
    tails: Floats
    """[side, tilt, column]: the tail bets to choose from."""
    price: Floats
    """[side, tilt]: what moment bets pay for the way people were dealt; empty for
    coins, which cost nothing.
    """
    n: int
    """Sum of all lengths before."""
    samples: int
    """People before."""
    winner: int
    """The arm to stop with; -1 if the round is to be played."""


@leaf
def odds_of(a: int, now: Round) -> int:
    """The odds of an arm that plays."""
    return now.odds if a == now.heavy else 1


@leaf
def rival_of(a: int, now: Round) -> int:
    """Whom an arm that plays is bet on against: the leader, and the leader against the
    runner-up.
    """
    return now.second if a == now.leader else now.leader


@leaf
def side_of(a: int, now: Round) -> int:
    """Which scores an arm that plays is bet on with."""
    if now.heavy == now.leader:
        return LEADER if a == now.leader else FOLLOWER
    if a == now.heavy:
        return LEADER
    return FOLLOWER if rival_of(a, now) == now.heavy else EVEN


@leaf
def sides_of(now: Round) -> int:
    """How many kinds of scores a round has."""
    return 2 if now.heavy == now.leader else 3


@leaf
def ratio_of(side: int, now: Round) -> float:
    """The odds of an arm over those of its rival."""
    if side == EVEN:
        return 1.0
    return float(now.odds) if side == LEADER else 1 / now.odds


@leaf
def write(score: Slopes, table: Floats, side: int, j: int) -> None:
    """A score's weights into a table."""
    table[side, j, OWN] = score.own
    table[side, j, OWN_COUNT] = score.own_count
    table[side, j, RIVAL] = score.rival
    table[side, j, RIVAL_COUNT] = score.rival_count
    table[side, j, STEP] = score.step


@leaf
def copy(table: Floats, j: int) -> None:
    """The leader's row of a table from the followers': with equal odds they are the
    same.
    """
    for column in range(table.shape[2]):
        table[LEADER, j, column] = table[FOLLOWER, j, column]


@leaf
def columns(fine: bool) -> int:
    """How many columns the scores of a round have."""
    return RIVAL_NEAR + 1 if fine else COST + 1


@leaf
def bet_centre(now: Round, setting: Setting) -> float:
    """x0 of the scores: the announced centre where people send three levels is one of
    these levels, and what is sent lies around another value; a margin forces 1/2.
    """
    if now.margin:
        return 0.5
    return sent_centre(now.centre, setting)


@leaf
def sent_centre(centre: float, setting: Setting) -> float:
    """The mean of what is sent if that of outcomes is the centre."""
    if setting.kind != LEVELS:
        return centre
    return setting.scale * centre + setting.slip * (1 + centre)


@leaf
def count(marks: Flags) -> int:
    """How many are marked."""
    marked = 0
    for a in range(marks.size):
        if marks[a]:
            marked += 1
    return marked


@leaf
def leaders(marks: Flags, wanted: bool, book: Book) -> tuple[int, int]:
    """The two arms marked as wanted with the largest means (ties: lowest index)."""
    first, second, best, next_best = -1, -1, -math.inf, -math.inf
    for a in range(marks.size):
        if marks[a] == wanted:
            mean = book.mean[a]
            if mean > best:
                first, second, best, next_best = a, first, mean, best
            elif mean > next_best:
                second, next_best = a, mean
    return first, second


@leaf
def front_runner(book: Book) -> int:
    """Whom an unfinished run would name: the largest mean of the arms that are in, of
    all if all are out.
    """
    leader, _ = leaders(book.out, False, book)
    return leader if leader >= 0 else leaders(book.out, True, book)[0]


@leaf
def learn(arm: int, value: float, variance: float, book: Book) -> None:
    """Move the planning mean of an arm towards an estimate with this variance."""
    weight = 1 / variance
    book.precision[arm] += weight
    book.mean[arm] += weight / book.precision[arm] * (value - book.mean[arm])


@leaf
def learn_apart(one: int, other: int, gap: float, variance: float, book: Book) -> None:
    """Move the planning means of two arms so that their difference comes nearer to an
    estimate.

    If no other arm is in, only the difference counts from now on, and the precisions
    say how well it is known. Otherwise they say how well each mean is known, which a
    difference tells less about.
    """
    before = 1 / book.precision[one] + 1 / book.precision[other]
    move = (gap - book.mean[one] + book.mean[other]) / (before + variance)
    book.mean[one] += move / book.precision[one]
    book.mean[other] -= move / book.precision[other]
    alone = count(book.out) >= book.out.size - 2
    for a in (one, other):
        if alone:
            book.precision[a] *= 1 + before / variance
        else:
            book.precision[a] /= 1 - 1 / (book.precision[a] * (before + variance))


@leaf
def gap_of(a: int, rival: int, book: Book) -> tuple[float, float]:
    """How far an arm lies below its rival, and the variance of that."""
    variance = 1 / book.precision[a] + 1 / book.precision[rival]
    return book.mean[rival] - book.mean[a], variance


@leaf
def loud_money(accounts: Floats, row: int, bets: Bets) -> float:
    """The log of the money that an account has on loud tilts."""
    top = -math.inf
    for j in range(bets.loud):
        top = max(top, bets.stake[j] + accounts[row, j])
    total = 0.0
    for j in range(bets.loud):
        total += math.exp(bets.stake[j] + accounts[row, j] - top)
    return top + math.log(total)


@leaf
def money_of(accounts: Floats, row: int, felt: int, bets: Bets) -> float:
    """The log of all the money of an account, if only its first `felt` tilts have
    bet.
    """
    top = 0.0
    for j in range(felt):
        top = max(top, accounts[row, j])
    total = bets.rest[felt] * math.exp(-top)
    for j in range(felt):
        if accounts[row, j] > top - LOST:
            total += math.exp(bets.stake[j] + accounts[row, j] - top)
    return top + math.log(total)


@leaf
def pair_row(a: int, rival: int, book: Book) -> int:
    """Where `pair` has the bets on an arm against this rival; -1 if there were none."""
    return int(book.slot[rival] * book.slot.size + a) if book.slot[rival] >= 0 else -1


@leaf(allocates=True)
def with_pair(rival: int, book: Book) -> Book:
    """The book with room for bets that have this arm for rival, each from 1; room grows
    by doubling.
    """
    if book.slot[rival] >= 0:
        return book
    used, arms, rows = 0, book.slot.size, book.met.size
    for arm in range(arms):
        used = max(used, book.slot[arm] + 1)
    book.slot[rival] = used
    if (used + 1) * arms <= rows:
        return book
    more = max(2 * rows, arms)
    pair, met = np.zeros((more, book.pair.shape[1])), np.zeros(more)
    for row in range(rows):
        met[row] = book.met[row]
        for j in range(pair.shape[1]):
            pair[row, j] = book.pair[row, j]
    return Book(
        book.wealth,
        book.total,
        book.mean,
        book.precision,
        book.fresh,
        book.close,
        book.money,
        book.out,
        book.active,
        book.slot,
        pair,
        met,
    )
