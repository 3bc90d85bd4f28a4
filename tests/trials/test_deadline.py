"""Deadlines: what is told in time counts, what is late is acknowledged and ignored; and
rounds that are released by the clock.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import (
    InvalidInputError,
    Strategy,
    TellResult,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    ttucb,
)
from discreet.trials import mechanisms
from discreet.trials.transcript import verify_transcript
from discreet.trials.trial import Trial
from tests.support.clock import Clock
from tests.support.forge import rechained
from tests.support.stores import ARMS, create

DAY = 86_400.0
FAST = bet_se(0.1, epsilon=5)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """What is tested here does not depend on the database."""
    return f"sqlite:///{tmp_path}/trials.db"


def outcomes(trial: Trial, ids: list[str], value: float = 1.0) -> None:
    strategy = trial.protocol.strategy
    if strategy.trust_model.randomised:
        epsilon = float(strategy.epsilon or 0)
        trial.answer_many({id: mechanisms.respond(value, epsilon) for id in ids})
    else:
        trial.tell_many(dict.fromkeys(ids, value))


@pytest.mark.parametrize(
    "strategy",
    [
        FAST,
        bet_se(0.1, trust="none"),
        adap_tt_star(10, 0.1),
        dp_se(10, 0.1),
        ttucb(0.1),
        ctb_tt(4, 0.1),
    ],
    ids=lambda one: f"{one.name} {one.trust}",
)
def test_nobody_holds_a_trial_up(url: str, strategy: Strategy, clock: Clock) -> None:
    """Two fifths never answer; the trial ends all the same, and its record is sound."""
    trial = create(url, strategy=strategy, max_participants=120, deadline=DAY)
    rng = np.random.default_rng(3)
    for _ in range(300):
        batch = trial.ask(7)
        if batch.stopped:
            break
        heard = [one.id for one in batch.assignments if rng.random() < 0.6]
        outcomes(trial, heard)
        clock.now += DAY + 1
    assert trial.status().stopped
    assert trial.status().deadline == DAY
    assert trial.verify().intact
    assert verify_transcript(trial.transcript()).intact


def test_late_is_acknowledged_and_ignored(url: str, clock: Clock) -> None:
    """Whoever tells in the last second counts; a second later it is the worst, whatever
    is told, and no reply differs.
    """
    trial = create(url, strategy=bet_se(0.1, trust="none"), max_participants=300, deadline=DAY)
    people = [one for one in trial.ask(300).assignments]
    clock.now += DAY
    trial.tell_many({one.id: 1 for one in people[:-1]})
    clock.now += 0.001
    late = people[-1]
    assert trial.tell(late.id, 1) == TellResult(0, (), (late.id,))
    released = [event for event in trial.transcript()["events"] if event["kind"] == "released"]
    sums = {ARMS[one["arm"]]: one["count"] - one["sum"] for one in released[0]["releases"]}
    assert sum(sums.values()) == 1
    assert sums[late.arm] == 1
    assert trial.tell(late.id, 1) == TellResult(0, (), (late.id,))
    assert trial.verify().intact


def test_nothing_is_amended_past_the_deadline(url: str, clock: Clock) -> None:
    """Neither an outcome that was told nor one that was not: both look the same."""
    trial = create(url, strategy=FAST, max_participants=300, deadline=DAY)
    one, two = trial.ask(2).assignments
    trial.tell(one.id, 1)
    trial.amend(one.id, 0)
    clock.now += DAY + 1
    for id in (one.id, two.id):
        with pytest.raises(InvalidInputError, match="the deadline of this person has passed"):
            trial.amend(id, 1)


@pytest.mark.parametrize("strategy", [FAST, adap_tt_star(10, 0.1)], ids=lambda one: one.name)
def test_the_clock_tells_nothing(url: str, strategy: Strategy, clock: Clock) -> None:
    """Released at the same times, and with the same counts in between, whenever people
    answer, and if they never do; and never in a call that tells an outcome.
    """
    seen = []
    for pace in ("at once", "late", "never"):
        clock.now = 5_000_000.0
        trial = create(
            url, pace, strategy=strategy, max_participants=60, deadline=100, release="scheduled"
        )
        looks = []
        while not trial.status().releases:
            batch = trial.ask(5)
            ids = [one.id for one in batch.assignments]
            clock.now += 30
            if pace == "late":
                outcomes(trial, ids[::-1])
            if pace == "at once":
                clock.now -= 29
                outcomes(trial, ids)
                clock.now += 29
            clock.now += 10
            status = trial.status()
            looks.append((status.participants, status.pending, status.waiting, status.next_release))
            assert (status.next_release is None) == (status.waiting == 0)
            assert len(looks) < 30
        events = trial.transcript()["events"]
        times = [(event["kind"], event["at"]) for event in events if "at" in event]
        seen.append((times, looks[:-1]))  # up to the release: what follows depends on its noise
        assert trial.verify().intact
        assert verify_transcript(trial.transcript()).intact
    assert seen[0] == seen[1] == seen[2]
    last = next(place for place, (kind, _) in enumerate(times) if kind == "released")
    assert times[last - 1][1] + 100 < times[last][1]
    announced = [look[-1] for look in looks if look[-1]]
    assert set(announced[:1]) == {times[last - 1][1] + 101}


def test_the_moment_that_is_announced_is_the_first_one(url: str, clock: Clock) -> None:
    trial = create(url, strategy=FAST, max_participants=60, deadline=100, release="scheduled")
    while not trial.status().next_release:
        trial.ask(5)
        clock.now += 1
    announced = trial.status().next_release
    assert announced is not None
    for early, released in ((0.001, False), (0, True)):
        clock.now = announced - early
        trial.expire()
        assert bool(trial.status().releases) == released
    assert trial.status().next_release is None
    assert trial.verify().intact


def test_a_release_before_its_time_is_found(url: str, clock: Clock) -> None:
    trial = create(url, strategy=FAST, max_participants=60, deadline=100, release="scheduled")
    while not any(event["kind"] == "released" for event in trial.transcript()["events"]):
        outcomes(trial, [one.id for one in trial.ask(50).assignments])
        clock.now += 101
    honest = trial.transcript()
    assert verify_transcript(rechained(json.loads(json.dumps(honest)))).intact
    place = next(i for i, e in enumerate(honest["events"]) if e["kind"] == "released")

    def forged(change: int, kind: str) -> str:
        other: dict[str, Any] = json.loads(json.dumps(honest))
        index = place if kind == "released" else place - 1
        other["events"][index]["at"] += change
        return " ".join(verify_transcript(rechained(other)).problems)

    assert "before the deadline" in forged(-1, "released")
    assert "before the deadline" in forged(1, "assigned")
    assert "before the last" in forged(-10_000, "released")


def test_without_a_deadline_nothing_has_a_time(url: str) -> None:
    trial = create(url, strategy=FAST)
    outcomes(trial, [one.id for one in trial.ask(500).assignments])
    assert '"at"' not in json.dumps(trial.transcript())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"release": "scheduled"}, "needs a deadline"),
        ({"enrolment": "continuous"}, "needs a deadline"),
        ({"deadline": 0}, "positive number of seconds"),
        ({"deadline": 5, "enrolment": "always"}, "enrolment must be one of"),
        ({"deadline": 5, "release": "never"}, "release must be one of"),
        ({"deadline": 10.5, "release": "scheduled"}, "whole seconds"),
        ({"randomisation": "blocks"}, "has randomisation simple"),
        ({"randomisation": "shuffled"}, "has randomisation simple"),
        (
            {"strategy": adap_tt_star(1, 0.1), "randomisation": "simple"},
            "has randomisation shuffled",
        ),
        (
            {"strategy": ttucb(0.1), "deadline": 5, "release": "scheduled"},
            "every outcome by itself",
        ),
        ({"sites": []}, "different names"),
        ({"sites": ["a", "a"]}, "different names"),
        ({"sites": "Leeds"}, "different names"),
    ],
)
def test_what_does_not_go_together_is_refused(
    url: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        create(url, **{"strategy": FAST, **settings})
