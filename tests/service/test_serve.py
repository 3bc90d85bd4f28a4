"""`discreet serve`: how it starts, what it writes down, and how it ends."""

import json
import logging
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import InvalidInputError, Trial, bet_se
from discreet.errors import MissingExtraError
from discreet.service import observability
from discreet.service.limits import LimitConfig
from discreet.service.server import (
    IN_THE_CLEAR,
    ServerConfig,
    is_loopback,
    login_link,
    make_server,
    open_listener,
)
from discreet.service.state import AppState
from tests.support.service import Service, running, serving, wait_for

ASSETS = Path(__file__).parent.parent / "assets"
SOON = 60.0
LINK = re.compile(r"^(https?://\S+)/login#(discreet_code_\S+)$", re.MULTILINE)
TOKEN = re.compile(r"^(discreet_token_\S+)$", re.MULTILINE)
Process = subprocess.Popen[str]


@contextmanager
def served(folder: Path, *words: str) -> Iterator[tuple[Process, str, str]]:
    """`discreet serve` in a folder: the process, its address, and what it said."""
    command = [sys.executable, "-m", "discreet", "serve", "--port=0", *words]
    environment = {key: one for key, one in os.environ.items() if not key.startswith("DISCREET")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        said += process.stdout.readline()
        if "token, shown only once" in said:
            said += "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"https?://[\w.\[\]:-]+", said.partition(" at ")[2])
        assert found, said + (folder / "log").read_text()
        wait_for(lambda: not is_shut(found[0]))
        yield process, found[0], said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def is_shut(address: str) -> bool:
    """Whether nobody is let in any more; a service that ends refuses before it is."""
    try:
        httpx.get(f"{address}/healthz", verify=False)
    except httpx.TransportError as error:
        return isinstance(error, httpx.ConnectError)
    return False


def ended(process: Process, sign: int = signal.SIGTERM) -> int:
    process.send_signal(sign)
    return process.wait(SOON)


@pytest.mark.slow
def test_it_starts_with_nothing_and_shows_the_link_once(tmp_path: Path) -> None:
    with served(tmp_path) as (process, address, said):
        (found,), (secret,) = LINK.findall(said), TOKEN.findall(said)
        assert found[0] == address
        assert address.startswith("http://127.0.0.1:")
        logged_in = httpx.post(f"{address}/login", data={"secret": found[1], "to": "/"})
        assert logged_in.status_code == 303
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(f"{address}/api/v1/trials", headers=headers).json() == []
        assert httpx.get(f"{address}/readyz").text == "ready\n"
        assert (tmp_path / "discreet-trials.db").exists()
        assert ended(process) == 0
    log = (tmp_path / "log").read_text()
    assert found[1] not in log
    assert secret not in log
    lines = [json.loads(line) for line in log.splitlines()]
    (call,) = [line for line in lines if line.get("route") == "/api/v1/trials"]
    assert (call["method"], call["status"], call["token"]) == ("GET", 200, 1)
    with served(tmp_path) as (process, address, said):
        assert not LINK.search(said)
        assert "discreet token create" in said
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(f"{address}/api/v1/trials", headers=headers).status_code == 200
        assert ended(process, signal.SIGINT) == 0


@pytest.mark.slow
def test_it_encrypts(tmp_path: Path) -> None:
    files = [f"--tls-cert={ASSETS}/tls-cert.pem", f"--tls-key={ASSETS}/tls-key.pem"]
    with served(tmp_path, *files, "--host=0.0.0.0", "--log=text") as (process, address, said):
        assert address.startswith("https://")
        assert LINK.search(said)
        context = ssl.create_default_context(cafile=str(ASSETS / "tls-cert.pem"))
        port = address.rpartition(":")[2]
        with httpx.Client(verify=context) as idle:
            answer = idle.get(f"https://localhost:{port}/healthz")
            assert answer.headers["strict-transport-security"].startswith("max-age=")
            assert ended(process) == 0
    log = (tmp_path / "log").read_text()
    assert "warning: other machines" not in log
    assert "route=/healthz status=200" in log


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as (process, address, said):
        (secret,) = TOKEN.findall(said)
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"Authorization: Bearer {secret}\r\nContent-Length: 9\r\n\r\n"
            connection.sendall(f"POST /api/v1/trials HTTP/1.1\r\nHost: h\r\n{head}".encode())
            both = "discreet_requests_under_way 2.0"
            wait_for(lambda: both in httpx.get(f"{address}/metrics").text)
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: is_shut(address))
            time.sleep(0.5)
            assert process.poll() is None, "it waits for what is under way"
            assert ended(process) == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port=70000"], "0 to 65535"),
        (["--host=198.51.100.7"], "--host"),
        (["--tls-cert=cert.pem"], "--tls-key"),
        (["--tls-cert=cert.pem", "--tls-key=key.pem"], "PEM"),
        (["--rate=0"], "rate must be"),
        (["--log=xml"], "xml"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], says: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet", "serve", "--port=0", *words]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SOON
    )
    assert ran.returncode == 2
    assert says in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


