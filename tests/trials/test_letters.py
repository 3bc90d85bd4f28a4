"""Processes that wait to write a trial have what they want done by whoever has the
turn: once, whoever dies.

Two `Trial`s of one database stand for two processes: neither knows the other.
"""

import errno
import os
import resource
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from discreet import Trial, backup_trials, bet_se, restore_trials
from discreet.errors import DiscreetError, InvalidInputError, StoreError, TamperedError
from discreet.trials import kept, neighbours, slips
from discreet.trials.calls import Caller
from discreet.trials.intake import wanted_of
from discreet.trials.jobs import MOST_PEOPLE, ask_job
from discreet.trials.kept import Kept
from discreet.trials.status import Assignment, Batch
from discreet.trials.store import letters, places
from discreet.trials.store.database import Store
from discreet.trials.store.letters import Letters, Taken
from tests.support.postgres import Server
from tests.support.stores import create

Call = Callable[[Trial], Any]


def with_one_person(url: str) -> str:
    with closing(create(url, strategy=bet_se(0.1, 1.0), sites=["Leeds", "Lyon"])) as trial:
        trial.ask(site="Leeds")
    return url


@pytest.fixture
def place(url: str, memory: Path) -> str:
    """The address of a trial with one person."""
    return with_one_person(url)


@pytest.fixture
def file(tmp_path: Path, memory: Path) -> str:
    """A file of SQLite with such a trial."""
    with_one_person(f"sqlite:///{tmp_path}/t.db")
    return str(tmp_path / "t.db")


@contextmanager
def at_work(place: str) -> Iterator[None]:
    """Somebody has the turn."""
    with closing(opened(place)) as trial:
        note = neighbours.note_of("colours", [], trial.seen, "")
        with trial._store.turn(note):
            yield


def opened(place: str) -> Trial:
    return Trial.open(place, "colours")


def written(memory: Path) -> list[Path]:
    return [path for path in memory.glob("*/*") if path.suffix == letters.WAITING]


def left(memory: Path) -> list[Path]:
    return list(memory.glob(f"discreet-{os.geteuid()}-*/*"))


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@contextmanager
def waiting(place: str, memory: Path, calls: list[Call], found: list[Any]) -> Iterator[None]:
    """Callers who wait while the block has the turn."""
    trials = [opened(place) for _ in calls]
    found += [None] * len(calls)

    def do(one: int) -> None:
        try:
            found[one] = calls[one](trials[one])
        except DiscreetError as error:
            found[one] = error

    threads = [threading.Thread(target=do, args=(one,)) for one in range(len(calls))]
    with at_work(place):
        for one, thread in enumerate(threads):
            thread.start()
            wait_for(partial(_more_than, one, memory))
        yield
    for thread, trial in zip(threads, trials, strict=True):
        thread.join()
        trial.close()


def in_line(place: str, memory: Path, calls: list[Callable[[], Any]]) -> None:
    """Calls that wait one after the other, and are done when nobody has the turn."""
    callers = [threading.Thread(target=call) for call in calls]
    with at_work(place):
        for many, caller in enumerate(callers):
            caller.start()
            wait_for(partial(_more_than, many, memory))
    for caller in callers:
        caller.join()


def _more_than(number: int, memory: Path) -> bool:
    return len(written(memory)) > number


def tell(id: str, trial: Trial) -> Any:
    return trial.tell(id, 1)


def ask(trial: Trial) -> Any:
    return trial.ask(site="Leeds")


