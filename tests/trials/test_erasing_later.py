"""Outcomes that another process released are made unreadable once no reader is left."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from discreet import dp_se
from discreet.errors import StoreError
from discreet.service.server import make_due_releases
from discreet.trials.store import schema
from discreet.trials.store.dialect import make_dialect
from discreet.trials.trial import Trial
from tests.support.service import serving
from tests.support.stores import UNITS, create, database

PEOPLE = 5000
"""More than a round has."""
RELEASE = """
import sys
from discreet.trials.trial import Trial
trial = Trial.open(sys.argv[1], "colours")
trial.tell(sys.argv[2], 1.0)
assert trial.status().releases and trial.status().erasing
"""


def run_python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def find_outcomes(url: str, rows: list[tuple[int, int]]) -> int:
    """Count the rows (number, units) whose bytes are in the files of the database."""
    if url.startswith("sqlite"):
        file = Path(make_dialect(url).files[0])
        files = sorted(str(path) for path in file.parent.glob(f"{file.name}*"))
        # Another process reads them: closing a file here would drop SQLite's locks.
        raw = subprocess.run(["cat", *files], check=True, stdout=subprocess.PIPE).stdout
        patterns = [(n.to_bytes(2, "big"), (u + schema.OFFSET).to_bytes(8, "big")) for n, u in rows]
    else:
        with database(url, isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("CHECKPOINT")
            folder = connection.exec_driver_sql("SHOW data_directory").scalar_one()
            query = f"SELECT pg_relation_filepath('{schema.outcomes.name}')"
            raw = Path(folder, connection.exec_driver_sql(query).scalar_one()).read_bytes()
        patterns = [
            (n.to_bytes(4, "little"), (u + schema.OFFSET).to_bytes(8, "little")) for n, u in rows
        ]
    return sum(number + units in raw for number, units in patterns)


@contextmanager
def held_snapshot(url: str) -> Iterator[None]:
    """Another process, which reads a state of the database and goes on reading it."""
    if url.startswith("sqlite"):
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "c.execute('BEGIN'); c.execute('SELECT count(*) FROM sqlite_master').fetchall();"
            "print(flush=True); sys.stdin.read()"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", code, make_dialect(url).files[0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert reader.stdout is not None
        with reader:
            reader.stdout.readline()
            yield
        assert reader.returncode == 0
        return
    address = make_dialect(url).url.set(drivername="postgresql", username="postgres")
    with psycopg.connect(address.render_as_string(), autocommit=True) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        yield


def release_elsewhere(url: str, trial: Trial) -> list[tuple[int, int]]:
    """Have another process release outcomes while a third one holds a snapshot. Return
    their rows, all of which are still readable.
    """
    ids = [one.id for one in trial.ask(PEOPLE).assignments]
    numbers = [int(id.split("-")[0]) for id in ids]
    trial.tell_many({id: (UNITS + place) / 2**20 for place, id in enumerate(ids[:-1])})
    rows = [(number, UNITS + place) for place, number in enumerate(numbers[:-1]) if number > 255]
    with held_snapshot(url):
        run_python("-c", RELEASE, url, ids[-1])
        assert find_outcomes(url, rows) == len(rows) > 200
    return rows


@pytest.fixture
def trial(url: str) -> Iterator[Trial]:
    """A trial with one large round and no deadline."""
    strategy = dp_se(epsilon=1.0, delta=0.1)
    with closing(create(url, strategy=strategy, max_participants=10_000)) as made:
        yield made


def expire_in_a_process(url: str) -> None:
    run_python("-m", "discreet", "trial", "expire", "colours", "--url", url)


def expire_in_a_service(url: str) -> None:
    with serving(url) as service:
        assert not service.home.trial("colours").status().erasing


def open_it(url: str) -> None:
    Trial.open(url, "colours").close()


@pytest.mark.parametrize("finish", [expire_in_a_process, expire_in_a_service, open_it])
def test_whoever_opens_the_trial_finishes_the_erasure(
    url: str, trial: Trial, finish: Callable[[str], None]
) -> None:
    rows = release_elsewhere(url, trial)
    finish(url)
    assert find_outcomes(url, rows) == 0
    assert not trial.status().erasing


@pytest.mark.parametrize("finish", [Trial.expire, lambda trial: trial.as_user("x").expire()])
def test_a_trial_that_was_open_finishes_the_erasure_of_others(
    url: str, trial: Trial, finish: Callable[[Trial], None]
) -> None:
    rows = release_elsewhere(url, trial)
    finish(trial)
    assert find_outcomes(url, rows) == 0
    assert not trial.status().erasing


@pytest.mark.parametrize("by", ["clock", "call"])
def test_a_service_finishes_the_erasure_of_others(url: str, trial: Trial, by: str) -> None:
    """The trial has no deadline; the service opened it before the release."""
    with serving(url) as service:
        service.home.trial("colours")
        rows = release_elsewhere(url, trial)
        if by == "clock":
            make_due_releases(service.home)
        else:
            path = f"{service.base_url}/api/v1/trials/colours/expire"
            httpx.post(path, headers=service.headers).raise_for_status()
        assert find_outcomes(url, rows) == 0


def test_a_service_finishes_its_own_erasure(url: str, trial: Trial) -> None:
    """Calls of the service made the release, in whichever of its processes."""
    with serving(url) as service:
        api = f"{service.base_url}/api/v1/trials/colours"
        asked = httpx.post(f"{api}/ask", json={"n": PEOPLE}, headers=service.headers).json()
        ids = [one["id"] for one in asked["assignments"]]
        rows = [(int(id.split("-")[0]), UNITS + place) for place, id in enumerate(ids[:-1])]
        told = {id: units / 2**20 for id, (_, units) in zip(ids, rows, strict=False)}
        httpx.post(f"{api}/tell", json={"outcomes": told}, headers=service.headers)
        rows = [row for row in rows if row[0] > 255]
        with held_snapshot(url):
            httpx.post(f"{api}/tell", json={"outcomes": {ids[-1]: 1}}, headers=service.headers)
            assert trial.status().erasing
            assert find_outcomes(url, rows) == len(rows) > 200
        make_due_releases(service.home)
        assert find_outcomes(url, rows) == 0


def test_a_call_that_releases_returns_after_the_erasure(
    trial: Trial, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may end when the call has returned, and nobody may open the trial
    again for long.
    """
    usual = Trial._scrub

    def scrub_slowly(trial: Trial) -> None:
        time.sleep(0.3)
        usual(trial)

    ids = [one.id for one in trial.ask(PEOPLE).assignments]
    trial.tell_many({id: (UNITS + place) / 2**20 for place, id in enumerate(ids[:-1])})
    monkeypatch.setattr(Trial, "_scrub", scrub_slowly)
    trial.tell(ids[-1], 1.0)
    assert trial.status().releases
    assert not trial.status().erasing
    rows = [(number, UNITS + number - 1) for number in range(256, len(ids))]
    assert find_outcomes(url, rows) == 0


def test_a_release_is_done_although_it_cannot_be_erased_now(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_database(_: Trial) -> None:
        raise StoreError("the database is gone")

    trial = create(url)
    ids = [one.id for one in trial.ask(3).assignments]
    trial.tell_many(dict.fromkeys(ids[1:], 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(Trial, "_scrub", lose_database)
        assert trial.tell(ids[0], 1.0).new == 1
    assert trial.status().releases == 3
