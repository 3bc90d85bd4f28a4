"""What is asked of a service beside the calls of a trial: to open or create one, and
which there are.
"""

import unicodedata
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import msgspec

from discreet import errors
from discreet.client.address import locate_service
from discreet.client.http import ApiRequest, HttpClient, HttpResponse
from discreet.errors import InvalidInputError, StoreError, TamperedError
from discreet.trials.listing import ListedTrial
from discreet.trials.names import quote_name
from discreet.trials.protocol import Protocol, canonical, digest
from discreet.trials.record import BROKEN, Head, check_continues
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


def read(kind: type[Value], got: HttpResponse) -> Value:
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


TRIALS = "/trials"


class OpenedTrial(msgspec.Struct):
    """What a service says of a trial that is opened."""

    protocol: dict[str, Any]
    protocol_hash: str
    head: str
    user: str
    role: str
    site: str | None = None


class RemoteState(NamedTuple):
    """A trial as its service showed it when it was opened."""

    path: str
    """Of the trial, in the API."""
    protocol: Protocol
    protocol_hash: str
    head: Head
    user: str
    role: str
    site: str | None


def open_trial(client: HttpClient, name: str, head: str | None = None) -> RemoteState:
    """Open a trial; with `head`, refuse a record older than that."""
    known = None if head is None else Head.parse(head)
    composed = unicodedata.normalize("NFC", name)
    try:
        return _open(client, name, known)
    except InvalidInputError:
        if composed == name:
            raise
        return _open(client, composed, known)


def _open(client: HttpClient, name: str, known: Head | None) -> RemoteState:
    path = f"{TRIALS}/{quote_name(name)}"
    head = None if known is None else str(known)
    opened = read(OpenedTrial, client.call(ApiRequest("GET", f"{path}/protocol", known=head)))
    if digest(canonical(opened.protocol)) != opened.protocol_hash:
        raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
    try:
        protocol = Protocol.from_dict(opened.protocol)
    except InvalidInputError:
        raise
    except BROKEN:
        raise UnreadableError from None
    found = Head.parse(opened.head)
    if known is not None:
        check_continues(name, known, found)
    about = (opened.user, opened.role, opened.site)
    return RemoteState(path, protocol, opened.protocol_hash, found, *about)


class ServiceWarning(msgspec.Struct):
    """A warning of the service's library, and what it says."""

    kind: str
    words: str


class Started(msgspec.Struct):
    """The part of a new trial that the client needs."""

    warnings: list[ServiceWarning]


def create_trial(client: HttpClient, settings: dict[str, Any]) -> list[ServiceWarning]:
    """Start a trial, or continue one of this name and these settings; return what the
    service warns of.
    """
    return read(Started, client.call(ApiRequest("POST", TRIALS, settings, once=False))).warnings


def warn_here(warned: list[ServiceWarning]) -> None:
    """Warn as the library does where a trial is kept, by the same class."""
    for one in warned:
        kind = getattr(errors, one.kind, UserWarning)
        known = isinstance(kind, type) and issubclass(kind, Warning)
        errors.warn_caller(one.words, kind if known else UserWarning)


def fetch_list(url: str, token: str | None = None, ca: str | None = None) -> list[ListedTrial]:
    """Return the trials that a token is for."""
    with closing(HttpClient(locate_service(url, token, ca))) as client:
        return read(list[ListedTrial], client.call(ApiRequest("GET", TRIALS)))
