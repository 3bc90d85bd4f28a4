"""strategy.py: presets, what does not fit together, words, JSON both ways."""

import dataclasses
from typing import Any

import pytest

import discreet
from discreet import InvalidInputError, Strategy
from discreet.strategies.estimators import CustomBonus, CustomGrid, CustomThreshold
from discreet.strategies.presets import PRESETS

ARGUMENTS: dict[str, dict[str, Any]] = {
    "ttucb": {},
    "ttucb-batched": {},
    "ttucb-forgetting": {},
    "ctb-tt": {"epsilon": 1.0},
    "gauss-tt": {"epsilon": 1.0, "gamma": 1e-6},
    "adap-tt": {"epsilon": 1.0},
    "adap-tt-star": {"epsilon": 1.0},
    "dp-se": {"epsilon": 1.0},
}


NOT_A_FUNCTION: Any = None


def preset(name: str, **options: Any) -> Strategy:
    return PRESETS[name](delta=0.05, **ARGUMENTS[name], **options)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_presets(name: str) -> None:
    strategy = preset(name)
    assert strategy.name == name
    assert getattr(discreet, name.replace("-", "_")) is PRESETS[name]
    assert strategy == preset(name)
    assert hash(strategy) == hash(preset(name))
    assert strategy != strategy.with_(delta=0.01)
    assert Strategy.from_json(strategy.to_json()) == strategy
    assert strategy.is_proved
    assert "at most 0.05" in strategy.correctness
    assert strategy.reference
    with pytest.raises(dataclasses.FrozenInstanceError):
        strategy.delta = 0.5  # type: ignore[misc]


def test_words() -> None:
    assert preset("ctb-tt").trust == "local"
    assert preset("ctb-tt").privacy.startswith("1-local DP")
    assert preset("gauss-tt").privacy.startswith("(1, 1e-06)-local DP")
    assert preset("adap-tt").trust == "global"
    assert preset("dp-se").privacy.startswith("1-global DP")
    assert preset("ttucb").privacy.startswith("none")
    for name in ("ttucb", "adap-tt", "adap-tt-star", "ctb-tt"):
        empirical = preset(name, threshold="empirical")
        assert not empirical.is_proved
        assert "no guarantee" in empirical.correctness


@pytest.mark.parametrize("name", ["gauss-tt", "ttucb-batched"])
def test_printed_is_corrected_where_it_must_be_and_says_so(name: str) -> None:
    assert "corrected" in preset(name, threshold="printed").reference
    assert "corrected" not in preset("adap-tt", threshold="printed").reference


