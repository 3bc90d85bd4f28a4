"""Connections to a server that were left alone for a while may have ended."""

import time
from typing import Any

import sqlalchemy as sa

IDLE = 1.0
"""Seconds after which it is looked whether a connection still works: to look each time
costs a way to the server and back, for every call.
"""


def look_after(engine: sa.Engine) -> None:
    """Let go of connections that have ended while nobody used them: SQLAlchemy makes
    others.
    """

    def note(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    def check(connection: Any, record: Any, _proxy: Any) -> None:
        used = record.info.get("used")
        if used is None or time.monotonic() - used < IDLE:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise sa.exc.DisconnectionError from None

    sa.event.listen(engine, "checkin", note)
    sa.event.listen(engine, "checkout", check)
