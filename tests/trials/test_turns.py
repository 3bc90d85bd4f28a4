"""Writers of an SQLite file wait in line."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from discreet.trials.store import turns
from discreet.trials.store.turns import Line
from tests.support.stores import create, run

LOCKS = Path("/proc/locks")
"""Who holds which file, and who waits for it."""


def line(tmp_path: Path, seconds: float = 30.0) -> Line:
    (tmp_path / "t.db").touch(0o600)
    return Line(str(tmp_path / "t.db"), seconds)


def wait_until_in_line(path: Path, many: int) -> None:
    """Until the system has so many in the line of a file: it says so at once, however
    busy it is.
    """
    inode, deadline = f":{path.stat().st_ino} ", time.monotonic() + 60
    while sum("->" in line and inode in line for line in LOCKS.read_text().splitlines()) < many:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.skipif(not LOCKS.exists(), reason="no list of locks on this system")
def test_they_come_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """Ten who wait, each there before the next one comes."""
    order: list[int] = []
    waits = line(tmp_path)

    def wait(number: int) -> None:
        with waits.turn():
            order.append(number)

    with waits.turn():
        threads = []
        for number in range(10):
            threads.append(threading.Thread(target=wait, args=(number,)))
            threads[-1].start()
            wait_until_in_line(tmp_path / "t.db-line", number + 1)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(10))


def test_who_hangs_with_the_turn_holds_nobody_up_for_ever(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with line(tmp_path).turn():
            (tmp_path / "has it").touch()
            signal.pause()
        os._exit(0)
    while not (tmp_path / "has it").exists():
        time.sleep(0.01)
    began = time.monotonic()
    with line(tmp_path, 0.2).turn():
        assert time.monotonic() - began >= 0.2
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with line(tmp_path).turn():
        pass


def test_no_file_stays_open(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no list of open files on this system")
    with line(tmp_path).turn(), line(tmp_path, 0.01).turn():
        pass
    deadline = time.monotonic() + 60
    while any(str(tmp_path) in os.path.realpath(one) for one in folder.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_system_without_such_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "fcntl", None)
    trial = create(f"sqlite:///{tmp_path}/t.db")
    run(trial, 2)
    assert not (tmp_path / "t.db-line").exists()
    assert trial.status().people == 2


def test_only_the_owner_may_open_the_line(tmp_path: Path) -> None:
    run(create(f"sqlite:///{tmp_path}/t.db"), 1)
    assert (tmp_path / "t.db-line").stat().st_mode & 0o777 == 0o600
