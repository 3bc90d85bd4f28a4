"""Which route serves a path."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import Match

from discreet.service.app import make_app, routes
from discreet.service.limits import LimitConfig
from discreet.service.state import AppState


@pytest.fixture
def home(tmp_path: Path) -> Iterator[AppState]:
    made = AppState(f"sqlite:///{tmp_path}/trials.db", limit_config=LimitConfig(stranger_rate=1e6))
    yield made
    made.close()


def send(home: AppState, method: str, path: str, **headers: str) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(make_app(home))
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(call())


def test_no_route_is_hidden_by_one_before_it(home: AppState) -> None:
    served = routes(home)
    for route in served:
        path = re.sub(r"\{\w+\}", "x", route.path)
        for method in route.methods or ():
            scope = {"type": "http", "method": method, "path": path}
            matching = [one for one in served if one.matches(scope)[0] is Match.FULL]
            assert matching[0] is route, (method, route.path)


def test_a_slash_in_a_name_separates_nothing(home: AppState) -> None:
    """Else a request about the trial `dose/protocol` would be one about `dose`."""
    answer = send(home, "GET", "/t/a%2Fb")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?to=%2Ft%2Fa%252Fb")
    assert send(home, "GET", "/t/a/b").status_code == 404
    assert send(home, "GET", "/api/v1/trials/dose/protocol").status_code == 401
    assert send(home, "POST", "/api/v1/trials/dose%2Fprotocol").status_code == 405


@pytest.mark.parametrize("path", ["/t", "/t/", "/t//site", "/t/%FF", "/login/", "/nothing/x"])
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_what_means_no_route_is_not_found(path: str, kind: str, home: AppState) -> None:
    answer = send(home, "GET", path, accept=kind)
    assert answer.status_code == 404
    assert ("<html" in answer.text) == (kind == "text/html")


def test_another_method_is_told_those_that_there_are(home: AppState) -> None:
    answer = send(home, "BREW", "/login")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
