"""A plan for a gap expects that gap: in its strategies, its words and its documents."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import Bernoulli, InvalidInputError, bet_se, dp_se, gap_scenarios, plan
from discreet.cli import main
from discreet.reports.plan import plan_page

WORDS = gap_scenarios(arms=2, gap=0.4, base=0.5)


def rows(**options: Any) -> list[float]:
    found = plan(WORDS, 1.0, 0.1, runs=5, **options)
    assert found.hint == found.recommended.strategy.hint
    return [row.strategy.hint for row in (*found.per_epsilon, *found.no_privacy)]


def test_the_gap_is_the_hint() -> None:
    assert rows() == [0.4, 0.4]
    assert rows(hint=0.0) == [0.0, 0.0]
    assert rows(hint=0.2) == [0.2, 0.2]
    assert rows(strategies=["bet-se", "dp-se"]) == [0.4, 0.0, 0.4]


def test_strategies_of_your_own_keep_their_hint() -> None:
    assert rows(strategies=[bet_se(0.1, 1.0), dp_se(1.0, 0.1)]) == [0.0, 0.0, 0.4]


def test_success_rates_are_no_hint() -> None:
    rates = Bernoulli([0.7, 0.3])
    assert plan(rates, 1.0, 0.1, runs=5).hint == 0
    assert plan(rates, 1.0, 0.1, runs=5, hint=0.4).per_epsilon[0].strategy.hint == 0.4
    with pytest.raises(InvalidInputError, match="hint is the difference"):
        plan(rates, 1.0, 0.1, runs=5, hint=2.0)


def test_a_plan_says_with_which_hint_to_begin() -> None:
    said = "start the trial with the same hint (--hint 0.4)"
    assert said in plan_page(plan(WORDS, 1.0, 0.1, runs=5))
    command = ["plan", "--arms", "2", "--gap", "0.4", "--epsilon", "1", "--runs", "5"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0
    assert said in " ".join(shown.output.split())
    without = CliRunner().invoke(main, [*command, "--hint", "0"])
    assert "start the trial with" not in " ".join(without.output.split())
    document = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert [row["hint"] for row in document["per_epsilon"]] == [0.4]
