"""Which arms play the next round of bet-se, how long it is, and what it releases. No
guarantee depends on it: all of it is announced, and a function of earlier releases.
"""

import math
from typing import NamedTuple

from discreet.jit import jit
from discreet.strategies.betting.bets import BettingSetting
from discreet.strategies.betting.book import (
    ASSIGNED,
    COUNT,
    SUM,
    Book,
    compute_sent_centre,
    count_marked,
    estimate_gap,
)
from discreet.strategies.units import BITS, CENTRE_UNITS, LEVELS

WAKE_FACTOR = 32
"""Times the participants of an arm that has just been eliminated that others have had
when it plays again.
"""
DEAR_INFORMATION = 8.0
"""Noise is dear in a round with epsilon^2 length 4 spread below this."""
DIFFERENCE_INFORMATION = 4.0
"""Two arms release their difference if epsilon^2 length times the share of variance
that the forced centre 1/2 adds is below this.
"""
FIRST_NOISE_LENGTHS, FIRST_NOISE_LENGTHS_OF_TWO = 10.0, 13.0
"""The first round has so many / epsilon participants an arm; of two arms."""
FIRST_TARGET_SHARE, FIRST_TARGET_SHARE_OF_TWO = 0.3, 0.9
"""The share of the target length that a first round takes; of two arms."""
TARGET_INFORMATION = 6.0
"""It makes no round longer than this over epsilon^2: beyond, releases tell more."""
LONGEST_ROUND = 2**50
"""Beyond every cap."""
SPARE_NATS, SPARE_NATS_OF_TARGET = 2.5, 1.2
"""Nats more than needed that a round aims at; that a target length does."""
LEAST_NATS = 0.5
"""Nats that a round aims at, at least."""
MAX_GROWTH = 2.0
"""A round is at most so many times as long as all before."""
MIN_GROWTH = 1 / 30
"""A round is at least so many times as long as all before."""
LOOK_INFORMATION = 100.0
"""Information in all rounds before from which on rounds are half as long as noise alone
would have them.
"""
ALL_IN_SHARE = 0.6
"""The largest share of a tail bet that goes all in."""
ALL_IN_NATS = 0.5
"""Nats short of enough at which half of that does."""
CLOSENESS_ERRORS = 1.0
"""Standard errors above what was released that outcomes may be close to their
centre.
"""


class RoundPlan(NamedTuple):
    """A round before it is announced."""

    odds: int
    length: int
    centre: float
    by_tails: bool
    difference: bool
    fine: bool


# --- who plays ------------------------------------------------------------------------


@jit
def has_overslept(a: int, n: int, setting: BettingSetting, book: Book) -> bool:
    """Return whether an eliminated arm has slept too long.

    The more wealth was won against it the longer it sleeps (root of the surplus): a
    mistake has barely crossed.
    """
    sleep = WAKE_FACTOR * math.exp(min(book.log_wealth[a] - setting.target, 700.0) / 2)
    return bool(book.total[a, ASSIGNED] * sleep < n)


@jit
def stays_active(a: int, n: int, setting: BettingSetting, book: Book) -> bool:
    """Return whether an arm plays on: one that is in, one that has overslept, and every
    one if all are eliminated.
    """
    everyone = count_marked(book.eliminated) == book.eliminated.size
    return everyone or not book.eliminated[a] or has_overslept(a, n, setting, book)


# --- what is expected -----------------------------------------------------------------


@jit
def smooth_mean(arm: int, setting: BettingSetting, book: Book) -> float:
    """Return the arm's mean from its sums, drawn to 1/2 while little is known."""
    pull = 2 + 1 / setting.epsilon
    return float((book.total[arm, SUM] + pull / 2) / (book.total[arm, COUNT] + pull))


@jit
def choose_centre(leader: int, second: int, setting: BettingSetting, book: Book) -> float:
    """Return the middle of the two leaders' means, away from 0 and 1, where means can
    lie.
    """
    middle = (smooth_mean(leader, setting, book) + smooth_mean(second, setting, book)) / 2
    if setting.kind == BITS:
        return min(max(middle, setting.low, 1 / 64), setting.high, 63 / 64)
    if setting.kind == LEVELS:
        middle = 0.5 + (middle - 0.5) / setting.scale
    return round(min(max(middle, 1 / 64), 63 / 64) * CENTRE_UNITS) / CENTRE_UNITS


