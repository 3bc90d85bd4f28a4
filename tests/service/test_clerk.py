"""A clerk: another process that does the jobs of many who call at once. What callers
hear does not depend on it, nor on its death.

Seen to fail with: a job that is done again though it is on the slip, a slip that is not
written, or outside of the transaction, an answer that is in the line when it dies and
is not heard, a site that is not handed
on, a head that is not looked at, a clerk that hangs for ever, one that a signal to the
service ends, one that stays when the service was killed, one that is hired for a single
caller, a call that fails as no line can be had, warnings of a clerk, last words that
nobody hears, jobs that one after the other wait for a store that cannot be used.
"""

import asyncio
import errno
import fcntl
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Trial, bet_se
from discreet.errors import StoreError
from discreet.service import clerk
from discreet.service.clerk import CROWD
from discreet.service.clerking import FEW, Clerking, Messages, Wish, framed
from discreet.service.home import Home
from discreet.trials import kept
from discreet.trials.calls import Caller
from discreet.trials.chain import Head
from discreet.trials.jobs import expire_job, plain
from discreet.trials.kept import Keep, Kept
from discreet.trials.status import Batch, Told
from discreet.trials.together import LEADS_WITHOUT, Job
from tests.support.service import Service, serving

Found = TypeVar("Found")
SOON = 60.0
DIES = """
import os, sys
from discreet.service import clerking
do = clerking.Clerking._do
def done_and_dead(self, wishes):
    do(self, wishes)
    os._exit(1)
clerking.Clerking._do = done_and_dead
sys.argv = sys.argv[-2:]
clerking.main()
"""
"""A clerk that dies when what it does is on disk, before it says so."""
FAILS = """
import sys
from discreet.service import clerking
def fails(self, wishes):
    raise ValueError("an outcome")
clerking.Clerking._do = fails
sys.argv = sys.argv[-2:]
clerking.main()
"""
"""A clerk that ends with an error."""
STAYS = """
import asyncio, sys
from discreet.service.home import Home
home = Home(sys.argv[1])
async def stay():
    await home._clerk.hire(1000)
    while not home._clerk._here:
        await asyncio.sleep(0.01)
    print(home._clerk.process, flush=True)
    await asyncio.sleep(600)
asyncio.run(stay())
"""
"""A service with a clerk, until it is killed."""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def new_trial(folder: Path, **about: Any) -> str:
    url = f"sqlite:///{folder}/trials.db"
    options = {"max_people": 5000, **about}
    Trial.create(url, "dose", ["a", "b"], bet_se(0.001, 0.05), **options).close()
    return url


def post(
    service: Service, what: str, body: Any, secret: str = "", **headers: str
) -> httpx.Response:
    who = {"Authorization": f"Bearer {secret or service.secret}"}
    address = f"{service.base_url}/api/v1/trials/dose/{what}"
    return httpx.post(address, json=body, headers=who | headers, timeout=SOON)


def crowd(work: Callable[[int], Any], many: int = 2 * CROWD) -> list[Any]:
    """What so many get who call at once."""
    ready = threading.Barrier(many)

    def one(number: int) -> Any:
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(one, range(many)))


@contextmanager
def with_clerk(url: str) -> Iterator[Service]:
    """A service whose clerk is there."""
    with serving(url) as service:
        hire(service)
        yield service


def hire(service: Service) -> None:
    """Call at once until a clerk is there; nobody is enrolled meanwhile."""
    place = service.home._clerk
    assert place is not None
    unknown = {"outcomes": {"1-aaaa": 1}}
    until(lambda: crowd(lambda _: post(service, "tell", unknown)) != [] and place._here)


def test_nobody_hires_one_for_a_single_caller(tmp_path: Path) -> None:
    with serving(new_trial(tmp_path)) as service:
        for _ in range(3 * CROWD):
            assert post(service, "ask", {}).status_code == 200
        assert service.home._clerk is not None
        assert service.home._clerk.process == -1


