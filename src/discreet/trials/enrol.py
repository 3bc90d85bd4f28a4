"""How people are assigned inside one transaction: those who come, those who come again,
and requests that are repeated because their answer was lost.
"""

import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.strategies.run import Deal
from discreet.trials.changes import Changes
from discreet.trials.codes import code_of
from discreet.trials.dealing import commitment, deal, dealer, new_key
from discreet.trials.intake import Wanted, id_of
from discreet.trials.names import check_site
from discreet.trials.protocol import REFUSED, STICKY, canonical
from discreet.trials.replay import dealt_in
from discreet.trials.settling import end_if_over
from discreet.trials.status import Assignment, Batch, OpenAssignment
from discreet.trials.store import schema
from discreet.trials.store.schema import Assigned
from discreet.validate import quoted

if TYPE_CHECKING:
    from discreet.trials.desk import Desk

ASKED_ANOTHER = (
    "this request was made before, for other people, another number or another site: "
    "repeat it exactly, or give only its key, or use a new key. Nobody was assigned"
)
TOOK_PART = "this person took part before, and cannot take part again. Nobody was assigned"


class Next(NamedTuple):
    """The place of the next person."""

    arm: int
    phase: int
    replaces: bool
    """Whether the person takes the place of another one."""


class Coming(NamedTuple):
    """The people of a list, by their places in it."""

    hashes: list[bytes]
    known: dict[int, int]
    """The numbers of those who took part before."""
    new: list[int]


def ask(desk: "Desk", callers: Sequence[Wanted]) -> list[Batch | None]:
    """For each of one or more callers from one site the next people of the open round,
    up to its end, and whoever came before; None if a round must be opened first.
    """
    keys = [one.request for one in callers if one.request is not None]
    desk.ledger.look_up([desk.ledger.hash(key.encode()) for key in keys])
    answered = [_asked_before(desk, one) for one in callers]
    fresh = [one for one, numbers in zip(callers, answered, strict=True) if numbers is None]
    added = iter(_assign(desk, fresh)) if fresh else iter(())
    numbers = [next(added) if found is None else found for found in answered]
    rows = _rows(desk, {number for found in numbers if found for number in found.values()})
    tally = desk.shown_tally()
    waiting = tally.waiting
    if waiting and desk.protocol.blind:  # how many the round needs depends on arms
        waiting = tally.pending
    return [
        None if found is None else _batch(desk, one, found, rows, waiting)
        for one, found in zip(callers, numbers, strict=True)
    ]


def _rows(desk: "Desk", numbers: set[int]) -> dict[int, Assigned]:
    """The assignments of these people; those who were just entered are at hand."""
    here = {row.number: row for row in desk.entered}
    there = sorted(numbers - here.keys())
    return here | (desk.session.assigned(there) if there else {})


def _assign(desk: "Desk", callers: Sequence[Wanted]) -> list[dict[int, int] | None]:
    """The numbers of the people of each caller, by their places in the list."""
    wanted = _together(callers)
    coming = _coming(desk, wanted)
    if coming.new or not coming.known:
        _check_site(desk, wanted.site)
    if coming.new and closed(desk):
        return [None] * len(callers)
    _check_middles(desk, coming)
    places = _places(desk, len(coming.new)) if coming.new and _enrols(desk) else []
    first = desk.session.look_again().people + 1
    if places:
        _enter(desk, places, wanted.site)
    numbers = coming.known | dict(zip(coming.new, range(first, first + len(places)), strict=False))
    if coming.hashes:
        new = coming.new[: len(places)]
        desk.ledger.enter_people([(coming.hashes[place], numbers[place]) for place in new])
    found, start = list[dict[int, int] | None](), 0
    for one in callers:
        own = {place: numbers.get(start + place) for place in range(one.how_many)}
        mine = {place: number for place, number in own.items() if number is not None}
        if mine:
            desk.note("ask", len(mine), one.site, who=one.who)
            _keep_answer(desk, one, mine)
        found.append(mine if mine or not closed(desk) else None)
        start += one.how_many
    end_if_over(desk)
    return found


def _together(callers: Sequence[Wanted]) -> Wanted:
    """What several callers want, as if one did; refused if two make the same request,
    so that they are served one after the other.
    """
    requests = [one.request for one in callers if one.request is not None]
    if len(set(requests)) < len(requests):
        raise InvalidInputError("two callers made the same request")
    names = [name for one in callers for name in one.names or ()]
    named = None if callers[0].names is None else tuple(names)
    alone = len(callers) == 1 and callers[0].alone
    many, site = sum(one.how_many for one in callers), callers[0].site
    return Wanted(many, None, named, site, None, alone=alone, bound=callers[0].bound)


def _enrols(desk: "Desk") -> bool:
    return not (desk.now.stopped or desk.now.conduct.paused)


def closed(desk: "Desk") -> bool:
    """Whether somebody may come, and no round is open for them."""
    conduct = desk.now.conduct
    full = desk.session.look_again().people >= conduct.maximum
    return not (desk.now.stopped or conduct.paused or full) and desk.now.run.closed


