"""A service for tests behind an address, and somebody's browser without scripts."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from discreet.service.app import make_app
from discreet.service.state import AppState


class Visit:
    """Somebody's browser without scripts, logged in with a token."""

    def __init__(self, base: str, secret: str) -> None:
        self.base = base
        self.cookies: dict[str, str] = {}
        with httpx.Client(base_url=base, verify=False) as client:
            found = client.post("/login", data={"secret": secret, "to": "/"})
            assert found.status_code == 303
            self.cookies = dict(client.cookies)

    def get(self, path: str) -> httpx.Response:
        """Look at a page."""
        with self._client() as client:
            return client.get(path)

    def post(self, path: str, form: dict[str, str]) -> httpx.Response:
        """Send this, and see where it leads."""
        with self._client() as client:
            return client.post(path, data=form)

    def send(
        self, path: str, page: str = "", once: str | None = None, **fields: str
    ) -> httpx.Response:
        """Send a form of a page, with all that the page has in it for the form."""
        form = hidden(page, path) | fields
        if once is not None:
            form["once"] = once
        return self.post(path, form)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.base, cookies=self.cookies, follow_redirects=True, verify=False
        )


def hidden(page: str, action: str) -> dict[str, str]:
    """What stands in a page's form besides what participants type."""
    forms = re.findall(r'<form[^>]*action="([^"]*)"(.*?)</form>', page, re.DOTALL)
    inner = dict(forms)[action]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', inner))


@contextmanager
def behind(home: AppState) -> Iterator[str]:
    """The address of a service on this machine, in a thread of its own."""
    config = uvicorn.Config(make_app(home), port=0, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
