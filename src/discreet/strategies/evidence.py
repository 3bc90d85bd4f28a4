"""The evidence that an arm is not the best, as a share of the threshold that a
strategy compares it with (1: enough); NaN for the arm that leads.
"""

import math
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.strategies.epochs.decide import Epochs
from discreet.strategies.phased.tables import LOW, SPLIT, PhasedRules, pair_thresholds
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream.decide import stream_cost, stream_threshold
from discreet.strategies.stream.tables import StreamRules
from discreet.theory.costs import GAUSSIAN, PRIVATE, gap_is_large, numerator, transport_cost


def epochs_evidence(state: Epochs, best: int) -> Floats:
    """[arm]: the gap to the best arm, over twice the radius."""
    share: Floats = (state.mean[best] - state.mean) / (2 * state.radius[best])
    share[best] = math.nan
    return share


def phased_evidence(strategy: Strategy, rules: PhasedRules, mean: Floats, count: Floats) -> Floats:
    """[arm]: the transportation cost, over the threshold of the two counts."""
    pair, best = pair_thresholds(strategy, mean.size), int(np.argmax(mean))
    found = np.full(mean.size, math.nan)
    for arm in range(mean.size):
        if arm != best:
            low, high = pair(count[best], count[arm])
            gap = mean[best] - mean[arm]
            found[arm] = _share(rules, gap, count[best], count[arm], low, high)
    return found


def _share(rules: PhasedRules, gap: float, best: float, other: float, low: Any, high: Any) -> float:
    """The cost as a share of the threshold that `decide.passes` compares it with."""
    costs = {
        code: transport_cost(
            numerator(code, gap, rules.half_epsilon), 1 / best, 1 / other, rules.two_variance
        )
        for code in (GAUSSIAN, PRIVATE)
    }
    plain, wide = costs[GAUSSIAN] / float(low), costs[PRIVATE] / float(high)
    if rules.stop == LOW or not gap_is_large(gap, 0.0, rules.half_epsilon):
        return float(plain)
    return float(wide if rules.stop == SPLIT else max(plain, wide))


def stream_evidence(rules: StreamRules, mean: Floats, count: Floats, time: int) -> Floats:
    """The same where every answer counts, after so many of them."""
    best, found = int(np.argmax(mean)), np.full(mean.size, math.nan)
    whole = count.astype(np.int64)
    for arm in range(mean.size):
        if arm != best:
            level = stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                int(whole[best]),
                int(whole[arm]),
                time,
            )
            cost = stream_cost(rules.cost, best, arm, mean, whole, rules.two_variance)
            found[arm] = cost / level
    return found


def plain(shares: Floats) -> list[float | None]:
    """None in the place of NaN."""
    return [None if math.isnan(share) else share for share in shares.tolist()]
