"""A browser for tests of what runs in people's own: Debian's chromium, driven by
Playwright, and a server of files that forbids what the service forbids.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import discreet.service

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

REQUIRED = "DISCREET_REQUIRE_BROWSER"
"""If this is set in the environment, a missing browser is an error."""
PATIENCE = 120_000
"""Milliseconds within which whatever a test waits for must be there."""
STATIC = Path(discreet.service.__file__).parent / "static"
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"
"""No script in a page itself, and none from elsewhere."""


def missing() -> str | None:
    """What is not installed that a browser needs."""
    if program() is None:
        return "no chromium is installed"
    return None if find_spec("playwright") else "Playwright is not installed"


def program() -> str | None:
    """The browser that is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Started:
    """A browser that runs, for any number of tests."""

    def __init__(self, browser: "Browser") -> None:
        self.browser = browser
        self.loop = asyncio.get_running_loop()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Playwright's loop counts as running between its calls too. Here it does only
        while a page is in use: other tests of this process may run loops of their own.
        """
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def context(self) -> "BrowserContext":
        """What shares nothing with others, and waits however busy the machine is."""
        made = self.browser.new_context()
        made.set_default_timeout(PATIENCE)
        return made

    @contextmanager
    def page(self) -> Iterator["Page"]:
        """A page that shares nothing with others. Whatever it writes to the console
        fails the test: errors that nobody waits for, and what the policy forbids.
        """
        troubles: list[str] = []
        with self.at_work():
            context = self.context()
            try:
                made = context.new_page()
                made.on("pageerror", lambda error: troubles.append(str(error)))
                made.on("console", lambda line: troubles.append(line.text))
                yield made
            finally:
                context.close()
        assert not troubles, "; ".join(troubles)


@contextmanager
def started() -> Iterator[Started]:
    """The browser, until it is left."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=arguments)
        running = Started(browser)
        asyncio._set_running_loop(None)
        yield running
        asyncio._set_running_loop(running.loop)
        browser.close()


class Files(SimpleHTTPRequestHandler):
    """Serves the scripts, and an empty page to run them in."""

    def guess_type(self, path: Any) -> str:
        return "text/javascript" if str(path).endswith(".js") else super().guess_type(path)

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>empty</title>")

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_words: Any) -> None:
        """Nobody reads it."""


@contextmanager
def serving(folder: Path = STATIC) -> Iterator[str]:
    """The address of a server of these files, on this machine only."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def call(page: "Page", module: str, function: str, *arguments: Any) -> Any:
    """What a function of a module returns, called in the page with plain values: they
    travel as JSON, which is quicker for many than what Playwright does.
    """
    code = """async ([module, name, given]) =>
      JSON.stringify((await import(module))[name](...JSON.parse(given))) ?? "null"
    """
    return json.loads(page.evaluate(code, [f"/{module}", function, json.dumps(arguments)]))
