"""All statements about one trial in one transaction.

Writes are buffered, so that many tasks in one transaction cost one statement a table. A
statement whose result they may change flushes them first, and so does the end of the
transaction. No method decides anything: that is done in transaction.py and the modules
beside it.
"""

import hmac
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from discreet.errors import StoreError
from discreet.trials.record import AuditEntry, Event, next_event
from discreet.trials.store import schema
from discreet.trials.store.schema import (
    OPEN,
    RECORDED,
    AssignmentRow,
    BatchCounts,
    TrialRow,
    assignments,
    audit_trail,
    counts,
    erasing,
    events,
    outcomes,
    participants,
    requests,
    round_keys,
    secrets,
    trials,
    waiting,
)

MAX_CLOCK_LAG = 60.0
"""Seconds by which the clock may be behind the last call: clocks are adjusted."""
MAX_LISTED = 10_000
"""Values in one statement: databases have a limit."""

# --- statements about lists of rows -----------------------------------------------
# SQLAlchemy takes longer to make a place for each value of a list than SQLite takes to
# find its row, so SQLite's driver gets these statements as text. PostgreSQL takes a list
# as one value.

IsListed = Callable[[sa.Column[Any]], sa.ColumnElement[bool]]
"""The condition that a row belongs to the trial, and a column of it is in the list."""
_SQLITE = sqlite.dialect()
_LIST = "LISTED"


class ListStatement:
    """A statement about the rows of a trial that are named in a list."""

    def __init__(self, make: Callable[[IsListed], "sa.Select[Any] | sa.Update"]) -> None:
        self.statement = make(_is_in_array)
        """The statement for PostgreSQL: it takes the list as `listed`, and the trial as
        often as `trials`.
        """
        self._make = make

    @cached_property
    def _driver_text(self) -> tuple[str, list[str]]:
        """The statement for SQLite, and the names of what it takes before the list."""
        compiled = self._make(_is_in_marks).compile(dialect=_SQLITE)
        return str(compiled), list(compiled.positiontup or ())

    def for_driver(self, values: Mapping[str, Any], listed: Sequence[Any]) -> tuple[str, Any]:
        """Return text and values for SQLite's driver. The last value of the list is
        repeated up to a power of two: there is a statement for each length, so there
        are few of them, parsed once and kept.
        """
        text, names = self._driver_text
        length = 1 << (len(listed) - 1).bit_length()
        padded = [*listed, *[listed[-1]] * (length - len(listed))]
        marks = ", ".join("?" * length)
        return text.replace(_LIST, marks), (*(values[name] for name in names), *padded)


