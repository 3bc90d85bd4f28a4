"""Processes that wait to write an SQLite file have what they want done by whoever has
the turn: once, whoever dies.

Two `Trial`s of one file stand for two processes: neither knows the other.
"""

import errno
import os
import resource
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.errors import DiscreetError, InvalidInputError, TamperedError
from discreet.trials import neighbours
from discreet.trials.store import letters
from discreet.trials.store.letters import Letters, Taken
from discreet.trials.store.turns import Line
from tests.support.stores import create

Call = Callable[[Trial], Any]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where letters are."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(letters, "MEMORY", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path, memory: Path) -> str:
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.1, 1.0), sites=["Leeds", "Lyon"])
    trial.ask(site="Leeds")
    return str(tmp_path / "t.db")


def written(memory: Path) -> list[Path]:
    return [path for path in memory.glob("*/*") if path.suffix == letters.WAITING]


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@contextmanager
def waiting(file: str, memory: Path, calls: list[Call], found: list[Any]) -> Iterator[None]:
    """Callers who wait while the block has the turn."""
    trials = [Trial.open(f"sqlite:///{file}", "colours") for _ in calls]
    found += [None] * len(calls)

    def do(place: int) -> None:
        try:
            found[place] = calls[place](trials[place])
        except DiscreetError as error:
            found[place] = error

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(calls))]
    with Line(file, 30.0).turn():
        for place, thread in enumerate(threads):
            thread.start()
            wait_for(partial(_more_than, place, memory))
        yield
    for thread in threads:
        thread.join()


def _more_than(number: int, memory: Path) -> bool:
    return len(written(memory)) > number


def tell(id: str, trial: Trial) -> Any:
    return trial.tell(id, 1)


def ask(trial: Trial) -> Any:
    return trial.ask(site="Leeds")


