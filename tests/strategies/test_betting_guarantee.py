"""bet-se loses a best arm with probability at most delta: whatever ties, privacy and
options, and, where people are dealt by coins, whatever drifts. Planted mistakes turn
the same check red.

False alarms: every check is an exact binomial test at level 1e-4 / CHECKS, so a sound
program fails here with probability below 1e-4 in all, whatever the seed.
"""

import math
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import binom

from discreet import Bernoulli
from discreet.simulation import betting as loop
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import simulate
from discreet.simulation.laws import make_bernoulli_laws
from discreet.strategies.betting import rounds, schedule
from discreet.strategies.betting.bets import (
    Bets,
    BettingSetting,
    Slopes,
    compute_log_tail_constant,
    make_betting_rules,
)
from discreet.strategies.betting.book import (
    SUM,
    Book,
    Round,
    compute_log_wealth,
    count_marked,
    find_odds,
    find_pair_row,
    new_book,
)
from discreet.strategies.betting.rounds import settle
from discreet.strategies.betting.schedule import RoundPlan, choose_centre, choose_odds
from discreet.strategies.presets import bet_se
from tests.support.ever_out import (
    BLOCKS,
    CYCLE,
    LINE,
    SEASON,
    SIMPLE,
    SITES,
    STAFF,
    STEADY,
    STEP,
    Field,
    runs_with_best_out,
)

LOCAL, NONE = {"trust": "local"}, {"trust": "none"}
ARMS: list[tuple[float, ...]] = [
    (0.5, 0.5),
    (0.505, 0.5),
    (0.02, 0.02),
    (0.95, 0.95),
    (0.5,) * 4,
    (0.95,) * 4,
    (0.51, 0.5, 0.5, 0.5),
    (0.6, 0.6, 0.5, 0.5),
    (0.05, 0.045, 0.045),
    (0.5,) * 20,
    (0.52, *(0.5,) * 19),
]
WAYS: list[tuple[float | None, dict[str, Any]]] = [
    (0.01, {}),
    (0.1, {}),
    (0.3, {}),
    (1.0, {}),
    (5.0, {}),
    (None, NONE),
    (1.0, LOCAL),
    (0.01, {"target_difference": 0.1}),
    (0.1, {"target_difference": 0.2}),
    (1.0, {"target_difference": 0.1}),
    (0.1, {"indifference_zone": 0.02}),
]
DRIFTS = {
    "none": (STEADY, 0.0, 1.0),
    "from .2 to .8": (LINE, 0.3, 8000.0),
    "from .8 to .2": (LINE, -0.3, 8000.0),
    "from .1 to .9 in 500": (LINE, 0.4, 500.0),
    "season of 1000": (SEASON, 0.3, 1000.0),
    "season of 200": (SEASON, 0.3, 200.0),
    "step to .9": (STEP, 0.4, 1000.0),
    "step to .1": (STEP, -0.4, 1000.0),
    "sites of 50": (SITES, 0.4, 50.0),
    "sites of 300": (SITES, 0.4, 300.0),
    "sites in turn": (SITES, 0.3, 1.0),
}
TRAPS: list[tuple[int, float, float | None]] = [
    (SITES, 0.45, None),
    (SITES, 0.5, None),
    (STAFF, 0.1, None),
    (STAFF, 0.3, None),
    (STAFF, 0.3, 1.0),
    (STAFF, 0.3, 0.1),
]
"""What moves, by how much, epsilon."""
AT_HOME = Field()
CHECKS = len(ARMS) * len(WAYS) + 5 * len(DRIFTS) + 2 * len(TRAPS) + 40


def alarm(found: int, runs: int, bound: float) -> bool:
    """Found more often than the bound allows."""
    return bool(binom.sf(found - 1, runs, bound) < 1e-4 / CHECKS)


def lost(
    arms: tuple[float, ...],
    epsilon: float | None,
    options: dict[str, Any],
    runs: int,
    field: Field = AT_HOME,
    delta: float = 0.1,
    cap: int = 0,
    player: Any = runs_with_best_out,
) -> int:
    """Runs in which arm 0, best or tied, was ever out."""
    rules = make_betting_rules(bet_se(delta, epsilon, **options), len(arms))
    cap = cap or (int(20_000 / epsilon) if epsilon and epsilon < 1 else 30_000)
    seed = crc32(repr((arms, epsilon, options, runs, field, delta, cap)).encode())
    rng = np.random.default_rng(seed)
    return int(player(rng, make_bernoulli_laws(np.array(arms)), field, rules, cap, runs))


