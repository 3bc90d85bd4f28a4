"""Enrolment: assign participants to arms, and open rounds.

Participants who come again get the same assignment, if the protocol says so.
"""

import secrets
from functools import partial
from typing import Any, NamedTuple

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.run import ArmBatch, choose_first
from discreet.trials import transaction
from discreet.trials.inputs import normalize_identifiers
from discreet.trials.names import is_site_name
from discreet.trials.randomisation import commit_to, draw_key, prepare_draw
from discreet.trials.record import assignment_round
from discreet.trials.release import end_if_over
from discreet.trials.settings import (
    REFUSE_RETURNING,
    SAME_ARM,
)
from discreet.trials.status import AskResult, OpenAssignment
from discreet.trials.store import schema
from discreet.trials.store.schema import AssignmentRow
from discreet.trials.transaction import TrialTransaction
from discreet.trials.verbs import AskBody
from discreet.validation import quote

TOOK_PART = "this participant took part before, and cannot take part again. Nobody was assigned"
UNKNOWN_NUMBER = (
    "nobody here has this number in the trial, with which an id begins; nothing was changed"
)
"""It repeats no number: somebody may have typed one that identifies a person."""


class Arrivals(NamedTuple):
    """The participants of a request, by their places in its list."""

    hashes: list[bytes]
    returning: dict[int, int]
    """Numbers of those who took part before."""
    new: list[int]


def ask(tx: TrialTransaction, body: AskBody, key: str | None = None) -> AskResult | None:
    """Assign the next participants of the open round, up to its end, and return those
    who came before. Return None if a round must be opened first.
    """
    site = _choose_site(tx, body)
    numbers = None if key is None else transaction.find_asked(tx, body, site, key)
    if numbers is None:
        numbers = _assign(tx, body, site, key)
    return None if numbers is None else _make_result(tx, body, numbers)


def _assign(
    tx: TrialTransaction, body: AskBody, site: str | None, key: str | None
) -> dict[int, int] | None:
    """Assign participants, and return their numbers by their places in the list."""
    hashes, returning, new = arrivals = _find_returning(tx, body, site)
    if new or not returning:
        _check_site(tx, site)
    if new and needs_round(tx):
        return None
    if returning and tx.state.run.middle_level is not None:
        _check_middle_levels(tx, arrivals)
    can_enrol = new and not (tx.state.stopped or tx.state.management.paused)
    first = tx.tables.row.participants + 1
    count = _enrol(tx, len(new), site) if can_enrol else 0
    entered = dict(zip(new, range(first, first + count), strict=False))
    if hashes:
        tx.tables.insert_participants([(hashes[place], entered[place]) for place in entered])
    numbers = returning | entered
    if numbers:
        tx.audit("ask", len(numbers), site)
        if key is not None:
            transaction.store_asked(tx, body, site, key, numbers)
    end_if_over(tx)
    return numbers if numbers or not needs_round(tx) else None


def needs_round(tx: TrialTransaction) -> bool:
    """Return whether participants may come, and no round is open for them."""
    state, management = tx.state, tx.state.management
    is_full = tx.tables.row.participants >= management.maximum
    return not (state.stopped or management.paused or is_full) and state.run.needs_round


def open_round(tx: TrialTransaction) -> None:
    """Open a round: draw its key, keep it, and commit to it publicly, before anybody of
    the round is known.
    """
    if not needs_round(tx):
        return
    opening, key = tx.state.run.open_round(), draw_key()
    tx.tables.insert_round_key(opening.round, key)
    body = {"round": opening.round, "odds": opening.odds, "participants": opening.participants}
    tx.tables.append_event("opened", {**body, "commit": commit_to(key)})
    tx.drew = True


# --- who comes, and from where
# ------------------------------------------------------------


