"""Backup and restore, on both stores: one moment, whole or nothing, and nothing is
released a second time without the record saying so.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import (
    Trial,
    backup_trials,
    bet_se,
    list_trials,
    restore_trials,
    ttucb_batched,
    verify_transcript,
)
from discreet.errors import (
    DiscreetError,
    InvalidInputError,
    ReadableFileWarning,
    StoreError,
    TamperedError,
)
from discreet.trials.backup import LEFT, NEW, REPLACED
from discreet.trials.operations import RECORDED_MEANINGS, RESTORED
from discreet.trials.store import schema
from discreet.trials.store.database import AllTrials
from tests.support.service import wait_for
from tests.support.stores import OUTCOME, UNITS, create, damage, database, run

BATCHES = ttucb_batched(delta=1e-9)
"""It does not end by itself here, and has no noise: nothing is left to chance."""
FORCED: dict[str, Any] = {
    "i_know_that_epsilon_is_spent_again": True,
    "reason": "the disk is lost",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


@pytest.fixture
def other(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty place in a database of the other kind."""
    if url.startswith("sqlite"):
        return str(request.getfixturevalue("postgres").new_url())
    return f"sqlite:///{tmp_path}/other.db"


def here(tmp_path: Path, name: str = "here.db") -> str:
    return f"sqlite:///{tmp_path}/{name}"


@contextmanager
def opened(url: str, name: str = "colours", **options: Any) -> Iterator[Trial]:
    """A trial that is closed again: whoever has one open is in the way of a restore."""
    trial = Trial.open(url, name, **options)
    try:
        yield trial
    finally:
        trial.close()


def begin(url: str, name: str = "colours", people: int = 4, **settings: Any) -> str:
    """A trial with releases and with an outcome that is not released; its head."""
    trial = create(url, name, **{"strategy": BATCHES, **settings})
    run(trial, people)
    before = -1
    while before != trial.status().releases:
        for one in trial.open_assignments():
            trial.tell(one.id, 1.0)
        before = trial.status().releases
        trial.tell(trial.ask(3).assignments[0].id, OUTCOME)
    trial.close()
    return head_of(url, name)


def head_of(url: str, name: str = "colours") -> str:
    with opened(url, name) as trial:
        return trial.status().head


