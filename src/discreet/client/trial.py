"""Trials on another machine. What is passed to a call is checked here as a local trial
does, then sent; the rest is checked there, with the same sentences.
"""

import unicodedata
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from discreet import errors
from discreet._types import Progress
from discreet.client.address import PATIENCE, TRIAL, locate_service, locate_trial
from discreet.client.http import HEAD, ApiRequest, HttpClient, HttpResponse, encode_key
from discreet.errors import InvalidInputError, StoreError, TamperedError
from discreet.strategies.strategy import Strategy
from discreet.trials.inputs import check_key, looks_like_id, unknown_id
from discreet.trials.listing import ListedTrial
from discreet.trials.names import quote_name
from discreet.trials.protocol import Protocol, canonical, digest, new_protocol
from discreet.trials.record import BROKEN, AuditEntry, Head, check_continues
from discreet.trials.status import Status, Verification
from discreet.trials.transcript import verify_transcript
from discreet.trials.verbs import Arguments, Result, TrialVerbs, Verb
from discreet.validation import check_progress, check_whole
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


NAMED = (
    "the token says who calls the service, and for which site: leave user out, or use another token"
)
THERE = "the service says: "


class RemoteAuditRow(msgspec.Struct):
    """An entry of the audit trail, as the service sends it."""

    entry: int
    at: float
    user: str
    site: str | None
    action: str
    participants: int


class VerifiedDatabase(msgspec.Struct):
    """What the service found in its database."""

    problems: list[str]


