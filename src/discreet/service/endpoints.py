"""The endpoints of the API, a row each: what is called, who may (`access.ACTIONS`),
what it takes and gives.
"""

from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from discreet.errors import InvalidInputError, RoundedWarning
from discreet.reports.trial import trial_page
from discreet.reports.trial_data import check_control
from discreet.service.auth import NotHereError, Visitor
from discreet.service.state import Computation, Home, ServedTrial, invite, link_path, script_for
from discreet.strategies.presets import levels_of, preset_of, rounded_words
from discreet.strategies.strategy import Strategy
from discreet.trials.listing import Listed
from discreet.trials.protocol import new_protocol
from discreet.trials.record import Head, UnknownHeadError
from discreet.trials.status import Status, Verification
from discreet.trials.store.tokens import Token
from discreet.trials.trial import start
from discreet.trials.verbs import VERBS, Body, Done, Text, Verb
from discreet.validation import quoted, read_whole


class NewTrial(Body):
    """A trial to be started: the protocol, field by field, as for `Trial.create`."""

    name: Text
    arms: list[Text]
    max_participants: int
    strategy: dict[Text, Any]
    """A strategy, as `Strategy.to_dict` describes it; or `name` with what its preset
    takes, such as {"name": "bet-se", "delta": 0.05, "epsilon": 1}.
    """
    retain: Text = "until-release"
    range: tuple[float, float] = (0.0, 1.0)
    direction: Text = "max"
    out_of_range: Text = "refuse"
    randomisation: Text = ""
    sites: list[Text] | None = None
    deadline: float | None = None
    release: Text = "complete"
    enrolment: Text = "waiting"
    returning: Text = "anonymous"
    blinding: Text = "none"
    question: Text = ""


class Invite(Body):
    """Who is to answer, and for how many days the link is good."""

    id: Text
    days: float = 7.0


class Invited(msgspec.Struct):
    """An invitation: the link is shown here and nowhere else."""

    link: str
    """A path of this service. What stands behind the # is a secret."""
    token: Token


class NewToken(Body):
    """A token to be made."""

    name: Text
    role: Text
    trial: Text | None = None
    site: Text | None = None
    days: float | None = None


class Opened(msgspec.Struct):
    """A trial, for whoever comes back to it."""

    protocol: dict[str, Any]
    """As it was written down."""
    protocol_hash: str
    head: str
    user: str
    """The caller's name in the audit trail."""
    role: str
    site: str | None


class Warned(msgspec.Struct):
    """A warning of the library, such as `RoundedWarning`, and what it says."""

    kind: str
    words: str


@dataclass(frozen=True)
class StartedStatus(Status):
    """A trial that was started, and what its manager should know of it."""

    warnings: tuple[Warned, ...] = ()


class MadeToken(msgspec.Struct):
    """A token that was made: the secret is shown here and nowhere else."""

    secret: str
    token: Token


class Verified(msgspec.Struct):
    """What a verification found."""

    intact: bool
    events: int
    head: str
    problems: tuple[str, ...]


class Published(msgspec.Struct):
    """Whether anyone may see a trial."""

    published: bool


class AuditRow(msgspec.Struct):
    """An entry of the audit trail (`trials.status.AuditEntry`)."""

    entry: int
    at: float
    user: str
    site: str | None
    action: str
    participants: int


class StartedTrial(NamedTuple):
    """A trial that was started."""

    name: str
    """As it is kept."""
    warnings: tuple[Warned, ...]


def strategy_of(said: dict[str, Any]) -> Strategy:
    """A strategy by all its parts, or by its preset and what that takes."""
    if "estimator" in said:
        return Strategy.from_dict(said)
    given = dict(said)
    name = given.pop("name", None)
    preset = preset_of(name)
    for key in levels_of(str(name), given.get("trust")):
        if given.get(key) is None:
            raise InvalidInputError(f"{name} is private: say how private, with {key}")
    try:
        return preset(**given)
    except TypeError:
        known = ", ".join(sorted(map(quoted, given)))
        raise InvalidInputError(f"{name} does not take one of these: {known}") from None


def start_trial(home: Home, who: str, strategy: Strategy, said: dict[str, Any]) -> StartedTrial:
    """Start a trial with the settings of `Trial.create`, or continue it."""
    settings = {**said, "script": script_for(strategy)}
    protocol = new_protocol(strategy=strategy, **settings)
    start(home.url, protocol, who)
    words = rounded_words(strategy, protocol.scale.numbers)
    warned = (Warned(RoundedWarning.__name__, words),) if words else ()
    return StartedTrial(protocol.name, warned)


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


