"""A trial is put in the place of another record of it, and its journal keeps what
outlasts that: tokens, invitations and publications belong to the database and not to
the trial. No backup holds them and no restore sets them back, so the notes of who made
or revoked them stay as well.
"""

from discreet.trials.status import Entry
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import journal
from discreet.trials.store.session import Session
from discreet.trials.store.whole import Whole

CALLS = ("token create ", "token revoke ", "token link ", "invite", "publish", "unpublish")
"""How the journal calls what is not set back (see `store.doors`)."""
ALL = 2**31 - 1
"""More entries than a journal has."""


def copy_over(here: Whole, trial: Session, replaced: Session | None) -> Session:
    """Enter a trial of another database, in the place of one of this name if there is
    one, whose notes of what outlasts it are kept.
    """
    notes = [] if replaced is None else _outlasting(replaced)
    made = here.copy(trial, replaced)
    _note_again(made, notes)
    return made


def _outlasting(trial: Session) -> list[Entry]:
    """The notes of a journal that outlast its trial, the oldest first."""
    return [one for one in reversed(Ledger(trial).entries(ALL)) if one.call.startswith(CALLS)]


def _note_again(trial: Session, notes: list[Entry]) -> None:
    """Put those that a journal does not have behind its last entry. Their times stay as
    they are, unless they would go back or, by a clock that was wrong, lie ahead.
    """
    ledger = Ledger(trial)
    found = ledger.entries(ALL)
    known = {one[1:] for one in found}
    number, at = (found[0].entry, found[0].at) if found else (0, 0.0)
    rows = list[Entry]()
    for one in notes:
        if one[1:] not in known:
            number, at = number + 1, max(at, min(one.at, ledger.now))
            rows.append(one._replace(entry=number, at=at))
    trial.insert(journal, rows)
