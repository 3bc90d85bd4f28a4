"""Where trials live: append-only public events with a hash chain, and behind the wall the sealed outcomes.

SQLite by default, PostgreSQL when one machine is not enough. One `Store` is one database; every change is made in a
`Session` that holds the trial's lock, in one transaction that is on disk before it returns. No error of this module
repeats a value that was to be written: parameters are hidden, and what the driver said is not passed on.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError, MissingExtraError, StoreError

try:
    import sqlalchemy as sa
    from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text
except ImportError:
    raise MissingExtraError('live trials need SQLAlchemy: pip install "discreet[live]"') from None

SCHEMA = 1
"""Version of the tables. Raise it with a step in MIGRATIONS, and keep a file of the version before as a test asset."""
MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""The statements that bring a database of this version to the next one."""
BUSY_SECONDS = 30
SCRUB_MILLISECONDS = 200
OPEN, TOLD, MISSED, EXPIRED = 0, 1, 2, 3
"""States of an assignment. They stay behind the wall: that an outcome is missing may be the outcome."""

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
)
_waiting = sa.and_(assignments.c.state == OPEN, assignments.c.deadline.is_not(None))
Index(
    "discreet_deadlines",
    assignments.c.trial,
    assignments.c.deadline,
    sqlite_where=_waiting,
    postgresql_where=_waiting,
)
batches = Table(
    "discreet_batches",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("open", Integer, nullable=False),
    Column("told", Integer, nullable=False),
    Column("vacant", Integer, nullable=False),
)
sealed = Table(
    "discreet_sealed",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("phase", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("units", BigInteger, nullable=False),
)
people = Table(
    "discreet_people",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("hash", LargeBinary(32), primary_key=True),
)
keys = Table(
    "discreet_keys",
    metadata,
    Column("trial", Integer, primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
)


class Row(NamedTuple):
    """A trial as it is now."""

    trial: int
    protocol: str
    seq: int
    head: str
    people: int
    state: str


class Event(NamedTuple):
    """One line of the public record."""

    seq: int
    kind: str
    body: dict[str, Any]
    hash: str


class Assigned(NamedTuple):
    """A row of the assignments."""

    number: int
    token: str
    arm: int
    phase: int
    state: int


class Batched(NamedTuple):
    """Counts of the people in one arm's phase."""

    arm: int
    phase: int
    open: int
    told: int
    vacant: int


def canonical(value: Any) -> str:
    """JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def link(previous: str, seq: int, kind: str, body: str) -> str:
    """The hash of an event: of all before it, its place, and what it says."""
    return hashlib.sha256(f"{previous}\n{seq}\n{kind}\n{body}".encode()).hexdigest()


class Store:
    """A database of trials; a file is made only if `new`. A forked child connects anew by itself."""

    def __init__(self, url: str, new: bool = False) -> None:
        self.url = _read_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if self.sqlite and not new and not os.path.exists(self.place):
            raise InvalidInputError(f"there is no file {self.place}: check the url, or create a trial there first")
        self._connect()
        with self._plainly():
            self._prepare()

    def __repr__(self) -> str:
        """The address without its password."""
        return f"Store({self.url.render_as_string(hide_password=True)!r})"

    @property
    def place(self) -> str:
        """What to call the database in a message."""
        return str(self.url.database) if self.sqlite else self.url.render_as_string(hide_password=True)

    @contextmanager
    def session(self, name: str) -> Iterator["Session"]:
        """One transaction with the trial's lock: all of it happens, and is on disk, or nothing of it."""
        with self._plainly(), self._engine().begin() as connection:
            yield Session(connection, name, lock=not self.sqlite)

    @contextmanager
    def reading(self, name: str) -> Iterator["Session"]:
        """One consistent look at a trial."""
        options = {} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._plainly(), self._engine().connect() as connection:
            yield Session(connection.execution_options(discreet_reading=True, **options), name, lock=False)

    def names(self) -> list[str]:
        """The trials in this database."""
        with self._plainly(), self._engine().connect() as connection:
            found = connection.execution_options(discreet_reading=True).execute(sa.select(trials.c.name))
            return sorted(found.scalars())

    def scrub(self) -> bool:
        """Make what was deleted unreadable, after its transaction; false if someone is still reading it.

        SQLite: deleted rows are overwritten with zeros (secure_delete), but old pages live on in the write-ahead log
        until it is emptied. PostgreSQL: dead rows stay in the table's file until it is vacuumed.
        """
        with self._plainly(), self._engine().connect() as connection:
            if self.sqlite:
                raw: Any = connection.connection.driver_connection
                raw.execute(f"PRAGMA busy_timeout = {SCRUB_MILLISECONDS}")
                busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                raw.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
                return bool(busy == 0)
            outside = connection.execution_options(isolation_level="AUTOCOMMIT")
            outside.execute(sa.text(f"VACUUM {sealed.name}"))
            return True

    # --- connections ------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._pid = os.getpid()
        options: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS}} if self.sqlite else {}
        self._made = sa.create_engine(self.url, hide_parameters=True, **options)
        if self.sqlite:
            sa.event.listen(self._made, "connect", _set_up_sqlite)
            sa.event.listen(self._made, "begin", _begin_sqlite)

    def _engine(self) -> sa.Engine:
        if self._pid != os.getpid():
            self._made.dispose(close=False)
            self._connect()
        return self._made

    def _prepare(self) -> None:
        """Make the tables, or bring older ones up to date; one process at a time."""
        with self._engine().begin() as connection:
            if not self.sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('discreet_schema'))"))
            metadata.create_all(connection)
            version = connection.execute(sa.select(sa.func.max(about.c.version))).scalar()
            if version is None:
                connection.execute(about.insert().values(version=SCHEMA))
            elif version > SCHEMA:
                raise StoreError(f"{self.place} was made by a newer discreet: upgrade with pip install -U discreet")
            for step in range(version or SCHEMA, SCHEMA):
                for statement in MIGRATIONS[step]:
                    connection.execute(sa.text(statement))
                connection.execute(about.insert().values(version=step + 1))

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Errors of the database as ours, without what was to be written."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise StoreError(f"{self.place}: {_reason(str(error.orig))}; nothing was changed") from None
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"{self.place}: {type(error).__name__}; nothing was changed") from None


