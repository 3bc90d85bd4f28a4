"""How long the next round of bet-se is, and of which kind. No guarantee depends on it:
all of it is announced, and a function of earlier releases.
"""

import math
from typing import NamedTuple

from discreet.leaf import leaf
from discreet.strategies.betting.book import COUNT, SUM, Book, front_runner, gap_of, sent_centre
from discreet.strategies.betting.tilts import LONGEST, Setting
from discreet.strategies.units import BITS, LEVELS, PLACES

DEAR = 8.0
"""Noise is dear in a round with epsilon^2 length 4 spread below this."""
ONE = 4.0
"""Two arms release their difference if epsilon^2 length times the share of variance
that the forced centre 1/2 adds is below this.
"""
SHRINK = 0.4
"""How many variances of a difference are taken off its square before it is believed."""
ALL_IN, HINTED = 0.6, 0.7
"""The largest share of a tail bet that goes all in; of one on a hinted difference."""
SLACK, SLACK_TWO, SLACK_MARGIN = 2.0, 0.5, 1.2
"""Nats more than needed that a dear round of many arms, of two, or a margin over many
aims at.
"""
GROWTH, GROWTH_TWO = 2.0, 2.7
"""A dear round is at most so many times as long as all before; one of two arms."""
FIRST_HINTED, FIRST_HINTED_TWO = 0.3, 0.9
"""The share of the hinted length that a first round takes; with two arms."""
MARGIN, AHEAD, ALIKE = 0.5, 1.0, 3.0
"""A hinted margin over many is played while epsilon^2 length is below MARGIN, the
leader AHEAD standard errors ahead, and no rival needs ALIKE times as many people as
another.
"""

SURE = 1.0
"""Standard errors above what was released that outcomes may be close to their
centre.
"""


class Plan(NamedTuple):
    """A round before it is announced."""

    odds: int
    length: int
    centre: float
    dear: bool
    margin: bool
    fine: bool


# --- what is believed -----------------------------------------------------------------


@leaf
def level(arm: int, setting: Setting, book: Book) -> float:
    """The arm's mean from its sums, drawn to 1/2 while little is known."""
    pull = 2 + 1 / setting.epsilon
    return float((book.total[arm, SUM] + pull / 2) / (book.total[arm, COUNT] + pull))


@leaf
def centre_of(leader: int, second: int, setting: Setting, book: Book) -> float:
    """The middle of the two leaders' means, away from 0 and 1, where means can lie."""
    middle = (level(leader, setting, book) + level(second, setting, book)) / 2
    if setting.kind == BITS:
        return min(max(middle, setting.low, 1 / 64), setting.high, 63 / 64)
    if setting.kind == LEVELS:
        middle = 0.5 + (middle - 0.5) / setting.scale
    return round(min(max(middle, 1 / 64), 63 / 64) * PLACES) / PLACES


@leaf
def spread_of(centre: float, fine: bool, setting: Setting, book: Book) -> float:
    """The variance of an outcome; where closeness counts, what is close to its centre
    has less.
    """
    middle, near = sent_centre(centre, setting), near_share(book) if fine else 0.0
    return max(middle * (1 - middle) * (1 - near), 0.001)


@leaf
def near_share(book: Book) -> float:
    """How close outcomes were, between 0 (bits) and nearly 1 (all at their centre)."""
    if book.close[1] <= 0:
        return 0.0
    return float(min(max(book.close[0] / book.close[1], 0.0), 0.999))


@leaf
def believed(a: int, leader: int, hint: float, book: Book) -> float:
    """The gap to plan with: what was seen, less what may be chance; a hint is believed
    until the releases contradict it.
    """
    gap, error = gap_of(a, leader, book)
    gap = max(gap, 0.0)
    value = gap**3 / (gap * gap + SHRINK * error)
    return max(value, min(hint, gap + math.sqrt(error) / 2)) if hint > 0 else value


@leaf
def rate(gap: float, variance: float, epsilon: float) -> float:
    """Nats a person of the arm should win: the maximum over tilts up to epsilon of tilt
    gap - tilt^2 variance / 2.
    """
    tilt = min(max(gap, 0.0) / variance, epsilon)
    return tilt * gap - tilt * tilt * variance / 2


@leaf
def won(length: float, gap: float, variance: float, two: bool, setting: Setting) -> float:
    """Nats that a round of this length should win; Gaussian noise costs each round, and
    that of `two` arms once if they release their difference.
    """
    if setting.sigma == 0:
        return length * rate(gap, variance, setting.epsilon)
    seen = length * max(gap, 0.0)
    return seen * seen / (2 * doubt_of(length, variance, two, setting))


@leaf
def doubt_of(length: float, variance: float, two: bool, setting: Setting) -> float:
    """The variance of a difference of two sums with Gaussian noise."""
    return length * variance + (1 if two else 2) * setting.sigma**2


