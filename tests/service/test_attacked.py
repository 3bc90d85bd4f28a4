"""Attacks on the service that worked when they were tried: each test repeats one."""

import json
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import httpx
import pytest

from discreet import Trial, adap_tt_star, bet_se, verify_transcript
from discreet.errors import InvalidInputError
from discreet.service.endpoints import ENDPOINTS, PREFIX
from discreet.service.limits import MOST_BYTES, LimitConfig
from discreet.service.pages.base import LOGIN_COOKIE, MAX_FORM_BYTES, MAX_LONG_FORM_BYTES
from discreet.service.server import ServerConfig, welcome
from discreet.service.state import AppState
from discreet.strategies.strategy import Strategy
from discreet.trials import transcript
from discreet.trials.protocol import canonical, digest
from discreet.trials.store import schema
from discreet.trials.verbs import MANAGER, MONITOR, SITE
from tests.support.forge import rechained
from tests.support.remote import far_away
from tests.support.served import Visit, behind, hidden
from tests.support.stores import ARMS, OUTCOME, UNITS, count, create, dealt

MARKS = "\u0300" * 200_000 + "\u0316" * 200_000
"""A run of combining marks in the wrong order."""
MANY = 20
"""Participants whose outcomes are recorded, or who are invited, one after the other."""


