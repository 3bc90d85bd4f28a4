"""How a call of the API is served: who calls, whether it may, what it carries, what it
gets.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from discreet.errors import InvalidInputError
from discreet.service import wire
from discreet.service.access import Visitor
from discreet.service.endpoints import ENDPOINTS, PREFIX, Call, Endpoint, done
from discreet.service.headers import JSON, REPORT_POLICY
from discreet.service.home import Home
from discreet.service.limits import passage_of
from discreet.service.problems import note_error, problem_of
from discreet.service.routes import Route
from discreet.trials.names import LONGEST_NAME

KEY = "idempotency-key"
HEAD = "discreet-head"
"""With a request: a head that the caller knows; with an answer: that of the record."""


async def body_of(request: Request) -> bytes:
    """The body, whose size the gate sees to."""
    found, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        found += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(found)


def header_of(request: Request, name: str) -> str | None:
    """A header of a call, by its name in small letters."""
    found = passage_of(request.scope).headers.get(name.encode())
    return None if found is None else found.decode("latin-1")


def bearer_of(request: Request) -> str:
    """The secret that a caller sends, or an empty one."""
    kind, _, said = (header_of(request, "authorization") or "").partition(" ")
    return said.strip() if kind.lower() == "bearer" else ""


async def visitor_of(home: Home, request: Request) -> Visitor:
    """Whoever calls, by its bearer token; one that is wrong may do nothing, not even
    what anyone may.
    """
    secret = bearer_of(request)
    token = await home.token_of(secret) if secret else None
    is_wrong = bool(secret) and token is None
    home.limits.admit(request.scope, token, is_wrong)
    return Visitor(token, wrong=is_wrong)


def key_of(request: Request) -> str | None:
    """The caller's own key of a request."""
    key = header_of(request, KEY)
    if key is not None and (not key.strip() or len(key) > LONGEST_NAME):
        raise InvalidInputError(
            f"the Idempotency-Key must be a text of your own, of at most {LONGEST_NAME} "
            "characters, a different one for each request"
        )
    return key


def request_key(request: Request, visitor: Visitor) -> str | None:
    """The store's key of a request: the caller's own, apart from those of callers from
    elsewhere.
    """
    key = key_of(request)
    if key is None:
        return None
    scope = f"{visitor.role}\n{visitor.site or ''}\n{key}"
    return hashlib.sha256(scope.encode()).hexdigest()


def decoded(decoder: msgspec.json.Decoder[wire.In], body: bytes) -> wire.In:
    """What a body says."""
    try:
        return decoder.decode(body)
    except RecursionError:
        raise msgspec.DecodeError(
            "this is nested more deeply than anything the service accepts"
        ) from None


def query_of(request: Request, endpoint: Endpoint) -> dict[str, str]:
    """What is said after the path; what is not known is refused, as in a body."""
    if not request.scope["query_string"]:
        return {}
    found = dict(request.query_params)
    known = [name for name, _ in endpoint.query]
    if set(found) - set(known):
        words = " and ".join(known) or "nothing"
        raise InvalidInputError(f"after the ? this call takes {words}, and nothing else")
    return found


def served(home: Home, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """What answers calls of an endpoint."""
    decoder = None if endpoint.takes is None else msgspec.json.Decoder(endpoint.takes)

    async def serve(request: Request) -> Response:
        try:
            visitor = await visitor_of(home, request)
            named: dict[str, str] = request.path_params
            name = named.get("name", "")
            await check(home, visitor, endpoint.action, name)
            body = await body_of(request)
            call = Call(
                home,
                visitor,
                name,
                named.get("about", ""),
                None if decoder is None else decoded(decoder, body),
                query_of(request, endpoint),
                request_key(request, visitor),
                header_of(request, "last-event-id") or "",
            )
            known = header_of(request, HEAD)
            if endpoint.shared:
                found, head = await done_with_others(endpoint, call, known)
            else:
                found, head = await home.run(done, endpoint, call, known)
            if endpoint.method != "GET" and name:
                home.changed(name)
            if isinstance(found, AsyncIterator):
                home.limits.begin_stream(request.scope)
            return answer(endpoint, found, head)
        except Exception as error:
            note_error(error, passage_of(request.scope).request)
            return problem_of(error)

    return serve


async def done_with_others(
    endpoint: Endpoint, call: Call, known: str | None
) -> tuple[Any, str | None]:
    """The same as `done` of an endpoint whose jobs share a commit with those of other
    callers: no thread waits for each of them.
    """
    home = call.home
    trial = await home.trial_of(call.name)
    if known not in (None, str(trial.seen)):
        await home.run(trial.check_known, known)
    found = await home.follow(trial, endpoint.work(call))
    return found, str(trial.seen) if call.visitor.may("status", call.name) else None


async def check(home: Home, visitor: Visitor, action: str, name: str) -> None:
    """Refuse what the visitor may not do."""
    if visitor.may(action, name or None):
        return
    published = bool(name) and await home.run(home.published, name)
    visitor.check(action, name or None, published)


def answer(endpoint: Endpoint, found: Any, head: str | None = None) -> Response:
    """What came of it."""
    if endpoint.shared:
        return Plain(found, head)
    headers = {} if head is None else {HEAD: head}
    if isinstance(found, AsyncGenerator):
        headers |= {"X-Accel-Buffering": "no"}
        return Stream(found, headers=headers, media_type=endpoint.media)
    plain = isinstance(found, str | bytes) and endpoint.media != "application/json"
    body = found if plain else msgspec.json.encode(found)
    if endpoint.media == "text/html":
        headers |= {"Content-Security-Policy": REPORT_POLICY}
    return Response(body, 200, headers, endpoint.media)


class Plain(Response):
    """A JSON document, without what others may want of an answer."""

    def __init__(self, found: Any, head: str | None) -> None:
        self.status_code, self.background = 200, None
        self.body = msgspec.json.encode(found)
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), JSON]
        if head is not None:
            self.raw_headers.append((HEAD.encode(), head.encode()))


class Stream(StreamingResponse):
    """A stream that is closed when its reader has gone."""

    async def stream_response(self, send: Send) -> None:
        """Send it."""
        source = self.body_iterator
        assert isinstance(source, AsyncGenerator)
        async with aclosing(source):
            await super().stream_response(send)


def routes(home: Home) -> list[Route]:
    """The API."""
    return [
        Route(f"{PREFIX}{one.path}", served(home, one), methods=[one.method]) for one in ENDPOINTS
    ]
