"""Intervals for means of outcomes that are numbers: valid at all times for any law,
narrower the closer outcomes are, and red if closeness weighs too much.

False alarms below 1e-6 each; fixed seeds.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from discreet import bet_se
from discreet._types import Floats, Ints
from discreet.strategies.betting import inference as room
from discreet.strategies.betting.bets import (
    Bets,
    BettingRules,
    BettingSetting,
    choose_closeness_weight,
    make_betting_rules,
    make_bump,
    measure_closeness,
)
from discreet.strategies.betting.book import CLOSENESS, COUNT, SUM, Book, Round, new_book
from discreet.strategies.betting.inference import (
    ClosenessTotals,
    add_closeness,
    compute_interval,
    make_mean_test,
    new_closeness_totals,
)
from discreet.strategies.betting.rounds import book_releases
from discreet.strategies.units import LEVELS

RUNS, ALPHA = 200, 0.1
CENTRES = [0.5, 0.25, 0.4375, 0.40625, 0.75, 0.5, 0.421875, 1 / 64]
"""Of one round after the other, good ones and bad ones."""
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
LAWS: dict[str, tuple[float, Draw]] = {
    "beta": (0.5, lambda rng, shape: rng.beta(50, 50, shape)),
    "bits": (0.3, lambda rng, shape: np.where(rng.random(shape) < 0.3, 1.0, 0.0)),
    "rare ones": (0.412, lambda rng, shape: np.where(rng.random(shape) < 0.02, 1.0, 0.4)),
    "constant": (0.5, lambda rng, shape: np.full(shape, 0.5)),
}
"""Each with its mean."""
TRUSTS: dict[str, dict[str, Any]] = {
    "global 1": {"epsilon": 1.0},
    "global 5": {"epsilon": 5.0},
    "none": {"trust": "none"},
    "local 3": {"epsilon": 3.0, "trust": "local"},
}


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bets on closeness are made anew, so that planted mistakes are in them."""
    monkeypatch.setattr(room, "_weigh_closeness", room._weigh_closeness.__wrapped__)


class TellResult(NamedTuple):
    """What was released about `RUNS` arms of the same law."""

    book: Book
    beside: ClosenessTotals


def nothing(bets: Bets) -> TellResult:
    return TellResult(new_book(RUNS, bets.tilt.size), new_closeness_totals(RUNS, bets))


def rules(trust: str, outcomes: str = "numbers") -> BettingRules:
    """Of two arms, whatever their number below: intervals do not ask."""
    return make_betting_rules(bet_se(ALPHA, outcomes=outcomes, **TRUSTS[trust]), 2)


def fine_round(centre: float, fine: bool = True) -> Round:
    return Round(1, 0, 1, 0, 1, 2, 1, 1, centre, False, False, fine, 0, 0, -1)


def in_units(rng: np.random.Generator, rewards: Floats, grid: int) -> Ints:
    """Rounded at random, without bias."""
    exact = rewards * grid
    return np.floor(exact).astype(int) + (rng.random(rewards.shape) < exact % 1)


def sent(
    rng: np.random.Generator, rewards: Floats, now: Round, setting: BettingSetting
) -> tuple[Ints, Ints]:
    """The sums of rows of rewards, and how close they are, in units."""
    if setting.kind != LEVELS:
        units = in_units(rng, rewards, setting.grid if now.fine else 1)
        near = np.zeros_like(units) if not now.fine else close(units, now, setting)
        return units.sum(axis=1), near.sum(axis=1)
    z = now.centre
    share = np.where(rewards < z, rewards / z, (rewards - z) / (1 - z))
    level = (rewards >= z) * 1 + (rng.random(rewards.shape) < share)
    slips = rng.random(rewards.shape) / setting.level_error
    level = np.where(slips < 2, level + 1 + np.floor(slips).astype(int), level) % 3
    units = np.array([0, round(z * setting.grid), setting.grid])[level]
    return units.sum(axis=1), (level == 1).sum(axis=1) * setting.grid


def close(units: Ints, now: Round, setting: BettingSetting) -> Ints:
    """`closeness` of each."""
    bump, values = make_bump(now.centre, setting.grid), np.unique(units)
    table = np.array([measure_closeness(int(one), bump) for one in values])
    return table[np.searchsorted(values, units)]


def noise(rng: np.random.Generator, grid: int, setting: BettingSetting) -> Ints | int:
    if setting.epsilon == math.inf:
        return 0
    p = -math.expm1(-setting.epsilon / grid)
    found: Ints = rng.geometric(p, RUNS) - rng.geometric(p, RUNS)
    return found


def play(
    rng: np.random.Generator, rewards: Floats, now: Round, trust: BettingRules, told: TellResult
) -> None:
    """A release about each arm."""
    (bets, setting), (book, beside), size = trust, told, rewards.shape[1]
    grid = setting.grid if now.fine else 1
    total, near = sent(rng, rewards, now, setting)
    book.fresh[:, SUM] = (total + noise(rng, grid, setting)) / grid
    book.fresh[:, CLOSENESS] = (near + noise(rng, grid, setting)) / grid if now.fine else 0.0
    book.fresh[:, COUNT] = size
    add_closeness(now, bets, setting, book, beside)
    book_releases(now, setting, book)


