"""Where trials live: append-only public events with a hash chain, and behind the wall the sealed outcomes.

SQLite by default, PostgreSQL when one machine is not enough. One `Store` is one database; every change is made in a
`Session` that holds the trial's lock, in one transaction that is on disk before it returns. No error and no log line
of this module repeats a value that was to be written: parameters are hidden, and what the driver said is not passed on.
"""

import contextlib
import hashlib
import logging
import os
import signal
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from discreet.errors import InvalidInputError, MissingExtraError, StoreError
from discreet.trials.store import schema
from discreet.trials.store.schema import (
    OPEN,
    Assigned,
    Batched,
    Event,
    Row,
    about,
    assignments,
    batches,
    events,
    keys,
    metadata,
    people,
    sealed,
    trials,
    waiting,
)

try:
    import sqlalchemy as sa
except ImportError:
    raise MissingExtraError('live trials need SQLAlchemy: pip install "discreet[live]"') from None

BUSY_SECONDS = 30.0
"""How long to wait for others who write."""
SCRUB_SECONDS = 0.2
AT_ONCE = 10_000
"""Values in one statement: databases have a limit."""
LOGGING_NAME = "discreet"
AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT"}


def link(previous: str, seq: int, kind: str, body: str) -> str:
    """The hash of an event: of all before it, its place, and what it says."""
    return hashlib.sha256(f"{previous}\n{seq}\n{kind}\n{body}".encode()).hexdigest()


class Store:
    """A database of trials, for one thread at a time: whoever uses it holds `lock`.

    No connection outlives a fork: SQLite's locks belong to the process, so that a child would write unprotected, and
    what it wrote could vanish when the parent closes the file. See `_before_fork`.
    """

    def __init__(self, url: str, must_exist: bool = False) -> None:
        self.url = _read_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if must_exist and self.sqlite and not Path(self.place).exists():
            raise InvalidInputError(f"there is no file {self.place}: check the name, or start a trial with create")
        if self.sqlite and not Path(self.place).exists():
            _make_private(self.place)
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self.engine = self._make_engine()
        weakref.finalize(self, self.engine.dispose)
        _stores.add(self)
        with self._plainly():
            self._prepare(not must_exist)

    def __repr__(self) -> str:
        """The address without its password."""
        return f"Store({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address without a password and without parameters, among which there may be one."""
        return self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def place(self) -> str:
        """What to call the database in a message."""
        return str(self.url.database) if self.sqlite else self.shown

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self.engine.dispose()

    @contextmanager
    def session(self, name: str) -> Iterator["Session"]:
        """One transaction with the trial's lock: all of it happens, and is on disk, or nothing of it."""
        with self._connection() as connection:
            yield Session(connection, name, lock=not self.sqlite)
            try:
                connection.commit()
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                self._fail("the connection broke at the last moment, and it is not known whether this was done: tell "
                           "again what was told (that is safe), look at the status for what was asked")  # fmt: skip

    @contextmanager
    def reading(self, name: str) -> Iterator["Session"]:
        """One consistent look at a trial."""
        isolation = {} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._connection(discreet_begin="BEGIN", **isolation) as connection:
            yield Session(connection, name, lock=False)

    def names(self) -> list[str]:
        """The trials in this database."""
        with self._connection(discreet_begin="BEGIN") as connection:
            return sorted(connection.execute(sa.select(trials.c.name)).scalars())

    def scrub(self) -> bool:
        """Make what was erased unreadable, after its transaction; false if that has to be tried again.

        SQLite: outcomes are overwritten where they are, but old pages live on in the write-ahead log until it is
        emptied, which readers can delay. PostgreSQL: dead rows stay in the table until it is vacuumed.
        """
        try:
            with self._connection(**({"discreet_begin": ""} if self.sqlite else AUTOCOMMIT)) as connection:
                if not self.sqlite:
                    connection.execute(sa.text(f"VACUUM {sealed.name}"))
                    return True
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {SCRUB_SECONDS * 1000:.0f}")
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar_one()
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
                return bool(busy == 0)
        except StoreError:
            self.close()
            return False

    # --- connections ------------------------------------------------------------------------------

    def _make_engine(self) -> sa.Engine:
        """An engine that shows no values: neither parameters (hidden) nor, at any level of logging, rows."""
        logging.getLogger(f"sqlalchemy.engine.Engine.{LOGGING_NAME}").setLevel(logging.WARNING)
        options: dict[str, Any] = {"hide_parameters": True, "logging_name": LOGGING_NAME}
        if not self.sqlite:
            options |= {"isolation_level": "READ COMMITTED", "pool_pre_ping": True}
        engine = sa.create_engine(self.url, **options)
        sa.event.listen(engine, "connect", _set_up_sqlite if self.sqlite else _set_up_postgresql)
        sa.event.listen(engine, "handle_error", _let_go)
        if self.sqlite:
            sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    @contextmanager
    def _connection(self, **options: Any) -> Iterator[sa.Connection]:
        """A connection with errors put plainly; what was not committed is rolled back."""
        with _Later(), self.lock, self._plainly():
            if self.pid != os.getpid():
                self._fail("this process was forked without Python's knowledge: open the trial in each process")
            with self.engine.connect() as connection:
                yield connection.execution_options(**options)

    def _prepare(self, new: bool) -> None:
        """Make the tables if there may be new ones, or bring older ones up to date; one process at a time."""
        with self._connection(discreet_begin="BEGIN") as connection:
            there = sa.inspect(connection).has_table(about.name)
            if there and _version(connection) == schema.SCHEMA:
                return
        if not there and not new:
            raise InvalidInputError(f"there are no trials in {self.place}: check the url, or create one there first")
        if self.sqlite:
            with self._connection(discreet_begin="") as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        with self._connection() as connection:
            if not self.sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('discreet_schema'))"))
            metadata.create_all(connection)
            version = _version(connection)
            if version is None:
                connection.execute(about.insert().values(version=schema.SCHEMA))
            elif version > schema.SCHEMA:
                raise StoreError(f"{self.place} was made by a newer discreet: upgrade with pip install -U discreet")
            for step in range(version or schema.SCHEMA, schema.SCHEMA):
                for statement in schema.MIGRATIONS[step]:
                    connection.execute(sa.text(statement))
                connection.execute(about.insert().values(version=step + 1))
            connection.commit()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Errors of the database as ours."""
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            self._fail(f"{_reason(error)}; nothing was changed")

    def _fail(self, reason: str) -> NoReturn:
        """Raise, without the driver's own error as context: that one holds what was to be written."""
        failure = StoreError(f"{self.place}: {reason}")
        try:
            raise failure
        finally:
            failure.__context__ = None