def test_callers_hear_what_they_would_without_it(tmp_path: Path) -> None:
    url = new_trial(tmp_path, sites=["Lyon", "Bern"])
    wrong = [
        ("ask", {"site": "Rome"}),
        ("tell", {"outcomes": {"1-aaaa": 1}}),
        ("tell", {"outcomes": {"1-aaaa": 7}}),
    ]
    with serving(url) as service:
        before = [post(service, what, body).json()["detail"] for what, body in wrong]
        hire(service)
        assert [post(service, what, body).json()["detail"] for what, body in wrong] == before
        asked = post(service, "ask", {"site": "Lyon"}, **{"Idempotency-Key": "one"})
        again = post(service, "ask", {"site": "Lyon"}, **{"Idempotency-Key": "one"})
        assert asked.json() == again.json()
        id = asked.json()["assignments"][0]["id"]
        elsewhere = service.token("site", trial="dose", site="Bern")
        stranger = post(service, "tell", {"outcomes": {id: 1}}, elsewhere)
        assert stranger.status_code == 422
        assert "no assignment" in stranger.json()["detail"]
        told = post(service, "tell", {"outcomes": {id: 1}})
        assert told.json() == {"new": 1, "before": [], "late": []}
        assert told.headers["discreet-head"] == str(service.home.trial("dose").seen)
        assert post(service, "tell", {"outcomes": {id: 1}}).json()["before"] == [id]
        assert service.home.trial("dose").verify().intact


def test_a_crowd_shares_its_transactions(tmp_path: Path) -> None:
    with with_clerk(new_trial(tmp_path)) as service:
        before = service.home.trial("dose").status().people
        events = service.home.trial("dose").seen.seq
        found = crowd(lambda _: post(service, "ask", {}).json(), 32)
        ids = {one["assignments"][0]["id"] for one in found}
        assert len(ids) == 32
        told = crowd(lambda one: post(service, "tell", {"outcomes": {sorted(ids)[one]: 1}}), 32)
        assert [one.json()["new"] for one in told] == [1] * 32
        after = service.home.trial("dose").status()
        assert after.people == before + 32
        assert service.home.trial("dose").seen.seq - events < 32


@pytest.mark.parametrize("key", [None, "a key of the caller"])
def test_what_it_did_before_it_died_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setattr(clerk, "COMMAND", ("-P", "-c", DIES, "clerk"))
    monkeypatch.setattr(clerk, "PAUSE", 0.0)
    home, trial, caller = at_home(tmp_path)

    async def calls() -> Told:
        await hired(home)
        asked = read(await home.follow(trial, caller.asking(request=key)), Batch)
        await hired(home)
        told = home.follow(trial, caller.telling({asked.assignments[0].id: 1}, key))
        return read(await told, Told)

    assert asyncio.run(calls()) == Told(1)
    assert trial.status().people == 1
    assert [one.call for one in trial.journal()] == ["tell", "ask", "create"]
    assert trial.verify().intact
    home.close()


def test_what_it_said_and_nobody_heard_is_not_done_again(tmp_path: Path) -> None:
    home, trial, caller = at_home(tmp_path)

    async def asked(people: int) -> asyncio.Future[Any]:
        """Somebody asks, and waits, until there are so many people."""
        asks = asyncio.ensure_future(home.follow(trial, caller.asking()))
        while (await home.run(trial.status)).people < people:
            await asyncio.sleep(0.01)
        return asks

    async def calls() -> list[Batch]:
        await hired(home)
        answers = [await asked(1)]
        await answers[0]
        assert home._clerk is not None
        assert home._clerk._transport is not None
        home._clerk._transport.pause_reading()
        answers += [await asked(2), await asked(3)]
        home._clerk._transport.abort()
        return [read(await one, Batch) for one in answers]

    found = asyncio.run(calls())
    assert len({one.id for batch in found for one in batch.assignments}) == 3
    assert trial.status().people == 3
    home.close()


