"""A round is settled: money is multiplied by what the bets have won, releases are
booked, arms judged.
"""

import math

import numpy as np

from discreet.arrays import Floats
from discreet.leaf import leaf
from discreet.strategies.betting.bets import (
    KAPPA,
    gaussian_price,
    log_sum,
    price_of_two,
    slopes,
    tail_bet,
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
    RELEASES,
    RIVAL,
    RIVAL_COUNT,
    RIVAL_NEAR,
    STEP,
    SUM,
    Book,
    Round,
    bet_centre,
    columns,
    copy,
    leaders,
    learn,
    learn_apart,
    loud_money,
    money_of,
    odds_of,
    pair_row,
    ratio_of,
    rival_of,
    side_of,
    sides_of,
    with_pair,
    write,
)
from discreet.strategies.betting.near import fine_price, most_near, near_weight
from discreet.strategies.betting.plan import spread_of
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.units import LEVELS

ROUNDING = 1e-14
"""Nats a person that floating point may have invented: never counted as evidence."""
FIRST_STAKE, HINTED_STAKE = 0.1, 0.35
"""What goes all in on a dear first round, and with a hint."""
FEELS = 0.2
"""Tilts below FEELS / sqrt(n) have nothing to say about n people: they bet from later
rounds on.
"""


@leaf(allocates=True)
def settle(now: Round, bets: Bets, setting: Setting, book: Book) -> Book:
    """Bet, book, judge; the book, which has got more room if a new pair has met. On a
    round without length nobody bets.
    """
    felt = how_many(now.n + now.length, bets)
    if now.number == 0 and now.weight > 2:
        if now.dear:
            bet_on_all(now, bets, book)
    elif now.length > 0 and (now.number > 0 or now.dear):
        table = np.empty((sides_of(now), felt, columns(now.fine)))
        fill_moments(table, now, bets, setting)
        if setting.zeta > 0:
            book = with_pair(now.second, with_pair(now.leader, book))
        bet_on_rivals(table, now, bets, setting, book)
    book_releases(now, setting, book)
    for a in range(book.active.size):
        if book.active[a]:
            book.money[a] = money_of(book.wealth, a, felt, bets)
            book.out[a] = book.money[a] >= setting.target + ROUNDING * book.total[a, PULLS]
    return book


@leaf
def how_many(n: int, bets: Bets) -> int:
    """How many tilts, from the largest, can say something about so many people."""
    count = min(max(bets.loud, 4), bets.tilt.size)
    while count < bets.tilt.size and bets.tilt[count] ** 2 * n >= FEELS**2:
        count += 1
    return count


# --- bets -----------------------------------------------------------------------------


@leaf
def fill_moments(table: Floats, now: Round, bets: Bets, setting: Setting) -> None:
    """The scores of moment bets, for all sides; equal odds make them equal."""
    centre = bet_centre(now, setting)
    for side in range(table.shape[0]):
        ratio = ratio_of(side, now)
        for j in range(table.shape[1]):
            if side == LEADER and now.odds == 1:
                copy(table, j)
            else:
                score = slopes(bets.fall[j], bets.rise[j], centre, ratio)
                write(score, table, side, j)
                if now.fine:
                    second = 0.0 if now.margin else fine_price(score.rival, setting.epsilon)
                    cost = fine_price(score.own, setting.epsilon) + second
                    cost = weigh_near(table, side, j, now, setting) + cost
                elif setting.sigma > 0:
                    second = 0.0 if now.margin else score.rival
                    cost = gaussian_price(score.own, second, setting.sigma)
                else:
                    second = 0.0 if now.margin else score.rival_swing
                    cost = price_of_two(score.own_swing, second, setting.level)
                if now.price.shape[0] > 0:
                    cost += now.price[side, j]
                table[side, j, COST] = cost


@leaf
def weigh_near(table: Floats, side: int, j: int, now: Round, setting: Setting) -> float:
    """Write a score's weights of closeness beside those of sums, and say what the noise
    in them costs. A difference has one closeness, of both, and one weight.
    """
    down, up, e = table[side, j, OWN], table[side, j, RIVAL], setting.epsilon
    own = near_weight(-down, now.centre, setting.kind, e)
    rival = near_weight(up, now.centre, setting.kind, e)
    if now.margin:
        own = rival = min(own, rival)
    table[side, j, OWN_NEAR] = own
    table[side, j, RIVAL_NEAR] = rival
    return fine_price(own, e) + (0.0 if now.margin else fine_price(rival, e))


@leaf
def bet_on_rivals(table: Floats, now: Round, bets: Bets, setting: Setting, book: Book) -> None:
    """Every arm that plays is bet on against its rival; the leader not in a margin over
    many, which says nothing against him.
    """
    for a in range(book.active.size):
        if book.active[a] and not (a == now.leader and now.margin and now.weight > 2):
            rival = rival_of(a, now)
            bet(book.wealth, a, 0.0, setting.target, a, rival, table, now, bets, book)
            if setting.zeta > 0:
                row, target = pair_row(a, rival, book), setting.zeta_target
                shift = setting.zeta * now.length * odds_of(a, now)
                bet(book.pair, row, shift, target, a, rival, table, now, bets, book)
                book.met[row] += book.fresh[a, COUNT]


