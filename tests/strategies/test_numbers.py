"""bet-se with outcomes that are numbers: equal to its oracle, run by run; and a mistake
planted in the package makes some run differ.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet import Bernoulli, Beta, Discrete, Drift, Drifting, Instance, Sampled
from discreet.simulation import betting as loop
from discreet.simulation import laws
from discreet.simulation.betting import draw_noise
from discreet.simulation.engine import simulate
from discreet.simulation.laws import compute_middle_chance, make_laws
from discreet.strategies.betting import bets as prices
from discreet.strategies.betting import book as books
from discreet.strategies.betting import rounds
from discreet.strategies.betting import schedule as plan
from discreet.strategies.betting.bets import (
    BettingSetting,
    Bump,
    choose_closeness_weight,
    compute_bump_height,
    compute_log_tail_constant,
    compute_rounding_cost,
    make_betting_rules,
    make_bump,
    measure_closeness,
    price_fine_noise,
)
from discreet.strategies.betting.book import Round
from discreet.strategies.presets import bet_se
from discreet.strategies.units import LEVELS
from tests.support.naive_betting import NaiveBetting
from tests.support.naive_numbers import NaiveNumbers

ARMS: dict[str, Instance] = {
    "five values": Discrete(
        [0, 0.25, 0.5, 0.75, 1], [[0.05, 0.2, 0.5, 0.2, 0.05], [0.02, 0.13, 0.5, 0.27, 0.08]]
    ),
    "off the grid": Discrete(
        [1 / 3, 0.6, 0.1, 1.0], [[0.5, 0.2, 0.3, 0.0], [0.0, 1.0, 0.0, 0.0], [0.3, 0.3, 0.3, 0.1]]
    ),
    "constants": Discrete([0.45, 0.5, 0.55], np.eye(3)),
    "rare ones": Discrete([0.02, 0.1, 1.0], [[0.95, 0.0, 0.05], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "coins": Bernoulli([0.7, 0.5, 0.45]),
    "two coins": Bernoulli([0.6, 0.5]),
    "near ties": Discrete([0, 0.3, 0.5, 1], [[0.1, 0.4, 0.4, 0.1], [0.1, 0.38, 0.42, 0.1]]),
    "beta": Beta([50, 55], [50, 45]),
    "four betas": Beta([50, 55, 52, 47], [50, 45, 48, 53]),
    "low betas": Beta([4, 8], [76, 72]),
    "lowest": Beta([1, 4], [60, 60]),
    "data": Sampled([[0.3, 0.5, 0.71, 0.5], [0.35, 0.6, 0.8], [0.0, 0.4, 0.6, 0.65, 1.0]]),
    "six": Discrete([0.2, 0.5, 0.9], [[0.2, 0.4, 0.4]] + [[0.4, 0.4, 0.2]] * 5),
    "twelve": Discrete([0.7, 0.9], [[0.0, 1.0]] + [[1.0, 0.0]] * 11),
    "sites": Drifting(Bernoulli([0.65, 0.35, 0.3]), Drift.sites(0.3, 5)),
}
Cell = tuple[str, float | None, float, dict[str, Any], int]
LOCAL: dict[str, Any] = {"trust": "local"}
NONE: dict[str, Any] = {"trust": "none"}
CELLS: list[Cell] = [
    ("five values", 1e-7, 0.1, {}, 10**12),
    ("five values", 0.01, 0.1, {}, 10**9),
    ("five values", 0.3, 0.01, {}, 10**6),
    ("five values", 1.0, 0.1, {}, 10**6),
    ("five values", 5.0, 0.1, {}, 10**6),
    ("five values", None, 0.1, NONE, 10**6),
    ("five values", 1.5, 0.1, LOCAL, 10**6),
    ("five values", 1.0, 0.1, {"target_difference": 0.1}, 10**6),
    ("five values", 0.05, 0.1, {"target_difference": 0.1}, 10**6),
    ("off the grid", 0.01, 0.1, {}, 10**7),
    ("off the grid", 0.3, 0.1, {}, 10**6),
    ("off the grid", 1.0, 0.1, {"indifference_zone": 0.1}, 10**6),
    ("off the grid", None, 0.05, {**NONE, "indifference_zone": 0.02}, 10**6),
    ("off the grid", 3.0, 0.1, LOCAL, 10**6),
    ("constants", 0.1, 0.1, {}, 10**6),
    ("constants", 2.0, 0.1, {}, 10**6),
    ("constants", 50.0, 0.1, LOCAL, 10**6),
    ("rare ones", 1.0, 0.1, {}, 20_000),
    ("rare ones", 5.0, 0.1, {"target_difference": 0.05}, 20_000),
    ("rare ones", 2.0, 0.1, {**LOCAL, "indifference_zone": 0.1}, 20_000),
    ("coins", 0.1, 0.1, {}, 10**6),
    ("coins", 1.0, 0.1, {}, 10**6),
    ("coins", 5.0, 0.1, {}, 10**6),
    ("coins", 8.0, 0.1, {}, 10**6),
    ("coins", None, 0.1, NONE, 10**6),
    ("coins", 2.0, 0.1, LOCAL, 10**6),
    ("two coins", 0.3, 0.1, {}, 10**6),
    ("two coins", 5.0, 0.1, {}, 10**6),
    ("two coins", 4.0, 0.1, {"indifference_zone": 0.05, "target_difference": 0.1}, 10**6),
    ("near ties", 0.2, 0.2, {}, 30_000),
    ("near ties", 3.0, 0.2, {}, 10_000),
    ("near ties", 5.0, 0.2, LOCAL, 10_000),
    ("beta", 0.1, 0.1, {}, 10**5),
    ("beta", 1.0, 0.1, {"indifference_zone": 0.02}, 10**5),
    ("beta", 5.0, 0.1, LOCAL, 10**5),
    ("four betas", 0.3, 0.1, {}, 10**5),
    ("four betas", None, 0.1, {**NONE, "target_difference": 0.05}, 10**5),
    ("low betas", 0.3, 0.1, {}, 10**5),
    ("low betas", 2.0, 0.1, {}, 10**5),
    ("low betas", 10.0, 0.1, {}, 10**5),
    ("lowest", 4.0, 0.1, {}, 10**5),
    ("lowest", 2.0, 0.1, LOCAL, 10**5),
    ("data", 0.1, 0.1, {}, 10**5),
    ("data", 1.0, 0.1, {}, 10**5),
    ("data", None, 0.1, {**NONE, "indifference_zone": 0.01}, 10**5),
    ("six", 0.05, 0.1, {}, 10**7),
    ("six", 1.0, 0.1, {"indifference_zone": 0.1}, 10**6),
    ("six", 0.05, 0.1, {"target_difference": 0.2}, 10**7),
    ("twelve", 5.0, 0.001, {}, 10**5),
    ("sites", 0.1, 0.1, {}, 20_000),
    ("sites", 5.0, 0.1, {}, 20_000),
    ("sites", 2.0, 0.1, LOCAL, 20_000),
    ("sites", None, 0.1, NONE, 20_000),
]
Found = tuple[int, int, bool, int, list[int]]
Story = list[list[float]]
"""The money of all arms after each round."""


def child(seed: int, run: int) -> np.random.Generator:
    """The generator the engine gives to a run."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))


