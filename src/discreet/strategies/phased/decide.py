"""One round of a phased run (DAF, DPA): a released phase is published, then it is
decided, then sampling goes on.

Simulated runs, live runs and the way of a run all go through `publish`, `decide` and
`advance`. Everything here stands before the wall: released means, the counts behind
them, public pull counts. (A simulated run without noise keeps the sums of its phases in
`State.sums`; they are what it releases.)
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.jit import jit
from discreet.strategies.phased.leap import travel
from discreet.strategies.phased.state import (
    LOW,
    SPLIT,
    Board,
    PhasedRules,
    count_waiting_arms,
    make_board,
    make_pair_thresholds,
    make_phase_bonus,
    step_improved,
    step_owed,
)
from discreet.strategies.sampling import (
    EB_TC,
    EB_TCI,
    ELIMINATION,
    LUCB,
    TOP_TWO,
    TRACK,
    fill_allocation,
    fill_numerators,
    fill_ucb_bonus,
    find_best_arm,
    find_ucb_leader,
    mark_lucb_pair,
)
from discreet.strategies.strategy import Strategy
from discreet.theory.divergences import (
    GAUSSIAN,
    PRIVATE,
    compute_numerator,
    compute_transport_cost,
    is_gap_large,
)

NEVER_DUE = 2**62
"""A due count no run reaches."""


class State(NamedTuple):
    """The state of a phased run. `board` and what was released are public; `sums` are
    not.
    """

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


@jit(allocates=True)
def make_state(arms: int) -> State:
    """Return the state before anything was pulled."""
    return State(
        make_board(arms),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms),
    )


@jit
def publish(state: State, forget: bool, arm: int, fresh: int, total: float) -> None:
    """Publish an arm's mean and count after a phase of `fresh` samples with this sum;
    begin the next phase.
    """
    if forget:
        state.counts[arm] = fresh
    else:
        state.sums[arm] += total
        total = state.sums[arm]
        state.counts[arm] = state.board.pulls[arm]
    state.mean[arm] = total / state.counts[arm]
    state.begun[arm] = state.board.pulls[arm]
    state.phase[arm] += 1


@jit
def set_due(state: State, rules: PhasedRules, arm: int) -> None:
    """Look up bonus and next due count of an arm that changed phase; past its grid an
    arm is never due again.
    """
    phase = state.phase[arm]
    state.bonus[arm] = rules.bonus[phase]
    state.board.due[arm] = rules.grid[phase + 1] if phase + 1 < rules.grid.size else NEVER_DUE


@jit
def decide(state: State, rules: PhasedRules) -> tuple[int, bool]:
    """Return the recommendation and whether to stop, by the phases' thresholds."""
    best = find_best_arm(state.mean, state.active)
    if rules.sampling == ELIMINATION:
        return best, eliminate(best, state.mean, state.counts, state.phase, state.active, rules)
    return best, is_decided(best, state.mean, state.counts, state.phase, rules)


@jit(spliced=True)
def advance(
    state: State, rules: PhasedRules, leaping: bool, samples: int, max_samples: int
) -> tuple[int, int]:
    """Sample until an arm's phase ends or the cap is reached: (that arm or -1, samples
    then).
    """
    leader = prepare_board(state, rules)
    left = max_samples - samples
    ended, done = sample_board(state.board, rules, leader, leaping, samples, left, False)
    return ended, samples + done


@jit(spliced=True)
def sample_board(
    board: Board,
    rules: PhasedRules,
    leader: int,
    leaping: bool,
    samples: int,
    limit: int,
    whole: bool,
) -> tuple[int, int]:
    """Sample until a phase ends or `limit` samples are taken, by the strategy's rule:
    (arm whose pull ended it or -1, samples).
    """
    if rules.sampling == TRACK:
        return step_owed(board, leader, samples, limit, whole)
    if rules.sampling == EB_TCI:
        beta, ids, two_variance = rules.beta, rules.ids, rules.two_variance
        return step_improved(board, leader, beta, ids, two_variance, limit, whole)
    return travel(board, leader, rules.beta, rules.ids, leaping, limit, whole)


@jit(spliced=True)
def prepare_board(state: State, rules: PhasedRules) -> int:
    """Compute what stands still until the next release. Return the leader, with the
    costs against it, or -1 with the members of a rule that keeps arms level.
    """
    board = state.board
    leader = -1
    if rules.bonus_scale > 0.0:
        fill_ucb_bonus(state.counts, rules.bonus_scale, state.bonus)
    if rules.sampling == TOP_TWO or rules.sampling >= EB_TC:
        leader = find_best_arm(state.mean, state.active)
        if rules.sampling == TOP_TWO:
            leader = find_ucb_leader(state.mean, state.bonus)
        fill_numerators(leader, state.mean, rules.cost, rules.half_epsilon, board.tops)
        for arm in range(board.pulls.size):
            board.inverse[arm] = 1.0 / board.pulls[arm]
        if rules.sampling == TRACK:
            fill_allocation(leader, board.tops, board.weights)
    elif rules.sampling == LUCB:
        mark_lucb_pair(
            find_best_arm(state.mean, state.active), state.mean, state.bonus, board.members
        )
    else:
        for arm in range(state.mean.size):
            board.members[arm] = state.active[arm]
    return leader


