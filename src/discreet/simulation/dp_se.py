"""A simulated run of DP-SE (Sajed and Sheffet).

Drawn from a run's Generator: in each epoch, for each active arm in turn, the sum and
the noise; under a drift the reward of each person in turn, then the noise of each arm.
"""

import numpy as np

from discreet._types import Flags, Floats, Ints
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
from discreet.strategies.dp_se import Epochs, end_epoch, make_epochs
from discreet.strategies.sampling import find_best_arm
from discreet.strategies.strategy import Strategy
from discreet.theory.thresholds import compute_epoch_length

DRAWS_PER_PARTICIPANT = True
"""Arms may drift, see `engine.select_runner`."""


@jit
def spread_cut_epoch(samples: int, left: int, active: Flags, pulls: Ints) -> None:
    """Count the samples of an epoch that the cap cuts off: round robin over the active
    arms.
    """
    place = 0
    for arm in range(pulls.size):
        if active[arm]:
            pulls[arm] += samples // left + (1 if place < samples % left else 0)
            place += 1


@jit
def draw_epoch(rng: Generator, laws: Laws, epsilon: float, length: int, state: Epochs) -> None:
    """Draw the means of an epoch's fresh samples, with their noise."""
    for arm in range(state.mean.size):
        if state.active[arm]:
            total = draw_sum(rng, laws, arm, length)
            state.mean[arm] = total / length + rng.laplace(0.0, 1.0 / (epsilon * length))
            state.pulls[arm] += length


@jit
def draw_drifting_epoch(
    rng: Generator, laws: Laws, epsilon: float, length: int, samples: int, state: Epochs
) -> None:
    """Draw the means of an epoch under a drift: the arms in turn, after so many samples
    before.
    """
    for arm in range(state.mean.size):
        state.mean[arm] = 0.0 if state.active[arm] else state.mean[arm]
    person = samples
    for _ in range(length):
        for arm in range(state.mean.size):
            if state.active[arm]:
                state.mean[arm] += draw_reward(rng, laws, arm, person)
                person += 1
    for arm in range(state.mean.size):
        if state.active[arm]:
            state.mean[arm] = state.mean[arm] / length + rng.laplace(0.0, 1.0 / (epsilon * length))
            state.pulls[arm] += length


@jit
def write_epoch_row(
    trace: Floats, epoch: int, samples: int, left: int, length: int, state: Epochs
) -> None:
    """Write the state after an epoch into `trace`, if it has the row: samples, arms
    left, length, epoch, every arm's mean.
    """
    if epoch <= trace.shape[0]:
        row = trace[epoch - 1]
        row[0], row[1], row[2], row[3] = samples, left, length, epoch
        for arm in range(state.mean.size):
            row[4 + arm] = state.mean[arm]


@jit
def play_epochs(
    rng: Generator, laws: Laws, epsilon: float, delta: float, cap: int, state: Epochs, trace: Floats
) -> RunResult:
    """Play one run of DP-SE; `state` is begun anew.

    An epoch that would pass the cap is cut off there and releases nothing.
    """
    arms = state.mean.size
    for arm in range(arms):
        state.mean[arm], state.active[arm], state.pulls[arm] = 0.0, True, 0
    samples, rounds, left = 0, 0, arms
    while left > 1:
        length = compute_epoch_length(left, rounds + 1, epsilon, delta)
        if length > (cap - samples) // left:
            spread_cut_epoch(cap - samples, left, state.active, state.pulls)
            samples = cap
            break
        if laws.drift.kind == STEADY:
            draw_epoch(rng, laws, epsilon, length, state)
        else:
            draw_drifting_epoch(rng, laws, epsilon, length, samples, state)
        samples += left * length
        rounds += 1
        left = end_epoch(state, left, rounds, length, epsilon, delta)
        write_epoch_row(trace, rounds, samples, left, length, state)
    return RunResult(samples, find_best_arm(state.mean, state.active), left == 1, rounds)


@jit(allocates=True)
def run_epochs(
    rng: Generator, laws: Laws, epsilon: float, delta: float, cap: int, pulls: Ints, trace: Floats
) -> RunResult:
    """Play one run of DP-SE. Write `pulls` and `trace`."""
    state = make_epochs(pulls.size)
    result = play_epochs(rng, laws, epsilon, delta, cap, state, trace)
    for arm in range(pulls.size):
        pulls[arm] = state.pulls[arm]
    return result


@jit(allocates=True)
def run_epochs_block(
    rng: Generator, laws: Laws, epsilon: float, delta: float, cap: int, outcomes: RunResults
) -> None:
    """Play as many runs of DP-SE as the results have rows, one after the other on one
    Generator.
    """
    arms = outcomes.pulls.shape[1]
    state, empty_trace = make_epochs(arms), np.empty((0, 4 + arms))
    for run in range(outcomes.samples.size):
        result = play_epochs(rng, laws, epsilon, delta, cap, state, empty_trace)
        outcomes.samples[run] = result.samples
        outcomes.recommendation[run] = result.recommendation
        outcomes.stopped[run] = result.stopped
        outcomes.rounds[run] = result.rounds
        for arm in range(arms):
            outcomes.pulls[run, arm] = state.pulls[arm]


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """Make what plays DP-SE on these laws. Its runs are so short that they go in
    blocks, unless arms drift.
    """
    from discreet.simulation.compile import compile_kernel

    epsilon, delta = float(strategy.epsilon or 0), strategy.delta
    if blocks:
        block = compile_kernel(run_epochs_block)
        return make_block_runner(
            lambda rng, outcomes: block(rng, laws, epsilon, delta, cap, outcomes)
        )
    run, none = compile_kernel(run_epochs), make_empty_trace(laws.mean.size)
    return make_single_runner(lambda rng, pulls: run(rng, laws, epsilon, delta, cap, pulls, none))
