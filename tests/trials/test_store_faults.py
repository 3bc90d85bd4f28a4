"""Disks that are full, files that are read-only, locks that stay, connections that
break: a clear error, nothing half done, and the trial goes on afterwards.
"""

import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import ctb_tt
from discreet.errors import DiscreetError, InvalidInputError, StoreError
from discreet.trials import mechanisms as privacy
from discreet.trials.store import schema, sqlite
from discreet.trials.store.tables import TrialTables
from discreet.trials.trial import Trial
from tests.support import postgres as postgres_server
from tests.support.stores import OUTCOME, count, create, database, run


def refused(trial: Trial, reason: str) -> None:
    """Asking and telling both fail with this reason, and say that nothing was
    changed.
    """
    for call in (lambda: trial.ask(1), lambda: trial.tell(ids[0], OUTCOME)):
        with pytest.raises(StoreError, match=reason) as error:
            call()
        assert "nothing was changed" in str(error.value)


ids: list[str] = []


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial on SQLite in the middle of a batch; `ids` are those of people who
    wait.
    """
    made = create(f"sqlite:///{tmp_path}/trials.db", max_participants=5000)
    run(made, 7)
    ids[:] = [a.id for a in made.ask(1).assignments]
    return made


def goes_on(trial: Trial) -> None:
    assert trial.status().pending == 1
    assert trial.verify().intact
    trial.tell(ids[0], 1.0)
    run(trial, 5)
    assert trial.verify().intact


def test_locked(trial: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    trial.close()
    holder = sqlite3.connect(tmp_path / "trials.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    refused(trial, "using it: try again")
    assert trial.status().pending == 1, "readers need no lock"
    assert Trial.open(f"sqlite:///{tmp_path}/trials.db", "colours").status().pending == 1
    holder.execute("ROLLBACK")
    holder.close()
    goes_on(trial)


def test_read_only(trial: Trial, tmp_path: Path) -> None:
    """In a process of its own, which for root's sake is somebody else: for root nothing
    is read-only.
    """
    trial.close()
    with tempfile.TemporaryDirectory(prefix="read-only-") as name:
        shutil.copy(tmp_path / "trials.db", name)
        Path(name, "trials.db").chmod(0o400)
        if os.getuid() == 0:
            os.chown(Path(name, "trials.db"), 65534, -1)
        Path(name).chmod(0o555)
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534 if os.getuid() == 0 else os.getuid())
                with pytest.raises(StoreError, match="read-only: check the permissions"):
                    Trial.open(f"sqlite:///{name}/trials.db", "colours").tell(ids[0], OUTCOME)
                with pytest.raises(StoreError, match="cannot be opened: check that the folder"):
                    create(f"sqlite:///{name}/other.db")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        Path(name).chmod(0o755)
        Path(name, "trials.db").chmod(0o600)
        goes_on(Trial.open(f"sqlite:///{name}/trials.db", "colours"))


def test_quota(trial: Trial, tmp_path: Path) -> None:
    """No file may grow any more."""
    trial.close()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, usual[1]))
    try:
        refused(trial, "the disk (cannot be written|is full)|cannot be opened")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    goes_on(trial)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of one megabyte, not in pytest's folder, which only its owner may enter;
    only root can make one.
    """
    with tempfile.TemporaryDirectory(prefix="small-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", name]
        if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("only root can mount a small disk")
        yield folder
        subprocess.run(["umount", "-l", name], check=True)


def test_full_disk(small_disk: Path) -> None:
    made = create(f"sqlite:///{small_disk}/trials.db", max_participants=5000)
    run(made, 7)
    ids[:] = [a.id for a in made.ask(1).assignments]
    fill(small_disk / "filler")
    with pytest.raises(
        StoreError, match="the disk is full: make room and try again; nothing was changed"
    ):
        until_it_fails(made)
    people, pending = made.status().participants, made.status().pending
    (small_disk / "filler").unlink()
    assert (made.status().participants, made.status().pending) == (people, pending)
    made.tell(ids[0], 1.0)
    run(made, 5)
    assert made.verify().intact
    made.close()


def until_it_fails(trial: Trial) -> None:
    while True:
        trial.tell(ids[0], OUTCOME)
        ids[:] = [a.id for a in trial.ask(1).assignments]


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def test_no_database(tmp_path: Path) -> None:
    (tmp_path / "letter.db").write_text("Dear reader, " * 100)
    with pytest.raises(StoreError, match="not a database of trials: give another file"):
        create(f"sqlite:///{tmp_path}/letter.db")
    with pytest.raises(StoreError, match="cannot be opened: check that the folder exists"):
        create(f"sqlite:///{tmp_path}/nowhere/trials.db")


def test_damaged(trial: Trial, tmp_path: Path) -> None:
    trial.close()
    path = tmp_path / "trials.db"
    raw = bytearray(path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="damaged: restore a backup"):
        trial.ask(1)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "mysql://somewhere/x",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
    ],
)
def test_addresses(url: str) -> None:
    with pytest.raises(DiscreetError):
        create(url)


