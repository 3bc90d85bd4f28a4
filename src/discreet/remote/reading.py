"""Answers of a service as what the library gives, field by field."""

import json
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from discreet.errors import StoreError
from discreet.remote.http import Got
from discreet.version import __version__

Found = TypeVar("Found")
OTHER = (
    "discreet {version} cannot read the answer: the service may have another version, or "
    "something else answers at this address"
)


class UnreadableError(StoreError):
    """An answer that nobody here can read."""

    def __init__(self) -> None:
        super().__init__(OTHER.format(version=__version__))


def plain(got: Got) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(got.body)
    except (ValueError, RecursionError):
        raise UnreadableError from None


def read(kind: type[Found], got: Got) -> Found:
    """What an answer is, made of its JSON."""
    return made(kind, plain(got))


def read_list(kind: type[Found], got: Got) -> list[Found]:
    """The same of several."""
    found = plain(got)
    if not isinstance(found, list):
        raise UnreadableError
    return [made(kind, one) for one in found]


def made(kind: type[Found], said: Any) -> Found:
    """Return a record made of plain types; it has all its names, and no others."""
    found: Found = _made(kind, said)
    return found


def _made(kind: Any, said: Any) -> Any:
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = _hints(kind)
        if not isinstance(said, dict) or set(hints) != set(said):
            raise UnreadableError
        return kind(**{name: _made(hint, said[name]) for name, hint in hints.items()})
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple and isinstance(said, list):
        kinds = [parts[0]] * len(said) if parts[-1] is Ellipsis else parts
        if len(kinds) != len(said):
            raise UnreadableError
        return tuple(_made(part, one) for part, one in zip(kinds, said, strict=True))
    if origin in (Union, types.UnionType):
        return _one_of(parts, said)
    if kind is float and type(said) is int:
        return float(said)
    if isinstance(kind, type) and type(said) is kind:
        return said
    raise UnreadableError


def _one_of(kinds: tuple[Any, ...], said: Any) -> Any:
    if said is None and type(None) in kinds:
        return None
    for kind in kinds:
        try:
            return _made(kind, said)
        except UnreadableError:
            continue
    raise UnreadableError


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    names = kind._fields if hasattr(kind, "_fields") else [one.name for one in fields(kind)]
    return {name: hints[name] for name in names}
