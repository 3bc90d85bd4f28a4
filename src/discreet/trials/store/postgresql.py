"""What PostgreSQL keeps of a row that was overwritten, and how that goes.

The version before stays in the table. VACUUM would free its place and leave its bytes
there until others are written over them, which may be never; so the table is written
anew (VACUUM FULL), and the old file is gone with the commit. Nobody is made to wait for
it: without the lock, or while somebody could still see the old version, it is left to a
later call.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from discreet.errors import LoggedOutcomesWarning, warn_caller
from discreet.trials.store.schema import erasing, outcomes, round_keys
from discreet.trials.store.sqlite import CLOSE_SECONDS

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


def lock_server(connection: sa.Connection) -> bool:
    """The same on a server, before the first statement: until the connection is closed,
    nobody else has the trials of this schema open; false if somebody has.
    """
    until = time.monotonic() + CLOSE_SECONDS
    while not connection.exec_driver_sql(CLAIM).scalar_one():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def warn_if_logged(connection: sa.Connection) -> None:
    """Warn of a server that writes parameters of statements into its log: outcomes are
    sent as parameters.
    """
    found = _find_logged_statements(
        {name: setting for name, setting in connection.execute(_settings)}
    )
    if found:
        advice = " and ".join(dict.fromkeys(found.values()))
        warn_caller(
            f"the server writes outcomes into its log ({', '.join(found)}): have its administrator "
            f"set {advice} for this database or user, and delete the logs that have outcomes",
            LoggedOutcomesWarning,
        )


def _find_logged_statements(settings: Mapping[str, str]) -> dict[str, str]:
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


def replan_soon(connection: Any, record: Any, _proxy: Any) -> None:
    """Whenever a connection was used twice as often as before, have the server decide
    anew how to find what is asked for. It does so once for a statement that comes again
    and again, when tables are still so small that it reads them whole; and then only
    when it has counted their rows, which it may do late, or never.
    """
    uses = record.info["uses"] = record.info.get("uses", 0) + 1
    if uses >= PLANNED and uses.bit_count() == 1:
        try:
            connection.execute("DISCARD PLANS")
            connection.commit()
        except Exception:  # the connection has ended: SQLAlchemy makes another
            raise sa.exc.DisconnectionError from None


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
TIMEOUT_CODES = ("55P03", "57014")
"""Codes of errors: it would have taken too long."""
RETRY_SECONDS = 60.0
"""How long not to try again what took too long."""


class Rights(NamedTuple):
    """What a user of the database may do, as far as others must know."""

    erases: bool = True
    """Erase outcomes, as everybody does who may tell them."""
    scrubs: bool = True
    """Make erased outcomes unreadable."""
    verifies: bool = True
    """Read all that `verify` compares with the record."""


def read_rights(connection: sa.Connection) -> Rights:
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
            with _with_settings(alone), _collect_warnings(alone) as warned:
                alone.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {outcomes.name}")
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in TIMEOUT_CODES:
                raise
            self.rests = time.monotonic() + RETRY_SECONDS
            return False
        return not warned


@contextmanager
def _with_settings(alone: sa.Connection) -> Iterator[None]:
    """Other settings for a while."""
    shown = ", ".join(f"current_setting('{name}')" for name in FOR_NOW)
    before = alone.exec_driver_sql(f"SELECT {shown}").one()
    _apply_settings(alone, FOR_NOW)
    try:
        yield
    finally:
        _apply_settings(alone, dict(zip(FOR_NOW, before, strict=True)))


def _apply_settings(alone: sa.Connection, settings: dict[str, str]) -> None:
    made = ", ".join(f"set_config('{name}', :{name}, false)" for name in settings)
    alone.execute(sa.text(f"SELECT {made}"), settings)


@contextmanager
def _collect_warnings(alone: sa.Connection) -> Iterator[list[Any]]:
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