@leaf
def people_for(nats: float, gap: float, variance: float, two: bool, setting: Setting) -> float:
    """How many people of an arm should win so many nats: the inverse of `won`."""
    if setting.sigma == 0:
        return nats / max(rate(gap, variance, setting.epsilon), 1e-300)
    gap, noise = max(gap, 1e-150), (1 if two else 2) * setting.sigma**2
    half = nats * variance
    return (half + math.sqrt(half * half + 2 * nats * noise * gap * gap)) / (gap * gap)


# --- the plan -------------------------------------------------------------------------


@leaf
def first_plan(playing: int, setting: Setting, book: Book) -> Plan:
    """The first round: equal odds."""
    length = first_length(playing, setting)
    dear = setting.epsilon**2 * length < DEAR
    one = dear and playing == 2 and difference(0, 1, length, 0.5, setting, book)
    return Plan(1, length, 0.5, dear, one, setting.kind != BITS)


@leaf
def next_plan(
    leader: int, second: int, playing: int, n: int, again: bool, setting: Setting, book: Book
) -> Plan:
    """A later round, of arms with n people behind each; `again` if the last one was a
    margin.
    """
    centre, odds = centre_of(leader, second, setting, book), lead_odds(playing)
    numbers = setting.kind != BITS
    spread = spread_of(centre, numbers, setting, book)
    if setting.epsilon < math.inf:
        if margins(playing, again, setting) and ahead(leader, second, book):
            length = margin_length(leader, n, setting, book)
            if setting.epsilon**2 * length < MARGIN:
                return Plan(1, math.ceil(min(length, LONGEST)), centre, True, True, False)
        variance = spread * (1 + 1 / odds)
        length = dear_length(leader, variance, playing == 2, n, setting, book)
        if setting.epsilon**2 * 4 * spread * length < DEAR:
            one = playing == 2 and difference(leader, second, length, centre, setting, book)
            return Plan(odds, math.ceil(min(length, LONGEST)), centre, True, one, numbers)
    length = cheap_length(n, spread, setting, book)
    return Plan(
        odds, length, centre, False, False, numbers and finer(length, centre, setting, book)
    )


@leaf
def kind_of(
    length: int,
    odds: int,
    leader: int,
    second: int,
    playing: int,
    number: int,
    n: int,
    again: bool,
    setting: Setting,
    book: Book,
) -> Plan:
    """The kind of a round that was opened ahead and has become this long. A dear one is
    long against n, as termination asks.
    """
    e, numbers = setting.epsilon, setting.kind != BITS
    if number == 0:
        dear = e**2 * length < DEAR
        one = dear and playing == 2 and difference(leader, second, length, 0.5, setting, book)
        return Plan(1, length, 0.5, dear, one, numbers)
    centre = centre_of(leader, second, setting, book)
    if e < math.inf:
        if odds == 1 and margins(playing, again, setting) and ahead(leader, second, book):
            enough = length >= margin_length(leader, n, setting, book)
            if enough and e**2 * length < MARGIN:
                return Plan(1, length, centre, True, True, False)
        spread = spread_of(centre, numbers, setting, book)
        if 5 * length >= n and e**2 * 4 * spread * length < DEAR:
            one = odds == 1 and playing == 2
            one = one and difference(leader, second, length, centre, setting, book)
            return Plan(odds, length, centre, True, one, numbers)
    fine = numbers and finer(length, centre, setting, book)
    return Plan(odds, length, centre, False, False, fine)


# --- how long -------------------------------------------------------------------------


@leaf
def lead_odds(playing: int) -> int:
    """Roughly the square root of the number of rivals, as a power of two up to 16."""
    return int(2 ** min(max(math.floor(0.5 * math.log2(playing - 1.0) + 0.3), 0), 4))


@leaf
def hinted_length(setting: Setting) -> float:
    """How many people of each of two arms find the hinted difference."""
    return people_for(setting.target + 1.2, setting.hint, 0.5, True, setting)


@leaf
def first_length(playing: int, setting: Setting) -> int:
    """Of the first round; a hint sizes it."""
    e = setting.epsilon
    if setting.hint == 0 or e == math.inf:
        return setting.first
    share, shortest = (FIRST_HINTED_TWO, 3.0) if playing == 2 else (FIRST_HINTED, 10.0)
    wanted = max(share * hinted_length(setting), shortest / e)
    return math.ceil(min(wanted, max(6 / (e * e), 10 / e), LONGEST))


@leaf
def dear_length(
    leader: int, variance: float, two: bool, n: int, setting: Setting, book: Book
) -> float:
    """The length of a round in which noise is dear: between what the nearest and the
    farthest arm need to go out, but not short or long against n; with two arms a hint
    is believed.
    """
    hint, slack, limit = 0.0, SLACK, GROWTH * n
    if two:
        hint, slack, limit = setting.hint, SLACK_TWO, GROWTH_TWO * n
        if hint > 0:
            limit = max(limit, hinted_length(setting))
    least, most = math.inf, 0.0
    for a in range(book.active.size):
        if book.active[a] and a != leader:
            gap = believed(a, leader, hint, book) + setting.zeta
            lack = max(setting.target - book.money[a] - math.log(ALL_IN) + slack, 0.5)
            need = people_for(lack, gap, variance, two, setting)
            least, most = min(least, need), max(most, need)
    middle = math.sqrt(min(least, limit)) * math.sqrt(min(most, limit))
    return min(max(middle, n / 5), limit)


