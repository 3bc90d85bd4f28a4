"""bet-se as a strategy: its words, what it refuses, the command line."""

import json
import math
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import Bernoulli, InvalidInputError, TiedBestArmError
from discreet.cli import main
from discreet.simulation.engine import simulate
from discreet.strategies.presets import bet_se, ctb_tt, recommended, ttucb
from discreet.strategies.strategy import Strategy


def test_words_and_json() -> None:
    for strategy in (
        bet_se(0.1, 1.0),
        bet_se(0.1, 0.5, "local", 0.05),
        bet_se(0.1, trust="none"),
        bet_se(0.1, 1.0, target_difference=0.2),
    ):
        assert Strategy.from_json(strategy.to_json()) == strategy
        assert strategy.is_proved
        assert "Betting elimination" in strategy.reference
    assert bet_se(0.1, 1.0).privacy == "1-global DP: noise is added to every release"
    assert (
        bet_se(0.1, 1.0, "local").privacy
        == "1-local DP: every answer is randomised before it is sent"
    )
    assert bet_se(0.1, trust="none").privacy.startswith("none")
    assert "probability at most 0.1" in bet_se(0.1, 1.0).correctness
    assert "more than 0.05 below the best" in bet_se(0.1, 1.0, indifference_zone=0.05).correctness
    assert bet_se(0.1, 1.0).with_(trust="local", delta=0.2) == bet_se(0.2, 1.0, "local")


def test_the_trust_of_the_others_follows_from_the_estimator() -> None:
    assert (ttucb(0.1).trust, ctb_tt(1.0, 0.1).trust) == ("none", "local")
    assert Strategy(name="mine", estimator="ctb", delta=0.1, epsilon=1.0).trust == "local"
    assert Strategy.from_dict({"name": "ttucb", "estimator": "mle", "delta": 0.1}) == ttucb(0.1)
    with pytest.raises(InvalidInputError, match="only bet-se offers a choice"):
        ttucb(0.1).with_(trust="global")
    with pytest.raises(InvalidInputError, match="for bet-se only"):
        ttucb(0.1).with_(indifference_zone=0.1)
    with pytest.raises(InvalidInputError, match="for bet-se only"):
        ttucb(0.1).with_(target_difference=0.1)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "say how private.*trust='none'"),
        ({"trust": "local"}, "say how private"),
        ({"trust": "none", "epsilon": 1.0}, r"no privacy here .*: leave epsilon out"),
        ({"trust": "everyone", "epsilon": 1.0}, "trust must be one of global, local, none"),
        ({"trust": "", "epsilon": 1.0}, "trust must be one of"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 1.0, "indifference_zone": 1.0}, r"indifference_zone must lie in \[0, 1\)"),
        ({"epsilon": 1.0, "indifference_zone": -0.1}, "indifference_zone must lie"),
        ({"epsilon": 1.0, "indifference_zone": math.nan}, "indifference_zone must lie"),
        (
            {"epsilon": 1.0, "target_difference": -0.1},
            "target_difference is the difference.*a number from",
        ),
        ({"epsilon": 1.0, "target_difference": 1.5}, "target_difference is the difference"),
        ({"epsilon": 1.0, "target_difference": math.nan}, "target_difference is the difference"),
        ({"epsilon": 1.0, "target_difference": True}, "target_difference is the difference"),
        ({"epsilon": 1.0, "threshold": "printed"}, "one threshold, 1/δ"),
        ({"epsilon": 1.0, "threshold": "empirical"}, "one threshold, 1/δ"),
        ({"epsilon": 1.0, "sampling": "lucb"}, "no option 'sampling'"),
        ({"epsilon": 1.0, "episodes": "global"}, "strategies in phases"),
        ({"epsilon": 1.0, "gamma": 0.1}, r"gamma in \[1e-15, 0.01\]"),
        ({"epsilon": 1.0, "cost": "private"}, "for the estimator daf"),
    ],
)
def test_refusals(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        bet_se(0.1, **parts)


def test_ties_are_refused_without_an_indifference_zone() -> None:
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
    means = ["--means", "0.5,0.5,0.4", "--indifference-zone", "0.1"]
    result = CliRunner().invoke(main, [*arguments, *means, "--epsilon", "1", "--trust", "local"])
    found = json.loads(result.stdout)
    assert (found["strategy"], found["trust"], found["errors"], found["unstopped"]) == (
        "bet-se",
        "local",
        0,
        0,
    )
    assert found["spec"]["strategy"]["indifference_zone"] == 0.1
    assert "more than 0.1 below the best" in found["correctness"]
    free = CliRunner().invoke(main, [*arguments, "--instance", "mu5", "--trust", "none"])
    assert json.loads(free.stdout)["epsilon"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say how private, with --epsilon"),
        (["--epsilon", "1", "--trust", "none"], "takes no --epsilon"),
        (["--epsilon", "1", "--trust", "all"], "trust must be one of"),
        (["--epsilon", "1", "--indifference-zone", "2"], "indifference_zone must lie"),
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


@pytest.mark.parametrize("target_difference", [1e-320, 1e-9, -1e-9, 1.5, math.nan, True, "0.1"])
def test_a_target_difference_is_a_difference_that_can_be_found(target_difference: Any) -> None:
    with pytest.raises(InvalidInputError, match="a number from 1e-6 to 1, or 0 for none"):
        bet_se(0.1, 1.0, target_difference=target_difference)


def test_no_target_difference_is_written_in_one_way() -> None:
    assert bet_se(0.1, 1.0, target_difference=-0.0).to_json() == bet_se(0.1, 1.0).to_json()
    assert bet_se(0.1, 1.0).identity["target_difference"] == 0.0
    assert bet_se(0.1, 1.0, target_difference=0.2).identity["target_difference"] == 0.2


def test_a_first_round_beyond_all_numbers_is_cut_to_the_cap() -> None:
    found = simulate(Bernoulli([0.9, 0.1]), bet_se(0.01, 1e-10, target_difference=1e-6), 2, 1)
    assert found.rounds.tolist() == [1, 1]
    assert found.samples.tolist() == [10**12, 10**12]
