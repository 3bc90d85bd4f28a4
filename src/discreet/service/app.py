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
from discreet.service.auth import Principal, authenticate
from discreet.service.middleware import RequestMiddleware
from discreet.service.pages.base import OWN_NAMES, missing_page
from discreet.service.state import AppState

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What a proxy adds to a call that it hands on."""


def make_app(app_state: AppState) -> Starlette:
    """Return the service of a store as an ASGI application."""
    served = routes(app_state)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:  # Starlette names the methods of one route alone
            path = request.scope["route"].path
            methods = set[str]().union(*(one.methods or () for one in served if one.path == path))
            error.headers = {"Allow": ", ".join(sorted(methods))}
        return await missing_page(app_state, request, error)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        app_state.stop()
        app_state.close()

    app = Starlette(
        routes=served,
        middleware=[Middleware(RequestMiddleware, app_state=app_state)],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def routes(app_state: AppState) -> list[Route]:
    """Return all routes, those first that are called most: each is tried in turn."""
    return [*api.routes(app_state), *_about(app_state), *openapi.routes(), *pages.routes(app_state)]


def _about(app_state: AppState) -> list[Route]:
    """What the service tells of itself."""

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        if not await app_state.is_writable():
            return PlainTextResponse("the database cannot be used now\n", 503)
        return PlainTextResponse("ready\n")

    async def measured(request: Request) -> Response:
        if not from_here(request):
            check_whole_manager(await authenticate(app_state, request))
        return Response(app_state.metrics.text(), media_type=observability.TYPE)

    return [
        Route("/healthz", healthy),
        Route("/readyz", ready),
        Route("/metrics", measured),
    ]


def check_whole_manager(principal: Principal) -> None:
    """Refuse who is not the manager of all trials."""
    principal.check("create", None)


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
