"""Statements about many rows, for each kind of database: others wait meanwhile.

PostgreSQL takes a list as one value. With a name for each value in the statement, or a
statement for each row, it and its driver take several times as long.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

_SQLITE = sqlite.dialect()
AT_ONCE = 10_000
"""Values in one statement: databases have a limit."""
Among = Callable[[sa.Column[Any], str], sa.ColumnElement[bool]]
"""That a column has one of the values given under a name."""
Kinds = Mapping[str, sa.Executable]
"""A statement by the kind of database, as SQLAlchemy calls it."""


def _in_list(column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
    return column.in_(sa.bindparam(name, expanding=True))


def _in_array(column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
    return column == sa.any_(_array(column, name))


def _array(column: sa.Column[Any], name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=sa.ARRAY(column.type))


def kinds(make: Callable[[Among], sa.Executable]) -> Kinds:
    """A statement that says which rows by a list."""
    return {"sqlite": make(_in_list), "postgresql": make(_in_array)}


def evened(values: Sequence[Any]) -> list[Any]:
    """For SQLite: values of a list, the last one again and again up to a power of two.
    There is a statement for each length: so there are few of them, made once and kept.
    """
    even = 1 << (len(values) - 1).bit_length()
    return [*values, *[values[-1]] * (even - len(values))]


def insert_columns(table: sa.Table) -> sa.Executable:
    """For PostgreSQL: rows of one trial, a list for each column but that."""
    own = [column for column in table.c if column.name != "trial"]
    lists = [sa.func.unnest(_array(column, f"all_{column.name}")) for column in own]
    rows = sa.select(sa.bindparam("at_trial", type_=table.c.trial.type), *lists)
    return table.insert().from_select([table.c.trial, *own], rows)


class DriverRows:
    """For SQLite: rows of one trial as its driver takes them. SQLAlchemy takes longer
    to look at each value than SQLite to write it.
    """

    def __init__(self, table: sa.Table) -> None:
        own = [column for column in table.c if column.name != "trial"]
        names, marks = ", ".join(["trial", *(one.name for one in own)]), ", ?" * len(own)
        self.statement = f"INSERT INTO {table.name} ({names}) VALUES (?{marks})"
        self._names = [column.name for column in own]
        kept = [(one.name, one.type) for one in own]
        self._kinds = [(name, kind) for name, kind in kept if isinstance(kind, sa.TypeDecorator)]

    def rows(self, trial: int, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        """The values of each row, as they are stored."""
        for name, kind in self._kinds:
            stored = kind.process_bind_param
            rows = [{**row, name: stored(row[name], _SQLITE)} for row in rows]
        return [(trial, *map(row.__getitem__, self._names)) for row in rows]


def pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many at once as a statement takes."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))
