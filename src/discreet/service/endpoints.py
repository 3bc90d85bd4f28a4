"""The endpoints of the API, a row each: what is called, who may (`access.ACTIONS`),
what it takes and gives.
"""

from collections.abc import AsyncIterator, Callable, Hashable
from typing import Any, NamedTuple

import msgspec

from discreet.errors import InvalidInputError
from discreet.reports.compared import check_control
from discreet.reports.trial import trial_page
from discreet.service import wire
from discreet.service.access import NotHereError, Visitor
from discreet.service.home import Computation, Home, ServedTrial
from discreet.service.invitations import invite, link_path
from discreet.service.starting import start_trial, strategy_of
from discreet.trials.chain import Head, UnknownHeadError
from discreet.trials.listing import Listed
from discreet.trials.status import Status, Verification
from discreet.trials.store.doors import Token
from discreet.trials.verbs import VERBS, Body, Done, Verb
from discreet.validate import read_whole

PREFIX = "/api/v1"


class Call(NamedTuple):
    """One call of an endpoint."""

    home: Home
    visitor: Visitor
    name: str
    """The trial it is about, or empty."""
    about: str
    """What else the path names."""
    body: Any
    query: dict[str, str]
    after: str = ""
    """The last event that whoever wants a stream of them has had."""

    @property
    def trial(self) -> ServedTrial:
        """The trial."""
        return self.home.trial(self.name)


class Endpoint(NamedTuple):
    """One row of the API."""

    method: str
    path: str
    action: str
    work: Callable[[Call], Any] | Verb[Any, Any]
    """A function that runs in a thread, or a verb of a trial."""
    gives: Any
    takes: type[Body] | None = None
    says: str = ""
    media: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    """What may be said after the path, and what it means."""


# --- trials ---------------------------------------------------------------------------


def _list(call: Call) -> list[Listed]:
    return call.home.listed(call.visitor)


def _create(call: Call) -> wire.Started:
    said = msgspec.structs.asdict(call.body)
    started = start_trial(call.home, call.visitor.who, strategy_of(said.pop("strategy")), said)
    status = call.home.status(started.name, call.visitor)
    return wire.Started(**vars(status), warnings=started.warnings)


def _status(call: Call) -> msgspec.Raw:
    return call.home.seen(call.name, call.visitor).text()


def _events(call: Call) -> AsyncIterator[bytes]:
    call.home.check_there(call.name)
    return call.home.events.stream(call.name, call.visitor, call.after)


def _protocol(call: Call) -> wire.Opened:
    trial, visitor = call.trial, call.visitor
    who = (visitor.who, visitor.role, visitor.site)
    return wire.Opened(trial.protocol.to_dict(), trial.protocol_hash, str(trial.head), *who)


def _state_key(call: Call, *about: str | None) -> Hashable:
    """Return what the results about a trial depend on: its public state."""
    status = call.home.seen(call.name, call.visitor).status
    return call.name, status.head, status.pending, status.erasing, *about


def _transcript(call: Call) -> Computation:
    trial = call.trial
    key = _state_key(call, "transcript")
    return Computation(key, lambda: msgspec.Raw(msgspec.json.encode(trial.transcript())))


def _report(call: Call) -> Computation:
    trial, control = call.trial, call.query.get("control")
    check_control(
        control, [arm.name for arm in call.home.seen(call.name, call.visitor).status.arms]
    )
    key = _state_key(call, "report", control)
    return Computation(key, lambda: trial_page(trial.transcript(), control))


def _verify(call: Call) -> Computation:
    """Verify the database, once for each state of the record for those without a
    token, and anew for others. A head that the caller knows is checked apart from
    that: there are as many as strangers can think of.
    """
    trial, known, wrong = call.trial, call.query.get("head"), tuple[str, ...]()
    if known is not None:
        try:
            trial.check_known(Head.parse(known))
        except UnknownHeadError as error:
            wrong = (str(error),)

    def finish(found: Verification) -> wire.Verified:
        problems = (*wrong, *found.problems)
        return wire.Verified(not problems, found.events, found.head, problems)

    key = _state_key(call, "verify") if call.visitor.token is None else None
    return Computation(key, trial.verify, finish)


def _invite(call: Call) -> wire.Invited:
    body: wire.Invite = call.body
    secret, token = invite(call.home, call.visitor, call.name, body.id, body.days)
    return wire.Invited(link_path(secret), token)