def bearer(secret: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": f"Bearer {secret}"}


def blinded_trial(path: Path, trust: str = "global") -> tuple[str, Trial, list[str], list[int]]:
    """Create a blinded trial with a full round, and drop an arm. Return the address,
    the trial, and the ids and arms of its participants.
    """
    url = f"sqlite:///{path}/t.db"
    strategy = bet_se(0.05, 1.0, trust=trust)
    trial = create(url, strategy=strategy, blinding="codes", sites=["Leeds"], max_participants=5000)
    ids = list[str]()
    while batch := trial.ask(50, site="Leeds").assignments:
        ids += [one.id for one in batch]
    trial.manage("drop-arm", "harm", ARMS[0])
    return url, trial, ids, dealt(trial)


def test_a_blinded_site_sees_the_same_changes_for_each_arm(tmp_path: Path) -> None:
    """The short text by which a page notices changes, and the list of trials, change
    alike whether an outcome is of a participant of a dropped arm or of another one.
    """
    url, _, ids, arms = blinded_trial(tmp_path)
    with far_away(url) as far:
        secret = far.token(SITE, trial="colours", site="Leeds")
        visit, path = Visit(far.base, secret), f"{far.base}/api/v1/trials/colours/tell"
        headers = bearer(secret)

        def look() -> tuple[int, list[str]]:
            waiting = int(visit.get("/t/colours/head").text.split()[2])
            return waiting, re.findall(r"[^<>]*outcomes?\b[^<>]*", visit.get("/").text)

        changes, (waiting, words) = dict[int, set[tuple[int, bool]]](), look()
        for id, arm in list(zip(ids, arms, strict=True))[:MANY]:
            httpx.post(path, json={"outcomes": {id: 1}}, headers=headers)
            before, (waiting, new_words) = waiting, look()
            changes.setdefault(arm, set()).add((before - waiting, new_words != words))
            words = new_words
    assert set(changes) == {0, 1, 2}
    assert changes[0] == changes[1] == changes[2]


def test_a_blinded_site_can_invite_participants_of_each_arm(tmp_path: Path) -> None:
    """Under local trust an invitation is answered alike whether the participant's arm
    was dropped or not, and the participant is asked the same.
    """
    url, _, ids, arms = blinded_trial(tmp_path, "local")
    with far_away(url) as far:
        secret = far.token(SITE, trial="colours", site="Leeds")
        path, headers = f"{far.base}/api/v1/trials/colours/invite", bearer(secret)
        answers = dict[int, set[tuple[int, str]]]()
        for id, arm in list(zip(ids, arms, strict=True))[:MANY]:
            answer = httpx.post(path, json={"id": id}, headers=headers)
            link = answer.json().get("link", "#refused").rpartition("#")[2]
            asked = httpx.post(f"{far.base}/a/question", headers=bearer(link))
            state = asked.json().get("state", "refused")
            answers.setdefault(arm, set()).add((answer.status_code, state))
    assert answers == {arm: {(200, "open")} for arm in range(3)}


def test_a_release_does_not_single_out_a_dropped_arm(tmp_path: Path) -> None:
    """When a round of a blinded trial has been released, the participants whose
    outcomes are still missing are not exactly those of the arm that was dropped.
    """
    url, trial, ids, arms = blinded_trial(tmp_path)
    with far_away(url) as far:
        secret = far.token(SITE, trial="colours", site="Leeds")
        path, headers = f"{far.base}/api/v1/trials/colours", bearer(secret)
        for id, arm in zip(ids, arms, strict=True):
            if arm != 0:
                httpx.post(f"{path}/tell", json={"outcomes": {id: 1}}, headers=headers)
        was_released = httpx.get(path, headers=headers).json()["releases"] > 0
        rows = httpx.post(f"{path}/list-open", json={}, headers=headers).json()
    waiting = {arms[int(row["id"].partition("-")[0]) - 1] for row in rows}
    assert not (was_released and waiting == {0})
    assert trial.verify().intact


def test_slow_bodies_of_strangers_do_not_keep_others_out(tmp_path: Path) -> None:
    """Somebody without a token opens as many requests to log in as the service serves
    at once, and sends their bodies slowly. The service goes on answering.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url)
    home = AppState(url, limit_config=LimitConfig(calls=50))
    head = (
        b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\nsecret="
    )
    with behind(home) as base, ExitStack() as opened:
        port = int(base.rpartition(":")[2])
        for _ in range(home.limit_config.calls):
            slow = socket.create_connection(("127.0.0.1", port))
            opened.enter_context(slow)
            slow.sendall(head)
        time.sleep(1)
        for path in ("/healthz", "/readyz", "/login"):
            assert httpx.get(f"{base}{path}").status_code == 200
        headers = bearer(home.tokens.make("a monitor", MONITOR, "a test")[0])
        assert httpx.get(f"{base}/api/v1/trials", headers=headers).status_code == 200


def test_a_service_that_is_full_says_that_it_lives(tmp_path: Path) -> None:
    """Many addresses together can take all places. Whoever watches the service is
    answered all the same.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url)
    home = AppState(url, limit_config=LimitConfig(calls=0))
    with behind(home) as base:
        paths = ("/healthz", "/readyz", "/login")
        assert [httpx.get(f"{base}{path}").status_code for path in paths] == [200, 200, 503]


