"""`discreet trial create`: the strategy that nobody named, and the trial that cannot
end.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet import Strategy, Trial, adap_tt, bet_se, dp_se, recommended
from discreet.cli import main
from discreet.strategies import presets
from discreet.strategies.presets import Recommendation
from discreet.wording import describe_reason

CREATE = ["trial", "create", "dose", "--arms", "a,b", "--max-participants", "2000"]
PRIVATE = [*CREATE, "--epsilon", "1"]
HOPELESS = [*CREATE, "--epsilon", "0.001"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(words: list[str], code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def document(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call([*words, "--json"]).stdout)
    return found


def started() -> Strategy:
    """The strategy of the trial that was started."""
    return Trial.open("sqlite:///discreet-trials.db", "dose").protocol.strategy


def test_the_question_is_part_of_the_protocol() -> None:
    asked = "Was the pain gone after two hours?"
    assert f"Question: {asked}" in call([*PRIVATE, "--question", asked]).stdout.splitlines()
    assert Trial.open("sqlite:///discreet-trials.db", "dose").protocol.question == asked
    assert "question is" in call(PRIVATE, 2).stderr, "with another question it is another trial"


def test_without_a_question_nothing_is_said_of_one() -> None:
    assert "Question:" not in call(PRIVATE).stdout
    assert Trial.open("sqlite:///discreet-trials.db", "dose").protocol.question == ""


# --- the strategy that nobody named ---------------------------------------------------


def test_the_recommended_strategy_is_taken_and_said() -> None:
    reason = recommended(1.0).reason
    words = f"Strategy: you named none, so it is the recommended one, {describe_reason(reason)}."
    assert words in call(PRIVATE).stdout.splitlines()
    assert started() == bet_se(0.05, 1.0)
    made = document(PRIVATE)
    assert (made["strategy"], made["recommended"]) == ("bet-se", reason)


def test_a_strategy_that_was_named_is_nobodys_advice() -> None:
    named = [*PRIVATE, "--strategy", "dp-se"]
    assert "recommended" not in call(named).stdout
    made = document(named)
    assert (made["strategy"], made["recommended"]) == ("dp-se", None)


def test_the_same_command_goes_on_with_the_same_trial() -> None:
    made = document(PRIVATE)
    assert document(PRIVATE) == made
    assert document([*PRIVATE, "--strategy", "bet-se"]) == made | {"recommended": None}


def test_what_is_recommended_is_asked_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[Any, ...]]()

    def other(*levels: Any) -> Recommendation:
        asked.append(levels)
        return Recommendation(dp_se(0.5, 0.1), "dp-se: why not")

    monkeypatch.setattr(presets, "recommended", other)
    levels = ["--epsilon", "0.5", "--delta", "0.1", "--range", "0,9"]
    assert "one, dp-se: why not." in call([*CREATE, *levels]).stdout
    assert asked == [(0.5, 0.1, "global", 0.0, "numbers", None, None)]
    assert started() == dp_se(0.5, 0.1)


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        (["--trust", "none"], bet_se(0.05, trust="none")),
        (["--epsilon", "2", "--trust", "local"], bet_se(0.05, 2.0, "local")),
        (
            ["--epsilon", "2", "--delta", "0.1", "--indifference-zone", "0.2"],
            bet_se(0.1, 2.0, indifference_zone=0.2),
        ),
        (
            ["--epsilon", "2", "--target-difference", "0.3"],
            bet_se(0.05, 2.0, target_difference=0.3),
        ),
        (["--epsilon", "2", "--range", "0,9"], bet_se(0.05, 2.0, outcomes="numbers")),
        (["--epsilon", "2", "--gamma", "1e-6", "--range", "0,9"], bet_se(0.05, 2.0, gamma=1e-6)),
        (["--rho", "0.5"], bet_se(0.05, rho=0.5)),
        (["--rho", "0.5", "--strategy", "adap-tt"], adap_tt(None, 0.05, rho=0.5)),
        (["--epsilon", "2", "--outcomes", "numbers"], bet_se(0.05, 2.0, outcomes="numbers")),
        (
            ["--epsilon", "2", "--range", "0,9", "--outcomes", "yes-no", "--threshold", "proved"],
            bet_se(0.05, 2.0),
        ),
    ],
    ids=str,
)
def test_its_options_are_as_they_were(options: list[str], strategy: Strategy) -> None:
    call([*CREATE, *options])
    assert started() == strategy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "must be your own choice: give --epsilon, such as --epsilon 1"),
        (["--trust", "global"], "or give --trust none for a trial without privacy"),
        (["--trust", "local"], "must be your own choice: give --epsilon"),
        (["--trust", "anybody"], "trust must be one of global, local, none"),
        (["--trust", "none", "--epsilon", "1"], "leave epsilon out"),
        (["--epsilon", "1", "--gamma", "0.1"], "gamma in [1e-15, 0.01]"),
        (["--epsilon", "1", "--rho", "0.1"], "give either rho"),
        (["--epsilon", "1", "--gamma", "1e-6", "--trust", "local"], "trusted collector"),
        (["--epsilon", "1", "--threshold", "empirical"], "leave threshold out"),
        (["--epsilon", "1", "--outcomes", "colours"], "outcomes must be yes-no or numbers"),
    ],
    ids=str,
)
def test_how_private_is_for_a_person_to_choose(
    options: list[str], message: str, folder: Path
) -> None:
    result = call([*CREATE, *options], code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(folder.iterdir())


def test_other_commands_ask_for_a_strategy() -> None:
    result = call(["simulate", "--means", "0.9,0.1", "--epsilon", "1"], code=2)
    assert "Missing option '--strategy'" in result.stderr


# --- the trial that cannot end --------------------------------------------------------


def test_a_trial_that_cannot_end_is_warned_of() -> None:
    said = call(HOPELESS)
    assert said.stderr.count("\n") == 1
    assert said.stderr.startswith("discreet: warning: even if the best arm always did as well")
    assert "would take about 26,000 participants: with --max-participants 2000" in said.stderr
    assert "(none of 17 simulated trials had one)" in said.stderr
    assert "Raise --max-participants or choose a larger --epsilon; discreet plan" in said.stderr
    assert "warning" not in said.stdout
    again = call([*HOPELESS, "--json"])
    warning = json.loads(again.stdout)["warning"]
    assert again.stderr == said.stderr == f"discreet: warning: {warning}.\n"


def test_it_is_warned_of_before_it_is_entered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = list[list[Path]]()
    monkeypatch.setattr(
        "discreet.cli.trial_create.tell", lambda _: there.append(list(folder.iterdir()))
    )
    call(HOPELESS)
    assert there == [[]]
    assert started().epsilon == 0.001


def test_a_trial_that_can_end_is_not() -> None:
    made = call([*PRIVATE, "--json"])
    assert made.stderr == ""
    assert json.loads(made.stdout)["warning"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategy", "ctb-tt", "--epsilon", "0.1"], "ctb-tt would take more participants: with"),
        (["--strategy", "ttucb"], "Raise --max-participants; discreet plan"),
        (["--strategy", "dp-se", "--epsilon", "1"], "would take about 1,500 participants: with"),
    ],
    ids=str,
)
def test_other_strategies_are_warned_of_too(options: list[str], words: str) -> None:
    assert words in call([*CREATE, "--max-participants", "20", *options]).stderr


def test_what_can_be_no_trial_is_refused_as_before() -> None:
    refusal = call([*HOPELESS, "--arms", "a"], code=2).stderr
    assert refusal == "discreet: a trial needs at least two arms\n"
