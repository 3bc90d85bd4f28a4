"""`discreet trial … --url https://…`: the commands, through a service."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet import Trial
from discreet.cli import main
from tests.support.remote import Far

CREATE = ["create", "dose", "--arms", "a,b", "--max-participants", "2000", "--delta", "0.1"]
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
    assert read(far, "ask", "dose", "--key", batch["key"], "--site", "Leeds") == batch
    assert read(far, "tell", "dose", one, "1")["accepted"] == 1
    (folder / "told.csv").write_text(f"id,outcome\n{one},0\n{two},1\n")
    assert read(far, "tell", "dose", "--csv", "told.csv") == {
        **{"accepted": 1, "already_told": [one], "late": []}
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
    done = read(far, "manage", "dose", "pause", "--reason", "rest")
    assert read(far, "expire", "dose") == {"released": 0, "stopped": False}
    assert read(far, "status", "dose", "--head", done["head"])["paused"] is True
    assert read(far, "list")["trials"][0]["state"] == "paused"
    calls = [entry["action"] for entry in read(far, "audit-trail", "dose")["audit_trail"]]
    assert {"ask", "tell", "amend", "reissue", "codes", "manage pause"} <= {*calls}
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


def test_the_name_is_always_needed(far: Far) -> None:
    trial(far, *CREATE)
    there = f"{far.base}/t/dose"
    assert "Missing argument 'NAME'" in trial(far, "status", code=2, url=there).stderr
    refused = trial(far, "status", "other", code=2, url=there).stderr
    assert "the address is for the trial 'dose', not for 'other'" in refused


def test_what_people_see(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    words = trial(far, *CREATE).stdout
    assert "Blinding: staff see codes" in words
    assert "a" in trial(far, "codes", "dose").stdout
    assert "The trial goes on" in trial(far, "status", "dose").stdout
    monkeypatch.setenv("DISCREET_TOKEN", far.token("site", trial="dose", site="Leeds"))
    shown = trial(far, "status", "dose").stdout
    assert "staff of this trial are blinded" in shown
    assert "does not let you" in trial(far, "codes", "dose", code=1).stderr


def test_backups(far: Far, folder: Path) -> None:
    trial(far, *CREATE)
    refused = trial(far, "backup", "kept.db", code=2)
    assert "a backup cannot be made through a service" in refused.stderr
    assert not (folder / "kept.db").exists()
    refused = trial(far, "restore", "kept.db", code=2)
    assert "a backup cannot be restored through a service" in refused.stderr


def test_errors_are_one_line(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    trial(far, *CREATE)
    for words, code in (
        (("status", "other"), 2),
        (("tell", "dose", "1-0123456789abcdef", "1"), 2),
        (("ask", "dose", "--key", "never"), 2),
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