def _create(call: Call) -> StartedStatus:
    said = msgspec.structs.asdict(call.body)
    started = start_trial(call.home, call.visitor.who, strategy_of(said.pop("strategy")), said)
    status = call.home.status(started.name, call.visitor)
    return StartedStatus(**vars(status), warnings=started.warnings)


def _status(call: Call) -> msgspec.Raw:
    return call.home.seen(call.name, call.visitor).text()


def _events(call: Call) -> AsyncIterator[bytes]:
    call.home.check_there(call.name)
    return call.home.events.stream(call.name, call.visitor, call.after)


def _protocol(call: Call) -> Opened:
    trial, visitor = call.trial, call.visitor
    who = (visitor.who, visitor.role, visitor.site)
    return Opened(trial.protocol.to_dict(), trial.protocol_hash, str(trial.head), *who)


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

    def finish(found: Verification) -> Verified:
        problems = (*wrong, *found.problems)
        return Verified(not problems, found.events, found.head, problems)

    key = _state_key(call, "verify") if call.visitor.token is None else None
    return Computation(key, trial.verify, finish)


def _invite(call: Call) -> Invited:
    body: Invite = call.body
    secret, token = invite(call.home, call.visitor, call.name, body.id, body.days)
    return Invited(link_path(secret), token)


def _audit_trail(call: Call) -> list[AuditRow]:
    entries = call.trial.audit_trail(read_whole(call.query.get("limit", "1000")) or 0)
    return [AuditRow(*entry) for entry in entries]


def _publish(call: Call) -> Published:
    call.home.publish(call.name, call.visitor.who)
    return Published(True)


def _unpublish(call: Call) -> Published:
    call.home.doors.unpublish(call.name, call.visitor.who)
    return Published(False)


def _tokens(call: Call) -> list[Token]:
    return [one for one in call.home.doors.all() if _reaches(call.visitor, one)]


def _make_token(call: Call) -> MadeToken:
    said: NewToken = call.body
    if call.visitor.token is not None and call.visitor.token.trial not in (None, said.trial):
        raise InvalidInputError(
            f"you are the manager of {call.visitor.token.trial} only: make tokens for that trial"
        )
    call.home.check_there(said.trial)
    call.home.check_site(said.trial, said.site)
    secret, token = call.home.tokens.make(
        said.name, said.role, call.visitor.who, said.trial, said.site, said.days
    )
    return MadeToken(secret, token)


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
    Endpoint("POST", "/trials", "create", _create, StartedStatus, NewTrial, "Start a trial."),
    Endpoint("GET", T, "status", _status, Status, says="The trial as anyone may see it."),
    Endpoint(
        *("GET", f"{T}/events", "events", _events, str),
        says="A stream of its public changes (server-sent events).",
        media="text/event-stream",
    ),
    Endpoint(
        *("GET", f"{T}/protocol", "protocol", _protocol, Opened),
        says="What was fixed before the first person.",
    ),
    Endpoint(
        *("POST", f"{T}/invite", "invite", _invite, Invited, Invite),
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
        *("GET", f"{T}/verify", "verify", _verify, Verified),
        says="Check the record.",
        query=(("head", "A head that you noted earlier: the record must continue from there."),),
    ),
    Endpoint(
        *("GET", f"{T}/audit-trail", "audit-trail", _audit_trail, list[AuditRow]),
        says="Who did what, and when.",
        query=(("limit", "How many of the latest entries; 1000 if left out."),),
    ),
    Endpoint(
        "POST",
        f"{T}/publish",
        "publish",
        _publish,
        Published,
        says="Let anyone see the trial.",
    ),
    Endpoint(
        *("POST", f"{T}/unpublish", "publish", _unpublish, Published),
        says="No longer.",
    ),
    Endpoint("GET", "/tokens", "tokens", _tokens, list[Token], says="Tokens, without secrets."),
    Endpoint(
        *("POST", "/tokens", "tokens", _make_token, MadeToken, NewToken),
        "Make a token.",
    ),
    Endpoint("POST", "/tokens/{about}/revoke", "tokens", _revoke, Done, says="Revoke a token."),
)
