"""Who comes while another's transaction is under way has what it wants done in it, and
whoever has the turn waits for those who came a moment ago: two servers on one
PostgreSQL share their commits, and do not alternate.

Two `Trial`s of one database stand for two processes: neither knows the other.
"""

import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.errors import DiscreetError, InvalidInputError, StoreError
from discreet.trials import neighbours, together
from discreet.trials.chain import Head
from discreet.trials.desk import Desk
from discreet.trials.jobs import jobs_of
from discreet.trials.kept import Kept
from discreet.trials.store import letters, turns
from discreet.trials.store.database import Store
from discreet.trials.store.letters import Letter, Letters, Taken
from discreet.trials.store.session import Session
from discreet.trials.store.turns import Turn
from tests.support.postgres import Server
from tests.support.stores import create

Call = Callable[[Trial], Any]


def opened(url: str) -> Trial:
    return Trial.open(url, "colours")


def ask(trial: Trial) -> Any:
    return trial.ask(site="Leeds")


def tell(id: str, trial: Trial) -> Any:
    return trial.tell(id, 1)


def written(memory: Path) -> int:
    """How many letters wait."""
    return sum(path.suffix == letters.WAITING for path in memory.glob("*/*"))


@contextmanager
def before_its_first_step(trial: Trial, work: Callable[[], None]) -> Iterator[list[str]]:
    """Something happens when a trial's transaction has begun to do what it was for;
    what all do from then on: steps, events of the record, commits.
    """
    seen: list[str] = []
    step, append, commit = Kept._step, Session.append, Store._commit

    def stepped(kept: Kept, *about: Any) -> bool:
        if kept is trial and not seen:
            work()
        seen.append("step")
        return step(kept, *about)

    def appended(session: Session, kind: str, body: dict[str, Any]) -> None:
        seen.append(kind)
        append(session, kind, body)

    def committed(store: Store, connection: Any) -> None:
        seen.append("commit")
        commit(store, connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kept, "_step", stepped)
        patch.setattr(Session, "append", appended)
        patch.setattr(Store, "_commit", committed)
        yield seen


def with_latecomers(
    url: str, memory: Path, first: Call, calls: Sequence[Call], on_server: bool = True
) -> tuple[list[str], list[Any]]:
    """Others call when the first one's transaction has begun: what was done, and what
    came of all the calls. A file of SQLite is used as a server is.
    """
    trials = [opened(url) for _ in (first, *calls)]
    trials[0]._company.on_server = on_server
    found: list[Any] = [None] * len(trials)

    def do(one: int) -> None:
        try:
            found[one] = (first, *calls)[one](trials[one])
        except DiscreetError as error:
            found[one] = error

    threads = [threading.Thread(target=do, args=(one,)) for one in range(1, len(trials))]

    def come() -> None:
        deadline = time.monotonic() + 30
        for number, thread in enumerate(threads, 1):
            thread.start()
            while written(memory) < number:
                assert time.monotonic() < deadline
                time.sleep(0.002)

    with before_its_first_step(trials[0], come) as seen:
        do(0)
        for thread in threads:
            thread.join()
    for trial in trials:
        trial.close()
    return seen, found


def with_one_person(url: str) -> str:
    with closing(create(url, strategy=bet_se(0.1, 1.0), sites=["Leeds", "Lyon"])) as trial:
        ask(trial)
    return url


@pytest.fixture
def place(url: str, memory: Path) -> str:
    """The address of a trial with one person."""
    return with_one_person(url)


def test_who_comes_meanwhile_shares_the_commit(place: str, memory: Path) -> None:
    seen, found = with_latecomers(place, memory, ask, [ask, ask])
    assert seen == ["step", "assigned", "step", "assigned", "commit"]
    ids = [batch.assignments[0].id for batch in found]
    assert len(set(ids)) == 3
    seen, told = with_latecomers(
        place, memory, partial(tell, ids[0]), [partial(tell, id) for id in [*ids[1:], ids[0]]]
    )
    assert seen.count("commit") == 1
    assert [one.new for one in told] == [1, 1, 1, 0]
    trial = opened(place)
    assert trial.status().people == 4
    assert trial.verify().intact
    assert not written(memory)


