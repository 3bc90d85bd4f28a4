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
from discreet.service.home import Computation, Home
from discreet.service.invitations import invite, link_path
from discreet.service.starting import start_trial, strategy_of
from discreet.trials.calls import Caller
from discreet.trials.chain import UnknownHeadError
from discreet.trials.listing import Listed
from discreet.trials.outcomes import Response
from discreet.trials.status import Assignment, Batch, OpenAssignment, Status, Told, Verification
from discreet.trials.store.doors import Token
from discreet.trials.trial import Trial
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
    request: str | None
    """The key under which it is done once."""
    after: str = ""
    """The last event that whoever wants a stream of them has had."""

    @property
    def trial(self) -> Trial:
        """The trial, for what anyone may see."""
        return self.home.trial(self.name)

    @property
    def caller(self) -> Caller:
        """The trial, for what this caller changes."""
        return Caller(self.trial, self.visitor.who, self.visitor.site)


class Endpoint(NamedTuple):
    """One row of the API."""

    method: str
    path: str
    action: str
    work: Callable[[Call], Any]
    gives: Any
    takes: type[wire.In] | None = None
    says: str = ""
    media: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    """What may be said after the path, and what it means."""


def done(endpoint: Endpoint, call: Call, known: str | None) -> tuple[Any, str | None]:
    """What a call gives, and the head of the record then, for whoever may see it;
    refused before anything is done if the record is not the one of which the caller
    knows a head.
    """
    if not call.name:
        return endpoint.work(call), None
    if known is not None:
        call.trial.check_known(known)
    found, sees = endpoint.work(call), call.visitor.may("status", call.name)
    return found, str(call.trial.seen) if sees else None


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
    return wire.Opened(trial.protocol.to_dict(), trial.protocol_hash, str(trial.seen), *who)


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
            trial.check_known(known)
        except UnknownHeadError as error:
            wrong = (str(error),)

    def finish(found: Verification) -> wire.Verified:
        problems = (*wrong, *found.problems)
        return wire.Verified(not problems, found.events, found.head, problems)

    key = _state_key(call, "verify") if call.visitor.token is None else None
    return Computation(key, trial.verify, finish)


# --- people ---------------------------------------------------------------------------


def _ask(call: Call) -> Batch:
    said: wire.Ask = call.body
    return call.caller.ask(said.n, said.people, said.site, said.person, call.request)


def _tell(call: Call) -> Told:
    return call.caller.tell_many(call.body.outcomes, call.request)


def _answer(call: Call) -> Told:
    said: dict[str, str | None] = call.body.answers
    parsed = {id: None if text is None else Response.parse(text) for id, text in said.items()}
    return call.caller.answer_many(parsed, call.request)


def _amend(call: Call) -> wire.Done:
    call.caller.amend(call.body.id, call.body.outcome, call.request)
    return wire.Done()


def _reissue(call: Call) -> Assignment:
    return call.caller.reissue(call.body.id, call.request)


def _asked(call: Call) -> wire.Asked:
    return wire.Asked(call.request is not None and call.trial.asked(call.request))


def _unblind(call: Call) -> wire.Unblinded:
    return wire.Unblinded(call.caller.unblind(call.body.id, call.body.reason, call.request))


def _invite(call: Call) -> wire.Invited:
    said: wire.Invite = call.body
    secret, token = invite(call.home, call.visitor, call.name, said.id, said.days)
    return wire.Invited(link_path(secret), token)


def _open(call: Call) -> list[OpenAssignment]:
    return call.caller.open_assignments(call.query.get("site"))


# --- operators ------------------------------------------------------------------------


def _operate(call: Call) -> Status:
    said: wire.Operate = call.body
    call.caller.operate(said.action, said.reason, said.about, said.seen, call.request)
    return call.home.status(call.name, call.visitor)


def _codes(call: Call) -> dict[str, str]:
    return call.caller.codes()


def _expire(call: Call) -> wire.Released:
    return wire.Released(call.caller.expire())


def _journal(call: Call) -> list[wire.Noted]:
    entries = call.trial.journal(read_whole(call.query.get("most", "1000")) or 0)
    return [wire.Noted(*entry) for entry in entries]


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
            f"you are the operator of {call.visitor.token.trial} only: make tokens for that trial"
        )
    call.home.check_there(said.trial)
    call.home.check_site(said.trial, said.site)
    secret, token = call.home.tokens.make(
        said.name, said.role, call.visitor.who, said.trial, said.site, said.days
    )
    return wire.MadeToken(secret, token)


def _revoke(call: Call) -> wire.Done:
    number = read_whole(call.about)
    known = {one.number: one for one in call.home.doors.all()}
    if number not in known or not _reaches(call.visitor, known[number]):
        raise NotHereError("there is no token of this number")
    call.home.tokens.revoke(number, call.visitor.who)
    return wire.Done()


def _reaches(visitor: Visitor, token: Token) -> bool:
    return visitor.token is not None and visitor.token.trial in (None, token.trial)


T = "/trials/{name}"
ENDPOINTS: tuple[Endpoint, ...] = (
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
        *("POST", f"{T}/ask", "ask", _ask, Batch, wire.Ask),
        "Assign people who have arrived.",
    ),
    Endpoint(
        *("POST", f"{T}/tell", "tell", _tell, Told, wire.Tell),
        "Tell outcomes, or that they will not come.",
    ),
    Endpoint(
        *("POST", f"{T}/answer", "answer", _answer, Told, wire.Answer),
        "Tell randomised responses, or that they will not come.",
    ),
    Endpoint("POST", f"{T}/amend", "amend", _amend, wire.Done, wire.Amend, "Correct an outcome."),
    Endpoint(
        *("POST", f"{T}/reissue", "reissue", _reissue, Assignment, wire.About),
        "Give an assignment a new id.",
    ),
    Endpoint(
        *("GET", f"{T}/asked", "ask", _asked, wire.Asked),
        says="Whether a request with this Idempotency-Key has had assignments.",
    ),
    Endpoint(
        *("POST", f"{T}/unblind", "unblind", _unblind, wire.Unblinded, wire.Unblind),
        "Reveal the arm of a person in a blinded trial; the record says so, with the reason.",
    ),
    Endpoint(
        *("POST", f"{T}/invite", "invite", _invite, wire.Invited, wire.Invite),
        "A link with which one person answers once, in a trial with local trust.",
    ),
    Endpoint(
        *("GET", f"{T}/open", "open", _open, list[OpenAssignment]),
        says="The people whose outcomes are not in.",
        query=(("site", "Of this site only."),),
    ),
    Endpoint(
        *("POST", f"{T}/operate", "operate", _operate, Status, wire.Operate),
        "Pause, resume, stop, drop an arm, close a site, …, with a reason.",
    ),
    Endpoint(
        *("GET", f"{T}/codes", "codes", _codes, dict[str, str]),
        says="The arm behind the code of each participant of a blinded trial.",
    ),
    Endpoint(
        *("POST", f"{T}/expire", "expire", _expire, wire.Released),
        says="Count late outcomes as the worst, and make the releases that are due.",
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
        "GET",
        f"{T}/journal",
        "journal",
        _journal,
        list[wire.Noted],
        says="Who made which call, and when.",
        query=(("most", "How many of the latest calls; 1000 if left out."),),
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
    Endpoint(
        "POST", "/tokens/{about}/revoke", "tokens", _revoke, wire.Done, says="Revoke a token."
    ),
)