def open_round(desk: "Desk") -> None:
    """Open a round: its key is drawn, kept, and committed to, before anybody of it is
    known.
    """
    if not closed(desk):
        return
    opening, key = desk.now.run.open(), new_key()
    desk.session.open_round(opening.round, key)
    said = {"round": opening.round, "odds": opening.odds, "people": opening.people}
    desk.session.append("opened", {**said, "commit": commitment(key)})
    desk.drew = True


# --- who comes ------------------------------------------------------------------------


def _coming(desk: "Desk", wanted: Wanted) -> Coming:
    """Who of the list is new, and who took part before; refuses them, or whoever is
    named twice, as the protocol says.
    """
    if wanted.names is None:
        if desk.protocol.people in (STICKY, REFUSED):
            raise InvalidInputError(
                "this trial must know who a person is before it shows an arm: name each person "
                "with ask(person=…), or on the command line with --person or --people. Nobody "
                "was assigned"
            )
        return Coming([], {}, list(range(wanted.how_many)))
    hashes = [desk.ledger.hash(name) for name in wanted.names]
    found, firsts = desk.ledger.numbers(hashes), dict[bytes, int]()
    twice, refused, known = list[int](), list[int](), dict[int, int]()
    for place, hash in enumerate(hashes):
        number = found.get(hash)
        if firsts.setdefault(hash, place) != place:
            twice.append(place)
        elif desk.protocol.people == STICKY and number is not None:
            known[place] = number
        elif hash in found:
            refused.append(place)
    if wanted.bound and known:
        rows = desk.session.assigned(sorted(known.values()))
        elsewhere = [place for place in known if rows[known[place]].site != wanted.site]
        if elsewhere:
            places = ", ".join(str(place + 1) for place in elsewhere)
            raise InvalidInputError(
                f"people number {places} of the list were enrolled at another site: send them "
                "there, or ask an operator of the trial. Nobody was assigned"
            )
    if refused and wanted.alone:
        raise InvalidInputError(TOOK_PART)
    if refused or twice:
        places = ", ".join(str(place + 1) for place in sorted(refused or twice))
        why = "took part before" if refused else "are named before in it"
        raise InvalidInputError(
            f"people number {places} of the list {why}: leave them out. Nobody was assigned"
        )
    return Coming(hashes, known, [place for place in range(len(hashes)) if place not in known])


def _check_middles(desk: "Desk", coming: Coming) -> None:
    """Refuse people who are to send different levels: an answer says one."""
    run = desk.now.run
    if not coming.known or run.middle is None:
        return
    rows = desk.session.assigned(sorted(coming.known.values()))
    middles = {run.middle_of(row.phase) for row in rows.values()} - {None}
    if len(middles | ({run.middle} if coming.new else set())) > 1:
        raise InvalidInputError(
            "these people belong to rounds with different middle levels: ask for one person at "
            "a time. Nobody was assigned"
        )


def _check_site(desk: "Desk", site: str | None) -> None:
    """Refuse people from where nobody may come."""
    sites = desk.now.conduct.sites_of(desk.protocol)
    if sites is not None and site not in sites:
        got = "" if site is None else f"; got {quoted(site)}"
        raise InvalidInputError(
            f"say which site people come from: one of {', '.join(sites)}{got}. Nobody was assigned"
        )
    if site is not None and not check_site(site):
        raise InvalidInputError("site must be the name of a site. Nobody was assigned")
    if site in desk.now.conduct.closed:
        raise InvalidInputError(f"{site} is closed: nobody is enrolled there. Nobody was assigned")


# --- requests -------------------------------------------------------------------------


def _asked_before(desk: "Desk", wanted: Wanted) -> dict[int, int] | None:
    """The people of the answer that this request has had, by their places in the list;
    None if it is new. (One that had nobody is asked anew.)
    """
    if wanted.request is None:
        return None
    text = desk.ledger.answered(desk.ledger.hash(wanted.request.encode()))
    if text is None:
        return None
    said, found = _said(desk, wanted), json.loads(text)
    if any(value != found["said"][name] for name, value in said.items() if value is not None):
        raise InvalidInputError(ASKED_ANOTHER)
    return {int(place): number for place, number in found["numbers"].items()}


def answered_before(desk: "Desk", request: str) -> bool:
    """Whether a request has had an answer."""
    return desk.ledger.answered(desk.ledger.hash(request.encode())) is not None


def _keep_answer(desk: "Desk", wanted: Wanted, numbers: dict[int, int]) -> None:
    if wanted.request is not None:
        answer = canonical({"said": _said(desk, wanted), "numbers": numbers})
        desk.ledger.keep_answer(desk.ledger.hash(wanted.request.encode()), answer)


def _said(desk: "Desk", wanted: Wanted) -> dict[str, Any]:
    """What is asked for, as it is kept: of identities a keyed hash. A single person
    without a name is what is meant where nothing is said.
    """
    names, count = None, wanted.how_many if wanted.how_many > 1 else None
    if wanted.names is not None:
        names = desk.ledger.hash(canonical([name.hex() for name in wanted.names]).encode()).hex()
    return {"count": count, "names": names, "site": wanted.site}


