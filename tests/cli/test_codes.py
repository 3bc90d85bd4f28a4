"""Codes in place of arms on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main

CREATE = ["create", "dose", "--arms", "a,b", "--max-participants", "2000", "--delta", "0.1"]
CREATE += ["--strategy", "bet-se", "--epsilon", "2"]
BLIND = [*CREATE, "--blinding", "codes"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trial(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["trial", *words])
    assert result.exit_code == code, result.output
    return result


def read(*words: str) -> Any:
    return json.loads(trial(*words, "--json").stdout)


def test_staff_see_codes_and_an_arm_with_a_reason() -> None:
    assert "Blinding: " in trial(*BLIND).stdout
    one = read("ask", "dose")["assignments"][0]
    codes = read("codes", "dose")["codes"]
    assert codes[one["arm"]] in ("a", "b")
    assert f"{one['arm']}  {codes[one['arm']]}" in trial("codes", "dose").stdout
    assert "give a reason" in trial("unblind", "dose", one["id"], code=2).stderr
    assert trial("unblind", "dose", one["id"], "--reason", "a fever").stdout == (
        f"{codes[one['arm']]}\n"
    )
    assert [act["action"] for act in read("status", "dose")["actions"]] == ["unblind"]


def test_without_blinding_there_are_none() -> None:
    made = trial(*CREATE).stdout
    assert "Blinding" not in made
    assert "there are no codes" in trial("codes", "dose").stdout
    assert read("codes", "dose") == {"codes": {}}


def test_what_is_repeated_under_a_request_is_done_once() -> None:
    trial(*BLIND)
    one = read("ask", "dose")["assignments"][0]
    said = ["reissue", "dose", one["id"], "--key", "r-1"]
    made = read(*said)
    assert made == read(*said)
    assert made["id"] != one["id"]
    asked = ["unblind", "dose", made["id"], "--reason", "a fever", "--key", "u-1"]
    assert read(*asked) == read(*asked)
    for _ in range(2):
        trial("manage", "dose", "pause", "--reason", "snow", "--key", "p-1")
    assert [act["action"] for act in read("status", "dose")["actions"]] == ["unblind", "pause"]
    again = trial("manage", "dose", "resume", "--reason", "thaw", "--key", "p-1", code=2)
    assert "for something else" in again.stderr
