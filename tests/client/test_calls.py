"""A trial on another machine: the methods, answers and errors of a local one.

These mistakes were planted to see the tests fail: a status that is not blinded, an
answer whose head is not looked at, a route that takes %2F for a slash, `tell` that
sends an outcome unchecked, `verify` that believes the service.
"""

import inspect
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from discreet import (
    InvalidInputError,
    RemoteTrial,
    RoundedWarning,
    TamperedError,
    Trial,
    adap_tt_star,
    backup_trials,
    bet_se,
    ctb_tt,
    list_trials,
    respond,
    restore_trials,
)
from discreet.errors import DiscreetError, RefusedError, StoreError
from discreet.trials.record import Head
from tests.support.remote import Far
from tests.support.stores import ARMS, create, damage

BETS = bet_se(0.05, 1.0)
HERE_ONLY = {"record"}
"""What only a local trial has."""


def both(far: Far, **settings: Any) -> tuple[Trial, Trial]:
    """A trial through its service, and in its database."""
    trial = create(far.base, **{"strategy": BETS, **settings})
    return trial, Trial.open(far.url, trial.protocol.name)


# --- the same methods -----------------------------------------------------------------


def public(kind: type) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


def test_every_method_of_a_trial_is_there() -> None:
    here, there = public(Trial), public(RemoteTrial)
    assert set(here) - HERE_ONLY <= set(there) | {"protocol", "protocol_hash", "user"}
    assert set(here) >= HERE_ONLY
    for name in set(here) & set(there) - {"create", "site", "files"}:
        if callable(here[name]):
            mine = [*inspect.signature(here[name]).parameters.values()]
            theirs = [*inspect.signature(there[name]).parameters.values()]
            skip = 0 if name in ("open", "create") else 1
            shown = [(one.name, one.default) for one in theirs[skip:] if one.name != "patience"]
            assert shown == [(one.name, one.default) for one in mine[skip:]], name
            assert there[name].__doc__


def test_who_starts_a_trial_is_warned_and_not_the_server(far: Far) -> None:
    settings: dict[str, Any] = {"range": (0.0, 10.0), "max_participants": 50}

    def start(kind: Any, name: str) -> None:
        kind.create(far.base, name, ARMS, BETS, **settings).close()

    for kind in (Trial, RemoteTrial):
        with pytest.warns(RoundedWarning, match=r'bet_se\(…, outcomes="numbers"\)') as caught:
            start(kind, kind.__name__)
        assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = bet_se(0.05, 1.0, outcomes="numbers")
        Trial.create(far.base, "numbers", ARMS, numbers, **settings).close()


def test_calls_do_the_same(far: Far) -> None:
    trial, local = both(far, sites=["Leeds", "Lyon"], returning="same-arm")
    assert isinstance(trial, RemoteTrial)
    assert (trial.protocol, trial.protocol_hash) == (local.protocol, local.protocol_hash)
    assert (trial.user, trial.site, trial.files) == ("the manager", None, ())
    first = trial.ask(participants=["ann", "bob"], site="Leeds", key="é k")
    assert trial.ask(participants=["ann", "bob"], site="Leeds", key="é k") == first
    assert (trial.was_answered("é k"), trial.was_answered("another")) == (True, False)
    ann, bob = first.assignments
    assert (ann.participant, bob.participant) == ("ann", "bob")
    (cid,) = trial.ask(participant="cid", site="Lyon").assignments
    assert trial.ask(participant="cid", site="Lyon").assignments == (cid,)
    assert trial.tell(ann.id, 1).new == 1
    assert trial.tell_many({ann.id: 0, bob.id: np.float64(0.0)}).already_told == (ann.id,)
    trial.amend(ann.id, 0)
    again = trial.reissue(cid.id)
    assert [one.id for one in trial.open_assignments("Lyon")] == [again.id]
    assert trial.open_assignments("Leeds") == []
    assert trial.miss(again.id).new == 1
    trial.manage("raise-maximum", "more people", 600, seen=0)
    assert trial.expire() == 0
    assert trial.list_codes() == {}
    calls = [entry.action for entry in trial.audit_trail(3)]
    assert trial.audit_trail() == local.audit_trail()
    assert len(calls) == 3
    assert trial.status() == local.status()
    assert trial.transcript() == local.transcript()
    assert trial.verify() == local.verify() == trial.verify(trial.status().head)
    assert list_trials(far.base) == list_trials(far.url)
    trial.close()
    assert trial.status().max_participants == 600


