"""Records that no trial can have are found, also when their hashes are made anew."""

import copy
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet import InvalidInputError, Trial, UserStrategy, bet_se, ttucb, verify_transcript
from discreet.trials.protocol import canonical, digest
from discreet.trials.record import chain_hash


def play(folder: Path, name: str, strategy: Any, people: int, **settings: Any) -> dict[str, Any]:
    """The transcript of a small trial in which every third outcome is a success."""
    trial = Trial.create(f"sqlite:///{folder}/t.db", name, ["a", "b"], strategy, people, **settings)
    told = 0
    while not (batch := trial.ask(4)).stopped:
        for one in batch.assignments:
            trial.tell(one.id, float(told % 3 == 0))
            told += 1
    return trial.transcript()


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play(tmp_path_factory.mktemp("forged"), "b", bet_se(1e-9, trust="none"), 40)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play(tmp_path_factory.mktemp("forged"), "s", ttucb(1e-9), 12)


def rechained(transcript: dict[str, Any]) -> dict[str, Any]:
    """The transcript with its hashes made anew, and the status' head with them."""
    transcript["protocol_hash"] = hash_ = digest(canonical(transcript["protocol"]))
    transcript["events"][0]["protocol"] = hash_
    for seq, event in enumerate(transcript["events"], start=1):
        body = {key: part for key, part in event.items() if key not in ("seq", "kind", "hash")}
        event["seq"] = seq
        event["hash"] = hash_ = chain_hash(hash_, seq, event["kind"], canonical(body))
    transcript["status"]["head"] = f"{len(transcript['events'])}:{hash_}"
    transcript["status"]["protocol_hash"] = transcript["protocol_hash"]
    return transcript


def forged(transcript: dict[str, Any], change: Callable[[Any], None]) -> tuple[str, ...]:
    """What is found in a copy that was changed, hashes and all."""
    other = copy.deepcopy(transcript)
    change(other)
    return verify_transcript(rechained(other)).problems


def first(transcript: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in transcript["events"] if one["kind"] == kind)
    return found


def test_an_honest_record_made_anew_is_sound(
    batches: dict[str, Any], answers: dict[str, Any]
) -> None:
    for transcript in (batches, answers):
        assert verify_transcript(transcript).problems == ()
        assert forged(transcript, lambda _: None) == ()


FORGERIES: dict[str, Callable[[Any], None]] = {
    "an arm that is a float": lambda t: first(t, "assigned").update(
        arms=[float(arm) for arm in first(t, "assigned")["arms"]]
    ),
    "a truth value": lambda t: first(t, "assigned").update(first=True),
    "nobody assigned": lambda t: t["events"].insert(
        1, {"kind": "assigned", "first": 1, "arms": []}
    ),
    "a name more": lambda t: first(t, "assigned").update(people=["Alice"]),
    "a raw sum beside": lambda t: first(t, "released")["releases"][0].update(raw=3),
    "a count that is a float": lambda t: first(t, "released")["releases"][0].update(
        count=float(first(t, "released")["releases"][0]["count"])
    ),
    "a unit that is whole": lambda t: first(t, "released").update(unit=1),
    "a sum no outcomes have": lambda t: first(t, "released")["releases"][0].update(sum=-5),
    "a sum beyond the range": lambda t: first(t, "released")["releases"][0].update(sum=2**62),
    "an end that is no truth value": lambda t: first(t, "stopped").update(conclusive=0),
    "a version that is none": lambda t: t["protocol"].update(version={"a": 1}),
    "a maximum that is a float": lambda t: t["protocol"].update(max_participants=40.0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(batches: dict[str, Any], name: str) -> None:
    assert forged(batches, FORGERIES[name])


def test_a_result_that_was_left_out_is_missed(answers: dict[str, Any]) -> None:
    def drop(transcript: dict[str, Any]) -> None:
        events = transcript["events"]
        events.remove([one for one in events if one["kind"] == "answered"][-1])

    assert forged(answers, drop)


def test_a_protocol_without_a_hash_is_refused(batches: dict[str, Any]) -> None:
    other = copy.deepcopy(batches)
    other["protocol"]["version"] = "\ud800"
    other["protocol_hash"] = ""
    assert verify_transcript(other).problems == ("the protocol is not the one that has this hash",)


def test_an_interrupt_right_after_the_commit_leaves_nothing_readable(tmp_path: Path) -> None:
    """What was erased is made unreadable later, if it could not be at once."""
    trial = Trial.create(
        f"sqlite:///{tmp_path}/t.db", "t", ["a", "b"], bet_se(0.1, trust="none"), 100
    )
    batch = trial.ask(100)
    *most, last = batch.assignments
    trial.tell_many({one.id: 1.0 for one in most})
    honest = trial._database.transaction

    @contextmanager
    def interrupted(name: str) -> Any:
        with honest(name) as tables:
            yield tables
        raise KeyboardInterrupt

    trial._database.transaction = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        trial.tell(last.id, 1.0)
    trial._database.transaction = honest  # type: ignore[method-assign]
    assert trial.status().erasing
    trial.expire()
    again = Trial.open(f"sqlite:///{tmp_path}/t.db", "t")
    assert again.status().releases > 0
    assert not again.status().erasing


def test_what_a_run_gives_is_no_option() -> None:
    class Fixed:
        recommendation = 0

        def __init__(self, arms: int, delta: float, rng: Any, x: float = 0.0) -> None: ...
        def ask(self) -> int | None: ...
        def tell(self, arm: int, reward: float) -> None: ...

    for options in ({"arms": 5}, {"rng": 5}, {"x": float("nan")}):
        with pytest.raises(InvalidInputError):
            UserStrategy("mine", Fixed, delta=0.1, **options)


def test_a_state_of_another_processor_is_the_same_and_another_state_is_not(
    tmp_path: Path,
) -> None:
    """Processors differ in the last digits of what is computed from a record."""
    path = tmp_path / "t.db"
    trial = Trial.create(f"sqlite:///{path}", "t", ["a", "b"], bet_se(1e-9, 5.0), 1000)
    while not trial.status().releases:
        trial.tell_many({one.id: one.arm == "a" for one in trial.ask(50).assignments})
    with closing(sqlite3.connect(path)) as database:
        (text,) = database.execute("SELECT state FROM discreet_trials").fetchone()
        for factor, intact in ((1 + 1e-13, True), (1 + 1e-6, False)):
            state = json.loads(text)
            means = state["run"]["arrays"]["mean"]
            means[:] = [factor * one for one in means]
            database.execute("UPDATE discreet_trials SET state = ?", (json.dumps(state),))
            database.commit()
            assert trial.verify().intact == intact
