"""The commands of live trials, as a person or a script uses them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main

CREATE = ["create", "dose", "--arms", "a,b", "--max-participants", "2000", "--delta", "0.1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def trial(*words: str, code: int = 0, stdin: str | None = None) -> Result:
    result = call("trial", *words, stdin=stdin)
    assert result.exit_code == code, result.output
    return result


def read(*words: str, stdin: str | None = None) -> Any:
    return json.loads(trial(*words, "--json", stdin=stdin).stdout)


def test_a_whole_trial(folder: Path) -> None:
    made = read(*CREATE, "--strategy", "bet-se", "--epsilon", "2")
    frozen = {"name", "protocol_hash", "head", "url", "outcomes", "randomisation"}
    words = {"assignment", "guarantee", "timing", "enrolment", "advice"}
    assert set(made) == frozen | words | {"strategy", "recommended", "warning"}
    assert (folder / "discreet-trials.db").exists()
    assert read(*CREATE, "--strategy", "bet-se", "--epsilon", "2") == made
    while True:
        batch = read("ask", "dose", "-n", "200")
        assert set(batch) == {
            *("assignments", "not_assigned", "waiting", "stopped", "middle_level", "paused", "key")
        }
        if batch["stopped"]:
            break
        lines = [f"{one['id']},{int(one['arm'] == 'b')}" for one in batch["assignments"]]
        assert read("tell", "dose", "--csv", "-", stdin="id,outcome\n" + "\n".join(lines)) == {
            "accepted": len(lines),
            "already_told": [],
            "late": [],
        }
    status = read("status", "dose")
    assert (status["stopped"], status["conclusive"], status["recommendation"]) == (True, True, "b")
    assert (status["epsilon"], status["delta"], status["pending"]) == (2.0, 0.1, 0)
    assert {"name", "assigned", "count", "mean"} <= set(status["arms"][0])
    assert trial("status", "dose", "--head", status["head"]).stdout
    assert read("verify", "dose", "--head", status["head"])["intact"]
    trial("transcript", "dose", "--out", "t.json")
    assert json.loads((folder / "t.json").read_text()) == json.loads(
        trial("transcript", "dose").stdout
    )
    assert read("report", "dose", "--out", "r.html") == {"report": "r.html"}
    assert read("transcript", "dose", "--out", "t.json") == {"transcript": "t.json"}
    page = (folder / "r.html").read_text()
    assert "b was identified as the best arm" in page
    assert "<svg" in page


def test_local_trust() -> None:
    trial(*CREATE, "--strategy", "ctb-tt", "--epsilon", "1")
    one = read("ask", "dose")["assignments"][0]
    assert "discreet respond" in trial("tell", "dose", one["id"], "1", code=2).stderr
    word = call("respond", "--epsilon", "1", "--outcome", "-", stdin="0.4\n").stdout.strip()
    assert word in ("rr/1.0/0", "rr/1.0/1")
    trial("tell", "dose", one["id"], word)
    assert read("status", "dose")["arms"][0]["count"] == 1
    found = json.loads(
        call(
            "respond",
            "--epsilon",
            "2",
            "--gamma",
            "0.1",
            "--outcome",
            "3",
            "--range",
            "0,4",
            "--json",
        ).stdout
    )
    assert (found["mechanism"], found["epsilon"], found["gamma"]) == ("gauss", 2.0, 0.1)


def test_missing_outcomes_and_people(folder: Path) -> None:
    trial(*CREATE, "--strategy", "adap-tt", "--epsilon", "1")
    (folder / "people.txt").write_text("ann\nbob\n")
    batch = read("ask", "dose", "--participants", "people.txt")
    first, second = batch["assignments"]
    assert {first["arm"], second["arm"]} == {"a", "b"}
    assert "took part before" in trial("ask", "dose", "--participants", "people.txt", code=2).stderr
    assert trial("miss", "dose", first["id"]).stdout == "Accepted: 1.\n"
    assert read("miss", "dose", first["id"]) == {
        "accepted": 0,
        "already_told": [first["id"]],
        "late": [],
    }
    assert read("ask", "dose")["assignments"] == [], "nobody takes the place"
    assert read("tell", "dose", second["id"], "1")["accepted"] == 1
    assert read("status", "dose")["releases"] == 2


BAD = [
    (["ask", "nope"], "there is no file"),
    (["create", "x", "--arms", "a", "--strategy", "ttucb", "--max-participants", "9"], "two arms"),
    (
        ["create", "x", "--arms", "a,b", "--strategy", "adap-tt", "--max-participants", "9"],
        "say how private",
    ),
    (
        [
            "create",
            "x",
            "--arms",
            "a,b",
            "--strategy",
            "adap-tt",
            "--epsilon",
            "0",
            "--max-participants",
            "9",
        ],
        "epsilon",
    ),
    (
        [
            "create",
            "x",
            "--arms",
            "a,b",
            "--strategy",
            "ttucb",
            "--delta",
            "1",
            "--max-participants",
            "9",
        ],
        "delta",
    ),
    (
        [
            "create",
            "x",
            "--arms",
            "a,b",
            "--strategy",
            "ttucb",
            "--max-participants",
            "9",
            "--range",
            "5",
        ],
        "--range",
    ),
    (
        [
            "create",
            "x",
            "--arms",
            "a,b",
            "--strategy",
            "ttucb",
            "--max-participants",
            "90",
            "--url",
            "mysql://a/b",
        ],
        "sqlite or",
    ),
    (["tell", "dose"], "give an id and its outcome"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_line_and_changes_nothing(
    words: list[str], message: str, folder: Path
) -> None:
    result = trial(*words, code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "line", ["1-zz,0.7654321", "0.7654321", "1-zz,abc7654321", "1-zz,0.1,0.7654321", "1-zz,7654321"]
)
def test_no_error_repeats_an_outcome(line: str) -> None:
    trial(*CREATE, "--strategy", "ttucb")
    result = trial("tell", "dose", "--csv", "-", code=2, stdin=line)
    assert "7654321" not in result.output
    assert result.stderr.count("\n") == 1


def test_foreign_files_and_folders(folder: Path) -> None:
    (folder / "discreet-trials.db").write_text(
        "something else entirely, longer than a header of a hundred bytes" * 9
    )
    assert "not a database of trials" in trial("status", "dose", code=1).stderr
    assert (folder / "discreet-trials.db").read_text().startswith("something else")
    result = trial(*CREATE, "--strategy", "ttucb", "--url", "sqlite:///no/such/folder/t.db", code=1)
    assert "check that the folder exists" in result.stderr


def test_other_databases_are_left_alone(folder: Path) -> None:
    import sqlite3

    with sqlite3.connect(folder / "other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = (folder / "other.db").read_bytes()
    assert "no trials" in trial("status", "dose", "--url", "sqlite:///other.db", code=2).stderr
    assert (folder / "other.db").read_bytes() == before


def test_outcomes_below_zero_and_odd_files(folder: Path) -> None:
    trial(*CREATE, "--strategy", "ttucb", "--range", "-10,10")
    one, two = read("ask", "dose", "-n", "2")["assignments"]
    trial("tell", "dose", one["id"], "-5")
    trial("tell", "dose", "--csv", "-", stdin=f"\ufeffid,outcome\n{two['id']},-1\n")
    assert read("status", "dose")["pending"] == 0
    assert (
        "line 1" in trial("tell", "dose", "--csv", "-", stdin="x" * 200_000 + ",1", code=2).stderr
    )
    said = trial("tell", "dose", "--csv", "-", stdin="1-a,1\n1-b,abc", code=2).stderr
    assert "line 2" in said
    assert "titles" not in said
    said = trial("tell", "dose", "--csv", "-", stdin="variant,latency_ms\n1-b,3", code=2).stderr
    assert "line 1 has an outcome that is not a number: it must be an id" in said
    assert (
        "epsilon between"
        in call("respond", "--epsilon", "1e6", "--gamma", "1e-6", "--outcome", "1").stderr
    )


def test_local_trust_says_how_to_respond() -> None:
    words = trial(*CREATE, "--strategy", "ctb-tt", "--epsilon", "1", "--direction", "min").stdout
    assert "discreet respond --epsilon 1.0 --range 0.0,1.0 --direction min" in words


def transcript_of_a_trial(folder: Path) -> Path:
    trial(*CREATE, "--strategy", "bet-se", "--epsilon", "5")
    while not (batch := read("ask", "dose", "-n", "200"))["stopped"]:
        lines = [f"{one['id']},{int(one['arm'] == 'b')}" for one in batch["assignments"]]
        read("tell", "dose", "--csv", "-", stdin="\n".join(lines))
    trial("transcript", "dose", "--out", "t.json")
    return folder / "t.json"


def test_a_transcript_is_checked_and_drawn_without_the_database(folder: Path) -> None:
    file = transcript_of_a_trial(folder)
    head = read("status", "dose")["head"]
    (folder / "discreet-trials.db").unlink()
    said = call("verify", "t.json")
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout.startswith("Intact: ")
    found = json.loads(call("verify", "t.json", "--head", head, "--json").stdout)
    assert found == {"intact": True, "events": found["events"], "head": head, "problems": []}
    assert call("report", "t.json", "--out", "page.html").stdout == "page.html\n"
    assert "b was identified as the best arm" in (folder / "page.html").read_text()
    drawn = json.loads(call("report", "t.json", "--out", "page.html", "--json").stdout)
    assert drawn == {"report": "page.html", "intact": True, "problems": []}
    file.write_text(file.read_text().replace('"recommendation": "b"', '"recommendation": "a"'))
    said = call("verify", "t.json")
    assert (said.exit_code, said.stdout) == (1, "")
    assert (
        said.stderr == "discreet: status: recommendation is 'a', but 'b' follows from the record\n"
    )
    found = json.loads(call("verify", "t.json", "--json").stdout)
    assert (found["intact"], len(found["problems"])) == (False, 1)
    said = call("report", "t.json", "--out", "page.html")
    assert (said.exit_code, said.stdout) == (1, "page.html\n")
    assert "recommendation is 'a'" in said.stderr
    assert "<title>NOT VERIFIED" in (folder / "page.html").read_text()
    said = call("report", "t.json", "--out", "page.html", "--json")
    assert (said.exit_code, json.loads(said.stdout)["intact"], said.stderr) == (1, False, "")


@pytest.mark.parametrize(
    "command", [("verify", "t.json"), ("report", "t.json", "--out", "page.html")], ids=str
)
def test_what_is_no_transcript_is_refused_in_one_line(
    command: tuple[str, ...], folder: Path
) -> None:
    for text in (None, "", "{}", "[1]", "letter"):
        if text is not None:
            (folder / "t.json").write_text(text)
        said = call(*command)
        assert (said.exit_code, said.stdout, said.stderr.count("\n")) == (2, "", 1)
        assert (
            "cannot read t.json" if text is None else "t.json is not a transcript of a trial"
        ) in said.stderr
    assert not (folder / "page.html").exists()


def test_an_arm_that_the_coins_left_out_has_no_mean_in_the_story() -> None:
    from discreet.cli.demo import transcript_lines

    one = {"arm": 0, "phase": 1, "sum": 3, "epsilon": 1.0}
    releases = [{**one, "count": 0}, {**one, "arm": 1, "count": 4}]
    event = {"seq": 5, "kind": "released", "releases": releases, "unit": 1.0}
    lines = transcript_lines({"protocol": {"arms": ["a", "b"]}, "events": [event]})
    assert "0 outcomes of a" in lines[1]
    assert "mean" not in lines[1]
    assert "mean  0.750" in lines[2]


class AtOnce:
    """In place of a timer: the bar need not wait until the work has taken long."""

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self.start = function

    def cancel(self) -> None:
        """Too late."""


def test_a_verification_shows_a_bar_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    read(*CREATE, "--strategy", "bet-se", "--epsilon", "2")
    trial("ask", "dose", "-n", "5")
    trial("transcript", "dose", "--out", "t.json")
    monkeypatch.setattr("threading.Timer", AtOnce)
    commands = (["trial", "verify", "dose"], ["verify", "t.json"])
    for words in commands:
        assert call(*words).stderr == "", "nobody is watching"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    for words in commands:
        watched = call(*words)
        assert "verifying" in watched.stderr
        assert "100%" in watched.stderr
        assert watched.stdout.startswith("Intact: 3 events")
        assert call(*words, "--json").stderr == ""
