"""The decision core: leader, challenger, tracking, stopping, recommendation.

Everything here stands before the wall: it takes released means, the counts and phases behind them, and
public pull counts. No reward ever enters. The live trial runs these functions as they stand; kernel.py compiles each of
them with Numba and rebinds it, so they are leaf functions on arrays, with ``math`` for scalars and no Python objects.

A priority, a cost and a threshold are written once, here. Two algebraically equal forms break ties differently, so
stepping, leaping and the tests' oracle all use these forms.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints

# Costs: W^G (eq. TTUCB_Gaussian) and W^{G,eps} (eq. TTUCB_global_v2).
GAUSSIAN, PRIVATE = 0, 1
# Stopping rules of phased estimators, see `passes`.
LOW, SPLIT, EITHER = 0, 1, 2
# Sampling rules.
TOP_TWO, UNIFORM, LUCB, ELIMINATION = 0, 1, 2, 3
# Thresholds of unphased estimators, see `stream_threshold`.
ITERATED, CLOCK, TABLE = 0, 1, 2
# Bonuses of unphased estimators, see `stream_bonus`.
UCB, BONUS_TABLE = 0, 1

MEAN_ULPS = 4 * 2.0**-52
"""Rounding error that a difference of two means may carry, relative to the larger of them."""
FILTER = 1.0 - 1e-14
"""Safety factor of the division-free test in `challenger`: it only skips arms that certainly lose."""
CELLS = 64
"""Cells per octave of a table over counts, see `count_cell`."""
OCTAVES = 48
"""Tables over counts reach 64 * 2**48 samples, far beyond any cap."""


class PhasedRules(NamedTuple):
    """How to decide between releases of a phased estimator. Phases count from 1; row and column 0 are unused."""

    sampling: int
    """TOP_TWO, UNIFORM, LUCB or ELIMINATION."""
    cost: int
    """GAUSSIAN or PRIVATE: the transportation cost of the challenger."""
    stop: int
    """LOW, SPLIT or EITHER."""
    half_epsilon: float
    """epsilon / 2 of W^{G,eps}; infinity without privacy."""
    two_variance: float
    """2 sigma^2 in the costs of the stopping rule."""
    beta: float
    """Share of the leader, in (0, 1). Unused under IDS."""
    ids: bool
    """Information-directed selection instead of a fixed share."""
    bonus: Floats
    """bonus[phase]."""
    low: Floats
    """low[phase of the recommended arm, phase of the other arm]."""
    high: Floats
    """high[...] likewise."""
    bonus_scale: float = 0.0
    """2 sigma^2 alpha (1 + s) of b^G, which also depends on all counts (DPA); 0 for `bonus` by phase."""


class StreamRules(NamedTuple):
    """How to decide when every sample is released (MLE, CTB, Gaussian noise)."""

    sampling: int
    cost: int
    half_epsilon: float
    two_variance: float
    """2 sigma^2 in the costs of the stopping rule (sigma = 1 for `empirical`)."""
    beta: float
    ids: bool
    bonus: int
    """UCB or BONUS_TABLE."""
    bonus_scale: float
    """2 sigma^2 alpha (1 + s) of b^G."""
    bonus_table: Floats
    """Over `count_cell` of the arm's count, for BONUS_TABLE."""
    threshold: int
    """ITERATED, CLOCK or TABLE."""
    constant: float
    """The part of the threshold that does not depend on counts."""
    threshold_table: Floats
    """Over `count_cell`, nondecreasing, for TABLE; the threshold adds the entries of both arms."""


# --- means, gaps and costs ------------------------------------------------------------------------


def best_arm(mean: Floats, active: Flags) -> int:
    """Recommendation: the active arm with the largest released mean, ties to the lowest index."""
    best = -1
    for arm in range(mean.size):
        if active[arm] and (best < 0 or mean[arm] > mean[best]):
            best = arm
    return best


def gap_is_large(mean_best: float, mean_other: float, half_epsilon: float) -> bool:
    """Whether the gap is at least epsilon / 2, the second case of c~^{G,eps}.

    Equality is the second case, and floats misjudge it (0.95 - 0.9 < 0.05), so a gap short of epsilon / 2 by no more
    than the rounding error of the means counts as equal.
    """
    size = max(abs(mean_best), abs(mean_other))
    return mean_best - mean_other >= half_epsilon - MEAN_ULPS * size


def numerator(cost: int, gap: float, half_epsilon: float) -> float:
    """d of a cost W = d / (2 sigma^2 (1/n + 1/m)): gap^2, or gap min(epsilon/2, gap); zero for a gap <= 0."""
    if gap <= 0.0:
        return 0.0
    if cost == PRIVATE:
        return gap * min(half_epsilon, gap)
    return gap * gap


