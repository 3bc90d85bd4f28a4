"""The endpoints of the API: a row for each, with its path, its function or verb, the
action that its caller must be allowed to do, and the types of its body and result.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import MISSING, dataclass
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec

from discreet.errors import InvalidInputError, RoundedWarning
from discreet.reports.trial import trial_page
from discreet.reports.trial_data import check_control
from discreet.service.auth import NotHereError, Principal
from discreet.service.state import AppState, Computation, ServedTrial, invite, link_path, script_for
from discreet.strategies.presets import explain_rounding, find_preset, list_levels
from discreet.strategies.strategy import Strategy
from discreet.trials.listing import ListedTrial
from discreet.trials.protocol import new_protocol
from discreet.trials.record import Head, UnknownHeadError
from discreet.trials.settings import SETTINGS, Setting
from discreet.trials.status import Status, Verification
from discreet.trials.store.tokens import Token
from discreet.trials.trial import start
from discreet.trials.verbs import VERBS, Body, Done, Text, Verb
from discreet.validation import quote, read_whole


class NewTrialBody(Body):
    """A trial to be started: what `Trial.create` takes."""

    name: Text
    arms: list[Text]
    strategy: dict[Text, Any]
    """A strategy, as `Strategy.to_dict` describes it; or `name` with what its preset
    takes, such as {"name": "bet-se", "delta": 0.05, "epsilon": 1}.
    """


def _limit_texts(type: Any) -> Any:
    """Return the type of a setting with texts of limited length."""
    if type is str:
        return Text
    parts = get_args(type)
    if not parts:
        return type
    limited = tuple(map(_limit_texts, parts))
    return reduce(or_, limited) if isinstance(type, UnionType) else get_origin(type)[limited]


def _describe_setting(setting: Setting) -> tuple[Any, ...]:
    """Return a field of the body for a setting, with its type and default."""
    words = [setting.help]
    if setting.choices:
        words.append(f"One of {', '.join(setting.choices)}.")
    if setting.unit and setting.unit not in setting.help:
        words.append(f"In {setting.unit}.")
    meta = msgspec.Meta(description=" ".join(words))
    field = (setting.name, Annotated[_limit_texts(setting.type), meta])
    return field if setting.default is MISSING else (*field, setting.default)


SET_BY_SERVICE = ("script",)
NewTrial: type[Any] = msgspec.defstruct(
    "NewTrial",
    [_describe_setting(one) for name, one in SETTINGS.items() if name not in SET_BY_SERVICE],
    bases=(NewTrialBody,),
    module=__name__,
    forbid_unknown_fields=True,
    kw_only=True,
)
NewTrial.__doc__ = NewTrialBody.__doc__


class Invite(Body):
    """Who is to answer, and for how many days the link is good."""

    id: Text
    days: float = 7.0


class Invitation(msgspec.Struct):
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


class ProtocolResult(msgspec.Struct):
    """A trial, for whoever comes back to it."""

    protocol: dict[str, Any]
    """As it was written down."""
    protocol_hash: str
    head: str
    user: str
    """The caller's name in the audit trail."""
    role: str
    site: str | None


class LibraryWarning(msgspec.Struct):
    """A warning of the library, such as `RoundedWarning`, and what it says."""

    kind: str
    words: str


@dataclass(frozen=True)
class StartedStatus(Status):
    """A trial that was started, and what its manager should know of it."""

    warnings: tuple[LibraryWarning, ...] = ()


class NewTokenResult(msgspec.Struct):
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
    warnings: tuple[LibraryWarning, ...]


def strategy_of(said: dict[str, Any]) -> Strategy:
    """A strategy by all its parts, or by its preset and what that takes."""
    if "estimator" in said:
        return Strategy.from_dict(said)
    given = dict(said)
    name = given.pop("name", None)
    preset = find_preset(name)
    for key in list_levels(str(name), given.get("trust")):
        if given.get(key) is None:
            raise InvalidInputError(f"{name} is private: say how private, with {key}")
    try:
        return preset(**given)
    except TypeError:
        known = ", ".join(sorted(map(quote, given)))
        raise InvalidInputError(f"{name} does not take one of these: {known}") from None