def go_on(url: str, name: str = "colours") -> str:
    """More people, and at least one release; the head then."""
    with opened(url, name) as trial:
        before = trial.status().releases
        for one in trial.open_assignments():
            trial.tell(one.id, 0.5)
        while trial.status().releases == before:
            run(trial, 1)
        assert trial.verify().intact
    return head_of(url, name)


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that is kept, but for what a restore gives anew: numbers of trials, what is
    to be erased, and who called for the copy.
    """
    found = {}
    with database(url) as connection:
        names = {trial: name for name, trial in connection.execute(NAMES)}
        for table in schema.metadata.sorted_tables:
            if table in (schema.about, schema.erasing):
                continue
            lines = [
                tuple(names[value] if key == "trial" else value for key, value in row.items())
                for row in connection.execute(sa.select(table)).mappings()
                if row["trial"] in names and row.get("action") != "restore"
            ]
            found[table.name] = sorted(lines, key=repr)
    return found


NAMES = sa.select(schema.trials.c.name, schema.trials.c.trial)


def lost(url: str, other: str) -> set[tuple[Any, ...]]:
    """What is kept in one database and not in the other."""
    wanted, found = rows(url), rows(other)
    return set[tuple[Any, ...]]().union(*(set(wanted[name]) - set(found[name]) for name in wanted))


# --- a backup -------------------------------------------------------------------------


def test_a_backup_is_a_database_of_trials(url: str, file: Path) -> None:
    heads = {name: begin(url, name) for name in ("colours", "shapes")}
    found = backup_trials(url, file)
    assert {one.name: one.head for one in found} == heads
    copy = f"sqlite:///{file}"
    assert [one.name for one in list_trials(copy)] == ["colours", "shapes"]
    assert rows(copy) == rows(url)
    for name, head in heads.items():
        with opened(copy, name) as one, opened(url, name) as real:
            assert one.status() == real.status()
            assert one.verify(head).intact


def test_only_its_owner_can_read_it_and_nothing_is_left_beside(url: str, tmp_path: Path) -> None:
    begin(url)
    folder = tmp_path / "kept"
    folder.mkdir()
    before = os.umask(0)
    try:
        backup_trials(url, folder / "backup ? 100 %.db")
    finally:
        os.umask(before)
    assert [one.name for one in folder.iterdir()] == ["backup ? 100 %.db"]
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}


def test_a_backup_of_one_moment_while_others_write(url: str, tmp_path: Path) -> None:
    """Each process works on two trials; between two looks there is something new."""
    names = ("colours", "shapes")
    for name in names:
        create(url, name, strategy=BATCHES, max_participants=10**6).close()
    stop = tmp_path / "stop"
    children = [_write_on(url, stop) for _ in range(3)]
    heads: list[set[str]] = []
    try:
        for turn in range(4):
            found = backup_trials(url, tmp_path / f"backup {turn}.db")
            heads.append({one.head for one in found})
            for one in found:
                with opened(here(tmp_path, f"backup {turn}.db"), one.name) as trial:
                    assert trial.verify(one.head).problems == ()
            wait_for(lambda: not heads[-1] & {head_of(url, name) for name in names})
    finally:
        stop.touch()
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert len(set.union(*heads)) == 8, "the others were writing meanwhile"
    for name in names:
        with opened(url, name) as trial:
            assert trial.verify().intact


def _write_on(url: str, stop: Path) -> int:
    """A process that asks and tells until it is told to stop."""
    child = os.fork()
    if child:
        return child
    try:
        while not stop.exists():
            for name in ("colours", "shapes"):
                with opened(url, name) as trial:
                    for _ in range(3):
                        trial.tell_many({one.id: 0.5 for one in trial.ask(2).assignments})
        os._exit(0)
    finally:
        os._exit(1)


def test_what_is_written_while_it_is_copied_is_not_in_it(
    url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first trial and the second both go on: neither may show."""
    heads = {name: begin(url, name) for name in ("colours", "shapes")}
    usual, left = AllTrials.copy, ["shapes", "colours"]

    def meanwhile(whole: AllTrials, *arguments: Any) -> Any:
        made = usual(whole, *arguments)
        while left:
            go_on(url, left.pop())
        return made

    monkeypatch.setattr(AllTrials, "copy", meanwhile)
    found = backup_trials(url, file)
    assert not left
    assert {one.name: one.head for one in found} == heads
    for name, head in heads.items():
        assert head_of(url, name) != head
        with opened(f"sqlite:///{file}", name) as copy:
            assert copy.verify(head).intact
            assert copy.status().head == head


