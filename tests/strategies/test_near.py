"""Closeness: the pair (outcome, closeness) moves no further than the outcome alone, the
bump fits under what rounding costs at every tilt, and its noise is paid for. Planted
mistakes turn the same checks red.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy.signal import fftconvolve

from discreet._types import Ints
from discreet.strategies.betting import rounds
from discreet.strategies.betting.bets import (
    Bump,
    choose_closeness_weight,
    compute_bump_height,
    compute_rounding_cost,
    compute_slopes,
    make_bets,
    make_bump,
    make_setting,
    measure_closeness,
    price_fine_noise,
)
from discreet.strategies.betting.book import new_book
from discreet.strategies.betting.rounds import (
    COST,
    OWN,
    OWN_CLOSENESS,
    RIVAL,
    RIVAL_CLOSENESS,
    announce,
    fill_scores,
)
from discreet.strategies.betting.schedule import RoundPlan
from discreet.strategies.units import BUMP, CENTRE_UNITS, FINE_UNITS, LEVELS

CENTRES = [
    i / CENTRE_UNITS for i in range(CENTRE_UNITS // 64, CENTRE_UNITS - CENTRE_UNITS // 64 + 1)
]
"""All that can be announced."""
FEW = [
    1 / 64,
    17 / CENTRE_UNITS,
    0.0625,
    0.125,
    0.25,
    341 / CENTRE_UNITS,
    0.5,
    0.625,
    0.75,
    0.9375,
    63 / 64,
]
SIZES = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.99, 1.0, 1.0001, 1.1, 1.5, 2, 3, 5, 8, 12, 20]
TILTS = [sign * size for size in SIZES for sign in (1, -1)]


# --- privacy: whole numbers -----------------------------------------------------------


def moves(units: Ints, close: Ints) -> int:
    """The farthest that one person can move (sum, closeness), by trying all pairs."""
    apart = np.abs(units[:, None] - units) + np.abs(close[:, None] - close)
    return int(apart.max())


def private(units: Ints, close: Ints, grid: int) -> bool:
    fits = (close >= 0).all() and (close <= np.minimum(units, grid - units)).all()
    return bool(fits) and moves(units, close) <= grid


def table(bump: Bump) -> tuple[Ints, Ints]:
    units = np.arange(bump.grid + 1)
    return units, np.array([measure_closeness(k, bump) for k in units.tolist()])


@pytest.mark.parametrize("grid", [1, 2, 3, 4, 7, 16, 33, 64])
def test_a_person_moves_the_pair_by_one_at_most(grid: int) -> None:
    for centre in CENTRES[::31] + FEW:
        assert private(*table(make_bump(centre, grid)), grid)


@pytest.mark.slow
@pytest.mark.parametrize("grids", [range(i, i + 16) for i in (1, 17, 33, 49)], ids=str)
def test_a_person_moves_the_pair_by_one_at_most_on_every_small_grid(grids: range) -> None:
    for grid in grids:
        for centre in CENTRES:
            assert private(*table(make_bump(centre, grid)), grid)


@pytest.mark.parametrize("places", [10, 16, FINE_UNITS])
def test_a_person_moves_the_pair_by_one_at_most_on_fine_grids(places: int) -> None:
    """At random, at both ends and around the centre, in all pairs."""
    rng, grid = np.random.default_rng(places), 2**places
    for centre in CENTRES[::67] + FEW:
        some = [rng.integers(0, grid + 1, 60), np.arange(12), grid - np.arange(12)]
        units = np.concatenate([*some, np.arange(-6, 7) + int(centre * grid)])
        bump = make_bump(centre, grid)
        assert private(units, np.array([measure_closeness(k, bump) for k in units.tolist()]), grid)


@pytest.mark.parametrize("grid", [16, 64])
def test_privacy_does_not_rest_on_the_height_of_the_bump(grid: int) -> None:
    """A bump that floating point, or a mistake, has made too tall is cut down; without
    the cut the check finds it.
    """
    for centre in FEW:
        bump = make_bump(centre, grid)
        tall = bump._replace(below=3 * bump.below, above=3 * bump.above)
        units, close = table(tall)
        assert private(units, close, grid)
        bare = [
            math.floor(tall.below * compute_rounding_cost(-1, k / grid))
            if k / grid < centre
            else math.floor(tall.above * compute_rounding_cost(1, k / grid))
            for k in range(grid + 1)
        ]
        assert not private(units, np.array(bare), grid)
        assert moves(units, np.array(bare)) > grid
    deep = make_bump(0.5, grid)._replace(below=-1.0, above=-1.0)
    assert private(*table(deep), grid)


def test_the_pair_uses_all_the_room_there_is() -> None:
    """The bump is as tall as its slope at 0 and 1 allows: a hundredth more and a unit
    near an end would have to be cut.
    """
    grid = 2**FINE_UNITS
    for centre in FEW:
        bump = make_bump(centre, grid)
        tall = bump._replace(below=1.01 * bump.below, above=1.01 * bump.above)
        units = (1000, grid - 1000)
        assert all(measure_closeness(k, bump) < min(k, grid - k) for k in units)
        assert any(measure_closeness(k, tall) == min(k, grid - k) for k in units)
        assert measure_closeness(int(centre * grid), bump) == pytest.approx(
            grid * compute_bump_height(centre), abs=2
        )


def test_the_bump_is_highest_at_its_centre_only_near_one_half() -> None:
    """As the docs say: at 1 - 1/(e - 1) = 0.418 for smaller centres, 0.582 for larger."""
    grid, edge = 2**FINE_UNITS, 1 - 1 / (math.e - 1)
    for centre in FEW:
        bump = make_bump(centre, grid)
        values = [measure_closeness(k, bump) for k in range(0, grid + 1, 64)]
        highest = 64 * values.index(max(values)) / grid
        assert highest == pytest.approx(min(max(centre, edge), 1 - edge), abs=0.01)
        height = measure_closeness(round(centre * grid), bump)
        assert (max(values) > 1.01 * height) == (not edge - 0.05 < centre < 1.05 - edge)
    assert max(
        measure_closeness(k, make_bump(0.1, grid)) for k in range(0, grid, 64)
    ) == pytest.approx(2.105 * grid * compute_bump_height(0.1), rel=1e-3)


# --- a bump that fits under every rho -------------------------------------------------


def exact_rho(tilt: float, y: mpmath.mpf) -> mpmath.mpf:
    with mpmath.workdps(60):
        return mpmath.log1p(y * mpmath.expm1(mpmath.mpf(tilt))) - mpmath.mpf(tilt) * y


def excess(tilt: float, centre: float, more: float = 1.0) -> float:
    """By how much B q exceeds rho, as a share of rho, at worst over outcomes in fine
    units; a tiny absolute error is forgiven as the docs say.
    """
    grid, worst = 2**FINE_UNITS, -math.inf
    bump, weight = make_bump(centre, grid), choose_closeness_weight(tilt, centre, BUMP, math.inf)
    middle = int(centre * grid)
    places = [1, 2, 3, 100, 10_000, middle // 2, middle - 1, middle, middle + 1]
    places += [(middle + grid) // 2, grid - 10_000, grid - 100, grid - 2, grid - 1]
    for k in places:
        y = mpmath.mpf(k) / grid
        q = (
            bump.below * compute_rounding_cost(-1, k / grid)
            if k / grid < centre
            else bump.above * compute_rounding_cost(1, k / grid)
        )
        with mpmath.workdps(60):
            exact = exact_rho(tilt, y)
            slack = mpmath.mpf(1e-15 * abs(tilt)) if abs(tilt) < 1e-4 else mpmath.mpf(0)
            high = mpmath.mpf(more) * mpmath.mpf(weight) * mpmath.mpf(max(q, 0.0)) / grid
            assert measure_closeness(k, bump) <= max(q, 0.0)
            worst = max(worst, float((high - slack) / exact) - 1)
    return worst


@pytest.mark.parametrize("centre", FEW)
def test_the_bump_fits_under_what_rounding_costs(centre: float) -> None:
    """Lemma N2, with what is computed in place of what is meant, in sixty digits."""
    assert all(excess(tilt, centre) <= 0 for tilt in TILTS)


@pytest.mark.slow
def test_the_bump_fits_wherever_one_looks() -> None:
    rng = np.random.default_rng(2)
    for _ in range(1500):
        tilt = float(10 ** rng.uniform(-6, 1.3) * rng.choice([-1, 1]))
        assert excess(tilt, float(rng.choice(CENTRES))) <= 0


@pytest.mark.parametrize("centre", FEW)
def test_a_bump_a_hundred_millionth_too_tall_is_found(centre: float) -> None:
    """Up to a tilt of 1 the bump touches rho at the centre."""
    for tilt in TILTS:
        if 1e-3 <= abs(tilt) <= 1:
            assert excess(tilt, centre, more=1 + 1e-8) > 0


@pytest.mark.parametrize("centre", FEW)
def test_steep_tilts_leave_little_room(centre: float) -> None:
    """Beyond a tilt of 1 the bump touches rho at an end, unless its other side is the
    lower one there.
    """
    for size in (1.1, 2.0, 5.0, 20.0):
        assert max(excess(tilt, centre, more=1.001) for tilt in (size, -size)) > 0


def test_weights_of_closeness() -> None:
    """Even in (tilt, centre), from 0, growing, below epsilon; for levels rho itself."""
    for centre in FEW:
        assert choose_closeness_weight(0.0, centre, BUMP, 1.0) == 0
        weights = [choose_closeness_weight(size, centre, BUMP, math.inf) for size in SIZES]
        assert (np.diff(weights) > 0).all()
        for tilt in TILTS:
            found = choose_closeness_weight(tilt, centre, BUMP, math.inf)
            assert found == pytest.approx(
                choose_closeness_weight(-tilt, 1 - centre, BUMP, math.inf), rel=1e-4
            )
            assert choose_closeness_weight(tilt, centre, BUMP, 0.5) == min(found, 0.4)
            assert choose_closeness_weight(tilt, centre, LEVELS, math.inf) == compute_rounding_cost(
                tilt, centre
            )


@pytest.mark.parametrize("odds", [(1, 1), (1, 4), (16, 1)])
@pytest.mark.parametrize("level", [1 / 64, 0.25, 0.5, 1000 / CENTRE_UNITS])
def test_levels_are_bet_on_by_straight_lines(level: float, odds: tuple[int, int]) -> None:
    """Theorem N5: with rho for weight each message multiplies money by 1 - d (M - x0),
    one of the rival by 1 + d' (M - x0).
    """
    ratio = odds[0] / odds[1]
    for tilt in (1e-3, 0.3, 2.5):
        for x in (0.1, level, 0.9):
            score = compute_slopes(tilt, x, ratio)
            for sent in (0.0, level, 1.0):
                near = float(sent == level)
                own = score.own_count - score.own * sent
                own += near * choose_closeness_weight(-score.own, level, LEVELS, math.inf)
                rival = score.rival_count + score.rival * sent
                rival += near * choose_closeness_weight(score.rival, level, LEVELS, math.inf)
                assert math.exp(own) == pytest.approx(1 - score.step * (sent - x), rel=1e-9)
                line = 1 + ratio * score.step * (sent - x)
                assert math.exp(rival) == pytest.approx(line, rel=1e-9)


# --- noise ----------------------------------------------------------------------------


def exact_price(slope: float, epsilon: float, grid: int) -> float:
    """log E exp(slope Z / grid), Z discrete Laplace of parameter epsilon / grid."""
    with mpmath.workdps(60):
        tick, lift = mpmath.mpf(epsilon) / grid, mpmath.mpf(slope) / grid
        ratio = (mpmath.cosh(tick) - 1) / (mpmath.cosh(tick) - mpmath.cosh(lift))
        return float(mpmath.log(ratio))


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 5.0])
def test_the_price_of_fine_noise_is_enough(epsilon: float) -> None:
    """Lemma N5: for every grid, and on fine ones not too much: a thousandth less would
    not do.
    """
    for share in (1e-5, 0.01, 0.3, 0.6, 0.8, 0.99):
        price = price_fine_noise(share * epsilon, epsilon)
        for grid in (1, 2, 3, 64, 1000, 2**FINE_UNITS):
            assert price >= exact_price(share * epsilon, epsilon, grid) * (1 - 1e-14)
        assert 0.999 * price < exact_price(share * epsilon, epsilon, 2**FINE_UNITS)
    assert price_fine_noise(1.0, math.inf) == 0


STEP = 0.002
"""Nats by which the values of a noise are rounded down where laws are added up."""


def exact_tail(lifts: list[float], tick: float) -> float:
    """log sup_u e^u P(sum of lift Z >= u), by adding up the noises; STEP too low for
    each of them at most.
    """
    z, law = np.arange(-int(30 / tick), int(30 / tick) + 1), np.ones(1)
    chances, start = math.tanh(tick / 2) * np.exp(-tick * np.abs(z)), 0
    for lift in lifts:
        places = np.floor(lift * z / STEP).astype(int)
        law = fftconvolve(law, np.bincount(places - places[0], chances))
        start += int(places[0])
    values = STEP * (np.arange(law.size) + start)
    seen = np.abs(values) <= 12  # beyond it, what was left out counts
    tails = np.maximum(np.cumsum(law[::-1])[::-1][seen], 1e-300)
    return float((values[seen] + np.log(tails)).max())


def short_of(plan: RoundPlan, epsilon: float, grid: int) -> float:
    """By how much the log A of a round's tail bets is too small, at worst."""
    setting, bets = make_setting(2, epsilon, 0.1, kind=BUMP, grid=grid), make_bets(epsilon)
    book, table = new_book(2, bets.tilt.size), np.zeros((2, 1, 8))
    now = announce(0, 0, 0, plan, -1, -1, 10**9, 0, book)
    fill_scores(table, now, bets, setting)
    lacks = [-math.inf]
    for row in table[: 1 if plan.odds == 1 else 2, 0]:
        sums, near = row[[OWN, RIVAL]].tolist(), row[[OWN_CLOSENESS, RIVAL_CLOSENESS]].tolist()
        assert 0 < min(near) <= max(near) < 0.8 * epsilon
        noises = [sums[0], near[0]] if now.difference else sums + near
        tail = exact_tail([slope / grid for slope in noises], epsilon / grid)
        lacks.append(tail - row[COST])
    return float(max(lacks))


@pytest.mark.parametrize("difference", [True, False], ids=["difference", "sums"])
@pytest.mark.parametrize("centre", [0.5, 0.125])
@pytest.mark.parametrize(("epsilon", "grid"), [(0.3, 1), (1.0, 8), (0.7, 64)])
def test_tail_bets_pay_for_all_noise(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, grid: int, centre: float, difference: bool
) -> None:
    """Lemma N6: log A as announced is enough for the noise of sums and closeness."""
    plan = RoundPlan(1 if difference else 2, 50, centre, True, difference, True)
    assert short_of(plan, epsilon, grid) <= 1e-9
    if difference and grid > 1:
        monkeypatch.setattr(rounds, "price_fine_noise", lambda slope, e: 0.0)
        assert short_of(plan, epsilon, grid) > 0.01
