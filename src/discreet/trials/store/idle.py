"""Connections to a server: how they begin, and how those are noticed that have ended
while nobody used them.
"""

import select
import time
from typing import Any

import sqlalchemy as sa

from discreet.trials.store.guard import SHARE

IDLE = 1.0
"""Seconds after which the server is asked whether a connection still works: to ask each
time costs a way there and back, for every call.
"""


def begin(connection: Any, seconds: float) -> None:
    """Wait for others, but not for ever; a commit is on disk when it returns, whatever
    the default is.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {seconds * 1000:.0f}")
        cursor.execute(SHARE)
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE "
            "current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


def look_after(engine: sa.Engine) -> None:
    """Let go of connections that have ended while nobody used them: SQLAlchemy makes
    others.
    """

    def note(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    def check(connection: Any, record: Any, _proxy: Any) -> None:
        used = record.info.get("used")
        if used is None or not (time.monotonic() - used > IDLE or _has_word(connection)):
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.DisconnectionError from None

    sa.event.listen(engine, "checkin", note)
    sa.event.listen(engine, "checkout", check)


def _has_word(connection: Any) -> bool:
    """Whether something has come from the server that nobody asked for: mostly that
    the connection has ended.
    """
    if connection.closed:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    there = select.poll()
    there.register(connection.fileno(), select.POLLIN)
    return bool(there.poll(0))
