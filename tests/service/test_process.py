"""A running `discreet serve`: whether it says that it cannot write, and what the system
keeps of its memory.
"""

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from discreet.service.state import FRESH, AppState
from discreet.trials.store.dialect import make_dialect
from tests.support import postgres as postgres_server
from tests.support.service import serving, wait_for
from tests.support.stores import create

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


@contextmanager
def process(url: str, folder: Path) -> Iterator[tuple[int, str]]:
    """Run `discreet serve`, allowed to write core files. Return its id and address."""
    command = [sys.executable, "-m", "discreet", "serve", "--port=0", "--url", url]
    can_raise = resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY
    raised = ["prlimit", "--core=unlimited"] if can_raise else []
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            [*raised, *command],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert started.stdout is not None
    try:
        found = re.search(r" at (http://\S+)", started.stdout.readline())
        assert found is not None, (folder / "log").read_text()
        wait_for(lambda: can_connect(found[1]))
        yield started.pid, found[1]
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait()
        started.stdout.close()


def can_connect(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz").status_code == 200
    except httpx.ConnectError:
        return False


def status_of(address: str) -> int:
    return httpx.get(f"{address}/readyz").status_code


def core_limits(pid: int) -> list[tuple[str, str]]:
    """Read the limits of core files of a process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    texts = [Path(f"/proc/{one}/limits").read_text() for one in (pid, *children)]
    return [re.findall(r"Max core file size +(\S+) +(\S+)", text)[0] for text in texts]


def test_no_memory_of_the_service_is_dumped(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    create(url).close()
    with process(url, tmp_path) as (pid, _):
        assert set(core_limits(pid)) == {("0", "0")}


def test_no_memory_of_the_service_is_handed_to_a_program() -> None:
    """Whatever the limit is, Linux hands core files to the program that
    /proc/sys/kernel/core_pattern names, unless the process may not be dumped.
    """
    code = (
        "import ctypes; from discreet.service.server import forbid_memory_dumps;"
        "ask = lambda: ctypes.CDLL(None).prctl(3); before = ask();"
        "forbid_memory_dumps(); print(before, ask())"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["1", "0"]


def test_a_full_disk_is_noticed(tmp_path: Path) -> None:
    """No file may grow; and then it may again."""
    url = f"sqlite:///{tmp_path}/trials.db"
    create(url).close()
    with process(url, tmp_path) as (pid, address):
        assert status_of(address) == 200
        usual = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, usual[1]))
        wait_for(lambda: status_of(address) == 503)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
        wait_for(lambda: status_of(address) == 200)


def test_a_server_that_takes_no_writes_is_noticed(postgres: postgres_server.Server) -> None:
    url = postgres.new_url()
    create(url).close()
    address = make_dialect(url).url.set(drivername="postgresql").render_as_string()
    with (
        psycopg.connect(address, autocommit=True) as administrator,
        serving(url) as service,
    ):
        assert status_of(service.base_url) == 200
        try:
            administrator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            administrator.execute("SELECT pg_reload_conf()")
            wait_for(lambda: status_of(service.base_url) == 503)
        finally:
            administrator.execute("SET default_transaction_read_only = off")
            administrator.execute("ALTER SYSTEM RESET default_transaction_read_only")
            administrator.execute("SELECT pg_reload_conf()")
        wait_for(lambda: status_of(service.base_url) == 200)


def test_few_writes_for_many_who_ask(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(url).close()
    with serving(url) as service:
        assert status_of(service.base_url) == 200
        tried: list[None] = []
        monkeypatch.setattr(service.home.token_table, "try_to_write", lambda: tried.append(None))
        monkeypatch.setattr("discreet.service.state.FRESH", 60.0)
        for _ in range(20):
            assert status_of(service.base_url) == 200
        assert FRESH >= 1.0
        assert not tried


def test_nothing_stays_of_a_try(url: str) -> None:
    create(url).close()
    home = AppState(url)
    home.token_table.try_to_write()
    with home.store.begin(reading=True) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM discreet_logins").scalar() == 0
    home.close()
