"""Gaussian noise on sums: what it costs a bet, and that bet-se and adap-tt with it lose
a best arm with probability delta at most. Planted mistakes turn the same checks red.

False alarms: the laws are summed exactly or tested at 1e-6; error rates too.
"""

import json
import math
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import binom, chisquare, norm

import discreet
from discreet import Bernoulli, InvalidInputError, Strategy, adap_tt, bet_se, simulate
from discreet._types import Floats
from discreet.simulation.betting import draw_round
from discreet.simulation.compile import compile_kernel
from discreet.simulation.laws import draw_gaussian, make_bernoulli_laws
from discreet.strategies import units
from discreet.strategies.betting import inference as room
from discreet.strategies.betting import rounds
from discreet.strategies.betting.bets import (
    compute_log_gaussian_tail_constant,
    compute_slopes,
    make_betting_rules,
    price_noise,
)
from discreet.strategies.betting.book import new_book
from discreet.strategies.betting.rounds import COST
from discreet.strategies.phased.state import make_pair_thresholds
from discreet.theory import thresholds
from tests.support.ever_out import Field, runs_with_best_out

GAMMA: dict[str, Any] = {"gamma": 1e-6}
RHO: dict[str, Any] = {"rho": 0.005}


def alarm(found: int, runs: int, bound: float) -> bool:
    """Found more often than the bound allows, at level 1e-6."""
    return bool(binom.sf(found - 1, runs, bound) < 1e-6)


def lost(
    arms: tuple[float, ...],
    epsilon: float | None,
    options: dict[str, Any],
    runs: int,
    player: Any = runs_with_best_out,
) -> int:
    """Runs with δ = 0.1 in which arm 0, best or tied, was ever out."""
    rules = make_betting_rules(bet_se(0.1, epsilon, **options), len(arms))
    rng = np.random.default_rng(crc32(repr((arms, epsilon, options)).encode()))
    return int(player(rng, make_bernoulli_laws(np.array(arms)), Field(), rules, 400_000, runs))


def law(sigma: float) -> tuple[Floats, Floats]:
    """The values of a discrete Gaussian variable and their chances."""
    reach = math.ceil(45 * sigma) + 2
    values = np.arange(-reach, reach + 1.0)
    chances = np.exp(-(values**2) / (2 * sigma**2))
    return values, chances / chances.sum()


def log_moment(slope: float, sigma: float) -> float:
    values, chances = law(sigma)
    logs = slope * values + np.log(np.maximum(chances, 1e-320))
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


# --- the noise ------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.1, 0.35, 0.7, 1.0, 3.0, 40.0])
def test_the_price_is_at_least_the_moment(sigma: float) -> None:
    """For every slope; half of it is not, wherever noise is not all but whole."""
    short = []
    for slope in np.geomspace(0.01, 6, 30) / sigma:
        exact, price = log_moment(slope, sigma), price_noise(slope, 1.0, sigma)
        assert exact <= price * (1 + 1e-12) + 1e-15
        short.append(exact > price / 2)
    assert all(short) == (sigma >= 0.7)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 2.5, 30.0])
def test_noise_is_stochastically_below_a_normal_variable_and_one(sigma: float) -> None:
    """P(Z >= m) <= P(N >= m - 1) for all m; a third in place of 1 would not do."""
    values, chances = law(sigma)
    tail = np.cumsum(chances[::-1])[::-1]
    assert np.all(tail <= norm.sf((values - 1) / sigma) * (1 + 1e-9) + 1e-15)
    assert np.any(tail > norm.sf((values - 1 / 3) / sigma) + 1e-9)


def largest(one: float, other: float, sigma: float) -> float:
    """log sup_u e^u P(one Z + other Z' >= u), by all pairs of values."""
    values, chances = law(sigma)
    kept = chances > 1e-25
    values, chances = values[kept], chances[kept]
    sums = (one * values[:, None] + other * values).ravel()
    both = np.outer(chances, chances).ravel()
    order = np.argsort(-sums)
    return float((sums[order] + np.log(np.cumsum(both[order]))).max())