def test_custom_parts() -> None:
    own = preset("adap-tt", threshold=CustomThreshold("mine", lambda a, b: a + b))
    assert "your own" in own.correctness
    assert not own.is_proved
    with pytest.raises(InvalidInputError, match="cannot be saved"):
        own.to_json()
    assert not preset(
        "adap-tt", grid=CustomGrid("triple", lambda phase: 3 ** (phase - 1))
    ).is_proved
    assert preset("ttucb", bonus=CustomBonus("flat", lambda count: 0 * count + 1)).is_proved


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: discreet.adap_tt(epsilon=0, delta=0.1), "epsilon must be a positive"),
        (lambda: discreet.adap_tt(epsilon=1, delta=1), "delta must lie"),
        (lambda: discreet.adap_tt(epsilon=1, delta=0.1, beta=1.0), "beta must lie"),
        (lambda: discreet.adap_tt(epsilon=1, delta=0.1, beta="half"), "'ids'"),
        (
            lambda: discreet.adap_tt(epsilon=1, delta=0.1, sampling="lucb", beta=0.3),
            "has no leader",
        ),
        (
            lambda: discreet.adap_tt(epsilon=1, delta=0.1, sampling="greedy"),
            "sampling must be one of",
        ),
        (
            lambda: discreet.adap_tt(epsilon=1, delta=0.1, threshold="best"),
            "threshold must be one of",
        ),
        (lambda: discreet.adap_tt(epsilon=1, delta=0.1, cost="private"), "no option 'cost'"),
        (lambda: discreet.ttucb(delta=0.1, s=1.0), "s must be a number larger than 1"),
        (lambda: discreet.adap_tt(epsilon=1, delta=0.1, s=5.0), "does not use"),
        (
            lambda: discreet.ttucb(0.1, sampling="uniform", bonus=CustomBonus("x", float)),
            "uses no bonus",
        ),
        (lambda: discreet.ttucb(0.1, sampling="eb-tci", s=1.5), "s belongs to the bonus"),
        (lambda: discreet.ttucb_batched(0.1, sampling="uniform", alpha=2), "alpha belongs to"),
        (lambda: discreet.ttucb(0.1, bonus=CustomBonus("x", float), s=1.5), "is not used here"),
        (
            lambda: discreet.adap_tt(1, 0.1, episodes="global-yielding", sampling="eb-tci"),
            "repairs top-two",
        ),
        (lambda: CustomThreshold("x", NOT_A_FUNCTION), "needs a function"),
        (lambda: discreet.adap_tt(1, 0.1, episodes="global", sampling="lucb"), "never double"),
        (lambda: discreet.adap_tt(1, 0.1, episodes="global", sampling="eb-tc"), "never double"),
        (lambda: discreet.adap_tt(1, 0.1, sampling="ts-tc"), "learn from every sample"),
        (lambda: discreet.ttucb(0.1, sampling="track-and-stop", beta=0.3), "has no leader"),
        (lambda: discreet.ttucb(delta=0.1, episodes="global"), "phases .*: ttucb has none"),
        (
            lambda: discreet.adap_tt(1, 0.1, episodes="global", sampling="elimination"),
            "never double",
        ),
        (
            lambda: discreet.adap_tt(1, 0.1, episodes="global", grid=CustomGrid("x", int)),
            "takes no grid",
        ),
        (lambda: discreet.dp_se(1, 0.1, threshold="empirical"), "no empirical"),
        (lambda: discreet.dp_se(1, 0.1, sampling="uniform"), "no option 'sampling'"),
        (lambda: discreet.gauss_tt(1, 0, 0.1), "gamma must lie"),
        (lambda: discreet.ttucb(0.1).with_(epsilon=1.0), "has no privacy"),
        (lambda: discreet.ctb_tt(1, 0.1).with_(epsilon=None), "say how private"),
        (lambda: discreet.ttucb(0.1).with_(cost="private"), "for the estimator daf"),
        (
            lambda: discreet.ttucb(0.1, cost="hellinger"),
            "cost must be one of gaussian, private, kl",
        ),
        (lambda: discreet.ttucb_batched(0.1, cost="kl"), "renewed with every sample"),
        (lambda: discreet.gauss_tt(1, 0.1, 0.1, cost="kl"), "or of randomised responses"),
        (lambda: discreet.ttucb(0.1, cost="kl", threshold="printed"), "proved or empirical"),
        (lambda: discreet.adap_tt(1, 0.1).with_(cost="private"), "not an option of adap-tt"),
        (lambda: discreet.ttucb(0.1).with_(gamma=0.1), "gamma belongs to gauss-tt"),
        (lambda: discreet.ttucb(0.1).with_(colour="red"), "not an option of ttucb"),
        (lambda: discreet.ttucb(1e-300), "at least 1e-100"),
        (lambda: discreet.ctb_tt(1e300, 0.1), "epsilon must be"),
        (lambda: Strategy.from_json(NOT_A_FUNCTION), "not a JSON document"),
        (lambda: Strategy.from_json("[]"), "a JSON object"),
        (lambda: Strategy.from_json("{"), "not a JSON document"),
        (lambda: Strategy.from_dict({"colour": "red"}), "not the description of a strategy"),
    ],
)
def test_refused(make: Any, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=advice):
        make()
