"""What the releases of bet-se say beside the winner: p-values, and intervals for means.

All are functions of what was released, valid at any time. The docs page "Betting
elimination" has the proofs.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.strategies.betting.bets import noise_price
from discreet.strategies.betting.book import COUNT, NEAR, PULLS, RELEASES, SUM, Book, Round
from discreet.strategies.betting.near import fine_price, near_weight
from discreet.strategies.betting.settle import ROUNDING, how_many, sent_shift
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.pairs import LEAST
from discreet.validate import quoted

SIGNS = (-1.0, 1.0)
"""Of the two sides on which a mean is bet on: below and above."""


def log_p_value(arm: int, book: Book) -> float:
    """The log of the smallest delta at which the arm would be out now (keep the running
    minimum).
    """
    return float(min(0.0, ROUNDING * book.total[arm, PULLS] - book.money[arm]))


def p_values(book: Book) -> list[float]:
    """The same of every arm in the book, as numbers that a float can hold."""
    return [max(math.exp(log_p_value(arm, book)), LEAST) for arm in range(book.out.size)]


def shares(book: Book, setting: Setting) -> Floats:
    """[arm]: the log of the money against it, as a share of what puts it out; 1 if it
    is.
    """
    below = np.clip(book.money / setting.target, 0.0, 0.999)
    return np.where(book.out, 1.0, below)


class Beside(NamedTuple):
    """What intervals need beside the book where outcomes are numbers."""

    aside: Floats
    """[arm, side, tilt]: log money that does not depend on the mean: what closeness has
    won, less what all noise has cost.
    """
    lift: Floats
    """[arm]: by how much what was sent lies above the usual scale, over all people."""

    def of(self, arm: int) -> "Beside":
        """What belongs to one arm."""
        return Beside(self.aside[arm], self.lift[arm])


def new_beside(arms: int, bets: Bets) -> Beside:
    """Nothing released yet."""
    return Beside(np.zeros((arms, 2, bets.tilt.size)), np.zeros(arms))


def set_aside(now: Round, bets: Bets, setting: Setting, book: Book, beside: Beside) -> None:
    """Book the releases of a round, in `book.fresh`, before they are settled; a margin
    says nothing about one mean.
    """
    if now.margin:
        return
    weight, cost = _closeness_bets(
        tuple(bets.tilt.tolist()), bool(now.fine), float(now.centre), setting.kind, setting.epsilon
    )
    for arm in np.flatnonzero(book.active):
        beside.aside[arm] += weight * book.fresh[arm, NEAR] - cost
        beside.lift[arm] += sent_shift(now, setting) * book.fresh[arm, COUNT]


@lru_cache(maxsize=1024)
def _closeness_bets(
    tilts: tuple[float, ...], fine: bool, centre: float, kind: int, epsilon: float
) -> tuple[Floats, Floats]:
    """[side, tilt]: how bets weigh the closeness of a round, and what its noise costs
    them. Kept: whoever replays a record asks for the same rounds again.
    """
    weight, cost = np.zeros((2, len(tilts))), np.zeros((2, len(tilts)))
    for side, sign in enumerate(SIGNS):
        for j, tilt in enumerate(tilts):
            if fine:
                near = near_weight(sign * tilt, centre, kind, epsilon)
                weight[side, j] = near
                cost[side, j] = fine_price(tilt, epsilon)
                cost[side, j] += fine_price(near, epsilon)
            else:
                cost[side, j] = noise_price(tilt, epsilon)
    return weight, cost


def log_doubt(
    x: float,
    total: Floats,
    count: int,
    bets: Bets,
    epsilon: float,
    drift: bool,
    beside: Beside | None = None,
    sigma: float = 0.0,
) -> tuple[float, float]:
    """(log of the money against "the mean is x", slope): half bets on below, half on
    above. Convex in x.

    With drift, x is the average over the arm's people of the mean that each had.
    """
    return _doubts(total, count, bets, epsilon, drift, beside, sigma)(x)


def _doubts(
    total: Floats,
    count: int,
    bets: Bets,
    epsilon: float,
    drift: bool,
    beside: Beside | None,
    sigma: float,
) -> Callable[[float], tuple[float, float]]:
    """`log_doubt` of these releases at any x: what does not depend on x is computed
    once.
    """
    people, lift = float(total[COUNT]), 0.0 if beside is None else float(beside.lift)
    sums, shift = float(total[SUM]) + lift, 0.0 if beside is None else lift / people
    made = []
    for j in range(count):
        for side, sign in enumerate(SIGNS):
            tilt = sign * float(bets.tilt[j])
            start = float(bets.stake[j]) - math.log(2.0) + tilt * sums
            if beside is None:
                rest = -float(total[RELEASES]) * noise_price(abs(tilt), epsilon, sigma)
            else:
                rest = float(beside.aside[side, j])
            made.append((tilt, math.expm1(tilt), start, rest))

    def doubt(x: float) -> tuple[float, float]:
        top, money, pull = -math.inf, 0.0, 0.0
        y = x if beside is None else x + shift
        for tilt, rise, start, rest in made:
            grown = tilt * y + tilt * tilt / 8 if drift else math.log1p(y * rise)
            slope = tilt if drift else rise / (1 + y * rise)
            log = start - people * grown + rest
            if log > top:
                shrink = math.exp(top - log)
                money, pull, top = money * shrink, pull * shrink, log
            share = math.exp(log - top)
            money += share
            pull -= people * slope * share
        return top + math.log(money), pull / money

    return doubt


def interval(
    total: Floats,
    alpha: float,
    bets: Bets,
    setting: Setting,
    drift: bool = False,
    beside: Beside | None = None,
) -> tuple[float, float]:
    """Anytime-valid confidence interval (level 1 - alpha) for an arm's mean, from every
    sum released about it; with `drift` for the average of a mean that may move. Of
    outcomes that are numbers `beside` has the rest: the closer they are, the narrower.

    The values of x that nobody has won 1/alpha against: an interval because the money
    is convex in x. Bisection rounds outwards. Behind randomised response it is mapped
    back to the scale of rewards.
    """
    if not 0 < alpha < 1:
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {quoted(alpha)}")
    count = how_many(int(total[COUNT]), bets)
    target = -math.log(alpha) + ROUNDING * float(total[COUNT])

    doubt = _doubts(total, count, bets, setting.epsilon, drift, beside, setting.sigma)
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
