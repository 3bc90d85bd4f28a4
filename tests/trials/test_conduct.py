"""Sites and managers: who may come, what may be done, and that all of it is public,
replayed and refused where it must be.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from discreet import InvalidInputError, adap_tt_star, bet_se, ctb_tt, ttucb
from discreet.trials.operations import MEANINGS, REFUSED_ACTIONS
from discreet.trials.store import schema
from discreet.trials.transcript import verify_transcript
from discreet.trials.trial import Trial
from tests.support.clock import Clock
from tests.support.forge import rechained
from tests.support.stores import count, create, database

BETS = bet_se(1e-6, epsilon=2)
EVERY = [BETS, adap_tt_star(10, 0.1), ttucb(0.1)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """What is tested here does not depend on the database."""
    return f"sqlite:///{tmp_path}/trials.db"


CHANCE = {"red": 0.3, "green": 0.9, "blue": 0.3, "violet": 0.5}


def rounds(trial: Trial, many: int = 1000, seed: int = 1, people: int = 40) -> None:
    """Ask and tell that often, or to the end."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for _ in range(many):
        batch = trial.ask(people)
        if batch.stopped or batch.paused:
            return
        trial.tell_many({one.id: int(rng.random() < CHANCE[one.arm]) for one in batch.assignments})


def sound(trial: Trial, url: str) -> None:
    assert trial.verify().intact, trial.verify().problems
    said = trial.transcript()
    assert verify_transcript(said).intact, verify_transcript(said).problems
    again = Trial.open(url, trial.protocol.name)
    assert again.status() == trial.status()


# --- sites ----------------------------------------------------------------------------


def test_the_flow_of_people(url: str) -> None:
    trial = create(url, strategy=BETS, sites=["Leeds", "Lyon", "Lodz"])
    trial.ask(3, site="Lyon")
    trial.ask(2, site="Leeds")
    trial.ask(1, site="Lyon")
    assert [(one.name, one.participants) for one in trial.status().sites] == [
        ("Leeds", 2),
        ("Lyon", 4),
        ("Lodz", 0),
    ]
    for wrong in (None, "Paris", "", 3):
        with pytest.raises(InvalidInputError, match=r"one of Leeds, Lyon, Lodz|the name of a site"):
            trial.ask(1, site=wrong)  # type: ignore[arg-type]
    assert trial.status().participants == 6
    sound(trial, url)


def test_open_sites(url: str) -> None:
    trial = create(url, strategy=ttucb(0.1))
    trial.ask(1)
    trial.ask(2, site="anywhere")
    assert [(one.name, one.participants) for one in trial.status().sites] == [("anywhere", 2)]
    for wrong in ("", " ", 3, "x" * 201, "\0"):
        with pytest.raises(InvalidInputError, match=r"the name of a site|invisible character"):
            trial.ask(1, site=wrong)  # type: ignore[arg-type]
    sound(trial, url)


def test_a_site_may_join(url: str) -> None:
    trial = create(url, strategy=BETS, sites=["Leeds"])
    with pytest.raises(InvalidInputError, match="one of Leeds; got 'Lyon'"):
        trial.ask(1, site="Lyon")
    with pytest.raises(InvalidInputError, match="give the name of a site"):
        trial.manage("close-site", "a typo", "Lyon")
    trial.manage("open-site", "a second hospital joins", "Lyon")
    trial.ask(2, site="Lyon")
    assert [(one.name, one.participants) for one in trial.status().sites] == [
        ("Leeds", 0),
        ("Lyon", 2),
    ]
    with pytest.raises(InvalidInputError, match="Lyon is open already"):
        trial.manage("open-site", "again", "Lyon")
    trial.manage("close-site", "it leaves", "Lyon")
    sound(trial, url)
    said = trial.transcript()
    said["events"] = [one for one in said["events"] if one.get("action") != "open-site"]
    for seq, event in enumerate(said["events"], start=1):
        event["seq"] = seq
    assert "from a site" in verify_transcript(rechained(said)).problems[0]


