"""The middleware around every request: it gives the request an id, limits it, adds
headers to the response, and writes a log line and metrics.
"""

import asyncio
import re
import secrets
import time
from dataclasses import dataclass
from itertools import count

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.errors import DiscreetError, RefusedError, StoreError, TamperedError
from discreet.service import observability
from discreet.service.auth import NotHereError
from discreet.service.limits import (
    MOST_BYTES,
    RequestInfo,
    SlowError,
    TooLargeError,
    TooManyError,
    address_of,
)
from discreet.service.state import AppState
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


HEALTH_PATHS = ("/healthz", "/readyz")
"""Paths that are served however many requests are under way: whoever runs the service
must not restart it because it is busy.
"""
MAX_ADDRESS_BYTES = 8_192
"""Of a path and its query: the longest names, percent-encoded."""
MAX_HEADER_BYTES = 32_768
HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of pages: scripts, styles and requests of this service alone,
and none that stands in a page itself.
"""
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of reports, which are one file (`reports.page`): styles stand
in the page; there is no script.
"""
SECURITY_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # `no-referrer` would hide that a form is our own
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response that does not set them itself."""
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
CLOSE = (b"connection", b"close")
SLOW = "the body of the call did not arrive in time: send it again, all at once"
LARGE = f"the body of a call may have at most {MOST_BYTES} bytes"
STOPPING = "the service is stopping: try again in a few seconds"


class BrokenOffError(Exception):
    """An error after the response has begun: the server closes the connection, so that
    nobody takes the part for the whole.
    """


class RequestMiddleware:
    """Limit, log and count every request, and add headers to its response (pure ASGI
    middleware). Every error becomes a problem document.
    """

    def __init__(self, app: ASGIApp, app_state: AppState) -> None:
        self._app = app
        self._home = app_state
        self._start, self._numbers = secrets.token_hex(4), count(1)
        """Parts of the ids of requests: of this process, and of each request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        info = RequestInfo(f"{self._start}{next(self._numbers):08x}", address_of(scope))
        scope["request_info"] = info
        scope["path"] = scope["raw_path"].decode("latin-1")  # %2F is no separator
        limits, limit_config = self._home.limits, self._home.limit_config
        body = RequestBody(receive, limit_config.patience, time.monotonic() + limit_config.whole)
        status, began = 0, time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
                present = {name for name, _ in headers}
                headers += [header for header in SECURITY_HEADERS if header[0] not in present]
                headers.append((b"x-request-id", info.id.encode()))
                if scope["scheme"] == "https":
                    headers.append(STRICT_TRANSPORT)
                if body.timed_out or self._home.stopping:
                    headers.append(CLOSE)
                message["headers"] = headers
            await send(message)

        try:
            if self._home.stopping:
                raise TooManyError(STOPPING, 503, 2)
            is_counted = scope["path"] not in HEALTH_PATHS
            if is_counted:
                limits.enter()
            try:
                check_head(scope)
                await self._app(scope, body.receive, send_with_headers)
            finally:
                if is_counted:
                    limits.leave(info)
        except Exception as error:
            note_error(error, info.id)
            if status:
                raise BrokenOffError from None
            await problem_of(error)(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - began
            route = scope["route"].path if "route" in scope else ""
            self._home.metrics.count(route, scope["method"], status, seconds)
            observability.note(
                "call",
                method=scope["method"],
                route=route or "-",
                status=status,
                ms=round(1000 * seconds, 1),
                token=info.token,
                request=info.id,
            )


def check_head(scope: Scope) -> None:
    """Refuse a request whose address or headers are longer than any of ours, or that
    does not name one host.
    """
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_ADDRESS_BYTES:
        raise HTTPException(414)
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise HTTPException(431)
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or HOST.fullmatch(hosts[0]) is None:
        raise HTTPException(400)


@dataclass
class RequestBody:
    """The body of a request: limit its size, and how long it may take to arrive."""

    receive_part: Receive
    patience: float
    """Seconds to wait for the next part."""
    until: float
    """Monotonic time by which the body must be complete."""
    timed_out: bool = False
    _size: int = 0
    _is_complete: bool = False

    async def receive(self) -> Message:
        """Return the next part; wait without a limit once the body is complete, as then
        only a disconnection is still to come.
        """
        if self._is_complete:
            return await self.receive_part()
        try:
            async with asyncio.timeout(min(self.patience, self.until - time.monotonic())):
                message = await self.receive_part()
        except TimeoutError:
            self.timed_out = True
            raise SlowError(SLOW) from None
        self._size += len(message.get("body", b""))
        if self._size > MOST_BYTES:
            raise TooLargeError(LARGE)
        self._is_complete = not message.get("more_body", False)
        return message