# --- ties, privacy, options -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("arms", ARMS, ids=lambda arms: f"{len(arms)} from {arms[:2]}")
def test_a_best_arm_is_lost_with_probability_delta_at_most(arms: tuple[float, ...]) -> None:
    """Every other way has another delta, which is a goal for the bets and nothing else;
    the next arms have them the other way round.
    """
    play, red = compile_kernel(runs_with_best_out), []
    for way, (epsilon, options) in enumerate(WAYS):
        runs = 300 if epsilon and epsilon < 1 else 120
        delta = (0.1, 0.2)[(way + ARMS.index(arms)) % 2]
        found = lost(arms, epsilon, options, runs, delta=delta, player=play)
        if alarm(found, runs, delta):
            red.append((epsilon, options, delta, found / runs))
    assert red == []


@pytest.mark.parametrize("options", [{}, LOCAL])
@pytest.mark.parametrize(
    ("means", "epsilon"),
    [
        ((0.52, 0.5), 0.05),
        ((0.52, 0.5), 10.0),
        ((0.6, 0.5, 0.5), 1.0),
        ((0.6, 0.4, 0.4, 0.4, 0.2), 0.1),
    ],
)
def test_runs_stop_and_err_within_delta(
    means: tuple[float, ...], epsilon: float, options: dict[str, Any]
) -> None:
    results = simulate(Bernoulli(means), bet_se(0.1, epsilon, **options), 300, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 300, 0.1)


@pytest.mark.parametrize("options", [{}, {"target_difference": 0.1}])
def test_twenty_arms_stop_and_err_within_delta(options: dict[str, Any]) -> None:
    results = simulate(Bernoulli([0.6] + [0.5] * 19), bet_se(0.1, 1.0, **options), 200, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 200, 0.1)


@pytest.mark.parametrize("options", [{}, LOCAL, {"target_difference": 0.1}])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_an_indifference_zone_stops_near_ties_within_it(
    epsilon: float, options: dict[str, Any]
) -> None:
    """The chain .5, .45, .40 with an indifference zone of .06: arm 2 is .1 below the best."""
    strategy = bet_se(0.1, epsilon, indifference_zone=0.06, **options)
    results = simulate(Bernoulli([0.5, 0.45, 0.40]), strategy, 300, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 300, 0.1)
    assert np.array_equal(results.correct, results.recommendation < 2)
    ties = simulate(Bernoulli([0.5, 0.5, 0.5]), strategy, 50, 3)
    assert ties.unstopped == ties.errors == 0


# --- planted mistakes -----------------------------------------------------------------
# In plain Python, where a leaf can be exchanged at once: to compile each of them anew
# takes half a minute.


@pytest.mark.slow
def test_a_tail_constant_one_nat_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not alarm(lost((0.5, 0.5), 0.01, {}, 600), 600, 0.1)
    monkeypatch.setattr(
        rounds, "compute_log_tail_constant", lambda e: compute_log_tail_constant(e) - 1
    )
    assert alarm(lost((0.5, 0.5), 0.01, {}, 600), 600, 0.1)


def generous(tilt: float, centre: float, ratio: float) -> Slopes:
    """Planted mistake: what a person of the rival stakes is half as much again."""
    fall, rise = -math.expm1(-tilt), math.expm1(tilt)
    d = min(fall / (1 - centre * fall), rise / (1 + centre * rise) / ratio)
    e = min(1.5 * d * ratio, 0.99 / centre)
    own, rival = math.log1p(centre * d), math.log1p(-centre * e)
    down, up = own - math.log1p(-(1 - centre) * d), math.log1p((1 - centre) * e) - rival
    return Slopes(down, own, up, rival, d)


