"""Means and medians on mu3, mu4 and mu5 agree with a simulation of its own
(independent.py), within Monte Carlo error.

What that simulation found is kept in tests/assets/independent.json.

Means: |difference| at most 4.9 standard errors of it (false-alarm rate 1e-6, normal
approximation). Medians: distribution-free intervals from order statistics, each at
level 1 - 5e-7, overlap (1e-6, exact). The whole law: Kolmogorov-Smirnov at 1e-6. With
the mean pulls of the five arms that is 8e-6 for each of the 15 cells.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

import discreet
from discreet import Results, Strategy, benchmarks, simulate
from tests.support import independent
from tests.support.independent import CAP, CELLS, RUNS, Floats
from tests.support.reference import INSTANCES

Z = 4.9
STRATEGIES: dict[str, Strategy] = {
    "ttucb": discreet.ttucb(0.1),
    "ctb-tt": discreet.ctb_tt(2, 0.1),
    "adap-tt": discreet.adap_tt(2, 0.3),
    "adap-tt-star": discreet.adap_tt_star(0.5, 0.3),
    "dp-se": discreet.dp_se(0.5, 0.1),
}


def means_differ(one: Any, other: Any) -> bool:
    """By more than chance explains, in any column."""
    errors = [values.std(axis=0, ddof=1) / math.sqrt(len(values)) for values in (one, other)]
    return bool(np.any(np.abs(one.mean(axis=0) - other.mean(axis=0)) > Z * np.hypot(*errors)))


def median_interval(values: Any) -> Floats:
    """Order statistics that hold the median between them with probability 1 - 5e-7."""
    place = int(binom.ppf(2.5e-7, len(values), 0.5)) - 1
    ordered = np.sort(values)
    return np.array([ordered[place], ordered[-1 - place]])


def medians_differ(one: Any, other: Any) -> bool:
    """The intervals have nothing in common."""
    (low, high), (least, most) = median_interval(one), median_interval(other)
    return bool(high < least or most < low)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ctb-tt", "adap-tt-star", "dp-se"])
def test_what_is_kept_is_what_is_simulated(name: str) -> None:
    """One cell of each of the three simulations is played again, draw for draw."""
    kept, again = independent.kept(name, "mu3"), independent.simulated(name, "mu3")
    assert len(kept.samples) == RUNS[name]
    for one, other in zip(kept, again, strict=True):
        assert np.array_equal(one, other), (
            "if it was changed on purpose: python -m tests.support.independent"
        )


@pytest.mark.parametrize(("name", "instance"), CELLS)
def test_two_simulations_agree(name: str, instance: str) -> None:
    runs = RUNS[name]
    other = independent.kept(name, instance)
    assert benchmarks[instance].means == tuple(float(mean) for mean in INSTANCES[instance]["means"])
    assert len(other.samples) == runs
    ours: Results = simulate(
        benchmarks[instance], STRATEGIES[name], 8 * runs, 1, None if name == "dp-se" else CAP
    )
    assert not means_differ(ours.samples, other.samples)
    assert not means_differ(ours.pulls, other.pulls)
    assert not medians_differ(ours.samples, other.samples)
    assert ks_2samp(ours.samples, other.samples, method="asymp").pvalue > 1e-6
    assert (
        np.array(benchmarks[instance].means)[other.recommendation]
        == max(benchmarks[instance].means)
    ).mean() > 0.9
    assert means_differ(ours.samples, 1.1 * other.samples)  # a tenth more would be seen
    assert medians_differ(ours.samples, 1.3 * other.samples)  # and three tenths in the median


def test_thresholds_of_the_two_are_the_same_numbers() -> None:
    from discreet.theory import thresholds as threshold

    for a, b in ((1, 1), (2, 64), (4096, 1024), (2**20, 2)):
        assert independent.c_plain(a, b, 5, 0.1) == pytest.approx(
            float(threshold.c_gaussian(a, b, 5, 0.1)), rel=1e-9
        )
        assert independent.c_private(a, b, 5, 0.1, 0.7) == pytest.approx(
            float(threshold.c_private(a, b, 5, 0.1, 0.7)), rel=1e-9
        )
        low, high = independent.c_star(a, b, 5, 0.1, 0.7)
        assert low == pytest.approx(float(threshold.c_star_low(a, b, 5, 0.1, 0.7)), rel=1e-9)
        assert high == pytest.approx(float(threshold.c_star_sharp(a, b, 5, 0.1, 0.7)), rel=1e-9)
