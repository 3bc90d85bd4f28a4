"""A round of betting elimination: announced, played, settled; all from releases and
public counts.

Evidence against "arm a is best" is wealth won by betting, round after round, that a
does worse than an announced rival. An arm is *eliminated* while that is at least
1/delta. The docs page "Betting elimination" has the proofs.

Simulated runs, live runs and the path of a run all go through `announce_first`, the
releases into `book.fresh`, and `settle_and_announce`.
"""

import math

import numpy as np

from discreet._types import Floats
from discreet.jit import jit
from discreet.strategies.betting.bets import (
    Bets,
    BettingSetting,
    choose_closeness_weight,
    compute_central_closeness,
    compute_log_gaussian_tail_constant,
    compute_log_tail_constant,
    compute_log_tail_payoff,
    compute_slopes,
    price_fine_noise,
    price_noise,
)
from discreet.strategies.betting.book import (
    ASSIGNED,
    CLOSENESS,
    COUNT,
    EVEN,
    RELEASES,
    SUM,
    Book,
    Round,
    add_pair_accounts,
    compute_log_wealth,
    compute_odds_ratio,
    compute_sent_shift,
    count_marked,
    find_bet_centre,
    find_leaders,
    find_odds,
    find_pair_row,
    find_rival,
    find_side,
    update_difference,
    update_mean,
)
from discreet.strategies.betting.schedule import (
    RoundPlan,
    choose_all_in_share,
    estimate_variance,
    plan_first,
    plan_next,
    stays_active,
)

OWN, OWN_COUNT, RIVAL, RIVAL_COUNT, STEP, COST, OWN_CLOSENESS, RIVAL_CLOSENESS = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
)
"""Columns of a table of scores: the weights of a score, and what its noise costs. The
last two are 0 where closeness is not released.
"""
ROUNDING_NATS = 1e-14
"""Nats a participant that floating point may have invented: never counted as
evidence.
"""


# --- announced ------------------------------------------------------------------------


@jit
def announce_first(setting: BettingSetting, cap: int, book: Book) -> Round:
    """Announce the first round of a run of at most `cap` participants."""
    plan = plan_first(book.active.size, setting, book)
    return announce(0, 0, 0, plan, -1, -1, cap, 0, book)


