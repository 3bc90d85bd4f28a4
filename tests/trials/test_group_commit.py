"""Callers of one process share a transaction: nobody notices but by the time."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import Trial, bet_se, ttucb
from discreet.errors import DiscreetError, InvalidInputError, StoreError
from discreet.trials import mechanisms, record
from discreet.trials.group_commit import GroupCommit, Task
from discreet.trials.inputs import MAX_BATCH
from discreet.trials.store.database import Database
from discreet.trials.store.tables import TrialTables
from discreet.trials.transaction import TrialTransaction
from tests.support.clock import Clock
from tests.support.stores import create

BETS = bet_se(0.1, 5.0)
Call = Callable[[], Any]


def at_once(trial: Trial, calls: list[Call]) -> list[Any]:
    """What comes of calls of which one is at work and the others wait in line: the
    first is served by itself, the rest together. It has left the line before another
    one comes.
    """
    found: list[Any] = [None] * len(calls)

    def do(place: int) -> None:
        try:
            found[place] = calls[place]()
        except DiscreetError as error:
            found[place] = error

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(calls))]
    with trial._database.lock:
        for place, thread in enumerate(threads):
            thread.start()
            wait_until_in_line(trial, place)
    for thread in threads:
        thread.join()
    return found


def wait_until_in_line(trial: Trial, many: int) -> None:
    """Wait until a transaction is under way, and so many tasks are queued."""
    group, deadline = trial._group, time.monotonic() + 60
    while not group._is_writing or len(group._queue) != many:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@contextmanager
def watched(trial: Trial) -> Iterator[list[str]]:
    """Commits, and what the record got in between."""
    seen: list[str] = []
    append = TrialTables.append_event

    def noted(tables: TrialTables, kind: str, body: dict[str, Any]) -> None:
        seen.append(kind)
        append(tables, kind, body)

    sa.event.listen(trial._database.engine, "commit", lambda _: seen.append("commit"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialTables, "append_event", noted)
        yield seen


def test_those_who_wait_share_a_commit(url: str) -> None:
    trial = create(url, strategy=bet_se(0.1, 1.0))
    trial.ask()
    with watched(trial) as seen:
        found = at_once(trial, [trial.ask] * 12)
    assert seen == ["assigned", "commit", *["assigned"] * 11, "commit"]
    ids = {one.id for batch in found for one in batch.assignments}
    assert len(ids) == 12
    told = at_once(trial, [partial(trial.tell, id, 1) for id in sorted(ids)])
    assert [one.new for one in told] == [1] * 12
    assert trial.status().participants == 13
    assert [call.action for call in trial.audit_trail(24)] == ["tell"] * 12 + ["ask"] * 12
    assert trial.verify().intact


def test_one_who_is_refused_holds_nobody_up(url: str) -> None:
    trial = create(url, strategy=BETS, sites=["Leeds", "Lyon"], returning="refuse")
    trial.ask(participant="ann", site="Leeds")
    names = ["ann", "bob", "cid", "bob", "dan"]
    calls: list[Call] = [lambda: trial.ask(participant="eve", site="Leeds")]
    calls += [partial(trial.ask, participant=name, site="Leeds") for name in names]
    calls += [
        lambda: trial.ask(participant="fay", site="Oslo"),
        lambda: trial.manage("fly", "x"),
        lambda: trial.manage("close-site", "no staff", "Lyon"),
        lambda: trial.tell("1-0000", 1),
    ]
    found = at_once(trial, calls)
    refused = [isinstance(one, InvalidInputError) for one in found]
    assert refused == [False, True, False, False, True, False, True, True, False, True]
    assert "took part before" in str(found[1])
    assert "one of Leeds, Lyon" in str(found[6])
    status = trial.status()
    assert (status.participants, [act.action for act in status.actions]) == (5, ["close-site"])
    assert trial.verify().intact


def test_the_same_request_at_once_has_one_answer(url: str) -> None:
    trial = create(url, strategy=BETS)
    found = at_once(trial, [lambda: trial.ask(2, key="r")] * 6)
    assert len({tuple(one.id for one in batch.assignments) for batch in found}) == 1
    assert trial.status().participants == 2


def test_two_who_tell_the_same_are_told_apart(url: str) -> None:
    trial = create(url, strategy=BETS)
    one, two = trial.ask(2).assignments
    found = at_once(
        trial,
        [trial.ask, *[lambda: trial.tell_many({one.id: 1, two.id: 0})] * 3],
    )
    assert sorted(told.new for told in found[1:]) == [0, 0, 2]
    assert sorted(len(told.already_told) for told in found[1:]) == [0, 2, 2]
    assert trial.verify().intact


def completing(trial: Trial) -> tuple[list[Call], int]:
    """Calls of which one completes a round, with others before and behind, among them
    one of its own kind.
    """
    people: list[Any] = []
    while batch := trial.ask(50).assignments:
        people += batch
    trial.tell_many({one.id: 1 for one in people[:-1]})
    last: list[Call] = [
        lambda: trial.manage("drop-arm", "x", people[-1].arm),
        lambda: trial.manage("raise-maximum", "x", 600),
    ]
    return [trial.open_assignments, *last, *[trial.ask] * 3], len(people)


def after_draws(seen: list[str]) -> set[str]:
    """What follows what was drawn, within its transaction."""
    pairs = pairwise(seen)
    return {behind for before, behind in pairs if before in ("released", "opened")}


def test_whatever_draws_ends_its_transaction(url: str) -> None:
    trial = create(url, strategy=BETS)
    calls, people = completing(trial)
    with watched(trial) as seen:
        found = at_once(trial, calls)
    assert "released" in seen
    assert "opened" in seen
    assert after_draws(seen) <= {"commit", "stopped"}
    assert not [one for one in found if isinstance(one, DiscreetError)]
    assert trial.status().participants == people + sum(len(one.assignments) for one in found[-3:])
    assert trial.verify().intact


def test_a_transaction_that_goes_on_after_a_draw_is_found(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: nobody says that something was drawn."""
    monkeypatch.setattr(
        TrialTransaction, "drew", property(lambda _: False, lambda *_: None), raising=False
    )
    trial = create(url, strategy=BETS)
    calls, _ = completing(trial)
    with watched(trial) as seen:
        at_once(trial, calls)
    assert not after_draws(seen) <= {"commit", "stopped"}


