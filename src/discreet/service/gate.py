"""What every call comes through: it gets a name, is counted, is refused while the
service ends or has too much to do, and its answer gets its headers and a line in the
log.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Sequence
from itertools import count

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from discreet.service import logs
from discreet.service.connections import Cycle
from discreet.service.headers import CLOSES, Added, Header, added
from discreet.service.home import Home
from discreet.service.limits import (
    MOST_BYTES,
    Bounds,
    Passage,
    SlowError,
    TooLargeError,
    TooManyError,
    address_of,
)
from discreet.service.pages.frame import missing_page
from discreet.service.problems import note_error, problem_of
from discreet.service.routes import Ways

MAX_ADDRESS_BYTES = 8_192
"""Of a path and what follows it: the longest names, written with percent signs."""
MAX_HEADER_BYTES = 32_768
HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
SMALL = 65_536
"""Bytes of a body that are read though nobody wants them, so that whoever sends it gets
the answer, and not a broken connection.
"""
SHORT = 1.0
"""Seconds for which that is tried."""
SLOW = "the body of the call did not arrive in time: send it again, all at once"
LARGE = f"the body of a call may have at most {MOST_BYTES} bytes"
ENDING = "the service is stopping: try again in a few seconds"


class Gate:
    """The way in and out of a service (an ASGI application)."""

    def __init__(self, home: Home, ways: Ways) -> None:
        self._home = home
        self._ways = ways
        self._start, self._numbers = secrets.token_hex(4), count(1)
        """Of which the names of calls are made: what this process has served."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a call."""
        if scope["type"] != "http":
            await self._live(receive, send)
            return
        headers = dict(reversed(scope["headers"]))
        request = f"{self._start}{next(self._numbers):08x}"
        passage = Passage(request, address_of(scope), headers)
        scope["passage"] = passage
        body = Body(scope, receive, self._home.bounds)
        answer = Answer(scope, send, body)
        begun = time.perf_counter()
        try:
            await self._serve(scope, passage, body, answer)
        finally:
            seconds = time.perf_counter() - begun
            template = str(scope.get("template", ""))
            self._home.metrics.count(template, scope["method"], answer.status, seconds)
            logs.note(
                "call",
                method=scope["method"],
                route=template or "-",
                status=answer.status,
                ms=round(1000 * seconds, 1),
                token=passage.number,
                request=passage.request,
            )

    async def _live(self, receive: Receive, send: Send) -> None:
        """Be there until the server says that it ends."""
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        self._home.stop()
        self._home.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, passage: Passage, body: "Body", answer: "Answer") -> None:
        entered = False
        try:
            if self._home.stopping:
                raise TooManyError(ENDING, 503, 2)
            self._home.limits.enter(passage)
            entered = True
            check_head_of_request(scope)
            route = self._ways.find(scope)
            found = await route.serve(Request(scope, body.receive))
            await answer.give(found)
        except Exception as error:
            note_error(error, passage.request)
            if answer.status:
                raise BrokenOffError from None
            refused = await missing_page(self._home, scope, error) or problem_of(error)
            if self._home.stopping:
                refused.headers["Connection"] = "close"
            await answer.give(refused)
        finally:
            if entered:
                self._home.limits.leave(passage)


def check_head_of_request(scope: Scope) -> None:
    """Refuse a request whose address or headers are longer than any of ours, or that
    does not name one host.
    """
    address = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if address > MAX_ADDRESS_BYTES:
        raise HTTPException(414)
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise HTTPException(431)
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or HOST.fullmatch(hosts[0]) is None:
        raise HTTPException(400)


class BrokenOffError(Exception):
    """An answer that broke off: the connection is closed, so that nobody takes the part
    for the whole.
    """


class Body:
    """The body of a call, of a size that ends, waited for with patience that does."""

    def __init__(self, scope: Scope, receive: Receive, bounds: Bounds) -> None:
        headers = scope["passage"].headers
        said = headers.get(b"content-length", b"0")
        none = said == b"0" and b"transfer-encoding" not in headers
        self.whole = none or scope.get("whole", False)
        """Whether all of it is here."""
        self._receive = receive
        self._read = 0
        self._patience = bounds.patience
        self._until = time.monotonic() + bounds.whole

    async def receive(self) -> Message:
        """The next part."""
        message = await (self._receive() if self.whole else self._patiently())
        self._read += len(message.get("body", b""))
        if self._read > MOST_BYTES:
            raise TooLargeError(LARGE)
        return message

    async def _patiently(self) -> Message:
        left = min(self._patience, self._until - time.monotonic())
        try:
            async with asyncio.timeout(left):
                message = await self._receive()
        except TimeoutError:
            raise SlowError(SLOW) from None
        self.whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Read what is left, if it is little."""
        read, until = 0, time.monotonic() + SHORT
        try:
            while not self.whole and read < SMALL:
                async with asyncio.timeout(until - time.monotonic()):
                    read += len((await self.receive()).get("body", b""))
        except (TimeoutError, SlowError, TooLargeError):
            return


class Answer:
    """The answer to a call."""

    def __init__(self, scope: Scope, send: Send, body: Body) -> None:
        self.status = 0
        """None yet."""
        self._scope = scope
        self._send = send
        self._body = body
        self._own = (b"x-request-id", scope["passage"].request.encode())

    async def give(self, found: Response) -> None:
        """Send an answer, in one piece where it is whole, and the call is."""
        cycle = getattr(self._send, "__self__", None)
        if not (_is_whole(found) and self._body.whole and isinstance(cycle, Cycle) and cycle.waits):
            await found(self._scope, self._body.receive, self.send)
            return
        self.status = found.status_code
        lines = self._added(found.raw_headers).lines
        cycle.send_whole(self.status, [*found.raw_headers, self._own], lines, found.body)

    async def send(self, message: Message) -> None:
        """Send a part of it, the first with our headers."""
        if message["type"] == "http.response.start":
            if not self._body.whole:
                await self._body.drain()
            self.status, headers = message["status"], message["headers"]
            message["headers"] = [*headers, *self._added(headers).headers, self._own]
            if not self._body.whole:
                message["headers"].append(CLOSES)
        await self._send(message)

    def _added(self, headers: Sequence[Header]) -> Added:
        path = bytes(self._scope.get("raw_path") or b"")
        return added(headers, path, self._scope.get("scheme") == "https")


def _is_whole(found: Response) -> bool:
    """Whether an answer is nothing but its head and its body, whose length it says."""
    plain = type(found).__call__ is Response.__call__ and found.background is None
    return plain and any(name == b"content-length" for name, _ in found.raw_headers)
