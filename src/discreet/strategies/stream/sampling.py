"""Whom to sample next where every answer is released.

The live run calls `choose`; the simulator's hot loop has Top Two written out, and calls
`named_arm` for every other rule.
"""

import math
from typing import Any

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.kl_tracking import fill_kl_allocation
from discreet.strategies.stream.decide import (
    Stream,
    fill_bonus,
    kl_challenger,
    stream_challenger,
    stream_cost,
)
from discreet.strategies.stream.tables import StreamRules
from discreet.strategies.top_two import (
    EB_TC,
    EB_TCI,
    LUCB,
    TOP_TWO,
    TRACK,
    TS_TC,
    best_arm,
    fill_numerators,
    ids_share,
    least_pulled,
    lucb_pair,
    tracks_leader,
    ts_leader,
    ucb_leader,
)
from discreet.strategies.tracking import fill_allocation, most_owed, owe, tied_arms
from discreet.theory.costs import GAUSSIAN, KL, kl_part

Counts = Any
"""Of answers, by arm, in a live run: a list, which serves as an array where nothing is
compiled. To make an array of it takes longer than what is computed from it.
"""


@leaf
def named_arm(best: int, stream: Stream, counts: Ints, rules: StreamRules, samples: int) -> int:
    """The arm that any rule but Top Two with the UCB leader pulls; `counts` are the
    answers behind the means.
    """
    if rules.sampling == TRACK:
        return owed_arm(best, stream, rules.cost, samples)
    if rules.sampling >= EB_TC:
        leader = best
        if rules.sampling == TS_TC:
            leader = ts_leader(stream.mean, counts, stream.pulls, stream.sums, rules.two_variance)
        return duel(leader, stream, rules)
    if rules.sampling == LUCB:
        fill_bonus(stream, rules, samples)
        lucb_pair(best, stream.mean, stream.bonus, stream.members)
        return least_pulled(stream.members, stream.pulls)
    return least_pulled(stream.active, stream.pulls)


@leaf
def owed_arm(best: int, stream: Stream, cost: int, samples: int) -> int:
    """C-tracking: solve for the present means, owe everyone a share of this sample, and
    pull who is furthest behind.
    """
    fill_numerators(best, stream.mean, GAUSSIAN, math.inf, stream.tops)
    if cost == KL and tied_arms(best, stream.tops) == 0:
        fill_kl_allocation(best, stream.mean, stream.weights)
    else:
        fill_allocation(best, stream.tops, stream.weights)
    owe(best, stream.weights, samples, stream.owed)
    return most_owed(stream.owed, stream.pulls)


@leaf
def duel(leader: int, stream: Stream, rules: StreamRules) -> int:
    """The leader or its challenger, by tracking; notes who led."""
    arm = leader
    if rules.ids or not tracks_leader(stream.led[leader], stream.led_pulls[leader], rules.beta):
        if rules.sampling == EB_TCI:
            arm = improved_challenger(leader, stream, rules)
        elif rules.cost == KL:
            arm = kl_challenger(leader, stream.mean, stream.pulls, rules.ids, stream.share)
        else:
            arm = stream_challenger(leader, stream.mean, stream.inverse)
    if rules.ids:
        if rules.sampling == EB_TCI or rules.cost != KL:
            stream.share[leader] += share_of(rules.cost, leader, arm, stream.mean, stream.pulls)
        if stream.led_pulls[leader] <= stream.share[leader]:
            arm = leader
    stream.led[leader] += 1
    if arm == leader:
        stream.led_pulls[leader] += 1
    return arm


@leaf
def share_of(cost: int, leader: int, arm: int, mean: Floats, pulls: Ints) -> float:
    """IDS (You et al. 2023): the leader's part of the cost against its challenger; for
    W^G, and where W^KL is 0, N_C / (N_C + N_B).
    """
    if cost == KL and mean[leader] > mean[arm]:
        own = kl_part(mean[leader], mean[arm], pulls[leader], pulls[arm])
        return own / (own + kl_part(mean[arm], mean[leader], pulls[arm], pulls[leader]))
    return ids_share(pulls[arm], pulls[leader])


@leaf
def improved_challenger(leader: int, stream: Stream, rules: StreamRules) -> int:
    """TCI challenger: smallest W + log N, ties to the lowest index."""
    mean, pulls = stream.mean, stream.pulls
    chosen, least = -1, 0.0
    for arm in range(mean.size):
        if arm != leader:
            value = stream_cost(rules.cost, leader, arm, mean, pulls, rules.two_variance)
            value += math.log(pulls[arm])
            if chosen < 0 or value < least:
                chosen, least = arm, value
    return chosen


def choose(stream: Stream, answered: Stream, rules: StreamRules) -> int:
    """The next arm to sample: `answered` is the same run with the answers that are
    behind the means as its `pulls`, which else count those still to come too.

    Until every arm has an answer, the least pulled arm.
    """
    counts: Counts = answered.pulls
    if not all(counts):
        return int(least_pulled(np.ones(len(counts), np.bool_), stream.pulls))
    samples = sum(counts)
    if rules.sampling >= EB_TC:
        best, assigned = best_arm(stream.mean, stream.active), sum(stream.pulls)
        return int(named_arm(best, stream, counts, rules, assigned))
    if rules.sampling != TOP_TWO:
        if rules.sampling != LUCB:
            return int(least_pulled(stream.active, stream.pulls))
        fill_bonus(answered, rules, samples)
        lucb_pair(best_arm(stream.mean, stream.active), stream.mean, stream.bonus, stream.members)
        return int(least_pulled(stream.members, stream.pulls))
    fill_bonus(answered, rules, samples)
    return int(duel(int(ucb_leader(stream.mean, stream.bonus)), stream, rules))