def test_a_closed_site_enrols_nobody(url: str) -> None:
    trial = create(url, strategy=BETS, sites=["Leeds", "Lyon"])
    trial.manage("close-site", "no nurse", "Lyon")
    with pytest.raises(InvalidInputError, match="Lyon is closed"):
        trial.ask(1, site="Lyon")
    trial.ask(1, site="Leeds")
    with pytest.raises(InvalidInputError, match="closed already"):
        trial.manage("close-site", "again", "Lyon")
    trial.manage("open-site", "a nurse", "Lyon")
    assert len(trial.ask(1, site="Lyon").assignments) == 1
    assert [one.closed for one in trial.status().sites] == [False, False]
    sound(trial, url)


# --- managers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", [BETS, adap_tt_star(10, 0.1), ttucb(0.1)], ids=lambda s: s.name
)
def test_pause_and_resume(url: str, strategy: Any) -> None:
    trial = create(url, strategy=strategy)
    people = trial.ask(3).assignments
    trial.manage("pause", "a storm")
    batch = trial.ask(3)
    assert (batch.assignments, batch.paused, batch.stopped) == ((), True, False)
    trial.tell_many({one.id: 1 for one in people})
    assert trial.status().paused
    with pytest.raises(InvalidInputError, match="paused already"):
        trial.manage("pause", "again")
    trial.manage("resume", "the storm is over")
    rounds(trial, 3)
    assert trial.status().participants > 3
    assert [(one.action, one.reason) for one in trial.status().actions] == [
        ("pause", "a storm"),
        ("resume", "the storm is over"),
    ]
    sound(trial, url)


@pytest.mark.parametrize(
    "strategy", [bet_se(1e-9, epsilon=2), adap_tt_star(10, 1e-9), ttucb(1e-9)], ids=lambda s: s.name
)
def test_stop(url: str, strategy: Any) -> None:
    """By hand the end is inconclusive, and nothing can be done any more; outcomes that
    come later are taken and stay sealed.
    """
    trial = create(url, strategy=strategy)
    rounds(trial, 2)
    people = trial.ask(2).assignments
    trial.manage("stop", "the drug is not delivered any more")
    status = trial.status()
    assert (status.stopped, status.conclusive) == (True, False)
    assert trial.ask().stopped
    trial.tell_many({one.id: 1 for one in people})
    with pytest.raises(InvalidInputError, match="the trial is over"):
        trial.manage("resume", "we go on")
    sound(trial, url)


@pytest.mark.parametrize(
    "strategy", [BETS, adap_tt_star(1, 0.1), ttucb(1e-9)], ids=lambda s: s.name
)
def test_the_maximum_may_move_both_ways(url: str, strategy: Any) -> None:
    trial = create(url, strategy=strategy, max_participants=60)
    rounds(trial, 1, people=10)
    trial.manage("raise-maximum", "more money", 150)
    while trial.status().participants <= 60 and not trial.status().stopped:
        rounds(trial, 1, people=10)
    assert trial.status().max_participants == 150
    people = trial.status().participants
    if not trial.status().stopped:
        for wrong in (people - 1, 0, -3, 2**31, 80.5, "90", None, True):
            with pytest.raises(InvalidInputError, match=r"must be a.* whole number"):
                trial.manage("lower-maximum", "less money", wrong)  # type: ignore[arg-type]
        trial.manage("lower-maximum", "less money", people)
        rounds(trial, 50)
        assert trial.status().stopped
        assert trial.status().participants == people
    sound(trial, url)


def test_a_dropped_arm_is_dealt_no_more(url: str) -> None:
    trial = create(url, strategy=BETS, max_participants=4000)
    rounds(trial, 2)
    trial.ask(5)
    trial.manage("drop-arm", "side effects", "green")
    assert "(h + 1) δ" in trial.status().actions[0].meaning
    assert trial.status().error_rate == pytest.approx(2 * BETS.delta)
    seen = set()
    for _ in range(400):
        batch = trial.ask(40)
        if batch.stopped:
            break
        seen |= {one.arm for one in batch.assignments}
        trial.tell_many({one.id: int(one.arm == "blue") for one in batch.assignments})
        for row in _open(trial):
            trial.miss(row)
    status = trial.status()
    assert "green" not in seen
    assert (status.conclusive, status.recommendation) == (True, "blue")
    assert [arm.name for arm in status.arms] == ["red", "green", "blue"]
    assert status.arms[1].count > 0, "what was released of it stays"
    with pytest.raises(InvalidInputError, match="the trial is over"):
        trial.manage("drop-arm", "no", "red")
    sound(trial, url)


