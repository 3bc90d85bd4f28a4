"""Connections whose patience ends: whoever opens one and says nothing, or says it byte
by byte, or does not read the answer, is let go.
"""

import asyncio
from functools import partial

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet.service.limits import Bounds

LINGER = 1.0
"""Seconds for which a connection that was closed is waited for when the service
ends.
"""


def patient(bounds: Bounds) -> type[asyncio.Protocol]:
    """The protocol of connections with these limits."""

    class Patient(HttpToolsProtocol):
        """A connection on which headers must come in time and be few, and answers be
        read.
        """

        waiting: asyncio.TimerHandle | None = None
        unread: asyncio.TimerHandle | None = None
        began = False
        """Whether a call has begun whose headers are not all there."""
        said = 0
        """Bytes that came since then."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Somebody has come; let go if there are too many."""
            super().connection_made(transport)
            self.access_log = False  # its lines have paths and queries in them
            if len(self.connections) > bounds.connections:
                transport.abort()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            """It is gone."""
            self._stop_waiting()
            self._stop_looking()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            """The first byte of a call."""
            self.began = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """All of its headers."""
            self.began = False
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """All of its body."""
            super().on_message_complete()
            self.cycle.scope["whole"] = True  # type: ignore[typeddict-unknown-key]

        def data_received(self, data: bytes) -> None:
            """Something was sent: the headers of a call, or a part of them."""
            super().data_received(data)
            self.said = self.said + len(data) if self.began else 0
            if self.said > bounds.headers:
                self.send_400_response("the headers of this call are too large")
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self.waiting is None:
                self._wait()

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
            super().shutdown()
            self._let_go()

        def _unsupported_upgrade_warning(self) -> None:
            """Whoever wants another protocol is served in this one."""

        def _let_go(self) -> None:
            """Wait no longer for whoever does not answer an encrypted farewell."""
            over = self.transport.is_closing()
            self.loop.call_later(LINGER, self.transport.abort if over else self._let_go)

        def timeout_keep_alive_handler(self) -> None:
            """Nothing was asked for a while."""
            super().timeout_keep_alive_handler()
            self.loop.call_later(bounds.patience, self.transport.abort)

        def _look_again(self, before: int) -> None:
            look = partial(self._look, before)
            self.unread = self.loop.call_later(bounds.patience, look)

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
            self.waiting = self.loop.call_later(bounds.patience, self._give_up)

        def _stop_waiting(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

        def _give_up(self) -> None:
            self.waiting = None
            if not self.transport.is_closing():
                self.transport.close()

    return Patient
