"""The service on a port of this machine, for browsers, under the policy that pages must
keep.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.visitors import Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
NAME = b"content-security-policy"


class Strict:
    """Every answer that has no policy of its own has this one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if NAME not in [name.lower() for name, _ in headers]:
                    message = {**message, "headers": [*headers, (NAME, POLICY.encode())]}
            await send(message)

        await self.app(scope, receive, strictly)


@contextmanager
def serving(place: Service) -> Iterator[str]:
    """The address of a service, until it is left."""
    settings = uvicorn.Config(
        Strict(place.app), host="127.0.0.1", port=0, log_level="error", lifespan="off"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