def test_jobs_without_a_key_leave_one_row_for_all(tmp_path: Path) -> None:
    home, trial, caller = at_home(tmp_path)

    async def calls() -> None:
        await hired(home)
        for _ in range(5):
            await home.follow(trial, caller.asking(person=f"Ada {secrets.token_hex(8)}"))
        await home.follow(trial, caller.asking(request="a key of the caller"))
        await closed(home)

    asyncio.run(calls())
    with closing(sqlite3.connect(tmp_path / "trials.db")) as file:
        assert file.execute("SELECT count(*) FROM discreet_requests").fetchone() == (2,)
    assert b"Ada" not in (tmp_path / "trials.db").read_bytes(), "nobody is named there"


def test_a_slip_that_cannot_be_read_leaves_it_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: Any) -> Any:
        raise StoreError("the file is gone; nothing was changed")

    monkeypatch.setattr(clerk, "COMMAND", ("-P", "-c", DIES, "clerk"))
    home, trial, caller = at_home(tmp_path)
    trial.ask()

    async def call() -> None:
        await hired(home)
        monkeypatch.setattr(kept, "look", cannot)
        with pytest.raises(StoreError, match="not known whether this was done"):
            await home.follow(trial, caller.asking())

    asyncio.run(call())
    assert trial.status().people == 2
    home.close()


def at_home(folder: Path) -> tuple[Home, Trial, Caller]:
    """What a service has at hand of a new trial, and somebody who calls it."""
    home = Home(new_trial(folder))
    trial = home.trial("dose")
    return home, trial, trial.caller("a nurse", None)


def read(found: Any, kind: type[Found]) -> Found:
    """What a caller hears, whoever has done it."""
    plain = found if isinstance(found, kind) else msgspec.json.decode(found, type=kind)
    assert isinstance(plain, kind)
    return plain


async def hired(home: Home) -> None:
    """Have a clerk there."""
    place, deadline = home._clerk, time.monotonic() + SOON
    assert place is not None
    while not place._here:
        await place.hire(CROWD)
        await asyncio.sleep(0.01)
        assert time.monotonic() < deadline


async def closed(home: Home) -> None:
    """Have the clerk gone, with all that is open."""
    home.close()
    while home._clerk is not None and home._clerk._transport is not None:
        await asyncio.sleep(0.01)


def test_one_that_is_killed_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clerk, "PAUSE", 0.0)
    with with_clerk(new_trial(tmp_path)) as service:
        place = service.home._clerk
        assert place is not None
        people, ends = service.home.trial("dose").status().people, threading.Event()

        def kill() -> None:
            while not ends.wait(0.2):
                if place._here and place.process > 0:
                    os.kill(place.process, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        deadline, answers = time.monotonic() + 2, list[httpx.Response]()
        while time.monotonic() < deadline:
            answers += crowd(lambda _: post(service, "ask", {}))
        ends.set()
        killer.join()
        assert {one.status_code for one in answers} == {200}
        ids = [one["id"] for answer in answers for one in answer.json()["assignments"]]
        assert len(set(ids)) == len(ids)
        assert service.home.trial("dose").status().people == people + len(ids)
        assert service.home.trial("dose").verify().intact


def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clerk, "SILENCE", 1.0)
    home, trial, caller = at_home(tmp_path)

    async def calls() -> Batch:
        await hired(home)
        assert home._clerk is not None
        os.kill(home._clerk.process, signal.SIGSTOP)
        return await asyncio.wait_for(home.follow(trial, caller.asking()), SOON)

    assert len(asyncio.run(calls()).assignments) == 1
    assert trial.status().people == 1
    home.close()


def test_a_call_is_served_where_none_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.EMFILE, "too many open files")

    home, trial, caller = at_home(tmp_path)

    async def call() -> Batch:
        monkeypatch.setattr(socket, "socketpair", full)
        monkeypatch.setattr(clerk, "CROWD", 1)
        return await home.follow(trial, caller.asking())

    assert len(asyncio.run(call()).assignments) == 1
    assert home._clerk is not None
    assert home._clerk.process == -1
    home.close()


