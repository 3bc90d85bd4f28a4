"""How a call of the API is served: who calls, whether it may, what it carries, what it
gets.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from discreet.errors import InvalidInputError
from discreet.service.auth import KEY, authenticate, check, request_key, scoped_key, trial_in_path
from discreet.service.endpoints import ENDPOINTS, PREFIX, Call, Endpoint
from discreet.service.middleware import REPORT_POLICY
from discreet.service.state import AppState, Computation
from discreet.trials.record import Head
from discreet.trials.verbs import KeyBody, Verb

HEAD = "discreet-head"
"""With a request: a head that the caller knows; with an answer: that of the record."""


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
