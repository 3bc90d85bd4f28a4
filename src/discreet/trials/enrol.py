"""How people are assigned inside one transaction: those who come, those who come again,
and requests that are repeated because their answer was lost.
"""

import json
import secrets
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.run import Place, in_order
from discreet.trials.codes import code_of
from discreet.trials.dealing import commitment, dealer, new_key
from discreet.trials.intake import Wanted
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


class Coming(NamedTuple):
    """The people of a list, by their places in it."""

    hashes: list[bytes]
    known: dict[int, int]
    """The numbers of those who took part before."""
    new: list[int]


def ask(desk: "Desk", wanted: Wanted) -> Batch | None:
    """Assign the next people of the open round, up to its end, and return whoever came
    before; None if a round must be opened first.
    """
    numbers = None if wanted.request is None else _asked_before(desk, wanted, wanted.request)
    if numbers is None:
        numbers = _assign(desk, wanted)
    return None if numbers is None else _batch(desk, wanted, numbers)


def _assign(desk: "Desk", wanted: Wanted) -> dict[int, int] | None:
    """Assign people, and return their numbers by their places in the list."""
    coming = _coming(desk, wanted)
    if coming.new or not coming.known:
        _check_site(desk, wanted.site)
    if coming.new and closed(desk):
        return None
    if coming.known:
        _check_middles(desk, coming)
    enrols = coming.new and not (desk.now.stopped or desk.now.conduct.paused)
    places = _places(desk, len(coming.new)) if enrols else []
    first = desk.session.row.people + 1
    if places:
        _enter(desk, places, wanted.site)
    entered = dict(zip(coming.new, range(first, first + len(places)), strict=False))
    if coming.hashes:
        names = [(coming.hashes[place], number) for place, number in entered.items()]
        desk.ledger.enter_people(names)
    numbers = coming.known | entered
    if numbers:
        desk.note("ask", len(numbers), wanted.site)
        if wanted.request is not None:
            answer = canonical({"said": _said(desk, wanted), "numbers": numbers})
            desk.ledger.keep_answer(desk.ledger.hash(wanted.request.encode()), answer)
    end_if_over(desk)
    return numbers if numbers or not closed(desk) else None


def closed(desk: "Desk") -> bool:
    """Whether somebody may come, and no round is open for them."""
    conduct = desk.now.conduct
    full = desk.session.row.people >= conduct.maximum
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
    if run.middle is None:
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


def _asked_before(desk: "Desk", wanted: Wanted, request: str) -> dict[int, int] | None:
    """The people of the answer that this request has had, by their places in the list;
    None if it is new. (One that had nobody is asked anew.)
    """
    text = desk.ledger.answered(desk.ledger.hash(request.encode()))
    if text is None:
        return None
    said, found = _said(desk, wanted), json.loads(text)
    if any(value != found["said"][name] for name, value in said.items() if value is not None):
        raise InvalidInputError(ASKED_ANOTHER)
    return {int(place): number for place, number in found["numbers"].items()}


def answered_before(desk: "Desk", request: str) -> bool:
    """Whether a request has had an answer."""
    return desk.ledger.answered(desk.ledger.hash(request.encode())) is not None


def _said(desk: "Desk", wanted: Wanted) -> dict[str, Any]:
    """What is asked for, as it is kept: of identities a keyed hash. A single person
    without a name is what is meant where nothing is said.
    """
    names, count = None, wanted.how_many if wanted.how_many > 1 else None
    if wanted.names is not None:
        names = desk.ledger.hash(canonical([name.hex() for name in wanted.names]).encode()).hex()
    return {"count": count, "names": names, "site": wanted.site}


def _batch(desk: "Desk", wanted: Wanted, numbers: dict[int, int]) -> Batch:
    """The answer: these people, by their places in the list, and for how many outcomes
    the next release waits.
    """
    now = desk.now
    named = dict(enumerate(wanted.people or ()))
    rows = desk.session.assigned(sorted(numbers.values()))
    assignments = [
        Assignment(rows[number].id, shown_arm(desk, rows[number]), named.get(place))
        for place, number in sorted(numbers.items())
    ]
    left = [who for place, who in named.items() if place not in numbers]
    middle = None if now.stopped else now.run.middle
    if middle is not None:
        middles = (now.run.middle_of(row.phase) for row in rows.values())
        middle = next((one for one in middles if one is not None), middle)
    waiting = desk.tally(shown=True).waiting
    return Batch(tuple(assignments), waiting, now.stopped, middle, now.conduct.paused, tuple(left))


def shown_arm(desk: "Desk", row: Assigned) -> str:
    """What staff see of a person's arm."""
    if desk.protocol.blind:
        return code_of(desk.ledger.hash, row.number)
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
            row.id,
            shown_arm(desk, row),
            row.site,
            max(now - row.at, 0.0),
            row.deadline,
        )
        for row in rows
    ]


# --- places ---------------------------------------------------------------------------


def _places(desk: "Desk", count: int) -> list[Place]:
    """Return up to so many places of one round, drawn by the key of the round that was
    opened last; without keys in the strategy's own order.
    """
    people, run = desk.session.row.people, desk.now.run
    keys = list(desk.session.round_keys().values()) if desk.protocol.keyed else []
    if desk.protocol.keyed and not keys and not run.closed:
        raise DiscreetError("the key of the open round is gone: run `discreet trial verify`")
    draw = dealer(keys[-1]) if keys else None
    places = list[Place]()
    for number in range(people + 1, min(people + count, desk.now.conduct.maximum) + 1):
        place = run.take(in_order if draw is None else partial(draw, number))
        if place is None:
            break
        places.append(place)
    return places


def _enter(desk: "Desk", places: Sequence[Place], site: str | None) -> None:
    """Enter the people in these places."""
    now, protocol, first = desk.now, desk.protocol, desk.session.row.people + 1
    ends = None if protocol.deadline is None else desk.time + protocol.deadline
    rows = list[Assigned]()
    for number, place in enumerate(places, start=first):
        phase = number if now.run.learns_always else place.phase
        secret = secrets.token_hex(8)
        row = Assigned(number, secret, place.arm, phase, schema.OPEN, ends, site, desk.time)
        rows.append(row)
        desk.session.count(place.arm, 0 if now.run.learns_always else place.phase, open=1)
    desk.session.assign(rows)
    says: dict[str, Any] = {"first": first, "arms": [place.arm for place in places]}
    if site is not None:
        says["site"] = site
        now.conduct.enrol(site, len(places))
    if protocol.timed:
        says["at"] = now.conduct.at = int(desk.time)
        now.conduct.came(dealt_in(protocol, places[-1].phase))
    desk.session.append("assigned", says)
