"""What is due by the clock is done by a service that nobody calls."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.errors import StoreError
from discreet.service import server as keeper
from discreet.service.server import make_due_releases, run_scheduler
from discreet.service.state import AppState
from discreet.trials.listing import list_trials_with_deadline
from tests.support.clock import Clock
from tests.support.service import wait_for
from tests.support.stores import ARMS

DAY = 86_400.0


@pytest.fixture
def home(url: str, clock: Clock) -> Iterator[AppState]:
    with closing(AppState(url)) as made:
        yield made


def made(home: AppState, name: str, **settings: Any) -> Trial:
    Trial.create(home.url, name, ARMS, bet_se(0.1, 5.0), max_participants=40, **settings).close()
    return home.trial(name)


def test_a_trial_ends_by_the_clock_though_nobody_calls(home: AppState, clock: Clock) -> None:
    """Everybody is in and told, and the last round waits for its time; in another trial
    nobody has told anything, and in a third nothing has a time.
    """
    clocked = made(home, "clocked", deadline=DAY, release="scheduled", enrolment="continuous")
    silent, timeless = made(home, "silent", deadline=DAY), made(home, "timeless")
    while participants := clocked.ask(10).assignments:
        clocked.tell_many({one.id: 1.0 for one in participants})
    silent.ask(40)
    timeless.ask(3)
    before = silent.status().head
    make_due_releases(home)
    assert not clocked.status().stopped
    assert silent.status().head == before, "nothing is due yet"
    noted = len(silent.audit_trail(100))
    for _ in range(20):
        clock.now += DAY + 61
        make_due_releases(home)
    assert clocked.status().stopped
    assert silent.status().head != before
    assert len(silent.audit_trail(100)) == noted, "as with `ask`, it is nobody's call"
    assert timeless.status().pending == 3
    assert clocked.verify().intact
    assert silent.verify().intact
    assert "clocked" not in list_trials_with_deadline(home.store)
    assert "timeless" not in list_trials_with_deadline(home.store)


def test_it_looks_until_the_service_ends(home: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[AppState] = []
    monkeypatch.setattr(keeper, "EVERY", 0.02)
    monkeypatch.setattr(keeper, "make_due_releases", looks.append)
    with run_scheduler(home):
        wait_for(lambda: len(looks) > 2)
    seen = len(looks)
    assert set(looks) == {home}
    assert len(looks) == seen


def test_what_cannot_be_done_now_is_written_down_and_done_later(
    home: AppState, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = made(home, "dose", deadline=DAY)
    trial.ask(40)
    clock.now += DAY + 1
    before, opened = trial.status().head, AppState.trial

    def fails(_home: AppState, _name: str) -> Trial:
        raise StoreError("somebody else is using it")

    monkeypatch.setattr(AppState, "trial", fails)
    with caplog.at_level(logging.ERROR, "discreet.service"):
        make_due_releases(home)
    assert [one.getMessage() for one in caplog.records] == ["the database cannot be used"]
    assert trial.status().head == before
    monkeypatch.setattr(AppState, "trial", opened)
    make_due_releases(home)
    assert trial.status().head != before


def test_a_service_keeps_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only a clock that somebody starts by hand."""
    from discreet.service import server

    kept: list[AppState] = []

    def runs(server: server.Server, _doors: Any) -> None:
        wait_for(lambda: kept)
        server.started = True

    monkeypatch.setattr(server.Server, "run", runs)
    monkeypatch.setattr(keeper, "EVERY", 0.02)
    monkeypatch.setattr(keeper, "make_due_releases", kept.append)
    monkeypatch.chdir(tmp_path)
    server.serve(
        f"sqlite:///{tmp_path}/t.db", server.ServerConfig(port=0), lambda _: None, lambda _: None
    )
    assert kept
