"""The service under load: 64 clients that ask and tell single people over HTTP, beside
one direct caller of the same store at equal durability. The service should get through
at least 10 times as much, with a p99 of at most 20 medians; and two servers on one
PostgreSQL should not be slower than one.

Clients are a process of their own with an event loop and nothing but sockets, so that
they take little of what is measured.
"""

import asyncio
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import postgres

from discreet import bet_se
from discreet.service.home import Home
from discreet.trials.trial import Trial

NAME = "crowd"
SECONDS = 6.0
CLIENTS = 64


class Pace(NamedTuple):
    """What callers got through."""

    rate: float
    """People a second: each is asked for and told of."""
    median: float
    p99: float
    """Seconds of one call."""


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int, secret: str) -> None:
        self.port, self.secret, self.calls = port, secret, 0

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, what: str, body: dict[str, Any]) -> Any:
        """Call, with a key as every careful client sends one."""
        text, self.calls = json.dumps(body).encode(), self.calls + 1
        head = (
            f"POST /api/v1/trials/{NAME}/{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self.secret}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {id(self)}-{time.time_ns()}\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        self.writer.write(head.encode() + text)
        headers = await self.reader.readuntil(b"\r\n\r\n")
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        found = json.loads(await self.reader.readexactly(length))
        if b" 200 " not in headers.split(b"\r\n")[0]:
            raise RuntimeError(f"{what}: {found}")
        return found


async def _client(port: int, secret: str, until: float, took: list[float]) -> None:
    client = Client(port, secret)
    await client.open()
    while time.time() < until:
        began = time.perf_counter()
        given = (await client.post("ask", {}))["assignments"]
        asked = time.perf_counter()
        if not given:  # the round waits for others' outcomes
            await asyncio.sleep(0.01)
            continue
        (one,) = given
        await client.post("tell", {"outcomes": {one["id"]: 1}})
        took += [asked - began, time.perf_counter() - asked]
    client.writer.close()


def _clients(ports: list[int], secret: str, found: Any) -> None:
    async def crowd() -> list[float]:
        took: list[float] = []
        until = time.time() + SECONDS
        places = (ports[place % len(ports)] for place in range(CLIENTS))
        await asyncio.gather(*(_client(port, secret, until, took) for port in places))
        return took

    found.put(asyncio.run(crowd()))


def by_service(ports: list[int], secret: str) -> Pace:
    """What the clients get through."""
    found: Any = multiprocessing.get_context("spawn").Queue()
    crowd = multiprocessing.get_context("spawn").Process(
        target=_clients, args=(ports, secret, found)
    )
    crowd.start()
    took = sorted(found.get())
    crowd.join()
    return Pace(len(took) / 2 / SECONDS, statistics.median(took), took[int(0.99 * (len(took) - 1))])


def direct(url: str) -> float:
    """People a second of one caller who has the database itself."""
    trial, people, until = Trial.open(url, NAME), 0, time.time() + SECONDS
    while time.time() < until:
        for one in trial.ask().assignments:
            trial.tell(one.id, 1.0)
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
    import socket

    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the service does not start")


def compare(name: str, url: str, port: int, servers: int) -> None:
    """A trial whose rounds are long: what is measured is coming and telling."""
    arms, strategy = ("red", "green", "blue"), bet_se(delta=1e-9, epsilon=0.02)
    Trial.create(url, NAME, arms, strategy, max_people=2**30).close()
    home = Home(url)
    secret = home.tokens.make("load", "operator", "bench")[0]
    home.close()
    one = direct(url)
    print(f"{name:12}one direct caller       {one:8.0f} people a second")
    with ExitStack() as stack:
        ports: list[int] = []
        for place in range(servers):
            ports.append(stack.enter_context(served(url, port + place)))
            found = by_service(ports, secret)
            many = f"{len(ports)} server{'s' if len(ports) > 1 else ''}"
            rate = f"{found.rate:8.0f} ({found.rate / one:4.1f} x)"
            pace = f"{1e3 * found.median:8.1f} ms, p99 {found.p99 / found.median:4.1f} medians"
            print(f"{name:12}{CLIENTS} clients, {many:10}{rate}{pace}")


def run() -> None:
    print("\nThe service under load")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compare("SQLite", f"sqlite:///{folder}/crowd.db", 8651, 1)
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            compare("PostgreSQL", server.new_url(), 8653, 2)


if __name__ == "__main__":
    run()
