"""`discreet trial … --url https://…`: the commands, through a service."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet import Trial
from discreet.cli import main
from tests.support.remote import Far

CREATE = ["create", "dose", "--arms", "a,b", "--max-people", "2000", "--delta", "0.1"]
CREATE += ["--strategy", "bet-se", "--epsilon", "2", "--blinding", "codes", "--sites", "Leeds,Lyon"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trial(far: Far, *words: str, code: int = 0, url: str | None = None) -> Result:
    result = CliRunner().invoke(main, ["trial", *words, "--url", url or far.base])
    assert result.exit_code == code, result.output
    assert far.secret not in result.output
    return result


def read(far: Far, *words: str, url: str | None = None) -> Any:
    return json.loads(trial(far, *words, "--json", url=url).stdout)


def test_every_command(far: Far, folder: Path) -> None:
    made = read(far, *CREATE)
    assert made["url"] == f"{far.base}/t/dose"
    assert read(far, *CREATE)["head"] == made["head"]
    batch = read(far, "ask", "dose", "-n", "4", "--site", "Leeds")
    one, two, three, four = (each["id"] for each in batch["assignments"])
    assert read(far, "ask", "dose", "--request", batch["request"], "--site", "Leeds") == batch
    assert read(far, "tell", "dose", one, "1")["accepted"] == 1
    (folder / "told.csv").write_text(f"id,outcome\n{one},0\n{two},1\n")
    assert read(far, "tell", "dose", "--csv", "told.csv") == {
        **{"accepted": 1, "before": [one], "late": []}
    }
    assert read(far, "amend", "dose", one, "0") == {"accepted": 1}
    assert read(far, "miss", "dose", three)["accepted"] == 1
    again = read(far, "reissue", "dose", four)
    assert [each["id"] for each in read(far, "open", "dose", "--site", "Leeds")["open"]] == [
        again["id"]
    ]
    codes = read(far, "codes", "dose")["codes"]
    shown = read(far, "unblind", "dose", again["id"], "--reason", "a fever")
    assert shown == {"id": again["id"], "arm": codes[again["arm"]]}
    done = read(far, "operate", "dose", "pause", "--reason", "rest")
    assert read(far, "expire", "dose") == {"released": 0, "stopped": False}
    assert read(far, "status", "dose", "--head", done["head"])["paused"] is True
    assert read(far, "list")["trials"][0]["state"] == "paused"
    calls = [entry["call"] for entry in read(far, "journal", "dose")["journal"]]
    assert {"ask", "tell", "amend", "reissue", "codes", "operate pause"} <= {*calls}
    assert read(far, "verify", "dose", "--head", done["head"])["intact"] is True
    trial(far, "transcript", "dose", "--out", "dose.json")
    assert CliRunner().invoke(main, ["verify", "dose.json"]).exit_code == 0
    trial(far, "export", "dose", "--out", "far.csv")
    trial(far, "export", "dose", "--out", "here.csv", url=far.url)
    assert (folder / "far.csv").read_text() == (folder / "here.csv").read_text()
    trial(far, "report", "dose", "--out", "dose.html")
    assert "dose" in (folder / "dose.html").read_text()
    local = Trial.open(far.url, "dose")
    assert read(far, "status", "dose") == local.status().to_dict()
    assert read(far, "status", "dose", url=f"{far.base}/t/dose") == local.status().to_dict()


def test_an_address_that_names_the_trial_needs_no_name(
    far: Far, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = f"{far.base}/t/dose"
    create = [word for word in CREATE if word != "dose"]
    assert read(far, *create, url=there)["name"] == "dose"
    local = Trial.open(far.url, "dose")
    batch = read(far, "ask", "-n", "3", "--site", "Leeds", url=there)
    one, two, three = (each["id"] for each in batch["assignments"])
    assert read(far, "tell", one, "1", url=there)["accepted"] == 1
    (folder / "told.csv").write_text(f"{two},1\n")
    assert read(far, "tell", "--csv", "told.csv", url=there)["accepted"] == 1
    assert read(far, "amend", one, "-0", url=there) == {"accepted": 1}
    assert read(far, "miss", "dose", three, url=there)["accepted"] == 1
    for words in (("pause",), ("close-site", "Lyon"), ("dose", "close-site", "Leeds")):
        read(far, "operate", *words, "--reason", "rest", url=there)
    acts = [(act.action, act.about) for act in local.status().acts]
    assert acts == [("pause", None), ("close-site", "Lyon"), ("close-site", "Leeds")]
    monkeypatch.setenv("DISCREET_URL", there)
    shown = CliRunner().invoke(main, ["trial", "status", "--json"])
    assert json.loads(shown.stdout) == local.status().to_dict()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "other"),
        ("tell", "other", "1-0123456789abcdef", "1"),
        ("tell", "other", "--csv", "told.csv"),
        ("miss", "other", "1-0123456789abcdef"),
        ("operate", "other", "pause", "--reason", "rest"),
        ("operate", "other", "close-site", "Lyon", "--reason", "rest"),
    ],
)
def test_a_name_beside_an_address_that_names_another_trial_is_refused(
    far: Far, words: tuple[str, ...]
) -> None:
    refused = trial(far, *words, code=2, url=f"{far.base}/t/dose").stderr
    assert "the address is for the trial 'dose', not for 'other': leave one of the two" in refused


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("status", "dose", "more"), "unexpected extra argument"),
        (("status", "--nonsense"), "No such option"),
        (("miss",), "Missing argument 'ID'"),
    ],
)
def test_a_misuse_is_told_as_without_a_trial_in_the_address(
    far: Far, words: tuple[str, ...], why: str
) -> None:
    trial(far, *CREATE)
    assert why in trial(far, *words, code=2, url=f"{far.base}/t/dose").stderr


def test_a_trial_may_be_called_as_an_action(far: Far) -> None:
    create = ["pause" if word == "dose" else word for word in CREATE]
    trial(far, *create)
    there = f"{far.base}/t/pause"
    read(far, "operate", "pause", "--reason", "rest", url=there)
    read(far, "operate", "pause", "resume", "--reason", "go on", url=there)
    assert not Trial.open(far.url, "pause").status().paused


def test_what_people_see(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    words = trial(far, *CREATE).stdout
    assert "Blinding: those who enrol people see codes" in words
    assert "a" in trial(far, "codes", "dose").stdout
    assert "is running" in trial(far, "status", "dose").stdout
    assert "private mean" in trial(far, "status", "dose").stdout
    monkeypatch.setenv("DISCREET_TOKEN", far.token("site", trial="dose", site="Leeds"))
    shown = trial(far, "status", "dose").stdout
    assert "staff of this trial are blinded" in shown
    assert "private mean" not in shown
    assert "does not let you" in trial(far, "codes", "dose", code=1).stderr


def test_backups(far: Far, folder: Path) -> None:
    trial(far, *CREATE)
    found = read(far, "backup", "kept.db")
    assert [one["name"] for one in found["trials"]] == ["dose"]
    with sqlite3.connect(folder / "kept.db") as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.close()
    refused = trial(far, "restore", "kept.db", "--head", found["trials"][0]["head"], code=2)
    assert "a backup cannot be restored through a service" in refused.stderr


def test_errors_are_one_line(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    trial(far, *CREATE)
    for words, code in (
        (("status", "other"), 2),
        (("tell", "dose", "1-0123456789abcdef", "1"), 2),
        (("ask", "dose", "--request", "never"), 2),
        (("unblind", "dose", "1-0123456789abcdef"), 2),
    ):
        result = trial(far, *words, code=code)
        assert result.stderr.startswith("discreet: ")
        assert result.stderr.count("\n") == 1
    monkeypatch.setenv("DISCREET_TOKEN", "wrong")
    assert "was revoked, or has expired" in trial(far, "status", "dose", code=1).stderr
    monkeypatch.delenv("DISCREET_TOKEN")
    assert "DISCREET_TOKEN" in trial(far, "status", "dose", code=1).stderr
    plain = trial(far, "status", "dose", code=2, url="http://trial.example.org")
    assert "unencrypted" in plain.stderr


def test_no_command_takes_a_token() -> None:
    """It would show in the list of processes."""
    trials: Any = main.commands["trial"]
    options = {
        option for one in trials.commands.values() for each in one.params for option in each.opts
    }
    assert not {option for option in options if "token" in option}
