"""Transcripts as somebody would forge them who can compute a hash."""

from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any

from discreet.trials.protocol import canonical, digest
from discreet.trials.record import chain_hash

UNKNOWN = {("status", "pending"), ("status", "waiting")}
"""How many outcomes are not in is not in the record: of these only the limits follow
from it.
"""


def rechained(transcript: Any) -> Any:
    """A copy with hashes that fit, as somebody would write them who can compute a
    hash.
    """
    transcript = deepcopy(transcript)
    previous = transcript["protocol_hash"] = digest(canonical(transcript["protocol"]))
    for event in transcript["events"]:
        body = {key: part for key, part in event.items() if key not in ("seq", "kind", "hash")}
        previous = event["hash"] = chain_hash(
            previous, event["seq"], event["kind"], canonical(body)
        )
    transcript["status"]["head"] = f"{len(transcript['events'])}:{previous}"
    transcript["status"]["protocol_hash"] = transcript["protocol_hash"]
    return transcript


def leaves(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a document that holds no others, with the way to it."""
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(value, (*path, key))
    else:
        yield path, part


def changed(transcript: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value there; what stays as it is, both share."""
    other, (key, *rest) = copy(transcript), path
    other[key] = changed(other[key], tuple(rest), value) if rest else value
    return other


def others(value: Any) -> list[Any]:
    """Values that somebody might put in its place, also of another type."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [value + 1, float(value), None]
    if isinstance(value, float):
        return [value * (1 + 1e-6) + 1e-9, str(value)]
    return [f"{value} ", None] if isinstance(value, str) else [0, "x"]
