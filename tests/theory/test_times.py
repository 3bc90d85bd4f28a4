"""theory.py against reference values, against its definitions, and against what must
hold of it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet import Bernoulli, Beta, InvalidInputError, TiedBestArmError, benchmarks, theory
from discreet.theory.times import CharacteristicTime
from tests.support.cutting_planes import d_epsilon, kl, time_by_cuts
from tests.support.exact import exact_d_epsilon
from tests.support.reference import INSTANCES, LEVELS, SCALARS


def instance_of(name: str) -> Bernoulli:
    return Bernoulli([float(mean) for mean in INSTANCES[name]["means"]])


def assert_time(found: CharacteristicTime, expected: dict[str, Any]) -> None:
    assert found.value == pytest.approx(float(expected["T"]), rel=1e-9)
    assert found.allocation == pytest.approx(
        [float(share) for share in expected["alloc"]], abs=1e-6
    )


class TestReference:
    @pytest.mark.parametrize("name", INSTANCES)
    def test_without_privacy(self, name: str) -> None:
        instance, expected = instance_of(name), INSTANCES[name]
        assert instance.means == benchmarks[name].means
        assert_time(theory.t_kl(instance), expected["T_KL_bernoulli"])
        assert_time(theory.t_gaussian(instance), expected["T_KL_gauss_half"])
        assert_time(theory.t_gaussian_beta(instance), expected["T_KL_gauss_half_beta_half"])
        assert_time(theory.t_tv(instance), expected["T_TV"])
        assert_time(theory.t_tv2(instance), expected["T_TV2"])
        assert theory.complexity(instance) == pytest.approx(float(expected["H"]), rel=1e-12)
        assert theory.switch_epsilon_global(instance) == pytest.approx(
            float(expected["eps_switch_global"])
        )
        assert theory.switch_epsilon_local(instance) == pytest.approx(
            float(expected["eps_switch_local"])
        )

    @pytest.mark.parametrize(("name", "level"), LEVELS)
    def test_with_privacy(self, name: str, level: str) -> None:
        instance, epsilon, expected = instance_of(name), float(level), INSTANCES[name]["eps"][level]
        assert_time(theory.t_local(instance, epsilon), expected["T_l"])
        assert_time(theory.t_global(instance, epsilon), expected["T_g"])
        assert_time(theory.t_relaxed(instance, epsilon), expected["T_KL_nuGeps"])
        assert_time(theory.t_relaxed_beta(instance, epsilon), expected["T_KL_beta_half_nuGeps"])
        for key, found in {
            "c_eps": theory.local_factor(epsilon),
            "twoH_nuGeps": 2 * theory.relaxed_complexity(instance, epsilon),
            "H_nu_eps_appendix_notation": theory.private_complexity(instance, epsilon),
            "H_nu_eps_main_text": theory.private_complexity(instance, epsilon, math.sqrt(0.5)),
            "CTB_upper_const": theory.upper_constant_ctb_tt(instance, epsilon),
            "AdaPTT_upper_const": theory.upper_constant_adap_tt(instance, epsilon),
            "AdaPTTstar_upper_const": theory.upper_constant_adap_tt_star(instance, epsilon),
        }.items():
            assert found == pytest.approx(float(expected[key]), rel=1e-11), key

    def test_scalars(self) -> None:
        for y, expected in SCALARS["g1"].items():
            assert theory.g1(float(y)) == pytest.approx(float(expected), rel=1e-12)
        for y, expected in SCALARS["g2"].items():
            assert theory.g2(float(y)) == pytest.approx(float(expected), rel=1e-12)
        pinsker = float(SCALARS["pinsker_switch_eps_c_eq_2"])
        assert theory.inverse_local_factor(2) == pytest.approx(pinsker, rel=1e-12)


def random_means(seed: int) -> list[float]:
    """Two to five means, ties and the ends 0 and 1 among them, the last one best."""
    rng = np.random.default_rng(seed)
    means: list[float] = rng.uniform(0.02, 0.8, rng.integers(1, 5)).round(3).tolist()
    if seed % 3 == 0:
        means[0] = 0.0
    return [*means, 1.0 if seed % 4 == 3 else max(means) + 0.1]


class TestDefinitions:
    """Cutting planes on the definitions bracket the value between two bounds of their
    own, 2e-7 apart.
    """

    @pytest.mark.parametrize("seed", range(12))
    def test_kl(self, seed: int) -> None:
        means = random_means(seed)
        assert theory.t_kl(Bernoulli(means)).value == pytest.approx(
            time_by_cuts(means, [kl]), rel=1e-6
        )

    @pytest.mark.parametrize(
        ("seed", "epsilon"), [(i, e) for i in range(4) for e in (0.1, 0.7, 1.0, 3.0)]
    )
    def test_local(self, seed: int, epsilon: float) -> None:
        means, factor = random_means(seed), theory.local_factor(epsilon)
        expected = time_by_cuts(means, [lambda p, m: np.minimum(kl(p, m), factor * (p - m) ** 2)])
        assert theory.t_local(Bernoulli(means), epsilon).value == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize(
        ("seed", "epsilon"), [(i, e) for i in range(4) for e in (0.05, 0.5, 1.0, 2.0)]
    )
    def test_global(self, seed: int, epsilon: float) -> None:
        means = random_means(seed)
        expected = time_by_cuts(means, [kl, lambda p, m: epsilon * np.abs(p - m)])
        assert theory.t_global(Bernoulli(means), epsilon).value == pytest.approx(expected, rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.1), (1, 0.4), (2, 1.5), (3, 0.4)])
    def test_epsilon(self, seed: int, epsilon: float) -> None:
        means = random_means(seed)
        expected = time_by_cuts(means, [lambda p, m: d_epsilon(p, m, epsilon)])
        assert theory.t_epsilon(Bernoulli(means), epsilon).value == pytest.approx(
            expected, rel=1e-6
        )


@st.composite
def instances(draw: st.DrawFn) -> Bernoulli:
    """Means anywhere in [0, 1], the ends included, the best at least 1e-6 ahead."""
    close = st.floats(-7, 0).map(lambda x: 10**x)
    mean = st.one_of(st.just(0.0), st.floats(0, 1), close, close.map(lambda x: 1 - x))
    means = draw(st.lists(mean, min_size=2, max_size=8))
    lead = draw(st.floats(-6, -0.3).map(lambda x: 10**x))
    top = max(means)
    if top + lead > 1:
        means = [min(value, 1 - lead) for value in means]
        top = 1 - lead
    means[draw(st.integers(0, len(means) - 1))] = min(1.0, top + lead)
    ordered = sorted(means)
    assume(ordered[-1] - ordered[-2] >= 1e-6)
    return Bernoulli(means)


epsilons = st.floats(-6, 3).map(lambda x: 10**x)
TIMES: dict[str, Callable[[Bernoulli, float], theory.CharacteristicTime]] = {
    "kl": lambda instance, epsilon: theory.t_kl(instance),
    "kl_beta": lambda instance, epsilon: theory.t_kl_beta(instance, 0.3),
    "gaussian": lambda instance, epsilon: theory.t_gaussian(instance),
    "gaussian_beta": lambda instance, epsilon: theory.t_gaussian_beta(instance, 0.7),
    "tv": lambda instance, epsilon: theory.t_tv(instance),
    "tv2": lambda instance, epsilon: theory.t_tv2(instance),
    "local": theory.t_local,
    "global": theory.t_global,
    "epsilon": theory.t_epsilon,
    "relaxed": theory.t_relaxed,
    "relaxed_beta": theory.t_relaxed_beta,
}
MORE = 1 + 1e-9


class TestProperties:
    @given(instances(), epsilons)
    def test_all_finite(self, instance: Bernoulli, epsilon: float) -> None:
        for name, compute in TIMES.items():
            time = compute(instance, epsilon)
            assert 0 < time.value < math.inf, name
            assert (time.allocation >= 0).all(), name
            assert time.allocation.sum() == pytest.approx(1, abs=1e-12), name

    @given(instances(), epsilons)
    def test_inequalities(self, instance: Bernoulli, epsilon: float) -> None:
        time = {name: compute(instance, epsilon).value for name, compute in TIMES.items()}
        assert 2 * time["kl"] <= time["tv2"] * MORE
        assert math.sqrt(2 * time["kl"]) <= time["tv"] * MORE
        assert max(time["kl"], time["tv"] / epsilon) <= time["global"] * MORE
        assert time["global"] <= time["relaxed"] * MORE
        assert time["relaxed"] <= 2 * theory.relaxed_complexity(instance, epsilon) * MORE
        assert time["global"] <= time["epsilon"] * MORE
        assert max(time["kl"], time["tv2"] / theory.local_factor(epsilon)) <= time["local"] * MORE
        assert time["kl"] <= time["kl_beta"] * MORE
        assert theory.complexity(instance) <= time["gaussian"] * MORE
        assert time["gaussian"] <= 2 * theory.complexity(instance) * MORE

    @given(instances(), epsilons, st.randoms(use_true_random=False))
    def test_order_of_arms_does_not_matter(
        self, instance: Bernoulli, epsilon: float, rng: Any
    ) -> None:
        order = list(range(instance.arms))
        rng.shuffle(order)
        shuffled = Bernoulli([instance.means[a] for a in order])
        for name, compute in TIMES.items():
            here, there = compute(instance, epsilon), compute(shuffled, epsilon)
            assert there.value == pytest.approx(here.value, rel=1e-9), name
            assert there.allocation == pytest.approx(here.allocation[order], abs=1e-5), name

    @given(instances(), epsilons, st.floats(1.001, 50))
    def test_less_privacy_never_costs(
        self, instance: Bernoulli, epsilon: float, factor: float
    ) -> None:
        for name in ("local", "global", "epsilon", "relaxed", "relaxed_beta"):
            strict, loose = TIMES[name](instance, epsilon), TIMES[name](instance, factor * epsilon)
            assert loose.value <= strict.value * MORE, name

    @given(instances(), epsilons)
    def test_allocation_attains_the_value(self, instance: Bernoulli, epsilon: float) -> None:
        """At ω*, no alternative on a fine grid costs less than 1/T: a wrong ω* or T is
        seen at once.
        """
        best = instance.best
        for name, near, far in costs(epsilon):
            time = TIMES[name](instance, epsilon)
            for a in set(range(instance.arms)) - {best}:
                top, mean = instance.means[best], instance.means[a]
                m = mean + (top - mean) * np.linspace(0, 1, 2001)[1:-1]
                cost = time.allocation[best] * near(top, m) + time.allocation[a] * far(mean, m)
                assert cost.min() * time.value >= 1 - 1e-7, name

    @given(st.lists(st.floats(0.001, 0.9), min_size=1, max_size=6), st.floats(0.01, 0.09))
    def test_privacy_is_free_from_there_on_and_not_before(
        self, means: list[float], lead: float
    ) -> None:
        """Solved anew, not told T_KL: `t_epsilon` has a short way only where that is
        known.
        """
        instance = Bernoulli([*means, max(means) + lead])
        free, plain = theory.free_epsilon(instance), theory.t_kl(instance)
        assert theory.t_epsilon(instance, free).value == pytest.approx(plain.value, rel=1e-11)
        assert theory.t_epsilon(instance, free, plain) is plain
        assert theory.t_epsilon(instance, 0.97 * free).value > plain.value * (1 + 1e-10)


def costs(epsilon: float) -> list[tuple[str, Any, Any]]:
    from discreet.theory import divergences as divergence

    factor = theory.local_factor(min(epsilon, 300))

    def local(p: float, m: Any) -> Any:
        return np.minimum(divergence.kl(p, m), factor * (p - m) ** 2)

    def private(p: float, m: Any) -> Any:
        return divergence.d_epsilon(p, m, epsilon)

    return [
        ("kl", divergence.kl, divergence.kl),
        ("local", local, local),
        ("global", divergence.kl, divergence.kl),
        ("global", lambda p, m: epsilon * (p - m), lambda p, m: epsilon * (m - p)),
        ("epsilon", private, private),
    ]


class TestCases:
    def test_two_equal_arms_share_alike(self) -> None:
        """By symmetry: (1/2 + g, 1/2 − g) needs half its samples on each arm."""
        assert theory.t_kl(Bernoulli([0.6, 0.4])).allocation == pytest.approx([0.5, 0.5], abs=1e-9)
        assert theory.t_epsilon(Bernoulli([0.6, 0.4]), 0.1).allocation == pytest.approx(
            [0.5, 0.5], abs=1e-6
        )

    def test_many_arms(self) -> None:
        rng = np.random.default_rng(7)
        means = rng.uniform(0, 0.9, 5_000)
        means[17] = 0.93
        instance = Bernoulli(means)
        assert theory.t_kl(instance).value <= theory.t_epsilon(instance, 0.5).value
        assert theory.t_epsilon(instance, 0.5).allocation.argmax() == 17

    def test_equality_of_gap_and_half_epsilon_is_the_second_case(self) -> None:
        """0.75 − 0.7 is a little more than 0.05 in floats, 0.95 − 0.9 a little less:
        both count as equal.
        """
        assert 0.95 - 0.9 < 0.05 < 0.75 - 0.7
        for means in ([0.75, 0.7], [0.95, 0.9]):
            instance = Bernoulli(means)
            second = theory.t_relaxed_beta(instance, 0.1).value
            assert theory.upper_constant_adap_tt_star(instance, 0.1) == pytest.approx(
                8 * second * theory.g2(0.01 * second / 8)
            )

    def test_proved_constant_is_larger_than_the_printed_one(self) -> None:
        printed = theory.upper_constant_adap_tt_star(benchmarks.mu4, 0.1)
        assert printed < theory.upper_constant_adap_tt_star(benchmarks.mu4, 0.1, proved=True)

    def test_constants_without_privacy(self) -> None:
        """Of TTUCB T_β, of TTUCB in batches twice that, and T itself with IDS; so many
        batches beside K log2 log(1/δ).
        """
        arms = benchmarks.mu4
        share, ideal = theory.t_gaussian_beta(arms, 0.3).value, theory.t_gaussian(arms).value
        assert theory.upper_constant_ttucb(arms, 0.3) == share > ideal
        assert theory.upper_constant_ttucb(arms, "ids") == ideal
        assert theory.upper_constant_ttucb_batched(arms, 0.3) == 2 * share
        assert 2 ** (theory.batches_limit(arms, 0.3) / 5) == pytest.approx(2 * share)
        shrink = math.tanh(0.5) ** 2
        assert theory.upper_constant_ctb_tt(arms, 1.0, "ids") == pytest.approx(ideal / shrink)
        with pytest.raises(InvalidInputError, match="'ids'"):
            theory.upper_constant_ttucb(arms, "half")

    def test_complexity_after_randomised_response(self) -> None:
        """H of the arms that responses make, and what CTB-TT takes is of the order of
        (H log H)^1.2.
        """
        arms, share = benchmarks.mu4, math.tanh(0.25)
        responses = Bernoulli([0.5 + share * (mean - 0.5) for mean in arms.means])
        hardness = theory.randomised_complexity(arms, 0.5)
        assert hardness == pytest.approx(theory.complexity(responses))
        assert theory.ctb_tt_order(arms, 0.5) == pytest.approx(
            (hardness * math.log(hardness)) ** 1.2
        )
        assert theory.ctb_tt_order(Bernoulli([1, 0]), 1000) == 0
        with pytest.raises(InvalidInputError, match="larger than 1"):
            theory.ctb_tt_order(arms, 0.5, 1.0)

    def test_lower_bounds(self) -> None:
        time = theory.t_kl(benchmarks.mu2)
        assert theory.lower_bound(time, 0.01) == pytest.approx(time.value * 0.98 * math.log(99))
        assert theory.lower_bound_paper(time, 0.01) == pytest.approx(
            time.value * math.log(1 / 0.024)
        )
        assert theory.lower_bound(time, 0.6) == 0
        for delta in np.linspace(0.001, 0.5, 500):
            assert theory.lower_bound(1.0, delta) >= theory.lower_bound_paper(1.0, delta)

    def test_rounds(self) -> None:
        assert theory.rounds_bound(1024, 5) == 50
        for episodes in ("global", "global-yielding"):
            assert theory.rounds_bound(1024, 5, episodes) == 10

    @pytest.mark.parametrize(
        ("means", "free"),
        [
            (benchmarks.mu1.means, 2.8720672),
            (benchmarks.mu2.means, 0.16539803),
            (benchmarks.mu4.means, 2.1119555),
            (benchmarks.mu5.means, 1.9615374),
            ((0.35, 0.5, 0.7, 0.55), 1.3225696),
            ((0.5 + 1e-6, 0.5), 2e-6),
        ],
    )
    def test_the_exact_level_from_which_privacy_is_free(
        self, means: tuple[float, ...], free: float
    ) -> None:
        """By hand for two close arms: each moves half the gap, at 4 log odds a unit."""
        arms = Bernoulli(means)
        assert theory.free_epsilon(arms) == pytest.approx(free, rel=1e-5)
        above = theory.t_epsilon(arms, 1.0001 * theory.free_epsilon(arms)).value
        assert above == pytest.approx(theory.t_kl(arms).value, rel=1e-12)

    def test_infinite_where_it_is_said(self) -> None:
        assert theory.free_epsilon(benchmarks.mu3) == math.inf
        assert theory.local_factor(1000) == math.inf


HARD_FOR_NEWTON = [
    ((0.9987272927091444, 0.9983805888355979), 0.004817172820666852),
    ((0.9999842651889909, 0.9999779971506426), 0.019146956926447214),
]


def two_arm_time(means: tuple[float, float], epsilon: float) -> float:
    """K = 2: sup over ω of inf over m is inf over m of max(d(μ1, m), d(μ2, m)), where
    the two are equal.

    Halved until what is left of the interval moves the value by less than 1e-15 of it.
    """
    import mpmath as mp

    high, low = mp.mpf(max(means)), mp.mpf(min(means))
    left, right = low, high
    for _ in range(70):
        m = (left + right) / 2
        rising = exact_d_epsilon(low, m, epsilon) < exact_d_epsilon(high, m, epsilon)
        left, right = (m, right) if rising else (left, m)
    least, most = (exact_d_epsilon(low, m, epsilon) for m in (left, right))
    assert most - least < 1e-15 * least
    return float(1 / least)


class TestTwoArms:
    """Exact for two arms, at 50 digits, near 0 and 1 and at all scales."""

    @pytest.mark.parametrize(("means", "epsilon"), HARD_FOR_NEWTON)
    def test_newton_in_circles(self, means: tuple[float, float], epsilon: float) -> None:
        found = theory.t_epsilon(Bernoulli(means), epsilon).value
        assert found == pytest.approx(two_arm_time(means, epsilon), rel=1e-9)

    @pytest.mark.slow
    def test_sweep(self) -> None:
        rng = np.random.default_rng(8)
        for _ in range(300):
            mean = float(
                rng.choice([rng.random(), 10 ** rng.uniform(-6, 0), 1 - 10 ** rng.uniform(-6, 0)])
            )
            other = mean - 10 ** rng.uniform(-6, -1) * mean
            if mean - other < 1e-7:
                continue
            epsilon = float(10 ** rng.uniform(-5, 2))
            found = theory.t_epsilon(Bernoulli((mean, other)), epsilon).value
            assert found == pytest.approx(two_arm_time((mean, other), epsilon), rel=1e-8)


class TestRefusals:
    def test_ties(self) -> None:
        with pytest.raises(TiedBestArmError, match=r"arm 1, arm 2 share the mean 0\.5"):
            theory.t_kl(Bernoulli([0.5, 0.5, 0.1]))

    def test_other_laws(self) -> None:
        with pytest.raises(InvalidInputError, match="as_bernoulli"):
            theory.t_kl(Beta([1, 2], [2, 1]))
        assert theory.t_gaussian(Beta([1, 2], [2, 1])).value > 0

    @pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
    def test_epsilon(self, epsilon: Any) -> None:
        for name in ("local", "global", "epsilon", "relaxed", "relaxed_beta"):
            with pytest.raises(InvalidInputError, match="epsilon must be a positive"):
                TIMES[name](benchmarks.mu1, epsilon)

    @pytest.mark.parametrize("share", [0, 1, -0.5, math.nan])
    def test_beta_and_delta(self, share: float) -> None:
        with pytest.raises(InvalidInputError, match="beta must lie"):
            theory.t_kl_beta(benchmarks.mu1, share)
        with pytest.raises(InvalidInputError, match="delta must lie"):
            theory.lower_bound(1.0, share)

    def test_gaps_too_small_to_compute(self) -> None:
        for means in ((1e-12, 1e-13), (1.0, 1 - 1e-13), (5e-324, 0.0)):
            with pytest.raises(InvalidInputError, match="leads by only"):
                theory.t_epsilon(Bernoulli(means), 1e-3)

    def test_the_rest(self) -> None:
        for call in (
            lambda: theory.t_gaussian(benchmarks.mu1, 1e-200),
            lambda: theory.t_kl_beta(benchmarks.mu1, 1e-9),
            lambda: theory.rounds_bound(100, -3),
            lambda: theory.inverse_local_factor(-1),
            lambda: theory.g1(1e200),
            lambda: theory.t_epsilon(benchmarks.mu1, 1e-200),
        ):
            with pytest.raises(InvalidInputError):
                call()
        with pytest.raises(InvalidInputError, match="sigma"):
            theory.t_gaussian(benchmarks.mu1, 0)
        with pytest.raises(InvalidInputError, match="g1"):
            theory.g1(-1)
        with pytest.raises(InvalidInputError, match="g2"):
            theory.g2(0)
        with pytest.raises(InvalidInputError, match="episodes"):
            theory.rounds_bound(10, 2, "both")
        with pytest.raises(InvalidInputError, match="at least 1"):
            theory.rounds_bound(0, 2)
