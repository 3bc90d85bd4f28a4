"""A round of betting elimination: announced, played, settled; all from releases and
public counts.

Evidence against "arm a is best" is money won by betting, round after round, that a does
worse than an announced rival. An arm is *out* while its money is at least 1/delta. The
docs page "Betting elimination" has the proofs.

Simulated runs, live runs and the way of a run all go through `first_round`, the
releases into `book.fresh`, and `next_round`.
"""

import math

import numpy as np

from discreet.leaf import leaf
from discreet.strategies.betting.bets import (
    Slopes,
    gaussian_tail,
    log_tail_one,
    log_tail_two,
    slopes,
)
from discreet.strategies.betting.book import (
    COST,
    COUNT,
    FOLLOWER,
    LEADER,
    NEAR,
    OWN,
    OWN_COUNT,
    OWN_NEAR,
    PULLS,
    RIVAL,
    RIVAL_COUNT,
    RIVAL_NEAR,
    SUM,
    Book,
    Round,
    bet_centre,
    columns,
    copy,
    count,
    leaders,
    loud_money,
    odds_of,
    ratio_of,
    rival_of,
    side_of,
    sides_of,
    write,
)
from discreet.strategies.betting.near import most_near
from discreet.strategies.betting.plan import (
    HINTED,
    Plan,
    first_plan,
    near_share,
    next_plan,
    spread_of,
    stake_of,
)
from discreet.strategies.betting.settle import (
    FIRST_STAKE,
    HINTED_STAKE,
    settle,
    weigh_near,
    winner,
)
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.betting.who import pair_up, who_plays

TAILS = 6
"""Tilts to choose from for a tail bet: the largest times 1, 0.87, ..., 0.35."""
UP = 1e-7
"""Added to every log A, far more than floating point can have taken off."""


@leaf(allocates=True)
def first_round(bets: Bets, setting: Setting, cap: int, book: Book) -> Round:
    """The first round of a run of at most `cap` people."""
    plan = first_plan(book.active.size, setting, book)
    return announce(0, 0, 0, plan, -1, -1, bets, setting, cap, book)


@leaf(allocates=True)
def next_round(
    now: Round, bets: Bets, setting: Setting, cap: int, book: Book
) -> tuple[Round, Book]:
    """Settle the bets of a round with the releases in `book.fresh`, and announce the
    next one; the book may have grown.
    """
    book = settle(now, bets, setting, book)
    n, samples = now.n + now.length, now.samples + now.length * now.weight
    found = winner(bets, setting, book)
    plan = Plan(1, 0, 0.5, False, False, False)
    if found < 0:
        plan = plan_next(n, now.margin, setting, book)
    return announce(now.number + 1, n, samples, plan, -1, found, bets, setting, cap, book), book


@leaf
def plan_next(n: int, again: bool, setting: Setting, book: Book) -> Plan:
    """The round after those with the lengths n, and in `book.active` who plays it;
    `again` if the last one was a margin.
    """
    pulls = n
    if setting.top_two:
        pulls = max(int(book.total[pair_up(n, setting, book), PULLS]), 1)
    else:
        who_plays(n, setting, book)
    leader, second = leaders(book.active, True, book)
    return next_plan(leader, second, count(book.active), pulls, again, setting, book)


