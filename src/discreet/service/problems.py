"""Errors as problem documents (RFC 9457), with the sentences of the library."""

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from discreet.errors import DiscreetError, RefusedError, StoreError, TamperedError
from discreet.service.access import NotHereError
from discreet.service.limits import SlowError, TooManyError

TYPE = "application/problem+json"


class Problem(msgspec.Struct, omit_defaults=True):
    """What went wrong, and what to do."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def problem(title: str, status: int, detail: str, **headers: str) -> Response:
    """The document, as an answer."""
    body = msgspec.json.encode(Problem(title, status, detail))
    return Response(body, status, headers, TYPE)


NOTHING = "there is nothing at this address: /api/docs shows what there is"
WRONG_METHOD = "this address is called in another way: /api/docs shows how"
UNKNOWN = "this should not happen, and what happened is in the server's log: tell its operator"
KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (SlowError, 408, "Too slow"),
    (ClientDisconnect, 400, "Broken off"),
    (msgspec.DecodeError, 400, "This cannot be read"),
    (NotHereError, 404, "Not found"),
    (TamperedError, 409, "The record cannot be trusted"),
    (StoreError, 503, "The database cannot be used now"),
    (DiscreetError, 422, "Refused"),
)
"""What kinds of errors are answered with; the first that fits."""


def words_of(error: Exception) -> tuple[int, str]:
    """The status of an error, and what to say; of one that nobody expected nothing."""
    for kind, status, _ in KINDS:
        if isinstance(error, kind):
            return status, str(error)
    return 500, UNKNOWN


def problem_of(error: Exception) -> Response:
    """What to answer to a call that ended with an error."""
    if isinstance(error, TooManyError):
        title = "Too many calls" if error.status == 429 else "Too much at once"
        return problem(title, error.status, str(error), **{"Retry-After": str(error.seconds)})
    if isinstance(error, HTTPException):
        return problem_of_address(error)
    if isinstance(error, RefusedError):
        if error.known:
            return problem("You may not do this", 403, str(error))
        return problem("Who are you?", 401, str(error), **{"WWW-Authenticate": "Bearer"})
    for kind, status, title in KINDS:
        if isinstance(error, kind):
            headers = {"Retry-After": "1"} if status == 503 else {}
            return problem(title, status, str(error), **headers)
    return problem("Something is wrong with the service", 500, UNKNOWN)


def problem_of_address(error: HTTPException) -> Response:
    """What to answer where nothing is, or nothing of this method."""
    if error.status_code == 405:
        return problem("Not so", 405, WRONG_METHOD, **dict(error.headers or {}))
    if error.status_code == 404:
        return problem("Not found", 404, NOTHING)
    return problem("Refused", error.status_code, "the call cannot be read")


def is_expected(error: Exception) -> bool:
    """Whether an error is one that we thought of."""
    expected = (DiscreetError, msgspec.DecodeError, ClientDisconnect, HTTPException)
    return isinstance(error, expected)