def _audit_trail(call: Call) -> list[wire.AuditRow]:
    entries = call.trial.audit_trail(read_whole(call.query.get("limit", "1000")) or 0)
    return [wire.AuditRow(*entry) for entry in entries]


def _publish(call: Call) -> wire.Published:
    call.home.publish(call.name, call.visitor.who)
    return wire.Published(True)


def _unpublish(call: Call) -> wire.Published:
    call.home.doors.unpublish(call.name, call.visitor.who)
    return wire.Published(False)


def _tokens(call: Call) -> list[Token]:
    return [one for one in call.home.doors.all() if _reaches(call.visitor, one)]


def _make_token(call: Call) -> wire.MadeToken:
    said: wire.NewToken = call.body
    if call.visitor.token is not None and call.visitor.token.trial not in (None, said.trial):
        raise InvalidInputError(
            f"you are the manager of {call.visitor.token.trial} only: make tokens for that trial"
        )
    call.home.check_there(said.trial)
    call.home.check_site(said.trial, said.site)
    secret, token = call.home.tokens.make(
        said.name, said.role, call.visitor.who, said.trial, said.site, said.days
    )
    return wire.MadeToken(secret, token)


def _revoke(call: Call) -> Done:
    number = read_whole(call.about)
    known = {one.number: one for one in call.home.doors.all()}
    if number not in known or not _reaches(call.visitor, known[number]):
        raise NotHereError("there is no token of this number")
    call.home.tokens.revoke(number, call.visitor.who)
    return Done()


def _reaches(visitor: Visitor, token: Token) -> bool:
    return visitor.token is not None and visitor.token.trial in (None, token.trial)


T = "/trials/{name}"
ENDPOINTS: tuple[Endpoint, ...] = (
    *(
        Endpoint(
            *("POST", f"{T}/{verb.name}", verb.name, verb, verb.result, verb.body, verb.help),
        )
        for verb in VERBS
    ),
    Endpoint("GET", "/trials", "list", _list, list[Listed], says="Every trial, and its state."),
    Endpoint("POST", "/trials", "create", _create, wire.Started, wire.NewTrial, "Start a trial."),
    Endpoint("GET", T, "status", _status, Status, says="The trial as anyone may see it."),
    Endpoint(
        *("GET", f"{T}/events", "events", _events, str),
        says="A stream of its public changes (server-sent events).",
        media="text/event-stream",
    ),
    Endpoint(
        *("GET", f"{T}/protocol", "protocol", _protocol, wire.Opened),
        says="What was fixed before the first person.",
    ),
    Endpoint(
        *("POST", f"{T}/invite", "invite", _invite, wire.Invited, wire.Invite),
        "A link with which one person answers once, in a trial with local trust.",
    ),
    Endpoint(
        *("GET", f"{T}/transcript", "transcript", _transcript, dict[str, Any]),
        says="What may be published.",
    ),
    Endpoint(
        *("GET", f"{T}/report", "report", _report, str),
        says="The transcript as a page.",
        media="text/html",
        query=(("control", "The arm that others are compared with, if not the best one."),),
    ),
    Endpoint(
        *("GET", f"{T}/verify", "verify", _verify, wire.Verified),
        says="Check the record.",
        query=(("head", "A head that you noted earlier: the record must continue from there."),),
    ),
    Endpoint(
        *("GET", f"{T}/audit-trail", "audit-trail", _audit_trail, list[wire.AuditRow]),
        says="Who did what, and when.",
        query=(("limit", "How many of the latest entries; 1000 if left out."),),
    ),
    Endpoint(
        "POST",
        f"{T}/publish",
        "publish",
        _publish,
        wire.Published,
        says="Let anyone see the trial.",
    ),
    Endpoint(
        *("POST", f"{T}/unpublish", "publish", _unpublish, wire.Published),
        says="No longer.",
    ),
    Endpoint("GET", "/tokens", "tokens", _tokens, list[Token], says="Tokens, without secrets."),
    Endpoint(
        *("POST", "/tokens", "tokens", _make_token, wire.MadeToken, wire.NewToken),
        "Make a token.",
    ),
    Endpoint("POST", "/tokens/{about}/revoke", "tokens", _revoke, Done, says="Revoke a token."),
)
