"""Live trials with many callers: single `ask` and `tell` by 1, 8 and 32 processes, and
by threads of one process that share commits. Throughput should not fall with more
processes, the slowest call should be below 50 times the median, and 32 threads should
get through at least 8 times as much as one.

At equal durability: SQLite with a write-ahead log and synchronous = FULL, a PostgreSQL
server that syncs every commit.
"""

import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import postgres

from discreet import bet_se
from discreet.trials.trial import Trial

NAME = "crowd"
SECONDS = 6.0
CROWDS = (1, 8, 32)


class Pace(NamedTuple):
    """What callers got through."""

    rate: float
    """People a second."""
    median: float
    worst: float
    """Seconds of a person: `ask` and `tell`."""


def callers_work(trial: Trial, until: float) -> list[float]:
    """Seconds of each person until a moment."""
    took = []
    while time.time() < until:
        began = time.perf_counter()
        for one in trial.ask().assignments:
            trial.tell(one.id, 1.0)
        took.append(time.perf_counter() - began)
    return took


def pace(took: list[float]) -> Pace:
    return Pace(len(took) / SECONDS, statistics.median(took), max(took))


def a_process(url: str, start: Any, found: Any) -> None:
    trial = Trial.open(url, NAME)
    trial.status()
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
    Trial.create(url, NAME, arms, strategy, max_people=2**30).close()
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


def run() -> None:
    print("\nMany callers                people a second      median of one      slowest")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compare("SQLite", f"sqlite:///{folder}/crowd.db")
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            compare("PostgreSQL", server.new_url())


if __name__ == "__main__":
    run()
