"""Whom to sample: leaders, challengers, tracking, and the rules beside Top Two (LUCB,
levelling; Track-and-Stop is in `tracking`).

Everything here stands before the wall: it takes released means and public counts. A
priority is written once, here: two algebraically equal forms break ties differently, so
stepping, leaping and the tests' oracle all use this form.
"""

import math
from typing import NamedTuple

from discreet._types import Flags, Floats, Ints
from discreet.jit import jit
from discreet.strategies.estimators import SAMPLINGS
from discreet.theory.divergences import compute_numerator, compute_transport_cost

UNITS_PER_SAMPLE = 2**20
"""Units that make one sample: no run that fits below a cap overflows 64 bits."""


@jit
def count_tied(best: int, tops: Floats) -> int:
    """Count the other arms that have the best arm's mean."""
    tied = 0
    for arm in range(tops.size):
        if arm != best and tops[arm] <= 0.0:
            tied += 1
    return tied


@jit
def fill_allocation(best: int, tops: Floats, weights: Floats) -> None:
    """Write ω* of costs W = d/(1/n + 1/m) with the numerators `tops` against the best
    arm into `weights`.

    At the optimum every arm's cost is the same level y, so that x_a = ω_a/ω_* =
    y/(d_a − y), and Σ x_a² = 1. Arms as good as the best one (d = 0) share what the
    limit of equal small gaps gives them, and leave nothing to the others.
    """
    least, tied = math.inf, count_tied(best, tops)
    for arm in range(tops.size):
        if arm != best:
            least = min(least, tops[arm])
    level = solve_allocation_level(best, tops, least) if tied == 0 else 0.0
    total = 1.0
    for arm in range(tops.size):
        if arm != best:
            if tied > 0:
                weights[arm] = 1.0 / math.sqrt(tied) if tops[arm] <= 0.0 else 0.0
            else:
                part = level * (least / tops[arm])
                weights[arm] = part / (1.0 - part)
            total += weights[arm]
    weights[best] = 1.0
    for arm in range(tops.size):
        weights[arm] /= total


@jit
def solve_allocation_level(best: int, tops: Floats, least: float) -> float:
    """Return y / min d, from 0 to 1/2: where the length of the vector x is 1.

    The length is convex and grows with y, and is at least 1 at 1/2. From there Newton's
    steps go down to the root and never past it, and end when rounding leaves no step.
    """
    level = 0.5
    for _ in range(100):
        square, slope = 0.0, 0.0
        for arm in range(tops.size):
            if arm != best:
                ratio = least / tops[arm]
                rest = 1.0 - level * ratio
                share = level * ratio / rest
                square += share * share
                slope += share * ratio / (rest * rest)
        length = math.sqrt(square)
        lower = level - (length - 1.0) * length / slope
        if not lower < level:
            break
        level = lower
    return level


@jit
def compute_floor(samples: int, arms: int) -> float:
    """Return ε_t = 1/(2 sqrt(K² + t)), the least share of every arm (their Section
    3.1).
    """
    return 0.5 / math.sqrt(1.0 * arms * arms + samples)


@jit
def find_cut(floor: float, weights: Floats) -> float:
    """Return what the projection takes off larger shares: Σ max{floor, ω_a − cut} = 1.

    max{floor, ω − cut} is a nearest allocation in the maximum norm whose shares are all
    at least the floor.
    """
    cut, inside = 0.0, -1
    for _ in range(weights.size + 1):
        total, above = -1.0, 0
        for arm in range(weights.size):
            if weights[arm] - cut > floor:
                total += weights[arm]
                above += 1
            else:
                total += floor
        if above == inside:
            break
        cut, inside = total / above, above
    return cut


@jit
def owe(best: int, weights: Floats, samples: int, owed: Ints) -> None:
    """Add one sample's shares to what every arm is owed; the best arm takes what
    rounding leaves.
    """
    arms = weights.size
    floor = compute_floor(samples, arms)
    cut = find_cut(floor, weights)
    rest = UNITS_PER_SAMPLE
    for arm in range(arms):
        if arm != best:
            units = max(int(UNITS_PER_SAMPLE * max(floor, weights[arm] - cut) + 0.5), 1)
            owed[arm] += units
            rest -= units
    owed[best] += rest


@jit
def find_most_owed(owed: Ints, pulls: Ints) -> int:
    """Return the arm furthest behind what it is owed, ties to the lowest index.
    (Everyone is owed the first sample, which counts on neither side.)
    """
    chosen = 0
    for arm in range(1, pulls.size):
        if (
            owed[arm] - UNITS_PER_SAMPLE * pulls[arm]
            > owed[chosen] - UNITS_PER_SAMPLE * pulls[chosen]
        ):
            chosen = arm
    return chosen


class Sides(NamedTuple):
    """The two divergences of a pair of arms at one share."""

    best: float
    """kl(p, m)."""
    other: float
    """kl(q, m), which is also the slope of g."""
    pull: float
    """The slope in y of kl(p, m)/kl(q, m)."""