def test_a_refusal_behind_a_draw_redraws_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is refused cannot have the noise of others drawn again."""
    drawn: list[Any] = []
    release = record.make_release

    def noted(*words: Any) -> Any:
        drawn.append(words)
        return release(*words)

    monkeypatch.setattr("discreet.trials.release.make_release", noted)
    trial = create(url, strategy=BETS)
    calls, _ = completing(trial)
    at_once(trial, [*calls, lambda: trial.manage("fly", "x"), lambda: trial.tell("1-00", 1)])
    releases = [one for one in trial.transcript()["events"] if one["kind"] == "released"]
    assert len(drawn) == len(releases) > 0


def test_all_hear_of_a_commit_that_failed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = create(url, strategy=BETS)
    trial.ask()
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> None:
            raise StoreError("the disk is full")

        patch.setattr(Database, "_commit", fail)
        found = at_once(trial, [trial.ask] * 5)
    assert [str(one) for one in found] == ["the disk is full"] * 5
    assert len({id(one) for one in found}) == 5, "each caller has an error of its own"
    assert trial.status().participants == 1
    assert trial.verify().intact


def test_a_crowd(url: str) -> None:
    """Eight threads that ask and tell as they like."""
    trial = create(url, strategy=ttucb(1e-9), max_participants=10**5)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for turn in range(6):
                batch = trial.ask(1 + (seed + turn) % 3, key=f"{seed} {turn}")
                again = trial.ask(key=f"{seed} {turn}")
                assert batch.assignments == again.assignments
                trial.tell_many({one.id: (seed + turn) % 2 for one in batch.assignments})
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert trial.status().participants == sum(1 + (s + t) % 3 for s in range(8) for t in range(6))
    assert trial.status().pending == 0
    assert trial.verify().intact


def test_no_transaction_is_of_more_people_than_one_call(url: str) -> None:
    trial = create(url, strategy=bet_se(1e-9, 0.001), max_participants=10**6)
    trial.ask()
    with watched(trial) as seen:
        found = at_once(trial, [lambda: trial.ask(MAX_BATCH // 2)] * 5)
    assert seen.count("commit") == 3
    assert sum(len(one.assignments) for one in found) > MAX_BATCH
    with pytest.raises(InvalidInputError, match="n must be"):
        trial.ask(MAX_BATCH + 1)
    ids = {f"1-{number}": 1.0 for number in range(MAX_BATCH + 1)}
    with pytest.raises(InvalidInputError, match="at most 10000 outcomes can be recorded at once"):
        trial.tell_many(ids)


def test_what_draws_noise_is_loaded_before_others_wait(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading it takes a tenth of a second, which all who write would wait for."""
    trial, seen = create(url, strategy=BETS), list[str]()
    person = trial.ask().assignments[0]
    tables = Database.transaction

    @contextmanager
    def noted(store: Database, *about: Any) -> Iterator[TrialTables]:
        seen.append("write")
        with tables(store, *about) as made:
            yield made

    monkeypatch.setattr(mechanisms, "load_opendp", lambda: seen.append("load"))
    monkeypatch.setattr(Database, "transaction", noted)
    trial.tell(person.id, 1.0)
    assert seen[:2] == ["load", "write"]
    seen.clear()
    trial.ask()
    assert "load" not in seen