@jit
def estimate_variance(centre: float, fine: bool, setting: BettingSetting, book: Book) -> float:
    """Return the variance of an outcome; where closeness counts, what is close to its
    centre has less.
    """
    middle, near = (
        compute_sent_centre(centre, setting),
        measure_closeness_share(book) if fine else 0.0,
    )
    return max(middle * (1 - middle) * (1 - near), 0.001)


@jit
def measure_closeness_share(book: Book) -> float:
    """Return how close outcomes were: 0 for bits, 1 for outcomes that are all at their
    centre.

    Outcomes with the centre as their mean have 1 at most. Those of an arm far from its
    centre may have more, which is cut off at 0.999: rounds are then planned with too
    small a variance, which costs participants and no guarantee.
    """
    if book.closeness_totals[1] <= 0:
        return 0.0
    return float(min(max(book.closeness_totals[0] / book.closeness_totals[1], 0.0), 0.999))


@jit
def choose_planning_gap(a: int, rival: int, setting: BettingSetting, book: Book) -> float:
    """Return the gap to plan with: what was seen; a target difference is believed until
    the releases contradict it.
    """
    gap, error = estimate_gap(a, rival, book)
    target_difference = (
        min(setting.target_difference, gap + math.sqrt(error) / 2)
        if setting.target_difference > 0
        else 0.0
    )
    return max(gap, target_difference, 0.0)


@jit
def compute_win_rate(gap: float, variance: float, epsilon: float) -> float:
    """Return the nats a participant should win: the maximum over tilts up to epsilon of
    tilt gap - tilt^2 variance / 2.
    """
    tilt = min(gap / variance, epsilon)
    return tilt * gap - tilt * tilt * variance / 2


@jit
def compute_length(nats: float, gap: float, variance: float, setting: BettingSetting) -> float:
    """Return how many participants of an arm should win so many nats."""
    return nats / max(compute_win_rate(gap, variance, setting.epsilon), 1e-300)


@jit
def choose_all_in_share(
    a: int, rival: int, length: int, variance: float, setting: BettingSetting, book: Book
) -> float:
    """Return sigma: the more a round of this length should be enough to eliminate the
    arm, the more of a tail bet goes all in.
    """
    gap = choose_planning_gap(a, rival, setting, book)
    won = length * compute_win_rate(gap, variance, setting.epsilon)
    spare = won - setting.target + book.log_wealth[a]
    return ALL_IN_SHARE / (1 + math.exp(min(-spare - ALL_IN_NATS, 700.0)))


# --- the plan -------------------------------------------------------------------------


@jit
def choose_odds(playing: int) -> int:
    """Return the leader's odds: about the root of the number of rivals, as a power of
    two up to 16; 2 for three arms.
    """
    if playing < 3:
        return 1
    return int(2 ** min(max(math.floor(0.5 * math.log2(playing - 1.0) + 0.3), 1), 4))


@jit
def compute_target_length(setting: BettingSetting) -> float:
    """Return how many participants of each of two arms find the target difference."""
    return compute_length(
        setting.target + SPARE_NATS_OF_TARGET, setting.target_difference, 0.5, setting
    )


@jit
def choose_first_length(playing: int, setting: BettingSetting) -> int:
    """Return the length of the first round; a target difference sizes it."""
    e, two = setting.epsilon, playing == 2
    if e == math.inf:
        return math.ceil(min(2 / max(setting.scale, 1e-9) ** 2, LONGEST_ROUND)) + 2
    if setting.target_difference == 0:
        wanted = (FIRST_NOISE_LENGTHS_OF_TWO if two else FIRST_NOISE_LENGTHS) / e
        return math.ceil(min(wanted, LONGEST_ROUND)) + 2
    share, shortest = (FIRST_TARGET_SHARE_OF_TWO, 3.0) if two else (FIRST_TARGET_SHARE, 10.0)
    wanted = max(share * compute_target_length(setting), shortest / e)
    return math.ceil(min(wanted, max(TARGET_INFORMATION / (e * e), 10 / e), LONGEST_ROUND))