@jit
def compute_excess(part: float) -> float:
    """Return u − log(1 + u), with full precision for a small u."""
    if abs(part) < 1e-3:
        return part * part * (0.5 - part * (1 / 3 - part * (0.25 - part * (0.2 - part / 6))))
    return part - math.log1p(part)


@jit
def compute_kl_from(mean: float, off: float) -> float:
    """Return kl(mean, mean + off), with full relative precision for a small `off`; 0
    log 0 = 0.
    """
    low = mean * compute_excess(off / mean) if mean > 0.0 else off
    high = (1.0 - mean) * compute_excess(-off / (1.0 - mean)) if mean < 1.0 else -off
    return low + high


@jit
def compute_sides(best: float, other: float, share: float) -> Sides:
    """Return the divergences of the pair with this share of the other arm."""
    gap, part = best - other, share / (1.0 + share)
    rest = 1.0 / (1.0 + share)
    first, second = compute_kl_from(best, -gap * part), compute_kl_from(other, gap * rest)
    middle = best - gap * part
    turn = gap * gap / (middle * (1.0 - middle)) * rest * rest
    return Sides(first, second, turn * (part * second + rest * first) / (second * second * second))


@jit
def solve_share(best: float, other: float, level: float, start: float) -> float:
    """Solve g(x) = level for x. As g is concave, Newton's steps stay below the root
    from the second one on.
    """
    share = start
    for _ in range(200):
        sides = compute_sides(best, other, share)
        step = (level - sides.best - share * sides.other) / sides.other
        share = max(share + step, 0.5 * share)
        if abs(step) <= 1e-13 * share:
            break
    return share


@jit
def fill_kl_allocation(best: int, mean: Floats, weights: Floats) -> None:
    """Write ω* of T*_KL for these means, the best one larger than all others, into
    `weights`, which hold the last one, or zeros.
    """
    low, high, level = 0.0, math.inf, math.inf
    for arm in range(mean.size):
        if arm != best:
            gap = mean[best] - mean[arm]
            known = weights[best] > 0.0 and weights[arm] > 0.0
            share = weights[arm] / weights[best] if known else 1.0
            sides = compute_sides(mean[best], mean[arm], share)
            level = min(level, sides.best + share * sides.other)
            if mean[arm] > 0.0:
                high = min(high, compute_kl_from(mean[best], -gap))
            weights[arm] = share
    weights[best] = 1.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for arm in range(mean.size):
            if arm != best:
                weights[arm] = solve_share(mean[best], mean[arm], level, weights[arm])
                sides = compute_sides(mean[best], mean[arm], weights[arm])
                total += sides.best / sides.other
                slope += sides.pull
        if total > 1.0:
            high = level
        else:
            low = level
        root = math.sqrt(total)
        step = 2.0 * root * (1.0 - root) / slope
        if abs(step) <= 1e-12 * level:
            break
        level += step
        if not low < level < high:
            level = 0.5 * (low + high) if high < math.inf else 2.0 * low
    total = 0.0
    for arm in range(mean.size):
        total += weights[arm]
    for arm in range(mean.size):
        weights[arm] /= total


TOP_TWO, UNIFORM, LUCB, ELIMINATION, EB_TC, EB_TCI, TS_TC, TRACK = range(8)
"""Codes of the sampling rules."""
SAMPLING_CODES = dict(zip(SAMPLINGS, range(8), strict=True))
"""The code of each sampling rule by its name."""
MAX_WORD = 2**32 - 1
"""Numbers of `scramble` have 32 bits."""
CHALLENGER_FILTER = 1.0 - 1e-14
"""Safety factor of the division-free test in `find_challenger`: it only skips arms that
certainly lose.
"""
MIN_LEAP_SHARE = 2.0**-10
"""Leaps are for shares from this to 1 less this: `count_tracked` and `is_leader_due` are
proved to round alike only there.
"""


@jit
def find_best_arm(mean: Floats, active: Flags) -> int:
    """Return the recommendation: the active arm with the largest released mean, ties to
    the lowest index.
    """
    best = -1
    for arm in range(mean.size):
        if active[arm] and (best < 0 or mean[arm] > mean[best]):
            best = arm
    return best


@jit
def compute_priority(inverse_pulls: float, inverse_leader: float, top: float) -> float:
    """Return how urgently an arm wants to be challenger: 1 / W up to a constant;
    largest first.
    """
    return (inverse_pulls + inverse_leader) / top


@jit
def fill_numerators(
    leader: int, mean: Floats, cost: int, half_epsilon: float, tops: Floats
) -> None:
    """Write the numerators of every arm against the leader into `tops`."""
    for arm in range(mean.size):
        tops[arm] = compute_numerator(cost, mean[leader] - mean[arm], half_epsilon)


@jit
def find_ucb_leader(mean: Floats, bonus: Floats) -> int:
    """Return the UCB leader: largest mean + bonus, ties to the lowest index."""
    leader = 0
    top = mean[0] + bonus[0]
    for arm in range(1, mean.size):
        value = mean[arm] + bonus[arm]
        if value > top:
            top = value
            leader = arm
    return leader


