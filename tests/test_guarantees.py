"""What is promised, tested so that a broken promise is seen.

Every test states its false-alarm rate: the probability, over seeds, that it fails although the promise holds. The
seeds are fixed, so a test that passes passes always.
"""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

import discreet
from discreet import Bernoulli, Strategy, benchmarks, divergence, rules, simulate, theory, threshold
from discreet.strategy import CustomThreshold
from tests.reference import ASSETS

FALSE_ALARM = 1e-6
RUNS = 100
HARD = {"two close arms": [0.53, 0.5], "three": [0.6, 0.5, 0.45], "near one": [0.99, 0.93, 0.9, 0.85]}
PROVED: dict[str, Any] = {
    "ttucb": discreet.ttucb,
    "ttucb ids": lambda delta: discreet.ttucb(delta, beta="ids"),
    "ttucb lucb": lambda delta: discreet.ttucb(delta, sampling="lucb"),
    "ttucb-batched": discreet.ttucb_batched,
    "ctb-tt": lambda delta: discreet.ctb_tt(2, delta),
    "gauss-tt": lambda delta: discreet.gauss_tt(0.9, 0.05, delta),
    "adap-tt": lambda delta: discreet.adap_tt(1, delta),
    "adap-tt uniform": lambda delta: discreet.adap_tt(1, delta, sampling="uniform"),
    "adap-tt-star": lambda delta: discreet.adap_tt_star(0.1, delta),
    "adap-tt-star printed": lambda delta: discreet.adap_tt_star(1, delta, threshold="printed"),
    "adap-tt-star elimination": lambda delta: discreet.adap_tt_star(1, delta, sampling="elimination"),
    "dp-se": lambda delta: discreet.dp_se(1, delta),
}


def too_many(runs: int, delta: float) -> int:
    """The least number of errors in so many runs that a δ-correct strategy reaches with probability ≤ FALSE_ALARM."""
    return int(binom.isf(FALSE_ALARM, runs, delta)) + 1


@pytest.mark.parametrize("delta", [0.1, 0.01])
@pytest.mark.parametrize("name", PROVED)
def test_error_rates(name: str, delta: float) -> None:
    """False-alarm rate at most 1e-6 for each of the 72 cells."""
    for means in HARD.values():
        results = simulate(Bernoulli(means), PROVED[name](delta), runs=RUNS, seed=17, max_samples=10**7)
        assert results.errors < too_many(RUNS, delta)


@pytest.mark.parametrize("divisor", [20, 4])
def test_a_threshold_too_small_is_seen(divisor: int) -> None:
    """The same test fails for c^G divided by 20 (the rate is then about a third); divided by 4 it still errs less."""

    constant = 2 * float(threshold.c_g(math.log(1 / 0.1) / 2))

    def too_small(count: float) -> float:
        return (constant / 2 + 2 * math.log(4 + math.log(count))) / divisor

    strategy = discreet.ttucb(0.1, threshold=CustomThreshold("too small", too_small))
    errors = simulate(Bernoulli([0.52, 0.5]), strategy, runs=200, seed=17).errors
    assert (errors >= too_many(200, 0.1)) == (divisor == 20)


def test_the_printed_sigma_of_the_gaussian_variant_would_be_seen() -> None:
    """With σ = 1/2 in W^G instead of that of the noisy reward, three times δ of the runs err (δ = 0.01)."""
    honest = discreet.gauss_tt(0.9, 0.05, 0.01)
    noisy = threshold.noisy_sigma(rules.noise_scale(honest))
    constant = 2 * float(threshold.c_g(math.log(1 / 0.01) / 2))
    shrunk = CustomThreshold("printed σ", lambda n: (constant / 2 + 2 * math.log(4 + math.log(n))) * (0.5 / noisy) ** 2)
    instance = Bernoulli([0.9, 0.1])
    assert simulate(instance, honest, runs=2000, seed=1).errors < too_many(2000, 0.01)
    assert simulate(instance, honest.with_(threshold=shrunk), runs=2000, seed=1).errors >= too_many(2000, 0.01)


