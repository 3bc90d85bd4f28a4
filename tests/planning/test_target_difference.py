"""A plan for a gap expects that gap: in its strategies, its words and its documents."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import Bernoulli, InvalidInputError, bet_se, dp_se, make_gap_scenarios, plan
from discreet.cli import main
from discreet.reports.plan import plan_page

WORDS = make_gap_scenarios(arms=2, gap=0.4, base=0.5)


def rows(**options: Any) -> list[float]:
    found = plan(WORDS, 1.0, 0.1, runs=5, **options)
    assert found.target_difference == found.recommended.strategy.target_difference
    return [row.strategy.target_difference for row in (*found.per_epsilon, *found.no_privacy)]


def test_the_gap_is_the_target_difference() -> None:
    assert rows() == [0.4, 0.4]
    assert rows(target_difference=0.0) == [0.0, 0.0]
    assert rows(target_difference=0.2) == [0.2, 0.2]
    assert rows(strategies=["bet-se", "dp-se"]) == [0.4, 0.0, 0.4]


def test_strategies_of_your_own_keep_their_target_difference() -> None:
    assert rows(strategies=[bet_se(0.1, 1.0), dp_se(1.0, 0.1)]) == [0.0, 0.0, 0.4]


def test_success_rates_are_no_target_difference() -> None:
    rates = Bernoulli([0.7, 0.3])
    assert plan(rates, 1.0, 0.1, runs=5).target_difference == 0
    assert (
        plan(rates, 1.0, 0.1, runs=5, target_difference=0.4)
        .per_epsilon[0]
        .strategy.target_difference
        == 0.4
    )
    with pytest.raises(InvalidInputError, match="target_difference is the difference"):
        plan(rates, 1.0, 0.1, runs=5, target_difference=2.0)


def test_a_plan_says_with_which_target_difference_to_begin() -> None:
    said = "start the trial with the same target difference (--target-difference 0.4)"
    assert said in plan_page(plan(WORDS, 1.0, 0.1, runs=5))
    command = ["plan", "--arms", "2", "--gap", "0.4", "--epsilon", "1", "--runs", "5"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0
    assert said in " ".join(shown.output.split())
    without = CliRunner().invoke(main, [*command, "--target-difference", "0"])
    assert "start the trial with" not in " ".join(without.output.split())
    document = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert [row["target_difference"] for row in document["per_epsilon"]] == [0.4]
