"""The ASGI application: routes, middleware, and what the service tells of itself."""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from discreet.service import api, observability, openapi, pages
from discreet.service.api import visitor_of
from discreet.service.auth import Visitor
from discreet.service.middleware import RequestMiddleware
from discreet.service.pages.base import OWN_NAMES, missing_page
from discreet.service.state import Home

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What a proxy adds to a call that it hands on."""


def make_app(home: Home) -> Starlette:
    """Return the service of a store as an ASGI application."""
    served = routes(home)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:  # Starlette names the methods of one route alone
            path = request.scope["route"].path
            methods = set[str]().union(*(one.methods or () for one in served if one.path == path))
            error.headers = {"Allow": ", ".join(sorted(methods))}
        return await missing_page(home, request, error)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        home.stop()
        home.close()

    app = Starlette(
        routes=served,
        middleware=[Middleware(RequestMiddleware, home=home)],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def routes(home: Home) -> list[Route]:
    """Return all routes, those first that are called most: each is tried in turn."""
    return [*api.routes(home), *_about(home), *openapi.routes(), *pages.routes(home)]


def _about(home: Home) -> list[Route]:
    """What the service tells of itself."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        if not await home.is_writable():
            return PlainTextResponse("the database cannot be used now\n", 503)
        return PlainTextResponse("ready\n")

    async def measured(request: Request) -> Response:
        if not from_here(request):
            check_whole_manager(await visitor_of(home, request))
        return Response(home.metrics.text(), media_type=observability.TYPE)

    return [
        Route("/healthz", healthy),
        Route("/readyz", ready),
        Route("/metrics", measured),
    ]


def check_whole_manager(visitor: Visitor) -> None:
    """Refuse who is not the manager of all trials."""
    visitor.check("create", None)


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
