"""A run whose every sample is released (MLE, CTB, Gaussian noise): stepping, made fast without changing a result.

Leaf functions like decision.py's, compiled by kernel.py.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.decision import (
    ELIMINATION,
    FILTER,
    LUCB,
    TOP_TWO,
    UCB,
    Flags,
    Floats,
    Ints,
    StreamRules,
    best_arm,
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
from discreet.laws import BERNOULLI, Generator, Laws, draw_one


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


def renew_leader(stream: Stream, rules: StreamRules, samples: int) -> tuple[int, float, float, float, float, int]:
    """The UCB leader now, and for how long it is certain: (leader, floor, rival, log of now, of horizon, horizon).

    Until `horizon` samples, and as long as they are not pulled, the leader's upper bound is at least `floor` and every
    other arm's at most `rival`: bonuses grow with time.
    """
    horizon = samples + samples // 512 + 8
    log_samples, log_horizon = math.log(samples), math.log(horizon)
    fill_bonus(stream, rules, samples)
    mean, bonus = stream.mean, stream.bonus
    leader = ucb_leader(mean, bonus)
    growth = math.sqrt(log_horizon / log_samples) * (1.0 + 1e-12) if rules.bonus == UCB else 1.0
    rival = -np.inf
    for arm in range(mean.size):
        value = mean[arm] + growth * bonus[arm]
        if value > rival and arm != leader:
            rival = value
    return leader, mean[leader] + bonus[leader], rival, log_samples, log_horizon, horizon


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


def stream_loop(  # noqa: PLR0912, PLR0915
    rng: Generator, laws: Laws, noise: float, rules: StreamRules, max_samples: int, stream: Stream, trace: Floats
) -> tuple[int, int, bool, int]:
    """One run that releases every sample: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`.

    Long, because this is the path of every sample: state is kept in local variables, and a call that passes all of
    `stream` costs as much as the sample; such calls are for what is rare. Three shortcuts, none of which changes a
    result:

    * stopping: the arm that failed last is asked first, against the threshold it failed. Thresholds only grow with
      counts, so a cost below that fails for certain (`bar`; 0 when the recommendation is new);
    * leader: it stands while its upper bound at an earlier time (`floor`) exceeds what bounds every rival's until
      `horizon` (`rival`); likewise the recommendation while its mean exceeds a bound on all others' (`second`);
    * the challenger is computed only when it may be pulled.
    """
    arms = stream.mean.size
    mean, count, inverse, sums = stream.mean, stream.pulls, stream.inverse, stream.sums
    led, led_pulls, share = stream.led, stream.led_pulls, stream.share
    law_mean, plain = laws.mean, laws.kind == BERNOULLI
    sampling, cost, half_epsilon, two_variance = (
        rules.sampling,
        rules.cost,
        rules.half_epsilon,
        rules.two_variance,
    )
    ids, beta, active = rules.ids, rules.beta, stream.active
    bonus_kind, bonus_scale, bonus_table = rules.bonus, rules.bonus_scale, rules.bonus_table
    top_two, rows = sampling == TOP_TWO, trace.shape[0]
    samples, best, witness, arm = 0, 0, 0, 0
    bar, floor, rival, horizon, second = 0.0, -np.inf, np.inf, 0, -np.inf
    log_then, log_horizon, leader, stopped = 0.0, 0.0, 0, False
    while True:
        if samples < arms:
            arm = samples
        else:
            if sampling == ELIMINATION:
                stopped = drop_beaten(best, stream, rules, samples)
            else:
                top = numerator(cost, mean[best] - mean[witness], half_epsilon)
                if witness == best or transport_cost(top, inverse[best], inverse[witness], two_variance) >= bar:
                    witness, bar = failing_arm(best, witness, stream, rules, samples)
                    stopped = witness < 0
            if stopped or samples >= max_samples:
                break
            if top_two:
                if samples > horizon or floor <= rival + 1e-12:
                    leader, floor, rival, log_then, log_horizon, horizon = renew_leader(stream, rules, samples)
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
        if plain:  # noqa: SIM108
            reward = 1.0 if rng.random() < law_mean[arm] else 0.0
        else:
            reward = draw_one(rng, laws, arm)
        if noise > 0.0:
            reward += noise * rng.standard_normal()
        sums[arm] += reward
        count[arm] += 1
        inverse[arm] = 1.0 / count[arm]
        mean[arm] = sums[arm] / count[arm]
        samples += 1
        if samples <= rows:
            record_stream(trace, samples, arm, stream)
        if top_two and samples > arms:
            log_time = log_then if arm == leader else log_horizon
            value = mean[arm] + stream_bonus(bonus_kind, bonus_scale, bonus_table, log_time, count[arm])
            if arm == leader:
                floor = value
            else:
                rival = max(rival, value)
        if arm != best:
            second = max(second, mean[arm])
        if mean[best] <= second:
            arm = best_arm(mean, active)
            bar = bar if arm == best else 0.0
            best, second = arm, second_mean(arm, mean, active)
    return samples, best, stopped, samples