@pytest.mark.parametrize("path", ["/login", "/new"])
def test_a_form_of_separators_takes_no_longer_than_its_length_explains(
    path: str, tmp_path: Path
) -> None:
    """Somebody sends the largest body, of separators alone, to a form; a stranger to
    the login form.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    home = AppState(url)
    cookies = {LOGIN_COOKIE: home.tokens.log_in(home.tokens.make("a", MANAGER, "a test")[1])}
    with behind(home) as base:
        httpx.post(f"{base}{path}", content=b"&", headers=form, cookies=cookies)
        for length in (MOST_BYTES - 1, MAX_LONG_FORM_BYTES, MAX_FORM_BYTES):
            started = time.process_time()
            separators = b"&" * length
            answer = httpx.post(f"{base}{path}", content=separators, headers=form, cookies=cookies)
            assert time.process_time() - started < 0.1
            assert answer.status_code in (400, 413)


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("ask", {"participants": [f"{number}{MARKS[199_000:200_980]}" for number in range(490)]}),
        ("ask", {"site": MARKS}),
        ("unblind", {"id": "1-0123456789abcdef", "reason": MARKS}),
    ],
)
def test_texts_of_combining_marks_do_not_stop_the_service(
    call: str, body: dict[str, Any], tmp_path: Path
) -> None:
    """A site sends long runs of combining marks, which take quadratically long to
    normalise, as identifiers of participants, as its name, and as a reason.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url, returning="same-arm", sites=["Leeds"])
    home = AppState(url)
    secret = home.tokens.make("Leeds", SITE, "a test", trial="colours", site="Leeds")[0]
    content = json.dumps(body, ensure_ascii=False).encode()
    with behind(home) as base:
        path = f"{base}/api/v1/trials/colours"
        httpx.post(f"{path}/ask", json={"participant": "a"}, headers=bearer(secret))
        started = time.process_time()
        answer = httpx.post(f"{path}/{call}", content=content, headers=bearer(secret), timeout=60)
        assert answer.status_code in (400, 422)
        assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("path", "owner", "work"),
    [
        ("report", "discreet.service.endpoints", "trial_page"),
        ("verify", "discreet.trials.trial.Trial", "verify"),
        ("transcript", "discreet.trials.trial.Trial", "transcript"),
    ],
)
def test_what_is_published_is_computed_once_for_all_who_want_it(
    path: str, owner: str, work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers want the same of a published trial at the same moment. Each of them
    would keep a processor busy for a second if the record has ten thousand events.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0))
    trial.ask(10)
    done = list[float]()
    usual = resolve_name(f"{owner}.{work}")

    def counted(*about: Any) -> Any:
        done.append(time.monotonic())
        time.sleep(0.2)
        return usual(*about)

    home = AppState(url)
    home.publish("colours", "a test")
    monkeypatch.setattr(f"{owner}.{work}", counted)
    with behind(home) as base, ThreadPoolExecutor(MANY) as pool:
        address = f"{base}/api/v1/trials/colours/{path}"
        answers = list(pool.map(lambda _: httpx.get(address).status_code, range(MANY)))
    assert set(answers) == {200}
    assert len(done) == 1


def test_one_report_is_computed_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers want a report of each comparison. Staff are served meanwhile."""
    url = f"sqlite:///{tmp_path}/t.db"
    create(url, strategy=bet_se(0.05, 1.0)).ask(10)
    running, most, staff_served = list[int](), list[int](), threading.Event()

    def slow(*_: Any) -> str:
        running.append(1)
        most.append(len(running))
        assert staff_served.wait(120)
        running.pop()
        return "a page"

    home = AppState(url, limit_config=LimitConfig(stranger_rate=1000))
    home.publish("colours", "a test")
    monkeypatch.setattr("discreet.service.endpoints.trial_page", slow)
    headers = bearer(home.tokens.make("a monitor", MONITOR, "a test")[0])
    with behind(home) as base, ThreadPoolExecutor(200) as pool:
        address = f"{base}/api/v1/trials/colours"
        reports = [f"{address}/report?control={arm}" for arm in ARMS] * 60
        answers = [pool.submit(httpx.get, report, timeout=60) for report in reports]
        while not most:
            time.sleep(0.01)
        assert httpx.get(f"{address}/audit-trail?most=1", headers=headers).status_code == 403
        assert httpx.get(address, headers=headers).status_code == 200
        assert most == [1]
        staff_served.set()
        assert {one.result().status_code for one in answers} == {200}
    assert most == [1] * len(ARMS)


def test_no_call_of_a_manager_gives_outcomes(tmp_path: Path) -> None:
    """The manager of all trials sees no outcome, also not by way of a backup: it would
    be enough to steal one token to read all outcomes that are not released yet.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0, outcomes="numbers"))
    trial.tell(trial.ask(5).assignments[0].id, OUTCOME)
    stored = (UNITS + schema.OFFSET).to_bytes(8, "big")
    with far_away(url) as far:
        assert (
            httpx.post(f"{far.base}/api/v1/backup", headers=bearer(far.secret)).status_code == 404
        )
        for endpoint in ENDPOINTS:
            if "stream" in endpoint.media:
                continue
            path = f"{far.base}{PREFIX}{endpoint.path}".format(name="colours", number="1")
            found = httpx.request(endpoint.method, path, headers=bearer(far.secret))
            assert found.status_code != 500
            assert stored not in found.content
            assert str(UNITS).encode() not in found.content
    assert stored in (tmp_path / "t.db").read_bytes() + (tmp_path / "t.db-wal").read_bytes()


