"""Betting elimination: every decision of bet-se, from released sums and public counts alone.

A *release* is a noisy sum of b rewards. Evidence against "arm a is best" is money won by betting, round after round,
that a's release is low and that of an announced rival is high. An arm is *out* while the money, at the value x of its
mean that is worst for the gambler, is at least 1/delta. The docs page "Betting elimination" has the proofs.

Like decision.py this stands before the wall: nothing here sees an outcome or draws a number. The live trial runs it as
it stands, kernel.py compiles every function named in LEAVES.

A *ledger* row is (released sum, pulls behind it, releases). An arm keeps

* total     one row: everything released about it                                 -> its mean, its interval
* own[i]    its releases of rounds that were bet on, at lead octave i             -> the `down` factor
* rival[i]  those of the rivals announced for it in the same rounds               -> the `up` factor

Octave i: the leader of a round is pulled 2**i times as often as the others and bet on with tilt / 2**i, so both sides
of a bet move alike when x does.

A round is: `announce`, the releases into `book.fresh`, `settle`; and, unless that names a winner, `plan`.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats

SUM, PULLS, RELEASES = 0, 1, 2
OCTAVES = 5
"""The leader is pulled up to 2**4 times as often as the others."""
ALONE, TOGETHER = 0.05, 0.90
"""Shares of the stake: on `down` alone and on `up` alone, on their product."""
WAKE = 32
"""An arm that just went out is pulled again once the others have 32 times its pulls."""
FEELS = 0.1
"""Tilts below FEELS / sqrt(n) have nothing to say about n pulls and are left out."""
ROUNDING = 1e-14
"""Nats a pull that floating point may have invented: never counted as evidence."""
LONGEST = 2**50
"""Of a first batch; beyond every cap."""


class Bets(NamedTuple):
    """The mixture of bets: tilt[j], largest first; the last three [i, j] for lead octave i."""

    tilt: Floats
    """lambda_j"""
    stake: Floats
    """The log of its share of the stake."""
    fall: Floats
    """exp(-lambda_j / 2**i) - 1"""
    rise: Floats
    """exp(+lambda_j / 2**i) - 1"""
    price: Floats
    """m(lambda_j / 2**i): what the noise of one release costs."""


class Setting(NamedTuple):
    """Everything public that a run is played with."""

    epsilon: float
    """Of the noise in a release; infinity without noise."""
    scale: float
    """tanh(epsilon/2) for randomised response, else 1: released means lie in [low, high] = 1/2 -+ scale/2."""
    low: float
    high: float
    zeta: float
    """Indifference gap, on that scale."""
    target: float
    """The log of the money that puts an arm out."""
    zeta_target: float
    """The log of the money that shows an arm less than zeta better than the leader."""
    first: int
    """Length of the first batch."""
    top_two: bool
    """Whether a round is for the leader and one challenger only."""


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


def make_setting(
    arms: int,
    epsilon: float,
    delta: float,
    trust: str = "global",
    zeta: float = 0.0,
    top_two: bool = False,
) -> Setting:
    """The setting for K arms; `trust` is global (noisy sums), local (randomised response) or none (epsilon unused)."""
    check_trust(trust)
    scale = math.tanh(epsilon / 2) if trust == "local" else 1.0
    share = 0.5 if zeta > 0 else 1.0  # half of delta for each of the two ways to stop
    first = 12 / epsilon if trust == "global" else 2 / max(scale, 1e-9) ** 2
    return Setting(
        epsilon=float(epsilon) if trust == "global" else math.inf,
        scale=scale,
        low=0.5 - scale / 2,
        high=0.5 + scale / 2,
        zeta=zeta * scale,
        target=-math.log(share * delta),
        zeta_target=math.log(arms - 1) - math.log(0.5 * delta),
        first=math.ceil(min(first, LONGEST)) + 2,
        top_two=top_two,
    )


def check_trust(trust: str) -> None:
    """Refuse a trust model that does not exist: taken for another one it would leave the noise unpaid."""
    if trust not in ("global", "local", "none"):
        raise ValueError(f"trust is global, local or none; got {trust!r}")


def make_bets(epsilon: float, trust: str = "global", grid: int = 1) -> Bets:
    """Two tilts an octave, down to where no count can feel them; the share of octave o falls off like 1/o**2.

    Noise allows tilts below epsilon only. The larger ones pass their share to 0.8 and 0.6 epsilon, which is right if
    the gaps are large against epsilon. `grid` is the g of rewards rounded to multiples of 1/g (1: bits).
    """
    check_trust(trust)
    if grid < 1:
        raise ValueError(f"grid must be 1 or more; got {grid!r}")
    octave = (np.arange(120) + 0.5) / 2
    tilt = 3.0 * (math.tanh(epsilon / 2) if trust == "local" else 1.0) * 0.5**octave
    stake = 1 / (1 + ((octave - 3.5) / 1.5) ** 2)
    stake /= stake.sum()
    if trust == "global":
        high = tilt >= epsilon / 2
        if high.any():
            tilt = np.r_[0.8 * epsilon, 0.6 * epsilon, tilt[~high]]
            stake = np.r_[np.full(2, stake[high].sum() / 2), stake[~high]]
    tilts = tilt / 2.0 ** np.arange(OCTAVES)[:, np.newaxis]
    price = noise_price(tilts / grid, epsilon / grid) if trust == "global" else np.zeros_like(tilts)
    return Bets(tilt, np.log(stake), np.expm1(-tilts), np.expm1(tilts), price)


def noise_price(tilt: Floats, epsilon: float) -> Floats:
    """m(tilt) = log E exp(tilt Z) for discrete Laplace Z: log[(cosh eps - 1) / (cosh eps - cosh tilt)]."""

    def log_sinh(z: Floats | float) -> Floats:
        return np.asarray(z + np.log(-np.expm1(-2 * np.asarray(z))))

    cost = 2 * log_sinh(epsilon / 2) - log_sinh((epsilon + tilt) / 2) - log_sinh((epsilon - tilt) / 2)
    return np.asarray(np.maximum(cost, 0.0))


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


# --- evidence -------------------------------------------------------------------------------------


def felt(bets: Bets, pulls: float) -> int:
    """How many tilts, from the largest, can say something about so many pulls."""
    count = 4
    while count < bets.tilt.size and bets.tilt[count] ** 2 * pulls >= FEELS**2:
        count += 1
    return count


def side(x: float, rows: Floats, j: int, sign: float, bets: Bets) -> tuple[float, float, float]:
    """(log, slope, curvature) in x of the factor of one side of a bet: sign -1 for `down`, +1 for `up`."""
    value, slope, curve = 0.0, 0.0, 0.0
    for i in range(OCTAVES):
        pulls = rows[i, PULLS]
        if pulls > 0:
            change = bets.rise[i, j] if sign > 0 else bets.fall[i, j]
            ratio = change / (1 + x * change)
            value += (
                sign * bets.tilt[j] * 0.5**i * rows[i, SUM]
                - pulls * math.log1p(x * change)
                - rows[i, RELEASES] * bets.price[i, j]
            )
            slope -= pulls * ratio
            curve += pulls * ratio * ratio
    return value, slope, curve


def log_evidence(
    x: float, own: Floats, rival: Floats, zeta: float, count: int, bets: Bets
) -> tuple[float, float, float]:
    """(log E, slope, curvature) at x: the money won if the arm's mean is x and its rivals' at most x - zeta.

    Convex in x, as the logarithm of a sum of exponentials of convex functions.
    """
    top, money, pull, bend = -math.inf, 0.0, 0.0, 0.0
    for j in range(count):
        down, down_slope, down_curve = side(x, own, j, -1.0, bets)
        up, up_slope, up_curve = side(x - zeta, rival, j, 1.0, bets)
        for part in range(3):
            log, slope, curve = bets.stake[j], 0.0, 0.0
            log += math.log(TOGETHER) if part == 1 else math.log(ALONE)
            if part < 2:
                log, slope, curve = log + down, slope + down_slope, curve + down_curve
            if part > 0:
                log, slope, curve = log + up, slope + up_slope, curve + up_curve
            if log > top:
                shrink = math.exp(top - log)
                money, pull, bend, top = money * shrink, pull * shrink, bend * shrink, log
            weight = math.exp(log - top)
            money += weight
            pull += weight * slope
            bend += weight * (curve + slope * slope)
    pull /= money
    return top + math.log(money), pull, bend / money - pull * pull


def infimum(
    x: float,
    low: float,
    high: float,
    own: Floats,
    rival: Floats,
    zeta: float,
    count: int,
    bets: Bets,
    target: float,
    tolerance: float,
) -> tuple[float, float]:
    """(lower, upper) bounds of the infimum of log E over [low, high], starting at x.

    Stops as soon as both are on one side of the target, or within the tolerance. The lower bound is a tangent of a
    convex function over the bracket that holds its minimum: rigorous at every step. Newton's steps, and every third
    time the bracket's middle.
    """
    lower, upper = -math.inf, math.inf
    for step in range(200):
        value, slope, curve = log_evidence(x, own, rival, zeta, count, bets)
        upper = min(upper, value)
        if slope > 0:
            high = x
        else:
            low = x
        lower = max(lower, value + slope * ((low if slope > 0 else high) - x))
        if upper < target or lower >= target or upper - lower <= tolerance:
            break
        x = x - slope / curve if curve > 0 and step % 3 < 2 else low
        if not low < x < high:
            x = (low + high) / 2
    return lower, upper


def rounding(rows: Floats, other: Floats) -> float:
    """Nats that rounding errors may have added to the evidence of these ledgers."""
    pulls = 0.0
    for i in range(OCTAVES):
        pulls += rows[i, PULLS] + other[i, PULLS]
    return ROUNDING * pulls


# --- a round: announce, settle, plan --------------------------------------------------------------


def mean_of(arm: int, total: Floats, setting: Setting) -> float:
    """The arm's released mean, clipped to where means can lie."""
    return float(min(max(total[arm, SUM] / total[arm, PULLS], setting.low), setting.high))


