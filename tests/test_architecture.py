"""docs/architecture.md says what is so: every name on it exists, and data walks as it
says.
"""

import dataclasses
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import Trial, bet_se
from discreet.cli import main
from discreet.simulation import compile as compiling

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PAGES = [PAGE, ROOT / "docs" / "new-strategy.md", ROOT / "CONTRIBUTING.md"]
DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)+)`")
SLASHED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`")
SUFFIXES = (".py", ".md", ".toml", ".txt", ".json", ".jsonl", ".parquet", ".db", ".html")
NOT_YET = {"steady"}
"""The family that docs/new-strategy.md adds."""


# --- names ----------------------------------------------------------------------------


def there(name: str) -> bool:
    """Whether a dotted name is one of discreet's (or of the tests), or an attribute of
    a strategy.
    """
    parts = name.split(".")
    if parts[0] == "strategy":
        return has(bet_se(0.05, 1.0), parts[1:])
    path = (
        parts
        if parts[0] in ("discreet", "tests", "evidence", "benchmarks")
        else ["discreet", *parts]
    )
    for length in range(len(path), 0, -1):
        with suppress(ImportError):
            return has(import_module(".".join(path[:length])), path[length:])
    return False


def has(thing: Any, path: list[str]) -> bool:
    """Whether a thing has an attribute of an attribute …; fields without a default
    count.
    """
    for place, name in enumerate(path):
        if dataclasses.is_dataclass(thing) and name in {
            field.name for field in dataclasses.fields(thing)
        }:
            return place == len(path) - 1 or not isinstance(thing, type)
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_on_the_page_exists(page: Path) -> None:
    text = page.read_text()
    names = [name for name in DOTTED.findall(text) if not name.endswith(SUFFIXES)]
    assert names
    assert [name for name in names if not there(name)] == []
    paths = [path for path in SLASHED.findall(text) if not NOT_YET & set(path.split("/"))]
    assert [path for path in paths if not any(near(path))] == []


def near(path: str) -> Iterator[bool]:
    """Whether there is a file or folder of that name: in the repository, among the
    tests, or in the package.
    """
    for base in (ROOT, ROOT / "src" / "discreet"):
        yield (base / path).exists()
        yield (base / f"{path}.py").exists()


def test_a_name_that_is_gone_would_be_seen() -> None:
    assert there("trials.trial.Trial.tell")
    for name in (
        "trials.trial.Trial.told",
        "trials.trials.Trial",
        "decision.decide",
        "strategy.colour",
    ):
        assert not there(name), name
    assert not any(near("simulation/kernel"))


# --- walks ----------------------------------------------------------------------------


def walk(title: str) -> list[str]:
    """The hops of a section: the first name of each numbered line."""
    section = PAGE.read_text().split(f"\n### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return re.findall(r"^\d+\. `([\w.]+)`", section, re.MULTILINE)


@contextmanager
def listening(heard: list[str]) -> Iterator[None]:
    """Every call of a function of discreet, in all threads, in order."""

    def hear(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("discreet."):
            heard.append(f"{module.removeprefix('discreet.')}.{frame.f_code.co_qualname}")

    threading.setprofile(hear)
    sys.setprofile(hear)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def missing(hops: list[str], heard: list[str]) -> list[str]:
    """The hops that are not called after those before them."""
    calls = iter(heard)
    for place, hop in enumerate(hops):
        if hop not in calls:  # goes on where the last one was found
            return hops[place:]
    return []


def command(line: str) -> None:
    result = CliRunner().invoke(main, line.split(), catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.fixture
def plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder, nothing compiled: what is compiled is not heard."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiling._compiler, "compiled", compiling.as_it_stands)
    monkeypatch.setattr("discreet.planning.power.LEAST_RUNS", 1)


@pytest.mark.parametrize("title", ["Bounds", "A simulated run", "A plan"])
@pytest.mark.usefixtures("plainly")
def test_a_command_walks_as_the_page_says(title: str) -> None:
    section = PAGE.read_text().split(f"\n### {title}\n")[1]
    (line,) = re.findall(r"^`discreet (.*)`$", section.split("\n### ")[0], re.MULTILINE)
    hops, heard = walk(title), list[str]()
    assert len(hops) > 10
    with listening(heard):
        command(f"{line} --threads 1" if title == "A simulated run" else line)
    assert missing(hops, heard) == []


@pytest.mark.usefixtures("plainly")
def test_an_outcome_walks_as_the_page_says() -> None:
    trial = Trial.create(
        "sqlite:///walk.db", "walk", ["a", "b"], bet_se(0.1, 1.0), max_participants=500
    )
    people = list[str]()
    while not (batch := trial.ask(50)).waiting or batch.assignments:
        people += [one.id for one in batch.assignments]
    trial.tell_many(dict.fromkeys(people[:-1], 1.0))
    hops, heard = walk("One outcome"), list[str]()
    assert len(hops) > 30
    with listening(heard):
        trial.tell(people[-1], 1.0)
        Path("walk.json").write_text(json.dumps(trial.transcript()))
        command("verify walk.json")
    trial.close()
    assert missing(hops, heard) == []


def test_another_way_would_be_seen() -> None:
    heard = ["a.b", "a.c", "a.b"]
    assert missing(["a.b", "a.c", "a.b"], heard) == []
    assert missing(["a.c", "a.b", "a.b"], heard) == ["a.b"]
    assert missing(["a.d"], heard) == ["a.d"]