def test_a_trial_from_the_first_person_to_the_last(far: Far) -> None:
    settings: dict[str, Any] = {"arms": ["5 mg", "10 mg", "20 mg"], "max_participants": 3000}
    trial, local = both(far, strategy=bet_se(0.1, epsilon=3), **settings)
    rng, means = np.random.default_rng(1), {"5 mg": 0.2, "10 mg": 0.9, "20 mg": 0.3}
    for _ in range(1000):
        batch = trial.ask(int(rng.integers(1, 200)))
        trial.tell_many({one.id: rng.random() < means[one.arm] for one in batch.assignments})
        if batch.stopped:
            break
    assert trial.status() == local.status()
    assert trial.status().recommendation == "10 mg"
    assert trial.verify().intact


def test_answers(far: Far) -> None:
    trial, _ = both(far, strategy=ctb_tt(1.0, 0.1))
    one, two = trial.ask(2).assignments
    answer = respond(1.0, 1.0)
    assert trial.answer(one.id, answer, key="k") == trial.answer(one.id, answer, key="k")
    assert trial.answer_many({two.id: answer, one.id: answer}).already_told == (one.id,)


@pytest.mark.parametrize("name", ["a/b", "50 % of ü", "..", "x/ask", "?#&", "<b>'\";--"])
def test_names(name: str, far: Far) -> None:
    trial, _ = both(far, name=name)
    trial.ask()
    again = Trial.open(trial.url)
    assert (again.protocol.name, again.status().participants) == (name, 1)
    assert Trial.open(far.base, name).url == trial.url


def test_creating_again(far: Far) -> None:
    trial, _ = both(far)
    assert create(far.base, strategy=BETS).status() == trial.status()
    with pytest.raises(InvalidInputError) as there:
        create(far.base, strategy=BETS, max_participants=7)
    with pytest.raises(InvalidInputError) as here:
        create(far.url, strategy=BETS, max_participants=7)
    assert str(there.value) == str(here.value)
    with pytest.raises(InvalidInputError, match="no setting colour"):
        RemoteTrial.create(far.base, "new", ARMS, BETS, 9, colour="red")
    with pytest.raises(InvalidInputError, match="leave user out"):
        create(far.base, user="me")
    with pytest.raises(InvalidInputError, match="leave user out"):
        Trial.open(far.base, "colours", user="me")
    with pytest.raises(InvalidInputError, match="leave user out"):
        trial.as_user("me")


# --- the same errors ------------------------------------------------------------------

UNKNOWN = "1-0123456789abcdef"
WRONG: dict[str, Any] = {
    "ask for none": lambda t: t.ask(0),
    "ask for a text": lambda t: t.ask("2"),
    "ask for too many": lambda t: t.ask(10**6),
    "ask for nobody": lambda t: t.ask(participants=[]),
    "ask for numbers": lambda t: t.ask(participants=[1, 2]),
    "ask for somebody twice": lambda t: t.ask(participants=["a", "a"]),
    "ask for one and many": lambda t: t.ask(participants=["a"], participant="b"),
    "ask from nowhere": lambda t: t.ask(site="Paris"),
    "ask from a number": lambda t: t.ask(site=3),
    "ask from half a pair": lambda t: t.ask(site="\ud800"),
    "ask for half a pair": lambda t: t.ask(participants=["\ud800"]),
    "a request of nothing": lambda t: t.ask(key=" "),
    "a request too long": lambda t: t.tell(UNKNOWN, 1, key="x" * 201),
    "tell out of range": lambda t: t.tell(UNKNOWN, 7),
    "tell not a number": lambda t: t.tell(UNKNOWN, float("nan")),
    "tell a text": lambda t: t.tell(UNKNOWN, "1"),
    "tell nobody": lambda t: t.tell(UNKNOWN, 1),
    "tell no id": lambda t: t.tell("0.25", 1),
    "tell half a pair": lambda t: t.tell("\ud800", 1),
    "tell a number": lambda t: t.tell(5, 1),
    "tell a list": lambda t: t.tell_many([1]),
    "tell too many": lambda t: t.tell_many(dict.fromkeys(map(str, range(10_001)), 1)),
    "answer": lambda t: t.answer(UNKNOWN, respond(1, 1.0)),
    "amend nobody": lambda t: t.amend(UNKNOWN, 1),
    "amend out of range": lambda t: t.amend(UNKNOWN, 2),
    "miss nobody": lambda t: t.miss(UNKNOWN),
    "reissue no id": lambda t: t.reissue("x"),
    "reissue nothing": lambda t: t.reissue(None),
    "unblind nobody": lambda t: t.unblind(UNKNOWN, "a fever"),
    "manage wrongly": lambda t: t.manage("explode", "why not"),
    "manage on a number": lambda t: t.manage(5, "why not"),
    "change epsilon": lambda t: t.manage("epsilon", "more"),
    "resume": lambda t: t.manage("resume", "now"),
    "no reason": lambda t: t.manage("pause", ""),
    "no text as a reason": lambda t: t.manage("pause", None),
    "a reason of lines": lambda t: t.manage("pause", "a\nb"),
    "act too late": lambda t: t.manage("pause", "rest", seen=3),
    "act before": lambda t: t.manage("pause", "rest", seen=-1),
    "no such arm": lambda t: t.manage("drop-arm", "bad", "pink"),
    "too small": lambda t: t.manage("lower-maximum", "few", 0),
    "an audit trail of none": lambda t: t.audit_trail(0),
    "an audit trail of text": lambda t: t.audit_trail("x"),
    "a wrong head": lambda t: t.verify("17"),
    "no progress": lambda t: t.verify(progress=5),
    "no name": lambda t: Trial.open(t.url),
}