def test_a_backup_that_fails_leaves_nothing(
    url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(url)
    backup_trials(url, file)
    before = file.read_bytes()

    def fails(*_: Any) -> Any:
        raise DiscreetError("the disk burns")

    monkeypatch.setattr(AllTrials, "copy", fails)
    with pytest.raises(DiscreetError, match="the disk burns"):
        backup_trials(url, file)
    assert file.read_bytes() == before
    assert not [one for one in file.parent.iterdir() if one.name.startswith(".")]


def test_an_older_backup_is_replaced_and_nothing_else(url: str, file: Path) -> None:
    begin(url)
    backup_trials(url, file)
    go_on(url)
    later = backup_trials(url, file)
    assert head_of(f"sqlite:///{file}") == later[0].head
    notes = file.with_name("notes.txt")
    notes.write_text("the only copy")
    foreign = file.with_name("foreign.db")
    begin(f"sqlite:///{foreign}", "another")
    ahead = file.with_name("ahead.db")
    shutil.copy(file, ahead)
    go_on(f"sqlite:///{ahead}")
    for one in (notes, foreign, ahead):
        before = one.read_bytes()
        with pytest.raises(
            InvalidInputError, match=r"not an older backup of these trials.*so that"
        ):
            backup_trials(url, one)
        assert one.read_bytes() == before
    empty = file.with_name("empty.db")
    empty.touch()
    backup_trials(url, empty)
    assert list_trials(f"sqlite:///{empty}")


def test_never_over_a_device_or_the_database_itself(tmp_path: Path, file: Path) -> None:
    url = here(tmp_path)
    begin(url)
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    link, hard = tmp_path / "link.db", tmp_path / "hard.db"
    link.symlink_to(tmp_path / "here.db")
    os.link(tmp_path / "here.db", hard)
    for path in (tmp_path / "here.db", link, hard, tmp_path / "here.db-wal"):
        with pytest.raises(InvalidInputError, match="the trial itself is kept there"):
            backup_trials(url, path)
    for path in (pipe, folder, Path("/dev/null")):
        with pytest.raises(InvalidInputError, match="it is not a file that may be written to"):
            backup_trials(url, path)
    with pytest.raises(InvalidInputError, match="no such folder"):
        backup_trials(url, tmp_path / "nowhere" / "backup.db")
    for wrong in ("", None, 3):
        with pytest.raises(InvalidInputError, match="give the name of a file"):
            backup_trials(url, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="there is no file"):
        backup_trials(here(tmp_path, "typo.db"), file)
    assert not file.exists()


def test_the_journal_tells_who_took_a_backup(url: str, file: Path) -> None:
    head = begin(url)
    backup_trials(url, file, user="Ada")
    with opened(url) as trial:
        entry = trial.audit_trail(1)[0]
        assert (entry.user, entry.action, entry.participants) == ("Ada", "backup", 0)
        assert trial.status().head == head
    backup_trials(url, file)
    with opened(url) as trial:
        assert trial.audit_trail(1)[0].user not in ("", "Ada")


def test_outcomes_that_were_erased_are_not_in_it(url: str, file: Path) -> None:
    """Those that are not released are."""
    begin(url)
    backup_trials(url, file)
    with database(f"sqlite:///{file}") as connection:
        units = list(connection.execute(sa.select(schema.outcomes.c.units)).scalars())
        told = connection.execute(sa.select(sa.func.sum(schema.counts.c.recorded))).scalar_one()
    assert UNITS in units
    assert len(units) - units.count(schema.ERASED) == told < len(units)


# --- restore --------------------------------------------------------------------------


def test_restore_into_a_database_of_the_other_kind(url: str, other: str, file: Path) -> None:
    """There and back, with all that is kept, and it goes on there."""
    heads = [begin(url, name) for name in ("colours", "shapes")]
    backup_trials(url, file)
    create(other, "resident").close()
    done = restore_trials(file, other, heads)
    assert [(one.name, one.head, one.done) for one in done] == [
        ("colours", heads[0], NEW),
        ("shapes", heads[1], NEW),
    ]
    assert [one.name for one in list_trials(other)] == ["colours", "resident", "shapes"]
    assert not lost(url, other)
    with opened(other) as trial:
        assert trial.audit_trail(1)[0].action == "restore"
        assert not trial.status().actions
    go_on(other)
    with opened(other) as trial:
        transcript = trial.transcript()
    assert verify_transcript(transcript, heads[0]).intact
    again = file.with_name("again.db")
    backup_trials(other, again)
    assert head_of(f"sqlite:///{again}") == head_of(other)


def test_people_and_requests_are_known_after_it(url: str, other: str, file: Path) -> None:
    trial = create(url, strategy=bet_se(0.1, 1.0), returning="same-arm", deadline=1e6)
    asked = trial.ask(participant="record 12", key="first visit")
    trial.close()
    head = head_of(url)
    backup_trials(url, file)
    restore_trials(file, other, [head])
    with opened(other) as copy:
        with pytest.raises(InvalidInputError, match="key was used before"):
            copy.ask(participant="record 13", key="first visit")
        assert copy.ask(participant="record 12").assignments == asked.assignments
        assert copy.ask(participant="record 12", key="first visit").assignments == asked.assignments
        assert copy.ask(participant="record 13").assignments[0].id != asked.assignments[0].id
        assert copy.tell(asked.assignments[0].id, 1).new == 1
        assert copy.verify(head).intact


def test_what_is_the_same_is_left_alone(url: str, file: Path) -> None:
    head = begin(url)
    backup_trials(url, file)
    before = rows(url)
    done = restore_trials(file, url)
    assert [(one.done, one.head) for one in done] == [(LEFT, head)]
    assert rows(url) == before


def test_an_older_record_is_replaced(url: str, other: str, file: Path, tmp_path: Path) -> None:
    begin(url)
    first = backup_trials(url, file)
    restore_trials(file, other, [first[0].head])
    create(other, "resident").close()
    head = go_on(url)
    newer = tmp_path / "newer.db"
    backup_trials(url, newer)
    done = restore_trials(newer, other, [head])
    assert [(one.done, one.head, one.spent_again) for one in done] == [(REPLACED, head, False)]
    assert not lost(url, other)
    with database(other) as connection:
        gone = schema.outcomes.c.trial.not_in(sa.select(schema.trials.c.trial))
        units = set(connection.execute(sa.select(schema.outcomes.c.units).where(gone)).scalars())
        assert units == {schema.ERASED}, "what was replaced is overwritten"
        assert not connection.execute(sa.select(schema.erasing)).all()
    go_on(other)
    with opened(other, head=head) as trial:
        assert [event["kind"] for event in trial.transcript()["events"]].count("managed") == 0
    assert len(list_trials(other)) == 2


def test_a_trial_that_is_over_needs_no_head(url: str, other: str, file: Path) -> None:
    begin(url)
    with opened(url) as trial:
        trial.manage("stop", "no money")
    backup_trials(url, file)
    done = restore_trials(file, other)
    assert (done[0].done, done[0].spent_again) == (NEW, False)
    with opened(other) as trial:
        assert trial.status().stopped
        assert trial.verify().intact


# --- what is refused ------------------------------------------------------------------


def test_a_trial_that_goes_on_needs_a_head(url: str, tmp_path: Path, file: Path) -> None:
    heads = [begin(url, name) for name in ("colours", "shapes")]
    backup_trials(url, file)
    there = here(tmp_path)
    with pytest.raises(InvalidInputError) as said:
        restore_trials(file, there)
    for words in ("'colours', 'shapes'", "a second time", "fresh noise", "give --head", "--reason"):
        assert words in str(said.value)
    assert str(OUTCOME) not in str(said.value)
    with pytest.raises(InvalidInputError, match="backup of 'shapes' is not an old one"):
        restore_trials(file, there, heads[:1])
    assert not (tmp_path / "here.db").exists(), "nothing is made where nothing is done"
    earlier = _some_head(file, 2)
    assert restore_trials(file, there, [earlier, heads[1]])[0].head == heads[0]


def _some_head(file: Path, seq: int) -> str:
    with opened(f"sqlite:///{file}") as trial:
        return f"{seq}:{trial.transcript()['events'][seq - 1]['hash']}"


def test_a_trial_that_was_only_created_again_shows_nothing(
    url: str, tmp_path: Path, file: Path
) -> None:
    begin(url)
    backup_trials(url, file)
    there = here(tmp_path)
    create(there, strategy=BATCHES).close()
    with pytest.raises(InvalidInputError, match="nothing shows that the backup"):
        restore_trials(file, there)
    assert restore_trials(file, there, [head_of(url)])[0].done == REPLACED


def test_heads_that_the_file_does_not_have(url: str, tmp_path: Path, file: Path) -> None:
    begin(url)
    backup_trials(url, file)
    later = go_on(url)
    there = here(tmp_path)
    for wrong in (later, "3:" + "0" * 64):
        for more in ({}, FORCED):
            with pytest.raises(TamperedError, match=r"the backup is older than that, or of other"):
                restore_trials(file, there, [wrong], **more)
    for odd in ("17", 3, None):
        with pytest.raises(InvalidInputError, match="head must look like"):
            restore_trials(file, there, [odd])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="heads must be a list"):
        restore_trials(file, there, later)
    assert not (tmp_path / "here.db").exists()


