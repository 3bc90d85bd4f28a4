"""One transaction on a live trial.

A release is drawn in the transaction that completes its round, once. Nothing that can
be refused may follow a draw: whoever is refused could try again until the noise suits.
"""

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from secrets import compare_digest
from typing import Any, TypeVar

import msgspec

from discreet.errors import InvalidInputError
from discreet.strategies.run import ArmBatch
from discreet.trials.group_commit import Task
from discreet.trials.inputs import parse_number, unknown_id
from discreet.trials.protocol import Protocol, canonical
from discreet.trials.randomisation import make_code
from discreet.trials.record import ALL_ROUNDS, PublicState, assignment_round
from discreet.trials.status import Assignment, PendingCounts
from discreet.trials.store.schema import AssignmentRow, BatchCounts
from discreet.trials.store.tables import TrialTables
from discreet.trials.verbs import REISSUE, UNBLIND, AskBody, Body, Verb

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


Arguments = TypeVar("Arguments", bound=Body)
OTHER_REQUEST = (
    "this key was used before, for something else: repeat that call exactly, or use a new key. "
    "Nothing was changed"
)
OTHER_ASK = (
    "this key was used before, for other participants, another number or another site: repeat "
    "that call exactly, or give only its key, or use a new key. Nobody was assigned"
)


def key_text(verb_name: str, key: str) -> bytes:
    """Return what is hashed of a key: those of `ask` are apart from those of other
    verbs, since no key has a zero character in it.
    """
    return (key if verb_name == "ask" else f"\0{key}").encode()


def run_once(
    tx: TrialTransaction,
    verb: Verb[Arguments, Result],
    body: Arguments,
    key: str,
    work: Callable[[TrialTransaction, Arguments], Result],
) -> Result:
    """Do the work of a request, or return the answer that it has had.

    An id that was reissued is unknown, and the request that did it may come again: so
    the participants of a caller who is bound to a site are recognised by number. The
    audit trail notes who gets an id or an arm by the key of somebody else.
    """
    hash_with_secret = tx.tables.hash_with_secret
    hash = hash_with_secret(key_text(verb.name, key))
    arguments = canonical(list(body.identity)).encode()
    request = [verb.name, hash_with_secret(arguments).hex()]
    text = tx.tables.find_answer(hash)
    if text is not None:
        tx.check_site(body.ids)
        stored = json.loads(text)
        if stored["request"] != request:
            raise InvalidInputError(OTHER_REQUEST)
        if verb.name in (REISSUE.name, UNBLIND.name) and stored["user"] != tx.user:
            tx.audit(f"{verb.name} again", 1)
        return msgspec.convert(stored["answer"], verb.result)
    result = work(tx, body)
    answer = canonical({"request": request, "user": tx.user, "answer": msgspec.to_builtins(result)})
    tx.tables.insert_answer(hash, answer)
    return result


def was_answered(tx: TrialTransaction, key: str) -> bool:
    """Return whether an `ask` with this key was answered."""
    hash = tx.tables.hash_with_secret(key_text("ask", key))
    return tx.tables.find_answer(hash) is not None


def find_asked(
    tx: TrialTransaction, body: AskBody, site: str | None, key: str
) -> dict[int, int] | None:
    """Return the participants of the answer that an `ask` has had, by their places in
    the list; None if the key is new. (A request that got nobody is new.) The audit
    trail notes who gets them by the key of somebody else.
    """
    text = tx.tables.find_answer(tx.tables.hash_with_secret(key_text("ask", key)))
    if text is None:
        return None
    stored = json.loads(text)
    for name, value in _describe(tx, body, site).items():
        if value is not None and value != stored["request"][name]:
            raise InvalidInputError(OTHER_ASK)
    if stored["user"] != tx.user:
        tx.audit("ask again", len(stored["numbers"]), site)
    return {int(place): number for place, number in stored["numbers"].items()}


def store_asked(
    tx: TrialTransaction, body: AskBody, site: str | None, key: str, numbers: dict[int, int]
) -> None:
    """Store which participants an `ask` was answered with."""
    hash = tx.tables.hash_with_secret(key_text("ask", key))
    answer = {"request": _describe(tx, body, site), "user": tx.user, "numbers": numbers}
    tx.tables.insert_answer(hash, canonical(answer))


def _describe(tx: TrialTransaction, body: AskBody, site: str | None) -> dict[str, Any]:
    """Return what was asked for, as it is stored: of identifiers a keyed hash. One
    participant without a name is what an `ask` means that says nothing.
    """
    names, count = None, body.n if body.n > 1 else None
    if body.named is not None:
        listed = canonical([name.hex() for name in body.identifiers]).encode()
        names = tx.tables.hash_with_secret(listed).hex()
    return {"count": count, "names": names, "site": site}
