"""What was erased is gone from the files of a PostgreSQL server when the status says
so, and no sooner; nobody waits for it.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from discreet import dp_se
from discreet.trials.store import dialect, postgresql, schema
from discreet.trials.store.dialect import make_dialect
from discreet.trials.trial import Trial
from tests.support import postgres as postgres_server
from tests.support.stores import UNITS, create, database


@pytest.fixture
def url(postgres: postgres_server.Server) -> str:
    """For the owner of the tables, who is no superuser."""
    return postgres.granted()["owner"]


class Files:
    """The files in which the table of outcomes is, and was when we looked before."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.known: set[Path] = set()

    def read(self) -> bytes:
        """All that stands in them, as it is on disk now."""
        where = f"SELECT pg_relation_filepath('{schema.outcomes.name}')"
        with database(self.url) as connection:
            folder = connection.exec_driver_sql("SHOW data_directory").scalar_one()
            self.known.add(Path(folder, connection.exec_driver_sql(where).scalar_one()))
        return b"".join(path.read_bytes() for path in self.known if path.exists())

    def written(self) -> bytes:
        """The same when the server has written everything."""
        with database(self.url, isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("CHECKPOINT")
        return self.read()


def row(number: int, units: int) -> bytes:
    """How a row ends on disk: with twelve bytes that are not there by chance."""
    return number.to_bytes(4, "little") + (units + schema.OFFSET).to_bytes(8, "little")


def nearly_released(trial: Trial, units: int = UNITS) -> tuple[str, list[bytes]]:
    """The id of the one whose outcome is not in, and the rows of the two others."""
    *told, last = (one.id for one in trial.ask(3).assignments)
    trial.tell_many({id: units / 2**20 for id in told})
    return last, [row(int(id.split("-")[0]), units) for id in told]


def test_outcomes_are_gone_from_the_files(url: str) -> None:
    """Of several pages, in which VACUUM alone would leave most of them."""
    trial, files = (
        create(url, strategy=dp_se(epsilon=1.0, delta=0.1), max_participants=10_000),
        Files(url),
    )
    ids = [a.id for a in trial.ask(5000).assignments]
    random.Random(1).shuffle(ids)
    rows = [row(int(id.split("-")[0]), UNITS + place) for place, id in enumerate(ids)]
    for start in range(0, len(ids) - 1, 100):
        some = range(start, min(start + 100, len(ids) - 1))
        trial.tell_many({ids[place]: (UNITS + place) / 2**20 for place in some})
    raw = files.written()
    assert trial.status().releases == 0
    assert sum(one in raw for one in rows) == len(ids) - 1 > 500
    trial.tell(ids[-1], 1.0)
    assert trial.status().releases > 0
    assert not trial.status().erasing
    for raw in (files.read(), files.written()):
        assert not any(one in raw for one in rows)


@contextmanager
def tables(url: str, *statements: str, end: str = "ROLLBACK") -> Iterator[None]:
    """Somebody else at work on the same server."""
    address = make_dialect(url).url.set(drivername="postgresql", username="postgres")
    with psycopg.connect(address.render_as_string(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        try:
            yield
        finally:
            connection.execute(end)


OLD = {
    "a snapshot, as of a dump": (["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"], "ROLLBACK"),
    "a transaction": (["BEGIN", "SELECT pg_current_xact_id()"], "ROLLBACK"),
    "a prepared transaction": (
        ["BEGIN", "SELECT pg_current_xact_id()", "PREPARE TRANSACTION 'old'"],
        "ROLLBACK PREPARED 'old'",
    ),
}


@pytest.mark.parametrize("what", OLD)
def test_what_somebody_may_still_see_is_not_gone(url: str, what: str) -> None:
    statements, end = OLD[what]
    trial, files = create(url), Files(url)
    last, rows = nearly_released(trial)
    with tables(url, *statements, end=end):
        trial.tell(last, 1.0)
        assert trial.status().releases == 3
        assert "may still be readable" in trial.status().erasing
        assert all(one in files.written() for one in rows), "while it says so, they are there"
        trial.expire()
        assert Trial.open(url, "colours").status().erasing
    trial.expire()
    assert not trial.status().erasing
    assert not any(one in files.read() for one in rows)


def test_nobody_waits_for_a_lock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings say about warnings, and however long writers wait."""
    monkeypatch.setattr(dialect, "BUSY_SECONDS", 600.0)
    monkeypatch.setitem(postgresql.FOR_NOW, "statement_timeout", "600s")
    trial = create(f"{url}%20-cclient_min_messages%3Derror")
    last, rows = nearly_released(trial)
    lock = f"LOCK TABLE {schema.outcomes.name} IN SHARE UPDATE EXCLUSIVE MODE"
    with tables(url, "BEGIN", f"SET search_path = {place_of(url)}", lock):
        began = time.monotonic()
        trial.tell(last, 1.0)
        assert time.monotonic() - began < 300, "and not as long as writers wait for locks"
        assert trial.status().erasing
        assert all(one in Files(url).written() for one in rows)
    trial.ask()
    assert not trial.status().erasing
    assert not any(one in Files(url).read() for one in rows)


def place_of(url: str) -> str:
    return url.rpartition("%3D")[2]


@pytest.mark.parametrize("made_by", ["library", "script"])
def test_the_server_keeps_no_statistics_of_outcomes(
    postgres: postgres_server.Server, made_by: str
) -> None:
    url = postgres.new_url() if made_by == "library" else postgres.granted()["owner"]
    nearly_released(create(url))
    with database(url) as connection:
        connection.exec_driver_sql(f"ANALYZE {schema.outcomes.name}")
        counted = connection.exec_driver_sql(
            "SELECT attname FROM pg_stats WHERE schemaname = current_schema() "
            f"AND tablename = '{schema.outcomes.name}'"
        )
        assert set(counted.scalars()) == {"trial", "arm", "phase", "number"}


def test_what_takes_too_long_rests(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the connection are then what they were. The server would sleep
    in place of what takes long.
    """
    trial = create(url)
    last, _ = nearly_released(trial)

    def slowly(_connection: Any, _cursor: Any, text: str, about: Any, *_: Any) -> Any:
        return "SELECT pg_sleep(60)" if text.startswith("VACUUM") else text, about

    engine = trial._database.engine
    sa.event.listen(engine, "before_cursor_execute", slowly, retval=True)
    monkeypatch.setitem(postgresql.FOR_NOW, "statement_timeout", "1s")
    trial.tell(last, 1.0)
    sa.event.remove(engine, "before_cursor_execute", slowly)
    monkeypatch.setitem(postgresql.FOR_NOW, "statement_timeout", "60s")
    trial.expire()
    assert trial.status().erasing
    with trial._database.snapshot("colours") as found:
        shown = [
            found.connection.exec_driver_sql(f"SHOW {name}").scalar() for name in postgresql.FOR_NOW
        ]
    assert shown == ["30s", "0", "notice"]
    trial._database.dialect._vacuum.rests = 0.0  # type: ignore[attr-defined]
    trial.expire()
    assert not trial.status().erasing


def test_after_a_death_whoever_opens_the_trial_tidies_up(url: str) -> None:
    trial, files = create(url), Files(url)
    last, rows = nearly_released(trial)
    child = os.fork()
    if child == 0:
        trial._scrub = lambda: os._exit(0)  # type: ignore[method-assign]
        trial.tell(last, 1.0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert trial.status().erasing
    assert all(one in files.written() for one in rows)
    assert not Trial.open(url, "colours").status().erasing
    assert not any(one in files.read() for one in rows)
