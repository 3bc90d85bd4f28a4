"""The events of a published transcript as one flat table."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInputError
from discreet.frames import Row, flat, frame_of
from discreet.scale import Scale
from discreet.trials.conduct import ADD
from discreet.trials.record import BROKEN
from discreet.trials.verify import read_transcript
from discreet.trust import TRUSTS

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
    that does not follow from the transcript, and does not check it: `verify_transcript`
    does that. `sum` × `unit` is a sum of rewards, from 0 for the worst outcome to 1 for
    the best; `mean` is the noisy mean of a batch in the units of the outcomes. It is
    empty where only a lead was released, and with local trust, where `sum` is that of
    randomised answers.
    """
    said = read_transcript(transcript)
    try:
        names = [str(name) for name in said["protocol"]["arms"]]
        rows = [row for event in said["events"] for row in _rows(dict(event), names)]
        _add_means(rows, said["protocol"])
        return frame_of(rows, numbers=["mean"])
    except BROKEN:
        raise InvalidInputError(
            "the events of this transcript are not as they should be: see what "
            "verify_transcript finds"
        ) from None


def _rows(event: dict[str, Any], names: list[str]) -> list[Row]:
    """The rows of one event; an arm that is added has a name from then on."""
    if event["kind"] == "managed" and event["action"] == ADD:
        names.append(str(event["about"]))
    for key in ("margin", "recommendation"):
        if event.get(key) is not None:
            event[key] = names[event[key]]
    event.pop("salt", None)
    head = {"event": event.pop("seq"), "kind": event.pop("kind")}
    each = _each(event, names)
    rest = flat(event)
    return [{**head, **row, **rest} for row in each]


def _add_means(rows: list[Row], protocol: Mapping[str, Any]) -> None:
    """The mean of each batch whose outcomes themselves were summed."""
    scale = Scale(protocol["low"], protocol["high"], protocol["direction"])
    if TRUSTS[protocol["strategy"]["trust"]].randomised:
        return
    for row in rows:
        if row["kind"] == "released":
            known = row["sum"] is not None and row.get("margin") is None
            row["mean"] = scale.shown(row["sum"] * row["unit"] / row["count"]) if known else None


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
