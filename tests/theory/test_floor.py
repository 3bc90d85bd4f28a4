"""The floor of all laws on [0, 1]: its numbers, and its inequalities on mechanisms
small enough to enumerate.
"""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import (
    Bernoulli,
    Beta,
    Discrete,
    Drift,
    Drifting,
    InvalidInputError,
    TiedBestArmError,
    benchmarks,
    bounds,
    theory,
)
from discreet._types import Floats
from discreet.reports.summaries import build_bounds
from discreet.reports.terminal import render
from discreet.theory.bounds import _compute_cost, _compute_response_cost
from tests.support.cutting_planes import kl

BETA2 = Beta([50, 55], [50, 45])
DISC = Discrete(
    [0, 0.25, 0.5, 0.75, 1], [(0.05, 0.2, 0.5, 0.2, 0.05), (0.02, 0.13, 0.5, 0.27, 0.08)]
)
PAIRS = {
    "beta2": (BETA2, (1009, 241, 148, 92, 92)),
    "beta4": (Beta([55, 52], [45, 48]), (1653, 396, 245, 154, 153)),
    "disc": (DISC, (787, 187, 114, 71, 71)),
    "skew2": (Beta([4, 6], [76, 74]), (1975, 474, 293, 185, 184)),
    "narrow2": (Beta([800, 808], [800, 792]), (9701, 2343, 1457, 925, 919)),
    "bern2": (Bernoulli([0.5, 0.6]), (527, 124, 75, 46, 46)),
}
"""Computed elsewhere at δ = 0.01, rounded, for the pair hardest to tell apart, given
that the right arm is named: 1/(1 − δ) times our floor, which is without that condition.
"""


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_computed_elsewhere(name: str) -> None:
    instance, expected = PAIRS[name]
    found = [theory.floor_bound(instance, 0.01, level) for level in (0.1, 0.5, 1, 5, None)]
    assert [round(number / 0.99) for number in found] == list(expected)


def test_each_arm_by_hand() -> None:
    """Three arms: one must rise by 0.3 of the 0.7 it may, one by 0.1 of 0.5, the best
    must fall by 0.1 of 0.6.
    """
    instance = Bernoulli([0.3, 0.6, 0.5])
    for epsilon, s in ((2.0, 1 - math.exp(-2)), (None, 1.0)):
        expected = [-0.9 * math.log(9) / math.log(1 - q * s) for q in (3 / 7, 1 / 6, 1 / 5)]
        found = theory.floor_by_arm(instance, 0.1, epsilon)
        assert found == pytest.approx(expected, rel=1e-12)
        assert theory.floor_bound(instance, 0.1, epsilon) == pytest.approx(sum(expected))


