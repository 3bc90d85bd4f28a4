"""A database of trials: public events in an append-only hash chain and, inside the
privacy boundary, outcomes.

One `Database` is one address. Every change is made on the `TrialTables` of a
transaction that holds the trial's lock and is on disk before it returns. No error and
no log line repeats a value that was to be written: parameters are hidden, and the
driver's words are not passed on.
"""

import logging
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn, Protocol

import sqlalchemy as sa

from discreet.errors import InvalidInputError, StoreError
from discreet.trials.store import schema
from discreet.trials.store.dialect import make_dialect
from discreet.trials.store.postgresql import Rights, warn_if_logged
from discreet.trials.store.reasons import NO_TRIALS, OTHER_VERSION, REPLACED, UNSURE
from discreet.trials.store.schema import about, erasing, metadata, outcomes, trials
from discreet.trials.store.sqlite import warn_if_readable
from discreet.trials.store.tables import MAX_LISTED, TrialTables, at

TRIAL_TABLES = [table for table in metadata.sorted_tables if table not in (schema.about, trials)]
"""The tables with rows of each trial."""
COPIED_TABLES = [table for table in TRIAL_TABLES if table is not erasing]
"""What a copy has: in its files there is nothing that was erased before."""


def _select_rows(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    """A trial's rows, without its number, in order, a piece at a time."""
    columns = [column for column in table.c if column.name != "trial"]
    found = sa.select(*columns).where(at(table)).order_by(*table.primary_key.columns)
    return found.execution_options(yield_per=MAX_LISTED)


class AllTrials:
    """The trials of a database, in one transaction or at one moment."""

    def __init__(
        self, connection: sa.Connection, locks_rows: bool, clock: sa.TextClause | None
    ) -> None:
        self.connection = connection
        self.locks_rows = locks_rows
        self.clock = clock

    def trials(self) -> list[TrialTables]:
        """All of them, by name."""
        names = sorted(self.connection.execute(sa.select(trials.c.name)).scalars())
        return [one for name in names if (one := self.trial(name)) is not None]

    def trial(self, name: str) -> TrialTables | None:
        """The trial of a name, if there is one."""
        tables = TrialTables(self.connection, name, self.locks_rows, self.clock)
        return None if tables.lock() is None else tables

    def is_intact(self) -> bool:
        """Whether a file of SQLite is whole."""
        found = self.connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        return bool(found == "ok")

    def copy(self, trial: TrialTables, replaced: TrialTables | None = None) -> TrialTables:
        """Enter a trial of another database under a number that none ever had, in the
        place of one of this name.
        """
        if replaced is not None:
            replaced.run(trials.update().where(at(trials)), name="-")  # no trial's name
        row = trial.row._asdict()
        del row["trial"]
        self.connection.execute(trials.insert(), {"name": trial.name, **row})
        made = TrialTables(self.connection, trial.name, self.locks_rows, self.clock)
        made.lock()
        for table in COPIED_TABLES:
            for some in trial.run(_select_rows(table)).partitions():
                made.insert_rows(table, [tuple(one) for one in some])
        if replaced is not None:
            _delete_trial(replaced)
        return made


def _delete_trial(trial: TrialTables) -> None:
    """Take a trial away. Its outcomes are overwritten and not deleted, which could
    leave copies of others behind; see `schema.Units`.
    """
    here = outcomes.update().where(at(outcomes), outcomes.c.units.is_not(None))
    trial.run(here.values(units=schema.ERASED))
    for table in (*TRIAL_TABLES, trials):
        if table is not outcomes:
            trial.run(table.delete().where(at(table)))


class DeferredSigint:
    """Ctrl-C comes when the block is left: in the middle it could leave a lock to
    nobody, or fail the tasks of other threads.

    Python runs the handlers of signals in its main thread only. Not a generator, which
    an interrupt can leave halfway.
    """

    def __enter__(self) -> None:
        """Take note of interrupts from here on."""
        self.noted: list[Any] = []
        self.before: Any = signal.getsignal(signal.SIGINT)
        if callable(self.before):
            signal.signal(signal.SIGINT, lambda *event: self.noted.append(event))
            _deferring.append(self)

    def __exit__(self, *_: object) -> None:
        """Let one happen now, if there was any."""
        if callable(self.before) and self in _deferring:
            _deferring.remove(self)
            signal.signal(signal.SIGINT, self.before)
            if self.noted:
                self.before(*self.noted[0])


_deferring: list[DeferredSigint] = []
"""Those that note interrupts now, the outermost first."""


class ForkSensitive(Protocol):
    """Whatever has connections that must not outlive a fork."""

    lock: threading.RLock
    pid: int

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""


_fork_sensitive: weakref.WeakSet[ForkSensitive] = weakref.WeakSet()
_locked: list[ForkSensitive] = []


def close_before_fork(one: ForkSensitive) -> None:
    """See to it that no connection outlives a fork.

    SQLite's locks belong to the process, so that a child would write unprotected, and
    what it wrote could vanish when the parent closes the file.
    """
    _fork_sensitive.add(one)


def _before_fork() -> None:
    """Let the transactions of other threads end, and close all connections. Whoever
    works on two databases holds one lock and waits for the other: so all locks, or none
    while we wait.
    """
    while not all(_try_lock(one) for one in list(_fork_sensitive)):
        _after_fork_in_parent()
        time.sleep(0.001)
    for one in _locked:
        one.close()


def _try_lock(one: ForkSensitive) -> bool:
    """Take a lock, if it is free."""
    free = one.lock.acquire(blocking=False)
    if free:
        _locked.append(one)
    return free


def _after_fork_in_parent() -> None:
    while _locked:
        _locked.pop().lock.release()


def _after_fork_in_child() -> None:
    if _deferring and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _deferring[0].before)
        _deferring.clear()
    while _locked:
        one = _locked.pop()
        one.lock = threading.RLock()
        one.pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