class _Later:
    """Ctrl-C comes when the block is left: an interrupt in the middle of it could leave a lock to nobody.

    Python runs the handlers of signals in its main thread only. Not a generator, which an interrupt can leave halfway.
    """

    def __enter__(self) -> None:
        """Take note of interrupts from here on."""
        self.noted: list[Any] = []
        self.before: Any = None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.getsignal(signal.SIGINT)
            if callable(self.before):
                signal.signal(signal.SIGINT, lambda *event: self.noted.append(event))

    def __exit__(self, *_: object) -> None:
        """Let one happen now, if there was any."""
        if callable(self.before):
            signal.signal(signal.SIGINT, self.before)
            if self.noted:
                self.before(*self.noted[0])


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_held: list[Store] = []


def _before_fork() -> None:
    """Let the transactions of other threads end, and close all connections."""
    for store in list(_stores):
        store.lock.acquire()
        _held.append(store)
        store.close()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    while _held:
        store = _held.pop()
        store.lock, store.pid = threading.RLock(), os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _at(table: sa.Table, *columns: str) -> sa.ColumnElement[bool]:
    """That these columns of a trial's rows have the values given as `at_<column>`."""
    return sa.and_(*(table.c[name] == sa.bindparam(f"at_{name}") for name in ("trial", *columns)))


def _columns(table: sa.Table, row: type[NamedTuple]) -> list[sa.Column[Any]]:
    return [table.c[name] for name in row._fields]


