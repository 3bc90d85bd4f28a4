"""Invitations and a participant's answer, over HTTP: one link for one answer, and what
is said when it is does not work.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se, ctb_tt, gauss_tt, respond, verify_transcript
from discreet.errors import InvalidInputError
from discreet.service import state
from discreet.service.auth import Principal, SecretKind
from discreet.service.state import AppState, integrity, invite, link_path, script_for, script_hash
from discreet.strategies.strategy import Strategy
from discreet.trials.mechanisms import find_noise_scale
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, SITE
from tests.support.served import behind

LOCAL = ctb_tt(1.0, 0.1)
STAFF = Principal(Token(1, "op", MANAGER, None, None, None, 0.0, "test", None, None, None))


@pytest.fixture
def home(tmp_path: Path) -> AppState:
    return AppState(f"sqlite:///{tmp_path}/service.db")


@pytest.fixture
def base(home: AppState) -> Iterator[str]:
    with behind(home) as address:
        yield address


def start(home: AppState, strategy: Strategy = LOCAL, **settings: Any) -> Trial:
    usual: dict[str, Any] = {"max_participants": 100, "script": script_for(strategy)}
    return Trial.create(home.url, "habits", ["letter", "call"], strategy, **usual | settings)


def invited(home: AppState, id: str, days: float = 7.0) -> str:
    return invite(home, STAFF, "habits", id, days)[0]


def call(base: str, what: str, secret: str, body: Any = None, key: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {secret}"}
    if key:
        headers["Idempotency-Key"] = key
    return httpx.post(f"{base}/a/{what}", headers=headers, json=body, verify=False)


def answer(base: str, secret: str, word: str, key: str = "") -> Any:
    found = call(base, "answer", secret, {"response": word}, key)
    assert found.status_code == 200, found.text
    return found.json()


def test_the_question_has_all_that_randomising_needs(home: AppState, base: str) -> None:
    trial = start(home, bet_se(0.1, 2.0, trust="local", outcomes="numbers"), range=(0, 10))
    batch = trial.ask(1)
    found = call(base, "question", invited(home, batch.assignments[0].id)).json()
    numbers = {name: found[name] for name in ("epsilon", "low", "high", "middle_level", "gamma")}
    assert numbers == {"epsilon": 2.0, "low": 0.0, "high": 10.0, "middle_level": 0.5, "gamma": None}
    assert found["middle_level"] == batch.middle_level
    assert found["fraction"] == ["2", "1"]
    assert (found["state"], found["participant"], found["published"]) == ("open", 1, False)
    assert found["script"] == script_hash() == trial.protocol.script


def test_the_noise_of_gaussian_answers_is_the_mechanism_s_own(home: AppState, base: str) -> None:
    trial = start(home, gauss_tt(1.0, 1e-5, 0.1))
    found = call(base, "question", invited(home, trial.ask().assignments[0].id)).json()
    assert found["noise"] == find_noise_scale(1.0, 1e-5)


def test_a_receipt_is_found_in_the_transcript(home: AppState, base: str) -> None:
    trial = start(home)
    first, second = (invited(home, one.id) for one in trial.ask(2).assignments)
    early = answer(base, second, "rr/1.0/1")
    assert early["taken"] is True
    assert early["event"] is None
    receipt = answer(base, first, "rr/1.0/0")
    later = call(base, "question", second).json()
    assert later["state"] == "answered"
    transcript = trial.transcript()
    assert verify_transcript(transcript).intact
    for number, seq, value in ((1, receipt["event"], 0), (2, later["event"], 1)):
        event = transcript["events"][seq[0] - 1]
        assert (event["seq"], event["hash"]) == tuple(seq)
        assert [number, value] in event["answers"]
    assert receipt["head"] == trial.status().head


def test_an_event_is_of_this_person_and_of_no_other(home: AppState, base: str) -> None:
    """Person 1 is not found in the answers of persons 11 or 21."""
    trial = start(home)
    ids = [one.id for one in trial.ask(21).assignments]
    for id in ids:
        trial.answer(id, respond(1.0, 1.0))
    events = trial.transcript()["events"]
    for number, id in enumerate(ids, start=1):
        event = trial.as_user("a test").participant_view(id).event
        assert event is not None
        assert [one for one, _ in events[event[0] - 1]["answers"]] == [number]


def test_sums_are_not_said_to_be_answers(home: AppState, base: str) -> None:
    trial = start(home, bet_se(0.1, 1.0, trust="local"))
    found = answer(base, invited(home, trial.ask().assignments[0].id), "rr/1.0/1")
    assert (found["taken"], found["published"], found["event"]) == (True, False, None)


def test_a_link_is_for_one_answer(home: AppState, base: str) -> None:
    trial = start(home)
    mine, other = trial.ask(2).assignments
    secret = invited(home, mine.id)
    assert answer(base, secret, "rr/1.0/0", "k")["taken"] is True
    assert answer(base, secret, "rr/1.0/0", "k")["taken"] is True, "the same, asked again"
    assert answer(base, secret, "rr/1.0/1", "other")["taken"] is False
    taken = [one for one in trial.transcript()["events"] if one["kind"] == "answered"]
    assert taken[0]["answers"] == [[1, 0]]
    elsewhere = httpx.post(
        f"{base}/api/v1/trials/habits/answer",
        headers={"Authorization": f"Bearer {secret}"},
        json={"answers": {other.id: "rr/1.0/1"}},
        verify=False,
    )
    assert elsewhere.status_code == 401
    assert trial.as_user("a test").participant_view(other.id).state == "open"


def test_a_new_id_makes_the_link_useless(home: AppState, base: str) -> None:
    trial = start(home)
    id = trial.ask().assignments[0].id
    secret = invited(home, id)
    trial.reissue(id)
    for found in (call(base, "question", secret), call(base, "answer", secret, {"response": "x"})):
        assert found.status_code in (404, 422)
    assert "does not work" in call(base, "question", secret).json()["detail"]
    told = call(base, "answer", secret, {"response": "rr/1.0/1"})
    assert "does not work" in told.json()["detail"]


PREFIX = SecretKind.INVITATION.prefix


@pytest.mark.parametrize("secret", ["x", PREFIX, PREFIX + "A" * 43, PREFIX + "é" * 43, "é"])
def test_a_wrong_link_is_of_no_use(base: str, home: AppState, secret: str) -> None:
    start(home)
    header = {b"Authorization": f"Bearer {secret}".encode()}
    found = httpx.post(f"{base}/a/question", headers=header, verify=False)
    assert found.status_code == 401
    assert "does not work" in found.json()["detail"]


def test_staff_do_not_answer_here(home: AppState, base: str) -> None:
    start(home)
    for role, site in ((MANAGER, None), (SITE, "Leeds"), ("monitor", None)):
        secret = home.tokens.make("x", role, "test", "habits", site)[0]
        assert call(base, "question", secret).status_code == 401
        assert call(base, "answer", secret, {"response": "rr/1.0/1"}).status_code == 401


def test_an_expired_or_revoked_link_is_of_no_use(home: AppState, base: str) -> None:
    trial = start(home)
    id = trial.ask().assignments[0].id
    secret, token = invite(home, STAFF, "habits", id, 1.0)
    home.tokens.revoke(token.number, "a test")
    assert call(base, "question", secret).status_code == 401
    brief = invited(home, id, 1e-9)
    assert call(base, "question", brief).status_code == 401


def test_a_link_logs_nobody_in(home: AppState, base: str) -> None:
    trial = start(home)
    secret = invited(home, trial.ask().assignments[0].id)
    found = httpx.post(f"{base}/login", data={"secret": secret, "to": "/"}, verify=False)
    assert found.status_code == 403
    for path in ("", "/protocol", "/transcript"):
        url = f"{base}/api/v1/trials/habits{path}"
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(url, headers=headers, verify=False).status_code == 401


@pytest.mark.parametrize(
    "sent", ["1", "0.0", "rr/2.0/1", "rr/1.0/2", "gauss/1.0/0.1/5", "rr/1.0/1@0.0:2.0:max", ""]
)
def test_what_was_not_randomised_as_the_protocol_says_is_refused(
    home: AppState, base: str, sent: str
) -> None:
    trial = start(home)
    id = trial.ask().assignments[0].id
    found = call(base, "answer", invited(home, id), {"response": sent})
    assert found.status_code == 422
    assert trial.as_user("a test").participant_view(id).state == "open"


def test_bodies_that_are_no_answer_are_refused(home: AppState, base: str) -> None:
    trial = start(home)
    secret = invited(home, trial.ask().assignments[0].id)
    wrong: list[Any] = [None, [], {"response": 1}, {"response": "rr/1.0/1", "outcome": 1}]
    for body in wrong:
        assert call(base, "answer", secret, body).status_code == 400


def test_nothing_is_asked_after_the_end(home: AppState, base: str) -> None:
    trial = start(home)
    id = trial.ask().assignments[0].id
    secret = invited(home, id)
    trial.manage("stop", "no money")
    assert call(base, "question", secret).json()["state"] == "ended"
    with pytest.raises(InvalidInputError, match="nobody was invited"):
        invited(home, id)


def test_raw_outcomes_need_no_invitation(home: AppState) -> None:
    trial = start(home, bet_se(0.1, 1.0))
    with pytest.raises(InvalidInputError, match="local trust"):
        invited(home, trial.ask().assignments[0].id)


def test_another_script_than_the_protocol_names_is_not_used(
    home: AppState, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = start(home, script="0" * 64)
    found = call(base, "question", invited(home, trial.ask().assignments[0].id))
    assert found.status_code == 422
    assert found.json()["detail"] == state.OTHER


def test_the_page_names_the_script_that_is_served(base: str) -> None:
    page = httpx.get(f"{base}/a", verify=False).text
    served = httpx.get(f"{base}/static/respond.js", verify=False).content
    assert served == state.RESPOND.read_bytes()
    assert script_hash() in page
    assert f'src="/static/respond.js" integrity="{integrity(script_hash())}"' in page
    assert not re.search(rb"^import|import\(|from \"", served, re.MULTILINE), "all is in the hash"


def test_a_trial_made_by_the_api_names_the_script(home: AppState, base: str) -> None:
    headers = {"Authorization": f"Bearer {home.tokens.make('op', MANAGER, 'test')[0]}"}
    for name, strategy, script in (
        ("local", {"name": "ctb-tt", "epsilon": 1, "delta": 0.1}, script_hash()),
        ("central", {"name": "bet-se", "epsilon": 1, "delta": 0.1}, None),
    ):
        said = {"name": name, "arms": ["a", "b"], "max_participants": 50, "strategy": strategy}
        url = f"{base}/api/v1/trials"
        assert httpx.post(url, headers=headers, json=said, verify=False).status_code == 200
        assert home.trial(name).protocol.script == script


def test_an_invitation_by_the_api(home: AppState, base: str) -> None:
    trial = start(home, sites=["Leeds", "Lyon"])
    id = trial.ask(site="Leeds").assignments[0].id
    url = f"{base}/api/v1/trials/habits/invite"

    def ask(site: str) -> httpx.Response:
        secret = home.tokens.make(site, SITE, "test", "habits", site)[0]
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.post(url, headers=headers, json={"id": id}, verify=False)

    assert ask("Lyon").status_code == 422
    found = ask("Leeds").json()
    secret = found["link"].partition("#")[2]
    assert found["link"] == link_path(secret)
    assert found["token"]["role"] == "participant"
    assert answer(base, secret, "rr/1.0/1")["taken"] is True


def test_questions_and_hashes_that_cannot_stand_in_a_protocol(home: AppState) -> None:
    for wrong in ("x" * 501, " ", "a\nb", " a"):
        with pytest.raises(InvalidInputError, match="question"):
            start(home, question=wrong)
    for hash in ("", "0" * 63, "G" * 64, 5):
        with pytest.raises(InvalidInputError, match="script must be"):
            start(home, script=hash)
