"""The events of a published transcript as one flat table."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInputError
from discreet.frames import Row, flat, frame_of
from discreet.trials.conduct import ADD
from discreet.trials.record import BROKEN
from discreet.trials.verify import read_transcript

if TYPE_CHECKING:
    import polars as pl


def transcript_frame(
    transcript: str | os.PathLike[str] | Mapping[str, Any],
) -> "pl.DataFrame":
    """The events of a transcript, a file or what `Trial.transcript` returned, as a
    polars DataFrame with one value in each cell.

    An event that assigns has a row for each person, one that opens a round a row for
    each arm, one that releases a row for each batch, one that takes in randomised
    answers a row for each; others have one. Arms appear by name. It contains nothing
    that is not in the transcript, and does not check it: `verify_transcript` does that.
    """
    said = read_transcript(transcript)
    try:
        names = [str(name) for name in said["protocol"]["arms"]]
        return frame_of([row for event in said["events"] for row in _rows(dict(event), names)])
    except BROKEN:
        raise InvalidInputError(
            "the events of this transcript are not as they should be: see what "
            "verify_transcript finds"
        ) from None


def _rows(event: dict[str, Any], names: list[str]) -> list[Row]:
    """The rows of one event; an arm that is added has a name from then on."""
    if event["kind"] == "operator" and event["action"] == ADD:
        names.append(str(event["about"]))
    for key in ("margin", "recommendation"):
        if event.get(key) is not None:
            event[key] = names[event[key]]
    head = {"event": event.pop("seq"), "kind": event.pop("kind")}
    each = _each(event, names)
    rest = flat(event)
    return [{**head, **row, **rest} for row in each]


def _each(event: dict[str, Any], names: list[str]) -> list[Row]:
    """What an event says of each person, arm, batch or answer: taken out of it."""
    if "arms" in event:
        first = event.pop("first")
        return [
            {"person": first + place, "arm": names[arm]}
            for place, arm in enumerate(event.pop("arms"))
        ]
    if "odds" in event:
        return [{"arm": names[arm], "odds": odds} for arm, odds in event.pop("odds")]
    if "releases" in event:
        return [{**one, "arm": names[one["arm"]]} for one in event.pop("releases")]
    if "answers" in event:
        return [{"person": person, "answer": answer} for person, answer in event.pop("answers")]
    return [{}]