# Statements are made once: making one takes longer than running it.
_look = sa.select(*_columns(trials, Row)).where(trials.c.name == sa.bindparam("name"))
_look_locked = _look.with_for_update()
_save = trials.update().where(_at(trials))
_events = sa.select(*_columns(events, Event)).where(_at(events)).order_by(events.c.seq)
_hash_at = sa.select(events.c.hash).where(_at(events, "seq"))
_assigned = sa.select(*_columns(assignments, Assigned)).where(_at(assignments))
_assigned_one = _assigned.where(assignments.c.number == sa.bindparam("number"))
_assigned_many = _assigned.where(assignments.c.number.in_(sa.bindparam("numbers", expanding=True)))
_late = _assigned.where(waiting, assignments.c.deadline < sa.bindparam("now"))
_mark = assignments.update().where(_at(assignments), assignments.c.number.in_(sa.bindparam("numbers", expanding=True)))
_batches = sa.select(*_columns(batches, Batched)).where(_at(batches))
_count_batch = batches.update().where(_at(batches, "arm", "phase"))
_close_batch = batches.delete().where(_at(batches, "arm", "phase"))
_key = sa.select(keys.c.key).where(_at(keys))
_people = sa.select(people.c.hash).where(_at(people), people.c.hash.in_(sa.bindparam("hashes", expanding=True)))
_reseal = sealed.update().where(_at(sealed, "arm", "phase", "number"), sealed.c.units.is_not(None))
_stored = sa.type_coerce(sealed.c.units, sa.BigInteger)
_unseal_sum = sa.select(sa.func.sum(_stored - schema.OFFSET), sa.func.count()).where(_at(sealed, "arm", "phase"))
_erase = sealed.update().where(_at(sealed, "arm", "phase")).values(units=schema.ERASED)
_answers = sa.select(sealed.c.phase, sealed.c.number, sealed.c.units).where(
    _at(sealed, "arm"), sealed.c.phase > sa.bindparam("after")
)
_erase_answers = (
    sealed.update()
    .where(_at(sealed, "arm"), sealed.c.phase > sa.bindparam("after"), sealed.c.phase <= sa.bindparam("through"))
    .values(units=schema.ERASED)
)
_places = sa.select(assignments.c.arm, assignments.c.phase).where(_at(assignments)).order_by(assignments.c.number)
_open = sa.select(sa.func.count()).where(_at(assignments), assignments.c.state == OPEN)


