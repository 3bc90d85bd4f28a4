"""What is asked of a service beside the calls of a trial: to open or create one, and
which there are.
"""

import unicodedata
from contextlib import closing
from typing import Any, NamedTuple

from discreet import errors
from discreet.errors import InvalidInputError, TamperedError
from discreet.remote.address import way_to
from discreet.remote.http import ApiRequest, HttpClient
from discreet.remote.reading import UnreadableError, made, plain, read_list
from discreet.trials.chain import Head, check_goes_on
from discreet.trials.listing import Listed
from discreet.trials.names import in_path
from discreet.trials.protocol import Protocol, canonical, digest
from discreet.trials.record import BROKEN

TRIALS = "/trials"
KINDS = {"protocol": dict, "protocol_hash": str, "head": str, "who": str, "role": str}
"""What a service says of a trial that is opened."""


class RemoteState(NamedTuple):
    """A trial as its service showed it when it was opened."""

    path: str
    """Of the trial, in the API."""
    protocol: Protocol
    protocol_hash: str
    head: Head
    who: str
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
    path = f"{TRIALS}/{in_path(name)}"
    head = None if known is None else str(known)
    answer = plain(client.call(ApiRequest("GET", f"{path}/protocol", known=head)))
    if not isinstance(answer, dict) or any(
        type(answer.get(one)) is not kind for one, kind in KINDS.items()
    ):
        raise UnreadableError
    if digest(canonical(answer["protocol"])) != answer["protocol_hash"]:
        raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
    try:
        protocol = Protocol.from_dict(answer["protocol"])
    except InvalidInputError:
        raise
    except BROKEN:
        raise UnreadableError from None
    found = Head.parse(answer["head"])
    if known is not None:
        check_goes_on(name, known, found)
    about = (answer["who"], answer["role"], answer.get("site"))
    return RemoteState(path, protocol, answer["protocol_hash"], found, *about)


class Warned(NamedTuple):
    """A warning of the service's library, and what it says."""

    kind: str
    words: str


def create_trial(client: HttpClient, settings: dict[str, Any]) -> list[Warned]:
    """Start a trial, or continue one of this name and these settings; return what the
    service warns of.
    """
    answer = plain(client.call(ApiRequest("POST", TRIALS, settings, once=False)))
    if not isinstance(answer, dict) or not isinstance(answer.get("warnings"), list):
        raise UnreadableError
    return [made(Warned, one) for one in answer["warnings"]]


def warn_here(warned: list[Warned]) -> None:
    """Warn as the library does where a trial is kept, by the same class."""
    for one in warned:
        kind = getattr(errors, one.kind, UserWarning)
        known = isinstance(kind, type) and issubclass(kind, Warning)
        errors.warn_caller(one.words, kind if known else UserWarning)


def fetch_list(url: str, token: str | None = None, ca: str | None = None) -> list[Listed]:
    """Return the trials that a token is for."""
    with closing(HttpClient(way_to(url, token, ca))) as client:
        return read_list(Listed, client.call(ApiRequest("GET", TRIALS)))