LOGGING_NAME = "discreet"
IN_USE = (
    "others have it open: end everything that works on its trials, including servers and "
    "timers, and try again; nothing was changed"
)


class Database:
    """A database of trials, for one thread at a time: whoever uses it holds `lock`."""

    def __init__(self, url: str | sa.URL, must_exist: bool = False, keeps_log: bool = True) -> None:
        self.dialect = make_dialect(url if isinstance(url, str | sa.URL) else "")
        self.dialect.keeps_log = keeps_log
        self.dialect.check_location(must_exist)
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self._rights: Rights | None = None
        self.engine = self._make_engine()
        weakref.finalize(self, self.engine.dispose)
        close_before_fork(self)
        try:
            self._prepare(not must_exist)
        except BaseException:
            self.close()
            raise
        for path in self.dialect.files[:1]:
            warn_if_readable(path)

    @classmethod
    def open_file(cls, path: str, must_exist: bool = False) -> "Database":
        """A file of SQLite that is moved as one, such as a backup, whatever its name
        has in it.
        """
        place = sa.URL.create("sqlite", database=os.path.abspath(path))
        return cls(place, must_exist, keeps_log=False)

    def __repr__(self) -> str:
        """The address without its password."""
        return f"Database({self.address!r})"

    @property
    def address(self) -> str:
        """Where the database is, without a password."""
        return self.dialect.address

    @property
    def user(self) -> str:
        """Who uses it: the user of the server, or of this machine."""
        return self.dialect.user

    @property
    def label(self) -> str:
        """What to call the database in a message: a file by its path."""
        return self.dialect.label

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self.engine.dispose()

    @contextmanager
    def transaction(self, name: str) -> Iterator[TrialTables]:
        """One transaction with the trial's lock: all of it happens, and is on disk, or
        nothing of it.
        """
        with self._connection() as connection:
            tables = TrialTables(connection, name, self.dialect.locks_rows, self.dialect.clock)
            yield tables
            tables.flush()
            self._commit(connection)

    @contextmanager
    def snapshot(self, name: str) -> Iterator[TrialTables]:
        """One consistent look at a trial."""
        with self._connection(**self.dialect.reading) as connection:
            yield TrialTables(connection, name, False, self.dialect.clock)

    @contextmanager
    def begin(self, reading: bool = False, schema: bool = False) -> Iterator[sa.Connection]:
        """One transaction on tables of others in this database; with `schema` one that
        makes them.
        """
        if reading:
            with self._connection(**self.dialect.reading) as connection:
                yield connection
            return
        with self._connection() as connection:
            if schema:
                self.dialect.lock_schema(connection)
            yield connection
            self._commit(connection)

    @contextmanager
    def snapshot_all(self) -> Iterator[AllTrials]:
        """All trials, as they are at one moment."""
        with self._connection(**self.dialect.reading) as connection:
            yield AllTrials(connection, False, self.dialect.clock)

    @contextmanager
    def exclusive(self) -> Iterator[AllTrials]:
        """One transaction on all trials, while nobody else has the database open."""
        try:
            with self.lock, self._connection() as connection:
                if not self.dialect.lock_exclusively(connection):
                    self._fail(IN_USE)
                yield AllTrials(connection, self.dialect.locks_rows, self.dialect.clock)
                self._commit(connection)
        finally:
            self.close()

    def list_names(self) -> list[str]:
        """The trials in this database."""
        with self._connection(**self.dialect.reading) as connection:
            return sorted(connection.execute(sa.select(trials.c.name)).scalars())

    def list_rows(self) -> list[tuple[str, str, int, str]]:
        """(name, protocol, people, state) of each trial, by name."""
        columns = (trials.c.name, trials.c.protocol, trials.c.participants, trials.c.state)
        with self._connection(**self.dialect.reading) as connection:
            found = connection.execute(sa.select(*columns)).all()
        return sorted((row[0], row[1], row[2], row[3]) for row in found)

    def erasing_trials(self) -> list[str]:
        """Return the trials of which erased outcomes may still be readable."""
        query = sa.select(trials.c.name).where(trials.c.trial.in_(sa.select(erasing.c.trial)))
        with self._connection(**self.dialect.reading) as connection:
            return sorted(connection.execute(query).scalars())

    def rights(self) -> Rights:
        """What the user of the database may do, as of the first question."""
        if self._rights is None:
            with self._connection(**self.dialect.reading) as connection:
                self._rights = self.dialect.rights(connection)
        return self._rights

    def scrub(self) -> bool:
        """Make what was erased unreadable, after its transaction; false if it must be
        tried again, maybe by another user.
        """
        try:
            if not self.rights().scrubs:
                return False
            with self._connection(**self.dialect.autocommit) as connection:
                return self.dialect.scrub(connection)
        except StoreError:
            self.close()
            return False

    # --- connections ------------------------------------------------------------------

    def _make_engine(self) -> sa.Engine:
        """An engine that shows no values: neither parameters (hidden) nor, at any
        level, rows.
        """
        logging.getLogger(f"sqlalchemy.engine.Engine.{LOGGING_NAME}").setLevel(logging.WARNING)
        hidden: dict[str, Any] = {"hide_parameters": True, "logging_name": LOGGING_NAME}
        engine = sa.create_engine(self.dialect.url, **hidden, **self.dialect.engine_options)
        self.dialect.set_up_engine(engine)
        sa.event.listen(engine, "handle_error", _roll_back_interrupted)
        return engine

    @contextmanager
    def _connection(self, **options: Any) -> Iterator[sa.Connection]:
        """A connection with errors put plainly; what was not committed is rolled
        back.
        """
        is_main = threading.current_thread() is threading.main_thread()
        with DeferredSigint() if is_main else nullcontext(), self.lock:
            if self.pid != os.getpid():
                self._fail(
                    "this process was forked without Python's knowledge: open the trial in each "
                    "process"
                )
            try:
                with self.engine.connect() as connection:
                    yield connection.execution_options(**options)
            except sa.exc.SQLAlchemyError as error:
                self._fail(f"{self.dialect.describe_error(error)}; nothing was changed")

    def _commit(self, connection: sa.Connection) -> None:
        try:
            connection.commit()
        except sa.exc.DBAPIError as error:
            if not error.connection_invalidated:
                raise
            self._fail(f"the connection broke at the last moment, and {UNSURE}")
        if not self.dialect.in_place(connection):
            self._fail(REPLACED)

    def _prepare(self, new: bool) -> None:
        """Make the tables if there may be new ones, one process at a time; refuse those
        of another version.
        """
        with self._connection(**self.dialect.reading) as connection:
            there = sa.inspect(connection).has_table(about.name)
            if there:
                self._check_version(connection)
        if not there and not new:
            raise InvalidInputError(NO_TRIALS.format(self.label))
        with self._connection(**self.dialect.autocommit) as connection:
            self.dialect.check_server(connection)
            if self.dialect.is_address_shown and not self.dialect.files:
                warn_if_logged(connection)
        if there:
            return
        with self._connection() as connection:
            self.dialect.lock_schema(connection)
            metadata.create_all(connection)
            if connection.execute(sa.select(about)).first() is None:
                connection.execute(about.insert().values(version=schema.SCHEMA))
            self._check_version(connection)
            connection.commit()
        self.close()  # a new connection knows the tables

    def _check_version(self, connection: sa.Connection) -> None:
        """Refuse tables of another version."""
        version = connection.execute(sa.select(sa.func.max(about.c.version))).scalar()
        if version != schema.SCHEMA:
            raise StoreError(f"{self.label}: {OTHER_VERSION.format(version, schema.SCHEMA)}")

    def _fail(self, reason: str) -> NoReturn:
        """Raise, without the driver's own error as context: that one holds what was to
        be written.
        """
        failure = StoreError(f"{self.label}: {reason}")
        try:
            raise failure
        finally:
            failure.__context__ = None


def _roll_back_interrupted(context: sa.engine.ExceptionContext) -> None:
    """Roll back after Ctrl-C like after any error.

    A connection thrown away with a cursor open keeps SQLite's lock.
    """
    if not isinstance(context.original_exception, Exception):
        context.is_disconnect = False
