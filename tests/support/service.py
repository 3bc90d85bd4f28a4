"""A service in a thread of this process, on a free port."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from discreet.service.limits import LimitConfig
from discreet.service.server import Server, ServerConfig, make_server
from discreet.service.state import AppState
from discreet.trials.verbs import MANAGER

PATIENCE = 60.0
"""Seconds within which it must have started, and ended, and whatever is waited for
must have happened.
"""


class Service(NamedTuple):
    """A service that runs."""

    base_url: str
    """Such as http://127.0.0.1:49152, without a slash at the end."""
    secret: str
    """A manager's token, for all trials."""
    home: AppState
    server: Server

    @property
    def headers(self) -> dict[str, str]:
        """What the manager sends."""
        return {"Authorization": f"Bearer {self.secret}"}

    def token(self, role: str, **scope: Any) -> str:
        """The secret of a new token."""
        return self.home.tokens.make(f"a {role}", role, "a test", **scope)[0]


@contextmanager
def serving(
    url: str, bounds: LimitConfig | None = None, loop: str | None = None
) -> Iterator[Service]:
    """A service of the trials at an address, until the block ends; without limits on
    the rate of calls, unless some are given; in the usual event loop, or in one that is
    named.
    """
    bounds = LimitConfig(rate=1e6, stranger_rate=1e6) if bounds is None else bounds
    home = AppState(url, limit_config=bounds)
    secret = home.tokens.make("the tests' manager", MANAGER, "a test")[0]
    server = make_server(home, ServerConfig(port=0, limit_config=bounds))
    server.config.loop = loop or server.config.loop
    with running(server) as base_url:
        yield Service(base_url, secret, home, server)


def wait_for(condition: Callable[[], Any]) -> None:
    """Until it is so, however busy the machine is."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.005)


@contextmanager
def running(server: Server) -> Iterator[str]:
    """The address of a server that runs in a thread until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        until = time.monotonic() + PATIENCE
        while not server.started:
            assert thread.is_alive(), "the service has not started"
            assert time.monotonic() < until, "the service does not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.end()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the service does not end"
