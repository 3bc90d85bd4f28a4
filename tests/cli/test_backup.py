"""Backup and restore by command."""

import gc
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main
from discreet.trials.operations import RECORDED_MEANINGS, RESTORED

CREATE = ["create", "dose", "--arms", "a,b,c", "--strategy", "bet-se", "--epsilon", "1"]
CREATE += ["--max-participants", "2000"]
OUTCOME = "0.697"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial in the usual database, with two outcomes."""
    made = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        trial(*CREATE)
        ask_and_tell()
    return made


@pytest.fixture(autouse=True)
def folder(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All its files, for this test alone."""
    made = tmp_path / "own"
    shutil.copytree(begun, made)
    monkeypatch.chdir(made)
    return made


def trial(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["trial", *words])
    gc.collect()  # what a process has open is closed when it ends
    assert result.exit_code == code, result.output
    assert OUTCOME not in result.output
    if code:
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
    return result


def read(*words: str) -> Any:
    return json.loads(trial(*words, "--json").stdout)


def ask_and_tell() -> None:
    for one in read("ask", "dose", "-n", "2")["assignments"]:
        trial("tell", "dose", one["id"], OUTCOME)


def head() -> str:
    return str(read("status", "dose")["head"])


def test_a_backup_and_the_way_back(folder: Path) -> None:
    said = trial("backup", "kept.db")
    assert f"dose  {head()}" in said.stdout
    assert "Note the heads in another place" in said.stdout
    assert "Keep it as safe as the database, and delete it" in said.stdout
    assert said.stderr == ""
    assert read("status", "dose", "--url", "sqlite:///kept.db")["head"] == head()
    assert read("backup", "kept.db") == {
        "backup": "kept.db",
        "trials": [{"name": "dose", "head": head()}],
    }
    again = ("restore", "kept.db", "--url", "sqlite:///again.db")
    said = trial(*again, "--head", head())
    assert said.stdout.startswith(f"dose  new  {head()}\n")
    assert "record them again, which is safe" in said.stdout
    assert read(*again, "--head", head()) == {
        "trials": [{"name": "dose", "head": head(), "done": "left as it is", "spent_again": False}]
    }
    assert "tell them again" not in trial(*again).stdout
    trial("verify", "dose", "--url", "sqlite:///again.db", "--head", head())
    assert {one.name for one in folder.glob("kept*")} == {"kept.db"}


def test_a_restore_that_nobody_vouches_for() -> None:
    trial("backup", "kept.db")
    there = ("restore", "kept.db", "--url", "sqlite:///again.db")
    assert "a second time, with fresh noise" in trial(*there, code=2).stderr
    said = trial(*there, "--i-know-that-epsilon-is-spent-again", code=2).stderr
    assert "go together: give a reason" in said
    said = trial(
        *there, "--i-know-that-epsilon-is-spent-again", "--reason", "the disk is lost"
    ).stdout
    assert RECORDED_MEANINGS[RESTORED] in said
    url = ("--url", "sqlite:///again.db")
    shown = trial("status", "dose", *url).stdout
    assert "restored" in shown
    assert "the disk is lost" in " ".join(shown.split())
    trial("report", "dose", "--out", "page.html", *url)
    assert "the disk is lost" in Path("page.html").read_text()
    trial("transcript", "dose", "--out", "dose.json", *url)
    assert CliRunner().invoke(main, ["verify", "dose.json"]).exit_code == 0


def test_an_old_backup_is_refused() -> None:
    trial("backup", "kept.db")
    ask_and_tell()
    said = trial("restore", "kept.db", code=1).stderr
    assert "the backup is older, and there is nothing to restore" in said
    said = trial("restore", "kept.db", "--head", head(), code=1).stderr
    assert "the backup is older than that" in said
    assert "there is no file" in trial("restore", "typo.db", code=2).stderr
    assert "the trial itself" in trial("backup", "discreet-trials.db", code=2).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("status", "dose"),
        ("list",),
        ("ask", "dose"),
        ("expire", "dose"),
        ("backup", "kept.db"),
        (*CREATE,),
        ("manage", "dose", "pause", "--reason", "holidays"),
    ],
    ids=lambda words: words[0],
)
def test_a_file_that_others_can_read_gets_one_line(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "discreet-trials.db").chmod(0o644)
    said = trial(*words).stderr
    assert said.startswith("discreet: warning: discreet-trials.db can be read by other users")
    assert said.splitlines()[0].endswith("chmod 600 discreet-trials.db")
    assert said.count("warning") == 1
    (folder / "discreet-trials.db").chmod(0o600)
    assert trial("status", "dose").stderr == ""
