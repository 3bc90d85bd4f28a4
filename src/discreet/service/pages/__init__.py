"""The pages of the service: server-rendered, a little script of our own, nothing from
elsewhere.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from discreet.service import scripts
from discreet.service.home import Home
from discreet.service.pages import (
    audit_trail,
    desk,
    login,
    manage,
    new,
    participant,
    public,
    tokens,
    trial,
    trials,
)


def routes(home: Home) -> list[Route]:
    """All pages."""
    files = StaticFiles(directory=scripts.STATIC)

    async def static(request: Request) -> Response:
        response = await files.get_response(request.path_params["file"], request.scope)
        response.headers["Cache-Control"] = "no-cache"  # kept, but asked for again each time
        return response

    found = [Route("/static/{file}", static)]
    parts = (login, trials, trial, manage, audit_trail, tokens, new, public, desk, participant)
    for part in parts:
        found += part.routes(home)
    return found
