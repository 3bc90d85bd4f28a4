"""A run of a phased estimator (DAF, DPA): releases, and what is decided at each of them.

Sums of rewards are drawn here and released with their noise; the rest sees released means and public counts only. Leaf
functions like decision.py's, compiled by kernel.py.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.simulation.laws import Generator, Laws, draw_sum
from discreet.strategies.decision import (
    ELIMINATION,
    LUCB,
    TOP_TWO,
    PhasedRules,
    best_arm,
    eliminate,
    fill_numerators,
    fill_ucb_bonus,
    lucb_pair,
    passes,
    should_stop,
    ucb_leader,
)
from discreet.strategies.phased.leap import Board, new_board, travel

Thresholds = Callable[[int, int], tuple[Any, Any]]

NEVER = 2**62
"""A due count no run reaches."""


class Release(NamedTuple):
    """A phased estimator: what it releases, and when."""

    epsilon: float
    """DAF: Laplace noise of scale 1/(epsilon count) on each mean. Infinity: none (DPA)."""
    forget: bool
    """DAF uses the samples of the last phase only, DPA all samples."""
    grid: Ints
    """grid[k]: pulls of an arm when its phase k is complete; grid[1] = 1. Unused with one global episode."""


class State(NamedTuple):
    """A phased run. `board` and what was released are public; `sums` are not."""

    board: Board
    mean: Floats
    counts: Ints
    phase: Ints
    bonus: Floats
    active: Flags
    begun: Ints
    """Pulls when the present phase began."""
    sums: Floats
    """Sum of all released phases (DPA)."""


def new_state(arms: int) -> State:
    """Nothing pulled yet."""
    return State(
        new_board(arms),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms),
    )


def release_arm(rng: Generator, laws: Laws, release: Release, state: State, arm: int) -> None:
    """End the arm's phase: draw its sum, add the noise, publish mean and count. Phase 1 is one noised sample."""
    fresh = state.board.pulls[arm] - state.begun[arm]
    publish(state, release.forget, arm, fresh, draw_sum(rng, laws, arm, fresh))
    if release.epsilon < np.inf:
        state.mean[arm] += rng.laplace(0.0, 1.0 / (release.epsilon * state.counts[arm]))


def publish(state: State, forget: bool, arm: int, fresh: int, total: float) -> None:
    """The arm's mean and count after a phase of `fresh` samples with this sum; the next phase begins."""
    if forget:
        state.counts[arm] = fresh
    else:
        state.sums[arm] += total
        total = state.sums[arm]
        state.counts[arm] = state.board.pulls[arm]
    state.mean[arm] = total / state.counts[arm]
    state.begun[arm] = state.board.pulls[arm]
    state.phase[arm] += 1


def record(trace: Floats, row: int, samples: int, arm: int, state: State) -> None:
    """State at a release, as far as `trace` has rows: samples, arm, its mean and count, every arm's pulls."""
    if row < trace.shape[0]:
        trace[row, 0] = samples
        trace[row, 1] = arm
        trace[row, 2] = state.mean[arm]
        trace[row, 3] = state.counts[arm]
        for other in range(state.mean.size):
            trace[row, 4 + other] = state.board.pulls[other]


def set_due(state: State, release: Release, rules: PhasedRules, arm: int) -> None:
    """Look up bonus and next due count of an arm that changed phase; past its grid an arm is never due again."""
    phase = state.phase[arm]
    state.bonus[arm] = rules.bonus[phase]
    state.board.due[arm] = release.grid[phase + 1] if phase + 1 < release.grid.size else NEVER


def advance(
    state: State, rules: PhasedRules, leaping: bool, samples: int, max_samples: int, whole: bool
) -> tuple[int, int]:
    """Sample until a phase ends or the cap is reached: (arm whose pull ended it or -1, samples then)."""
    board = state.board
    leader = -1
    if rules.bonus_scale > 0.0:
        fill_ucb_bonus(state.counts, rules.bonus_scale, state.bonus)
    if rules.sampling == TOP_TWO:
        leader = ucb_leader(state.mean, state.bonus)
        fill_numerators(leader, state.mean, rules.cost, rules.half_epsilon, board.tops)
        for arm in range(board.pulls.size):
            board.inverse[arm] = 1.0 / board.pulls[arm]
    elif rules.sampling == LUCB:
        lucb_pair(best_arm(state.mean, state.active), state.mean, state.bonus, board.members)
    else:
        for arm in range(state.mean.size):
            board.members[arm] = state.active[arm]
    left = max_samples - samples
    ended, done = travel(board, leader, rules.beta, rules.ids, leaping, left, whole)
    return ended, samples + done


def decide(state: State, rules: PhasedRules) -> tuple[int, bool]:
    """Recommendation and whether to stop, by the phases' thresholds."""
    best = best_arm(state.mean, state.active)
    if rules.sampling == ELIMINATION:
        return best, eliminate(best, state.mean, state.counts, state.phase, state.active, rules)
    return best, should_stop(best, state.mean, state.counts, state.phase, rules)


def passes_with(state: State, rules: PhasedRules, best: int, other: int, thresholds: Thresholds) -> bool:
    """`passes` with thresholds (low, high) computed from the two counts: one global episode has no table of them."""
    low, high = thresholds(int(state.counts[best]), int(state.counts[other]))
    return passes(
        rules.stop,
        float(state.mean[best]),
        float(state.mean[other]),
        int(state.counts[best]),
        int(state.counts[other]),
        float(low),
        float(high),
        rules.half_epsilon,
        rules.two_variance,
    )


def phased_loop(
    rng: Generator,
    laws: Laws,
    release: Release,
    rules: PhasedRules,
    leaping: bool,
    max_samples: int,
    state: State,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run with one episode per arm, on a new state."""
    arms = state.mean.size
    samples, rounds = arms, arms
    for first in range(arms):
        release_arm(rng, laws, release, state, first)
        set_due(state, release, rules, first)
        record(trace, first, samples, first, state)
    while True:
        best, stopped = decide(state, rules)
        if stopped or samples >= max_samples:
            break
        arm, samples = advance(state, rules, leaping, samples, max_samples, False)
        if arm < 0:
            break
        release_arm(rng, laws, release, state, arm)
        set_due(state, release, rules, arm)
        record(trace, rounds, samples, arm, state)
        rounds += 1
    return samples, best, stopped, rounds


def release_all(rng: Generator, laws: Laws, release: Release, state: State) -> None:
    """End a global phase: release every arm; the next ends when all have doubled."""
    for arm in range(state.mean.size):
        release_arm(rng, laws, release, state, arm)
        state.board.due[arm] = 2 * state.board.pulls[arm]
