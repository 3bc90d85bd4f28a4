"""A backup that is killed leaves no copy of the outcomes behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import Trial
from discreet.files import open_private_file
from discreet.trials.backup import SIDE_FILES
from discreet.trials.store import schema
from tests.support.stores import OUTCOME, UNITS, create

PATTERN = (UNITS + schema.OFFSET).to_bytes(8, "big")
KILLED = """
import os, signal, sys
from discreet.cli import main
from discreet.trials.store.database import AllTrials
usual = AllTrials.copy
def copy(self, *about):
    usual(self, *about)
    self.connection.commit()
    os.kill(os.getpid(), signal.SIGKILL)
AllTrials.copy = copy
main(sys.argv[1:])
"""
"""The command line, in a process that dies when it has copied a trial."""


def run_killed(folder: Path, *words: str) -> "subprocess.Popen[str]":
    environment = os.environ | {"TMPDIR": str(folder / "temporary")}
    command = [sys.executable, "-c", KILLED, *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def copies(folder: Path, url: str) -> list[str]:
    """Find the files with an outcome in them, besides those of the database."""
    own = str(url).removeprefix("sqlite:///")
    files = [path for path in folder.rglob("*") if path.is_file() and not str(path).startswith(own)]
    return [path.name for path in files if PATTERN in path.read_bytes()]


@pytest.fixture
def told(url: str, tmp_path: Path) -> Trial:
    """A trial with outcomes that are not released."""
    (tmp_path / "temporary").mkdir()
    trial = create(url)
    ids = [one.id for one in trial.ask(3).assignments]
    trial.tell_many(dict.fromkeys(ids[:2], OUTCOME))
    trial.close()
    return trial


def test_of_the_command_line(url: str, told: Trial, tmp_path: Path) -> None:
    """What is left is beside the target, for its owner only. The next backup removes
    it, and leaves one that somebody is writing.
    """
    folder = tmp_path / "safe"
    folder.mkdir()
    target = folder / "backup.db"
    words = ("trial", "backup", str(target), "--url", url)
    with run_killed(tmp_path, *words) as process:
        pass
    assert process.returncode == -signal.SIGKILL
    left = list(folder.iterdir())
    assert left
    assert all(path.stat().st_mode & 0o077 == 0 for path in left)
    assert not copies(tmp_path / "temporary", url)
    with open_private_file(target, SIDE_FILES) as other:
        assert list(folder.iterdir()) == [other], "that of a test removes it too"
        command = [sys.executable, "-m", "discreet", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        assert set(folder.iterdir()) == {target, other}