def said(call: Any, trial: Trial) -> tuple[type, str]:
    with pytest.raises(DiscreetError) as found:
        call(trial)
    return type(found.value), str(found.value)


def test_errors_are_the_same(far: Far) -> None:
    trial, local = both(far, sites=["Leeds", "Lyon"])
    wrong = {**WRONG}
    del wrong["no name"]
    differ = {name for name, call in wrong.items() if said(call, trial) != said(call, local)}
    assert not differ
    assert trial.status().participants == 0
    assert trial.audit_trail() == local.audit_trail()


# --- heads ----------------------------------------------------------------------------


def test_an_older_record_is_refused(far: Far, tmp_path: Any) -> None:
    trial, local = both(far, strategy=adap_tt_star(1.0, 0.1))
    trial.ask()
    head = trial.status().head
    assert Trial.open(far.base, "colours", head).status().head == head
    known = Head.parse(head)
    ahead, forged = f"{known.seq + 5}:{known.hash}", f"{known.seq}:{'0' * 64}"
    past = f"{known.seq - 1}:{'0' * 64}"
    for wrong in (ahead, forged, past):
        with pytest.raises(TamperedError) as here:
            Trial.open(far.url, "colours", wrong)
        with pytest.raises(TamperedError) as there:
            Trial.open(far.base, "colours", wrong)
        assert str(here.value) == str(there.value)
    before = local.audit_trail()
    for wrong in (ahead, forged, past):
        other = Trial.open(far.base, "colours")
        other._seen = Head.parse(wrong)
        for call in (other.ask, other.status, other.transcript, other.verify, other.expire):
            with pytest.raises(TamperedError):
                call()
    assert local.audit_trail() == before, "nothing was done"


def test_a_service_that_goes_back_is_found_out(far: Far) -> None:
    """Even one that does not look at the heads that its callers know."""
    trial, _ = both(far)
    trial.ask()
    before, seen = trial.status(), trial._seen
    far.forget = True
    trial._seen = Head(seen.seq + 10, "0" * 64)
    for call in (trial.status, trial.ask, trial.transcript):
        with pytest.raises(TamperedError, match="are known"):
            call()
    trial._seen = seen
    assert trial.status().participants == before.participants + 1, "it was done, and found out"


def test_verify_trusts_nobody(far: Far) -> None:
    trial, local = both(far)
    trial.ask(3)
    assert trial.verify().intact
    far.forged = (b'"arms":["red"', b'"arms":["rod"')
    found = trial.verify()
    assert found.problems == ("the protocol is not the one that has this hash",)
    far.forged = None
    damage(far.url, "UPDATE discreet_assignments SET arm = CASE arm WHEN 0 THEN 1 ELSE 0 END")
    found = trial.verify()
    assert local.verify().problems
    assert found.problems == tuple(f"the service says: {one}" for one in local.verify().problems)


# --- who may do what ------------------------------------------------------------------


