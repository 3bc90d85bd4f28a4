"""What one caller may want, and how long it is waited for."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service.limits import MOST_KEYS, Buckets, LimitConfig, address_of
from tests.support.service import PATIENCE, Service, serving, wait_for
from tests.support.turned import turn

HOUR = 3600.0
"""Patience that ends when a test turns the clock, and not because a thread has to wait
for a processor.
"""


@contextmanager
def limited(path: Path, **bounds: Any) -> Iterator[Service]:
    """A service with a trial, and these limits."""
    url = f"sqlite:///{path}/trials.db"
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=100).close()
    with serving(url, LimitConfig(**bounds), "tests.support.turned:Turned") as made:
        yield made


def connections(service: Service) -> list[Any]:
    """Those that a service has now."""
    return list(service.server.server_state.connections)


def is_gone_in_an_hour(service: Service) -> bool:
    """Whether nobody is connected any more when that time has passed."""
    turn(service.server, HOUR)
    return not connections(service)


def test_an_allowance_fills_up_again() -> None:
    now = [100.0]
    buckets = Buckets(2.0, 2.0, lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0]
    assert buckets.take("a") == 0.5
    assert buckets.take("b") == 0
    now[0] += 0.25
    assert buckets.take("a") == 0.25
    now[0] += 0.25
    assert buckets.take("a") == 0
    assert buckets.take("a") == 0.5
    now[0] += 3600
    assert [buckets.take("a") > 0 for _ in range(5)] == [False] * 4 + [True]


def test_of_many_allowances_those_in_use_are_remembered() -> None:
    buckets = Buckets(1.0, 1.0, lambda: 0.0)
    assert [buckets.take("mine"), buckets.take("theirs")] == [0, 0]
    for number in range(MOST_KEYS - 1):
        assert buckets.take(number) == 0
        if number % 1000 == 0:
            assert buckets.take("mine") == 1
    assert len(buckets._levels) == MOST_KEYS
    assert buckets.take("mine") == 1
    assert buckets.take("theirs") == 0


def test_addresses() -> None:
    assert address_of({"client": ("192.0.2.7", 1)}) == "192.0.2.7"
    assert address_of({"client": ("2001:db8:1:2:3::4", 1)}) == "2001:db8:1:2::/64"
    assert address_of({"client": ("2001:db8:1:2:ffff::9", 1)}) == "2001:db8:1:2::/64"
    assert address_of({"client": ("::ffff:192.0.2.7", 1)}) == "192.0.2.7"
    assert address_of({"client": ("::ffff:192.0.2.8", 1)}) == "192.0.2.8"
    assert address_of({"client": None}) == ""


def test_a_token_has_a_rate(tmp_path: Path) -> None:
    with limited(tmp_path, rate=1.0, burst=3.0) as service:
        now = [100.0]
        service.home.limits._known._clock = lambda: now[0]
        other = {"Authorization": f"Bearer {service.token('monitor')}"}
        with httpx.Client(base_url=f"{service.base_url}/api/v1") as client:
            codes = [client.get("/trials", headers=service.headers) for _ in range(6)]
            assert client.get("/trials", headers=other).status_code == 200
            refused = codes[-1]
            assert [one.status_code for one in codes] == [200] * 3 + [429] * 3
            assert refused.json()["status"] == 429
            assert refused.headers["retry-after"] == "1"
            now[0] += 1.1
            assert client.get("/trials", headers=service.headers).status_code == 200


def test_strangers_have_a_rate_of_their_own(tmp_path: Path) -> None:
    with (
        limited(tmp_path, stranger_rate=0.1, stranger_burst=30.0) as service,
        httpx.Client(base_url=f"{service.base_url}/api/v1") as client,
    ):
        for buckets in (service.home.limits._strangers, service.home.limits._wrong):
            buckets._clock = lambda: 100.0
        codes = []
        for number in range(5):
            wrong = {"Authorization": f"Bearer discreet_{number}"}
            codes.append(client.get("/trials", headers=wrong).status_code)
        assert codes == [401, 401, 401, 429, 429]
        codes = [client.get("/trials").status_code for _ in range(5)]
        assert codes == [401, 401, 401, 429, 429]
        assert client.get("/trials", headers=service.headers).status_code == 200
        assert client.get(f"{service.base_url}/healthz").status_code == 200


@pytest.mark.parametrize("bounds", [{"each": 2}, {"calls": 2}])
def test_calls_at_once(
    bounds: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, inside, status = threading.Event(), threading.Semaphore(0), Trial.audit_trail

    def waits(trial: Trial, most: int) -> Any:
        inside.release()
        assert go.wait(PATIENCE)
        return status(trial, most)

    monkeypatch.setattr(Trial, "audit_trail", waits)
    with limited(tmp_path, **bounds) as service:
        codes = list[int]()

        def call() -> None:
            address = f"{service.base_url}/api/v1/trials/dose/audit-trail"
            codes.append(httpx.get(address, headers=service.headers).status_code)

        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert inside.acquire(timeout=PATIENCE)
        refused = httpx.get(f"{service.base_url}/api/v1/trials", headers=service.headers)
        go.set()
        for thread in threads:
            thread.join()
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert codes == [200, 200]
        again = httpx.get(f"{service.base_url}/api/v1/trials", headers=service.headers)
        assert again.status_code == 200


@contextmanager
def connected(service: Service) -> Iterator[socket.socket]:
    """Somebody who takes little before it is read, and waits for long."""
    host, port = service.base_url.removeprefix("http://").split(":")
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        made.settimeout(PATIENCE)
        made.connect((host, int(port)))
        yield made


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    while piece := connection.recv(65_536):
        found += piece
    return found


def head_of(service: Service, length: int) -> bytes:
    return (
        "POST /api/v1/trials/dose/ask HTTP/1.1\r\nHost: here\r\n"
        f"Authorization: Bearer {service.secret}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    with limited(tmp_path, patience=HOUR, whole=9 * HOUR) as service:
        with connected(service) as connection:
            connection.sendall(head_of(service, 100) + b"{")
            wait_for(lambda: is_gone_in_an_hour(service))
            found = everything(connection)
        assert b"408 Request Timeout" in found
        assert b"connection: close" in found.lower()
        assert b"application/problem+json" in found


def test_a_body_that_trickles_is_given_up(tmp_path: Path) -> None:
    """Long before all of it is there."""
    with limited(tmp_path, patience=HOUR, whole=1.0) as service, connected(service) as connection:
        connection.sendall(head_of(service, 10_000))
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.1):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        found = b""
        try:
            while b"\r\n\r\n" not in found:
                found += connection.recv(65_536)
        finally:
            stop.set()
            thread.join()
        assert b"408 Request Timeout" in found


def test_a_call_of_normal_speed_may_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience is for what callers send, and not for what they wait for."""
    transcript = Trial.transcript
    with limited(tmp_path, patience=HOUR, whole=HOUR) as service:

        def slow(trial: Trial) -> Any:
            turn(service.server, 3 * HOUR)
            return transcript(trial)

        monkeypatch.setattr(Trial, "transcript", slow)
        address = f"{service.base_url}/api/v1/trials/dose/transcript"
        assert httpx.get(address, headers=service.headers).status_code == 200


