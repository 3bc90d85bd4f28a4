"""The service under load: 64 clients that ask and tell single people over HTTP, beside
one direct caller of the same store at equal durability; both without request keys, and
both with them, since a key is a row more in the store for either. The service should
get through at least 4 times as much on SQLite and 6 times on PostgreSQL, with a p99 of
at most 20 medians; its memory should not grow with the calls; 500 viewers of a trial
should cost one computation a change; and every plan of a new trial should be there
within a second or two.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.support import postgres
from tests.support.service import Service, serving

from benchmarks.clients import NAME, Crowd
from benchmarks.slow_disk import slow_disk
from discreet import bet_se
from discreet.service import events, planner
from discreet.service.pages.base import LOGIN_COOKIE
from discreet.service.pages.new_trial import plan_fragment
from discreet.service.pages.trial_form import read_form
from discreet.service.state import AppState
from discreet.trials.trial import Trial
from discreet.trials.verbs import MANAGER

SECONDS = 2.0
ROUNDS = 5
"""In each of which all are measured, one after the other, for so many seconds: a
machine that others use is now quicker, now slower.
"""
WARM = 4.0
"""Seconds of calls before the clock starts."""
CLIENTS = 64
VIEWERS = 500
FLUSH = 0.002
"""Seconds that every commit takes longer in a second look at SQLite, of the direct
caller and of the service alike: as on a disk that takes so long to flush.
"""
ARMS = ("red", "green", "blue")


class Pace(NamedTuple):
    """What callers got through."""

    rate: float
    """People a second: each is asked for and told of."""
    median: float
    p99: float
    """Seconds of one call."""
    calls: int
    cpu: float
    """Seconds of the processor that the clients took."""


def _clients(ports: list[int], secret: str, seconds: float, keys: bool, found: Any) -> None:
    try:
        crowd = Crowd(ports, secret, CLIENTS, keys)
        found.put(crowd.call(seconds))
        crowd.close()
    except Exception as error:  # the process that waits must hear of it
        found.put(error)


def by_service(ports: list[int], secret: str, seconds: float = SECONDS, keys: bool = True) -> Pace:
    """What clients in a process of their own get through."""
    context = multiprocessing.get_context("spawn")
    found: Any = context.Queue()
    crowd = context.Process(target=_clients, args=(ports, secret, seconds, keys, found))
    crowd.start()
    paces = found.get()
    crowd.join()
    if isinstance(paces, Exception):
        raise paces
    people, took, cpu = paces
    took.sort()
    place = int(0.99 * (len(took) - 1))
    return Pace(people / seconds, statistics.median(took), took[place], len(took), cpu)


def direct(url: str, keys: bool) -> float:
    """People a second of one caller who has the database itself; with the keys that
    clients of a service send, or without.
    """

    def key() -> str | None:
        return secrets.token_hex(8) if keys else None

    trial, people, until = Trial.open(url, NAME), 0, time.time() + SECONDS
    while time.time() < until:
        for one in trial.ask(key=key()).assignments:
            trial.tell(one.id, 1.0, key())
            people += 1
    trial.close()
    return people / SECONDS


@contextmanager
def served(url: str, port: int, wait: float = 0.0) -> Iterator[int]:
    """`discreet serve` in a process of its own, whose commits wait so long."""
    words = [sys.executable, "-m", "benchmarks.slow_disk", str(wait), "serve", f"--url={url}"]
    server = subprocess.Popen(
        [*words, f"--port={port}", "--rate=1000000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
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


def measured(port: int, what: str) -> float:
    """A number that a service says of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(rf"^{what} (\S+)", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


class Used(NamedTuple):
    """What servers have used until now."""

    cpu: float
    """Seconds of the processor, of all of them."""
    memory: float
    """MB of the first server."""


def used(ports: list[int]) -> Used:
    """What servers on these ports have used."""
    cpu = sum(measured(port, "process_cpu_seconds_total") for port in ports)
    return Used(cpu, measured(ports[0], "process_resident_memory_bytes") / 1e6)


class Round(NamedTuple):
    """What was measured at about the same time, of those who send keys or of those who
    send none.
    """

    direct: float
    """People a second of one direct caller."""
    services: list[Pace]
    """With one server, with two, …"""
    cpu: list[float]
    """Microseconds of the processor that servers took for a call."""


def one_round(url: str, ports: list[int], secret: str, wait: float, keys: bool) -> Round:
    """A direct caller, then a service with one server, with two, …"""
    with slow_disk(wait):
        alone = direct(url, keys)
    services, cpu = list[Pace](), list[float]()
    for many in range(1, len(ports) + 1):
        before = used(ports[:many]).cpu
        services.append(by_service(ports[:many], secret, keys=keys))
        cpu.append(1e6 * (used(ports[:many]).cpu - before) / services[-1].calls)
    return Round(alone, services, cpu)


def compare(name: str, url: str, port: int, servers: int, wait: float = 0.0) -> None:
    """A trial whose rounds are long: what is measured is coming and telling."""
    strategy = bet_se(delta=1e-9, epsilon=0.02)
    Trial.create(url, NAME, ARMS, strategy, max_participants=2**30).close()
    home = AppState(url)
    secret = home.tokens.make("load", MANAGER, "bench")[0]
    home.close()
    with ExitStack() as stack:
        ports: list[int] = []
        for place in range(servers):
            ports.append(stack.enter_context(served(url, port + place, wait)))
            by_service(ports, secret, WARM)
        before = used(ports)
        rounds = [
            [one_round(url, ports, secret, wait, keys) for keys in (False, True)]
            for _ in range(ROUNDS)
        ]
        after = used(ports)
    for kind, words in zip(zip(*rounds, strict=True), ("without", "with"), strict=True):
        tell(name, f"{words} keys", kind)
    calls = sum(pace.calls for both in rounds for one in both for pace in one.services)
    grown = f"{after.memory - before.memory:+.1f} MB after {calls} calls"
    print(f"{name:12}  memory of the first {before.memory:8.0f} MB, {grown}")


def tell(name: str, kind: str, rounds: Sequence[Round]) -> None:
    """Medians of the rounds, and of the ratios within each."""
    middle = statistics.median
    alone = middle(one.direct for one in rounds)
    print(f"{name:12}{kind:13} one direct caller       {alone:8.0f} people/s")
    for place in range(len(rounds[0].services)):
        paces = [one.services[place] for one in rounds]
        rate = middle(one.rate for one in paces)
        times = [pace.rate / one.direct for pace, one in zip(paces, rounds, strict=True)]
        first = [one.services[place].rate / one.services[0].rate for one in rounds]
        tail = middle(one.p99 / one.median for one in paces)
        many = f"{place + 1} server{'s' if place else ''}"
        print(
            f"{name:12}{kind:13} {CLIENTS} clients, {many:10}{rate:8.0f}, "
            f"{middle(times):4.1f} x ({min(times):.1f} to {max(times):.1f})"
            f"{f', {middle(first):.2f} of one server' if place else ''}"
        )
        print(
            f"{name:26}  a call takes        {1e3 * middle(one.median for one in paces):8.1f} ms, "
            f"p99 {tail:.1f} medians; processor {middle(one.cpu[place] for one in rounds):.0f} µs, "
            f"and of the clients {1e6 * middle(one.cpu / one.calls for one in paces):.0f} µs"
        )


class Viewer:
    """Somebody who follows a trial, as a program and in a browser."""

    def __init__(self, service: Service, login: str) -> None:
        host, port = service.base_url.removeprefix("http://").split(":")
        self._place = host, int(port)
        who = f"Authorization: Bearer {service.secret}\r\nCookie: {LOGIN_COOKIE}={login}"
        self._words = f"HTTP/1.1\r\nHost: {host}\r\n{who}\r\n\r\n"
        self._stream = self._open(f"/api/v1/trials/{NAME}/events")

    def _open(self, path: str) -> socket.socket:
        made = socket.create_connection(self._place)
        made.sendall(f"GET {path} {self._words}".encode())
        return made

    def hear(self, people: int) -> None:
        """Wait until the stream says so many people."""
        _until(self._stream, f'"participants":{people}'.encode())

    def look(self) -> None:
        """Ask for the status, and look at the page."""
        api = f"/api/v1/trials/{NAME}"
        for path, end in ((api, b'"participants":'), (f"/t/{NAME}", b"</html>")):
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
    Trial.create(url, NAME, ARMS, bet_se(delta=0.05, epsilon=1.0), max_participants=1000).close()
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
        token = service.home.tokens.find_token(service.secret)
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


def plans() -> None:
    """Every change of the form of a new trial is answered with a plan."""
    begun = time.perf_counter()
    planner.warm()
    planner.ready(600, days=True)
    warm, took = time.perf_counter() - begun, list[float]()
    for arms, epsilon, delta, outcomes in product(
        (2, 3, 5, 10), (0.1, 1, 3), (1, 5), ("yes-no", "numbers")
    ):
        said = {"arms": "\n".join(f"arm {place}" for place in range(arms)), "outcomes": outcomes}
        said |= {"epsilon": str(epsilon), "delta": str(delta)}
        said["difference"] = "5" if outcomes == "yes-no" else "0.5"
        begun = time.perf_counter()
        plan_fragment(read_form(said))
        took.append(time.perf_counter() - begun)
    pace = f"{statistics.median(took):.2f} s, the slowest {max(took):.2f} s"
    print(f"{len(took)} plans of a new trial: {pace}; ready {warm:.1f} s after the start")


def run() -> None:
    """All of it."""
    print("\nThe service under load")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compare("SQLite", f"sqlite:///{folder}/crowd.db", 8651, 2)
        compare("SQLite +2 ms", f"sqlite:///{folder}/slow.db", 8655, 1, FLUSH)
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            compare("PostgreSQL", server.new_url(), 8653, 2)
        watch(f"sqlite:///{folder}/watched.db")
    plans()


if __name__ == "__main__":
    run()
