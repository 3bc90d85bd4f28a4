"""Servers that are killed while clients ask and tell; afterwards nothing may be lost or
doubled.

    python -m tests.support.outage --kills 300 --seed 0

Each server is `discreet serve` in a process of its own, and several serve one database.
Half of them are killed at a random moment, half kill themselves before a random
statement or commit; whoever dies is followed by another one. A client sends each
request, with its key, until it is answered, each time to any server that is there, and
writes down what it was answered. So whatever is in the trial, some client knows of it.
"""

import argparse
import multiprocessing
import os
import random
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
from starlette.requests import Request

from discreet.cli import main as discreet
from discreet.service.api import HEAD
from discreet.service.auth import KEY, Principal, request_key
from discreet.service.state import AppState
from discreet.trials.store import schema
from discreet.trials.store.tokens import Token
from discreet.trials.trial import Trial
from discreet.trials.verbs import MANAGER
from tests.support import storm

SOON = 60.0
"""Seconds within which a server says where it is, and a request is answered."""
AT = re.compile(r" at (http://[\d.]+:\d+) ")
FORKED = multiprocessing.get_context("forkserver")
"""Servers are forked by a process that has loaded the program once."""
FORKED.set_forkserver_preload([__name__, "discreet.service.server"])
Plant = Callable[[], None]


