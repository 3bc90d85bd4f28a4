"""Tokens: who may come in, a new one, and one that is of no use any more."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import InvalidInputError
from discreet.service.access import NotHereError, Visitor
from discreet.service.home import Home
from discreet.service.pages.frame import Look, address, look, send
from discreet.service.pages.held import (
    by_hand,
    folded,
    links_of,
    links_path,
    part_of,
    start_of,
)
from discreet.service.pages.qr import qr_picture
from discreet.service.pages.words import when
from discreet.service.tokens import CODE_MINUTES
from discreet.trials.store.doors import Token
from discreet.trials.verbs import MANAGER, MONITOR, PARTICIPANT, SITE
from discreet.validate import read_decimal

ROLES = {
    SITE: "Site: enrols its people, tells outcomes",
    MONITOR: "Monitor: sees trials, and changes nothing",
    MANAGER: "Manager: may do everything",
}
"""Roles that are given by hand; participants get theirs from a site."""
DAYS = "90"
"""After which a token expires, unless the form says otherwise."""
SAY_DAYS = "give the number of days, such as 90, or leave it empty"


def reachable(home: Home, visitor: Visitor) -> list[Token]:
    """The tokens that a visitor may see: all, or those of its own trial."""
    mine = visitor.token
    if mine is None:
        return []
    return [one for one in home.doors.all() if mine.trial in (None, one.trial)]


async def _shown(looking: Look, status: int = 200, **more: Any) -> Response:
    home, start = looking.home, start_of(looking.request.query_params.get("from", ""))
    tokens = await looking.run(reachable, home, looking.visitor)
    trials = [one.name for one in await looking.run(home.listed, looking.visitor)]
    now = await looking.run(home.doors.now)
    empty = dict.fromkeys(("wrong", "link", "secret", "picture"), "")
    known: dict[str, Any] = {**empty, "made": None, **more}
    known["said"] = looking.form or _wanted(looking, trials)
    known |= {"part": part_of(by_hand(tokens), now, start), "folded": folded(tokens, now)}
    return looking.page("tokens.html", status, trials=trials, roles=ROLES, **known)


async def _links(looking: Look, trial: str) -> Response:
    """The links for participants of a trial, so that one of them can be revoked."""
    found = links_of(await looking.run(reachable, looking.home, looking.visitor), trial)
    if not found:
        raise NotHereError("there are no links for participants of such a trial")
    start = start_of(looking.request.query_params.get("from", ""))
    part = part_of(found, await looking.run(looking.home.doors.now), start, trial)
    return looking.page("links.html", trial=trial, part=part)


def _wanted(looking: Look, trials: list[str]) -> dict[str, str]:
    """What the form says at first: what a link wanted, the trial if there is but one,
    and that the token expires.
    """
    asked = looking.request.query_params
    fields = ("name", "role", "trial", "site")
    said = {"days": DAYS, **{field: asked[field] for field in fields if field in asked}}
    if "site" in said:
        said.setdefault("name", said["site"])
    return {"trial": trials[0], **said} if len(trials) == 1 else said


def without_token(home: Home, trial: str, sites: Iterable[str]) -> list[str]:
    """Sites of a trial that nobody can come in for."""
    now = home.doors.now()
    there = {one.site for one in home.doors.all() if one.trial == trial and one.valid(now)}
    return [site for site in sites if site not in there]


async def _tokens(looking: Look) -> Response:
    trial = looking.request.query_params.get("links")
    return await (_shown(looking) if trial is None else _links(looking, trial))


async def _make(looking: Look) -> Response:
    try:
        secret, token = await looking.run(_make_token, looking)
    except InvalidInputError as error:
        return await _shown(looking, 422, wrong=str(error))
    looking.form = {}
    return await _show_link(looking, token, None, secret)


async def _show_link(looking: Look, token: Token, by: str | None, secret: str = "") -> Response:
    """Show a new login link of a token, on this answer alone."""
    code = await looking.run(looking.home.tokens.make_code, token, by)
    link = f"{str(looking.request.base_url).rstrip('/')}{_way_in(token)}#{code}"
    return await _shown(
        looking,
        made=token,
        secret=secret,
        link=link,
        picture=qr_picture(link),
        minutes=CODE_MINUTES,
    )


async def _make_link(looking: Look) -> Response:
    token = await looking.run(_found, looking)
    if token.role == PARTICIPANT or not token.valid(await looking.run(looking.home.doors.now)):
        raise InvalidInputError("nobody can log in with this token: make another one")
    looking.form = {}
    return await _show_link(looking, token, looking.visitor.who)


def _way_in(made: Token) -> str:
    """The page that a link leads to: of a site its desk."""
    if made.role != SITE or made.trial is None:
        return "/login"
    return f"/login?to={quote(address('t', made.trial, 'desk'), safe='')}"


def _make_token(looking: Look) -> tuple[str, Token]:
    """Make the token that a form asks for."""
    form, mine = looking.form, looking.visitor.token
    name, role = form.get("name", "").strip(), form.get("role", "")
    trial = form.get("trial", "") or None
    if role not in ROLES:
        raise InvalidInputError("choose what the token lets its holder do")
    if not name:
        raise InvalidInputError("say who it is for: the audit trail uses this name for its holder")
    if mine is not None and mine.trial not in (None, trial):
        raise InvalidInputError(
            f"you are the manager of {mine.trial} only: make tokens for that trial"
        )
    looking.home.check_there(trial)
    site = form.get("site", "").strip() or None
    if role == SITE and trial is None:
        raise InvalidInputError("choose the trial that the site takes part in")
    if role == SITE and site is None:
        raise InvalidInputError("say which site it is for")
    its_site = site if role == SITE else None
    looking.home.check_site(trial, its_site)
    days = _days(form.get("days", "").strip())
    return looking.home.tokens.make(name, role, looking.visitor.who, trial, its_site, days)


def _days(text: str) -> float | None:
    days = read_decimal(text)
    if text and days is None:
        raise InvalidInputError(SAY_DAYS)
    return days


async def _ask_revoke(looking: Look) -> Response:
    token = await looking.run(_found, looking)
    mine = looking.visitor.token
    own = mine is not None and mine.number == token.number
    used, back = when(token.used), _listed_at(token)
    return looking.page("revoke.html", token=token, used=used, own=own, back=back)


async def _revoke(looking: Look) -> Response:
    token = await looking.run(_found, looking)
    await looking.run(looking.home.tokens.revoke, token.number, looking.visitor.who)
    return looking.go(_listed_at(token))


def _listed_at(token: Token) -> str:
    return links_path(token.trial) if token.role == PARTICIPANT else "/tokens"


def _found(looking: Look) -> Token:
    wanted = looking.request.path_params["number"]
    for one in reachable(looking.home, looking.visitor):
        if str(one.number) == wanted:
            return one
    raise NotHereError("there is no token of this number")


def routes(home: Home) -> list[Route]:
    """The pages of tokens."""
    return [
        look(home, "/tokens", "tokens", _tokens),
        send(home, "/tokens", "tokens", _make),
        send(home, "/tokens/{number}/link", "tokens", _make_link),
        look(home, "/tokens/{number}/revoke", "tokens", _ask_revoke),
        send(home, "/tokens/{number}/revoke", "tokens", _revoke),
    ]