@leaf(allocates=True)
def announce(
    number: int,
    n: int,
    samples: int,
    plan: Plan,
    heavy: int,
    found: int,
    bets: Bets,
    setting: Setting,
    cap: int,
    book: Book,
) -> Round:
    """A round fixed before it is played; the last one before the cap is shortened to
    fit. `heavy` is the arm with the larger odds; -1: the leader.
    """
    arms, (leader, second) = book.active.size, leaders(book.active, True, book)
    heavy = heavy if heavy >= 0 else leader
    weight, loud = count(book.active) - 1 + plan.odds, bets.loud > 0
    dear = plan.dear and loud
    now = Round(
        number,
        leader,
        second,
        heavy,
        plan.odds,
        weight,
        min(plan.length, (cap - samples) // weight),
        plan.centre,
        dear,
        plan.margin and loud,
        plan.fine,
        np.zeros(arms if dear else 0),
        np.zeros(arms if dear else 0, np.int64),
        np.zeros((2 if heavy == leader else 3, TAILS if dear else 0, columns(plan.fine))),
        np.zeros((0, 0)),
        n,
        samples,
        found,
    )
    if now.dear and now.length > 0:
        fill_tails(now, setting)
        stake_tails(now, bets, setting, book)
    return now


@leaf
def fill_tails(now: Round, setting: Setting) -> None:
    """The scores of the tail bets of a dear round, for all sides."""
    centre = bet_centre(now, setting)
    for side in range(sides_of(now)):
        ratio = ratio_of(side, now)
        for i in range(TAILS):
            if side == LEADER and now.odds == 1:
                copy(now.tails, i)
                continue
            tilt = setting.top * (1 - 0.13 * i)
            score = slopes(-math.expm1(-tilt), math.expm1(tilt), centre, ratio)
            write(score, now.tails, side, i)
            now.tails[side, i, COST] = tail_cost(score, now, setting) + UP
            if now.fine:
                now.tails[side, i, COST] += weigh_near(now.tails, side, i, now, setting)


@leaf
def tail_cost(score: Slopes, now: Round, setting: Setting) -> float:
    """log A of a score's noise; a margin has one."""
    e = setting.epsilon
    if setting.sigma > 0:
        return gaussian_tail(score.own, 0.0 if now.margin else score.rival, setting.sigma)
    own, rival = min(score.own / e, 1.0), min(score.rival / e, 1.0)
    tick = setting.tick if now.fine else e
    return log_tail_one(own, tick) if now.margin else log_tail_two(own, rival, tick)


@leaf
def stake_tails(now: Round, bets: Bets, setting: Setting, book: Book) -> None:
    """Every arm's share all in, and its tilt: the one that needs the smallest gap for a
    hit.
    """
    two, near = now.weight == 2, near_share(book) * most_near(now.centre, setting.kind)
    variance = spread_of(now.centre, now.fine, setting, book) * (1 + 1 / odds_of(now.leader, now))
    for a in range(book.active.size):
        if book.active[a]:
            rival = rival_of(a, now)
            now.sigma[a] = FIRST_STAKE
            if now.number > 0:
                now.sigma[a] = stake_of(a, rival, now.length, variance, two, setting, book)
            if now.margin and not two:
                now.sigma[a] = HINTED
            elif now.number == 0 and two and setting.hint > 0:
                now.sigma[a] = HINTED_STAKE
            nats = setting.target - loud_money(book.wealth, a, bets)
            nats -= math.log(max(now.sigma[a], 0.1))
            now.pick[a] = best_tail(side_of(a, now), nats, near, now, setting)


@leaf
def best_tail(side: int, nats: float, near: float, now: Round, setting: Setting) -> int:
    """The tail bet that wins so many nats at the smallest gap, if counts are as the
    odds say, the mean of all is at the centre and outcomes are so `near` to it.
    """
    x, found, least = bet_centre(now, setting), 0, math.inf
    own = now.odds if side == LEADER else 1
    rival = now.odds if side == FOLLOWER else 1
    for i in range(TAILS):
        down, up = now.tails[side, i, OWN], now.tails[side, i, RIVAL]
        level = own * (now.tails[side, i, OWN_COUNT] - down * x)
        level += rival * (now.tails[side, i, RIVAL_COUNT] + up * x)
        if now.fine:
            level += own * now.tails[side, i, OWN_NEAR] * near
            level += rival * now.tails[side, i, RIVAL_NEAR] * near
        need = now.tails[side, i, COST] + nats - now.length * level
        need /= own * down + rival * up
        if need < least:
            found, least = i, need
    return found


@leaf
def handicap(arm: int, now: Round, book: Book) -> int:
    """What a margin allows an arm for the people that the leader was dealt more."""
    return int(book.fresh[now.leader, COUNT] - book.fresh[arm, COUNT]) // 2


@leaf
def release_margin(noise: float, near: float, now: Round, book: Book) -> None:
    """The sums in `book.fresh` become one number, the least lead of the leader over any
    other arm, with noise, beside the released closeness of all; written so that a score
    reads it like sums.
    """
    least = math.inf
    for a in range(book.active.size):
        if book.active[a] and a != now.leader:
            lead = book.fresh[now.leader, SUM] - book.fresh[a, SUM] - handicap(a, now, book)
            least = min(least, lead)
    set_margin(least + noise, near, now, book)


@leaf
def set_margin(margin: float, near: float, now: Round, book: Book) -> None:
    """Write a released margin and closeness so that a score reads them like sums."""
    for a in range(book.active.size):
        if book.active[a] and a != now.leader:
            book.fresh[a, SUM] = -handicap(a, now, book)
            book.fresh[a, NEAR] = 0.0
    book.fresh[now.leader, SUM] = margin
    book.fresh[now.leader, NEAR] = near
