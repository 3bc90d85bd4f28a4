"""Who else can read a database, and whether others have it open."""

import os
import shlex
import sqlite3
import stat
import time
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from discreet.errors import ReadableFileWarning, warn_caller
from discreet.trials.store.opening import BUSY_SECONDS

PATIENCE = 0.2
"""Seconds to wait for others who are about to close a file."""
FAREWELL = 1.0
"""Seconds that a server which has much to do may take to notice that somebody has
gone.
"""

_KEY = "hashtext('discreet_open'), hashtext(coalesce(current_schema(), ''))"
SHARE = f"SELECT pg_advisory_lock_shared({_KEY})"
"""What each connection to a server does: it has the trials of this schema open."""
CLAIM = f"SELECT pg_try_advisory_lock({_KEY})"
"""Whether nobody else has them open, and can until the connection is closed."""


class Untold(str):
    """An address that no message may tell: those of a service reach its clients."""

    __slots__ = ()


def claim_file(raw: Any) -> bool:
    """Lock an SQLite file for one connection, outside of a transaction, until it is
    closed; false if another one has it open.

    To leave the write-ahead log takes being alone; the log is back at once, and the
    lock stays.
    """
    try:
        raw.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}").fetchall()
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = DELETE", "journal_mode = WAL"):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        raw.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}").fetchall()
    except sqlite3.OperationalError as error:
        if not str(error.sqlite_errorname).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise
        return False
    return True


def claim_server(connection: sa.Connection) -> bool:
    """The same on a server, before the first statement: until the connection is closed,
    nobody else has the trials of this schema open; false if somebody has.
    """
    until = time.monotonic() + FAREWELL
    while not connection.exec_driver_sql(CLAIM).scalar_one():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
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
