"""A site's site: enrol the next participant, enter outcomes, see who is waited for.

Every form carries a key under which it is done once (`frame.once_of`), and leads to a
page that can be loaded again. No address has an id, an identity or an outcome in it:
participants are named by their numbers in the trial.
"""

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from discreet import scale
from discreet.errors import InvalidInputError
from discreet.scale import CLIP
from discreet.service.auth import NotHereError, Principal, check
from discreet.service.pages.base import (
    ENVIRONMENT,
    PageRequest,
    Work,
    address,
    form_route,
    once_of,
    page_route,
    qr_picture,
)
from discreet.service.state import DAYS, invite, link_path
from discreet.trials.inputs import parse_number
from discreet.trials.outcomes import ANSWERED
from discreet.trials.protocol import Protocol
from discreet.trials.responses import Response as Randomised
from discreet.trials.settings import (
    ANONYMOUS,
)
from discreet.trials.status import AskResult, OpenAssignment, Status, TellResult
from discreet.trials.transaction import OTHER_ASK, OTHER_REQUEST
from discreet.trials.trial import Trial, TrialUser
from discreet.validation import read_decimal, read_whole
from discreet.wording import format_count

MOST_ROWS = 200
"""Participants who are waited for that one page lists."""
SAID = {
    "enrolled": "enrolled.",
    "taken": "the entry was saved.",
    "before": (
        "an outcome was already recorded, or recorded as missing. Nothing was changed: if it is "
        "wrong, correct it below."
    ),
    "late": "the deadline has passed. What was recorded by then counts; nothing was changed.",
    "amended": "the outcome was corrected.",
    "reissued": ("there is a new id. The old one, and every link made with it, no longer works."),
}
"""What a page says was done. It follows from ids and times, never from an outcome."""


class SiteScope(NamedTuple):
    """A trial, as somebody looks at it from a site."""

    trial: Trial
    caller: TrialUser
    place: str | None
    """The site that the site stands in."""
    chosen: bool
    """Whether a manager chose it."""


class OpenRow(NamedTuple):
    """Somebody whose outcome is not in."""

    number: int
    code: str
    arm: str
    site: str | None
    since: str
    until: str
    late: bool


class SiteView(NamedTuple):
    """All that a site shows."""

    name: str
    place: str | None
    choices: tuple[str, ...] | None
    """Sites among which a manager picks; None: whoever looks is bound to one."""
    any_site: bool
    """Whether participants may come from sites that nobody has named."""
    named: bool
    """Whether it must be said who comes."""
    open: bool
    """Whether anybody can be enrolled: not after the end, in a pause, at a closed
    site.
    """
    waits: str
    local: bool
    blind: bool
    rows: list[OpenRow]
    more: int
    """Participants who are waited for and not listed."""
    newest: int | None
    """Whoever was enrolled within the last minute and may still stand here."""


class ParticipantRow(NamedTuple):
    """All that the page of one participant shows."""

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
    """Whether an outcome was told or is recorded as missing; which, nobody is told."""


