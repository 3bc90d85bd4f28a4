"""How a trial enters its database, and whether what stands there follows from its
record.
"""

import json
import secrets
from collections.abc import Iterator
from itertools import islice
from typing import Any

from discreet.arrays import Progress
from discreet.errors import TamperedError
from discreet.trials.chain import Head, check_goes_on, other_event
from discreet.trials.dealing import KEY_BYTES, commitment
from discreet.trials.protocol import Protocol, digest
from discreet.trials.record import BROKEN, fresh
from discreet.trials.replay import Replay
from discreet.trials.status import Status, Verification
from discreet.trials.store.database import Store
from discreet.trials.store.schema import TrialRow
from discreet.trials.store.tables import TrialTables
from discreet.trials.verify import Followed, differences, follow, telling


def enter(home: Store, protocol: Protocol, who: str) -> None:
    """Begin the record of a new trial, unless there is one of this name."""
    text = protocol.text
    state = fresh(protocol).dump()
    with home.transaction(protocol.name) as tables:
        if tables.lock() is None:
            key = secrets.token_bytes(32)
            if tables.create(text, digest(text), key, state):
                tables.append_event("created", {"protocol": digest(text)})
                tables.save_state(state)
                tables.add_audit_entry(who, "create", 0)


def check_head(tables: TrialTables, known: Head) -> None:
    """Refuse a record that is older than one that is known, or another one."""
    row = tables.row
    check_goes_on(tables.name, known, Head(row.seq, row.head))
    if tables.hash_at(known.seq) != known.hash:
        raise TamperedError(other_event(tables.name, known.seq))


def transcript_of(
    protocol: Protocol, protocol_hash: str, tables: TrialTables, status: Status
) -> dict[str, Any]:
    """What may be published of a trial."""
    return {
        "protocol": protocol.to_dict(),
        "protocol_hash": protocol_hash,
        "events": [
            {"seq": event.seq, "kind": event.kind, **event.says, "hash": event.hash}
            for event in tables.events()
        ],
        "status": status.to_dict(),
    }


def begins(shorter: TrialTables, longer: TrialTables) -> bool:
    """Return whether a record is the beginning of another one, or the same. A record in
    which nothing has happened is the beginning of every record of its protocol.
    """
    row = shorter.row
    if row.seq == 1:
        return row.protocol == longer.row.protocol
    return longer.hash_at(row.seq) == row.head


def examine(
    protocol: Protocol, tables: TrialTables, known: Head | None, progress: Progress | None = None
) -> Verification:
    """Follow a record from the start, and compare what stands in the database."""
    problems, row = list[str](), tables.row
    if known is not None:
        try:
            check_head(tables, known)
        except TamperedError as error:
            problems.append(str(error))
    told = telling(progress, row.seq)
    followed = follow(Replay(protocol), digest(row.protocol), tables.events(), told)
    if followed.problem:
        problems.append(followed.problem)
    if not problems:
        problems += islice(disagreements(followed, row, tables), 1)
    return Verification(followed.head.seq, str(Head(row.seq, row.head)), tuple(problems))


def disagreements(followed: Followed, row: TrialRow, tables: TrialTables) -> Iterator[str]:
    """What in the database does not follow from its record."""
    replay = followed.replay
    if followed.head != Head(row.seq, row.head):
        yield "the record is shorter than the trial says"
    if followed.unfinished:
        yield followed.unfinished
    if not _is_the_same(row.state, replay.now.dump()):
        yield "the state does not follow from the record"
    places = list(tables.assigned_arms())
    if replay.places != places or row.participants != len(places):
        yield "the assignments do not follow from the record"
    if not tables.are_counts_correct():
        yield "the counts of outcomes do not agree with the outcomes"
    keys = tables.round_keys()
    kept = {round: commitment(key) for round, key in keys.items()}
    whole = all(len(key) == KEY_BYTES for key in keys.values())
    if kept != replay.unrevealed.commits or not whole:
        yield "the keys of rounds are not those that were committed to"


def _is_the_same(written: str, found: str) -> bool:
    """Whether two texts are of one state: a trial may go on on another processor, whose
    last digits differ.
    """
    if written == found:
        return True
    try:
        return not any(differences(json.loads(written), json.loads(found), "state"))
    except BROKEN:
        return False
