"""What all pages share: who looks at them, templates, forms that only our own pages can
send, and errors in words.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import jinja2
import segno
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive

from discreet.errors import InvalidInputError, RefusedError
from discreet.service.auth import Principal, check, form_key, is_form_key, scoped_key, trial_in_path
from discreet.service.limits import TooLargeError, TooManyError, get_info
from discreet.service.middleware import note_error, problem_of, words_of
from discreet.service.state import AppState
from discreet.trials.names import MAX_NAME_LENGTH, quote_name
from discreet.wording import format_count


def qr_picture(text: str) -> str:
    """The address of a picture that is all in the address: dark on white, with the
    quiet zone that cameras need, on dark pages too.
    """
    code = segno.make(text, error="m", micro=False)
    return str(code.svg_data_uri(dark="#000", light="#fff", border=4, omitsize=True))


STYLE_SHEET = re.compile(r"<style\b[^>]*>.*?</style>", re.DOTALL)
TAG = re.compile(r"<\w[^<>]*>")
STYLE = re.compile(r'\sstyle="([^"]*)"')
FONT = re.compile(r"(?:(?P<weight>bold|\d+)\s+)?(?P<size>[\d.]+px)\s+(?P<family>.+)")
KNOWN = re.compile(
    r"fill|fill-opacity|stroke|stroke-width|stroke-opacity|stroke-dasharray|stroke-dashoffset|"
    r"stroke-linecap|stroke-linejoin|opacity|font-size|font-family|font-weight|text-anchor"
)
"""Properties that SVG takes as attributes too."""
LINES = ' stroke-linejoin="round" stroke-linecap="butt"'
"""What the sheet in matplotlib's pictures says of all lines."""


def without_styles(drawing: str) -> str:
    """A drawing with attributes in place of styles, which our policy forbids in a page;
    and without its white ground, so that it stands on a dark page as well.
    """
    bare = STYLE_SHEET.sub("", drawing).replace("<svg", f"<svg{LINES}")
    return TAG.sub(lambda tag: STYLE.sub(_attributes, tag[0]), bare)


def _attributes(style: re.Match[str]) -> str:
    return "".join(map(_attribute, _properties(style[1])))


def _properties(text: str) -> list[tuple[str, str]]:
    pairs = [part.split(":", 1) for part in text.split(";") if ":" in part]
    found = list[tuple[str, str]]()
    for name, value in ((name.strip(), value.strip()) for name, value in pairs):
        font = FONT.fullmatch(value) if name == "font" else None
        if font is None:
            found.append((name, value))
            continue
        parts = {"font-size": font["size"], "font-family": font["family"]}
        found += [*parts.items(), *([("font-weight", font["weight"])] if font["weight"] else [])]
    return found


def _attribute(pair: tuple[str, str]) -> str:
    name, value = pair
    if not KNOWN.fullmatch(name):
        return ""
    ground = name == "fill" and value.lower() in ("#ffffff", "white")
    return f' {name}="{"none" if ground else value}"'


LOGIN_COOKIE = "discreet_login"
"""Name of the cookie of a login where nothing is encrypted: on this machine alone."""
SECURE_LOGIN_COOKIE = f"__Host-{LOGIN_COOKIE}"
"""Name of it over TLS: browsers then accept it from this host alone, by TLS."""
LOGIN_PATH = "/login"
OWN_NAMES = ("127.0.0.1", "localhost", "::1")
"""What a machine calls itself: nobody else can come in by these."""
TEMPLATES = Path(__file__).parent.parent / "templates"
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAX_FIELDS = 1000
MAX_FORM_BYTES = 16_000
MAX_LONG_FORM_BYTES = 600_000
LONG_FORMS = ("/new", "/new/plan")
"""Forms with lists of names."""
LARGE_FORM = "the form is longer than anybody types: nothing was done"
MAX_FIELD_CHARACTERS = 2000
LISTS = ("arms", "sites")
MAX_LIST_CHARACTERS = 250_000
"""Of the fields that hold a name a line: a thousand names of the greatest length."""
NOTHING = "there is no page at this address: it may have been cut off or mistyped"
BY_FORM = "what this address leads to is made by a form: go back, and press the button there"
MISSING = {404: NOTHING, 405: BY_FORM}
"""What a page says where there is none to look at."""
ENDED = (
    "your login has ended, because it expired or its token was revoked, and {nothing}: log in, and "
    "try once more"
)
"""What a page says of a form that nobody can be found for any more."""
OF_SITE = re.compile(r"(/t/[^/]+/site)/.*")
STALE = "this page is too old, or was not made by this service: reload it, and try once more"


