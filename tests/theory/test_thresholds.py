"""thresholds.py against reference values, against SciPy and mpmath, and tables against
scalars.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import lambertw
from scipy.special import zeta as scipy_zeta

from discreet import InvalidInputError, adap_tt_star, ttucb_batched
from discreet.strategies.phased import state
from discreet.theory import thresholds as threshold
from tests.support.reference import SCALARS


def test_c_g_and_w_bar() -> None:
    for x, expected in SCALARS["C_G"].items():
        assert float(threshold.c_g(float(x))) == pytest.approx(float(expected["value"]), rel=1e-12)
    for x, expected in SCALARS["Wbar"].items():
        assert float(threshold.w_bar(float(x))) == pytest.approx(
            float(expected["value"]), rel=1e-12
        )


def test_w_bar_solves_its_equation_at_any_size() -> None:
    x = np.r_[1 + np.logspace(-14, 0, 50), np.logspace(0.1, 300, 200)]
    w = threshold.w_bar(x)
    assert w - np.log(w) == pytest.approx(x, rel=1e-14)
    moderate = x[(x > 1.01) & (x < 700)]
    assert threshold.w_bar(moderate) == pytest.approx(
        -lambertw(-np.exp(-moderate), -1).real, rel=1e-9
    )


def test_zeta() -> None:
    s = np.linspace(1.001, 2, 300)
    assert threshold.zeta(s) == pytest.approx(scipy_zeta(s), rel=1e-14)


def test_c_g_is_the_least_over_lambda() -> None:
    lam = np.linspace(0.5001, 0.99999, 200_001)
    g = 2 * lam - 2 * lam * np.log(4 * lam) + np.log(scipy_zeta(2 * lam)) - np.log1p(-lam) / 2
    for x in (0.3, 3.0, 20.0, 200.0):
        assert float(threshold.c_g(x)) == pytest.approx(((g + x) / lam).min(), rel=1e-7)


@pytest.mark.parametrize("row", SCALARS["thresholds"])
def test_thresholds(row: dict[str, str]) -> None:
    a, b, arms = int(row["omega_a"]), int(row["omega_b"]), int(row["K"])
    epsilon, delta, sigma = float(row["eps"]), float(row["delta"]), float(row["sigma"])
    for key, found in {
        "k_a": threshold.compute_phase_number(a),
        "h_a": threshold.h(a, arms, delta),
        "h_b": threshold.h(b, arms, delta),
        "c_G": threshold.c_gaussian(a, b, arms, delta),
        "c_G_eps": threshold.c_private(a, b, arms, delta, epsilon, sigma),
        "ctilde_low": threshold.c_star_low(a, b, arms, delta, epsilon, sigma),
        "ctilde_high_printed": threshold.c_star_high(a, b, arms, delta, epsilon, sigma),
        "ctilde_high_sharp": threshold.c_star_sharp(a, b, arms, delta, epsilon, sigma),
    }.items():
        assert float(found) == pytest.approx(float(row[key]), rel=1e-12), key


def test_sharp_is_below_the_printed_second_case() -> None:
    """By at least log(A)/(4σ²), as the docs prove; so the printed case is sound too."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        a, b = 2.0 ** rng.integers(0, 40, 2)
        arms, delta, epsilon = (
            int(rng.integers(2, 200)),
            10 ** rng.uniform(-8, -0.5),
            10 ** rng.uniform(-4, 3),
        )
        printed = threshold.c_star_high(a, b, arms, delta, epsilon)
        sharp = threshold.c_star_sharp(a, b, arms, delta, epsilon)
        assert printed - sharp >= math.log(math.pi**2 * arms / (2 * delta)) * (1 - 1e-9)


@pytest.mark.parametrize("s", [2.0, 1.3])
def test_forgetting_pays_for_every_pair_of_phases(s: float) -> None:
    """c^G at δ/(ζ(s)² k_a^s k_b^s); summed over all phases that is at most δ, also with
    the index 2 in phase 1.
    """
    count_a, count_b, arms, delta = 64, 2, 5, 0.01
    spent = delta / (scipy_zeta(s) ** 2 * 8**s * 3**s)
    found = threshold.c_forgetting(count_a, count_b, arms, delta, s)
    assert found == pytest.approx(threshold.c_gaussian(count_a, count_b, arms, spent))
    assert found > threshold.c_gaussian(count_a, count_b, arms, delta)
    assert 2.0**-s + scipy_zeta(s) - 1 < scipy_zeta(s)
    for wrong in (1.0, 2.5, math.nan):
        with pytest.raises(InvalidInputError, match="s lies in"):
            threshold.c_forgetting(count_a, count_b, arms, delta, wrong)


def test_bonuses() -> None:
    for row in SCALARS["bonus_bG"]:
        found = threshold.bonus_gaussian(row["omega"][row["a"]], sum(row["omega"]))
        assert float(found) == pytest.approx(float(row["value"]), rel=1e-12)
    for row in SCALARS["bonus_bGeps"]:
        found = threshold.bonus_private(row["omega_a"], float(row["eps"]))
        assert float(found) == pytest.approx(float(row["value"]), rel=1e-12)