def test_it_leaves_warnings_to_the_service(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = Home(new_trial(tmp_path))
    trial = home.trial("dose")
    (tmp_path / "trials.db").chmod(0o644)  # of which whoever opens it warns

    async def call() -> None:
        await hired(home)
        await home.follow(trial, trial.caller("a nurse", None).asking())
        await closed(home)

    asyncio.run(call())
    assert capfd.readouterr().err == ""


def test_of_its_error_the_kind_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clerk, "COMMAND", ("-P", "-c", FAILS, "clerk"))
    monkeypatch.setattr(clerk, "PAUSE", 0.0)
    home = Home(new_trial(tmp_path))
    trial = home.trial("dose")

    async def calls() -> None:
        for _ in range(4):
            await hired(home)
            await home.follow(trial, trial.caller("a nurse", None).asking())

    asyncio.run(calls())
    home.close()
    said = capfd.readouterr().err.splitlines()
    assert said == ["the clerk ended with a ValueError"] * 4


def test_signals_to_the_service_do_not_end_it(tmp_path: Path) -> None:
    with with_clerk(new_trial(tmp_path)) as service:
        place = service.home._clerk
        assert place is not None
        number = place.process
        for sign in (signal.SIGINT, signal.SIGTERM):
            os.kill(number, sign)
        assert post(service, "ask", {}).status_code == 200
        assert (place._here, place.process) == (True, number)
    assert not Path(f"/proc/{number}").exists()


def test_it_goes_when_its_service_was_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", STAYS, new_trial(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        number = int(service.stdout.readline())
        assert Path(f"/proc/{number}").exists()
        service.kill()
    until(lambda: not Path(f"/proc/{number}").exists())


def test_with_an_older_record_it_does_nothing(tmp_path: Path) -> None:
    url = new_trial(tmp_path)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        work = Clerking(theirs)
        work._url = url
        trial = Trial.open(url, "dose")
        trial.ask()
        job = next(trial.asking())
        said = work._do([Wish(1, "dose", trial.seen, plain(job))])
        assert (list(said.done), said.refused) == ([1], [])
        job = next(trial.asking())
        newer = Head(said.head.seq + 1, "0" * 64)
        said = work._do([Wish(2, "dose", newer, plain(job))])
        assert (said.done, said.refused) == ({}, [2])
        assert trial.status().people == 2
        for one in work._trials.values():
            one.close()
        trial.close()


def test_it_hands_all_back_while_the_store_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(trial: Kept, jobs: list[Job[Any, Any]], keep: Keep) -> None:
        for job in jobs:
            job.fail(StoreError("somebody else is using it"))

    monkeypatch.setattr(Kept, "do_now", locked)
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(Trial.open(new_trial(tmp_path), "dose")) as trial:
        work = Clerking(theirs)
        work._url = f"sqlite:///{tmp_path}/trials.db"
        here, came = (
            Wish(number, "dose", trial.seen, plain(job))
            for number, job in enumerate((expire_job(), next(trial.asking())), 1)
        )
        work._waiting = [here]
        ours.send(framed(msgspec.msgpack.encode([came])))
        said = work._do(work._next())
        assert (said.done, said.refused, work._waiting) == ({}, [1, 2], [])
        for one in work._trials.values():
            one.close()


