"""How an SQLite file is opened and closed while somebody may move it.

SQLite finds the log of a file by its name, with the first look into the file; whoever
closes the file as the last one deletes that name; and whoever looks into an empty file
deletes it too. If the file was moved meanwhile, and another one put in its place, this
is the log of the other one, and what was acknowledged is lost with it. So a connection
is used only if the file stayed where it is from before it was opened until its log was;
no file is made by opening it; and no log is deleted by closing it: it is emptied, and
stays.
"""

import os
import shlex
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import ReadableFileWarning, warn_caller
from discreet.trials.store import reasons as why

BUSY_SECONDS = 30.0
"""How long to wait for others who write."""
LOG_SUFFIX = "-wal"
"""What the name of the log has more than the database's."""
CHECKPOINT_PAGES = 4000
"""After which the log is put into the file, 16 MB: every request key touches another
page, and one that was touched several times is then written to the file once.
"""
KEEPER = "discreet_keeper"
"""The name of the same file, opened once more to be read only: nobody closes the file
as the last one before it, and it may not delete anything itself.
"""
MAX_OPENINGS = 100
"""How often a file is opened that is moved, or changed by others, meanwhile."""


class FileRefusedError(Exception):
    """Why a file is not opened."""


class FileIdentity(NamedTuple):
    """Which file is somewhere."""

    device: int
    inode: int


def identity_of(found: os.stat_result) -> FileIdentity:
    """Which file was found."""
    return FileIdentity(found.st_dev, found.st_ino)


def find_identity(path: str) -> FileIdentity | None:
    """Which file there is now."""
    with suppress(OSError):
        found = os.stat(path)
        return FileIdentity(found.st_dev, found.st_ino)
    return None


def has_log_content(path: str | Path) -> bool:
    """Whether a part of what is in a file is in the log beside it."""
    with suppress(OSError):
        return os.stat(f"{path}{LOG_SUFFIX}").st_size > 0
    return False


class SQLiteFile:
    """The way into a file that may be moved, or replaced by another one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.may_be_empty = False
        """Whether a file with nothing in it may become a database."""
        self.keeps_log = True
        """Whether the log stays when the file is closed, if only its owner may write to
        it: others could not write to the owner's log.
        """
        self._logs: dict[FileIdentity, FileIdentity] = {}
        """Of each log that was seen, the file that it belongs to."""

    def connect(self, options: Mapping[str, Any]) -> tuple[sqlite3.Connection, FileIdentity]:
        """Open the file that is there, and its log, and say which one it is."""
        for _ in range(MAX_OPENINGS):
            before = self._look()
            connection = None
            try:
                connection = sqlite3.connect(f"{_uri(self.path)}?mode=rw", uri=True, **options)
                if self._unmoved(before):  # nothing was looked into up to here
                    self._set_up(connection, self.keeps_log and not before.st_mode & 0o022)
                    if self._unmoved(before):
                        self._note_log(identity_of(before))
                        return connection, identity_of(before)
                connection.close()
            except sqlite3.Error:
                if connection is not None:
                    connection.close()
                if self._unmoved(before):
                    raise
        raise FileRefusedError(why.BUSY)

    def note_new_log(self, connection: sqlite3.Connection, file: FileIdentity) -> None:
        """From now on a file that was new has a log."""
        _read_keeper(connection)
        self._note_log(file)
        self.may_be_empty = False

    def detach_keeper(self, connection: sqlite3.Connection) -> None:
        """Have the log deleted when the file is closed, by whoever has it alone."""
        if _has_keeper(connection):
            connection.execute(f"DETACH DATABASE {KEEPER}")

    def _look(self) -> os.stat_result:
        """The file as it is now. A log of another one would be played into it, and if
        it is empty, deleted.
        """
        try:
            found = os.stat(self.path)
        except OSError:
            raise FileRefusedError(why.NOT_OPENED if self.may_be_empty else why.GONE) from None
        if not (found.st_size or self.may_be_empty):
            raise FileRefusedError(why.EMPTY)
        log, file = find_identity(self.path + LOG_SUFFIX), identity_of(found)
        owner = file if log is None else self._logs.get(log, file)
        if has_log_content(self.path) and (owner != file or not found.st_size):
            raise FileRefusedError(why.FOREIGN_LOG)
        return found

    def _set_up(self, connection: sqlite3.Connection, keeps: bool) -> None:
        """Before everything else wait for others; then durable, and deleted means
        overwritten.
        """
        connection.isolation_level = None
        wait = f"busy_timeout = {BUSY_SECONDS * 1000:.0f}"
        often = f"wal_autocheckpoint = {CHECKPOINT_PAGES}"
        for pragma in (wait, "synchronous = FULL", "secure_delete = ON", often):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        if keeps:
            connection.execute(f"ATTACH DATABASE ? AS {KEEPER}", (f"{_uri(self.path)}?mode=ro",))
        connection.execute("SELECT count(*) FROM main.sqlite_master").fetchall()
        _read_keeper(connection)

    def _unmoved(self, before: os.stat_result) -> bool:
        """Whether a file is where it was: if it was moved and moved back, or written
        by others, the time of its last change tells.
        """
        with suppress(OSError):
            now = os.stat(self.path)
            return identity_of(now) == identity_of(before) and now.st_ctime_ns == before.st_ctime_ns
        return False

    def _note_log(self, file: FileIdentity) -> None:
        log = find_identity(self.path + LOG_SUFFIX)
        if log is not None:
            self._logs[log] = file


def _has_keeper(connection: sqlite3.Connection) -> bool:
    return any(row[1] == KEEPER for row in connection.execute("PRAGMA database_list").fetchall())


def _read_keeper(connection: sqlite3.Connection) -> None:
    """Once the file has a log: have the keeper look into it."""
    if _has_keeper(connection):
        connection.execute(f"SELECT count(*) FROM {KEEPER}.sqlite_master").fetchall()


def empty_log(connection: sqlite3.Connection, seconds: float) -> bool:
    """Put what is in the log into the file; false if somebody who reads or writes would
    have to be waited for longer.
    """
    connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}").fetchall()
    try:
        ((busy, _, _),) = connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}").fetchall()
    return bool(busy == 0)


def _uri(path: str) -> str:
    return Path(path).absolute().as_uri()


LOCK_SECONDS = 0.2
"""Seconds to wait for others who are about to close a file."""
CLOSE_SECONDS = 1.0
"""Seconds that a server which has much to do may take to notice that somebody has
gone.
"""


class HiddenAddress(str):
    """An address that no message may tell: those of a service reach its clients."""

    __slots__ = ()


def lock_file(raw: Any) -> bool:
    """Lock an SQLite file for one connection, outside of a transaction, until it is
    closed; false if another one has it open.

    To leave the write-ahead log takes being alone; the log is back at once, and the
    lock stays.
    """
    try:
        raw.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}").fetchall()
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = DELETE", "journal_mode = WAL"):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        raw.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}").fetchall()
    except sqlite3.OperationalError as error:
        if not str(error.sqlite_errorname).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise
        return False
    return True


def warn_if_readable(path: str) -> None:
    """Warn of a file that other users of the machine may read or write."""
    if os.name == "nt":
        return
    with suppress(OSError):
        if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            warn_caller(
                f"{path} can be read by other users of this machine, and it contains outcomes "
                f"that are not released: chmod 600 {shlex.quote(path)}",
                ReadableFileWarning,
            )
