"""Read the answers of a service as the library's own types."""

from typing import Any, TypeVar

import msgspec

from discreet.errors import StoreError
from discreet.remote.http import Got
from discreet.version import __version__

Value = TypeVar("Value")
UNREADABLE = (
    "discreet {version} cannot read the answer: the service may have another version, or "
    "something else answers at this address"
)


class UnreadableError(StoreError):
    """An answer that nobody here can read."""

    def __init__(self) -> None:
        super().__init__(UNREADABLE.format(version=__version__))


def read(kind: type[Value], got: Got) -> Value:
    """Return the JSON of an answer as a value of this type."""
    try:
        return msgspec.json.decode(got.body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UnreadableError from None


def convert(kind: type[Value], value: Any) -> Value:
    """Return a part of an answer as a value of this type."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        raise UnreadableError from None