def _is_in_marks(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    is_own = column.table.c.trial == sa.bindparam("at_trial")
    return is_own & sa.literal_column(f"{column} IN ({_LIST})")


def _is_in_array(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition for PostgreSQL, which knows how large a table is, but until
    it has counted not how much of it is one trial's. If it is told that all rows are of
    one trial, it may think they are few, and read them all; and if it is told how long
    the list is, that reading a table of some thousands is quicker. So both are values
    to be looked up.
    """
    trial = column.table.c.trial
    arrays = (_array(trial, "trials"), _array(column, "listed"))
    values = [sa.func.unnest(sa.select(array).scalar_subquery()) for array in arrays]
    return sa.tuple_(trial, column).in_(sa.select(*values))


def _array(column: sa.Column[Any], name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=sa.ARRAY(column.type))


class InsertStatement:
    """Insert rows of one trial, as tuples in the order of the columns after `trial`."""

    def __init__(self, table: sa.Table) -> None:
        columns = [column for column in table.c if column.name != "trial"]
        self._names = [column.name for column in columns]
        lists = [sa.func.unnest(_array(column, f"all_{column.name}")) for column in columns]
        rows = sa.select(sa.bindparam("at_trial", type_=table.c.trial.type), *lists)
        self.statement = table.insert().from_select([table.c.trial, *columns], rows)
        """The statement for PostgreSQL: it takes a list for each column."""
        names = ", ".join(f'"{name}"' for name in ["trial", *self._names])
        self.driver_text = f"INSERT INTO {table.name} ({names}) VALUES (?{', ?' * len(columns)})"
        """The statement for SQLite's driver."""
        self._converted = [
            (place, column.type)
            for place, column in enumerate(columns)
            if isinstance(column.type, sa.TypeDecorator)
        ]

    def run(self, connection: sa.Connection, trial: int, rows: list[tuple[Any, ...]]) -> None:
        """Insert the rows."""
        if connection.dialect.name != "sqlite":
            lists = zip(self._names, zip(*rows, strict=True), strict=True)
            values = {f"all_{name}": list(column) for name, column in lists}
            connection.execute(self.statement, {"at_trial": trial, **values})
            return
        for place, kind in self._converted:
            convert = kind.process_bind_param
            rows = [(*row[:place], convert(row[place], _SQLITE), *row[place + 1 :]) for row in rows]
        connection.exec_driver_sql(self.driver_text, [(trial, *row) for row in rows])


def split(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Return parts of a list, each of which one statement takes."""
    return (values[start : start + MAX_LISTED] for start in range(0, len(values), MAX_LISTED))


# --- statements --------------------------------------------------------------------
# They are made once: making one takes longer than running it.


def at(table: sa.Table, *columns: str) -> sa.ColumnElement[bool]:
    """Return the condition that these columns of a trial's rows have the values given
    as `at_<column>`.
    """
    return sa.and_(*(table.c[name] == sa.bindparam(f"at_{name}") for name in ("trial", *columns)))


def _columns(table: sa.Table, row: type[NamedTuple]) -> list[sa.Column[Any]]:
    return [table.c[name] for name in row._fields]


_erasing = sa.select(sa.func.max(erasing.c.seq)).where(erasing.c.trial == trials.c.trial)
_read = sa.select(
    *(trials.c[name] for name in TrialRow._fields if name != "erasing"),
    _erasing.scalar_subquery(),
).where(trials.c.name == sa.bindparam("name"))
_lock = _read.with_for_update(of=trials)
_inserts = {
    table: InsertStatement(table)
    for table in schema.metadata.sorted_tables
    if "trial" in table.c and table is not trials
}
_save = trials.update().where(at(trials))
_events = sa.select(*_columns(events, Event)).where(at(events)).order_by(events.c.seq)
_first_event = sa.select(*_columns(events, Event)).where(at(events), events.c.seq == 1)
_latest_events = (
    sa.select(*_columns(events, Event))
    .where(at(events), events.c.seq < sa.bindparam("before"))
    .order_by(events.c.seq.desc())
    .limit(sa.bindparam("limit"))
)
_answer_event = (
    sa.select(events.c.seq, events.c.hash)
    .where(at(events), events.c.kind == "answered", events.c.body.like(sa.bindparam("answer")))
    .order_by(events.c.seq)
)
_hash_at = sa.select(events.c.hash).where(at(events, "seq"))
_any_assignment = sa.select(*_columns(assignments, AssignmentRow))
_assignments = _any_assignment.where(at(assignments))
_one_assignment = _assignments.where(assignments.c.number == sa.bindparam("number"))
_listed_assignments = ListStatement(
    lambda is_listed: _any_assignment.where(is_listed(assignments.c.number))
)
_late = _assignments.where(waiting, assignments.c.deadline < sa.bindparam("now"))
_mark_recorded = ListStatement(
    lambda is_listed: (
        assignments.update()
        .values(state=sa.bindparam("new"))
        .where(is_listed(assignments.c.number))
    )
)
_arms = (
    sa.select(assignments.c.arm, assignments.c.phase)
    .where(at(assignments))
    .order_by(assignments.c.number)
)
_open = _assignments.where(assignments.c.state == OPEN).order_by(assignments.c.number)
_count_open = sa.select(sa.func.count()).where(at(assignments), assignments.c.state == OPEN)
_last_past = (
    sa.select(assignments.c.number)
    .where(at(assignments), assignments.c.deadline < sa.bindparam("now"))
    .order_by(assignments.c.deadline.desc(), assignments.c.number.desc())
    .limit(1)
)
_limit_deadlines = assignments.update().where(
    at(assignments), assignments.c.deadline > sa.bindparam("latest")
)
_reissue = assignments.update().where(at(assignments, "number"))
_counts = sa.select(*_columns(counts, BatchCounts)).where(at(counts))
_update_counts = counts.update().where(at(counts, "arm", "phase"))
_delete_counts = counts.delete().where(at(counts, "arm", "phase"))
_is_batch = at(outcomes, "arm", "phase")
_stored = sa.type_coerce(outcomes.c.units, sa.BigInteger)
_replace_outcome = outcomes.update().where(
    at(outcomes, "arm", "phase", "number"), outcomes.c.units.is_not(None)
)
_sum_outcomes = sa.select(sa.func.sum(_stored - schema.OFFSET), sa.func.count()).where(_is_batch)
_read_outcomes = sa.select(_stored - schema.OFFSET).where(_is_batch)
_count_outcomes = sa.select(sa.func.count()).where(_is_batch)
_erase = (
    outcomes.update().where(_is_batch, outcomes.c.units.is_not(None)).values(units=schema.ERASED)
)
_erase_all = (
    outcomes.update()
    .where(at(outcomes), outcomes.c.units.is_not(None), outcomes.c.units != schema.ERASED)
    .values(units=schema.ERASED)
)
_answers = (
    sa.select(outcomes.c.number, outcomes.c.units)
    .where(at(outcomes, "arm"), outcomes.c.phase > sa.bindparam("after"))
    .order_by(outcomes.c.phase)
)
_erase_answers = (
    outcomes.update()
    .where(
        at(outcomes, "arm"),
        outcomes.c.phase > sa.bindparam("after"),
        outcomes.c.phase <= sa.bindparam("through"),
        outcomes.c.units.is_not(None),
    )
    .values(units=schema.ERASED)
)
_round_keys = (
    sa.select(round_keys.c.round, round_keys.c.key)
    .where(at(round_keys))
    .order_by(round_keys.c.round)
)
_delete_round_key = round_keys.delete().where(at(round_keys, "round"))
_secret = sa.select(secrets.c.key).where(at(secrets))
_listed_participants = ListStatement(
    lambda is_listed: sa.select(participants.c.hash, participants.c.number).where(
        is_listed(participants.c.hash)
    )
)
_listed_requests = ListStatement(
    lambda is_listed: sa.select(requests.c.hash, requests.c.answer).where(
        is_listed(requests.c.hash)
    )
)
_audit_entries = (
    sa.select(*_columns(audit_trail, AuditEntry))
    .where(at(audit_trail))
    .order_by(audit_trail.c.entry.desc())
    .limit(sa.bindparam("limit"))
)
_last_audit_entry = (
    sa.select(audit_trail.c.entry, audit_trail.c.at)
    .where(at(audit_trail))
    .order_by(audit_trail.c.entry.desc())
    .limit(1)
)
_delete_erasing = erasing.delete().where(at(erasing), erasing.c.seq <= sa.bindparam("through"))


class LastEntry(NamedTuple):
    """The part of the last audit entry that the next one needs: a site may read no
    more.
    """

    entry: int
    at: float


class TrialTables:
    """The rows of one trial in one transaction."""

    def __init__(
        self,
        connection: sa.Connection,
        name: str,
        locks_rows: bool,
        clock: sa.TextClause | None = None,
    ) -> None:
        self.connection = connection
        self.name = name
        self._locks_rows = locks_rows
        self._clock = clock
        """The statement for the server's time; None: the machine's is the one clock."""
        self._row: TrialRow | None = None
        self._assignments: dict[int, AssignmentRow] = {}
        """Assignments that were read or inserted, as they are now."""
        self._late: list[int] | None = None
        """Numbers of the assignments that were open past their deadline at first."""
        self._answers: dict[bytes, str | None] = {}
        """Answers of the requests that were looked up."""
        self._numbers: dict[bytes, int] = {}
        """Participants who were inserted in this transaction."""
        self._inserts: dict[sa.Table, list[tuple[Any, ...]]] = {}
        self._recorded: list[int] = []
        """Assignments whose state is to be written."""
        self._changed_counts: dict[tuple[int, int], bool] = {}
        """Batches whose counts are to be written, and whether each has a row."""

    # --- the trial --------------------------------------------------------------------

    def lock(self) -> TrialRow | None:
        """Read the trial's row, and lock it until the end of the transaction if this is
        one that writes. Return None if there is no trial of this name.
        """
        statement = _lock if self._locks_rows else _read
        row = self.connection.execute(statement, {"name": self.name}).one_or_none()
        self._row = None if row is None else TrialRow._make(row)
        return self._row

    @property
    def row(self) -> TrialRow:
        """The trial's row as it was read, and what was changed since."""
        if self._row is None:
            raise StoreError(f"there is no trial {self.name!r} here")
        return self._row

    @cached_property
    def now(self) -> float:
        """The time of this transaction, by the one clock of the database."""
        if self._clock is None:
            return time.time()
        return float(self.connection.execute(self._clock).scalar_one())

    def create(self, protocol: str, head: str, secret: bytes, state: str) -> bool:
        """Insert a new trial. Return False if another process was quicker."""
        row = {"name": self.name, "protocol": protocol, "seq": 0, "head": head}
        try:
            with self.connection.begin_nested():
                self.connection.execute(trials.insert(), row | {"participants": 0, "state": state})
        except sa.exc.IntegrityError:
            return False
        self.lock()
        self._insert(secrets, [(secret,)])
        return True

    def save_state(self, state: str) -> None:
        """Write the trial's row: the head of the record, the number of participants,
        and the state that follows from the record.
        """
        row = self._row = self.row._replace(state=state)
        self.run(_save, seq=row.seq, head=row.head, participants=row.participants, state=state)

    def hash_with_secret(self, text: bytes) -> bytes:
        """Return the hash of an identifier or a key with the trial's secret: what is
        kept of it.
        """
        return hmac.digest(self._secret, text, "sha256")

    @cached_property
    def _secret(self) -> bytes:
        return bytes(self.run(_secret).scalar_one())

    # --- the record -------------------------------------------------------------------

    def append_event(self, kind: str, body: dict[str, Any]) -> None:
        """Append a public event, and move the head of the record; `save_state` makes it
        count.
        """
        row = self.row
        event = next_event(row.head, row.seq + 1, kind, body)
        self._insert(events, [event])
        self._row = row._replace(seq=event.seq, head=event.hash)

    def events(self) -> Iterator[Event]:
        """Return the record, in order."""
        return map(Event._make, self._stream(_events))

    def first_event(self) -> Event | None:
        """Return the first event of the record, if there is one."""
        row = self.run(_first_event).one_or_none()
        return None if row is None else Event._make(row)

    def latest_events(self, before: int, limit: int) -> list[Event]:
        """Return the last events before a position, the newest first."""
        return [Event(*row) for row in self.run(_latest_events, before=before, limit=limit)]

    def find_answer_event(self, number: int) -> tuple[int, str] | None:
        """Return number and hash of the event that publishes a participant's answer."""
        row = self.run(_answer_event, answer=f"%[{number},%").first()
        return None if row is None else (row.seq, row.hash)

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of one event."""
        value: str | None = self.run(_hash_at, at_seq=seq).scalar_one_or_none()
        return value

    # --- assignments ------------------------------------------------------------------

    def insert_assignments(self, rows: Sequence[AssignmentRow]) -> None:
        """Insert assignments."""
        self._insert(assignments, rows)
        self._assignments |= {row.number: row for row in rows}
        row = self.row
        self._row = row._replace(participants=row.participants + len(rows))

    def find_assignments(self, numbers: Sequence[int]) -> dict[int, AssignmentRow]:
        """Return assignments by the participants' numbers."""
        new = [number for number in numbers if number not in self._assignments]
        for part in split(new) if new else ():
            if len(new) == 1:
                values = {"at_trial": self.row.trial, "number": part[0]}
                rows = self.connection.execute(_one_assignment, values).all()
            else:
                rows = self._run_listed(_listed_assignments, part).all()
            self._assignments |= {row[0]: AssignmentRow(*row) for row in rows}
        known = self._assignments
        return {number: known[number] for number in numbers if number in known}

    def late_assignments(self, now: float) -> list[AssignmentRow]:
        """Return the open assignments past their deadline."""
        if self._late is None:
            rows = [AssignmentRow(*row) for row in self.run(_late, now=now)]
            self._assignments |= {row.number: row for row in rows}
            self._late = [row.number for row in rows]
        late = (self._assignments[number] for number in self._late)
        return [row for row in late if row.state == OPEN]

    def open_assignments(self, site: str | None) -> list[AssignmentRow]:
        """Return the assignments without an outcome, in order; of one site, or of
        all.
        """
        statement = _open if site is None else _open.where(assignments.c.site == site)
        return [AssignmentRow(*row) for row in self.run(statement)]

    def last_past_deadline(self, now: float) -> int:
        """Return the number of the last participant whose deadline has passed, or 0."""
        return int(self.run(_last_past, now=now).scalar_one_or_none() or 0)

    def reissue(self, row: AssignmentRow, token: str) -> None:
        """Give an assignment another token."""
        self.run(_reissue, at_number=row.number, token=token)
        self._assignments[row.number] = row._replace(token=token)

    def limit_deadlines(self, latest: float) -> None:
        """Bring later deadlines forward, of recorded and open assignments alike."""
        self.run(_limit_deadlines, latest=latest, deadline=latest)
        self._assignments, self._late = {}, None

    def mark_recorded(self, rows: Sequence[AssignmentRow]) -> None:
        """Mark that no outcome of these assignments is waited for any more."""
        self._assignments |= {row.number: row._replace(state=RECORDED) for row in rows}
        self._recorded += [row.number for row in rows]

    @cached_property
    def counts(self) -> dict[tuple[int, int], BatchCounts]:
        """The counts of all batches that are not released, by (arm, phase)."""
        return {(row[0], row[1]): BatchCounts(*row) for row in self.run(_counts)}

    def add_counts(self, arm: int, phase: int, open: int = 0, recorded: int = 0) -> None:
        """Add to the counts of a batch."""
        known, key = self.counts, (arm, phase)
        self._changed_counts.setdefault(key, key in known)
        batch = known.get(key, BatchCounts(arm, phase, 0, 0))
        known[key] = BatchCounts(arm, phase, batch.open + open, batch.recorded + recorded)

    def delete_counts(self, arm: int, phase: int) -> None:
        """Delete the counts of a released batch."""
        self.run(_delete_counts, at_arm=arm, at_phase=phase)
        self.counts.pop((arm, phase), None)

    # --- round keys -------------------------------------------------------------------

    def insert_round_key(self, round: int, key: bytes) -> None:
        """Keep the key of a round that is opened."""
        self.round_keys[round] = key
        self._insert(round_keys, [(round, key)])

    @cached_property
    def round_keys(self) -> dict[int, bytes]:
        """The keys of the rounds that are not revealed, in the order of opening."""
        return {number: bytes(key) for number, key in self.run(_round_keys)}

    def reveal_keys(self, through: int) -> list[list[int | str]]:
        """Delete the keys of the rounds up to one, and return (round, key) of each, to
        be published.
        """
        known = self.round_keys
        revealed = {number: known.pop(number) for number in list(known) if number <= through}
        for number in revealed:
            self.run(_delete_round_key, at_round=number)
        return [[number, key.hex()] for number, key in revealed.items()]

    # --- outcomes ---------------------------------------------------------------------

    def insert_outcomes(self, values: Sequence[tuple[AssignmentRow, int | None]]) -> None:
        """Insert outcomes in units; None stands for one that will never be released."""
        self._insert(outcomes, [(row.arm, row.phase, row.number, units) for row, units in values])

    def replace_outcome(self, row: AssignmentRow, units: int) -> None:
        """Correct an outcome, if there is one."""
        where = {"at_arm": row.arm, "at_phase": row.phase, "at_number": row.number}
        self.run(_replace_outcome, **where, units=units)

    def sum_outcomes(self, arm: int, phase: int) -> tuple[int, int]:
        """Return (sum in units, number of outcomes) of a batch: for the release alone,
        which adds the noise.
        """
        total, number = self.run(_sum_outcomes, at_arm=arm, at_phase=phase).one()
        return int(total or 0), int(number)

    def read_outcomes(self, arm: int, phase: int) -> list[int]:
        """Return the outcomes of a batch in units: for the release alone, where more
        than their sum is released with noise.
        """
        return [int(units) for (units,) in self.run(_read_outcomes, at_arm=arm, at_phase=phase)]

    def read_answers(self, after: int) -> list[tuple[int, int]]:
        """Return (number, units) of the randomised answers that follow those of the
        first `after` participants without a gap.
        """
        answers: list[tuple[int, int]] = []
        for number, units in self.run(_answers, at_arm=0, after=after):
            if number != after + len(answers) + 1:
                break
            answers.append((number, units))
        return answers

    def erase_outcomes(self, arm: int, phase: int) -> None:
        """Overwrite the outcomes of a batch; `Database.scrub` makes old copies
        unreadable after the transaction. What is no outcome stays so: a row that grows
        would move others, and leave copies of them behind.
        """
        self.run(_erase, at_arm=arm, at_phase=phase)

    def erase_all_outcomes(self) -> None:
        """Overwrite all outcomes of the trial."""
        self.run(_erase_all)

    def erase_answers(self, after: int, through: int) -> None:
        """Overwrite the answers of the participants between two numbers."""
        self.run(_erase_answers, at_arm=0, after=after, through=through)

    def insert_erasing(self) -> None:
        """Note that outcomes which were just erased may still be readable in the files
        of the database.
        """
        self._insert(erasing, [(self.row.seq, self.now)])
        self._row = self.row._replace(erasing=self.row.seq)

    def delete_erasing(self, through: int) -> None:
        """Note that what was erased up to an event is unreadable."""
        self.run(_delete_erasing, through=through)

    # --- participants and requests ----------------------------------------------------

    def find_participants(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those of these identifiers that took part before."""
        numbers: dict[bytes, int] = {}
        for part in split(hashes):
            rows = self._run_listed(_listed_participants, part).all()
            numbers |= {bytes(value): number for value, number in rows}
        return numbers | {hash: self._numbers[hash] for hash in hashes if hash in self._numbers}

    def insert_participants(self, numbers: Sequence[tuple[bytes, int]]) -> None:
        """Insert hashed identifiers with the participants' numbers."""
        self._numbers |= dict(numbers)
        self._insert(participants, numbers)

    def load_answers(self, hashes: Sequence[bytes]) -> None:
        """Look up many requests in one statement, for `find_answer`."""
        for part in split([hash for hash in hashes if hash not in self._answers]):
            rows = self._run_listed(_listed_requests, part).all()
            answers = {bytes(hash): text for hash, text in rows}
            self._answers |= {hash: answers.get(hash) for hash in part}

    def find_answer(self, hash: bytes) -> str | None:
        """Return the stored answer of a request, if it was answered before."""
        if hash not in self._answers:
            self.load_answers([hash])
        return self._answers[hash]

    def insert_answer(self, hash: bytes, answer: str) -> None:
        """Store the answer of a request."""
        self._answers[hash] = answer
        self._insert(requests, [(hash, answer)])

    # --- the audit trail --------------------------------------------------------------

    def audit_entries(self, limit: int) -> list[AuditEntry]:
        """Return the last entries, the newest first."""
        return [AuditEntry(*row) for row in self.run(_audit_entries, limit=limit)]

    def add_audit_entry(
        self,
        user: str,
        action: str,
        participants: int,
        site: str | None = None,
        sets_clock: bool = False,
    ) -> None:
        """Add an entry. Its times never go back unless the clock is set."""
        last = self.last_entry
        at = self.now if sets_clock else max(self.now, last.at)
        self._insert(audit_trail, [(last.entry + 1, at, user, site, action, participants)])
        self.last_entry = LastEntry(last.entry + 1, at)

    def insert_audit_entries(self, entries: Sequence[AuditEntry]) -> None:
        """Insert entries as they are."""
        self._insert(audit_trail, entries)

    @cached_property
    def last_entry(self) -> LastEntry:
        """Number and time of the last entry, or zeros."""
        row = self.run(_last_audit_entry).one_or_none()
        return LastEntry(0, 0.0) if row is None else LastEntry(*row)

    def check_clock(self, recorded: float) -> None:
        """Refuse a clock that is well behind the last call, or behind the last time in
        the record: deadlines depend on it.
        """
        lag = max(self.last_entry.at, recorded) - self.now
        if lag > MAX_CLOCK_LAG:
            raise StoreError(
                f"the clock is {_duration(lag)} behind the last recorded call: correct it; "
                "nothing was changed. If the clock was wrong then, and is right now, a "
                f"manager must say so: discreet trial manage {shlex.quote(self.name)} "
                "set-clock --reason …"
            )

    # --- checks -----------------------------------------------------------------------

    def assigned_arms(self) -> Iterator[tuple[int, int]]:
        """Return (arm, phase) of each participant, in order."""
        return map(tuple, self._stream(_arms))

    def are_counts_correct(self) -> bool:
        """Return whether the counts agree with open assignments and recorded outcomes.

        Batches of phase 0 are those of answers that are released one by one, which
        leave no outcomes behind.
        """
        known = self.counts
        for (arm, phase), batch in known.items():
            if not phase:
                continue
            number = self.run(_count_outcomes, at_arm=arm, at_phase=phase).scalar_one()
            if number != batch.recorded:
                return False
        total = sum(batch.open for batch in known.values())
        return bool(self.run(_count_open).scalar_one() == total)

    # --- running statements -----------------------------------------------------------

    def run(self, statement: sa.Executable, **values: Any) -> Any:
        """Run a statement about this trial, after what is buffered."""
        self.flush()
        return self.connection.execute(statement, {"at_trial": self.row.trial, **values})

    def insert_rows(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of any table: for copies of whole trials."""
        self._insert(table, rows)
        self.flush()

    def flush(self) -> None:
        """Write what is buffered."""
        if not (self._inserts or self._recorded or self._changed_counts):
            return
        trial, connection = self.row.trial, self.connection
        inserts, self._inserts = self._inserts, {}
        recorded, self._recorded = self._recorded, []
        changed, self._changed_counts = self._changed_counts, {}
        known = self.counts if changed else {}
        if new := [known[key] for key, has_row in changed.items() if not has_row]:
            inserts[counts] = [*inserts.get(counts, ()), *new]
        for table, rows in inserts.items():
            if rows:
                _inserts[table].run(connection, trial, rows)
        for part in split(recorded) if recorded else ():
            self._run_listed(_mark_recorded, part, new=RECORDED)
        if old := [known[key] for key, has_row in changed.items() if has_row]:
            connection.execute(
                _update_counts,
                [
                    {
                        "at_trial": trial,
                        "at_arm": batch.arm,
                        "at_phase": batch.phase,
                        "open": batch.open,
                        "recorded": batch.recorded,
                    }
                    for batch in old
                ],
            )

    def _insert(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Buffer rows of this trial, in the order of the table's columns."""
        self._inserts.setdefault(table, []).extend(rows)

    def _run_listed(self, statement: ListStatement, listed: Sequence[Any], **values: Any) -> Any:
        """Run a statement about the rows of a list, which no buffered row can change."""
        trial = self.row.trial
        if self.connection.dialect.name == "sqlite":
            text, parameters = statement.for_driver({"at_trial": trial, **values}, listed)
            return self.connection.exec_driver_sql(text, parameters)
        values |= {"trials": [trial] * len(listed), "listed": listed}
        return self.connection.execute(statement.statement, values)

    def _stream(self, statement: sa.Executable) -> Iterator[Any]:
        """Return many rows, fetched by the thousand: one by one they take twice the
        time.
        """
        return chain.from_iterable(self.run(statement).partitions(1_000))


def _duration(seconds: float) -> str:
    """Return a duration in words."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
