"""A trial is put in the place of another record of it, and its audit trail keeps what
outlasts that: tokens, invitations and publications belong to the database and not to
the trial. No backup holds them and no restore sets them back, so the notes of who made
or revoked them stay as well.
"""

from discreet.trials.status import AuditEntry
from discreet.trials.store.tables import TrialTables
from discreet.trials.store.whole import Whole

CALLS = ("token create ", "token revoke ", "token link ", "invite", "publish", "unpublish")
"""How the audit trail calls what is not set back (see `store.doors`)."""
ALL = 2**31 - 1
"""More entries than an audit trail has."""


def copy_over(here: Whole, trial: TrialTables, replaced: TrialTables | None) -> TrialTables:
    """Enter a trial of another database, in the place of one of this name if there is
    one, whose notes of what outlasts it are kept.
    """
    notes = [] if replaced is None else _outlasting(replaced)
    made = here.copy(trial, replaced)
    _note_again(made, notes)
    return made


def _outlasting(trial: TrialTables) -> list[AuditEntry]:
    """The notes of an audit trail that outlast its trial, the oldest first."""
    return [one for one in reversed(trial.audit_entries(ALL)) if one.action.startswith(CALLS)]


def _note_again(trial: TrialTables, notes: list[AuditEntry]) -> None:
    """Put those that an audit trail does not have behind its last entry. Their times
    stay as they are, unless they would go back or, by a clock that was wrong, lie
    ahead.
    """
    found = trial.audit_entries(ALL)
    known = {one[1:] for one in found}
    number, at = (found[0].entry, found[0].at) if found else (0, 0.0)
    rows = list[AuditEntry]()
    for one in notes:
        if one[1:] not in known:
            number, at = number + 1, max(at, min(one.at, trial.now))
            rows.append(one._replace(entry=number, at=at))
    trial.insert_audit_entries(rows)