def test_it_takes_half_of_a_crowd_at_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        work = Clerking(theirs)

        def taken(*came: str) -> list[int]:
            first = len(took) + len(work._waiting)
            work._waiting += [
                Wish(number, "dose", Head(0, ""), {"kind": kind})
                for number, kind in enumerate(came, first)
            ]
            took.extend(found := [one.number for one in work._next()])
            work._count(len(found))
            return found

        took: list[int] = []
        assert taken(*["ask"] * FEW) == list(range(FEW))  # a few are not parted
        assert taken(*["tell"] * (4 * FEW)) == list(range(FEW, 3 * FEW))  # of 64 half
        assert taken(*["ask"] * FEW) == list(range(3 * FEW, 5 * FEW))  # one kind at a time
        assert taken() == list(range(5 * FEW, 6 * FEW))
        for _ in range(1000):  # the crowd has gone, and another one is there
            taken(*["ask"] * 2)
        assert len(taken(*["ask"] * 3 * FEW)) == 3 * FEW / 2


def test_the_kind_of_most_is_done_first_and_nobody_is_passed_over_twice() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        work = Clerking(theirs)

        def taken(*came: str) -> set[str]:
            work._waiting += [Wish(0, "dose", Head(0, ""), {"kind": one}) for one in came]
            return {one.job["kind"] for one in work._next()}

        assert taken("ask", "tell", "tell") == {"tell"}
        assert taken("tell", "tell") == {"ask"}
        assert taken("ask") == {"tell"}
        assert taken() == {"ask"}


def test_it_waits_on_a_line_of_any_number() -> None:
    """A service with many connections has lines of large numbers, and its clerk too."""
    ours, theirs = socket.socketpair()
    try:
        line = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, 1100)
    except OSError:
        pytest.skip("not so many files may be open on this system")
    with ours, theirs, socket.socket(fileno=line) as far:
        work = Clerking(far)
        work._crowd, work._answered, work._patience = 4.0, time.monotonic(), 0.01
        work._gather()
    assert work._without == LEADS_WITHOUT


def test_it_waits_for_half_of_the_crowd_but_not_for_long_nor_in_vain_again() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        work = Clerking(theirs)
        wishes = [Wish(one, "dose", Head(0, ""), {"kind": "ask"}) for one in range(4 * FEW)]
        work._crowd, work._waiting = 4.0 * FEW, wishes[:FEW]
        work._answered, work._patience = time.monotonic(), SOON
        ours.send(framed(msgspec.msgpack.encode(wishes[FEW : 2 * FEW])))
        work._gather()
        assert work._waiting == wishes[: 2 * FEW]
        work._waiting, work._patience = wishes[:FEW], 0.05
        work._gather()
        assert work._waiting == wishes[:FEW]
        assert time.monotonic() >= work._answered + work._patience
        work._answered, work._patience = time.monotonic(), SOON
        for _ in range(LEADS_WITHOUT):
            work._gather()
        assert time.monotonic() < work._answered + work._patience
        work._crowd, work._waiting = 4.0, wishes[:4]  # all of a few are here
        work._answered, work._patience = time.monotonic(), 5.0
        work._gather()
        assert time.monotonic() < work._answered + work._patience


def test_a_head_is_kept_in_mind_only_while_nobody_looks(tmp_path: Path) -> None:
    url = new_trial(tmp_path)
    trial, other = Trial.open(url, "dose"), Trial.open(url, "dose")
    other.ask()
    older = trial.seen
    with ThreadPoolExecutor(1) as threads:
        with trial._store.lock:
            threads.submit(trial.hear, other.seen).result()
        assert trial.seen == older
        threads.submit(trial.hear, other.seen).result()
        assert trial.seen == other.seen
        threads.submit(trial.hear, older).result()
        assert trial.seen == other.seen
    trial.close()
    other.close()


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 50))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], size: int) -> None:
    sent, reads = b"".join(map(framed, messages)), Messages()
    found = list[bytes]()
    for start in range(0, len(sent), size):
        found += reads.add(sent[start : start + size])
    assert found == messages


def test_a_wish_can_be_read_again() -> None:
    wish = Wish(3, "dose", Head(4, "ab"), {"kind": "tell", "units": {"1-a": 7}})
    text = msgspec.msgpack.encode([wish])
    assert msgspec.msgpack.decode(text, type=list[Wish]) == [wish]
