"""The application: routes, and what every answer carries."""

import ipaddress

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from discreet.service import api, metrics, openapi, pages
from discreet.service.access import Visitor
from discreet.service.api import visitor_of
from discreet.service.gate import Gate
from discreet.service.home import Home
from discreet.service.limits import passage_of
from discreet.service.pages.frame import OWN_NAMES
from discreet.service.problems import note_error, problem_of
from discreet.service.routes import Route, Ways

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What a proxy adds to a call that it hands on."""


def make_app(home: Home) -> Gate:
    """The service of a store."""
    return Gate(home, Ways(routes(home)))


def routes(home: Home) -> list[Route]:
    """All that can be called."""
    return [*_about(home), *openapi.routes(), *api.routes(home), *pages.routes(home)]


def _about(home: Home) -> list[Route]:
    """What the service tells of itself."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        if not await home.is_writable():
            return PlainTextResponse("the database cannot be used now\n", 503)
        return PlainTextResponse("ready\n")

    async def measured(request: Request) -> Response:
        try:
            if not from_here(request):
                check_whole_operator(await visitor_of(home, request))
        except Exception as error:
            note_error(error, passage_of(request.scope).request)
            return problem_of(error)
        return Response(home.metrics.text(), media_type=metrics.TYPE)

    return [
        Route("/healthz", healthy),
        Route("/readyz", ready),
        Route("/metrics", measured),
    ]


def check_whole_operator(visitor: Visitor) -> None:
    """Refuse who is not the operator of all trials."""
    visitor.check("backup", None)


def from_here(request: Request) -> bool:
    """Whether a program on this machine calls, and no proxy on it for somebody else,
    nor a browser that was led here by another name.
    """
    client = request.client
    if client is None or any(name in request.headers for name in FORWARDED):
        return False
    try:
        here = ipaddress.ip_address(client.host).is_loopback
    except ValueError:
        return False
    return here and request.url.hostname in OWN_NAMES
