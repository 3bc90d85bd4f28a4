"""Live trials: who is asked, what is told, what is released, how it ends, and what
nobody gets to see.
"""

import gc
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import (
    Bernoulli,
    InvalidInputError,
    RoundedWarning,
    Strategy,
    TellResult,
    adap_tt,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    gauss_tt,
    ttucb,
)
from discreet import ttucb_batched as batched
from discreet.audits.rehearsal import SimulatedNoise
from discreet.errors import TamperedError
from discreet.scale import Scale
from discreet.simulation import betting as play
from discreet.simulation.laws import make_bernoulli_laws
from discreet.strategies.betting.bets import make_betting_rules
from discreet.strategies.run import Totals
from discreet.theory import thresholds as threshold
from discreet.trials import mechanisms as privacy
from discreet.trials import responses
from discreet.trials.protocol import Protocol
from discreet.trials.status import AskResult
from discreet.trials.trial import Trial
from tests.support.keys import seeded_keys
from tests.support.oracle import oracle
from tests.support.tape import Tape

ARMS = ("5 mg", "10 mg", "20 mg")
MEANS = {"5 mg": 0.2, "10 mg": 0.9, "20 mg": 0.3}
EVERY = [
    ttucb(0.1),
    batched(0.1),
    ctb_tt(4, 0.1),
    gauss_tt(8, 0.05, 0.1),
    adap_tt(10, 0.1),
    adap_tt_star(10, 0.1),
    dp_se(10, 0.1),
    bet_se(0.1, epsilon=1),
    bet_se(0.1, epsilon=3, trust="local"),
    bet_se(0.1, trust="none"),
]


def start(folder: Path, strategy: Strategy, max_participants: int = 3000, **options: Any) -> Trial:
    return Trial.create(
        f"sqlite:///{folder / 'trial.db'}", "dose", ARMS, strategy, max_participants, **options
    )


def means(trial: Trial) -> dict[str, float | None]:
    """What was released of each arm."""
    return {arm.name: arm.mean for arm in trial.status().arms}


def tell(trial: Trial, batch: AskResult, rng: np.random.Generator) -> None:
    """Outcomes of a batch, in random order."""
    people = list(batch.assignments)
    rng.shuffle(people)
    bits = {one.id: float(rng.random() < MEANS[one.arm]) for one in people}
    strategy = trial.protocol.strategy
    if strategy.trust == "local":
        epsilon = float(strategy.epsilon or 0)
        trial.answer_many(
            {id: privacy.respond(bit, epsilon, strategy.gamma) for id, bit in bits.items()}
        )
    else:
        trial.tell_many(bits)


def run(trial: Trial, rng: np.random.Generator, most: int = 60) -> None:
    """Ask and tell until the end."""
    for _ in range(10_000):
        batch = trial.ask(int(rng.integers(1, most)))
        tell(trial, batch, rng)
        if batch.stopped:
            return
        assert batch.assignments
    raise AssertionError("the trial does not end")


@pytest.mark.parametrize("strategy", EVERY, ids=lambda s: f"{s.name} {s.trust}")
def test_a_trial_from_the_first_person_to_the_transcript(
    strategy: Strategy, tmp_path: Path
) -> None:
    trial = start(tmp_path, strategy)
    run(trial, np.random.default_rng(1))
    status = trial.status()
    assert status.stopped
    assert status.conclusive
    assert status.recommendation == "10 mg"
    assert (status.pending, status.waiting, status.smallest_delta) == (0, 0, None)
    assert sum(arm.assigned for arm in status.arms) == status.participants
    assert all(arm.mean is not None and arm.count > 0 for arm in status.arms)
    assert trial.verify(status.head).intact
    record = trial.transcript()
    assert json.loads(json.dumps(record)) == record
    assert record["status"] == status.to_dict()
    assert trial.ask(5) == AskResult((), 0, True)
    again = Trial.open(f"sqlite:///{tmp_path / 'trial.db'}", "dose", status.head)
    assert again.status() == status


def test_every_release_states_its_epsilon_and_nobody_is_in_two(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(10, 0.1))
    run(trial, np.random.default_rng(2))
    record = trial.transcript()["events"]
    releases = [one for event in record if event["kind"] == "released" for one in event["releases"]]
    assert all(0 < one["epsilon"] <= 10 for one in releases)
    slots = [(one["arm"], one["phase"]) for one in releases]
    assert len(set(slots)) == len(slots)
    for arm in range(3):
        released = sum(one["count"] for one in releases if one["arm"] == arm)
        assert released <= sum(event.get("arms", []).count(arm) for event in record)