def test_a_longer_record_is_not_replaced(url: str, file: Path) -> None:
    old = begin(url)
    backup_trials(url, file)
    go_on(url)
    before = rows(url)
    for heads in ([], [old]):
        with pytest.raises(
            TamperedError, match="the backup is older, and there is nothing to restore"
        ):
            restore_trials(file, url, heads)
    assert rows(url) == before


def test_another_record_is_not_replaced(url: str, other: str, file: Path) -> None:
    """One that has gone another way; of another trial not even by force."""
    head = begin(url)
    backup_trials(url, file)
    restore_trials(file, other, [head])
    go_on(url)
    backup_trials(url, file)
    with opened(other) as trial:
        trial.manage("raise-maximum", "more people come", 600)
    head = go_on(other)
    with pytest.raises(TamperedError, match="differs from that of the backup"):
        restore_trials(file, other)
    assert head_of(other) == head
    done = restore_trials(file, other, **FORCED)
    assert (done[0].done, done[0].spent_again) == (REPLACED, True)
    create(url, "shapes").close()
    create(other, "shapes", max_participants=77).close()
    backup_trials(url, file.with_name("second.db"))
    with pytest.raises(TamperedError, match=r"another trial 'shapes'.*with other settings"):
        restore_trials(file.with_name("second.db"), other, **FORCED)