class TestEnumerated:
    """Two arms, rewards 0, ½ or 1; one person an arm, then two more each unless the
    noisy difference is clear. A transcript is when it stopped and what it said.
    """

    LAW_A, LAW_B = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    EPSILON = 0.7

    @staticmethod
    def transcripts(a: Floats, b: Floats, epsilon: float) -> dict[tuple[int, str], float]:
        """Probabilities of (people an arm, answer); noise is discrete Laplace on halves
        with ε/2 a half.
        """
        noise = np.exp(-epsilon / 2 * np.abs(np.arange(-400, 401)))
        noise /= noise.sum()

        def released(people: int) -> Floats:
            law = np.ones(1)
            for _ in range(people):
                law = np.convolve(np.convolve(law, b), a[::-1])
            return np.convolve(law, noise)

        one, two = released(1), released(2)
        middle = len(one) // 2
        first = {"b": one[middle + 3 :].sum(), "a": one[: middle - 2].sum()}
        rest = 1 - first["a"] - first["b"]
        last = two[len(two) // 2 :].sum()
        return {
            (1, "b"): first["b"],
            (1, "a"): first["a"],
            (3, "b"): rest * last,
            (3, "a"): rest * (1 - last),
        }

    def ratios(self, epsilon: float) -> list[float]:
        """P'(ω) / (c^N P(ω)) over changes and transcripts; at least 1 where the release
        is EPSILON-private.
        """
        found = []
        for share in (0.1, 0.4, 0.9):
            keep = 1 - share * (1 - math.exp(-self.EPSILON))
            up = (1 - share) * self.LAW_A + share * np.array([0, 0, 1])
            down = (1 - share) * self.LAW_B + share * np.array([1, 0, 0])
            plain = self.transcripts(self.LAW_A, self.LAW_B, epsilon)
            for changed in ((up, self.LAW_B), (self.LAW_A, down)):
                other = self.transcripts(changed[0], changed[1], epsilon)
                found += [other[at] / (keep ** at[0] * plain[at]) for at in plain]
        return found

    def test_a_private_mechanism_changes_no_more(self) -> None:
        assert min(self.ratios(self.EPSILON)) >= 1

    def test_one_with_less_noise_does(self) -> None:
        assert min(self.ratios(12 * self.EPSILON)) < 1

    def test_its_samples_are_above_the_floor(self) -> None:
        instance = Discrete([0, 0.5, 1], [self.LAW_A, self.LAW_B])
        for epsilon in (0.2, 0.7, 3.0, 20.0):
            plain = self.transcripts(self.LAW_A, self.LAW_B, epsilon)
            swapped = self.transcripts(self.LAW_B, self.LAW_A, epsilon)
            wrong = max(plain[1, "a"] + plain[3, "a"], swapped[1, "b"] + swapped[3, "b"])
            samples = 2 * sum(at[0] * chance for at, chance in plain.items())
            assert samples >= theory.floor_bound(instance, wrong, epsilon)


def test_the_cost_is_attained() -> None:
    """Of one person of an arm that pays 0: a mechanism that says `b` e^ε times as often
    after a 0 as after a 1.
    """
    for share, epsilon in itertools.product((0.01, 0.5, 1.0), (0.1, 1.0, 4.0)):
        says = np.array([0.9, 0.9 * math.exp(-epsilon)])
        changed = (1 - share) * says[0] + share * says[1]
        (cost,) = _compute_cost(np.array([share]), epsilon)
        assert -math.log(changed / says[0]) == pytest.approx(cost, rel=1e-12)


class TestLocal:
    def test_no_channel_tells_more(self) -> None:
        """Random ε-private channels from three rewards to four messages, the first
        columns at the ends of what ε allows.
        """
        rng = np.random.default_rng(3)
        least = math.inf
        for _ in range(400):
            epsilon, share = rng.uniform(0.05, 4), rng.uniform(0.01, 1)
            channel = np.exp(epsilon * rng.choice([0.0, 1.0, rng.random()], (3, 4)))
            channel = np.exp(np.log(channel) / 2)
            channel /= channel.sum(axis=1, keepdims=True)
            law = rng.dirichlet(np.ones(3))
            plain = law @ channel
            changed = (1 - share) * plain + share * channel[2]
            told = float((plain * np.log(plain / changed)).sum())
            (cost,) = _compute_response_cost(np.array([share]), epsilon)
            assert told <= cost * (1 + 1e-12)
            least = min(least, told / cost)
        assert least < 0.5

    def test_randomised_response_tells_as_much(self) -> None:
        for share, epsilon in itertools.product((1e-6, 0.1, 1.0), (0.01, 1.0, 5.0)):
            low = 1 / (1 + math.exp(epsilon))
            (cost,) = _compute_response_cost(np.array([share]), epsilon)
            expected = kl(low, np.array([low + share * (1 - 2 * low)]))
            assert [cost] == pytest.approx(expected, rel=1e-9 if share > 1e-3 else 1e-3)

    def test_each_arm_by_hand(self) -> None:
        low = 1 / (1 + math.exp(0.5))
        shares = np.array([1 / 10, 1 / 11])
        told = kl(low, low + shares * math.tanh(0.25))
        found = theory.floor_by_arm(BETA2, 0.01, 0.5, "local")
        assert found == pytest.approx(0.98 * math.log(99) / told, rel=1e-9)

    def test_is_above_the_global_one(self) -> None:
        for epsilon in (1e-6, 0.1, 1.0, 10.0, 1e4):
            trusted = theory.floor_bound(BETA2, 0.01, epsilon)
            local = theory.floor_bound(BETA2, 0.01, epsilon, "local")
            assert trusted <= local < math.inf
            if epsilon <= 0.1:  # of order 1/ε² against 1/ε
                assert local > 10 * trusted


@given(
    st.tuples(st.floats(0.01, 0.9), st.floats(0.01, 0.9)),
    st.floats(0.01, 0.09),
    st.floats(1e-3, 20),
    st.floats(1e-6, 0.4),
)
def test_it_falls_with_privacy_level_error_rate_and_gap(
    means: tuple[float, float], gap: float, epsilon: float, delta: float
) -> None:
    best = max(means)
    near, far = Bernoulli([best, best + gap]), Bernoulli([best, best + 1.1 * gap])
    for trust in ("global", "local"):
        here = theory.floor_bound(near, delta, epsilon, trust)
        assert here >= theory.floor_bound(far, delta, epsilon, trust)
        assert here >= theory.floor_bound(near, 1.1 * delta, epsilon, trust)
        assert here >= theory.floor_bound(near, delta, 1.1 * epsilon, trust) * (1 - 1e-12)
        assert here >= theory.floor_bound(near, delta) * (1 - 1e-12)


def test_ends() -> None:
    assert theory.floor_bound(BETA2, 0.5) == theory.floor_bound(BETA2, 0.9, 1.0, "local") == 0
    sure = Bernoulli([0.0, 1.0])
    assert theory.floor_by_arm(sure, 0.01, 2.0) == pytest.approx([0.99 * math.log(99) / 2] * 2)
    assert theory.floor_by_arm(sure, 0.01, 50.0) == pytest.approx([0.99 * math.log(99) / 50] * 2)
    assert theory.floor_bound(sure, 0.01) == 0
    with pytest.raises(TiedBestArmError):
        theory.floor_bound(Bernoulli([0.5, 0.5]), 0.01)
    with pytest.raises(InvalidInputError, match="arms that do not drift"):
        theory.floor_bound(Drifting(Bernoulli([0.5, 0.6]), Drift.sites(0.1)), 0.01)
    for wrong in ((0.0, None, "global"), (0.1, -1.0, "global"), (0.1, 1.0, "nobody")):
        with pytest.raises(InvalidInputError):
            theory.floor_bound(BETA2, *wrong)


def test_without_privacy_no_epsilon_counts() -> None:
    free = theory.floor_bound(BETA2, 0.01)
    assert theory.floor_bound(BETA2, 0.01, 0.1, "none") == free < theory.floor_bound(BETA2, 0.01, 1)


class TestBounds:
    def test_of_numbers_have_a_floor(self) -> None:
        found = bounds(BETA2, [0.1, 1.0], 0.01)
        bits = bounds(BETA2.as_bernoulli(), [0.1, 1.0], 0.01)
        assert found.floor == theory.floor_bound(BETA2, 0.01)
        assert found.rounded_to_bits
        assert found.lower_bound == bits.lower_bound > found.floor
        for row in found.per_epsilon:
            assert row.floor_global == theory.floor_bound(BETA2, 0.01, row.epsilon)
            assert row.floor_local == theory.floor_bound(BETA2, 0.01, row.epsilon, "local")
        shown, plain = found.to_dict(), bits.to_dict()
        assert set(shown) - set(plain) == {"floor", "rounded_to_bits"}
        assert set(shown["per_epsilon"][0]) - set(plain["per_epsilon"][0]) == {
            "floor_global",
            "floor_local",
        }
        assert shown["rounded_to_bits"] is True
        assert shown["instance"]["law"] == "beta"
        assert json.loads(json.dumps(shown)) == shown

    def test_of_bits_have_none(self) -> None:
        for instance in (benchmarks.mu1, Discrete([0, 1], [(0.5, 0.5), (0.2, 0.8)])):
            found = bounds(instance, [1.0], 0.01)
            assert found.floor is None
            assert not found.rounded_to_bits
            assert not [key for key in found.to_dict() if "floor" in key or "bits" in key]
            assert not [key for key in found.to_dict()["per_epsilon"][0] if "floor" in key]

    def test_say_to_people_what_holds_for_whom(self, capsys: pytest.CaptureFixture[str]) -> None:
        render(build_bounds(bounds(BETA2, [1.0], 0.01)))
        shown = " ".join(capsys.readouterr().out.split())
        assert (
            "keeps this error rate however rewards are spread over [0, 1] needs at least 91"
            in shown
        )
        assert "(3,593 without privacy)" in shown
        assert "no strategy" not in shown
        assert "Only the floors hold for every strategy" in shown
        assert shown.index("The floor") < shown.index("once each outcome is rounded")
        render(build_bounds(bounds(BETA2.as_bernoulli(), [1.0], 0.01)))
        shown = " ".join(capsys.readouterr().out.split())
        assert "No strategy needs fewer samples" in shown
        assert "floor" not in shown
        assert "bit" not in shown


def test_the_largest_bound_that_holds() -> None:
    bits = Discrete([0, 1], [(0.5, 0.5), (0.4, 0.6)])
    for trust in ("global", "local"):
        expected = theory.lower_bound(theory.tightest(bits.as_bernoulli(), 1.0, trust), 0.1)
        assert theory.least_samples(bits, 0.1, 1.0, trust) == expected
        floor = theory.floor_bound(BETA2, 0.1, 1.0, trust)
        assert theory.least_samples(BETA2, 0.1, 1.0, trust) == floor