def _choose_site(tx: TrialTransaction, body: AskBody) -> str | None:
    """Return the site of a request. Callers who are bound to a site name no other."""
    if body.site is not None and tx.site not in (None, body.site):
        raise InvalidInputError(f"you call for {tx.site}: leave the site out. Nothing was changed")
    return tx.site if body.site is None else body.site


def _find_returning(tx: TrialTransaction, body: AskBody, site: str | None) -> Arrivals:
    """Return which participants are new, and which took part before. Refuse those who
    may not come again, and those who are named twice.
    """
    if body.named is None:
        if tx.protocol.returning in (SAME_ARM, REFUSE_RETURNING):
            raise InvalidInputError(
                "this trial must know who a person is before it shows an arm: name each person "
                "with ask(participant=…), or on the command line with --participant or "
                "--participants. Nobody was assigned"
            )
        return Arrivals([], {}, list(range(body.n)))
    hashes = [tx.tables.hash_with_secret(name) for name in normalize_identifiers(body.named)]
    known, first_places = tx.tables.find_participants(hashes), dict[bytes, int]()
    twice, refused, returning = list[int](), list[int](), dict[int, int]()
    for place, hash in enumerate(hashes):
        if first_places.setdefault(hash, place) != place:
            twice.append(place)
        elif hash in known and tx.protocol.returning == SAME_ARM:
            returning[place] = known[hash]
        elif hash in known:
            refused.append(place)
    if tx.site is not None and returning:
        rows = tx.tables.find_assignments(sorted(returning.values()))
        elsewhere = [place for place in returning if rows[returning[place]].site != site]
        if elsewhere:
            raise InvalidInputError(
                f"{_entries(elsewhere)} of the list were enrolled at another site: send them "
                "there, or ask a manager of the trial. Nobody was assigned"
            )
    if refused and body.participant is not None:
        raise InvalidInputError(TOOK_PART)
    if refused or twice:
        why = "took part before" if refused else "are named before in it"
        raise InvalidInputError(
            f"{_entries(refused or twice)} of the list {why}: leave them out. Nobody was assigned"
        )
    return Arrivals(hashes, returning, [place for place in range(body.n) if place not in returning])


def _entries(places: list[int]) -> str:
    """Name entries of a list without what they say."""
    return f"people number {', '.join(str(place + 1) for place in sorted(places))}"


def _check_middle_levels(tx: TrialTransaction, arrivals: Arrivals) -> None:
    """Refuse participants who are to send different levels: a result names one."""
    run = tx.state.run
    rows = tx.tables.find_assignments(sorted(arrivals.returning.values()))
    levels = {run.find_middle_level(row.phase) for row in rows.values()} - {None}
    if len(levels | ({run.middle_level} if arrivals.new else set())) > 1:
        raise InvalidInputError(
            "these people belong to rounds with different middle levels: ask for one person at "
            "a time. Nobody was assigned"
        )


def _check_site(tx: TrialTransaction, site: str | None) -> None:
    """Refuse participants from sites that do not enrol."""
    management = tx.state.management
    sites = management.list_sites(tx.protocol)
    if sites is not None and site not in sites:
        got = "" if site is None else f"; got {quote(site)}"
        raise InvalidInputError(
            f"say which site people come from: one of {', '.join(sites)}{got}. Nobody was assigned"
        )
    if site is not None and not is_site_name(site):
        raise InvalidInputError("site must be the name of a site. Nobody was assigned")
    if site in management.closed_sites:
        raise InvalidInputError(f"{site} is closed: nobody is enrolled there. Nobody was assigned")


# --- new assignments
# ----------------------------------------------------------------------


