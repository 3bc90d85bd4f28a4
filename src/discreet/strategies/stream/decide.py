"""A run whose every sample is released (MLE, CTB, Gaussian noise): stepping, made fast without changing a result.

Leaf functions like decision.py's, compiled by kernel.py.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.simulation.laws import BERNOULLI, Generator, Laws, draw_one
from discreet.strategies.decision import (
    ELIMINATION,
    FILTER,
    LUCB,
    TOP_TWO,
    UCB,
    StreamRules,
    best_arm,
    count_cell,
    ids_share,
    least_pulled,
    lucb_pair,
    numerator,
    priority,
    stream_bonus,
    stream_passes,
    stream_threshold,
    tracks_leader,
    transport_cost,
    ucb_leader,
)


class Stream(NamedTuple):
    """A run whose every sample is released. `sums` stay behind the wall (or are noised already: CTB, Gaussian)."""

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
    )


def fill_bonus(stream: Stream, rules: StreamRules, samples: int) -> None:
    """Every arm's bonus after so many samples."""
    log_samples = math.log(samples)
    for arm in range(stream.mean.size):
        stream.bonus[arm] = stream_bonus(
            rules.bonus, rules.bonus_scale, rules.bonus_table, log_samples, stream.pulls[arm]
        )


def failing_arm(best: int, witness: int, stream: Stream, rules: StreamRules, samples: int) -> tuple[int, float]:
    """An arm the recommended one does not beat, `witness` asked first, and the threshold it failed; -1 to stop."""
    mean, inverse = stream.mean, stream.inverse
    bar = 0.0
    for turn in range(mean.size + 1):
        arm = turn - 1 if turn > 0 else witness
        if arm != best:
            top = numerator(rules.cost, mean[best] - mean[arm], rules.half_epsilon)
            bar = stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                stream.pulls[best],
                stream.pulls[arm],
                samples,
            )
            if transport_cost(top, inverse[best], inverse[arm], rules.two_variance) < bar:
                return arm, bar
    return -1, bar


def drop_beaten(best: int, stream: Stream, rules: StreamRules, samples: int) -> bool:
    """Successive elimination, every sample released: true when the best active arm stands alone."""
    alone = True
    for arm in range(stream.mean.size):
        if arm != best and stream.active[arm]:
            if stream_passes(best, arm, stream.mean, stream.pulls, samples, rules):
                stream.active[arm] = False
            else:
                alone = False
    return alone


