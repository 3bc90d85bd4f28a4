"""What a desk shows of a trial, in words and numbers for a template."""

import time
from typing import NamedTuple

from discreet import scale
from discreet.errors import InvalidInputError
from discreet.scale import CLIP
from discreet.service.pages.frame import ENVIRONMENT
from discreet.service.pages.qr import qr_picture
from discreet.trials.inputs import parse_number
from discreet.trials.outcomes import ANSWERED
from discreet.trials.protocol import ANONYMOUS, Protocol
from discreet.trials.status import AskResult, OpenAssignment, Status
from discreet.trials.trial import Trial, TrialUser
from discreet.words import counted

MOST_ROWS = 200
"""People who are waited for that one page lists."""
SAID = {
    "enrolled": "enrolled.",
    "taken": "the entry was saved.",
    "before": (
        "an outcome was already told, or was declared missing. Nothing was changed: if it is "
        "wrong, correct it below."
    ),
    "late": "the deadline has passed. What was told by then counts; nothing was changed.",
    "amended": "the outcome was corrected.",
    "reissued": ("there is a new id. The old one, and every link made with it, no longer works."),
}
"""What a page says was done. It follows from ids and times, never from an outcome."""


class Face(NamedTuple):
    """A trial, as somebody looks at it from a desk."""

    trial: Trial
    caller: TrialUser
    place: str | None
    """The site that the desk stands in."""
    chosen: bool
    """Whether a manager chose it."""


class Waited(NamedTuple):
    """Somebody whose outcome is not in."""

    number: int
    code: str
    arm: str
    site: str | None
    since: str
    until: str
    late: bool


class DeskView(NamedTuple):
    """All that a desk shows."""

    name: str
    place: str | None
    choices: tuple[str, ...] | None
    """Sites among which a manager picks; None: whoever looks is bound to one."""
    any_site: bool
    """Whether people may come from sites that nobody has named."""
    named: bool
    """Whether it must be said who comes."""
    open: bool
    """Whether anybody can be enrolled: not after the end, in a pause, at a closed
    site.
    """
    waits: str
    local: bool
    blind: bool
    rows: list[Waited]
    more: int
    """People who are waited for and not listed."""
    newest: int | None
    """Whoever was enrolled within the last minute and may still stand here."""


class PersonView(NamedTuple):
    """All that the page of one person shows."""

    name: str
    place: str | None
    chosen: bool
    number: int
    id: str
    short: str
    picture: str
    arm: str
    site: str | None
    since: str
    until: str
    local: bool
    blind: bool
    question: str
    yes_no: bool
    low: str
    high: str
    better: str
    clip: bool
    options: str
    told: bool
    """Whether an outcome was told or is noted as missing; which, nobody is told."""


def desk_view(face: Face, status: Status, full: AskResult | None = None) -> DeskView:
    """The desk of a site, after an attempt to enrol somebody where there was no place,
    if there was one.
    """
    protocol = face.trial.protocol
    bound = face.caller.site is not None
    names = tuple(site.name for site in status.sites)
    closed = {site.name for site in status.sites if site.closed}
    if face.place is not None and face.place not in names and protocol.sites is not None:
        raise InvalidInputError(f"this trial has no such site; its sites: {', '.join(names)}")
    known = face.place is None or face.place in names
    found = face.caller.open_assignments(face.place) if known else []
    rows = [_waited(one) for one in found[:MOST_ROWS]]
    shut = _shut(status, face.place in closed)
    return DeskView(
        name=protocol.name,
        place=face.place,
        choices=None if bound else names,
        any_site=protocol.sites is None,
        named=protocol.people != ANONYMOUS,
        open=not shut,
        waits=shut or waited_for(full, status, face.place is not None and not found),
        local=protocol.strategy.trust_model.randomised,
        blind=protocol.blind,
        rows=rows,
        more=len(found) - len(rows),
        newest=parse_number(found[-1].id) if found and _just_now(found[-1]) else None,
    )