class Session:
    """One transaction on one trial. Every method is a statement or two; the meaning is in trial.py."""

    def __init__(self, connection: sa.Connection, name: str, lock: bool) -> None:
        self.connection, self.name, self._lock = connection, name, lock
        self.row: Row | None = None
        self._counts: dict[tuple[int, int], Batched] | None = None

    def look(self) -> Row | None:
        """The trial now, locked until the end of the transaction; None if there is none of this name."""
        found = self.connection.execute(_look_locked if self._lock else _look, {"name": self.name}).one_or_none()
        self.row = None if found is None else Row(*found)
        return self.row

    def look_again(self) -> Row:
        """The trial as of `look` and what was changed since."""
        if self.row is None:
            raise StoreError(f"there is no trial {self.name!r} here")
        return self.row

    def create(self, protocol: str, head: str, key: bytes, state: str) -> bool:
        """Enter a new trial; false if another process was quicker."""
        row = {"name": self.name, "protocol": protocol, "seq": 0, "head": head, "people": 0, "state": state}
        try:
            with self.connection.begin_nested():
                self.connection.execute(trials.insert(), row)
        except sa.exc.IntegrityError:
            return False
        self.look()
        self._insert(keys, [{"key": key}])
        return True

    def append(self, kind: str, body: dict[str, Any]) -> None:
        """Write a public event and move the head of the chain; `save` makes it count."""
        row, text = self.look_again(), schema.canonical(body)
        seq, head = row.seq + 1, link(row.head, row.seq + 1, kind, text)
        self._insert(events, [{"seq": seq, "kind": kind, "body": text, "hash": head}])
        self.row = row._replace(seq=seq, head=head)

    def save(self, state: str) -> None:
        """Write the trial's row: the head of the chain, how many people there are, the state that follows."""
        row = self.row = self.look_again()._replace(state=state)
        self._run(_save, seq=row.seq, head=row.head, people=row.people, state=state)

    def events(self) -> Iterator[Event]:
        """The public record, in order."""
        return (Event(*row) for row in self._run(_events))

    def hash_at(self, seq: int) -> str | None:
        """The hash of one event."""
        found: str | None = self._run(_hash_at, at_seq=seq).scalar_one_or_none()
        return found

    # --- people -----------------------------------------------------------------------------------

    def assign(self, rows: Sequence[Assigned], deadline: float | None) -> None:
        """Enter assignments."""
        self._insert(assignments, [{**row._asdict(), "deadline": deadline} for row in rows])
        self.row = self.look_again()._replace(people=self.look_again().people + len(rows))

    def assigned(self, numbers: Sequence[int]) -> dict[int, Assigned]:
        """Assignments by their numbers."""
        if len(numbers) == 1:
            return {row[0]: Assigned(*row) for row in self._run(_assigned_one, number=numbers[0])}
        found: dict[int, Assigned] = {}
        for some in _pieces(numbers):
            found |= {row[0]: Assigned(*row) for row in self._run(_assigned_many, numbers=some)}
        return found

    def late(self, now: float) -> list[Assigned]:
        """Open assignments past their deadline."""
        return [Assigned(*row) for row in self._run(_late, now=now)]

    def mark(self, rows: Sequence[Assigned], state: int) -> None:
        """Give assignments a state."""
        for some in _pieces([row.number for row in rows]):
            self._run(_mark, numbers=some, state=state)

    def batches(self) -> dict[tuple[int, int], Batched]:
        """The counts of all batches that are not released, by (arm, phase)."""
        if self._counts is None:
            self._counts = {(row[0], row[1]): Batched(*row) for row in self._run(_batches)}
        return self._counts

    def add(self, changes: dict[tuple[int, int], tuple[int, int, int]]) -> None:
        """Add (open, told, vacant) to the counts of batches, given by (arm, phase)."""
        known, old, new = self.batches(), [], []
        for (arm, phase), more in sorted(changes.items()):
            before = known.get((arm, phase), Batched(arm, phase, 0, 0, 0))
            after = Batched(arm, phase, *(now + plus for now, plus in zip(before[2:], more, strict=True)))
            counts = {"open": after.open, "told": after.told, "vacant": after.vacant}
            if (arm, phase) in known:
                old.append({"at_arm": arm, "at_phase": phase, **counts})
            else:
                new.append({"arm": arm, "phase": phase, **counts})
            known[arm, phase] = after
        self._run_many(_count_batch, old)
        self._insert(batches, new)

    def close_batch(self, arm: int, phase: int) -> None:
        """Forget the counts of a released batch."""
        self._run(_close_batch, at_arm=arm, at_phase=phase)
        self.batches().pop((arm, phase), None)

    def key(self) -> bytes:
        """The trial's secret, with which people's identifiers are hashed."""
        return bytes(self._run(_key).scalar_one())

    def known_people(self, hashes: Sequence[bytes]) -> list[int]:
        """The places in the list of those who took part before, or stand in it before."""
        known: set[bytes] = set()
        for some in _pieces(hashes):
            known |= {bytes(value) for value in self._run(_people, hashes=some).scalars()}
        again = []
        for place, value in enumerate(hashes):
            if value in known:
                again.append(place)
            known.add(value)
        return again

    def enter_people(self, hashes: Sequence[bytes]) -> None:
        """Note who takes part."""
        self._insert(people, [{"hash": value} for value in hashes])

    # --- behind the wall --------------------------------------------------------------------------

    def seal(self, outcomes: Sequence[tuple[Assigned, int | None]]) -> None:
        """Put outcomes, in units, behind the wall; None is an answer that will not come."""
        rows = [(row.arm, row.phase, row.number, units) for row, units in outcomes]
        names = ("arm", "phase", "number", "units")
        self._insert(sealed, [dict(zip(names, row, strict=True)) for row in rows])

    def reseal(self, row: Assigned, units: int) -> None:
        """Correct an outcome, if there is one."""
        self._run(_reseal, at_arm=row.arm, at_phase=row.phase, at_number=row.number, units=units)

    def unseal_sum(self, arm: int, phase: int) -> tuple[int, int]:
        """(sum in units, outcomes) of a batch: for the mechanism that adds the noise, and nobody else."""
        total, count = self._run(_unseal_sum, at_arm=arm, at_phase=phase).one()
        return int(total or 0), int(count)

    def erase(self, arm: int, phase: int) -> None:
        """Overwrite the outcomes of a batch; `Store.scrub` makes old copies unreadable after the transaction."""
        self._run(_erase, at_arm=arm, at_phase=phase)

    def answers(self, arm: int, after: int) -> list[tuple[int, int, int | None]]:
        """(place, number, units) of an arm's answers that follow place `after` without a gap."""
        found: list[tuple[int, int, int | None]] = []
        for place, number, units in self._run(_answers.order_by(sealed.c.phase), at_arm=arm, after=after):
            if place != after + len(found) + 1:
                break
            found.append((place, number, units))
        return found

    def erase_answers(self, arm: int, after: int, through: int) -> None:
        """Overwrite an arm's answers between two places."""
        self._run(_erase_answers, at_arm=arm, after=after, through=through)

    # --- checks -----------------------------------------------------------------------------------

    def places_assigned(self) -> Iterator[tuple[int, int]]:
        """(arm, phase) of each person, in order."""
        yield from ((arm, phase) for arm, phase in self._run(_places))

    def counts_agree(self) -> bool:
        """Whether each open batch counts as many open assignments and told outcomes as there are.

        Batches of phase 0 are those of answers taken in turn, which leave no outcomes behind.
        """
        known = self.batches()
        for (arm, phase), batch in known.items():
            if phase and self.unseal_sum(arm, phase)[1] != batch.told:
                return False
        return bool(self._run(_open).scalar_one() == sum(batch.open for batch in known.values()))

    # --- statements -------------------------------------------------------------------------------

    def _run(self, statement: sa.Executable, **values: Any) -> Any:
        return self.connection.execute(statement, {"at_trial": self.look_again().trial, **values})

    def _run_many(self, statement: sa.Executable, values: list[dict[str, Any]]) -> None:
        trial = self.look_again().trial
        if values:
            self.connection.execute(statement, [{"at_trial": trial, **row} for row in values])

    def _insert(self, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        trial = self.look_again().trial
        if rows:
            self.connection.execute(table.insert(), [{"trial": trial, **row} for row in rows])


def _pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))


