"""Backups of live trials, and the way back.

A backup is a database of trials like any other, in one file of SQLite, taken at one
moment. Going on from an old one would draw again, with fresh noise, what was released
after it: two releases of the same outcomes spend twice the ε. So a restore wants to
know that the file is not old, or writes into the public record that nobody knows.
"""

import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from discreet.client.address import is_remote
from discreet.errors import DiscreetError, InvalidInputError, StoreError, TamperedError
from discreet.files import check_writable, is_same_file, open_private_file
from discreet.trials.inputs import check_user
from discreet.trials.names import is_writable, normalize_name
from discreet.trials.operations import MAX_REASON_LENGTH, RESTORED, ManagementAction
from discreet.trials.protocol import Protocol, digest
from discreet.trials.record import BROKEN, AuditEntry, Head, PublicState, new_state
from discreet.trials.store.database import AllTrials, Database
from discreet.trials.store.dialect import make_dialect
from discreet.trials.store.sqlite import LOG_SUFFIX, has_log_content
from discreet.trials.store.tables import TrialTables
from discreet.trials.transcript import copy_stored, is_beginning_of, verify_database

LASTING_ACTIONS = (
    "token create ",
    "token revoke ",
    "token link ",
    "invite",
    "publish",
    "unpublish",
)
"""How the audit trail calls what is not set back (see `store.doors`)."""
MAX_ENTRIES = 2**31 - 1
"""More entries than an audit trail has."""


def replace_trial(here: AllTrials, trial: TrialTables, replaced: TrialTables | None) -> TrialTables:
    """Enter a trial of another database, in the place of one of this name if there is
    one, whose notes of what outlasts it are kept.
    """
    notes = [] if replaced is None else _lasting_entries(replaced)
    made = here.copy(trial, replaced)
    _insert_missing_entries(made, notes)
    return made


def _lasting_entries(trial: TrialTables) -> list[AuditEntry]:
    """The notes of an audit trail that outlast its trial, the oldest first."""
    return [
        one
        for one in reversed(trial.audit_entries(MAX_ENTRIES))
        if one.action.startswith(LASTING_ACTIONS)
    ]


def _insert_missing_entries(trial: TrialTables, notes: list[AuditEntry]) -> None:
    """Put those that an audit trail does not have behind its last entry. Their times
    stay as they are, unless they would go back or, by a clock that was wrong, lie
    ahead.
    """
    found = trial.audit_entries(MAX_ENTRIES)
    known = {one[1:] for one in found}
    number, at = (found[0].entry, found[0].at) if found else (0, 0.0)
    rows = list[AuditEntry]()
    for one in notes:
        if one[1:] not in known:
            number, at = number + 1, max(at, min(one.at, trial.now))
            rows.append(one._replace(entry=number, at=at))
    trial.insert_audit_entries(rows)


NEW, REPLACED, LEFT = "new", "replaced", "left as it is"
SIDE_FILES = (LOG_SUFFIX, "-shm", "-journal")
"""What the names of files beside a database have more than its own."""
FORCE = "--i-know-that-epsilon-is-spent-again with --reason"


@dataclass(frozen=True)
class BackedUp:
    """A trial in a backup."""

    name: str
    head: str
    """Of its record, as `status` shows it: note it elsewhere."""


@dataclass(frozen=True)
class Restored:
    """A trial of a backup, after a restore."""

    name: str
    head: str
    """Of its record now."""
    done: str
    """It is new here, has replaced an older record, or was left as it is."""
    spent_again: bool
    """Whether the public record says from now on that ε may be spent twice."""


# --- the way there --------------------------------------------------------------------