@pytest.mark.parametrize(
    "strategy", [bet_se(0.05, 1.0, outcomes="numbers"), adap_tt_star(1.0, 0.1)]
)
def test_outcomes_that_will_never_be_released_are_erased(strategy: Strategy, url: str) -> None:
    """A manager stops the trial in the middle of a round. Nobody will ever need the
    outcomes of that round, nor those that come later, and no later backup may hold
    them.
    """
    trial = create(url, strategy=strategy)
    *others, last = trial.ask(10).assignments
    for one in others:
        trial.tell(one.id, OUTCOME)
    assert count(url, schema.outcomes) == len(others)
    trial.manage("stop", "enough")
    trial.tell(last.id, OUTCOME)
    for one in (others[0], last):
        with pytest.raises(InvalidInputError, match="never"):
            trial.amend(one.id, OUTCOME)
    assert count(url, schema.outcomes) == 0
    assert trial.verify().intact
    trial.close()
    if url.startswith("sqlite"):
        folder = Path(url.removeprefix("sqlite:///")).parent
        stored = (UNITS + schema.OFFSET).to_bytes(8, "big")
        assert not [file for file in folder.iterdir() if stored in file.read_bytes()]


@pytest.mark.parametrize("retain", ["until-release", "forever"])
def test_a_trial_that_keeps_outcomes_keeps_them(retain: str, tmp_path: Path) -> None:
    """Only then."""
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0), retain=retain)
    trial.tell(trial.ask(10).assignments[0].id, 1)
    trial.manage("stop", "enough")
    assert count(url, schema.outcomes) == (retain == "forever")


@pytest.mark.parametrize("sign", ["\u202e", "\x1b[2J", "\u2066", "\n"])
@pytest.mark.parametrize("place", ["name", "arm", "site", "question", "reason"])
def test_a_transcript_with_signs_that_rewrite_lines_is_not_verified(
    place: str, sign: str, tmp_path: Path
) -> None:
    """The service refuses to keep such names. Somebody who forges a transcript must not
    get them into a report that says it was verified.
    """
    settings: dict[str, Any] = {"sites": ["Leeds"], "question": "Better?"}
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.05, 1.0), **settings)
    trial.ask(3, site="Leeds")
    trial.manage("pause", "snow")
    words = {"name": "colours", "arm": "red", "site": "Leeds", "question": "Better?"}
    word = words.get(place, "snow")
    text = json.dumps(trial.transcript())
    forged = json.loads(text.replace(f'"{word}"', json.dumps(f"{word}{sign}x")))
    forged["events"][0]["protocol"] = digest(canonical(forged["protocol"]))
    assert verify_transcript(rechained(json.loads(text))).intact
    assert not verify_transcript(rechained(forged)).intact


@pytest.mark.parametrize("change", [str.upper, lambda commit: f"{commit[:2]}\n{commit[2:]}"])
def test_the_commitment_of_an_open_round_is_a_hash(
    change: Callable[[str], str], tmp_path: Path
) -> None:
    """Its key is not revealed yet, so that nothing else can be wrong with it."""
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.05, 1.0))
    trial.ask(3)
    forged = trial.transcript()
    assert verify_transcript(rechained(forged)).intact
    opened = next(event for event in forged["events"] if event["kind"] == "opened")
    opened["commit"] = change(opened["commit"])
    assert not verify_transcript(rechained(forged)).intact


