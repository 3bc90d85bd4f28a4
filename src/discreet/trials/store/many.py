"""Statements about many rows, for each kind of database: others wait meanwhile.

PostgreSQL takes a list as one value. With a name for each value in the statement, or a
statement for each row, it and its driver take several times as long.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

_SQLITE = sqlite.dialect()
AT_ONCE = 10_000
"""Values in one statement: databases have a limit."""
Among = Callable[[sa.Column[Any]], sa.ColumnElement[bool]]
"""That a row is one of the trial, and a column of it has one of the values of a
list.
"""
Statement = sa.Select[Any] | sa.Update
_MARKS = "LISTED"


class Listed:
    """A statement that says which rows by a list, in the end of it."""

    def __init__(self, make: Callable[[Among], Statement]) -> None:
        self.statement = make(_in_arrays)
        """For PostgreSQL: it takes the list as `listed`, and the trial as often as
        `trials`.
        """
        self._make = make

    @cached_property
    def _driver(self) -> tuple[str, list[str]]:
        """For SQLite: the statement, and the names of what it takes before the list."""
        made = self._make(_in_marks).compile(dialect=_SQLITE)
        return str(made), list(made.positiontup or ())

    def driver(self, values: Mapping[str, Any], listed: Sequence[Any]) -> tuple[str, Any]:
        """The same for SQLite as its driver takes it: SQLAlchemy takes longer to make
        a place for each value of a list than SQLite to find its row.
        """
        text, names = self._driver
        some = evened(listed)
        marks = ", ".join("?" * len(some))
        return text.replace(_MARKS, marks), (*(values[name] for name in names), *some)


def _in_marks(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    here = column.table.c.trial == sa.bindparam("at_trial")
    return here & sa.literal_column(f"{column} IN ({_MARKS})")


def _in_arrays(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """For PostgreSQL, which knows how large a table is, but until it has counted not
    how much of it is one trial's. If it is told that all rows are of one trial, it may
    think they are few, and read them all; and if it is told how long the list is, that
    reading a table of some thousands is quicker. So both are values to be looked up.
    """
    trial = column.table.c.trial
    both = (_array(trial, "trials"), _array(column, "listed"))
    values = [sa.func.unnest(sa.select(one).scalar_subquery()) for one in both]
    return sa.tuple_(trial, column).in_(sa.select(*values))


def _array(column: sa.Column[Any], name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=sa.ARRAY(column.type))


def evened(values: Sequence[Any]) -> list[Any]:
    """For SQLite: values of a list, the last one again and again up to a power of two.
    There is a statement for each length: so there are few of them, read once and kept.
    """
    even = 1 << (len(values) - 1).bit_length()
    return [*values, *[values[-1]] * (even - len(values))]


class Inserts:
    """Rows of one trial that are entered in a table, as tuples in the order of its
    columns after the trial.
    """

    def __init__(self, table: sa.Table) -> None:
        own = [column for column in table.c if column.name != "trial"]
        self._names = [column.name for column in own]
        lists = [sa.func.unnest(_array(column, f"all_{column.name}")) for column in own]
        rows = sa.select(sa.bindparam("at_trial", type_=table.c.trial.type), *lists)
        self.statement = table.insert().from_select([table.c.trial, *own], rows)
        """For PostgreSQL: it takes a list for each column."""
        names, marks = ", ".join(["trial", *self._names]), ", ?" * len(own)
        self.driver = f"INSERT INTO {table.name} ({names}) VALUES (?{marks})"
        """For SQLite, as its driver takes it: SQLAlchemy takes longer to look at each
        value than SQLite to write it.
        """
        kinds = [(place, column.type) for place, column in enumerate(own, start=1)]
        self._kinds = [(place, kind) for place, kind in kinds if isinstance(kind, sa.TypeDecorator)]

    def columns(self, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
        """The values of each column."""
        columns = zip(*rows, strict=True)
        return {f"all_{name}": list(one) for name, one in zip(self._names, columns, strict=True)}

    def driver_rows(self, trial: int, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The values of each row, as SQLite stores them."""
        found = [(trial, *row) for row in rows]
        for place, kind in self._kinds:
            stored = kind.process_bind_param
            found = [
                (*row[:place], stored(row[place], _SQLITE), *row[place + 1 :]) for row in found
            ]
        return found


def pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many at once as a statement takes."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))
