"""What differs from database to database. Another database is another class here, and a
row in DIALECTS.
"""

import contextlib
import getpass
import os
import sqlite3
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from discreet.errors import InvalidInputError, StoreError
from discreet.trials.store import reasons as why
from discreet.trials.store.postgresql import (
    Rights,
    Vacuum,
    begin,
    lock_server,
    read_rights,
    replan_soon,
)
from discreet.trials.store.sqlite import (
    BUSY_SECONDS,
    LOG_SUFFIX,
    FileRefusedError,
    HiddenAddress,
    SQLiteFile,
    empty_log,
    find_identity,
    lock_file,
)

SCRUB_SECONDS = 0.2


class Dialect(ABC):
    """One kind of database, at one address."""

    engine_options: ClassVar[dict[str, Any]] = {}
    reading: ClassVar[dict[str, Any]]
    """Options of a connection that takes one consistent look."""
    autocommit: ClassVar[dict[str, Any]]
    """Options of a connection without a transaction."""
    locks_rows: ClassVar[bool] = True
    """Whether a trial's row is locked by itself; else a writer has the whole
    database.
    """
    clock: ClassVar[sa.TextClause | None] = None
    """How the server tells the time; None: the machine's is the one clock."""
    reasons: ClassVar[dict[tuple[str, ...], str]]
    """What the codes of errors that begin so mean, and what to do."""

    is_address_shown = True
    """Whether messages may tell where the database is."""
    keeps_log = True
    """Whether a log beside a file stays when that is closed; servers see to theirs."""

    def __init__(self, url: sa.URL) -> None:
        self.url = self.check_url(url)

    @abstractmethod
    def check_url(self, url: sa.URL) -> sa.URL:
        """An address we can work with; refuses others without repeating a password."""

    @property
    def address(self) -> str:
        """The address without a password and without parameters, among which there may
        be one.
        """
        return self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def location(self) -> str:
        """Where the database is, for people."""
        return self.address

    @property
    def label(self) -> str:
        """What to call the database in a message."""
        return self.location if self.is_address_shown else "the database"

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the database that are on this machine and must not be written
        by others.
        """
        return ()

    @property
    def user(self) -> str:
        """Who uses the database: here the user of the machine."""
        try:
            return getpass.getuser()
        except (OSError, KeyError):
            return "unknown"

    @abstractmethod
    def check_location(self, must_exist: bool) -> None:
        """Before the first connection: refuse, or make, what must be there."""

    @abstractmethod
    def set_up_engine(self, engine: sa.Engine) -> None:
        """Set up each new connection of the engine."""

    @abstractmethod
    def lock_exclusively(self, connection: sa.Connection) -> bool:
        """Before its first statement: keep all others out until the connection is
        closed; false if somebody has the database open.
        """

    @abstractmethod
    def check_server(self, alone: sa.Connection) -> None:
        """Before tables are made or used, each time."""

    @abstractmethod
    def lock_schema(self, connection: sa.Connection) -> None:
        """Keep others from making or changing tables until the transaction ends."""

    @abstractmethod
    def scrub(self, alone: sa.Connection) -> bool:
        """Make what was erased unreadable, after its transaction; false if it must be
        tried again.
        """

    def rights(self, connection: sa.Connection) -> Rights:
        """What the user may do: here everything, or nothing."""
        return Rights()

    def in_place(self, connection: sa.Connection) -> bool:
        """Whether a connection still writes where others look."""
        return True

    @abstractmethod
    def read_code(self, error: Any) -> str | None:
        """The code of a driver's error."""

    def describe_error(self, error: sa.exc.SQLAlchemyError) -> str:
        """What is wrong, in words of ours: the database's own may be in any language,
        and hold data.
        """
        code = self.read_code(getattr(error, "orig", None))
        if code:
            known = (words for signs, words in self.reasons.items() if code.startswith(signs))
            return next(known, f"the database refused ({code})")
        if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError):
            return why.UNREACHABLE
        return f"the database refused ({type(error).__name__})"