def events(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Trial.open(f"sqlite:///{file}", "colours").transcript()["events"]
    return found


def test_those_who_wait_share_a_transaction(file: str, memory: Path) -> None:
    found: list[Any] = []
    with waiting(file, memory, [ask] * 6, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 6
    assigned = [event["arms"] for event in events(file) if event["kind"] == "assigned"]
    assert [len(arms) for arms in assigned] == [1, 6]
    ids = [batch.assignments[0].id for batch in found]
    calls: list[Call] = [partial(tell, id) for id in [*ids, ids[0]]]
    told: list[Any] = []
    with waiting(file, memory, calls, told):
        pass
    assert sorted(one.new for one in told) == [0, 1, 1, 1, 1, 1, 1]
    trial = Trial.open(f"sqlite:///{file}", "colours")
    assert trial.status().people == 7
    assert trial.verify().intact
    assert not list(memory.glob("*/*")), "no letter stays"


def test_who_is_refused_hears_it_and_holds_nobody_up(file: str, memory: Path) -> None:
    found: list[Any] = []
    with waiting(file, memory, [ask, lambda trial: trial.ask(site="Oslo"), ask], found):
        pass
    assert isinstance(found[1], InvalidInputError)
    assert "one of Leeds, Lyon" in str(found[1])
    assert len({batch.assignments[0].id for batch in found[::2]}) == 2
    assert Trial.open(f"sqlite:///{file}", "colours").status().people == 3


def dies_before_it_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Taken, "answer", lambda *_: None)


def test_what_somebody_did_who_died_is_not_done_again(
    file: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_before_it_replies(monkeypatch)
    found: list[Any] = []
    with waiting(file, memory, [ask] * 4, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 4
    ids = [batch.assignments[0].id for batch in found]
    told: list[Any] = []
    calls: list[Call] = [partial(tell, id) for id in ids]
    with waiting(file, memory, calls, told):
        pass
    assert [one.new for one in told] == [1] * 4, "what was told by its own call is new to it"
    trial = Trial.open(f"sqlite:///{file}", "colours")
    assert trial.status().people == 5
    assert trial.verify().intact


def test_without_keys_it_would_be_done_again(
    file: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: each time another key."""
    dies_before_it_replies(monkeypatch)
    jobs_of = neighbours.jobs_of

    def other_keys(wanted: Any) -> Any:
        jobs = jobs_of(wanted)
        for job in jobs:
            job.item = job.item._replace(request=secrets.token_hex(8))
        return jobs

    monkeypatch.setattr(neighbours, "jobs_of", other_keys)
    found: list[Any] = []
    with waiting(file, memory, [ask] * 4, found):
        pass
    assert Trial.open(f"sqlite:///{file}", "colours").status().people > 5


def test_what_the_dead_wanted_is_not_done(file: str, memory: Path) -> None:
    with Line(file, 30.0).turn():
        child = os.fork()
        if child == 0:
            Trial.open(f"sqlite:///{file}", "colours").ask(site="Lyon")
            os._exit(0)
        wait_for(lambda: written(memory))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert written(memory)
    ask(Trial.open(f"sqlite:///{file}", "colours"))
    assert Trial.open(f"sqlite:///{file}", "colours").status().people == 2
    assert not list(memory.glob("*/*")), "an outcome may be in the letters of the dead"


def test_nobody_writes_where_others_may_read(file: str, memory: Path) -> None:
    box = Letters(file)
    letter = box.post("x", b"an outcome")
    assert letter is not None
    (path,) = written(memory)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.chmod(0o777)
    assert not box.take("x"), "anybody may have written it"
    path.parent.chmod(0o700)
    assert letter.take_back() == (letters.WAITING, b"")
    box.clear()
    path.parent.mkdir(0o755)
    assert box.post("x", b"an outcome") is None
    path.parent.rmdir()
    path.parent.symlink_to(memory)
    assert box.post("x", b"an outcome") is None


def test_a_full_memory(file: str, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box, folder = Letters(file), Path("/proc/self/fd")
    before = len(list(folder.iterdir())) if folder.exists() else 0
    for cut in ({"write": lambda *_: 1}, {"mkfifo": fails}, {"rename": fails}):
        with monkeypatch.context() as patch:
            for name, other in cut.items():
                patch.setattr(os, name, other)
            assert box.post("x", b"an outcome") is None
    assert not list(memory.glob("*/*"))
    assert not before or len(list(folder.iterdir())) == before, "no file stays open"


def fails(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "no space")


def test_a_server_with_many_files_open(file: str, memory: Path) -> None:
    letter = Letters(file).post("x", b"an outcome")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if letter is None or most[1] < 5000:
        pytest.skip("not so many files may be open on this system")
    resource.setrlimit(resource.RLIMIT_NOFILE, (5000, most[1]))
    os.dup2(letter.bell, 4000)
    try:
        assert not letter._replace(bell=4000).is_answered(0.0)
    finally:
        os.close(4000)
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
        letter.take_back()


def test_a_letter_that_nobody_can_read_holds_nobody_up(file: str, memory: Path) -> None:
    trial = Trial.open(f"sqlite:///{file}", "colours")
    start = neighbours.note_of("colours", [], trial.seen).start
    for text in (b"", b'{"head": 1}', b'{"head": [1, "x"], "jobs": [{"kind": "ask"}]}'):
        letter = Letters(file).post(start, text)
        assert letter is not None
        assert ask(trial).assignments
        assert letter.take_back() == (letters.TAKEN, b"")
    assert trial.status().people == 4
    trial.close()
    assert not list(memory.iterdir()), "nor does a folder stay"


def test_an_older_copy_does_nothing_for_those_who_know_better(file: str, memory: Path) -> None:
    """Whoever opens the copy without knowing a head cannot see that it is old."""
    url, old = f"sqlite:///{file}", f"{file}.old"
    shutil.copy(file, old)
    known = Trial.open(url, "colours")
    found: list[Any] = []
    with waiting(file, memory, [ask, lambda _: ask(known)], found):
        pass
    head = Trial.open(url, "colours").status().head
    assert str(known.seen) == head, "who had it done by others has seen their record"
    known.close()
    for end in ("-wal", "-shm"):
        Path(file + end).unlink(missing_ok=True)
    os.replace(old, file)
    found.clear()
    with waiting(file, memory, [ask, lambda _: ask(known)], found):
        pass
    assert len(found[0].assignments) == 1
    assert isinstance(found[1], TamperedError)
    assert Trial.open(url, "colours").status().people == 2


def test_a_system_without_such_a_place(
    file: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "MEMORY", str(memory / "nowhere"))
    trials = [Trial.open(f"sqlite:///{file}", "colours") for _ in range(3)]
    with Line(file, 30.0).turn():
        threads = [threading.Thread(target=ask, args=(trial,)) for trial in trials]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert trials[0].status().people == 4


def test_a_bell_that_nobody_rings(file: str, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had the turn died: those who wait look for themselves."""
    monkeypatch.setattr(letters, "_ring", lambda _: None)
    found: list[Any] = []
    with waiting(file, memory, [ask] * 3, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 3


def test_other_trials_and_larger_calls_wait_for_themselves(file: str, memory: Path) -> None:
    create(f"sqlite:///{file}", name="other", strategy=bet_se(0.1, 1.0))
    other = Trial.open(f"sqlite:///{file}", "other")
    found: list[Any] = []
    with waiting(file, memory, [ask, lambda _: other.ask(), ask], found):
        pass
    assert [len(batch.assignments) for batch in found] == [1, 1, 1]
    assert other.status().people == 1
    assert Trial.open(f"sqlite:///{file}", "colours").status().people == 3
    with Line(file, 30.0).turn():
        large = threading.Thread(target=lambda: other.ask(neighbours.MOST_PEOPLE + 1))
        large.start()
        time.sleep(0.05)
        assert not written(memory)
    large.join()
    assert other.status().people == neighbours.MOST_PEOPLE + 2