def test_a_port_that_is_taken_is_said() -> None:
    with (
        open_listener(ServerConfig(port=0)) as door,
        pytest.raises(InvalidInputError, match=r"another program uses this port.*--port"),
    ):
        open_listener(ServerConfig(port=door.getsockname()[1]))


def test_answers_are_not_held_back_for_an_acknowledgement() -> None:
    """Else a small answer in two pieces waits 40 ms for the other side."""
    with open_listener(ServerConfig(port=0)) as door, socket.create_connection(door.getsockname()):
        taken, _ = door.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_places() -> None:
    assert ServerConfig().url == "http://127.0.0.1:8642"
    assert ServerConfig("::1", 1).url == "http://[::1]:1"
    assert ServerConfig("h", 1, "c", "k").url == "https://h:1"
    assert login_link(ServerConfig(), "discreet_a") == "http://127.0.0.1:8642/login#discreet_a"
    for host, own in (("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)):
        assert is_loopback(host) is own
        assert not ServerConfig(host).in_the_clear
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        assert not is_loopback(host)
        assert ServerConfig(host).in_the_clear
        assert not ServerConfig(host, 1, "c", "k").in_the_clear
        assert not ServerConfig(host, behind_proxy=True).in_the_clear
    assert "--tls-cert" in IN_THE_CLEAR


def test_what_is_not_installed_is_said_first(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sys.modules.pop("discreet.service")
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "uvicorn" else find_spec(name)
    )
    try:
        with pytest.raises(MissingExtraError, match=r'uvicorn: pip install "discreet\[serve\]"'):
            import_module("discreet.service")
    finally:
        sys.modules["discreet.service"] = real


# --- what is under way, and what is not -----------------------------------------------


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    url = f"sqlite:///{tmp_path}/trials.db"
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    with serving(url) as made:
        yield made


def test_what_is_under_way_is_answered_and_the_rest_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, inside, transcript = threading.Event(), threading.Event(), Trial.transcript

    def waits(trial: Trial) -> Any:
        inside.set()
        assert go.wait(SOON)
        return transcript(trial)

    monkeypatch.setattr(Trial, "transcript", waits)
    answers = list[httpx.Response]()
    address = f"{service.base_url}/api/v1/trials/dose"
    thread = threading.Thread(
        target=lambda: answers.append(
            httpx.get(f"{address}/transcript", headers=service.headers, timeout=SOON)
        )
    )
    thread.start()
    assert inside.wait(SOON)
    service.home.stop()
    for path in (address, f"{service.base_url}/readyz"):
        refused = httpx.get(path, headers=service.headers)
        assert refused.status_code == 503
        assert refused.headers["connection"] == "close"
        assert refused.headers["content-type"] == "application/problem+json"
    service.server.end()
    wait_for(lambda: is_shut(service.base_url))
    time.sleep(0.5)  # in which a service that does not wait would break it off
    go.set()
    thread.join(SOON)
    assert [one.status_code for one in answers] == [200]
    assert answers[0].json()["status"]["name"] == "dose"


def test_streams_end_cleanly_when_it_ends(service: Service) -> None:
    heard, ended = threading.Event(), list[str]()

    def listen() -> None:
        address = f"{service.base_url}/api/v1/trials/dose/events"
        try:
            with httpx.stream("GET", address, headers=service.headers, timeout=SOON) as stream:
                for line in stream.iter_lines():
                    ended.append(line)
                    heard.set()
            ended.append("the end")
        except httpx.HTTPError as error:
            ended.append(repr(error))

    thread = threading.Thread(target=listen)
    thread.start()
    assert heard.wait(SOON)
    service.server.end()
    thread.join(SOON)
    assert ended[-1] == "the end"


def test_nobody_is_waited_for_who_is_idle(tmp_path: Path) -> None:
    bounds = LimitConfig(idle=3600, grace=3600)
    with httpx.Client() as idle, serving(f"sqlite:///{tmp_path}/trials.db", bounds) as service:
        assert idle.get(f"{service.base_url}/healthz").status_code == 200


def test_it_is_not_ready_without_its_database(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> float:
        raise InvalidInputError("gone")

    assert httpx.get(f"{service.base_url}/readyz").status_code == 200
    monkeypatch.setattr(service.home.token_table, "try_to_write", fail)
    monkeypatch.setattr("discreet.service.state.FRESH", 0.0)
    assert httpx.get(f"{service.base_url}/readyz").status_code == 503
    assert httpx.get(f"{service.base_url}/healthz").status_code == 200


# --- metrics and logs -----------------------------------------------------------------


def test_metrics_count_calls_and_name_nobody(service: Service) -> None:
    httpx.get(f"{service.base_url}/api/v1/trials/dose", headers=service.headers)
    httpx.get(f"{service.base_url}/api/v1/trials/secret-name", headers=service.headers)
    httpx.get(f"{service.base_url}/who/knows?secret=1")
    httpx.request("BREW", f"{service.base_url}/api/v1/trials")
    text = httpx.get(f"{service.base_url}/metrics").text
    route = 'endpoint="/api/v1/trials/{name}",method="GET"'
    assert f'discreet_requests_total{{{route},status="2xx"}} 1.0' in text
    assert f'discreet_requests_total{{{route},status="4xx"}} 1.0' in text
    assert 'endpoint="other",method="GET",status="4xx"' in text
    assert f"discreet_request_seconds_count{{{route}}} 2.0" in text
    assert "discreet_requests_under_way 1.0" in text
    for word in ("dose", "secret", "who", "BREW"):
        assert word not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
        {"Host": "evil.example"},
    ],
)
def test_metrics_are_for_operators_and_this_machine(
    headers: dict[str, str], service: Service
) -> None:
    address = f"{service.base_url}/metrics"
    assert httpx.get(address, headers=headers).status_code == 401
    assert httpx.get(address, headers={**headers, **service.headers}).status_code == 200
    for scope in ({"role": "monitor"}, {"role": "manager", "trial": "dose"}):
        token = {"Authorization": f"Bearer {service.token(**scope)}"}
        assert httpx.get(address, headers={**headers, **token}).status_code == 403


def test_logs_hold_no_outcome_identity_token_or_query(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"), httpx.Client(base_url=service.base_url) as client:
        client.headers.update(service.headers)
        path = "/api/v1/trials/dose"
        said = {"participant": "Ann Smith 7313177", "n": 1}
        client.post(f"{path}/ask", json=said, headers={"Idempotency-Key": "key-7313177"})
        client.post(f"{path}/tell", json={"outcomes": {"x": 0.7313177}})
        client.post(f"{path}/tell", content=b'{"outcomes": {"x": "7313177"')
        client.get(f"{path}/open?site=7313177")
        client.get("/api/v1/trials/7313177")
        client.get("/7313177", headers={"Cookie": "discreet_login=7313177"})
        client.post("/login", data={"secret": "discreet_7313177"})
        # a call is noted when its answer has gone
        wait_for(lambda: [one.getMessage() for one in caplog.records].count("call") == 7)
    ours = [one for one in caplog.records if not one.name.startswith("http")]
    lines = [observability.json_line(observability.fields(one)) for one in ours]
    texts = [observability.text_line(observability.fields(one)) for one in ours]
    calls = [json.loads(line) for line in lines if '"what":"call"' in line]
    assert len(calls) == 7
    assert {"time", "level", "method", "route", "status", "ms", "token", "request"} <= set(calls[0])
    assert {call["route"] for call in calls} >= {"/api/v1/trials/{name}/tell", "-"}
    for line in lines + texts:
        assert "7313177" not in line
        assert service.secret not in line


def test_a_line_is_one_line_whatever_it_holds() -> None:
    try:
        raise ValueError("an outcome\nof 7351")
    except ValueError as error:
        found = observability.where(error)
    assert found["error"] == "ValueError"
    record = logging.LogRecord("x", 40, "x.py", 1, "bad %s", ("a\nb\x1b[31m",), None)
    record.about = {"request": "1\n2", **found}
    for made in (
        put(observability.fields(record))
        for put in (observability.text_line, observability.json_line)
    ):
        assert "\n" not in made
        assert "\x1b" not in made
        assert "7351" not in made


@pytest.mark.parametrize(("behind", "kept"), [(True, True), (False, False)])
def test_a_proxy_is_believed_if_it_was_announced(behind: bool, kept: bool, tmp_path: Path) -> None:
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
    home = AppState(f"sqlite:///{tmp_path}/trials.db")
    seen = list[str]()
    admit = home.limits.admit

    def watched(scope: Any, token: Any, is_wrong: bool = False) -> None:
        seen.append(scope["request_info"].address)
        admit(scope, token, is_wrong)

    home.limits.admit = watched  # type: ignore[method-assign]
    server = make_server(home, ServerConfig(port=0, behind_proxy=behind))
    with running(server) as base_url:
        answer = httpx.get(f"{base_url}/api/v1/trials", headers=headers)
    assert ("strict-transport-security" in answer.headers) is kept
    assert seen == (["192.0.2.1"] if kept else ["127.0.0.1"])
