"""Processes that ask and tell while others are killed at random points; afterwards
nothing may be lost or doubled.

    python -m tests.support.storm --kills 10000 --workers 8 --seed 0

Half of the workers are killed by the parent at a random moment, half kill themselves
before a random statement or commit, so that deaths fall inside transactions. What a
worker was promised it writes to a log that outlives it. The outcome of a person is a
function of their number, so that anybody may tell it, also for the dead.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from discreet import Strategy, adap_tt_star, bet_se, ttucb_batched
from discreet.trials import outcomes
from discreet.trials.store import schema
from discreet.trials.trial import Trial
from tests.support import postgres

NAME = "storm"
ARMS = ("red", "green", "blue")
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "noisy": lambda: adap_tt_star(epsilon=1.0, delta=1e-9),
    "exact": lambda: ttucb_batched(delta=1e-9),
    "numbers": lambda: bet_se(delta=1e-9, epsilon=5.0, outcomes="numbers"),
}
"""Sums released without noise can be compared with the outcomes themselves."""


def outcome(number: int) -> float:
    """The outcome of a person, on the grid: what they are worth in units can be told
    from it.
    """
    return (number * 7919 % 1024) / 1024


class Log:
    """Lines of many processes. Written at once, and the kernel keeps them when the
    process is killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *words: object) -> None:
        os.write(self.file, (" ".join(map(str, words)) + "\n").encode())

    def lines(self) -> Iterator[list[str]]:
        yield from (line.split() for line in self.path.read_text().splitlines())

    def close(self) -> None:
        os.close(self.file)


def create(url: str, kind: str, name: str = NAME) -> Trial:
    return Trial.create(url, name, ARMS, STRATEGIES[kind](), max_people=2**30, retain="forever")


def light_fuse(trial: Trial, steps: int) -> None:
    """Die before that statement or commit, counted from now."""
    left = [steps]

    def step(*_: object) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for event in ("before_cursor_execute", "commit"):
        sa.event.listen(trial._store.engine, event, step)


def open_ids(trial: Trial, most: int) -> list[str]:
    """People whose outcome is not in, whoever asked for them."""
    where = schema.assignments.c.state == schema.OPEN
    return [f"{row.number}-{row.token}" for row in rows_of(trial, schema.assignments, where, most)]


def rows_of(trial: Trial, table: sa.Table, where: Any = True, most: int | None = None) -> list[Any]:
    """Rows of the trial, from before or behind the wall."""
    with trial._store.reading(trial.protocol.name) as session:
        row = session.look()
        assert row is not None
        query = sa.select(table).where(table.c.trial == row.trial, where).limit(most)
        return list(session.connection.execute(query))


def tell(trial: Trial, log: Log, ids: list[str]) -> None:
    trial.tell_many({id: outcome(int(id.split("-")[0])) for id in ids})
    log.write("told", *ids)


def work(trial: Trial, log: Log, rng: random.Random) -> None:
    """Ask, tell in any order, sometimes twice; when everybody waits, tell for those who
    died.
    """
    while True:
        batch = trial.ask(rng.choice((1, 2, 5, 20)))
        ids = [a.id for a in batch.assignments]
        if ids:
            log.write("asked", *(f"{a.id}:{a.arm}" for a in batch.assignments))
        else:
            ids = open_ids(trial, 20)
        rng.shuffle(ids)
        cut = rng.randrange(len(ids) + 1)
        for some in (ids[:cut], ids[cut:], ids[:1]):
            if some:
                tell(trial, log, some)


def spawn(trial: Trial, url: str, log: Log, seed: int, fuse: bool) -> int:
    """A worker; with a fuse it ends by itself. Some open the trial, some go on with the
    one that was open.
    """
    child = os.fork()
    if child:
        return child
    try:
        rng = random.Random(seed)
        if rng.random() < 0.25:
            trial = Trial.open(url, NAME)
        if fuse:
            light_fuse(trial, rng.randrange(1, 150))
        work(trial, log, rng)
    finally:
        os._exit(1)


