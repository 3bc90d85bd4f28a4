"""The tables of trials, and the types of their rows."""

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

SCHEMA = 5
"""Version of the tables: a database with another version is refused."""
OPEN = 0
RECORDED = 1
"""States of an assignment. A missing or late outcome has the state of a recorded one:
that it is missing may be the outcome, and this row is never erased.
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
    Column("participants", Integer, nullable=False),
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
counts = Table(
    "discreet_counts",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("open", Integer, nullable=False),
    Column("recorded", Integer, nullable=False),
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
        """Return the stored value."""
        return None if value is None else value + OFFSET

    def process_result_value(self, value: int | None, dialect: Any) -> int | None:
        """Return the outcome in units."""
        return None if value is None else int(value) - OFFSET


outcomes = Table(
    "discreet_outcomes",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("units", Units),
)
NO_STATISTICS = "ALTER TABLE discreet_outcomes ALTER COLUMN units SET STATISTICS 0"
"""ANALYZE would copy outcomes into statistics of the server, which nothing erases."""
_no_statistics = sa.DDL(NO_STATISTICS)  # type: ignore[no-untyped-call]
sa.event.listen(outcomes, "after_create", _no_statistics.execute_if(dialect="postgresql"))
participants = Table(
    "discreet_participants",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
    Column("number", Integer, nullable=False),
)
"""Keyed hashes of identifiers, and the participants' numbers."""
secrets = Table(
    "discreet_secrets",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
)


round_keys = Table(
    "discreet_round_keys",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("key", LargeBinary(32), nullable=False),
)
"""Keys of rounds that are not revealed: they determine the next assignments."""
requests = Table(
    "discreet_requests",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
    Column("answer", Text, nullable=False),
)
"""Keyed hashes of idempotency keys, with what was requested and the answer: the same
request gets the same answer again.
"""
audit_trail = Table(
    "discreet_audit_trail",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("user", String(200), nullable=False),
    Column("site", String(200)),
    Column("action", String(40), nullable=False),
    Column("participants", Integer, nullable=False),
)
"""Who did what, and when: private, not part of the record, and never an outcome."""
erasing = Table(
    "discreet_erasing",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("since", Float, nullable=False),
)
"""Events with which outcomes were erased that may still be readable in the files of the
database, and since when.
"""


class TrialRow(NamedTuple):
    """A trial as it is now."""

    trial: int
    protocol: str
    seq: int
    head: str
    participants: int
    state: str
    erasing: int | None = None
    """The event up to which outcomes were erased that may still be readable in the
    files of the database.
    """


class AssignmentRow(NamedTuple):
    """A participant's assignment."""

    number: int
    token: str
    arm: int
    phase: int
    state: int
    deadline: float | None
    """When its outcome counts no more."""
    site: str | None
    at: float
    """When the participant came."""

    @property
    def id(self) -> str:
        """The id under which the outcome is recorded."""
        return f"{self.number}-{self.token}"


class BatchCounts(NamedTuple):
    """Counts of the participants in one phase of an arm, until its release."""

    arm: int
    phase: int
    open: int
    recorded: int
