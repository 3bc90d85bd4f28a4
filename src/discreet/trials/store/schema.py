"""The tables in which trials live, and what their rows are called."""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator

SCHEMA = 4
"""Version of the tables: a database with another one is refused."""
OPEN = 0
TOLD = 1
"""States of an assignment. An outcome that is missing or late has the state of one that
was told: that it is missing may be the outcome, and this row is never erased.
"""

OFFSET = 2**62
"""What is added to an outcome's units when stored; see `Units`."""
ERASED = -(2**61)
"""What stands for an outcome that was erased."""

metadata = MetaData()
about = Table("discreet_schema", metadata, Column("version", Integer, primary_key=True))
trials = Table(
    "discreet_trials",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("protocol", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("people", Integer, nullable=False),
    Column("state", Text, nullable=False),
)
events = Table(
    "discreet_events",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)
assignments = Table(
    "discreet_assignments",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("token", String(32), nullable=False),
    Column("arm", Integer, nullable=False),
    Column("phase", Integer, nullable=False),
    Column("state", Integer, nullable=False),
    Column("deadline", Float),
    Column("site", String(200)),
    Column("at", Float, nullable=False),
)
waiting = sa.and_(assignments.c.state == OPEN, assignments.c.deadline.is_not(None))
Index(
    "discreet_deadlines",
    assignments.c.trial,
    assignments.c.deadline,
    sqlite_where=waiting,
    postgresql_where=waiting,
)
batches = Table(
    "discreet_batches",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("open", Integer, nullable=False),
    Column("told", Integer, nullable=False),
)


class Units(TypeDecorator[int]):
    """Outcomes as numbers that always take eight bytes, so that SQLite overwrites one
    where it is.

    Rows of the table are added at the end and never deleted: deleting moves other rows
    from page to page, and leaves copies of them behind that nothing erases.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Any) -> int | None:
        """As it is stored."""
        return None if value is None else value + OFFSET

    def process_result_value(self, value: int | None, dialect: Any) -> int | None:
        """As it was."""
        return None if value is None else int(value) - OFFSET


sealed = Table(
    "discreet_sealed",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("units", Units),
)
UNCOUNTED = "ALTER TABLE discreet_sealed ALTER COLUMN units SET STATISTICS 0"
"""ANALYZE would copy outcomes into statistics of the server, which nothing erases."""
_uncounted = sa.DDL(UNCOUNTED)  # type: ignore[no-untyped-call]
sa.event.listen(sealed, "after_create", _uncounted.execute_if(dialect="postgresql"))
people = Table(
    "discreet_people",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
    Column("number", Integer, nullable=False),
)
"""Keyed hashes of identities, and the person's number."""
keys = Table(
    "discreet_keys",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
)


rounds = Table(
    "discreet_rounds",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("key", LargeBinary(32), nullable=False),
)
"""Keys of rounds that are not revealed: whoever reads them knows the next arms."""
requests = Table(
    "discreet_requests",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
    Column("answer", Text, nullable=False),
)
"""Keyed hashes of the keys of requests, what was asked for and who was assigned: the
same request gets the same answer again.
"""
journal = Table(
    "discreet_journal",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("who", String(200), nullable=False),
    Column("site", String(200)),
    Column("call", String(40), nullable=False),
    Column("people", Integer, nullable=False),
)
"""Who called what, and when: private, no part of the record, and never an outcome."""
erasing = Table(
    "discreet_erasing",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("since", Float, nullable=False),
)
"""With which events, and since when, outcomes were erased that may still be readable in
the files of the database.
"""


class Row(NamedTuple):
    """A trial as it is now."""

    trial: int
    protocol: str
    seq: int
    head: str
    people: int
    state: str
    erasing: int | None = None
    """The event up to which outcomes were erased that may still be readable in the
    files of the database.
    """


class Assigned(NamedTuple):
    """A row of the assignments."""

    number: int
    token: str
    arm: int
    phase: int
    state: int
    deadline: float | None
    """When its outcome counts no more."""
    site: str | None
    at: float
    """When the person came."""

    @property
    def id(self) -> str:
        """Under which the outcome is told."""
        return f"{self.number}-{self.token}"


class Batched(NamedTuple):
    """Counts of the people in one arm's phase."""

    arm: int
    phase: int
    open: int
    told: int