def test_people_are_in_the_trial_at_once_up_to_the_next_release(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(10, 0.1))
    first = trial.ask(50)
    assert sorted(one.arm for one in first.assignments) == sorted(ARMS)
    assert first.waiting == 3
    assert trial.ask(50) == AskResult((), 3, False)
    trial.tell(first.assignments[2].id, 1)
    assert trial.ask(50) == AskResult((), 2, False)
    assert trial.status().waiting == 2
    assert set(means(trial).values()) == {None}
    trial.tell_many({first.assignments[0].id: 0, first.assignments[1].id: 0.5})
    assert trial.status().waiting == 0
    assert None not in means(trial).values()
    assert trial.ask(50).assignments


def test_local_trust_never_waits_and_takes_no_raw_outcome(tmp_path: Path) -> None:
    trial = start(tmp_path, ctb_tt(2, 0.1))
    batch = trial.ask(40)
    assert len(batch.assignments) == 40
    assert batch.waiting == 0
    one, other = batch.assignments[:2]
    with pytest.raises(InvalidInputError, match="takes no raw outcomes"):
        trial.tell(one.id, 1)
    for wrong in (1, 1.0, "rr/2.0/1", privacy.respond(1, 1.0), privacy.respond(1, 2.0, 0.1)):
        with pytest.raises(InvalidInputError, match="randomised"):
            trial.answer(one.id, wrong)  # type: ignore[arg-type]
    trial.answer(other.id, privacy.respond(1, 2.0))
    assert trial.status().arms[1].count == 0, "the first person has not answered"
    trial.answer(one.id, privacy.respond(1, 2.0))
    assert trial.status().arms[1].count == 1
    with pytest.raises(InvalidInputError, match="amend"):
        trial.amend(other.id, 1)
    with pytest.raises(InvalidInputError, match="does not have local trust"):
        start(tmp_path / "..", adap_tt_star(1, 0.1)).answer(one.id, privacy.respond(1, 2.0))


def test_answers_count_in_the_order_of_assignment(tmp_path: Path) -> None:
    """An answer counts when all before it are in, on whatever arm: whoever answers
    sooner when all went well would tilt means otherwise.
    """
    trial = start(tmp_path, ttucb(0.1), 60)
    people = trial.ask(30).assignments
    for one in people[:0:-1]:
        trial.tell(one.id, 1)
    assert {arm.count for arm in trial.status().arms} == {0}
    trial.tell(people[0].id, 0)
    assert sum(arm.count for arm in trial.status().arms) == len(people)
    (answered,) = [event for event in trial.transcript()["events"] if event["kind"] == "answered"]
    assert [number for number, _ in answered["answers"]] == list(range(1, 31))
    assert trial.verify().intact


def test_a_second_tell_changes_nothing_and_amend_does_until_the_release(tmp_path: Path) -> None:
    trial = start(tmp_path, batched(0.1))
    one, two, three = trial.ask(9).assignments
    trial.tell(one.id, 1)
    assert trial.tell(one.id, 0) == trial.tell(one.id, 1) == TellResult(0, (one.id,))
    trial.tell(two.id, 1)
    trial.amend(two.id, 0.25)
    with pytest.raises(InvalidInputError, match="no outcome to amend"):
        trial.amend(three.id, 1)
    trial.tell(three.id, 0)
    assert means(trial) == {one.arm: 1.0, two.arm: 0.25, three.arm: 0.0}
    with pytest.raises(InvalidInputError, match="has been released"):
        trial.amend(one.id, 0)
    trial.tell(one.id, 0)
    assert means(trial)[one.arm] == 1.0


@pytest.mark.parametrize("strategy", [batched(0.1), ttucb(0.1)], ids=lambda s: s.name)
def test_a_missing_outcome_counts_as_a_failure(strategy: Strategy, tmp_path: Path) -> None:
    trial = start(tmp_path, strategy, direction="min", range=(0, 10))
    one, two, three = trial.ask(3).assignments
    trial.tell_many({one.id: 0, two.id: 10})
    trial.miss(three.id)
    trial.tell(three.id, 0)
    assert means(trial) == {one.arm: 0.0, two.arm: 10.0, three.arm: 10.0}
    assert "missed" not in json.dumps(trial.transcript())
    assert trial.verify().intact


