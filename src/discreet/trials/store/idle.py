"""Connections to a server: how they begin, how those are noticed that have ended while
nobody used them, and how they keep up with tables that grow.
"""

import math
import select
import time
from typing import Any

import sqlalchemy as sa

from discreet.trials.store.guard import SHARE

IDLE = 1.0
"""Seconds after which the server is asked whether a connection still works: to ask each
time costs a way there and back, for every call.
"""
PLANNED = 16
"""Uses of a connection before which no server decides for ever."""


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
        used = record.info.get("used", math.inf)
        try:
            if time.monotonic() - used > IDLE or _has_word(connection):
                engine.dialect.do_ping(connection)
            _plan_again(connection, record.info)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.DisconnectionError from None

    sa.event.listen(engine, "checkin", note)
    sa.event.listen(engine, "checkout", check)


def _plan_again(connection: Any, about: dict[str, Any]) -> None:
    """Whenever a connection was used twice as often as before, have the server decide
    anew how to find what is asked for. It does so once for a statement that comes again
    and again, when tables are still so small that it reads them whole; and then only
    when it has counted their rows, which it may do late, or never.
    """
    uses = about["uses"] = about.get("uses", 0) + 1
    if uses >= PLANNED and uses.bit_count() == 1:
        connection.execute("DISCARD PLANS")
        connection.commit()


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
