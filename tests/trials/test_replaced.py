"""The file of a trial is replaced or removed under a running process: nothing is
acknowledged into a file that nobody will find, and nothing is released twice.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import Trial, bet_se
from discreet.errors import StoreError, TamperedError
from discreet.trials.store.session import Session
from tests.support.stores import create

BETS = bet_se(1e-6, trust="none")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dose.db"


@pytest.fixture
def trial(file: Path) -> Iterator[Trial]:
    """A trial with releases, and a backup of it from before them."""
    trial = create(f"sqlite:///{file}", strategy=BETS)
    people = trial.ask(3).assignments
    trial.close()
    shutil.copy(file, file.with_name("backup.db"))
    trial.tell_many({one.id: 1 for one in people})
    for _ in range(5):
        trial.tell_many({one.id: 1 for one in trial.ask(20).assignments})
    assert trial.status().releases
    _checkpoint(file)
    yield trial
    trial.close()


def _checkpoint(file: Path) -> None:
    """All that was written is in the file itself: from another process, as closing a
    file here would drop its locks.
    """
    script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); "
    script += "c.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchall(); c.close()"
    assert os.spawnlp(os.P_WAIT, "python3", "python3", "-c", script, str(file)) == 0


def people_in(file: Path) -> int:
    with sqlite3.connect(file) as connection:
        return int(connection.execute("SELECT people FROM discreet_trials").fetchone()[0])


def test_a_backup_put_in_its_place_is_refused(trial: Trial, file: Path) -> None:
    os.replace(file.with_name("backup.db"), file)
    for call in (lambda: trial.ask(1), trial.status, lambda: trial.tell("1-x", 1)):
        with pytest.raises(TamperedError, match="was restored from a backup"):
            call()
    assert people_in(file) == 3, "the backup is as it was"


def test_the_same_record_elsewhere_is_gone_on_with(trial: Trial, file: Path) -> None:
    """A copy that is not older is as good."""
    before = trial.status().people
    trial.close()
    copy = file.with_name("copy.db")
    shutil.copy(file, copy)
    assert trial.status().people == before
    _checkpoint(file)
    os.replace(copy, file)
    assert len(trial.ask(2).assignments) == 2
    assert people_in(file) == before + 2
    assert trial.verify().intact


def test_a_file_that_was_removed_is_not_made_again(trial: Trial, file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))
    for call in (lambda: trial.ask(1), trial.status):
        with pytest.raises(StoreError, match="was removed or renamed while the trial was open"):
            call()
    assert not file.exists()
    file.with_name("elsewhere.db").rename(file)
    assert trial.ask(1).assignments


def test_a_file_replaced_in_the_middle_is_not_acknowledged(
    trial: Trial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Session.save

    def meanwhile(session: Session, state: str) -> None:
        honest(session, state)
        backup = file.with_name("backup.db")
        if backup.exists():
            os.replace(backup, file)

    monkeypatch.setattr(Session, "save", meanwhile)
    with pytest.raises(StoreError, match="another file was put in its place"):
        trial.ask(1)
    for call in (lambda: trial.ask(1), trial.status):
        with pytest.raises(StoreError, match="is still that of the one before"):
            call()
