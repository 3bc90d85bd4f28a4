"""What the releases of bet-se say about the difference between two arms: bets against
each pair of means at once. The docs page "Differences between arms" has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.strategies.betting.bets import noise_price
from discreet.strategies.betting.book import COUNT, RELEASES, SUM
from discreet.strategies.betting.interval import SIGNS, Beside
from discreet.strategies.betting.near import fine_price
from discreet.strategies.betting.settle import ROUNDING, how_many
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.pairs import LEAST, Margin, Pair

STEPS = 32
"""Halvings of a range of means, down to 1e-10: of a minimum, an error of 1e-20 times
the people.
"""
CARE = 1e-6
"""Nats that a minimum found so may be too large by."""
MIDDLE = 0.5
"""By what a margin counts the people that one arm has more."""


class Known(NamedTuple):
    """The sums released of an arm, and what its numbers have beside them."""

    total: Floats
    beside: Beside | None


class Side(NamedTuple):
    """An arm of the pair: a person multiplies a bet by 1 + y rise, y the mean that was
    sent.
    """

    people: float
    rise: Floats
    """[bet]"""
    shift: float
    """By how much what was sent lies above the usual scale."""


@dataclass(frozen=True, eq=False)
class PairBets(Pair):
    """Bets that "the means are x and y" is wrong; their log money is convex in both."""

    start: Floats
    """[bet]: its stake, what it has won, and what noise has cost it."""
    one: Side
    other: Side
    setting: Setting

    def interval(self, alpha: float) -> tuple[float, float]:
        """The differences against which, whatever the level, nobody has won 1/alpha."""
        target = math.log(1 / alpha) + ROUNDING * (self.one.people + self.other.people) + CARE
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
        care = ROUNDING * (self.one.people + self.other.people) + CARE
        return max(math.exp(min(0.0, care - self.least_doubt(0.0)[0])), LEAST)

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
        slopes = []
        for mean, side in ((x, self.one), (y, self.other)):
            grown = 1 + (mean + side.shift) * side.rise
            log -= side.people * np.log(grown)
            slopes.append(-side.people * side.rise / grown)
        top = float(log.max())
        share = np.exp(log - top)
        money = float(share.sum())
        first, second = (float(share @ slope) / money for slope in slopes)
        return top + math.log(money), first, second


def pair_bets(
    one: Known, other: Known, margins: Sequence[Margin], bets: Bets, setting: Setting
) -> PairBets | None:
    """The bets on two arms, from the sums released of each and the margins between
    them; None if nothing was.
    """
    in_sums = float(one.total[COUNT]), float(other.total[COUNT])
    in_margins = [sum(margin.people[side] for margin in margins) for side in (0, 1)]
    people = [sums + more for sums, more in zip(in_sums, in_margins, strict=True)]
    if not all(people):
        return None
    count = how_many(int(sum(people)), bets)
    tilt = np.concatenate([sign * bets.tilt[:count] for sign in SIGNS])
    start = np.concatenate([bets.stake[:count]] * 2) - math.log(2.0)
    for sign, known in ((1.0, one), (-1.0, other)):
        start += _won(sign * tilt, known, count, setting)
    start += _won_by_margins(tilt, margins, setting)
    return PairBets(
        _difference(one, other, margins, setting),
        start,
        Side(people[0], np.expm1(tilt), _shift(one)),
        Side(people[1], np.expm1(-tilt), _shift(other)),
        setting,
    )


def _won(tilt: Floats, known: Known, count: int, setting: Setting) -> Floats:
    """What sums have won for bets with these tilts, less what their noise has cost."""
    total, beside = known
    if not total[COUNT]:
        return np.zeros(tilt.size)
    if beside is None:
        each = [noise_price(abs(t), setting.epsilon, setting.sigma) for t in tilt.tolist()]
        return np.asarray(tilt * float(total[SUM]) - float(total[RELEASES]) * np.array(each))
    below, above = beside.aside[0, :count], beside.aside[1, :count]
    aside = np.concatenate([below, above] if tilt[-1] > 0 else [above, below])
    return np.asarray(tilt * (float(total[SUM]) + float(beside.lift)) + aside)


def _won_by_margins(tilt: Floats, margins: Sequence[Margin], setting: Setting) -> Floats:
    """The same of one number for both arms, with one noise. Closeness that was released
    beside it is left out, which makes intervals longer, never shorter.
    """
    fine = sum(margin.fine for margin in margins)
    size, epsilon = np.abs(tilt).tolist(), setting.epsilon
    cost = np.zeros(tilt.size)
    if fine:
        cost += fine * np.array([fine_price(t, epsilon) for t in size])
    if bits := len(margins) - fine:
        cost += bits * np.array([noise_price(t, epsilon, setting.sigma) for t in size])
    return np.asarray(tilt * sum(margin.lead for margin in margins) - cost)


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
