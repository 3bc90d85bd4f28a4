"""What a trial does, whichever way callers reach it."""

from collections.abc import Callable
from typing import Any

import pytest

from discreet.errors import DiscreetError, InvalidInputError

Create = Callable[..., Any]


# --- ask and tell ---------------------------------------------------------------------


def test_each_assignment_has_an_id_and_an_arm(create: Create) -> None:
    trial = create()
    batch = trial.ask(6)
    assert len({one.id for one in batch.assignments}) == 6
    assert {one.arm for one in batch.assignments} <= {"usual", "new", "third"}
    assert (batch.stopped, batch.paused) == (False, False)
    assert trial.status().participants == 6


def test_a_repeated_key_gets_the_same_assignments(create: Create) -> None:
    trial = create()
    first = trial.ask(2, key="visit 1")
    assert trial.ask(2, key="visit 1") == first
    assert trial.ask(2, key="visit 2").assignments != first.assignments
    assert trial.status().participants == 4
    with pytest.raises(InvalidInputError):
        trial.ask(3, key="visit 1")


def test_an_outcome_counts_once(create: Create) -> None:
    trial = create()
    id = trial.ask(1).assignments[0].id
    assert trial.tell(id, 1).new == 1
    again = trial.tell(id, 0)
    assert (again.new, again.already_told) == (0, (id,))
    assert trial.open_assignments() == []


@pytest.mark.parametrize("outcome", [2.0, -0.5, float("nan")])
def test_an_outcome_out_of_range_is_refused_and_not_repeated(
    create: Create, outcome: float
) -> None:
    trial = create()
    id = trial.ask(1).assignments[0].id
    with pytest.raises(InvalidInputError) as refused:
        trial.tell(id, outcome)
    assert str(outcome) not in str(refused.value)
    assert [one.id for one in trial.open_assignments()] == [id]


def test_of_many_outcomes_all_are_taken_or_none(create: Create) -> None:
    trial = create()
    ids = [one.id for one in trial.ask(3).assignments]
    with pytest.raises(InvalidInputError):
        trial.tell_many({ids[0]: 1, "7-00000000": 1})
    assert len(trial.open_assignments()) == 3
    assert trial.tell_many(dict.fromkeys(ids, 0)).new == 3


def test_a_missing_outcome_looks_like_a_recorded_one(create: Create) -> None:
    trial = create()
    first, second = (one.id for one in trial.ask(2).assignments)
    assert trial.miss(first).new == trial.tell(second, 1).new == 1
    assert trial.open_assignments() == []
    assert trial.tell(first, 1).already_told == (first,)


def test_an_outcome_can_be_corrected_before_its_release(create: Create) -> None:
    trial = create()
    id = trial.ask(1).assignments[0].id
    with pytest.raises(InvalidInputError):
        trial.amend(id, 1)
    trial.tell(id, 1)
    trial.amend(id, 0)
    assert trial.tell(id, 1).already_told == (id,)


def test_a_new_id_replaces_the_former_one(create: Create) -> None:
    trial = create()
    (given,) = trial.ask(1).assignments
    made = trial.reissue(given.id)
    assert made.arm == given.arm
    with pytest.raises(InvalidInputError):
        trial.tell(given.id, 1)
    assert trial.tell(made.id, 1).new == 1


# --- rounds and the end ---------------------------------------------------------------


def run_to_the_end(trial: Any, best: str) -> int:
    """Record 1 for participants of one arm and 0 for others; return the rounds."""
    for number in range(1, 200):
        outcomes = dict[str, float]()
        while batch := trial.ask(100).assignments:
            outcomes |= {one.id: float(one.arm == best) for one in batch}
        if not outcomes:
            return number - 1
        trial.tell_many(outcomes)
    raise AssertionError("the trial does not end")


def test_a_trial_finds_the_best_arm_and_its_record_verifies(create: Create) -> None:
    trial = create(max_participants=5000)
    assert run_to_the_end(trial, "new") >= 1
    status = trial.status()
    assert status.stopped
    assert status.recommendation == "new"
    assert trial.ask(1).stopped
    found = trial.verify(status.head)
    assert found.intact
    transcript = trial.transcript()
    assert transcript["status"]["recommendation"] == "new"
    assert len(transcript["events"]) == found.events
    kinds = [event["kind"] for event in transcript["events"]]
    assert kinds[0] == "created"
    assert "released" in kinds