def backup_trials(
    url: str,
    file: str | os.PathLike[str],
    user: str | None = None,
) -> tuple[BackedUp, ...]:
    """Copy all trials at an address, as they are at one moment, into an SQLite file
    that only its owner may read; others may work on them meanwhile.

    The file is either complete or not there. It may replace an older backup of the same
    trials, but no other file. It contains outcomes that are not released, and still
    contains them after they are: keep it as safe as the database, and delete old
    backups. `user` is the caller's name for the private audit trails (None: the user of
    the database, or of this machine). A service gives no backup: nobody who calls it
    may have outcomes.
    """
    path, caller = _check_path(file), check_user(user)
    if is_remote(url):
        raise InvalidInputError(
            "a backup cannot be made through a service, because it contains outcomes: make it on "
            "the server, from the address of the database"
        )
    with closing(Database(url, must_exist=True)) as home:
        check_writable(path, home.dialect.files, devices=False)
        with home.snapshot_all() as here:
            if not (trials := here.trials()):
                raise InvalidInputError(f"there are no trials in {home.label} to back up")
            _check_replaced(path, here)
        _note_backup(home, [trial.name for trial in trials], caller or home.user)
        with home.snapshot_all() as here:
            return _write_backup(path, here)


def _write_backup(path: str, here: AllTrials) -> tuple[BackedUp, ...]:
    """The file, and what is in it."""
    trials = here.trials()
    with open_private_file(path, SIDE_FILES) as temporary:
        with closing(Database.open_file(str(temporary))) as made, made.exclusive() as there:
            for trial in trials:
                there.copy(trial)
        if has_log_content(temporary):
            raise StoreError(
                f"{path}: the backup could not be finished: check the disk, and try again"
            )
    return tuple(BackedUp(trial.name, str(_read_head(trial))) for trial in trials)


def _note_backup(home: Database, names: list[str], user: str) -> None:
    """Write into the audit trail of each trial who makes a backup."""
    for name in names:
        with home.transaction(name) as tables:
            if tables.lock() is not None:
                tables.add_audit_entry(user, "backup", 0)


def _check_replaced(path: str, here: AllTrials) -> None:
    """Refuse to put a backup in the place of what it does not hold."""
    if not Path(path).exists() or not Path(path).stat().st_size:
        return
    try:
        with closing(Database.open_file(path, must_exist=True)) as old, old.snapshot_all() as there:
            lost = any(not _is_continued(trial, here) for trial in there.trials())
    except DiscreetError:
        lost = True
    if lost or has_log_content(path):
        raise InvalidInputError(
            f"{path} exists already and is not an older backup of these trials, or somebody has "
            "it open: choose another name, so that nothing is lost"
        )


def _is_continued(trial: TrialTables, here: AllTrials) -> bool:
    found = here.trial(trial.name)
    return found is not None and is_beginning_of(trial, found)


# --- and back -------------------------------------------------------------------------


class _BackupTrial(NamedTuple):
    """A trial of the file, checked."""

    tables: TrialTables
    protocol: Protocol
    now: PublicState


class _RestoreStep(NamedTuple):
    """What is to be done with it."""

    found: _BackupTrial
    there: TrialTables | None
    """The trial of its name in the database."""
    done: str
    doubtful: bool
    """Whether nobody knows that it is not old."""


def restore_trials(
    file: str | os.PathLike[str],
    url: str,
    heads: Sequence[str] = (),
    i_know_that_epsilon_is_spent_again: bool = False,
    reason: str | None = None,
    user: str | None = None,
) -> tuple[Restored, ...]:
    """Put all trials of a backup into the database at an address, which nobody else may
    have open: all of them, or with an error none.

    `heads` are heads that you know from elsewhere, as a status, a report or a backup
    showed them: each must be in the record of one of the trials. A running trial is
    restored if such a head shows that the file is not old; a record in the database
    that is longer, or different, is not replaced. With
    `i_know_that_epsilon_is_spent_again` and a `reason` this is done all the same for
    running trials, and the public record of each such trial says so for ever.
    """
    path, known, caller = _check_path(file), _parse_heads(heads), check_user(user)
    if is_remote(url):
        raise InvalidInputError(
            "a backup cannot be restored through a service: stop the service, and restore into "
            "its database, on the machine that has it"
        )
    excuse = _check_reason(i_know_that_epsilon_is_spent_again, reason)
    if not Path(path).is_file():
        raise InvalidInputError(f"there is no file {path}: name a backup of trials")
    if any(is_same_file(path, other) for other in make_dialect(url).files):
        raise InvalidInputError(f"{path} is the database itself: name a backup of it")
    with closing(Database.open_file(path, must_exist=True)) as store, store.snapshot_all() as there:
        found = _read_backup(path, there)
        _check_known(path, found, known)
        with closing(_open_target(url, found, known, excuse)) as home:
            caller = caller or home.user
            with home.exclusive() as here:
                steps = _plan_steps(found, here, known, excuse is not None)
                done = tuple(_restore_trial(step, here, caller, excuse) for step in steps)
            _scrub_replaced(home, done)
    return done


