"""The state of a run of bet-se, and a round as it is announced."""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.jit import jit
from discreet.strategies.betting.bets import Bets, BettingSetting
from discreet.strategies.units import LEVELS

SUM, COUNT, RELEASES, ASSIGNED = 0, 1, 2, 3
"""Columns of `Book.total`: a sum, the participants behind it, the releases it came in,
and all participants of the arm. `Book.fresh` has the first two, and CLOSENESS.
"""
CLOSENESS = 2
"""Column of `Book.fresh`: how close the outcomes behind a sum are to the centre."""
FOLLOWER, LEADER, EVEN = 0, 1, 2
"""The scores of a round, by the odds of an arm and of its rival: all followers of a
leader with larger odds share one, the leader has another. Where the arm with the larger
odds is not the leader, most have the odds 1 to 1. With equal odds all share the first.
"""
UNSEEN_PRECISION = 12.0
"""One over the variance of a uniform law: a mean nobody has seen."""


class Book(NamedTuple):
    """State of a run: wealth, totals, and what was decided from them."""

    wealth: Floats
    """[arm, tilt]: log wealth won against "this arm is best"; from 0."""
    total: Floats
    """[arm, column]"""
    mean: Floats
    """[arm]: for planning, from all releases."""
    precision: Floats
    """[arm]: one over the variance of `mean`."""
    fresh: Floats
    """[arm, column]: the releases of this round."""
    closeness_totals: Floats
    """Totals of all releases of closeness: their sum, what it would be with all outcomes at
    their centres, and their number.
    """
    log_wealth: Floats
    """[arm]: log of the whole wealth won against it, when it was last judged."""
    eliminated: Flags
    """[arm]: whether it is eliminated."""
    active: Flags
    """[arm]: whether it plays the next round."""
    pair_slot: Ints
    """[arm]: with an indifference zone, the place in `pair_wealth` of the bets with this arm
    for rival; -1 if there were none.
    """
    pair_wealth: Floats
    """[row, tilt], see `find_pair_row`: log wealth won against "this arm is better than that
    rival by the indifference zone or more".
    """


@jit(allocates=True)
def new_book(arms: int, tilts: int) -> Book:
    """Make a book: nothing released yet, every arm plays."""
    return Book(
        np.zeros((arms, tilts)),
        np.zeros((arms, 4)),
        np.full(arms, 0.5),
        np.full(arms, UNSEEN_PRECISION),
        np.zeros((arms, 3)),
        np.zeros(3),
        np.zeros(arms),
        np.zeros(arms, np.bool_),
        np.ones(arms, np.bool_),
        np.full(arms, -1),
        np.zeros((0, tilts)),
    )


class Round(NamedTuple):
    """A round as it is announced, before anybody is asked; one whose `winner` is an arm
    is the end.
    """

    number: int
    """Rounds played before."""
    leader: int
    runner_up: int
    """The runner-up: the leader's own rival."""
    favoured: int
    """The arm with the larger odds: the leader, but for rounds that were opened ahead.
    With equal odds always the leader.
    """
    odds: int
    """Its odds, against 1 for each other arm that plays."""
    weight: int
    """The sum of all odds."""
    length: int
    """Participants for each 1 of the odds; below 1 if no round fits below the cap."""
    announced: int
    """The length as announced before the first participant, which stakes follow; more
    than `length` if a manager cut the round short.
    """
    centre: float
    """x0 of the scores."""
    by_tails: bool
    """True if bets pay for the tail of the noise, not for its moment."""
    difference: bool
    """True if two arms release one number, their difference, in place of two sums."""
    fine: bool
    """True if outcomes are summed as the numbers they are, with their closeness to the
    centre; otherwise each is rounded to a bit.
    """
    n: int
    """Sum of all lengths before."""
    samples: int
    """Participants before."""
    winner: int
    """The arm to stop with; -1 if the round is to be played."""


# --- the round ------------------------------------------------------------------------


@jit
def find_odds(a: int, current: Round) -> int:
    """Return the odds of an arm that plays."""
    return current.odds if a == current.favoured else 1


@jit
def find_rival(a: int, current: Round) -> int:
    """Return whom an arm that plays is bet on against: the leader, and the leader
    against the runner-up.
    """
    return current.runner_up if a == current.leader else current.leader


@jit
def find_side(a: int, current: Round) -> int:
    """Return which scores an arm that plays is bet on with."""
    if current.odds == 1:
        return FOLLOWER
    if current.favoured == current.leader:
        return LEADER if a == current.leader else FOLLOWER
    if a == current.favoured:
        return LEADER
    return FOLLOWER if find_rival(a, current) == current.favoured else EVEN


