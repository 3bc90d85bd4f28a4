"""Errors as problem documents (RFC 9457), with the sentences of the library."""

import re

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from discreet.errors import DiscreetError, RefusedError, StoreError, TamperedError
from discreet.service import observability
from discreet.service.auth import NotHereError
from discreet.service.limits import SlowError, TooLargeError, TooManyError
from discreet.trials.record import UnknownHeadError

TYPE = "application/problem+json"


class Problem(msgspec.Struct):
    """What went wrong, and what to do. `type` names the kind of the problem for
    programs: a URI that ends with the words of the title, such as `not-found`.
    """

    type: str
    title: str
    status: int
    detail: str


def problem(title: str, status: int, detail: str, **headers: str) -> Response:
    """Return a problem document as a response."""
    type = f"urn:discreet:problem:{title.lower().replace(' ', '-')}"
    body = msgspec.json.encode(Problem(type, title, status, detail))
    return Response(body, status, headers, TYPE)


NOTHING = "there is nothing at this address: see /api/docs"
WRONG_METHOD = "this address takes another method: see /api/docs"
UNKNOWN_FIELD = re.compile(r"unknown field `(?![A-Za-z_]{1,40}`( - at `[^`]*`)?$).*`", re.DOTALL)
UNREADABLE = "the call cannot be read"
UNKNOWN = "this should not happen; the details are in the server's log: tell its manager"
KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (SlowError, 408, "Too slow"),
    (TooLargeError, 413, "Too large"),
    (ClientDisconnect, 400, "Broken off"),
    (msgspec.DecodeError, 400, "This cannot be read"),
    (NotHereError, 404, "Not found"),
    (TamperedError, 409, "The record cannot be trusted"),
    (StoreError, 503, "The database cannot be used now"),
    (DiscreetError, 422, "Refused"),
)
"""What kinds of errors are answered with; the first that fits."""


def said_by(error: Exception) -> str:
    """Its words; of a field that is not known the name, if it looks like one."""
    words = str(error)
    return UNKNOWN_FIELD.sub("unknown field", words) if "unknown field" in words else words


def words_of(error: Exception) -> tuple[int, str]:
    """The status of an error, and what to say; of one that nobody expected nothing."""
    for kind, status, _ in KINDS:
        if isinstance(error, kind):
            return status, said_by(error)
    if isinstance(error, HTTPException):
        return error.status_code, UNREADABLE
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
        return problem("Token needed", 401, str(error), **{"WWW-Authenticate": "Bearer"})
    for kind, status, title in KINDS:
        if isinstance(error, kind):
            headers = {"Retry-After": "1"} if status == 503 else {}
            return problem(title, status, said_by(error), **headers)
    return problem("Something is wrong with the service", 500, UNKNOWN)


def problem_of_address(error: HTTPException) -> Response:
    """What to answer where nothing is, or nothing of this method."""
    if error.status_code == 405:
        return problem("Wrong method", 405, WRONG_METHOD, **dict(error.headers or {}))
    if error.status_code == 404:
        return problem("Not found", 404, NOTHING)
    return problem("Refused", error.status_code, UNREADABLE)


EXPECTED = (DiscreetError, msgspec.DecodeError, ClientDisconnect, HTTPException)
"""Kinds of errors that we thought of."""


def note_error(error: Exception, request: str) -> None:
    """Write down what whoever runs the service should know of an error: that the
    database cannot be used, with the words, as no value of a call is in them; and what
    nobody thought of, without. A head that a caller gave says nothing of the database.
    """
    if isinstance(error, StoreError) and not isinstance(error, UnknownHeadError):
        observability.trouble(str(error), request)
    elif not isinstance(error, EXPECTED):
        observability.unexpected(error, request)