def missed(trust: str, law: str, sizes: list[int]) -> int:
    """Of so many arms, how many have an interval that ever misses the mean."""
    (mean, draw), (bets, setting) = LAWS[law], rules(trust)
    rng, told = np.random.default_rng(5), nothing(bets)
    ever, sent_mean = np.zeros(RUNS, bool), 0.5 + setting.scale * (mean - 0.5)
    for k, size in enumerate(sizes):
        now = fine_round(CENTRES[k % len(CENTRES)], fine=setting.kind == LEVELS or k % 5 < 4)
        play(rng, draw(rng, (RUNS, size)), now, BettingRules(bets, setting), told)
        for arm in range(RUNS):
            about = told.book.total[arm], bets, setting.epsilon, False
            found = make_mean_test(*about, told.beside.select(arm))(sent_mean)[0]
            ever[arm] |= found >= -math.log(ALPHA)
    return int(ever.sum())


def alarm(found: int) -> bool:
    return bool(binom.sf(found - 1, RUNS, ALPHA) < 1e-6)


ROUNDS = [10, 20, 40, 80, 160, 320, 640]
SHORT = [1] * 40
"""Where noise is most of what is released."""


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("trust", TRUSTS)
def test_intervals_cover_at_all_times(trust: str, law: str) -> None:
    assert not alarm(missed(trust, law, ROUNDS))


def test_intervals_cover_under_much_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """And do not if the noise of closeness and sums is not paid for."""
    assert not alarm(missed("global 1", "beta", SHORT))
    monkeypatch.setattr(room, "price_fine_noise", lambda slope, epsilon: 0.0)
    assert alarm(missed("global 1", "beta", SHORT))


@pytest.mark.parametrize("trust", TRUSTS)
def test_closeness_that_weighs_too_much_is_caught(
    trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By half more than it may, for outcomes near the centres: of levels, for outcomes
    at them.
    """

    def heavier(tilt: float, centre: float, kind: int, epsilon: float) -> float:
        return min(1.5 * choose_closeness_weight(tilt, centre, kind, epsilon), 0.95 * epsilon)

    monkeypatch.setattr(room, "choose_closeness_weight", heavier)
    monkeypatch.setattr(f"{__name__}.CENTRES", [0.5])
    assert alarm(missed(trust, "constant", [*ROUNDS, 1280]))


def after(trust: str, law: str, outcomes: str, size: int = 1000) -> TellResult:
    """One release about each arm, at the centre 1/2."""
    found, rng = rules(trust, outcomes), np.random.default_rng(3)
    told, now = nothing(found.bets), fine_round(0.5, fine=outcomes == "numbers")
    play(rng, LAWS[law][1](rng, (RUNS, size)), now, found, told)
    return told


def width(trust: str, law: str, outcomes: str) -> float:
    """On average over some of the arms."""
    (bets, setting), (book, beside) = rules(trust, outcomes), after(trust, law, outcomes)
    widths = []
    for arm in range(8):
        mine = beside.select(arm) if outcomes == "numbers" else None
        widths.append(np.ptp(compute_interval(book.total[arm], ALPHA, bets, setting, beside=mine)))
    return float(np.mean(widths))


@pytest.mark.parametrize(
    ("trust", "most"), [("none", 0.25), ("global 5", 0.25), ("global 1", 0.25), ("local 3", 0.5)]
)
def test_close_outcomes_have_narrow_intervals(trust: str, most: float) -> None:
    """Of a thousand outcomes with a standard deviation of 0.05 about a fifth as long as
    for bits of them (levels: 0.43); of bits hardly longer.
    """
    assert width(trust, "beta", "numbers") < most * width(trust, "beta", "yes-no")
    assert width(trust, "bits", "numbers") < 1.05 * width(trust, "bits", "yes-no")


@pytest.mark.parametrize("trust", TRUSTS)
def test_an_interval_is_what_nobody_doubts(trust: str) -> None:
    """Against a scan in steps of 1e-3; doubt is convex, with the slope that it says."""
    (bets, setting), (book, beside) = rules(trust), after(trust, "rare ones", "numbers", 60)
    for arm in range(3):
        total, mine = book.total[arm], beside.select(arm)
        places = np.arange(0, 1.0005, 1e-3)
        scaled = 0.5 + setting.scale * (places - 0.5)
        doubt_at = make_mean_test(total, bets, setting.epsilon, False, mine)
        both = np.array([doubt_at(x) for x in scaled])
        doubt, slope = both.T
        assert (np.diff(doubt, 2) > -1e-9).all()
        rises = np.diff(doubt) / np.diff(scaled)
        assert (slope[:-1] - 1e-6 <= rises).all()
        assert (rises <= slope[1:] + 1e-6).all()
        kept = places[doubt < -math.log(0.05)]
        found = compute_interval(total, 0.05, bets, setting, beside=mine)
        assert found == pytest.approx((kept.min(), kept.max()), abs=1.1e-3)


def test_a_difference_says_nothing_about_one_mean() -> None:
    bets, setting = rules("global 1")
    book, beside = new_book(2, bets.tilt.size), new_closeness_totals(2, bets)
    book.fresh[:] = 5.0
    add_closeness(fine_round(0.5)._replace(difference=True), bets, setting, book, beside)
    assert not beside.fixed.any()
    assert not beside.shift.any()
    add_closeness(fine_round(0.5), bets, setting, book, beside)
    assert beside.fixed.all()