class SQLite(Dialect):
    """A file with a write-ahead log; one writer at a time."""

    reading: ClassVar[dict[str, Any]] = {"discreet_begin": "BEGIN"}
    autocommit: ClassVar[dict[str, Any]] = {"discreet_begin": ""}
    locks_rows = False
    reasons: ClassVar[dict[tuple[str, ...], str]] = {
        ("SQLITE_BUSY", "SQLITE_LOCKED"): why.BUSY,
        ("SQLITE_READONLY",): why.READ_ONLY,
        ("SQLITE_CANTOPEN", "SQLITE_PERM"): why.NOT_OPENED,
        ("SQLITE_FULL",): why.FULL,
        ("SQLITE_IOERR",): why.NOT_WRITTEN,
        ("SQLITE_NOTADB",): why.FOREIGN,
        ("SQLITE_CORRUPT",): why.DAMAGED,
    }

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        self._opening = SQLiteFile(self.location)

    def check_url(self, url: sa.URL) -> sa.URL:
        """A file, and nothing else."""
        drivers = ("sqlite", "sqlite+pysqlite")
        if url.drivername not in drivers or url.query or str(url.database).startswith("file:"):
            raise InvalidInputError("write the url as sqlite:///trial.db, with nothing after it")
        if not url.database or ":memory:" in url.database:
            raise InvalidInputError(
                "a trial must outlive this process: give a file, such as sqlite:///trial.db"
            )
        return url

    @property
    def location(self) -> str:
        """The file."""
        return str(self.url.database)

    @property
    def files(self) -> tuple[str, ...]:
        """The file, its log, and the log's index."""
        return tuple(f"{self.location}{end}" for end in ("", LOG_SUFFIX, "-shm"))

    def check_location(self, must_exist: bool) -> None:
        """A new file is empty, and only its owner may read it: outcomes of open batches
        will be in it.
        """
        self._opening.may_be_empty, self._opening.keeps_log = not must_exist, self.keeps_log
        with contextlib.suppress(OSError):
            if must_exist and not os.stat(self.location).st_size:
                raise InvalidInputError(why.NO_TRIALS.format(self.label))
        if Path(self.location).exists():
            return
        if must_exist and not self.is_address_shown:
            raise StoreError(f"{self.label}: {why.GONE}")
        if must_exist:
            raise InvalidInputError(
                f"there is no file {self.label}: check the name, or create a trial. If the file "
                "was lost, restore a backup: discreet trial restore FILE"
            )
        with contextlib.suppress(OSError):  # SQLite says what is wrong
            os.close(os.open(self.location, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def set_up_engine(self, engine: sa.Engine) -> None:
        """The driver begins no transactions by itself: we do. A file that was put in
        the place of the one that is open, or taken away, is noticed whenever a
        connection is used.
        """
        sa.event.listen(engine, "do_connect", self._connect)
        sa.event.listen(engine, "checkout", self._check_file)
        sa.event.listen(engine, "begin", _begin_sqlite)
        sa.event.listen(engine, "close", self._close)

    def _connect(self, _dialect: Any, record: Any, _words: Any, options: Any) -> Any:
        """Open the file, and note which one it is."""
        try:
            connection, record.info["file"] = self._opening.connect(options)
        except FileRefusedError as error:
            raise StoreError(f"{self.label}: {error}") from None
        return connection

    def _close(self, connection: Any, record: Any) -> None:
        """The file is whole by itself when nobody has it open."""
        with contextlib.suppress(sqlite3.Error):
            if find_identity(self.location) == record.info["file"]:
                empty_log(connection, 0.0)

    def _check_file(self, _connection: Any, record: Any, _proxy: Any) -> None:
        """Let go of a connection to a file that is no longer there: SQLAlchemy makes
        another one.
        """
        if find_identity(self.location) != record.info["file"]:
            raise sa.exc.DisconnectionError

    def in_place(self, connection: sa.Connection) -> bool:
        """Whether the open file is the one at its path."""
        return bool(find_identity(self.location) == connection.info["file"])

    def lock_exclusively(self, connection: sa.Connection) -> bool:
        """By SQLite's lock of the file."""
        self._opening.detach_keeper(_raw_connection(connection))
        return lock_file(_raw_connection(connection))

    def check_server(self, alone: sa.Connection) -> None:
        """A write-ahead log: readers and a writer do not wait for each other. (A
        restore that was killed may have left the file without.)
        """
        alone.exec_driver_sql("PRAGMA main.journal_mode = WAL")
        self._opening.note_new_log(_raw_connection(alone), alone.info["file"])

    def lock_schema(self, connection: sa.Connection) -> None:
        """Nothing: a writer has the whole file."""

    def scrub(self, alone: sa.Connection) -> bool:
        """Outcomes are overwritten where they are; old pages live on in the log until
        it is emptied, which readers can delay.
        """
        return empty_log(_raw_connection(alone), SCRUB_SECONDS)

    def read_code(self, error: Any) -> str | None:
        """Its name, such as SQLITE_FULL."""
        return getattr(error, "sqlite_errorname", None)


def _raw_connection(connection: sa.Connection) -> Any:
    """The connection of the driver, outside of a transaction."""
    return connection.connection.dbapi_connection


def _begin_sqlite(connection: sa.Connection) -> None:
    """Writers queue up at the start: taking the lock later fails under load, WAL or
    not.
    """
    begin = connection.get_execution_options().get("discreet_begin", "BEGIN IMMEDIATE")
    if begin:
        connection.exec_driver_sql(begin)


class PostgreSQL(Dialect):
    """A server; a writer locks its trial only."""

    engine_options: ClassVar[dict[str, Any]] = {
        "isolation_level": "READ COMMITTED",
        "pool_pre_ping": True,  # a thirtieth of the time of a call
    }
    reading: ClassVar[dict[str, Any]] = {"isolation_level": "REPEATABLE READ"}
    autocommit: ClassVar[dict[str, Any]] = {"isolation_level": "AUTOCOMMIT"}
    clock: ClassVar[sa.TextClause | None] = sa.text("SELECT extract(epoch from clock_timestamp())")
    reasons: ClassVar[dict[tuple[str, ...], str]] = {
        ("55P03",): why.BUSY,
        ("25006",): why.READ_ONLY,
        ("53100",): why.FULL,
        ("58030",): why.NOT_WRITTEN,
        ("XX001", "XX002"): why.DAMAGED,
        ("28", "42501"): why.REFUSED_USER,
        ("40",): why.CAME_BETWEEN,
        ("53",): why.OVERLOADED,
        ("57P", "08"): why.ENDED,
    }

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        self._vacuum = Vacuum()

    def check_url(self, url: sa.URL) -> sa.URL:
        """With the driver we have."""
        return url.set(drivername="postgresql+psycopg")

    @property
    def user(self) -> str:
        """The user of the server, if the address names one."""
        return self.url.username or super().user

    def check_location(self, must_exist: bool) -> None:
        """Whether the server is there, connecting will say."""

    def lock_exclusively(self, connection: sa.Connection) -> bool:
        """By a lock that every connection shares."""
        return lock_server(connection)

    def check_server(self, alone: sa.Connection) -> None:
        """A server is durable by its settings, and each connection sees to it."""

    def set_up_engine(self, engine: sa.Engine) -> None:
        """Set up sessions when they begin, and look after them."""
        sa.event.listen(engine, "connect", self._set_up)
        sa.event.listen(engine, "checkout", replan_soon)

    def _set_up(self, connection: Any, _record: Any) -> None:
        """Set up a session."""
        begin(connection, BUSY_SECONDS)

    def lock_schema(self, connection: sa.Connection) -> None:
        """Tables that are not there cannot be locked; a number of our own can."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('discreet_schema'))"))

    def scrub(self, alone: sa.Connection) -> bool:
        """Write the table anew, unless somebody would have to wait for it."""
        return self._vacuum.rewrite(alone)

    def rights(self, connection: sa.Connection) -> Rights:
        """As the server has them."""
        return read_rights(connection)

    def read_code(self, error: Any) -> str | None:
        """Its SQLSTATE, such as 53100."""
        return getattr(error, "sqlstate", None)


DIALECTS: dict[str, type[Dialect]] = {"sqlite": SQLite, "postgresql": PostgreSQL}
"""By the name with which an address begins."""


def make_dialect(url: str | sa.URL) -> Dialect:
    """The kind of database at this address, or what is wrong with it."""
    try:
        read = sa.make_url(url)
        str(url).encode()
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInputError(
            "url must look like sqlite:///trial.db or postgresql://user@host/database"
        ) from None
    backend = read.get_backend_name()
    if backend not in DIALECTS:
        known = " or ".join(DIALECTS)
        raise InvalidInputError(f"trials are kept in {known}; there is no store for {backend}")
    found = DIALECTS[backend](read)
    found.is_address_shown = not isinstance(url, HiddenAddress)
    return found
