"""All trials of a database in one transaction: read at one moment, copied, replaced."""

import sqlalchemy as sa

from discreet.trials.store import schema
from discreet.trials.store.many import AT_ONCE
from discreet.trials.store.schema import erasing, metadata, sealed, trials
from discreet.trials.store.session import Session, at

KEPT = [table for table in metadata.sorted_tables if table not in (schema.about, trials)]
"""The tables with rows of each trial."""
COPIED = [table for table in KEPT if table is not erasing]
"""What a copy has: in its files there is nothing that was erased before."""


def _rows(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    """A trial's rows, without its number, in order, a piece at a time."""
    columns = [column for column in table.c if column.name != "trial"]
    found = sa.select(*columns).where(at(table)).order_by(*table.primary_key.columns)
    return found.execution_options(yield_per=AT_ONCE)


class Whole:
    """The trials of a database, in one transaction or at one moment."""

    def __init__(
        self, connection: sa.Connection, locks_rows: bool, clock: sa.TextClause | None
    ) -> None:
        self.connection = connection
        self.locks_rows = locks_rows
        self.clock = clock

    def trials(self) -> list[Session]:
        """All of them, by name."""
        names = sorted(self.connection.execute(sa.select(trials.c.name)).scalars())
        return [one for name in names if (one := self.trial(name)) is not None]

    def trial(self, name: str) -> Session | None:
        """The trial of a name, if there is one."""
        session = Session(self.connection, name, self.locks_rows, self.clock)
        return None if session.look() is None else session

    def sound(self) -> bool:
        """Whether a file of SQLite is whole."""
        found = self.connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        return bool(found == "ok")

    def copy(self, trial: Session, replaced: Session | None = None) -> Session:
        """Enter a trial of another database under a number that none ever had, in the
        place of one of this name.
        """
        if replaced is not None:
            replaced.run(trials.update().where(at(trials)), name="-")  # no trial's name
        row = trial.row._asdict()
        del row["trial"]
        self.connection.execute(trials.insert(), {"name": trial.name, **row})
        made = Session(self.connection, trial.name, self.locks_rows, self.clock)
        made.look()
        for table in COPIED:
            for some in trial.run(_rows(table)).partitions():
                made.insert(table, [tuple(one) for one in some])
                made.flush()
        if replaced is not None:
            _remove(replaced)
        return made


def _remove(trial: Session) -> None:
    """Take a trial away. Its outcomes are overwritten and not deleted, which could
    leave copies of others behind; see `schema.Units`.
    """
    here = sealed.update().where(at(sealed), sealed.c.units.is_not(None))
    trial.run(here.values(units=schema.ERASED))
    for table in (*KEPT, trials):
        if table is not sealed:
            trial.run(table.delete().where(at(table)))
