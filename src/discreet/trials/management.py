"""Management actions on a live trial: pause, stop, drop an arm, reveal an arm, …"""

from discreet.errors import InvalidInputError
from discreet.trials.operations import (
    NO_MANAGEMENT_ACTIONS,
    SET_CLOCK,
    SET_CLOCK_TAKES_REASON,
    UNBLIND,
    ManagementAction,
)
from discreet.trials.randomisation import make_code
from discreet.trials.release import end_if_over, erase_unreleasable, release_due
from discreet.trials.transaction import TrialTransaction
from discreet.trials.verbs import ManageBody, UnblindBody


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