def test_who_writes_a_file_prepares_while_another_writes(tmp_path: Path, memory: Path) -> None:
    url = with_one_person(f"sqlite:///{tmp_path}/t.db")
    with closing(opened(url)) as trial:
        on_server = trial._company.on_server
    seen, found = with_latecomers(url, memory, ask, [ask, ask], on_server)
    assert seen == ["step", "assigned", "commit"] * 2
    assert len({batch.assignments[0].id for batch in found}) == 3


def test_a_latecomer_who_is_refused_takes_nothing_back(place: str, memory: Path) -> None:
    calls: list[Call] = [ask, lambda trial: trial.ask(site="Oslo"), ask]
    seen, found = with_latecomers(place, memory, ask, calls)
    assert isinstance(found[2], InvalidInputError)
    assert "one of Leeds, Lyon" in str(found[2])
    assert len({found[one].assignments[0].id for one in (0, 1, 3)}) == 3
    assert seen.count("commit") == 1
    trial = opened(place)
    assert trial.status().people == 4
    assert trial.verify().intact


def test_what_a_commit_that_failed_was_to_do_for_latecomers_they_do_themselves(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, failed = Store._commit, list[bool]()

    def fail_once(store: Store, connection: Any) -> None:
        if not failed:
            failed.append(True)
            raise StoreError("the disk is full")
        commit(store, connection)

    monkeypatch.setattr(Store, "_commit", fail_once)
    _, found = with_latecomers(place, memory, ask, [ask, ask])
    assert str(found[0]) == "the disk is full"
    assert len({batch.assignments[0].id for batch in found[1:]}) == 2
    assert opened(place).status().people == 3


def test_who_dies_before_it_replies_has_done_it_once(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Taken, "answer", lambda *_: None)
    _, found = with_latecomers(place, memory, ask, [ask, ask])
    assert len({batch.assignments[0].id for batch in found}) == 3
    assert opened(place).status().people == 4


def completed(url: str, memory: Path) -> list[str]:
    """Of a call that completes a round while another tells, what happened from what was
    drawn to its commit.
    """
    trial, people = create(url, strategy=bet_se(0.1, 5.0)), list[str]()
    while batch := trial.ask(50).assignments:
        people += [one.id for one in batch]
    trial.tell_many(dict.fromkeys(people[:-1], 1))
    trial.close()
    last, again = partial(tell, people[-1]), partial(tell, people[0])
    seen, found = with_latecomers(url, memory, last, [again])
    assert [told.new for told in found] == [1, 0]
    assert opened(url).verify().intact
    drawn = seen[seen.index("released") :]
    return drawn[: drawn.index("commit")]


def test_nothing_of_latecomers_follows_a_draw(url: str, memory: Path) -> None:
    assert "step" not in completed(url, memory)


def test_what_follows_a_draw_is_found(
    url: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: nobody says that something was drawn."""
    monkeypatch.setattr(Desk, "drew", property(lambda _: False, lambda *_: None), raising=False)
    assert "step" in completed(url, memory)


def test_a_latecomer_who_knows_another_record_is_left_to_itself(
    tmp_path: Path, memory: Path
) -> None:
    file = str(tmp_path / "t.db")
    create(f"sqlite:///{file}", strategy=bet_se(0.1, 1.0)).close()
    trial, posted = opened(f"sqlite:///{file}"), list[Any]()
    trial._company.on_server = True
    trial.ask()
    said = {"kind": "ask", "who": "x", "n": 1, "people": None, "site": None, "key": "k"}
    other = trial.seen._replace(hash="0" * 64)

    def come() -> None:
        for head in (other, Head(trial.seen.seq + 1, "0" * 64), trial.seen):
            text = neighbours._written(jobs_of([said]), head, "")
            note = neighbours.note_of("colours", jobs_of([said]), head, "")
            posted.append(Letters(file).post(note.start, text))

    with before_its_first_step(trial, come):
        trial.ask()
    assert [letter.take_back()[0] for letter in posted] == [
        letters.TAKEN,
        letters.TAKEN,
        letters.DONE,
    ]
    assert trial.status().people == 3


def has_rung(letter: Letter | None) -> bool:
    bell = select.poll()
    bell.register(letter.bell if letter else -1, select.POLLIN)
    return bool(bell.poll(0))


def test_no_turn_is_of_more_letters_because_some_came_late(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOST", 3)
    (tmp_path / "t.db").touch()
    box = Letters(str(tmp_path / "t.db"))
    turn, posted = Turn(box, "x"), [box.post("x", b"1"), box.post("x", b"2")]
    assert [one.text for one in turn.take_letters(lambda: True)] == [b"1", b"2"]
    posted += [box.post("x", b"3"), box.post("x", b"4")]
    assert [one.text for one in turn.take_letters(lambda: True)] == [b"3"]
    assert not turn.take_letters(lambda: True)
    turn._end(well=False)
    assert [has_rung(letter) for letter in posted] == [True, True, True, False]
    assert [letter.take_back()[0] for letter in posted if letter] == [
        *[letters.TAKEN] * 3,
        letters.WAITING,
    ]


# --- who is waited for ----------------------------------------------------------------


@pytest.fixture
def server(postgres: Server, memory: Path) -> str:
    """The address of such a trial on a server."""
    return with_one_person(postgres.new_url())


def test_who_came_a_moment_ago_is_waited_for(
    server: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all want it at the same time, and it is done in one step."""
    monkeypatch.setattr(turns, "PATIENCE", 30.0)
    first, second = opened(server), opened(server)
    first._company._others, first._company._patience = 1, 30.0
    begun, wait = threading.Event(), Letters.wait_for

    def noted(box: Letters, *about: Any) -> int:
        begun.set()
        return wait(box, *about)

    monkeypatch.setattr(Letters, "wait_for", noted)
    with before_its_first_step(first, lambda: None) as seen:
        waits = threading.Thread(target=ask, args=(first,))
        waits.start()
        begun.wait()
        ask(second)
        waits.join()
    assert seen == ["step", "assigned", "commit"]
    assert first._company._others == second._company._others == 1
    assert first.status().people == 3


def test_nobody_is_waited_for_long_or_again_and_again(
    server: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, waited = opened(server), list[tuple[int, float]]()

    def wait_for(_box: Letters, number: int, seconds: float) -> int:
        if number:
            waited.append((number, seconds))
        return 0

    monkeypatch.setattr(Letters, "wait_for", wait_for)
    ask(trial)
    assert waited == [], "nobody was here"
    for _ in range(together.LEADS_WITHOUT + 2):
        trial._company._others, trial._company._patience = 5, 60.0
        ask(trial)
    assert waited == [(5, letters.PATIENCE)] * 3, "after one turn, then after three more"
    assert trial._company._others == 0, "nobody came"


def test_nobody_is_waited_for_who_writes_a_file(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who write its other trials would wait too."""
    monkeypatch.delattr(Letters, "wait_for")
    trial = opened(with_one_person(f"sqlite:///{tmp_path}/t.db"))
    trial._company._others, trial._company._patience = 5, 60.0
    assert ask(trial).assignments


def test_letters_are_waited_for_until_they_are_here(tmp_path: Path, memory: Path) -> None:
    (tmp_path / "t.db").touch()
    box = Letters(str(tmp_path / "t.db"))
    assert box.wait_for(1, 0.0) == 0
    began = time.monotonic()
    assert box.wait_for(1, 0.02) == 0
    assert time.monotonic() - began >= 0.02
    letter = box.post("x", b"")
    assert letter is not None
    assert box.wait_for(1, 60.0) == 1
    letter.take_back()
