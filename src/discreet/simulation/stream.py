"""A simulated run whose every sample is released (MLE, CTB, Gaussian noise), made fast
without changing a result.

Drawn from a run's Generator: one reward (then one noise) a sample, the first K for arms
0 ... K-1. If answers are bits, a run that has not stopped after `SAMPLES_BEFORE_LEAPS`
samples goes on in leaps (`take_leap`).
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.instances import STEADY
from discreet.jit import jit
from discreet.simulation.engine import Runner, RunResult, make_empty_trace, make_single_runner
from discreet.simulation.laws import BERNOULLI, Generator, Laws, draw_reward, make_response_laws
from discreet.strategies.sampling import (
    CHALLENGER_FILTER,
    ELIMINATION,
    TOP_TWO,
    compute_ids_share,
    count_tracked,
    find_best_arm,
    find_ucb_leader,
    is_leader_due,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream import (
    UCB,
    StreamRules,
    StreamState,
    choose_arm_by_rule,
    drop_beaten,
    fill_bonus,
    find_cell,
    find_failing_arm,
    find_kl_challenger,
    find_second_mean,
    find_stream_challenger,
    make_stream,
    make_stream_rules,
    renew_leader,
)
from discreet.strategies.stream_bounds import MeanBounds, can_be_certain, is_unchanged, make_bounds
from discreet.strategies.units import compute_noise_scale
from discreet.theory.divergences import GAUSSIAN, KL, compute_numerator


@jit
def bound_reach_chance(steps: int, end: int, height: int) -> float:
    """Return an upper bound on `compute_reach_chance` that is quick to compute; its
    proof is in docs/theory.md.
    """
    if end >= height:
        return 1.0
    return math.exp(-2.0 * height * (height - end) / (steps + 2.0))


@jit
def compute_reach_chance(steps: int, end: int, height: int) -> float:
    """Return the chance that a walk of so many steps from 0 to `end`, all orders alike,
    has been at `height` >= 0.

    By reflection C(steps, ups + height - end) / C(steps, ups), as the walks that have
    been there are, mirrored from then on, all those that end at 2 height - end.
    """
    if end >= height:
        return 1.0
    ups = (steps + end) // 2
    downs, more = steps - ups, height - end
    if more > downs:
        return 0.0
    return math.exp(
        math.lgamma(ups + 1.0)
        + math.lgamma(downs + 1.0)
        - math.lgamma(ups + more + 1.0)
        - math.lgamma(downs - more + 1.0)
    )


@jit
def draw_step(rng: Generator, left: int, ups: int) -> int:
    """Draw 1 if the next of the steps that are left, `ups` of them up, is up, else 0."""
    return 1 if rng.random() * left < ups else 0


MIN_LEAP_ROUNDS = 32
"""Number of rounds below which it is quicker to step."""
MAX_LEAP_ROUNDS = 2**20
"""Most rounds of a leap: few enough for `compute_reach_chance` to have eight right
digits.
"""
SAMPLES_BETWEEN_LEAPS = 32
"""Number of samples taken one by one if no leap is certain."""
BAND_WIDTH_FACTOR = 0.4
"""Width of a band to each side: so many log(steps) times the root of the steps. Wider
ones are left less often, and are certain for fewer rounds.
"""
NO_SIDE, ANY_SIDE = -1, 4
"""In place of a side: no walk leaves its band; whichever does."""


class Band(NamedTuple):
    """Bound the walk of an arm's answers (+1 for a 1, -1 for a 0) for some steps: from
    -down to up.
    """

    steps: int
    up: int
    down: int


class Leap(NamedTuple):
    """Hold a leap: so many rounds of a leader and its challenger."""

    rounds: int
    leader: int
    rival: int
    leader_band: Band
    rival_band: Band


@jit
def make_band(mean: float, steps: int) -> Band:
    """Make a band with room for how far an arm's answers stray, and for where they
    drift.
    """
    room = int(BAND_WIDTH_FACTOR * math.log(steps + 1.0) * math.sqrt(steps)) + 2
    drift = math.ceil(steps * (2.0 * mean - 1.0))
    return Band(steps, room + max(drift, 0), room - min(drift, 0))


@jit
def bound_arm(bounds: MeanBounds, stream: StreamState, arm: int, band: Band) -> None:
    """Bound how far an arm's mean can go in its band: after k steps to y it has moved
    by (y/2 + k (1/2 - mean)) / (pulls + k), which is monotone in k.
    """
    pulls, mean = stream.pulls[arm], stream.mean[arm]
    after, drift = pulls + band.steps, band.steps * (0.5 - mean)
    bounds.low[arm] = mean + min(-0.5 * band.down / pulls, (drift - 0.5 * band.down) / after)
    bounds.high[arm] = mean + max(0.5 * band.up / pulls, (drift + 0.5 * band.up) / after)
    bounds.pulls[arm] = after


@jit
def plan_leap(
    rounds: int, samples: int, stream: StreamState, rules: StreamRules, bounds: MeanBounds
) -> Leap:
    """Return the longest leap that is certain of those that are tried, `rounds` first;
    one of no rounds if there is none.
    """
    fill_bonus(stream, rules, samples)
    leader = find_ucb_leader(stream.mean, stream.bonus)
    rival = find_stream_challenger(leader, stream.mean, stream.inverse)
    led, led_pulls = stream.led[leader], stream.led_pulls[leader]
    for arm in range(stream.mean.size):
        bounds.low[arm] = stream.mean[arm]
        bounds.high[arm] = stream.mean[arm]
        bounds.pulls[arm] = stream.pulls[arm]
    while rounds >= MIN_LEAP_ROUNDS:
        turns = count_tracked(rules.beta, led + rounds) - led_pulls
        own = make_band(stream.mean[leader], turns)
        other = make_band(stream.mean[rival], rounds - turns)
        bound_arm(bounds, stream, leader, own)
        bound_arm(bounds, stream, rival, other)
        if is_unchanged(leader, rival, samples, rounds, stream, rules, bounds):
            return Leap(rounds, leader, rival, own, other)
        rounds //= 2
    nowhere = Band(0, 0, 0)
    return Leap(0, leader, rival, nowhere, nowhere)


@jit
def draw_side(chance: float, own: Band, end: int, other: Band, other_end: int) -> int:
    """Return which of the four levels a walk is told to reach, `chance` being uniform:
    each with the chance that it does, given the ends; NO_SIDE with what is left of 1;
    ANY_SIDE if nothing is.
    """
    most = bound_reach_chance(own.steps, end, own.up) + bound_reach_chance(
        own.steps, -end, own.down
    )
    most += bound_reach_chance(other.steps, other_end, other.up)
    most += bound_reach_chance(other.steps, -other_end, other.down)
    if chance >= most:
        return NO_SIDE
    up = compute_reach_chance(own.steps, end, own.up)
    down = up + compute_reach_chance(own.steps, -end, own.down)
    other_up = down + compute_reach_chance(other.steps, other_end, other.up)
    other_down = other_up + compute_reach_chance(other.steps, -other_end, other.down)
    if other_down >= 1.0:
        return ANY_SIDE
    for side, level in enumerate((up, down, other_up, other_down)):
        if chance < level:
            return side
    return NO_SIDE


@jit
def mirror_end(band: Band, ones: int, up: bool, down: bool) -> int:
    """Return the steps up of a walk that is told to reach a level: it goes to where its
    end is mirrored.
    """
    end = 2 * ones - band.steps
    if up:
        return ones + band.up - end
    return ones - band.down - end if down else ones


@jit
def add_answers(stream: StreamState, arm: int, steps: int, ones: int) -> None:
    """Add so many answers of an arm."""
    stream.sums[arm] += ones
    stream.pulls[arm] += steps
    stream.inverse[arm] = 1.0 / stream.pulls[arm]
    stream.mean[arm] = stream.sums[arm] / stream.pulls[arm]


@jit
def walk_to_edge(
    rng: Generator,
    plan: Leap,
    side: int,
    ups: int,
    other_ups: int,
    stream: StreamState,
    beta: float,
) -> int:
    """Draw the answers of a leap one by one until a walk is at a level: the rounds
    until then, taken in; 0 if it is not the level that was told (then the walks stay in
    their bands, see the proof).
    """
    leader, own, other = plan.leader, plan.leader_band, plan.rival_band
    led, led_pulls = stream.led[leader], stream.led_pulls[leader]
    steps, ones, other_steps, other_ones, found = 0, 0, 0, 0, NO_SIDE
    while found == NO_SIDE and steps + other_steps < plan.rounds:
        if is_leader_due(led, led_pulls, beta):
            ones += draw_step(rng, own.steps - steps, ups - ones)
            steps += 1
            led_pulls += 1
            at = 2 * ones - steps
            if at == own.up:
                found = 0
            elif at == -own.down:
                found = 1
        else:
            other_ones += draw_step(rng, other.steps - other_steps, other_ups - other_ones)
            other_steps += 1
            at = 2 * other_ones - other_steps
            if at == other.up:
                found = 2
            elif at == -other.down:
                found = 3
        led += 1
    if side not in (ANY_SIDE, found):
        return 0
    add_answers(stream, leader, steps, ones)
    add_answers(stream, plan.rival, other_steps, other_ones)
    stream.led[leader], stream.led_pulls[leader] = led, led_pulls
    return steps + other_steps


@jit
def take_leap(
    rng: Generator,
    laws: Laws,
    rules: StreamRules,
    rounds: int,
    samples: int,
    stream: StreamState,
    bounds: MeanBounds,
) -> tuple[int, int]:
    """Take up to so many samples at once. Return how many were taken, 0 if none can be,
    and how many to try next time.
    """
    plan = plan_leap(rounds, samples, stream, rules, bounds)
    if plan.rounds == 0:
        return 0, MIN_LEAP_ROUNDS
    own, other, leader = plan.leader_band, plan.rival_band, plan.leader
    ones = rng.binomial(own.steps, laws.mean[leader])
    other_ones = rng.binomial(other.steps, laws.mean[plan.rival])
    end, other_end = 2 * ones - own.steps, 2 * other_ones - other.steps
    side = draw_side(rng.random(), own, end, other, other_end)
    if side != NO_SIDE:
        ups = mirror_end(own, ones, side == 0, side == 1)
        other_ups = mirror_end(other, other_ones, side == 2, side == 3)
        taken = walk_to_edge(rng, plan, side, ups, other_ups, stream, rules.beta)
        if taken > 0:
            return taken, max(plan.rounds // 2, MIN_LEAP_ROUNDS)
    add_answers(stream, leader, own.steps, ones)
    add_answers(stream, plan.rival, other.steps, other_ones)
    stream.led[leader] += plan.rounds
    stream.led_pulls[leader] += own.steps
    return plan.rounds, min(2 * plan.rounds, MAX_LEAP_ROUNDS)


DRAWS_PER_PARTICIPANT = True
"""Arms may drift, see `engine.select_runner`."""
SAMPLES_BEFORE_LEAPS = 2_000_000
"""Number of samples of a run that are always taken one by one."""


@jit
def write_stream_row(trace: Floats, samples: int, arm: int, stream: StreamState) -> None:
    """Write the state after a sample into `trace`, if it has the row; columns as in
    `phased.write_trace_row`.
    """
    if samples <= trace.shape[0]:
        trace[samples - 1, 0] = samples
        trace[samples - 1, 1] = arm
        trace[samples - 1, 2] = stream.mean[arm]
        trace[samples - 1, 3] = stream.pulls[arm]
        for other in range(stream.pulls.size):
            trace[samples - 1, 4 + other] = stream.pulls[other]


@jit
def draw_noised_reward(rng: Generator, laws: Laws, noise: float, arm: int, person: int) -> float:
    """Draw one participant's reward and its noise."""
    reward = draw_reward(rng, laws, arm, person)
    if noise > 0.0:
        reward += noise * rng.standard_normal()
    return reward


