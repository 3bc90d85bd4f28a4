"""Structure may change, these may not: the numbers of a seed, JSON documents, and files
of trials under way.
"""

import json
import shutil
from pathlib import Path

import pytest

from discreet import DiscreetError, Trial
from tests.support import pins

RUNS: dict[str, dict[str, str]] = json.loads((pins.PINS / "runs.json").read_text())
STRATEGIES = dict(pins.strategies())
BLOCKS = 8


def test_every_preset_with_every_option_is_pinned() -> None:
    assert list(STRATEGIES) == list(RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_seed_gives_the_same_runs(block: int) -> None:
    for name in list(RUNS)[block::BLOCKS]:
        assert pins.run_pin(STRATEGIES[name]) == RUNS[name], name


def test_another_seed_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pins.ARMS, "bernoulli", pins.ARMS["tied"])
    assert pins.run_pin(STRATEGIES["dp-se"]) != RUNS["dp-se"]


@pytest.mark.slow
def test_every_command_prints_the_same_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected: dict[str, str] = json.loads((pins.PINS / "documents.json").read_text())
    found = pins.documents(tmp_path)
    assert list(found) == list(expected)
    for name, document in found.items():
        assert pins.same(json.loads(document), json.loads(expected[name])), name


def test_a_document_that_differs_is_seen() -> None:
    assert pins.same({"a": [1, 0.1]}, {"a": [1, 0.1 + 1e-17]})
    for other in ({"a": [1, 0.1001]}, {"a": [1.0, 0.1]}, {"b": [1, 0.1]}, {"a": [1]}):
        assert not pins.same({"a": [1, 0.1]}, other)
    assert not pins.same({"a": 1, "b": 2}, {"b": 2, "a": 1})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pins")
    for name in set(PINNED.values()):
        shutil.copy(pins.PINS / name, folder / name)
    return folder


PINNED = {
    **dict.fromkeys(pins.LIVE, "trials-v1.db"),
    **dict.fromkeys(pins.BETS, "bets-v1.db"),
    **dict.fromkeys(pins.NUMBERS, "numbers-v1.db"),
}


@pytest.mark.parametrize("name", PINNED)
def test_a_stored_trial_is_read_and_written_as_it_was(files: Path, name: str) -> None:
    """Its record replays to the very text of its state, that text is read and written
    again the same, it goes on.
    """
    path, strategy = files / PINNED[name], {**pins.LIVE, **pins.BETS, **pins.NUMBERS}[name]
    before = pins.stored(path)[name]
    trial = Trial.open(f"sqlite:///{path}", name)
    assert trial.protocol.strategy == strategy
    assert trial.verify().problems == ()
    trial.status()
    assert trial._now.dump() == before
    pins.fill(path, name, strategy, trial.status().people + 30)
    assert trial.verify().problems == ()


@pytest.mark.parametrize("name", ["bet-se", "bet-se local", "bet-se zeta"])
def test_a_stored_trial_of_the_first_edition_says_what_to_do(files: Path, name: str) -> None:
    with pytest.raises(DiscreetError, match=r"first edition of bet-se.*begin it anew"):
        Trial.open(f"sqlite:///{files}/trials-v1.db", name).status()
