"""That leader, challenger and not stopping are certain while means stay within bounds.

docs/theory.md, "A mean after every sample", has the proof. Sums and products may round by
`SLACK`; a certificate that fails for it costs time only.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.jit import jit
from discreet.strategies.sampling import MIN_LEAP_SHARE, TOP_TWO
from discreet.strategies.stream import UCB, StreamRules, StreamState, compute_stream_threshold
from discreet.theory.divergences import GAUSSIAN

SLACK = 1e-11


class MeanBounds(NamedTuple):
    """The values between which each arm's mean stays for the samples to come, and the
    arm's pulls after them.
    """

    low: Floats
    high: Floats
    pulls: Ints


@jit(allocates=True)
def make_bounds(arms: int) -> MeanBounds:
    """Return room for the bounds of every arm."""
    return MeanBounds(np.zeros(arms), np.zeros(arms), np.zeros(arms, np.int64))


def can_be_certain(rules: StreamRules) -> bool:
    """Return whether the certificate is about these rules: Top Two with a fixed share,
    W^G and b^G.
    """
    fixed = not rules.ids and MIN_LEAP_SHARE <= rules.beta <= 1.0 - MIN_LEAP_SHARE
    gaussian = rules.cost == GAUSSIAN and rules.bonus == UCB
    return rules.sampling == TOP_TWO and fixed and gaussian


@jit
def is_unchanged(
    leader: int,
    rival: int,
    samples: int,
    rounds: int,
    stream: StreamState,
    rules: StreamRules,
    bounds: MeanBounds,
) -> bool:
    """Return whether for so many rounds `leader` leads, `rival` is its challenger and
    nothing is decided, as long as the means stay within their bounds.

    `stream.bonus` is of now, after `samples`.
    """
    return (
        is_still_leading(leader, samples, rounds, stream, bounds)
        and is_still_challenging(leader, rival, stream, bounds)
        and is_still_sampling(samples, stream, rules, bounds)
    )


@jit
def is_still_leading(
    leader: int, samples: int, rounds: int, stream: StreamState, bounds: MeanBounds
) -> bool:
    """Return whether the leader's upper bound stays above all others: b^G grows with
    log n and falls with the arm's pulls, and sqrt(1 + x) <= 1 + x/2, 1/sqrt(1 + x) >= 1
    - x/2.
    """
    bonus, pulls = stream.bonus, stream.pulls
    shrink = 1.0 - 0.5 * (bounds.pulls[leader] - pulls[leader]) / pulls[leader]
    growth = 1.0 + 0.5 * rounds / (samples * math.log(samples))
    floor = bounds.low[leader] + bonus[leader] * shrink - SLACK
    for arm in range(pulls.size):
        if arm != leader and bounds.high[arm] + bonus[arm] * growth >= floor:
            return False
    return True


@jit
def is_still_challenging(leader: int, rival: int, stream: StreamState, bounds: MeanBounds) -> bool:
    """Return whether the rival stays the arm of least W against the leader.

    Either its mean stays above the leader's (W = 0), and no arm before it comes so
    high; or all means stay below the leader's. Then for each other arm the ratio of the
    gaps is monotone in the leader's mean, and that of the inverse counts in its pulls,
    so the ends of both decide.
    """
    low, high, inverse = bounds.low, bounds.high, stream.inverse
    bottom, top = low[leader], high[leader]
    if low[rival] >= top:
        return is_first(rival, leader, bounds)
    early, late = inverse[leader], 1.0 / bounds.pulls[leader]
    own = 1.0 / bounds.pulls[rival]
    near, far = (bottom - low[rival]) ** 2, (top - low[rival]) ** 2
    for arm in range(low.size):
        if arm != leader:
            if high[arm] >= bottom:
                return False
            if arm != rival:
                least = (1.0 - SLACK) * min(
                    (early + own) * (late + inverse[arm]), (late + own) * (early + inverse[arm])
                )
                most = (early + inverse[arm]) * (late + inverse[arm])
                if (
                    near * most >= (bottom - high[arm]) ** 2 * least
                    or far * most >= (top - high[arm]) ** 2 * least
                ):
                    return False
    return True


@jit
def is_first(rival: int, leader: int, bounds: MeanBounds) -> bool:
    """Return whether no arm before the rival comes as high as the leader."""
    first = 0
    while first < rival and (first == leader or bounds.high[first] < bounds.low[leader]):
        first += 1
    return first == rival


@jit
def is_still_sampling(
    samples: int, stream: StreamState, rules: StreamRules, bounds: MeanBounds
) -> bool:
    """Return whether every arm that may come to be recommended has another one that it
    does not beat.
    """
    least = -np.inf
    for arm in range(bounds.low.size):
        least = max(least, bounds.low[arm])
    for arm in range(bounds.low.size):
        if bounds.high[arm] >= least and not is_still_failing(arm, samples, stream, rules, bounds):
            return False
    return True


@jit
def is_still_failing(
    best: int, samples: int, stream: StreamState, rules: StreamRules, bounds: MeanBounds
) -> bool:
    """Return whether some arm stays unbeaten by this one: even the largest cost is
    below the threshold of now, and thresholds only grow.
    """
    pulls = stream.pulls
    for arm in range(pulls.size):
        if arm != best:
            gap = max(bounds.high[best] - bounds.low[arm], 0.0)
            least = compute_stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                pulls[best],
                pulls[arm],
                samples,
            )
            spread = 1.0 / bounds.pulls[best] + 1.0 / bounds.pulls[arm]
            if gap * gap < least * rules.two_variance * spread * (1.0 - SLACK):
                return True
    return False
