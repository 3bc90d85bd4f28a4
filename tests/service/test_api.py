"""The API in front of a store."""

import asyncio
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import msgspec
import pytest

from discreet import Trial, bet_se
from discreet.service import auth
from discreet.service.auth import Principal
from discreet.service.endpoints import ENDPOINTS, PREFIX
from discreet.service.limits import MOST_BYTES
from discreet.service.middleware import POLICY, REPORT_POLICY
from discreet.trials.names import quote_name, unquote_name
from discreet.trials.status import AskResult
from discreet.trials.verbs import ASK, AskBody
from tests.support.clock import Clock
from tests.support.service import Service, serving

ODD = [
    "<script>alert(1)</script>",
    "'; DROP TABLE discreet_trials; --",
    "=HYPERLINK(A1)",
    "💊 dose",
    "a/b/c",
    "/",
    "..",
    ".",
    "=..",
    "==.",
    "...",
    "%2F",
    "%",
    "%00",
    "a?b#c&d=e",
    "a\\b",
    " spaced ",
    "status",
    "{name}",
    "+",
    "ß\u0301",
]
"""Names that trials may have."""


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    with serving(url) as made:
        yield made


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{service.base_url}/api/v1", headers=service.headers) as made:
        yield made


def new_trial(client: httpx.Client, name: str = "dose", **more: Any) -> Any:
    strategy = {"name": "bet-se", "delta": 0.1, "epsilon": 1.0}
    said = {"name": name, "arms": ["5 mg", "10 mg"], "max_participants": 500, "strategy": strategy}
    answer = client.post("/trials", json={**said, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_who_starts_a_trial_is_told_what_the_library_would_warn_of(client: httpx.Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = new_trial(client, range=[0, 10])
        assert new_trial(client, "plain")["warnings"] == []
    (warned,) = made["warnings"]
    assert warned["kind"] == "RoundedWarning"
    assert 'bet_se(…, outcomes="numbers")' in warned["words"]
    assert "warnings" not in client.get("/trials/dose").json()


def test_an_operator_is_known_and_nobody_else(service: Service) -> None:
    with httpx.Client(base_url=service.base_url) as client:
        refused = client.get("/api/v1/trials")
        answer = client.get("/api/v1/trials", headers=service.headers)
        wrong = client.get("/api/v1/trials", headers={"Authorization": "Bearer discreet_x"})
    assert (answer.status_code, answer.json()) == (200, [])
    assert refused.status_code == wrong.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["content-type"] == "application/problem+json"


def test_a_trial_from_creation_to_its_record(client: httpx.Client, service: Service) -> None:
    assert new_trial(client)["name"] == "dose"
    asked = client.post("/trials/dose/ask", json={"n": 3}, headers={"Idempotency-Key": "a"})
    again = client.post("/trials/dose/ask", json={"n": 3}, headers={"Idempotency-Key": "a"})
    assert asked.json() == again.json()
    ids = [one["id"] for one in asked.json()["assignments"]]
    assert len(ids) == 3
    told = client.post("/trials/dose/tell", json={"outcomes": dict.fromkeys(ids[:2], 1.0)})
    assert told.json() == {"new": 2, "already_told": [], "late": []}
    assert client.post("/trials/dose/amend", json={"id": ids[0], "outcome": 0}).json()["done"]
    assert client.post("/trials/dose/tell", json={"outcomes": {ids[2]: None}}).json()["new"] == 1
    status = client.get("/trials/dose").json()
    with closing(Trial.open(service.home.url, "dose")) as trial:
        assert status == trial.status().to_dict()
    assert client.get("/trials/dose/verify").json()["intact"]
    assert client.get("/trials/dose/transcript").json()["status"]["participants"] == 3
    calls = [one["action"] for one in client.get("/trials/dose/audit-trail").json()]
    assert {"ask", "tell", "amend"} <= set(calls)
    assert client.get("/trials").json()[0]["participants"] == 3


@pytest.mark.parametrize("name", ODD)
def test_every_name_has_its_place_in_a_path(name: str) -> None:
    part = quote_name(name)
    assert unquote_name(part) == name
    assert "/" not in part
    assert part not in (".", "..")


@pytest.mark.slow
def test_a_trial_of_any_name_is_reached_at_every_endpoint(
    client: httpx.Client, service: Service
) -> None:
    for name in ODD:
        Trial.create(
            service.home.url, name, ["a", "b"], bet_se(0.1, 1.0), max_participants=50, user="a test"
        ).close()
    listed = [one["name"] for one in client.get("/trials").json()]
    kept = [Trial.open(service.home.url, name).protocol.name for name in ODD]
    assert sorted(kept) == sorted(listed)
    reads = [row.path for row in ENDPOINTS if row.method == "GET" and "{name}" in row.path]
    reads.remove("/trials/{name}/events")
    reads.remove("/trials/{name}/report")
    assert len(reads) >= 5
    for name in kept:
        for path in reads:
            answer = client.get(path.replace("{name}", quote_name(name)))
            assert answer.status_code == 200, (name, path, answer.text)
        assert client.get(f"/trials/{quote_name(name)}").json()["name"] == name
        asked = client.post(f"/trials/{quote_name(name)}/ask", json={"n": 1})
        assert len(asked.json()["assignments"]) == 1, name


def test_what_is_no_text_is_no_name(client: httpx.Client) -> None:
    assert client.get("/trials/%ff%fe").status_code == 404
    assert client.get("/trials/nothing").status_code == 404
    assert client.get("/nothing").json()["status"] == 404
    wrong = client.request("PUT", "/trials")
    assert (wrong.status_code, wrong.json()["status"]) == (405, 405)
    assert "GET" in wrong.headers["allow"]


def test_what_cannot_be_read_is_refused(client: httpx.Client) -> None:
    new_trial(client)
    path = "/trials/dose/tell"
    deep = b'{"outcomes":' * 100_000
    nested = b'{"outcomes": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    for body in (b"", b"{", b"[]", b"\xff", deep, nested, b'{"outcomes": {"a": "yes"}}'):
        assert client.post(path, content=body).status_code == 400, body[:20]
    more = client.post(path, json={"outcomes": {}, "why": 1})
    assert more.status_code == 400
    strategy = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    deep = b'{"name":"x","arms":["a","b"],"max_participants":9,"strategy":%s}' % strategy
    assert client.post("/trials", content=deep).status_code == 400
    assert client.post(path, content=b" " * (MOST_BYTES + 1)).status_code == 413
    assert client.post(path, json={"outcomes": {"x": 1}}).status_code == 422
    long = {"Idempotency-Key": "a" * 201}
    assert client.post(path, json={"outcomes": {}}, headers=long).status_code == 422


def test_no_form_is_larger_than_that(client: httpx.Client, service: Service) -> None:
    """Of whoever has no token, too; and a form that cannot be read is said to be so."""
    address = f"{service.base_url}/login"
    many = b"&".join(b"f%d=1" % number for number in range(1001))
    kinds = {"Content-Type": "application/x-www-form-urlencoded"}
    large = b"&".join(b"f%d=%s" % (number, b"x" * 3000) for number in range(900))
    for body, status in ((large, 413), (many, 400), (b"\xff=%ff", 403)):
        answer = client.post(address, content=body, headers=kinds)
        assert answer.status_code == status, answer.text
    broken = {"Content-Type": "multipart/form-data"}
    assert client.post(address, content=b"--", headers=broken).status_code == 400


def test_names_that_rewrite_a_screen_are_refused(client: httpx.Client, service: Service) -> None:
    strategy = {"name": "bet-se", "delta": 0.1, "epsilon": 1}
    good = {
        "name": "x",
        "arms": ["a", "b"],
        "max_participants": 9,
        "strategy": strategy,
        "sites": ["c"],
    }
    bad = "dose\x1b[2J\u202e\x07"
    for part in ({"name": bad}, {"arms": [bad, "b"]}, {"sites": [bad]}):
        answer = client.post("/trials", json={**good, **part})
        assert answer.status_code == 422, answer.text
        assert not set("\x1b\u202e\x07") & set(answer.text)
    answer = client.post("/tokens", json={"name": bad, "role": "monitor"})
    assert answer.status_code == 422
    assert client.get(f"/trials/{quote_name(bad)}").status_code == 404
    assert not set("\x1b\u202e\x07") & set(client.get(f"/trials/{quote_name(bad)}").text)


def test_a_clock_that_jumps(
    client: httpx.Client, service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forth, a token is over. Back, nothing is done until a manager says that the
    clock is right; meanwhile what anyone may see is seen.
    """
    monkeypatch.setattr(auth, "REMEMBERED", -1.0)
    monkeypatch.setattr(service.home.token_table, "now", lambda: clock.now)
    new_trial(client)
    secret = service.token("monitor", days=1)
    monitor = {"Authorization": f"Bearer {secret}"}
    assert client.get("/trials/dose", headers=monitor).status_code == 200
    assert client.post("/trials/dose/ask", json={"site": "Leeds"}).status_code == 200
    clock.now += 2 * 86_400
    assert client.get("/trials/dose", headers=monitor).status_code == 401
    assert client.post("/trials/dose/ask", json={"site": "Leeds"}).status_code == 200
    clock.now -= 86_400
    refused = client.post("/trials/dose/ask", json={"site": "Leeds"})
    assert refused.status_code == 503
    assert "set-clock" in refused.json()["detail"]
    assert client.get("/trials/dose").json()["participants"] == 2
    said = {"action": "set-clock", "reason": "the clock was wrong"}
    assert client.post("/trials/dose/manage", json=said).status_code == 200
    assert client.post("/trials/dose/ask", json={"site": "Leeds"}).status_code == 200
    assert client.get("/trials/dose/verify").json()["intact"]


def test_no_refusal_repeats_an_outcome(client: httpx.Client) -> None:
    new_trial(client)
    for body in (
        {"outcomes": {"x": 0.73512}},
        {"outcomes": {"x": "0.73512"}},
        {"outcomes": 0.73512},
        {"0.73512": 1},
        {"x`73512` 73512": 1},
    ):
        answer = client.post("/trials/dose/tell", json=body)
        assert answer.status_code in (400, 422)
        assert "73512" not in answer.text


def test_every_answer_has_its_headers(client: httpx.Client, service: Service) -> None:
    new_trial(client)
    plain = service.base_url
    for address in ("/healthz", "/nothing", f"{PREFIX}/trials", "/api/docs", "/login", "/metrics"):
        headers = client.get(f"{plain}{address}").headers
        assert headers["x-content-type-options"] == "nosniff", address
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["x-request-id"]
        assert "server" not in headers
        assert "strict-transport-security" not in headers
        wanted = REPORT_POLICY if address == "/api/docs" else POLICY
        assert headers.get_list("content-security-policy") == [wanted], address
    report = client.get("/trials/dose/report")
    assert report.headers["content-security-policy"] == REPORT_POLICY
    assert "unsafe-inline" not in POLICY


def test_a_site_reaches_its_own_trial_alone(client: httpx.Client, service: Service) -> None:
    new_trial(client, sites=["Leeds", "Lyon"])
    new_trial(client, "other")
    leeds = {"Authorization": f"Bearer {service.token('site', trial='dose', site='Leeds')}"}
    lyon = {"Authorization": f"Bearer {service.token('site', trial='dose', site='Lyon')}"}
    asked = client.post("/trials/dose/ask", json={"n": 1}, headers=leeds)
    (one,) = asked.json()["assignments"]
    told = {"outcomes": {one["id"]: 1}}
    assert client.post("/trials/dose/tell", json=told, headers=lyon).status_code == 422
    assert client.post("/trials/dose/tell", json=told, headers=leeds).json()["new"] == 1
    assert client.get("/trials/other", headers=leeds).status_code == 403
    assert client.get("/trials/nothing", headers=leeds).status_code == 403
    assert client.get("/trials/dose/audit-trail", headers=leeds).status_code == 403
    assert [one["name"] for one in client.get("/trials", headers=leeds).json()] == ["dose"]


def test_what_is_published_needs_no_token(client: httpx.Client, service: Service) -> None:
    new_trial(client)
    with httpx.Client(base_url=f"{service.base_url}/api/v1") as anyone:
        assert anyone.get("/trials/dose").status_code == 401
        assert client.post("/trials/dose/publish").json() == {"published": True}
        assert anyone.get("/trials/dose").status_code == 200
        assert anyone.get("/trials/dose/transcript").status_code == 200
        assert anyone.post("/trials/dose/ask", json={}).status_code == 401
        client.post("/trials/dose/unpublish")
        assert anyone.get("/trials/dose").status_code == 401


def test_a_status_is_computed_once_for_all_who_ask(
    client: httpx.Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_trial(client)
    computed = list[str]()
    status = Trial.status

    def counted(trial: Trial) -> Any:
        computed.append(trial.protocol.name)
        return status(trial)

    monkeypatch.setattr(Trial, "status", counted)
    monkeypatch.setattr(service.home._seen, "_seconds", None)
    service.home.changed("dose")
    for _ in range(20):
        client.get("/trials/dose")
    assert len(computed) == 1
    before = client.get("/trials/dose").json()
    client.post("/trials/dose/ask", json={"n": 1})
    after = client.get("/trials/dose").json()
    assert after["participants"] == before["participants"] + 1


def test_an_unexpected_error_is_logged_without_its_words(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    new_trial(client)

    def fail(_: Trial) -> Any:
        raise RuntimeError("the outcome was 0.73512")

    monkeypatch.setattr(Trial, "transcript", fail)
    with caplog.at_level("INFO", "discreet.service"):
        answer = client.get("/trials/dose/transcript")
    assert answer.status_code == 500
    assert "73512" not in answer.text
    (found,) = [one.__dict__["about"] for one in caplog.records if one.levelname == "ERROR"]
    assert found["error"] == "RuntimeError"
    assert found["request"] == answer.headers["x-request-id"]
    assert any("test_api.py" in line and line.endswith(" fail") for line in found["at"])
    assert "73512" not in repr([one.__dict__.get("about") for one in caplog.records])


def test_what_is_read_is_what_was_written(client: httpx.Client) -> None:
    """Every number of a status is the one the library gives, to the last bit."""
    text = client.post(
        "/trials",
        content=msgspec.json.encode(
            {
                "name": "x",
                "arms": ["a", "b"],
                "max_participants": 10,
                "strategy": {"name": "bet-se", "delta": 0.1, "epsilon": 0.1 + 0.2},
            }
        ),
    )
    assert text.json()["epsilon"] == 0.1 + 0.2


def test_an_event_loop_runs_tasks_without_threads_that_wait(service: Service) -> None:
    Trial.create(service.home.url, "dose", ["a", "b"], bet_se(0.1, 1.0), 500).close()
    trial = service.home.trial("dose")
    before = threading.active_count()

    async def ask() -> list[AskResult]:
        answers = asyncio.gather(
            *[trial.call(ASK, AskBody(), None, Principal()) for _ in range(20)]
        )
        await asyncio.sleep(0)
        assert threading.active_count() <= before + 1
        return await answers

    ids = {one.id for batch in asyncio.run(ask()) for one in batch.assignments}
    assert len(ids) == 20
    assert trial.verify().intact
