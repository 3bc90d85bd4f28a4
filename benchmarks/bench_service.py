"""The service under load: 64 clients that ask and tell single people over HTTP, beside
one direct caller of the same store at equal durability. The service should get through
at least 10 times as much, with a p99 of at most 20 medians; two servers on one
PostgreSQL should not be slower than one; its memory should not grow with the calls; and
500 viewers of a trial should cost one computation a change.
"""

import multiprocessing
import re
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.support import postgres
from tests.support.service import Service, serving

from benchmarks.clients import NAME, Crowd
from discreet import bet_se
from discreet.service import events
from discreet.service.home import Home
from discreet.service.pages.frame import COOKIE
from discreet.trials.trial import Trial

SECONDS = 6.0
CLIENTS = 64
VIEWERS = 500
ARMS = ("red", "green", "blue")


class Pace(NamedTuple):
    """What callers got through."""

    rate: float
    """People a second: each is asked for and told of."""
    median: float
    p99: float
    """Seconds of one call."""
    calls: int


def _clients(ports: list[int], secret: str, seconds: float, found: Any) -> None:
    crowd = Crowd(ports, secret, CLIENTS)
    found.put(crowd.call(seconds))
    crowd.close()


def by_service(ports: list[int], secret: str, seconds: float = SECONDS) -> Pace:
    """What clients in a process of their own get through."""
    context = multiprocessing.get_context("spawn")
    found: Any = context.Queue()
    crowd = context.Process(target=_clients, args=(ports, secret, seconds, found))
    crowd.start()
    people, took = found.get()
    crowd.join()
    took.sort()
    place = int(0.99 * (len(took) - 1))
    return Pace(people / seconds, statistics.median(took), took[place], len(took))


def direct(url: str, keys: bool) -> float:
    """People a second of one caller who has the database itself; with the keys that
    clients of a service send, or without.
    """

    def key() -> str | None:
        return secrets.token_hex(8) if keys else None

    trial, people, until = Trial.open(url, NAME), 0, time.time() + SECONDS
    while time.time() < until:
        for one in trial.ask(request=key()).assignments:
            trial.tell(one.id, 1.0, key())
            people += 1
    trial.close()
    return people / SECONDS


@contextmanager
def served(url: str, port: int) -> Iterator[int]:
    """`discreet serve` in a process of its own."""
    words = [sys.executable, "-m", "discreet.cli", "serve", f"--url={url}", f"--port={port}"]
    server = subprocess.Popen(
        [*words, "--rate=1000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the service does not start")


def memory(port: int) -> float:
    """MB of a service, as it says itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    return float(found[1]) / 1e6 if found else float("nan")


def compare(name: str, url: str, port: int, servers: int) -> None:
    """A trial whose rounds are long: what is measured is coming and telling."""
    strategy = bet_se(delta=1e-9, epsilon=0.02)
    Trial.create(url, NAME, ARMS, strategy, max_people=2**30).close()
    home = Home(url)
    secret = home.tokens.make("load", "operator", "bench")[0]
    home.close()
    one = direct(url, keys=False)
    print(f"{name:12}one direct caller       {one:8.0f} people a second")
    print(f"{name:12}  … with request keys   {direct(url, keys=True):8.0f}")
    with ExitStack() as stack:
        ports: list[int] = []
        for place in range(servers):
            ports.append(stack.enter_context(served(url, port + place)))
            by_service(ports, secret, 1.0)  # loads what the first release needs
            before = memory(port)
            found = by_service(ports, secret)
            many = f"{len(ports)} server{'s' if len(ports) > 1 else ''}"
            rate = f"{found.rate:8.0f} ({found.rate / one:4.1f} x)"
            pace = f"{1e3 * found.median:8.1f} ms, p99 {found.p99 / found.median:4.1f} medians"
            print(f"{name:12}{CLIENTS} clients, {many:10}{rate}{pace}")
            grown = f"{memory(port) - before:+.1f} MB after {found.calls} calls"
            print(f"{name:12}  memory of the first {before:8.0f} MB, {grown}")


class Viewer:
    """Somebody who follows a trial, as a program and in a browser."""

    def __init__(self, service: Service, login: str) -> None:
        host, port = service.base_url.removeprefix("http://").split(":")
        self._place = host, int(port)
        who = f"Authorization: Bearer {service.secret}\r\nCookie: {COOKIE}={login}"
        self._words = f"HTTP/1.1\r\nHost: {host}\r\n{who}\r\n\r\n"
        self._stream = self._open(f"/api/v1/trials/{NAME}/events")

    def _open(self, path: str) -> socket.socket:
        made = socket.create_connection(self._place)
        made.sendall(f"GET {path} {self._words}".encode())
        return made

    def hear(self, people: int) -> None:
        """Wait until the stream says so many people."""
        _until(self._stream, f'"people":{people}'.encode())

    def look(self) -> None:
        """Ask for the status, and look at the page."""
        for path, end in ((f"/api/v1/trials/{NAME}", b'"people":'), (f"/t/{NAME}", b"</html>")):
            with self._open(path) as made:
                _until(made, end)

    def close(self) -> None:
        """Go."""
        self._stream.close()


def _until(connection: socket.socket, end: bytes) -> None:
    got = b""
    while end not in got:
        if not (piece := connection.recv(65_536)):
            raise RuntimeError(f"it ended with {got!r}")
        got += piece


def counted(counts: Counter[str], what: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same, counted."""

    def counts_it(*about: Any) -> Any:
        counts[what] += 1
        return work(*about)

    return counts_it


def watch(url: str) -> None:
    """A change that many see."""
    Trial.create(url, NAME, ARMS, bet_se(delta=0.05, epsilon=1.0), max_people=1000).close()
    counts = Counter[str]()
    status, written = (
        counted(counts, "status", Trial.status),
        counted(counts, "event", events._event),
    )
    with (
        patch.object(Trial, "status", status),
        patch.object(events, "_event", written),
        serving(url) as service,
    ):
        token = service.home.tokens.find(service.secret)
        assert token is not None
        login = service.home.tokens.log_in(token)
        viewers = [Viewer(service, login) for _ in range(VIEWERS)]
        for one in viewers:
            one.hear(0)
        service.home.trial(NAME).ask(1)
        counts.clear()
        began = time.perf_counter()
        service.home.changed(NAME)
        for one in viewers:
            one.hear(1)
        heard = time.perf_counter() - began
        for one in viewers:
            one.look()
            one.close()
        seconds = time.perf_counter() - began
    looked = f"{counts['status']} computations for {2 * VIEWERS} answers in {seconds:.1f} s"
    print(f"{VIEWERS} viewers heard of a change after {1e3 * heard:.0f} ms, then looked: {looked}")


def run() -> None:
    """All of it."""
    print("\nThe service under load")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compare("SQLite", f"sqlite:///{folder}/crowd.db", 8651, 2)
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            compare("PostgreSQL", server.new_url(), 8653, 2)
        watch(f"sqlite:///{folder}/watched.db")


if __name__ == "__main__":
    run()