def test_the_tail_constant_is_enough() -> None:
    """Never below the supremum, of one noise or two, and hardly above it but for the
    step of the lattice, which is what the slopes add.
    """
    rng = np.random.default_rng(7)
    slack = []
    for _ in range(80):
        sigma = math.exp(rng.uniform(math.log(0.4), math.log(25)))
        one = rng.uniform(0.3, 4.5) / sigma
        other = one * rng.choice([0.0, 0.25, 0.7, 1.0])
        exact, found = (
            largest(one, other, sigma),
            compute_log_gaussian_tail_constant(one, other, sigma),
        )
        assert exact <= found + 1e-9
        assert found <= price_noise(one, 1.0, sigma) + price_noise(other, 1.0, sigma) + 1.1e-6
        if sigma > 10 and sigma * math.hypot(one, other) > 1.3:
            slack.append(found - exact - one - other)
    assert len(slack) > 5
    assert max(slack) < 0.05


@pytest.mark.parametrize("sigma", [0.3, 1.7, 12.0])
def test_the_law_that_is_drawn(sigma: float) -> None:
    rng, draws = np.random.default_rng(3), 8000
    values, chances = law(sigma)
    found = np.array([draw_gaussian(rng, sigma) for _ in range(draws)])
    often = np.flatnonzero(chances * draws >= 5)
    low, high = values[often[0]], values[often[-1]]
    inside = [(found == value).sum() for value in values[often]]
    seen = [*inside, (found < low).sum() + (found > high).sum()]
    wanted = [*chances[often], max(1 - chances[often].sum(), 1e-9)]
    if seen[-1] == 0 and wanted[-1] * draws < 1:
        seen, wanted = seen[:-1], wanted[:-1]
    expected = np.array(wanted) / sum(wanted) * sum(seen)
    assert chisquare(seen, expected).pvalue > 1e-6


# --- bet-se ---------------------------------------------------------------------------

WAYS: list[tuple[float | None, dict[str, Any]]] = [
    (0.05, GAMMA),
    (1.0, GAMMA),
    (None, RHO),
    (0.1, {**GAMMA, "target_difference": 0.1}),
    (0.2, {**GAMMA, "indifference_zone": 0.05}),
]


@pytest.mark.slow
@pytest.mark.parametrize("arms", [(0.5, 0.5), (0.95, 0.95), (0.5,) * 4, (0.51, 0.5, 0.5)])
def test_a_best_arm_is_lost_with_probability_delta_at_most(arms: tuple[float, ...]) -> None:
    play = compile_kernel(runs_with_best_out)
    for epsilon, options in WAYS:
        found = lost(arms, epsilon, options, 200, play)
        assert not alarm(found, 200, 0.1)


@pytest.mark.parametrize(
    ("means", "levels"),
    [((0.55, 0.45), GAMMA), ((0.6, 0.5, 0.3), GAMMA), ((0.7, 0.5, 0.5, 0.2), RHO)],
)
@pytest.mark.parametrize("options", [{}, {"indifference_zone": 0.02}])
def test_runs_stop_and_err_within_delta(
    means: tuple[float, ...], levels: dict[str, Any], options: dict[str, Any]
) -> None:
    level: dict[str, Any] = {"epsilon": 0.5} if "gamma" in levels else {}
    results = simulate(Bernoulli(means), bet_se(0.1, **level, **levels, **options), 200, 3)
    assert results.unstopped == 0
    assert not alarm(results.errors, 200, 0.1)


def priced(slope: float, sigma: float) -> float:
    return price_noise(slope, 1.0, sigma)


