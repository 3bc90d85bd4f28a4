"""Codes in place of arms: what staff see, and how an arm comes to be known."""

import hmac

import pytest

from discreet import Trial, bet_se, verify_transcript
from discreet.errors import InvalidInputError
from discreet.trials.randomisation import ALPHABET, make_code
from tests.support.stores import ARMS, create

BETS = bet_se(0.05, 1.0)


def keyed(text: bytes) -> bytes:
    return hmac.digest(b"secret", text, "sha256")


def test_no_two_codes_are_the_same() -> None:
    numbers = [*range(1, 4001), *range(2**30 - 1000, 2**30 + 1)]
    codes = [make_code(keyed, number) for number in numbers]
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {6}
    assert set("".join(codes)) == set(ALPHABET)


def test_staff_see_codes(url: str) -> None:
    trial = create(url, strategy=BETS, blinding="codes")
    batch = trial.ask(60, key="k").assignments
    codes = trial.list_codes()
    assert list(codes) == [one.arm for one in batch]
    arms = [
        trial.protocol.arms[arm]
        for event in trial.transcript()["events"]
        if event["kind"] == "assigned"
        for arm in event["arms"]
    ]
    assert [codes[one.arm] for one in batch] == arms
    assert not set(codes) & set(ARMS)
    assert [one.arm for one in trial.ask(60, key="k").assignments] == [one.arm for one in batch]
    assert [one.arm for one in trial.open_assignments()] == [one.arm for one in batch]
    assert trial.reissue(batch[0].id).arm == batch[0].arm
    assert [entry.action for entry in trial.audit_trail()][-3:] == ["codes", "ask", "create"]


def test_an_arm_comes_to_be_known_with_a_reason(url: str) -> None:
    trial = create(url, strategy=BETS, blinding="codes", sites=["Leeds", "Lyon"])
    nurse = trial.as_user("nurse", "Leeds")
    one = nurse.ask(2).assignments[0]
    assert nurse.unblind(one.id, "a fever", key="k") == trial.list_codes()[one.arm]
    assert nurse.unblind(one.id, "a fever", key="k") == trial.list_codes()[one.arm]
    (act,) = trial.status().actions
    assert (act.action, act.about, act.reason) == ("unblind", 1, "a fever")
    assert [one.participants for one in trial.audit_trail() if one.action == "manage unblind"] == [
        1
    ]
    assert trial.verify().intact
    assert verify_transcript(trial.transcript()).intact
    for refused in (
        lambda: trial.as_user("clerk", "Lyon").unblind(one.id, "curious"),
        lambda: nurse.unblind(one.id, ""),
        nurse.list_codes,
        lambda: trial.manage("unblind", "curious", 1),
    ):
        with pytest.raises(InvalidInputError):
            refused()
    assert len(trial.status().actions) == 1


def test_nobody_is_blinded_unless_the_protocol_says_so(url: str) -> None:
    trial = create(url, strategy=BETS)
    one = trial.ask().assignments[0]
    assert one.arm in ARMS
    assert trial.list_codes() == {}
    with pytest.raises(InvalidInputError, match="nobody is blinded"):
        trial.unblind(one.id, "a fever")
    assert Trial.open(url, "colours").verify().intact
