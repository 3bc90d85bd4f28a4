"""One global episode (paper, app. rounds of adaptivity): a phase ends when every arm
has doubled.

Counts are no powers of two here, so thresholds and bonus are functions of the counts,
called at phase ends only: there are about log2(samples) of them. Runs come to the same
counts, and a threshold costs more than a run: they are kept.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from discreet.leaf import leaf
from discreet.strategies.phased.decide import State, passes
from discreet.strategies.phased.tables import PhasedRules, pair_thresholds, phase_bonus
from discreet.strategies.strategy import Strategy

KEPT = 10**5


class WholeRules(NamedTuple):
    """How to decide at the end of a global phase."""

    rules: PhasedRules
    thresholds: Callable[[int, int], tuple[float, float]]
    """(low, high) by the counts of the recommended and the other arm."""
    bonus: Callable[[int], float]
    """The leader's bonus by an arm's count."""


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

    return WholeRules(rules, thresholds, bonus)


@leaf
def begin_phase(state: State) -> None:
    """The next phase ends when every arm has doubled."""
    for arm in range(state.mean.size):
        state.board.due[arm] = 2 * state.board.pulls[arm]


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