class RemoteTrial(TrialVerbs):
    """A trial on another machine, with the methods of a local `Trial`.

    `Trial.open` returns one if the address begins with https://. Every call that
    changes something has a key of its own (or the caller's `key`). While the
    service cannot be reached, is busy, or its answer is lost, the call is repeated
    automatically, with pauses, for up to `patience` seconds in all; the service does it
    only once. If there is no answer by then, a `StoreError` names the key with which
    the call can be repeated later. Any number of threads may share one; code with
    `async` calls it with `asyncio.to_thread`.
    """

    files: tuple[str, ...] = ()
    """Files of the database on this machine: none."""
    site: str | None = None
    """The site that the token is bound to; None: to none."""

    def __init__(self, client: HttpClient, state: RemoteState) -> None:
        self.protocol = state.protocol
        """What the trial was started with."""
        self.protocol_hash = state.protocol_hash
        self.user, self.role, self.site = state.user, state.role, state.site
        """Who calls, for the audit trail: what the token is called, and what it allows.
        """
        self._client = client
        self._path = state.path
        self._seen = state.head
        """Of the longest record that was seen: it can only grow."""

    @classmethod
    def open(
        cls,
        url: str,
        name: str | None = None,
        head: str | None = None,
        user: str | None = None,
        token: str | None = None,
        ca: str | None = None,
        patience: float = PATIENCE,
    ) -> "RemoteTrial":
        """Open a trial: by the address of its service and its name, or by its own
        address, such as https://trial.example.org/t/dose. With `head`, as `status` gave
        it, a record older than that is refused.

        The token is read from DISCREET_TOKEN, or from the file that DISCREET_TOKEN_FILE
        names, if none is given. It only ever travels encrypted; http:// is accepted
        only for this machine. `ca` is a file of certificate authorities to trust, in
        place of the usual ones.
        """
        _check_no_user(user)
        way, called = locate_trial(url, name, token, ca, patience)
        client = HttpClient(way)
        return cls(client, open_trial(client, called, head))

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Sequence[str],
        strategy: Strategy,
        max_participants: int,
        token: str | None = None,
        ca: str | None = None,
        patience: float = PATIENCE,
        **settings: Any,
    ) -> "RemoteTrial":
        """Start a trial, or go on with one of this name and these settings, which are
        those of `Trial.create`.
        """
        body = _settings(name, arms, strategy, {**settings, "max_participants": max_participants})
        way, _ = locate_trial(url, body["name"], token, ca, patience)
        client = HttpClient(way)
        warned = create_trial(client, body)
        trial = cls(client, open_trial(client, body["name"]))
        warn_here(warned)
        return trial

    def __repr__(self) -> str:
        """Name, strategy and place; nothing that was told, and no token."""
        name, strategy = self.protocol.name, self.protocol.strategy.name
        return f"RemoteTrial({name!r}, {strategy}, {self.url!r})"

    def close(self) -> None:
        """Close the connections. Nothing is lost without it; the next call opens new
        ones.
        """
        self._client.close()

    @property
    def url(self) -> str:
        """The address of the trial."""
        return f"{self._client.address.base}{TRIAL}{quote_name(self.protocol.name)}"

    def as_user(self, user: str, site: str | None = None) -> NoReturn:
        """Not here: another caller has another token."""
        raise InvalidInputError(NAMED)

    def _call(self, verb: Verb[Arguments, Result], body: Arguments, key: Any = None) -> Result:
        """Post a verb, and return its result. What cannot be an id does not travel: it
        may be an outcome in the wrong place.
        """
        checked = body.checked(self.protocol)
        key = check_key(key)
        for id in checked.ids:
            if not looks_like_id(id):
                raise unknown_id(id, checked.ids)
        path = f"{self._path}/{verb.name}"
        content = msgspec.to_builtins(checked)
        request = ApiRequest("POST", path, content, key, once=not verb.is_repeatable)
        return read(verb.result, self._send(request))

    def was_answered(self, key: str) -> bool:
        """Return whether an `ask` of this caller with this key was answered."""
        return super().was_answered(encode_key(check_key(key) or ""))

    def audit_trail(self, limit: int = 1000) -> list[AuditEntry]:
        """Return the last calls that changed or handed out anything, the newest
        first.
        """
        limit = check_whole("limit", limit, least=1, most=10**6)
        rows = read(list[RemoteAuditRow], self._get(f"/audit-trail?limit={limit}"))
        return [AuditEntry(*msgspec.structs.astuple(row)) for row in rows]

    # --- what anyone may see ----------------------------------------------------------

    def status(self) -> Status:
        """Return the trial as the caller may see it: sites of a blinded trial see
        nothing of arms before the end.
        """
        before = self._seen
        status = read(Status, self._get(""))
        self._see(Head.parse(status.head), before)
        return status

    def transcript(self) -> dict[str, Any]:
        """Return what may be published."""
        before = self._seen
        transcript = read(dict[str, Any], self._get("/transcript", slow=True))
        status = convert(Status, transcript.get("status"))
        self._see(Head.parse(status.head), before)
        return transcript

    def verify(self, head: str | None = None, progress: Progress | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone. This is done
        here, from the transcript, so that nobody need trust the service. It also checks
        that the record continues from every head that was seen.

        Only the service can see whether assignments, keys and counts in the database
        agree with the record, so it is asked too; what it finds begins with "the
        service says".
        """
        check_progress(progress)
        before = self._seen
        if head is not None:
            Head.parse(head)
        transcript = self.transcript()
        found = verify_transcript(transcript, head or str(before), progress)
        problems = list(found.problems)
        if transcript["protocol_hash"] != self.protocol_hash:
            problems.append("the protocol is not the one that the trial was opened with")
        heads = {str(Head(one["seq"], one["hash"])) for one in transcript["events"]}
        if head is not None and str(before) not in heads:
            problems.append(
                f"the record does not continue from event {before.seq} as it was seen before"
            )
        there = read(VerifiedDatabase, self._get("/verify", slow=True))
        problems += [f"{THERE}{problem}" for problem in there.problems]
        return Verification(found.events, found.head, tuple(problems))

    # --- requests ---------------------------------------------------------------------

    def _get(self, path: str, slow: bool = False) -> HttpResponse:
        return self._send(ApiRequest("GET", f"{self._path}{path}", slow=slow))

    def _send(self, request: ApiRequest) -> HttpResponse:
        """Send a request, and check that the record has grown since the last one."""
        before = self._seen
        got = self._client.call(request._replace(known=str(before)))
        if (head := got.headers.get(HEAD)) is not None:
            self._see(Head.parse(head), before)
        return got

    def _see(self, found: Head, before: Head) -> None:
        """Keep in mind a head; refuse one that is older than what was known when the
        request for it was sent.
        """
        check_continues(self.protocol.name, before, found)
        if found.seq > self._seen.seq:
            self._seen = found


def _check_no_user(user: Any) -> None:
    if user is not None:
        raise InvalidInputError(NAMED)


def _settings(
    name: str,
    arms: Sequence[str],
    strategy: Strategy,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return a protocol as it is sent to be frozen; refuse one that cannot be carried
    out.
    """
    given = dict(settings)
    _check_no_user(given.pop("user", None))
    body = new_protocol(name, arms, strategy, **given).to_dict()
    del body["version"], body["script"]
    return body
