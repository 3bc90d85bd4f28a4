"""Clients of a service who ask for single people and tell of them, one call after the
other, all in one process with nothing but sockets: so that they take little of the
machine on which the service is measured.
"""

import secrets
import selectors
import socket
import time
from itertools import count
from typing import NamedTuple

NAME = "crowd"
"""The trial they call."""
PAUSE = 0.01
"""Seconds after which a client asks again that had nobody: the round waits."""


class Paces(NamedTuple):
    """What came of the calls of some seconds."""

    people: int
    """Asked for and told of."""
    took: list[float]
    """Seconds of each call."""
    cpu: float
    """Seconds of the processor."""


class Client:
    """One connection that is kept open. What it sends is bytes that were made before
    but for a key and an id, and of an answer it looks for the id alone.
    """

    def __init__(self, port: int, secret: str, keys: bool) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._got = b""
        start = f"Idempotency-Key: {secrets.token_hex(8)}".encode()
        self._keys = (b"%b%d\r\n" % (start, one) if keys else b"" for one in count())
        self._ask = self._head("ask", secret) + b"%bContent-Length: 2\r\n\r\n{}"
        self._tell = (
            self._head("tell", secret) + b"%bContent-Length: %d\r\n\r\n" + b'{"outcomes":{"%b":1}}'
        )
        self.tells = False
        """Whether the call under way tells."""
        self.began = 0.0

    @staticmethod
    def _head(what: str, secret: str) -> bytes:
        return (
            f"POST /api/v1/trials/{NAME}/{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
        ).encode()

    def ask(self) -> None:
        """Ask for a person, with a key if it sends any."""
        self._send(False, self._ask % next(self._keys))

    def tell(self, id: bytes) -> None:
        """Tell the person's outcome."""
        self._send(True, self._tell % (next(self._keys), 19 + len(id), id))

    def _send(self, tells: bool, call: bytes) -> None:
        self.tells, self._got = tells, b""
        self.began = time.perf_counter()
        self.socket.sendall(call)

    def receive(self) -> bytes | None:
        """The body of the answer, once it is whole."""
        if not (piece := self.socket.recv(65_536)):
            raise RuntimeError(f"the service hung up after {self._got!r}")
        self._got = got = self._got + piece
        end, length = got.find(b"\r\n\r\n"), got.find(b"content-length: ")
        if end < 0 or len(got) - end - 4 < int(got[length + 16 : got.find(b"\r", length)]):
            return None
        if not got.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(got.decode())
        return got[end:]


class Crowd:
    """Clients who call at the same time."""

    def __init__(self, ports: list[int], secret: str, clients: int, keys: bool) -> None:
        self._ready = selectors.DefaultSelector()
        self._clients = [
            Client(ports[place % len(ports)], secret, keys) for place in range(clients)
        ]
        for one in self._clients:
            self._ready.register(one.socket, selectors.EVENT_READ, one)
        self._waiting: list[tuple[float, Client]] = []
        """Who had nobody, and when it asks again."""

    def call(self, seconds: float) -> Paces:
        """Ask and tell for some seconds."""
        people, took, cpu = 0, list[float](), time.process_time()
        until, under_way = time.time() + seconds, len(self._clients)
        for one in self._clients:
            one.ask()
        while under_way or self._waiting:
            for key, _ in self._ready.select(PAUSE if self._waiting else None):
                client: Client = key.data
                if (body := client.receive()) is None:
                    continue
                took.append(time.perf_counter() - client.began)
                if client.tells:
                    people += 1
                    if time.time() < until:
                        client.ask()
                    else:
                        under_way -= 1
                elif (start := body.find(b'"id":"') + 6) > 5:
                    client.tell(body[start : body.index(b'"', start)])
                else:
                    self._waiting.append((time.time() + PAUSE, client))
                    under_way -= 1
            under_way += self._ask_again(until)
        return Paces(people, took, time.process_time() - cpu)

    def _ask_again(self, until: float) -> int:
        """Whoever has waited long enough asks again, if there is time; how many."""
        now, asked = time.time(), 0
        while self._waiting and self._waiting[0][0] <= now:
            _, client = self._waiting.pop(0)
            if now < until:
                client.ask()
                asked += 1
        return asked

    def close(self) -> None:
        """Hang up."""
        for one in self._clients:
            one.socket.close()
        self._ready.close()