def money_ever(price: Any, delta: float) -> float:
    """How often moment bets on one of two tied arms ever win 1/delta, in forty rounds
    of four people each: nearly all is noise.
    """
    rules, rng = (
        make_betting_rules(bet_se(delta, epsilon=1.0, **GAMMA), 2),
        np.random.default_rng(2),
    )
    tilts, runs, sigma = rules.bets.tilt, 4000, rules.setting.sigma
    scores = [compute_slopes(x, 0.5, 1.0) for x in tilts]
    own, count = (np.array([getattr(one, key) for one in scores]) for key in ("own", "own_count"))
    rival, other = (
        np.array([getattr(one, key) for one in scores]) for key in ("rival", "rival_count")
    )
    cost = np.array([price(one.own, sigma) + price(one.rival, sigma) for one in scores])
    values, chances = law(sigma)
    wealth, ever = np.zeros((runs, tilts.size)), np.zeros(runs, np.bool_)
    for _ in range(40):
        people = rng.binomial(4, 0.5, runs)
        sums = [
            rng.binomial(n, 0.5) + rng.choice(values, runs, p=chances) for n in (people, 4 - people)
        ]
        wealth += np.outer(-sums[0], own) + np.outer(people, count) - cost
        wealth += np.outer(sums[1], rival) + np.outer(4 - people, other)
        ever |= np.exp(wealth + rules.bets.stake).sum(axis=1) >= 1 / delta
    return float(ever.mean())


def test_half_the_variance_in_the_price_is_caught() -> None:
    """4000 runs each; δ is exceeded by six standard errors, and else not."""
    for delta in (0.1, 0.02):
        limit = delta + 6 * math.sqrt(delta / 4000)
        assert money_ever(priced, delta) <= limit
        assert money_ever(lambda *noise: priced(*noise) / 2, delta) > limit


def unpaid(strategy: Strategy, means: tuple[float, ...]) -> float:
    """By how much a bet of a run pays too little for its noise, at most: moment bets
    less than the moment, tail bets less than the supremum of `largest`.
    """
    rules, laws = make_betting_rules(strategy, len(means)), make_bernoulli_laws(np.array(means))
    rng, pulls = np.random.default_rng(4), np.zeros(len(means), np.int64)
    book, most = new_book(len(means), rules.bets.tilt.size), -math.inf
    now = rounds.announce_first(rules.setting, 10**6, book)
    while now.winner < 0 and now.number < 6:
        one = 0.0 if now.difference else 1.0
        table = np.zeros((2, 1 if now.by_tails else 6, COST + 3))
        rounds.fill_scores(table, now, rules.bets, rules.setting)
        for own, _, rival, _, _, cost, _, _ in table[: 1 if now.odds == 1 else 2].reshape(-1, 8):
            exact = log_moment(own, rules.setting.sigma)
            exact += log_moment(one * rival, rules.setting.sigma)
            if now.by_tails:
                exact = largest(own, one * rival, rules.setting.sigma)
            most = max(most, exact - cost)
        draw_round(rng, laws, now, rules.setting, pulls, book)
        now, book = rounds.settle_and_announce(now, rules.bets, rules.setting, 10**6, book)
    return most


@pytest.mark.parametrize("means", [(0.55, 0.5), (0.6, 0.5, 0.2)])
def test_every_bet_of_a_run_pays_for_its_noise(
    monkeypatch: pytest.MonkeyPatch, means: tuple[float, ...]
) -> None:
    strategy = bet_se(0.1, epsilon=1.0, **GAMMA)
    assert unpaid(strategy, means) <= 1e-12
    monkeypatch.setattr(rounds, "price_noise", lambda *noise: price_noise(*noise) / 2)
    assert unpaid(strategy, means) > 0.1
    monkeypatch.undo()
    tail = compute_log_gaussian_tail_constant
    monkeypatch.setattr(
        rounds, "compute_log_gaussian_tail_constant", lambda *noise: tail(*noise) - 2
    )
    assert unpaid(strategy, means) > 0.1


@pytest.mark.slow
def test_a_tail_constant_a_nat_and_a_half_too_small_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not alarm(lost((0.5, 0.5), 0.05, GAMMA, 300), 300, 0.1)
    tail = compute_log_gaussian_tail_constant
    monkeypatch.setattr(
        rounds, "compute_log_gaussian_tail_constant", lambda *noise: tail(*noise) - 1.5
    )
    assert alarm(lost((0.5, 0.5), 0.05, GAMMA, 300), 300, 0.1)


