"""How one comes to a trial on another machine, to all that are there, and to a backup
of them; as steps.
"""

import unicodedata
from typing import Any, NamedTuple

from discreet import errors
from discreet.errors import InvalidInputError, TamperedError
from discreet.remote.address import Way
from discreet.remote.calls import Far
from discreet.remote.reading import UnreadableError, made, plain, read_list
from discreet.remote.steps import Asked, Service, Steps, called
from discreet.trials.chain import Head, check_goes_on
from discreet.trials.listing import Listed
from discreet.trials.names import in_path
from discreet.trials.protocol import Protocol, canonical, digest
from discreet.trials.record import BROKEN

TRIALS = "/trials"
KINDS = {"protocol": dict, "protocol_hash": str, "head": str, "who": str, "role": str}
"""What a service says of a trial that is opened."""


def opened(way: Way, name: str, head: str | None = None) -> Steps[Far]:
    """Come to a trial; with `head`, a record older than that is refused."""
    known = None if head is None else Head.parse(head)
    service, composed = Service(way), unicodedata.normalize("NFC", name)
    try:
        return (yield from _opened(service, name, known))
    except InvalidInputError:
        if composed == name:
            raise
        return (yield from _opened(service, composed, known))


def _opened(service: Service, name: str, known: Head | None) -> Steps[Far]:
    path = f"{TRIALS}/{in_path(name)}"
    asked = Asked("GET", f"{path}/protocol", known=None if known is None else str(known))
    said = plain((yield from called(service, asked)))
    if not isinstance(said, dict) or any(type(said.get(one)) is not KINDS[one] for one in KINDS):
        raise UnreadableError
    if digest(canonical(said["protocol"])) != said["protocol_hash"]:
        raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
    try:
        protocol = Protocol.from_dict(said["protocol"])
    except InvalidInputError:
        raise
    except BROKEN:
        raise UnreadableError from None
    found = Head.parse(said["head"])
    if known is not None:
        check_goes_on(name, known, found)
    about = (said["who"], said["role"], said.get("site"))
    return Far(service, path, protocol, said["protocol_hash"], found, *about)


class Warned(NamedTuple):
    """A warning of the service's library, and what it says."""

    kind: str
    words: str


def created(way: Way, settings: dict[str, Any]) -> Steps[tuple[Far, list[Warned]]]:
    """Start a trial, or go on with one of this name and these settings; and what the
    service warns of.
    """
    asked = Asked("POST", TRIALS, settings, once=False)
    said = plain((yield from called(Service(way), asked)))
    warned = said.get("warnings", []) if isinstance(said, dict) else []  # older ones have none
    told = [made(Warned, one) for one in warned] if isinstance(warned, list) else []
    return (yield from opened(way, settings["name"])), told


def warn_here(warned: list[Warned]) -> None:
    """Warn as the library does where a trial is kept, by the same class."""
    for one in warned:
        kind = getattr(errors, one.kind, UserWarning)
        known = isinstance(kind, type) and issubclass(kind, Warning)
        errors.warn_caller(one.words, kind if known else UserWarning)


def listed(way: Way) -> Steps[list[Listed]]:
    """The trials that the token is for."""
    return read_list(Listed, (yield from called(Service(way), Asked("GET", TRIALS))))


def backed_up(way: Way) -> Steps[bytes]:
    """A backup of all trials of a service, a file of SQLite."""
    asked = Asked("POST", "/backup", once=False, slow=True)
    return (yield from called(Service(way), asked)).body
