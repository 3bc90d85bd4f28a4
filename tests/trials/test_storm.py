"""Death at every point, and at random ones: nothing acknowledged is lost, nothing
happens twice, nothing half.
"""

import os
import signal
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from discreet.errors import DiscreetError
from discreet.trials.store.tables import TrialTables
from discreet.trials.trial import Trial
from tests.support import storm


def light_fuse(trial: Trial, log: storm.Log, seen: set[str]) -> None:
    """Die before a statement or commit that comes after other ones in its transaction
    than ever before.
    """
    so_far: list[str] = []

    def step(words: str) -> None:
        so_far.append(words)
        kind = sha256("\n".join(so_far).encode()).hexdigest()
        if kind not in seen:
            log.write("dies", kind)
            os.kill(os.getpid(), signal.SIGKILL)

    engine = trial._database.engine
    sa.event.listen(engine, "begin", lambda _connection: so_far.clear())
    sa.event.listen(engine, "before_cursor_execute", lambda *about: step(about[2]))
    sa.event.listen(engine, "commit", lambda _connection: step("commit"))


def dies(trial: Trial, log: storm.Log, seen: set[str]) -> bool:
    """Whether a worker that does the first two turns of a trial dies, at a step of a
    kind that was not seen and now is, or is through before.
    """
    child = os.fork()
    if child == 0:
        try:
            light_fuse(trial, log, seen)
            for _ in range(2):
                batch = trial.ask(4).assignments
                log.write("asked", *(f"{a.id}:{a.arm}" for a in batch))
                for assignment in batch:
                    storm.tell(trial, log, [assignment.id])
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    seen |= {line[1] for line in log.lines() if line[0] == "dies"}
    return status == signal.SIGKILL


def problems_at_every_step(url: str, folder: Path) -> Iterator[tuple[int, list[str]]]:
    """What is found after a death at a first, second, … kind of step, each in a trial
    of its own: the fourth outcome is told by the same statements as the first.
    """
    seen: set[str] = set()
    for step in count(1):
        trial, log = storm.create(url, "exact", f"step {step}"), storm.Log(folder / f"{step}.log")
        died = dies(trial, log, seen)
        try:
            yield step, storm.problems(url, log, trial.protocol.name)
        except DiscreetError as error:
            yield step, [str(error)]
        finally:
            log.close()
            trial.close()
        if not died:
            assert len(seen) == step - 1
            return


@pytest.mark.slow
def test_death_at_every_statement(url: str, tmp_path: Path) -> None:
    found = dict(problems_at_every_step(url, tmp_path))
    assert len(found) > 40
    assert {step: said for step, said in found.items() if said} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", ["insert_assignments", "mark_recorded", "append_event", "delete_counts"]
)
def test_planted_mistakes_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A transaction that is two: a mark apart from its outcome, a release apart from
    its batch or from the state. (Outcomes are written last, so that a commit after them
    parts nothing.)
    """
    usual = getattr(TrialTables, step)

    def in_two(tables: TrialTables, *arguments: Any) -> None:
        usual(tables, *arguments)
        tables.flush()
        tables.connection.commit()

    monkeypatch.setattr(TrialTables, step, in_two)
    assert any(
        said for _, said in problems_at_every_step(f"sqlite:///{tmp_path}/trials.db", tmp_path)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", storm.STRATEGIES)
def test_storm(url: str, tmp_path: Path, kind: str) -> None:
    log = storm.storm(url, tmp_path, kind, kills=30 if "sqlite" in url else 12, people=21)
    assert storm.problems(url, log) == []
    assert Trial.open(url, storm.NAME).status().participants > 20
    log.close()
