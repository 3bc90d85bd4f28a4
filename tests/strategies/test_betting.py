"""bet-se: equal to its oracle, bets that are fair, plans."""

import math
from collections import Counter
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from discreet import Bernoulli, Beta, Discrete, Drift, Drifting
from discreet._types import Floats
from discreet.simulation import betting as play
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import simulate
from discreet.simulation.laws import make_bernoulli_laws
from discreet.strategies.betting.bets import (
    LOG_TAIL_MARGIN,
    compute_log_tail_constant,
    compute_log_tail_payoff,
    compute_slopes,
    make_bets,
    make_betting_rules,
    make_setting,
    price_noise,
)
from discreet.strategies.betting.book import ASSIGNED, COUNT, SUM, new_book
from discreet.strategies.betting.rounds import announce_first, release_difference
from discreet.strategies.betting.schedule import stays_active
from discreet.strategies.presets import bet_se
from tests.support.naive_bets import Announced, moment, tail
from tests.support.naive_betting import NaiveBetting

LOCAL, NONE = {"trust": "local"}, {"trust": "none"}
END = 10**12
Cell = tuple[tuple[float, ...], float | None, float, dict[str, Any], int]
CELLS: list[Cell] = [
    ((0.6, 0.4), 0.1, 0.1, {}, END),
    ((0.6, 0.4), 0.001, 0.1, {}, END),
    ((0.9, 0.5, 0.1), 1e-6, 0.1, {}, END),
    ((0.0, 1.0), 0.01, 0.01, {}, END),
    ((0.05, 0.02), 0.3, 0.05, {}, END),
    ((0.6, 0.59), 1.0, 0.1, {}, 3000),
    ((0.501, 0.5), 0.3, 0.2, {}, 100_000),
    ((0.8, 0.5, 0.2), 1.0, 0.05, {}, END),
    ((0.75, 0.7, 0.7), 0.001, 0.01, {}, END),
    ((0.75, 0.7, 0.7), 0.01, 0.1, {}, END),
    ((0.8, 0.5, 0.2), 10.0, 0.05, {}, END),
    ((0.8, 0.5, 0.2), 1000.0, 0.05, {}, END),
    ((0.6, 0.59, 0.5), 0.01, 0.1, {}, 1000),
    ((0.0, 0.25, 0.5, 0.75, 1.0), 1.0, 0.01, {}, END),
    ((0.501, *(0.5,) * 4), 0.1, 0.2, {}, 200_000),
    ((0.95, 0.9, 0.9, 0.9, 0.5), 0.01, 0.01, {}, END),
    ((0.95, 0.9, 0.9, 0.9, 0.5), 0.3, 0.01, {}, END),
    ((0.6, *(0.3,) * 9), 0.1, 0.1, {}, END),
    ((0.6, *(0.3,) * 9), 1.0, 0.1, {}, END),
    ((0.8, 0.5, 0.2), 1.0, 0.05, LOCAL, END),
    ((0.8, 0.5, 0.2), 0.3, 0.05, LOCAL, END),
    ((0.8, 0.5, 0.2), None, 0.05, NONE, END),
    ((1.0, 0.8), None, 0.1, NONE, END),
    ((0.5, 0.49), 0.1, 0.1, {"indifference_zone": 0.1}, END),
    ((0.5, 0.49, 0.4), 0.05, 0.1, {"indifference_zone": 0.1}, END),
    ((0.5, 0.49, 0.4), 1.0, 0.1, {"indifference_zone": 0.1}, END),
    ((0.5, 0.45, 0.5, 0.48), 0.3, 0.1, {"indifference_zone": 0.05}, END),
    ((0.6, 0.5, 0.5), 1.0, 0.1, {"indifference_zone": 0.2, **LOCAL}, END),
    ((0.7, 0.5), 0.01, 0.05, {"target_difference": 0.2}, END),
    ((0.55, 0.45), 1.0, 0.05, {"target_difference": 0.1}, END),
    ((0.7, 0.5, 0.5, 0.5), 0.01, 0.05, {"target_difference": 0.2}, END),
    ((0.7, 0.5, 0.5, 0.5), 0.01, 0.05, {"target_difference": 0.2, "indifference_zone": 0.05}, END),
    ((0.55, 0.5, 0.5, 0.5), 0.03, 0.1, {"target_difference": 0.1}, END),
    ((0.51, 0.5, 0.5), 0.01, 0.1, {"target_difference": 0.2}, 10**7),
    ((0.7, 0.5, 0.5), 1.0, 0.05, {"target_difference": 0.1, **LOCAL}, END),
    ((0.51, 0.4, 0.4), None, 0.05, {"target_difference": 0.1, **NONE}, END),
]