def site_view(face: SiteScope, status: Status, full: AskResult | None = None) -> SiteView:
    """The site of a site, after an attempt to enrol somebody where there was no place,
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
    return SiteView(
        name=protocol.name,
        place=face.place,
        choices=None if bound else names,
        any_site=protocol.sites is None,
        named=protocol.returning != ANONYMOUS,
        open=not shut,
        waits=shut or waited_for(full, status, face.place is not None and not found),
        local=protocol.strategy.trust_model.randomised,
        blind=protocol.is_blinded,
        rows=rows,
        more=len(found) - len(rows),
        newest=parse_number(found[-1].id) if found and _just_now(found[-1]) else None,
    )


def participant_page(face: SiteScope, number: int) -> ParticipantRow:
    """The page of one participant."""
    protocol = face.trial.protocol
    one = face.caller.find_assignment(number)
    row = _waited(one)
    return ParticipantRow(
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
        blind=protocol.is_blinded,
        question=protocol.question,
        yes_no=is_yes_no(protocol),
        low=f"{protocol.low:g}",
        high=f"{protocol.high:g}",
        better=better_of(protocol),
        clip=protocol.out_of_range == CLIP,
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
    """Which outcomes there are and which are better, as a site asks for them."""
    if not is_yes_no(protocol):
        return protocol.outcome_description
    return scale.describe_yes_no(protocol.direction)


def short_code(id: str) -> str:
    """What participants say to each other: the number, and the first signs of the rest."""
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
            "participant can be enrolled."
        )
    if batch.waiting:
        one = batch.waiting == 1
        what, they = ("One outcome", "It is") if one else (f"{batch.waiting} outcomes", "They are")
        where = f" {they} awaited elsewhere, not at this site." if elsewhere else ""
        return (
            f"This round is full. {what} must come in before the next participant can be enrolled."
            f"{where}"
        )
    return "No place is free now: as many participants are enrolled as the protocol allows."


def span(seconds: float) -> str:
    """A time in the largest unit that tells it well."""
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size or (size == 60 and seconds >= size):
            count = round(seconds / size)
            return format_count(count, word)
    return "less than a minute"


def _shut(status: Status, site_closed: bool) -> str:
    if status.stopped:
        return "The trial is over: nobody can be enrolled any more."
    if status.paused:
        return "The trial is paused: nobody is enrolled until a manager resumes it."
    if status.participants >= status.max_participants:
        most = format_count(f"{status.max_participants:,}", "participant", "participants")
        return (
            f"The maximum of {most} is reached: nobody else can be enrolled. Outcomes that are not "
            "in yet can still be recorded."
        )
    return "This site is closed: nobody is enrolled here." if site_closed else ""


def _just_now(one: OpenAssignment) -> bool:
    return one.age < 60


def _waited(one: OpenAssignment) -> OpenRow:
    since = "just now" if _just_now(one) else f"{span(one.age)} ago"
    left = None if one.deadline is None else one.deadline - time.time()
    until = "" if left is None else f"in {span(left)}" if left > 0 else "has passed"
    late = left is not None and left <= 0
    return OpenRow(parse_number(one.id), short_code(one.id), one.arm, one.site, since, until, late)


def sentence(words: str) -> str:
    """Words as a sentence: a capital at its beginning, a point at its end."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


ENVIRONMENT.filters["sentence"] = sentence


TYPE_A_NUMBER = (
    "type the outcome as a number in digits, with a point before decimals, such as 7 or 0.25. "
    "Nothing was recorded"
)
TYPE_WHOM = (
    "type a participant's number in the trial, such as 12, or id, such as 12-5f2c; nobody is found "
    "here by an identifier or a name"
)
NOT_ARRIVED = (
    "your last click did not reach the service, and nobody was enrolled by it: press the button "
    "once more"
)
PRESSED_BEFORE = (
    "this page was already used for something else, and nothing was changed now: go back to the "
    "site, open the participant again, and enter it there"
)
ENROLLED_BEFORE = (
    "somebody was already enrolled from this page, and nobody was enrolled now: reload the site's "
    "page, see who was enrolled a moment ago, and enrol the next participant from there"
)


def _face(page: PageRequest) -> SiteScope:
    """What the site is about: the trial, and the site it stands in."""
    bound = page.principal.site
    site = bound or page.form.get("site") or page.request.query_params.get("site") or None
    chosen = site is not None and bound is None
    return SiteScope(page.app_state.trial(page.name), _caller(page), site, chosen)


def _caller(page: PageRequest) -> TrialUser:
    return page.app_state.as_user(page.name, page.principal)


def _key(page: PageRequest, kind: str) -> str | None:
    """Under which a form is done once; apart from those of other kinds."""
    key = once_of(page.form, page.principal)
    return None if key is None else f"{key} {kind}"


async def _site_page(page: PageRequest) -> Response:
    query = page.request.query_params
    asked, wrong = query.get("asked"), ""
    if asked is not None:
        if number := await page.run(_enrolled_before, page, asked):
            return _to_participant(page, number, "enrolled")
        wrong = NOT_ARRIVED
    return await _show_site(page, wrong=wrong)


def _enrolled_before(page: PageRequest, asked: str) -> int | None:
    """The number of the person whom a form has enrolled; nobody is enrolled by this."""
    page.form = {"once": asked}
    key = _key(page, "ask")
    if key is None or not page.app_state.trial(page.name).was_answered(key):
        return None
    return parse_number(_caller(page).ask(key=key).assignments[0].id)


