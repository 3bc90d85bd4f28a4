"""Live trials of outcomes that are numbers, from the first person to the transcript.

Live noise has no seed: what depends on it holds with the false-alarm rate that is said.
"""

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import stats

from discreet import InvalidInputError, Trial, bet_se
from discreet import verify_transcript as verified
from discreet.strategies.units import choose_grid
from discreet.trials import mechanisms
from discreet.trials.protocol import Protocol
from discreet.trials.status import AskResult
from discreet.trials.store import schema
from tests.support.forge import rechained
from tests.support.keys import seeded_keys
from tests.support.numbers import (
    FINE,
    narrow,
    nearly_bits,
    numbers,
    play,
    released,
    start,
    tell,
    without_chance,
)
from tests.support.stores import count, database

EVERY = {
    "noise": numbers(1.0),
    "little noise": numbers(5.0),
    "differences": numbers(0.2),
    "levels": numbers(3.0, "local"),
    "sent as bits": numbers(1.0, "local"),
    "no privacy": numbers(trust="none"),
}


def bump(y: float, centre: float) -> float:
    """The docs' formula."""

    def rho(t: float, y: float) -> float:
        return math.log(1 - y + y * math.exp(t)) - t * y

    least = math.e * min(rho(-1, centre), rho(1, centre))
    return least * min(rho(-1, y) / rho(-1, centre), rho(1, y) / rho(1, centre))


@pytest.fixture
def no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same trial every time; with this seed one that has both kinds of rounds."""
    without_chance(monkeypatch, 1)


# --- whole trials ---------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_from_the_first_person_to_the_transcript(url: str, name: str) -> None:
    """A wrong arm, or an interval that misses: false alarm 3e-6 each."""
    trial = start(url, EVERY[name])
    play(trial, narrow())
    status, transcript = trial.status(), json.loads(json.dumps(trial.transcript()))
    assert (status.conclusive, status.recommendation) == (True, "a")
    assert trial.verify(status.head).problems == verified(transcript).problems == ()
    assert Trial.open(url, "sleep", status.head).status() == status
    assert status.middle_level is None
    assert trial.ask(3) == AskResult((), 0, True)
    assert count(url, schema.outcomes) == 0, "outcomes are erased at their release"
    for arm, mean in zip(status.arms, (0.7, 0.3), strict=True):
        if arm.interval is not None:
            assert arm.interval[0] <= mean <= arm.interval[1]
    for event in released(transcript):
        shown = [one for one in event["releases"] if one["sum"] is not None]
        fine = event["unit"] == 1 / choose_grid(EVERY[name]) < 1
        assert fine or event["unit"] == 1
        assert all(("near" in one) == fine for one in event["releases"])
        epsilons = [one["epsilon"] for one in shown]
        assert all((e is None) == (name == "no privacy") for e in epsilons)
        assert all(e is None or 0 < e <= (EVERY[name].epsilon or 0) for e in epsilons)
    assert name != "differences" or any("margin" in event for event in released(transcript))


def test_rounds_of_bits_stand_beside_fine_ones(tmp_path: Path, no_chance: None) -> None:
    """As announced; a sum of bits is in whole outcomes, and has no closeness."""
    trial = start(f"sqlite:///{tmp_path}/t.db", numbers(5.0), 3000)
    play(trial, nearly_bits())
    events = released(trial.transcript())
    kinds = {(event["unit"], "near" in event["releases"][0]) for event in events}
    assert kinds == {(1.0, False), (2.0**-20, True)}
    for event in events:
        for one in event["releases"]:  # noise beyond 12 has probability e^-60
            assert -12 < one["sum"] * event["unit"] < one["count"] + 12
    assert trial.verify().problems == verified(trial.transcript()).problems == ()


def test_what_is_released_without_privacy_is_the_sum_and_the_bumps(tmp_path: Path) -> None:
    """Against the formula, a unit a person for rounding down and none for the sum."""
    trial = start(f"sqlite:///{tmp_path}/t.db", numbers(trust="none", delta=1e-30))
    rng = np.random.default_rng(4)
    for _ in range(4):
        batch, told = trial.ask(400), dict[str, list[float]](a=[], b=[])
        assert batch.waiting == len(batch.assignments)
        centre = trial._state.run.current.centre  # type: ignore[attr-defined]
        for one in batch.assignments:
            told[one.arm].append(rng.integers(FINE + 1) / FINE)
        queue = {arm: list(values) for arm, values in told.items()}
        tell(trial, batch, lambda arm, queue=queue: queue[arm].pop())  # type: ignore[misc]
        event = released(trial.transcript())[-1]
        for one in event["releases"]:
            values = told["ab"[one["arm"]]]
            exact = sum(bump(y, centre) for y in values if 0 < y < 1)
            assert one["sum"] == sum(values) * FINE
            assert exact * FINE - len(values) - 1 <= one["near"] <= exact * FINE + 1
    assert centre != 0.5


def test_a_difference_has_the_closeness_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says nothing of the other arm; here without noise."""
    monkeypatch.setattr(mechanisms, "add_laplace_noise", lambda total, epsilon, grid: total)
    trial = start(f"sqlite:///{tmp_path}/t.db", numbers(0.2, delta=0.1))
    tell(trial, trial.ask(400), lambda arm: 0.5 if arm == "a" else 0.25)
    (event,) = released(trial.transcript())
    shown, silent = sorted(event["releases"], key=lambda one: one["sum"] is None)
    assert (silent["sum"], silent["near"], silent["epsilon"]) == (None, None, None)
    values, people = (0.5, 0.25), [0, 0]
    for one in (shown, silent):
        people[one["arm"]] = one["count"]
    near = [math.floor(bump(y, 0.5) * FINE) for y in values]
    assert shown["near"] == sum(count * one for count, one in zip(people, near, strict=True))
    leader, other = shown["arm"], silent["arm"]
    allowed = (people[leader] - people[other]) // 2
    lead = people[leader] * values[leader] - people[other] * values[other] - allowed
    assert shown["sum"] == lead * FINE
    (status,) = trial.status().leads
    assert status.better_by == pytest.approx(lead / status.participants)
    assert sum(people) == 2 * status.participants