def test_outcomes_that_nobody_will_release_are_not_kept(url: str) -> None:
    """Of an arm that was dropped: neither those told before nor those told after."""
    trial = create(url, strategy=bet_se(0.1, epsilon=2), max_participants=4000)
    people = trial.ask(6).assignments
    before = [one for one in people if one.arm == people[0].arm]
    trial.tell_many({one.id: 1 for one in before[:1]})
    assert count(url, schema.outcomes) == 1
    trial.manage("drop-arm", "side effects", people[0].arm)
    assert count(url, schema.outcomes) == 0
    trial.tell_many({one.id: 1 for one in before})
    with database(url) as connection:
        kept = [row.units for row in connection.execute(schema.outcomes.select())]
    assert all(units in (None, schema.ERASED) for units in kept)
    for one in before:
        with pytest.raises(InvalidInputError, match="can no longer be amended"):
            trial.amend(one.id, 0)
    sound(trial, url)


def _open(trial: Trial) -> list[str]:
    """Ids of the people whose outcome is not in."""
    from discreet.trials.store.schema import OPEN

    with trial._database.snapshot(trial.protocol.name) as tables:
        tables.lock()
        rows = tables.find_assignments(list(range(1, tables.row.participants + 1)))
        return [row.id for row in rows.values() if row.state == OPEN]


def test_two_arms_must_be_left(url: str) -> None:
    trial = create(url, strategy=BETS)
    trial.manage("drop-arm", "side effects", "red")
    for arm, words in (("red", "give the name of an arm"), ("blue", "two arms must be left")):
        with pytest.raises(InvalidInputError, match=words):
            trial.manage("drop-arm", "more of them", arm)
    sound(trial, url)


def test_an_added_arm_plays_from_the_next_round_on(url: str) -> None:
    trial = create(url, strategy=BETS, max_participants=6000)
    rounds(trial, 2)
    trial.manage("add-arm", "a new dose", "violet")
    with pytest.raises(InvalidInputError, match="a name of its own"):
        trial.manage("add-arm", "again", "violet")
    rounds(trial)
    status = trial.status()
    assert [arm.name for arm in status.arms] == ["red", "green", "blue", "violet"]
    assert status.arms[3].assigned > 0
    assert (status.conclusive, status.recommendation) == (True, "green")
    assert "(h + 1) δ" in status.actions[0].meaning
    sound(trial, url)


def test_another_arm_does_not_end_a_trial(url: str) -> None:
    """Adding one that no longer fits would end it for good, with nothing gained."""
    trial = create(url, strategy=BETS, max_participants=60)
    rounds(trial, 1)
    people = trial.status().participants
    trial.manage("lower-maximum", "less money", people + 4)
    with pytest.raises(InvalidInputError, match="raise the maximum first"):
        trial.manage("add-arm", "a new dose", "violet")
    assert not trial.status().stopped
    assert len(trial.status().arms) == 3
    trial.manage("raise-maximum", "more money", people + 100)
    trial.manage("add-arm", "a new dose", "violet")
    sound(trial, url)


def test_no_round_is_opened_while_nobody_may_come(url: str) -> None:
    """An event that a manager's was moved across is seen."""
    trial = create(url, strategy=BETS)
    trial.manage("pause", "a storm")
    trial.manage("resume", "no storm")
    trial.ask(2)
    said = trial.transcript()
    events = said["events"]
    assert [event["kind"] for event in events[2:]] == ["managed", "opened", "assigned"]
    events[2], events[3] = events[3], events[2]
    for seq, event in enumerate(events, start=1):
        event["seq"] = seq
    assert "no round was to be opened" in verify_transcript(rechained(said)).problems[0]


def test_an_action_is_a_word(url: str) -> None:
    trial = create(url, strategy=BETS)
    wrong: list[Any] = [["pause"], {}, {"pause"}, b"pause"]
    for action in wrong:
        with pytest.raises(InvalidInputError, match="a manager may do one of"):
            trial.manage(action, "no")