def events(place: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = opened(place).transcript()["events"]
    return found


def test_those_who_wait_share_a_transaction(place: str, memory: Path) -> None:
    found: list[Any] = []
    with waiting(place, memory, [ask] * 6, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 6
    assigned = [event["arms"] for event in events(place) if event["kind"] == "assigned"]
    assert [len(arms) for arms in assigned] == [1, 6]
    ids = [batch.assignments[0].id for batch in found]
    calls: list[Call] = [partial(tell, id) for id in [*ids, ids[0]]]
    told: list[Any] = []
    with waiting(place, memory, calls, told):
        pass
    assert sorted(one.new for one in told) == [0, 1, 1, 1, 1, 1, 1]
    trial = opened(place)
    assert trial.status().people == 7
    assert trial.verify().intact
    assert not left(memory), "no letter stays"


def test_who_is_refused_hears_it_and_holds_nobody_up(place: str, memory: Path) -> None:
    found: list[Any] = []
    with waiting(place, memory, [ask, lambda trial: trial.ask(site="Oslo"), ask], found):
        pass
    assert isinstance(found[1], InvalidInputError)
    assert "one of Leeds, Lyon" in str(found[1])
    assert len({batch.assignments[0].id for batch in found[::2]}) == 2
    assert opened(place).status().people == 3


def dies_before_it_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Taken, "answer", lambda *_: None)


def test_what_somebody_did_who_died_is_not_done_again(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_before_it_replies(monkeypatch)
    found: list[Any] = []
    with waiting(place, memory, [ask] * 4, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 4
    ids = [batch.assignments[0].id for batch in found]
    told: list[Any] = []
    calls: list[Call] = [partial(tell, id) for id in ids]
    with waiting(place, memory, calls, told):
        pass
    assert [one.new for one in told] == [1] * 4, "what was told by its own call is new to it"
    trial = opened(place)
    assert trial.status().people == 5
    assert trial.verify().intact


def test_without_slips_it_would_be_done_again(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: nobody looks at them."""
    dies_before_it_replies(monkeypatch)
    monkeypatch.setattr(slips, "look", lambda *_: {})
    found: list[Any] = []
    with waiting(place, memory, [ask] * 4, found):
        pass
    assert opened(place).status().people > 5


def test_what_has_a_key_is_kept_under_it_and_not_on_a_slip(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_before_it_replies(monkeypatch)
    monkeypatch.setattr(slips, "look", lambda *_: {})
    found: list[Any] = []
    calls: list[Call] = [partial(ask_once, key) for key in ("one", "two", "three")]
    with waiting(place, memory, calls, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 3
    assert opened(place).status().people == 4


def ask_once(key: str, trial: Trial) -> Any:
    return trial.ask(site="Lyon", request=key)


def test_who_shares_a_letter_with_one_who_is_refused_is_done_once(place: str, memory: Path) -> None:
    """Then nobody replies, and the slip says who was served."""
    first, second = opened(place), opened(place)
    jobs = [next(second.asking(site=site)) for site in ("Lyon", "Oslo", "Leeds")]
    calls = [lambda: ask(first), lambda: second.do_now(jobs)]
    in_line(place, memory, calls)
    assert [type(job.error) for job in jobs] == [type(None), InvalidInputError, type(None)]
    assert len({job.found().assignments[0].id for job in jobs[::2]}) == 2
    assert first.status().people == 4
    assert first.verify().intact


def tell_in_one_letter(place: str, memory: Path) -> tuple[list[Any], list[str]]:
    """Callers who have one letter, and are bound to a site or not: one tells of a
    person of its own, one of nobody, one of a person of another site, one of anybody.
    What is wrong with each, and the words.
    """
    first, second = opened(place), opened(place)
    leeds, lyon, more = (ask_at(first, site) for site in ("Leeds", "Lyon", "Leeds"))
    wishes = (("Lyon", lyon), (None, f"99{lyon[1:]}"), ("Lyon", leeds), (None, leeds))
    jobs = [next(Caller(second, "a desk", site).telling({id: 1.0})) for site, id in wishes]
    calls = [lambda: tell(more, first), lambda: second.do_now(jobs)]
    in_line(place, memory, calls)
    assert first.verify().intact
    assert not left(memory)
    return [job.error or job.found().new for job in jobs], [leeds, lyon]


def ask_at(trial: Trial, site: str) -> str:
    return trial.ask(site=site).assignments[0].id


def test_ids_that_are_unknown_or_of_another_site_are_refused_by_whoever_takes_a_letter(
    place: str, memory: Path
) -> None:
    (own, nobodys, others, anybodys), (leeds, lyon) = tell_in_one_letter(place, memory)
    assert (own, anybodys) == (1, 1)
    for id, error in ((f"99{lyon[1:]}", nobodys), (leeds, others)):
        assert isinstance(error, InvalidInputError)
        assert f"no assignment with the id {id!r}" in str(error)


def test_who_takes_a_letter_and_looks_at_no_ids_is_found(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake."""
    monkeypatch.setattr(kept, "allowed", lambda session, ledger, jobs: list(jobs))
    (_, nobodys, others, anybodys), _ = tell_in_one_letter(place, memory)
    assert isinstance(nobodys, InvalidInputError), "it is found when it is to be sealed"
    assert [others, anybodys] == [1, 0]


def test_ids_are_looked_at_before_a_file_is_kept_from_others_and_on_a_server_once(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, reading, looked = opened(place), Store.reading, list[str]()

    def noted(store: Store, name: str) -> Any:
        looked.append(name)
        return reading(store, name)

    monkeypatch.setattr(Store, "reading", noted)
    assert tell(ask_at(trial, "Lyon"), trial).new == 1
    assert looked == ["colours"] * (not trial._company.on_server)


def test_who_repeats_a_key_with_an_unknown_id_is_refused_alone(place: str, memory: Path) -> None:
    """Whether it shares a batch, or a letter, with others."""
    first, second = opened(place), opened(place)
    ids = [ask_at(first, "Lyon") for _ in range(4)]
    first.tell(ids.pop(), 1, "used")
    telling = partial(Caller(second, "a desk", None).telling)
    bad = [f"99{ids[0][1:]}", f"{ids[0]}\ud800"]
    jobs = [next(telling({ids[0]: 1.0}, "new"))]
    jobs += [next(telling({id: 1.0}, "used")) for id in bad]
    jobs += [next(telling({ids[1]: 1.0}))]
    told: list[Any] = []
    in_line(place, memory, [lambda: told.append(tell(ids[2], first)), lambda: second.do_now(jobs)])
    assert told[0].new == jobs[0].found().new == jobs[3].found().new == 1
    for job in jobs[1:3]:
        assert isinstance(job.error, InvalidInputError)
        assert "there is no assignment with" in str(job.error)
        assert "ud800" not in repr(job.error)
    with pytest.raises(InvalidInputError, match="made before, for something else"):
        first.tell(ids[0], 1, "used")
    again = first.reissue(ids[0])
    jobs = [next(telling({id: 1.0}, "new")) for id in (ids[0], again.id)]
    second.do_now(jobs)
    assert jobs[0].found().new == 1, "the id was reissued, and the request is the same"
    assert "made before, for something else" in str(jobs[1].error)


def test_who_is_bound_to_a_site_hears_no_answer_of_another(place: str) -> None:
    trial = opened(place)
    leeds, lyon = (Caller(trial, f"a desk of {site}", site) for site in ("Leeds", "Lyon"))
    one, other = (ask_at(trial, "Leeds") for _ in range(2))
    assert leeds.tell(one, 1, "K").new == 1
    made = leeds.reissue(one, "R")
    for call in (
        lambda: lyon.tell(one, 0, "K"),
        lambda: lyon.tell(other, 0, "K"),
        lambda: lyon.reissue(one, "R"),
    ):
        with pytest.raises(InvalidInputError, match="there is no assignment with"):
            call()
    assert leeds.tell(one, 1, "K").new == 1
    assert leeds.reissue(one, "R") == made


def test_what_somebody_may_have_done_under_a_key_is_not_said_to_be_undone(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took a letter has done it and died, and the database fails before its
    writer has found that out.
    """
    dies_before_it_replies(monkeypatch)
    real, left_by = Kept._step, neighbours.left_by_others
    breaks = list[bool]()

    def step(trial: Kept, *about: Any) -> bool:
        if breaks:
            raise StoreError("the server ended the connection; nothing was changed")
        return real(trial, *about)

    def left_by_others(turn: Any, *about: Any) -> Any:
        breaks[:] = [True] * neighbours.is_unsure(turn)
        return left_by(turn, *about)

    monkeypatch.setattr(Kept, "_step", step)
    monkeypatch.setattr(neighbours, "left_by_others", left_by_others)
    found: list[Any] = []
    with waiting(place, memory, [ask, partial(ask_once, "mine")], found):
        pass
    assert "it is not known whether this was done" in str(found[1])
    breaks.clear()
    trial = opened(place)
    assert trial.asked("mine")
    with pytest.raises(InvalidInputError):
        trial.tell("1-00", 1)
    assert trial.status().people == 3


def ask_for(people: list[str], trial: Trial) -> Any:
    return trial.ask(people=people, site="Lyon")


def test_slips_name_nobody_and_callers_hear_whose_places_they_have(
    place: str, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of identities only keyed hashes are kept, whether whoever read a letter answered
    or died.
    """
    names = [["Ada L.", "Grace H."], ["Alan T."]]
    calls: list[Call] = [ask, *(partial(ask_for, some) for some in names)]
    for dies in (False, True):
        if dies:
            dies_before_it_replies(monkeypatch)
            calls[1:] = [partial(ask_for, [f"{name} again" for name in some]) for some in names]
        found: list[Any] = []
        with waiting(place, memory, calls, found):
            pass
        heard = [[one.person for one in batch.assignments] for batch in found[1:]]
        assert heard == [[f"{one} again" if dies else one for one in some] for some in names]
    backup_trials(place, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        kept = backup.execute("SELECT answer FROM discreet_requests").fetchall()
    assert kept, "there are slips"
    assert b"L." not in (tmp_path / "backup.db").read_bytes()
    assert not any(name.split()[0] in text for some in names for name in some for (text,) in kept)


def test_who_gets_no_place_is_said_by_a_slip_too() -> None:
    wanted = wanted_of(1, ["a", "b", "c"], None, None, None, "")
    job, people = ask_job(wanted), (Assignment("1-5f", "x", "a"), Assignment("2-6e", "y", "c"))
    job.finish(Batch(people, 0, False, left=("b",)))
    text = slips.written({7: job})
    assert '"a"' not in text
    assert '"b"' not in text
    assert slips.read(text, {7: job}) == {7: job.found()}
    assert slips.read(text, {}) == {}, "of other jobs nothing is said"


def test_of_what_somebody_may_have_done_nobody_says_that_nothing_was_changed(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: Any) -> Any:
        raise StoreError("somebody else is using it; nothing was changed")

    dies_before_it_replies(monkeypatch)
    monkeypatch.setattr(slips, "look", cannot)
    found: list[Any] = []
    with waiting(place, memory, [ask, ask], found):
        pass
    (error,) = [one for one in found if isinstance(one, StoreError)]
    assert "it is not known whether this was done" in str(error)
    assert opened(place).status().people == 3


def test_who_is_led_elsewhere_by_a_new_connection_does_nothing_for_others(
    postgres: Server, memory: Path, tmp_path: Path
) -> None:
    here, copy = with_one_person(postgres.new_url()), postgres.new_url()
    (saved,) = backup_trials(here, tmp_path / "backup.db")
    restore_trials(tmp_path / "backup.db", copy, heads=[saved.head])

    def led_elsewhere(trial: Trial) -> Any:
        """The server ended the connection, and the next one leads to the copy."""

        @sa.event.listens_for(trial._store.engine, "do_connect")
        def connect(_dialect: Any, _record: Any, _words: Any, options: Any) -> None:
            options["options"] = f"-csearch_path={copy.rpartition('%3D')[2]}"

        trial._store.close()
        return ask(trial)

    found: list[Any] = []
    with waiting(here, memory, [led_elsewhere, ask, ask], found):
        pass
    assert [opened(one).status().people for one in (here, copy)] == [3, 2]


def test_what_the_dead_wanted_is_not_done(place: str, memory: Path) -> None:
    with at_work(place):
        child = os.fork()
        if child == 0:
            opened(place).ask(site="Lyon")
            os._exit(0)
        wait_for(lambda: written(memory))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert written(memory)
    ask(opened(place))
    assert opened(place).status().people == 2
    assert not left(memory), "an outcome may be in the letters of the dead"


def test_nobody_writes_where_others_may_read(tmp_path: Path, memory: Path) -> None:
    (tmp_path / "t.db").touch()
    box = Letters(str(tmp_path / "t.db"))
    letter = box.post("x", b"an outcome")
    assert letter is not None
    (path,) = written(memory)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.parent.chmod(0o777)
    assert not box.take("x"), "anybody may have written it"
    path.parent.chmod(0o700)
    assert letter.take_back() == (letters.WAITING, b"")
    letters.clear()
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
    start = neighbours.note_of("colours", [], trial.seen, "")._replace(kind="ask").start
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
    with waiting(url, memory, [ask, lambda _: ask(known)], found):
        pass
    head = Trial.open(url, "colours").status().head
    assert str(known.seen) == head, "who had it done by others has seen their record"
    known.close()
    for end in ("-wal", "-shm"):
        Path(file + end).unlink(missing_ok=True)
    os.replace(old, file)
    found.clear()
    with waiting(url, memory, [ask, lambda _: ask(known)], found):
        pass
    assert len(found[0].assignments) == 1
    assert isinstance(found[1], TamperedError)
    assert Trial.open(url, "colours").status().people == 2


def test_a_system_without_such_a_place(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "MEMORY", str(memory / "nowhere"))
    trials = [opened(place) for _ in range(3)]
    with at_work(place):
        threads = [threading.Thread(target=ask, args=(trial,)) for trial in trials]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert trials[0].status().people == 4


def test_a_bell_that_nobody_rings(
    place: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who had the turn died: those who wait look for themselves."""
    monkeypatch.setattr(letters, "_ring", lambda _: None)
    found: list[Any] = []
    with waiting(place, memory, [ask] * 3, found):
        pass
    assert len({batch.assignments[0].id for batch in found}) == 3


def test_other_trials_and_larger_calls_wait_for_themselves(place: str, memory: Path) -> None:
    other = create(place, name="other", strategy=bet_se(0.1, 1.0))
    found: list[Any] = []
    with waiting(place, memory, [ask, ask], found):
        third = threading.Thread(target=other.ask)
        third.start()
        if place.startswith("sqlite"):
            wait_for(partial(_more_than, 2, memory))
        else:
            third.join()  # on a server each trial has a line of its own
    third.join()
    assert [len(batch.assignments) for batch in found] == [1, 1]
    assert other.status().people == 1
    trial, many = opened(place), MOST_PEOPLE + 1
    assert trial.status().people == 3
    with at_work(place):
        large = threading.Thread(target=lambda: trial.ask(many, site="Lyon"))
        large.start()
        time.sleep(0.05)
        assert not written(memory)
        assert opened(place).status().people == 3
    large.join()
    assert trial.status().people > 3


# --- which server, and whose rights ---------------------------------------------------


def test_a_connection_that_leads_elsewhere_does_nothing_for_others(
    postgres: Server, tmp_path: Path, memory: Path
) -> None:
    """A trial and its copy, and somebody whom a proxy has led to the copy meanwhile."""
    here, copy = postgres.new_url(), postgres.new_url()
    with closing(create(here, strategy=bet_se(0.1, 1.0))) as trial:
        trial.ask()
    (saved,) = backup_trials(here, tmp_path / "backup.db")
    restore_trials(tmp_path / "backup.db", copy, heads=[saved.head])
    elsewhere = copy.rpartition("%3D")[2]

    def led_elsewhere(trial: Trial) -> Any:
        with trial._store.engine.begin() as connection:
            connection.exec_driver_sql(f"SET search_path = {elsewhere}")
        return trial.ask()

    found: list[Any] = []
    with waiting(here, memory, [led_elsewhere, Trial.ask, Trial.ask], found):
        pass
    assert [opened(address).status().people for address in (here, copy)] == [3, 2]


def test_a_place_is_tables_of_a_server_and_a_role(postgres: Server) -> None:
    given = postgres.granted()
    create(given["owner"], strategy=bet_se(0.1, 1.0)).close()
    other = postgres.new_url()
    assert not _place(other), "no trials there yet"
    create(other, strategy=bet_se(0.1, 1.0)).close()
    assert _place(given["site"]) == _place(given["site"])
    assert len({_place(address) for address in (*given.values(), other)}) == 5
    assumed = given["site"].replace("the-site@", "postgres@") + "%20-crole%3Dthe-site"
    assert _place(assumed) not in {_place(address) for address in given.values()}
    with psycopg.connect(other) as raw:
        wanted = "SELECT system_identifier FROM pg_control_system()"
        began = "SELECT extract(epoch from pg_postmaster_start_time())"
        said = [str(raw.execute(one).fetchone()[0]) for one in (wanted, began)]  # type: ignore[index]
    assert _place(other).split()[:2] == said


def _place(address: str) -> str:
    with psycopg.connect(address) as raw:
        return places.place_of(raw)


def test_a_server_that_does_not_say_which_it_is(
    postgres: Server, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PLACE", "SELECT no_such_function()")
    trial = create(postgres.new_url(), strategy=bet_se(0.1, 1.0))
    assert len(trial.ask().assignments) == 1
    assert not list(memory.iterdir())


def test_meeting_points_of_servers_that_are_gone_are_removed(memory: Path) -> None:
    path, new = (places.meeting_point("server", when) for when in ("long ago", "now"))
    assert path is not None
    assert new is not None
    Path(f"{path}-line").touch()
    os.utime(path, (0, 0))
    places.clear()
    assert [str(one) for one in memory.glob("*/*")] == [new]