def address(*parts: str) -> str:
    """The path of a page, whatever names are in it."""
    return "/" + "/".join(map(quote_name, parts))


ENVIRONMENT.globals["address"] = address
ENVIRONMENT.globals["counted"] = format_count
ENVIRONMENT.filters["grouped"] = "{:,}".format


def dated(words: str) -> Markup:
    """Words in which no day is broken into lines at its hyphens."""
    return Markup(DAY.sub(r'<span class="unbroken">\g<0></span>', str(escape(words))))


ENVIRONMENT.filters["dated"] = dated


Result = TypeVar("Result")


class PageRequest:
    """A request for a page, or a form that was sent from it."""

    def __init__(self, app_state: AppState, request: Request, principal: Principal) -> None:
        self.app_state = app_state
        self.request = request
        self.principal = principal
        self.name = trial_in_path(request)
        """The trial it is about, or empty."""
        self.form: Mapping[str, str] = {}
        """What a form carries; empty when a page is looked at."""

    async def run(self, work: Callable[..., Result], *about: Any) -> Result:
        """Do something that waits for the disk, in a thread."""
        return await self.app_state.run(work, *about)

    def render(self, template: str, status: int = 200, **context: Any) -> Response:
        """A page, with what every page knows."""
        login = read_login(self.request)
        known = {
            "principal": self.principal,
            "form_key": form_key(login) if login else "",
            "once": secrets.token_hex(16),
            "here": self.request.url.path,
            "host": str(self.request.base_url).rstrip("/"),
            "only_here": host if (host := self.request.url.hostname) in OWN_NAMES else "",
        }
        text = ENVIRONMENT.get_template(template).render(**known, **context)
        return HTMLResponse(text, status, {"Cache-Control": "no-store"})

    def redirect(self, path: str) -> Response:
        """See another page now."""
        return RedirectResponse(path, 303)


Work = Callable[[PageRequest], Awaitable[Response]]


def page_route(app_state: AppState, path: str, action: str, work: Work) -> Route:
    """A page for those who may do what it is about (`access.ACTIONS`); an empty action
    is for everybody.
    """
    return Route(path, _served(app_state, action, work, False), methods=["GET"])


def form_route(app_state: AppState, path: str, action: str, work: Work) -> Route:
    """A form of such a page. It must come from our own page: it carries a key that
    follows from the login.
    """
    return Route(path, _served(app_state, action, work, True), methods=["POST"])


def once_of(form: Mapping[str, str], principal: Principal) -> str | None:
    """The key of a form, under which it is done once however often it is pressed."""
    key = form.get("once", "")
    if not key or len(key) > MAX_NAME_LENGTH:
        return None
    return scoped_key(key, principal)


