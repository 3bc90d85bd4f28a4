"""bet-se: equal to its oracle, sound bets, guarantees that can fail. Tests that draw
state their false-alarm rate.
"""

import json
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.stats import binom

from discreet import Bernoulli, Beta, Discrete, InvalidInputError, TiedBestArmError
from discreet.cli import main
from discreet.leaf import leaf
from discreet.simulation.compile import Compiler, compiled
from discreet.simulation.engine import simulate
from discreet.simulation.laws import bernoulli
from discreet.simulation.loops import betting as play
from discreet.strategies.betting import evidence
from discreet.strategies.betting import rounds as betting
from discreet.strategies.betting.bets import (
    OCTAVES,
    Bets,
    BettingRules,
    Setting,
    betting_rules,
    make_bets,
    make_setting,
    noise_price,
)
from discreet.strategies.betting.evidence import PULLS, RELEASES, SUM, felt, log_evidence
from discreet.strategies.betting.rounds import Book, mean_of
from discreet.strategies.presets import bet_se, ctb_tt, recommended, ttucb
from discreet.strategies.strategy import Strategy
from tests.support.naive_betting import NaiveBetting

Floats = NDArray[np.float64]
LOCAL, NONE, TOP_TWO = {"trust": "local"}, {"trust": "none"}, {"sampling": "top-two"}
CELLS: list[tuple[tuple[float, ...], float | None, float, dict[str, Any], int]] = [
    ((0.6, 0.4), 0.1, 0.1, {}, 10**12),
    ((0.8, 0.5, 0.2), 1.0, 0.05, {}, 10**12),
    ((0.75, 0.7, 0.7), 0.01, 0.1, {}, 10**12),
    ((0.8, 0.5, 0.2), 10.0, 0.05, {}, 10**12),
    ((0.8, 0.5, 0.2), 1000.0, 0.05, {}, 10**12),
    ((0.8, 0.5, 0.2), 1.0, 0.05, LOCAL, 10**12),
    ((0.8, 0.5, 0.2), 0.3, 0.05, LOCAL, 10**12),
    ((0.8, 0.5, 0.2), None, 0.05, NONE, 10**12),
    ((1.0, 0.8), None, 0.1, NONE, 10**12),
    ((0.5, 0.49, 0.4), 1.0, 0.1, {"zeta": 0.1}, 10**12),
    ((0.6, 0.5, 0.5), 1.0, 0.1, {"zeta": 0.2, **LOCAL}, 10**12),
    ((0.0, 0.25, 0.5, 0.75, 1.0), 1.0, 0.01, {}, 10**12),
    ((0.6, 0.59), 1.0, 0.1, {}, 3000),
    ((0.6, 0.59, 0.5), 0.01, 0.1, {}, 1000),
    ((0.6, *(0.3,) * 9), 1.0, 0.1, {}, 10**12),
    ((0.95, 0.9, 0.9, 0.9, 0.5), 0.01, 0.01, {}, 10**12),
    ((0.8, 0.5, 0.2), 1.0, 0.05, TOP_TWO, 10**12),
    ((0.95, 0.9, 0.9, 0.9, 0.5), 0.01, 0.01, TOP_TWO, 10**12),
    ((0.6, *(0.3,) * 6), 0.5, 0.1, TOP_TWO, 10**12),
    ((0.8, 0.5, 0.2), 1.0, 0.05, {**TOP_TWO, **LOCAL}, 10**12),
    ((0.8, 0.5, 0.45), None, 0.05, {**TOP_TWO, **NONE}, 10**12),
    ((0.5, 0.49, 0.4), 1.0, 0.1, {"zeta": 0.1, **TOP_TWO}, 10**12),
    ((0.6, 0.59, 0.6), 0.1, 0.1, {"zeta": 0.01, **TOP_TWO}, 9999),
]