@leaf
def margin_length(leader: int, n: int, setting: Setting, book: Book) -> float:
    """The length of a margin over many that should put all rivals out; infinite if they
    are too unlike.
    """
    least, most = math.inf, 0.0
    for a in range(book.active.size):
        if book.active[a] and a != leader:
            gap = believed(a, leader, setting.hint, book)
            lack = max(setting.target - book.money[a] + SLACK_MARGIN, 0.5)
            need = people_for(lack, gap, 0.5, True, setting)
            least, most = min(least, need), max(most, need)
    if most > ALIKE * least:
        return math.inf
    return min(max(most, n / 5), max(GROWTH * n, hinted_length(setting)))


@leaf
def gain(length: float, gap: float, spread: float, setting: Setting) -> float:
    """Nats a batch should win for an arm that lies `gap` below the leader: sampling and
    noise in series.
    """
    sampling = length * gap * gap / (8 * spread)
    if setting.epsilon == math.inf:
        return 2 * sampling
    pull = setting.epsilon * length * gap / 2
    noise = pull * pull / 4 if setting.sigma > 0 else pull - 1 + math.exp(-pull)
    return 2 * sampling * noise / max(sampling + noise, 1e-300)


@leaf
def cheap_length(n: int, spread: float, setting: Setting, book: Book) -> int:
    """The length of a round in which noise is not dear.

    As long as it takes, with a margin, to finish the arm nearest to going out, but at
    least 3 % of n, more while noise counts, and at most 2n.
    """
    information = setting.epsilon**2 * n * 4 * spread
    looks = 40 if setting.kind == BITS else 40 + 6 * min(setting.epsilon, 5.0)
    shortest = min(max(looks / information, 0.03), 0.2) * n
    goal = setting.target + 10 / (1 + information / 50) - 6
    leader, length = front_runner(book), 2.0 * n
    for a in range(book.active.size):
        if book.active[a] and a != leader:
            gap = max(book.mean[leader] - book.mean[a], 0.0) + setting.zeta
            if book.money[a] + gain(shortest, gap, spread, setting) >= goal:
                return math.ceil(shortest)
            while book.money[a] + gain(length / 1.1, gap, spread, setting) >= goal:
                length /= 1.1
    return math.ceil(max(length, shortest))


# --- of which kind --------------------------------------------------------------------


@leaf
def difference(
    leader: int, second: int, length: float, centre: float, setting: Setting, book: Book
) -> bool:
    """Whether two arms release their difference only: one noise, but the centre 1/2."""
    excess = 1.0
    if book.total[leader, COUNT] + book.total[second, COUNT] > 0:
        excess = 1 - 4 * centre * (1 - centre)
    return setting.epsilon**2 * length * excess < ONE


@leaf
def finer(length: int, centre: float, setting: Setting, book: Book) -> bool:
    """Whether the numbers themselves tell more than bits: noise on bits is smaller,
    which counts more if outcomes are hardly closer to their centre than bits are.
    """
    if setting.epsilon == math.inf or book.close[1] <= 0:
        return True
    error = math.sqrt(2 * book.close[2]) / (setting.epsilon * book.close[1])
    near = near_share(book) + SURE * error
    noise = 2 / setting.epsilon**2 - 2 / setting.level
    return bool(length * centre * (1 - centre) * near > noise)


@leaf
def margins(playing: int, again: bool, setting: Setting) -> bool:
    """Whether a margin over many may be played: with a hint, not twice in a row, of
    bits.
    """
    return setting.hint > 0 and playing > 2 and not again and setting.kind == BITS


@leaf
def ahead(leader: int, second: int, book: Book) -> bool:
    """Whether the leader is clearly ahead of the runner-up."""
    gap, error = gap_of(second, leader, book)
    return gap * gap > AHEAD * AHEAD * error


@leaf
def stake_of(
    a: int, rival: int, length: int, variance: float, two: bool, setting: Setting, book: Book
) -> float:
    """sigma: the more a round of this length should be enough to put the arm out, the
    more goes all in.
    """
    gap, error = gap_of(a, rival, book)
    sure = won(length, gap, variance, two, setting) - setting.target + book.money[a]
    tilt = setting.epsilon
    if setting.sigma > 0:
        tilt = math.sqrt(2 * setting.target / doubt_of(length, variance, two, setting))
    x = (sure + (1.0 if two else 0.3)) / (tilt * length * math.sqrt(error))
    top = HINTED if two and setting.hint > 0 else ALL_IN
    return top / (1 + math.exp(min(-3 * x, 700.0)))
