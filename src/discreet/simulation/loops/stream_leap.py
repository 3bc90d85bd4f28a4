"""Leaps of a run whose every sample is released: many samples at once, equal in law to
taking them one by one.

docs/leap.md, "A mean after every sample", has the proof. Drawn for a leap: the sum of
the leader's answers, that of the challenger's, a number that says whether one of their
walks left its band on the way, and if so the answers one by one until it did.
"""

import math
from typing import NamedTuple

from discreet.leaf import leaf
from discreet.simulation.bridges import draw_step, most_reach, reach
from discreet.simulation.laws import Generator, Laws
from discreet.strategies.stream.certificate import Bounds, nothing_changes
from discreet.strategies.stream.decide import Stream, fill_bonus, stream_challenger
from discreet.strategies.stream.tables import StreamRules
from discreet.strategies.top_two import tracked, tracks_leader, ucb_leader

LEAST = 32
"""Rounds below which it is quicker to step."""
MOST = 2**20
"""Rounds of a leap: few enough for `reach` to have eight right digits."""
STEPS = 32
"""Samples taken one by one where no leap is certain."""
WIDTH = 0.4
"""Of a band: so many log(steps) times the root of the steps to each side. Wider ones
are left less often, and are certain for fewer rounds.
"""
NOBODY, ANYBODY = -1, 4
"""In place of a side: no walk leaves its band; whichever does."""


class Band(NamedTuple):
    """Between which levels the walk of an arm's answers (+1 for a 1, -1 for a 0) stays
    for some steps: from -down to up.
    """

    steps: int
    up: int
    down: int


class Plan(NamedTuple):
    """A leap: so many rounds of a leader and its challenger."""

    rounds: int
    leader: int
    rival: int
    own: Band
    other: Band


@leaf
def make_band(mean: float, steps: int) -> Band:
    """A band with room for how far an arm's answers stray, and for where they drift."""
    room = int(WIDTH * math.log(steps + 1.0) * math.sqrt(steps)) + 2
    drift = math.ceil(steps * (2.0 * mean - 1.0))
    return Band(steps, room + max(drift, 0), room - min(drift, 0))


@leaf
def bound_arm(bounds: Bounds, stream: Stream, arm: int, band: Band) -> None:
    """How far an arm's mean can go in its band: after k steps to y it has moved by (y/2
    + k (1/2 - mean)) / (pulls + k), which is monotone in k.
    """
    pulls, mean = stream.pulls[arm], stream.mean[arm]
    after, drift = pulls + band.steps, band.steps * (0.5 - mean)
    bounds.low[arm] = mean + min(-0.5 * band.down / pulls, (drift - 0.5 * band.down) / after)
    bounds.high[arm] = mean + max(0.5 * band.up / pulls, (drift + 0.5 * band.up) / after)
    bounds.pulls[arm] = after


@leaf
def plan_leap(
    rounds: int, samples: int, stream: Stream, rules: StreamRules, bounds: Bounds
) -> Plan:
    """The longest leap that is certain of those that are tried, `rounds` first; one of
    no rounds if there is none.
    """
    fill_bonus(stream, rules, samples)
    leader = ucb_leader(stream.mean, stream.bonus)
    rival = stream_challenger(leader, stream.mean, stream.inverse)
    led, led_pulls = stream.led[leader], stream.led_pulls[leader]
    for arm in range(stream.mean.size):
        bounds.low[arm] = stream.mean[arm]
        bounds.high[arm] = stream.mean[arm]
        bounds.pulls[arm] = stream.pulls[arm]
    while rounds >= LEAST:
        turns = tracked(rules.beta, led + rounds) - led_pulls
        own = make_band(stream.mean[leader], turns)
        other = make_band(stream.mean[rival], rounds - turns)
        bound_arm(bounds, stream, leader, own)
        bound_arm(bounds, stream, rival, other)
        if nothing_changes(leader, rival, samples, rounds, stream, rules, bounds):
            return Plan(rounds, leader, rival, own, other)
        rounds //= 2
    nowhere = Band(0, 0, 0)
    return Plan(0, leader, rival, nowhere, nowhere)


