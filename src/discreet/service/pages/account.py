"""Log in with a token or a one-time login link, and log out."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import InvalidInputError
from discreet.service.auth import (
    CODE_MINUTES,
    LOGIN_SECONDS,
    WRONG,
    NotHereError,
    Principal,
    SecretKind,
    is_form_key,
    is_kind,
)
from discreet.service.pages.base import (
    LOGIN_PATH,
    PageRequest,
    address,
    form_route,
    login_cookie,
    page_route,
    qr_picture,
    read_login,
)
from discreet.service.pages.trial_text import when
from discreet.service.state import AppState
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, MONITOR, PARTICIPANT, SITE
from discreet.validation import read_decimal, read_whole
from discreet.wording import format_count

MOST = 200
"""Rows of a page."""


class TokenRow(NamedTuple):
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

    rows: list[TokenRow]
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


def _row(token: Token, now: float) -> TokenRow:
    return TokenRow(token, _state(token, now), when(token.used), token.is_valid(now))


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
    SITE: "Site: enrols its participants, tells outcomes",
    MONITOR: "Monitor: sees trials, and changes nothing",
    MANAGER: "Manager: may do everything",
}
"""Roles that are given by hand; participants get theirs from a site."""
DAYS = "90"
"""After which a token expires, unless the form says otherwise."""
SAY_DAYS = "give the number of days, such as 90, or leave it empty"


def reachable(app_state: AppState, principal: Principal) -> list[Token]:
    """The tokens that a principal may see: all, or those of its own trial."""
    mine = principal.token
    if mine is None:
        return []
    return [one for one in app_state.token_table.list_all() if mine.trial in (None, one.trial)]


async def _shown(page: PageRequest, status: int = 200, **more: Any) -> Response:
    app_state, start = page.app_state, start_of(page.request.query_params.get("from", ""))
    tokens = await page.run(reachable, app_state, page.principal)
    trials = [one.name for one in await page.run(app_state.listed, page.principal)]
    now = await page.run(app_state.token_table.now)
    empty = dict.fromkeys(("wrong", "link", "secret", "picture"), "")
    known: dict[str, Any] = {**empty, "made": None, **more}
    known["said"] = page.form or _wanted(page, trials)
    known |= {"part": part_of(by_hand(tokens), now, start), "folded": folded(tokens, now)}
    return page.render("tokens.html", status, trials=trials, roles=ROLES, **known)


async def _links(page: PageRequest, trial: str) -> Response:
    """The links for participants of a trial, so that one of them can be revoked."""
    found = links_of(await page.run(reachable, page.app_state, page.principal), trial)
    if not found:
        raise NotHereError("there are no links for participants of such a trial")
    start = start_of(page.request.query_params.get("from", ""))
    part = part_of(found, await page.run(page.app_state.token_table.now), start, trial)
    return page.render("links.html", trial=trial, part=part)


def _wanted(page: PageRequest, trials: list[str]) -> dict[str, str]:
    """What the form says at first: what a link wanted, the trial if there is but one,
    and that the token expires.
    """
    asked = page.request.query_params
    fields = ("name", "role", "trial", "site")
    said = {"days": DAYS, **{field: asked[field] for field in fields if field in asked}}
    if "site" in said:
        said.setdefault("name", said["site"])
    return {"trial": trials[0], **said} if len(trials) == 1 else said


def without_token(app_state: AppState, trial: str, sites: Iterable[str]) -> list[str]:
    """Sites of a trial that nobody can come in for."""
    now = app_state.token_table.now()
    there = {
        one.site
        for one in app_state.token_table.list_all()
        if one.trial == trial and one.is_valid(now)
    }
    return [site for site in sites if site not in there]


async def _tokens(page: PageRequest) -> Response:
    trial = page.request.query_params.get("links")
    return await (_shown(page) if trial is None else _links(page, trial))


async def _make(page: PageRequest) -> Response:
    try:
        secret, token = await page.run(_make_token, page)
    except InvalidInputError as error:
        return await _shown(page, 422, wrong=str(error))
    page.form = {}
    return await _show_link(page, token, None, secret)


async def _show_link(page: PageRequest, token: Token, by: str | None, secret: str = "") -> Response:
    """Show a new login link of a token, on this answer alone."""
    code = await page.run(page.app_state.tokens.make_code, token, by)
    link = f"{str(page.request.base_url).rstrip('/')}{_way_in(token)}#{code}"
    return await _shown(
        page,
        made=token,
        secret=secret,
        link=link,
        picture=qr_picture(link),
        minutes=CODE_MINUTES,
    )


async def _make_link(page: PageRequest) -> Response:
    token = await page.run(_found, page)
    if token.role == PARTICIPANT or not token.is_valid(
        await page.run(page.app_state.token_table.now)
    ):
        raise InvalidInputError("nobody can log in with this token: make another one")
    page.form = {}
    return await _show_link(page, token, page.principal.who)


def _way_in(made: Token) -> str:
    """The page that a link leads to: of a site its site."""
    if made.role != SITE or made.trial is None:
        return "/login"
    return f"/login?to={quote(address('t', made.trial, 'site'), safe='')}"


def _make_token(page: PageRequest) -> tuple[str, Token]:
    """Make the token that a form asks for."""
    form, mine = page.form, page.principal.token
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
    page.app_state.check_there(trial)
    site = form.get("site", "").strip() or None
    if role == SITE and trial is None:
        raise InvalidInputError("choose the trial that the site takes part in")
    if role == SITE and site is None:
        raise InvalidInputError("say which site it is for")
    its_site = site if role == SITE else None
    page.app_state.check_site(trial, its_site)
    days = _days(form.get("days", "").strip())
    return page.app_state.tokens.make(name, role, page.principal.who, trial, its_site, days)


def _days(text: str) -> float | None:
    days = read_decimal(text)
    if text and days is None:
        raise InvalidInputError(SAY_DAYS)
    return days


async def _ask_revoke(page: PageRequest) -> Response:
    token = await page.run(_found, page)
    mine = page.principal.token
    own = mine is not None and mine.number == token.number
    used, back = when(token.used), _listed_at(token)
    return page.render("revoke.html", token=token, used=used, own=own, back=back)


async def _revoke(page: PageRequest) -> Response:
    token = await page.run(_found, page)
    await page.run(page.app_state.tokens.revoke, token.number, page.principal.who)
    return page.redirect(_listed_at(token))


def _listed_at(token: Token) -> str:
    return links_path(token.trial) if token.role == PARTICIPANT else "/tokens"


def _found(page: PageRequest) -> Token:
    wanted = page.request.path_params["number"]
    for one in reachable(page.app_state, page.principal):
        if str(one.number) == wanted:
            return one
    raise NotHereError("there is no token of this number")


def make_token_routes(app_state: AppState) -> list[Route]:
    """The pages of tokens."""
    return [
        page_route(app_state, "/tokens", "tokens", _tokens),
        form_route(app_state, "/tokens", "tokens", _make),
        form_route(app_state, "/tokens/{number}/link", "tokens", _make_link),
        page_route(app_state, "/tokens/{number}/revoke", "tokens", _ask_revoke),
        form_route(app_state, "/tokens/{number}/revoke", "tokens", _revoke),
    ]


WRONG_CODE = (
    f"this login link was already used, or is older than {CODE_MINUTES} minutes: log in with the "
    "token itself, or ask the person who gave you the link for a new one"
)


async def _show(page: PageRequest) -> Response:
    return _page(page, _local_path(page.request.query_params.get("to")))


async def _log_in(page: PageRequest) -> Response:
    """Exchange a token or a login code for a login. A browser that is logged in with
    another token is asked first: a link must not change who enters outcomes.
    """
    tokens, secret = page.app_state.tokens, page.form.get("secret", "").strip()
    to = _local_path(page.form.get("to"))
    is_code = is_kind(SecretKind.LOGIN_CODE, secret)
    token = await page.run(tokens.find_code if is_code else tokens.find_token, secret)
    if page.principal.token is None:
        page.app_state.limits.admit(page.request.scope, token, token is None)
    if token is None:
        return _page(page, to, 403, wrong=WRONG_CODE if is_code else WRONG)
    former, current = read_login(page.request), page.principal.token
    is_other = current is not None and current.number != token.number
    if is_other and not is_form_key(page.form.get("key", ""), former):
        code = secret if is_code else await page.run(tokens.make_code, token)
        return _page(page, to, 409, other=token, code=code)
    if is_code and not await page.run(tokens.use_code, secret):
        return _page(page, to, 403, wrong=WRONG_CODE)
    if current is not None:
        await page.run(tokens.log_out, former)
    login = await page.run(tokens.log_in, token)
    response, name = page.redirect(to), login_cookie(page.request)
    secure = page.request.url.scheme == "https"
    response.set_cookie(
        name, login, int(LOGIN_SECONDS), path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def _page(
    page: PageRequest,
    to: str,
    status: int = 200,
    wrong: str = "",
    other: Token | None = None,
    code: str = "",
) -> Response:
    """Show the form, or ask whether the holder of another token is to be logged in."""
    return page.render("login.html", status, to=to, wrong=wrong, other=other, code=code)


async def _log_out(page: PageRequest) -> Response:
    login = read_login(page.request)
    if login:
        await page.run(page.app_state.tokens.log_out, login)
    response = page.redirect(LOGIN_PATH)
    secure = page.request.url.scheme == "https"
    response.delete_cookie(login_cookie(page.request), path="/", secure=secure)
    if secure:  # elsewhere browsers ignore it
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


def _local_path(path: str | None) -> str:
    """Return a path of this service to go to: the one that was given, or the first
    page.
    """
    is_local = path is not None and path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_local and path is not None else "/"


def make_login_routes(app_state: AppState) -> list[Route]:
    """The pages of logging in and out."""
    return [
        page_route(app_state, LOGIN_PATH, "", _show),
        form_route(app_state, LOGIN_PATH, "", _log_in),
        form_route(app_state, "/logout", "", _log_out),
    ]
