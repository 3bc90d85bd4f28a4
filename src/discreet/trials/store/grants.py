"""The tables of trials on a PostgreSQL server, and who may do what with them, as SQL
that their owner runs.
"""

import re
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from discreet.errors import InvalidInputError
from discreet.trials.store.schema import (
    NO_STATISTICS,
    SCHEMA,
    about,
    assignments,
    audit_trail,
    counts,
    erasing,
    events,
    metadata,
    outcomes,
    participants,
    requests,
    round_keys,
    secrets,
    trials,
)
from discreet.trials.store.tokens import codes, logins, published, tokens
from discreet.trials.store.tokens import metadata as doors

PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,62}")
"""Names that need no more than quotes."""
NOBODY = ("public", "none")
"""Words that the server takes for no role of its own, quoted or not."""
USUAL = "public"
"""The schema in which tables are if nobody says otherwise."""

Given = dict[sa.Table, str]

MONITOR: Given = {
    about: "SELECT",
    trials: "SELECT",
    events: "SELECT",
    counts: "SELECT",
    erasing: "SELECT",
}
"""What status, list, transcript and report read."""
SITE: Given = {
    about: "SELECT",
    trials: "SELECT, UPDATE (seq, head, participants, state)",
    events: "SELECT, INSERT",
    assignments: "SELECT, INSERT, UPDATE (token, state, deadline)",
    counts: "SELECT, INSERT, UPDATE (open, recorded), DELETE",
    outcomes: "SELECT, INSERT, UPDATE (units)",
    participants: "SELECT, INSERT",
    secrets: "SELECT",
    round_keys: "SELECT, INSERT, DELETE",
    requests: "SELECT, INSERT",
    audit_trail: "SELECT (trial, entry, at), INSERT",
    erasing: "SELECT, INSERT, DELETE",
}
"""What people are enrolled and outcomes told with. Whoever completes a round draws its
release, and so must read its outcomes and its key.
"""
MANAGER: Given = SITE | {
    trials: f"{SITE[trials]}, INSERT",
    secrets: "SELECT, INSERT",
    audit_trail: "SELECT, INSERT",
}
"""All that the library does but make, change and restore tables."""
SERVICE: Given = MANAGER | {
    tokens: "SELECT, INSERT, UPDATE (revoked, used)",
    logins: "SELECT, INSERT, DELETE",
    codes: "SELECT, INSERT, DELETE",
    published: "SELECT, INSERT, DELETE",
}
"""What `discreet serve` does: of people who come in, nobody else needs a role."""
NUMBERED = (trials.c.trial, tokens.c.number)
"""What the database numbers."""
ALL = (*metadata.sorted_tables, *doors.sorted_tables)


def make_grants(
    managers: Sequence[str] = (),
    sites: Sequence[str] = (),
    monitors: Sequence[str] = (),
    schema: str = USUAL,
    services: Sequence[str] = (),
) -> str:
    """SQL for the owner of the database: tables, if there are none, and the rights of
    roles, which lose all others that they had on these tables. It is one transaction,
    and may be run again.

    Managers create and conduct trials, sites enrol people and tell outcomes, monitors
    see what anyone may see; a service does all of it, and keeps tokens. Nobody may
    change or delete a public event.
    """
    roles = {"service": services, "manager": managers, "site": sites, "monitor": monitors}
    names = [_check_role(f"the {kind}", name) for kind, some in roles.items() for name in some]
    if not names:
        raise InvalidInputError("name at least one role: a service, a manager, a site or a monitor")
    if len(set(names)) < len(names):
        raise InvalidInputError(
            "name each role once: a manager may do everything that the others may"
        )
    place = _quote_role(_check_role("the schema", schema, taken=()))
    lines = [
        *_start_statements(place, schema),
        *_create_statements(),
        *_revoke_statements(place, names),
    ]
    kinds = ((services, SERVICE), (managers, MANAGER), (sites, SITE), (monitors, MONITOR))
    for some, rights in kinds:
        for name in some:
            lines += _grant_statements(place, _quote_role(name), rights)
    return "\n".join([*lines, "COMMIT;", ""])


def _check_role(what: str, name: str, taken: Sequence[str] = NOBODY) -> str:
    """A name that is safe in quotes, and means what it says."""
    if not isinstance(name, str) or not PLAIN.fullmatch(name) or name in taken:
        raise InvalidInputError(
            f"{what} must have a plain name: up to 63 letters, digits, _ . @ or -, and none of "
            f"{', '.join(NOBODY)}"
        )
    return name


def _quote_role(name: str) -> str:
    return f'"{name}"'


def _start_statements(place: str, schema: str) -> Iterator[str]:
    """A transaction that works in the schema, which is made if it is not there."""
    yield "-- The tables of discreet, and who may do what with them: for their owner, in psql."
    yield "BEGIN;"
    yield "SELECT pg_advisory_xact_lock(hashtext('discreet_schema'));"
    yield (
        f"DO $$ BEGIN IF to_regnamespace('{place}') IS NULL THEN CREATE SCHEMA {place}; "
        "END IF; END $$;"
    )
    yield f"SET LOCAL search_path = {place};"
    if schema != USUAL:
        yield f"-- Addresses of trials then end with ?options=-csearch_path%3D{schema}"


def _create_statements() -> Iterator[str]:
    """Yield what makes the tables of this version; others are refused."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in ALL:
        made = sa.schema.CreateTable(table, if_not_exists=True).compile(dialect=dialect)
        yield f"{_trim(str(made))};"
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            found = sa.schema.CreateIndex(index, if_not_exists=True).compile(dialect=dialect)
            yield f"{_trim(str(found))};"
    yield f"{NO_STATISTICS};"
    yield f"INSERT INTO {about.name} SELECT {SCHEMA} WHERE NOT EXISTS (SELECT FROM {about.name});"
    yield (
        f"DO $$ BEGIN IF (SELECT max(version) FROM {about.name}) <> {SCHEMA} THEN "
        "RAISE EXCEPTION 'these tables are of another version of discreet: use the one that "
        "made them, or another database'; END IF; END $$;"
    )


def _trim(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines())


def _revoke_statements(place: str, names: Sequence[str]) -> Iterator[str]:
    """Nobody has a right that is not given below."""
    roles = ", ".join(["PUBLIC", *map(_quote_role, names)])
    for table in ALL:
        yield f"REVOKE ALL ON {place}.{table.name} FROM {roles};"
    for column in NUMBERED:
        yield f"REVOKE ALL ON SEQUENCE {_sequence_statement(place, column)} FROM {roles};"


def _grant_statements(place: str, role: str, rights: Given) -> Iterator[str]:
    yield f"GRANT USAGE ON SCHEMA {place} TO {role};"
    for table in ALL:
        if table in rights:
            yield f"GRANT {rights[table]} ON {place}.{table.name} TO {role};"
    for column in NUMBERED:
        if "INSERT" in rights.get(column.table, ""):
            yield f"GRANT USAGE ON SEQUENCE {_sequence_statement(place, column)} TO {role};"
    if outcomes in rights:
        yield (
            "DO $$ BEGIN IF current_setting('server_version_num')::integer >= 170000 THEN "
            f"EXECUTE 'GRANT MAINTAIN ON {place}.{outcomes.name} TO {role}'; END IF; END $$;"
        )


def _sequence_statement(place: str, column: "sa.Column[int]") -> str:
    """The sequence that numbers trials, or tokens."""
    return f"{place}.{column.table.name}_{column.name}_seq"