@pytest.mark.parametrize("name", ["noise", "differences", "little noise", "no privacy"])
def test_a_trial_that_is_opened_for_every_call_is_the_same(tmp_path: Path, name: str) -> None:
    """To the last digit of its state and the hash of its record."""
    law = {"little noise": nearly_bits, "noise": narrow}.get(name, narrow)
    found = []
    for place in ("one", "many"):
        with pytest.MonkeyPatch.context() as patch:
            without_chance(patch, 1)
            patch.setattr("discreet.trials.inputs.to_units", lambda y, grid: math.floor(y * grid))
            url, draw = f"sqlite:///{tmp_path}/{place}.db", law(3)
            trial = start(url, EVERY[name], 3000)
            while (batch := trial.ask(90)).assignments:
                if place == "many":
                    trial.close()
                    trial = Trial.open(url, "sleep")
                tell(trial, batch, draw)
            found.append((trial.status(), trial._state.dump(), trial.transcript()["events"]))
            units = {event["unit"] for event in released(trial.transcript())}
            assert len(units) == (2 if name == "little noise" else 1)
            trial.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["noise", "levels"])
def test_many_handles_at_once(url: str, name: str) -> None:
    start(url, EVERY[name], 600).close()
    failed = list[BaseException]()

    def work(seed: int) -> None:
        trial, law = Trial.open(url, "sleep"), narrow(seed)
        try:
            while not (batch := trial.ask(5)).stopped:
                tell(trial, batch, law)
        except BaseException as error:
            failed.append(error)
        finally:
            trial.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trial = Trial.open(url, "sleep")
    assert not failed
    assert trial.status().stopped
    assert trial.verify().problems == verified(trial.transcript()).problems == ()


# --- outcomes that change, stay away, or lie outside ----------------------------------


def first_release(trial: Trial) -> dict[str, dict[str, Any]]:
    """Of each arm."""
    return {"ab"[one["arm"]]: one for one in released(trial.transcript())[0]["releases"]}