@pytest.mark.parametrize("strategy", EVERY, ids=lambda s: f"{s.name} {s.trust}")
def test_deadlines_pass(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever: after the deadline the trial goes on by itself."""
    clock = [1000.0]
    monkeypatch.setattr("discreet.trials.store.tables.time.time", lambda: clock[0])
    trial = start(tmp_path, strategy, 40, deadline=60)
    rng = np.random.default_rng(5)
    for _ in range(200):
        batch = trial.ask(7)
        if batch.stopped:
            break
        heard = tuple(one for one in batch.assignments if rng.random() < 0.6)
        tell(trial, AskResult(heard, 0, False), rng)
        clock[0] += 61
    else:
        trial.expire()
        assert trial.ask(7).stopped
    assert trial.status().participants <= 40
    assert trial.verify().intact


def test_inconclusive_at_the_maximum(tmp_path: Path) -> None:
    trial = start(tmp_path, bet_se(1e-50, epsilon=2), 200)
    run(trial, np.random.default_rng(7))
    status = trial.status()
    assert (status.stopped, status.conclusive, status.recommendation) == (True, False, "10 mg")
    assert status.smallest_delta is not None
    assert 1e-50 < status.smallest_delta < 0.5
    assert status.participants <= 200
    assert trial.verify().intact


def test_the_last_batch_is_cut_to_the_maximum_and_late_outcomes_stay_sealed(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(0.1, 0.01), 10)
    rng = np.random.default_rng(8)
    people: list[Any] = []
    while not (batch := trial.ask(50)).stopped:
        people += batch.assignments
        tell(trial, batch, rng)
    assert len(people) + len(batch.assignments) == 10
    before = trial.status()
    for one in batch.assignments:
        trial.tell(one.id, 1)
    after = trial.status()
    assert after.pending == 0
    assert after.arms == before.arms
    assert after.head == before.head
    assert trial.verify().intact


def test_units_of_the_experimenter(tmp_path: Path) -> None:
    with pytest.warns(RoundedWarning, match=r'bet_se\(…, outcomes="numbers"\)'):
        trial = start(tmp_path, bet_se(0.05, epsilon=2), range=(100, 200), direction="min")
    rng = np.random.default_rng(9)
    truth = {"5 mg": 180.0, "10 mg": 110.0, "20 mg": 170.0}
    while not (batch := trial.ask(30)).stopped:
        trial.tell_many(
            {one.id: truth[one.arm] + float(rng.uniform(-9, 9)) for one in batch.assignments}
        )
    status = trial.status()
    assert status.recommendation == "10 mg"
    for arm in status.arms:
        assert arm.interval is not None
        low, high = arm.interval
        assert 100 <= low <= truth[arm.name] <= high <= 200, (
            "false alarm 0.05 an arm, but the intervals are wide"
        )
    for outcome in (99.0, 201.0, math.nan):
        with pytest.raises(InvalidInputError, match="from 100 to 200"):
            trial.tell("1-x", outcome)


def test_nobody_takes_part_twice(tmp_path: Path) -> None:
    trial = start(tmp_path, ttucb(0.1))
    assert len(trial.ask(participants=["ann-q7", "bob-q7"]).assignments) == 2
    for people in (["eve-q7", "bob-q7"], ["eve-q7", "eve-q7"]):
        with pytest.raises(InvalidInputError, match="number 2 of the list") as caught:
            trial.ask(participants=people)
        assert "q7" not in str(caught.value)
    assert trial.status().participants == 2
    assert len(trial.ask(participants=["eve-q7"]).assignments) == 1
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"-q7" not in content


def test_the_protocol_is_frozen(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(1, 0.05))
    assert start(tmp_path, adap_tt_star(1, 0.05)).protocol_hash == trial.protocol_hash
    for other in (adap_tt_star(2, 0.05), adap_tt_star(1, 0.01), dp_se(1, 0.05)):
        with pytest.raises(InvalidInputError, match="other settings: strategy"):
            start(tmp_path, other)
    with pytest.raises(InvalidInputError, match="max_participants is 3000, not 3001"):
        start(tmp_path, adap_tt_star(1, 0.05), 3001)
    assert Protocol.from_dict(trial.protocol.to_dict()) == trial.protocol


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arms": ("a",)}, "two arms"),
        ({"arms": ("a", "a")}, "same name"),
        ({"arms": "ab"}, "list of names"),
        ({"name": ""}, "name must be"),
        ({"max_participants": 1}, "max_participants must be"),
        ({"retain": "a day"}, "retain must be"),
        ({"range": (1, 0)}, "range must be"),
        ({"range": 3}, "range must be"),
        ({"direction": "up"}, "direction must be"),
        ({"strategy": "bet-se"}, "must be a Strategy"),
        ({"url": "mysql://x/y"}, "sqlite or postgresql"),
        ({"url": "sqlite://"}, "outlive"),
        ({"url": "nothing"}, "url must look like"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "url": f"sqlite:///{tmp_path / 't.db'}",
        "name": "t",
        "arms": ("a", "b"),
        "strategy": ttucb(0.1),
    }
    with pytest.raises(InvalidInputError, match=words):
        Trial.create(**({**settings, "max_participants": 10} | change))
    assert not list(tmp_path.iterdir())


def test_unknown_trials_and_ids(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is no file"):
        Trial.open(f"sqlite:///{tmp_path / 'no.db'}", "dose")
    assert not list(tmp_path.iterdir())
    trial = start(tmp_path, ttucb(0.1))
    with pytest.raises(InvalidInputError, match="trials there: dose"):
        Trial.open(f"sqlite:///{tmp_path / 'trial.db'}", "doze")
    one = trial.ask().assignments[0]
    for id in ("", "1", "1-", "-1", one.id + "0", "2-" + one.id[2:], "9" * 400, "x'; --"):
        with pytest.raises(InvalidInputError, match=r"^entry 2 of 2: there is no assignment with"):
            trial.tell_many({one.id: 1, id: 1})
    with pytest.raises(InvalidInputError, match=r"^there is no assignment with this id in this"):
        trial.tell("nope", 1)
    with pytest.raises(InvalidInputError, match=r"^entry 2 of 2: the outcome must.*nothing was"):
        trial.tell_many({"nope": 1, one.id: 31.7})
    assert trial.status().pending == 1
    for n in (0, -1, 1.5, 10**9):
        with pytest.raises(InvalidInputError, match="n must be"):
            trial.ask(n)  # type: ignore[arg-type]


def test_a_restored_backup_is_refused_by_whoever_knows_a_later_head(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(10, 0.1))
    rng = np.random.default_rng(11)
    tell(trial, trial.ask(3), rng)
    url, backup = f"sqlite:///{tmp_path / 'trial.db'}", tmp_path / "backup"
    os.link(tmp_path / "trial.db", backup)
    content = backup.read_bytes()
    tell(trial, trial.ask(9), rng)
    head = trial.status().head
    Trial.open(url, "dose", head)
    for name in ("trial.db", "trial.db-wal", "trial.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "trial.db").write_bytes(content)
    (tmp_path / "trial.db").chmod(0o600)
    with pytest.raises(TamperedError, match="backup"):
        Trial.open(url, "dose", head)
    assert "backup" in Trial.open(url, "dose").verify(head).problems[0]
    with pytest.raises(InvalidInputError, match="head must look like"):
        Trial.open(url, "dose", "17")


def test_nothing_that_is_shown_holds_an_outcome(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(1, 0.1), retain="forever")
    people = trial.ask(3).assignments
    trial.tell_many({people[0].id: 0.7654321, people[1].id: 0.7654321})
    shown = [
        repr(trial),
        repr(trial.status()),
        json.dumps(trial.transcript()),
        repr(trial._database),
        repr(trial.ask(2)),
    ]
    for text in shown:
        plain = re.sub(r"\b[0-9a-f]{16,}\b", "a hash", text)  # any digits may be in one
        assert "7654" not in plain
        assert str(round(0.7654321 * 2**20))[:5] not in plain


def test_at_the_maximum_answers_are_waited_for(tmp_path: Path) -> None:
    trial = start(tmp_path, ctb_tt(1, 0.01), 5)
    people = trial.ask(9).assignments
    assert len(people) == 5
    assert trial.ask(9) == AskResult((), 5, False)
    trial.answer_many({one.id: privacy.respond(1, 1.0) for one in people})
    status = trial.status()
    assert (status.stopped, status.conclusive) == (True, False)


def taped(record: dict[str, Any], bits: list[int], strategy: Strategy) -> Tape:
    """The outcomes and the noise of a trial as the draws of a simulation: noise is what
    releases add to the sums.
    """
    tape, arms, taken = (
        Tape(),
        [arm for event in record["events"] for arm in event.get("arms", [])],
        [0, 0, 0],
    )
    scale = privacy.find_noise_scale(8.0, 0.05) if strategy.gamma else 1.0
    for event in record["events"]:
        for number, units in event.get("answers", []):
            local = strategy.estimator == "ctb"
            tape.bits.append(units if local else bits[number - 1])
            tape.noise.append(0.0 if local else (units * event["unit"] - bits[number - 1]) / scale)
        releases, totals = event.get("releases", []), []
        for one in releases:
            arm, count = one["arm"], one["count"]
            own = [bit for bit, other in zip(bits, arms, strict=False) if other == arm]
            total = sum(own[taken[arm] : taken[arm] + count])
            taken[arm] += count
            totals.append(float(total))
            if "margin" not in event:
                noise = one["sum"] * event["unit"] - total
                if strategy.trust == "local":
                    totals[-1], noise = one["sum"], 0.0
                if strategy.estimator != "bets":
                    tape.noise.append(noise / count)
                tape.jumps += [10**6 + round(noise), 10**6]
        if "margin" in event:
            by_arm = {
                one["arm"]: (total, one["count"])
                for one, total in zip(releases, totals, strict=True)
            }
            lead, more = by_arm.pop(event["margin"])
            ((other, size),) = by_arm.values()
            (shown,) = [one["sum"] for one in releases if one["sum"] is not None]
            tape.jumps += [10**6 + round(shown - (lead - other - (more - size) // 2)), 10**6]
        if strategy.estimator == "bets":
            tape.dealt([one["count"] for one in releases], totals)
        else:
            tape.sums += [
                (one["count"], total) for one, total in zip(releases, totals, strict=True)
            ]
    return tape


@pytest.mark.parametrize(
    "strategy",
    [*EVERY, bet_se(0.1, epsilon=0.05, target_difference=0.5)],
    ids=lambda s: f"{s.name} {s.trust} {s.epsilon}",
)
def test_a_trial_decides_as_the_simulator(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Played again by the simulator's oracle, a trial's outcomes, coins and noise give
    its people, stop and arm. With a target difference there are two arms, and one of the releases
    is their difference, so there keys and noise have a seed.
    """
    names = ARMS[1:] if strategy.target_difference else ARMS
    if strategy.target_difference:
        seeded_keys(monkeypatch)
        monkeypatch.setattr(privacy, "add_laplace_noise", SimulatedNoise(7).add_noise_to_totals)
    drawn_noise, honest = list[int](), privacy.add_laplace_noise

    def noted(total: Totals, epsilon: float, grid: int) -> Totals:
        made = honest(total, epsilon, grid)
        drawn_noise.append(made.sum - total.sum)
        return made

    monkeypatch.setattr(privacy, "add_laplace_noise", noted)
    trial = Trial.create(f"sqlite:///{tmp_path / 'trial.db'}", "dose", names, strategy, 3000)
    rng, bits = np.random.default_rng(21), list[int]()
    while not (
        batch := trial.ask(1 if strategy.estimator in ("mle", "ctb", "gauss") else 50)
    ).stopped:
        drawn = {one.id: int(rng.random() < MEANS[one.arm]) for one in batch.assignments}
        bits += drawn.values()
        if strategy.trust == "local":
            epsilon = float(strategy.epsilon or 0)
            trial.answer_many(
                {id: privacy.respond(bit, epsilon, strategy.gamma) for id, bit in drawn.items()}
            )
        else:
            trial.tell_many({id: float(bit) for id, bit in drawn.items()})
    status, record = trial.status(), trial.transcript()
    assert not strategy.target_difference or any("margin" in event for event in record["events"])
    tape: Any = taped(record, bits, strategy)
    arms = len(names)
    pulls = np.zeros(arms, np.int64)
    exact = strategy.with_(delta=responses.payable_delta(strategy))
    if strategy.estimator == "bets":
        if strategy.trust == "global":
            assert [up - 10**6 for up in tape.jumps[::2]] == drawn_noise
        laws, rules = make_bernoulli_laws(np.full(arms, 0.5)), make_betting_rules(exact, arms)
        arguments: Any = (tape, laws, rules, 3000, pulls, np.zeros((0, 7)))
        samples, best, stopped, _ = play.run_betting(*arguments)
    else:
        if strategy.gamma:
            monkeypatch.setattr(threshold, "gaussian_scale", privacy.find_noise_scale)
        found = oracle(exact, Bernoulli([0.5] * arms), tape, 3000)
        samples, best, stopped, pulls[:] = (
            found.samples,
            found.recommendation,
            found.stopped,
            found.pulls,
        )
    assert (status.participants, status.conclusive, status.recommendation) == (
        samples,
        stopped,
        names[best],
    )
    assert [arm.assigned for arm in status.arms] == list(pulls)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    trial = start(tmp_path, ttucb(0.1))
    trial.tell(trial.ask().assignments[0].id, 1)
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


# --- what an attacker, or bad luck, would try -----------------------------------------


def test_a_refusal_never_follows_a_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is refused after noise was drawn could try again until it suits: each
    draw must be a release.
    """
    clock, drawn, honest = [1000.0], list[int](), privacy.add_laplace

    def counted(*arguments: Any) -> tuple[int, float]:
        drawn.append(1)
        return honest(*arguments)

    monkeypatch.setattr(privacy, "add_laplace", counted)
    monkeypatch.setattr("discreet.trials.store.tables.time.time", lambda: clock[0])
    trial = start(tmp_path, adap_tt_star(1, 0.1), deadline=1)
    first = trial.ask(participants=["ann", "bob", "cid"]).assignments
    trial.tell_many({one.id: 1 for one in first[:2]})
    clock[0] += 9
    for people in (["ann"], ["dan", "ann"], ["\udc80"]) * 3:
        with pytest.raises(InvalidInputError):
            trial.ask(participants=people)
    assert len(drawn) == trial.status().releases


def test_a_response_must_be_on_the_scale_of_the_protocol(tmp_path: Path) -> None:
    trial = start(tmp_path, ctb_tt(2, 0.1), range=(0, 10), direction="min")
    one = trial.ask().assignments[0]
    for wrong in ({}, {"range": (0, 10)}, {"direction": "min"}):
        with pytest.raises(InvalidInputError, match=r"--range 0.0,10.0 --direction min"):
            trial.answer(one.id, privacy.respond(1, 2.0, **wrong))
    trial.answer(one.id, privacy.respond(10, 2.0, range=(0, 10), direction="min"))
    assert trial.status().arms[0].count == 1


def test_what_no_mechanism_gives_is_no_response(tmp_path: Path) -> None:
    for value in (0.3, 7, True, 10**30):
        with pytest.raises(InvalidInputError):
            responses.Response("rr", 1.0, None, value, Scale())  # type: ignore[arg-type]
    trial = start(tmp_path, gauss_tt(1, 0.01, 0.1))
    one = trial.ask().assignments[0]
    for value in (2**60, -(2**62), 10**30):
        with pytest.raises(InvalidInputError, match="larger than its noise"):
            trial.answer(one.id, responses.Response("gauss", 1.0, 0.01, value, Scale()))


def test_an_object_refuses_a_record_older_than_it_has_seen(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(10, 0.1))
    rng = np.random.default_rng(11)
    people = trial.ask(3)
    trial.close()
    content = (tmp_path / "trial.db").read_bytes()
    tell(trial, people, rng)
    trial.close()
    (tmp_path / "trial.db").write_bytes(content)
    for call in (trial.status, trial.ask, lambda: tell(trial, people, rng), trial.verify):
        with pytest.raises(TamperedError, match="backup"):
            call()


def test_an_opened_trial_remembers_the_record_it_was_opened_with(tmp_path: Path) -> None:
    trial = start(tmp_path, adap_tt_star(10, 0.1))
    people = trial.ask(3)
    trial.close()
    content = (tmp_path / "trial.db").read_bytes()
    tell(trial, people, np.random.default_rng(1))
    trial.close()
    service = Trial.open(f"sqlite:///{tmp_path / 'trial.db'}", "dose")
    service.close()
    (tmp_path / "trial.db").write_bytes(content)
    with pytest.raises(TamperedError, match="backup"):
        tell(service, people, np.random.default_rng(1))


def test_erased_outcomes_leave_no_copies(tmp_path: Path) -> None:
    """Batches of many arms lie between each other; no outcome of a released one is
    anywhere in the file.

    Outcomes are marked by their lowest 20 bits; that a mark is there by chance has
    probability below 1e-6.
    """
    mark, url = 0xABCDE, f"sqlite:///{tmp_path / 'trial.db'}"
    trial = Trial.create(url, "dose", [f"arm {i}" for i in range(5)], adap_tt(1, 0.001), 2500)
    rng, waiting = np.random.default_rng(0), list[str]()

    def go_on(releases: int) -> None:
        """Go on to so many releases, or to the end."""
        while trial.status().releases < releases and not (batch := trial.ask(100)).stopped:
            waiting.extend(one.id for one in batch.assignments)
            rng.shuffle(waiting)
            some = len(waiting) if batch.waiting else len(waiting) // 2
            trial.tell_many(dict.fromkeys(waiting[:some], mark / 2**20))
            del waiting[:some]
        trial.close()

    def unreleased() -> int:
        with sqlite3.connect(tmp_path / "trial.db") as database:
            query = f"SELECT count(*) FROM discreet_outcomes WHERE units = {2**62 + mark}"
            (left,) = database.execute(query).fetchone()
        database.close()
        return int(left)

    def copies() -> int:
        return (tmp_path / "trial.db").read_bytes().count((2**62 + mark).to_bytes(8, "big"))

    go_on(releases=21)
    assert trial.status().releases > 20
    trial.close()
    assert 0 < unreleased() < 1500
    assert copies() == unreleased()
    trial = Trial.open(url, "dose")
    go_on(releases=10_000)
    assert trial.status().stopped
    trial.close()
    assert (unreleased(), copies()) == (0, 0)


def test_a_name_is_no_formula(tmp_path: Path) -> None:
    from discreet.reports.trial import trial_page

    for number, names in enumerate((["$^$", "$x$"], ["<script>", "x" * 200])):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        trial = Trial.create(url, "odd", names, bet_se(0.1, epsilon=5), 500)
        trial.tell_many({one.id: 1 for one in trial.ask(200).assignments})
        assert "<script>" not in trial_page(trial.transcript())


INTERRUPTED = """
import random, signal, sqlite3, sys, threading
from discreet import StoreError, Trial, ttucb
trial = Trial.create(sys.argv[1], "dose", ["a", "b"], ttucb(0.1), 10**6)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
chance, kept, refused, locked = random.Random(0), [], 0, 0
for _ in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 8e-3))
        try:
            trial.tell_many({one.id: 0.5 for one in trial.ask(2).assignments})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for thread in threading.enumerate():
                if isinstance(thread, threading.Timer):
                    thread.join()
    except KeyboardInterrupt as error:
        kept.append(error)
        try:
            other = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"), timeout=0.2)
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locked += 1
        other.close()
    except StoreError:
        refused += 1
