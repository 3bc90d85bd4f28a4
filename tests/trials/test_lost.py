"""Answers that were lost, people who come again, what staff see, and the one clock."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import Trial, adap_tt_star, bet_se, ttucb
from discreet.errors import InvalidInputError, StoreError
from discreet.trials.store import schema
from tests.support.clock import Clock
from tests.support.stores import create, database, run

PEOPLE = ["ann-q7", "bob-q7", "cid-q7"]


def ids(batch: Any) -> list[tuple[str, str]]:
    return [(one.id, one.arm) for one in batch.assignments]


# --- requests -------------------------------------------------------------------------


def test_a_request_gets_the_same_answer_for_ever(url: str) -> None:
    trial = create(url, sites=["Leeds", "Lyon"])
    first = trial.ask(2, site="Leeds", key="monday")
    people = trial.status().participants
    assert ids(trial.ask(2, site="Leeds", key="monday")) == ids(first)
    trial.tell_many({one.id: 1.0 for one in first.assignments})
    other = Trial.open(url, "colours")
    assert ids(other.ask(2, site="Leeds", key="monday")) == ids(first)
    assert ids(other.ask(key="monday")) == ids(first), "the key alone is enough"
    assert other.status().participants == people
    other.manage("pause", "a holiday")
    assert ids(other.ask(key="monday")) == ids(first)
    other.manage("stop", "no money")
    assert ids(other.ask(key="monday")) == ids(first)
    assert ids(other.ask(site="Leeds", key="tuesday")) == []
    assert other.verify().intact


@pytest.mark.parametrize(
    "otherwise",
    [{"n": 2}, {"site": "Lyon"}, {"participants": ["dan"]}, {"participant": "ann-q7"}],
    ids=str,
)
def test_a_key_is_for_one_request(url: str, otherwise: dict[str, Any]) -> None:
    trial = create(url)
    trial.ask(3, site="Leeds", key="monday")
    with pytest.raises(InvalidInputError, match="this key was used before, for other participants"):
        trial.ask(**{"n": 3, **otherwise}, key="monday")
    assert trial.status().participants == 3


def test_a_request_that_had_nobody_is_asked_anew(url: str) -> None:
    trial = create(url, strategy=bet_se(0.1, 1.0))
    held = [one.id for one in trial.ask(100).assignments]
    assert ids(trial.ask(2, key="later")) == []
    trial.tell_many(dict.fromkeys(held, 1.0))
    answer = trial.ask(2, key="later")
    assert len(answer.assignments) == 2
    assert ids(trial.ask(2, key="later")) == ids(answer)


def test_requests_and_people_leave_only_hashes(url: str) -> None:
    trial = create(url, returning="same-arm")
    trial.ask(participants=PEOPLE, key="visit of ann-q7")
    with database(url) as connection:
        for table in schema.metadata.sorted_tables:
            for row in connection.execute(table.select()):
                assert "-q7" not in str(row), table.name
    assert "-q7" not in json.dumps(trial.transcript())


def test_people_of_a_request_are_named_in_its_answer(url: str) -> None:
    trial = create(url)
    batch = trial.ask(participants=PEOPLE, key="r")
    assert [one.participant for one in batch.assignments] == PEOPLE
    assert [
        one.participant for one in trial.ask(participants=PEOPLE, key="r").assignments
    ] == PEOPLE
    assert [one.participant for one in trial.ask(key="r").assignments] == [None] * 3


@pytest.mark.parametrize("wrong", ["", " ", "x" * 201, 3, b"key", "\ud800", "a\0b"], ids=repr)
def test_what_is_no_key(url: str, wrong: Any) -> None:
    trial = create(url)
    with pytest.raises(InvalidInputError, match="key must be a text of your own"):
        trial.ask(key=wrong)
    assert trial.status().participants == 0


def test_a_client_that_is_killed_right_after_its_commit_asks_again(url: str) -> None:
    trial = create(url)

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            sa.event.listen(trial._database.engine, "checkin", die)
            trial.ask(2, key="mine")
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    people = trial.status().participants
    batch = trial.ask(2, key="mine")
    assert len(batch.assignments) == 2
    assert trial.status().participants == max(people, 2)


def test_what_ctrl_c_interrupted_can_be_asked_for_again(url: str) -> None:
    """Pressed while the transaction is under way, it takes effect after the commit: the
    same key gives the answer that was lost.
    """
    pressed = list[bool]()
    trial = create(url)

    def press(*_: Any) -> None:
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    trial.ask()
    sa.event.listen(trial._database.engine, "before_cursor_execute", press)
    with pytest.raises(KeyboardInterrupt):
        trial.ask(2, key="key")
    assert trial.status().participants == 3
    assert len(trial.ask(2, key="key").assignments) == 2
    assert trial.status().participants == 3


CLIENT = """
import sys
from discreet.cli import main
main(["trial", "ask", "colours", "--count", "2", "--url", sys.argv[1], *sys.argv[2:]])
"""


@pytest.mark.parametrize("out", ["closed", "full"])
def test_an_answer_that_cannot_be_written_is_had_again(out: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    trial = create(url)
    if out == "full" and not Path("/dev/full").exists():
        pytest.skip("no full device on this system")
    if out == "closed":
        reader, target = os.pipe()
        os.close(reader)
    else:
        target = os.open("/dev/full", os.O_WRONLY)
    command = [sys.executable, "-c", CLIENT, url]
    done = subprocess.run(command, stdout=target, stderr=subprocess.PIPE, text=True, check=False)
    os.close(target)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "this command gives it again: discreet trial ask colours --key " in done.stderr
    key = done.stderr.split("--key ")[1].split()[0]
    assert trial.status().participants == 2
    batch = trial.ask(key=key)
    assert len(batch.assignments) == 2
    assert trial.status().participants == 2


# --- people who come again ------------------------------------------------------------


@pytest.mark.parametrize("strategy", [adap_tt_star(1, 0.1), bet_se(0.1, 1.0), ttucb(0.1)])
def test_whoever_comes_again_has_the_same_assignment(url: str, strategy: Any) -> None:
    trial = create(url, strategy=strategy, returning="same-arm")
    first = trial.ask(participant="ann-q7")
    assert ids(trial.ask(participant="ann-q7")) == ids(first)
    mixed = trial.ask(participants=["bob-q7", "ann-q7", "cid-q7"])
    assert [one.participant for one in mixed.assignments] == ["bob-q7", "ann-q7", "cid-q7"]
    assert mixed.assignments[1].id == first.assignments[0].id
    assert trial.status().participants == 3
    trial.tell_many({one.id: 1.0 for one in mixed.assignments})
    assert ids(Trial.open(url, "colours").ask(participant="ann-q7")) == ids(first)
    trial.manage("stop", "no money")
    assert ids(trial.ask(participant="ann-q7")) == ids(first)
    assert ids(trial.ask(participant="new-q7")) == []
    assert trial.verify().intact


def test_the_rest_of_a_list_comes_with_the_next_round(url: str) -> None:
    """The whole list again and again: nobody twice, everybody in the end."""
    trial = create(url, returning="same-arm", strategy=bet_se(0.1, 1.0), max_participants=400)
    people = [f"p{number}" for number in range(150)]
    seen: dict[str, str] = {}
    for _ in range(20):
        batch = trial.ask(participants=people)
        for one in batch.assignments:
            assert one.participant is not None
            assert seen.setdefault(one.participant, one.id) == one.id
        assert {*batch.not_assigned} == {*people} - {*seen}
        trial.tell_many({id: 1.0 for id in seen.values()})
        if not batch.not_assigned or batch.stopped:
            break
    assert trial.status().participants == len(seen)
    assert trial.verify().intact


@pytest.mark.parametrize("returning", ["same-arm", "refuse"])
def test_an_identity_comes_before_the_arm(url: str, returning: str) -> None:
    trial = create(url, returning=returning)
    with pytest.raises(InvalidInputError, match="must know who a person is before it shows an arm"):
        trial.ask()
    assert trial.status().participants == 0
    with pytest.raises(InvalidInputError, match="people number 2 of the list"):
        trial.ask(participants=["ann", "ann"])
    assert trial.status().returning


@pytest.mark.parametrize("returning", ["refuse", "anonymous"])
def test_whoever_comes_again_is_refused(url: str, returning: str) -> None:
    trial = create(url, returning=returning)
    trial.ask(participant="ann")
    with pytest.raises(InvalidInputError, match="took part before"):
        trial.ask(participants=["bob", " ann "])
    assert trial.status().participants == 1


def test_a_word_for_a_second_coming(url: str) -> None:
    with pytest.raises(
        InvalidInputError, match="returning must be one of anonymous, same-arm, refuse"
    ):
        create(url, returning="twice")
    with pytest.raises(InvalidInputError, match="participant or participants, not both"):
        create(url).ask(participant="ann", participants=["bob"])


# --- what staff see -------------------------------------------------------------------


def test_what_is_open(url: str, clock: Clock) -> None:
    trial = create(url, deadline=100.0, sites=["Leeds", "Lyon"])
    one, two = trial.ask(2, site="Leeds").assignments
    clock.now += 10
    (three,) = trial.ask(site="Lyon").assignments
    trial.tell(one.id, 1.0)
    clock.now += 5
    found = trial.open_assignments()
    assert [(row.id, row.arm, row.site, row.age) for row in found] == [
        (two.id, two.arm, "Leeds", 15.0),
        (three.id, three.arm, "Lyon", 5.0),
    ]
    assert [row.deadline for row in found] == [clock.now + 85, clock.now + 95]
    assert [row.id for row in trial.open_assignments("Lyon")] == [three.id]
    trial.miss(two.id)
    assert [row.id for row in trial.open_assignments()] == [three.id]
    for row in trial.open_assignments():
        trial.tell(row.id, 0.0)
    assert trial.open_assignments() == []


def test_a_new_id_in_place_of_an_old_one(url: str) -> None:
    trial = create(url)
    (one,) = trial.ask(key="r").assignments
    new = trial.reissue(one.id)
    assert (new.arm, new.id.split("-")[0]) == (one.arm, one.id.split("-")[0])
    assert new.id != one.id
    for call in (trial.miss, trial.reissue, lambda id: trial.tell(id, 1)):
        with pytest.raises(InvalidInputError, match="there is no assignment"):
            call(one.id)
    assert ids(trial.ask(key="r")) == [(new.id, new.arm)]
    assert trial.tell(new.id, 1).new == 1
    assert trial.verify().intact


def test_the_audit_trail(url: str, clock: Clock) -> None:
    trial = Trial.create(
        url, "colours", ["a", "b"], ttucb(0.1), 500, sites=["Leeds"], user="the manager"
    )
    site = Trial.open(url, "colours", user="nurse 3")
    clock.now += 60
    one, two, three = site.ask(3, site="Leeds").assignments
    site.tell(one.id, 1.0)
    site.tell(one.id, 0.0)
    site.miss(two.id)
    site.tell(three.id, 0.0)
    trial.manage("pause", "a holiday")
    trial.open_assignments()
    said = [(call.action, call.user, call.site, call.participants) for call in trial.audit_trail()][
        ::-1
    ]
    assert said[0] == ("create", "the manager", None, 0)
    assert said[1] == ("ask", "nurse 3", "Leeds", 3)
    assert {call for call, who, *_ in said[2:5] if who == "nurse 3"} == {"tell"}, (
        "a missing one too"
    )
    assert [call for call, *_ in said[5:]] == ["manage pause", "open"]
    assert [call.at for call in trial.audit_trail(1)] == [clock.now]
    assert "nurse" not in json.dumps(trial.transcript())
    assert trial.audit_trail(2) == trial.audit_trail()[:2]


def test_the_journal_is_the_same_whatever_the_outcomes(url: str, clock: Clock) -> None:
    said = []
    for name, outcome in (("zero", 0.0), ("one", 1.0), ("missing", None)):
        trial = create(url, name, strategy=ttucb(0.1), max_participants=60)
        for one in trial.ask(9).assignments + trial.ask(9).assignments:
            trial.miss(one.id) if outcome is None else trial.tell(one.id, outcome)
        said.append([call._replace(entry=0) for call in trial.audit_trail()])
    assert said[0] == said[1] == said[2]


def test_nothing_is_noted_where_nothing_is_changed(url: str) -> None:
    trial = create(url)
    batch = trial.ask(100)
    calls = len(trial.audit_trail())
    assert not trial.ask().assignments
    trial.status()
    trial.transcript()
    for wrong in ("9-abc", batch.assignments[0].id + "0"):
        with pytest.raises(InvalidInputError):
            trial.tell(wrong, 1)
    assert len(trial.audit_trail()) == calls
    with pytest.raises(InvalidInputError, match="limit"):
        trial.audit_trail(0)


# --- one clock ------------------------------------------------------------------------


def test_a_clock_that_goes_back_is_refused(url: str, clock: Clock) -> None:
    trial = create(url, deadline=1000.0)
    (one,) = trial.ask().assignments
    clock.now -= 59
    trial.tell(trial.ask().assignments[0].id, 1)
    clock.now -= 10
    for call in (trial.ask, lambda: trial.tell(one.id, 1), trial.expire):
        with pytest.raises(StoreError, match=r"the clock is .* behind the last recorded call"):
            call()
    people = trial.status().participants
    clock.now += 100
    trial.tell(one.id, 1)
    assert trial.status().participants == people == 2
    assert trial.verify().intact


@pytest.mark.parametrize("release", ["complete", "scheduled"])
def test_a_clock_that_was_ahead_is_set_back(url: str, clock: Clock, release: str) -> None:
    trial = create(
        url, strategy=bet_se(0.1, 5.0), deadline=1000, release=release, max_participants=300
    )
    start = clock.now
    before = trial.ask(5).assignments
    clock.now += 10**8
    during = trial.ask(5).assignments
    clock.now = start + 10
    with pytest.raises(StoreError, match="set-clock"):
        trial.ask()
    with pytest.raises(InvalidInputError, match="reason"):
        trial.manage("set-clock", "")
    trial.manage("set-clock", "the clock was three years ahead")
    trial.tell_many({one.id: 1.0 for one in before + during})
    assert [row.deadline for row in trial.open_assignments()] == []
    assert trial.verify().intact
    for _ in range(40):
        batch = trial.ask(50)
        trial.tell_many({one.id: 1.0 for one in batch.assignments})
        clock.now += 200
    assert trial.status().releases > 0
    assert trial.status().actions[0].action == "set-clock"
    assert trial.verify().intact


def test_people_past_their_deadline_are_counted_told_or_not(url: str, clock: Clock) -> None:
    trial = create(url, deadline=100.0, strategy=bet_se(0.1, 1.0))
    one, _two = trial.ask(2).assignments
    trial.tell(one.id, 1.0)
    assert trial.status().past_deadline == 0
    clock.now += 50
    trial.ask(3)
    clock.now += 51
    assert trial.status().past_deadline == 2
    clock.now += 100
    assert trial.status().past_deadline == 5
    assert create(url, "no deadline").status().past_deadline is None
    assert trial.verify().intact


# --- several managers ----------------------------------------------------------------


def test_managers_who_have_seen_the_same_do_not_both_act(url: str) -> None:
    one, two = create(url, sites=["Leeds", "Lyon"]), Trial.open(url, "colours")
    seen = len(one.status().actions)
    one.manage("close-site", "no staff", "Leeds", seen=seen)
    with pytest.raises(InvalidInputError, match="another manager has acted in the meantime"):
        two.manage("stop", "one site is not enough", seen=seen)
    assert not two.status().stopped
    two.ask(site="Lyon")
    two.manage("pause", "let us think", seen=seen + 1)
    assert [act.action for act in one.status().actions] == ["close-site", "pause"]


def test_managers_at_once_draw_nothing_twice(url: str) -> None:
    """Threads that pause, resume and move the maximum while others enrol: the record
    verifies, and every batch was released once.
    """
    trial = create(url, strategy=bet_se(0.1, 5.0), max_participants=150)
    rounds: list[Exception] = []

    def managers(number: int) -> None:
        own = Trial.open(url, "colours")
        for turn in range(6):
            try:
                if number == 0:
                    own.manage("pause" if turn % 2 == 0 else "resume", "a try")
                else:
                    own.manage("raise-maximum", "a try", 160 + 10 * turn + number)
            except InvalidInputError as error:
                rounds.append(error)
        own.close()

    threads = [threading.Thread(target=managers, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        run(trial, 5)
    for thread in threads:
        thread.join()
    events = trial.transcript()["events"]
    places = [
        (one["arm"], one["phase"])
        for event in events
        if event["kind"] == "released"
        for one in event["releases"]
    ]
    assert len(places) == len(set(places))
    assert trial.verify().intact
    assert len([event for event in events if event["kind"] == "managed"]) == 18 - len(rounds)