def child(seed: int, run: int) -> np.random.Generator:
    """The generator the engine gives to a run."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))


# --- the same runs three ways ---------------------------------------------------------


def kinds_of(cell: Cell) -> Counter[str]:
    """The kinds of the rounds of three runs, which plain Python and the oracle play
    alike.
    """
    means, epsilon, delta, options, cap = cell
    strategy, kinds = bet_se(delta, epsilon, **options), Counter[str]()
    rules = make_betting_rules(strategy, len(means))
    for i in range(3):
        pulls, trace = np.zeros(len(means), np.int64), np.zeros((3, 4 + len(means)))
        plain = play.run_betting(
            child(7, i), make_bernoulli_laws(np.array(means)), rules, cap, pulls, trace
        )
        oracle = NaiveBetting(means, epsilon, delta, **options)
        slow = oracle.run(child(7, i), cap)
        assert tuple(plain) == slow[:4]
        assert pulls.tolist() == slow[4]
        assert sum(slow[4]) == slow[0] <= cap
        assert trace[0, 2] == min(oracle.first().length, cap // len(means))
        kinds.update(oracle.kinds)
    return kinds


@pytest.mark.parametrize("cell", CELLS)
def test_plain_python_and_oracle_agree(cell: Cell) -> None:
    assert kinds_of(cell).total() >= 3


def test_every_kind_of_round_is_played() -> None:
    kinds = sum((kinds_of(cell) for cell in CELLS[:9]), Counter[str]())
    assert set(kinds) == {"sums", "sums by tails", "difference by tails"}


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_engine_and_oracle_agree(cell: Cell) -> None:
    means, epsilon, delta, options, cap = cell
    fast = simulate(Bernoulli(means), bet_se(delta, epsilon, **options), 3, 7, cap)
    for i in range(3):
        found = fast.samples[i], fast.recommendation[i], fast.stopped[i], fast.rounds[i]
        slow = NaiveBetting(means, epsilon, delta, **options).run(child(7, i), cap)
        assert found == slow[:4]
        assert fast.pulls[i].tolist() == slow[4]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_compiled_run_traces_like_the_plain_one(epsilon: float) -> None:
    rules, laws = (
        make_betting_rules(bet_se(0.1, epsilon), 3),
        make_bernoulli_laws(np.array([0.55, 0.5, 0.5])),
    )
    traces = [np.zeros((4, 7)), np.zeros((4, 7))]
    for run, trace in zip(
        (compile_kernel(play.run_betting), play.run_betting), traces, strict=True
    ):
        run(child(3, 0), laws, rules, 10**12, np.zeros(3, np.int64), trace)
    assert np.array_equal(traces[0], traces[1])
    assert traces[0][:, 3].tolist() == [1, 2, 3, 4]


class NaiveDrift(NaiveBetting):
    """The oracle person by person: two sites that enrol five people in turn."""

    def draw(
        self, now: Announced, rng: np.random.Generator
    ) -> tuple[dict[int, float], dict[int, int]]:
        seen, people = dict.fromkeys(now.odds, 0.0), dict.fromkeys(now.odds, 0)
        first = sum(self.pulls.values())
        for person in range(first, first + now.length * sum(now.odds.values())):
            coin = rng.random() * sum(now.odds.values())
            arm = next(a for a in now.odds if coin < sum(now.odds[c] for c in now.odds if c <= a))
            chance = self.means[arm] + (0.3 if person // 5 % 2 == 0 else -0.3)
            people[arm] += 1
            sent = 0.5 + self.shrink * (min(max(chance, 0.0), 1.0) - 0.5)
            seen[arm] += rng.random() < sent
        return self.noised(now, seen, people, rng), people


THREE, TWO = (0.65, 0.35, 0.3), (0.6, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "epsilon", "options", "kinds"),
    [
        (THREE, 0.1, {}, {"sums", "sums by tails"}),
        (THREE, 0.1, {"target_difference": 0.3}, {"sums by tails"}),
        (THREE, 2.0, LOCAL, {"sums"}),
        (THREE, None, NONE, {"sums"}),
        (TWO, 0.1, {}, {"sums", "difference by tails"}),
        (TWO, 0.2, {"indifference_zone": 0.05}, {"sums", "difference by tails"}),
    ],
)
def test_participants_who_drift_are_the_oracles(
    means: tuple[float, ...], epsilon: float | None, options: dict[str, Any], kinds: set[str]
) -> None:
    """Participant by participant, in every kind of round of bits."""
    drifting, played = Drifting(Bernoulli(means), Drift.sites(0.3, 5)), set[str]()
    fast = simulate(drifting, bet_se(0.1, epsilon, **options), 3, 5, 20_000)
    for i in range(3):
        oracle = NaiveDrift(means, epsilon, 0.1, **options)
        slow = oracle.run(child(5, i), 20_000)
        assert slow[:4] == (
            fast.samples[i],
            fast.recommendation[i],
            fast.stopped[i],
            fast.rounds[i],
        )
        assert fast.pulls[i].tolist() == slow[4]
        played |= set(oracle.kinds)
    assert kinds <= played


def test_only_the_mean_of_a_law_matters() -> None:
    """Rewards are rounded at random to bits."""
    same: list[Any] = [
        Bernoulli([0.7, 0.5]),
        Discrete([0, 0.5, 1], [[0.2, 0.2, 0.6], [0.0, 1.0, 0.0]]),
        Beta([7, 1], [3, 1]),
    ]
    runs = [simulate(instance, bet_se(0.1, 1.0), 20, 3).samples for instance in same]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_threads_do_not_matter() -> None:
    runs = [
        simulate(Bernoulli([0.7, 0.5]), bet_se(0.1, 1.0), 30, 3, threads=t).samples for t in (1, 3)
    ]
    assert np.array_equal(runs[0], runs[1])


# --- bets -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 10.0, 1000.0])
def test_price_of_noise(epsilon: float) -> None:
    for share in (1e-6, 0.3, 0.8, 0.99):
        tilt = mpmath.mpf(share * epsilon)
        exact = mpmath.log((mpmath.cosh(epsilon) - 1) / (mpmath.cosh(epsilon) - mpmath.cosh(tilt)))
        found = price_noise(share * epsilon, epsilon)
        assert found == pytest.approx(float(exact), rel=1e-6, abs=1e-12)
    assert price_noise(1.0, math.inf) == 0


def test_stakes_add_up() -> None:
    for epsilon in (1e-6, 0.01, 1.0, 5.0, 1000.0):
        for trust in ("global", "local", "none"):
            for target_difference in (0.0, 0.1):
                bets = make_bets(epsilon, trust, target_difference)
                assert np.exp(bets.stake).sum() == pytest.approx(1, abs=1e-12)
                assert (np.diff(bets.tilt) < 0).all()
                assert trust != "global" or bets.tilt[0] < epsilon


@pytest.mark.parametrize("odds", [(1, 1), (1, 4), (16, 1)])
@pytest.mark.parametrize("centre", [1 / 64, 0.3, 0.5, 63 / 64])
@pytest.mark.parametrize("tilt", [1e-5, 0.1, 0.8, 2.5])
def test_a_person_wins_nothing_on_average(
    tilt: float, centre: float, odds: tuple[int, int]
) -> None:
    """Lemma 1: over coin and outcome a tie multiplies money by exactly 1, whatever the
    mean; and the price of noise is that of slopes up to the tilt.
    """
    own, rival = odds
    score = compute_slopes(tilt, centre, own / rival)
    no, yes = math.exp(score.own_count), math.exp(score.own_count - score.own)
    rival_no, rival_yes = math.exp(score.rival_count), math.exp(score.rival_count + score.rival)
    for mean in (0.0, 0.02, 0.5, 0.97, 1.0):
        for other in (mean, 0.3, 0.8):
            factor = own * (no * (1 - mean) + yes * mean)
            factor += rival * (rival_no * (1 - other) + rival_yes * other)
            won = factor / (own + rival) - 1
            gain = own / (own + rival) * score.step * (other - mean)
            assert won == pytest.approx(gain, rel=1e-6, abs=1e-14)
    assert max(score.own, score.rival) == pytest.approx(tilt, rel=1e-9)
    assert min(score.own, score.rival, yes, rival_no) > 0


def exact_tail(first: float, second: float, epsilon: float) -> float:
    """log sup_u e^u P(first Z + second Z' >= u), by adding up the noise."""
    z = np.arange(-int(30 / epsilon), int(30 / epsilon) + 1)
    law = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    values, weights = first * z, law
    if second:
        values = np.add.outer(first * z, second * z).ravel()
        weights = np.multiply.outer(law, law).ravel()
    order = np.argsort(-values, kind="stable")
    seen = values[order] <= 20  # beyond it, what was left out counts
    tails: Floats = np.cumsum(weights[order])[seen]
    return float((values[order][seen] + np.log(tails)).max())


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_tail_constants_are_enough(epsilon: float) -> None:
    """Lemma 4: never below the exact supremum; of one noise equal to it, but for the
    margin.
    """
    alone = compute_log_tail_constant(epsilon)
    assert exact_tail(epsilon * (1 - 1e-9), 0, epsilon) <= alone <= tail(epsilon) + 1.1e-6
    assert exact_tail(epsilon, 0, epsilon) == pytest.approx(tail(epsilon), abs=1e-9)
    for share in (0.05, 0.3, 0.5, 0.8, 0.95):
        exact = exact_tail(epsilon * (1 - 1e-9), share * epsilon, epsilon)
        both = alone + price_noise(share * epsilon, epsilon)
        assert exact <= both + 1e-9
        assert both == pytest.approx(tail(epsilon) + moment(share * epsilon, epsilon), abs=1.1e-6)
        assert exact > both - price_noise(share * epsilon, epsilon) - epsilon


def test_the_margin_covers_rounding_where_both_slopes_are_nearly_epsilon() -> None:
    """The price of a slope so near epsilon loses 3e-7 nats to rounding."""
    rng, worst = np.random.default_rng(3), 0.0
    with mpmath.workdps(50):
        for _ in range(2000):
            epsilon = 10 ** rng.uniform(-6, 1.5)
            slope = epsilon * (1 - 1e-9) * (1 - 1e-9 * rng.uniform())
            top, part = mpmath.cosh(epsilon), mpmath.cosh(slope)
            exact = float(mpmath.log((top - 1) / (top - part)))
            worst = max(worst, exact - price_noise(slope, epsilon))
    assert 1e-7 < worst < LOG_TAIL_MARGIN / 2


@pytest.mark.parametrize("sigma", [1e-9, 0.1, 0.7])
@pytest.mark.parametrize("alpha", [1e-8, 0.02, 0.9])
def test_a_tail_bet_wins_nothing_on_average(sigma: float, alpha: float) -> None:
    """Lemma 5: over a uniform p-value."""

    def weighed(x: float) -> float:
        return math.exp(compute_log_tail_payoff(-x, sigma, math.log(alpha)) - x)

    edge = -math.log(alpha)
    parts = [quad(weighed, *ends)[0] for ends in ((0, edge), (edge, edge + 5), (edge + 5, 100))]
    assert sum(parts) == pytest.approx(1, abs=1e-6)
    values = [
        compute_log_tail_payoff(-x, sigma, math.log(alpha))
        for x in np.linspace(-1, 30, 200).tolist()
    ]
    assert (np.diff(values) >= 0).all()


def test_a_difference_is_private() -> None:
    """One participant moves it by at most 1; a score reads the exact difference."""
    rng, setting = np.random.default_rng(2), make_setting(2, 0.01, 0.1)
    book = new_book(2, 20)
    now = announce_first(setting, 10**9, book)._replace(leader=1, runner_up=0)
    assert now.difference
    for _ in range(50):
        counts = rng.integers(0, 30, 2)
        sums = rng.binomial(counts, 0.5)
        released = []
        for arm in (-1, *np.flatnonzero(sums < counts).tolist()):
            book.fresh[:, SUM], book.fresh[:, COUNT] = sums, counts
            book.fresh[arm, SUM] += arm >= 0
            release_difference(3.0, 0.0, now, book)
            released.append(book.fresh[1, SUM])
            if arm < 0:
                assert book.fresh[1, SUM] - book.fresh[0, SUM] - 3 == sums[1] - sums[0]
        assert np.abs(np.array(released) - released[0]).max() <= 1


# --- the plan -------------------------------------------------------------------------


def test_an_arm_that_is_out_wakes_up() -> None:
    """After 32 times its pulls if it just went out, later with more money against it;
    everyone if everyone is out.
    """
    setting, book = make_setting(3, 1.0, 0.1), new_book(3, 20)
    book.total[:, ASSIGNED] = 100, 10_000, 10_000
    book.eliminated[0], book.log_wealth[0] = True, setting.target
    assert all(stays_active(a, 10_000, setting, book) for a in range(3))
    assert [stays_active(a, 3_000, setting, book) for a in range(3)] == [False, True, True]
    book.log_wealth[0] += 3
    assert not stays_active(0, 10_000, setting, book)
    book.eliminated[:], book.log_wealth[:] = True, 900.0
    assert all(stays_active(a, 10_000, setting, book) for a in range(3))


@pytest.mark.parametrize("options", [{}, LOCAL, NONE])
def test_ties_among_the_others_end(options: dict[str, Any]) -> None:
    epsilon = None if options == NONE else 1.0
    assert (
        simulate(Bernoulli([0.6, 0.5, 0.5, 0.5]), bet_se(0.1, epsilon, **options), 200, 5).unstopped
        == 0
    )


def test_runs_are_cheap_whatever_the_samples() -> None:
    results = simulate(Bernoulli([0.501] + [0.5] * 99), bet_se(0.01, 1.0), 1, 1)
    assert results.correct.all()
    assert results.rounds[0] < 400
    assert results.samples[0] > 1e8


@pytest.mark.parametrize(
    ("epsilon", "trust", "ends"),
    [
        (1e-9, "global", True),
        (1e-9, "local", False),
        (1e-12, "global", False),
        (900.0, "local", True),
    ],
)
def test_extreme_epsilon(epsilon: float, trust: str, ends: bool) -> None:
    results = simulate(Bernoulli([0.9, 0.1]), bet_se(0.1, epsilon, trust), 3, 1)
    assert (results.samples <= 10**12).all()
    assert (results.stopped == ends).all()


def test_no_smallest_gap() -> None:
    results = simulate(Bernoulli([0.50001, 0.5]), bet_se(0.1, 1.0), 5, 1)
    assert results.unstopped == 0
    assert results.samples.min() > 1e9