@jit
def fill_ucb_bonus(counts: Ints, scale: float, bonus: Floats) -> None:
    """Write b^G of every arm from the samples behind the means: sqrt(scale log(sum of
    counts) / count).
    """
    total = 0
    for arm in range(counts.size):
        total += counts[arm]
    log_total = math.log(total)
    for arm in range(counts.size):
        bonus[arm] = math.sqrt(scale * log_total / counts[arm])


@jit
def find_challenger(leader: int, inverse: Floats, tops: Floats) -> int:
    """Return the TC challenger: smallest W against the leader, that is the largest
    priority, ties to the lowest index.

    `inverse` holds 1 / pulls and `tops` the numerators. An arm with numerator 0 has W =
    0: the lowest such index wins.
    """
    chosen = -1
    most = -1.0
    skip = -1.0
    inverse_leader = inverse[leader]
    for arm in range(inverse.size):
        top = tops[arm]
        if inverse[arm] + inverse_leader < skip * top or arm == leader:
            continue
        if top <= 0.0:
            return arm
        value = compute_priority(inverse[arm], inverse_leader, top)
        if value > most:
            most = value
            skip = value * CHALLENGER_FILTER
            chosen = arm
    return chosen


@jit
def compute_improved_cost(
    top: float, inverse_leader: float, inverse_pulls: float, two_variance: float, pulls: int
) -> float:
    """Return W + log N of a TCI challenger (Jourdan et al. 2022): the smallest
    challenges, so that no arm waits for ever.
    """
    return compute_transport_cost(top, inverse_leader, inverse_pulls, two_variance) + math.log(
        pulls
    )


@jit
def scramble(word: int) -> int:
    """Scramble 32 bits so that they look drawn at random: every bit of one changes half
    of the other.
    """
    for _ in range(2):
        word = (word ^ (word >> 16)) * 0x45D9F3B & MAX_WORD
    return word ^ (word >> 16)


@jit
def make_public_word(pulls: Ints, sums: Floats) -> int:
    """Return 32 bits of how often every arm was pulled, and of the released sums:
    everybody who has the record can compute them.
    """
    word = 1
    for arm in range(pulls.size):
        word = scramble(word ^ (pulls[arm] & MAX_WORD))
        word = scramble(word ^ (int(65536.0 * sums[arm]) & MAX_WORD))
    return word


@jit
def draw_ts_leader(
    mean: Floats, counts: Ints, pulls: Ints, sums: Floats, two_variance: float
) -> int:
    """Return the TS leader: the best arm in a draw from the posterior N(mean, σ²/count)
    of every arm, ties to the lowest index.

    Nothing is drawn here: normal variables are made of `make_public_word`, so that decisions
    can be replayed.
    """
    word = make_public_word(pulls, sums)
    leader, most = -1, 0.0
    for arm in range(mean.size):
        radius = math.sqrt(-2.0 * math.log((scramble(word ^ (2 * arm + 1)) + 0.5) / (MAX_WORD + 1)))
        angle = 2.0 * math.pi * scramble(word ^ (2 * arm + 2)) / (MAX_WORD + 1)
        drawn = mean[arm] + math.sqrt(0.5 * two_variance / counts[arm]) * radius * math.cos(angle)
        if leader < 0 or drawn > most:
            leader, most = arm, drawn
    return leader


@jit
def is_leader_due(led: int, led_pulls: int, beta: float) -> bool:
    """Return whether beta-tracking pulls the leader: N^B_B <= beta (L_B + 1)."""
    return led_pulls <= beta * (led + 1)


@jit
def count_tracked(beta: float, rounds: int) -> int:
    """Return N^B_B after so many rounds led by B, with the rounding of `is_leader_due`."""
    if rounds == 0:
        return 0
    return math.floor(beta * rounds) + 1


@jit
def compute_ids_share(pulls_challenger: int, pulls_leader: int) -> float:
    """Return the IDS share for Gaussian costs (right for W^{G,eps} too): beta_n = N_C /
    (N_C + N_B).
    """
    return pulls_challenger / (pulls_challenger + pulls_leader)


@jit
def find_least_pulled(members: Flags, pulls: Ints) -> int:
    """Return the member with the fewest pulls, ties to the lowest index: round robin
    that needs no memory.
    """
    chosen = -1
    for arm in range(pulls.size):
        if members[arm] and (chosen < 0 or pulls[arm] < pulls[chosen]):
            chosen = arm
    return chosen


@jit
def mark_lucb_pair(best: int, mean: Floats, bonus: Floats, members: Flags) -> None:
    """Mark the recommended arm and the other arm with the largest upper bound as
    `members` to be levelled.
    """
    rival = -1
    for arm in range(mean.size):
        members[arm] = False
        if arm != best and (rival < 0 or mean[arm] + bonus[arm] > mean[rival] + bonus[rival]):
            rival = arm
    members[best] = True
    members[rival] = True