def test_codes_that_are_no_longer_given_do_not_tell_who_had_the_arm(tmp_path: Path) -> None:
    """An arm was dropped. Its codes are given to nobody who is enrolled later, so that
    a site could tell its former participants by codes that it does not see any more.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(
        url, strategy=bet_se(0.05, 1.0), blinding="codes", sites=["Leeds"], max_participants=5000
    )

    def enrol(least: int) -> list[str]:
        """Enrol participants, record their outcomes, and return their codes."""
        codes = list[str]()
        while len(codes) < least:
            batch = trial.ask(50, site="Leeds").assignments
            trial.tell_many({one.id: len(codes) % 2 for one in batch})
            codes += [one.arm for one in batch]
        return codes

    former = enrol(300)
    trial.manage("drop-arm", "harm", ARMS[0])
    later = set(enrol(300))
    arms = dealt(trial)
    gone = {arm for arm, code in zip(arms, former, strict=False) if code not in later}
    assert gone != {0}


def test_a_wrong_head_is_no_trouble_with_the_database(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger sends a head that a published trial never had. The log neither says
    that the database cannot be used, nor names the trial.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url)
    home = AppState(url)
    home.publish("colours", "a test")
    with behind(home) as base, caplog.at_level("INFO"):
        head = {"Discreet-Head": f"1:{'a' * 64}"}
        answer = httpx.get(f"{base}/api/v1/trials/colours", headers=head)
    assert answer.status_code == 409
    lines = [f"{record.getMessage()} {vars(record).get('about')}" for record in caplog.records]
    assert not [line for line in lines if "cannot be used" in line or "'colours'" in line]


def test_a_key_does_not_answer_for_another_reason(url: str) -> None:
    """The reason is published: the caller must not believe that another one is."""
    trial = create(url, strategy=bet_se(0.05, 1.0), blinding="codes")
    id = trial.ask(1).assignments[0].id
    for _ in range(2):
        trial.manage("pause", "snow", key="pause")
        trial.unblind(id, "a fever", key="unblind")
    with pytest.raises(InvalidInputError, match="for something else"):
        trial.manage("pause", "a fire", key="pause")
    with pytest.raises(InvalidInputError, match="for something else"):
        trial.unblind(id, "curious", key="unblind")
    assert [act.reason for act in trial.status().actions] == ["snow", "a fever"]


def test_whoever_gets_an_answer_again_is_noted(url: str) -> None:
    """Staff who know or guess the key of a colleague's request repeat it, and get the
    ids and the arm that it was answered with.
    """
    trial = create(url, strategy=bet_se(0.05, 1.0), blinding="codes", sites=["Leeds"])
    ann, bob = (trial.as_user(name, "Leeds") for name in ("Ann", "Bob"))
    (one,) = ann.ask(key="visit-1").assignments
    arm = ann.unblind(one.id, "a fever", key="unblind-1")
    assert bob.ask(key="visit-1").assignments == (one,)
    assert bob.unblind(one.id, "a fever", key="unblind-1") == arm
    new = ann.reissue(one.id, key="reissue-1")
    assert ann.reissue(one.id, key="reissue-1") == new
    assert bob.reissue(one.id, key="reissue-1") == new
    noted = [entry.action for entry in trial.audit_trail() if entry.user == "Bob"]
    assert noted == ["reissue again", "unblind again", "ask again"]
    assert not [one for one in trial.audit_trail() if one.user == "Ann" and "again" in one.action]
    assert trial.verify().intact


@pytest.mark.parametrize("key", ["visit-1", "é k"])
def test_a_program_learns_whether_its_own_request_was_answered(key: str, tmp_path: Path) -> None:
    """The answer is not that of another caller's request with this key, and never no if
    participants were enrolled: the program would enrol others in their place.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url, sites=["Leeds", "York"])
    with far_away(url) as far:
        leeds, york = (
            Trial.open(far.base, "colours", token=far.token(SITE, trial="colours", site=site))
            for site in ("Leeds", "York")
        )
        leeds.ask(key=key)
        assert (leeds.was_answered(key), leeds.was_answered("another")) == (True, False)
        assert not york.was_answered(key)


