"""A small trial in any database, and a look behind its wall."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from discreet import adap_tt_star
from discreet.trials.store import dialect, schema
from discreet.trials.trial import Trial

ARMS = ("red", "green", "blue")
UNITS = 731_317
OUTCOME = UNITS / 2**20
"""On the grid of the outcomes, so that it is these units for sure, and easy to
recognise.
"""


def create(url: str, name: str = "colours", **settings: Any) -> Trial:
    chosen = {
        "arms": ARMS,
        "strategy": adap_tt_star(epsilon=1.0, delta=0.1),
        "max_participants": 500,
        **settings,
    }
    return Trial.create(url, name, **chosen)


def run(trial: Trial, people: int, outcome: float = 1.0) -> None:
    """Enrol that many people one after the other, each with the same outcome."""
    for _ in range(people):
        for assignment in trial.ask().assignments:
            trial.tell(assignment.id, outcome)


@contextmanager
def database(url: str, **options: Any) -> Iterator[sa.Connection]:
    """The tables, for a test that looks behind the wall or does damage; on a server,
    as somebody who may do anything.
    """
    found = dialect.make_dialect(url).url
    if found.username:
        found = found.set(username="postgres")
    engine = sa.create_engine(found, **options)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def count(url: str, table: sa.Table) -> int:
    with database(url) as connection:
        query = sa.select(sa.func.count()).select_from(table)
        left = query.where(table.c.units != schema.ERASED) if table is schema.outcomes else query
        return int(connection.execute(left).scalar_one())


def damage(url: str, statement: str) -> None:
    with database(url) as connection:
        assert connection.exec_driver_sql(statement).rowcount


def dealt(trial: Trial) -> list[int]:
    """The arms of all participants, in order, from the record."""
    events = trial.transcript()["events"]
    return [arm for event in events if event["kind"] == "assigned" for arm in event["arms"]]
