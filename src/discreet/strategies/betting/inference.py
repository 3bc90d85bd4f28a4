"""Inference from the releases of bet-se: p-values, intervals for means, and
bets on the difference between two arms.

All are functions of what was released, valid at any time. The docs pages "Betting
elimination" and "Differences between arms" have the proofs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.strategies.betting.bets import (
    Bets,
    BettingSetting,
    choose_closeness_weight,
    price_fine_noise,
    price_noise,
)
from discreet.strategies.betting.book import (
    ASSIGNED,
    CLOSENESS,
    COUNT,
    RELEASES,
    SUM,
    Book,
    Round,
    compute_sent_shift,
)
from discreet.strategies.betting.rounds import ROUNDING_NATS
from discreet.strategies.run import MIN_P_VALUE, Margin, Pair
from discreet.validation import quote

SIGNS = (-1.0, 1.0)
"""Signs of the two sides on which a mean is bet on: below and above."""
HALVINGS = 32
"""Halvings of a range of means, down to 1e-10: of a minimum, an error of 1e-20 times
the participants.
"""
TILT_SKEWS = (0, 1, 2, 3, 4)
"""Octaves by which the tilts of the two arms differ: up to 16 times as many
participants on one as on the other are allowed for.
"""
TILT_SKEWS_OF_TWO = (0,)
"""Octaves in a trial of two arms, which have equal odds."""
MINIMUM_NATS = 1e-6
"""Nats that a minimum found so may be too large by."""
DIFFERENCE_CENTRE = 0.5
"""Amount that a difference counts for each participant that one arm has more."""


# --- evidence against arms ------------------------------------------------------------


def compute_log_p_value(arm: int, book: Book) -> float:
    """Return the log of the smallest delta at which the arm would be eliminated now
    (keep the running minimum).
    """
    return float(min(0.0, ROUNDING_NATS * book.total[arm, ASSIGNED] - book.log_wealth[arm]))


def p_values(book: Book) -> list[float]:
    """Return the p-value of every arm in the book, as numbers that a float can hold."""
    return [
        max(math.exp(compute_log_p_value(arm, book)), MIN_P_VALUE)
        for arm in range(book.eliminated.size)
    ]


def compute_evidence_shares(book: Book, setting: BettingSetting) -> Floats:
    """Return for each arm the log of the wealth against it, as a share of what
    eliminates it; 1 if it is eliminated.
    """
    below = np.clip(book.log_wealth / setting.target, 0.0, 0.999)
    return np.where(book.eliminated, 1.0, below)


# --- one mean -------------------------------------------------------------------------


class ClosenessTotals(NamedTuple):
    """Totals that intervals need beside the book if outcomes are numbers."""

    fixed: Floats
    """[arm, side, tilt]: log wealth that does not depend on the mean: what closeness
    has won, less what all noise has cost.
    """
    shift: Floats
    """[arm]: by how much what was sent lies above the usual scale, over all
    participants.
    """

    def select(self, arm: int) -> "ClosenessTotals":
        """Return what belongs to one arm."""
        return ClosenessTotals(self.fixed[arm], self.shift[arm])


def new_closeness_totals(arms: int, bets: Bets) -> ClosenessTotals:
    """Make it for a book in which nothing is released yet."""
    return ClosenessTotals(np.zeros((arms, 2, bets.tilt.size)), np.zeros(arms))


def add_closeness(
    current: Round, bets: Bets, setting: BettingSetting, book: Book, beside: ClosenessTotals
) -> None:
    """Book the releases of a round, in `book.fresh`, before they are settled; a
    difference says nothing about one mean.
    """
    if current.difference:
        return
    weight, cost = _weigh_closeness(
        tuple(bets.tilt.tolist()),
        bool(current.fine),
        float(current.centre),
        setting.kind,
        setting.epsilon,
    )
    for arm in np.flatnonzero(book.active):
        beside.fixed[arm] += weight * book.fresh[arm, CLOSENESS] - cost
        beside.shift[arm] += compute_sent_shift(current, setting) * book.fresh[arm, COUNT]


@lru_cache(maxsize=1024)
def _weigh_closeness(
    tilts: tuple[float, ...], fine: bool, centre: float, kind: int, epsilon: float
) -> tuple[Floats, Floats]:
    """Return [side, tilt]: how bets weigh the closeness of a round, and what its noise
    costs them. Kept: whoever replays a record asks for the same rounds again.
    """
    weight, cost = np.zeros((2, len(tilts))), np.zeros((2, len(tilts)))
    for side, sign in enumerate(SIGNS):
        for j, tilt in enumerate(tilts):
            if fine:
                near = choose_closeness_weight(sign * tilt, centre, kind, epsilon)
                weight[side, j] = near
                cost[side, j] = price_fine_noise(tilt, epsilon)
                cost[side, j] += price_fine_noise(near, epsilon)
            else:
                cost[side, j] = price_noise(tilt, epsilon)
    return weight, cost


def make_mean_test(
    total: Floats,
    bets: Bets,
    epsilon: float,
    drift: bool,
    beside: ClosenessTotals | None = None,
    sigma: float = 0.0,
) -> Callable[[float], tuple[float, float]]:
    """Return the function (log of the wealth against "the mean is x", slope) of x: half
    bets on below, half on above. Convex in x; what does not depend on x is computed
    once.

    With drift, x is the average over the arm's participants of the mean that each had.
    """
    participants, shifts = float(total[COUNT]), 0.0 if beside is None else float(beside.shift)
    sums, shift = float(total[SUM]) + shifts, 0.0 if beside is None else shifts / participants
    made = []
    for j in range(bets.tilt.size):
        for side, sign in enumerate(SIGNS):
            tilt = sign * float(bets.tilt[j])
            start = float(bets.stake[j]) - math.log(2.0) + tilt * sums
            if beside is None:
                rest = -float(total[RELEASES]) * price_noise(abs(tilt), epsilon, sigma)
            else:
                rest = float(beside.fixed[side, j])
            made.append((tilt, math.expm1(tilt), start, rest))

    def doubt(x: float) -> tuple[float, float]:
        top, wealth, pull = -math.inf, 0.0, 0.0
        y = x if beside is None else x + shift
        for tilt, rise, start, rest in made:
            grown = tilt * y + tilt * tilt / 8 if drift else math.log1p(y * rise)
            slope = tilt if drift else rise / (1 + y * rise)
            log = start - participants * grown + rest
            if log > top:
                shrink = math.exp(top - log)
                wealth, pull, top = wealth * shrink, pull * shrink, log
            share = math.exp(log - top)
            wealth += share
            pull -= participants * slope * share
        return top + math.log(wealth), pull / wealth

    return doubt


def compute_interval(
    total: Floats,
    alpha: float,
    bets: Bets,
    setting: BettingSetting,
    drift: bool = False,
    beside: ClosenessTotals | None = None,
) -> tuple[float, float]:
    """Return an anytime-valid confidence interval (level 1 - alpha) for an arm's mean,
    from every sum released about it; with `drift` for the average of a mean that may
    move. Of outcomes that are numbers `beside` has the rest: the closer they are, the
    narrower.

    The values of x that nobody has won 1/alpha against: an interval because the wealth
    is convex in x. Bisection rounds outwards. Behind randomised response it is mapped
    back to the scale of rewards.
    """
    if not 0 < alpha < 1:
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {quote(alpha)}")
    target = -math.log(alpha) + ROUNDING_NATS * float(total[COUNT])
    doubt = make_mean_test(total, bets, setting.epsilon, drift, beside, setting.sigma)
    low, high = setting.low, setting.high
    for _ in range(60):  # the minimum of a convex function, by its slope
        x = (low + high) / 2
        if doubt(x)[1] > 0:
            high = x
        else:
            low = x
    ends = [low, high]  # what is left if no value survives: only noise beyond alpha does this
    if doubt(low)[0] < target:
        for side, end in enumerate((setting.low, setting.high)):
            inside, ends[side] = low, end
            if doubt(end)[0] >= target:
                for _ in range(50):
                    x = (inside + ends[side]) / 2
                    if doubt(x)[0] >= target:
                        ends[side] = x
                    else:
                        inside = x
    low = 0.0 if ends[0] <= setting.low else 0.5 + (ends[0] - 0.5) / setting.scale
    high = 1.0 if ends[1] >= setting.high else 0.5 + (ends[1] - 0.5) / setting.scale
    return max(low, 0.0), min(high, 1.0)


# --- the difference between two means -------------------------------------------------


class ArmReleases(NamedTuple):
    """The sums released of an arm, and what its numbers have beside them."""

    total: Floats
    beside: ClosenessTotals | None


class ParticipantGroup(NamedTuple):
    """Participants of an arm: each multiplies a bet by 1 + y rise, y the mean sent."""

    participants: float
    rise: Floats
    """[bet]"""
    shift: float = 0.0
    """Distance of what was sent above the usual scale."""


@dataclass(frozen=True, eq=False)
class PairBets(Pair):
    """Bets that "the means are x and y" is wrong; log wealth is convex in both."""

    start: Floats
    """[bet]: its stake, what it has won, and what noise has cost it."""
    one: tuple[ParticipantGroup, ...]
    other: tuple[ParticipantGroup, ...]
    setting: BettingSetting

    @property
    def care(self) -> float:
        """Return the nats that floating point may have invented."""
        participants = sum(group.participants for group in (*self.one, *self.other))
        return ROUNDING_NATS * participants + MINIMUM_NATS

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the differences against which, whatever the level, nobody has won
        1/alpha.
        """
        target = math.log(1 / alpha) + self.care
        widest = self.setting.high - self.setting.low
        inside = min(max(self.difference * self.setting.scale, -widest), widest)
        if self.test_difference(inside)[0] >= target:
            inside = self._find_best_supported(widest)
            if self.test_difference(inside)[0] >= target:  # only noise beyond alpha does this
                return self._rescale(inside, inside)
        return self._rescale(*(self._find_end(inside, end, target) for end in (-widest, widest)))

    def _find_best_supported(self, widest: float) -> float:
        """Return the least doubted difference, by the slope."""
        low, high = -widest, widest
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if self.test_difference(middle)[1] > 0:
                high = middle
            else:
                low = middle
        return (low + high) / 2

    def _find_end(self, inside: float, end: float, target: float) -> float:
        if self.test_difference(end)[0] < target:
            return end
        for _ in range(HALVINGS):
            middle = (inside + end) / 2
            if self.test_difference(middle)[0] >= target:
                end = middle
            else:
                inside = middle
        return end

    def _rescale(self, low: float, high: float) -> tuple[float, float]:
        """Return them on the scale of rewards."""
        scale = self.setting.scale
        return max(low / scale, -1.0), min(high / scale, 1.0)

    def p_value(self) -> float:
        """Return one over the wealth against "no difference", at the level that it
        doubts least.
        """
        return max(math.exp(min(0.0, self.care - self.test_difference(0.0)[0])), MIN_P_VALUE)

    def test_difference(self, difference: float) -> tuple[float, float]:
        """Return (log wealth against this difference at the least doubted level, slope
        in the difference there).
        """
        low = max(self.setting.low, self.setting.low - difference)
        high = min(self.setting.high, self.setting.high - difference)
        ends = low, high
        for _ in range(HALVINGS):
            level = (low + high) / 2
            _, first, second = self._test_means(level + difference, level)
            if first + second > 0:
                high = level
            else:
                low = level
        level = low if low == ends[0] else high if high == ends[1] else (low + high) / 2
        log, first, second = self._test_means(level + difference, level)
        # Where the level cannot go on, its slope is not 0: the difference moves the
        # mean that is still free.
        if first + second > 0:  # the level is as low as can be
            slope = -second if difference < 0 else first
        else:
            slope = first if difference < 0 else -second
        return log, slope

    def _test_means(self, x: float, y: float) -> tuple[float, float, float]:
        """Return (log wealth against these means, its slopes in them)."""
        log = self.start.copy()
        slopes = np.zeros((2, log.size))
        for side, (mean, groups) in enumerate(((x, self.one), (y, self.other))):
            for group in groups:
                grown = 1 + (mean + group.shift) * group.rise
                log -= group.participants * np.log(grown)
                slopes[side] -= group.participants * group.rise / grown
        top = float(log.max())
        share = np.exp(log - top)
        wealth = float(share.sum())
        first, second = (slopes @ share / wealth).tolist()
        return top + math.log(wealth), first, second


