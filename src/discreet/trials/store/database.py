"""A database of trials: append-only public events with a hash chain, and behind the
wall sealed outcomes.

One `Store` is one database; every change is made in a `Session` that holds the trial's
lock, in one transaction that is on disk before it returns. No error and no log line
repeats a value that was to be written: parameters are hidden, and what the driver said
is not passed on.
"""

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import sqlalchemy as sa

from discreet.errors import InvalidInputError, StoreError
from discreet.trials.interrupts import Later, close_at_fork
from discreet.trials.store import schema
from discreet.trials.store.dialects import dialect_of
from discreet.trials.store.guard import warn_if_logged, warn_if_readable
from discreet.trials.store.reasons import NO_TRIALS, OTHER_VERSION, REPLACED, UNSURE
from discreet.trials.store.schema import about, erasing, metadata, trials
from discreet.trials.store.tables import TrialTables
from discreet.trials.store.vacuum import Rights
from discreet.trials.store.whole import Whole

LOGGING_NAME = "discreet"
OPENED = (
    "others have it open: end everything that works on its trials, including servers and "
    "timers, and try again; nothing was changed"
)


class Store:
    """A database of trials, for one thread at a time: whoever uses it holds `lock`."""

    def __init__(self, url: str | sa.URL, must_exist: bool = False, keeps_log: bool = True) -> None:
        self.dialect = dialect_of(url if isinstance(url, str | sa.URL) else "")
        self.dialect.keeps_log = keeps_log
        self.dialect.find(must_exist)
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self._rights: Rights | None = None
        self.engine = self._make_engine()
        weakref.finalize(self, self.engine.dispose)
        close_at_fork(self)
        try:
            self._prepare(not must_exist)
        except BaseException:
            self.close()
            raise
        for path in self.dialect.files[:1]:
            warn_if_readable(path)

    @classmethod
    def of_file(cls, path: str, must_exist: bool = False) -> "Store":
        """A file of SQLite that is moved as one, such as a backup, whatever its name
        has in it.
        """
        place = sa.URL.create("sqlite", database=os.path.abspath(path))
        return cls(place, must_exist, keeps_log=False)

    def __repr__(self) -> str:
        """The address without its password."""
        return f"Store({self.address!r})"

    @property
    def address(self) -> str:
        """Where the database is, without a password."""
        return self.dialect.address

    @property
    def user(self) -> str:
        """Who uses it: the user of the server, or of this machine."""
        return self.dialect.user

    @property
    def called(self) -> str:
        """What to call the database in a message: a file by its path."""
        return self.dialect.called

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
    def snapshot_all(self) -> Iterator[Whole]:
        """All trials, as they are at one moment."""
        with self._connection(**self.dialect.reading) as connection:
            yield Whole(connection, False, self.dialect.clock)

    @contextmanager
    def exclusive(self) -> Iterator[Whole]:
        """One transaction on all trials, while nobody else has the database open."""
        try:
            with self.lock, self._connection() as connection:
                if not self.dialect.claim(connection):
                    self._fail(OPENED)
                yield Whole(connection, self.dialect.locks_rows, self.dialect.clock)
                self._commit(connection)
        finally:
            self.close()

    def names(self) -> list[str]:
        """The trials in this database."""
        with self._connection(**self.dialect.reading) as connection:
            return sorted(connection.execute(sa.select(trials.c.name)).scalars())

    def rows(self) -> list[tuple[str, str, int, str]]:
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
            with self._connection(**self.dialect.alone) as connection:
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
        self.dialect.listen(engine)
        sa.event.listen(engine, "handle_error", _let_go)
        return engine

    @contextmanager
    def _connection(self, **options: Any) -> Iterator[sa.Connection]:
        """A connection with errors put plainly; what was not committed is rolled
        back.
        """
        with Later(), self.lock:
            if self.pid != os.getpid():
                self._fail(
                    "this process was forked without Python's knowledge: open the trial in each "
                    "process"
                )
            try:
                with self.engine.connect() as connection:
                    yield connection.execution_options(**options)
            except sa.exc.SQLAlchemyError as error:
                self._fail(f"{self.dialect.reason(error)}; nothing was changed")

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
            raise InvalidInputError(NO_TRIALS.format(self.called))
        with self._connection(**self.dialect.alone) as connection:
            self.dialect.prepare(connection)
            if self.dialect.told and not self.dialect.files:
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
            raise StoreError(f"{self.called}: {OTHER_VERSION.format(version, schema.SCHEMA)}")

    def _fail(self, reason: str) -> NoReturn:
        """Raise, without the driver's own error as context: that one holds what was to
        be written.
        """
        failure = StoreError(f"{self.called}: {reason}")
        try:
            raise failure
        finally:
            failure.__context__ = None


def _let_go(context: sa.engine.ExceptionContext) -> None:
    """Roll back after Ctrl-C like after any error.

    A connection thrown away with a cursor open keeps SQLite's lock.
    """
    if not isinstance(context.original_exception, Exception):
        context.is_disconnect = False
