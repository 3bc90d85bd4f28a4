"""Arms given by past data on the command line, and what outcomes are expected to be."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet.cli import main

PAST = "dose,pain\n5 mg,30\n5 mg,35\n10 mg,80\n10 mg,90\n10 mg,85\n"
RANGE = ["--range", "0,100"]


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    path = tmp_path / "past.csv"
    path.write_text(PAST)
    return ["--data", str(path), "--arm", "dose", "--outcome", "pain"]


def said(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def document(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(*words, "--json"))
    return found


def refused(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 2, result.output
    return result.stderr


SIMULATE = ["simulate", "--strategy", "bet-se", "--epsilon", "5", "--runs", "3"]
PLAN = ["plan", "--epsilon", "5", "--runs", "3"]


class TestSimulate:
    def test_data(self, data: list[str]) -> None:
        found = document(*SIMULATE, *data, *RANGE)
        assert found["outcomes"] == "numbers"
        assert found["spec"]["strategy"]["outcomes"] == "numbers"
        arms = found["spec"]["instance"]
        assert list(arms) == ["law", "names", "means", "counts"]
        assert (arms["names"], arms["counts"]) == (["5 mg", "10 mg"], [2, 3])
        assert arms["means"] == pytest.approx([0.325, 0.85])
        assert found["errors"] == 0
        text = said(*SIMULATE, *data, *RANGE)
        assert "(outcomes = numbers)" in text
        assert "10 mg" in text

    def test_less_is_better(self, data: list[str]) -> None:
        found = document(*SIMULATE, *data, *RANGE, "--direction", "min")
        assert found["spec"]["instance"]["means"] == pytest.approx([0.675, 0.15])

    def test_what_lies_outside(self, data: list[str]) -> None:
        words = refused(*SIMULATE, *data, "--range", "0,82")
        assert "2 of 5 outcomes lie outside the range 0 to 82" in words
        clipped = document(*SIMULATE, *data, "--range", "0,82", "--out-of-range", "clip")
        assert clipped["spec"]["instance"]["means"][1] == pytest.approx((80 + 82 + 82) / 3 / 82)

    def test_every_file_of_runs_has_the_data(self, data: list[str], tmp_path: Path) -> None:
        from discreet import Instance, Results, Sampled

        out = tmp_path / "runs.parquet"
        said(*SIMULATE, *data, *RANGE, "--out", str(out))
        assert isinstance(Instance.from_dict(Results.load(out).spec["instance"]), Sampled)

    def test_outcomes_can_be_said(self, data: list[str]) -> None:
        assert document(*SIMULATE, *data, *RANGE, "--outcomes", "yes-no")["outcomes"] == "yes-no"
        rates = ["--means", "0.2,0.9"]
        assert document(*SIMULATE, *rates)["outcomes"] == "yes-no"
        assert document(*SIMULATE, *rates, "--outcomes", "numbers")["outcomes"] == "numbers"
        assert "outcomes must be yes-no or numbers" in refused(*SIMULATE, *rates, "--outcomes", "x")

    def test_others_take_outcomes_as_they_are(self, data: list[str]) -> None:
        other = ["simulate", "--strategy", "dp-se", "--epsilon", "5", "--runs", "3"]
        assert document(*other, *data, *RANGE)["outcomes"] is None
        assert "the kind of outcomes to expect, is for bet-se only" in refused(
            *other, "--means", "0.2,0.9", "--outcomes", "numbers"
        )


class TestPlan:
    def test_data(self, data: list[str]) -> None:
        found = document(*PLAN, *data, *RANGE, "--strategy", "bet-se,dp-se")
        assert [row["outcomes"] for row in found["per_epsilon"]] == ["numbers", None]
        assert [row["outcomes"] for row in found["no_privacy"]] == ["numbers"]
        (scenario,) = found["scenarios"].values()
        assert scenario["counts"] == [2, 3]
        text = said(*PLAN, *data, *RANGE)
        assert "5 mg 32.5, 10 mg 85 on average (2, 3 participants), range 0 to 100" in text
        assert "'no end'" not in text
        assert "start the trial the same way (--outcomes numbers, or in" in text

    def test_outcomes_can_be_said(self, data: list[str]) -> None:
        other = (*PLAN, *data, *RANGE, "--outcomes", "yes-no")
        assert [row["outcomes"] for row in document(*other)["per_epsilon"]] == ["yes-no"]
        assert "start the trial the same way (--outcomes yes-no, or in" in said(*other)

    def test_units_people_and_what_is_clipped(self, data: list[str], tmp_path: Path) -> None:
        page = tmp_path / "plan.html"
        ends = ("--range", "0,82", "--out-of-range", "clip", "--direction", "min")
        said(*PLAN, *data, *ends, "--html", str(page))
        assert document(*PLAN, *data, *ends)["clipped"] == 2
        assert document(*PLAN, *data, *RANGE)["clipped"] == 0
        assert "clipped" not in document(*PLAN, "--means", "0.1,0.9")
        units = "5 mg 32.5, 10 mg 81.33 on average (2, 3 participants), range 0 to 82, less"
        clipped = "2 of 5 past outcomes (40.0%) lie outside the range and count as the nearer end"
        for words in (said(*PLAN, *data, *ends), page.read_text()):
            assert units in words
            assert clipped in words
            assert "tightest" not in words.lower()
        assert f"{clipped}." in said(*SIMULATE, *data, *ends)
        assert "Data: 5 mg 32.5, 10 mg 81.33 on average" in said(*SIMULATE, *data, *ends)

    def test_what_is_shown_is_explained(
        self, data: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "64")
        narrow = said(
            *PLAN, *data, *RANGE, "--strategy", "bet-se,dp-se", "--max-participants", "999"
        )
        assert "looks" not in narrow

    def test_numbers_that_leave_as_bits(self, data: list[str], tmp_path: Path) -> None:
        page = tmp_path / "plan.html"
        local = [*PLAN, *data, *RANGE, "--trust", "local"]
        low = ["1,2" if word == "5" else word for word in local]
        for words in (said(*low, "--html", str(page)), page.read_text()):
            assert "at ε = 1 each is sent as a randomised bit" in words
            assert (
                "is sent, which does): start the trial the same way (--outcomes numbers, or in"
                in words
            )
        assert "randomised bit" not in said(*local)

    def test_rates_are_yes_or_no(self) -> None:
        rates = (*PLAN, "--means", "0.2,0.9")
        assert [row["outcomes"] for row in document(*rates)["per_epsilon"]] == ["yes-no"]
        assert "--outcomes" not in said(*rates)
        assert "--outcomes numbers" in said(*rates, "--outcomes", "numbers")


@pytest.mark.parametrize("command", [SIMULATE, PLAN])
def test_one_way_to_give_the_arms(command: list[str], data: list[str]) -> None:
    for other in (["--means", "0.1,0.2"], ["--instance", "mu1"], ["--names", "a,b"]):
        assert "either by --data FILE" in refused(*command, *data, *RANGE, *other)
    for part in (["--arm", "a"], ["--outcome", "b"], RANGE, ["--direction", "min"]):
        assert "belong to --data FILE" in refused(*command, "--means", "0.1,0.9", *part)
    assert "or as --data FILE" in refused(*command)
    assert "needs the names of two columns" in refused(*command, *data[:4])
    assert "such as 20,100, which contains all" in refused(*command, *data)
    assert "has no column 'dosis'; its columns are dose, pain" in refused(
        *command, *data[:2], "--arm", "dosis", "--outcome", "pain"
    )
    assert "give two numbers, such as 0,100" in refused(*command, *data, "--range", "5")


def test_a_plan_has_its_arms_once(data: list[str]) -> None:
    words = "give either --means, --instance or --data, or else --arms and --gap"
    assert words in refused(*PLAN, *data, "--arms", "2", "--gap", "0.1")


class TestTrial:
    def create(self, folder: Path, *options: str) -> list[str]:
        words = ["trial", "create", "t", "--arms", "a,b", "--strategy", "bet-se", "--epsilon", "1"]
        url = f"sqlite:///{folder / 't.db'}"
        return [*words, "--max-participants", "50", "--url", url, *options]

    @pytest.mark.parametrize(
        ("options", "outcomes", "words"),
        [
            ([], "yes-no", "one of the two (--outcomes yes-no)."),
            (["--range", "0,1"], "yes-no", "one of the two (--outcomes yes-no)."),
            (
                ["--range", "0,9"],
                "numbers",
                "Outcomes: numbers from 0 to 9, more is better (--outcomes numbers).",
            ),
            (["--outcomes", "numbers"], "numbers", "Outcomes: numbers from 0 to 1"),
            (["--range", "0,9", "--outcomes", "yes-no"], "yes-no", "Outcomes: 0 or 9"),
        ],
    )
    def test_the_range_says_what_outcomes_are(
        self, tmp_path: Path, options: list[str], outcomes: str, words: str
    ) -> None:
        from discreet import Trial

        assert words in said(*self.create(tmp_path, *options))
        assert document(*self.create(tmp_path, *options))["outcomes"] == outcomes
        trial = Trial.open(f"sqlite:///{tmp_path / 't.db'}", "t")
        assert trial.protocol.strategy.outcomes == outcomes

    def test_other_strategies_mind_the_range_only(self, tmp_path: Path) -> None:
        words = self.create(tmp_path, "--range", "0,9", "--max-participants", "2000")
        words[words.index("bet-se")] = "dp-se"
        assert "--outcomes" not in said(*words)
        assert document(*words)["outcomes"] is None
