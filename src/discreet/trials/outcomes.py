"""Outcomes of a live trial: record, amend and expire them."""

import secrets
from collections.abc import Mapping, Sequence

from discreet.errors import InvalidInputError
from discreet.trials import mechanisms
from discreet.trials.inputs import outcome_units, response_units
from discreet.trials.operations import (
    NO_MANAGEMENT_ACTIONS,
    SET_CLOCK,
    SET_CLOCK_TAKES_REASON,
    UNBLIND,
    ManagementAction,
)
from discreet.trials.randomisation import make_code
from discreet.trials.release import end_if_over, erase_unreleasable, release_due
from discreet.trials.responses import Response
from discreet.trials.status import Assignment, ParticipantView, TellResult
from discreet.trials.store import schema
from discreet.trials.store.schema import AssignmentRow
from discreet.trials.transaction import TrialTransaction
from discreet.trials.verbs import AmendBody, AnswerBody, Expired, ManageBody, TellBody, UnblindBody


def manage(tx: TrialTransaction, body: ManageBody) -> None:
    """Carry out a management action, and what follows from it. Refuse one that was
    decided having `seen` fewer actions than there are.
    """
    refuse_sites(tx)
    if tx.state.stopped:
        raise InvalidInputError("the trial is over: it can no longer be changed")
    if body.seen is not None and body.seen != len(tx.state.management.actions):
        raise InvalidInputError(
            "another manager has acted in the meantime: look at the status again, and "
            "decide again. Nothing was done"
        )
    if body.action in NO_MANAGEMENT_ACTIONS:
        raise InvalidInputError(NO_MANAGEMENT_ACTIONS[body.action])
    carry_out(tx, ManagementAction(body.action, body.about, body.reason))


def unblind(tx: TrialTransaction, body: UnblindBody) -> str:
    """Return the arm of a participant; the record says that somebody knows it."""
    row = tx.find([body.id])[body.id]
    if not tx.state.stopped:
        carry_out(tx, ManagementAction(UNBLIND, row.number, body.reason))
    return tx.state.management.arms[row.arm]


def carry_out(tx: TrialTransaction, action: ManagementAction) -> None:
    """Write an action into the record, and do what follows from it."""
    sets_clock = action.action == SET_CLOCK
    if sets_clock:
        if action.about is not None:
            raise InvalidInputError(SET_CLOCK_TAKES_REASON)
        now = int(tx.tables.now)
        action = action._replace(about=now)
        if tx.protocol.deadline is not None:
            tx.tables.limit_deadlines(now + tx.protocol.deadline)
    number = tx.tables.row.participants
    concerned = 1 if action.action == UNBLIND else number
    entry = f"manage {action.action}"
    tx.tables.add_audit_entry(tx.user, entry, concerned, sets_clock=sets_clock)
    tx.state.management.apply(action, tx.state.run, number, tx.protocol)
    about = {} if action.about is None else {"about": action.about}
    body = {"action": action.action, "reason": action.reason, **about}
    tx.tables.append_event("managed", body)
    if tx.state.management.ended:
        end_if_over(tx)
    else:
        release_due(tx, [])
        erase_unreleasable(tx)


def list_codes(tx: TrialTransaction) -> dict[str, str]:
    """Return the arm behind the code of each participant, in the order of assignment."""
    refuse_sites(tx)
    if not tx.protocol.is_blinded:
        return {}
    tx.audit("codes", tx.tables.row.participants)
    arms = tx.state.management.arms
    return {
        make_code(tx.tables.hash_with_secret, number): arms[arm]
        for number, (arm, _) in enumerate(tx.tables.assigned_arms(), start=1)
    }


def refuse_sites(tx: TrialTransaction) -> None:
    """Refuse callers who are bound to a site."""
    if tx.site is not None:
        raise InvalidInputError(f"you call for {tx.site}: ask a manager of the trial")


OPEN, ANSWERED, LATE, ENDED = "open", "answered", "late", "ended"
"""States of a participant's own answer."""


def tell(tx: TrialTransaction, body: TellBody) -> TellResult:
    """Record outcomes; None stands for one that will not come."""
    units = {
        id: None if value is None else outcome_units(value, tx.protocol)
        for id, value in body.outcomes.items()
    }
    return _record(tx, tx.find(list(units)), units)


def answer(tx: TrialTransaction, body: AnswerBody) -> TellResult:
    """Record randomised responses; None stands for one that will not come."""
    responses = {
        id: None if text is None else Response.parse(text) for id, text in body.answers.items()
    }
    rows = tx.find(list(responses))
    for id, response in responses.items():
        if response is not None and rows[id].state == schema.OPEN:
            _check_middle_level(tx, rows[id], response.middle_level)
    units = {
        id: None if response is None else response_units(response, tx.protocol)
        for id, response in responses.items()
    }
    return _record(tx, rows, units)


