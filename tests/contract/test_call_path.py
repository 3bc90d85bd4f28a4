"""How many of our functions run in one call, and in how many modules.

The numbers bound how far a reader has to follow a call. Functions are counted once
each; comprehensions, properties and strategies are not counted.
"""

import asyncio
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import pytest

import discreet
from discreet import Trial, bet_se
from discreet.service import auth, observability
from discreet.service.app import make_app
from discreet.service.state import AppState

SOURCE = str(Path(discreet.__file__).parent)
NOT_COUNTED = ("strategies", "simulation", "theory")
LIMITS = {"ask": 56, "tell": 97, "status": 30, "http": 90, "service": 25}
"""Largest numbers of functions: of calls of a trial, of `ask` over HTTP, and of what
the service adds to it.
"""


class Counter:
    """The code objects of our functions that have run."""

    def __init__(self) -> None:
        self.found: set[CodeType] = set()

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            self.found.add(code)

    @property
    def functions(self) -> set[CodeType]:
        return {code for code in self.found if _is_counted(code)}

    def __str__(self) -> str:
        """How many, in how many modules, and which."""
        modules = {code.co_filename for code in self.functions}
        return f"{len(self.functions)} functions in {len(modules)} modules"


def _is_counted(code: CodeType) -> bool:
    module = Path(code.co_filename).relative_to(SOURCE)
    if module.parts[0] in NOT_COUNTED or code.co_name.startswith("<"):
        return False
    name = ".".join(["discreet", *module.with_suffix("").parts])
    return code not in _properties(name)


@functools.cache
def _properties(module: str) -> set[CodeType]:
    """The code of the properties of a module's classes."""
    found = set[CodeType]()
    for kind in vars(sys.modules[module]).values():
        for one in vars(kind).values() if isinstance(kind, type) else ():
            getter = getattr(one, "fget", None) or (
                one.func if isinstance(one, functools.cached_property) else None
            )
            if getter is not None:
                found.add(getter.__code__)
    return found


@contextmanager
def counting() -> Iterator[Counter]:
    """Count what this thread runs, and threads that start meanwhile."""
    counter = Counter()
    threading.setprofile(counter.see)
    sys.setprofile(counter.see)
    try:
        yield counter
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    made = Trial.create(
        f"sqlite:///{tmp_path}/trials.db",
        "dose",
        ["a", "b"],
        bet_se(0.1, 1.0),
        max_participants=500,
    )
    made.tell(made.ask().assignments[0].id, 1)  # what is loaded or compiled once is there
    yield made
    made.close()


def fill(trial: Trial) -> list[str]:
    """Assign until the round is full; return the ids whose outcomes are not in."""
    while trial.ask(50).assignments:
        pass
    return [one.id for one in trial.open_assignments()]


def measure(trial: Trial, call: Callable[[], Any]) -> Counter:
    """Count the functions of a call. The trial's writing thread is started anew: only
    threads that start meanwhile are seen.
    """
    trial._group.renew()
    with counting() as counter:
        call()
        wait_for_writer(trial)
    return counter


def wait_for_writer(trial: Trial) -> None:
    """Wait until the thread that writes has done all that follows a call."""
    trial._group._writer.submit(int).result()


def test_ask(trial: Trial) -> None:
    counter = measure(trial, trial.ask)
    assert len(counter.functions) <= LIMITS["ask"], str(counter)


def test_tell_with_a_release(trial: Trial) -> None:
    *others, last = fill(trial)
    trial.tell_many(dict.fromkeys(others, 1.0))
    counter = measure(trial, lambda: trial.tell(last, 1))
    assert any(event.kind == "released" for event in trial.record())
    assert len(counter.functions) <= LIMITS["tell"], str(counter)


def test_status(trial: Trial) -> None:
    trial.ask()
    counter = measure(trial, trial.status)
    assert len(counter.functions) <= LIMITS["status"], str(counter)


def test_ask_over_http(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REMEMBERED", 600.0)  # however slowly the calls follow
    monkeypatch.setattr(observability, "_own", [])  # no log that another test has started
    monkeypatch.setattr(observability.LOG, "disabled", True)
    home = AppState(str(trial.url))
    secret, _ = home.tokens.make("a test", "manager", "a test")
    headers = {"Authorization": f"Bearer {secret}"}

    async def ask() -> Counter:
        transport = httpx.ASGITransport(make_app(home))
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            path = "/api/v1/trials/dose/ask"
            with counting() as counter:
                for _ in range(2):  # the first call starts threads and opens the trial
                    counter.found.clear()
                    found = await client.post(path, json={}, headers=headers)
                    assert found.status_code == 200, found.text
                    wait_for_writer(home.trial("dose"))
            return counter

    counter = asyncio.run(ask())
    home.close()
    added = {code for code in counter.functions if "/discreet/service/" in code.co_filename}
    assert len(counter.functions) <= LIMITS["http"], str(counter)
    assert 10 < len(added) <= LIMITS["service"], sorted(code.co_qualname for code in added)