@jit
def is_beaten(
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
    """Return whether the recommended arm beats the other one.

    LOW: W^G >= low. SPLIT (c~^{G,eps} as printed): gap < epsilon/2 asks W^G >= low,
    else W^{G,eps} >= high. EITHER (proved in the docs): W^G >= low, or gap >= epsilon/2
    and W^{G,eps} >= high. The cases are decided on released means.
    """
    gap = mean_best - mean_other
    inverse_best, inverse_other = 1.0 / count_best, 1.0 / count_other
    large = stop != LOW and is_gap_large(mean_best, mean_other, half_epsilon)
    if large:
        top = compute_numerator(PRIVATE, gap, half_epsilon)
        if compute_transport_cost(top, inverse_best, inverse_other, two_variance) >= high:
            return True
        if stop == SPLIT:
            return False
    top = compute_numerator(GAUSSIAN, gap, half_epsilon)
    return compute_transport_cost(top, inverse_best, inverse_other, two_variance) >= low


@jit
def is_beaten_by_phase(
    best: int, arm: int, mean: Floats, count: Ints, phase: Ints, rules: PhasedRules
) -> bool:
    """Return whether the recommended arm beats the other one by the thresholds of the
    two arms' phases.
    """
    return is_beaten(
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


@jit
def is_decided(best: int, mean: Floats, count: Ints, phase: Ints, rules: PhasedRules) -> bool:
    """Return whether the recommended arm beats every other one (GLR stopping rule)."""
    for arm in range(mean.size):
        if arm != best and not is_beaten_by_phase(best, arm, mean, count, phase, rules):
            return False
    return True


@jit
def eliminate(
    best: int, mean: Floats, count: Ints, phase: Ints, active: Flags, rules: PhasedRules
) -> bool:
    """Eliminate the active arms that the best active one beats. Return whether it
    stands alone.

    On the event behind the threshold a pass is never wrong, at any time, so the drops
    are as sound as stopping.
    """
    alone = True
    for arm in range(mean.size):
        if arm != best and active[arm]:
            if is_beaten_by_phase(best, arm, mean, count, phase, rules):
                active[arm] = False
            else:
                alone = False
    return alone


KEPT_RULES = 10**5
MAX_NUMERATOR = 1e200
"""A numerator beyond all others: with it an arm is the last to be challenger."""


class WholeRules(NamedTuple):
    """The rules at the end of a global phase."""

    rules: PhasedRules
    thresholds: Callable[[int, int], tuple[float, float]]
    """(low, high) by the counts of the recommended and the other arm."""
    bonus: Callable[[int], float]
    """The leader's bonus by an arm's count."""
    yields: bool
    """Whether arms that have doubled yield."""


def make_whole_rules(strategy: Strategy, arms: int, rules: PhasedRules) -> WholeRules:
    """Return the rules of a strategy with one global episode."""
    pair = make_pair_thresholds(strategy, arms)
    own = make_phase_bonus(strategy)

    @lru_cache(maxsize=KEPT_RULES)
    def thresholds(best: int, other: int) -> tuple[float, float]:
        low, high = pair(best, other)
        return float(low), float(high)

    @lru_cache(maxsize=KEPT_RULES)
    def bonus(count: int) -> float:
        return float(own(count))

    return WholeRules(rules, thresholds, bonus, strategy.episodes == "global-yielding")


@jit
def begin_phase(state: State) -> None:
    """Begin a phase, which ends when every arm has doubled."""
    for arm in range(state.mean.size):
        state.board.due[arm] = 2 * state.begun[arm]


@jit
def advance_whole(
    state: State, rules: PhasedRules, leaping: bool, samples: int, max_samples: int, yields: bool
) -> tuple[int, int]:
    """Sample until every arm has doubled or the cap is reached: (arm whose pull ended
    the phase or -1, samples then).

    If arms yield, it goes from one arm's doubling to the next.
    """
    board, done, limit, ended = state.board, 0, max_samples - samples, -1
    leader = prepare_board(state, rules)
    while ended < 0 and done < limit:
        if yields:
            yield_doubled(board, leader)
        ended, moved = sample_board(
            board, rules, leader, leaping, samples + done, limit - done, not yields
        )
        done += moved
        if yields:
            begin_phase(state)
            ended = ended if count_waiting_arms(board) == 0 else -1
    return ended, samples + done


@jit
def yield_doubled(board: Board, leader: int) -> None:
    """Take the arms that have doubled out of the choice of the challenger; if all have,
    the first of them is it. None of them is due again.
    """
    pulls, due, tops, nobody = board.pulls, board.due, board.tops, True
    for arm in range(pulls.size):
        if pulls[arm] >= due[arm]:
            due[arm] = NEVER_DUE
            tops[arm] = MAX_NUMERATOR
        elif arm != leader:
            nobody = False
    if nobody:
        tops[1 if leader == 0 else 0] = 0.0


def fill_bonus(state: State, whole: WholeRules) -> None:
    """Write every arm's bonus, by the samples behind its mean."""
    state.bonus[:] = [whole.bonus(count) for count in state.counts.tolist()]


def decide_whole(state: State, whole: WholeRules) -> tuple[int, bool]:
    """Return the recommendation and whether to stop, by the thresholds of the counts;
    nobody is ever eliminated here.
    """
    best = int(state.mean.argmax())
    others = (arm for arm in range(state.mean.size) if arm != best)
    return best, all(_is_beaten(state, whole, best, other) for other in others)


def _is_beaten(state: State, whole: WholeRules, best: int, other: int) -> bool:
    low, high = whole.thresholds(int(state.counts[best]), int(state.counts[other]))
    return is_beaten(
        whole.rules.stop,
        float(state.mean[best]),
        float(state.mean[other]),
        int(state.counts[best]),
        int(state.counts[other]),
        low,
        high,
        whole.rules.half_epsilon,
        whole.rules.two_variance,
    )
