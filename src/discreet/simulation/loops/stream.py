"""A simulated run whose every sample is released (MLE, CTB, Gaussian noise), made fast
without changing a result.

Drawn from a run's Generator: one reward (then one noise) a sample, the first K for arms
0 ... K-1. Where answers are bits, a run that has not stopped after `ALONE` samples goes
on in leaps (`stream_leap`, which says what they draw).
"""

import math

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.drift import STEADY
from discreet.leaf import leaf
from discreet.simulation.laws import BERNOULLI, Generator, Laws, draw_for, responses
from discreet.simulation.loops.stream_leap import STEPS, leap
from discreet.simulation.outcome import Outcome, no_trace
from discreet.simulation.runner import Runner, one_by_one
from discreet.strategies.scales import noise_scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream.certificate import Bounds, can_be_certain, new_bounds
from discreet.strategies.stream.decide import (
    Stream,
    drop_beaten,
    failing_arm,
    kl_challenger,
    new_stream,
    renew_leader,
    second_mean,
    stream_challenger,
)
from discreet.strategies.stream.sampling import named_arm
from discreet.strategies.stream.tables import UCB, StreamRules, count_cell, stream_rules
from discreet.strategies.top_two import (
    ELIMINATION,
    FILTER,
    TOP_TWO,
    best_arm,
    ids_share,
    tracks_leader,
)
from discreet.theory.costs import GAUSSIAN, KL, numerator

BY_PERSON = True
"""Arms may drift, see `engine.runner_of`."""
ALONE = 2_000_000
"""Samples of a run that are always taken one by one."""


@leaf
def record_stream(trace: Floats, samples: int, arm: int, stream: Stream) -> None:
    """State after a sample, as far as `trace` has rows; columns as in
    `phased.record`.
    """
    if samples <= trace.shape[0]:
        trace[samples - 1, 0] = samples
        trace[samples - 1, 1] = arm
        trace[samples - 1, 2] = stream.mean[arm]
        trace[samples - 1, 3] = stream.pulls[arm]
        for other in range(stream.pulls.size):
            trace[samples - 1, 4 + other] = stream.pulls[other]


@leaf
def draw_noised(rng: Generator, laws: Laws, noise: float, arm: int, person: int) -> float:
    """One person's reward and its noise."""
    reward = draw_for(rng, laws, arm, person)
    if noise > 0.0:
        reward += noise * rng.standard_normal()
    return reward


