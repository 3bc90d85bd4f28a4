"""A service in this process, and the browsers of those who visit it."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from discreet import Trial, bet_se
from discreet.service.app import make_app
from discreet.service.auth import form_key
from discreet.service.pages.base import LOGIN_COOKIE
from discreet.service.state import AppState

ARMS = ("usual", "new", "third")


class Visit:
    """A browser, logged in or not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient) -> None:
        self.loop = loop
        self.client = client

    @property
    def key(self) -> str:
        """What forms of this browser carry."""
        login = self.client.cookies.get(LOGIN_COOKIE)
        return form_key(login) if login else ""

    def get(self, path: str, **headers: str) -> httpx.Response:
        """A page; where it leads to is not followed."""
        return self.loop.run_until_complete(self.client.get(path, headers=headers))

    def send(self, path: str, **form: str) -> httpx.Response:
        """A form of our own."""
        return self.post(path, {"key": self.key, **form})

    def post(self, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
        """Any form."""
        return self.loop.run_until_complete(self.client.post(path, data=form, headers=headers))

    def hidden(self, path: str) -> dict[str, str]:
        """The hidden fields of the last form of a page."""
        form = self.get(path).text.rpartition("<form ")[2]
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


class Service:
    """A service with a store of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.home = AppState(url)
        self.app = make_app(self.home)
        self.loop = asyncio.new_event_loop()
        self.clients: list[httpx.AsyncClient] = []

    def visit(
        self, role: str | None = None, trial: str | None = None, site: str | None = None
    ) -> Visit:
        """A browser of somebody with a token of this role, or with none."""
        through = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=through, base_url="http://testserver")
        self.clients.append(client)
        made = Visit(self.loop, client)
        if role is not None:
            secret, _ = self.home.tokens.make(f"a {role}", role, "a test", trial, site)
            answer = made.post("/login", {"secret": secret, "to": "/"})
            assert answer.status_code == 303, answer.text
        return made

    def trial(self, name: str, **settings: Any) -> Trial:
        """A trial of three arms with some participants in it."""
        usual: dict[str, Any] = {
            "sites": ["Leeds", "Lyon"],
            "strategy": bet_se(0.1, 1.0, target_difference=0.5),
        }
        made = Trial.create(
            self.url, name, list(ARMS), max_participants=900, **{**usual, **settings}
        )
        made.tell_many({one.id: 1.0 for one in made.ask(12, site="Leeds").assignments[:8]})
        made.close()
        return made

    def close(self) -> None:
        """Close all browsers, then the store."""
        for client in self.clients:
            self.loop.run_until_complete(client.aclose())
        self.loop.close()
        self.home.close()


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """A service on a file of SQLite, until it is left."""
    made = Service(f"sqlite:///{folder}/trials.db")
    try:
        yield made
    finally:
        made.close()
