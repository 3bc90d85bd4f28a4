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
from discreet.jit import leaf
from discreet.strategies.betting.bets import (
    Bets,
    Setting,
    closeness_at_centre,
    closeness_weight,
    compute_slopes,
    fine_noise_price,
    log_gaussian_tail_constant,
    log_tail_constant,
    log_tail_payoff,
    noise_price,
)
from discreet.strategies.betting.book import (
    COUNT,
    EVEN,
    NEAR,
    PULLS,
    RELEASES,
    SUM,
    Book,
    Round,
    add_pair_accounts,
    bet_centre,
    count_marked,
    find_leaders,
    odds_of,
    pair_row,
    ratio_of,
    rival_of,
    sent_shift,
    side_of,
    update_difference,
    update_mean,
    whole_wealth,
)
from discreet.strategies.betting.schedule import (
    Plan,
    all_in_share,
    outcome_variance,
    plan_first,
    plan_next,
    stays_active,
)

OWN, OWN_COUNT, RIVAL, RIVAL_COUNT, STEP, COST, OWN_NEAR, RIVAL_NEAR = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of a table of scores: the weights of a score, and what its noise costs. The
last two are 0 where closeness is not released.
"""
ROUNDING_NATS = 1e-14
"""Nats a participant that floating point may have invented: never counted as
evidence.
"""


# --- announced ------------------------------------------------------------------------


@leaf
def announce_first(setting: Setting, cap: int, book: Book) -> Round:
    """Announce the first round of a run of at most `cap` participants."""
    plan = plan_first(book.active.size, setting, book)
    return announce(0, 0, 0, plan, -1, -1, cap, 0, book)


@leaf
def announce(
    number: int,
    n: int,
    samples: int,
    plan: Plan,
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


@leaf
def plan_active(n: int, setting: Setting, book: Book) -> Plan:
    """Plan the round after those with the lengths n, and mark in `book.active` who
    plays it.
    """
    for a in range(book.out.size):
        book.active[a] = stays_active(a, n, setting, book)
    leader, second = find_leaders(book.active, True, book)
    return plan_next(leader, second, n, setting, book)


# --- settled --------------------------------------------------------------------------


@leaf(allocates=True)
def settle_and_announce(
    now: Round, bets: Bets, setting: Setting, cap: int, book: Book
) -> tuple[Round, Book]:
    """Settle the bets of a round with the releases in `book.fresh`, and announce the
    next one; the book may have grown.
    """
    book = settle(now, bets, setting, book)
    n, samples = now.n + now.length, now.samples + now.length * now.weight
    winner = find_winner(bets, setting, book)
    plan = Plan(1, 0, 0.5, False, False, False)
    if winner < 0:
        plan = plan_active(n, setting, book)
    return announce(now.number + 1, n, samples, plan, -1, winner, cap, 0, book), book


@leaf(allocates=True)
def settle(now: Round, bets: Bets, setting: Setting, book: Book) -> Book:
    """Multiply wealth by what the bets have won, book the releases, judge the arms;
    return the book, which has grown if a new pair has met.

    Nobody bets on a first round of more than two arms, as no rival is known, or on one
    that was announced without length.
    """
    if now.announced > 0 and (now.number > 0 or now.weight == 2):
        if setting.indifference_zone > 0:
            book = add_pair_accounts(now.second, add_pair_accounts(now.leader, book))
        scores = 1 if now.by_tails else bets.tilt.size
        table = np.zeros((EVEN + 1, scores, RIVAL_NEAR + 1))
        fill_scores(table, now, bets, setting)
        bet_on_rivals(table, now, bets, setting, book)
    book_releases(now, setting, book)
    for a in range(book.active.size):
        if book.active[a]:
            book.money[a] = whole_wealth(book.wealth, a, bets)
            limit = setting.target + ROUNDING_NATS * book.total[a, PULLS]
            book.out[a] = book.money[a] >= limit
    return book


@leaf
def bet_on_rivals(table: Floats, now: Round, bets: Bets, setting: Setting, book: Book) -> None:
    """Bet on every arm that plays against its rival."""
    spread = outcome_variance(now.centre, now.fine, setting, book)
    variance = spread * (1 + 1 / odds_of(now.leader, now))
    for a in range(book.active.size):
        if book.active[a]:
            rival, sigma = rival_of(a, now), 0.0
            if now.by_tails:
                sigma = all_in_share(a, rival, now.announced, variance, setting, book)
            bet(book.wealth, a, 0.0, setting.target, sigma, a, rival, table, now, bets, book)
            if setting.indifference_zone > 0:
                row, target = pair_row(a, rival, book), setting.zone_target
                shift = setting.indifference_zone * now.length * odds_of(a, now)
                bet(book.pair, row, shift, target, sigma, a, rival, table, now, bets, book)


@leaf
def fill_scores(table: Floats, now: Round, bets: Bets, setting: Setting) -> None:
    """Fill [side, bet, column] with the scores of every moment bet, or of the tail
    bet; of sides that the round has.
    """
    sides = 1 if now.odds == 1 else 2 if now.heavy == now.leader else 3
    for side in range(sides):
        for j in range(table.shape[1]):
            tilt = setting.tail_tilt if now.by_tails else bets.tilt[j]
            write_score(table, side, j, tilt, now, setting)


@leaf
def write_score(
    table: Floats, side: int, j: int, tilt: float, now: Round, setting: Setting
) -> None:
    """Write a score's weights, and what its noise costs: the log of the moment
    generating function; for a tail bet that of the smaller slope, and the log of the
    tail constant. A difference has one noise.
    """
    ratio, e = ratio_of(side, now), setting.epsilon
    score = compute_slopes(tilt, bet_centre(now, setting), ratio)
    table[side, j, OWN], table[side, j, OWN_COUNT] = score.own, score.own_count
    table[side, j, RIVAL], table[side, j, RIVAL_COUNT] = score.rival, score.rival_count
    table[side, j, STEP] = score.step
    larger, smaller = max(score.own, score.rival), min(score.own, score.rival)
    if now.by_tails and setting.sigma > 0:
        other = 0.0 if now.difference else smaller
        cost = log_gaussian_tail_constant(larger, other, setting.sigma)
    else:
        cost = 0.0 if now.difference else slope_price(smaller, now, setting)
        if now.by_tails:
            cost += log_tail_constant(e / setting.grid if now.fine else e)
        else:
            cost += slope_price(larger, now, setting)
    if now.fine:
        own = closeness_weight(-score.own, now.centre, setting.kind, e)
        rival = closeness_weight(score.rival, now.centre, setting.kind, e)
        if now.difference:
            own = rival = min(own, rival)
        else:
            cost += fine_noise_price(rival, e)
        table[side, j, OWN_NEAR], table[side, j, RIVAL_NEAR] = own, rival
        cost += fine_noise_price(own, e)
    table[side, j, COST] = cost


@leaf
def slope_price(slope: float, now: Round, setting: Setting) -> float:
    """Return what one noise costs a moment bet."""
    if now.fine:
        return fine_noise_price(slope, setting.epsilon)
    return noise_price(slope, setting.epsilon, setting.sigma)


@leaf
def bet(
    accounts: Floats,
    row: int,
    shift: float,
    target: float,
    sigma: float,
    a: int,
    rival: int,
    table: Floats,
    now: Round,
    bets: Bets,
    book: Book,
) -> None:
    """Multiply one account by its bets on arm a against its rival: by moments (Lemma 2)
    or by tails (Lemmas 3 to 5).

    `shift` is what an indifference zone adds to a score, for each d.
    """
    side = side_of(a, now)
    if now.by_tails:
        log_p = -net_score(table, side, 0, a, rival, shift, book)
        log_alpha = math.log(sigma) - target + whole_wealth(accounts, row, bets)
        payoff = log_tail_payoff(log_p, sigma, log_alpha)
        for j in range(accounts.shape[1]):
            accounts[row, j] += payoff
    else:
        for j in range(accounts.shape[1]):
            accounts[row, j] += net_score(table, side, j, a, rival, shift, book)


@leaf
def net_score(
    table: Floats, side: int, j: int, a: int, rival: int, shift: float, book: Book
) -> float:
    """Return a score less what its noise costs."""
    score = (
        table[side, j, RIVAL] * book.fresh[rival, SUM] - table[side, j, OWN] * book.fresh[a, SUM]
    )
    score += table[side, j, RIVAL_COUNT] * book.fresh[rival, COUNT]
    score += table[side, j, OWN_COUNT] * book.fresh[a, COUNT]
    score += table[side, j, RIVAL_NEAR] * book.fresh[rival, NEAR]
    score += table[side, j, OWN_NEAR] * book.fresh[a, NEAR]
    return float(score + table[side, j, STEP] * shift - table[side, j, COST])


@leaf
def book_releases(now: Round, setting: Setting, book: Book) -> None:
    """Add the releases to totals, and to the means for planning."""
    spread = outcome_variance(now.centre, now.fine, setting, book)
    noise, shift = 2 / setting.epsilon**2, sent_shift(now, setting)
    top = closeness_at_centre(now.centre, setting.kind)
    for a in range(book.active.size):
        if book.active[a]:
            n = book.fresh[a, COUNT]
            book.total[a, PULLS] += n
            if now.fine:
                book.close[0] += book.fresh[a, NEAR]
                book.close[1] += top * n
                book.close[2] += 0 if now.difference and a != now.leader else 1
            if not now.difference:
                book.fresh[a, SUM] -= shift * n
                book.total[a, SUM] += book.fresh[a, SUM]
                book.total[a, COUNT] += n
                book.total[a, RELEASES] += 1
                if n > 0:
                    variance = 0.8 * spread / n + noise / n**2
                    update_mean(a, book.fresh[a, SUM] / n, variance, book)
    if now.difference:
        one, other = now.leader, now.second
        n = (book.fresh[one, COUNT] + book.fresh[other, COUNT]) / 2
        more = book.fresh[one, COUNT] - book.fresh[other, COUNT]
        apart = book.fresh[one, SUM] - book.fresh[other, SUM] - now.centre * more
        if n > 0:
            update_difference(one, other, apart / n, 2 * spread / n + noise / n**2, book)


@leaf
def find_winner(bets: Bets, setting: Setting, book: Book) -> int:
    """Return the arm to stop with, or -1: the only arm that is in, or one that no arm
    that is in beats by the indifference zone.
    """
    leader, second = find_leaders(book.out, False, book)
    if second < 0 or setting.indifference_zone == 0:
        return leader if second < 0 else -1
    for a in range(book.out.size):
        if not book.out[a] and a != leader:
            target = setting.zone_target + ROUNDING_NATS * book.total[a, PULLS]
            row = pair_row(a, leader, book)
            if row < 0 or not whole_wealth(book.pair, row, bets) >= target:
                return -1
    return leader


# --- a difference ---------------------------------------------------------------------


@leaf
def count_handicap(now: Round, book: Book) -> int:
    """Return what a difference allows the runner-up for the participants that the
    leader has more.
    """
    return int(book.fresh[now.leader, COUNT] - book.fresh[now.second, COUNT]) // 2


@leaf
def write_difference(lead: float, near: float, now: Round, book: Book) -> None:
    """Write a released difference and closeness so that a score reads them like
    sums.
    """
    book.fresh[now.second, SUM] = -count_handicap(now, book)
    book.fresh[now.second, NEAR] = 0.0
    book.fresh[now.leader, SUM] = lead
    book.fresh[now.leader, NEAR] = near


@leaf
def release_difference(noise: float, near: float, now: Round, book: Book) -> None:
    """Turn the sums in `book.fresh` into one number with noise, the leader's lead,
    beside the released closeness of both.
    """
    lead = book.fresh[now.leader, SUM] - book.fresh[now.second, SUM] - count_handicap(now, book)
    write_difference(lead + noise, near, now, book)
