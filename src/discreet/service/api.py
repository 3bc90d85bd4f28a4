"""How a call of the API is served: who calls, whether it may, what it carries, what it
gets.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from discreet.errors import InvalidInputError
from discreet.service.auth import Principal
from discreet.service.endpoints import ENDPOINTS, PREFIX, Call, Endpoint
from discreet.service.middleware import REPORT_POLICY
from discreet.service.state import AppState, Computation
from discreet.trials.names import MAX_NAME_LENGTH, unquote_name
from discreet.trials.record import Head
from discreet.trials.verbs import KeyBody, Verb

KEY = "idempotency-key"
HEAD = "discreet-head"
"""With a request: a head that the caller knows; with an answer: that of the record."""


def trial_in_path(request: Request) -> str:
    """Return the name of the trial in the path, or an empty text."""
    try:
        return unquote_name(request.path_params.get("name", ""))
    except UnicodeDecodeError:
        raise HTTPException(404) from None


def bearer_of(request: Request) -> str:
    """The secret that a caller sends, or an empty one."""
    kind, _, said = request.headers.get("authorization", "").partition(" ")
    return said.strip() if kind.lower() == "bearer" else ""


async def authenticate(app_state: AppState, request: Request) -> Principal:
    """Whoever calls, by its bearer token; one that is wrong may do nothing, not even
    what anyone may.
    """
    secret = bearer_of(request)
    token = app_state.tokens.find_recent(secret) if secret else None
    if secret and token is None:
        token = await app_state.token_of(secret)
    is_wrong = bool(secret) and token is None
    app_state.limits.admit(request.scope, token, is_wrong)
    return Principal(token, wrong=is_wrong)


def key_of(request: Request) -> str | None:
    """The caller's own key of a request."""
    key = request.headers.get(KEY)
    if key is not None and (not key.strip() or len(key) > MAX_NAME_LENGTH):
        raise InvalidInputError(
            f"the Idempotency-Key must be a text of your own, of at most {MAX_NAME_LENGTH} "
            "characters, a different one for each request"
        )
    return key


def request_key(request: Request, principal: Principal) -> str | None:
    """The store's key of a request: the caller's own, apart from those of callers from
    elsewhere.
    """
    key = key_of(request)
    return None if key is None else scoped_key(key, principal)


def scoped_key(key: str, principal: Principal) -> str:
    """Return the key of a principal as it is stored: a hash in which role, site and key,
    of which the first two have no line breaks, cannot be taken for each other.
    """
    scope = f"{principal.role}\n{principal.site or ''}\n{key}"
    return hashlib.sha256(scope.encode()).hexdigest()


def query_of(request: Request, endpoint: Endpoint) -> dict[str, str]:
    """What is said after the path; what is not known is refused, as in a body."""
    found = dict(request.query_params)
    known = [name for name, _ in endpoint.query]
    if set(found) - set(known):
        words = " and ".join(known) or "nothing"
        raise InvalidInputError(f"after the ? this call takes {words}, and nothing else")
    return found


def served(app_state: AppState, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Return the function that serves requests of an endpoint."""
    decoder = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)

    async def serve(request: Request) -> Response:
        principal, name = await authenticate(app_state, request), trial_in_path(request)
        if not principal.may(endpoint.action, name or None):
            await check(app_state, principal, endpoint.action, name)
        content, headers = await request.body(), request.headers
        try:
            body = None if decoder is None else decoder.decode(content or b"{}")
        except RecursionError:
            raise msgspec.DecodeError(
                "this is nested more deeply than anything the service accepts"
            ) from None
        query = query_of(request, endpoint) if request.scope["query_string"] else {}
        trial = app_state.open_trials.get(name)
        if trial is None and name:
            trial = await app_state.run(app_state.trial, name)
        if trial is not None and (text := headers.get(HEAD)) is not None:
            head = Head.parse(text)
            if not trial.is_known(head):
                await app_state.run(trial.check_known, head)
        if isinstance(endpoint.work, Verb):
            assert trial is not None
            key = request_key(request, principal) if KEY in headers else None
            if isinstance(body, KeyBody):
                body = KeyBody(scoped_key(body.key, principal))
            result = await trial.call(endpoint.work, body, key, principal)
        else:
            number = request.path_params.get("number", "")
            after = headers.get("last-event-id", "")
            call = Call(app_state, principal, name, number, body, query, after)
            result = await app_state.run(endpoint.work, call)
        if isinstance(result, Computation):
            result = await app_state.compute(result)
        if endpoint.method != "GET" and name:
            app_state.changed(name)
        if isinstance(result, AsyncIterator):
            app_state.limits.begin_stream(request.scope)
        sees_head = trial is not None and principal.may("status", name)
        return answer(endpoint, result, str(trial.head) if trial and sees_head else None)

    return serve


async def check(app_state: AppState, principal: Principal, action: str, name: str) -> None:
    """Refuse what the principal may not do."""
    if principal.may(action, name or None):
        return
    published = bool(name) and await app_state.run(app_state.published, name)
    principal.check(action, name or None, published)


def answer(endpoint: Endpoint, found: Any, head: str | None = None) -> Response:
    """What came of it."""
    headers = {} if head is None else {HEAD: head}
    if isinstance(found, AsyncGenerator):
        headers |= {"X-Accel-Buffering": "no"}
        return Stream(found, headers=headers, media_type=endpoint.media)
    plain = isinstance(found, str | bytes) and endpoint.media != "application/json"
    body = found if plain else msgspec.json.encode(found)
    if endpoint.media == "text/html":
        headers |= {"Content-Security-Policy": REPORT_POLICY}
    return Response(body, 200, headers, endpoint.media)


class Stream(StreamingResponse):
    """A stream that is closed when its reader has gone."""

    async def stream_response(self, send: Send) -> None:
        """Send it."""
        source = self.body_iterator
        assert isinstance(source, AsyncGenerator)
        async with aclosing(source):
            await super().stream_response(send)


def routes(app_state: AppState) -> list[Route]:
    """The API."""
    return [
        Route(f"{PREFIX}{one.path}", served(app_state, one), methods=[one.method])
        for one in ENDPOINTS
    ]