def start_trial(
    app_state: AppState, who: str, strategy: Strategy, said: dict[str, Any]
) -> StartedTrial:
    """Start a trial with the settings of `Trial.create`, or continue it."""
    settings = {**said, "script": script_for(strategy)}
    protocol = new_protocol(strategy=strategy, **settings)
    start(app_state.url, protocol, who)
    words = explain_rounding(strategy, protocol.scale.is_numbers)
    warned = (LibraryWarning(RoundedWarning.__name__, words),) if words else ()
    return StartedTrial(protocol.name, warned)


PREFIX = "/api/v1"


class Call(NamedTuple):
    """One call of an endpoint."""

    app_state: AppState
    principal: Principal
    name: str
    """The trial it is about, or empty."""
    number: str
    """The number of the token that the path names, or empty."""
    body: Any
    query: dict[str, str]
    after: str = ""
    """The last event that whoever wants a stream of them has had."""

    @property
    def trial(self) -> ServedTrial:
        """The trial."""
        return self.app_state.trial(self.name)


class Endpoint(NamedTuple):
    """One row of the API."""

    method: str
    path: str
    action: str
    """What its caller must be allowed to do (`auth.ACTIONS`)."""
    work: Callable[[Call], Any] | Verb[Any, Any]
    """A function that runs in a thread, or a verb of a trial."""
    result: Any
    body: type[Body] | None = None
    media: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    """Parameters after the path, and what each means."""

    @property
    def operation(self) -> str:
        """Name of the call in the API's description, and in clients made from it."""
        name = self.work.name if isinstance(self.work, Verb) else self.work.__name__
        return name.replace("-", "_")

    @property
    def help(self) -> str:
        """One sentence about the call: for a function the first of its docstring."""
        if isinstance(self.work, Verb):
            return self.work.help
        return inspect.cleandoc(self.work.__doc__ or self.operation).partition("\n\n")[0]


# --- trials ---------------------------------------------------------------------------


def list_trials(call: Call) -> list[ListedTrial]:
    """List the trials within reach, and the state of each."""
    return call.app_state.listed(call.principal)


def create_trial(call: Call) -> StartedStatus:
    """Start a trial, or continue the one that has these settings."""
    said = msgspec.structs.asdict(call.body)
    started = start_trial(
        call.app_state, call.principal.who, strategy_of(said.pop("strategy")), said
    )
    status = call.app_state.status(started.name, call.principal)
    return StartedStatus(**vars(status), warnings=started.warnings)


def get_status(call: Call) -> msgspec.Raw:
    """Show a trial as anyone may see it."""
    return call.app_state.seen(call.name, call.principal).text()


def stream_events(call: Call) -> AsyncIterator[bytes]:
    """Stream the public changes of a trial (server-sent events)."""
    call.app_state.check_there(call.name)
    return call.app_state.events.stream(call.name, call.principal, call.after)


def get_protocol(call: Call) -> ProtocolResult:
    """Show what was fixed before the first participant."""
    trial, principal = call.trial, call.principal
    who = (principal.who, principal.role, principal.site)
    return ProtocolResult(trial.protocol.to_dict(), trial.protocol_hash, str(trial.head), *who)


def _state_key(call: Call, *about: str | None) -> Hashable:
    """Return what the results about a trial depend on: its public state."""
    status = call.app_state.seen(call.name, call.principal).status
    return call.name, status.head, status.pending, status.erasing, *about


def get_transcript(call: Call) -> Computation:
    """Show what may be published."""
    trial = call.trial
    key = _state_key(call, "transcript")
    return Computation(key, lambda: msgspec.Raw(msgspec.json.encode(trial.transcript())))


def get_report(call: Call) -> Computation:
    """Show the transcript as a page."""
    trial, control = call.trial, call.query.get("control")
    check_control(
        control, [arm.name for arm in call.app_state.seen(call.name, call.principal).status.arms]
    )
    key = _state_key(call, "report", control)
    return Computation(key, lambda: trial_page(trial.transcript(), control))


