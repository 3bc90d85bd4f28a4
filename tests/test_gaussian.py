"""Gaussian arms: what they know, their theory, what is simulated of them and what is
refused.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet
from discreet import Bernoulli, Gaussian, Instance, InvalidInputError, Strategy, simulate, theory
from discreet.simulation import engine
from discreet.strategies.presets import PRESETS
from discreet.studies.study import Study
from discreet.theory.bounds import bounds
from discreet.trials.protocol import Protocol

ARMS = Gaussian([3.0, -1.0, 2.5], 2.0, ["a", "b", "c"])
FALSE_ALARM = 1e-6


def test_the_instance() -> None:
    assert (ARMS.arms, ARMS.best, ARMS.outcomes, ARMS.is_bounded) == (3, 0, "numbers", False)
    assert ARMS.gaps == pytest.approx([0.5, 4.0, 0.5])
    assert Instance.from_dict(ARMS.to_dict()) == ARMS != Gaussian(ARMS.means, 1.0, ARMS.names)
    assert Bernoulli([0.5, 0.4]).sigma == 0.5
    for wrong in (
        lambda: Gaussian([1.0], 1),
        lambda: Gaussian([1.0, np.inf], 1),
        lambda: Gaussian([1.0, 2.0], 0),
        lambda: Gaussian([1.0, 2.0], "1"),  # type: ignore[arg-type]
        ARMS.as_bernoulli,
    ):
        with pytest.raises(InvalidInputError):
            wrong()


def test_times_grow_with_the_variance() -> None:
    """T = 8σ²/Δ² for two arms, σ² times that of σ = 1 for any, and the least number of
    samples follows.
    """
    assert theory.t_kl(Gaussian([1.0, 0.5], 3.0)).value == pytest.approx(8 * 9 / 0.25)
    unit = Gaussian(ARMS.means, 1.0)
    for time in (theory.t_kl, theory.t_gaussian, theory.t_kl_beta, theory.t_gaussian_beta):
        assert time(ARMS).value == pytest.approx(4 * time(unit).value)
        assert time(ARMS).allocation == pytest.approx(time(unit).allocation)
    assert theory.complexity(ARMS) == pytest.approx(4 * theory.complexity(unit))
    assert theory.t_gaussian(ARMS, 1.0).value == pytest.approx(theory.t_kl(unit).value)
    least = theory.lower_bound(theory.t_kl(ARMS), 0.05)
    assert theory.least_samples(ARMS, 0.05) == pytest.approx(least)
    found = bounds(ARMS, delta=0.05)
    assert found.lower_bound == pytest.approx(least)
    described = found.to_dict()
    assert described["sigma"] == 2.0
    assert described["free_epsilon"] is None
    assert "t_tv" not in described["allocation"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds(ARMS, [1.0]),
        lambda: theory.t_epsilon(ARMS, 1.0),
        lambda: theory.t_relaxed(ARMS, 1.0),
        lambda: theory.t_tv(ARMS),
        lambda: theory.free_epsilon(ARMS),
        lambda: theory.floor_bound(ARMS, 0.05),
        lambda: theory.least_samples(ARMS, 0.05, 1.0),
        lambda: theory.private_complexity(ARMS, 1.0),
        lambda: theory.upper_constant_ctb_tt(ARMS, 1.0),
        lambda: theory.upper_constant_adap_tt(ARMS, 1.0),
        lambda: theory.upper_constant_adap_tt_star(ARMS, 1.0),
        *[
            (lambda preset=preset, levels=levels: simulate(ARMS, preset(delta=0.1, **levels)))
            for preset, levels in (
                (discreet.ctb_tt, {"epsilon": 1}),
                (discreet.gauss_tt, {"epsilon": 1, "gamma": 0.1}),
                (discreet.adap_tt, {"epsilon": 1}),
                (discreet.dp_se, {"epsilon": 1}),
                (discreet.bet_se, {"epsilon": 1}),
                (discreet.bet_se, {"trust": "none"}),
            )
        ],
    ],
)
def test_what_is_about_privacy_says_how_to_clip(call: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"choose a range, and clip .*out_of_range='clip'"):
        call()


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: simulate(ARMS, discreet.ttucb(0.1)), "sigma=2"),
        (lambda: simulate(ARMS, discreet.ttucb(0.1, cost="kl")), "sigma=2"),
        (lambda: simulate(ARMS, discreet.ttucb(0.1, sigma=1.9)), "would not hold"),
        (lambda: simulate(Bernoulli([0.5, 0.4]), discreet.ttucb(0.1, sigma=0.4)), "would not hold"),
        (lambda: discreet.ttucb(0.1, sigma=2, cost="kl"), "leave sigma out"),
        (lambda: discreet.ttucb(0.1, sigma=-1), "sigma must be"),
        (lambda: discreet.adap_tt(1, 0.1, sigma=1), "out_of_range='clip'"),
        (lambda: discreet.bet_se(0.1, trust="none", sigma=1), "out_of_range='clip'"),
        (
            lambda: Protocol("dose", ("a", "b"), discreet.ttucb(0.1, sigma=1), max_participants=90),
            "leave sigma out",
        ),
    ],
)
def test_refused(make: Any, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=advice):
        make()


def test_strategies_say_what_they_are_right_for() -> None:
    told = discreet.ttucb(0.1, sigma=2)
    assert "σ-sub-Gaussian rewards with σ = 2" in told.correctness
    assert Strategy.from_json(told.to_json()) == told
    assert told.identity["sigma"] == 2
    assert discreet.ttucb(0.1).identity["sigma"] is None


@pytest.mark.parametrize("name", ["ttucb", "ttucb-batched"])
def test_the_unit_of_rewards_does_not_matter(name: str) -> None:
    """Rewards in another unit give the very same runs, and σ = 1/2 is what rewards in
    [0, 1] are simulated with.
    """
    found = [
        simulate(Gaussian([unit * 0.7, unit * 0.5], unit * 0.5), told, runs=20, seed=3).samples
        for unit, told in ((u, PRESETS[name](delta=0.1, sigma=u * 0.5)) for u in (1, 64))
    ]
    assert (found[0] == found[1]).all()
    yes_no = Bernoulli([0.7, 0.5])
    plain, told = PRESETS[name](delta=0.1), PRESETS[name](delta=0.1, sigma=0.5)
    assert (simulate(yes_no, plain, 20).samples == simulate(yes_no, told, 20).samples).all()


def too_many(runs: int, delta: float) -> int:
    """So many errors a δ-correct strategy makes with probability FALSE_ALARM at
    most.
    """
    return int(binom.isf(FALSE_ALARM, runs, delta)) + 1


@pytest.mark.parametrize("sampling", ["top-two", "uniform", "lucb", "elimination"])
@pytest.mark.parametrize("name", ["ttucb", "ttucb-batched"])
def test_error_rates(name: str, sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """False-alarm rate 1e-6 each. With the σ = 1/2 of rewards in [0, 1] in place of 2,
    which the engine refuses, errors are seen.
    """
    near_tie, runs, delta, cap = Gaussian([10.0, 10.5], 2.0), 300, 0.01, 10**6
    right, wrong = (
        PRESETS[name](delta=delta, sampling=sampling, sigma=sigma) for sigma in (2.0, 0.5)
    )
    honest = engine.simulate_quietly(near_tie, right, runs, 5, cap)
    assert honest.stopped.all()
    assert honest.errors < too_many(runs, delta)
    with pytest.raises(InvalidInputError, match="would not hold"):
        simulate(near_tie, wrong)
    monkeypatch.setattr(engine, "check_rewards", lambda *_: None)
    assert engine.simulate_quietly(near_tie, wrong, runs, 5, cap).errors >= too_many(runs, delta)


def test_samples_lie_between_the_bounds() -> None:
    """E[τ]/log(1/δ) of TTUCB at δ = 1e-60 lies between T and 1.3 T_β, to which it falls
    as δ does.
    """
    delta = 1e-60
    mean = simulate(ARMS, discreet.ttucb(delta, sigma=2.0), runs=20, seed=2).samples.mean()
    assert theory.lower_bound(theory.t_kl(ARMS), delta) < mean
    assert mean < 1.3 * theory.t_kl_beta(ARMS).value * np.log(1 / delta)


def test_a_study_file(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        "runs = 5\ndelta = 0.1\n[instances]\ntaste = {means = [7, 5.5], sigma = 2}\n"
        '[[strategies]]\npreset = "ttucb"\nsigma = [2, 3]\nsampling = ["top-two", "lucb"]\n'
    )
    study = Study.from_toml(file)
    assert dict(study.instances) == {"taste": Gaussian([7, 5.5], 2)}
    assert {strategy.sigma for strategy in study.strategies} == {2.0, 3.0}
    assert Study.from_dict(study.to_dict()) == study
    file.write_text(file.read_text().replace("sigma = [2, 3]", ""))
    with pytest.raises(InvalidInputError, match="make ttucb with sigma=2"):
        Study.from_toml(file)
