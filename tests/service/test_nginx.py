"""The nginx configuration of docs/running.md in front of a service: ordinary requests
pass, slow and greedy clients are refused by nginx.

Seen to fail without each of its lines that limits or times something, without the
header that switches buffering off for events, and with slashes decoded in paths.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service.limits import LimitConfig
from discreet.service.server import ServerConfig, make_server
from discreet.service.state import AppState
from discreet.trials.names import quote_name
from discreet.trials.verbs import MANAGER
from tests.support.service import PATIENCE, Service, running, wait_for

ROOT = Path(__file__).parent.parent.parent
ASSETS = ROOT / "tests" / "assets"
REQUIRED = "DISCREET_REQUIRE_NGINX"
"""If this is set in the environment, a missing nginx is an error."""
BLOCK = re.compile(r"^```nginx\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AROUND = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
  log_format test "$status $request_uri";
  access_log {folder}/access.log test;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {block}
}}
"""
"""What is around the block of the page on a Debian machine, without fixed paths."""
LARGE = 30_000_000
"""Bytes of a response that no buffer on the way takes whole."""
NAMES = ["dose", "a/b", "50 %", "..", "ü"]


class Proxy(NamedTuple):
    """An nginx that runs in front of a service."""

    port: int
    folder: Path
    pid: int
    service: Service

    @property
    def api(self) -> str:
        """The address of the API, through nginx."""
        return f"https://localhost:{self.port}/api/v1"

    def client(self) -> httpx.Client:
        """A manager's program."""
        headers = self.service.headers
        return httpx.Client(base_url=self.api, headers=headers, verify=trust(), timeout=PATIENCE)

    @contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        """A connection on which anything can be sent, with small buffers."""
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            plain.settimeout(PATIENCE)
            plain.connect(("127.0.0.1", self.port))
            with trust().wrap_socket(plain, server_hostname="localhost") as encrypted:
                yield encrypted

    def head(self, method: str, path: str, *more: str) -> bytes:
        """The head of a manager's request."""
        secret = f"Authorization: Bearer {self.service.secret}"
        first = f"{method} /api/v1/trials/{path} HTTP/1.1"
        return "\r\n".join([first, "Host: localhost", secret, *more, "", ""]).encode()

    def served(self) -> int:
        """How many requests the service has answered."""
        return self.service.server.server_state.total_requests

    def refused(self) -> list[str]:
        """Statuses and paths of requests that were not answered with success."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return [line for line in lines if not line.startswith(("2", "3"))]

    def written(self) -> list[str]:
        """Temporary files that nginx has open, deleted ones too."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        opened = [one for child in children for one in Path(f"/proc/{child}/fd").iterdir()]
        places = [os.readlink(one) for one in opened]
        return [place for place in places if re.search(r"/(body|proxy)/", place)]


def trust() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(ASSETS / "tls-cert.pem"))


def find_nginx() -> str:
    """The path of nginx; skip the test if there is none."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        assert REQUIRED not in os.environ, "nginx is not installed, and it must be there"
        pytest.skip("nginx is not installed")
    return found


def adapted(folder: Path, port: int, service: str) -> str:
    """The configuration of the page, for other ports and files and any user."""
    (block,) = BLOCK.findall((ROOT / "docs" / "service.md").read_text())
    places = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "server 127.0.0.1:8642;": f"server {service.removeprefix('http://')};",
        "/etc/ssl/trial.pem": f"{ASSETS}/tls-cert.pem",
        "/etc/ssl/trial.key": f"{ASSETS}/tls-key.pem",
    }
    for place, other in places.items():
        assert block.count(place) == 1
        block = block.replace(place, other)
    user = "user root;" if os.getuid() == 0 else ""
    return AROUND.format(folder=folder, user=user, block=block)


@contextmanager
def started(nginx: str, folder: Path, service: Service) -> Iterator[Proxy]:
    """Nginx on a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    (folder / "nginx.conf").write_text(adapted(folder, port, service.base_url))
    command = [nginx, "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    process = subprocess.Popen(command)
    try:
        wait_for(lambda: process.poll() is not None or is_open(port))
        assert process.poll() is None, (folder / "error.log").read_text()
        yield Proxy(port, folder, process.pid, service)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def is_open(port: int) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    nginx, folder = find_nginx(), tmp_path_factory.mktemp("nginx")
    url = f"sqlite:///{folder}/trials.db"
    for name in NAMES:
        Trial.create(url, name, ["a", "b"], bet_se(0.1, 1.0), max_participants=100).close()
    home = AppState(url, limit_config=LimitConfig(rate=1e6, stranger_rate=1e6))
    secret = home.tokens.make("a test", MANAGER, "a test")[0]
    server = make_server(home, ServerConfig(port=0, behind_proxy=True))
    with (
        running(server) as base_url,
        started(nginx, folder, Service(base_url, secret, home, server)) as made,
    ):
        yield made


# --- what passes ----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_requests_pass(name: str, proxy: Proxy) -> None:
    with proxy.client() as client:
        asked = client.post(f"/trials/{quote_name(name)}/ask", json={})
        (one,) = asked.json()["assignments"]
        told = client.post(f"/trials/{quote_name(name)}/tell", json={"outcomes": {one["id"]: 1}})
        assert told.json()["new"] == 1
        status = client.get(f"/trials/{quote_name(name)}")
        assert (status.json()["name"], status.json()["participants"]) == (name, 1)
        assert status.headers["x-request-id"]
        assert status.headers["strict-transport-security"].startswith("max-age=")


def test_forms_and_metrics_see_the_callers_host_and_address(proxy: Proxy) -> None:
    site = proxy.api.removesuffix("/api/v1")
    form = {"secret": proxy.service.secret, "to": "/"}
    with proxy.client() as client:
        logged_in = client.post(f"{site}/login", data=form, headers={"Origin": site})
        assert logged_in.status_code == 303
        elsewhere = client.post(f"{site}/login", data=form, headers={"Origin": "https://x.example"})
        assert elsewhere.status_code != 303
        anyone = client.get(f"{site}/metrics", headers={"Authorization": ""})
        assert anyone.status_code == 401, "nginx is not a program on this machine"


def test_events_arrive_as_they_happen(proxy: Proxy) -> None:
    with proxy.client() as client, client.stream("GET", "/trials/dose/events") as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("id: "))
        first = next(lines)
        assert client.post("/trials/dose/ask", json={}).status_code == 200
        assert next(lines) != first