def test_a_site_is_blinded_until_the_end(far: Far) -> None:
    trial, local = both(far, sites=["Leeds", "Lyon"], blinding="codes", max_participants=80)
    nurse = Trial.open(trial.url, token=far.token("site", trial="colours", site="Leeds"))
    monitor = Trial.open(trial.url, token=far.token("monitor", trial="colours"))
    assert (nurse.user, vars(nurse)["site"]) == ("a site", "Leeds")
    one = nurse.ask().assignments[0]
    assert one.arm in trial.list_codes()
    assert nurse.unblind(one.id, "a fever") == trial.list_codes()[one.arm]
    trial.manage("drop-arm", "it does badly", "blue")
    while not nurse.ask(20).stopped:
        nurse.tell_many({open.id: 1.0 for open in nurse.open_assignments()})
        shown, whole = nurse.status(), local.status()
        if whole.stopped:
            break
        assert (shown.arms, shown.leads, shown.recommendation) == ((), (), None)
        assert [act.action for act in shown.actions] == ["unblind"]
        assert not any(arm in str(shown) for arm in ARMS)
        assert (shown.participants, shown.head) == (whole.participants, whole.head)
        assert monitor.status() == trial.status() == whole
        assert whole.arms
    assert local.status().stopped
    assert nurse.status() == local.status()
    for refused in (
        nurse.transcript,
        nurse.audit_trail,
        nurse.list_codes,
        nurse.verify,
        nurse.expire,
    ):
        with pytest.raises(RefusedError, match="of the role site"):
            refused()
    with pytest.raises(RefusedError, match="of the role monitor"):
        monitor.ask()
    with pytest.raises(InvalidInputError, match="you call for Leeds"):
        nurse.ask(site="Lyon")


def test_without_a_token(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, _ = both(far)
    with pytest.raises(RefusedError, match="not for this trial"):
        Trial.open(far.base, "other", token=far.token("monitor", trial="colours"))
    with pytest.raises(InvalidInputError, match="there is no trial 'other' here"):
        Trial.open(far.base, "other")
    with pytest.raises(RefusedError, match="unknown here, was revoked, or has expired") as wrong:
        Trial.open(trial.url, token="discreet_wrong")
    assert not wrong.value.known
    monkeypatch.delenv("DISCREET_TOKEN")
    with pytest.raises(RefusedError, match="DISCREET_TOKEN") as found:
        Trial.open(trial.url)
    assert not found.value.known


# --- backups, and at once -------------------------------------------------------------


def test_backups(far: Far, tmp_path: Any) -> None:
    both(far)
    file = tmp_path / "kept.db"
    with pytest.raises(InvalidInputError, match="a backup cannot be made through a service"):
        backup_trials(far.base, file)
    assert not file.exists()
    with pytest.raises(InvalidInputError, match="a backup cannot be restored through a service"):
        restore_trials(file, far.base)


def test_many_at_once(far: Far) -> None:
    trial = RemoteTrial.create(far.base, "colours", ARMS, BETS, 500)

    def enrol(number: int) -> list[str]:
        for turn in range(1000):  # rounds may be full, and wait for others
            batch = trial.ask(participant=f"p{number}", key=f"k{number} {turn}")
            if batch.assignments:
                break
            time.sleep(0.01)
        ids = [one.id for one in batch.assignments]
        trial.tell_many(dict.fromkeys(ids, float(number % 2)))
        again = trial.ask(participant=f"p{number}", key=f"k{number} {turn}")
        assert again.assignments == batch.assignments
        return ids

    with ThreadPoolExecutor(50) as threads:
        ids = [id for some in threads.map(enrol, range(50)) for id in some]
    assert len(set(ids)) == len(ids) == 50
    status = trial.status()
    assert (status.participants, status.pending) == (50, 0)
    assert trial.verify().intact
    with pytest.raises(InvalidInputError, match="there is no assignment"):
        trial.tell(UNKNOWN, 1)
    trial.close()
    assert Trial.open(far.url, "colours").verify().intact


def test_what_is_no_service(far: Far) -> None:
    trial, _ = both(far)
    far.forged = (b'"stopped"', b'"stepped"')
    with pytest.raises(StoreError, match="cannot read the answer"):
        trial.status()
    far.forged = (b"{", b"<")
    for call in (trial.status, trial.ask, trial.transcript):
        with pytest.raises(StoreError, match="cannot read the answer"):
            call()
    with pytest.raises(StoreError, match="check the address"):
        Trial.open(f"{far.base}/elsewhere", "colours")