class Session:
    """One transaction on one trial. Every method is a statement or two; the meaning is in trial.py."""

    def __init__(self, connection: sa.Connection, name: str, lock: bool) -> None:
        self.connection, self.name, self._lock = connection, name, lock
        self.row: Row | None = None

    def look(self) -> Row | None:
        """The trial now, locked until the end of the transaction; None if there is none of this name."""
        columns = (trials.c[name] for name in Row._fields)
        query = sa.select(*columns).where(trials.c.name == self.name)
        found = self.connection.execute(query.with_for_update() if self._lock else query).one_or_none()
        self.row = None if found is None else Row(*found)
        return self.row

    def look_again(self) -> Row:
        """The trial as of `look` and what was changed since."""
        return self._known()

    def create(self, protocol: str, head: str, key: bytes, state: str) -> bool:
        """Enter a new trial; false if another process was quicker."""
        row = {"name": self.name, "protocol": protocol, "seq": 0, "head": head, "people": 0, "state": state}
        try:
            with self.connection.begin_nested():
                made = self.connection.execute(trials.insert().values(row).returning(trials.c.trial)).scalar_one()
        except sa.exc.IntegrityError:
            return False
        self.connection.execute(keys.insert().values(trial=made, key=key))
        return True

    def append(self, kind: str, body: dict[str, Any]) -> None:
        """Write a public event and move the head of the chain; `save` makes it count."""
        row, text = self._known(), canonical(body)
        seq, head = row.seq + 1, link(row.head, row.seq + 1, kind, text)
        self.connection.execute(events.insert().values(trial=row.trial, seq=seq, kind=kind, body=text, hash=head))
        self.row = row._replace(seq=seq, head=head)

    def save(self, state: str | None = None, people: int | None = None) -> None:
        """Write the head of the chain, and what else of the trial's row has changed."""
        row = self._known()
        changes: dict[str, Any] = {"seq": row.seq, "head": row.head}
        if state is not None:
            changes["state"] = state
        if people is not None:
            changes["people"] = people
            self.row = row._replace(people=people)
        self.connection.execute(trials.update().where(trials.c.trial == row.trial).values(changes))

    def events(self, after: int = 0) -> Iterator[Event]:
        """The public record, in order."""
        columns = (events.c.seq, events.c.kind, events.c.body, events.c.hash)
        query = sa.select(*columns).where(events.c.trial == self._known().trial, events.c.seq > after)
        for seq, kind, body, digest in self.connection.execute(query.order_by(events.c.seq)):
            yield Event(seq, kind, json.loads(body), digest)

    def hash_at(self, seq: int) -> str | None:
        """The hash of one event."""
        query = sa.select(events.c.hash).where(events.c.trial == self._known().trial, events.c.seq == seq)
        return self.connection.execute(query).scalar_one_or_none()

    # --- people -----------------------------------------------------------------------------------

    def assign(self, rows: Sequence[Assigned], deadline: float | None) -> None:
        """Enter assignments."""
        trial = self._known().trial
        made = [{**row._asdict(), "trial": trial, "deadline": deadline} for row in rows]
        self.connection.execute(assignments.insert(), made)

    def assigned(self, numbers: Sequence[int]) -> dict[int, Assigned]:
        """Assignments by their numbers."""
        columns = [assignments.c[name] for name in Assigned._fields]
        found: dict[int, Assigned] = {}
        for start in range(0, len(numbers), 500):
            some = numbers[start : start + 500]
            here = assignments.c.trial == self._known().trial
            which = assignments.c.number == some[0] if len(some) == 1 else assignments.c.number.in_(some)
            found |= {row[0]: Assigned(*row) for row in self.connection.execute(sa.select(*columns).where(here, which))}
        return found

    def late(self, now: float) -> list[Assigned]:
        """Open assignments past their deadline."""
        columns = [assignments.c[name] for name in Assigned._fields]
        here = sa.and_(assignments.c.trial == self._known().trial, _waiting, assignments.c.deadline < now)
        return [Assigned(*row) for row in self.connection.execute(sa.select(*columns).where(here))]

    def mark(self, rows: Sequence[Assigned], state: int) -> None:
        """Give assignments a state."""
        here = assignments.c.trial == self._known().trial
        statement = assignments.update().where(here, assignments.c.number == sa.bindparam("which")).values(state=state)
        self.connection.execute(statement, [{"which": row.number} for row in rows])

    def add(self, changes: dict[tuple[int, int], tuple[int, int, int]]) -> None:
        """Add (open, told, vacant) to the counts of batches, given by (arm, phase)."""
        trial = self._known().trial
        for (arm, phase), (more_open, more_told, more_vacant) in sorted(changes.items()):
            here = (batches.c.trial == trial, batches.c.arm == arm, batches.c.phase == phase)
            values = {
                "open": batches.c.open + more_open,
                "told": batches.c.told + more_told,
                "vacant": batches.c.vacant + more_vacant,
            }
            if self.connection.execute(batches.update().where(*here).values(values)).rowcount == 0:
                made = {"open": more_open, "told": more_told, "vacant": more_vacant}
                self.connection.execute(batches.insert().values(trial=trial, arm=arm, phase=phase, **made))

    def batches(self) -> dict[tuple[int, int], Batched]:
        """The counts of all batches that are not released, by (arm, phase)."""
        columns = [batches.c[name] for name in Batched._fields]
        here = batches.c.trial == self._known().trial
        return {(row[0], row[1]): Batched(*row) for row in self.connection.execute(sa.select(*columns).where(here))}

    def close_batch(self, arm: int, phase: int) -> None:
        """Forget the counts of a released batch."""
        here = (batches.c.trial == self._known().trial, batches.c.arm == arm, batches.c.phase == phase)
        self.connection.execute(batches.delete().where(*here))

    def key(self) -> bytes:
        """The trial's secret, with which people's identifiers are hashed."""
        return bytes(
            self.connection.execute(sa.select(keys.c.key).where(keys.c.trial == self._known().trial)).scalar_one()
        )

    def enter_people(self, hashes: Sequence[bytes]) -> list[int]:
        """Note who takes part; the places in the list of those who did before (then nothing is to be kept)."""
        trial = self._known().trial
        found = sa.select(people.c.hash).where(people.c.trial == trial, people.c.hash.in_(hashes))
        known = {bytes(value) for value in self.connection.execute(found).scalars()}
        again = [place for place, value in enumerate(hashes) if value in known or value in hashes[:place]]
        if not again:
            self.connection.execute(people.insert(), [{"trial": trial, "hash": value} for value in hashes])
        return again

    # --- behind the wall --------------------------------------------------------------------------

    def seal(self, outcomes: Sequence[tuple[Assigned, int]]) -> None:
        """Put outcomes, in units, behind the wall."""
        trial = self._known().trial
        rows = [
            {"trial": trial, "arm": row.arm, "phase": row.phase, "number": row.number, "units": units}
            for row, units in outcomes
        ]
        self.connection.execute(sealed.insert(), rows)

    def reseal(self, row: Assigned, units: int) -> None:
        """Correct an outcome."""
        self.connection.execute(sealed.update().where(*self._slot(row)).values(units=units))

    def unseal_sum(self, arm: int, phase: int) -> tuple[int, int]:
        """(sum in units, outcomes) of a batch: for the mechanism that adds the noise, and nobody else."""
        here = (sealed.c.trial == self._known().trial, sealed.c.arm == arm, sealed.c.phase == phase)
        total, count = self.connection.execute(
            sa.select(sa.func.sum(sealed.c.units), sa.func.count()).where(*here)
        ).one()
        return int(total or 0), int(count)

    def erase(self, arm: int, phase: int) -> None:
        """Delete the outcomes of a batch; `Store.scrub` makes them unreadable after the transaction."""
        here = (sealed.c.trial == self._known().trial, sealed.c.arm == arm, sealed.c.phase == phase)
        self.connection.execute(sealed.delete().where(*here))

    def answers(self, arm: int, after: int) -> list[tuple[int, int, int]]:
        """(place, number, units) of an arm's answers that follow place `after` without a gap."""
        here = (sealed.c.trial == self._known().trial, sealed.c.arm == arm, sealed.c.phase > after)
        query = sa.select(sealed.c.phase, sealed.c.number, sealed.c.units).where(*here).order_by(sealed.c.phase)
        found: list[tuple[int, int, int]] = []
        for place, number, units in self.connection.execute(query):
            if place != after + len(found) + 1:
                break
            found.append((place, number, units))
        return found

    def erase_answers(self, arm: int, through: int) -> None:
        """Delete an arm's answers up to a place."""
        here = (sealed.c.trial == self._known().trial, sealed.c.arm == arm, sealed.c.phase <= through)
        self.connection.execute(sealed.delete().where(*here))

    # --- checks -----------------------------------------------------------------------------------

    def arms_assigned(self) -> Iterator[int]:
        """The arm of each person, in order."""
        query = sa.select(assignments.c.arm).where(assignments.c.trial == self._known().trial)
        yield from self.connection.execute(query.order_by(assignments.c.number)).scalars()

    def counts_agree(self) -> bool:
        """Whether each open batch counts as many open assignments and told outcomes as there are.

        Batches of phase 0 are those of answers taken in turn, which leave no outcomes behind.
        """
        trial = self._known().trial
        here = (assignments.c.trial == trial, assignments.c.state == OPEN)
        waiting = self.connection.execute(sa.select(sa.func.count()).where(*here)).scalar_one()
        known = self.batches()
        for (arm, phase), batch in known.items():
            if phase and self.unseal_sum(arm, phase)[1] != batch.told:
                return False
        return bool(waiting == sum(batch.open for batch in known.values()))

    def _slot(self, row: Assigned) -> tuple[Any, ...]:
        here = (sealed.c.trial == self._known().trial, sealed.c.arm == row.arm, sealed.c.phase == row.phase)
        return (*here, sealed.c.number == row.number)

    def _known(self) -> Row:
        if self.row is None:
            raise StoreError(f"there is no trial {self.name!r} here")
        return self.row