# --- PostgreSQL -----------------------------------------------------------------------


def cut(url: str) -> None:
    """End all other connections to this server."""
    with database(url) as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_connection_cut_between_calls(postgres: postgres_server.Server) -> None:
    url = postgres.new_url()
    trial = create(url)
    run(trial, 3)
    cut(url)
    run(trial, 3)
    assert trial.verify().intact


@pytest.mark.parametrize(
    "step",
    ["lock", "mark_recorded", "insert_outcomes", "add_counts", "sum_outcomes", "append_event"],
)
def test_connection_cut_in_a_transaction(
    postgres: postgres_server.Server, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    url = postgres.new_url()
    trial = create(url)
    asked = [a.id for a in trial.ask(3).assignments]
    trial.tell_many(dict.fromkeys(asked[:2], 1.0))
    usual = getattr(TrialTables, step)

    def then_cut(*arguments: object, **words: object) -> object:
        found = usual(*arguments, **words)
        cut(url)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(TrialTables, step, then_cut)
        with pytest.raises(
            StoreError, match=r"server ended the connection.*try again; nothing was changed"
        ):
            trial.tell(asked[2], OUTCOME)
    assert (trial.status().pending, count(url, schema.outcomes)) == (1, 2)
    assert trial.verify().intact
    trial.tell(asked[2], 1.0)
    assert trial.status().releases == 3
    assert trial.verify().intact


def test_connection_cut_at_the_commit(
    postgres: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was done cannot be known then, and nothing else is said; telling again
    is safe.
    """
    url = postgres.new_url()
    trial = create(url)
    asked = [a.id for a in trial.ask(3).assignments]

    with monkeypatch.context() as patch:
        patch.setattr(
            trial._database.engine.dialect, "do_commit", lambda raw: broken_commit(raw, url)
        )
        with pytest.raises(
            StoreError, match="not known whether this was done: tell outcomes again"
        ):
            trial.tell_many(dict.fromkeys(asked, 1.0))
    trial.tell_many(dict.fromkeys(asked, OUTCOME))
    assert trial.status().releases == 3
    assert trial.verify().intact


def broken_commit(raw: object, url: str) -> None:
    """The commit arrives, its answer does not."""
    raw.commit()  # type: ignore[attr-defined]
    cut(url)
    raw.execute("SELECT 1")  # type: ignore[attr-defined]


def test_server_stopped(postgres: postgres_server.Server) -> None:
    url = postgres.new_url()
    trial = create(url)
    run(trial, 7)
    asked = [a.id for a in trial.ask(1).assignments]
    postgres.stop()
    try:
        with pytest.raises(StoreError, match=r"check that it is running.*nothing was changed"):
            trial.tell(asked[0], OUTCOME)
        with pytest.raises(StoreError, match="check that it is running"):
            Trial.open(url, "colours")
    finally:
        postgres.start()
    assert trial.status().pending == 1
    trial.tell(asked[0], 1.0)
    run(trial, 5)
    assert trial.verify().intact


def test_wrong_user_or_database(postgres: postgres_server.Server) -> None:
    url = postgres.new_url()
    for wrong in (
        url.replace("postgres@", "stranger:secret@"),
        url.replace("/postgres?", "/nowhere?"),
    ):
        with pytest.raises(
            StoreError, match="check that it is running, and check the address, user and password"
        ) as error:
            create(wrong)
        assert "secret" not in str(error.value)


def test_full_disk_postgresql(postgres: postgres_server.Server, small_disk: Path) -> None:
    """A table is on a full disk; the server has its own."""
    url = postgres.new_url()
    shutil.chown(small_disk, "postgres")
    trial = create(url, strategy=ctb_tt(epsilon=1.0, delta=1e-9), max_participants=100_000)
    with database(url, isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        connection.exec_driver_sql("ALTER TABLE discreet_assignments SET TABLESPACE small")
    people = trial.ask(1000).assignments
    fill(small_disk / "filler")
    with pytest.raises(
        StoreError, match="the disk is full: make room and try again; nothing was changed"
    ):
        trial.ask(2000)
    assert trial.status().participants == 1000
    (small_disk / "filler").unlink()
    trial.answer(people[0].id, privacy.respond(1.0, 1.0))
    assert len(trial.ask(2000).assignments) == 2000
    assert trial.verify().intact
    with database(url, isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ALTER TABLE discreet_assignments SET TABLESPACE pg_default")
        connection.exec_driver_sql("DROP TABLESPACE small")


def test_input_errors_do_nothing(url: str) -> None:
    trial = create(url)
    asked = [a.id for a in trial.ask(3).assignments]
    with pytest.raises(InvalidInputError):
        trial.tell_many({asked[0]: 1.0, asked[1]: 2.0})
    assert trial.status().pending == 3