class PairDesign(NamedTuple):
    """The bets: a tilt for each arm, the same way up and down. Their ratio allows for
    arms with unequal numbers of participants.
    """

    one: Ints
    other: Ints
    """[bet] which tilt, of those of the mixture."""
    sign: Floats
    """[bet] of the one's tilt; the other's has the other sign."""
    stake: Floats
    """[bet] the log of its share."""

    def tilts(self, bets: Bets) -> tuple[Floats, Floats, Floats]:
        """Return [bet] of the one, of the other, and of what is released for both."""
        one, other = bets.tilt[self.one], bets.tilt[self.other]
        return self.sign * one, -self.sign * other, self.sign * np.minimum(one, other)


def _make_design(bets: Bets, skews: Sequence[int]) -> PairDesign:
    """Make the bets: every tilt for one arm, and those so many places below for the
    other.
    """
    shares = [1 / (1 + step) for step in range(len(skews))]
    whole = 2 * sum(shares) - shares[0]
    one, other, stake = [], [], []
    for skew, share in zip(skews, shares, strict=True):
        first = np.arange(max(bets.tilt.size - skew, 0))
        for pair in {(0, skew), (skew, 0)}:
            one.append(first + pair[0])
            other.append(first + pair[1])
            stake.append(bets.stake[first] + math.log(share / whole / 2))
    columns = np.concatenate(one), np.concatenate(other)
    sign = np.repeat(SIGNS, columns[0].size)
    both = [np.concatenate([column] * 2) for column in (*columns, np.concatenate(stake))]
    return PairDesign(both[0], both[1], sign, both[2])


