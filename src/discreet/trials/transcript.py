"""Whether a record is what was written, and what is said about it follows from it.

A published transcript is checked with the base install alone: no database, and no
noise. (What Gaussian responses can be is known to OpenDP's own map only, so that the
records of `gauss-tt` need OpenDP.)
"""

import gc
import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet._types import Progress
from discreet.errors import InvalidInputError, TamperedError
from discreet.scale import Scale, check_range
from discreet.tabular import Row, flatten, make_frame
from discreet.trials.operations import ADD
from discreet.trials.protocol import Protocol, canonical, digest
from discreet.trials.randomisation import KEY_BYTES, commit_to
from discreet.trials.record import (
    BROKEN,
    Event,
    Head,
    Replay,
    chain_hash,
    changed_event_words,
    check_continues,
    is_first_event,
    new_state,
)
from discreet.trials.status import (
    ERASING_WORDS,
    PendingCounts,
    PrivateNotes,
    Status,
    Verification,
    make_status,
    summarize_releases,
)
from discreet.trust import TRUSTS
from discreet.validation import check_path, check_progress, name_path
from discreet.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from discreet.trials.store.database import Database
    from discreet.trials.store.schema import TrialRow
    from discreet.trials.store.tables import TrialTables


PARTS = ("protocol", "protocol_hash", "events", "status")
"""Of a transcript."""
EventObserver = Callable[[Event, Replay], None]
"""Sees each event that is in order, and the state after it."""
MAX_PROGRESS_CALLS = 1_000
"""How often progress is told, at most: an event takes less time than to show a bar."""
NOT_PUBLIC = ("pending", "waiting")
"""Of a status: how many outcomes are not in is not in the record, only how many there
can be.
"""


class ReplayedRecord(NamedTuple):
    """A record that was followed as far as it is in order."""

    replay: Replay
    head: Head
    problem: str | None

    @property
    def missing_end(self) -> str | None:
        """What must stand in the record and does not."""
        if self.head.seq == 0:
            return "the record has no beginning"
        now = self.replay.state
        if (now.run.stopped or now.management.ended) and not now.stopped:
            return "the strategy had stopped, and the record does not say so"
        return None


def replay_events(
    replay: Replay, protocol_hash: str, events: Iterable[Event], watch: EventObserver | None = None
) -> ReplayedRecord:
    """Recompute the chain, and the state from the events alone, up to the first
    problem. Each event goes on where the record ended before; the first one names the
    protocol.
    """
    done, last, problem = 0, protocol_hash, None
    for event in events:
        seq, kind, body, hash = event
        linked = seq == done + 1 and hash == chain_hash(last, seq, kind, body)
        if not linked or (not done and not is_first_event(event, last)):
            problem = f"event {seq} is not what was written there"
            break
        if wrong := replay.apply(event):
            problem = f"event {seq}: {wrong}"
            break
        done, last = seq, hash
        if watch is not None:
            watch(event, replay)
    return ReplayedRecord(replay, Head(done, last), problem)


