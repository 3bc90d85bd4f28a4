"""The middleware around every request: it gives the request an id, limits it, adds
headers to the response, and writes a log line and metrics.
"""

import asyncio
import re
import secrets
import time
from dataclasses import dataclass
from itertools import count

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.service import observability
from discreet.service.limits import (
    MOST_BYTES,
    RequestInfo,
    SlowError,
    TooLargeError,
    TooManyError,
    address_of,
)
from discreet.service.problems import note_error, problem_of
from discreet.service.state import AppState

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