def make_pair_bets(
    one: ArmReleases,
    other: ArmReleases,
    margins: Sequence[Margin],
    bets: Bets,
    setting: BettingSetting,
    skews: Sequence[int] = TILT_SKEWS,
) -> PairBets | None:
    """Make the bets on two arms, from the sums released of each and the margins between
    them; None if nothing was. The `skews` are fixed before the first participant.
    """
    participants = [sum(margin.people[side] for margin in margins) for side in (0, 1)]
    counts = float(one.total[COUNT]), float(other.total[COUNT])
    if not all(sums + more for sums, more in zip(counts, participants, strict=True)):
        return None
    design = _make_design(bets, skews)
    first, second, both = design.tilts(bets)
    start = design.stake + _sum_winnings(first, design.one, one, setting)
    start += _sum_winnings(second, design.other, other, setting)
    start += _difference_winnings(both, margins, setting)
    groups = [
        (
            ParticipantGroup(count, np.expm1(tilt), _shift(known)),
            ParticipantGroup(more, np.expm1(in_margins)),
        )
        for count, tilt, known, more, in_margins in (
            (counts[0], first, one, participants[0], both),
            (counts[1], second, other, participants[1], -both),
        )
    ]
    there = [tuple(group for group in pair if group.participants) for pair in groups]
    return PairBets(
        _estimate_difference(one, other, margins, setting), start, there[0], there[1], setting
    )