def leaders(marks: Flags, wanted: bool, total: Floats) -> tuple[int, int]:
    """The two arms marked as wanted with the largest released means (ties: lowest index; unpulled arms count as 0)."""
    first, second, best, next_best = -1, -1, -math.inf, -math.inf
    for a in range(total.shape[0]):
        if marks[a] == wanted:
            mean = total[a, SUM] / max(total[a, PULLS], 1.0)
            if mean > best:
                first, second, best, next_best = a, first, mean, best
            elif mean > next_best:
                second, next_best = a, mean
    return first, second


def lead_octave(active: int) -> int:
    """i such that pulling the leader 2**i times as often is best, roughly 2**i = sqrt(rivals)."""
    return min(max(math.floor(0.5 * math.log2(active - 1.0) + 0.3), 0), OCTAVES - 1)


def announce(rounds: int, book: Book) -> tuple[int, int, int, int]:
    """(leader, runner-up, octave, pulls of all together per pull of one) of the next round, fixed before it."""
    leader, second = leaders(book.active, True, book.total)
    playing = 0
    for a in range(book.active.size):
        if book.active[a]:
            playing += 1
    octave = lead_octave(playing) if rounds > 0 else 0
    return leader, second, octave, playing - 1 + 2**octave


def enter(a: int, other: int, octave: int, octave_other: int, book: Book) -> None:
    """Write this round's releases into arm a's bets against its announced rival."""
    for column in range(3):
        book.own[a, octave, column] += book.fresh[a, column]
        book.rival[a, octave_other, column] += book.fresh[other, column]