@jit
def play_stream(  # noqa: PLR0912, PLR0915
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    cap: int,
    stream: StreamState,
    trace: Floats,
) -> RunResult:
    """Play a run that releases every sample, from where `stream` is until it stops or
    has `cap` samples. Write `stream` and `trace`.

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
    scale = 0.0 if kl else two_variance * CHALLENGER_FILTER
    bonus, tabled, bonus_table = stream.bonus, rules.bonus != UCB, rules.bonus_table
    top_two, rows = sampling == TOP_TWO, trace.shape[0]
    samples, witness, arm = 0, 0, 0
    for other in range(arms):
        samples += count[other]
    best = find_best_arm(mean, active)
    bar, floor, rival, horizon = 0.0, -np.inf, np.inf, 0
    second = find_second_mean(best, mean, active)
    leader, slope, stopped = 0, 0.0, False
    while True:
        if samples < arms:
            arm = samples
        else:
            if sampling == ELIMINATION:
                stopped = drop_beaten(best, stream, rules, samples)
            else:
                top = compute_numerator(GAUSSIAN, mean[best] - mean[witness], math.inf)
                if top >= bar * (inverse[best] + inverse[witness]):
                    witness, bar = find_failing_arm(best, witness, stream, rules, samples)
                    stopped = witness < 0
                    bar *= scale
            if stopped or samples >= cap:
                break
            if top_two:
                if samples > horizon or floor <= rival + 1e-12:
                    leader, floor, rival, slope, horizon = renew_leader(stream, rules, samples)
                arm = leader
                if ids or not is_leader_due(led[leader], led_pulls[leader], beta):
                    if kl:
                        arm = find_kl_challenger(leader, mean, count, ids, share)
                    else:
                        arm = find_stream_challenger(leader, mean, inverse)
                if ids:
                    if not kl:
                        share[leader] += compute_ids_share(count[arm], count[leader])
                    if led_pulls[leader] <= share[leader]:
                        arm = leader
                led[leader] += 1
                if arm == leader:
                    led_pulls[leader] += 1
            else:
                arm = choose_arm_by_rule(best, stream, count, rules, samples)
        sums[arm] += (
            1.0 * (rng.random() < law_mean[arm])
            if plain
            else draw_noised_reward(rng, laws, noise, arm, samples)
        )
        count[arm] += 1
        inverse[arm] = 1.0 / count[arm]
        mean[arm] = sums[arm] / count[arm]
        samples += 1
        if samples <= rows:
            write_stream_row(trace, samples, arm, stream)
        if top_two and samples > arms:
            if tabled:
                bonus[arm] = bonus_table[find_cell(count[arm])]
            if arm == leader:
                bonus[arm] -= slope
                floor = mean[arm] + bonus[arm]
            else:
                rival = max(rival, mean[arm] + bonus[arm])
        if arm != best:
            second = max(second, mean[arm])
        if mean[best] <= second:
            arm = find_best_arm(mean, active)
            bar = bar if arm == best else 0.0
            best, second = arm, find_second_mean(arm, mean, active)
    return RunResult(samples, best, stopped, samples)


@jit
def step_and_leap(
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    alone: int,
    cap: int,
    stream: StreamState,
    bounds: MeanBounds,
    trace: Floats,
) -> RunResult:
    """Play a run with `play_stream`, which after `alone` samples steps only if no leap
    is certain.
    """
    until, rounds = min(alone, cap), SAMPLES_BETWEEN_LEAPS
    while True:
        found = play_stream(rng, laws, noise, rules, until, stream, trace)
        samples, taken = found.samples, 1
        if found.stopped or samples == cap:
            return found
        while taken > 0 and samples < cap:
            most = min(rounds, cap - samples)
            taken, rounds = take_leap(rng, laws, rules, most, samples, stream, bounds)
            samples += taken
        until = min(samples + SAMPLES_BETWEEN_LEAPS, cap)


@jit(allocates=True)
def run_stream(
    rng: Generator,
    laws: Laws,
    noise: float,
    rules: StreamRules,
    alone: int,
    cap: int,
    pulls: Ints,
    trace: Floats,
) -> RunResult:
    """Play one run that releases every sample and leaps after `alone` of them. Write
    `pulls` and `trace`.
    """
    stream, bounds = make_stream(pulls.size), make_bounds(pulls.size)
    found = step_and_leap(rng, laws, noise, rules, alone, cap, stream, bounds, trace)
    for arm in range(pulls.size):
        pulls[arm] = stream.pulls[arm]
    return found


def make_collected_laws(strategy: Strategy, laws: Laws) -> Laws:
    """Return the laws of what is collected: of randomised responses, or of the rewards
    themselves.
    """
    return make_response_laws(laws, float(strategy.epsilon or 0)) if strategy.spec.bits else laws


def count_single_steps(rules: StreamRules, laws: Laws, noise: float, cap: int) -> int:
    """Return after how many samples a run leaps: never if answers are not bits of a
    steady chance, or if no leap is certain.
    """
    bits = laws.kind == BERNOULLI and noise == 0.0 and laws.drift.kind == STEADY
    return min(SAMPLES_BEFORE_LEAPS, cap) if bits and can_be_certain(rules) else cap


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """Make what plays a strategy that learns from every sample, on these laws."""
    from discreet.simulation.compile import compile_kernel

    arms = laws.mean.size
    rules = make_stream_rules(strategy, arms)
    noise = compute_noise_scale(strategy)
    run, answers, none = (
        compile_kernel(run_stream),
        make_collected_laws(strategy, laws),
        make_empty_trace(arms),
    )
    alone = count_single_steps(rules, answers, noise, cap)
    return make_single_runner(
        lambda rng, pulls: run(rng, answers, noise, rules, alone, cap, pulls, none)
    )
