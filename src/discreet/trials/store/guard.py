"""Who else can read a database, what its server logs, and whether it is open."""

import os
import shlex
import sqlite3
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from discreet.errors import LoggedOutcomesWarning, ReadableFileWarning, warn_caller
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

_settings = sa.text(
    "SELECT name, setting FROM pg_settings WHERE name ~ '^(log_|auto_explain[.]|pgaudit[.])'"
)
NO_PARAMETERS = "log_parameter_max_length = 0"
NO_ERRORS = "log_parameter_max_length_on_error = 0"
NO_PLANS = "auto_explain.log_min_duration = -1"
NO_AUDITS = "pgaudit.log_parameter = off"
"""What an administrator sets so that the server logs no parameters of statements."""


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


def warn_if_logged(connection: sa.Connection) -> None:
    """Warn of a server that writes parameters of statements into its log: outcomes are
    sent as parameters.
    """
    found = _find_logged({name: setting for name, setting in connection.execute(_settings)})
    if found:
        advice = " and ".join(dict.fromkeys(found.values()))
        warn_caller(
            f"the server writes outcomes into its log ({', '.join(found)}): have its administrator "
            f"set {advice} for this database or user, and delete the logs that have outcomes",
            LoggedOutcomesWarning,
        )


def _find_logged(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which parameters are logged, and what to set."""

    def number(name: str, usual: float) -> float:
        return float(settings.get(name, usual))

    sampled = number("log_statement_sample_rate", 0) > 0
    logs = {
        "log_statement": settings.get("log_statement") in ("mod", "all"),
        "log_min_duration_statement": number("log_min_duration_statement", -1) >= 0,
        "log_min_duration_sample": sampled and number("log_min_duration_sample", -1) >= 0,
        "log_transaction_sample_rate": number("log_transaction_sample_rate", 0) > 0,
    }
    shown = number("log_parameter_max_length", -1) != 0
    found = {name: NO_PARAMETERS for name, logged in logs.items() if logged and shown}
    if number("log_parameter_max_length_on_error", 0) != 0:
        found["log_parameter_max_length_on_error"] = NO_ERRORS
    if number("auto_explain.log_min_duration", -1) >= 0:
        found["auto_explain.log_min_duration"] = NO_PLANS
    if settings.get("pgaudit.log_parameter") == "on":
        found["pgaudit.log_parameter"] = NO_AUDITS
    return found
