"""Processes that ask and tell while others are killed at random points; afterwards
nothing may be lost or doubled.

    python -m tests.support.storm --kills 10000 --workers 8 --seed 0

Half of the workers are killed by the parent at a random moment, half kill themselves
before a random statement or commit, so that deaths fall inside transactions. What a
worker was promised it writes to a log that outlives it. The outcome of a person is a
function of their number, so that anybody may tell it, also for the dead.

Some workers repeat requests whose answer the dead have lost, some manage (pause,
resume, move the maximum, add and drop arms), some have a clock that is wrong; and now
and then the database file is moved away, or an old copy put in its place.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from discreet import Strategy, adap_tt_star, bet_se, ttucb_batched
from discreet.errors import InvalidInputError, StoreError
from discreet.trials import responses
from discreet.trials.store import schema
from discreet.trials.store.tables import TrialTables
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


MOST = 2**29
DEADLINE = 3600.0
AHEAD = 2 * DEADLINE
"""How wrong a clock may be that makes others miss their deadline."""


def create(url: str, kind: str, name: str = NAME) -> Trial:
    deadline = DEADLINE if kind == "numbers" else None
    settings: dict[str, Any] = {"retain": "forever", "deadline": deadline}
    return Trial.create(url, name, ARMS, STRATEGIES[kind](), max_participants=MOST, **settings)


def light_fuse(engine: Any, steps: int) -> None:
    """Die before that statement or commit of a database, counted from now."""
    left = [steps]

    def step(*_: object) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for event in ("before_cursor_execute", "commit"):
        sa.event.listen(engine, event, step)


def open_ids(trial: Trial, most: int) -> list[str]:
    """People whose outcome is not in, whoever asked for them."""
    where = schema.assignments.c.state == schema.OPEN
    return [f"{row.number}-{row.token}" for row in rows_of(trial, schema.assignments, where, most)]


def rows_of(trial: Trial, table: sa.Table, where: Any = True, most: int | None = None) -> list[Any]:
    """Rows of the trial, from before or behind the wall."""
    with trial._database.snapshot(trial.protocol.name) as tables:
        row = tables.lock()
        assert row is not None
        query = sa.select(table).where(table.c.trial == row.trial, where).limit(most)
        return list(tables.connection.execute(query))


def tell(trial: Trial, log: Log, ids: list[str]) -> None:
    told = trial.tell_many({id: outcome(int(id.split("-")[0])) for id in ids})
    log.write("told", *(id for id in ids if id not in told.late + told.already_told))


def work(trial: Trial, log: Log, rng: random.Random, rough: bool) -> None:
    """Ask, tell in any order, sometimes twice; when everybody waits, tell for those who
    died. What a rough sea refuses is tried again; who is refused too often gives up.
    """
    refused = 0
    while refused < 50:
        try:
            if rough and rng.random() < 0.1:
                manage(trial, rng)
            turn(trial, log, rng)
        except StoreError as error:
            if not rough:
                raise
            refused += 1
            if "set-clock" in str(error) and rng.random() < 0.2:
                set_clock(trial)
            time.sleep(rng.expovariate(100))
    os.kill(os.getpid(), signal.SIGKILL)


def turn(trial: Trial, log: Log, rng: random.Random) -> None:
    """Somebody comes, or a request of before is repeated; then outcomes are told."""
    key = f"request-{rng.randrange(10**9)}" if rng.random() < 0.8 else None
    if key is not None:
        log.write("wants", key)
    batch = trial.ask(rng.choice((1, 2, 5, 20)), key=key)
    ids = [a.id for a in batch.assignments]
    if ids:
        log.write("asked", *(f"{a.id}:{a.arm}" for a in batch.assignments))
        if key is not None and rng.random() < 0.2:
            assert trial.ask(key=key).assignments == batch.assignments
    else:
        ids = open_ids(trial, 20)
    rng.shuffle(ids)
    cut = rng.randrange(len(ids) + 1)
    for some in (ids[:cut], ids[cut:], ids[:1]):
        if some:
            tell(trial, log, some)


def manage(trial: Trial, rng: random.Random) -> None:
    """What a manager may do; who is too late, or not allowed, is refused."""
    status = trial.status()
    acts: list[tuple[str, Any]] = [("resume", None)] * 3 if status.paused else [("pause", None)]
    acts += [("lower-maximum", MOST - 1 - len(status.actions)), ("raise-maximum", MOST)]
    if trial.protocol.randomisation == "simple" and len(status.arms) < 8:
        acts += [("add-arm", f"arm-{len(status.arms)}"), ("drop-arm", rng.choice(status.arms).name)]
    action, about = rng.choice(acts)
    try:
        trial.manage(action, "a storm", about, seen=len(status.actions))
    except InvalidInputError:
        return


def set_clock(trial: Trial) -> None:
    try:
        trial.manage("set-clock", "the clock was wrong")
    except (InvalidInputError, StoreError):
        return


def wrong_clock(rng: random.Random) -> None:
    """From now on the clock of this process is behind, a little ahead, or, seldom, so
    far ahead that others miss their deadline.
    """
    offset = rng.choice((-86_400.0, -30.0, 30.0, 45.0, AHEAD if rng.random() < 0.2 else 20.0))
    honest: Any = TrialTables.now
    setattr(TrialTables, "now", property(lambda tables: honest.func(tables) + offset))  # noqa: B010


def spawn(trial: Trial, url: str, log: Log, seed: int, fuse: bool, rough: bool) -> int:
    """A worker; with a fuse it ends by itself. Some open the trial, some go on with the
    one that was open.
    """
    head = known_head(trial)
    child = os.fork()
    if child:
        return child
    try:
        rng = random.Random(seed)
        if rough and rng.random() < 0.05:
            wrong_clock(rng)
        if rng.random() < 0.25:
            trial = opened(url, head, rough)
        if fuse:
            light_fuse(trial._database.engine, rng.randrange(1, 150))
        work(trial, log, rng, rough)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def opened(url: str, head: str, rough: bool) -> Trial:
    """The trial, once its file is where it belongs."""
    while True:
        try:
            return Trial.open(url, NAME, head)
        except (StoreError, InvalidInputError):
            if not rough:
                raise
            time.sleep(0.01)


def known_head(trial: Trial) -> str:
    """By which an old copy of the file can be told, once it is back in its place."""
    for _ in range(200):
        try:
            return trial.status().head
        except StoreError:
            trial.close()
            time.sleep(0.02)
    return trial.status().head


@contextmanager
def stopped(workers: Iterable[int]) -> Iterator[None]:
    """They stand still meanwhile: a signal takes its time, so each is waited for.
    Whoever has died meanwhile stays to be counted.
    """
    for child in workers:
        os.kill(child, signal.SIGSTOP)
    for child in workers:
        os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    try:
        yield
    finally:
        for child in workers:
            os.kill(child, signal.SIGCONT)


class Files:
    """An SQLite file that somebody moves, and an old copy put in its place."""

    ENDS = ("", "-wal", "-shm")

    def __init__(self, url: str) -> None:
        self.path = Path(url.removeprefix("sqlite:///"))
        self.old, self.aside = Path(f"{self.path}.old"), f"{self.path}.aside"

    def copy(self) -> None:
        """An old copy, as a backup would be."""
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True) as here:
            with sqlite3.connect(self.old) as there:
                here.backup(there)
            there.close()
        here.close()

    def trouble(self, rng: random.Random, workers: Iterable[int]) -> None:
        """The file is gone for a moment, or another one is there. Nobody runs while its
        three files are moved: SQLite cannot know that they belong together.
        """
        with stopped(workers):
            self._move(str(self.path), self.aside)
        if rng.random() < 0.5:
            shutil.copy(self.old, self.path)
            self.path.chmod(0o600)
        time.sleep(rng.expovariate(100))
        with stopped(workers):
            for end in self.ENDS:
                Path(f"{self.path}{end}").unlink(missing_ok=True)
            self._move(self.aside, str(self.path))

    def _move(self, here: str, there: str) -> None:
        for end in self.ENDS:
            if Path(f"{here}{end}").exists():
                os.rename(f"{here}{end}", f"{there}{end}")


def storm(
    url: str,
    folder: Path,
    kind: str,
    kills: int,
    workers: int = 8,
    seed: int = 0,
    show: bool = False,
    people: int = 0,
    rough: bool = True,
) -> Log:
    """Let the workers work until so many of them have been killed, each followed by
    another one.

    Where they hardly get to work, as on a busy machine, it goes on until so many people
    are in the trial.
    """
    trial = create(url, kind)
    log, rng = Log(folder / f"storm-{kind}.log"), random.Random(seed)
    files = Files(url) if rough and url.startswith("sqlite") else None
    if files is not None:
        files.copy()

    def another(fuse: bool) -> int:
        return spawn(trial, url, log, rng.getrandbits(64), fuse, rough)

    fused = {another(number % 2 == 0): number % 2 == 0 for number in range(workers)}
    began, dead = time.monotonic(), 0
    while dead < kills or trial.status().participants < people:
        time.sleep(rng.expovariate(20))
        if files is not None and rng.random() < 0.05:
            trial.close()
            files.trouble(rng, list(fused))
        os.kill(rng.choice([child for child, fuse in fused.items() if not fuse]), signal.SIGKILL)
        for child in list(fused):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == signal.SIGKILL, (
                    "a worker ended otherwise than by being killed: its error is above"
                )
                fuse, dead = fused.pop(child), dead + 1
                fused[another(fuse)] = fuse
                if show and dead % max(kills // 10, 1) == 0:
                    print(f"{dead:6d} killed, {time.monotonic() - began:5.0f} s", flush=True)
    for child in fused:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return log


def problems(url: str, log: Log, name: str = NAME) -> list[str]:
    """What was lost, doubled or left half done; nothing, if all is well."""
    trial = Trial.open(url, name)
    set_clock(trial)
    if trial.status().paused:
        trial.manage("resume", "the storm is over")
    while waiting := open_ids(trial, 1000):
        tell(trial, log, waiting)
    arms = [arm.name for arm in trial.status().arms]
    rows = rows_of(trial, schema.assignments)
    sealed = {row.number: row for row in rows_of(trial, schema.outcomes)}
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
    if any(id not in known or arms[known[id].arm] != arm for id, arm in asked):
        found.append("an assignment was lost or changed")
    if any(int(id.split("-")[0]) not in sealed for id in told):
        found.append("an outcome was lost after tell returned")
    sure = {int(id.split("-")[0]) for id in told}
    if any(row.units not in worth(number, trial, sure) for number, row in sealed.items()):
        found.append("an outcome was changed, or one that was told counts as missing")
    if set(sealed) != {row.number for row in rows if row.state == schema.RECORDED}:
        found.append("a person was told without an outcome, or has one untold")
    found += wrong_answers(trial, log)
    return found + wrong_releases(
        releases, list(sealed.values()), trial.protocol.strategy.trust != "global"
    )


def worth(number: int, trial: Trial, sure: set[int]) -> list[int | None]:
    """Return what may be stored of a participant, in units: the outcome; the worst one
    unless a caller is `sure` that it was told; nothing, if the arm was dropped before.
    """
    units: list[int | None] = [responses.to_units(outcome(number), trial.protocol.grid)]
    if number not in sure and trial.protocol.deadline is not None:
        units.append(0)
    return [*units, None] if trial.protocol.randomisation == "simple" else units


def wrong_answers(trial: Trial, log: Log) -> list[str]:
    """Requests of the dead are repeated: their people are in, and nobody new comes."""
    people = trial.status().participants
    keys = [line[1] for line in log.lines() if line[0] == "wants"][-40:]
    answered = {bytes(row.hash) for row in rows_of(trial, schema.requests)}
    for key in keys:
        if request_hash(trial, key) in answered:
            trial.ask(key=key)
    return ["a repeated request assigned somebody"] if trial.status().participants != people else []


def request_hash(trial: Trial, key: str) -> bytes:
    with trial._reading() as tx:
        return tx.tables.hash_with_secret(key.encode())


def wrong_releases(releases: list[dict[str, Any]], sealed: list[Any], exact: bool) -> list[str]:
    """Releases that came twice, or of other outcomes than there are."""
    sums, counts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row in sealed:
        sums[row.arm, row.phase] += row.units or 0
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


@contextmanager
def places(folder: Path) -> Iterator[dict[str, Callable[[str], str]]]:
    """The databases that are there, each with an address for a new place of a name."""
    with ExitStack() as stack:
        found: dict[str, Callable[[str], str]] = {
            "SQLite": lambda kind: f"sqlite:///{folder}/{kind}.db"
        }
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server())
            found["PostgreSQL"] = lambda kind: server.new_url()
        yield found


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
    with tempfile.TemporaryDirectory(prefix="storm-") as name, places(Path(name)) as stores:
        folder = Path(name)
        share = max(options.kills // (len(stores) * len(STRATEGIES)), 1)
        for store, new_url in stores.items():
            for kind in STRATEGIES:
                print(f"{store}, {kind} sums, {share} kills")
                url = new_url(kind)
                log = storm(url, folder, kind, share, options.workers, options.seed, show=True)
                found = problems(url, log)
                status = Trial.open(url, NAME).status()
                print(
                    f"{status.participants} people, {status.releases} releases: "
                    f"{'; '.join(found) or 'all is well'}"
                )
                log.close()
                log.path.unlink()
                if found:
                    raise SystemExit(1)


if __name__ == "__main__":
    main()
