"""One person of a live trial: for staff by number, for the person by id."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import InvalidInputError
from discreet.trials.enrol import shown_arm
from discreet.trials.status import OpenAssignment
from discreet.trials.store import schema
from discreet.trials.store.looking import answered_at

if TYPE_CHECKING:
    from discreet.trials.desk import Desk

OPEN, ANSWERED, LATE, ENDED = "open", "answered", "late", "ended"
NOBODY = "nobody here has this number in the trial, with which an id begins; nothing was changed"
"""It repeats no number: somebody may have typed one that identifies a person."""


@dataclass(frozen=True)
class Asked:
    """What a person who is to answer may know of the own answer."""

    person: int
    """The number in the record."""
    state: str
    """`open`; `answered`, by the person or because it was said to be missing; `late`,
    past the deadline; `ended`, the trial needs no answer any more.
    """
    middle: float | None
    """The middle one of three levels, where one of them is sent."""
    published: bool
    """Whether the record tells every answer by itself, and not only sums."""
    event: tuple[int, str] | None
    """Number and hash of the event that tells the answer, when there is one."""


def person_of(desk: "Desk", number: int, site: str | None) -> OpenAssignment:
    """The assignment of a person by number, whether the outcome is in or not, which is
    not said; the journal notes that somebody looked.
    """
    row = desk.session.assigned([number]).get(number)
    if row is None or site not in (None, row.site):
        raise InvalidInputError(NOBODY)
    desk.note("open", 1, row.site)
    age = max(desk.ledger.now - row.at, 0.0)
    return OpenAssignment(row.id, shown_arm(desk, row), row.site, age, row.deadline)


def asked_of(desk: "Desk", id: str) -> Asked:
    """What the person of an id may know; changes nothing."""
    row = desk.find([id])[id]
    run, stopped = desk.now.run, desk.now.stopped
    past = desk.protocol.deadline is not None and (row.deadline or 0) < desk.time
    if row.state != schema.OPEN:
        state = ANSWERED
    else:
        state = ENDED if stopped or not desk.is_round_open(row) else OPEN
        state = LATE if past else state
    middle = None if stopped else run.middle_of(row.phase)
    each = run.learns_always
    event = answered_at(desk.session, row.number) if each and state == ANSWERED else None
    return Asked(row.number, state, middle, each, event)