def person_view(face: Face, number: int) -> PersonView:
    """The page of one person."""
    protocol = face.trial.protocol
    one = face.caller.find_assignment(number)
    row = _waited(one)
    return PersonView(
        name=protocol.name,
        place=face.place,
        chosen=face.chosen,
        number=row.number,
        id=one.id,
        short=row.code,
        picture=qr_picture(one.id),
        arm=row.arm,
        site=row.site,
        since=row.since,
        until=row.until,
        local=protocol.strategy.trust_model.randomised,
        blind=protocol.blind,
        question=protocol.question,
        yes_no=is_yes_no(protocol),
        low=f"{protocol.low:g}",
        high=f"{protocol.high:g}",
        better=better_of(protocol),
        clip=protocol.outside == CLIP,
        options=protocol.respond_options,
        told=face.caller.participant_view(one.id).state == ANSWERED,
    )


def is_yes_no(protocol: Protocol) -> bool:
    """Whether an outcome is entered as yes or no."""
    return scale.is_yes_no(protocol.scale, protocol.strategy.outcomes)


def better_of(protocol: Protocol) -> str:
    """Which outcomes are better, in one word."""
    more, less = ("yes", "no") if is_yes_no(protocol) else ("more", "less")
    return more if protocol.direction == "max" else less


def outcome_words(protocol: Protocol) -> str:
    """Which outcomes there are and which are better, as a desk asks for them."""
    if not is_yes_no(protocol):
        return protocol.outcome_words
    return scale.yes_no_words(protocol.direction)


def short_code(id: str) -> str:
    """What people say to each other: the number, and the first signs of the rest."""
    number, _, rest = id.partition("-")
    return f"{number}-{rest[:4]}"


def waited_for(batch: AskResult | None, status: Status, elsewhere: bool) -> str:
    """Why nobody was enrolled, in plain words, and whether no outcome that the round
    waits for is one of this site.
    """
    if batch is None:
        return ""
    if status.next_release is not None:
        ahead = span(status.next_release - time.time())
        return (
            f"This round is full. It is released by the clock, in {ahead}; after that the next "
            "person can be enrolled."
        )
    if batch.waiting:
        one = batch.waiting == 1
        what, they = ("One outcome", "It is") if one else (f"{batch.waiting} outcomes", "They are")
        where = f" {they} awaited elsewhere, not at this site." if elsewhere else ""
        return (
            f"This round is full. {what} must come in before the next person can be enrolled."
            f"{where}"
        )
    return "No place is free now: as many people are enrolled as the protocol allows."


def span(seconds: float) -> str:
    """A time in the largest unit that tells it well."""
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size or (size == 60 and seconds >= size):
            count = round(seconds / size)
            return counted(count, word)
    return "less than a minute"


def _shut(status: Status, site_closed: bool) -> str:
    if status.stopped:
        return "The trial is over: nobody can be enrolled any more."
    if status.paused:
        return "The trial is paused: nobody is enrolled until a manager resumes it."
    if status.people >= status.max_people:
        most = counted(f"{status.max_people:,}", "person", "people")
        return (
            f"The maximum of {most} is reached: nobody else can be enrolled. Outcomes that are not "
            "in yet can still be told."
        )
    return "This site is closed: nobody is enrolled here." if site_closed else ""


def _just_now(one: OpenAssignment) -> bool:
    return one.age < 60


def _waited(one: OpenAssignment) -> Waited:
    since = "just now" if _just_now(one) else f"{span(one.age)} ago"
    left = None if one.deadline is None else one.deadline - time.time()
    until = "" if left is None else f"in {span(left)}" if left > 0 else "has passed"
    late = left is not None and left <= 0
    return Waited(parse_number(one.id), short_code(one.id), one.arm, one.site, since, until, late)


def sentence(words: str) -> str:
    """Words as a sentence: a capital at its beginning, a point at its end."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


ENVIRONMENT.filters["sentence"] = sentence