@jit
def choose_next_length(
    leader: int, variance: float, playing: int, n: int, setting: BettingSetting, book: Book
) -> float:
    """Return the length of a later round, with lengths n before.

    It lies between what the nearest and the farthest arm need, but while noise counts
    less rounds are shorter, as each costs less.
    """
    limit = MAX_GROWTH * n
    if playing == 2 and setting.target_difference > 0 and setting.epsilon < math.inf:
        limit = max(
            limit, min(compute_target_length(setting), TARGET_INFORMATION / setting.epsilon**2)
        )
    least, most = math.inf, 0.0
    for a in range(book.active.size):
        if book.active[a] and a != leader:
            gap = choose_planning_gap(a, leader, setting, book) + setting.indifference_zone
            lack = max(setting.target - book.log_wealth[a] + SPARE_NATS, LEAST_NATS)
            need = min(compute_length(lack, gap, variance, setting), limit)
            least, most = min(least, need), max(most, need)
    information = 2 * setting.epsilon**2 * n * variance
    middle = math.sqrt(least * most) / (1 + information / LOOK_INFORMATION)
    return min(max(middle, n * MIN_GROWTH), limit)


@jit
def plan_first(playing: int, setting: BettingSetting, book: Book) -> RoundPlan:
    """Plan the first round: equal odds."""
    length = choose_first_length(playing, setting)
    return choose_kind(length, length, 1, 0.5, 0, 1, playing, 0, setting, book)


@jit
def plan_next(leader: int, second: int, n: int, setting: BettingSetting, book: Book) -> RoundPlan:
    """Plan a later round of the active arms, with lengths n before."""
    playing = count_marked(book.active)
    centre, odds = choose_centre(leader, second, setting, book), choose_odds(playing)
    variance = estimate_variance(centre, True, setting, book) * (1 + 1 / odds)
    exact = choose_next_length(leader, variance, playing, n, setting, book)
    length = math.ceil(min(exact, LONGEST_ROUND))
    return choose_kind(exact, length, odds, centre, leader, second, playing, n, setting, book)


@jit
def choose_kind(
    exact: float,
    length: int,
    odds: int,
    centre: float,
    leader: int,
    second: int,
    playing: int,
    n: int,
    setting: BettingSetting,
    book: Book,
) -> RoundPlan:
    """Choose what a round of this length releases, and by which bets. Noise is never
    dear in a round that is short against n, as termination asks.
    """
    fine = setting.kind != BITS and (n == 0 or is_finer(length, centre, setting, book))
    information = setting.epsilon**2 * exact
    spread = estimate_variance(centre, setting.kind != BITS, setting, book)
    if information * 4 * spread >= DEAR_INFORMATION or exact < n * MIN_GROWTH:
        return RoundPlan(odds, length, centre, False, False, fine)
    excess = 1.0
    if book.total[leader, COUNT] + book.total[second, COUNT] > 0:
        excess = 1 - 4 * centre * (1 - centre)
    difference = playing == 2 and odds == 1 and information * excess < DIFFERENCE_INFORMATION
    return RoundPlan(odds, length, centre, difference or odds > 1, difference, fine)


@jit
def is_finer(length: int, centre: float, setting: BettingSetting, book: Book) -> bool:
    """Return whether the numbers themselves tell more than bits: noise on bits is
    smaller, which counts more if outcomes are hardly closer to their centre than bits
    are.
    """
    e = setting.epsilon
    if e == math.inf or book.closeness_totals[1] <= 0:
        return True
    error = math.sqrt(2 * book.closeness_totals[2]) / (e * book.closeness_totals[1])
    near = measure_closeness_share(book) + CLOSENESS_ERRORS * error
    noise = 2 / e**2 - (0.5 / math.sinh(e / 2) ** 2 if e < 700 else 0.0)
    return bool(length * centre * (1 - centre) * near > noise)