def plain(cell: Cell, run: int) -> tuple[Found, Story]:
    """What the package's leaves, as plain Python, make of a run."""
    name, epsilon, delta, options, cap = cell
    rng, laws, arms = child(7, run), make_laws(ARMS[name]), ARMS[name].arms
    bets, setting = make_betting_rules(bet_se(delta, epsilon, outcomes="numbers", **options), arms)
    pulls, book, story = np.zeros(arms, np.int64), books.new_book(arms, bets.tilt.size), []
    draw = loop.draw_round_by_participant if isinstance(ARMS[name], Drifting) else loop.draw_round
    now = rounds.announce_first(setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        draw(rng, laws, now, setting, pulls, book)
        now, book = rounds.settle_and_announce(now, bets, setting, cap, book)
        story.append(book.log_wealth.tolist())
    arm = now.winner if now.winner >= 0 else books.find_front_runner(book)
    return (now.samples, arm, now.winner >= 0, now.number, pulls.tolist()), story


def told(cell: Cell, run: int) -> tuple[Found, Story]:
    """What the oracle makes of it."""
    oracle = oracle_of(cell)
    return oracle.run(child(7, run), cell[-1]), oracle.story


def alike(one: tuple[Found, Story], other: tuple[Found, Story]) -> bool:
    """The same run to the last person, and the same money to a millionth of a nat."""
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0, atol=1e-6)


def oracle_of(cell: Cell) -> NaiveNumbers:
    name, epsilon, delta, options, _ = cell
    return NaiveNumbers(ARMS[name], epsilon, delta, **options)


# --- the same runs three ways ---------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_plain_python_and_oracle_agree(cell: Cell) -> None:
    slow = told(cell, 0)
    assert alike(plain(cell, 0), slow)
    assert sum(slow[0][4]) == slow[0][0] <= cell[-1]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_engine_and_oracle_agree(cell: Cell) -> None:
    name, epsilon, delta, options, cap = cell
    strategy = bet_se(delta, epsilon, outcomes="numbers", **options)
    fast = simulate(ARMS[name], strategy, 6, 7, cap)
    for i in range(6):
        slow = told(cell, i)
        found = fast.samples[i], fast.recommendation[i], fast.stopped[i], fast.rounds[i]
        assert (*found, fast.pulls[i].tolist()) == slow[0]
        assert i > 2 or alike(plain(cell, i), slow)


def test_every_kind_of_round_is_played() -> None:
    kinds = Counter[str]()
    for cell in CELLS:
        oracle = oracle_of(cell)
        oracle.run(child(7, 0), cell[-1])
        kinds.update(oracle.kinds)
    assert set(kinds) == {
        "sums",
        "sums of numbers",
        "sums by tails of numbers",
        "difference by tails of numbers",
    }
    assert min(kinds.values()) > 4