def generator(*seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def child(seed: int, run: int) -> np.random.Generator:
    """The generator the engine gives to a run."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))


def ledgers(seed: int) -> Floats:
    """Own and rival rows of plausible size."""
    rng = generator(seed)
    rows = np.zeros((2, OCTAVES, 3))
    for i in range(OCTAVES):
        pulls = rng.integers(0, 400, 2) * rng.integers(0, 2, 2)
        rows[:, i, PULLS], rows[:, i, RELEASES] = pulls, np.minimum(pulls, 6)
        rows[:, i, SUM] = rng.binomial(pulls, rng.random(2)) + np.rint(rng.laplace(0, 3, 2))
    return rows


# --- the same runs three ways ---------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("means", "epsilon", "delta", "options", "cap"), CELLS)
def test_engine_plain_python_and_oracle_agree(
    means: tuple[float, ...], epsilon: float | None, delta: float, options: dict[str, Any], cap: int
) -> None:
    strategy, instance = bet_se(delta, epsilon, **options), Bernoulli(means)
    fast = simulate(instance, strategy, 3, 7, cap)
    rules, laws = betting_rules(strategy, len(means)), bernoulli(np.array(means))
    for i in range(3):
        found = fast.samples[i], fast.recommendation[i], fast.stopped[i], fast.rounds[i]
        pulls = np.zeros(len(means), np.int64)
        trace = np.zeros((3, 4 + len(means)))
        plain = play.run_betting(child(7, i), laws.mean, rules, cap, pulls, trace)
        slow = NaiveBetting(means, epsilon, delta, **options).run(child(7, i), cap)
        assert found == plain == slow[:4]
        assert fast.pulls[i].tolist() == pulls.tolist() == slow[4]
        assert pulls.sum() == fast.samples[i] <= cap
        assert trace[0, 0] == min(rules.setting.first, cap // len(means)) * len(means)


def test_the_compiled_run_traces_like_the_plain_one() -> None:
    rules, laws = betting_rules(bet_se(0.1, 1.0), 3), bernoulli(np.array([0.6, 0.5, 0.5]))
    traces = [np.zeros((5, 7)), np.zeros((5, 7))]
    for run, trace in zip((compiled(play.run_betting), play.run_betting), traces, strict=True):
        run(child(3, 0), laws.mean, rules, 10**12, np.zeros(3, np.int64), trace)
    assert np.array_equal(traces[0], traces[1])
    assert traces[0][:, 3].tolist() == [1, 2, 3, 4, 5]


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
        found = noise_price(np.array(share * epsilon), epsilon)
        assert float(found) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


def test_stakes_add_up() -> None:
    for epsilon in (1e-6, 0.01, 1.0, 5.0, 1000.0):
        for trust in ("global", "local", "none"):
            bets = make_bets(epsilon, trust)
            assert np.exp(bets.stake).sum() == pytest.approx(1, abs=1e-12)
            assert (np.diff(bets.tilt) < 0).all()
            assert trust != "global" or bets.tilt[0] < epsilon
    assert 2 * evidence.ALONE + evidence.TOGETHER == 1


@pytest.mark.parametrize("grid", [1, 4])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_a_round_wins_nothing_on_average(grid: int, epsilon: float) -> None:
    """E[down] and E[up], summed over every outcome and noise: 1 at the mean, less on
    the null's side, more beyond.
    """
    bets, pulls, mean = make_bets(epsilon, grid=grid), 7, 0.3
    unit = epsilon / grid
    noise = np.arange(-int(400 / unit), int(400 / unit) + 1)  # tail below 1e-30 at tilt 0.8 epsilon
    for octave, j in ((0, 0), (0, 3), (1, 0), (2, 1)):
        for sign, null, beyond in ((-1.0, 0.2, 0.4), (1.0, 0.4, 0.2)):
            means = []
            for x in (null, mean, beyond):
                expected = 0.0
                for s in range(pulls + 1):
                    rows = np.zeros((OCTAVES, 3))
                    rows[octave] = s, pulls, 1
                    base = evidence.side(x, rows, j, sign, bets)[0]
                    tilt = sign * bets.tilt[j] / 2**octave
                    series = np.exp(tilt * noise / grid - unit * np.abs(noise)).sum() * math.tanh(
                        unit / 2
                    )
                    expected += binom.pmf(s, pulls, mean) * math.exp(base) * series
                means.append(expected)
            assert means[0] < 1 < means[2]
            assert means[1] == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("top_two", [False, True])
def test_money_against_the_best_arm_has_mean_at_most_one(top_two: bool) -> None:
    """E_1(mu_1) after five rounds, with the announcements, octaves and sleep of the
    program itself, over 2000 plays.

    False alarm: compared with 1 + 5 standard errors (3e-7). Compiled, which makes the
    same decisions.
    """
    means, rng, money = (0.5, 0.5, 0.45, 0.45), generator(11), []
    settle, plan, draw = compiled(betting.settle), compiled(betting.plan), compiled(play.draw_round)
    announce, log_money = compiled(betting.announce), compiled(evidence.log_evidence)
    bets, setting = make_bets(0.5), make_setting(4, 0.5, 1e-9, top_two=top_two)
    for _ in range(2000):
        book, n, length = betting.new_book(4), 0, 9
        for rounds in range(5):
            now = announce(rounds, n, 0, length, 10**12, book)
            draw(rng, np.array(means), now, setting, book)
            n += length
            settle(now, n, bets, setting, book)
            length = min(plan(n, setting, book), 30)
        log = log_money(0.5, book.own[0], book.rival[0], 0.0, bets.tilt.size, bets)[0]
        money.append(math.exp(log))
    assert np.mean(money) <= 1 + 5 * np.std(money) / math.sqrt(len(money))


@pytest.mark.parametrize("seed", range(6))
def test_infimum_is_the_smallest_value(seed: int) -> None:
    rows = ledgers(seed)
    bets = make_bets((0.05, 1.0, 10.0)[seed % 3])
    for zeta in (0.0, 0.1):
        lower, upper = evidence.infimum(
            0.5, zeta, 1.0, rows[0], rows[1], zeta, 20, bets, math.nan, 1e-9
        )
        values = [
            evidence.log_evidence(x, rows[0], rows[1], zeta, 20, bets)[0]
            for x in np.linspace(zeta, 1, 401).tolist()
        ]
        assert lower <= min(values) + 1e-9
        assert upper - lower <= 1e-9
        assert min(values) - upper <= 4e-3 * max(1.0, float(np.ptp(values)))
        assert (np.diff(values, 2) >= -1e-7).all()


@pytest.mark.parametrize("seed", range(4))
def test_slope_and_curvature(seed: int) -> None:
    rows, bets, h = ledgers(seed), make_bets(1.0), 1e-5
    v = [evidence.log_evidence(0.4 + d, rows[0], rows[1], 0.05, 20, bets) for d in (-h, 0, h)]
    assert v[1][1] == pytest.approx((v[2][0] - v[0][0]) / (2 * h), rel=1e-5, abs=1e-5)
    assert v[1][2] == pytest.approx((v[2][1] - v[0][1]) / (2 * h), rel=1e-4, abs=1e-3)


def test_no_smallest_gap() -> None:
    """Expected sums, gap 1e-5: the arm goes out at some count."""
    bets, setting, log2n = make_bets(1.0), make_setting(2, 1.0, 0.01), 0
    for log2n in range(20, 60):
        n, rows = 2.0**log2n, np.zeros((2, OCTAVES, 3))
        rows[:, 0] = [[0.5 * n, n, log2n], [0.50001 * n, n, log2n]]
        if evidence.log_p_value(rows[0], rows[1], n, bets, setting) <= math.log(0.01):
            break
    assert 30 <= log2n <= 40


# --- the plan -------------------------------------------------------------------------


def test_an_arm_that_is_out_wakes_up() -> None:
    """After 32 times its pulls if it just went out, later with more money against it;
    everyone if everyone is out.
    """
    setting = make_setting(3, 1.0, 0.1)
    book = betting.new_book(3)
    book.total[:] = [[60, 100, 3], [5000, 10000, 9], [5000, 10000, 9]]
    book.out[0], book.money[0] = True, setting.target
    betting.who_plays(10_000, setting, book)
    assert book.active.all()
    betting.who_plays(3_000, setting, book)
    assert book.active.tolist() == [False, True, True]
    book.out[:], book.money[:] = True, 900.0
    betting.who_plays(10_000, setting, book)
    assert book.active.all()


def test_top_two_pairs() -> None:
    """Leader and closest rival; before that the overdue, the least pulled first; out
    arms only when they overslept.
    """
    setting = make_setting(4, 1.0, 0.1, top_two=True)
    book = betting.new_book(4)
    book.total[:] = [[700, 1000, 1], [600, 1000, 1], [650, 1000, 1], [100, 1000, 1]]
    assert betting.pair_up(1000, setting, book) == 2
    assert book.active.tolist() == [True, False, True, False]
    assert betting.pair_up(8001, setting, book) == 1
    book.out[2], book.money[2] = True, setting.target + 50
    assert betting.pair_up(1000, setting, book) == 1
    book.total[3] = [10, 100, 1]
    assert betting.pair_up(1000, setting, book) == 3
    book.out[:] = True
    assert betting.pair_up(1000, setting, book) == 3
    assert betting.front_runner(book) == 0


@pytest.mark.parametrize("options", [{}, LOCAL, NONE, TOP_TWO])
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


# --- guarantees that can fail ---------------------------------------------------------


def alarm(count: int, runs: int, bound: float) -> bool:
    """More than the bound would ever allow: a sound program gets here once in a million
    tests.
    """
    return bool(binom.sf(count - 1, runs, bound) < 1e-6)


def stopped_ties(
    bets: Bets, setting: Setting, cap: int, player: Any = None, bound: float | None = None
) -> bool:
    """Alarm over runs of two tied arms: both are best, each is out with probability <=
    delta, so 2 delta may stop.
    """
    means, none, runs = np.array([0.5, 0.5]), np.zeros((0, 6)), 1500
    play_run, stops = player or compiled(play.run_betting), 0
    rules, laws = BettingRules(bets, setting), bernoulli(means)
    for i in range(runs):
        stops += play_run(
            generator(99, i), laws.mean, rules, cap, np.zeros(2, np.int64), none
        ).stopped
    return alarm(stops, runs, 2 * math.exp(-setting.target) if bound is None else bound)


@pytest.mark.parametrize("top_two", [False, True])
@pytest.mark.parametrize(("epsilon", "cap"), [(0.01, 10**8), (0.5, 10**6), (10.0, 10**5)])
def test_delta_correct_on_ties(epsilon: float, cap: int, top_two: bool) -> None:
    setting = make_setting(2, epsilon, 0.1, top_two=top_two)
    assert not stopped_ties(make_bets(epsilon), setting, cap)


def test_evidence_times_ten_is_caught() -> None:
    setting = make_setting(2, 0.01, 0.1)
    setting = setting._replace(target=setting.target - math.log(10))
    assert stopped_ties(make_bets(0.01), setting, 10**8, bound=0.2)


def test_noise_left_out_of_the_price_is_caught() -> None:
    bets = make_bets(0.01)
    assert stopped_ties(bets._replace(price=0 * bets.price), make_setting(2, 0.01, 0.1), 10**8)


@leaf(allocates=True)
def wrong_judge(n: int, bets: Bets, setting: Setting, book: Book) -> None:
    """Planted mistake: the evidence at the empirical mean instead of its infimum."""
    count = felt(bets, n)
    for a in range(book.active.size):
        if book.active[a]:
            x = mean_of(a, book.total, setting)
            money, _, _ = log_evidence(x, book.own[a], book.rival[a], 0.0, count, bets)
            book.money[a] = money
            book.out[a] = money >= setting.target


@pytest.mark.slow
def test_infimum_at_the_empirical_mean_only_is_caught() -> None:
    wrong = Compiler({betting.judge: wrong_judge}).compiled(play.run_betting)
    for delta in (0.01, 0.03):
        assert stopped_ties(make_bets(10.0), make_setting(2, 10.0, delta), 10**5, wrong)
        assert not stopped_ties(make_bets(10.0), make_setting(2, 10.0, delta), 10**4)


@pytest.mark.parametrize("options", [{}, TOP_TWO, LOCAL])
@pytest.mark.parametrize(
    ("means", "epsilon"),
    [
        ((0.52, 0.5), 0.05),
        ((0.52, 0.5), 10.0),
        ((0.6, 0.5, 0.5), 1.0),
        ((0.6, 0.4, 0.4, 0.4, 0.2), 0.1),
    ],
)
def test_errors_stay_within_delta(
    means: tuple[float, ...], epsilon: float, options: dict[str, Any]
) -> None:
    """500 runs at delta = 0.1; all stop; false alarm below 1e-6."""
    results = simulate(Bernoulli(means), bet_se(0.1, epsilon, **options), 500, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 500, 0.1)


@pytest.mark.parametrize("options", [{}, TOP_TWO])
def test_errors_stay_within_delta_with_many_arms(options: dict[str, Any]) -> None:
    """K = 20, 200 runs at delta = 0.1; false alarm below 1e-6."""
    results = simulate(Bernoulli([0.6] + [0.5] * 19), bet_se(0.1, 1.0, **options), 200, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 200, 0.1)


@pytest.mark.parametrize("options", [{}, TOP_TWO, LOCAL])
def test_zeta_stops_near_ties_within_zeta(options: dict[str, Any]) -> None:
    """The chain .5, .45, .40 with zeta = .06: arm 2 is .1 below the best. False alarm
    below 1e-6.
    """
    results = simulate(Bernoulli([0.5, 0.45, 0.40]), bet_se(0.1, 1.0, zeta=0.06, **options), 400, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 400, 0.1)
    assert np.array_equal(results.correct, results.recommendation < 2)
    ties = simulate(Bernoulli([0.5, 0.5, 0.5]), bet_se(0.1, 1.0, zeta=0.05, **options), 100, 3)
    assert ties.unstopped == ties.errors == 0


def missed_intervals(trust: str, bets: Bets) -> int:
    """Of 40 arms looked at six times each at level 0.9: how many intervals miss the
    mean at some look.
    """
    missed, rng, setting = 0, generator(21), make_setting(2, 1.0, 0.1, trust)
    for _ in range(40):
        total, ever = np.zeros(3), False
        for k in range(6):
            total += play.draw_release(rng, 4 * 3**k, 0.3, setting), 4 * 3**k, 1
            low, high = evidence.interval(total, 0.1, bets, setting)
            assert -1e-12 <= low <= high <= 1 + 1e-12
            ever |= not low <= 0.3 <= high
        missed += ever
        assert high - low < 0.2 / setting.scale
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["global", "local"])
def test_intervals_cover_at_all_times(trust: str) -> None:
    """False alarm below 1e-6."""
    assert not alarm(missed_intervals(trust, make_bets(1.0, trust)), 40, 0.1)


@pytest.mark.slow
def test_intervals_from_too_much_money_are_caught() -> None:
    bets = make_bets(1.0)
    assert alarm(
        missed_intervals("global", bets._replace(stake=bets.stake + math.log(20))), 40, 0.1
    )


def test_p_values_are_valid_at_all_times() -> None:
    """The running minimum of a best arm's p-value: P(p <= u) <= u. 150 plays of 6
    rounds, false alarm below 1e-6.
    """
    rng, smallest = generator(5), []
    bets, setting = make_bets(1.0), make_setting(2, 1.0, 0.01)
    for _ in range(150):
        rows, log_p, n = np.zeros((2, OCTAVES, 3)), 0.0, 0
        for k in range(6):
            n += 10 * (k + 1)
            for side in range(2):
                rows[side, 0] += play.draw_release(rng, 10 * (k + 1), 0.5, setting), 10 * (k + 1), 1
            log_p = min(log_p, evidence.log_p_value(rows[0], rows[1], n, bets, setting))
        smallest.append(log_p)
    for u in (0.1, 0.3, 0.5):
        assert not alarm(int((np.array(smallest) <= math.log(u)).sum()), 150, u)


def test_p_value_is_the_level_of_going_out() -> None:
    rows, bets = ledgers(4), make_bets(1.0)
    rows[0, :, SUM], rows[1, :, SUM] = 0.3 * rows[0, :, PULLS], 0.6 * rows[1, :, PULLS]
    log_p = evidence.log_p_value(rows[0], rows[1], 1000, bets, make_setting(2, 1.0, 0.1))
    assert log_p < -1
    for shift, is_out in ((1e-4, True), (-1e-4, False)):
        target = -(log_p + shift)
        count = evidence.felt(bets, 1000)
        lower, _ = evidence.infimum(0.5, 0.0, 1.0, rows[0], rows[1], 0.0, count, bets, target, 0.0)
        assert (lower >= target) == is_out


# --- the strategy ---------------------------------------------------------------------


def test_words_and_json() -> None:
    for strategy in (
        bet_se(0.1, 1.0),
        bet_se(0.1, 0.5, "local", 0.05),
        bet_se(0.1, trust="none", sampling="top-two"),
    ):
        assert Strategy.from_json(strategy.to_json()) == strategy
        assert strategy.proved
        assert "Betting elimination" in strategy.reference
    assert bet_se(0.1, 1.0).privacy == "1-global DP: every release is noised"
    assert (
        bet_se(0.1, 1.0, "local").privacy
        == "1-local DP: every answer is randomised before it is sent"
    )
    assert bet_se(0.1, trust="none").privacy.startswith("none")
    assert "probability at most 0.1" in bet_se(0.1, 1.0).correctness
    assert "more than 0.05 below the best" in bet_se(0.1, 1.0, zeta=0.05).correctness
    assert bet_se(0.1, 1.0).with_(trust="local", delta=0.2) == bet_se(0.2, 1.0, "local")


def test_the_trust_of_the_others_follows_from_the_estimator() -> None:
    assert (ttucb(0.1).trust, ctb_tt(1.0, 0.1).trust) == ("none", "local")
    assert Strategy(name="mine", estimator="ctb", delta=0.1, epsilon=1.0).trust == "local"
    assert Strategy.from_dict({"name": "ttucb", "estimator": "mle", "delta": 0.1}) == ttucb(0.1)
    with pytest.raises(InvalidInputError, match="only bet-se has a choice"):
        ttucb(0.1).with_(trust="global")
    with pytest.raises(InvalidInputError, match="a part of bet-se only"):
        ttucb(0.1).with_(zeta=0.1)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "say how private.*trust='none'"),
        ({"trust": "local"}, "say how private"),
        ({"trust": "none", "epsilon": 1.0}, "no privacy: leave epsilon out"),
        ({"trust": "everyone", "epsilon": 1.0}, "trust must be one of global, local, none"),
        ({"trust": "", "epsilon": 1.0}, "trust must be one of"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 1.0, "zeta": 1.0}, r"zeta must lie in \[0, 1\)"),
        ({"epsilon": 1.0, "zeta": -0.1}, "zeta must lie"),
        ({"epsilon": 1.0, "zeta": math.nan}, "zeta must lie"),
        ({"epsilon": 1.0, "threshold": "printed"}, "one threshold, 1/δ"),
        ({"epsilon": 1.0, "threshold": "empirical"}, "one threshold, 1/δ"),
        ({"epsilon": 1.0, "sampling": "lucb"}, "by elimination or top-two"),
        ({"epsilon": 1.0, "sampling": "top-two", "beta": 0.3}, "takes no beta"),
        ({"epsilon": 1.0, "episodes": "global"}, "phased"),
        ({"epsilon": 1.0, "gamma": 0.1}, "no option 'gamma'"),
        ({"epsilon": 1.0, "cost": "private"}, "no option 'cost'"),
    ],
)
def test_refusals(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        bet_se(0.1, **parts)


def test_ties_are_refused_without_zeta() -> None:
    with pytest.raises(TiedBestArmError):
        simulate(Bernoulli([0.5, 0.5]), bet_se(0.1, 1.0), 1)


def test_recommended() -> None:
    assert recommended(1.0, 0.01).strategy == bet_se(0.01, 1.0)
    assert recommended(1.0, 0.01, "local").strategy == bet_se(0.01, 1.0, "local")
    assert recommended(delta=0.01).strategy == bet_se(0.01, trust="none")
    assert "fewer samples than dp-se" in recommended(1.0).reason
    with pytest.raises(InvalidInputError, match="say how private"):
        recommended(trust="local")


def test_the_command_line() -> None:
    arguments = ["simulate", "--strategy", "bet-se", "--runs", "20", "--json"]
    means = ["--means", "0.5,0.5,0.4", "--zeta", "0.1"]
    result = CliRunner().invoke(
        main, [*arguments, *means, "--epsilon", "1", "--trust", "local", "--sampling", "top-two"]
    )
    found = json.loads(result.stdout)
    assert (found["strategy"], found["trust"], found["errors"], found["unstopped"]) == (
        "bet-se",
        "local",
        0,
        0,
    )
    assert found["spec"]["strategy"]["zeta"] == 0.1
    assert "more than 0.1 below the best" in found["correctness"]
    free = CliRunner().invoke(main, [*arguments, "--instance", "mu5", "--trust", "none"])
    assert json.loads(free.stdout)["epsilon"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say how private, with --epsilon"),
        (["--epsilon", "1", "--trust", "none"], "takes no --epsilon"),
        (["--epsilon", "1", "--trust", "all"], "trust must be one of"),
        (["--epsilon", "1", "--zeta", "2"], "zeta must lie"),
        (["--epsilon", "1", "--threshold", "empirical"], "one threshold"),
        (
            ["--epsilon", "1", "--strategy", "dp-se", "--trust", "global"],
            "dp-se has no option 'trust'",
        ),
    ],
)
def test_the_command_line_refuses(options: list[str], words: str) -> None:
    result = CliRunner().invoke(
        main, ["simulate", "--means", "0.6,0.5", "--strategy", "bet-se", *options]
    )
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