def _read_url(url: str) -> sa.URL:
    """An address we can work with, or what is wrong with it; never with its password."""
    try:
        read = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise InvalidInputError("url must look like sqlite:///trial.db or postgresql://user@host/database") from None
    backend = read.get_backend_name()
    if backend == "sqlite":
        if not read.database or read.database == ":memory:":
            raise InvalidInputError("a trial must outlive this process: give a file, such as sqlite:///trial.db")
        return read
    if backend == "postgresql":
        return read.set(drivername="postgresql+psycopg")
    raise InvalidInputError(f"trials are kept in sqlite or postgresql; there is no store for {backend}")


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    """Before everything else wait for others; then durable, and deleted means overwritten."""
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Writers queue up at the start of a transaction: taking the lock later fails under load, WAL or not."""
    reading = connection.get_execution_options().get("discreet_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


REASONS = {
    "locked": f"busy for more than {BUSY_SECONDS} s: try again",
    "readonly": "it is read-only: check the permissions of the file and its folder",
    "read-only": "it is read-only: check the permissions of the file and its folder",
    "unable to open": "it cannot be opened: check that the folder exists and may be written to",
    "full": "the disk is full: make room and try again",
    "no space": "the disk is full: make room and try again",
    "disk i/o": "the disk cannot be written: check it and try again",
    "not a database": "it is no database of trials: give another file",
    "malformed": "it is damaged: restore a backup, and open it with the head of the chain you know",
    "connection": "the connection to the server failed: check the server and try again",
    "terminating": "the server ended the connection: try again",
    "could not translate": "the server is unknown: check its name",
    "authentication": "the server refused the user: check name and password",
    "permission": "the user may not do this there: check its rights",
}


def _reason(said: str) -> str:
    """What the database said, in words of ours that say what to do; its own words may hold data."""
    for sign, reason in REASONS.items():
        if sign in said.lower():
            return reason
    return "the database refused"