async def _show_site(
    page: PageRequest, status: int = 200, wrong: str = "", full: AskResult | None = None
) -> Response:
    query = page.request.query_params
    said = SAID.get(query.get("said", ""), "") if not (wrong or full) else ""
    about = query.get("participant", "")

    def make_view() -> SiteView:
        status = page.app_state.status(page.name, page.principal)
        return site_view(_face(page), status, full)

    view = await page.run(make_view)
    who = f"Participant {about}: " if said and about.isascii() and about.isdigit() else ""
    return page.render(
        "site.html", status, view=view, wrong=wrong, waits=view.waits, said=who + said
    )


async def _participant(page: PageRequest) -> Response:
    said = SAID.get(page.request.query_params.get("said", ""), "")
    number = read_whole(page.request.path_params["number"])
    if number is None:
        raise NotHereError("there is no such page")
    return await _show_participant(page, number, said=said)


async def _show_participant(
    page: PageRequest, number: int, status: int = 200, said: str = "", wrong: str = "", **more: Any
) -> Response:
    await check(page.app_state, page.principal, "list-open", page.name)
    view = await page.run(lambda: participant_page(_face(page), number))
    about = {"arm": None, "link": None, "link_picture": None, "days": DAYS, **more}
    return page.render("site_participant.html", status, view=view, said=said, wrong=wrong, **about)


# --- forms ----------------------------------------------------------------------------


async def _enrol(page: PageRequest) -> Response:
    form = page.form

    def ask() -> Any:
        return _caller(page).ask(
            site=form.get("site") or None,
            participant=form.get("participant") or None,
            key=_key(page, "ask"),
        )

    try:
        batch = await page.run(ask)
    except InvalidInputError as error:
        return await _show_site(page, 422, wrong=_of_one(str(error)))
    if not batch.assignments:
        return await _show_site(page, full=batch)
    return _to_participant(page, parse_number(batch.assignments[0].id), "enrolled")


def _of_one(words: str) -> str:
    """What is said of a request, of the one participant that a site enrols."""
    return ENROLLED_BEFORE if words == OTHER_ASK else words


async def _find(page: PageRequest) -> Response:
    """Whom somebody looks for by number in the trial, or by id, short or whole: what
    stands after its number must be right, or a slip would open another participant.
    """
    typed = re.sub(r"[\s-]+", "-", page.form.get("code", "").strip().lower())
    number = parse_number(typed)
    try:
        if number < 1:
            raise InvalidInputError(TYPE_WHOM)
        id = (await page.run(_caller(page).find_assignment, number)).id
        if "-" in typed and typed not in (id, short_code(id)):
            raise InvalidInputError(
                f"participant {number} has another id: compare what you typed with the notes"
            )
    except InvalidInputError as error:
        return await _show_site(page, 422, wrong=str(error))
    return _to_participant(page, number)


def _pressed(error: InvalidInputError) -> str:
    """What is said of a request, of the page that it came from."""
    return PRESSED_BEFORE if str(error) == OTHER_REQUEST else str(error)


def _about_one(work: Callable[[PageRequest, TrialUser, str], str], at_site: frozenset[str]) -> Work:
    """A form about one participant: what was done is said on a page that can be loaded
    again, what was refused on the page of that participant.
    """

    async def serve(page: PageRequest) -> Response:
        id = page.form.get("id", "")
        try:
            said = await page.run(lambda: work(page, _caller(page), id))
        except InvalidInputError as error:
            return await _show_participant(page, parse_number(id), 422, wrong=_pressed(error))
        if said in at_site:
            extra = _site_words(page)
            return page.redirect(
                f"{_site_path(page)}?said={said}&participant={parse_number(id)}{extra}"
            )
        return _to_participant(page, parse_number(id), said)

    return serve


def _tell(page: PageRequest, caller: TrialUser, id: str) -> str:
    if "outcome" not in page.form:
        return _miss(page, caller, id)
    return _told(caller.tell(id, _outcome(page), _key(page, "tell")))