def test_dp_se() -> None:
    for row in SCALARS["dpse_Re_he_ce"]:
        found = threshold.dp_se_epoch(
            row["epoch"], row["active"], float(row["eps"]), float(row["delta"])
        )
        assert found.pulls == row["R"]
        assert found.radius == pytest.approx(float(row["h"]), rel=1e-12)
        assert found.noise_radius == pytest.approx(float(row["c"]), rel=1e-12)


def private_profile(s: float, epsilon: float) -> "mp.mpf":
    """γ(ε) of Gaussian noise of scale s on a reward in [0, 1], at 60 digits."""
    with mp.workdps(60):
        s, epsilon = mp.mpf(s), mp.mpf(epsilon)
        return mp.ncdf(1 / (2 * s) - epsilon * s) - mp.exp(epsilon) * mp.ncdf(
            -1 / (2 * s) - epsilon * s
        )


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.9, 1.0, 10.0, 200.0, 1000.0])
@pytest.mark.parametrize("gamma", [0.05, 1e-6, 1e-10])
def test_gaussian_scale_is_the_least_private_one(epsilon: float, gamma: float) -> None:
    scale = threshold.gaussian_scale(epsilon, gamma)
    assert private_profile(scale, epsilon) <= gamma
    assert private_profile(scale * (1 - 1e-8), epsilon) > gamma


def test_the_classical_gaussian_scale_is_not_private_at_large_epsilon() -> None:
    assert private_profile(math.sqrt(2 * math.log(1.25 / 1e-5)) / 10, 10) > 1e-5


def test_noisy_sigma() -> None:
    for row in SCALARS["gaussian_mechanism"]:
        found = threshold.noisy_sigma(float(row["sigma_eps_gamma"]))
        assert found == pytest.approx(float(row["sigma_to_use_in_W_and_b"]), rel=1e-12)


def test_tables_over_phases_are_the_thresholds_at_their_counts() -> None:
    counts = state.count_by_phase(adap_tt_star(epsilon=0.1, delta=0.01))
    assert counts[:6].tolist() == [1, 1, 1, 2, 4, 8]
    assert state.count_by_phase(ttucb_batched(delta=0.01))[:6].tolist() == [1, 1, 2, 4, 8, 16]
    table = threshold.c_star_low(counts[:, np.newaxis], counts, 5, 0.01, 0.1)
    assert table.shape == (63, 63)
    assert np.isfinite(table).all()
    for a, b in ((3, 9), (40, 2), (62, 62)):
        assert table[a, b] == float(threshold.c_star_low(counts[a], counts[b], 5, 0.01, 0.1))
    assert threshold.compute_phase_number(counts[2:]).tolist() == list(range(2, 63))


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="C_G"):
        threshold.c_g(0.0)
    with pytest.raises(InvalidInputError, match="W̄"):
        threshold.w_bar(0.5)
    with pytest.raises(InvalidInputError, match="gamma"):
        threshold.gaussian_scale(1, 0)
    with pytest.raises(InvalidInputError, match="delta"):
        threshold.h(4, 5, 1.0)


BAD: dict[str, list[object]] = {
    "delta": [0, 1, -1, math.nan, [0.1]],
    "epsilon": [0, -1, math.nan, math.inf, "1"],
    "sigma": [0, -1, math.nan],
    "arms": [0, 1, 2.5],
    "count_a": [0, -1, 0.5, math.nan, math.inf],
}


@pytest.mark.parametrize(
    "name",
    [
        "c_gaussian",
        "c_forgetting",
        "c_bernoulli",
        "c_private",
        "c_star_low",
        "c_star_high",
        "c_star_sharp",
    ],
)
def test_every_threshold_refuses_what_it_is_not_defined_for(name: str) -> None:
    function = getattr(threshold, name)
    good: dict[str, object] = {"count_a": 4, "count_b": 4, "arms": 5, "delta": 0.1}
    if name not in ("c_gaussian", "c_forgetting", "c_bernoulli"):
        good |= {"epsilon": 1.0, "sigma": 0.5}
    assert np.isfinite(function(**good))
    for key in good.keys() & BAD.keys():
        for value in BAD[key]:
            with pytest.raises(InvalidInputError):
                function(**{**good, key: value})


def test_the_rest_refuses_too() -> None:
    for call in (
        lambda: threshold.compute_phase_number(0),
        lambda: threshold.dp_se_epoch(0, 5, 1, 0.1),
        lambda: threshold.dp_se_epoch(1, 1, 1, 0.1),
        lambda: threshold.dp_se_epoch(1, 5, -1, 0.1),
        lambda: threshold.dp_se_epoch(600, 5, 1, 0.1),
        lambda: threshold.gaussian_scale(1e300, 0.1),
        lambda: threshold.gaussian_scale(1, 1e-300),
    ):
        with pytest.raises(InvalidInputError):
            call()
