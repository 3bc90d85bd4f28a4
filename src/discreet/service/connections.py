"""Connections whose patience ends: whoever opens one and says nothing, or says it byte
by byte, or does not read the answer, is let go. And answers that leave in one piece.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from discreet.service.headers import CLOSES, LINES, Header
from discreet.service.limits import Bounds

LINGER = 1.0
"""Seconds for which a connection that was closed is waited for when the service
ends.
"""


def patient(bounds: Bounds) -> type[asyncio.Protocol]:
    """The protocol of connections with these limits, of one server."""
    return type("Patient", (Patient,), {"bounds": bounds, "leaving": Leaving()})


class Leaving:
    """Answers of a server that are whole and not yet written.

    They are written when all that is under way in the event loop has gone on. Calls
    that shared a commit are so answered together: whoever waits for several of them is
    woken once, and not by each.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[asyncio.Transport, bytes]] = []

    def add(self, transport: asyncio.Transport, answer: bytes) -> None:
        """Write an answer soon."""
        self._answers.append((transport, answer))
        if len(self._answers) == 1:
            asyncio.get_running_loop().call_soon(self.write)

    def write(self) -> None:
        """Write them now: before anything else is written, or closed."""
        answers, self._answers = self._answers, []
        for transport, answer in answers:
            if not transport.is_closing():
                transport.write(answer)


class Cycle(RequestResponseCycle):
    """A call and its answer, which is written in one piece if its length is known."""

    begun: dict[str, Any] | None = None
    """The head of an answer whose body is not there yet."""
    leaving: Leaving

    async def send(self, message: Any) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start" and not self.response_started:
            if any(name == b"content-length" for name, _ in message["headers"]):
                self.begun = message
                return
        elif self.begun is not None:
            begun, self.begun = self.begun, None
            if not message.get("more_body") and self.waits:
                self.send_whole(begun["status"], begun["headers"], b"", message.get("body", b""))
                return
            await super().send(begun)  # type: ignore[arg-type]
        await super().send(message)

    @property
    def waits(self) -> bool:
        """Whether somebody waits for the answer, and could have it at once."""
        return not (self.response_started or self.flow.write_paused or self.disconnected)

    def send_whole(
        self, status: int, headers: Sequence[Header], lines: bytes, body: bytes | memoryview
    ) -> None:
        """Send an answer that has a length; of its headers some may be written out as
        lines.
        """
        content: list[bytes | memoryview] = [httptools_impl.STATUS_LINE[status]]
        bare = self.scope["method"] == "HEAD"
        if CLOSES in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers = [*headers, CLOSES]
        for pair in headers:
            content.append(LINES.get(pair) or _line(*pair))
            if pair[0] == b"content-length" and int(pair[1]) != len(body) and not bare:
                raise RuntimeError("an answer is not as long as it says")
        content += (lines, b"\r\n", b"" if bare else body)
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.leaving.add(self.transport, b"".join(content))
        self.message_event.set()
        if not self.keep_alive:
            self.leaving.write()
            self.transport.close()
        self.on_response()


def _line(name: bytes, value: bytes) -> bytes:
    """A header as it is written; refuses what would be more than one."""
    if httptools_impl.HEADER_RE.search(name) or httptools_impl.HEADER_VALUE_RE.search(value):
        raise RuntimeError("a header has letters in it that it may not have")
    return b"%b: %b\r\n" % (name.lower(), value)


class Patient(HttpToolsProtocol):
    """A connection on which headers must come in time and be few, and answers be
    read.
    """

    bounds: ClassVar[Bounds]
    leaving: ClassVar[Leaving]
    waiting: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None
    began = False
    """Whether a call has begun whose headers are not all there."""
    said = 0
    """Bytes that came since then."""
    heard = 0.0
    """When something came last, or was answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come; let go if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_waiting()
        self._stop_looking()
        super()._unset_keepalive_if_required()  # the clock
        super().connection_lost(exc)

    # --- calls ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of a call."""
        self.began = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """All of its headers: it is served, after those that came before on this
        connection. (As uvicorn does it, with answers of our own.)
        """
        self.began = False
        scope, version = self.scope, self.parser.get_http_version()
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        path, query = _parts(self.url)
        scope["path"] = unquote(path.decode("ascii"))
        scope["raw_path"], scope["query_string"] = path, query
        before, self.cycle = (
            self.cycle,
            Cycle(
                scope,
                self.transport,
                self.flow,
                self.logger,
                self.access_logger,
                False,  # the lines of its log have paths and queries in them
                self.server_state.default_headers,
                asyncio.Event(),
                self.expect_100_continue,
                version != "1.0" and self.parser.should_keep_alive(),
                self.on_response_complete,
            ),
        )
        self.cycle.leaving = self.leaving
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_message_complete(self) -> None:
        """All of its body."""
        super().on_message_complete()
        self.cycle.scope["whole"] = True  # type: ignore[typeddict-unknown-key]

    def data_received(self, data: bytes) -> None:
        """Something was sent: the headers of a call, or a part of them."""
        super().data_received(data)
        self.said = self.said + len(data) if self.began else 0
        if self.said > self.bounds.headers:
            self.send_400_response("the headers of this call are too large")
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self.waiting is None:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no call, after those that were."""
        self.leaving.write()
        super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever wants another protocol is served in this one."""

    # --- patience ---------------------------------------------------------------------

    def _unset_keepalive_if_required(self) -> None:
        """Something came: one clock rings for all calls, and looks when that was."""
        self.heard = self.loop.time()

    def on_response_complete(self) -> None:
        """The answer is written: on to the next one, or wait for it."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self.heard = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._ring_in(self.timeout_keep_alive)

    def _ring_in(self, seconds: float) -> None:
        ring = self.loop.call_later(seconds, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = ring

    def timeout_keep_alive_handler(self) -> None:
        """The clock rings: whether nothing was asked for a while."""
        self.timeout_keep_alive_task = None
        left = self.heard + self.timeout_keep_alive - self.loop.time()
        if not self.cycle.response_complete:
            return
        if self.unread is not None:  # the last answer is under way, and is looked after
            left = self.timeout_keep_alive
        if left > 0:
            self._ring_in(left)
            return
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.bounds.patience, self.transport.abort)

    def pause_writing(self) -> None:
        """More was written than is read: as long as something is, it goes on."""
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Enough was read."""
        super().resume_writing()
        self._stop_looking()

    def shutdown(self) -> None:
        """The service ends: what is under way is answered, then this is closed."""
        self.leaving.write()
        super().shutdown()
        self._let_go()

    def _let_go(self) -> None:
        """Wait no longer for whoever does not answer an encrypted farewell."""
        over = self.transport.is_closing()
        self.loop.call_later(LINGER, self.transport.abort if over else self._let_go)

    def _look_again(self, before: int) -> None:
        look = partial(self._look, before)
        self.unread = self.loop.call_later(self.bounds.patience, look)

    def _look(self, before: int) -> None:
        """Whether something was read since."""
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._look_again(left)
        else:
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None

    def _wait(self) -> None:
        self.waiting = self.loop.call_later(self.bounds.patience, self._give_up)

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _give_up(self) -> None:
        self.waiting = None
        if not self.transport.is_closing():
            self.transport.close()


def _parts(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of an address as it was sent."""
    if url.startswith(b"/") and b"#" not in url and url.isascii():
        path, _, query = url.partition(b"?")
        return path, query
    parsed = httptools.parse_url(url)
    return parsed.path, parsed.query or b""
