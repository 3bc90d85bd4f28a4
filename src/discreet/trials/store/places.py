"""Which server and tables a connection is to, as the server itself says, and where
processes that use the same ones meet on this machine.

An address would not do: a proxy may lead to another server, two servers may be copies
of each other, a search path may find other tables. Roles belong to it too: nobody
writes with the rights of another.
"""

import hashlib
import os
import time
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from discreet.trials.store import letters
from discreet.trials.store.schema import trials
from discreet.trials.store.turns import LINE

_TRIALS = f"to_regclass('{trials.name}')"
PLACE = (
    "SELECT concat_ws(' ', (pg_control_system()).system_identifier, "
    "extract(epoch from pg_postmaster_start_time()), inet_server_addr(), inet_server_port(), "
    f"(SELECT oid FROM pg_database WHERE datname = current_database()), {_TRIALS}::oid, "
    f"quote_ident(session_user), quote_ident(current_user)) WHERE {_TRIALS} IS NOT NULL"
)
"""The server, since when it runs, its database, its table of trials, and the roles."""
UNUSED = 86_400.0
"""Seconds after which a meeting point that nobody has come to is removed."""


def place_of(raw: Any) -> str:
    """Where a new connection of a driver writes; nothing if there are no trials, or if
    the server does not tell this user.
    """
    from psycopg import Error

    try:
        with raw.transaction(), raw.cursor() as cursor:
            found: tuple[str] | None = cursor.execute(PLACE).fetchone()
    except Error:
        return ""
    return found[0] if found else ""


def is_at(place: str, connection: sa.Connection) -> bool:
    """Whether this transaction writes there: a proxy may have led it elsewhere."""
    return bool(connection.exec_driver_sql(PLACE).scalar() == place)


def meeting_point(place: str, about: str) -> str | None:
    """A file in memory that stands for something at a place, in a folder that only this
    user may look into; None if there is no room for it, or the place is not known.
    """
    folder = _folder()
    if not place or folder is None:
        return None
    with suppress(OSError):
        os.mkdir(folder, 0o700)
    with suppress(OSError):
        if letters.is_our_own(folder):
            path = f"{folder}/{hashlib.sha256(f'{place} {about}'.encode()).hexdigest()[:32]}"
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            os.utime(path)
            return path
    return None


def clear() -> None:
    """Remove what the dead have left, and the meeting points that are no longer used: a
    server that was started again is another place. (Who waits at one takes no harm: a
    line only orders.)
    """
    letters.clear()
    folder, before = _folder(), time.time() - UNUSED
    with suppress(OSError):
        for name in [] if folder is None else os.listdir(folder):
            path = f"{folder}/{name}"
            if not name.endswith(LINE) and os.stat(path).st_mtime < before:
                for one in (f"{path}{LINE}", path):
                    with suppress(OSError):
                        os.unlink(one)


def _folder() -> str | None:
    user = os.geteuid() if hasattr(os, "geteuid") else None
    return None if user is None else f"{letters.MEMORY}/discreet-servers-{user}"