@pytest.mark.parametrize("options", [{}, {"indifference_zone": 0.1}])
def test_little_privacy_is_left_to_bits_where_nobody_is_trusted(options: dict[str, Any]) -> None:
    """Below epsilon 1.5 numbers are sent as bits: the run is that of the other
    oracle.
    """
    arms = ARMS["off the grid"]
    strategy = bet_se(0.1, 1.4999, "local", outcomes="numbers", **options)
    fast = simulate(arms, strategy, 3, 7, 10**6)
    for i in range(3):
        slow = NaiveBetting(tuple(arms.means), 1.4999, 0.1, "local", **options)
        found = fast.samples[i], fast.recommendation[i], fast.stopped[i], fast.rounds[i]
        assert (*found, fast.pulls[i].tolist()) == slow.run(child(7, i), 10**6)


# --- planted mistakes -----------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]


def swap(module: Any, name: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(module, name, value)


def all_of(*plants: Plant) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for one in plants:
            one(patch)

    return plant


def everywhere(name: str, value: Any) -> Plant:
    """A leaf exchanged in all rooms that call it."""
    rooms = (laws, loop, books, prices, plan, rounds)
    return all_of(*[swap(room, name, value) for room in rooms if hasattr(room, name)])


def smooth_only(tilt: float, centre: float, kind: int, epsilon: float) -> float:
    """B as if the case of steep tilts were not there."""
    weight = (
        compute_rounding_cost(tilt, centre)
        if kind == LEVELS
        else compute_rounding_cost(tilt, centre) / compute_bump_height(centre)
    )
    return min(weight, 0.8 * epsilon)


def too_large(tilt: float, centre: float, kind: int, epsilon: float) -> float:
    return min(1.5 * choose_closeness_weight(tilt, centre, kind, epsilon), 0.8 * epsilon)


def bump_by_half(units: int, bump: Bump) -> int:
    """The sides of a bump change at 1/2, not at its centre."""
    y = units / bump.grid
    q = (
        bump.below * compute_rounding_cost(-1.0, y)
        if y < 0.5
        else bump.above * compute_rounding_cost(1.0, y)
    )
    return max(0, min(math.floor(q), units, bump.grid - units))


def half_noise(rng: np.random.Generator, now: Round, setting: BettingSetting) -> float:
    return draw_noise(rng, now, setting._replace(epsilon=2 * setting.epsilon))


PLANTED: dict[str, Plant] = {
    "B 1.5 times too large": swap(rounds, "choose_closeness_weight", too_large),
    "B lowered by a tenth": swap(
        rounds, "choose_closeness_weight", lambda *args: 0.9 * choose_closeness_weight(*args)
    ),
    "B not less for steep tilts": swap(rounds, "choose_closeness_weight", smooth_only),
    "B of the other side": swap(
        rounds, "choose_closeness_weight", lambda tilt, *rest: choose_closeness_weight(-tilt, *rest)
    ),
    "B up to .9 epsilon": swap(prices, "CLOSENESS_SHARE", 0.9),
    "no price": swap(rounds, "price_fine_noise", lambda slope, epsilon: 0.0),
    "price a tenth less": swap(
        rounds, "price_fine_noise", lambda *args: 0.9 * price_fine_noise(*args)
    ),
    "height 5 % less": swap(
        prices, "compute_bump_height", lambda centre: 0.95 * compute_bump_height(centre)
    ),
    "bump at 1/2": swap(laws, "make_bump", lambda centre, grid: make_bump(0.5, grid)),
    "bump turns over at 1/2": swap(laws, "measure_closeness", bump_by_half),
    "bump 1/64 higher": swap(
        laws, "measure_closeness", lambda *args: measure_closeness(*args) + 2**14
    ),
    "noise of half the size": swap(loop, "draw_noise", half_noise),
    "tail constants of whole numbers": swap(
        rounds, "compute_log_tail_constant", lambda tick: compute_log_tail_constant(2**20 * tick)
    ),
    "numbers in all rounds": swap(plan, "is_finer", lambda *args: True),
    "bits in all rounds but the first": swap(plan, "is_finer", lambda *args: False),
    "plans without closeness": everywhere("measure_closeness_share", lambda book: 0.0),
    "centres of finer places": swap(plan, "CENTRE_UNITS", 2**20),
    "levels: bets at the announced one": everywhere(
        "compute_sent_centre", lambda centre, setting: centre
    ),
    "levels: their shift kept": swap(rounds, "compute_sent_shift", lambda now, setting: 0.0),
    "levels: less often the middle": swap(
        laws, "compute_middle_chance", lambda *args: 0.9 * compute_middle_chance(*args)
    ),
}


@pytest.fixture(scope="module")
def expected() -> list[list[tuple[Found, Story]]]:
    """The oracle's runs of every cell."""
    return [[told(cell, run) for run in range(2)] for cell in CELLS]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", PLANTED)
def test_planted_mistakes_are_seen(
    monkeypatch: pytest.MonkeyPatch, mistake: str, expected: list[list[tuple[Found, Story]]]
) -> None:
    PLANTED[mistake](monkeypatch)
    assert not all(
        alike(plain(cell, run), runs[run])
        for run in range(2)
        for cell, runs in zip(CELLS, expected, strict=True)
    )
