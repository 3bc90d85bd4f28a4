"""The pages of the service: server-rendered, a little script of our own, nothing from
elsewhere.
"""

from pathlib import Path

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from discreet.service.home import Home
from discreet.service.pages import (
    desk,
    login,
    new,
    operate,
    participant,
    public,
    tokens,
    trial,
    trials,
)

STATIC = Path(__file__).parent.parent / "static"


def routes(home: Home) -> list[BaseRoute]:
    """All pages."""
    found: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC))]
    for part in (login, trials, trial, operate, tokens, new, public, desk, participant):
        found += part.routes(home)
    return found