def test_bodies_are_kept_in_memory(proxy: Proxy) -> None:
    """They hold outcomes, which no disk of the proxy is to keep."""
    before, size = proxy.served(), 1_900_000
    with proxy.connected() as connection:
        connection.sendall(proxy.head("POST", "dose/tell", f"Content-Length: {size}"))
        connection.sendall(b" " * (size - 1))
        assert proxy.written() == []
        assert proxy.served() == before
        connection.sendall(b" ")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400"), "no JSON document"


# --- what nginx refuses ---------------------------------------------------------------


def test_large_bodies_are_refused(proxy: Proxy) -> None:
    before, large = proxy.served(), b" " * 3_000_000
    with proxy.client() as client:
        for body in (large, iter([large])):
            answer = client.post("/trials/dose/tell", content=body)
            assert answer.status_code == 413
            assert "x-request-id" not in answer.headers
    assert proxy.served() == before


def test_long_addresses_and_headers_are_refused(proxy: Proxy) -> None:
    before = proxy.served()
    with proxy.client() as client:
        assert client.get(f"/trials/{'a' * 10_000}").status_code == 414
        for headers in ({"X-More": "a" * 10_000}, {f"X-{i}": "a" * 7000 for i in range(9)}):
            assert client.get("/trials/dose", headers=headers).status_code == 400
    assert proxy.served() == before


def everything(connection: ssl.SSLSocket) -> int:
    """How many bytes come until nginx closes the connection."""
    received = 0
    with suppress(ConnectionError, ssl.SSLError):
        while piece := connection.recv(65_536):
            received += len(piece)
    return received


def send_slowly(proxy: Proxy, part: bytes) -> int:
    """Send a part of a request and no more."""
    with proxy.connected() as connection:
        connection.settimeout(30)  # half of the time after which nginx lets go by default
        connection.sendall(part)
        return everything(connection)


def read_late(proxy: Proxy) -> int:
    """Read the response when nginx has given up on the reader."""
    with proxy.connected() as connection:
        connection.sendall(proxy.head("GET", "dose/transcript"))
        log = proxy.folder / "access.log"
        wait_for(lambda: "/transcript" in log.read_text() or proxy.written())
        assert proxy.written() == []
        return everything(connection)


@pytest.mark.slow
def test_slow_clients_are_let_go(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at the same time, as nginx waits ten seconds for each. The service never
    hears of those who send slowly, and has one request of those who read slowly.
    """
    monkeypatch.setattr(Trial, "transcript", lambda _trial: {"much": "x" * LARGE})
    before, tell = proxy.served(), proxy.head("POST", "dose/tell", "Content-Length: 100")
    parts = [b"", b"GET /healthz HTTP/1.1\r\nHost: lo", tell, tell + b'{"outcomes": ']
    with ThreadPoolExecutor() as threads:
        slow = [threads.submit(send_slowly, proxy, part) for part in parts]
        read = threads.submit(read_late, proxy)
        assert [one.result() for one in slow] == [0] * 4
        assert read.result() < LARGE
    wait_for(lambda: proxy.service.home.limits._calls == 0)
    assert proxy.served() <= before + 1
    assert {"408 /api/v1/trials/dose/tell"} <= set(proxy.refused())


@pytest.mark.slow
def test_too_many_requests_from_one_address_are_refused(proxy: Proxy) -> None:
    """Streams of events, which last until their readers go."""
    with ExitStack() as stack, proxy.client() as client:
        for _ in range(200):
            connection = stack.enter_context(proxy.connected())
            connection.sendall(proxy.head("GET", "dose/events"))
            assert connection.recv(15).startswith(b"HTTP/1.1 200")
        refused = client.get("/trials/dose")
        assert refused.status_code == 429
        assert "x-request-id" not in refused.headers
    with proxy.client() as client:
        wait_for(lambda: client.get("/trials/dose").status_code == 200)
