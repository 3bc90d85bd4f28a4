"""The pages of the service: server-rendered, a little script of our own, nothing from
elsewhere.
"""

from itertools import chain

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from discreet.service import state
from discreet.service.pages import account, manage, new_trial, participant, site, trial, trials
from discreet.service.state import AppState


def routes(app_state: AppState) -> list[Route]:
    """All pages."""
    files = StaticFiles(directory=state.STATIC)

    async def static(request: Request) -> Response:
        response = await files.get_response(request.path_params["file"], request.scope)
        response.headers["Cache-Control"] = "no-cache"  # kept, but asked for again each time
        return response

    parts = (
        account.make_login_routes,
        trials.make_list_routes,
        trial.routes,
        manage.routes,
        manage.make_audit_trail_routes,
        account.make_token_routes,
        new_trial.routes,
        trials.make_public_routes,
        site.routes,
        participant.routes,
    )
    return [
        Route("/static/{file}", static),
        *chain.from_iterable(part(app_state) for part in parts),
    ]
