"""Log in with a token or a one-time login link, and log out."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import InvalidInputError
from discreet.service.auth import CODE_MINUTES, LOGIN_SECONDS, WRONG, NotHereError, Visitor
from discreet.service.credentials import SecretKind, is_form_key, is_kind
from discreet.service.pages.base import (
    LOGIN_PATH,
    Look,
    address,
    login_cookie,
    look,
    qr_picture,
    read_login,
    send,
)
from discreet.service.pages.trial_text import when
from discreet.service.state import Home
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, MONITOR, PARTICIPANT, SITE
from discreet.validation import read_decimal, read_whole
from discreet.wording import format_count

MOST = 200
"""Rows of a page."""


class Row(NamedTuple):
    """A token in words."""

    token: Token
    state: str
    used: str
    works: bool


class Links(NamedTuple):
    """The links of a trial's participants."""

    words: str
    path: str


class Part(NamedTuple):
    """As many tokens as a page shows, what it leaves out, and where that is."""

    rows: list[Row]
    words: str
    before: str
    after: str
    all_alike: bool
    """Whether all of them are of one role and one trial."""


def by_hand(tokens: Iterable[Token]) -> list[Token]:
    """Tokens without the links that sites make for participants."""
    return [one for one in tokens if one.role != PARTICIPANT]


def links_of(tokens: Iterable[Token], trial: str) -> list[Token]:
    """The links for participants of a trial."""
    return [one for one in tokens if one.role == PARTICIPANT and one.trial == trial]


def links_path(trial: str | None) -> str:
    """Where the links of a trial are listed."""
    return _path(trial or "", 0)


def folded(tokens: Iterable[Token], now: float) -> list[Links]:
    """The links of all trials, a row each."""
    found: dict[str, list[Token]] = {}
    for one in tokens:
        if one.role == PARTICIPANT:
            found.setdefault(one.trial or "", []).append(one)
    return [Links(_counts(trial, found[trial], now), links_path(trial)) for trial in sorted(found)]


def _counts(trial: str, links: Sequence[Token], now: float) -> str:
    valid = [one for one in links if one.is_valid(now)]
    opened = sum(one.used is not None for one in valid)
    counts = {
        "not opened yet": len(valid) - opened,
        "opened": opened,
        "expired or revoked": len(links) - len(valid),
    }
    how = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
    return f"{format_count(f'{len(links):,}', 'link')} for participants of {trial}: {how}."


def part_of(tokens: Iterable[Token], now: float, start: int, trial: str = "") -> Part:
    """Tokens from one on, those that work first."""
    ordered = sorted(tokens, key=lambda one: not one.is_valid(now))
    start = min(start, max(0, len(ordered) - 1)) // MOST * MOST
    rows = [_row(one, now) for one in ordered[start : start + MOST]]
    end = start + len(rows)
    before = _path(trial, start - MOST) if start else ""
    after = _path(trial, end) if end < len(ordered) else ""
    return Part(rows, _which(start, end, len(ordered), trial), before, after, bool(trial))


def _which(start: int, end: int, all: int, trial: str) -> str:
    """What is said where not all are shown."""
    if end - start == all:
        return ""
    what = "Links" if trial else "Tokens"
    return f"{what} {start + 1:,} to {end:,} of {all:,} are shown, those that work first."


def _row(token: Token, now: float) -> Row:
    return Row(token, _state(token, now), when(token.used), token.is_valid(now))


def _state(token: Token, now: float) -> str:
    if token.revoked is not None:
        return f"revoked {when(token.revoked)}"
    if token.expires is None:
        return "valid, never expires"
    return f"{'valid until' if token.is_valid(now) else 'expired'} {when(token.expires)}"


def _path(trial: str, start: int) -> str:
    said = {**({"links": trial} if trial else {}), **({"from": str(start)} if start else {})}
    return f"/tokens?{urlencode(said)}" if said else "/tokens"


def start_of(text: str) -> int:
    """From which row on a page is wanted; from the first one if that makes no sense."""
    return read_whole(text) or 0


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
    return [one for one in home.doors.list_all() if mine.trial in (None, one.trial)]


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
    there = {one.site for one in home.doors.list_all() if one.trial == trial and one.is_valid(now)}
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
    if token.role == PARTICIPANT or not token.is_valid(await looking.run(looking.home.doors.now)):
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


def make_token_routes(home: Home) -> list[Route]:
    """The pages of tokens."""
    return [
        look(home, "/tokens", "tokens", _tokens),
        send(home, "/tokens", "tokens", _make),
        send(home, "/tokens/{number}/link", "tokens", _make_link),
        look(home, "/tokens/{number}/revoke", "tokens", _ask_revoke),
        send(home, "/tokens/{number}/revoke", "tokens", _revoke),
    ]


WRONG_CODE = (
    f"this login link was already used, or is older than {CODE_MINUTES} minutes: log in with the "
    "token itself, or ask the person who gave you the link for a new one"
)


async def _show(looking: Look) -> Response:
    return _page(looking, _local_path(looking.request.query_params.get("to")))


async def _log_in(looking: Look) -> Response:
    """Exchange a token or a login code for a login. A browser that is logged in with
    another token is asked first: a link must not change who enters outcomes.
    """
    tokens, secret = looking.home.tokens, looking.form.get("secret", "").strip()
    to = _local_path(looking.form.get("to"))
    is_code = is_kind(SecretKind.LOGIN_CODE, secret)
    token = await looking.run(tokens.find_code if is_code else tokens.find_token, secret)
    if looking.visitor.token is None:
        looking.home.limits.admit(looking.request.scope, token, token is None)
    if token is None:
        return _page(looking, to, 403, wrong=WRONG_CODE if is_code else WRONG)
    former, current = read_login(looking.request), looking.visitor.token
    is_other = current is not None and current.number != token.number
    if is_other and not is_form_key(looking.form.get("key", ""), former):
        code = secret if is_code else await looking.run(tokens.make_code, token)
        return _page(looking, to, 409, other=token, code=code)
    if is_code and not await looking.run(tokens.use_code, secret):
        return _page(looking, to, 403, wrong=WRONG_CODE)
    if current is not None:
        await looking.run(tokens.log_out, former)
    login = await looking.run(tokens.log_in, token)
    response, name = looking.go(to), login_cookie(looking.request)
    secure = looking.request.url.scheme == "https"
    response.set_cookie(
        name, login, int(LOGIN_SECONDS), path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def _page(
    looking: Look,
    to: str,
    status: int = 200,
    wrong: str = "",
    other: Token | None = None,
    code: str = "",
) -> Response:
    """Show the form, or ask whether the holder of another token is to be logged in."""
    return looking.page("login.html", status, to=to, wrong=wrong, other=other, code=code)


async def _log_out(looking: Look) -> Response:
    login = read_login(looking.request)
    if login:
        await looking.run(looking.home.tokens.log_out, login)
    response = looking.go(LOGIN_PATH)
    secure = looking.request.url.scheme == "https"
    response.delete_cookie(login_cookie(looking.request), path="/", secure=secure)
    if secure:  # elsewhere browsers ignore it
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


def _local_path(path: str | None) -> str:
    """Return a path of this service to go to: the one that was given, or the first
    page.
    """
    is_local = path is not None and path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_local and path is not None else "/"


def make_login_routes(home: Home) -> list[Route]:
    """The pages of logging in and out."""
    return [
        look(home, LOGIN_PATH, "", _show),
        send(home, LOGIN_PATH, "", _log_in),
        send(home, "/logout", "", _log_out),
    ]