def _open_target(
    url: str, found: list[_BackupTrial], known: list[Head], excuse: str | None
) -> Database:
    """The database; a new one is made when nothing is to be refused."""
    try:
        return Database(url, must_exist=True)
    except InvalidInputError:
        _plan_steps(found, None, known, excuse is not None)
        return Database(url)


def _read_backup(path: str, there: AllTrials) -> list[_BackupTrial]:
    """The trials of a file, each of which follows from its record."""
    if not there.is_intact():
        raise StoreError(f"{path} is damaged: use another backup; nothing was changed")
    found = [_check_trial(path, trial) for trial in there.trials()]
    if not found:
        raise InvalidInputError(f"there are no trials in {path}: name a backup of trials")
    return found


def _check_trial(path: str, trial: TrialTables) -> _BackupTrial:
    row, problem = trial.row, "its name is a different one"
    try:
        protocol = Protocol.from_dict(json.loads(row.protocol))
        now = new_state(protocol)
        now.load(row.state)
        problems = verify_database(protocol, copy_stored(trial)).problems
        if not problems and protocol.name == trial.name:
            return _BackupTrial(trial, protocol, now)
        problem = problems[0] if problems else problem
    except BROKEN:
        problem = "its protocol or its state is not what was written"
    raise TamperedError(
        f"the trial {trial.name!r} in {path} is damaged, or was changed ({problem}): use another "
        "backup; nothing was changed"
    ) from None


def _check_known(path: str, found: list[_BackupTrial], known: list[Head]) -> None:
    for head in known:
        if not any(_has_head(one.tables, head) for one in found):
            raise TamperedError(
                f"no record in {path} has the event {head.seq} that --head names: the backup is "
                "older than that, or of other trials. Use a newer backup or, if there is none, "
                f"leave this --head out and give {FORCE}; nothing was changed"
            )


def _plan_steps(
    found: list[_BackupTrial], here: AllTrials | None, known: list[Head], forced: bool
) -> list[_RestoreStep]:
    """What is to be done with each trial, or why nothing is."""
    steps = [
        _plan_step(one, None if here is None else here.trial(one.tables.name), known, forced)
        for one in found
    ]
    names = [repr(step.found.tables.name) for step in steps if step.doubtful]
    if names and not forced:
        raise InvalidInputError(
            f"nothing shows that the backup of {', '.join(names)} is not an old one. Going on "
            "from an old backup would draw releases a second time, with fresh noise, and spend "
            "the ε of the people concerned twice: give --head as the last status, report or "
            f"backup showed it or, if it is lost, {FORCE}; nothing was changed"
        )
    return steps


def _plan_step(
    found: _BackupTrial, there: TrialTables | None, known: list[Head], forced: bool
) -> _RestoreStep:
    """That a record in the database goes on in the backup does not show that the backup
    is the latest: the file may have been put back by hand. Only a known head does.
    """
    over, vouched = found.now.stopped, any(_has_head(found.tables, head) for head in known)
    if there is None:
        return _RestoreStep(found, None, NEW, not (over or vouched))
    if _read_head(there) == _read_head(found.tables):
        return _RestoreStep(found, there, LEFT, False)
    if is_beginning_of(there, found.tables):
        return _RestoreStep(found, there, REPLACED, not (over or vouched))
    if over:
        raise TamperedError(_ended_words(found.tables))
    if not forced or digest(there.row.protocol) != _protocol_hash(found.tables):
        raise TamperedError(_other_record_words(found.tables, there))
    return _RestoreStep(found, there, REPLACED, True)