def _sum_winnings(tilt: Floats, which: Ints, known: ArmReleases, setting: BettingSetting) -> Floats:
    """Return what sums have won for bets with these tilts, less what their noise has
    cost.
    """
    total, beside = known
    if not total[COUNT]:
        return np.zeros(tilt.size)
    if beside is None:
        cost = float(total[RELEASES]) * _price_sums(tilt, setting)
        return np.asarray(tilt * float(total[SUM]) - cost)
    fixed = beside.fixed[(tilt > 0).astype(np.int64), which]
    return np.asarray(tilt * (float(total[SUM]) + float(beside.shift)) + fixed)


def _price_sums(tilt: Floats, setting: BettingSetting) -> Floats:
    """Return [bet]: what the noise of one sum of bits costs."""
    sizes, places = np.unique(np.abs(tilt), return_inverse=True)
    each = [price_noise(size, setting.epsilon, setting.sigma) for size in sizes.tolist()]
    return np.asarray(np.array(each)[places])


def _difference_winnings(
    tilt: Floats, margins: Sequence[Margin], setting: BettingSetting
) -> Floats:
    """Return what differences have won, with one noise each."""
    won = np.asarray(tilt * sum(margin.lead for margin in margins))
    if bits := sum(margin.near is None for margin in margins):
        won -= bits * _price_sums(tilt, setting)
    for margin in margins:
        if margin.near is not None:
            won += _closeness_winnings(np.abs(tilt), margin, setting)
    return won


def _closeness_winnings(size: Floats, margin: Margin, setting: BettingSetting) -> Floats:
    """Return what the closeness of a difference has won, weighed as both arms allow,
    less what the noise of both numbers has cost. Where the centre is not known it is
    not weighed.
    """
    epsilon, centre, near = setting.epsilon, margin.centre, float(margin.near or 0)
    sizes, places = np.unique(size, return_inverse=True)
    each = []
    for tilt in sizes.tolist():
        weight = 0.0
        if centre is not None:
            weight = min(
                choose_closeness_weight(sign * tilt, centre, setting.kind, epsilon)
                for sign in SIGNS
            )
        each.append(
            weight * near - price_fine_noise(tilt, epsilon) - price_fine_noise(weight, epsilon)
        )
    return np.asarray(np.array(each)[places])


def _shift(known: ArmReleases) -> float:
    total, beside = known
    return 0.0 if beside is None or not total[COUNT] else float(beside.shift) / float(total[COUNT])


def _estimate_difference(
    one: ArmReleases, other: ArmReleases, margins: Sequence[Margin], setting: BettingSetting
) -> float:
    """Return the difference of means from sums and differences together, each as heavy
    as its participants.
    """
    counts = float(one.total[COUNT]), float(other.total[COUNT])
    weight = sum(counts) / 2 if all(counts) else 0.0
    means = [
        float(known.total[SUM]) / max(float(known.total[COUNT]), 1.0) for known in (one, other)
    ]
    total = weight * (means[0] - means[1])
    for margin in margins:
        first, second = margin.people
        total += margin.lead - DIFFERENCE_CENTRE * (first - second)
        weight += (first + second) / 2
    return total / weight / setting.scale if weight else 0.0
