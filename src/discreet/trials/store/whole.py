"""All trials of a database in one transaction: read at one moment, copied, replaced."""

import sqlalchemy as sa

from discreet.trials.store import schema
from discreet.trials.store.schema import erasing, metadata, outcomes, trials
from discreet.trials.store.tables import MAX_LISTED, TrialTables, at

KEPT = [table for table in metadata.sorted_tables if table not in (schema.about, trials)]
"""The tables with rows of each trial."""
COPIED = [table for table in KEPT if table is not erasing]
"""What a copy has: in its files there is nothing that was erased before."""


def _rows(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    """A trial's rows, without its number, in order, a piece at a time."""
    columns = [column for column in table.c if column.name != "trial"]
    found = sa.select(*columns).where(at(table)).order_by(*table.primary_key.columns)
    return found.execution_options(yield_per=MAX_LISTED)


class Whole:
    """The trials of a database, in one transaction or at one moment."""

    def __init__(
        self, connection: sa.Connection, locks_rows: bool, clock: sa.TextClause | None
    ) -> None:
        self.connection = connection
        self.locks_rows = locks_rows
        self.clock = clock

    def trials(self) -> list[TrialTables]:
        """All of them, by name."""
        names = sorted(self.connection.execute(sa.select(trials.c.name)).scalars())
        return [one for name in names if (one := self.trial(name)) is not None]

    def trial(self, name: str) -> TrialTables | None:
        """The trial of a name, if there is one."""
        tables = TrialTables(self.connection, name, self.locks_rows, self.clock)
        return None if tables.lock() is None else tables

    def sound(self) -> bool:
        """Whether a file of SQLite is whole."""
        found = self.connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        return bool(found == "ok")

    def copy(self, trial: TrialTables, replaced: TrialTables | None = None) -> TrialTables:
        """Enter a trial of another database under a number that none ever had, in the
        place of one of this name.
        """
        if replaced is not None:
            replaced.run(trials.update().where(at(trials)), name="-")  # no trial's name
        row = trial.row._asdict()
        del row["trial"]
        self.connection.execute(trials.insert(), {"name": trial.name, **row})
        made = TrialTables(self.connection, trial.name, self.locks_rows, self.clock)
        made.lock()
        for table in COPIED:
            for some in trial.run(_rows(table)).partitions():
                made.insert_rows(table, [tuple(one) for one in some])
        if replaced is not None:
            _remove(replaced)
        return made


def _remove(trial: TrialTables) -> None:
    """Take a trial away. Its outcomes are overwritten and not deleted, which could
    leave copies of others behind; see `schema.Units`.
    """
    here = outcomes.update().where(at(outcomes), outcomes.c.units.is_not(None))
    trial.run(here.values(units=schema.ERASED))
    for table in (*KEPT, trials):
        if table is not outcomes:
            trial.run(table.delete().where(at(table)))
