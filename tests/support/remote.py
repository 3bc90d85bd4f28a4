"""A service in a thread, which can be stopped and started again at the same address,
and an unreliable network before it.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from discreet.service.app import make_app
from discreet.service.state import AppState
from discreet.trials.verbs import MANAGER

PATIENCE = 60.0
"""Seconds within which it must have started, and ended."""
LOST, BUSY, CUT, LIMITED = "lost", "busy", "cut", "limited"
"""What can happen to a request: it is done and its answer is lost, it is answered with
503 or 429, or it does not arrive.
"""
ANSWERS = {BUSY: 503, LIMITED: 429}


class Far:
    """A service of the trials at an address."""

    def __init__(self, url: str, tls: tuple[str, str] | None = None) -> None:
        self.url = url
        self.tls = tls
        """The files of its certificate and of the key."""
        self._place = socket.socket()
        """Nobody else gets its port while it is stopped; nobody is let in there."""
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]
        self.fate: Callable[[str], str | None] = lambda _path: None
        """What happens to a request for a path."""
        self.calls: list[tuple[str, str, str | None]] = []
        """Method, path and key of each request that arrived."""
        self.forged: tuple[bytes, bytes] | None = None
        """What stands in place of something in answers."""
        self.forget = False
        """Whether the heads that callers know are not looked at."""
        self._server: uvicorn.Server | None = None
        home = AppState(url)
        self.secret = home.tokens.make("the manager", MANAGER, "a test")[0]
        home.close()

    @property
    def base(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    def token(self, role: str, **scope: Any) -> str:
        """The secret of a new token."""
        home = AppState(self.url)
        try:
            return home.tokens.make(f"a {role}", role, "a test", **scope)[0]
        finally:
            home.close()

    def start(self) -> None:
        door = socket.create_server(("127.0.0.1", self.port))
        app: Any = self._unreliable(make_app(AppState(self.url)))
        files = self.tls or (None, None)
        tls: Any = dict(zip(("ssl_certfile", "ssl_keyfile"), files, strict=True))
        config = uvicorn.Config(app, lifespan="on", log_config=None, access_log=False, **tls)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, args=[self._server, door], daemon=True)
        self._thread.start()
        until = time.monotonic() + PATIENCE
        while not self._server.started:
            assert time.monotonic() < until, "the service does not start"
            time.sleep(0.01)

    @staticmethod
    def _run(server: uvicorn.Server, door: socket.socket) -> None:
        with door:
            server.run(sockets=[door])

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive(), "the service does not end"

    def close(self) -> None:
        """It does not start again."""
        self.stop()
        self._place.close()

    def _unreliable(self, app: Any) -> Any:
        async def served(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            key = dict(scope["headers"]).get(b"idempotency-key")
            self.calls.append((scope["method"], scope["path"], key and key.decode()))
            fate = self.fate(scope["path"])
            if self.forget:
                kept = [one for one in scope["headers"] if one[0] != b"discreet-head"]
                scope = {**scope, "headers": kept}
            if fate is None:
                await app(scope, receive, self._forging(send))
            elif fate in ANSWERS:
                headers = [(b"content-length", b"0"), (b"retry-after", b"0")]
                start = {"type": "http.response.start", "status": ANSWERS[fate]}
                await send(start | {"headers": headers})
                await send({"type": "http.response.body", "body": b""})
            else:
                if fate == LOST:
                    await app(scope, receive, _nowhere)
                await _hang_up(send)

        return served

    def _forging(self, send: Any) -> Any:
        async def sent(message: Any) -> None:
            if self.forged is not None and message["type"] == "http.response.body":
                body = message["body"].replace(*self.forged, 1)
                message = {**message, "body": body}
            await send(message)

        return sent


async def _nowhere(_message: Any) -> None:
    pass


async def _hang_up(send: Any) -> None:
    """Close the connection in the middle of an answer."""
    headers = [(b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise ConnectionAbortedError


@contextmanager
def far_away(url: str, tls: tuple[str, str] | None = None) -> Iterator[Far]:
    """A service of the trials at an address, until the block ends."""
    made = Far(url, tls)
    made.start()
    try:
        yield made
    finally:
        made.close()


def now_and_then(fate: str, times: int = 1) -> Callable[[str], str | None]:
    """The first requests for each path have this fate."""
    left: dict[str, int] = {}

    def chosen(path: str) -> str | None:
        left[path] = left.get(path, times) - 1
        return fate if left[path] >= 0 else None

    return chosen
