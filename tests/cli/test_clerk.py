"""Trials in the hands of people: files from spreadsheets, corrections, addresses,
lists, and files that must not be written over.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main
from discreet.cli.options import HERE

CREATE = ["create", "dose", "--arms", "a,b", "--strategy", "bet-se", "--trust", "none"]
CREATE += ["--max-people", "200"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("DISCREET_URL", "DISCREET_URL_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def trial(*words: str, code: int = 0, given: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(main, ["trial", *words], input=given)
    assert result.exit_code == code, result.output
    return result


def read(*words: str) -> Any:
    return json.loads(trial(*words, "--json").stdout)


def ask(many: int) -> list[str]:
    return [one["id"] for one in read("ask", "dose", "-n", str(many))["assignments"]]


# --- tell, and amend ------------------------------------------------------------------


def test_a_second_file_that_disagrees_is_not_just_accepted(folder: Path) -> None:
    trial(*CREATE)
    ids = ask(3)
    (folder / "one.csv").write_text("".join(f"{id},1\n" for id in ids[:2]))
    (folder / "two.csv").write_text("".join(f"{id},0\n" for id in ids))
    assert trial("tell", "dose", "--csv", "one.csv").stdout == "Accepted: 2.\n"
    said = trial("tell", "dose", "--csv", "two.csv").stdout.splitlines()
    assert said[0] == "Accepted: 1."
    assert said[1] == (
        f"Told before or declared missing, so nothing was changed: {ids[0]}, {ids[1]}. Until "
        "the look that uses it, correct one: discreet trial amend dose ID OUTCOME"
    )
    found = read("tell", "dose", "--csv", "two.csv")
    assert found == {"accepted": 0, "before": ids, "late": []}


def test_words_do_not_depend_on_the_outcome() -> None:
    trial(*CREATE)
    one, two = ask(2)
    trial("tell", "dose", one, "1")
    trial("miss", "dose", two)
    for outcome in ("0", "1", "0.5"):
        said = (
            trial("tell", "dose", one, outcome).stdout,
            trial("tell", "dose", two, outcome).stdout,
        )
        assert said[0].replace(one, "ID") == said[1].replace(two, "ID")


def test_an_outcome_is_amended() -> None:
    trial(*CREATE)
    (one,) = ask(1)
    refused = trial("amend", "dose", one, "1", code=2).stderr
    assert refused == "discreet: there is no outcome to amend under this id: tell it first\n"
    trial("tell", "dose", one, "0")
    assert trial("amend", "dose", one, "1").stdout == "Accepted.\n"
    assert read("amend", "dose", one, "0") == {"accepted": 1}
    assert "of " in trial("amend", "dose", one, "7", code=2).stderr


# --- files of spreadsheets ------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{0},1\n{1},0.5\n",
        "id,outcome\r\n{0},1\r\n{1},0.5\r\n",
        "\ufeffid;outcome\r\n{0};1\r\n{1};0,5\r\n",
        "sep=;\r\nid;outcome\r\n{0};1\r\n{1};0,5\r\n",
        '"id","outcome"\n"{0}","1"\n"{1}","0.5"\n',
        "ID\tOutcome\n{0}\t1\n{1}\t0,5\n",
        "\n {0} , 1 \n\n{1},0.5",
    ],
    ids=["plain", "Excel", "European Excel", "sep", "quotes", "tabs", "spaces"],
)
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_spreadsheets_are_read(text: str, way: str, folder: Path) -> None:
    trial(*CREATE)
    ids = ask(2)
    content = text.format(*ids).encode()
    if way == "file":
        (folder / "out.csv").write_bytes(content)
        assert trial("tell", "dose", "--csv", "out.csv").stdout == "Accepted: 2.\n"
    else:
        assert trial("tell", "dose", "--csv", "-", given=content).stdout == "Accepted: 2.\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *(("{0},1\n{1}\n", 2), ("{0};1;2\n", 1), ("id,outcome\n{0},1\n{0},0\n", 3)),
        *(("{0},often\n", 1), ("{0},1\n{1},77\n", 2)),
    ],
)
def test_a_bad_line_is_named_and_nothing_told(text: str, line: int, folder: Path) -> None:
    trial(*CREATE)
    ids = ask(2)
    (folder / "out.csv").write_text(text.format(*ids))
    said = trial("tell", "dose", "--csv", "out.csv", code=2).stderr
    assert said.startswith((f"discreet: line {line} ", f"discreet: line {line}: "))
    assert said.endswith("nothing was told\n")
    assert "often" not in said
    assert "77" not in said
    assert read("status", "dose")["pending"] == 2


# --- addresses ------------------------------------------------------------------------


def test_the_address_may_stand_in_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(*CREATE)["url"] == HERE
    (folder / "where").write_text("sqlite:///file.db\n")
    monkeypatch.setenv("DISCREET_URL_FILE", "where")
    assert read(*CREATE)["url"] == "sqlite:///file.db"
    monkeypatch.setenv("DISCREET_URL", "sqlite:///env.db")
    assert read(*CREATE)["url"] == "sqlite:///env.db"
    assert read(*CREATE, "--url", "sqlite:///said.db")["url"] == "sqlite:///said.db"


@pytest.mark.parametrize("content", [None, "", "a b", b"\xff\xfe"])
def test_a_file_without_an_address_is_refused(
    content: str | bytes | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        words = content if isinstance(content, bytes) else content.encode()
        (folder / "where").write_bytes(words)
    monkeypatch.setenv("DISCREET_URL_FILE", "where")
    assert "DISCREET_URL_FILE names" in trial(*CREATE, code=2).stderr


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("postgresql://ann:secret@127.0.0.1:1/x", True),
        ("postgresql://127.0.0.1:1/x?user=ann&password=secret", True),
        ("postgresql://ann@127.0.0.1:1/x", False),
    ],
)
def test_a_password_on_the_command_line_gets_a_warning(
    url: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = trial("status", "dose", "--url", url, code=1).stderr
    assert ("can be seen by other users" in said) == warned
    assert "secret" not in said
    monkeypatch.setenv("DISCREET_URL", url)
    assert "can be seen by other users" not in trial("status", "dose", code=1).stderr


# --- which trials there are -----------------------------------------------------------


def test_trials_are_listed() -> None:
    trial(*CREATE)
    trial("create", "other", *CREATE[2:])
    trial("ask", "dose", "-n", "3")
    trial("operate", "other", "stop", "--reason", "no money", "--yes")
    common = {"strategy": "bet-se", "max_people": 200}
    assert read("list")["trials"] == [
        {"name": "dose", "strategy": "bet-se", "state": "goes on", "people": 3, "max_people": 200},
        {"name": "other", **common, "state": "inconclusive", "people": 0},
    ]
    words = trial("list").stdout
    assert "dose" in words
    assert "inconclusive" in words


# --- files that must not be written over ----------------------------------------------


@pytest.mark.parametrize("command", ["transcript", "report"])
def test_the_trial_itself_is_not_written_over(command: str, folder: Path) -> None:
    trial(*CREATE)
    before = Path("discreet-trials.db").read_bytes()
    Path("alias").symlink_to("discreet-trials.db")
    for out in ("discreet-trials.db", "discreet-trials.db-wal", "./alias"):
        said = trial(command, "dose", "--out", out, code=2).stderr
        assert "the trial itself is kept there" in said
    assert Path("discreet-trials.db").read_bytes() == before
    assert read("status", "dose")["people"] == 0


def test_a_device_stays_a_device(folder: Path) -> None:
    trial(*CREATE)
    trial("transcript", "dose", "--out", os.devnull)
    assert not Path(os.devnull).is_file()
    Path("link.json").symlink_to("there.json")
    trial("transcript", "dose", "--out", "link.json")
    assert Path("link.json").is_symlink()
    assert json.loads(Path("there.json").read_text())["protocol"]["name"] == "dose"


def test_what_cannot_be_written_is_said_first(folder: Path) -> None:
    trial(*CREATE)
    assert "no such folder" in trial("report", "dose", "--out", "no/x.html", code=2).stderr