def serve(url: str, said: Path, fuse: int, plant: Plant | None) -> None:
    """`discreet serve` in this process, with what it says in a file."""
    for path, stream in ((said, 1), (said.with_suffix(".log"), 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    if plant is not None:
        plant()
    if fuse:
        storm.light_fuse(sa.Engine, fuse)
    discreet(["serve", f"--url={url}", "--port=0", "--rate=1000000", "--log=json"])


class Server:
    """A server in a process of its own."""

    def __init__(self, url: str, said: Path, fuse: int, plant: Plant | None) -> None:
        self.said = said
        self.process = FORKED.Process(target=serve, args=(url, said, fuse, plant))
        self.process.start()

    @property
    def address(self) -> str | None:
        """Where it is, once it has said so."""
        found = AT.search(self.said.read_text()) if self.said.exists() else None
        return None if found is None else found[1]

    def wait(self) -> None:
        """Until it is there, or dead."""
        until = time.monotonic() + SOON
        while self.address is None and self.process.is_alive():
            assert time.monotonic() < until, "a server does not start"
            time.sleep(0.01)

    def close(self) -> None:
        """Nothing of it is left."""
        self.process.join()
        self.process.close()


class Servers:
    """Servers of one database, each of which is followed by another one."""

    def __init__(
        self, url: str, folder: Path, rng: random.Random, many: int, plant: Plant | None
    ) -> None:
        self.url, self.folder, self.rng, self.plant = url, folder, rng, plant
        self.started = 0
        self.running = [self._start(place) for place in range(many)]

    def _start(self, place: int) -> Server:
        """Every second one has a fuse, which burns down some time after the start."""
        self.started += 1
        fuse = self.rng.randrange(20, 300) if place % 2 else 0
        return Server(self.url, self.folder / f"server-{self.started}.out", fuse, self.plant)

    @property
    def dead(self) -> int:
        """How many were killed."""
        return self.started - len(self.running)

    @property
    def addresses(self) -> list[str]:
        """Where servers are, or were a moment ago."""
        return [found for one in list(self.running) if (found := one.address) is not None]

    def kill(self) -> None:
        """Kill one that has no fuse; whoever is dead is followed by another one."""
        victim = self.running[self.rng.randrange(0, len(self.running), 2)]
        victim.process.kill()
        victim.process.join()
        for place, one in enumerate(self.running):
            if not one.process.is_alive():
                one.close()
                self.running[place] = self._start(place)
                self.running[place].wait()

    def close(self) -> None:
        """All of them end."""
        for one in self.running:
            one.process.kill()
            one.close()


class Client(threading.Thread):
    """Asks and tells until it is told to stop, and then to the end of what it does."""

    def __init__(self, servers: Servers, token: str, log: storm.Log, number: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.servers, self.log, self.number = servers, log, number
        self.rng = random.Random(f"{servers.rng.getrandbits(64)}")
        self.http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=SOON)
        self.stop = threading.Event()
        self.requests = 0
        self.repeated = 0
        """How often a request was sent again, as no answer came."""
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with self.http:
                while not self.stop.is_set():
                    self.turn()
        except BaseException as error:
            self.error = error

    def turn(self) -> None:
        """Somebody comes, and their outcomes are told; one client also manages."""
        if self.number == 0:
            most = storm.MOST - self.requests - 1
            said = {"action": "lower-maximum", "about": most, "reason": "an outage"}
            self.post("manage", said)
            self.log.write("acted", most)
        found = self.post("ask", {"n": self.rng.choice((1, 2, 5))})["assignments"]
        if not found:
            time.sleep(0.02)
            return
        self.log.write("asked", *(f"{one['id']}:{one['arm']}" for one in found))
        outcomes = {one["id"]: storm.outcome(int(one["id"].split("-")[0])) for one in found}
        told = self.post("tell", {"outcomes": outcomes})
        assert told["new"] == len(found), f"somebody was told before: {told}"
        self.log.write("told", *outcomes)

    def post(self, call: str, said: dict[str, Any]) -> Any:
        """What is answered, however often it has to be sent; always the same."""
        self.requests += 1
        key = f"{self.number}-{self.requests}"
        if call == "ask":
            self.log.write("wants", store_key(key))
        found = self.answer(call, said, key)
        for part in ("assignments", "new"):
            if found.get(part) and self.rng.random() < 0.2:
                again = self.answer(call, said, key)
                assert again[part] == found[part], f"another answer to the same {call}: {again}"
        return found

    def answer(self, call: str, said: dict[str, Any], key: str) -> Any:
        """Send it until it is answered, to any server."""
        until = time.monotonic() + SOON
        while time.monotonic() < until:
            try:
                address = self.rng.choice(self.servers.addresses)
                path = f"{address}/api/v1/trials/{storm.NAME}/{call}"
                answer = self.http.post(path, json=said, headers={KEY: key})
            except (httpx.TransportError, IndexError):
                answer = None
            if answer is not None and answer.status_code not in (429, 503):
                assert answer.status_code == 200, f"{call}: {answer.text}"
                self.log.write("head", answer.headers[HEAD])
                return answer.json()
            self.repeated += 1
            time.sleep(self.rng.expovariate(50))
        raise AssertionError(f"{call} was not answered in {SOON:g} seconds")


def store_key(key: str) -> str:
    """What the store calls the request of a key, of the manager."""
    token = Token(0, "", MANAGER, None, None, None, 0, "", None, None, None)
    scope = {"type": "http", "headers": [(KEY.encode(), key.encode())]}
    return str(request_key(Request(scope), Principal(token)))


def outage(
    url: str,
    folder: Path,
    kind: str,
    kills: int,
    participants: int = 0,
    seed: int = 0,
    many: int = 2,
    clients: int = 6,
    plant: Plant | None = None,
) -> tuple[storm.Log, list[str]]:
    """Let clients work until so many servers were killed, and so many participants are in;
    what they wrote down, and what went wrong for them.
    """
    trial = storm.create(url, kind)
    with closing(AppState(url)) as here:
        token = here.tokens.make("clients", MANAGER, "an outage")[0]
    rng, log = random.Random(seed), storm.Log(folder / f"outage-{kind}.log")
    servers = Servers(url, folder, rng, many, plant)
    try:
        working = [Client(servers, token, log, number) for number in range(clients)]
        for one in working:
            one.start()
        until = time.monotonic() + 5 * SOON
        while (
            servers.dead < kills
            or trial.status().participants < participants
            or (shows_nothing(working) and time.monotonic() < until)
        ):
            time.sleep(0.1 + rng.expovariate(2.5))
            servers.kill()
            if any(one.error for one in working):
                break
        for one in working:
            one.stop.set()
        for one in working:
            one.join(2 * SOON)
    finally:
        servers.close()
        trial.close()
    found = [f"{one.name}: {one.error}" for one in working if one.error or one.is_alive()]
    return log, found + shows_nothing(working)


def shows_nothing(working: list[Client]) -> list[str]:
    """What has not happened without which an outage is none; on a slow machine it takes
    its time.
    """
    if any(one.repeated for one in working):
        return []
    return ["nothing had to be repeated: this shows nothing"]


def problems(url: str, log: storm.Log) -> list[str]:
    """What was lost, doubled or changed; nothing, if all is well."""
    with closing(Trial.open(url, storm.NAME)) as trial:
        known = {f"{row.number}-{row.token}" for row in storm.rows_of(trial, schema.assignments)}
        asked = [word.split(":")[0] for line in said(log, "asked") for word in line]
        found = [] if known == set(asked) else ["somebody is in whom no client knows, or not in"]
        if len(storm.open_ids(trial, 1)):
            found.append("an outcome was lost after tell returned")
        acts = [act.about for act in trial.status().actions]
        if sorted(map(str, acts)) != sorted(line[0] for line in said(log, "acted")):
            found.append("a manager's act was lost or done twice")
        heads = {f"{one['seq']}:{one['hash']}" for one in trial.transcript()["events"]}
        if any(line[0] not in heads for line in said(log, "head")):
            found.append("a state that was shown is not in the record")
    wrong = [path for path in log.path.parent.glob("server-*.log") if '"error"' in path.read_text()]
    found += [f"an unexpected error in a server: {path.read_text()}" for path in wrong]
    return found + storm.problems(url, log)


def said(log: storm.Log, what: str) -> Iterator[list[str]]:
    """What follows this word in lines of a log."""
    yield from (line[1:] for line in log.lines() if line[0] == what)


def main() -> None:
    """Kill servers on each database, with each kind of release."""
    parser = argparse.ArgumentParser(description="Kill servers under load, and look for damage.")
    parser.add_argument("--kills", type=int, default=300, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outage-") as name, storm.places(Path(name)) as found:
        share = max(options.kills // (len(found) * len(storm.STRATEGIES)), 1)
        for store, new_url in found.items():
            for kind in storm.STRATEGIES:
                folder = Path(name) / f"{store}-{kind}"
                leg(folder, new_url(f"{folder.name}/trials"), kind, share, options.seed)


def leg(folder: Path, url: str, kind: str, kills: int, seed: int) -> None:
    """One kind of release on one database; ends the program if something is wrong."""
    folder.mkdir()
    log, wrong = outage(url, folder, kind, kills, seed=seed)
    wrong += problems(url, log)
    with closing(Trial.open(url, storm.NAME)) as trial:
        status = trial.status()
    print(
        f"{folder.name}, {kills} servers killed: {status.participants} participants, "
        f"{status.releases} releases: {'; '.join(wrong) or 'all is well'}",
        flush=True,
    )
    log.close()
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
