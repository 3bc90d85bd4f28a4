"""Log in with a token or a one-time login link, and log out."""

from starlette.responses import Response
from starlette.routing import Route

from discreet.service.access import WRONG
from discreet.service.credentials import SecretKind, is_form_key, is_kind
from discreet.service.home import Home
from discreet.service.pages.frame import (
    LOGIN_PATH,
    Look,
    login_cookie,
    look,
    read_login,
    send,
)
from discreet.service.tokens import CODE_MINUTES, LOGIN_SECONDS
from discreet.trials.store.doors import Token

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


def routes(home: Home) -> list[Route]:
    """The pages of logging in and out."""
    return [
        look(home, LOGIN_PATH, "", _show),
        send(home, LOGIN_PATH, "", _log_in),
        send(home, "/logout", "", _log_out),
    ]
