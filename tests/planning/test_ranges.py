"""planning/ranges.py: what a wider or tighter range of outcomes costs, and where it is
shown.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from discreet import (
    InvalidInputError,
    RangeCost,
    Sampled,
    bet_se,
    dp_se,
    plan,
    plan_ranges,
    simulate,
)
from discreet.cli import main
from discreet.reports.plan import plan_page

PAST = {"a": np.array([30.0, 35, 42]), "b": np.array([50.0, 61, 55])}
STRATEGY = bet_se(0.1, 1.0, outcomes="numbers", target_difference=0.2)


def costs(**options: Any) -> tuple[RangeCost, ...]:
    chosen = {"range": (0, 100), "strategy": STRATEGY, "runs": 40, **options}
    return plan_ranges(PAST, **chosen)


def test_three_ranges() -> None:
    found = costs()
    assert [(row.name, row.low, row.high) for row in found] == [
        ("given", 0, 100),
        ("twice as wide", 0, 200),
        ("tightest round one", 30, 65),
    ]
    given, wider, tightest = (row.participants.mean or 0 for row in found)
    assert wider > given > tightest
    assert found[0].times == 1
    assert found[1].times == wider / given


@pytest.mark.parametrize(
    ("ends", "wider"),
    [((0, 100), (0, 200)), ((-100, 0), (-200, 0)), ((20, 80), (-10, 110)), ((-5, 5), (-10, 10))],
)
def test_an_end_at_zero_stays(ends: tuple[float, float], wider: tuple[float, float]) -> None:
    data = {"a": np.array([ends[0]]), "b": np.array([ends[1]])}
    found = plan_ranges(data, ends, STRATEGY, runs=2)
    assert (found[1].low, found[1].high) == wider
    assert [row.name for row in found] == ["given", "twice as wide"]  # the given one is tightest


def test_the_tightest_one_tells_no_outcome_and_is_not_wider_than_the_given_one() -> None:
    data = {"a": np.array([109.0, 120]), "b": np.array([150.0, 181.5])}
    tightest = plan_ranges(data, (0, 200), STRATEGY, runs=2)[-1]
    assert (tightest.low, tightest.high) == (100, 190)
    tightest = plan_ranges(data, (105, 200), STRATEGY, runs=2)[-1]
    assert (tightest.low, tightest.high) == (105, 190)


def test_each_is_a_simulation_of_its_own() -> None:
    """With a target difference for the difference of rewards at this range."""
    for row, factor in zip(costs(), (1, 0.5, 100 / 35), strict=True):
        assert row.strategy == STRATEGY.with_(target_difference=0.2 * factor)
        arms = Sampled.from_outcomes(PAST, (row.low, row.high))
        again = simulate(arms, row.strategy, runs=40, seed=0)
        assert row.participants.mean == again.samples.mean()


def test_target_differences_stay_in_their_range_and_none_stays_none() -> None:
    assert [
        row.strategy.target_difference
        for row in costs(strategy=STRATEGY.with_(target_difference=0.9))
    ] == [0.9, 0.45, 1]
    assert {row.strategy.target_difference for row in costs(strategy=dp_se(1.0, 0.1))} == {0}


def test_clipped_data_and_less_is_better() -> None:
    with pytest.raises(InvalidInputError, match="lie outside the range 0 to 50"):
        costs(range=(0, 50))
    found = costs(range=(0, 50), out_of_range="clip", direction="min")
    assert [(row.low, row.high) for row in found] == [(0, 50), (0, 100)]
    with pytest.raises(InvalidInputError, match="two numbers"):
        costs(range=3)


def test_a_maximum_of_people() -> None:
    wider = costs(max_participants=60)[1]
    assert (wider.participants.longest or 0) <= 60
    assert wider.unstopped > 0


def test_a_plan_with_ranges() -> None:
    from dataclasses import replace

    arms = Sampled.from_outcomes(PAST, (0, 100))
    found = plan(arms, 1.0, 0.1, runs=20)
    assert "ranges" not in found.to_dict()
    assert "range of outcomes" not in plan_page(found)
    found = replace(found, ranges=costs())
    html = plan_page(found)
    assert "What the range of outcomes costs, at ε = 1" in html
    assert "0 to 200 (twice as wide)" in html
    assert "without a maximum" not in html
    assert "differ by less than they would without a maximum" in plan_page(
        replace(found, max_participants=60)
    )
    rows = found.to_dict()["ranges"]
    assert [row["name"] for row in rows] == ["given", "twice as wide", "tightest round one"]
    assert rows[0]["participants"]["mean"] == found.ranges[0].participants.mean
    json.dumps(rows)


class TestCommand:
    def said(self, folder: Path, *words: str) -> str:
        path = folder / "past.csv"
        lines = [f"{arm},{value}" for arm, values in PAST.items() for value in values]
        path.write_text("\n".join(["arm,y", *lines]))
        given = ["--data", str(path), "--arm", "arm", "--outcome", "y"]
        result = CliRunner().invoke(main, ["plan", *given, "--epsilon", "1,2", *words])
        assert result.exit_code == 0, result.output
        return result.stdout

    def test_the_first_level_and_fewer_runs(self, tmp_path: Path) -> None:
        found = json.loads(self.said(tmp_path, "--range", "0,100", "--runs", "250", "--json"))
        assert list(found["ranges"][0]) == [
            "name",
            "low",
            "high",
            "strategy",
            "runs",
            "participants",
            "correct",
            "unstopped",
            "times",
            "epsilon",
        ]
        assert {(row["epsilon"], row["runs"]) for row in found["ranges"]} == {(1, 200)}

    def test_words(self, tmp_path: Path) -> None:
        text = self.said(tmp_path, "--range", "0,100", "--runs", "20")
        assert "30 to 65 (tightest round one)" in text
        assert "…" not in text.split("What the range")[1].replace(" … ", "")
        assert "Choose the range from past data" in " ".join(text.split())
        page = tmp_path / "plan.html"
        self.said(tmp_path, "--range", "0,100", "--runs", "20", "--html", str(page))
        assert "30 to 65 (tightest round one)" in page.read_text()
