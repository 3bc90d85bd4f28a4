"""Live trials with many callers: single `ask` and `tell` by 1, 4 and 16 processes, and
by threads of one process that share commits. Throughput should not fall with more
processes, and 16 threads should get through at least 4 times as much as one. And for
how long a call for as many people as one may be about holds others up: it should be
less than a second.

At equal durability: SQLite with a write-ahead log and synchronous = FULL, a PostgreSQL
server that syncs every commit.
"""

import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import postgres

from discreet import Response, Strategy, bet_se, ctb_tt, respond
from discreet.trials.inputs import MAX_BATCH
from discreet.trials.store.tables import TrialTables
from discreet.trials.trial import Trial

NAME = "crowd"
SECONDS = 6.0
CROWDS = (1, 4, 16)


class Pace(NamedTuple):
    """What callers got through."""

    rate: float
    """People a second."""
    median: float
    worst: float
    """Seconds of a person: `ask` and `tell`."""


def a_person(trial: Trial) -> float:
    """Seconds of a person."""
    began = time.perf_counter()
    for one in trial.ask().assignments:
        trial.tell(one.id, 1.0)
    return time.perf_counter() - began


def callers_work(trial: Trial, until: float) -> list[float]:
    """Seconds of each person until a moment."""
    took = []
    while time.time() < until:
        took.append(a_person(trial))
    return took


def pace(took: list[float]) -> Pace:
    return Pace(len(took) / SECONDS, statistics.median(took), max(took))


def a_process(url: str, start: Any, found: Any) -> None:
    trial = Trial.open(url, NAME)
    a_person(trial)  # what a process loads once is loaded
    start.wait()
    found.put(callers_work(trial, time.time() + SECONDS))
    trial.close()


def by_processes(url: str, callers: int) -> Pace:
    """Each opens the trial, and all begin at once."""
    spawning = multiprocessing.get_context("fork")
    start, found = spawning.Barrier(callers), spawning.Queue()
    crowd = [spawning.Process(target=a_process, args=(url, start, found)) for _ in range(callers)]
    for one in crowd:
        one.start()
    took = [seconds for _ in crowd for seconds in found.get()]
    for one in crowd:
        one.join()
    return pace(took)


def by_threads(url: str, callers: int) -> Pace:
    """They share one `Trial`."""
    trial, took = Trial.open(url, NAME), list[float]()
    a_person(trial)
    until = time.time() + SECONDS
    crowd = [
        threading.Thread(target=lambda: took.extend(callers_work(trial, until)))
        for _ in range(callers)
    ]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    trial.close()
    return pace(took)


def compare(name: str, url: str) -> None:
    """A trial whose rounds are long: what is measured is coming and telling."""
    arms, strategy = ("red", "green", "blue"), bet_se(delta=1e-9, epsilon=0.02)
    Trial.create(url, NAME, arms, strategy, max_participants=2**30).close()
    ways: dict[str, Callable[[str, int], Pace]] = {
        "processes": by_processes,
        "threads": by_threads,
    }
    for way, measure in ways.items():
        first = 0.0
        for callers in CROWDS:
            found = measure(url, callers)
            first = first or found.rate
            print(
                f"{name:12}{callers:4d} {way:10}{found.rate:8.0f} ({found.rate / first:5.2f} x)"
                f"{1e3 * found.median:12.1f} ms{found.worst / found.median:10.1f} x the median"
            )


def held(trial: Trial, call: Callable[[Any], Any], what: Any) -> tuple[Any, float]:
    """What a call returns, and the seconds of its longest transaction: others who write
    wait for so long.
    """
    usual, seconds = trial._database.transaction, list[float]()

    @contextmanager
    def timed(name: str) -> Iterator[TrialTables]:
        with usual(name) as tables:
            began = time.perf_counter()
            yield tables
        seconds.append(time.perf_counter() - began)

    trial._database.transaction = timed  # type: ignore[method-assign]
    try:
        return call(what), max(seconds)
    finally:
        trial._database.transaction = usual  # type: ignore[method-assign]


def hold_up(url: str, strategy: Strategy, outcome: Any) -> tuple[float, float]:
    """Of a call that asks and one that tells, the best of three."""
    trial = Trial.create(url, strategy.name, ("red", "green", "blue"), strategy, 2**30)
    tell = trial.answer_many if isinstance(outcome, Response) else trial.tell_many
    asking, telling = list[float](), list[float]()
    for _ in range(3):
        batch, seconds = held(trial, trial.ask, MAX_BATCH)
        asking.append(seconds)
        telling.append(held(trial, tell, {one.id: outcome for one in batch.assignments})[1])
    trial.close()
    return min(asking), min(telling)


def run() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places = {"SQLite": f"sqlite:///{folder}/crowd.db"}
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            places["PostgreSQL"] = server.new_url()
        print("\nMany callers                people a second      median of one      slowest")
        for name, url in places.items():
            compare(name, url)
        print(f"\nOthers wait for {MAX_BATCH} people   ask, tell_many   ask, answer_many")
        told, answered = bet_se(delta=1e-9, epsilon=0.0005), ctb_tt(delta=1e-9, epsilon=1.0)
        for name, url in places.items():
            both = hold_up(url, told, 1.0), hold_up(url, answered, respond(1.0, epsilon=1.0))
            shown = "".join(f"{asks:12.2f} s{tells:8.2f} s" for asks, tells in both)
            print(f"{name:12}{shown}")


if __name__ == "__main__":
    run()