@jit
def compute_odds_ratio(side: int, current: Round) -> float:
    """Return the odds of an arm over those of its rival."""
    if side == EVEN:
        return 1.0
    return float(current.odds) if side == LEADER else 1 / current.odds


@jit
def find_bet_centre(current: Round, setting: BettingSetting) -> float:
    """Return x0 of the scores: a difference forces 1/2."""
    return 0.5 if current.difference else compute_sent_centre(current.centre, setting)


@jit
def compute_sent_centre(centre: float, setting: BettingSetting) -> float:
    """Return the mean of what is sent if that of outcomes is the centre: where three
    levels are sent, the centre is one of them, and the mean is another value.
    """
    if setting.kind != LEVELS:
        return centre
    return setting.scale * centre + setting.level_error * (1 + centre)


@jit
def compute_sent_shift(current: Round, setting: BettingSetting) -> float:
    """Return how far the mean of what is sent lies above the usual scale, on which the
    means of all rounds are compared.
    """
    if setting.kind != LEVELS:
        return 0.0
    return setting.level_error * (1 + current.centre) - setting.low


# --- arms -----------------------------------------------------------------------------


@jit
def count_marked(marks: Flags) -> int:
    """Count how many are marked."""
    marked = 0
    for a in range(marks.size):
        if marks[a]:
            marked += 1
    return marked


@jit
def find_leaders(marks: Flags, wanted: bool, book: Book) -> tuple[int, int]:
    """Return the two arms marked as wanted with the largest means (ties: lowest index);
    -1 where there is none.
    """
    first, second, best, next_best = -1, -1, -math.inf, -math.inf
    for a in range(marks.size):
        if marks[a] == wanted:
            mean = book.mean[a]
            if mean > best:
                first, second, best, next_best = a, first, mean, best
            elif mean > next_best:
                second, next_best = a, mean
    return first, second


@jit
def find_front_runner(book: Book) -> int:
    """Return whom an unfinished run would name: the largest mean of the arms that are
    in, of all if all are eliminated.
    """
    leader, _ = find_leaders(book.eliminated, False, book)
    return leader if leader >= 0 else find_leaders(book.eliminated, True, book)[0]


@jit
def update_mean(arm: int, value: float, variance: float, book: Book) -> None:
    """Move the planning mean of an arm towards an estimate with this variance."""
    weight = 1 / variance
    book.precision[arm] += weight
    book.mean[arm] += weight / book.precision[arm] * (value - book.mean[arm])


@jit
def update_difference(one: int, other: int, gap: float, variance: float, book: Book) -> None:
    """Move the planning means of two arms so that their difference comes nearer to an
    estimate. Only the difference counts from now on, and the precisions say how well it
    is known.
    """
    before = 1 / book.precision[one] + 1 / book.precision[other]
    move = (gap - book.mean[one] + book.mean[other]) / (before + variance)
    book.mean[one] += move / book.precision[one]
    book.mean[other] -= move / book.precision[other]
    book.precision[one] *= 1 + before / variance
    book.precision[other] *= 1 + before / variance


@jit
def estimate_gap(a: int, rival: int, book: Book) -> tuple[float, float]:
    """Return how far an arm lies below its rival, and the variance of that."""
    variance = 1 / book.precision[a] + 1 / book.precision[rival]
    return book.mean[rival] - book.mean[a], variance


# --- accounts -------------------------------------------------------------------------


@jit
def compute_log_wealth(accounts: Floats, row: int, bets: Bets) -> float:
    """Return the log of the whole wealth of an account."""
    top, total = -math.inf, 0.0
    for j in range(bets.stake.size):
        top = max(top, bets.stake[j] + accounts[row, j])
    for j in range(bets.stake.size):
        total += math.exp(bets.stake[j] + accounts[row, j] - top)
    return top + math.log(total)


@jit
def find_pair_row(a: int, rival: int, book: Book) -> int:
    """Return where `pair_wealth` has the bets on an arm against this rival; -1 if there were
    none.
    """
    return (
        int(book.pair_slot[rival] * book.pair_slot.size + a) if book.pair_slot[rival] >= 0 else -1
    )


@jit(allocates=True)
def add_pair_accounts(rival: int, book: Book) -> Book:
    """Return the book with accounts for bets that have this arm for rival, each from
    1.
    """
    if book.pair_slot[rival] >= 0:
        return book
    arms, used = book.pair_slot.size, book.pair_wealth.shape[0]
    book.pair_slot[rival] = used // arms
    pair = np.zeros((used + arms, book.pair_wealth.shape[1]))
    pair[:used] = book.pair_wealth
    return Book(
        book.wealth,
        book.total,
        book.mean,
        book.precision,
        book.fresh,
        book.closeness_totals,
        book.log_wealth,
        book.eliminated,
        book.active,
        book.pair_slot,
        pair,
    )