def test_a_refusal_leaves_the_connection_whole(tmp_path: Path) -> None:
    """Its body, which nobody reads, is not taken for the next request."""
    with limited(tmp_path) as service, connected(service) as connection:
        for _ in range(3):
            connection.sendall(head_of(service, 3).replace(b"discreet_", b"wrong_"))
            found = b""
            while not found.endswith(b"}"):
                found += connection.recv(65_536)
            assert found.startswith(b"HTTP/1.1 401")
            assert b"connection: close" not in found.lower()
            connection.sendall(b"{ }")


def test_whoever_wants_another_protocol_is_served_in_this_one(tmp_path: Path) -> None:
    with limited(tmp_path) as service, connected(service) as connection:
        wants = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n" + wants + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    with limited(tmp_path, connections=3) as service:
        with connected(service), connected(service):
            wait_for(lambda: len(connections(service)) == 2)
            assert httpx.get(f"{service.base_url}/healthz").status_code == 503
        wait_for(lambda: not connections(service))
        assert httpx.get(f"{service.base_url}/healthz").status_code == 200


def test_without_a_proxy_slow_headers_are_waited_for(tmp_path: Path) -> None:
    """docs/running.md says so; others are served meanwhile."""
    with limited(tmp_path, patience=HOUR) as service, connected(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: he")
        wait_for(lambda: connections(service))
        turn(service.server, 9 * HOUR)
        assert httpx.get(f"{service.base_url}/healthz").status_code == 200
        connection.sendall(b"re\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