def _ended_words(trial: TrialTables) -> str:
    """Why a record that has ended, and could not say so, takes no other's place."""
    return (
        f"the record of {trial.name!r} in the backup has ended, and the database has a different "
        "one: restore into another database; nothing was changed"
    )


def _other_record_words(trial: TrialTables, there: TrialTables) -> str:
    """Why a record that is there is not replaced."""
    if digest(there.row.protocol) != _protocol_hash(trial):
        return (
            f"there is another trial {trial.name!r} in the database, with other settings: restore "
            "into another database; nothing was changed"
        )
    if is_beginning_of(trial, there):
        return (
            f"the record of {trial.name!r} in the database has {_read_head(there).seq} events, "
            "that of "
            f"the backup only {_read_head(trial).seq}: the backup is older, and there is nothing "
            "to "
            f"restore. To replace the longer record, give {FORCE}; nothing was changed"
        )
    return (
        f"the record of {trial.name!r} in the database differs from that of the backup: restore "
        f"into another database or, if the record there must be replaced, give {FORCE}; nothing "
        "was changed"
    )


def _restore_trial(step: _RestoreStep, here: AllTrials, user: str, excuse: str | None) -> Restored:
    """Write a trial into the database, and what is to be said about it."""
    found, there = step.found, step.there
    if step.done == LEFT and there is not None:
        return Restored(there.name, str(_read_head(there)), LEFT, False)
    made = replace_trial(here, found.tables, there)
    made.add_audit_entry(user, "restore", 0)
    if step.doubtful:
        act = ManagementAction(RESTORED, None, str(excuse))
        people = made.row.participants
        found.now.management.apply(act, found.now.run, people, found.protocol)
        made.append_event("managed", {"action": act.action, "reason": act.reason})
        made.save_state(found.now.dump())
    if there is not None:
        made.insert_erasing()
    made.flush()
    return Restored(made.name, str(_read_head(made)), step.done, step.doubtful)


def _scrub_replaced(home: Database, done: Sequence[Restored]) -> None:
    """Make the outcomes of what was replaced unreadable; if it cannot be done now, a
    status says so, and the next call does it.
    """
    replaced = [one for one in done if one.done == REPLACED]
    if replaced and home.scrub():
        for one in replaced:
            with home.transaction(one.name) as tables:
                if tables.lock() is not None:
                    tables.delete_erasing(Head.parse(one.head).seq)


# --- what is given --------------------------------------------------------------------


def _check_path(file: Any) -> str:
    path = os.fspath(file) if isinstance(file, os.PathLike) else file
    if not is_writable(path):
        raise InvalidInputError("give the name of a file for the backup, such as backup.db")
    return str(path)


def _parse_heads(heads: Any) -> list[Head]:
    if isinstance(heads, str) or not isinstance(heads, Sequence):
        raise InvalidInputError("heads must be a list, such as ['17:5f2c…'], as status shows them")
    return [Head.parse(head) for head in heads]


def _check_reason(knows: Any, reason: Any) -> str | None:
    """The reason for going on from a backup that may be old, if that is meant."""
    if knows is not True and reason is None:
        return None
    text = normalize_name("the reason", reason)
    if knows is not True or not is_writable(text) or len(text) > MAX_REASON_LENGTH:
        raise InvalidInputError(
            f"{FORCE} go together: give a reason of at most {MAX_REASON_LENGTH} characters. It "
            "will "
            "be published, so it must not name a person or an outcome"
        )
    return str(text)


def _read_head(trial: TrialTables) -> Head:
    row = trial.row
    return Head(row.seq, row.head)


def _protocol_hash(trial: TrialTables) -> str:
    return digest(trial.row.protocol)


def _has_head(trial: TrialTables, head: Head) -> bool:
    """Whether a head is one of a trial's record."""
    return trial.hash_at(head.seq) == head.hash
