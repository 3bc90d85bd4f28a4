"""One transaction on one trial. No method means anything by itself: the meaning is in
desk.py.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import sqlalchemy as sa

from discreet.errors import StoreError
from discreet.trials.chain import Event, next_event
from discreet.trials.store import schema
from discreet.trials.store.many import Inserts, Listed, pieces
from discreet.trials.store.schema import (
    OPEN,
    TOLD,
    Assigned,
    Batched,
    Row,
    assignments,
    batches,
    erasing,
    events,
    keys,
    rounds,
    sealed,
    trials,
    waiting,
)


def at(table: sa.Table, *columns: str) -> sa.ColumnElement[bool]:
    """That these columns of a trial's rows have the values given as `at_<column>`."""
    return sa.and_(*(table.c[name] == sa.bindparam(f"at_{name}") for name in ("trial", *columns)))


def _columns(table: sa.Table, row: type[NamedTuple]) -> list[sa.Column[Any]]:
    return [table.c[name] for name in row._fields]


# Statements are made once: making one takes longer than running it.
_erasing = sa.select(sa.func.max(erasing.c.seq)).where(erasing.c.trial == trials.c.trial)
_look = sa.select(
    *(trials.c[name] for name in Row._fields if name != "erasing"), _erasing.scalar_subquery()
).where(trials.c.name == sa.bindparam("name"))
_look_locked = _look.with_for_update(of=trials)
_inserts = {
    table: Inserts(table)
    for table in schema.metadata.sorted_tables
    if "trial" in table.c and table is not trials
}
_save = trials.update().where(at(trials))
_events = sa.select(*_columns(events, Event)).where(at(events)).order_by(events.c.seq)
_first_event = sa.select(*_columns(events, Event)).where(at(events), events.c.seq == 1)
_hash_at = sa.select(events.c.hash).where(at(events, "seq"))
_anyone = sa.select(*_columns(assignments, Assigned))
_assigned = _anyone.where(at(assignments))
_assigned_one = _assigned.where(assignments.c.number == sa.bindparam("number"))
_assigned_many = Listed(lambda among: _anyone.where(among(assignments.c.number)))
_late = _assigned.where(waiting, assignments.c.deadline < sa.bindparam("now"))
_mark = Listed(
    lambda among: (
        assignments.update().values(state=sa.bindparam("new")).where(among(assignments.c.number))
    )
)
_batches = sa.select(*_columns(batches, Batched)).where(at(batches))
_count_batch = batches.update().where(at(batches, "arm", "phase"))
_close_batch = batches.delete().where(at(batches, "arm", "phase"))
_reseal = sealed.update().where(at(sealed, "arm", "phase", "number"), sealed.c.units.is_not(None))
_stored = sa.type_coerce(sealed.c.units, sa.BigInteger)
_unseal_sum = sa.select(sa.func.sum(_stored - schema.OFFSET), sa.func.count()).where(
    at(sealed, "arm", "phase")
)
_count_sealed = sa.select(sa.func.count()).where(at(sealed, "arm", "phase"))
_unseal = sa.select(_stored - schema.OFFSET).where(at(sealed, "arm", "phase"))
_erase = (
    sealed.update()
    .where(at(sealed, "arm", "phase"), sealed.c.units.is_not(None))
    .values(units=schema.ERASED)
)
_erase_all = (
    sealed.update()
    .where(at(sealed), sealed.c.units.is_not(None), sealed.c.units != schema.ERASED)
    .values(units=schema.ERASED)
)
_answers = (
    sa.select(sealed.c.number, sealed.c.units)
    .where(at(sealed, "arm"), sealed.c.phase > sa.bindparam("after"))
    .order_by(sealed.c.phase)
)
_erase_answers = (
    sealed.update()
    .where(
        at(sealed, "arm"),
        sealed.c.phase > sa.bindparam("after"),
        sealed.c.phase <= sa.bindparam("through"),
        sealed.c.units.is_not(None),
    )
    .values(units=schema.ERASED)
)
_places = (
    sa.select(assignments.c.arm, assignments.c.phase)
    .where(at(assignments))
    .order_by(assignments.c.number)
)
_round_keys = sa.select(rounds.c.round, rounds.c.key).where(at(rounds)).order_by(rounds.c.round)
_forget_round = rounds.delete().where(at(rounds, "round"))
_is_open = _assigned.where(assignments.c.state == OPEN)
_open = sa.select(sa.func.count()).where(at(assignments), assignments.c.state == OPEN)
_last_past = (
    sa.select(assignments.c.number)
    .where(at(assignments), assignments.c.deadline < sa.bindparam("now"))
    .order_by(assignments.c.deadline.desc(), assignments.c.number.desc())
    .limit(1)
)
_bring_forward = assignments.update().where(
    at(assignments), assignments.c.deadline > sa.bindparam("latest")
)
_reissue = assignments.update().where(at(assignments, "number"))