def make_reporter(progress: Progress | None, total: int) -> EventObserver | None:
    """Tells how many events are done, of how many in all."""
    check_progress(progress)
    if progress is None:
        return None
    step = max(total // MAX_PROGRESS_CALLS, 1)

    def watch(event: Event, replay: Replay) -> None:
        if event.seq % step == 0 or event.seq == total:
            progress(event.seq, total)

    return watch


# --- a published transcript -----------------------------------------------------------


def verify_transcript(
    transcript: str | os.PathLike[str] | Mapping[str, Any],
    head: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check a published transcript, a file or what `Trial.transcript` returned; it
    needs no database.

    It checks that the protocol matches its hash, the chain is unbroken, every event is
    what the strategy would have done, and the status follows from the events. With
    `head`, as a status gave it, the record must continue from there; only this reveals
    a record that was rewritten from beginning to end. `progress(done, total)` is called
    now and then with the number of events done and of all events.
    """
    with _without_garbage_collection():
        said = read_transcript(transcript)
        return check_parsed_transcript(said, head, make_reporter(progress, len(said["events"])))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A long record is a million small objects, all in use: to look for garbage among
    them again and again takes a third of the time.
    """
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def check_parsed_transcript(
    said: dict[str, Any], head: str | None = None, watch: EventObserver | None = None
) -> Verification:
    """What is wrong with a transcript that was read."""
    known = None if head is None else Head.parse(head)
    begin = _try_digest(said["protocol"])
    nothing = str(Head(0, begin or ""))
    if begin is None or begin != said["protocol_hash"]:
        return Verification(0, nothing, ("the protocol is not the one that has this hash",))
    try:
        protocol = Protocol.from_dict(said["protocol"])
        replay = Replay(protocol)
    except BROKEN as error:
        reason = f": {error}" if isinstance(error, InvalidInputError) else ""
        words = f"the protocol is none that discreet {__version__} can follow{reason}"
        return Verification(0, nothing, (words,))
    if canonical(said["protocol"]) != protocol.text:
        return Verification(0, nothing, ("the protocol is not as discreet writes one",))
    try:
        events = [_read_event(one) for one in said["events"]]
    except BROKEN:
        return Verification(0, nothing, ("there are events that say nothing",))
    followed = replay_events(replay, begin, events, watch)
    problems = list(_find_problems(followed, said, events, known))
    return Verification(followed.head.seq, str(followed.head), tuple(problems))


def _find_problems(
    followed: ReplayedRecord, said: dict[str, Any], events: list[Event], known: Head | None
) -> Iterable[str]:
    if known is not None and known not in [Head(event.seq, event.hash) for event in events]:
        yield f"the record does not go on from event {known.seq} as it is known"
    broken = followed.problem or followed.missing_end
    if broken:
        yield broken
        return
    yield from (
        f"there is a part that no transcript has: {name}" for name in said if name not in PARTS
    )
    yield from _find_status_problems(followed, said["status"], said["protocol_hash"])


def _find_status_problems(
    followed: ReplayedRecord, said: dict[str, Any], protocol_hash: str
) -> Iterable[str]:
    """What is said otherwise than it follows from the record."""
    replay = followed.replay
    protocol = replay.protocol
    counts: list[Any] = [said.get(name) for name in NOT_PUBLIC]
    if not all(type(count) is int for count in counts) or not _are_possible(
        replay, PendingCounts(*counts)
    ):
        yield f"status: {' and '.join(NOT_PUBLIC)} cannot be {counts[0]!r} and {counts[1]!r} here"
    figures, people = summarize_releases(replay.state), len(replay.seats)
    aside = PrivateNotes(said.get("past_deadline"), str(said.get("erasing")))
    if not _are_possible_notes(replay, aside):
        yield "status: past_deadline or erasing say what no status says"
    found = make_status(
        protocol_hash, replay.state, figures, PendingCounts(0, 0), aside, people, followed.head
    ).to_dict()
    found |= {name: said.get(name) for name in NOT_PUBLIC}
    hint = ""
    if protocol.version != __version__:
        hint = f" (by discreet {__version__}; the trial was started with {protocol.version})"
    for name, here, there in find_differences(said, found, "status"):
        yield f"{name} is {here}, but {there} follows from the record{hint}"


def _are_possible(replay: Replay, tally: PendingCounts) -> bool:
    """Whether so many outcomes can be not in: the record says only how many were
    released.
    """
    run = replay.state.run
    if replay.protocol.has_times:
        return tally == PendingCounts(replay.count_unrevealed(), replay.count_awaited())
    if not 0 <= tally.pending <= replay.count_unreleased():
        return False
    if replay.state.stopped:
        return tally.waiting == 0
    if run.releases_each_answer:
        return tally.waiting == (tally.pending if run.is_finished else 0)
    awaited, others = replay.count_awaited(), replay.count_unreleased() - replay.count_awaited()
    # An assignment may complete a round of which all outcomes are in: the release is made
    # with the next outcome, that of a participant who is not in the round.
    is_made_later = others > 0 and tally.pending > 0
    least = 1 if run.list_due() and not is_made_later else 0
    return least <= tally.waiting <= min(awaited, tally.pending)


def _are_possible_notes(replay: Replay, aside: PrivateNotes) -> bool:
    """Whether a status can say this of what the record does not."""
    past, timed = aside.past_deadline, replay.protocol.deadline is not None
    if past is not None and not (timed and type(past) is int and 0 <= past <= len(replay.seats)):
        return False
    return aside.erasing in ("", ERASING_WORDS)


def find_differences(said: Any, found: Any, name: str) -> Iterable[tuple[str, str, str]]:
    """(name, what is said, what was found) wherever they differ; floats to nine digits.

    Other processors differ in the last ones.
    """
    if isinstance(said, dict) and isinstance(found, dict):
        for key in {**said, **found}:
            if key not in said or key not in found:
                yield f"{name}: {key}", _show_part(said, key), _show_part(found, key)
            else:
                yield from find_differences(said[key], found[key], f"{name}: {key}")
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for place, (here, there) in enumerate(zip(said, found, strict=True), start=1):
            yield from find_differences(here, there, f"{name} {place}")
    elif isinstance(said, float) and isinstance(found, float):
        if not math.isclose(said, found, rel_tol=1e-9, abs_tol=1e-12):
            yield name, repr(said), repr(found)
    elif type(said) is not type(found) or said != found:
        yield name, repr(said), repr(found)


def _show_part(part: dict[str, Any], key: str) -> str:
    return repr(part[key]) if key in part else "not there"


# --- reading --------------------------------------------------------------------------


def read_transcript(transcript: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """A transcript in plain types, from a file or as `Trial.transcript` returned it."""
    if isinstance(transcript, Mapping):
        name = "this"
        hint = "give what Trial.transcript returned, or its file"
    else:
        if not isinstance(transcript, str | os.PathLike):
            raise InvalidInputError("give a transcript: a file, or what Trial.transcript returned")
        name = name_path(check_path("a transcript", transcript))
        hint = "give the file that `discreet trial transcript NAME --out FILE` wrote"
    try:
        said = json.loads(
            _read_text(transcript),
            object_pairs_hook=_refuse_repeated_names,
            parse_constant=_refuse_constant,
            parse_float=_read_finite,
        )
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{name} is not a transcript of a trial: {hint}") from None
    shapes = {"protocol": dict, "events": list, "status": dict, "protocol_hash": object}
    whole = isinstance(said, dict) and set(PARTS) <= set(said)
    if not whole or not all(isinstance(said[part], shapes[part]) for part in PARTS):
        raise InvalidInputError(f"{name} is not a transcript of a trial: {hint}")
    return said  # type: ignore[no-any-return]


def _read_text(transcript: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    if isinstance(transcript, Mapping):
        return json.dumps(dict(transcript))
    try:
        return Path(transcript).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"cannot read {name_path(transcript)}: {error.strerror}") from None


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """No name twice: readers differ in which of the two they see."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def _read_finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _try_digest(protocol: dict[str, Any]) -> str | None:
    """The hash of a protocol as it would have been written down; None if it could not
    be.
    """
    try:
        return digest(canonical(protocol))
    except BROKEN:
        return None


def _read_event(said: dict[str, Any]) -> Event:
    """The event that a transcript tells."""
    body = {**said}
    seq, kind, hash = body.pop("seq"), body.pop("kind"), body.pop("hash")
    event = Event(seq, kind, canonical(body), hash)
    if type(event.seq) is not int or type(event.kind) is not str:
        raise TypeError
    f"{event.kind}{event.body}".encode()  # refuses what no text can hold
    return event


def create_record(database: "Database", protocol: Protocol, user: str) -> None:
    """Begin the record of a new trial, unless there is one of this name."""
    text = protocol.text
    state = new_state(protocol).dump()
    with database.transaction(protocol.name) as tables:
        if tables.lock() is None:
            key = secrets.token_bytes(32)
            if tables.create(text, digest(text), key, state):
                tables.append_event("created", {"protocol": digest(text)})
                tables.save_state(state)
                tables.add_audit_entry(user, "create", 0)


def check_head(tables: "TrialTables", known: Head) -> None:
    """Refuse a record that is older than one that is known, or another one."""
    row = tables.row
    check_continues(tables.name, known, Head(row.seq, row.head))
    if tables.hash_at(known.seq) != known.hash:
        raise TamperedError(changed_event_words(tables.name, known.seq))


def make_transcript(
    protocol: Protocol, protocol_hash: str, events: Iterable[Event], status: Status
) -> dict[str, Any]:
    """What may be published of a trial."""
    return {
        "protocol": protocol.to_dict(),
        "protocol_hash": protocol_hash,
        "events": [
            {"seq": event.seq, "kind": event.kind, **event.content, "hash": event.hash}
            for event in events
        ],
        "status": status.to_dict(),
    }


def is_beginning_of(shorter: "TrialTables", longer: "TrialTables") -> bool:
    """Return whether a record is the beginning of another one, or the same. A record in
    which nothing has happened is the beginning of every record of its protocol.
    """
    row = shorter.row
    if row.seq == 1:
        return row.protocol == longer.row.protocol
    return longer.hash_at(row.seq) == row.head


class StoredCopy(NamedTuple):
    """What a verification needs of a database, as it is at one moment."""

    row: "TrialRow"
    events: list[Event]
    places: list[tuple[int, int]]
    """Arm and phase of each assignment."""
    has_correct_counts: bool
    keys: dict[int, bytes]
    """Keys of rounds that are not revealed."""
    problem: str | None
    """What is wrong with a head that the caller knows."""


def copy_stored(tables: "TrialTables", known: Head | None = None) -> StoredCopy:
    """Read what a verification needs. It takes long on a long record, and nobody who
    writes should wait for it, nor erased outcomes for a snapshot to end.
    """
    problem = None
    if known is not None:
        try:
            check_head(tables, known)
        except TamperedError as error:
            problem = str(error)
    events, places = list(tables.events()), list(tables.assigned_arms())
    are_correct, keys = tables.are_counts_correct(), tables.round_keys
    return StoredCopy(tables.row, events, places, are_correct, keys, problem)


def verify_database(
    protocol: Protocol, stored: StoredCopy, progress: Progress | None = None
) -> Verification:
    """Follow a record from the start, and compare what stands in the database."""
    row = stored.row
    problems = [] if stored.problem is None else [stored.problem]
    told = make_reporter(progress, row.seq)
    followed = replay_events(Replay(protocol), digest(row.protocol), stored.events, told)
    if followed.problem:
        problems.append(followed.problem)
    if not problems:
        problems += islice(find_disagreements(followed, stored), 1)
    return Verification(followed.head.seq, str(Head(row.seq, row.head)), tuple(problems))


def find_disagreements(followed: ReplayedRecord, stored: StoredCopy) -> Iterator[str]:
    """What in the database does not follow from its record."""
    replay, row = followed.replay, stored.row
    if followed.head != Head(row.seq, row.head):
        yield "the record is shorter than the trial says"
    if followed.missing_end:
        yield followed.missing_end
    if not _is_same_state(row.state, replay.state.dump()):
        yield "the state does not follow from the record"
    if replay.seats != stored.places or row.participants != len(stored.places):
        yield "the assignments do not follow from the record"
    if not stored.has_correct_counts:
        yield "the counts of outcomes do not agree with the outcomes"
    kept = {round: commit_to(key) for round, key in stored.keys.items()}
    whole = all(len(key) == KEY_BYTES for key in stored.keys.values())
    if kept != replay.unrevealed.commits or not whole:
        yield "the keys of rounds are not those that were committed to"


def _is_same_state(written: str, found: str) -> bool:
    """Whether two texts are of one state: a trial may go on on another processor, whose
    last digits differ.
    """
    if written == found:
        return True
    try:
        return not any(find_differences(json.loads(written), json.loads(found), "state"))
    except BROKEN:
        return False


def transcript_frame(
    transcript: str | os.PathLike[str] | Mapping[str, Any],
) -> "pl.DataFrame":
    """The events of a transcript, a file or what `Trial.transcript` returned, as a
    polars DataFrame with one value in each cell.

    An event that assigns has a row for each person, one that opens a round a row for
    each arm, one that releases a row for each batch, one that takes in randomised
    answers a row for each; others have one. Arms appear by name. It contains nothing
    that does not follow from the transcript, and does not check it: `verify_transcript`
    does that. `sum` × `map_to_unit` is a sum of rewards, from 0 for the worst outcome to 1 for
    the best; `mean` is the noisy mean of a batch in the units of the outcomes. It is
    empty where only a lead was released, and with local trust, where `sum` is that of
    randomised answers.
    """
    said = read_transcript(transcript)
    try:
        names = [str(name) for name in said["protocol"]["arms"]]
        rows = [row for event in said["events"] for row in _event_rows(dict(event), names)]
        _add_means(rows, said["protocol"])
        return make_frame(rows, numbers=["mean"])
    except BROKEN:
        raise InvalidInputError(
            "the events of this transcript are not as they should be: see what "
            "verify_transcript finds"
        ) from None


def _event_rows(event: dict[str, Any], names: list[str]) -> list[Row]:
    """The rows of one event; an arm that is added has a name from then on."""
    if event["kind"] == "managed" and event["action"] == ADD:
        names.append(str(event["about"]))
    for key in ("margin", "recommendation"):
        if event.get(key) is not None:
            event[key] = names[event[key]]
    event.pop("salt", None)
    head = {"event": event.pop("seq"), "kind": event.pop("kind")}
    each = _split_event(event, names)
    rest = flatten(event)
    return [{**head, **row, **rest} for row in each]


def _add_means(rows: list[Row], protocol: Mapping[str, Any]) -> None:
    """The mean of each batch whose outcomes themselves were summed."""
    scale = Scale(*check_range(protocol["range"]), protocol["direction"])
    if TRUSTS[protocol["strategy"]["trust"]].randomised:
        return
    for row in rows:
        if row["kind"] == "released":
            known = row["sum"] is not None and row.get("margin") is None
            row["mean"] = (
                scale.convert_to_outcome(row["sum"] * row["unit"] / row["count"]) if known else None
            )


def _split_event(event: dict[str, Any], names: list[str]) -> list[Row]:
    """What an event says of each person, arm, batch or answer: taken out of it."""
    if "arms" in event:
        first = event.pop("first")
        return [
            {"participant": first + place, "arm": names[arm]}
            for place, arm in enumerate(event.pop("arms"))
        ]
    if "odds" in event:
        return [{"arm": names[arm], "odds": odds} for arm, odds in event.pop("odds")]
    if "releases" in event:
        return [{**one, "arm": names[one["arm"]]} for one in event.pop("releases")]
    if "answers" in event:
        return [
            {"participant": person, "answer": answer} for person, answer in event.pop("answers")
        ]
    return [{}]