def transport_cost(top: float, inverse_best: float, inverse_other: float, two_variance: float) -> float:
    """W of the pair from its numerator and the inverse counts."""
    return top / (two_variance * (inverse_best + inverse_other))


def priority(inverse_pulls: float, inverse_leader: float, top: float) -> float:
    """How urgently an arm wants to be challenger: 1 / W up to a constant; largest first."""
    return (inverse_pulls + inverse_leader) / top


def fill_numerators(leader: int, mean: Floats, cost: int, half_epsilon: float, tops: Floats) -> None:
    """Numerators of every arm against the leader, into `tops`."""
    for arm in range(mean.size):
        tops[arm] = numerator(cost, mean[leader] - mean[arm], half_epsilon)


# --- Top Two --------------------------------------------------------------------------------------


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


def fill_ucb_bonus(counts: Ints, scale: float, bonus: Floats) -> None:
    """b^G of every arm from the samples behind the means: sqrt(scale log(sum of counts) / count)."""
    total = 0
    for arm in range(counts.size):
        total += counts[arm]
    log_total = math.log(total)
    for arm in range(counts.size):
        bonus[arm] = math.sqrt(scale * log_total / counts[arm])


def challenger(leader: int, inverse: Floats, tops: Floats) -> int:
    """TC challenger: smallest W against the leader, that is the largest priority, ties to the lowest index.

    `inverse` holds 1 / pulls and `tops` the numerators. An arm with numerator 0 has W = 0: the lowest such index wins.
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


def tracks_leader(led: int, led_pulls: int, beta: float) -> bool:
    """beta-tracking: the leader is pulled iff N^B_B <= beta (L_B + 1)."""
    return led_pulls <= beta * (led + 1)


def ids_share(pulls_challenger: int, pulls_leader: int) -> float:
    """IDS for Gaussian costs (right for W^{G,eps} too): beta_n = N_C / (N_C + N_B)."""
    return pulls_challenger / (pulls_challenger + pulls_leader)


# --- other sampling rules -------------------------------------------------------------------------


def least_pulled(members: Flags, pulls: Ints) -> int:
    """The member with the fewest pulls, ties to the lowest index: round robin that needs no memory."""
    chosen = -1
    for arm in range(pulls.size):
        if members[arm] and (chosen < 0 or pulls[arm] < pulls[chosen]):
            chosen = arm
    return chosen


def lucb_pair(best: int, mean: Floats, bonus: Floats, members: Flags) -> None:
    """LUCB: the recommended arm and the other arm with the largest upper bound, as `members` to be levelled."""
    rival = -1
    for arm in range(mean.size):
        members[arm] = False
        if arm != best and (rival < 0 or mean[arm] + bonus[arm] > mean[rival] + bonus[rival]):
            rival = arm
    members[best] = True
    members[rival] = True


# --- stopping, phased -----------------------------------------------------------------------------


def passes(
    stop: int,
    mean_best: float,
    mean_other: float,
    count_best: int,
    count_other: int,
    low: float,
    high: float,
    half_epsilon: float,
    two_variance: float,
) -> bool:
    """Whether the recommended arm beats the other one.

    LOW: W^G >= low. SPLIT (c~^{G,eps} as printed): gap < epsilon/2 asks W^G >= low, else W^{G,eps} >= high. EITHER
    (proved in the docs): W^G >= low, or gap >= epsilon/2 and W^{G,eps} >= high. The cases are decided on released
    means.
    """
    gap = mean_best - mean_other
    inverse_best, inverse_other = 1.0 / count_best, 1.0 / count_other
    large = stop != LOW and gap_is_large(mean_best, mean_other, half_epsilon)
    if large:
        top = numerator(PRIVATE, gap, half_epsilon)
        if transport_cost(top, inverse_best, inverse_other, two_variance) >= high:
            return True
        if stop == SPLIT:
            return False
    top = numerator(GAUSSIAN, gap, half_epsilon)
    return transport_cost(top, inverse_best, inverse_other, two_variance) >= low


def passes_by_phase(best: int, arm: int, mean: Floats, count: Ints, phase: Ints, rules: PhasedRules) -> bool:
    """`passes` with the thresholds of the two arms' phases."""
    return passes(
        rules.stop,
        mean[best],
        mean[arm],
        count[best],
        count[arm],
        rules.low[phase[best], phase[arm]],
        rules.high[phase[best], phase[arm]],
        rules.half_epsilon,
        rules.two_variance,
    )


def should_stop(best: int, mean: Floats, count: Ints, phase: Ints, rules: PhasedRules) -> bool:
    """GLR stopping rule: the recommended arm beats every other one."""
    for arm in range(mean.size):
        if arm != best and not passes_by_phase(best, arm, mean, count, phase, rules):
            return False
    return True


