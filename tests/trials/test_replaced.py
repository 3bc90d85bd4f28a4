"""The file of a trial is replaced or removed under a running process: nothing is
acknowledged into a file that nobody will find, and nothing is released twice.
"""

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, cast

import pytest

from discreet import Trial, bet_se
from discreet.errors import InvalidInputError, StoreError, TamperedError
from discreet.trials.store import sqlite
from discreet.trials.store.tables import TrialTables
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
        return int(connection.execute("SELECT participants FROM discreet_trials").fetchone()[0])


def test_a_backup_put_in_its_place_is_refused(trial: Trial, file: Path) -> None:
    os.replace(file.with_name("backup.db"), file)
    for call in (lambda: trial.ask(1), trial.status, lambda: trial.tell("1-x", 1)):
        with pytest.raises(TamperedError, match="was restored from a backup"):
            call()
    assert people_in(file) == 3, "the backup is as it was"


def test_the_same_record_elsewhere_is_gone_on_with(trial: Trial, file: Path) -> None:
    """A copy that is not older is as good."""
    before = trial.status().participants
    trial.close()
    copy = file.with_name("copy.db")
    shutil.copy(file, copy)
    assert trial.status().participants == before
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
    honest = TrialTables.save_state

    def meanwhile(tables: TrialTables, state: str) -> None:
        honest(tables, state)
        backup = file.with_name("backup.db")
        if backup.exists():
            os.replace(backup, file)

    monkeypatch.setattr(TrialTables, "save_state", meanwhile)
    with pytest.raises(StoreError, match="another file was put in its place"):
        trial.ask(1)
    for call in (lambda: trial.ask(1), trial.status):
        with pytest.raises(StoreError, match="is still that of the one before"):
            call()


def moved(file: Path, there: Path) -> None:
    """With all that belongs to it, as the rename of a folder would."""
    for end in ("", "-wal", "-shm"):
        if file.with_name(file.name + end).exists():
            os.replace(f"{file}{end}", f"{there}{end}")


def swapped_while_opened(
    file: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]
) -> list[sqlite3.Connection]:
    """Before it is opened the file is moved away, and something else happens; then it
    is moved back before anybody has looked into what was opened.
    """
    aside, honest = file.with_name("aside.db"), sqlite3.connect
    made, calls = list[sqlite3.Connection](), count()

    def connect(*words: Any, **options: Any) -> sqlite3.Connection:
        if next(calls):
            return cast(sqlite3.Connection, honest(*words, **options))
        moved(file, aside)
        before()
        try:
            made.append(honest(*words, **options))
        finally:
            moved(aside, file)
        return made[0]

    monkeypatch.setattr(sqlite3, "connect", connect)
    return made


def reader(file: Path) -> Popen[str]:
    """Another process, in the middle of a look: what is written from now on stays in
    the log.
    """
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN'); "
        "print(c.execute('SELECT 7 FROM discreet_trials').fetchone(), flush=True); sys.stdin.read()"
    )
    other = Popen([sys.executable, "-c", script, str(file)], stdin=PIPE, stdout=PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "(7,)\n"
    return other


@pytest.mark.parametrize("what", ["nothing", "an empty file", "an old copy"])
def test_a_file_moved_away_and_back_while_it_is_opened_keeps_its_log(
    trial: Trial, file: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """SQLite deletes the log beside a file that it finds empty, and makes a file that
    it does not find.
    """
    with reader(file) as other:
        trial.ask(5)
        people, head = trial.status().participants, trial.status().head
        trial.close()
        assert file.with_name("dose.db-wal").stat().st_size
        acts: dict[str, Callable[[], None]] = {
            "nothing": lambda: None,
            "an empty file": file.touch,
            "an old copy": lambda: os.replace(file.with_name("backup.db"), file),
        }
        opened = swapped_while_opened(file, monkeypatch, acts[what])
        assert Trial.open(f"sqlite:///{file}", "colours", head).status().participants == people
        assert len(opened) == (what != "nothing")
        other.communicate()
    assert trial.status().participants == people
    assert trial.verify().intact


def test_closing_deletes_no_log(trial: Trial, file: Path) -> None:
    """SQLite does so by name, and by then the name may be that of another file."""
    log = file.with_name("dose.db-wal")
    trial.tell_many({one.id: 1 for one in trial.ask(5).assignments})
    inode = log.stat().st_ino
    trial.close()
    assert log.stat().st_ino == inode
    assert not log.stat().st_size, "the file is whole by itself"
    raw, _ = sqlite.SQLiteFile(str(file)).connect({})
    raw.close()
    assert log.stat().st_ino == inode
    file.chmod(0o660)
    trial.status()
    trial.close()
    assert not log.exists(), "others could not write to the log of whoever came first"


def test_an_empty_file_is_not_opened(trial: Trial, file: Path) -> None:
    """Somebody copies a file there and is not through."""
    trial.close()
    file.rename(file.with_name("elsewhere.db"))
    file.touch(0o600)
    with pytest.raises(StoreError, match="the file is empty: if somebody copies it"):
        trial.status()
    with pytest.raises(InvalidInputError, match="there are no trials in"):
        Trial.open(f"sqlite:///{file}", "colours")
    file.with_name("elsewhere.db").rename(file)
    assert trial.ask(1).assignments


def test_a_file_removed_just_before_it_is_opened(
    trial: Trial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when somebody asked."""
    trial.close()
    file.rename(file.with_name("elsewhere.db"))
    monkeypatch.setattr(Path, "exists", lambda _: True)
    with pytest.raises(StoreError, match="was removed or renamed while the trial was open"):
        Trial.open(f"sqlite:///{file}", "colours")