@pytest.mark.parametrize("epsilon", [0.8, 3.0])
def test_ctb_tt_is_ttucb_on_randomised_responses(epsilon: float) -> None:
    """Samples have the same law (two-sample Kolmogorov–Smirnov; false-alarm rate 1e-6)."""
    instance = benchmarks.mu5
    responses = Bernoulli(divergence.randomised_mean(instance.means, epsilon))
    private = simulate(instance, discreet.ctb_tt(epsilon, 0.05), runs=1500, seed=5)
    plain = simulate(responses, discreet.ttucb(0.05), runs=1500, seed=6)
    assert ks_2samp(private.samples, plain.samples).pvalue > FALSE_ALARM
    assert ks_2samp(private.samples, 1.1 * plain.samples).pvalue < FALSE_ALARM  # a tenth more would be seen


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ["adap-tt", "adap-tt-star"])
def test_samples_between_the_bounds(name: str, epsilon: float) -> None:
    """At δ = 1e-90 the mean lies between the lower bound and the theorem's constant.

    The theorem is about δ → 0, and one cell shows it: AdaP-TT at ε = 10 is still 0.2 % above its constant here (1 % at
    δ = 1e-60), by terms that vanish. It alone is given 1 %; standard errors are below 1 %.
    """
    instance, delta = benchmarks.mu4, 1e-90
    strategy = {"adap-tt": discreet.adap_tt, "adap-tt-star": discreet.adap_tt_star}[name](epsilon, delta)
    constant = {
        "adap-tt": theory.upper_constant_adap_tt(instance, epsilon),
        "adap-tt-star": theory.upper_constant_adap_tt_star(instance, epsilon, proved=True),
    }[name]
    results = simulate(instance, strategy, runs=100, seed=2)
    mean = results.samples[results.stopped].mean()
    assert results.errors == 0
    slack = 1.01 if (name, epsilon) == ("adap-tt", 10.0) else 1.0
    least = theory.lower_bound(theory.t_epsilon(instance, epsilon), delta)
    assert least < mean < slack * constant * math.log(1 / delta)


REFERENCE = json.loads((ASSETS / "fewest-samples.json").read_text())["rows"]


@pytest.mark.parametrize("row", [row for row in REFERENCE if row["instance"] in ("mu3", "mu4", "mu5")])
def test_an_independent_simulation_agrees(row: dict[str, Any]) -> None:
    """Means of DP-SE and medians of AdaP-TT*, from 100 to 200 runs elsewhere: within four of their standard errors.

    With a relative standard error of 5 % there and 3 % here, the false-alarm rate is about 1e-4 for each number.
    """
    instance, epsilon = benchmarks[row["instance"]], row["epsilon"]
    baseline = simulate(instance, discreet.dp_se(epsilon, 0.01), runs=400, seed=1)
    star = simulate(instance, discreet.adap_tt_star(epsilon, 0.01), runs=400, seed=1)
    assert baseline.samples.mean() == pytest.approx(row["DP-SE"], rel=0.2)
    assert np.median(star.samples) == pytest.approx(row["AdaP-TT*-combined median"], rel=0.25)


def test_the_combined_threshold_needs_fewer_samples_than_the_printed_one() -> None:
    """On mu5 at δ = 0.01 and ε = 1: 21 669 → 8 221 samples, within 5 standard errors (false-alarm rate 1e-6)."""
    for mode, expected in (("printed", 21_669), ("proved", 8_221)):
        strategy = discreet.adap_tt_star(1.0, 0.01, threshold=mode)
        summary = simulate(benchmarks.mu5, strategy, runs=2000, seed=1).summary()
        assert abs(summary["mean"] - expected) < 5 * math.hypot(summary["sem"], 0.01 * expected)


def test_empirical_thresholds_say_that_they_promise_nothing() -> None:
    """Shown, not asserted to err: the measured error rates stand in the docs."""
    for strategy in (discreet.ttucb(0.1, threshold="empirical"), discreet.adap_tt(1, 0.1, threshold="empirical")):
        assert isinstance(strategy, Strategy)
        assert "no guarantee" in strategy.correctness


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.5, 10.0])
def test_betting_needs_no_more_samples_than_its_reference_designs(epsilon: float) -> None:
    """At most design C's mean in each cell (four standard errors), and on average nearer to AB than to C."""
    positions = []
    for row in (row for row in REFERENCE if row["epsilon"] == epsilon):
        summary = simulate(benchmarks[row["instance"]], discreet.bet_se(0.01, epsilon), runs=200, seed=3).summary()
        assert summary["unstopped"] == summary["errors"] == 0
        assert summary["mean"] <= row["C"] * 1.2 + 4 * summary["sem"]
        assert summary["mean"] < min(row["DP-SE"], row["AdaP-TT*-combined median"])
        positions.append(math.log(summary["mean"] / row["AB"]) / math.log(row["C"] / row["AB"]))
    assert np.mean(positions) < 0.5