def storm(
    url: str,
    folder: Path,
    kind: str,
    kills: int,
    workers: int = 8,
    seed: int = 0,
    show: bool = False,
    people: int = 0,
) -> Log:
    """Let the workers work until so many of them have been killed, each followed by
    another one.

    Where they hardly get to work, as on a busy machine, it goes on until so many people
    are in the trial.
    """
    trial = create(url, kind)
    log, rng = Log(folder / f"storm-{kind}.log"), random.Random(seed)
    fused = {
        spawn(trial, url, log, rng.getrandbits(64), number % 2 == 0): number % 2 == 0
        for number in range(workers)
    }
    began, dead = time.monotonic(), 0
    while dead < kills or trial.status().people < people:
        time.sleep(rng.expovariate(20))
        os.kill(rng.choice([child for child, fuse in fused.items() if not fuse]), signal.SIGKILL)
        for child in list(fused):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == signal.SIGKILL, (
                    "a worker ended otherwise than by being killed: its error is above"
                )
                fuse, dead = fused.pop(child), dead + 1
                fused[spawn(trial, url, log, rng.getrandbits(64), fuse)] = fuse
                if show and dead % max(kills // 10, 1) == 0:
                    print(f"{dead:6d} killed, {time.monotonic() - began:5.0f} s", flush=True)
    for child in fused:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return log


def problems(url: str, log: Log, name: str = NAME) -> list[str]:
    """What was lost, doubled or left half done; nothing, if all is well."""
    trial = Trial.open(url, name)
    while waiting := open_ids(trial, 1000):
        tell(trial, log, waiting)
    rows = rows_of(trial, schema.assignments)
    sealed = {row.number: row for row in rows_of(trial, schema.sealed)}
    events = [event for event in trial.transcript()["events"] if event["kind"] == "released"]
    releases = [one for event in events for one in event["releases"]]
    found = list(trial.verify().problems)
    if trial.status().waiting:
        found.append("a release that is due did not come")
    known = {f"{row.number}-{row.token}": row for row in rows}
    asked = [word.split(":") for line in log.lines() if line[0] == "asked" for word in line[1:]]
    told = {id for line in log.lines() if line[0] == "told" for id in line[1:]}
    if sorted(row.number for row in rows) != list(range(1, len(rows) + 1)):
        found.append("people are not numbered one after the other")
    if len({id for id, _ in asked}) < len(asked):
        found.append("somebody was assigned twice")
    if any(id not in known or ARMS[known[id].arm] != arm for id, arm in asked):
        found.append("an assignment was lost or changed")
    if any(int(id.split("-")[0]) not in sealed for id in told):
        found.append("an outcome was lost after tell returned")
    if any(
        row.units != outcomes.to_units(outcome(number), trial.protocol.grid)
        for number, row in sealed.items()
    ):
        found.append("an outcome was changed")
    if set(sealed) != {row.number for row in rows if row.state == schema.TOLD}:
        found.append("a person was told without an outcome, or has one untold")
    return found + wrong_releases(
        releases, list(sealed.values()), trial.protocol.strategy.trust != "global"
    )


def wrong_releases(releases: list[dict[str, Any]], sealed: list[Any], exact: bool) -> list[str]:
    """Releases that came twice, or of other outcomes than there are."""
    sums, counts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row in sealed:
        sums[row.arm, row.phase] += row.units
        counts[row.arm, row.phase] += 1
    places = [(one["arm"], one["phase"]) for one in releases]
    found = ["a batch was released twice"] if len(set(places)) < len(places) else []
    if any(counts[place] != one["count"] for place, one in zip(places, releases, strict=True)):
        found.append("a release counts other people than there are")
    if exact and any(
        sums[place] != one["sum"] for place, one in zip(places, releases, strict=True)
    ):
        found.append("a release is not the sum of its outcomes")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Kill workers of a trial at random points, and look for damage."
    )
    parser.add_argument(
        "--kills", type=int, default=10_000, help="in all, over both stores and both strategies"
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-")))
        places: dict[str, Callable[[str], str]] = {
            "SQLite": lambda kind: f"sqlite:///{folder}/{kind}.db"
        }
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server())
            places["PostgreSQL"] = lambda kind: server.new_url()
        share = max(options.kills // (len(places) * len(STRATEGIES)), 1)
        for name, new_url in places.items():
            for kind in STRATEGIES:
                print(f"{name}, {kind} sums, {share} kills")
                url = new_url(kind)
                log = storm(url, folder, kind, share, options.workers, options.seed, show=True)
                found = problems(url, log)
                status = Trial.open(url, NAME).status()
                print(
                    f"{status.people} people, {status.releases} releases: "
                    f"{'; '.join(found) or 'all is well'}"
                )
                log.close()
                log.path.unlink()
                if found:
                    raise SystemExit(1)


if __name__ == "__main__":
    main()