def test_intervals_pay_for_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small releases, all noise: one bit of mean 1/2 each."""
    rules = make_betting_rules(bet_se(0.1, epsilon=1.0, **GAMMA), 2)

    def misses() -> int:
        rng, found = np.random.default_rng(5), 0
        for _ in range(40):
            total, ever = np.zeros(4), False
            for _ in range(12):
                noise = draw_gaussian(rng, rules.setting.sigma)
                total[:3] += rng.integers(2) + noise, 1, 1
                low, high = room.compute_interval(total, 0.1, rules.bets, rules.setting)
                ever |= not low <= 0.5 <= high
            found += ever
        return found

    assert not alarm(misses(), 40, 0.1)
    monkeypatch.setattr(room, "price_noise", lambda slope, epsilon, sigma: 0.0)
    assert alarm(misses(), 40, 0.1)


# --- adap-tt --------------------------------------------------------------------------


def test_the_threshold_of_adap_tt_is_a_union_over_phases() -> None:
    """The chance that one pair of arms ever passes by noise alone, summed over all
    phases with the exact normal tail, is at most its share of δ.
    """
    for arms, delta, sigma in ((2, 0.1, 0.5), (5, 0.01, 40.0), (3, 1e-6, 4.5)):
        counts = 2.0 ** np.arange(60)
        a, b = np.meshgrid(counts, counts)
        level = thresholds.c_concentrated(a, b, arms, delta, sigma)
        variance = 0.25 / a + (sigma / a) ** 2 + 0.25 / b + (sigma / b) ** 2
        gap = np.sqrt(level * (1 / a + 1 / b) / 2)  # W^G at the threshold, σ = 1/2
        bound = np.exp(-(gap**2) / (2 * variance))
        assert bound.sum() <= delta / (arms - 1)
        assert norm.sf(gap / np.sqrt(variance)).sum() <= bound.sum()
        without = thresholds.c_concentrated(a, b, arms, delta, 1e-9)
        gap = np.sqrt(without * (1 / a + 1 / b) / 2)
        assert sigma < 1 or norm.sf(gap / np.sqrt(variance)).sum() > delta


def test_adap_tt_with_gaussian_noise_errs_within_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """On arms that are all but tied; a threshold that forgets the noise is caught."""
    strategy, arms = adap_tt(0.1, 0.1, gamma=1e-6), Bernoulli([0.5001, 0.5])

    def wrong() -> int:
        found = simulate(arms, strategy, 200, 5, max_samples=4000)
        return int((found.stopped & ~found.correct).sum())

    assert not alarm(wrong(), 200, 0.1)
    forgets = thresholds.c_concentrated
    monkeypatch.setattr(
        thresholds, "c_concentrated", lambda a, b, k, delta, s: forgets(a, b, k, delta, 1e-9)
    )
    from discreet.strategies.phased import state

    state._make_kept_rules.cache_clear()
    assert alarm(wrong(), 200, 0.1)
    state._make_kept_rules.cache_clear()


@pytest.mark.parametrize("options", [{}, {"sampling": "elimination"}, {"episodes": "global"}])
def test_adap_tt_stops(options: dict[str, Any]) -> None:
    strategy = adap_tt(None, 0.1, rho=0.5, **options)
    results = simulate(Bernoulli([0.9, 0.2]), strategy, 20, 1, max_samples=10**5)
    assert results.stopped.mean() > 0.4
    assert results.errors <= 6


# --- as a strategy --------------------------------------------------------------------


def test_levels_in_words_and_as_data() -> None:
    both, rho = bet_se(0.05, epsilon=1, gamma=1e-6), bet_se(0.05, rho=0.1)
    assert both.privacy == "(1, 1e-06)-global DP: noise is added to every release"
    assert rho.privacy == "0.1-global zCDP: noise is added to every release"
    assert rho.level == ("rho", 0.1)
    assert both.level == ("epsilon", 1.0)
    assert not both.is_pure
    assert not rho.is_pure
    assert bet_se(0.05, 1).is_pure
    for strategy in (both, rho, adap_tt(None, 0.1, rho=1)):
        assert Strategy.from_json(strategy.to_json()) == strategy
        assert strategy.without_privacy() in (None, bet_se(0.05, trust="none"))
    assert json.loads(both.to_json())["rho"] is None
    assert both.describe()["rho"] is None
    assert json.loads(rho.to_json())["rho"] == 0.1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bet_se(0.1, epsilon=1, gamma=1e-6, trust="local"), "with a trusted collector"),
        (lambda: bet_se(0.1, rho=1, trust="none"), "with a trusted collector"),
        (lambda: bet_se(0.1, rho=1, epsilon=1), "give either rho"),
        (lambda: bet_se(0.1, rho=1, gamma=1e-6), "give either rho"),
        (lambda: bet_se(0.1, gamma=1e-6), "say how private"),
        (lambda: bet_se(0.1, rho=0), "rho must be"),
        (lambda: bet_se(0.1, epsilon=1, gamma=0.5), "gamma in"),
        (lambda: bet_se(0.1, rho=1, outcomes="numbers"), "yes or no"),
        (lambda: adap_tt(1, 0.1, gamma=1e-6, threshold="printed"), "only the proved threshold"),
        (lambda: discreet.adap_tt_star(1, 0.1).with_(gamma=1e-6), "use adap-tt"),
        (lambda: discreet.dp_se(1, 0.1).with_(gamma=1e-6), "gamma belongs to gauss-tt"),
        (lambda: discreet.ctb_tt(1, 0.1).with_(rho=1), "rho, the level"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make()


def test_noise_is_calibrated() -> None:
    """σ = 1/sqrt(2ρ); of (ε, γ) by the best known conversion, here by a search over all
    orders; larger by 1e-9 of itself, not smaller.
    """
    assert units.compute_sum_noise(bet_se(0.1, 1.0)) == 0
    assert units.compute_sum_noise(bet_se(0.1, rho=0.125)) == pytest.approx(2.0, rel=2e-9)
    for epsilon, gamma in ((0.01, 1e-6), (1.0, 1e-9), (8.0, 1e-3)):
        sigma = units.compute_sum_noise(bet_se(0.1, epsilon=epsilon, gamma=gamma))
        rho = 0.5 / sigma**2

        def least(rho: float, epsilon: float = epsilon) -> float:
            order = np.geomspace(1e-6, 1e9, 200_000)  # α - 1
            logs = order * ((order + 1) * rho - epsilon) - np.log(order)
            return float((logs - (order + 1) * np.log1p(1 / order)).min())

        assert least(rho) <= math.log(gamma) + 1e-6 < least(rho * 1.001)
        assert thresholds.zcdp_gamma(rho, epsilon) == pytest.approx(math.exp(least(rho)), 1e-6)
        assert thresholds.zcdp_epsilon(rho, gamma) == pytest.approx(epsilon, rel=1e-7)
    for rho, gamma in ((1e-6, 1e-3), (1e4, 0.01)):
        epsilon = thresholds.zcdp_epsilon(rho, gamma)
        assert thresholds.zcdp_gamma(rho, max(epsilon, 1e-9)) <= gamma
        assert epsilon == 0 or thresholds.zcdp_gamma(rho, 0.999 * epsilon) > gamma
    assert thresholds.zcdp_gamma(1e4, 1.0) == 1


def test_thresholds_are_those_of_the_counts() -> None:
    low, high = make_pair_thresholds(adap_tt(1.0, 0.1, gamma=1e-6), 3)(4, 8)
    assert (
        low
        == high
        == thresholds.c_concentrated(
            4, 8, 3, 0.1, units.compute_sum_noise(adap_tt(1.0, 0.1, gamma=1e-6))
        )
    )
