"""A simulated run of a phased estimator (DAF, DPA): sums of rewards are drawn here and
released with their noise.

Drawn from a run's Generator: for each arm in turn the sum of phase 1, then its noise;
later the sum and the noise of each ended phase (one global episode: of every arm in
turn). Under a drift: the reward of each person in turn, and the noise of each release.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from discreet._types import Floats, Ints
from discreet.instances import STEADY
from discreet.jit import jit
from discreet.simulation.engine import (
    Runner,
    RunResult,
    RunResults,
    make_block_runner,
    make_empty_trace,
    make_single_runner,
)
from discreet.simulation.laws import Generator, Laws, draw_reward, draw_sum
from discreet.simulation.per_participant import make_participant_runner as people_runner
from discreet.strategies.phased.decide import (
    State,
    WholeRules,
    advance,
    advance_whole,
    begin_phase,
    decide,
    decide_whole,
    fill_bonus,
    make_state,
    make_whole_rules,
    publish,
    set_due,
)
from discreet.strategies.phased.state import PhasedRules, make_phased_rules
from discreet.strategies.strategy import Strategy

F = TypeVar("F", bound=Callable[..., Any])

DRAWS_PER_PARTICIPANT = True
"""Arms may drift, see `engine.select_runner`."""


class Compile(Protocol):
    """Make of a marked function what is called: `compile_kernel`, or
    `leave_uncompiled`.
    """

    def __call__(self, function: F, /) -> F:
        """Return the function to call."""


@jit
def release_arm(
    rng: Generator, laws: Laws, epsilon: float, rules: PhasedRules, state: State, arm: int
) -> None:
    """End the arm's phase: draw its sum, and release it. Phase 1 is one noised
    sample.
    """
    fresh = state.board.pulls[arm] - state.begun[arm]
    release_sum(rng, epsilon, rules, state, arm, draw_sum(rng, laws, arm, fresh))


@jit
def release_sum(
    rng: Generator, epsilon: float, rules: PhasedRules, state: State, arm: int, total: float
) -> None:
    """End the arm's phase with this sum: publish mean and count, and add the noise.

    Laplace noise of scale 1/(epsilon count) on each mean, or with a sigma Gaussian
    noise of scale sigma/count; none if epsilon is infinite (DPA).
    """
    publish(state, rules.forget, arm, state.board.pulls[arm] - state.begun[arm], total)
    if rules.sigma > 0.0:
        state.mean[arm] += rules.sigma / state.counts[arm] * rng.standard_normal()
    elif epsilon < np.inf:
        state.mean[arm] += rng.laplace(0.0, 1.0 / (epsilon * state.counts[arm]))


@jit
def write_trace_row(trace: Floats, row: int, samples: int, arm: int, state: State) -> None:
    """Write the state at a release into `trace`, if it has the row: samples, arm, its
    mean and count, every arm's pulls.
    """
    if row < trace.shape[0]:
        trace[row, 0] = samples
        trace[row, 1] = arm
        trace[row, 2] = state.mean[arm]
        trace[row, 3] = state.counts[arm]
        for other in range(state.mean.size):
            trace[row, 4 + other] = state.board.pulls[other]


@jit
def play_phased(
    rng: Generator,
    laws: Laws,
    epsilon: float,
    rules: PhasedRules,
    leaping: bool,
    cap: int,
    state: State,
    trace: Floats,
) -> RunResult:
    """Play one run with one episode per arm, on a new state."""
    arms = state.mean.size
    samples, rounds = arms, arms
    for first in range(arms):
        release_arm(rng, laws, epsilon, rules, state, first)
        set_due(state, rules, first)
        write_trace_row(trace, first, samples, first, state)
    while True:
        best, stopped = decide(state, rules)
        if stopped or samples >= cap:
            break
        arm, samples = advance(state, rules, leaping, samples, cap)
        if arm < 0:
            break
        release_arm(rng, laws, epsilon, rules, state, arm)
        set_due(state, rules, arm)
        write_trace_row(trace, rounds, samples, arm, state)
        rounds += 1
    return RunResult(samples, best, stopped, rounds)


@jit(allocates=True)
def run_phased(
    rng: Generator,
    laws: Laws,
    epsilon: float,
    rules: PhasedRules,
    leaping: bool,
    cap: int,
    pulls: Ints,
    trace: Floats,
) -> RunResult:
    """Play one run with one episode per arm. Write `pulls` and `trace`."""
    state = make_state(pulls.size)
    result = play_phased(rng, laws, epsilon, rules, leaping, cap, state, trace)
    for arm in range(pulls.size):
        pulls[arm] = state.board.pulls[arm]
    return result


@jit(allocates=True)
def run_phased_block(
    rng: Generator, laws: Laws, epsilon: float, rules: PhasedRules, cap: int, outcomes: RunResults
) -> None:
    """Play as many leaping runs as the results have rows, one after the other on one
    Generator.
    """
    arms = outcomes.pulls.shape[1]
    empty_trace = np.empty((0, 4 + arms))
    for run in range(outcomes.samples.size):
        state = make_state(arms)
        result = play_phased(rng, laws, epsilon, rules, True, cap, state, empty_trace)
        outcomes.samples[run] = result.samples
        outcomes.recommendation[run] = result.recommendation
        outcomes.stopped[run] = result.stopped
        outcomes.rounds[run] = result.rounds
        for arm in range(arms):
            outcomes.pulls[run, arm] = state.board.pulls[arm]


@jit(allocates=True)
def run_phased_drifting(
    rng: Generator, laws: Laws, epsilon: float, rules: PhasedRules, cap: int, pulls: Ints
) -> RunResult:
    """Play one run under a drift, with one episode per arm: rewards are drawn as
    participants come, and held back until their phase ends.
    """
    arms = pulls.size
    state, held = make_state(arms), np.zeros(arms)
    samples, rounds = arms, arms
    for arm in range(arms):
        held[arm], pulls[arm] = draw_reward(rng, laws, arm, arm), 1
    for arm in range(arms):
        release_sum(rng, epsilon, rules, state, arm, held[arm])
        set_due(state, rules, arm)
    held[:] = 0.0
    while True:
        best, stopped = decide(state, rules)
        ended = -1
        while not stopped and ended < 0 and samples < cap:
            ended, samples = advance(state, rules, False, samples, samples + 1)
            for arm in range(arms):
                if state.board.pulls[arm] > pulls[arm]:
                    held[arm] += draw_reward(rng, laws, arm, samples - 1)
                    pulls[arm] += 1
        if ended < 0:
            break
        release_sum(rng, epsilon, rules, state, ended, held[ended])
        set_due(state, rules, ended)
        held[ended] = 0.0
        rounds += 1
    return RunResult(samples, best, stopped, rounds)


@jit
def release_all(
    rng: Generator, laws: Laws, epsilon: float, rules: PhasedRules, state: State
) -> None:
    """End a global phase: release every arm, and begin the next one."""
    for arm in range(state.mean.size):
        release_arm(rng, laws, epsilon, rules, state, arm)
    begin_phase(state)


def run_global_episode(
    rng: Generator,
    laws: Laws,
    epsilon: float,
    whole: WholeRules,
    leaping: bool,
    cap: int,
    pulls: Ints,
    trace: Floats,
    compiled: Compile,
) -> RunResult:
    """Play one run with one global episode. The ends of phases run in Python, and what
    lies in between is compiled.
    """
    arms = pulls.size
    release, write_row, go_on = (
        compiled(release_all),
        compiled(write_trace_row),
        compiled(advance_whole),
    )
    state = compiled(make_state)(arms)
    samples, rounds, arm = arms, 0, arms - 1
    best, stopped = -1, False
    while True:
        if arm >= 0:
            release(rng, laws, epsilon, whole.rules, state)
            write_row(trace, rounds, samples, arm, state)
            rounds += 1
            fill_bonus(state, whole)
            best, stopped = decide_whole(state, whole)
        if stopped or samples >= cap:
            break
        arm, samples = go_on(state, whole.rules, leaping, samples, cap, whole.yields)
    pulls[:] = state.board.pulls
    return RunResult(samples, best, stopped, rounds)


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """Make what plays a phased strategy on these laws."""
    from discreet.simulation.compile import compile_kernel

    arms = laws.mean.size
    rules = make_phased_rules(strategy, arms)
    epsilon = strategy.trust_model.noise(strategy.epsilon)
    if blocks:
        block = compile_kernel(run_phased_block)
        return make_block_runner(
            lambda rng, outcomes: block(rng, laws, epsilon, rules, cap, outcomes)
        )
    if laws.drift.kind != STEADY:
        if strategy.has_global_episode:
            return people_runner(strategy, laws, cap)
        walk = compile_kernel(run_phased_drifting)
        return make_single_runner(lambda rng, pulls: walk(rng, laws, epsilon, rules, cap, pulls))
    none = make_empty_trace(arms)
    if strategy.has_global_episode:
        whole = make_whole_rules(strategy, arms, rules)
        return make_single_runner(
            lambda rng, pulls: run_global_episode(
                rng, laws, epsilon, whole, True, cap, pulls, none, compile_kernel
            )
        )
    run = compile_kernel(run_phased)
    return make_single_runner(
        lambda rng, pulls: run(rng, laws, epsilon, rules, True, cap, pulls, none)
    )