def test_a_late_one_is_reissued_amid_others(url: str, clock: Clock) -> None:
    """Those who are late are read once for a transaction."""
    trial = create(url, strategy=BETS, deadline=100.0)
    late = trial.ask().assignments[0]
    clock.now += 60
    one, two = trial.ask(2).assignments
    clock.now += 60
    found = at_once(
        trial,
        [
            trial.open_assignments,
            partial(trial.tell, one.id, 1),
            partial(trial.reissue, late.id),
            partial(trial.tell, two.id, 1),
        ],
    )
    assert [found[1].new, found[3].new] == [1, 1]
    assert found[2].id != late.id
    assert trial.tell(found[2].id, 1).late == (found[2].id,)
    assert trial.verify().intact


def test_a_reader_behind_a_commit_sees_no_older_head(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes, and another thread looks, as soon as the lock is free."""
    trial = create(url, strategy=BETS)
    trial.ask()
    other = Trial.open(url, "colours")
    seen: list[Any] = []

    class Lock:
        def __init__(self) -> None:
            self.lock, self.depth = threading.RLock(), 0

        def __enter__(self) -> None:
            self.lock.acquire()
            self.depth += 1

        def __exit__(self, *_: object) -> None:
            self.depth -= 1
            is_free = not self.depth
            self.lock.release()
            if is_free and not seen:
                seen.append(None)
                other.ask()
                seen.append(trial.status().head)

    with monkeypatch.context() as patch:
        patch.setattr(trial._database, "lock", Lock())
        trial.ask()
    assert str(trial._seen) == seen[1]
    assert trial.verify().intact


class BreakOffError(BaseException):
    """What the handler of a signal raises, such as SystemExit."""


def finish(tasks: list[Task[Any]]) -> None:
    for task in tasks:
        task.finish()


def test_whoever_is_broken_off_leaves_nobody_waiting() -> None:
    """By another signal than Ctrl-C: the transaction goes on without its caller."""
    is_free, found = threading.Event(), list[Any]()

    def commit(tasks: list[Task[Any]]) -> None:
        assert is_free.wait(60)
        finish(tasks)

    def break_off(*_: Any) -> None:
        raise BreakOffError

    group = GroupCommit()
    others = [
        threading.Thread(target=lambda: found.append(group.submit(Task(bool), commit).result()))
        for _ in range(2)
    ]
    before = signal.signal(signal.SIGUSR1, break_off)
    try:
        for thread in others:
            thread.start()
        threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        with pytest.raises(BreakOffError):
            group.submit(Task(bool), commit).result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    is_free.set()
    for thread in others:
        thread.join(10)
    assert found == [None, None]
    assert group.submit(Task(bool), commit).result() is None


def test_all_hear_of_whatever_ends_their_transaction() -> None:
    def commit(tasks: list[Task[Any]]) -> None:
        if fails:
            raise BreakOffError
        finish(tasks)

    fails, group = True, GroupCommit()
    with pytest.raises(BreakOffError):
        group.submit(Task(bool), commit).result()
    fails = False
    assert group.submit(Task(bool), commit).result() is None


def test_tasks_that_were_not_run_come_first_in_the_next_transaction() -> None:
    order, is_free = list[str](), threading.Event()

    def commit(tasks: list[Task[Any]]) -> None:
        assert is_free.wait(60)
        order.append(tasks[0].user)
        finish(tasks[:1])

    group = GroupCommit()
    threads = [
        threading.Thread(
            target=lambda number=number: group.submit(Task(bool, user=str(number)), commit).result()
        )
        for number in range(5)
    ]
    for number, thread in enumerate(threads):
        thread.start()
        deadline = time.monotonic() + 60
        while not (group._is_writing and len(group._queue) == number):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    is_free.set()
    for thread in threads:
        thread.join(10)
    assert order == ["0", "1", "2", "3", "4"]
