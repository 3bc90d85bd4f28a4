"""Statements about rows of a list: each row is found by the index, however many rows a
trial has, and there are few statements.

Seen to fail with: a list that is compared with a truth value (SQLite), a trial that is
said by itself, a list whose length is said (PostgreSQL, which has not counted the rows
yet), a list as long as it is, plans of small tables that are kept for ever.
"""

import re
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import Trial, bet_se
from discreet.trials.store import postgresql
from discreet.trials.store.database import Database
from discreet.trials.store.schema import (
    RECORDED,
    AssignmentRow,
    assignments,
    participants,
    requests,
)
from discreet.trials.store.tables import (
    ListStatement,
    TrialTables,
    _listed_assignments,
    _listed_participants,
    _listed_requests,
    _mark_recorded,
)
from tests.support.postgres import Server

ROWS = 20_000
TABLES = (assignments, participants, requests)


def made(table: sa.Table, number: int) -> tuple[Any, ...]:
    """A row of a table."""
    values = {"number": number, "hash": number.to_bytes(32, "little"), "answer": "x" * 80}
    values |= {"token": "x" * 16, "arm": 0, "phase": 1, "state": 0, "at": 7.0}
    return tuple(values.get(one.name) for one in table.c if one.name != "trial")


def plan(tables: TrialTables, listed: ListStatement, values: list[Any], **about: Any) -> str:
    """How a database finds the rows of a list."""
    words = "EXPLAIN QUERY PLAN" if tables.connection.dialect.name == "sqlite" else "EXPLAIN"
    found = list[str]()

    @sa.event.listens_for(tables.connection.engine, "before_cursor_execute", retval=True)
    def explain(*call: Any) -> tuple[str, Any]:
        return f"{words} {call[2]}", call[3]

    try:
        for row in tables._run_listed(listed, values, **about).all():
            found.append(str(row[-1]))
    finally:
        sa.event.remove(tables.connection.engine, "before_cursor_execute", explain)
    return "\n".join(found)


def test_rows_of_a_list_are_found_by_the_index(url: str) -> None:
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    store = Database(url)
    with store.lock, store.transaction("dose") as tables:
        tables.lock()
        for table in TABLES:
            tables._insert(table, [made(table, number) for number in range(1, ROWS + 1)])
        tables.flush()
        numbers = list(range(0, ROWS, ROWS // 64))
        hashes = [number.to_bytes(32, "little") for number in numbers]
        plans = [
            plan(tables, _listed_assignments, numbers),
            plan(tables, _mark_recorded, numbers, new=1),
            plan(tables, _listed_participants, hashes),
            plan(tables, _listed_requests, hashes),
        ]
    store.close()
    for one in plans:
        if store.dialect.files:
            assert [line.count("=?") for line in one.split("\n")] == [2], one
        else:
            assert re.findall(r"(\w+) Scan.* on discreet", one) == ["Index"], one


def test_what_was_read_of_people_is_read_again_once_it_has_changed(url: str) -> None:
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    store, there = (
        Database(url),
        [AssignmentRow(number, "x" * 16, 0, 1, 0, 9.0, None, 7.0) for number in (1, 2)],
    )
    with store.lock, store.transaction("dose") as tables:
        tables.lock()
        assert tables.find_assignments([1, 2]) == {}
        tables.insert_assignments(there)
        one, two = there
        assert tables.find_assignments([2, 1, 3]) == {2: two, 1: one}
        tables.mark_recorded([one])
        assert tables.find_assignments([1, 2]) == {1: one._replace(state=RECORDED), 2: two}
        tables.reissue(two, "y" * 16)
        assert tables.find_assignments([2]) == {2: two._replace(token="y" * 16)}
        tables.limit_deadlines(7.0)
        assert [row.deadline for row in tables.find_assignments([1, 2]).values()] == [7.0, 7.0]
    store.close()


@pytest.mark.parametrize("size", [1, 2, 3, 64, 65, 10_000])
def test_lists_have_few_lengths(size: int) -> None:
    found = list(_listed_requests.for_driver({"at_trial": 1}, range(size))[1][1:])
    assert found[:size] == list(range(size))
    assert set(found[size:]) <= {size - 1}
    assert len(found) == 2 ** (size - 1).bit_length()


def kept_plan(store: Database) -> str:
    """How a server finds requests of a list by now, in a connection that comes again
    and again.
    """
    kept = "pg_prepared_statements WHERE statement LIKE 'SELECT discreet_requests%%'"
    with store.lock, store.transaction("dose") as tables:
        name = tables.connection.exec_driver_sql(f"SELECT name FROM {kept}").scalar_one()
        words = f"EXPLAIN EXECUTE {name} (ARRAY[1], ARRAY['x'::bytea])"
        return "\n".join(tables.connection.exec_driver_sql(words).scalars())


def use(store: Database, often: int) -> None:
    """Look a request up, in a transaction each time."""
    for _ in range(often):
        with store.lock, store.transaction("dose") as tables:
            tables.lock()
            tables._run_listed(_listed_requests, [b"x" * 32]).all()


@pytest.mark.parametrize("forgets", [True, False])
def test_a_server_that_saw_small_tables_finds_rows_of_large_ones(
    postgres: Server, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nobody has counted their rows; and the planted mistake, that it is never
    made to decide anew.
    """
    if not forgets:
        monkeypatch.setattr(postgresql, "PLANNED", 10**9)
    url = postgres.new_url()
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    store = Database(url)
    use(store, 15)
    assert "Seq Scan on discreet_requests" in kept_plan(store)
    with store.lock, store.transaction("dose") as tables:
        tables.lock()
        tables._insert(requests, [made(requests, number) for number in range(1, ROWS + 1)])
    use(store, 128)
    assert ("Seq Scan on discreet_requests" in kept_plan(store)) is not forgets
    store.close()