def settle(rounds: int, n: int, leader: int, second: int, octave: int, bets: Bets, setting: Setting, book: Book) -> int:
    """Enter the releases in `book.fresh`, judge the arms that played; the arm to stop with, or -1.

    `rounds` were played before; n counts this one's batch too. No bet was made on the first round: nobody knew a
    rival.
    """
    for a in range(book.active.size):
        if book.active[a]:
            for column in range(3):
                book.total[a, column] += book.fresh[a, column]
            if rounds > 0 and a != leader:
                enter(a, leader, 0, octave, book)
    if rounds > 0:
        enter(leader, second, octave, 0, book)
    judge(n, bets, setting, book)
    return winner(n, bets, setting, book)


def judge(n: int, bets: Bets, setting: Setting, book: Book) -> None:
    """Set out[a] and money[a] of every arm that played.

    Money that is not enough between the arm's mean and the leader's is not enough: the infimum is computed only if it
    is.
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
                lower, _ = infimum(x, setting.low, setting.high, own, rival, 0.0, count, bets, target, 0.0)
            book.out[a] = lower >= target


def winner(n: int, bets: Bets, setting: Setting, book: Book) -> int:
    """The arm to stop with, or -1: the only arm left, or one that no arm left beats by zeta."""
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
            lower, _ = infimum(middle, low, setting.high, own, other, setting.zeta, count, bets, target, 0.0)
            if lower < target:
                return -1
    return leader


def plan(n: int, setting: Setting, book: Book) -> int:
    """Set who plays the next round; the length of its batch."""
    if setting.top_two:
        challenger = pair_up(n, setting, book)
        return next_batch(int(book.total[challenger, PULLS]), book.active, True, setting, book)
    who_plays(n, setting, book)
    return next_batch(n, book.out, False, setting, book)


def front_runner(book: Book) -> int:
    """Whom an unfinished run would name: the largest mean of the arms that are in, of all if all are out."""
    leader, _ = leaders(book.out, False, book.total)
    return leader if leader >= 0 else leaders(book.out, True, book.total)[0]


def overslept(a: int, n: int, setting: Setting, book: Book) -> bool:
    """Whether an arm that is out has slept too long.

    The more money was won against it the longer it sleeps (root of the surplus): a mistake has barely crossed.
    """
    sleep = WAKE * math.exp(min(book.money[a] - setting.target, 700.0) / 2)
    return bool(book.total[a, PULLS] * sleep < n)


def everyone_out(book: Book) -> bool:
    """Whether no arm is left, which starts all over with everybody."""
    left = 0
    for a in range(book.out.size):
        if not book.out[a]:
            left += 1
    return left == 0


def who_plays(n: int, setting: Setting, book: Book) -> None:
    """Elimination: all arms that are not out, those that overslept, and everyone if everyone is out."""
    everyone = everyone_out(book)
    for a in range(book.out.size):
        book.active[a] = everyone or not book.out[a] or overslept(a, n, setting, book)


def pair_up(n: int, setting: Setting, book: Book) -> int:
    """Top Two: the leader and a challenger play; returns the challenger.

    Of the arms that are in (of all if none is), the leader has the largest mean and the challenger the smallest
    transportation cost gap^2 / (1/N + 1/N_leader). Arms that overslept, or are in and have less than about half their
    share n/K of the pulls, go first, the least pulled of them before the others.
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
                gap = book.total[leader, SUM] / book.total[leader, PULLS] - book.total[a, SUM] / pulls
                cost = gap * gap / (1 / pulls + 1 / book.total[leader, PULLS])
                if cost < least:
                    challenger, least = a, cost
    challenger = overdue if overdue >= 0 else challenger
    book.active[challenger] = True
    return challenger