def test_only_the_first_start_prints_a_token(url: str) -> None:
    """A service manager starts the service again after the last manager's token was
    revoked, and keeps in its log what is printed.
    """
    create(url).close()
    with closing(AppState(url)) as home:
        said = list[str]()
        welcome(home, ServerConfig(), said.append)
        assert "discreet_token_" in "".join(said)
        (first,) = home.tokens.token_table.list_all()
        home.tokens.revoke(first.number, "a test")
        said.clear()
        welcome(home, ServerConfig(), said.append)
        assert not re.search("discreet_(token|code)_", "".join(said))
        assert "discreet token create" in "".join(said)


def test_nobody_waits_for_a_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger verifies a published trial again after each change. Meanwhile sites
    enrol participants, and what is released is erased.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0), sites=["Leeds"])
    trial.ask(10, site="Leeds")
    usual, enrolled = transcript.replay_events, threading.Event()

    def replay_slowly(*about: Any) -> Any:
        assert enrolled.wait(60)
        return usual(*about)

    home = AppState(url)
    home.publish("colours", "a test")
    monkeypatch.setattr(transcript, "replay_events", replay_slowly)
    headers = bearer(home.tokens.make("Leeds", SITE, "a test", "colours", "Leeds")[0])
    with behind(home) as base, ThreadPoolExecutor(1) as pool:
        address = f"{base}/api/v1/trials/colours"
        verified = pool.submit(httpx.get, f"{address}/verify", timeout=120)
        time.sleep(0.5)
        for _ in range(3):
            assert httpx.post(f"{address}/ask", json={}, headers=headers).status_code == 200
        with closing(sqlite3.connect(tmp_path / "t.db")) as other:
            ((busy, _, _),) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert not busy
        enrolled.set()
        assert verified.result().json()["intact"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 4", "Transfer-Encoding: chunked"],
        ["Content-Length: 4", "Content-Length: 0"],
        ["Content-Length: 4, 4"],
        ["Content-Length: +4"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding: xchunked"],
        ["X: y\n\nGET /healthz HTTP/1.1"],
        ["X: y\rZ: z"],
        ["X: y\0"],
    ],
)
def test_a_request_that_a_proxy_could_end_elsewhere_is_refused(
    lines: list[str], tmp_path: Path
) -> None:
    """Otherwise the rest of it is a request of its own, which the proxy has never seen
    or takes for somebody else's.
    """
    home = AppState(f"sqlite:///{tmp_path}/t.db")
    head = "\r\n".join(["POST /login HTTP/1.1", "Host: 127.0.0.1", *lines])
    rest = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with behind(home) as base, closing(connect_to(base)) as opened:
        opened.settimeout(30)
        opened.sendall(f"{head}\r\n\r\n{rest}".encode())
        found = b"".join(iter(lambda: opened.recv(65_536), b""))
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1


def connect_to(base: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(base.rpartition(":")[2])))


def test_a_link_goes_nowhere_but_to_who_asked_for_it(tmp_path: Path) -> None:
    """Links name the host that a request names. Whoever sends another one gets a link
    to it, and nobody else does: no answer is stored on the way, and no other header
    names the host.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    create(url)
    home = AppState(url)
    with behind(home) as base:
        secret, token = home.tokens.make("a manager", MANAGER, "a test")
        visit = Visit(base, secret)
        form = {"key": hidden(visit.get("/tokens").text, "/tokens")["key"]}
        path = f"{base}/tokens/{token.number}/link"
        for name in ("Host", "X-Forwarded-Host", "Forwarded", "X-Host"):
            value = "host=evil.example" if name == "Forwarded" else "evil.example"
            answer = httpx.post(path, data=form, headers={name: value}, cookies=visit.cookies)
            assert answer.headers["cache-control"] == "no-store"
            assert ("evil.example" in answer.text) is (name == "Host")
            assert f"{base}/login#" in answer.text or name == "Host"
