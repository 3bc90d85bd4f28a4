"""What is decided after every sample where each is released (MLE, CTB, Gaussian noise).

Everything here stands before the wall: means of what was released, and public counts.
`Stream.sums` are sums of released answers. The live run calls `choose` and `decide`;
the simulator's hot loop (`simulation.loops.stream`) has them written out, with
shortcuts that change no result (tests/strategies/test_run.py holds the two together).
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.stream.tables import (
    CLOCK,
    ITERATED,
    MIXTURE,
    UCB,
    StreamRules,
    count_cell,
)
from discreet.strategies.top_two import (
    ELIMINATION,
    FILTER,
    best_arm,
    ids_share,
    priority,
    ucb_leader,
)
from discreet.strategies.tracking import UNITS
from discreet.theory.costs import (
    GAUSSIAN,
    KL,
    kl_cost,
    kl_part,
    numerator,
    transport_cost,
)


class Stream(NamedTuple):
    """A run whose every sample is released."""

    mean: Floats
    pulls: Ints
    inverse: Floats
    led: Ints
    led_pulls: Ints
    share: Floats
    active: Flags
    members: Flags
    bonus: Floats
    sums: Floats
    owed: Ints
    """Samples that Track-and-Stop owes each arm, in `tracking.UNITS`."""
    tops: Floats
    weights: Floats


@leaf(allocates=True)
def new_stream(arms: int) -> Stream:
    """Nothing pulled yet."""
    return Stream(
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.ones(arms, np.bool_),
        np.zeros(arms),
        np.zeros(arms),
        np.full(arms, UNITS, np.int64),
        np.zeros(arms),
        np.zeros(arms),
    )


@leaf
def stream_threshold(
    kind: int, constant: float, table: Floats, best: int, other: int, samples: int
) -> float:
    """Threshold from the two arms' counts and all samples; nondecreasing in each, which
    the kernels rely on.

    ITERATED: c^G, constant + 2 log(4 + log n) + 2 log(4 + log m) with constant = 2
    C_G(log((K-1)/delta)/2). CLOCK: the authors' log((1 + log t)/delta) with constant =
    log(1/delta). TABLE: constant + table entries. MIXTURE: c^KL, constant + (log n +
    log m)/2 with constant = log(4 (K-1)/delta).
    """
    if kind == ITERATED:
        return (
            constant + 2.0 * math.log(4.0 + math.log(best)) + 2.0 * math.log(4.0 + math.log(other))
        )
    if kind == CLOCK:
        return constant + math.log(1.0 + math.log(samples))
    if kind == MIXTURE:
        return constant + 0.5 * math.log(best) + 0.5 * math.log(other)
    return float(constant + table[count_cell(best)] + table[count_cell(other)])


@leaf
def stream_bonus(kind: int, scale: float, table: Floats, log_samples: float, count: int) -> float:
    """Bonus of an arm: b^G = sqrt(2 sigma^2 alpha (1+s) log n / N_a), or a table over
    the arm's count.
    """
    if kind == UCB:
        return math.sqrt(scale * log_samples / count)
    return float(table[count_cell(count)])


@leaf
def stream_cost(
    cost: int, best: int, arm: int, mean: Floats, pulls: Ints, two_variance: float
) -> float:
    """W of the pair, all samples behind every mean."""
    if cost == KL:
        return kl_cost(mean[best], mean[arm], pulls[best], pulls[arm])
    top = numerator(GAUSSIAN, mean[best] - mean[arm], math.inf)
    return transport_cost(top, 1.0 / pulls[best], 1.0 / pulls[arm], two_variance)


@leaf
def stream_passes(
    best: int, arm: int, mean: Floats, pulls: Ints, samples: int, rules: StreamRules
) -> bool:
    """Whether the recommended arm beats the other one, all samples behind every
    mean.
    """
    bar = stream_threshold(
        rules.threshold, rules.constant, rules.threshold_table, pulls[best], pulls[arm], samples
    )
    return stream_cost(rules.cost, best, arm, mean, pulls, rules.two_variance) >= bar


@leaf
def fill_bonus(stream: Stream, rules: StreamRules, samples: int) -> None:
    """Every arm's bonus after so many samples."""
    log_samples, bonus, pulls = math.log(samples), stream.bonus, stream.pulls
    kind, scale, table = rules.bonus, rules.bonus_scale, rules.bonus_table
    for arm in range(stream.mean.size):
        bonus[arm] = stream_bonus(kind, scale, table, log_samples, pulls[arm])