def test_the_transcript_holds_no_id(create: Create) -> None:
    trial = create()
    ids = [one.id for one in trial.ask(5).assignments]
    text = str(trial.transcript())
    assert not [id for id in ids if id in text]


def test_outcomes_that_are_late_do_not_count(create: Create, clock: Any) -> None:
    trial = create(deadline=3600.0)
    first, second = (one.id for one in trial.ask(2).assignments)
    assert trial.tell(first, 1).new == 1
    clock.now += 7200
    assert trial.tell(second, 1).late == (second,)
    assert trial.expire() == 0
    assert trial.open_assignments() == []


# --- participants and sites -----------------------------------------------------------


def test_a_returning_participant_keeps_the_assignment(create: Create) -> None:
    trial = create(returning="same-arm")
    first = trial.ask(participants=["ann", "bob"]).assignments
    again = trial.ask(participants=["bob"]).assignments
    assert [one.id for one in again] == [first[1].id]
    assert trial.status().participants == 2


def test_a_returning_participant_is_refused_if_the_protocol_says_so(create: Create) -> None:
    trial = create(returning="refuse")
    trial.ask(participants=["ann"])
    with pytest.raises(InvalidInputError) as refused:
        trial.ask(participants=["ann"])
    assert "ann" not in str(refused.value)
    assert trial.status().participants == 1


def test_sites_are_those_of_the_protocol(create: Create) -> None:
    trial = create(sites=["Leeds", "Lyon"])
    trial.ask(2, site="Leeds")
    with pytest.raises(InvalidInputError):
        trial.ask(1, site="Rome")
    assert len(trial.open_assignments("Leeds")) == 2
    assert trial.open_assignments("Lyon") == []
    assert [(one.name, one.participants) for one in trial.status().sites] == [
        ("Leeds", 2),
        ("Lyon", 0),
    ]


# --- management actions ---------------------------------------------------------------


def test_a_paused_trial_enrols_nobody_until_it_goes_on(create: Create) -> None:
    trial = create()
    trial.manage("pause", "snow")
    batch = trial.ask(1)
    assert (batch.assignments, batch.paused) == ((), True)
    trial.manage("resume", "thaw")
    assert len(trial.ask(1).assignments) == 1
    acts = trial.status().actions
    assert [(act.action, act.reason) for act in acts] == [("pause", "snow"), ("resume", "thaw")]


def test_a_closed_site_enrols_nobody(create: Create) -> None:
    trial = create(sites=["Leeds", "Lyon"])
    trial.manage("close-site", "no staff", "Lyon")
    with pytest.raises(InvalidInputError):
        trial.ask(1, site="Lyon")
    assert len(trial.ask(1, site="Leeds").assignments) == 1


def test_a_dropped_arm_gets_nobody_in_the_next_round(create: Create) -> None:
    trial = create()
    trial.manage("drop-arm", "side effects", "third")
    trial.manage("stop", "enough")
    assert trial.status().stopped
    with pytest.raises(DiscreetError):
        trial.manage("pause", "too late")


def test_actions_need_a_reason(create: Create) -> None:
    trial = create()
    with pytest.raises(InvalidInputError):
        trial.manage("pause", "")
    assert not trial.status().paused


# --- blinding and the audit trail -----------------------------------------------------


def test_a_blinded_trial_gives_codes_and_says_who_was_unblinded(create: Create) -> None:
    trial = create(blinding="codes")
    (given,) = trial.ask(1).assignments
    codes = trial.list_codes()
    assert given.arm in codes
    assert trial.unblind(given.id, "an emergency") == codes[given.arm]
    assert [(act.action, act.reason) for act in trial.status().actions] == [
        ("unblind", "an emergency")
    ]


def test_the_audit_trail_has_no_outcome(create: Create) -> None:
    trial = create()
    id = trial.ask(1).assignments[0].id
    trial.tell(id, 1)
    entries = trial.audit_trail()
    assert {entry.action for entry in entries} >= {"create", "ask", "tell"}
    assert not [entry for entry in entries if id in str(entry)]


def test_a_head_that_the_record_does_not_continue_from_is_noticed(create: Create, way: str) -> None:
    trial = create()
    trial.ask(1)
    head = trial.status().head
    assert trial.verify(head).intact
    number, _, hash = head.partition(":")
    forged = f"{number}:{hash[:-1]}{'0' if hash[-1] != '0' else '1'}"
    if way == "command line":  # whose exit code says so
        with pytest.raises(InvalidInputError):
            trial.verify(forged)
    else:
        assert not trial.verify(forged).intact
