"""Live trials: people a second, against Optuna's ask and tell in the same run, and as
the trial grows; and what it takes to verify one.

At equal durability, and each at its quickest with it: SQLite with a write-ahead log and
synchronous = FULL for both, on the same file system; the same PostgreSQL server, which
syncs every commit. Nobody can lose what was acknowledged.
"""

import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support import postgres

from discreet import adap_tt_star
from discreet.trials.trial import Trial

ARMS = ("red", "green", "blue")
Turn = Callable[[], int]
"""Enrols some people, with their outcomes, and says how many."""


def rate(turn: Turn, seconds: float) -> float:
    """People a second."""
    people, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        people += turn()
    return people / (time.perf_counter() - began)


def ours(url: str, at_once: int) -> Turn:
    """A trial that never ends: the arms are alike."""
    rng = random.Random(0)
    trial = Trial.create(
        url, "bench", ARMS, adap_tt_star(epsilon=1.0, delta=1e-9), max_participants=2**30
    )

    def turn() -> int:
        asked = trial.ask(at_once).assignments
        assert asked, "the trial has ended"
        trial.tell_many({a.id: float(rng.random() < 0.5) for a in asked})
        return len(asked)

    return turn


def optunas(url: str) -> Turn:
    """A study that picks an arm at random; there is no batch of several in Optuna."""
    import optuna
    import sqlalchemy as sa

    def durable(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(url)
    if url.startswith("sqlite"):
        storage.engine.dispose()
        sa.event.listen(storage.engine, "connect", durable)
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
    choice: dict[str, Any] = {"arm": optuna.distributions.CategoricalDistribution(ARMS)}

    def turn() -> int:
        study.tell(study.ask(choice), 1.0)
        return 1

    return turn


def enrol(turn: Turn, people: int) -> None:
    while people > 0:
        people -= turn()


def compare(name: str, new_url: Callable[[str], str]) -> None:
    """Rates of single people and batches, and their ratio to Optuna's."""
    theirs = optunas(new_url("optuna"))
    url = new_url("ours")
    one, hundred = ours(url, 1), ours(url, 100)
    enrol(theirs, 5)
    enrol(hundred, 1000)
    rates = {"Optuna": 0.0, "one": 0.0, "hundred": 0.0}
    for _ in range(3):  # in turns: the machine is not ours alone
        for kind, turn in zip(rates, (theirs, one, hundred), strict=True):
            rates[kind] = max(rates[kind], rate(turn, 2.0))
    optuna = rates.pop("Optuna")
    shown = "".join(f"{people:12.0f} ({people / optuna:5.1f} x)" for people in rates.values())
    print(f"{name:12}{optuna:10.0f}{shown}")


def growth(name: str, new_url: Callable[[str], str]) -> None:
    """Rates after a thousand people (and some more: they are measured in turns) and
    after a hundred thousand.
    """
    small, large = new_url("small"), new_url("large")
    enrol(ours(small, 100), 1_000)
    enrol(ours(large, 1_000), 100_000)
    print(f"{name:12}", end="")
    for at_once, people in ((1, 150), (100, 1_500)):
        turns = [ours(small, at_once), ours(large, at_once)]
        best = [0.0, 0.0]
        for _ in range(4):
            for place, turn in enumerate(turns):
                began = time.perf_counter()
                enrol(turn, people)
                best[place] = max(best[place], people / (time.perf_counter() - began))
        print(f"{best[0]:10.0f}{best[1]:10.0f} ({best[1] / best[0]:4.2f} x)", end="")
    print()


def verifying(new_url: Callable[[str], str]) -> None:
    """What a verification takes a person, over what enrolling one took in the same
    trial; and as the record grows.
    """
    first = 0.0
    for people, at_once in ((1_000, 1), (8_000, 1), (8_000, 100)):
        url = new_url(f"verify-{people}-{at_once}")
        began = time.perf_counter()
        enrol(ours(url, at_once), people)
        enrolled = time.perf_counter() - began
        trial, takes = Trial.open(url, "bench"), list[float]()
        for _ in range(3):
            began = time.perf_counter()
            assert trial.verify().intact
            takes.append(time.perf_counter() - began)
        each = min(takes) / people
        first = first or each
        print(f"{people:8}{at_once:8}{min(takes) / enrolled:14.4f} x{each / first:10.2f} x")


def run() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places: dict[str, Callable[[str], str]] = {
            "SQLite": lambda name: f"sqlite:///{folder}/{name}.db"
        }
        if postgres.programs() is not None:
            server = stack.enter_context(postgres.server(fsync=True))
            places["PostgreSQL"] = lambda name: server.new_url()
        print("\nPeople a second          Optuna         ours, one by one      in hundreds")
        for name, new_url in places.items():
            compare(name, new_url)
        print(
            "\nPeople a second by size  one by one: 1 000, 100 000      in hundreds: 1 000, 100 000"
        )
        for name, new_url in places.items():
            growth(name, new_url)
        print("\nVerifying: people, at once, over enrolling them, a person as the record grows")
        verifying(places["SQLite"])


if __name__ == "__main__":
    run()
