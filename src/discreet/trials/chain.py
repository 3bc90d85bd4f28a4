"""The events of a public record, and the chain of hashes that ties them."""

import hashlib
import json
import re
import secrets
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError, TamperedError
from discreet.trials.protocol import canonical

_decoder = json.JSONDecoder()
SALT = re.compile(r"[0-9a-f]{32}")
"""The salt of an event: 16 random bytes. Without them a hash confirms a guess of what
the event says, such as the arm of a participant in a blinded trial.
"""


class UnknownHeadError(TamperedError):
    """The record does not go on from a head that a caller gave. Whether the record or
    the head is wrong, only the caller can tell.
    """


class Event(NamedTuple):
    """One line of the public record."""

    seq: int
    kind: str
    body: str
    """What it says, as JSON: the very text that was hashed."""
    hash: str

    @property
    def says(self) -> dict[str, Any]:
        """The body in plain types."""
        return parsed(self.body)


class Head(NamedTuple):
    """How long a record is, and the hash of its last event: who knows it knows the
    whole record.
    """

    seq: int
    hash: str

    def __str__(self) -> str:
        """As `status` shows it."""
        return f"{self.seq}:{self.hash}"

    @staticmethod
    def parse(text: str) -> "Head":
        """The head that was shown as this text."""
        try:
            length, known = text.split(":")
            if not (length.isascii() and length.isdigit() and len(length) < 10):
                raise ValueError
            return Head(int(length), known)
        except (AttributeError, TypeError, ValueError):
            raise InvalidInputError("head must look like 17:5f2c…, as status shows it") from None


def check_goes_on(name: str, known: Head, found: Head) -> None:
    """Refuse a record that is older than one that is known, or another one of the same
    length.
    """
    if known.seq > found.seq:
        raise TamperedError(
            f"the record of {name!r} has {found.seq} events, but {known.seq} are known: it was "
            "restored from a backup. Going on would release outcomes a second time, with "
            "fresh noise, and spend their ε twice"
        )
    if known.seq == found.seq and known.hash != found.hash:
        raise TamperedError(other_event(name, known.seq))


def other_event(name: str, seq: int) -> str:
    """What to say of a record that does not go on from a known event."""
    return f"event {seq} of {name!r} is not the one that is known: the record was changed"


def parsed(body: str) -> dict[str, Any]:
    """What an event says, in plain types. (`json.loads` looks for spaces around, which
    no event has, and takes twice the time for lines as short as most.)
    """
    found, end = _decoder.raw_decode(body)
    if end != len(body):
        raise ValueError
    return found  # type: ignore[no-any-return]


def link(previous: str, seq: int, kind: str, body: str) -> str:
    """The hash of an event: of all before it, its place, and what it says."""
    return hashlib.sha256(f"{previous}\n{seq}\n{kind}\n{body}".encode()).hexdigest()


def new_salt() -> str:
    """Draw the salt of an event."""
    return secrets.token_hex(16)


def next_event(previous: str, seq: int, kind: str, body: dict[str, Any]) -> Event:
    """Make the event that follows a hash, with a salt of its own."""
    text = canonical({**body, "salt": new_salt()})
    return Event(seq, kind, text, link(previous, seq, kind, text))


def first_event(protocol_hash: str) -> Event:
    """Make the event with which a record begins."""
    return next_event(protocol_hash, 1, "created", {"protocol": protocol_hash})


def is_first_event(event: Event, protocol_hash: str) -> bool:
    """Return whether a record of this protocol can begin with an event."""
    if (event.seq, event.kind) != (1, "created"):
        return False
    linked = event.hash == link(protocol_hash, 1, "created", event.body)
    return linked and event.says.get("protocol") == protocol_hash
