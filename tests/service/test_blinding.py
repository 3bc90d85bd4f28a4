"""What each role sees of a blinded trial."""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import Trial, adap_tt_star, bet_se, respond, verify_transcript
from discreet.service.auth import Principal
from discreet.service.state import blinded, shown
from discreet.trials.protocol import canonical
from discreet.trials.record import chain_hash
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, MONITOR, SITE
from tests.support.forge import rechained
from tests.support.remote import far_away
from tests.support.served import Visit, hidden
from tests.support.stores import ARMS, create, dealt


def visitor(role: str) -> Principal:
    site = "Leeds" if role == SITE else None
    return Principal(Token(1, "me", role, None, site, None, 0, "them", None, None, None))


@pytest.mark.parametrize("blinding", ["none", "codes"])
@pytest.mark.parametrize("role", [MANAGER, SITE, MONITOR])
@pytest.mark.parametrize("stopped", [False, True])
def test_only_sites_are_blinded_and_only_before_the_end(
    blinding: str, role: str, stopped: bool, tmp_path: Path
) -> None:
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.05, 1.0), blinding=blinding)
    trial.manage("add-arm", "it came late", "pink")
    whole = replace(trial.status(), stopped=stopped, recommendation="red", smallest_delta=0.2)
    hidden = (blinding, role, stopped) == ("codes", SITE, False)
    assert blinded(trial.protocol, stopped, visitor(role)) is hidden
    found = shown(whole, trial.protocol, visitor(role))
    assert (found != whole) is hidden
    assert any(arm in str(found) for arm in (*ARMS, "pink")) is not hidden
    assert found.error_rate == (None if hidden else 0.1)


def test_a_blinded_trial_is_published_after_its_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0), blinding="codes")
    with far_away(url) as far:
        path = f"{far.base}/api/v1/trials/colours/publish"
        headers = {"Authorization": f"Bearer {far.secret}"}
        early = httpx.post(path, headers=headers)
        assert (early.status_code, "after its end" in early.json()["detail"]) == (422, True)
        visit, publish = Visit(far.base, far.secret), "/t/colours/publish"
        page = visit.get(publish).text
        assert "can be published after its end" in page
        assert "Publish it" not in page
        key = hidden(visit.get("/tokens").text, "/tokens")["key"]
        refused = visit.post(publish, {"key": key, "published": "yes"})
        assert (refused.status_code, "after its end" in refused.text) == (422, True)
        assert httpx.get(f"{far.base}/p/colours").status_code != 200
        trial.manage("stop", "enough")
        assert httpx.post(path, headers=headers).json() == {"published": True}
        assert httpx.get(f"{far.base}/p/colours").status_code == 200


def test_a_blinded_site_cannot_confirm_a_guessed_arm(url: str) -> None:
    """The assignment of one participant has as many candidate bodies as there are arms.
    The site compares the hash of each with the head, and sends it as a head that it
    knows; as a salt it tries every word that it has seen.
    """
    trial = create(
        url, strategy=bet_se(0.05, 1.0), blinding="codes", sites=["Leeds"], max_participants=5000
    )
    with far_away(url) as far:
        secret = far.token(SITE, trial="colours", site="Leeds")
        path = f"{far.base}/api/v1/trials/colours"
        with httpx.Client(headers={"Authorization": f"Bearer {secret}"}) as client:
            last = client.post(f"{path}/ask", json={}).headers["Discreet-Head"]
            confirmed = list[int]()
            words = set[str]()
            for number in range(2, 12):
                answer = client.post(f"{path}/ask", json={})
                head = answer.headers["Discreet-Head"]
                words |= set(re.findall("[0-9a-f]{16,}", f"{answer.text} {head}"))
                (seq, _), previous = head.split(":"), last.split(":")[1]
                for arm in range(len(ARMS)):
                    body = {"arms": [arm], "first": number, "site": "Leeds"}
                    salted = [body, *({**body, "salt": word} for word in words)]
                    guesses = [
                        f"{seq}:{chain_hash(previous, int(seq), 'assigned', canonical(one))}"
                        for one in salted
                    ]
                    assert client.get(path, headers={"Discreet-Head": head}).status_code == 200
                    known = client.get(path, headers={"Discreet-Head": guesses[0]})
                    confirmed += [arm] * (head in guesses or known.status_code == 200)
                last = head
            assert confirmed == []
    assert trial.verify().intact