def verify_record(call: Call) -> Computation:
    """Check the record of a trial and its database.

    For callers without a token the database is verified once for each state of the
    record. A head that the caller knows is checked apart from that: there are as many
    as strangers can think of.
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

    key = _state_key(call, "verify") if call.principal.token is None else None
    return Computation(key, trial.verify, finish)


def invite_participant(call: Call) -> Invitation:
    """Make a link with which a participant answers once, in a trial with local trust."""
    body: Invite = call.body
    secret, token = invite(call.app_state, call.principal, call.name, body.id, body.days)
    return Invitation(link_path(secret), token)


def get_audit_trail(call: Call) -> list[AuditRow]:
    """Show who did what, and when."""
    entries = call.trial.audit_trail(read_whole(call.query.get("limit", "1000")) or 0)
    return [AuditRow(*entry) for entry in entries]


def publish_trial(call: Call) -> Published:
    """Let anyone see the trial."""
    call.app_state.publish(call.name, call.principal.who)
    return Published(True)


def unpublish_trial(call: Call) -> Published:
    """Let only holders of tokens see the trial."""
    call.app_state.token_table.unpublish(call.name, call.principal.who)
    return Published(False)


def list_tokens(call: Call) -> list[Token]:
    """List tokens, without secrets."""
    return [one for one in call.app_state.token_table.list_all() if _reaches(call.principal, one)]


def make_token(call: Call) -> NewTokenResult:
    """Make a token."""
    said: NewToken = call.body
    if call.principal.token is not None and call.principal.token.trial not in (None, said.trial):
        raise InvalidInputError(
            f"you are the manager of {call.principal.token.trial} only: make tokens for that trial"
        )
    call.app_state.check_there(said.trial)
    call.app_state.check_site(said.trial, said.site)
    secret, token = call.app_state.tokens.make(
        said.name, said.role, call.principal.who, said.trial, said.site, said.days
    )
    return NewTokenResult(secret, token)


def revoke_token(call: Call) -> Done:
    """Revoke a token."""
    number = read_whole(call.number)
    known = {one.number: one for one in call.app_state.token_table.list_all()}
    if number not in known or not _reaches(call.principal, known[number]):
        raise NotHereError("there is no token of this number")
    call.app_state.tokens.revoke(number, call.principal.who)
    return Done()


def _reaches(principal: Principal, token: Token) -> bool:
    return principal.token is not None and principal.token.trial in (None, token.trial)


T = "/trials/{name}"
HEAD_QUERY = ("head", "A head that you noted earlier: the record must continue from there.")
CONTROL_QUERY = ("control", "The arm that others are compared with, if not the best one.")
LIMIT_QUERY = ("limit", "How many of the latest entries; 1000 if left out.")
ENDPOINTS: tuple[Endpoint, ...] = (
    *(
        Endpoint("POST", f"{T}/{verb.name}", verb.name, verb, verb.result, verb.body)
        for verb in VERBS
    ),
    Endpoint("GET", "/trials", "list", list_trials, list[ListedTrial]),
    Endpoint("POST", "/trials", "create", create_trial, StartedStatus, NewTrial),
    Endpoint("GET", T, "status", get_status, Status),
    Endpoint("GET", f"{T}/events", "events", stream_events, str, media="text/event-stream"),
    Endpoint("GET", f"{T}/protocol", "protocol", get_protocol, ProtocolResult),
    Endpoint("POST", f"{T}/invite", "invite", invite_participant, Invitation, Invite),
    Endpoint("GET", f"{T}/transcript", "transcript", get_transcript, dict[str, Any]),
    Endpoint(
        *("GET", f"{T}/report", "report", get_report, str),
        media="text/html",
        query=(CONTROL_QUERY,),
    ),
    Endpoint("GET", f"{T}/verify", "verify", verify_record, Verified, query=(HEAD_QUERY,)),
    Endpoint(
        *("GET", f"{T}/audit-trail", "audit-trail", get_audit_trail, list[AuditRow]),
        query=(LIMIT_QUERY,),
    ),
    Endpoint("POST", f"{T}/publish", "publish", publish_trial, Published),
    Endpoint("POST", f"{T}/unpublish", "publish", unpublish_trial, Published),
    Endpoint("GET", "/tokens", "tokens", list_tokens, list[Token]),
    Endpoint("POST", "/tokens", "tokens", make_token, NewTokenResult, NewToken),
    Endpoint("POST", "/tokens/{number}/revoke", "tokens", revoke_token, Done),
)
