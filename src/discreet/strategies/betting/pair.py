"""What the releases of bet-se say about the difference between two arms: bets against
each pair of means at once. The docs page "Differences between arms" has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.strategies.betting.bets import noise_price
from discreet.strategies.betting.book import COUNT, RELEASES, SUM
from discreet.strategies.betting.interval import SIGNS, Beside
from discreet.strategies.betting.near import fine_price, near_weight
from discreet.strategies.betting.settle import ROUNDING, how_many
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.pairs import LEAST, Margin, Pair

STEPS = 32
"""Halvings of a range of means, down to 1e-10: of a minimum, an error of 1e-20 times
the people.
"""
SKEWS = (0, 2, 4, 6, 8)
"""By how many places the tilts of the two arms differ, two for each octave: up to 16
times as many people on one as on the other are allowed for.
"""
OF_TWO = (0,)
"""The same in a trial of two arms, which are dealt alike."""
CARE = 1e-6
"""Nats that a minimum found so may be too large by."""
MIDDLE = 0.5
"""By what a margin counts the people that one arm has more."""


class Known(NamedTuple):
    """The sums released of an arm, and what its numbers have beside them."""

    total: Floats
    beside: Beside | None


class Group(NamedTuple):
    """People of an arm: each multiplies a bet by 1 + y rise, y the mean sent."""

    people: float
    rise: Floats
    """[bet]"""
    shift: float = 0.0
    """By how much what was sent lies above the usual scale."""


@dataclass(frozen=True, eq=False)
class PairBets(Pair):
    """Bets that "the means are x and y" is wrong; their log money is convex in both."""

    start: Floats
    """[bet]: its stake, what it has won, and what noise has cost it."""
    one: tuple[Group, ...]
    other: tuple[Group, ...]
    setting: Setting

    @property
    def care(self) -> float:
        """Nats that floating point may have invented."""
        people = sum(group.people for group in (*self.one, *self.other))
        return ROUNDING * people + CARE

    def interval(self, alpha: float) -> tuple[float, float]:
        """The differences against which, whatever the level, nobody has won 1/alpha."""
        target = math.log(1 / alpha) + self.care
        widest = self.setting.high - self.setting.low
        inside = min(max(self.difference * self.setting.scale, -widest), widest)
        if self.least_doubt(inside)[0] >= target:
            inside = self._least_doubted(widest)
            if self.least_doubt(inside)[0] >= target:  # only noise beyond alpha does this
                return self._shown(inside, inside)
        return self._shown(*(self._end(inside, end, target) for end in (-widest, widest)))

    def _least_doubted(self, widest: float) -> float:
        """The difference, by the slope."""
        low, high = -widest, widest
        for _ in range(STEPS):
            middle = (low + high) / 2
            if self.least_doubt(middle)[1] > 0:
                high = middle
            else:
                low = middle
        return (low + high) / 2

    def _end(self, inside: float, end: float, target: float) -> float:
        if self.least_doubt(end)[0] < target:
            return end
        for _ in range(STEPS):
            middle = (inside + end) / 2
            if self.least_doubt(middle)[0] >= target:
                end = middle
            else:
                inside = middle
        return end

    def _shown(self, low: float, high: float) -> tuple[float, float]:
        """On the scale of rewards."""
        scale = self.setting.scale
        return max(low / scale, -1.0), min(high / scale, 1.0)

    def p_value(self) -> float:
        """One over the money against "no difference", at the level that it doubts
        least.
        """
        return max(math.exp(min(0.0, self.care - self.least_doubt(0.0)[0])), LEAST)

    def least_doubt(self, difference: float) -> tuple[float, float]:
        """(log money against this difference at the least doubted level, slope in the
        difference there).
        """
        low = max(self.setting.low, self.setting.low - difference)
        high = min(self.setting.high, self.setting.high - difference)
        ends = low, high
        for _ in range(STEPS):
            level = (low + high) / 2
            _, first, second = self._doubt(level + difference, level)
            if first + second > 0:
                high = level
            else:
                low = level
        level = low if low == ends[0] else high if high == ends[1] else (low + high) / 2
        log, first, second = self._doubt(level + difference, level)
        # Where the level cannot go on, its slope is not 0: the difference moves the
        # mean that is still free.
        if first + second > 0:  # the level is as low as can be
            slope = -second if difference < 0 else first
        else:
            slope = first if difference < 0 else -second
        return log, slope

    def _doubt(self, x: float, y: float) -> tuple[float, float, float]:
        """(log money against these means, its slopes in them)."""
        log = self.start.copy()
        slopes = np.zeros((2, log.size))
        for side, (mean, groups) in enumerate(((x, self.one), (y, self.other))):
            for group in groups:
                grown = 1 + (mean + group.shift) * group.rise
                log -= group.people * np.log(grown)
                slopes[side] -= group.people * group.rise / grown
        top = float(log.max())
        share = np.exp(log - top)
        money = float(share.sum())
        first, second = (slopes @ share / money).tolist()
        return top + math.log(money), first, second


class Design(NamedTuple):
    """The bets: a tilt for each arm, the same way up and down. Their ratio allows for
    arms with unequal numbers of people.
    """

    one: Ints
    other: Ints
    """[bet] which tilt, of those of the mixture."""
    sign: Floats
    """[bet] of the one's tilt; the other's has the other sign."""
    stake: Floats
    """[bet] the log of its share."""

    def tilts(self, bets: Bets) -> tuple[Floats, Floats, Floats]:
        """[bet] of the one, of the other, and of what is released for both."""
        one, other = bets.tilt[self.one], bets.tilt[self.other]
        return self.sign * one, -self.sign * other, self.sign * np.minimum(one, other)


def _design(count: int, bets: Bets, skews: Sequence[int]) -> Design:
    """The first `count` tilts for one arm, and those so many places below for the
    other.
    """
    shares = [1 / (1 + step) for step in range(len(skews))]
    whole = 2 * sum(shares) - shares[0]
    one, other, stake = [], [], []
    for skew, share in zip(skews, shares, strict=True):
        first = np.arange(max(count - skew, 0))
        for pair in {(0, skew), (skew, 0)}:
            one.append(first + pair[0])
            other.append(first + pair[1])
            stake.append(bets.stake[first] + math.log(share / whole / 2))
    columns = np.concatenate(one), np.concatenate(other)
    sign = np.repeat(SIGNS, columns[0].size)
    both = [np.concatenate([column] * 2) for column in (*columns, np.concatenate(stake))]
    return Design(both[0], both[1], sign, both[2])


def pair_bets(
    one: Known,
    other: Known,
    margins: Sequence[Margin],
    bets: Bets,
    setting: Setting,
    skews: Sequence[int] = SKEWS,
) -> PairBets | None:
    """The bets on two arms, from the sums released of each and the margins between
    them; None if nothing was. The `skews` are fixed before the first person.
    """
    people = [sum(margin.people[side] for margin in margins) for side in (0, 1)]
    counts = float(one.total[COUNT]), float(other.total[COUNT])
    if not all(sums + more for sums, more in zip(counts, people, strict=True)):
        return None
    design = _design(how_many(int(sum(counts) + sum(people)), bets), bets, skews)
    first, second, both = design.tilts(bets)
    start = design.stake + _won(first, design.one, one, setting)
    start += _won(second, design.other, other, setting)
    start += _won_by_margins(both, margins, setting)
    groups = [
        (Group(count, np.expm1(tilt), _shift(known)), Group(more, np.expm1(in_margins)))
        for count, tilt, known, more, in_margins in (
            (counts[0], first, one, people[0], both),
            (counts[1], second, other, people[1], -both),
        )
    ]
    there = [tuple(group for group in pair if group.people) for pair in groups]
    return PairBets(_difference(one, other, margins, setting), start, there[0], there[1], setting)


def _won(tilt: Floats, which: Ints, known: Known, setting: Setting) -> Floats:
    """What sums have won for bets with these tilts, less what their noise has cost."""
    total, beside = known
    if not total[COUNT]:
        return np.zeros(tilt.size)
    if beside is None:
        cost = float(total[RELEASES]) * _prices(tilt, setting)
        return np.asarray(tilt * float(total[SUM]) - cost)
    aside = beside.aside[(tilt > 0).astype(np.int64), which]
    return np.asarray(tilt * (float(total[SUM]) + float(beside.lift)) + aside)


def _prices(tilt: Floats, setting: Setting) -> Floats:
    """[bet]: what the noise of one sum of bits costs."""
    sizes, places = np.unique(np.abs(tilt), return_inverse=True)
    each = [noise_price(size, setting.epsilon, setting.sigma) for size in sizes.tolist()]
    return np.asarray(np.array(each)[places])


def _won_by_margins(tilt: Floats, margins: Sequence[Margin], setting: Setting) -> Floats:
    """The same of one number for both arms, with one noise."""
    won = np.asarray(tilt * sum(margin.lead for margin in margins))
    if bits := sum(margin.near is None for margin in margins):
        won -= bits * _prices(tilt, setting)
    for margin in margins:
        if margin.near is not None:
            won += _won_by_closeness(np.abs(tilt), margin, setting)
    return won


def _won_by_closeness(size: Floats, margin: Margin, setting: Setting) -> Floats:
    """Of a margin of numbers: closeness, weighed as both arms allow, less what the
    noise of both numbers has cost. Where the centre is not known it is not weighed.
    """
    epsilon, centre, near = setting.epsilon, margin.centre, float(margin.near or 0)
    sizes, places = np.unique(size, return_inverse=True)
    each = []
    for tilt in sizes.tolist():
        weight = 0.0
        if centre is not None:
            weight = min(near_weight(sign * tilt, centre, setting.kind, epsilon) for sign in SIGNS)
        each.append(weight * near - fine_price(tilt, epsilon) - fine_price(weight, epsilon))
    return np.asarray(np.array(each)[places])


def _shift(known: Known) -> float:
    total, beside = known
    return 0.0 if beside is None or not total[COUNT] else float(beside.lift) / float(total[COUNT])


def _difference(one: Known, other: Known, margins: Sequence[Margin], setting: Setting) -> float:
    """Means from sums and margins together, each as heavy as its people."""
    counts = float(one.total[COUNT]), float(other.total[COUNT])
    weight = sum(counts) / 2 if all(counts) else 0.0
    means = [
        float(known.total[SUM]) / max(float(known.total[COUNT]), 1.0) for known in (one, other)
    ]
    total = weight * (means[0] - means[1])
    for margin in margins:
        first, second = margin.people
        total += margin.lead - MIDDLE * (first - second)
        weight += (first + second) / 2
    return total / weight / setting.scale if weight else 0.0
