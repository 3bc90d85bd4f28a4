"""What an attacker found, each as it was found."""

import os
import signal
import threading
from pathlib import Path

import pytest

from discreet import Trial, bet_se
from discreet.errors import InvalidInputError, StoreError, TamperedError
from discreet.trials.backup import backup_trials, restore_trials
from discreet.trials.store import schema, tables
from discreet.trials.store.database import DeferredSigint
from tests.support.clock import Clock
from tests.support.stores import create

BETS = bet_se(0.05, 1.0)
MONTH = 30 * 86400


def test_rows_that_grow_leave_no_copies(tmp_path: Path) -> None:
    """Outcomes of a dropped arm are no outcomes, and stay so when the rest is erased: a
    row that grows moves others, and a copy of an erased one could stay in the file.
    """
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, arms=["A", "B", "C", "D"], strategy=BETS, max_participants=4000)
    people = trial.ask(400).assignments
    trial.manage("drop-arm", "harm", "D")
    for one in people:
        trial.tell(one.id, 731_317 / 2**20)
    trial.manage("pause", "a holiday")
    with trial._reading() as desk:
        rows = desk.tables.connection.execute(schema.outcomes.select()).all()
    dropped = [row for row in rows if row.arm == 3]
    assert dropped
    assert {row.units for row in dropped} == {None}


def test_the_clock_is_set_by_the_clock(url: str, clock: Clock) -> None:
    """A time of one's own would release a round before its time."""
    trial = create(url, strategy=BETS, max_participants=2000, deadline=MONTH, release="scheduled")
    ids = [one.id for one in trial.ask(1000).assignments]
    trial.tell_many(dict.fromkeys(ids, 1))
    for about in (0, 5, "now"):
        with pytest.raises(InvalidInputError, match="takes a reason and nothing else"):
            trial.manage("set-clock", "x", about)
    trial.manage("set-clock", "the clock was wrong")
    assert trial.expire() == 0
    clock.now += MONTH + 2
    assert trial.expire() > 0


def test_a_trial_that_is_over_is_not_stuck_by_a_clock(url: str, clock: Clock) -> None:
    trial = create(url, strategy=BETS, returning="same-arm")
    clock.now += 365 * 86400
    first = trial.ask(participant="p", key="k")
    trial.manage("stop", "enough")
    clock.now -= 365 * 86400
    assert trial.ask(participant="p").assignments == first.assignments
    assert trial.ask(key="k").assignments[0].id == first.assignments[0].id
    trial.tell(first.assignments[0].id, 1)


def test_a_clock_that_only_a_timer_saw_is_noticed(url: str, clock: Clock) -> None:
    trial = create(url, strategy=BETS, max_participants=2000, deadline=MONTH, release="scheduled")
    trial.tell_many({one.id: 1 for one in trial.ask(1000).assignments})
    clock.now += 365 * 86400
    assert trial.expire() > 0
    clock.now -= 365 * 86400 - 60
    with pytest.raises(StoreError, match="set-clock"):
        trial.ask()
    trial.manage("set-clock", "it was a year ahead")
    people = trial.ask(5).assignments
    assert all(row.deadline == clock.now + MONTH for row in trial.open_assignments())
    trial.tell_many({one.id: 1 for one in people})
    assert trial.verify().intact


@pytest.mark.parametrize("told", [True, False])
def test_the_journal_does_not_say_who_was_late(url: str, clock: Clock, told: bool) -> None:
    trial = create(url, strategy=BETS, deadline=MONTH)
    (one,) = trial.ask().assignments
    if told:
        trial.tell(one.id, 1)
    clock.now += MONTH + 1
    trial.expire()
    calls = [call.action for call in trial.audit_trail()]
    assert calls == (["expire", "tell", "ask", "create"] if told else ["expire", "ask", "create"])


@pytest.mark.parametrize("late", [True, False])
def test_the_journal_of_a_tell_does_not_say_who_else_was_late(
    url: str, clock: Clock, late: bool
) -> None:
    """What was told before is told again after another person's deadline."""
    trial = create(url, strategy=BETS, deadline=MONTH)
    one, two = trial.ask(2).assignments
    trial.tell_many({one.id: 1} if late else {one.id: 1, two.id: 1})
    clock.now += MONTH + 1
    trial.tell(one.id, 1)
    assert [call.action for call in trial.audit_trail()] == ["tell", "ask", "create"]


@pytest.mark.parametrize("told", [True, False])
def test_deadlines_are_brought_forward_for_all(url: str, clock: Clock, told: bool) -> None:
    trial = create(url, strategy=BETS, deadline=MONTH, release="scheduled")
    clock.now += 10**7
    people = trial.ask(10).assignments
    if told:
        trial.tell(people[-1].id, 1)
    clock.now -= 10**7
    trial.manage("set-clock", "it was ahead")
    clock.now += MONTH + 1
    assert trial.status().past_deadline == 10


def test_a_record_that_has_ended_takes_the_place_of_no_other(url: str, tmp_path: Path) -> None:
    """Nothing can be written into it: nobody could see that ε was spent again."""
    file = tmp_path / "backup.db"
    create(url, strategy=BETS).ask(3)
    backup_trials(url, file)
    other = Trial.open(f"sqlite:///{file}", "colours")
    other.manage("stop", "enough")
    other.close()
    here = Trial.open(url, "colours")
    here.ask(2)
    here.close()
    with pytest.raises(TamperedError, match="has ended, and the database has a different one"):
        restore_trials(
            file, url, i_know_that_epsilon_is_spent_again=True, reason="the disk was lost"
        )


def test_the_file_of_a_site_that_is_closed(url: str) -> None:
    trial = create(url, strategy=BETS, returning="same-arm", sites=["Leeds", "Lyon"])
    first = trial.ask(participant="p", site="Lyon").assignments
    trial.manage("close-site", "no staff", "Lyon")
    assert trial.ask(participant="p", site="Lyon").assignments == first
    with pytest.raises(InvalidInputError, match="Lyon is closed"):
        trial.ask(participant="q", site="Lyon")


def test_a_child_of_a_thread_hears_ctrl_c(tmp_path: Path) -> None:
    """Forked by a thread while the main thread notes interrupts."""
    ended: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                os._exit(7)
            finally:
                os._exit(1)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with DeferredSigint():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert ended == [7]


def test_forking_while_two_databases_are_at_work(tmp_path: Path) -> None:
    """A thread holds one lock and waits for another: forking waits for both, and does
    not hold what the thread waits for.
    """
    one, two = (create(f"sqlite:///{tmp_path}/{name}.db") for name in ("one", "two"))
    inside, done = threading.Event(), threading.Event()

    def both() -> None:
        with one._database.lock:
            inside.set()
            done.wait(0.2)
            with two._database.lock:
                pass

    thread = threading.Thread(target=both)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    thread.join(60)
    assert not thread.is_alive()


def test_statements_erase_outcomes_only() -> None:
    for statement in (tables._erase, tables._erase_answers):
        assert "units IS NOT NULL" in str(statement)