def test_other_strategies_have_no_proof_for_other_arms(url: str) -> None:
    for place, strategy in enumerate((adap_tt_star(1, 0.1), ttucb(0.1), ctb_tt(1, 0.1))):
        trial = create(url, f"t{place}", strategy=strategy)
        for action, arm in (("drop-arm", "red"), ("add-arm", "violet")):
            with pytest.raises(InvalidInputError, match="proved for bet-se only"):
                trial.manage(action, "no", arm)
        assert not trial.status().actions


def test_what_is_refused_says_why(url: str) -> None:
    trial = create(url, strategy=BETS)
    head = trial.status().head
    for action, why in REFUSED_ACTIONS.items():
        with pytest.raises(InvalidInputError) as refused:
            trial.manage(action, "we want to")
        assert str(refused.value) == why
    for wrong in ("dance", "", None, 3):
        with pytest.raises(InvalidInputError, match="a manager may do one of"):
            trial.manage(wrong, "we want to")  # type: ignore[arg-type]
    for reason in ("", "  ", None, 7, "x" * 1001, "\udc80"):
        with pytest.raises(InvalidInputError, match=r"give a reason|invisible character"):
            trial.manage("pause", reason)  # type: ignore[arg-type]
    for action in ("pause", "stop"):
        with pytest.raises(InvalidInputError, match="takes a reason and nothing else"):
            trial.manage(action, "so", 3)
    with pytest.raises(InvalidInputError, match="the trial is not paused"):
        trial.manage("resume", "so")
    assert trial.status().head == head
    assert set(MEANINGS) & set(REFUSED_ACTIONS) == set()


def test_actions_that_were_forged_are_found(url: str) -> None:
    trial = create(url, strategy=BETS, sites=["Leeds"], max_participants=300)
    trial.ask(5, site="Leeds")
    trial.manage("raise-maximum", "more", 400)
    trial.manage("pause", "a break")
    said = trial.transcript()

    def forged(**change: Any) -> str:
        other = deepcopy(said)
        event = next(one for one in other["events"] if one["kind"] == "managed")
        event.update(change)
        return " ".join(verify_transcript(rechained(other)).problems)

    assert verify_transcript(rechained(json.loads(json.dumps(said)))).intact
    assert "a manager may not do" in forged(about=3)
    assert "a manager may not do" in forged(action="epsilon")
    assert "a manager may not do" in forged(action="pause")
    assert "does not say what" in forged(extra=1)
    assert "status" in forged(about=401)
    assert "status" in forged(reason="less")
    assigned = deepcopy(said)
    next(one for one in assigned["events"] if one["kind"] == "assigned")["site"] = "Lyon"
    assert "from a site" in verify_transcript(rechained(assigned)).problems[0]


def test_nobody_comes_while_a_trial_is_paused(url: str) -> None:
    """A record that says otherwise is found."""
    trial = create(url, strategy=BETS)
    trial.ask(2)
    trial.manage("pause", "a break")
    trial.manage("resume", "back")
    trial.ask(2)
    said = trial.transcript()
    del said["events"][4]
    for seq, event in enumerate(said["events"], start=1):
        event["seq"] = seq
    assert "the trial was paused" in verify_transcript(rechained(said)).problems[0]


def test_continuous_enrolment_never_waits(url: str, clock: Clock) -> None:
    """Until the maximum somebody who comes is assigned, however late outcomes are."""
    trial = create(
        url,
        strategy=BETS,
        max_participants=900,
        deadline=1000,
        enrolment="continuous",
        sites=["a", "b"],
    )
    waiting: list[tuple[float, str, str]] = []
    for place in range(4000):
        clock.now += 1
        batch = trial.ask(1, site="ab"[place % 2])
        if batch.stopped:
            break
        if trial.status().participants < 900:
            assert len(batch.assignments) == 1
        waiting += [(clock.now + 120 + place % 7, one.id, one.arm) for one in batch.assignments]
        told = [one for one in waiting if one[0] <= clock.now]
        waiting = [one for one in waiting if one[0] > clock.now]
        trial.tell_many({id: int(arm == "green") for _, id, arm in told})
    status = trial.status()
    assert (status.stopped, status.conclusive, status.recommendation) == (True, True, "green")
    assert status.pending > 50
    sound(trial, url)