def _served(
    app_state: AppState, action: str, work: Work, sent: bool
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        page = PageRequest(app_state, request, Principal())
        try:
            page.principal = await authenticate(app_state, request)
            if sent:
                with app_state.limits.reading_form(request.scope, page.principal.token):
                    page.form = await form_of(request)
                check_sent(request, page.form, needs_login=bool(action))
            if action:
                await check(app_state, page.principal, action, page.name)
            answer = await work(page)
            if sent and page.name:
                app_state.changed(page.name)
            return answer
        except TooManyError:
            raise
        except RefusedError as error:
            if not error.known and not sent:
                return page.redirect(f"/login?to={quote(request.url.path, safe='')}")
            if not error.known:
                return _ended(page, action)
            return page.render("error.html", 403, words=str(error))
        except Exception as error:
            note_error(error, get_info(request.scope).id)
            status, words = words_of(error)
            return page.render("error.html", status, words=words)

    return serve


def _ended(page: PageRequest, action: str) -> Response:
    """What a browser shows whose login ended before it sent a form, and the way back:
    to the page that the form is on.
    """
    words = ENDED.format(nothing="nobody was enrolled" if action == "ask" else "nothing was done")
    path = OF_SITE.sub(r"\1", page.request.url.path)
    return page.render("error.html", 403, words=words, back=quote(path, safe=""))


async def missing_page(app_state: AppState, request: Request, error: HTTPException) -> Response:
    """Return what a browser shows where nothing is, or only what a form makes; programs
    get a problem document. If nobody can say now who looks, the page is that of a
    stranger.
    """
    if error.status_code not in MISSING or "text/html" not in request.headers.get("accept", ""):
        return problem_of(error)
    request.scope["path_params"] = {}
    page = PageRequest(app_state, request, Principal())
    try:
        page.principal = await authenticate(app_state, request)
    except TooManyError as refused:
        return problem_of(refused)
    except Exception as trouble:
        note_error(trouble, get_info(request.scope).id)
    response = page.render("error.html", error.status_code, words=MISSING[error.status_code])
    response.headers.update(error.headers or {})
    return response


def login_cookie(request: Request) -> str:
    """Return the name of the cookie that holds a login."""
    return SECURE_LOGIN_COOKIE if request.url.scheme == "https" else LOGIN_COOKIE


def read_login(request: Request) -> str:
    """Return the login that a browser sends, or an empty text."""
    return request.cookies.get(login_cookie(request), "")


async def authenticate(app_state: AppState, request: Request) -> Principal:
    """Authenticate a browser by its login."""
    login = read_login(request)
    token = None if not login else await app_state.run(app_state.tokens.find_login, login)
    logs_in = request.url.path == LOGIN_PATH and request.method == "POST"
    if token is not None or not logs_in:  # logging in counts the token that it is given
        app_state.limits.admit(request.scope, token, bool(login) and token is None)
    return Principal(token)


async def form_of(request: Request) -> dict[str, str]:
    """Read the fields of a form; refuse one that is longer than anybody types, or has
    more fields than any of ours, before anything parses it.
    """
    limit = MAX_LONG_FORM_BYTES if request.url.path in LONG_FORMS else MAX_FORM_BYTES
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise TooLargeError(LARGE_FORM)
    if body.count(b"&") >= MAX_FIELDS:
        raise HTTPException(400)
    request = Request(request.scope, _already_read(bytes(body)))
    try:
        async with request.form(max_files=0, max_fields=MAX_FIELDS) as form:
            fields = {key: str(value) for key, value in form.items()}
    except MultiPartException:
        raise HTTPException(400) from None
    for name, value in fields.items():
        if len(value) > (MAX_LIST_CHARACTERS if name in LISTS else MAX_FIELD_CHARACTERS):
            raise TooLargeError("a field of the form is too long: nothing was done")
    return fields


def _already_read(body: bytes) -> Receive:
    """Return what receives a body that was read before, whole."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return receive


def check_sent(request: Request, form: Mapping[str, str], needs_login: bool) -> None:
    """Refuse a form that another site's page has sent, or a browser without a login. A
    page of this name without TLS is of another site: anybody on the way can write it.
    """
    origin = request.headers.get("origin")
    if origin is not None:
        sender = urlsplit(origin)
        is_in_the_clear = request.url.scheme == "https" and sender.scheme != "https"
        if is_in_the_clear or sender.netloc != request.headers.get("host"):
            raise InvalidInputError(STALE)
    login = read_login(request)
    if needs_login and not login:
        raise RefusedError("nobody is logged in", False)
    if needs_login and not is_form_key(form.get("key", ""), login):
        raise InvalidInputError(STALE)