def _record(
    tx: TrialTransaction, rows: dict[str, AssignmentRow], units: Mapping[str, int | None]
) -> TellResult:
    """Record outcomes in units, and make the releases that are complete with them.
    Those recorded before stay; those past the deadline no longer count.
    """
    late = tx.tables.late_assignments(tx.time) if tx.protocol.deadline is not None else []
    late_numbers = {row.number for row in late}
    new = {
        id: row
        for id, row in rows.items()
        if row.state == schema.OPEN and row.number not in late_numbers
    }
    _insert(tx, [*((row, units[id]) for id, row in new.items()), *((row, None) for row in late)])
    if new:  # whether others are late may be an outcome, and decides nothing here
        tx.audit("tell", len(rows))
    if new or late:
        release_due(tx, [*new.values(), *late])
    past = tuple(id for id, row in rows.items() if tx.is_past_deadline(row))
    already_told = tuple(id for id in rows if id not in new and id not in past)
    return TellResult(len(new), already_told, past)


def _check_middle_level(tx: TrialTransaction, row: AssignmentRow, level: float | None) -> None:
    """Refuse a response that was randomised with another middle level than the one that
    was announced.
    """
    announced = tx.state.run.find_middle_level(row.phase)
    if level != announced and not tx.is_past_deadline(row) and tx.is_round_open(row):
        raise InvalidInputError(
            "the response was not randomised with the middle level that was announced "
            f"with the assignment: --middle-level {announced!r}. If it has already left the place "
            "where the person is, do not randomise the outcome again, which would spend "
            "ε twice: say that the outcome is missing"
        )


def _insert(tx: TrialTransaction, values: Sequence[tuple[AssignmentRow, int | None]]) -> None:
    """Insert outcomes, the worst one for those that will not come (None); of those that
    will never be released only that they were recorded.
    """
    releases_each, stored = tx.state.run.releases_each_answer, []
    for row, units in values:
        value = _worst_outcome(tx, row) if units is None else units
        stored.append((_stored_row(tx, row), value if tx.is_needed(row) else None))
        tx.tables.add_counts(row.arm, 0 if releases_each else row.phase, open=-1, recorded=1)
    tx.tables.mark_recorded([row for row, _ in values])
    tx.tables.insert_outcomes(stored)


def _worst_outcome(tx: TrialTransaction, row: AssignmentRow) -> int:
    """Return the worst outcome in units; randomised if outcomes are randomised
    responses.
    """
    strategy = tx.protocol.strategy
    if not strategy.trust_model.randomised:
        return 0
    epsilon, middle = float(strategy.epsilon or 0), tx.state.run.find_middle_level(row.phase)
    return mechanisms.respond(0.0, epsilon, strategy.gamma, middle_level=middle).value


def _stored_row(tx: TrialTransaction, row: AssignmentRow) -> AssignmentRow:
    """Return where an outcome is stored: answers that are released one by one are in
    one line, whatever their arms.
    """
    return row._replace(arm=0) if tx.state.run.releases_each_answer else row


def amend(tx: TrialTransaction, body: AmendBody) -> None:
    """Replace an outcome that is not released. What can be seen does not depend on
    whether it was recorded or is missing.
    """
    row, state = tx.find([body.id])[body.id], tx.state
    if tx.is_past_deadline(row):
        raise InvalidInputError(
            "the deadline of this person has passed: what was recorded by then counts, and can "
            "no longer be amended"
        )
    if row.state == schema.OPEN:
        raise InvalidInputError("there is no outcome to amend under this id: record it first")
    releases_each = state.run.releases_each_answer
    batch = (row.arm, 0 if releases_each else row.phase)
    was_taken = releases_each and row.number <= state.cursor
    if batch not in tx.tables.counts or was_taken or not tx.is_round_open(row):
        raise InvalidInputError(
            "the outcome under this id has been released, or will never be: it can no longer "
            "be amended"
        )
    tx.audit("amend", 1)
    if tx.is_needed(row):
        tx.tables.replace_outcome(_stored_row(tx, row), outcome_units(body.outcome, tx.protocol))


def reissue(tx: TrialTransaction, id: str) -> Assignment:
    """Give an assignment a new id; the one before no longer works."""
    row = tx.find([id])[id]
    new = row._replace(token=secrets.token_hex(8))
    tx.tables.reissue(row, new.token)
    tx.audit("reissue", 1)
    return tx.show_assignment(new)


def expire(tx: TrialTransaction, is_noted: bool = True) -> Expired:
    """Count outcomes past their deadline as the worst, and make scheduled releases that
    are due. Return how many numbers were released, not how many participants were late:
    a missing outcome is an outcome. (So the call is noted whoever is late.)
    """
    if tx.protocol.deadline is None:
        return Expired(0)
    late, before = tx.tables.late_assignments(tx.time), tx.state.releases
    _insert(tx, [(row, None) for row in late])
    if is_noted:
        tx.audit("expire", 0)
    release_due(tx, late, is_scheduled=True)
    return Expired(tx.state.releases - before)


def view_participant(tx: TrialTransaction, id: str) -> ParticipantView:
    """Return what a participant may know about the own answer; change nothing."""
    row = tx.find([id])[id]
    run, has_stopped = tx.state.run, tx.state.stopped
    if row.state != schema.OPEN:
        state = ANSWERED
    elif tx.is_past_deadline(row):
        state = LATE
    else:
        state = ENDED if has_stopped or not tx.is_round_open(row) else OPEN
    middle_level = None if has_stopped else run.find_middle_level(row.phase)
    is_published = run.releases_each_answer
    event = None
    if is_published and state == ANSWERED:
        event = tx.tables.find_answer_event(row.number)
    return ParticipantView(row.number, state, middle_level, is_published, event)
