"""A participant's page under local trust: the answer is randomised in the browser, and
nothing else leaves it.

The page itself is the same for everybody and knows nothing. Its script reads the secret
of the link, which stands behind the # and is in no address that a server sees, and asks
with it as a bearer token.
"""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import InvalidInputError, RefusedError
from discreet.service.auth import Principal, bearer_of, check, request_key
from discreet.service.limits import get_info
from discreet.service.middleware import note_error, problem, problem_of
from discreet.service.pages.base import PageRequest, page_route
from discreet.service.pages.site import is_yes_no
from discreet.service.state import OTHER, PATH, AppState, integrity, script_hash
from discreet.trials.protocol import Protocol
from discreet.trials.record import response_noise
from discreet.trials.responses import Response as Randomised
from discreet.trials.status import ParticipantView

NO_USE = (
    "this link does not work, or no longer works: it may have expired, or have been revoked. Ask "
    "the person who gave it to you"
)
Answered = Callable[[AppState, Principal, Request], Awaitable[object]]


class Question(msgspec.Struct):
    """What a participant is asked, and all that randomising the answer needs."""

    trial: str
    participant: int
    """The number in the record."""
    state: str
    question: str
    yes_no: bool
    epsilon: float
    fraction: tuple[str, str]
    """ε exactly: numerator and denominator."""
    low: float
    high: float
    direction: str
    out_of_range: str
    middle_level: float | None
    gamma: float | None
    noise: float | None
    """The standard deviation of Gaussian noise, in rewards."""
    script: str | None
    """The hash of the script that the protocol names."""
    published: bool
    """Whether the record tells every answer by itself, and not only sums."""
    event: tuple[int, str] | None
    head: str


class Sent(msgspec.Struct, forbid_unknown_fields=True):
    """All that leaves the device."""

    response: str


class Receipt(msgspec.Struct):
    """What a participant has in hand afterwards."""

    taken: bool
    """Whether it was this answer that was taken."""
    late: bool
    participant: int
    published: bool
    event: tuple[int, str] | None
    """Number and hash of the event that tells the answer; none if it is not there yet,
    or only a sum will be.
    """
    head: str
    """Of the record, with the answer behind the wall."""


async def _page(page: PageRequest) -> Response:
    script = {"hash": script_hash(), "integrity": integrity(script_hash())}
    return page.render("participant.html", script=script)


async def _question(app_state: AppState, principal: Principal, _: Request) -> Question:
    name, participant = _whose(principal)
    trial = await app_state.run(app_state.trial, name)
    asked = await app_state.run(app_state.as_user(name, principal).participant_view, participant)
    status = await app_state.run(trial.status)
    protocol = trial.protocol
    if protocol.script not in (None, script_hash()):
        raise InvalidInputError(OTHER)
    return _ask(protocol, asked, status.head)


def _ask(protocol: Protocol, asked: ParticipantView, head: str) -> Question:
    strategy = protocol.strategy
    epsilon = float(strategy.epsilon or 0)
    over, under = epsilon.as_integer_ratio()
    return Question(
        trial=protocol.name,
        participant=asked.number,
        state=asked.state,
        question=protocol.question,
        yes_no=is_yes_no(protocol),
        epsilon=epsilon,
        fraction=(str(over), str(under)),
        low=protocol.low,
        high=protocol.high,
        direction=protocol.direction,
        out_of_range=protocol.out_of_range,
        middle_level=asked.middle_level,
        gamma=strategy.gamma,
        noise=response_noise(strategy),
        script=protocol.script,
        published=asked.is_published,
        event=asked.event,
        head=head,
    )


async def _answer(app_state: AppState, principal: Principal, request: Request) -> Receipt:
    name, participant = _whose(principal)
    sent = msgspec.json.decode(await request.body(), type=Sent)
    response, key = Randomised.parse(sent.response), request_key(request, principal)
    caller = app_state.as_user(name, principal)
    told = await app_state.run(caller.answer, participant, response, key)
    asked = await app_state.run(caller.participant_view, participant)
    status = await app_state.run(app_state.trial(name).status)
    about = (asked.number, asked.is_published, asked.event, status.head)
    return Receipt(told.new == 1, bool(told.late), *about)


async def _authenticate(app_state: AppState, request: Request) -> Principal:
    """Authenticate a participant by the secret of the invitation."""
    secret = bearer_of(request)
    token = await app_state.run(app_state.tokens.find_invitation, secret) if secret else None
    app_state.limits.admit(request.scope, token, bool(secret) and token is None)
    return Principal(token)


def _whose(principal: Principal) -> tuple[str, str]:
    """The trial and the id of an invitation."""
    token = principal.token
    if token is None or token.trial is None or token.participant is None:
        raise RefusedError(NO_USE, False)
    return token.trial, token.participant


def _served(app_state: AppState, path: str, action: str, work: Answered) -> Route:
    async def serve(request: Request) -> Response:
        try:
            principal = await _authenticate(app_state, request)
            name, _ = _whose(principal)
            await check(app_state, principal, action, name)
            found = await work(app_state, principal, request)
            return Response(
                msgspec.json.encode(found), 200, {"Cache-Control": "no-store"}, "application/json"
            )
        except InvalidInputError as error:
            return _kindly(error)
        except Exception as error:
            note_error(error, get_info(request.scope).id)
            return problem_of(error)

    return Route(path, serve, methods=["POST"])


def _kindly(error: InvalidInputError) -> Response:
    """An id that is not known any more is an old link, to whoever holds it."""
    if "no assignment" in str(error):
        return problem("Not found", 404, NO_USE)
    return problem_of(error)


def routes(app_state: AppState) -> list[Route]:
    """The participant's page, and what its script asks."""
    return [
        page_route(app_state, PATH, "", _page),
        _served(app_state, f"{PATH}/question", "view", _question),
        _served(app_state, f"{PATH}/answer", "answer", _answer),
    ]
