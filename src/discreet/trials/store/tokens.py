"""Who may come in where trials are a service: tokens, the logins of browsers, and the
trials that were published. Of a secret only its SHA-256 is kept.
"""

import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import sqlalchemy as sa
from sqlalchemy import Column, Float, Integer, LargeBinary, MetaData, String, Table

from discreet.errors import StoreError
from discreet.trials.store.database import Database
from discreet.trials.store.tables import TrialTables

UNNOTED = (
    "the token is revoked, and of no use any more; but the database was too busy to note that in "
    "the trial's audit trail"
)
metadata = MetaData()
tokens = Table(
    "discreet_tokens",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("trial", String(200)),
    Column("site", String(200)),
    Column("participant", String(100)),
    Column("created", Float, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
    Column("used", Float),
)
logins = Table(
    "discreet_logins",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),
    Column("token", Integer, nullable=False),
    Column("expires", Float, nullable=False),
)
codes = Table(
    "discreet_login_codes",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True),
    Column("token", Integer, nullable=False),
    Column("expires", Float, nullable=False),
)
published = Table(
    "discreet_published",
    metadata,
    Column("trial", String(200), primary_key=True),
    Column("since", Float, nullable=False),
    Column("by", String(200), nullable=False),
)


@dataclass(frozen=True)
class Token:
    """What a token lets its holder do; the secret itself is nowhere kept."""

    number: int
    name: str
    role: str
    trial: str | None
    """The one trial it is for; None: all."""
    site: str | None
    """The site it is bound to."""
    participant: str | None
    """The one assignment that a participant answers."""
    created: float
    created_by: str
    expires: float | None
    revoked: float | None
    used: float | None
    """When it was used last, to the minute."""

    def is_valid(self, now: float) -> bool:
        """Whether it opens anything at a time."""
        return self.revoked is None and (self.expires is None or now < self.expires)


_columns = [tokens.c[field.name] for field in fields(Token)]
_by_hash = sa.select(*_columns).where(tokens.c.hash == sa.bindparam("hash"))
_by_login = (
    sa.select(*_columns)
    .join(logins, logins.c.token == tokens.c.number)
    .where(logins.c.hash == sa.bindparam("hash"), logins.c.expires > sa.bindparam("now"))
)
_by_code = (
    sa.select(*_columns)
    .join(codes, codes.c.token == tokens.c.number)
    .where(codes.c.hash == sa.bindparam("hash"), codes.c.expires > sa.bindparam("now"))
)
_publish = sa.text(
    f'INSERT INTO {published.name} (trial, since, "by") VALUES (:trial, :since, :by) '
    "ON CONFLICT DO NOTHING"
)