def test_one_that_is_refused_keeps_all_out(url: str, other: str, file: Path) -> None:
    begin(url, "colours")
    create(url, "shapes").close()
    backup_trials(url, file)
    create(other, "shapes").close()
    with opened(other, "shapes") as trial:
        run(trial, 3)
    with pytest.raises(TamperedError, match="backup is older"):
        restore_trials(file, other, [head_of(url)])
    assert [one.name for one in list_trials(other)] == ["shapes"]


def test_an_error_in_the_middle_takes_all_back(
    url: str, other: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = [begin(url, name) for name in ("colours", "shapes")]
    backup_trials(url, file)
    create(other, "resident").close()
    usual, calls = AllTrials.copy, list[str]()

    def fails(whole: AllTrials, trial: Any, replaced: Any = None) -> Any:
        calls.append(trial.name)
        made = usual(whole, trial, replaced)
        if len(calls) == 2:
            raise StoreError("the disk burns")
        return made

    monkeypatch.setattr(AllTrials, "copy", fails)
    with pytest.raises(StoreError, match="the disk burns"):
        restore_trials(file, other, heads)
    assert [one.name for one in list_trials(other)] == ["resident"]
    monkeypatch.undo()
    assert len(restore_trials(file, other, heads)) == 2


def test_while_others_have_it_open(url: str, other: str, file: Path) -> None:
    head = begin(url)
    backup_trials(url, file)
    resident = create(other, "resident")
    resident.status()
    with pytest.raises(StoreError, match="others have it open: end everything that works"):
        restore_trials(file, other, [head])
    assert resident.ask(1).assignments, "they go on"
    resident.close()
    restore_trials(file, other, [head])
    assert resident.ask(1).assignments
    with opened(other) as trial:
        assert trial.verify(head).intact
    if other.startswith("sqlite"):
        with database(other) as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


def test_whoever_looked_in_vain_has_nothing_open(url: str, other: str, file: Path) -> None:
    head = begin(url)
    backup_trials(url, file)
    with pytest.raises(InvalidInputError) as said:
        Trial.open(other, "colours")
    assert restore_trials(file, other, [head])[0].done == NEW
    assert "there is no file" in str(said.value) or "there are no trials" in str(said.value)


def test_whoever_had_a_longer_record_open_notices(url: str, file: Path) -> None:
    begin(url)
    backup_trials(url, file)
    go_on(url)
    trial = Trial.open(url, "colours")
    trial.close()
    restore_trials(file, url, **FORCED)
    with pytest.raises(TamperedError, match=r"restored from a backup|not the one that is known"):
        trial.ask(1)
    trial.close()


def test_files_that_are_no_backups(url: str, tmp_path: Path, file: Path) -> None:
    head = begin(url)
    backup_trials(url, file)
    text, empty, newer = (tmp_path / name for name in ("text.db", "empty.db", "newer.db"))
    text.write_text("x" * 5000)
    empty.touch()
    shutil.copy(file, newer)
    for one in (text, empty):
        one.chmod(0o600)
    damage(f"sqlite:///{newer}", f"UPDATE discreet_schema SET version = {schema.SCHEMA + 1}")
    there = here(tmp_path)
    wrong = {
        text: "not a database of trials: give another file",
        empty: "there are no trials in",
        newer: "its tables are of version",
        tmp_path / "typo.db": "there is no file",
        tmp_path: "there is no file",
    }
    for path, words in wrong.items():
        with pytest.raises(DiscreetError, match=words):
            restore_trials(path, there, [head], **FORCED)
    with pytest.raises(InvalidInputError, match="is the database itself"):
        restore_trials(file, f"sqlite:///{file}")
    assert not (tmp_path / "here.db").exists()


TAMPERED = {
    "an event": "UPDATE discreet_events SET body = replace(body, '1', '2') WHERE seq = 3",
    "the state": "UPDATE discreet_trials SET state = '{}'",
    "the protocol": "UPDATE discreet_trials SET protocol = '{}'",
    "the name": "UPDATE discreet_trials SET name = 'colors'",
    "an outcome": "DELETE FROM discreet_outcomes WHERE units > 0",
    "a person": "DELETE FROM discreet_assignments WHERE number = 2",
    "the end": "DELETE FROM discreet_events WHERE seq > 5",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_damaged_backup(tmp_path: Path, file: Path, what: str) -> None:
    head = begin(here(tmp_path))
    backup_trials(here(tmp_path), file)
    damage(f"sqlite:///{file}", TAMPERED[what])
    there = here(tmp_path, "there.db")
    for more in ({"heads": [head]}, FORCED):
        with pytest.raises(TamperedError, match="damaged, or was changed"):
            restore_trials(file, there, **more)
    assert not (tmp_path / "there.db").exists()


def test_a_backup_with_a_bad_page(tmp_path: Path, file: Path) -> None:
    begin(here(tmp_path), people=40)
    head = backup_trials(here(tmp_path), file)[0].head
    with database(f"sqlite:///{file}") as connection:
        page = connection.exec_driver_sql(
            "SELECT rootpage FROM sqlite_master WHERE name = 'discreet_participants'"
        ).scalar_one()
        size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        restore_trials(file, here(tmp_path, "there.db"), [head])
    assert not (tmp_path / "there.db").exists()


def test_a_flag_and_a_reason_go_together(tmp_path: Path, file: Path) -> None:
    begin(here(tmp_path))
    backup_trials(here(tmp_path), file)
    there = here(tmp_path, "there.db")
    for words in ({"reason": "lost"}, FORCED | {"reason": None}, FORCED | {"reason": " "}):
        with pytest.raises(InvalidInputError, match="go together: give a reason"):
            restore_trials(file, there, **words)
    for long in ("x" * 1001, 3):
        with pytest.raises(InvalidInputError, match="at most 1000 characters"):
            restore_trials(file, there, **(FORCED | {"reason": long}))


# --- for the record -------------------------------------------------------------------


def test_what_is_restored_all_the_same_says_so_for_ever(url: str, file: Path) -> None:
    """The trial goes on from the old record; everybody can see that it does."""
    heads = {name: begin(url, name) for name in ("colours", "shapes")}
    with opened(url, "shapes") as trial:
        trial.manage("stop", "no money")
    backup_trials(url, file)
    go_on(url)
    done = {one.name: one for one in restore_trials(file, url, **FORCED)}
    assert (done["shapes"].done, done["shapes"].spent_again) == (LEFT, False)
    assert (done["colours"].done, done["colours"].spent_again) == (REPLACED, True)
    seq = int(heads["colours"].split(":")[0])
    with opened(url, head=heads["colours"]) as trial:
        status, events = trial.status(), trial.transcript()["events"]
        assert status.head == done["colours"].head
        assert events[-1]["seq"] == seq + 1
        assert (events[-1]["kind"], events[-1]["action"]) == ("managed", RESTORED)
        assert events[-1]["reason"] == "the disk is lost"
        assert [act.meaning for act in status.actions] == [RECORDED_MEANINGS[RESTORED]]
        assert trial.verify().problems == ()
        assert trial.audit_trail(1)[0].action == "restore"
    go_on(url)
    with opened(url) as trial:
        assert verify_transcript(trial.transcript(), done["colours"].head).problems == ()


def test_only_what_nobody_vouches_for_is_marked(url: str, other: str, file: Path) -> None:
    heads = [begin(url, name) for name in ("colours", "shapes")]
    backup_trials(url, file)
    done = restore_trials(file, other, heads[:1], **FORCED)
    assert [one.spent_again for one in done] == [False, True]
    assert (done[0].head, done[1].head != heads[1]) == (heads[0], True)


def test_a_second_time(url: str, other: str, file: Path) -> None:
    """Numbers of trials that were replaced are not given again."""
    begin(url)
    backup_trials(url, file)
    for _ in range(3):
        restore_trials(file, other, **FORCED)
        go_on(other)
    create(other, "shapes").close()
    with opened(other, "shapes") as trial:
        run(trial, 3)
        assert trial.verify().intact
    with opened(other) as trial:
        assert trial.verify().intact


# --- files that others can read -------------------------------------------------------


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
def test_a_file_that_is_open_to_others(tmp_path: Path, mode: int) -> None:
    create(here(tmp_path)).close()
    (tmp_path / "here.db").chmod(mode)
    with pytest.warns(ReadableFileWarning, match=r"can be read by other users.*chmod 600"):
        trial = Trial.open(here(tmp_path), "colours")
    run(trial, 3)  # a second warning would be an error
    trial.close()
    trial.status()
    trial.close()
    (tmp_path / "here.db").chmod(0o600)
    Trial.open(here(tmp_path), "colours").close()