def test_a_blinded_site_sees_no_trace_of_actions_on_arms(url: str) -> None:
    """Neither the pages nor the API tell a site that an arm was dropped or added, and
    no answer depends on whether a participant has that arm.
    """
    trial = create(
        url, strategy=bet_se(0.05, 1.0), blinding="codes", sites=["Leeds"], max_participants=5000
    )
    ids = [one.id for one in trial.ask(40, site="Leeds").assignments]
    while batch := trial.ask(50, site="Leeds").assignments:
        ids += [one.id for one in batch]
    arms = {f"{number}": arm for number, arm in enumerate(dealt(trial), start=1)}
    trial.manage("drop-arm", "harm", ARMS[0])
    trial.manage("add-arm", "new", "pink")
    with far_away(url) as far:
        secret = far.token(SITE, trial="colours", site="Leeds")
        visit = Visit(far.base, secret)
        pages = visit.get("/t/colours").text + visit.get("/t/colours/site").text
        words = (*ARMS, "pink", "dropped", "harm")
        assert not [word for word in words if re.search(rf"\b{word}\b", pages)]
        path = f"{far.base}/api/v1/trials/colours"
        with httpx.Client(headers={"Authorization": f"Bearer {secret}"}) as client:
            waiting, amended = dict[str, int](), dict[str, int]()
            before = client.get(path).json()["waiting"]
            for id in ids[:-1]:
                client.post(f"{path}/tell", json={"outcomes": {id: 1}})
                after = client.get(path).json()["waiting"]
                number = id.partition("-")[0]
                waiting[number], before = before - after, after
                amend = client.post(f"{path}/amend", json={"id": id, "outcome": 0})
                amended[number] = amend.status_code
            asked = client.post(f"{path}/ask", json={}).json()
            assert asked["waiting"] == before
    assert set(waiting.values()) == {1}
    assert set(amended.values()) == {200}
    assert {arms[number] for number in amended} == {0, 1, 2}
    assert trial.verify().intact


@pytest.mark.parametrize("salt", [None, "", "0" * 31, "0" * 33, "G" * 32, 7, "the first"])
def test_every_event_needs_a_salt_of_its_own(tmp_path: Path, salt: object) -> None:
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.05, 1.0))
    trial.ask(3)
    transcript = trial.transcript()
    assert verify_transcript(rechained(transcript)).intact
    for event in transcript["events"][1:]:
        other = {**transcript, "events": [dict(one) for one in transcript["events"]]}
        changed = other["events"][event["seq"] - 1]
        if salt is None:
            del changed["salt"]
        else:
            changed["salt"] = transcript["events"][0]["salt"] if salt == "the first" else salt
        found = verify_transcript(rechained(other))
        assert found.problems[0].startswith(f"event {event['seq']}:")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"deadline": 3600.0, "enrolment": "continuous"},
        {"deadline": 3600.0, "enrolment": "continuous", "trust": "local"},
        {"strategy": adap_tt_star(epsilon=50.0, delta=0.1)},
    ],
)
@pytest.mark.parametrize("drop", [0, 2])
def test_a_release_waits_for_all_participants_of_its_round(
    settings: dict[str, Any], drop: int, url: str
) -> None:
    """Whichever arms were dropped or eliminated, no outcome of a released round is
    missing, and an observer agrees on how many are awaited.
    """
    settings = dict(settings)
    usual = bet_se(0.1, 4.0, trust=settings.pop("trust", "global"))
    strategy = settings.setdefault("strategy", usual)
    trial = create(url, blinding="codes", max_participants=20_000, **settings)
    draw, ids, releases = random.Random(drop), list[str](), set[int]()
    for step in range(60):
        ids += [one.id for one in trial.ask(draw.randint(20, 200)).assignments]
        draw.shuffle(ids)
        tell_some(trial, ids, draw)
        if step == drop and strategy.name == "bet-se":
            trial.manage("drop-arm", "harm", ARMS[0])
        assert_no_open_participant_in_a_released_round(trial)
        assert verify_transcript(trial.transcript()).intact
        releases.add(trial.status().releases)
        if trial.status().stopped:
            break
    assert len(releases) > 2
    assert trial.verify().intact


def tell_some(trial: Trial, ids: list[str], draw: random.Random) -> None:
    """Record outcomes for which the last arm is the best."""
    arms, local = dealt(trial), trial.protocol.strategy.trust_model.randomised
    some = dict[str, float]()
    for _ in range(draw.randint(1, len(ids))):
        id = ids.pop()
        some[id] = float(draw.random() < (0.1, 0.5, 0.8)[arms[int(id.partition("-")[0]) - 1]])
    if local:
        trial.answer_many({id: respond(outcome, 4.0) for id, outcome in some.items()})
    else:
        trial.tell_many(some)


def assert_no_open_participant_in_a_released_round(trial: Trial) -> None:
    """Compare the open assignments with the releases that the record tells."""
    waiting, number, rounds = set[int](), 0, list[int]()
    last, first_after = 0, 0
    for event in trial.transcript()["events"]:
        if event["kind"] == "opened":
            last = event["round"]
        elif event["kind"] == "assigned":
            rounds += [last] * len(event["arms"])
        elif event["kind"] == "released":
            number = max(round for round, _ in event["keys"])
            first_after = len(rounds)
    waiting = {int(one.id.partition("-")[0]) for one in trial.open_assignments()}
    if trial.protocol.randomisation == "simple":
        assert all(rounds[one - 1] > number for one in waiting)
    else:
        assert all(one > first_after for one in waiting)
