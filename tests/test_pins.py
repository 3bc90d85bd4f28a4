"""Structure may change, these may not: the numbers of a seed, JSON documents, and files
of trials under way.
"""

import json
from pathlib import Path

import pytest

from discreet import Trial, verify_transcript
from tests.support import pins
from tests.support.clock import Clock

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of the file of trials."""
    copy = tmp_path / "trials.db"
    copy.write_bytes((pins.PINS / "trials.db").read_bytes())
    copy.chmod(0o600)
    return copy


def sound(trial: Trial) -> list[str]:
    """Every check of a record is passed; the kinds of its events."""
    transcript = trial.transcript()
    assert trial.verify().problems == verify_transcript(transcript).problems == ()
    return [event["kind"] for event in transcript["events"]]


@pytest.mark.parametrize("name", pins.STORED)
def test_a_stored_trial_is_read_and_written_as_it_was(path: Path, name: str, clock: Clock) -> None:
    """Its record replays to the very text of its state, that text is read and written
    again the same, it goes on.
    """
    before, clock.now = pins.stored(path)[name], pins.last_time(path, name)
    trial = Trial.open(f"sqlite:///{path}", name)
    assert trial.protocol.strategy == pins.STORED[name].strategy
    assert trial._state.dump() != before
    kinds, status = sound(trial), trial.status()
    assert trial._state.dump() == before
    pins.fill(path, trial, status.participants + 30, clock)
    later = sound(trial)
    assert trial.status().participants >= status.participants + 30 or trial.status().stopped
    assert status.stopped or (trial.verify(status.head).intact and len(later) > len(kinds))
    assert ("opened" in later) == trial.protocol.has_round_keys


@pytest.mark.parametrize("name", pins.SIMPLE)
def test_a_stored_trial_says_how_people_come(path: Path, name: str, clock: Clock) -> None:
    """Made again it is that trial; what was announced of it stays."""
    made = pins.SIMPLE[name]
    clock.now = pins.last_time(path, name)
    trial = Trial.open(f"sqlite:///{path}", name)
    assert pins.new_trial(path, name).protocol_hash == trial.protocol_hash
    assert trial.protocol.randomisation == made.settings.get(
        "randomisation", made.strategy.spec.randomisations[0]
    )
    status = trial.status()
    assert [(act.action, act.about) for act in status.actions] == list(made.acts)
    assert [site.name for site in status.sites] == made.settings.get("sites", [])
    assert (trial._state.run.needs_round, status.stopped) == (False, False)
    times = [event["at"] for event in trial.transcript()["events"] if "at" in event]
    assert bool(times) == (name == "clock")


def test_a_stored_trial_that_was_left_alone_goes_on(path: Path) -> None:
    """Rounds were open at once, and by now everybody is late: they count as the worst,
    and the next people come.
    """
    trial = Trial.open(f"sqlite:///{path}", "ahead")
    before = trial.status()
    assert before.pending > 40
    assert len(trial.ask(2, site="Lyon").assignments) == 2
    status = trial.status()
    assert (status.participants, status.pending) == (before.participants + 2, 2)
    assert status.releases > before.releases
    sound(trial)