@jit
def announce(
    number: int,
    n: int,
    samples: int,
    plan: RoundPlan,
    heavy: int,
    winner: int,
    cap: int,
    cut: int,
    book: Book,
) -> Round:
    """Announce a round before it is played; the last one before the cap is shortened to
    fit. `heavy` is the arm with the larger odds; -1: the leader. A round that ended
    early is described with what was `cut` from its length.
    """
    leader, second = find_leaders(book.active, True, book)
    weight = count_marked(book.active) - 1 + plan.odds
    length = min(plan.length, (cap - samples) // weight)
    return Round(
        number,
        leader,
        second,
        heavy if heavy >= 0 else leader,
        plan.odds,
        weight,
        length - cut,
        length,
        plan.centre,
        plan.by_tails,
        plan.difference,
        plan.fine,
        n,
        samples,
        winner,
    )


@jit
def plan_active(n: int, setting: BettingSetting, book: Book) -> RoundPlan:
    """Plan the round after those with the lengths n, and mark in `book.active` who
    plays it.
    """
    for a in range(book.eliminated.size):
        book.active[a] = stays_active(a, n, setting, book)
    leader, second = find_leaders(book.active, True, book)
    return plan_next(leader, second, n, setting, book)


# --- settled --------------------------------------------------------------------------


@jit(allocates=True)
def settle_and_announce(
    current: Round, bets: Bets, setting: BettingSetting, cap: int, book: Book
) -> tuple[Round, Book]:
    """Settle the bets of a round with the releases in `book.fresh`, and announce the
    next one; the book may have grown.
    """
    book = settle(current, bets, setting, book)
    n, samples = current.n + current.length, current.samples + current.length * current.weight
    winner = find_winner(bets, setting, book)
    plan = RoundPlan(1, 0, 0.5, False, False, False)
    if winner < 0:
        plan = plan_active(n, setting, book)
    return announce(current.number + 1, n, samples, plan, -1, winner, cap, 0, book), book


@jit(allocates=True)
def settle(current: Round, bets: Bets, setting: BettingSetting, book: Book) -> Book:
    """Multiply wealth by what the bets have won, book the releases, judge the arms;
    return the book, which has grown if a new pair has met.

    Nobody bets on a first round of more than two arms, as no rival is known, or on one
    that was announced without length.
    """
    if current.announced > 0 and (current.number > 0 or current.weight == 2):
        if setting.indifference_zone > 0:
            book = add_pair_accounts(current.runner_up, add_pair_accounts(current.leader, book))
        scores = 1 if current.by_tails else bets.tilt.size
        table = np.zeros((EVEN + 1, scores, RIVAL_CLOSENESS + 1))
        fill_scores(table, current, bets, setting)
        bet_on_rivals(table, current, bets, setting, book)
    book_releases(current, setting, book)
    for a in range(book.active.size):
        if book.active[a]:
            book.log_wealth[a] = compute_log_wealth(book.wealth, a, bets)
            limit = setting.target + ROUNDING_NATS * book.total[a, ASSIGNED]
            book.eliminated[a] = book.log_wealth[a] >= limit
    return book


@jit
def bet_on_rivals(
    table: Floats, current: Round, bets: Bets, setting: BettingSetting, book: Book
) -> None:
    """Bet on every arm that plays against its rival."""
    spread = estimate_variance(current.centre, current.fine, setting, book)
    variance = spread * (1 + 1 / find_odds(current.leader, current))
    for a in range(book.active.size):
        if book.active[a]:
            rival, sigma = find_rival(a, current), 0.0
            if current.by_tails:
                sigma = choose_all_in_share(a, rival, current.announced, variance, setting, book)
            bet(book.wealth, a, 0.0, setting.target, sigma, a, rival, table, current, bets, book)
            if setting.indifference_zone > 0:
                row, target = find_pair_row(a, rival, book), setting.zone_target
                shift = setting.indifference_zone * current.length * find_odds(a, current)
                bet(
                    book.pair_wealth,
                    row,
                    shift,
                    target,
                    sigma,
                    a,
                    rival,
                    table,
                    current,
                    bets,
                    book,
                )


@jit
def fill_scores(table: Floats, current: Round, bets: Bets, setting: BettingSetting) -> None:
    """Fill [side, bet, column] with the scores of every moment bet, or of the tail
    bet; of sides that the round has.
    """
    sides = 1 if current.odds == 1 else 2 if current.favoured == current.leader else 3
    for side in range(sides):
        for j in range(table.shape[1]):
            tilt = setting.tail_tilt if current.by_tails else bets.tilt[j]
            write_score(table, side, j, tilt, current, setting)


@jit
def write_score(
    table: Floats, side: int, j: int, tilt: float, current: Round, setting: BettingSetting
) -> None:
    """Write a score's weights, and what its noise costs: the log of the moment
    generating function; for a tail bet that of the smaller slope, and the log of the
    tail constant. A difference has one noise.
    """
    ratio, e = compute_odds_ratio(side, current), setting.epsilon
    score = compute_slopes(tilt, find_bet_centre(current, setting), ratio)
    table[side, j, OWN], table[side, j, OWN_COUNT] = score.own, score.own_count
    table[side, j, RIVAL], table[side, j, RIVAL_COUNT] = score.rival, score.rival_count
    table[side, j, STEP] = score.step
    larger, smaller = max(score.own, score.rival), min(score.own, score.rival)
    if current.by_tails and setting.sigma > 0:
        other = 0.0 if current.difference else smaller
        cost = compute_log_gaussian_tail_constant(larger, other, setting.sigma)
    else:
        cost = 0.0 if current.difference else price_slope(smaller, current, setting)
        if current.by_tails:
            cost += compute_log_tail_constant(e / setting.grid if current.fine else e)
        else:
            cost += price_slope(larger, current, setting)
    if current.fine:
        own = choose_closeness_weight(-score.own, current.centre, setting.kind, e)
        rival = choose_closeness_weight(score.rival, current.centre, setting.kind, e)
        if current.difference:
            own = rival = min(own, rival)
        else:
            cost += price_fine_noise(rival, e)
        table[side, j, OWN_CLOSENESS], table[side, j, RIVAL_CLOSENESS] = own, rival
        cost += price_fine_noise(own, e)
    table[side, j, COST] = cost


@jit
def price_slope(slope: float, current: Round, setting: BettingSetting) -> float:
    """Return what one noise costs a moment bet."""
    if current.fine:
        return price_fine_noise(slope, setting.epsilon)
    return price_noise(slope, setting.epsilon, setting.sigma)


@jit
def bet(
    accounts: Floats,
    row: int,
    shift: float,
    target: float,
    sigma: float,
    a: int,
    rival: int,
    table: Floats,
    current: Round,
    bets: Bets,
    book: Book,
) -> None:
    """Multiply one account by its bets on arm a against its rival: by moments (Lemma 2)
    or by tails (Lemmas 3 to 5).

    `shift` is what an indifference zone adds to a score, for each d.
    """
    side = find_side(a, current)
    if current.by_tails:
        log_p = -compute_net_score(table, side, 0, a, rival, shift, book)
        log_alpha = math.log(sigma) - target + compute_log_wealth(accounts, row, bets)
        payoff = compute_log_tail_payoff(log_p, sigma, log_alpha)
        for j in range(accounts.shape[1]):
            accounts[row, j] += payoff
    else:
        for j in range(accounts.shape[1]):
            accounts[row, j] += compute_net_score(table, side, j, a, rival, shift, book)


@jit
def compute_net_score(
    table: Floats, side: int, j: int, a: int, rival: int, shift: float, book: Book
) -> float:
    """Return a score less what its noise costs."""
    score = (
        table[side, j, RIVAL] * book.fresh[rival, SUM] - table[side, j, OWN] * book.fresh[a, SUM]
    )
    score += table[side, j, RIVAL_COUNT] * book.fresh[rival, COUNT]
    score += table[side, j, OWN_COUNT] * book.fresh[a, COUNT]
    score += table[side, j, RIVAL_CLOSENESS] * book.fresh[rival, CLOSENESS]
    score += table[side, j, OWN_CLOSENESS] * book.fresh[a, CLOSENESS]
    return float(score + table[side, j, STEP] * shift - table[side, j, COST])


@jit
def book_releases(current: Round, setting: BettingSetting, book: Book) -> None:
    """Add the releases to totals, and to the means for planning."""
    spread = estimate_variance(current.centre, current.fine, setting, book)
    noise, shift = 2 / setting.epsilon**2, compute_sent_shift(current, setting)
    top = compute_central_closeness(current.centre, setting.kind)
    for a in range(book.active.size):
        if book.active[a]:
            n = book.fresh[a, COUNT]
            book.total[a, ASSIGNED] += n
            if current.fine:
                book.closeness_totals[0] += book.fresh[a, CLOSENESS]
                book.closeness_totals[1] += top * n
                book.closeness_totals[2] += 0 if current.difference and a != current.leader else 1
            if not current.difference:
                book.fresh[a, SUM] -= shift * n
                book.total[a, SUM] += book.fresh[a, SUM]
                book.total[a, COUNT] += n
                book.total[a, RELEASES] += 1
                if n > 0:
                    variance = 0.8 * spread / n + noise / n**2
                    update_mean(a, book.fresh[a, SUM] / n, variance, book)
    if current.difference:
        one, other = current.leader, current.runner_up
        n = (book.fresh[one, COUNT] + book.fresh[other, COUNT]) / 2
        more = book.fresh[one, COUNT] - book.fresh[other, COUNT]
        apart = book.fresh[one, SUM] - book.fresh[other, SUM] - current.centre * more
        if n > 0:
            update_difference(one, other, apart / n, 2 * spread / n + noise / n**2, book)


@jit
def find_winner(bets: Bets, setting: BettingSetting, book: Book) -> int:
    """Return the arm to stop with, or -1: the only arm that is in, or one that no arm
    that is in beats by the indifference zone.
    """
    leader, second = find_leaders(book.eliminated, False, book)
    if second < 0 or setting.indifference_zone == 0:
        return leader if second < 0 else -1
    for a in range(book.eliminated.size):
        if not book.eliminated[a] and a != leader:
            target = setting.zone_target + ROUNDING_NATS * book.total[a, ASSIGNED]
            row = find_pair_row(a, leader, book)
            if row < 0 or not compute_log_wealth(book.pair_wealth, row, bets) >= target:
                return -1
    return leader


# --- a difference ---------------------------------------------------------------------


@jit
def count_handicap(current: Round, book: Book) -> int:
    """Return what a difference allows the runner-up for the participants that the
    leader has more.
    """
    return int(book.fresh[current.leader, COUNT] - book.fresh[current.runner_up, COUNT]) // 2


@jit
def write_difference(lead: float, near: float, current: Round, book: Book) -> None:
    """Write a released difference and closeness so that a score reads them like
    sums.
    """
    book.fresh[current.runner_up, SUM] = -count_handicap(current, book)
    book.fresh[current.runner_up, CLOSENESS] = 0.0
    book.fresh[current.leader, SUM] = lead
    book.fresh[current.leader, CLOSENESS] = near


@jit
def release_difference(noise: float, near: float, current: Round, book: Book) -> None:
    """Turn the sums in `book.fresh` into one number with noise, the leader's lead,
    beside the released closeness of both.
    """
    lead = (
        book.fresh[current.leader, SUM]
        - book.fresh[current.runner_up, SUM]
        - count_handicap(current, book)
    )
    write_difference(lead + noise, near, current, book)
