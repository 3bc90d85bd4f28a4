"""One suite for every store: each test with `url` runs on SQLite and on a PostgreSQL
server of its own, there as the owner of the tables and as a manager who is not.
"""

import logging
import os
import random
import shutil
import subprocess
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import TellResult, adap_tt_star, bet_se, ctb_tt, list_trials
from discreet.errors import InvalidInputError, StoreError, TamperedError
from discreet.trials import mechanisms as privacy
from discreet.trials.store import dialect, schema, tables
from discreet.trials.trial import Trial
from tests.support import postgres as postgres_server
from tests.support.clock import Clock
from tests.support.stores import ARMS, OUTCOME, UNITS, count, create, damage, database, run

ASSETS = Path(__file__).parent.parent / "assets"
NOT_OWNED = pytest.mark.filterwarnings("ignore::discreet.errors.ErasingWarning")


@pytest.fixture(
    params=["sqlite", "postgresql", pytest.param("postgresql-granted", marks=NOT_OWNED)]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind, and one in which the user is nobody but an
    manager.
    """
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/trials.db"
    server: postgres_server.Server = request.getfixturevalue("postgres")
    return server.new_url() if request.param == "postgresql" else server.granted()["manager"]


OWNED = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
"""Tests in which it makes no difference whether the user owns the tables."""


# --- the life of a trial --------------------------------------------------------------


def test_create_and_open(url: str) -> None:
    trial = create(url)
    assert create(url).status() == trial.status()
    assert Trial.open(url, "colours").status() == trial.status()
    assert trial.status().participants == 0
    with pytest.raises(
        InvalidInputError, match=r"max_participants is 500, not 400.*choose another name"
    ):
        create(url, max_participants=400)
    with pytest.raises(InvalidInputError, match=r"delta is 0\.1, not 0\.2"):
        create(url, strategy=adap_tt_star(epsilon=1.0, delta=0.2))
    with pytest.raises(InvalidInputError, match=r"no trial 'shapes'.*trials there: colours"):
        Trial.open(url, "shapes")
    create(url, "shapes").ask(3)
    assert (Trial.open(url, "shapes").status().participants, trial.status().participants) == (3, 0)


def test_two_creators_get_one_trial(url: str) -> None:
    create(url, "first")
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(create(url).protocol_hash)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert len(set(made)) == 1
    assert Trial.open(url, "colours").verify().events == 1


def test_open_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is no file"):
        Trial.open(f"sqlite:///{tmp_path}/typo.db", "colours")
    assert not list(tmp_path.iterdir())


def test_tell_twice(url: str) -> None:
    trial = create(url, retain="forever")
    first = trial.ask(3).assignments[0]
    assert trial.tell(first.id, OUTCOME) == TellResult(1)
    for outcome in (OUTCOME, 0.0, 1.0):
        assert trial.tell(first.id, outcome) == TellResult(0, (first.id,))
    assert trial.status().pending == 2
    with database(url) as connection:
        assert connection.execute(sa.select(schema.outcomes.c.units)).scalars().all() == [UNITS]


def test_unknown_ids(url: str) -> None:
    trial = create(url)
    ids = [assignment.id for assignment in trial.ask(3).assignments]
    for wrong in ("1", "1-", "1-0123456789abcdef", "1-é", "99-00", "x", "", "-1-ab", "9" * 30):
        with pytest.raises(InvalidInputError, match=r"there is no assignment.*nothing was changed"):
            trial.tell_many({ids[0]: 1, wrong: OUTCOME})
    assert trial.status().pending == 3


def test_outcomes_out_of_order_and_from_elsewhere(url: str) -> None:
    trial, other = create(url), Trial.open(url, "colours")
    for seed in range(8):
        ids = [a.id for a in trial.ask(40).assignments]
        random.Random(seed).shuffle(ids)
        for place, id in enumerate(ids):
            assert trial.status().pending == len(ids) - place
            (trial if place % 2 else other).tell(id, 0.5)
    assert other.status() == trial.status()
    assert trial.status().releases > 3
    assert trial.verify().intact


def test_waiting(url: str) -> None:
    trial = create(url)
    batch = trial.ask(10)
    assert (len(batch.assignments), batch.waiting) == (3, 3)
    assert trial.ask(10).assignments == ()
    trial.tell_many({a.id: 1.0 for a in batch.assignments[:2]})
    assert trial.ask(10).waiting == 1
    trial.tell(batch.assignments[2].id, 1.0)
    assert trial.ask(1).assignments


def test_amend(url: str) -> None:
    trial = create(url, retain="forever")
    ids = [a.id for a in trial.ask(3).assignments]
    with pytest.raises(InvalidInputError, match="no outcome to amend"):
        trial.amend(ids[0], 1)
    trial.tell(ids[0], 0)
    trial.amend(ids[0], OUTCOME)
    with database(url) as connection:
        assert connection.execute(sa.select(schema.outcomes.c.units)).scalar_one() == UNITS
    trial.tell_many(dict.fromkeys(ids, 1))
    with pytest.raises(InvalidInputError, match="has been released"):
        trial.amend(ids[0], 0)


def test_missing_outcomes(url: str) -> None:
    trial = create(url, retain="forever")
    people = trial.ask(3).assignments
    gone, *rest = sorted(people, key=lambda one: one.arm != "green")
    trial.miss(gone.id)
    trial.miss(gone.id)
    trial.tell(gone.id, OUTCOME)
    trial.tell_many({one.id: 1 for one in rest})
    assert trial.status().releases == 3
    with database(url) as connection:
        units = (
            connection.execute(
                sa.select(schema.outcomes.c.units).order_by(schema.outcomes.c.number)
            )
            .scalars()
            .all()
        )
    assert units == [0 if one == gone else 2**20 for one in people]
    assert trial.verify().intact


def test_deadlines_end(url: str, clock: Clock) -> None:
    trial = create(url, deadline=20)
    ids = [a.id for a in trial.ask(3).assignments]
    trial.tell(ids[1], 1)
    assert trial.expire() == 0
    clock.now += 21
    assert (trial.expire(), trial.expire()) == (3, 0), "numbers that were released"
    assert (trial.status().pending, trial.status().releases) == (0, 3)
    assert trial.verify().intact


def test_people_take_part_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LISTED", 100)
    trial = create(url)
    names = [f"person {number}" for number in range(430)]
    assert len(trial.ask(participants=names[:3]).assignments) == 3
    with pytest.raises(InvalidInputError, match=r"people number 3 of the list"):
        create(url, "other", strategy=ctb_tt(epsilon=1, delta=0.1), max_participants=10**5).ask(
            participants=["w", "x", "x"]
        )
    other = create(url, "third", strategy=ctb_tt(epsilon=1, delta=0.1), max_participants=10**5)
    assert len(other.ask(participants=names).assignments) == len(names)
    with pytest.raises(InvalidInputError, match=r"people number 2 of the list"):
        other.ask(participants=["somebody new", names[-1]])
    assert other.status().participants == len(names)


def test_local_trust(url: str) -> None:
    trial = create(url, strategy=ctb_tt(epsilon=2.0, delta=0.1))
    for _ in range(6):
        ids = [a.id for a in trial.ask(7).assignments]
        trial.miss(ids[3])
        trial.answer_many({id: privacy.respond(1.0, 2.0) for id in reversed(ids)})
    assert trial.status().releases == 42
    assert count(url, schema.outcomes) == 0
    assert trial.verify().intact


@OWNED
def test_restart_in_the_middle(url: str) -> None:
    trial = create(url)
    run(trial, 20)
    batch = trial.ask(2)
    before = trial.status()
    trial.close()
    again = Trial.open(url, "colours", head=before.head)
    assert again.status() == before
    again.tell_many({a.id: 1.0 for a in batch.assignments})
    run(again, 20)
    assert again.status().participants > before.participants + 15
    assert trial.status() == again.status(), "a closed view opens again by itself"
    assert again.verify(before.head).intact


@pytest.mark.parametrize("other", [1, -1])
def test_tables_of_another_version_are_refused(url: str, other: int) -> None:
    create(url)
    damage(url, f"UPDATE discreet_schema SET version = version + {other}")
    found, known = schema.SCHEMA + other, schema.SCHEMA
    words = f"its tables are of version {found}, and this version .* with version {known} only"
    with pytest.raises(StoreError, match=words):
        Trial.open(url, "colours")
    with pytest.raises(StoreError, match=words):
        create(url, "other")


# --- verify ---------------------------------------------------------------------------

TAMPERING = {
    "an event": (
        "UPDATE discreet_events SET body = replace(body, '\"sum\":', '\"sum\":1') WHERE seq = 6",
        "event 6",
    ),
    "an opening": (
        "UPDATE discreet_events SET body = replace(body, 'participants\":', 'participants\":1') "
        "WHERE seq = 2",
        "event 2",
    ),
    "a key": ("UPDATE discreet_round_keys SET round = round + 1", "keys of rounds"),
    "a lost key": ("DELETE FROM discreet_round_keys", "keys of rounds"),
    "no JSON": ("UPDATE discreet_events SET body = 'x' WHERE seq = 2", "event 2"),
    "a lost event": ("DELETE FROM discreet_events WHERE seq = 2", "event 3"),
    "a lost end": (
        "DELETE FROM discreet_events WHERE seq = (SELECT max(seq) FROM discreet_events)",
        "shorter",
    ),
    "the state": (
        "UPDATE discreet_trials SET state = replace(state, '\"releases\": ', '\"releases\": 1')",
        "state does",
    ),
    "broken state": ("UPDATE discreet_trials SET state = '{}'", "state does"),
    "the protocol": (
        "UPDATE discreet_trials SET protocol = replace(protocol, '500', '600')",
        "event 1",
    ),
    "an assignment": (
        "UPDATE discreet_assignments SET arm = 1 - arm WHERE number = 1",
        "assignments",
    ),
    "the people": ("UPDATE discreet_trials SET participants = participants + 1", "assignments"),
    "an outcome": ("DELETE FROM discreet_outcomes", "outcomes"),
    "counts": ("UPDATE discreet_counts SET open = open + 1", "outcomes"),
}


@OWNED
@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found(url: str, what: str) -> None:
    trial = create(url)
    run(trial, 10)
    (one,) = trial.ask(1).assignments
    while not trial._state.run.count_unassigned():
        trial.tell(one.id, 1)
        (one,) = trial.ask(1).assignments
    trial.tell(one.id, 0.5)  # in a round that is still dealt
    assert trial.verify().intact
    statement, problem = TAMPERING[what]
    damage(url, statement)
    found = trial.verify().problems
    assert len(found) == 1
    assert problem in found[0]
    trial.close()
    if what == "the protocol":
        with pytest.raises(TamperedError, match="not the one it was started with"):
            Trial.open(url, "colours")
    else:
        assert Trial.open(url, "colours").verify().problems == found
    if what == "broken state":
        with pytest.raises(TamperedError, match="verify"):
            Trial.open(url, "colours").status()


@OWNED
def test_forged_events_are_found(url: str) -> None:
    """Somebody who writes a whole new chain still has to write what the strategy would
    have done.
    """
    assigned: dict[str, Any] = {"first": 1, "arms": [2]}
    forged = [
        ("assigned", assigned),
        ("released", {}),
        ("answered", {"answers": []}),
        ("reset", {}),
    ]
    for number, (kind, body) in enumerate(forged):
        trial = create(url, f"forged {number}")
        with trial._database.transaction(trial.protocol.name) as tables:
            row = tables.lock()
            assert row is not None
            tables.append_event(kind, body)
            tables.save_state(row.state)
        assert not trial.verify().intact


def test_a_restored_backup_is_refused(tmp_path: Path) -> None:
    trial = create(f"sqlite:///{tmp_path}/trials.db")
    run(trial, 5)
    trial.close()
    shutil.copy(tmp_path / "trials.db", tmp_path / "backup.db")
    run(trial, 5)
    head, url = trial.status().head, f"sqlite:///{tmp_path}/backup.db"
    with pytest.raises(TamperedError, match="restored from a backup"):
        Trial.open(url, "colours", head=head)
    again = Trial.open(url, "colours")
    assert again.verify().intact
    assert not again.verify(head).intact
    run(again, 20)
    with pytest.raises(TamperedError, match="not the one that is known"):
        Trial.open(url, "colours", head=head)
    with pytest.raises(InvalidInputError, match="head must look like"):
        Trial.open(url, "colours", head="17")


# --- behind the wall ------------------------------------------------------------------


PATTERN = (UNITS + schema.OFFSET).to_bytes(8, "big")
"""How an outcome stands in a file: eight bytes; three are there by chance at times."""
LEFT = sa.select(schema.outcomes.c.number).where(schema.outcomes.c.units != schema.ERASED)


def raw_bytes(folder: Path) -> bytes:
    """The files of a SQLite database; read by another process, as closing a file here
    would drop SQLite's locks.
    """
    files = sorted(str(path) for path in folder.glob("trials.db*"))
    return subprocess.run(["cat", *files], check=True, stdout=subprocess.PIPE).stdout


def test_outcomes_are_erased_from_the_files(tmp_path: Path) -> None:
    """Rows end with the person's number and the outcome: ten bytes together, not there
    by chance.
    """
    trial = create(f"sqlite:///{tmp_path}/trials.db", max_participants=10_000)
    patterns: dict[int, bytes] = {}
    found_before = 0
    while trial.status().participants < 1200:
        ids = [a.id for a in trial.ask(200).assignments]
        random.Random(len(patterns)).shuffle(ids)
        outcomes = {}
        for id in ids[:-1]:
            number, units = int(id.split("-")[0]), UNITS + len(patterns)
            patterns[number] = number.to_bytes(2, "big") + (units + schema.OFFSET).to_bytes(
                8, "big"
            )
            outcomes[id] = units / 2**20
        for start in range(0, len(ids) - 1, 20):
            trial.tell_many(dict(list(outcomes.items())[start : start + 20]))
        with database(str(trial._database.dialect.url)) as connection:
            kept = set(connection.execute(LEFT).scalars())
        raw = raw_bytes(tmp_path)
        found_before += sum(
            patterns[number] in raw for number in kept & set(patterns) if number > 255
        )
        trial.tell(ids[-1], 1.0)
        with database(str(trial._database.dialect.url)) as connection:
            kept = set(connection.execute(LEFT).scalars())
        raw = raw_bytes(tmp_path)
        assert not [
            number for number in set(patterns) - kept if number > 255 and patterns[number] in raw
        ]
    assert found_before > 500
    assert len(set(patterns) - kept) > 500


def test_erasure_waits_for_readers(tmp_path: Path) -> None:
    """Somebody who still reads keeps old pages alive; the next change tries again."""
    trial = create(f"sqlite:///{tmp_path}/trials.db")
    ids = [a.id for a in trial.ask(3).assignments]
    trial.tell_many(dict.fromkeys(ids[:2], OUTCOME))
    reader = Trial.open(f"sqlite:///{tmp_path}/trials.db", "colours")
    with reader._reading():
        trial.tell(ids[2], OUTCOME)
        assert trial.status().releases == 3
        assert PATTERN in raw_bytes(tmp_path)
    trial.ask()
    assert PATTERN not in raw_bytes(tmp_path)


def test_erasure_after_a_death(tmp_path: Path) -> None:
    """A process that dies between the release and the erasure leaves it to whoever
    opens the trial next.
    """
    trial = create(f"sqlite:///{tmp_path}/trials.db")
    ids = [a.id for a in trial.ask(3).assignments]
    trial.tell_many({ids[0]: OUTCOME, ids[1]: 0.0})
    trial.amend(ids[1], OUTCOME)
    trial.amend(ids[1], 0.0)
    child = os.fork()
    if child == 0:
        trial._scrub = lambda: os._exit(0)  # type: ignore[method-assign]
        trial.tell(ids[2], OUTCOME)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert PATTERN in raw_bytes(tmp_path)
    assert Trial.open(f"sqlite:///{tmp_path}/trials.db", "colours").status().releases == 3
    assert PATTERN not in raw_bytes(tmp_path)


def test_retention(url: str) -> None:
    kept, erased = create(url, "kept", retain="forever"), create(url, "erased")
    for trial in (kept, erased):
        trial.tell_many({a.id: OUTCOME for a in trial.ask(3).assignments})
    assert "KEPT" in kept.status().retain
    assert count(url, schema.outcomes) == 3


def words_of(error: BaseException | None) -> str:
    """Everything an error says, with all that hangs on it, as a log would show it."""
    said = ""
    while error is not None:
        said += (
            "".join(traceback.format_exception(error))
            + repr(error)
            + repr(vars(error))
            + repr(error.args)
        )
        error = error.__cause__ or error.__context__
    return said


def holds_outcome(text: str) -> bool:
    return any(
        sign in text for sign in (str(UNITS), repr(OUTCOME), f"{OUTCOME:.4f}", str(2 * UNITS))
    )


def test_nothing_public_holds_an_outcome(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """At every level of logging, with one outcome and with the sum of two in an open
    batch.
    """
    caplog.set_level(logging.DEBUG)
    trial = create(url)
    run(trial, 3)
    ids = [a.id for a in trial.ask(2).assignments]
    seen = []
    for id in ids[:1]:
        trial.tell(id, OUTCOME)
        seen += [
            repr(trial.status()),
            repr(trial.transcript()),
            repr(trial),
            repr(trial._database),
            repr(trial.verify()),
        ]
        seen += [repr(trial.ask()), repr(vars(trial)), repr(trial.protocol)]
    trial.tell_many(dict.fromkeys(ids, OUTCOME))
    trial.tell_many({a.id: OUTCOME for a in trial.ask(8).assignments})
    seen += [record.getMessage() for record in caplog.records]
    assert not [text for text in seen if holds_outcome(text)]


def test_errors_hold_no_outcome(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The database refuses this very outcome, and would say so: PostgreSQL prints the
    row.
    """
    caplog.set_level(logging.DEBUG)
    trial = create(url)
    ids = [a.id for a in trial.ask(3).assignments]
    with database(url) as connection:
        if "sqlite" in url:
            rule = f"BEFORE INSERT ON discreet_outcomes WHEN NEW.units = {UNITS + schema.OFFSET}"
            rule += " BEGIN SELECT RAISE(ABORT, 'no'); END"
            connection.execute(sa.text(f"CREATE TRIGGER refuse {rule}"))
        else:
            connection.execute(
                sa.text(
                    f"ALTER TABLE discreet_outcomes ADD CHECK (units <> {UNITS + schema.OFFSET})"
                )
            )
    for told in ({ids[0]: OUTCOME}, dict.fromkeys(ids, OUTCOME)):
        with pytest.raises(StoreError, match=r"refused.*nothing was changed") as refused:
            trial.tell_many(told)
        assert not holds_outcome(words_of(refused.value))
    for wrong in (OUTCOME + 1, str(OUTCOME), [OUTCOME]):
        with pytest.raises(InvalidInputError) as refused_input:
            trial.tell(ids[0], wrong)  # type: ignore[arg-type]
        assert not holds_outcome(words_of(refused_input.value).replace(repr(wrong), ""))
        assert repr(wrong) not in str(refused_input.value)
    assert not [record for record in caplog.records if holds_outcome(record.getMessage())]
    assert trial.status().pending == 3
    trial.tell_many(dict.fromkeys(ids, 1.0))
    assert trial.verify().intact


# --- processes and threads ------------------------------------------------------------


@OWNED
def test_fork_in_the_middle(url: str) -> None:
    """The child works on while the parent closes the file: what the child was told must
    not vanish with it.
    """
    trial = create(url, retain="forever")
    run(trial, 3)
    id = trial.ask().assignments[0].id
    (child_reads, parent_writes), (parent_reads, child_writes) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            assert trial.status().pending == 1
            os.write(child_writes, b"connected")
            os.read(child_reads, 1)
            trial.tell(id, OUTCOME)
            os._exit(0)
        finally:
            os._exit(1)
    os.read(parent_reads, 9)
    assert trial.status().pending == 1
    trial.close()
    os.write(parent_writes, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for end in (child_reads, parent_writes, parent_reads, child_writes):
        os.close(end)
    assert count(url, schema.outcomes) == 4
    run(trial, 2)
    assert trial.verify().intact


@OWNED
def test_fork_waits_for_other_threads(url: str) -> None:
    """A transaction of another thread is not torn in two, and its lock is not held for
    ever in the child.
    """
    trial = create(url, max_participants=5000)
    run(trial, 3)
    thread = threading.Thread(target=run, args=(trial, 60))
    thread.start()
    while thread.is_alive():
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if trial.ask(1) and trial.verify().intact else 1
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        for id in open_ids(url):
            trial.tell(id, 1.0)
    thread.join()
    assert trial.verify().intact


def open_ids(url: str) -> list[str]:
    with database(url) as connection:
        found = connection.execute(
            sa.text("SELECT number, token FROM discreet_assignments WHERE state = 0")
        )
        return [f"{number}-{token}" for number, token in found]


@OWNED
def test_a_fork_behind_our_back_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = create(url)
    monkeypatch.setattr(trial._database, "pid", -1)
    with pytest.raises(StoreError, match="open the trial in each process"):
        trial.ask()


@OWNED
def test_threads_share_a_trial(url: str) -> None:
    trial = create(url, max_participants=5000, retain="forever")
    run(trial, 3)
    problems: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                trial.tell_many({a.id: 1.0 for a in trial.ask(3).assignments})
                if trial.status().participants > 60:
                    break
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert trial.status().pending == 0
    assert count(url, schema.outcomes) == trial.status().participants > 50
    assert trial.verify().intact


# --- PostgreSQL -----------------------------------------------------------------------


def test_postgresql_commits_are_on_disk(postgres: postgres_server.Server) -> None:
    """Also if the server, or the user, would rather have it quick; the transaction is
    as isolated as we need it.
    """
    url = postgres.new_url()
    with database(url) as connection:
        for setting in (
            "synchronous_commit = off",
            "default_transaction_isolation = 'serializable'",
        ):
            connection.execute(sa.text(f"ALTER ROLE postgres SET {setting}"))
    try:
        trial = create(url)
        run(trial, 3)
        for tables in (trial._database.transaction, trial._database.snapshot):
            with tables("colours") as found:
                shown = found.connection.execute(sa.text("SHOW synchronous_commit")).scalar()
                isolation = found.connection.execute(sa.text("SHOW transaction_isolation")).scalar()
            assert shown == "on"
            assert isolation == (
                "read committed" if tables == trial._database.transaction else "repeatable read"
            )
    finally:
        with database(url) as connection:
            connection.execute(sa.text("ALTER ROLE postgres RESET ALL"))


def test_postgresql_locks_one_trial_only(
    postgres: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialect, "BUSY_SECONDS", 0.3)
    url = postgres.new_url()
    one, same, other = create(url), Trial.open(url, "colours"), create(url, "other")
    with one._database.transaction("colours") as tables:
        tables.lock()
        other.ask(1)
        same.status()
        with pytest.raises(
            StoreError, match="somebody else is using it: try again; nothing was changed"
        ):
            same.ask(1)
    assert same.ask(1).assignments


def test_postgresql_takes_many_people_in_few_statements(
    postgres: postgres_server.Server,
) -> None:
    """Others wait meanwhile: nothing is said once for each person."""
    strategy = ctb_tt(epsilon=1.0, delta=0.1)
    trial = create(postgres.new_url(), strategy=strategy, returning="same-arm")
    values, rows = list[int](), list[int]()

    @sa.event.listens_for(trial._database.engine, "before_cursor_execute")
    def note(_1: Any, _2: Any, _3: Any, given: Any, _4: Any, several: bool) -> None:
        (rows if several else values).append(len(given))

    for start in (0, 50):
        batch = trial.ask(participants=[f"person {start + number}" for number in range(50)])
        trial.answer_many({one.id: privacy.respond(1, 1.0) for one in batch.assignments})
    assert trial.status().participants == 100
    assert max(values) < 20
    assert max(rows, default=0) <= len(ARMS)
    assert trial.verify().intact


def test_many_rows_are_written_as_they_are(url: str) -> None:
    """One with nothing in some places, and words that lists are written with."""
    trial = create(url, retain="forever")
    words = ["NULL", None, "", "{a,b}", 'a "b"', "a\\b", "Łódź", "'; --", "%s %(x)s :y"]
    rows = [
        schema.AssignmentRow(
            number, "ab", 1, 3, schema.OPEN, number / 3 if number % 2 else None, site, 7.0
        )
        for number, site in enumerate(words, start=1)
    ]
    with trial._database.transaction("colours") as tables:
        tables.lock()
        tables.insert_assignments(rows)
        tables.insert_outcomes([(row, row.number * UNITS if row.site else None) for row in rows])
        tables.mark_recorded(rows[::2])
    with trial._database.snapshot("colours") as tables:
        tables.lock()
        found = tables.find_assignments([*range(-1, len(rows) + 9)])
        kept = tables.run(sa.select(schema.outcomes.c.number, schema.outcomes.c.units)).all()
    assert [found[row.number]._replace(state=0) for row in rows] == rows
    assert [row.state for row in found.values()].count(schema.RECORDED) == len(rows[::2])
    assert sorted(kept) == [(row.number, row.number * UNITS if row.site else None) for row in rows]


def test_states_are_listed(url: str) -> None:
    for name, acts in (("on", ()), ("paused", ("pause",)), ("over", ("stop",))):
        trial = create(url, name, strategy=bet_se(0.1, trust="none"))
        for act in acts:
            trial.manage(act, "why not")
    found = {one.name: one.state for one in list_trials(url)}
    assert found == {"on": "goes on", "paused": "paused", "over": "inconclusive"}


def test_tell_says_what_was_new(url: str) -> None:
    trial = create(url)
    one, two, three = (place.id for place in trial.ask(3).assignments)
    assert trial.tell(one, 1) == TellResult(1)
    assert trial.tell_many({one: 0, two: 1}) == TellResult(1, (one,))
    trial.miss(three)
    assert trial.tell_many({three: 1, two: 0}) == TellResult(0, (three, two))
    assert trial.tell_many({}) == TellResult(0)