def gain(length: float, gap: float, variance: float, setting: Setting) -> float:
    """Nats a batch should win for an arm that lies `gap` below the leader: sampling and noise in series."""
    sampling = length * gap * gap / (8 * variance)
    if setting.epsilon == math.inf:
        return 2 * sampling
    pull = setting.epsilon * length * gap / 2
    noise = pull - 1 + math.exp(-pull)
    return 2 * sampling * noise / max(sampling + noise, 1e-300)


def next_batch(n: int, marks: Flags, wanted: bool, setting: Setting, book: Book) -> int:
    """Length of the next batch, with an eye on the arms marked as wanted. No guarantee depends on it.

    While noise dominates (eps^2 n < 50) a release is dear: a batch is as long as it takes, with a margin, to finish
    the arm nearest to going out, within [n/5, 2n]. Later batches are short: 3 % of n, but not below 40/eps^2.
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
                if book.money[a] + gain(length, top - own + setting.zeta, variance, setting) >= goal:
                    return math.ceil(length)
        length *= 1.1
    return 2 * n


# --- by-products ----------------------------------------------------------------------------------


def log_p_value(own: Floats, rival: Floats, n: float, bets: Bets, setting: Setting) -> float:
    """The log of the smallest delta at which the arm would be out now (keep the running minimum)."""
    low, high = setting.low, setting.high
    lower = infimum((low + high) / 2, low, high, own, rival, 0.0, felt(bets, n), bets, math.nan, 1e-6)[0]
    return min(0.0, rounding(own, rival) - lower)


def log_doubt(x: float, total: Floats, count: int, bets: Bets) -> tuple[float, float]:
    """(log of the money against "the mean is x", slope): half bets on below, half on above. Convex in x."""
    top, money, pull = -math.inf, 0.0, 0.0
    for j in range(count):
        for sign in (-1.0, 1.0):
            change = bets.rise[0, j] if sign > 0 else bets.fall[0, j]
            log = bets.stake[j] - math.log(2.0) + sign * bets.tilt[j] * total[SUM]
            log -= total[PULLS] * math.log1p(x * change) + total[RELEASES] * bets.price[0, j]
            slope = -total[PULLS] * change / (1 + x * change)
            if log > top:
                shrink = math.exp(top - log)
                money, pull, top = money * shrink, pull * shrink, log
            money += math.exp(log - top)
            pull += slope * math.exp(log - top)
    return float(top + math.log(money)), pull / money


def interval(total: Floats, alpha: float, bets: Bets, setting: Setting) -> tuple[float, float]:
    """Anytime-valid confidence interval (level 1 - alpha) for an arm's mean, from everything released about it.

    The values of x that nobody has won 1/alpha against: an interval because the money is convex in x. Bisection
    rounds outwards. Behind randomised response it is mapped back to the scale of rewards.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1; got {alpha!r}")
    count = felt(bets, total[PULLS])
    target = -math.log(alpha) + ROUNDING * total[PULLS]
    low, high = setting.low, setting.high
    for _ in range(60):  # the minimum of a convex function, by its slope
        x = (low + high) / 2
        if log_doubt(x, total, count, bets)[1] > 0:
            high = x
        else:
            low = x
    ends = [low, high]  # what is left if no value survives: only noise beyond alpha does this
    if log_doubt(low, total, count, bets)[0] < target:
        ends = [_crossing(low, end, target, total, count, bets) for end in (setting.low, setting.high)]
    low = 0.0 if ends[0] <= setting.low else 0.5 + (ends[0] - 0.5) / setting.scale
    high = 1.0 if ends[1] >= setting.high else 0.5 + (ends[1] - 0.5) / setting.scale
    return max(low, 0.0), min(high, 1.0)


def _crossing(inside: float, outside: float, target: float, total: Floats, count: int, bets: Bets) -> float:
    """Where the money reaches the target between a value inside the interval and an end of all values."""
    if log_doubt(outside, total, count, bets)[0] >= target:
        for _ in range(50):
            x = (inside + outside) / 2
            if log_doubt(x, total, count, bets)[0] >= target:
                outside = x
            else:
                inside = x
    return outside


LEAVES = (
    *(new_book, felt, side, log_evidence, infimum, rounding, mean_of, leaders, lead_octave, announce, enter),
    *(judge, winner, settle, gain, next_batch, overslept, everyone_out, front_runner, who_plays, pair_up, plan),
)
"""In an order in which each calls only earlier ones."""
