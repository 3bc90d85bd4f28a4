"""What PostgreSQL keeps of a row that was overwritten, and how that goes.

The version before stays in the table. VACUUM would free its place and leave its bytes
there until others are written over them, which may be never; so the table is written
anew (VACUUM FULL), and the old file is gone with the commit. Nobody is made to wait for
it: without the lock, or while somebody could still see the old version, it is left to a
later call.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from discreet.trials.store.schema import erasing, outcomes, round_keys

MAINTAIN = (17,)
"""The first server with a right of this name, without which only owners may vacuum."""
FOR_NOW = {
    "lock_timeout": "200ms",
    "statement_timeout": "2s",
    "client_min_messages": "warning",
}
"""Settings while the table is written: nobody waits for long, and what was skipped is
told, whatever the administrator's defaults are.
"""
GAVE_UP = ("55P03", "57014")
"""Codes of errors: it would have taken too long."""
REST_SECONDS = 60.0
"""How long not to try again what took too long."""


class Rights(NamedTuple):
    """What a user of the database may do, as far as others must know."""

    erases: bool = True
    """Erase outcomes, as everybody does who may tell them."""
    scrubs: bool = True
    """Make erased outcomes unreadable."""
    verifies: bool = True
    """Read all that `verify` compares with the record."""


def rights_of(connection: sa.Connection) -> Rights:
    """What this user may do to the tables."""
    newer = (connection.dialect.server_version_info or ()) >= MAINTAIN
    maintains = f"has_table_privilege('{outcomes.name}', 'MAINTAIN')" if newer else "false"
    found = connection.exec_driver_sql(
        f"SELECT has_any_column_privilege('{outcomes.name}', 'UPDATE'), "
        f"has_table_privilege('{erasing.name}', 'DELETE') AND ({maintains} OR "
        "pg_has_role(relowner, 'USAGE') OR pg_has_role(datdba, 'USAGE')), "
        f"has_table_privilege('{round_keys.name}', 'SELECT') "
        f"AND has_table_privilege('{outcomes.name}', 'SELECT') "
        f"FROM pg_class, pg_database WHERE pg_class.oid = '{outcomes.name}'::regclass "
        "AND datname = current_database()"
    )
    return Rights(*found.one())


_ages = sa.text(
    "SELECT "
    f"(SELECT min(age(xmin)) FROM {erasing.name}), "
    "coalesce(max(held.age), 0) "
    "+ coalesce(current_setting('vacuum_defer_cleanup_age', true)::integer, 0) "
    "FROM (SELECT greatest(age(backend_xid), age(backend_xmin)) AS age FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL) "
    "UNION ALL SELECT age(xmin) FROM pg_replication_slots "
    "UNION ALL SELECT age(transaction) FROM pg_prepared_xacts "
    "WHERE database = current_database()) AS held"
)
"""Two ages, in transactions that have begun since: of the last erasing (its row in the
table of what is to be erased has its number), and of the oldest state that a tables, a
standby or a prepared transaction may still see.
"""


class Vacuum:
    """The table of outcomes, written anew again and again."""

    def __init__(self) -> None:
        self.rests = 0.0
        """Until when it is not tried: it took too long."""

    def rewrite(self, alone: sa.Connection) -> bool:
        """Write the table without what was erased; false if it must be tried again.

        If nobody sees the state before the last erasing now, nobody will: no snapshot
        is older than the oldest transaction that runs when it is taken.
        """
        erased, seen = alone.execute(_ages).one()
        if erased is None:
            return True
        if seen >= erased or time.monotonic() < self.rests:
            return False
        try:
            with _for_now(alone), _warnings(alone) as warned:
                alone.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {outcomes.name}")
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in GAVE_UP:
                raise
            self.rests = time.monotonic() + REST_SECONDS
            return False
        return not warned


@contextmanager
def _for_now(alone: sa.Connection) -> Iterator[None]:
    """Other settings for a while."""
    shown = ", ".join(f"current_setting('{name}')" for name in FOR_NOW)
    before = alone.exec_driver_sql(f"SELECT {shown}").one()
    _set(alone, FOR_NOW)
    try:
        yield
    finally:
        _set(alone, dict(zip(FOR_NOW, before, strict=True)))


def _set(alone: sa.Connection, settings: dict[str, str]) -> None:
    made = ", ".join(f"set_config('{name}', :{name}, false)" for name in settings)
    alone.execute(sa.text(f"SELECT {made}"), settings)


@contextmanager
def _warnings(alone: sa.Connection) -> Iterator[list[Any]]:
    """The codes of the server's warnings: each says that something was skipped."""
    found: list[Any] = []
    driver: Any = alone.connection.driver_connection

    def note(notice: Any) -> None:
        found.append(notice.sqlstate)

    driver.add_notice_handler(note)
    try:
        yield found
    finally:
        driver.remove_notice_handler(note)