def _make_private(path: str) -> None:
    """An empty file that only its owner may read: outcomes of open batches will be in it."""
    with contextlib.suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _read_url(url: str) -> sa.URL:
    """An address we can work with, or what is wrong with it; never with its password."""
    try:
        read = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise InvalidInputError("url must look like sqlite:///trial.db or postgresql://user@host/database") from None
    backend = read.get_backend_name()
    if backend == "sqlite":
        if read.drivername not in ("sqlite", "sqlite+pysqlite") or read.query or str(read.database).startswith("file:"):
            raise InvalidInputError("write the url as sqlite:///trial.db, without anything else")
        if not read.database or ":memory:" in read.database or read.query.get("mode") == "memory":
            raise InvalidInputError("a trial must outlive this process: give a file, such as sqlite:///trial.db")
        return read
    if backend == "postgresql":
        return read.set(drivername="postgresql+psycopg")
    raise InvalidInputError(f"trials are kept in sqlite or postgresql; there is no store for {backend}")


def _version(connection: sa.Connection) -> int | None:
    found: int | None = connection.execute(sa.select(sa.func.max(about.c.version))).scalar()
    return found


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    """Before everything else wait for others; then durable, and deleted means overwritten."""
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000:.0f}",
        "synchronous = FULL",
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _let_go(context: sa.engine.ExceptionContext) -> None:
    """Roll back after Ctrl-C like after any error: a connection thrown away with a cursor open keeps SQLite's lock."""
    if not isinstance(context.original_exception, Exception):
        context.is_disconnect = False


def _begin_sqlite(connection: sa.Connection) -> None:
    """Writers queue up at the start of a transaction: taking the lock later fails under load, WAL or not."""
    begin = connection.get_execution_options().get("discreet_begin", "BEGIN IMMEDIATE")
    if begin:
        connection.exec_driver_sql(begin)


def _set_up_postgresql(connection: Any, _record: Any) -> None:
    """Wait for others, but not for ever; a commit is on disk when it returns, whatever the server's default is."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {BUSY_SECONDS * 1000:.0f}")
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


REASONS = {
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): "somebody else keeps it busy: try again",
    ("SQLITE_READONLY", "25006"): "it is read-only: check the permissions of the file and its folder",
    ("SQLITE_CANTOPEN", "SQLITE_PERM"): "it cannot be opened: check that the folder exists and may be written to",
    ("SQLITE_FULL", "53100"): "the disk is full: make room and try again",
    ("SQLITE_IOERR", "58030"): "the disk cannot be written: check it (its quota, too) and try again",
    ("SQLITE_NOTADB",): "it is no database of trials: give another file",
    ("SQLITE_CORRUPT", "XX001", "XX002"): "it is damaged: restore a backup, and open it with the head that you know",
    ("28", "42501"): "the server refused the user: check its name, password and rights",
    ("40",): "another transaction came in between: try again",
    ("53",): "the server is out of connections or memory: try again later",
    ("57P", "08"): "the server ended the connection: check that it runs, and try again",
}
"""What the codes of SQLite and PostgreSQL that begin so mean, and what to do."""


def _reason(error: sa.exc.SQLAlchemyError) -> str:
    """What is wrong, in words of ours: the database's own may be in any language, and may hold data."""
    said = getattr(error, "orig", None)
    code = getattr(said, "sqlite_errorname", None) or getattr(said, "sqlstate", None)
    if code:
        known = (reason for signs, reason in REASONS.items() if code.startswith(signs))
        return next(known, f"the database refused ({code})")
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
        return "the server cannot be reached, or let nobody in: check that it runs, the address, user and password"
    return f"the database refused ({type(error).__name__})"