def _answer(page: PageRequest, caller: TrialUser, id: str) -> str:
    if "response" not in page.form:
        return _miss(page, caller, id)
    response = Randomised.parse(page.form["response"])
    return _told(caller.answer(id, response, _key(page, "answer")))


def _amend(page: PageRequest, caller: TrialUser, id: str) -> str:
    caller.amend(id, _outcome(page), _key(page, "amend"))
    return "amended"


def _miss(page: PageRequest, caller: TrialUser, id: str) -> str:
    """Note that an outcome will not come. The form has the address of the one with the
    outcome, and leads to the same: browsers and proxies keep addresses.
    """
    if page.form.get("sure") != "yes":
        raise InvalidInputError("tick the box to say that you are sure. Nothing was changed")
    return _told(caller.miss(id, _key(page, "miss")))


def _reissue(page: PageRequest, caller: TrialUser, id: str) -> str:
    caller.reissue(id, _key(page, "reissue"))
    return "reissued"


def _told(told: TellResult) -> str:
    """What to say: it follows from the id and the time, never from an outcome."""
    return "taken" if told.new else "late" if told.late else "before"


def _outcome(page: PageRequest) -> float:
    """The outcome that was typed; the error does not repeat it."""
    outcome = read_decimal(page.form.get("outcome", "").strip())
    if outcome is None:
        raise InvalidInputError(TYPE_A_NUMBER)
    return outcome


async def _unblind(page: PageRequest) -> Response:
    """The arm is on this one answer, and in no address."""
    id, reason = page.form.get("id", ""), page.form.get("reason", "").strip()
    try:
        arm = await page.run(_caller(page).unblind, id, reason, _key(page, "unblind"))
    except InvalidInputError as error:
        return await _show_participant(page, parse_number(id), 422, wrong=str(error))
    return await _show_participant(page, parse_number(id), arm=arm)


async def _invite(page: PageRequest) -> Response:
    """Show the link on this answer alone: it is stored nowhere."""
    id = page.form.get("id", "")
    try:
        days = _days(page.form.get("days", ""))
        about = (page.app_state, page.principal, page.name, id, days)
        secret, _ = await page.run(invite, *about)
    except InvalidInputError as error:
        return await _show_participant(page, parse_number(id), 422, wrong=_pressed(error))
    link = str(page.request.base_url).rstrip("/") + link_path(secret)
    picture = qr_picture(link)
    return await _show_participant(
        page, parse_number(id), link=link, link_picture=picture, days=days
    )


def _days(text: str) -> float:
    days = read_decimal(text.strip())
    if days is None:
        raise InvalidInputError("say for how many days the link is valid, as a number")
    return days


# --- where to go ----------------------------------------------------------------------


def _site_path(page: PageRequest) -> str:
    return address("t", page.name, "site")


def _to_participant(page: PageRequest, number: int, said: str = "") -> Response:
    query = f"?said={said}" if said else ""
    extra = _site_words(page)
    return page.redirect(f"{_site_path(page)}/{number}{query or '?' * bool(extra)}{extra}")


def _site_words(page: PageRequest) -> str:
    """The site that a manager's site stands in, in an address."""
    principal: Principal = page.principal
    site = "" if principal.site else page.form.get("site", "")
    return f"&site={address(site)[1:]}" if site else ""


def routes(app_state: Any) -> list[Route]:
    """The pages and forms of a site."""
    site = "/t/{name}/site"
    back = frozenset({"taken"})
    return [
        page_route(app_state, site, "ask", _site_page),
        page_route(app_state, site + "/{number}", "list-open", _participant),
        form_route(app_state, f"{site}/enrol", "ask", _enrol),
        form_route(app_state, f"{site}/find", "list-open", _find),
        form_route(app_state, f"{site}/tell", "tell", _about_one(_tell, back)),
        form_route(app_state, f"{site}/answer", "answer", _about_one(_answer, back)),
        form_route(app_state, f"{site}/amend", "amend", _about_one(_amend, back)),
        form_route(app_state, f"{site}/reissue", "reissue", _about_one(_reissue, back)),
        form_route(app_state, f"{site}/unblind", "unblind", _unblind),
        form_route(app_state, f"{site}/invite", "invite", _invite),
    ]