@leaf
def side_left(chance: float, own: Band, end: int, other: Band, other_end: int) -> int:
    """Which of the four levels a walk is told to reach, `chance` being uniform: each
    with the chance that it does, given the ends; NOBODY with what is left of 1; ANYBODY
    if nothing is.
    """
    most = most_reach(own.steps, end, own.up) + most_reach(own.steps, -end, own.down)
    most += most_reach(other.steps, other_end, other.up)
    most += most_reach(other.steps, -other_end, other.down)
    if chance >= most:
        return NOBODY
    up = reach(own.steps, end, own.up)
    down = up + reach(own.steps, -end, own.down)
    other_up = down + reach(other.steps, other_end, other.up)
    other_down = other_up + reach(other.steps, -other_end, other.down)
    if other_down >= 1.0:
        return ANYBODY
    for side, level in enumerate((up, down, other_up, other_down)):
        if chance < level:
            return side
    return NOBODY


@leaf
def mirrored(band: Band, ones: int, up: bool, down: bool) -> int:
    """Steps up of a walk that is told to reach a level: it goes to where its end is
    mirrored.
    """
    end = 2 * ones - band.steps
    if up:
        return ones + band.up - end
    return ones - band.down - end if down else ones


@leaf
def end_steps(stream: Stream, arm: int, steps: int, ones: int) -> None:
    """Take in so many answers of an arm."""
    stream.sums[arm] += ones
    stream.pulls[arm] += steps
    stream.inverse[arm] = 1.0 / stream.pulls[arm]
    stream.mean[arm] = stream.sums[arm] / stream.pulls[arm]


@leaf
def walk_out(
    rng: Generator, plan: Plan, side: int, ups: int, other_ups: int, stream: Stream, beta: float
) -> int:
    """Draw the answers of a leap one by one until a walk is at a level: the rounds
    until then, taken in; 0 if it is not the level that was told (then the walks stay in
    their bands, see the proof).
    """
    leader, own, other = plan.leader, plan.own, plan.other
    led, led_pulls = stream.led[leader], stream.led_pulls[leader]
    steps, ones, other_steps, other_ones, found = 0, 0, 0, 0, NOBODY
    while found == NOBODY and steps + other_steps < plan.rounds:
        if tracks_leader(led, led_pulls, beta):
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
    if side not in (ANYBODY, found):
        return 0
    end_steps(stream, leader, steps, ones)
    end_steps(stream, plan.rival, other_steps, other_ones)
    stream.led[leader], stream.led_pulls[leader] = led, led_pulls
    return steps + other_steps


@leaf
def leap(
    rng: Generator,
    laws: Laws,
    rules: StreamRules,
    rounds: int,
    samples: int,
    stream: Stream,
    bounds: Bounds,
) -> tuple[int, int]:
    """Take up to so many samples at once: how many were taken, 0 if none can be, and
    how many to try next time.
    """
    plan = plan_leap(rounds, samples, stream, rules, bounds)
    if plan.rounds == 0:
        return 0, LEAST
    own, other, leader = plan.own, plan.other, plan.leader
    ones = rng.binomial(own.steps, laws.mean[leader])
    other_ones = rng.binomial(other.steps, laws.mean[plan.rival])
    end, other_end = 2 * ones - own.steps, 2 * other_ones - other.steps
    side = side_left(rng.random(), own, end, other, other_end)
    if side != NOBODY:
        ups = mirrored(own, ones, side == 0, side == 1)
        other_ups = mirrored(other, other_ones, side == 2, side == 3)
        taken = walk_out(rng, plan, side, ups, other_ups, stream, rules.beta)
        if taken > 0:
            return taken, max(plan.rounds // 2, LEAST)
    end_steps(stream, leader, own.steps, ones)
    end_steps(stream, plan.rival, other.steps, other_ones)
    stream.led[leader] += plan.rounds
    stream.led_pulls[leader] += own.steps
    return plan.rounds, min(2 * plan.rounds, MOST)