def test_amended_until_the_release(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded_keys(monkeypatch)  # so that both arms have people
    trial = start(url, numbers(trust="none"))
    people = trial.ask(400).assignments
    *most, last = people
    trial.tell_many({one.id: 0.25 for one in most})
    other = next(one for one in most if one.arm != last.arm)
    trial.amend(other.id, 0.75)
    trial.tell(last.id, 0.25)
    for arm, one in first_release(trial).items():
        more = FINE // 2 if arm == other.arm else 0
        assert one["sum"] == one["count"] * FINE // 4 + more
        assert one["near"] == one["count"] * math.floor(FINE * bump(0.25, 0.5))
    with pytest.raises(InvalidInputError, match="has been released"):
        trial.amend(other.id, 0.5)
    assert trial.verify().intact


def test_missing_is_the_worst_and_close_to_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a scale where less is better; 25 is clipped to it as well."""
    seeded_keys(monkeypatch)  # so that both arms have people
    options: dict[str, Any] = {"range": (10, 20), "direction": "min", "out_of_range": "clip"}
    trial = start(url, numbers(trust="none"), **options)
    people = trial.ask(400).assignments
    gone, far, *rest = people
    trial.miss(gone.id)
    trial.tell(far.id, 25)
    trial.tell_many({one.id: 15 for one in rest})
    for arm, one in first_release(trial).items():
        there = sum(person.arm == arm for person in rest)
        assert one["sum"] == there * FINE // 2
        assert one["near"] == there * math.floor(FINE * bump(0.5, 0.5))
        mean = {person.name: person.mean for person in trial.status().arms}[arm]
        assert mean == pytest.approx(20 - 5 * there / one["count"])
    trial.tell(gone.id, 10)
    assert trial.verify().problems == verified(trial.transcript()).problems == ()


def test_a_missing_level_is_a_randomised_worst_one(url: str) -> None:
    """Levels of people who never answered; binomial limits, false alarm 1e-9."""
    strategy = numbers(2.0, "local")
    trial = start(url, strategy, 150, retain="forever")
    while (batch := trial.ask(400)).assignments:
        for one in batch.assignments:
            trial.miss(one.id)
    with database(url) as connection:
        sent = connection.execute(sa.select(schema.outcomes.c.units)).scalars().all()
    truth = math.exp(2) / (math.exp(2) + 2)
    assert stats.binomtest(sent.count(0), len(sent), truth).pvalue > 1e-9
    assert 0 < sent.count(1024) < len(sent) > sent.count(0)
    assert trial.verify().problems == verified(trial.transcript()).problems == ()


# --- the protocol ---------------------------------------------------------------------


def test_the_hash_of_the_protocol_knows_what_outcomes_are(tmp_path: Path) -> None:
    url, strategy = f"sqlite:///{tmp_path}/t.db", numbers(1.0)
    trial = start(url, strategy)
    assert json.loads(trial.protocol.text)["strategy"]["outcomes"] == "numbers"
    other = Protocol(
        "sleep", ("a", "b"), strategy.with_(outcomes="yes-no"), max_participants=20_000
    )
    assert other.text != trial.protocol.text
    with pytest.raises(InvalidInputError, match="strategy outcomes is 'numbers', not 'yes-no'"):
        start(url, strategy.with_(outcomes="yes-no"))


def test_a_protocol_says_what_outcomes_are(tmp_path: Path) -> None:
    """It cannot lose the word, be they yes or no or numbers."""
    for place, strategy in enumerate((bet_se(0.1, 5.0), numbers(5.0))):
        trial = start(f"sqlite:///{tmp_path}/{place}.db", strategy, 100)
        play(trial, nearly_bits())
        transcript = trial.transcript()
        del transcript["protocol"]["strategy"]["outcomes"]
        transcript["events"][0]["protocol"] = mended(transcript)
        (problem,) = verified(rechained(transcript)).problems
        assert problem == "the protocol is not as discreet writes one"


def mended(transcript: Any) -> str:
    return str(rechained(json.loads(json.dumps(transcript)))["protocol_hash"])


def test_a_number_is_kept_until_its_release(url: str) -> None:
    """In units, and nowhere in the record."""
    trial = start(url, numbers(1.0))
    *most, last = trial.ask(400).assignments
    trial.tell_many({one.id: 777_777 / FINE for one in most})
    with database(url) as connection:
        assert set(connection.execute(sa.select(schema.outcomes.c.units)).scalars()) == {777_777}
    assert count(url, schema.outcomes) == len(most)
    trial.tell(last.id, 777_777 / FINE)
    assert count(url, schema.outcomes) == 0
    assert "777777" not in json.dumps(trial.transcript())
