"""Servers killed under load, on both stores: clients repeat what was not answered, and
nothing is lost or done twice.

Found too, but not quickly: participants who are in, in a transaction of their own, before the
answer to their request is kept.
"""

import os
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection

from discreet.service import auth
from tests.support.outage import Plant, outage, problems


@pytest.mark.slow
def test_servers_are_killed_under_load(url: str, tmp_path: Path) -> None:
    log, found = outage(url, tmp_path, "exact", kills=5, participants=30)
    assert found + problems(url, log) == []
    log.close()


def keys_of_its_own() -> None:
    """A server that does not know the requests of another one."""
    usual = auth.scoped_key
    auth.scoped_key = lambda *about: f"{os.getpid()} {usual(*about)}"


def lying() -> None:
    """One commit in seven is none."""
    usual, turns = Connection.commit, count()

    def commit(connection: Connection) -> None:
        (usual if next(turns) % 7 else Connection.rollback)(connection)

    setattr(Connection, "commit", commit)  # noqa: B010


@pytest.mark.slow
@pytest.mark.parametrize("plant", [keys_of_its_own, lying])
def test_planted_mistakes_are_found(plant: Plant, tmp_path: Path) -> None:
    """A client that notices ends it. One answer in ten is asked for again at another
    server, and for 600 participants there are more than 200 answers: that none of them is has
    a probability below 1e-9.
    """
    url = f"sqlite:///{tmp_path}/trials.db"
    log, found = outage(url, tmp_path, "exact", kills=6, participants=600, plant=plant)
    found += problems(url, log)
    assert found != []
    log.close()
