"""Which route a path means."""

import asyncio
import socket
import threading
from collections import deque
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from discreet.service.home import Alarm
from discreet.service.routes import Route, Ways
from discreet.service.serve import Place, open_door


async def nothing(_: Request) -> Response:
    return Response()


ROUTES = ("/t/new", "/t/{name}", "/t/{name}/ask", "/t/{name}/{about}/end")
WAYS = Ways([*(Route(path, nothing) for path in ROUTES), Route("/t/new", nothing, ["POST"])])


def found(path: str, method: str = "GET") -> tuple[str, dict[str, str]]:
    scope: dict[str, Any] = {"method": method, "raw_path": path.encode()}
    return WAYS.find(scope).path, scope["path_params"]


def test_a_path_means_a_route_whatever_its_names_are() -> None:
    assert found("/t/new") == ("/t/new", {})
    assert found("/t/old") == ("/t/{name}", {"name": "old"})
    assert found("/t/new/ask") == ("/t/{name}/ask", {"name": "new"})
    assert found("/t/a%2Fb/ask") == ("/t/{name}/ask", {"name": "a/b"})
    assert found("/t/ask/%C3%BC/end", "HEAD")[1] == {"name": "ask", "about": "ü"}


@pytest.mark.parametrize("path", ["", "/", "/t", "/t/", "/t//ask", "/t/a/", "/t/%FF", "/t/a/b"])
def test_what_means_none_is_not_found(path: str) -> None:
    with pytest.raises(HTTPException) as error:
        found(path)
    assert error.value.status_code == 404


def test_another_method_is_told_those_that_there_are() -> None:
    with pytest.raises(HTTPException) as error:
        found("/t/new", "BREW")
    assert (error.value.status_code, error.value.headers) == (405, {"Allow": "GET, HEAD, POST"})
    assert found("/t/new", "POST") == ("/t/new", {})


def test_answers_are_not_held_back_for_an_acknowledgement() -> None:
    """Else a small answer in two pieces waits 40 ms for the other side."""
    with open_door(Place(port=0)) as door, socket.create_connection(door.getsockname()):
        taken, _ = door.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_alarm_wakes_everybody_and_calls_the_loop_seldom() -> None:
    calls = list[str]()

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        alarm, call = Alarm(loop), loop.call_soon_threadsafe

        def counted(work: Any) -> Any:
            calls.append("a call")
            return call(work)

        loop.call_soon_threadsafe = counted  # type: ignore[assignment,method-assign]
        waiting = [loop.create_future() for _ in range(300)]
        waiting[7].cancel()
        thread = threading.Thread(target=lambda: deque(map(alarm.wake, waiting), 0))
        thread.start()
        thread.join()
        late = loop.create_future()
        loop.call_later(0.01, alarm.wake, late)
        await asyncio.wait_for(asyncio.gather(*waiting, late, return_exceptions=True), 60)

    asyncio.run(wait())
    assert len(calls) == 2
