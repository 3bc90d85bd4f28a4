"""The pages of the service: server-rendered, a little script of our own, nothing from
elsewhere.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from discreet.service import state
from discreet.service.pages import (
    account,
    audit_trail,
    manage,
    new_trial,
    participant,
    site,
    trial,
    trials,
)
from discreet.service.state import Home


def routes(home: Home) -> list[Route]:
    """All pages."""
    files = StaticFiles(directory=state.STATIC)

    async def static(request: Request) -> Response:
        response = await files.get_response(request.path_params["file"], request.scope)
        response.headers["Cache-Control"] = "no-cache"  # kept, but asked for again each time
        return response

    found = [Route("/static/{file}", static)]
    parts = (
        account,
        trials,
        trial,
        manage,
        audit_trail,
        account,
        new_trial,
        trials,
        site,
        participant,
    )
    for part in parts:
        found += part.routes(home)
    return found