def renew_leader(stream: Stream, rules: StreamRules, samples: int) -> tuple[int, float, float, float, int]:
    """The UCB leader now, and for how long it is certain: (leader, floor, rival, slope, horizon).

    Until `horizon` samples `stream.bonus` bounds the leader's bonus from below, if `slope` is taken off at each of its
    pulls (1/sqrt(N) is convex; an ulp is for rounding), and that of every other arm from above: b^G grows with time and
    falls with the arm's count. Entries from a table are exact, as the caller renews them with the count. `floor` and
    `rival` are the leader's upper bound and the largest of the others' by these bonuses.
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


def second_mean(best: int, mean: Floats, active: Flags) -> float:
    """The largest mean of the other active arms."""
    second = -np.inf
    for arm in range(mean.size):
        if arm != best and active[arm]:
            second = max(second, mean[arm])
    return second


def level_arm(best: int, stream: Stream, rules: StreamRules, samples: int) -> int:
    """The arm that uniform, elimination or LUCB pulls."""
    if rules.sampling == LUCB:
        fill_bonus(stream, rules, samples)
        lucb_pair(best, stream.mean, stream.bonus, stream.members)
        return least_pulled(stream.members, stream.pulls)
    return least_pulled(stream.active, stream.pulls)


def record_stream(trace: Floats, samples: int, arm: int, stream: Stream) -> None:
    """State after a sample, as far as `trace` has rows; columns as in `record`."""
    if samples <= trace.shape[0]:
        trace[samples - 1, 0] = samples
        trace[samples - 1, 1] = arm
        trace[samples - 1, 2] = stream.mean[arm]
        trace[samples - 1, 3] = stream.pulls[arm]
        for other in range(stream.pulls.size):
            trace[samples - 1, 4 + other] = stream.pulls[other]


def stream_challenger(leader: int, mean: Floats, inverse: Floats, cost: int, half_epsilon: float) -> int:
    """`challenger` with the numerators computed on the way."""
    chosen, most, skip = -1, -1.0, -1.0
    mean_leader, inverse_leader = mean[leader], inverse[leader]
    for arm in range(mean.size):
        if arm != leader:
            top = numerator(cost, mean_leader - mean[arm], half_epsilon)
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


def draw_noised(rng: Generator, laws: Laws, noise: float, arm: int) -> float:
    """One reward and its noise."""
    reward = draw_one(rng, laws, arm)
    if noise > 0.0:
        reward += noise * rng.standard_normal()
    return reward


def stream_loop(  # noqa: PLR0912, PLR0915
    rng: Generator, laws: Laws, noise: float, rules: StreamRules, max_samples: int, stream: Stream, trace: Floats
) -> tuple[int, int, bool, int]:
    """One run that releases every sample: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`.

    Long, because this is the path of every sample: state is kept in local variables, and a call that passes all of
    `stream` costs as much as the sample; such calls are for what is rare. A reward of 0 or 1 is a product, as a branch
    on a coin is guessed wrong half the time. Three shortcuts, none of which changes a result:

    * stopping: the arm that failed last is asked first, against the threshold it failed (`bar`: times 2 sigma^2, and
      0 when the recommendation is new). Thresholds only grow with counts, so a cost below that fails for certain;
    * leader: it stands while a lower bound on its own upper bound (`floor`) exceeds what bounds every rival's until
      `horizon` (`rival`), see `renew_leader`; likewise the recommendation while its mean exceeds a bound on all
      others' (`second`);
    * the challenger is computed only when it may be pulled.
    """
    arms = stream.mean.size
    mean, count, inverse, sums = stream.mean, stream.pulls, stream.inverse, stream.sums
    led, led_pulls, share = stream.led, stream.led_pulls, stream.share
    law_mean, plain = laws.mean, laws.kind == BERNOULLI and noise == 0.0
    sampling, cost, half_epsilon, two_variance = (
        rules.sampling,
        rules.cost,
        rules.half_epsilon,
        rules.two_variance,
    )
    ids, beta, active = rules.ids, rules.beta, stream.active
    bonus, tabled, bonus_table = stream.bonus, rules.bonus != UCB, rules.bonus_table
    top_two, rows = sampling == TOP_TWO, trace.shape[0]
    samples, best, witness, arm = 0, 0, 0, 0
    bar, floor, rival, horizon, second = 0.0, -np.inf, np.inf, 0, -np.inf
    leader, slope, stopped = 0, 0.0, False
    while True:
        if samples < arms:
            arm = samples
        else:
            if sampling == ELIMINATION:
                stopped = drop_beaten(best, stream, rules, samples)
            else:
                top = numerator(cost, mean[best] - mean[witness], half_epsilon)
                if top >= bar * (inverse[best] + inverse[witness]):
                    witness, bar = failing_arm(best, witness, stream, rules, samples)
                    stopped = witness < 0
                    bar *= two_variance * FILTER
            if stopped or samples >= max_samples:
                break
            if top_two:
                if samples > horizon or floor <= rival + 1e-12:
                    leader, floor, rival, slope, horizon = renew_leader(stream, rules, samples)
                arm = leader
                if ids or not tracks_leader(led[leader], led_pulls[leader], beta):
                    arm = stream_challenger(leader, mean, inverse, cost, half_epsilon)
                if ids:
                    share[leader] += ids_share(count[arm], count[leader])
                    if led_pulls[leader] <= share[leader]:
                        arm = leader
                led[leader] += 1
                if arm == leader:
                    led_pulls[leader] += 1
            else:
                arm = level_arm(best, stream, rules, samples)
        sums[arm] += 1.0 * (rng.random() < law_mean[arm]) if plain else draw_noised(rng, laws, noise, arm)
        count[arm] += 1
        inverse[arm] = 1.0 / count[arm]
        mean[arm] = sums[arm] / count[arm]
        samples += 1
        if samples <= rows:
            record_stream(trace, samples, arm, stream)
        if top_two and samples > arms:
            if tabled:
                bonus[arm] = bonus_table[count_cell(count[arm])]
            if arm == leader:
                bonus[arm] -= slope
                floor = mean[arm] + bonus[arm]
            else:
                rival = max(rival, mean[arm] + bonus[arm])
        if arm != best:
            second = max(second, mean[arm])
        if mean[best] <= second:
            arm = best_arm(mean, active)
            bar = bar if arm == best else 0.0
            best, second = arm, second_mean(arm, mean, active)
    return samples, best, stopped, samples