def _batch(
    desk: "Desk",
    wanted: Wanted,
    numbers: dict[int, int],
    rows: dict[int, Assigned],
    waiting: int,
) -> Batch:
    """The answer: these people, by their places in the list, and for how many outcomes
    the next release waits.
    """
    now = desk.now
    named = dict(enumerate(wanted.people or ()))
    assignments = [
        assignment_of(desk, rows[numbers[place]], named.get(place)) for place in sorted(numbers)
    ]
    left = [who for place, who in named.items() if place not in numbers]
    middle = None if now.stopped else now.run.middle
    if middle is not None:
        middles = (now.run.middle_of(rows[number].phase) for number in numbers.values())
        middle = next((one for one in middles if one is not None), middle)
    return Batch(tuple(assignments), waiting, now.stopped, middle, now.conduct.paused, tuple(left))


def assignment_of(desk: "Desk", row: Assigned, person: str | None = None) -> Assignment:
    """What the caller gets to see of an assignment."""
    return Assignment(id_of(row), shown_arm(desk, row), person)


def shown_arm(desk: "Desk", row: Assigned) -> str:
    """What staff see of a person's arm."""
    if desk.protocol.blind:
        return code_of(desk.ledger.hash, row.arm, row.number)
    return desk.now.conduct.arms[row.arm]


def open_assignments(desk: "Desk", site: str | None) -> list[OpenAssignment]:
    """Whose outcome is not in; the journal notes that somebody looked."""
    known = {*(desk.now.conduct.sites_of(desk.protocol) or ()), *desk.now.conduct.sites}
    if site is not None and site not in known:
        names = ", ".join(sorted(known)) or "none yet"
        raise InvalidInputError(f"nobody came from a site {site!r}; sites: {names}")
    rows, now = desk.session.open_assignments(site), desk.ledger.now
    desk.note("open", len(rows), site)
    return [
        OpenAssignment(
            id_of(row),
            shown_arm(desk, row),
            row.site,
            None if row.at is None else max(now - row.at, 0.0),
            row.deadline,
        )
        for row in rows
    ]


# --- places ---------------------------------------------------------------------------


def _places(desk: "Desk", count: int) -> list[Next]:
    """Up to so many places of one round; those of people who are replaced come first.
    In trials from before rounds had keys, they are dealt among the others and only
    written first.
    """
    people, run = desk.session.look_again().people, desk.now.run
    room, dealer = min(count, desk.now.conduct.maximum - people), _Dealer(desk)
    vacant, found = list[Next](), list[Next]()
    for batch in sorted(desk.session.batches().values()):
        vacant += [Next(batch.arm, batch.phase, True)] * batch.vacant
    while len(found) < room:
        left = 0 if desk.protocol.keyed else run.to_deal()
        drawn = secrets.randbelow(len(vacant) + left) if vacant or left else 0
        if drawn < len(vacant):
            found.append(vacant.pop(drawn))
        elif (place := run.take(dealer.of(people + len(found) + 1))) is not None:
            found.append(Next(place.arm, place.phase, False))
        else:
            break
    return sorted(found, key=lambda place: not place.replaces)


class _Dealer:
    """What deals people: the key of the round that was opened last."""

    def __init__(self, desk: "Desk") -> None:
        keys = list(desk.session.round_keys().values()) if desk.protocol.keyed else []
        self.draw = dealer(keys[-1]) if keys else None

    def of(self, number: int) -> Deal:
        """What deals the person of this number."""
        draw = self.draw
        return deal if draw is None else lambda weights: draw(number, weights)


def _enter(desk: "Desk", places: Sequence[Next], site: str | None) -> None:
    """Enter the people in these places."""
    now, protocol, first = desk.now, desk.protocol, desk.session.look_again().people + 1
    ends = None if desk.protocol.until is None else desk.time + desk.protocol.until
    one_line = now.run.learns_always and protocol.dealing
    rows, changes = list[Assigned](), Changes()
    for number, place in enumerate(places, start=first):
        phase = number if one_line else place.phase
        secret = secrets.token_hex(8)
        row = Assigned(number, secret, place.arm, phase, schema.OPEN, ends, site, desk.time)
        rows.append(row)
        vacant = -1 if place.replaces else 0
        changes.count(desk.slot(place.arm, place.phase), open=1, vacant=vacant)
    desk.session.assign(rows)
    desk.entered += rows
    desk.session.add(changes.by_slot)
    says: dict[str, Any] = {"first": first, "arms": [place.arm for place in places]}
    says["replacing"] = sum(place.replaces for place in places)
    if site is not None:
        says["site"] = site
    now.conduct.enrol(site, len(places))
    if protocol.timed:
        says["at"] = now.conduct.at = int(desk.time)
        now.conduct.came(dealt_in(protocol, places[-1].phase))
    desk.session.append("assigned", says)