@leaf
def bet(
    accounts: Floats,
    row: int,
    shift: float,
    target: float,
    a: int,
    rival: int,
    table: Floats,
    now: Round,
    bets: Bets,
    book: Book,
) -> None:
    """Multiply one account by its bets on arm a against its rival: by moments (Lemma
    2), in dear rounds the loud tilts by tails (Lemmas 3 and 5).

    `shift` is what an indifference gap adds to a score, for each d.
    """
    side, loud = side_of(a, now), 0
    if now.dear:
        loud, tail = bets.loud, now.pick[a]
        log_p = now.tails[side, tail, COST] - now.tails[side, tail, STEP] * shift
        log_p += worth(now.tails, side, tail, a, book) - praise(now.tails, side, tail, rival, book)
        alpha = math.log(now.sigma[a]) - target + loud_money(accounts, row, bets)
        factor = tail_bet(log_p, now.sigma[a], alpha)
        for j in range(loud):
            accounts[row, j] += factor
    for j in range(loud, table.shape[1]):
        score = praise(table, side, j, rival, book) - worth(table, side, j, a, book)
        accounts[row, j] += score + table[side, j, STEP] * shift - table[side, j, COST]


@leaf
def praise(table: Floats, side: int, j: int, rival: int, book: Book) -> float:
    """What a score says for the rival."""
    said = table[side, j, RIVAL] * book.fresh[rival, SUM]
    said += table[side, j, RIVAL_COUNT] * book.fresh[rival, COUNT]
    if table.shape[2] > RIVAL_NEAR:
        said += table[side, j, RIVAL_NEAR] * book.fresh[rival, NEAR]
    return float(said)


@leaf
def worth(table: Floats, side: int, j: int, a: int, book: Book) -> float:
    """What a score says for the arm."""
    said = table[side, j, OWN] * book.fresh[a, SUM]
    said -= table[side, j, OWN_COUNT] * book.fresh[a, COUNT]
    if table.shape[2] > OWN_NEAR:
        said -= table[side, j, OWN_NEAR] * book.fresh[a, NEAR]
    return float(said)


@leaf
def bet_on_all(now: Round, bets: Bets, book: Book) -> None:
    """A dear first round of more than two arms: no rival was announced, so the tail bet
    on each arm is the mean over all others (Lemma 5). One sum over all serves all. (An
    arm that was added meanwhile does not play.)
    """
    power, arms, tail = 1 - KAPPA, now.weight, now.pick[0]
    best, top, second = 0, -math.inf, -math.inf
    for a in range(book.active.size):
        if not book.active[a]:
            continue
        log = power * praise(now.tails, FOLLOWER, tail, a, book)
        if log > top:
            best, top, second = a, log, top
        else:
            second = max(second, log)
    rest = 0.0
    for a in range(book.active.size):
        if book.active[a] and a != best:
            rest += math.exp(power * praise(now.tails, FOLLOWER, tail, a, book) - second)
    whole = 1 + rest * math.exp(second - top)
    for a in range(book.active.size):
        if not book.active[a]:
            continue
        log = second + math.log(rest)
        if a != best:
            own = math.exp(power * praise(now.tails, FOLLOWER, tail, a, book) - top)
            log = top + math.log(whole - own)
        price = worth(now.tails, FOLLOWER, tail, a, book) + now.tails[FOLLOWER, tail, COST]
        log += math.log(FIRST_STAKE * KAPPA / (arms - 1)) - power * price
        factor = log_sum(math.log(1 - FIRST_STAKE), log)
        for j in range(bets.loud):
            book.wealth[a, j] += factor


# --- the book -------------------------------------------------------------------------


@leaf
def book_releases(now: Round, setting: Setting, book: Book) -> None:
    """Totals, and means for planning; a margin over many says nothing about means."""
    spread = spread_of(now.centre, now.fine, setting, book)
    noise, shift = 2 / setting.epsilon**2, sent_shift(now, setting)
    for a in range(book.active.size):
        if book.active[a]:
            n = book.fresh[a, COUNT]
            book.total[a, PULLS] += n
            if not now.margin:
                book.fresh[a, SUM] -= shift * n
                book.total[a, SUM] += book.fresh[a, SUM]
                book.total[a, COUNT] += n
                book.total[a, RELEASES] += 1
                if n > 0:
                    learn(a, book.fresh[a, SUM] / n, 0.8 * spread / n + noise / n**2, book)
    if now.fine:
        book_closeness(now, setting, book)
    if now.margin and now.weight == 2:
        one, other = now.leader, now.second
        n = (book.fresh[one, COUNT] + book.fresh[other, COUNT]) / 2
        more = book.fresh[one, COUNT] - book.fresh[other, COUNT]
        apart = book.fresh[one, SUM] - book.fresh[other, SUM] - now.centre * more
        if n > 0:
            learn_apart(now.leader, now.second, apart / n, 2 * spread / n + noise / n**2, book)


@leaf
def book_closeness(now: Round, setting: Setting, book: Book) -> None:
    """How close outcomes were, for planning."""
    top = most_near(now.centre, setting.kind)
    for a in range(book.active.size):
        if book.active[a]:
            book.close[0] += book.fresh[a, NEAR]
            book.close[1] += top * book.fresh[a, COUNT]
            book.close[2] += 0 if now.margin and a != now.leader else 1


@leaf
def sent_shift(now: Round, setting: Setting) -> float:
    """How far the mean of what is sent lies above the usual scale, on which the means
    of all rounds are compared.
    """
    if setting.kind != LEVELS:
        return 0.0
    return setting.slip * (1 + now.centre) - setting.low


@leaf
def winner(bets: Bets, setting: Setting, book: Book) -> int:
    """The arm to stop with, or -1: the only arm left, or one that no arm left beats by
    zeta.
    """
    leader, second = leaders(book.out, False, book)
    if second < 0 or setting.zeta == 0:
        return leader if second < 0 else -1
    for a in range(book.out.size):
        if not book.out[a] and a != leader:
            target = setting.zeta_target + ROUNDING * book.total[a, PULLS]
            row = pair_row(a, leader, book)
            if row < 0 or not money_of(book.pair, row, bets.tilt.size, bets) >= target:
                return -1
    return leader
