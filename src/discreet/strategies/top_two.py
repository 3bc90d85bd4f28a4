"""Whom to sample: leaders, challengers, tracking, and the rules beside Top Two (LUCB,
levelling; Track-and-Stop is in `tracking`).

Everything here stands before the wall: it takes released means and public counts. A
priority is written once, here: two algebraically equal forms break ties differently, so
stepping, leaping and the tests' oracle all use this form.
"""

import math

from discreet.arrays import Flags, Floats, Ints
from discreet.leaf import leaf
from discreet.theory.costs import numerator, transport_cost

TOP_TWO, UNIFORM, LUCB, ELIMINATION, EB_TC, EB_TCI, TS_TC, TRACK = range(8)
"""Codes of the sampling rules."""
SAMPLINGS = {
    "top-two": TOP_TWO,
    "uniform": UNIFORM,
    "lucb": LUCB,
    "elimination": ELIMINATION,
    "eb-tc": EB_TC,
    "eb-tci": EB_TCI,
    "ts-tc": TS_TC,
    "track-and-stop": TRACK,
}
DUELS = ("top-two", "eb-tc", "eb-tci", "ts-tc")
"""Rules with a leader and a challenger."""
STEPS = ("eb-tci", "track-and-stop")
"""Rules with which no run can leap from release to release."""
NO_DRAWS = (
    "ts-tc is for strategies that learn from every sample: a leader drawn at a release would "
    "stay until the next one, and releases become ever rarer. Use eb-tci or track-and-stop"
)
WORD = 2**32 - 1
"""Numbers of `scramble` have 32 bits."""
FILTER = 1.0 - 1e-14
"""Safety factor of the division-free test in `challenger`: it only skips arms that
certainly lose.
"""
LEAST_SHARE = 2.0**-10
"""Leaps are for shares from this to 1 less this: `tracked` and `tracks_leader` are
proved to round alike only there.
"""


@leaf
def best_arm(mean: Floats, active: Flags) -> int:
    """Recommendation: the active arm with the largest released mean, ties to the lowest
    index.
    """
    best = -1
    for arm in range(mean.size):
        if active[arm] and (best < 0 or mean[arm] > mean[best]):
            best = arm
    return best


@leaf
def priority(inverse_pulls: float, inverse_leader: float, top: float) -> float:
    """How urgently an arm wants to be challenger: 1 / W up to a constant; largest
    first.
    """
    return (inverse_pulls + inverse_leader) / top


@leaf
def fill_numerators(
    leader: int, mean: Floats, cost: int, half_epsilon: float, tops: Floats
) -> None:
    """Numerators of every arm against the leader, into `tops`."""
    for arm in range(mean.size):
        tops[arm] = numerator(cost, mean[leader] - mean[arm], half_epsilon)


@leaf
def ucb_leader(mean: Floats, bonus: Floats) -> int:
    """UCB leader: largest mean + bonus, ties to the lowest index."""
    leader = 0
    top = mean[0] + bonus[0]
    for arm in range(1, mean.size):
        value = mean[arm] + bonus[arm]
        if value > top:
            top = value
            leader = arm
    return leader


@leaf
def fill_ucb_bonus(counts: Ints, scale: float, bonus: Floats) -> None:
    """b^G of every arm from the samples behind the means: sqrt(scale log(sum of counts)
    / count).
    """
    total = 0
    for arm in range(counts.size):
        total += counts[arm]
    log_total = math.log(total)
    for arm in range(counts.size):
        bonus[arm] = math.sqrt(scale * log_total / counts[arm])


@leaf
def challenger(leader: int, inverse: Floats, tops: Floats) -> int:
    """TC challenger: smallest W against the leader, that is the largest priority, ties
    to the lowest index.

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
        value = priority(inverse[arm], inverse_leader, top)
        if value > most:
            most = value
            skip = value * FILTER
            chosen = arm
    return chosen


@leaf
def improved_cost(
    top: float, inverse_leader: float, inverse_pulls: float, two_variance: float, pulls: int
) -> float:
    """W + log N of a TCI challenger (Jourdan et al. 2022): the smallest challenges, so
    that no arm waits for ever.
    """
    return transport_cost(top, inverse_leader, inverse_pulls, two_variance) + math.log(pulls)


@leaf
def scramble(word: int) -> int:
    """32 bits that look drawn at random, of 32 bits: every bit of one changes half of
    the other.
    """
    for _ in range(2):
        word = (word ^ (word >> 16)) * 0x45D9F3B & WORD
    return word ^ (word >> 16)


@leaf
def public_word(pulls: Ints, sums: Floats) -> int:
    """32 bits of how often every arm was pulled, and of the released sums: whoever has
    the record can compute them.
    """
    word = 1
    for arm in range(pulls.size):
        word = scramble(word ^ (pulls[arm] & WORD))
        word = scramble(word ^ (int(65536.0 * sums[arm]) & WORD))
    return word


@leaf
def ts_leader(mean: Floats, counts: Ints, pulls: Ints, sums: Floats, two_variance: float) -> int:
    """TS leader: the best arm in a draw from the posterior N(mean, σ²/count) of every
    arm, ties to the lowest index.

    Nothing is drawn here: normal variables are made of `public_word`, so that decisions
    can be replayed.
    """
    word = public_word(pulls, sums)
    leader, most = -1, 0.0
    for arm in range(mean.size):
        radius = math.sqrt(-2.0 * math.log((scramble(word ^ (2 * arm + 1)) + 0.5) / (WORD + 1)))
        angle = 2.0 * math.pi * scramble(word ^ (2 * arm + 2)) / (WORD + 1)
        drawn = mean[arm] + math.sqrt(0.5 * two_variance / counts[arm]) * radius * math.cos(angle)
        if leader < 0 or drawn > most:
            leader, most = arm, drawn
    return leader


@leaf
def tracks_leader(led: int, led_pulls: int, beta: float) -> bool:
    """beta-tracking: the leader is pulled iff N^B_B <= beta (L_B + 1)."""
    return led_pulls <= beta * (led + 1)


@leaf
def tracked(beta: float, rounds: int) -> int:
    """N^B_B after so many rounds led by B, with the rounding of `tracks_leader`."""
    if rounds == 0:
        return 0
    return math.floor(beta * rounds) + 1


@leaf
def ids_share(pulls_challenger: int, pulls_leader: int) -> float:
    """IDS for Gaussian costs (right for W^{G,eps} too): beta_n = N_C / (N_C + N_B)."""
    return pulls_challenger / (pulls_challenger + pulls_leader)


@leaf
def least_pulled(members: Flags, pulls: Ints) -> int:
    """The member with the fewest pulls, ties to the lowest index: round robin that
    needs no memory.
    """
    chosen = -1
    for arm in range(pulls.size):
        if members[arm] and (chosen < 0 or pulls[arm] < pulls[chosen]):
            chosen = arm
    return chosen


@leaf
def lucb_pair(best: int, mean: Floats, bonus: Floats, members: Flags) -> None:
    """LUCB: the recommended arm and the other arm with the largest upper bound, as
    `members` to be levelled.
    """
    rival = -1
    for arm in range(mean.size):
        members[arm] = False
        if arm != best and (rival < 0 or mean[arm] + bonus[arm] > mean[rival] + bonus[rival]):
            rival = arm
    members[best] = True
    members[rival] = True