def _enrol(tx: TrialTransaction, count: int, site: str | None) -> int:
    """Enrol up to so many participants in the round that was opened last. Return how
    many.
    """
    tables, state, protocol = tx.tables, tx.state, tx.protocol
    first, releases_each = tables.row.participants + 1, state.run.releases_each_answer
    keys = list(tables.round_keys.values()) if protocol.has_round_keys else []
    if protocol.has_round_keys and not keys and not state.run.needs_round:
        raise DiscreetError("the key of the open round is gone: run `discreet trial verify`")
    draw, seats = prepare_draw(keys[-1]) if keys else None, list[ArmBatch]()
    for number in range(first, min(first - 1 + count, state.management.maximum) + 1):
        seat = state.run.assign_next(choose_first if draw is None else partial(draw, number))
        if seat is None:
            break
        seats.append(seat)
    if not seats:
        return 0
    deadline = None if protocol.deadline is None else tx.time + protocol.deadline
    rows = list[AssignmentRow]()
    for number, seat in enumerate(seats, start=first):
        phase = number if releases_each else seat.phase
        rows.append(
            AssignmentRow(
                *(number, secrets.token_hex(8), seat.arm, phase, schema.OPEN),
                *(deadline, site, tx.time),
            )
        )
        tables.add_counts(seat.arm, 0 if releases_each else phase, open=1)
    tables.insert_assignments(rows)
    body: dict[str, Any] = {"first": first, "arms": [seat.arm for seat in seats]}
    if site is not None:
        body["site"] = site
        state.management.count_site(site, len(seats))
    if protocol.has_times:
        body["at"] = state.management.at = int(tx.time)
        state.management.note_arrival(assignment_round(protocol, seats[-1].phase))
    tables.append_event("assigned", body)
    return len(seats)


def _make_result(tx: TrialTransaction, body: AskBody, numbers: dict[int, int]) -> AskResult:
    """Return the assignments of these participants, by their places in the list."""
    state, named = tx.state, body.named or ()
    rows = tx.tables.find_assignments(sorted(numbers.values()))
    assignments = tuple(
        tx.show_assignment(rows[number], named[place] if named else None)
        for place, number in sorted(numbers.items())
    )
    not_assigned = tuple(name for place, name in enumerate(named) if place not in numbers)
    middle = None if state.stopped else state.run.middle_level
    if middle is not None:
        levels = (state.run.find_middle_level(row.phase) for row in rows.values())
        middle = next((level for level in levels if level is not None), middle)
    waiting = tx.count_pending(is_shown=True).waiting
    paused = state.management.paused
    return AskResult(assignments, waiting, state.stopped, middle, paused, not_assigned)


# --- looking assignments up
# ---------------------------------------------------------------


def list_open(tx: TrialTransaction, site: str | None) -> list[OpenAssignment]:
    """Return the assignments without an outcome, of one site or of all. The audit trail
    notes that somebody looked.
    """
    management = tx.state.management
    if site is not None and tx.site not in (None, site):
        raise InvalidInputError(f"you call for {tx.site}: leave the site out. Nothing was changed")
    site = tx.site if site is None else site
    known = {*(management.list_sites(tx.protocol) or ()), *management.sites}
    if site is not None and site not in known:
        names = ", ".join(sorted(known)) or "none yet"
        raise InvalidInputError(f"nobody came from a site {site!r}; sites: {names}")
    rows = tx.tables.open_assignments(site)
    tx.audit("open", len(rows), site)
    return [_describe(tx, row) for row in rows]


def find_assignment(tx: TrialTransaction, number: int) -> OpenAssignment:
    """Return the assignment of a participant by number, whether the outcome is recorded
    or not, which is not said. The audit trail notes that somebody looked.
    """
    row = tx.tables.find_assignments([number]).get(number)
    if row is None or tx.site not in (None, row.site):
        raise InvalidInputError(UNKNOWN_NUMBER)
    tx.audit("open", 1, row.site)
    return _describe(tx, row)


def _describe(tx: TrialTransaction, row: AssignmentRow) -> OpenAssignment:
    shown = tx.show_assignment(row)
    return OpenAssignment(
        shown.id, shown.arm, row.site, max(tx.tables.now - row.at, 0.0), row.deadline
    )