class TokenTable:
    """The tokens, logins and published trials of one database.

    What is done for one trial is noted in its audit trail, in the same transaction: one
    is never without the other. Such a transaction waits for the trial's; in a service
    it has a store of its own, `noting`, so that no login and no look at a token waits
    with it (other notes do). A revocation takes effect at once, and is noted
    afterwards.
    """

    def __init__(self, store: Database, noting: Database | None = None) -> None:
        self.database = store
        self._noting = noting or store
        with store.begin(schema=True) as connection:
            metadata.create_all(connection)

    def now(self) -> float:
        """The time, by the one clock of the database."""
        with self._reading() as connection:
            return self._now(connection)

    def try_to_write(self) -> None:
        """Write a row, delete it, and commit: an error if the disk is full or the
        database takes no writes. SQLite and a server write both steps to their logs.
        """
        hash = secrets.token_bytes(32)
        with self._noting.begin() as connection:
            connection.execute(logins.insert(), {"hash": hash, "token": 0, "expires": 0.0})
            connection.execute(logins.delete().where(logins.c.hash == hash))

    # --- tokens -----------------------------------------------------------------------

    def add(self, hash: bytes, made: Token) -> Token:
        """Keep a token, under a number of its own and the time of the database."""
        with self._noting.begin() as connection:
            row = {field.name: getattr(made, field.name) for field in fields(Token)}
            row |= {"hash": hash, "created": self._now(connection)}
            del row["number"]
            connection.execute(tokens.insert(), row)
            token = Token(*connection.execute(_by_hash, {"hash": hash}).one())
            self._audit_creation(connection, token)
            return token

    def find(self, hash: bytes) -> Token | None:
        """The token of a secret, valid or not."""
        with self._reading() as connection:
            found = connection.execute(_by_hash, {"hash": hash}).one_or_none()
        return None if found is None else Token(*found)

    def list_all(self) -> list[Token]:
        """Every token, the newest first."""
        newest = sa.select(*_columns).order_by(tokens.c.number.desc())
        with self._reading() as connection:
            return [Token(*row) for row in connection.execute(newest)]

    def find_valid(self, numbers: Collection[int]) -> set[int]:
        """Which of these tokens open anything now."""
        wanted = sa.select(*_columns).where(tokens.c.number.in_(sorted(numbers)))
        with self._reading() as connection:
            now = self._now(connection)
            found = [Token(*row) for row in connection.execute(wanted)]
        return {token.number for token in found if token.is_valid(now)}

    def revoke(self, number: int, by: str) -> bool:
        """Make a token and its logins of no use from now on; false if there is none."""
        here = tokens.c.number == number
        with self.database.begin() as connection:
            now = self._now(connection)
            found = connection.execute(sa.select(*_columns).where(here)).one_or_none()
            fresh = tokens.update().where(here & tokens.c.revoked.is_(None))
            done = connection.execute(fresh.values(revoked=now)).rowcount
            for table in (logins, codes):
                connection.execute(table.delete().where(table.c.token == number))
        if done and found is not None:
            self._audit_revocation(Token(*found), by)
        return found is not None

    def note_use(self, number: int) -> None:
        """Note that a token was used."""
        with self.database.begin() as connection:
            here = tokens.update().where(tokens.c.number == number)
            connection.execute(here.values(used=self._now(connection)))

    # --- logins -----------------------------------------------------------------------

    def log_in(self, hash: bytes, token: int, seconds: float) -> None:
        """Keep the login of a browser for a while, and forget what is over."""
        with self.database.begin() as connection:
            now = self._now(connection)
            connection.execute(logins.delete().where(logins.c.expires < now))
            row = {"hash": hash, "token": token, "expires": now + seconds}
            connection.execute(logins.insert(), row)

    def find_login(self, hash: bytes) -> Token | None:
        """The token that a browser has logged in with."""
        with self._reading() as connection:
            values = {"hash": hash, "now": self._now(connection)}
            found = connection.execute(_by_login, values).one_or_none()
        return None if found is None else Token(*found)

    def log_out(self, hash: bytes) -> None:
        """Forget a login."""
        with self.database.begin() as connection:
            connection.execute(logins.delete().where(logins.c.hash == hash))

    def add_code(self, hash: bytes, token: Token, seconds: float, by: str | None) -> None:
        """Store a login code for a while, and delete codes that have expired. If
        somebody else makes it for the holder of the token, note that in the audit
        trail.
        """
        store = self.database if by is None else self._noting
        with store.begin() as connection:
            now = self._now(connection)
            connection.execute(codes.delete().where(codes.c.expires < now))
            row = {"hash": hash, "token": token.number, "expires": now + seconds}
            connection.execute(codes.insert(), row)
            if by is not None:
                self._audit(connection, token.trial, by, f"token link {token.number}", token.site)

    def find_code(self, hash: bytes) -> Token | None:
        """Return the token of a login code that has not expired, valid or not."""
        with self._reading() as connection:
            values = {"hash": hash, "now": self._now(connection)}
            row = connection.execute(_by_code, values).one_or_none()
        return None if row is None else Token(*row)

    def use_code(self, hash: bytes) -> bool:
        """Delete a login code; return whether this call deleted it."""
        with self.database.begin() as connection:
            return connection.execute(codes.delete().where(codes.c.hash == hash)).rowcount == 1

    # --- what was published -----------------------------------------------------------

    def publish(self, trial: str, by: str) -> None:
        """Let anyone see what may be published of a trial."""
        with self._noting.begin() as connection:
            row = {"trial": trial, "since": self._now(connection), "by": by}
            if connection.execute(_publish, row).rowcount:
                self._audit(connection, trial, by, "publish")

    def unpublish(self, trial: str, by: str) -> None:
        """Show a trial only to callers whose token allows it."""
        with self._noting.begin() as connection:
            gone = published.delete().where(published.c.trial == trial)
            if connection.execute(gone).rowcount:
                self._audit(connection, trial, by, "unpublish")

    def list_published(self) -> dict[str, float]:
        """The trials that anyone may see, and since when."""
        found = sa.select(published.c.trial, published.c.since)
        with self._reading() as connection:
            return {trial: since for trial, since in connection.execute(found)}

    # --- how --------------------------------------------------------------------------

    def _audit_creation(self, connection: sa.Connection, token: Token) -> None:
        """That a token was made, or a person invited."""
        about = (connection, token.trial, token.created_by)
        if token.participant is not None:
            self._audit(*about, "invite", token.site, people=1)
        else:
            self._audit(*about, f"token create {token.number}", token.site)

    def _audit_revocation(self, token: Token, by: str) -> None:
        """That a token was revoked, which it is whatever becomes of this."""
        try:
            with self._noting.begin() as connection:
                self._audit(connection, token.trial, by, f"token revoke {token.number}", token.site)
        except StoreError:
            raise StoreError(UNNOTED) from None

    def _audit(
        self,
        connection: sa.Connection,
        trial: str | None,
        who: str,
        call: str,
        site: str | None = None,
        people: int = 0,
    ) -> None:
        """Into the audit trail of the trial that it is for; what is for all is in none."""
        if trial is None:
            return
        dialect = self.database.dialect
        tables = TrialTables(connection, trial, dialect.locks_rows, dialect.clock)
        if tables.lock() is not None:
            tables.add_audit_entry(who, call, people, site)
            tables.flush()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self.database.begin(reading=True) as connection:
            yield connection

    def _now(self, connection: sa.Connection) -> float:
        clock = self.database.dialect.clock
        return time.time() if clock is None else float(connection.execute(clock).scalar_one())