@leaf
def failing_arm(
    best: int, witness: int, stream: Stream, rules: StreamRules, samples: int
) -> tuple[int, float]:
    """An arm the recommended one does not beat, `witness` asked first, and the
    threshold it failed; -1 to stop.
    """
    mean, pulls = stream.mean, stream.pulls
    bar = 0.0
    for turn in range(mean.size + 1):
        arm = turn - 1 if turn > 0 else witness
        if arm != best:
            bar = stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                pulls[best],
                pulls[arm],
                samples,
            )
            if stream_cost(rules.cost, best, arm, mean, pulls, rules.two_variance) < bar:
                return arm, bar
    return -1, bar


@leaf
def drop_beaten(best: int, stream: Stream, rules: StreamRules, samples: int) -> bool:
    """Successive elimination, every sample released: true when the best active arm
    stands alone.
    """
    alone = True
    for arm in range(stream.mean.size):
        if arm != best and stream.active[arm]:
            if stream_passes(best, arm, stream.mean, stream.pulls, samples, rules):
                stream.active[arm] = False
            else:
                alone = False
    return alone


@leaf
def renew_leader(
    stream: Stream, rules: StreamRules, samples: int
) -> tuple[int, float, float, float, int]:
    """The UCB leader now, and for how long it is certain: (leader, floor, rival, slope,
    horizon).

    Until `horizon` samples `stream.bonus` bounds the leader's bonus from below, if
    `slope` is taken off at each of its pulls (1/sqrt(N) is convex; an ulp is for
    rounding), and that of every other arm from above: b^G grows with time and falls
    with the arm's count. Entries from a table are exact, as the caller renews them with
    the count. `floor` and `rival` are the leader's upper bound and the largest of the
    others' by these bonuses.
    """
    horizon = samples + samples // 128 + 8
    fill_bonus(stream, rules, samples)
    mean, bonus = stream.mean, stream.bonus
    leader, slope = ucb_leader(mean, bonus), 0.0
    if rules.bonus == UCB:
        growth = math.sqrt(math.log(horizon) / math.log(samples)) * (1.0 + 1e-12)
        slope = bonus[leader] * (0.5 / stream.pulls[leader] + 2.0**-52)
        for arm in range(bonus.size):
            if arm != leader:
                bonus[arm] *= growth
    rival = -np.inf
    for arm in range(mean.size):
        if arm != leader:
            rival = max(rival, mean[arm] + bonus[arm])
    return leader, mean[leader] + bonus[leader], rival, slope, horizon


@leaf
def second_mean(best: int, mean: Floats, active: Flags) -> float:
    """The largest mean of the other active arms."""
    second = -np.inf
    for arm in range(mean.size):
        if arm != best and active[arm]:
            second = max(second, mean[arm])
    return second


@leaf
def stream_challenger(leader: int, mean: Floats, inverse: Floats) -> int:
    """`challenger` with the numerators computed on the way."""
    chosen, most, skip = -1, -1.0, -1.0
    mean_leader, inverse_leader = mean[leader], inverse[leader]
    for arm in range(mean.size):
        if arm != leader:
            top = numerator(GAUSSIAN, mean_leader - mean[arm], math.inf)
            if inverse[arm] + inverse_leader < skip * top:
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
def kl_challenger(leader: int, mean: Floats, pulls: Ints, ids: bool, share: Floats) -> int:
    """TC challenger with W^KL: the smallest cost against the leader, ties to the lowest
    index.

    With IDS (You et al. 2023) the leader's part of that cost is added to its `share`;
    where the cost is 0, as much as for W^G.
    """
    chosen, least, own = -1, math.inf, 0.0
    for arm in range(mean.size):
        if arm != leader:
            cost, part = 0.0, 0.0
            if mean[leader] > mean[arm]:
                part = kl_part(mean[leader], mean[arm], pulls[leader], pulls[arm])
                cost = part + kl_part(mean[arm], mean[leader], pulls[arm], pulls[leader])
            if cost < least:
                chosen, least, own = arm, cost, part
    if ids:
        share[leader] += own / least if least > 0.0 else ids_share(pulls[chosen], pulls[leader])
    return chosen


def decide(answered: Stream, rules: StreamRules, witness: int) -> tuple[int, int]:
    """Recommendation, and an arm that it does not beat by the answers, or -1 to stop;
    `witness` is asked first, as the one of last time is mostly that of this time.
    """
    mean, counts = answered.mean, answered.pulls
    samples = sum(counts)
    best = int(best_arm(mean, answered.active))
    if rules.sampling == ELIMINATION:
        return best, -1 if drop_beaten(best, answered, rules, samples) else 0
    for arm in (witness, *range(len(counts))):
        if arm != best and not stream_passes(best, arm, mean, counts, samples, rules):
            return best, arm
    return best, -1