print(len(kept), refused, locked, trial.verify().problems, len(trial.ask().assignments))
"""


@pytest.mark.slow
def test_interrupts_at_any_moment(tmp_path: Path) -> None:
    """Signals at random moments, in a process of their own that keeps its tracebacks:
    no lock is left to others.
    """
    command = [sys.executable, "-c", INTERRUPTED, f"sqlite:///{tmp_path / 'trial.db'}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    interrupts, refused, locked, problems, asked = said.split()
    assert (int(interrupts) > 30, locked, problems, asked) == (True, "0", "()", "1")
    assert int(refused) <= int(interrupts) // 5


@pytest.mark.parametrize("statement", range(1, 9))
def test_an_interrupt_leaves_no_lock(statement: int, tmp_path: Path) -> None:
    """Ctrl-C inside any statement: the next one who asks does not wait."""
    import sqlalchemy as sa

    trial = start(tmp_path, adap_tt_star(1, 0.1))
    count = [0]

    def interrupt(*_: Any) -> None:
        count[0] += 1
        if count[0] == statement:
            raise KeyboardInterrupt

    sa.event.listen(trial._database.engine, "after_cursor_execute", interrupt)
    kept: list[BaseException] = []
    try:
        trial.ask(3)
    except KeyboardInterrupt as error:
        kept.append(error)
    sa.event.remove(trial._database.engine, "after_cursor_execute", interrupt)
    other = sqlite3.connect(tmp_path / "trial.db", timeout=0.1)
    other.execute("BEGIN IMMEDIATE")
    other.rollback()
    other.close()
    assert trial.verify().intact


def test_the_smallest_delta_pays_for_discrete_noise(tmp_path: Path) -> None:
    protocol = Protocol("x", ("a", "b"), adap_tt_star(1e6, 0.1), max_participants=100)
    paid = protocol.compute_shown_delta(0.3, 0)
    assert paid is not None
    assert 0.3 < paid <= 0.6
    assert protocol.compute_shown_delta(0.999, 0) is None
    assert protocol.compute_shown_delta(0.1, 1) == pytest.approx(2 / 3 * paid)
    empirical = Protocol(
        "x", ("a", "b"), adap_tt_star(1, 0.1, threshold="empirical"), max_participants=100
    )
    assert empirical.compute_shown_delta(0.3, 0) is None


@pytest.mark.parametrize("outcome", [10**400, "0.5", np.array([0.5]), [0.5], None, 1 + 1j, np.nan])
def test_odd_outcomes_are_refused(outcome: Any, tmp_path: Path) -> None:
    trial = start(tmp_path, ttucb(0.1))
    with pytest.raises(InvalidInputError, match="the outcome must be a number"):
        trial.tell(trial.ask().assignments[0].id, outcome)


def test_numbers_of_other_types_are_outcomes(tmp_path: Path) -> None:
    from decimal import Decimal
    from fractions import Fraction

    trial = start(tmp_path, ttucb(0.1), range=(np.float64(0), np.int64(4)))
    people = trial.ask(5).assignments
    for one, outcome in zip(
        people, (Decimal(1), Fraction(1), np.float32(1), np.int64(1), True), strict=True
    ):
        trial.tell(one.id, outcome)  # type: ignore[arg-type]
    assert trial.status().pending == 0


@pytest.mark.parametrize("people", ["alice", [None], [""], [b"x"], ["\udc80"], []])
def test_odd_people_are_refused(people: Any, tmp_path: Path) -> None:
    trial = start(tmp_path, ttucb(0.1))
    with pytest.raises(InvalidInputError):
        trial.ask(participants=people)
    trial.ask(participants=["Jos\u00e9"])
    with pytest.raises(InvalidInputError, match="took part before"):
        trial.ask(participants=[" Jose\u0301 "])
    with pytest.raises(InvalidInputError, match="this participant took part before, and cannot"):
        trial.ask(participant="Jos\u00e9")


CHANGES: tuple[dict[str, Any], ...] = (
    {"epsilon": 11.0},
    {"epsilon": None},
    {"epsilon": -5},
    {"sum": 0.5},
    {"sum": 10**400},
    {"count": 2},
)


def test_a_record_that_promises_too_much_is_found(tmp_path: Path) -> None:
    """Rewritten with its whole chain, a record must still be one that the protocol
    allows.
    """
    from discreet.trials.protocol import canonical
    from discreet.trials.record import Event, Replay

    trial = start(tmp_path, adap_tt_star(10, 0.1))
    tell(trial, trial.ask(3), np.random.default_rng(1))
    events = trial.transcript()["events"]
    kinds = [event["kind"] for event in events]
    assert kinds == ["created", "opened", "assigned", "released"]
    wrong: list[tuple[int, str, Any]] = [
        (1, "odds", [[0, 1], [1, 2], [2, 1]]),
        (1, "participants", 4),
        (2, "first", 2),
        (2, "arms", [0, 1, 1]),
        (3, "unit", 1.0),
        (3, "keys", [[1, "00" * 32]]),
        (3, "keys", []),
        *(
            (3, "releases", [{**one, **change} for one in events[3]["releases"]])
            for change in CHANGES
        ),
    ]
    honest = (len(events), "", None)
    for place, key, value in [honest, *wrong]:
        replay = Replay(trial.protocol)
        found = list[str | None]()
        for event in events[: place + 1]:
            body = {
                name: part for name, part in event.items() if name not in ("seq", "kind", "hash")
            }
            if event["seq"] == place + 1:
                body[key] = value
            found.append(replay.apply(Event(event["seq"], event["kind"], canonical(body), "")))
        assert not any(found[:place])
        assert place == len(events) or found[place], key


def test_a_trial_that_is_let_go_closes_its_files(tmp_path: Path) -> None:
    """A service opens trials for years: what nobody holds any more must not keep
    connections.
    """
    trial = start(tmp_path, ttucb(0.1))
    store = weakref.ref(trial._database)
    trial.tell(trial.ask().assignments[0].id, 1)
    del trial
    gc.collect()
    assert store() is None
