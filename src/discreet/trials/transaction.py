"""One transaction on a live trial.

A release is drawn in the transaction that completes its round, once. Nothing that can
be refused may follow a draw: whoever is refused could try again until the noise suits.
"""

from collections.abc import Sequence
from functools import cached_property
from secrets import compare_digest
from typing import TypeVar

from discreet.strategies.run import ArmBatch
from discreet.trials.group_commit import Task
from discreet.trials.inputs import parse_number, unknown_id
from discreet.trials.protocol import Protocol
from discreet.trials.randomisation import make_code
from discreet.trials.record import ALL_ROUNDS, PublicState, assignment_round
from discreet.trials.status import Assignment, PendingCounts
from discreet.trials.store.schema import AssignmentRow, BatchCounts
from discreet.trials.store.tables import TrialTables

Result = TypeVar("Result")


class TrialTransaction:
    """One transaction on a trial, for one caller."""

    def __init__(
        self,
        protocol: Protocol,
        state: PublicState,
        tables: TrialTables,
        user: str = "",
        site: str | None = None,
    ) -> None:
        self.protocol = protocol
        self.state = state
        """The public state, which the work changes along with the record."""
        self.tables = tables
        self.user = user
        """The caller, for the audit trail."""
        self.site = site
        """The site that the caller is bound to: others' participants are unknown to
        it.
        """
        self.drew = False
        """True if a key or noise was drawn: nothing may follow that."""
        self.erased = False
        """True if outcomes were erased that may still be readable in the files of the
        database.
        """

    def run(self, task: Task[Result]) -> Result | None:
        """Do the work of a task, unless the clock has gone back."""
        if not (task.sets_clock or self.state.stopped):
            self.tables.check_clock(self.state.management.at)
        result = task.work(self)
        if self.erased:
            self.tables.insert_erasing()
        return result

    @cached_property
    def time(self) -> float:
        """The time of the transaction; if the record has times, in whole seconds as
        there, and never back.
        """
        time = self.tables.now
        return max(int(time), self.state.management.at) if self.protocol.has_times else time

    def audit(self, action: str, participants: int, site: str | None = None) -> None:
        """Write an entry of the audit trail; nothing of an outcome."""
        self.tables.add_audit_entry(self.user, action, participants, site)

    # --- assignments ------------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, AssignmentRow]:
        """Return the assignments of these ids. Refuse unknown ids, and those of other
        sites in the same words.
        """
        numbers = {id: parse_number(id) for id in ids}
        rows = self.tables.find_assignments(sorted(set(numbers.values())))
        for id, number in numbers.items():
            row = rows.get(number)
            is_known = row is not None and compare_digest(
                row.id.encode(), id.encode(errors="replace")
            )
            if row is None or not is_known or self.site not in (None, row.site):
                raise unknown_id(id, ids)
        return {id: rows[number] for id, number in numbers.items()}

    def check_site(self, ids: Sequence[str]) -> None:
        """Refuse participants of other sites, recognised by number, as unknown ids."""
        if self.site is None:
            return
        rows = self.tables.find_assignments(sorted({parse_number(id) for id in ids}))
        for id in ids:
            row = rows.get(parse_number(id))
            if row is None or row.site != self.site:
                raise unknown_id(id, ids)

    def show_assignment(self, row: AssignmentRow, participant: str | None = None) -> Assignment:
        """Return an assignment as staff see it: in a blinded trial with a code in place
        of the arm.
        """
        if self.protocol.is_blinded:
            arm = make_code(self.tables.hash_with_secret, row.number)
        else:
            arm = self.state.management.arms[row.arm]
        return Assignment(row.id, arm, participant)

    def is_past_deadline(self, row: AssignmentRow) -> bool:
        """Return whether the deadline has passed, recorded or not."""
        return self.protocol.deadline is not None and (row.deadline or 0) < self.time

    def is_needed(self, row: AssignmentRow) -> bool:
        """Return whether the outcome of a participant may still be released."""
        return not self.state.stopped and self.state.run.is_pending(row.arm, row.phase)

    def is_round_open(self, row: AssignmentRow) -> bool:
        """Return whether the outcomes of a participant's round are not released. In a
        blinded trial those of an arm that was dropped or taken off the round go with
        the round, whose key is revealed with the release: a different answer would tell
        staff who has that arm.
        """
        round = assignment_round(self.protocol, row.phase)
        if not (self.protocol.is_blinded and round):
            return self.is_needed(row)
        return round in self.tables.round_keys

    # --- counts -----------------------------------------------------------------------

    def count_pending(self, is_shown: bool = False) -> PendingCounts:
        """Count the outcomes that are not in, and those of them that the next release
        waits for. In what is shown to anyone all that are not released count as not in
        if releases are scheduled: nobody sees when outcomes come.
        """
        batches, run = self.tables.counts, self.state.run
        hides = is_shown and self.protocol.has_times
        counted = list(batches.values())
        if hides and self.protocol.is_blinded and not self.state.stopped:
            counted = [batch for batch in counted if self._is_unrevealed(batch, ALL_ROUNDS)]
        pending = sum(batch.open + (batch.recorded if hides else 0) for batch in counted)
        if self.state.stopped:
            return PendingCounts(pending, 0)
        if run.releases_each_answer:
            return PendingCounts(pending, pending if run.is_finished else 0)
        due = run.list_due()
        known = () if hides else (batches.get((batch.arm, batch.phase)) for batch in due)
        recorded = sum(batch.recorded for batch in known if batch is not None)
        waiting = sum(batch.size for batch in due) - recorded
        if self.protocol.is_blinded:
            blocking = self._find_blocking(due)
            waiting += sum(batch.open + (batch.recorded if hides else 0) for batch in blocking)
        return PendingCounts(pending, waiting)

    def _find_blocking(self, due: list[ArmBatch]) -> list[BatchCounts]:
        """Return the batches beside those that are due for which a release of a blinded
        trial waits: of arms that were dropped or taken off its rounds. Otherwise the
        participants whose outcomes are still missing would be exactly those of an arm.
        """
        if not due:
            return []
        last, keys = (
            assignment_round(self.protocol, due[0].phase),
            {(one.arm, one.phase) for one in due},
        )
        return [
            batch
            for key, batch in self.tables.counts.items()
            if key not in keys and self._is_unrevealed(batch, last)
        ]

    def _is_unrevealed(self, batch: BatchCounts, last: int) -> bool:
        """Return whether the key of a batch's round, one up to the last, is secret."""
        round = assignment_round(self.protocol, batch.phase)
        return not round or (round <= last and round in self.tables.round_keys)
