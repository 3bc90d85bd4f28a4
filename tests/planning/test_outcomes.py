"""A plan expects outcomes as its scenarios have them: in its strategies, its words and
its page.
"""

from typing import Any

import pytest

from discreet import (
    Bernoulli,
    Beta,
    Instance,
    InvalidInputError,
    Sampled,
    bet_se,
    make_gap_scenarios,
    plan,
)
from discreet.reports.plan import plan_page

RATES, NUMBERS = Bernoulli([0.2, 0.9]), Beta([2, 18], [18, 2])
DATA = Sampled([[0.1, 0.2], [0.8, 0.9]])


def expected(scenarios: Any, **options: Any) -> list[str]:
    found = plan(scenarios, 5.0, 0.1, runs=3, **options)
    assert found.outcomes == found.recommended.strategy.outcomes
    return [row.strategy.outcomes for row in (*found.per_epsilon, *found.no_privacy)]


@pytest.mark.parametrize(
    ("scenarios", "outcomes"),
    [
        (RATES, ["yes-no"] * 2),
        (make_gap_scenarios(2, 0.5, 0.5), ["yes-no"] * 2),
        (NUMBERS, ["numbers"] * 2),
        (DATA, ["numbers"] * 2),
        ([RATES, NUMBERS], ["numbers"] * 4),
    ],
)
def test_scenarios_say_it(scenarios: Instance | list[Instance], outcomes: list[str]) -> None:
    assert expected(scenarios) == outcomes


def test_it_can_be_said() -> None:
    assert expected(NUMBERS, outcomes="yes-no") == ["yes-no"] * 2
    assert expected(RATES, outcomes="numbers", trust="local") == ["numbers"] * 2
    assert expected(NUMBERS, strategies=["bet-se", "dp-se"]) == ["numbers", "yes-no", "numbers"]
    with pytest.raises(InvalidInputError, match="outcomes must be yes-no or numbers"):
        expected(RATES, outcomes="bits")


def test_strategies_of_your_own_stay_as_they_are() -> None:
    assert expected(NUMBERS, strategies=[bet_se(0.1, 1.0)]) == ["yes-no", "numbers"]


def test_a_page_says_it() -> None:
    html = plan_page(plan(DATA, 5.0, 0.1, runs=3))
    assert "start the trial the same way (--outcomes numbers, or in Python bet_se(" in html
    assert (
        "Mean outcomes on a scale from 0 to 1: arm 1 0.15, arm 2 0.85 (2 participants each)."
        in html
    )
    assert "--outcomes" not in plan_page(plan(RATES, 5.0, 0.1, runs=3))