@leaf
def stream_loop(  # noqa: PLR0912, PLR0915
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    cap: int,
    stream: Stream,
    trace: Floats,
) -> Outcome:
    """A run that releases every sample, from where `stream` is until it stops or has
    `cap` samples; writes `stream` and `trace`.

    Long, because this is the path of every sample: state is kept in local variables,
    and a call that passes all of `stream` costs as much as the sample; such calls are
    for what is rare. A reward of 0 or 1 is a product, as a branch on a coin is guessed
    wrong half the time. Three shortcuts, none of which changes a result:

    * stopping: the arm that failed last is asked first, against the threshold it failed
      (`bar`: times 2 sigma^2, and 0 when the recommendation is new, and for W^KL).
      Thresholds only grow with counts, so a cost below that fails for certain;
    * leader: it stands while a lower bound on its own upper bound (`floor`) exceeds
      what bounds every rival's until `horizon` (`rival`), see `renew_leader`; likewise
      the recommendation while its mean exceeds a bound on all others' (`second`);
    * the challenger is computed only when it may be pulled.

    tests/simulation/test_kernels.py and test_exactness.py hold it to the oracle,
    tests/strategies/test_run.py to `choose` and `decide` of the live run.
    """
    arms = stream.mean.size
    mean, count, inverse, sums = stream.mean, stream.pulls, stream.inverse, stream.sums
    led, led_pulls, share = stream.led, stream.led_pulls, stream.share
    law_mean = laws.mean
    plain = laws.kind == BERNOULLI and noise == 0.0 and laws.drift.kind == STEADY
    sampling, two_variance = rules.sampling, rules.two_variance
    ids, beta, active = rules.ids, rules.beta, stream.active
    kl = rules.cost == KL
    scale = 0.0 if kl else two_variance * FILTER
    bonus, tabled, bonus_table = stream.bonus, rules.bonus != UCB, rules.bonus_table
    top_two, rows = sampling == TOP_TWO, trace.shape[0]
    samples, witness, arm = 0, 0, 0
    for other in range(arms):
        samples += count[other]
    best = best_arm(mean, active)
    bar, floor, rival, horizon = 0.0, -np.inf, np.inf, 0
    second = second_mean(best, mean, active)
    leader, slope, stopped = 0, 0.0, False
    while True:
        if samples < arms:
            arm = samples
        else:
            if sampling == ELIMINATION:
                stopped = drop_beaten(best, stream, rules, samples)
            else:
                top = numerator(GAUSSIAN, mean[best] - mean[witness], math.inf)
                if top >= bar * (inverse[best] + inverse[witness]):
                    witness, bar = failing_arm(best, witness, stream, rules, samples)
                    stopped = witness < 0
                    bar *= scale
            if stopped or samples >= cap:
                break
            if top_two:
                if samples > horizon or floor <= rival + 1e-12:
                    leader, floor, rival, slope, horizon = renew_leader(stream, rules, samples)
                arm = leader
                if ids or not tracks_leader(led[leader], led_pulls[leader], beta):
                    if kl:
                        arm = kl_challenger(leader, mean, count, ids, share)
                    else:
                        arm = stream_challenger(leader, mean, inverse)
                if ids:
                    if not kl:
                        share[leader] += ids_share(count[arm], count[leader])
                    if led_pulls[leader] <= share[leader]:
                        arm = leader
                led[leader] += 1
                if arm == leader:
                    led_pulls[leader] += 1
            else:
                arm = named_arm(best, stream, count, rules, samples)
        sums[arm] += (
            1.0 * (rng.random() < law_mean[arm])
            if plain
            else draw_noised(rng, laws, noise, arm, samples)
        )
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
    return Outcome(samples, best, stopped, samples)


@leaf
def step_and_leap(
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    alone: int,
    cap: int,
    stream: Stream,
    bounds: Bounds,
    trace: Floats,
) -> Outcome:
    """`stream_loop`, which after `alone` samples only goes where no leap is certain."""
    until, rounds = min(alone, cap), STEPS
    while True:
        found = stream_loop(rng, laws, noise, rules, until, stream, trace)
        samples, taken = found.samples, 1
        if found.stopped or samples == cap:
            return found
        while taken > 0 and samples < cap:
            most = min(rounds, cap - samples)
            taken, rounds = leap(rng, laws, rules, most, samples, stream, bounds)
            samples += taken
        until = min(samples + STEPS, cap)


@leaf(allocates=True)
def run_stream(
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    alone: int,
    cap: int,
    pulls: Ints,
    trace: Floats,
) -> Outcome:
    """One run that releases every sample and leaps after `alone` of them; writes
    `pulls` and `trace`.
    """
    stream, bounds = new_stream(pulls.size), new_bounds(pulls.size)
    found = step_and_leap(rng, laws, noise, rules, alone, cap, stream, bounds, trace)
    for arm in range(pulls.size):
        pulls[arm] = stream.pulls[arm]
    return found


def collected(strategy: Strategy, laws: Laws) -> Laws:
    """The laws of what is collected: of randomised responses, or of the rewards
    themselves.
    """
    return responses(laws, float(strategy.epsilon or 0)) if strategy.part.bits else laws


def steps_alone(rules: StreamRules, laws: Laws, noise: float, cap: int) -> int:
    """After how many samples a run leaps: never if answers are not bits of a steady
    chance, or if no leap is certain.
    """
    bits = laws.kind == BERNOULLI and noise == 0.0 and laws.drift.kind == STEADY
    return min(ALONE, cap) if bits and can_be_certain(rules) else cap


def runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """A strategy that learns from every sample, on these laws."""
    from discreet.simulation.compile import compiled

    arms = laws.mean.size
    rules = stream_rules(strategy, arms)
    noise = noise_scale(strategy)
    run, answers, none = compiled(run_stream), collected(strategy, laws), no_trace(arms)
    alone = steps_alone(rules, answers, noise, cap)
    return one_by_one(lambda rng, pulls: run(rng, answers, noise, rules, alone, cap, pulls, none))
