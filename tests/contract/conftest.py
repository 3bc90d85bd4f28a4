"""The four ways to a trial: a file, a server, the HTTP client, and the command line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from tests.contract.commands import CommandTrial
from tests.support.remote import far_away

WAYS = ("sqlite", "postgresql", "http", "command line")
ARMS = ("usual", "new", "third")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How callers reach the trial."""
    way: str = request.param
    return way


@pytest.fixture
def create(
    way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Create a trial, reached in one of the ways, with settings of `Trial.create`."""
    made: list[Any] = []
    url = f"sqlite:///{tmp_path}/trials.db"
    if way == "postgresql":
        url = request.getfixturevalue("postgres").new_url()

    def start(address: str, **settings: Any) -> Any:
        trial: Any
        delta, epsilon = settings.pop("delta", 0.1), settings.pop("epsilon", 1.0)
        settings = {"max_participants": 200, "arms": ARMS, **settings}
        if way == "command line":
            levels = {"strategy": "bet-se", "delta": delta, "epsilon": epsilon}
            if "sites" in settings:
                settings["sites"] = ",".join(settings["sites"])
            if "deadline" in settings:
                settings["deadline"] = f"{settings['deadline']:g}s"
            trial = CommandTrial.create(address, "dose", **levels, **settings)
        else:
            strategy = bet_se(delta, epsilon)
            trial = Trial.create(address, "dose", strategy=strategy, **settings)
        made.append(trial)
        return trial

    if way == "http":
        with far_away(url) as service:
            monkeypatch.setenv("DISCREET_TOKEN", service.secret)
            yield lambda **settings: start(service.base, **settings)
            for trial in made:
                trial.close()
    else:
        yield lambda **settings: start(url, **settings)
        for trial in made:
            trial.close()
