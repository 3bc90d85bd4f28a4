"""Every preset with its real thresholds: the engine's runs equal the oracle's, sample
for sample.

The oracle (naive.py) is written from the paper's pseudocode and steps through every
sample; it draws from the same Generator, so equality is asked for: of samples,
recommendation, pulls, rounds, and of the state at every release.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import discreet
from discreet import Bernoulli, Discrete, Gaussian, Instance, InvalidInputError, Strategy
from discreet.simulation import laws
from discreet.simulation.engine import is_in_blocks, simulate_quietly
from discreet.strategies.phased.state import make_phased_rules
from discreet.strategies.presets import PRESETS
from tests.support.oracle import OPTIONS, make, oracle

MEANS = [0.8, 0.55, 0.5, 0.3]


def assert_equal_runs(
    strategy: Strategy, instance: Instance, runs: int, seed: int, cap: int
) -> int:
    """Every run of the engine equals the oracle's; how many stopped."""
    results = simulate_quietly(instance, strategy, runs, seed, cap)
    shared = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
    for run in range(runs):
        own = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))
        outcome = oracle(
            strategy, instance, shared if is_in_blocks(instance, strategy) else own, cap
        )
        found = (
            results.samples[run],
            results.recommendation[run],
            results.stopped[run],
            results.rounds[run],
        )
        assert found == (outcome.samples, outcome.recommendation, outcome.stopped, outcome.rounds)
        assert results.pulls[run].tolist() == outcome.pulls
    return runs - results.unstopped


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_engine_equals_oracle(name: str, options: dict[str, Any]) -> None:
    strategy = make(name, options)
    if strategy is not None:
        assert_equal_runs(strategy, Bernoulli(MEANS), 3, 7, 12_000)


@pytest.mark.parametrize("name", ["ttucb", "ttucb-batched"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threshold": "empirical"},
        {"beta": "ids"},
        *[{"sampling": rule} for rule in ("uniform", "lucb", "elimination")],
    ],
    ids=str,
)
def test_gaussian_arms_equal_the_oracle(name: str, options: dict[str, Any]) -> None:
    arms = Gaussian([7.0, 5.0, -3.0, 4.5], 2.0)
    stopped = assert_equal_runs(PRESETS[name](delta=0.2, sigma=2.5, **options), arms, 3, 7, 6000)
    assert stopped or (name, options) == ("ttucb-batched", {"sampling": "lucb"})


def random_instance(rng: np.random.Generator) -> Instance:
    """Two to seven arms, Bernoulli or on three values, some of them tied, a best
    one.
    """
    arms = int(rng.integers(2, 8))
    if rng.random() < 0.25:
        chances = rng.dirichlet([1, 1, 1], arms)
        return Discrete([0, 0.5, 1], chances.tolist())
    means = np.round(rng.random(arms), 1 if rng.random() < 0.3 else 3) * 0.6
    means[rng.integers(arms)] = 0.6 + 0.4 * rng.random()
    return Bernoulli(means.tolist())


def random_strategy(rng: np.random.Generator) -> Strategy | None:
    """Any preset at any levels with any options; None if they do not fit together."""
    name = str(rng.choice([preset for preset in PRESETS if preset != "bet-se"]))
    levels: dict[str, Any] = {"delta": float(rng.choice([0.5, 0.1, 0.01]))}
    if name not in ("ttucb", "ttucb-batched", "ttucb-forgetting"):
        levels["epsilon"] = float(rng.choice([0.3, 1.0, 1.7, 8.0]))
    if name == "gauss-tt":
        levels["gamma"] = float(rng.choice([0.01, 0.2]))
    choices: dict[str, list[Any]] = {
        "threshold": ["proved", "printed", "empirical", "empirical"],
        "sampling": ["top-two", "top-two", "uniform", "lucb", "elimination"],
        "beta": [0.5, 0.5, 0.25, 0.8, "ids"],
        "episodes": ["arm", "arm", "arm", "global", "global-yielding"],
        "s": [1.2, 1.2, 2.0],
        "alpha": [1.2, 1.2, 1.5],
        "cost": ["kl"] if name in ("ttucb", "ctb-tt") and rng.random() < 0.5 else [],
    }
    options = {
        option: values[int(rng.integers(len(values)))]
        for option, values in choices.items()
        if values
    }
    try:
        return PRESETS[name](
            **levels, **{option: value for option, value in options.items() if name != "dp-se"}
        )
    except InvalidInputError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_random_settings_equal_the_oracle(block: int) -> None:
    """240 of them; about a third of their 480 runs stop before the cap."""
    rng, cases, stopped = np.random.default_rng(block), 0, 0
    while cases < 48:
        strategy, instance = random_strategy(rng), random_instance(rng)
        if strategy is not None:
            cases += 1
            cap = int(rng.choice([300, 3000]))
            stopped += assert_equal_runs(strategy, instance, 2, int(rng.integers(10**6)), cap)
    assert stopped > 15


class TestLaws:
    """A phase's sum is drawn at once: it has the law of a sum of single rewards
    (false-alarm rate 1e-6 each).
    """

    @pytest.mark.parametrize(
        "law",
        [
            laws.make_bernoulli_laws(np.array([0.3, 0.7])),
            laws.make_discrete_laws(
                np.tile([0.0, 0.25, 1.0], (2, 1)), np.array([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]])
            ),
            laws.make_beta_laws(np.array([[2.0, 3.0], [0.5, 0.5]])),
            laws.make_gaussian_laws(np.array([-0.3, 0.7]), 0.6),
        ],
        ids=["bernoulli", "discrete", "beta", "gaussian"],
    )
    def test_sums(self, law: laws.Laws) -> None:
        rng = np.random.default_rng(3)
        for arm in range(2):
            at_once = [laws.draw_sum(rng, law, arm, 12) for _ in range(3000)]
            one_by_one = [
                sum(laws.draw_steady_reward(rng, law, arm) for _ in range(12)) for _ in range(3000)
            ]
            assert ks_2samp(at_once, one_by_one).pvalue > 1e-6
            assert (
                ks_2samp(at_once, np.array(one_by_one) + 0.5).pvalue < 1e-6
            )  # half a reward more would be seen

    def test_randomised_responses(self) -> None:
        """A Bernoulli(r) bit, then randomised response, has the mean that CTB is
        simulated with.
        """
        rng, epsilon = np.random.default_rng(4), 1.3
        law = laws.make_beta_laws(np.array([[2.0, 3.0], [5.0, 1.0]]))
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        for arm in range(2):
            rewards = rng.beta(law.shapes[arm, 0], law.shapes[arm, 1], size=40_000)
            bits = rng.random(40_000) < rewards
            answers = np.where(rng.random(40_000) < truth, bits, ~bits)
            expected = laws.make_response_laws(law, epsilon).mean[arm]
            assert abs(answers.mean() - expected) < 5 * 0.5 / math.sqrt(40_000)

    def test_rules_are_made_of_the_right_types(self) -> None:
        """An int where a float is typed would compile a second kernel."""
        made = make_phased_rules(discreet.adap_tt(1, 0.1), 5)
        for name in ("half_epsilon", "two_variance", "beta", "bonus_scale"):
            assert type(getattr(made, name)) is float