def test_a_rival_who_stakes_too_much_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stake counts by how far outcomes are from the centre, so the centre stays at
    1/2, which is allowed but foolish. The mistake loses arm 0 in two runs of five. A
    sound program fails with probability below 1e-4 / CHECKS.
    """
    monkeypatch.setattr(schedule, "choose_centre", lambda *about: 0.5)
    assert not alarm(lost((0.8, 0.8), None, NONE, 200, cap=4000), 200, 0.1)
    monkeypatch.setattr(rounds, "compute_slopes", generous)
    assert alarm(lost((0.8, 0.8), None, NONE, 200, cap=4000), 200, 0.1)


def short_first(playing: int, setting: BettingSetting, book: Book) -> RoundPlan:
    """Allowed, but foolish: rounds of two people an arm, all bet on by moments."""
    return RoundPlan(1, 2, 0.5, False, False, False)


def short_next(leader: int, second: int, n: int, setting: BettingSetting, book: Book) -> RoundPlan:
    """The same for later rounds."""
    centre = choose_centre(leader, second, setting, book)
    return RoundPlan(choose_odds(count_marked(book.active)), 2, centre, False, False, False)


@pytest.mark.parametrize("arms", [2, 4])
def test_noise_left_out_of_the_price_is_caught(monkeypatch: pytest.MonkeyPatch, arms: int) -> None:
    """The plan takes care that moment bets meet little noise, so their price hardly
    counts; but any announced plan must be sound, and short rounds have only noise.
    """
    monkeypatch.setattr(rounds, "plan_first", short_first)
    monkeypatch.setattr(rounds, "plan_next", short_next)
    tied = (0.5,) * arms
    assert not alarm(lost(tied, 0.1, {}, 100, cap=60 * arms), 100, 0.1)
    monkeypatch.setattr(rounds, "price_noise", lambda *about: 0.0)
    assert alarm(lost(tied, 0.1, {}, 100, cap=60 * arms), 100, 0.1)


def peeking(now: Round, bets: Bets, setting: BettingSetting, book: Book) -> Book:
    """Planted mistake: the centre is what arm 0 has in this round for each person
    announced, so it is high where coins gave that arm many.
    """
    centre = min(max(book.fresh[0, SUM] / now.length, 1 / 64), 63 / 64)
    return settle(now._replace(centre=centre), bets, setting, book)


@pytest.mark.parametrize("epsilon", [None, 10.0])
def test_a_centre_that_peeks_is_caught(
    monkeypatch: pytest.MonkeyPatch, epsilon: float | None
) -> None:
    options = NONE if epsilon is None else {}
    assert not alarm(lost((0.8, 0.8), epsilon, options, 25, cap=4000), 25, 0.1)
    monkeypatch.setattr(rounds, "settle", peeking)
    assert alarm(lost((0.8, 0.8), epsilon, options, 25, cap=4000), 25, 0.1)


def pairs_that_win(epsilon: float, runs: int, cap: int) -> int:
    """Runs in which the bets that arm 0 is not better than arm 1 by the indifference zone, which it
    is exactly, ever win 4 for 1; nobody goes out.
    """
    rules, laws = (
        make_betting_rules(bet_se(0.2, epsilon, indifference_zone=0.1), 2),
        make_bernoulli_laws(np.array([0.6, 0.5])),
    )
    setting = rules.setting._replace(target=1e9, zone_target=1e9)
    found, pulls, rng = 0, np.zeros(2, np.int64), np.random.default_rng(3)
    for _ in range(runs):
        book, most = new_book(2, rules.bets.tilt.size), 0.0
        now = rounds.announce_first(setting, cap, book)
        while now.length >= 1:
            loop.draw_round(rng, laws, now, setting, pulls, book)
            now, book = rounds.settle_and_announce(now, rules.bets, setting, cap, book)
            row = find_pair_row(0, 1, book)
            if row >= 0:
                most = max(most, compute_log_wealth(book.pair_wealth, row, rules.bets))
        found += most >= math.log(5)
    return found


@pytest.mark.parametrize(("epsilon", "cap"), [(0.05, 10**6), (1.0, 10**4)])
def test_an_indifference_gap_counted_too_large_is_caught(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, cap: int
) -> None:
    assert not alarm(pairs_that_win(epsilon, 80, cap), 80, 0.2)
    monkeypatch.setattr(rounds, "find_odds", lambda a, now: 1.5 * find_odds(a, now))
    assert alarm(pairs_that_win(epsilon, 80, cap), 80, 0.2)


# --- in the field ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("drift", DRIFTS)
def test_coins_are_sound_whatever_drifts(drift: str) -> None:
    """Half of the settings have another delta, the next drift the other half."""
    play, field = compile_kernel(runs_with_best_out), Field(SIMPLE, *DRIFTS[drift])
    settings = ((2, None), (4, None), (2, 1.0), (4, 0.3), (2, 0.1))
    for i, (arms, epsilon) in enumerate(settings, list(DRIFTS).index(drift)):
        options, delta = NONE if epsilon is None else {}, (0.1, 0.2)[i % 2]
        about = (0.5,) * arms, epsilon, options, 150, field, delta
        assert not alarm(lost(*about, cap=8000, player=play), 150, delta)


@pytest.mark.slow
@pytest.mark.parametrize(("drift", "size", "epsilon"), TRAPS)
def test_cycles_and_small_blocks_are_caught_and_coins_are_sound(
    drift: int, size: float, epsilon: float | None
) -> None:
    """Sites that enrol in turn, staff who guess the next arm and pick people for it: a
    fixed cycle and permuted blocks of two lose a tied arm too often.
    """
    play, options = compile_kernel(runs_with_best_out), NONE if epsilon is None else {}

    def is_red(randomisation: int, delta: float) -> bool:
        field = Field(randomisation, drift, size, 1.0)
        about = (0.5, 0.5), epsilon, options, 1000, field, delta
        return alarm(lost(*about, cap=4000, player=play), 1000, delta)

    assert is_red(CYCLE, 0.1)
    assert is_red(BLOCKS, 0.1)
    assert not is_red(SIMPLE, 0.1)
    assert not is_red(SIMPLE, 0.2)
