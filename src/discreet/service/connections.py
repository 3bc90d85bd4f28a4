"""Connections whose patience ends: whoever opens one and says nothing, or says it byte
by byte, is let go.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.service.limits import Bounds

LINGER = 1.0
"""Seconds for which a connection that was closed is waited for when the service
ends.
"""


def patient(bounds: Bounds) -> type[asyncio.Protocol]:
    """The protocol of connections with these limits."""

    class Patient(H11Protocol):
        """A connection on which headers must come in time."""

        waiting: asyncio.TimerHandle | None = None

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
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Something was sent: the headers of a call, or a part of them."""
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self.waiting is None:
                self._wait()

        def shutdown(self) -> None:
            """The service ends: what is under way is answered, then this is closed."""
            super().shutdown()
            self._let_go()

        def _let_go(self) -> None:
            """Wait no longer for whoever does not answer an encrypted farewell."""
            over = self.transport.is_closing()
            self.loop.call_later(LINGER, self.transport.abort if over else self._let_go)

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
