"""One global episode (paper, app. rounds of adaptivity): a phase ends when every arm
has doubled.

Counts are no powers of two here, so thresholds and bonus are functions of the counts,
called at phase ends only: there are about log2(samples) of them. Runs come to the same
counts, and a threshold costs more than a run: they are kept.

With Top Two sampling a phase never ends if another arm's mean is not below the
leader's: its W = 0 makes it the challenger for ever. `global-yielding` is the repair:
an arm that has doubled yields to the others (docs, "Theory and proofs", section 5).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from discreet.leaf import leaf
from discreet.strategies.phased.counts import Board, waiting_arms
from discreet.strategies.phased.decide import NEVER, State, face, go, passes
from discreet.strategies.phased.tables import PhasedRules, pair_thresholds, phase_bonus
from discreet.strategies.strategy import Strategy

KEPT = 10**5
LAST = 1e200
"""A numerator beyond all others: with it an arm is the last to be challenger."""


class WholeRules(NamedTuple):
    """How to decide at the end of a global phase."""

    rules: PhasedRules
    thresholds: Callable[[int, int], tuple[float, float]]
    """(low, high) by the counts of the recommended and the other arm."""
    bonus: Callable[[int], float]
    """The leader's bonus by an arm's count."""
    yields: bool
    """Whether arms that have doubled yield."""


def whole_rules(strategy: Strategy, arms: int, rules: PhasedRules) -> WholeRules:
    """The rules of a strategy with one global episode."""
    pair = pair_thresholds(strategy, arms)
    own = phase_bonus(strategy)

    @lru_cache(maxsize=KEPT)
    def thresholds(best: int, other: int) -> tuple[float, float]:
        low, high = pair(best, other)
        return float(low), float(high)

    @lru_cache(maxsize=KEPT)
    def bonus(count: int) -> float:
        return float(own(count))

    return WholeRules(rules, thresholds, bonus, strategy.episodes == "global-yielding")


@leaf
def begin_phase(state: State) -> None:
    """The phase ends when every arm has doubled."""
    for arm in range(state.mean.size):
        state.board.due[arm] = 2 * state.begun[arm]


@leaf
def advance_whole(
    state: State, rules: PhasedRules, leaping: bool, samples: int, max_samples: int, yields: bool
) -> tuple[int, int]:
    """Sample until every arm has doubled or the cap is reached: (arm whose pull ended
    the phase or -1, samples then).

    If arms yield, it goes from one arm's doubling to the next.
    """
    board, done, limit, ended = state.board, 0, max_samples - samples, -1
    leader = face(state, rules)
    while ended < 0 and done < limit:
        if yields:
            yield_doubled(board, leader)
        ended, moved = go(board, rules, leader, leaping, samples + done, limit - done, not yields)
        done += moved
        if yields:
            begin_phase(state)
            ended = ended if waiting_arms(board) == 0 else -1
    return ended, samples + done


@leaf
def yield_doubled(board: Board, leader: int) -> None:
    """Take the arms that have doubled out of the choice of the challenger; if all have,
    the first of them is it. None of them is due again.
    """
    pulls, due, tops, nobody = board.pulls, board.due, board.tops, True
    for arm in range(pulls.size):
        if pulls[arm] >= due[arm]:
            due[arm] = NEVER
            tops[arm] = LAST
        elif arm != leader:
            nobody = False
    if nobody:
        tops[1 if leader == 0 else 0] = 0.0


def fill_bonus(state: State, whole: WholeRules) -> None:
    """Every arm's bonus, by the samples behind its mean."""
    state.bonus[:] = [whole.bonus(count) for count in state.counts.tolist()]


def decide_whole(state: State, whole: WholeRules) -> tuple[int, bool]:
    """Recommendation and whether to stop, by the thresholds of the counts; nobody is
    ever eliminated here.
    """
    best = int(state.mean.argmax())
    others = (arm for arm in range(state.mean.size) if arm != best)
    return best, all(_passes(state, whole, best, other) for other in others)


def _passes(state: State, whole: WholeRules, best: int, other: int) -> bool:
    low, high = whole.thresholds(int(state.counts[best]), int(state.counts[other]))
    return passes(
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
