"""A browser exchanges a token for a login that no script reads, and gives it back."""

from starlette.responses import Response

from discreet.service.access import PARTICIPANT, WRONG
from discreet.service.home import Home
from discreet.service.pages.frame import COOKIE, Look, look, send
from discreet.service.routes import Route
from discreet.service.tokens import LOGIN


async def _show(looking: Look) -> Response:
    return looking.page("login.html", wrong="", to=_inside(looking.request.query_params.get("to")))


async def _log_in(looking: Look) -> Response:
    home, form = looking.home, looking.form
    token = await looking.run(home.tokens.find, form.get("token", "").strip())
    to = _inside(form.get("to"))
    if token is None or token.role == PARTICIPANT:
        return looking.page("login.html", 403, wrong=WRONG, to=to)
    login = await looking.run(home.tokens.log_in, token)
    answer = looking.go(to)
    secure = looking.request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, login, int(LOGIN), path="/", secure=secure, httponly=True, samesite="strict"
    )
    return answer


async def _log_out(looking: Look) -> Response:
    login = looking.request.cookies.get(COOKIE)
    if login:
        await looking.run(looking.home.tokens.log_out, login)
    answer = looking.go("/login")
    answer.delete_cookie(COOKIE, path="/")
    return answer


def _inside(path: str | None) -> str:
    """A page of ours to go to."""
    good = path is not None and path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if good and path is not None else "/"


def routes(home: Home) -> list[Route]:
    """The pages of logging in and out."""
    return [
        look(home, "/login", "", _show),
        send(home, "/login", "", _log_in),
        send(home, "/logout", "", _log_out),
    ]