class Session:
    """One transaction on one trial. Every method is a statement or two.

    Writes are buffered, so that many tasks in one transaction cost one statement a
    table. A statement whose result they may change flushes them first, and so does the
    end of the transaction.
    """

    def __init__(
        self, connection: sa.Connection, name: str, lock: bool, clock: sa.TextClause | None = None
    ) -> None:
        self.connection = connection
        self.name = name
        self._lock = lock
        self.kind = connection.dialect.name
        self.clock = clock
        """How the server tells the time; None: the machine's is the one clock."""
        self._row: Row | None = None
        self._counts: dict[tuple[int, int], Batched] | None = None
        self._people: dict[int, Assigned] = {}
        """Assignments as they are now, of those that were read or entered."""
        self._past: list[int] | None = None
        """Numbers of the assignments that were open past their deadline at first."""
        self._keys: dict[int, bytes] | None = None
        """Keys of the rounds that are not revealed, once they were read."""
        self._inserts: dict[sa.Table, list[tuple[Any, ...]]] = {}
        self._marks: list[int] = []
        """Assignments whose state is to be written."""
        self._counted: dict[tuple[int, int], bool] = {}
        """Batches whose counts are to be written, and whether each has a row."""

    def look(self) -> Row | None:
        """The trial now, locked until the end of the transaction; None if there is none
        of this name.
        """
        statement = _look_locked if self._lock else _look
        found = self.connection.execute(statement, {"name": self.name}).one_or_none()
        self._row = None if found is None else Row._make(found)
        return self._row

    @property
    def row(self) -> Row:
        """The trial as of `look` and what was changed since."""
        if self._row is None:
            raise StoreError(f"there is no trial {self.name!r} here")
        return self._row

    @row.setter
    def row(self, row: Row) -> None:
        self._row = row

    def create(self, protocol: str, head: str, key: bytes, state: str) -> bool:
        """Enter a new trial; false if another process was quicker."""
        row: dict[str, Any] = {"name": self.name, "protocol": protocol, "state": state}
        row |= {"seq": 0, "head": head, "people": 0}
        try:
            with self.connection.begin_nested():
                self.connection.execute(trials.insert(), row)
        except sa.exc.IntegrityError:
            return False
        self.look()
        self.insert(keys, [(key,)])
        return True

    def append(self, kind: str, body: dict[str, Any]) -> None:
        """Write a public event and move the head of the chain; `save` makes it
        count.
        """
        row = self.row
        event = next_event(row.head, row.seq + 1, kind, body)
        self.insert(events, [event])
        self._row = row._replace(seq=event.seq, head=event.hash)

    def save(self, state: str) -> None:
        """Write the trial's row: the head of the chain, how many people there are, the
        state that follows.
        """
        row = self._row = self.row._replace(state=state)
        self.run(_save, seq=row.seq, head=row.head, people=row.people, state=state)

    def events(self) -> Iterator[Event]:
        """The public record, in order."""
        return map(Event._make, self._rows(_events))

    def first_event(self) -> Event | None:
        """Return the first event of the record, if there is one."""
        row = self.run(_first_event).one_or_none()
        return None if row is None else Event._make(row)

    def hash_at(self, seq: int) -> str | None:
        """The hash of one event."""
        found: str | None = self.run(_hash_at, at_seq=seq).scalar_one_or_none()
        return found

    # --- people -----------------------------------------------------------------------

    def assign(self, rows: Sequence[Assigned]) -> None:
        """Enter assignments."""
        self.insert(assignments, rows)
        self._people |= {row.number: row for row in rows}
        row = self.row
        self._row = row._replace(people=row.people + len(rows))

    def assigned(self, numbers: Sequence[int]) -> dict[int, Assigned]:
        """Assignments by their numbers."""
        new = [number for number in numbers if number not in self._people]
        for some in pieces(new) if new else ():
            if len(new) == 1:
                about = {"at_trial": self.row.trial, "number": some[0]}
                found = self.connection.execute(_assigned_one, about).all()
            else:
                found = self.run_listed(_assigned_many, some).all()
            self._people |= {row[0]: Assigned(*row) for row in found}
        return {number: self._people[number] for number in numbers if number in self._people}

    def late(self, now: float) -> list[Assigned]:
        """Open assignments past their deadline, by the time of this transaction."""
        if self._past is None:
            rows = [Assigned(*row) for row in self.run(_late, now=now)]
            self._people |= {row.number: row for row in rows}
            self._past = [row.number for row in rows]
        past = (self._people[number] for number in self._past)
        return [row for row in past if row.state == OPEN]

    def open_assignments(self, site: str | None) -> list[Assigned]:
        """The assignments whose outcome is not in, in order; of one site, or of all."""
        here = _is_open if site is None else _is_open.where(assignments.c.site == site)
        return [Assigned(*row) for row in self.run(here.order_by(assignments.c.number))]

    def last_past(self, now: float) -> int:
        """The number of the last person whose deadline has passed."""
        return int(self.run(_last_past, now=now).scalar_one_or_none() or 0)

    def reissue(self, row: Assigned, token: str) -> None:
        """Give an assignment another secret."""
        self.run(_reissue, at_number=row.number, token=token)
        self._people[row.number] = row._replace(token=token)

    def bring_forward(self, latest: float) -> None:
        """No deadline is later than this, whoever has told or not."""
        self.run(_bring_forward, latest=latest, deadline=latest)
        self._people, self._past = {}, None

    def close_assignments(self, rows: Sequence[Assigned]) -> None:
        """Note that no outcome of these assignments is waited for any more."""
        self._people |= {row.number: row._replace(state=TOLD) for row in rows}
        self._marks += [row.number for row in rows]

    def batches(self) -> dict[tuple[int, int], Batched]:
        """The counts of all batches that are not released, by (arm, phase)."""
        if self._counts is None:
            self._counts = {(row[0], row[1]): Batched(*row) for row in self.run(_batches)}
        return self._counts

    def count(self, arm: int, phase: int, open: int = 0, told: int = 0) -> None:
        """Add to the counts of a batch."""
        known, slot = self.batches(), (arm, phase)
        self._counted.setdefault(slot, slot in known)
        batch = known.get(slot, Batched(arm, phase, 0, 0))
        known[slot] = batch._replace(open=batch.open + open, told=batch.told + told)

    def close_batch(self, arm: int, phase: int) -> None:
        """Forget the counts of a released batch."""
        self.run(_close_batch, at_arm=arm, at_phase=phase)
        self.batches().pop((arm, phase), None)

    def open_round(self, round: int, key: bytes) -> None:
        """Keep the key of a round that is opened."""
        self.round_keys()[round] = key
        self.insert(rounds, [(round, key)])

    def round_keys(self) -> dict[int, bytes]:
        """The keys of the rounds that are not revealed, in the order of opening."""
        if self._keys is None:
            self._keys = {number: bytes(key) for number, key in self.run(_round_keys)}
        return self._keys

    def reveal(self, through: int) -> list[list[int | str]]:
        """(round, key) of the rounds up to one, to be published; they are kept here no
        longer.
        """
        known = self.round_keys()
        found = {number: known.pop(number) for number in list(known) if number <= through}
        for number in found:
            self.run(_forget_round, at_round=number)
        return [[number, key.hex()] for number, key in found.items()]

    # --- behind the wall --------------------------------------------------------------

    def seal(self, outcomes: Sequence[tuple[Assigned, int | None]]) -> None:
        """Put outcomes, in units, behind the wall; None stands for one that will never
        be released.
        """
        self.insert(sealed, [(row.arm, row.phase, row.number, units) for row, units in outcomes])

    def reseal(self, row: Assigned, units: int) -> None:
        """Correct an outcome, if there is one."""
        self.run(_reseal, at_arm=row.arm, at_phase=row.phase, at_number=row.number, units=units)

    def unseal_sum(self, arm: int, phase: int) -> tuple[int, int]:
        """(sum in units, outcomes) of a batch: for the mechanism that adds the noise,
        and nobody else.
        """
        total, count = self.run(_unseal_sum, at_arm=arm, at_phase=phase).one()
        return int(total or 0), int(count)

    def unseal(self, arm: int, phase: int) -> list[int]:
        """The outcomes of a batch in units: for what is summed of each of them before
        the noise, and nobody else.
        """
        return [int(units) for (units,) in self.run(_unseal, at_arm=arm, at_phase=phase)]

    def erase(self, arm: int, phase: int) -> None:
        """Overwrite the outcomes of a batch; `Store.scrub` makes old copies unreadable
        after the transaction. What is no outcome stays so: a row that grows would move
        others, and leave copies of them behind.
        """
        self.run(_erase, at_arm=arm, at_phase=phase)

    def erase_all(self) -> None:
        """Overwrite all outcomes of the trial."""
        self.run(_erase_all)

    def answers(self, after: int) -> list[tuple[int, int]]:
        """Return (number, units) of the answers that follow those of the first `after`
        participants without a gap.
        """
        answers: list[tuple[int, int]] = []
        for number, units in self.run(_answers, at_arm=0, after=after):
            if number != after + len(answers) + 1:
                break
            answers.append((number, units))
        return answers

    def erase_answers(self, after: int, through: int) -> None:
        """Overwrite the answers of the participants between two numbers."""
        self.run(_erase_answers, at_arm=0, after=after, through=through)

    # --- checks -----------------------------------------------------------------------

    def places_assigned(self) -> Iterator[tuple[int, int]]:
        """(arm, phase) of each person, in order."""
        return map(tuple, self._rows(_places))

    def counts_agree(self) -> bool:
        """Whether each open batch counts as many open assignments and told outcomes as
        there are.

        Batches of phase 0 are those of answers taken in turn, which leave no outcomes
        behind.
        """
        known = self.batches()
        for (arm, phase), batch in known.items():
            if not phase:
                continue
            found = self.run(_count_sealed, at_arm=arm, at_phase=phase).scalar_one()
            if found != batch.told:
                return False
        return bool(self.run(_open).scalar_one() == sum(batch.open for batch in known.values()))

    # --- statements -------------------------------------------------------------------

    def run(self, statement: sa.Executable, **values: Any) -> Any:
        """Run a statement about this trial, after what is buffered."""
        self.flush()
        return self.connection.execute(statement, {"at_trial": self.row.trial, **values})

    def run_listed(self, statement: Listed, listed: Sequence[Any], **values: Any) -> Any:
        """Run a statement about rows of a list, which no buffered row can change."""
        trial = self.row.trial
        if self.kind == "sqlite":
            about = {"at_trial": trial, **values}
            return self.connection.exec_driver_sql(*statement.driver(about, listed))
        about = {"trials": [trial] * len(listed), "listed": listed, **values}
        return self.connection.execute(statement.statement, about)

    def insert(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Buffer rows of this trial, in the order of the table's columns."""
        self._inserts.setdefault(table, []).extend(rows)

    def flush(self) -> None:
        """Write what is buffered."""
        if not (self._inserts or self._marks or self._counted):
            return
        trial, known = self.row.trial, self.batches() if self._counted else {}
        inserts, self._inserts = self._inserts, {}
        marks, self._marks = self._marks, []
        counted, self._counted = self._counted, {}
        inserts.setdefault(batches, []).extend(known[slot] for slot in counted if not counted[slot])
        for table, rows in inserts.items():
            if rows and self.kind == "sqlite":
                many = _inserts[table]
                self.connection.exec_driver_sql(many.driver, many.driver_rows(trial, rows))
            elif rows:
                values = {"at_trial": trial, **_inserts[table].columns(rows)}
                self.connection.execute(_inserts[table].statement, values)
        for some in pieces(marks) if marks else ():
            self.run_listed(_mark, some, new=TOLD)
        counts = [known[slot] for slot in counted if counted[slot]]
        if counts:
            about = [
                {"at_trial": trial, "at_arm": one.arm, "at_phase": one.phase}
                | {"open": one.open, "told": one.told}
                for one in counts
            ]
            self.connection.execute(_count_batch, about)

    def _rows(self, statement: sa.Executable) -> Iterator[Any]:
        """Many rows, fetched by the thousand: one by one they take twice the time."""
        return chain.from_iterable(self.run(statement).partitions(1_000))