def eliminate(best: int, mean: Floats, count: Ints, phase: Ints, active: Flags, rules: PhasedRules) -> bool:
    """Successive elimination: drop the active arms the best active one beats; true when it stands alone.

    On the event behind the threshold a pass is never wrong, at any time, so the drops are as sound as stopping.
    """
    alone = True
    for arm in range(mean.size):
        if arm != best and active[arm]:
            if passes_by_phase(best, arm, mean, count, phase, rules):
                active[arm] = False
            else:
                alone = False
    return alone


# --- stopping and bonus, every sample released ----------------------------------------------------


def count_cell(count: int) -> int:
    """Index of a count in a table: exact up to 127, then 64 cells per octave."""
    shift = 0
    rest = count
    while rest >= 2 * CELLS:
        rest >>= 1
        shift += 1
    return CELLS * shift + rest


def stream_threshold(kind: int, constant: float, table: Floats, best: int, other: int, samples: int) -> float:
    """Threshold from the two arms' counts and all samples; nondecreasing in each, which the kernels rely on.

    ITERATED: c^G, constant + 2 log(4 + log n) + 2 log(4 + log m) with constant = 2 C_G(log((K-1)/delta)/2). CLOCK: the
    authors' log((1 + log t)/delta) with constant = log(1/delta). TABLE: constant + table entries.
    """
    if kind == ITERATED:
        return constant + 2.0 * math.log(4.0 + math.log(best)) + 2.0 * math.log(4.0 + math.log(other))
    if kind == CLOCK:
        return constant + math.log(1.0 + math.log(samples))
    return float(constant + table[count_cell(best)] + table[count_cell(other)])


def stream_bonus(kind: int, scale: float, table: Floats, log_samples: float, count: int) -> float:
    """Bonus of an arm: b^G = sqrt(2 sigma^2 alpha (1+s) log n / N_a), or a table over the arm's count."""
    if kind == UCB:
        return math.sqrt(scale * log_samples / count)
    return float(table[count_cell(count)])


def stream_passes(best: int, arm: int, mean: Floats, pulls: Ints, samples: int, rules: StreamRules) -> bool:
    """Whether the recommended arm beats the other one, all samples behind every mean."""
    top = numerator(rules.cost, mean[best] - mean[arm], rules.half_epsilon)
    bar = stream_threshold(rules.threshold, rules.constant, rules.threshold_table, pulls[best], pulls[arm], samples)
    return transport_cost(top, 1.0 / pulls[best], 1.0 / pulls[arm], rules.two_variance) >= bar


# --- DP-SE (Sajed and Sheffet 2019) -------------------------------------------------------


def epoch_length(active: int, epoch: int, epsilon: float, delta: float) -> int:
    """R_e: fresh samples of each active arm in this epoch, aimed at gaps of 2^-e."""
    aim = 2.0**-epoch
    sampling = 32.0 * math.log(8.0 * active * epoch * epoch / delta) / (aim * aim)
    privacy = 8.0 * math.log(4.0 * active * epoch * epoch / delta) / (epsilon * aim)
    return math.floor(max(sampling, privacy) + 1.0)


def epoch_radius(active: int, epoch: int, length: int, epsilon: float, delta: float) -> float:
    """2 (h_e + c_e): how far below the best private mean an arm may lie and stay."""
    sampling = math.sqrt(math.log(8.0 * active * epoch * epoch / delta) / (2.0 * length))
    privacy = math.log(4.0 * active * epoch * epoch / delta) / (epsilon * length)
    return 2.0 * (sampling + privacy)


def drop_far(mean: Floats, active: Flags, radius: float) -> int:
    """Drop the active arms more than `radius` below the best active one; how many stay."""
    top = mean[best_arm(mean, active)]
    left = 0
    for arm in range(mean.size):
        if active[arm] and top - mean[arm] > radius:
            active[arm] = False
        if active[arm]:
            left += 1
    return left


# --- made in Python, before a kernel runs ---------------------------------------------------------


def count_table(function: Callable[[float], float]) -> Floats:
    """A function of a count as a table over `count_cell`, for TABLE and BONUS_TABLE.

    Exact up to 127 samples; beyond, a cell takes the largest value at its two ends, so that a monotone function is
    never understated, and by less than its change over 1/64 of an octave.
    """
    table = np.zeros(CELLS * (OCTAVES + 2))
    for cell in range(1, table.size):
        shift = max(cell // CELLS - 1, 0)
        first = (cell - CELLS * shift) << shift
        table[cell] = max(function(float(first)), function(float(first + (1 << shift) - 1)))
    return table
