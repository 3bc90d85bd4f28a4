"""Clients of a service who ask for single people and tell of them, one call after the
other, all in one process with nothing but sockets: so that they take little of the
machine on which the service is measured.
"""

import json
import secrets
import selectors
import socket
import time
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


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int, secret: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._secret = secret
        self._got = b""
        self.what = ""
        """The call under way."""
        self.began = 0.0

    def send(self, what: str, body: str) -> None:
        """Call, with a key as every careful client sends one."""
        self.what, self._got = what, b""
        call = (
            f"POST /api/v1/trials/{NAME}/{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self._secret}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {secrets.token_hex(8)}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
        self.began = time.perf_counter()
        self.socket.sendall(call)

    def receive(self) -> bytes | None:
        """The body of the answer, once it is whole."""
        self._got += self.socket.recv(65_536)
        head, end, body = self._got.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not end or len(body) < int(length):
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{self.what}: {self._got.decode()}")
        return body


class Crowd:
    """Clients who call at the same time."""

    def __init__(self, ports: list[int], secret: str, clients: int) -> None:
        self._ready = selectors.DefaultSelector()
        self._clients = [Client(ports[place % len(ports)], secret) for place in range(clients)]
        for one in self._clients:
            self._ready.register(one.socket, selectors.EVENT_READ, one)
        self._waiting: list[tuple[float, Client]] = []
        """Who had nobody, and when it asks again."""

    def call(self, seconds: float) -> Paces:
        """Ask and tell for some seconds."""
        people, took = 0, list[float]()
        until, under_way = time.time() + seconds, len(self._clients)
        for one in self._clients:
            one.send("ask", "{}")
        while under_way or self._waiting:
            for key, _ in self._ready.select(PAUSE if self._waiting else None):
                client: Client = key.data
                if (body := client.receive()) is None:
                    continue
                took.append(time.perf_counter() - client.began)
                told = client.what == "tell"
                people += told
                if not (told or self._tell(client, body)):
                    self._waiting.append((time.time() + PAUSE, client))
                    under_way -= 1
                elif told and time.time() < until:
                    client.send("ask", "{}")
                elif told:
                    under_way -= 1
            under_way += self._ask_again(until)
        return Paces(people, took)

    @staticmethod
    def _tell(client: Client, body: bytes) -> bool:
        """Tell of the one person of an answer, if there is one."""
        for one in json.loads(body)["assignments"]:
            client.send("tell", json.dumps({"outcomes": {one["id"]: 1}}))
            return True
        return False

    def _ask_again(self, until: float) -> int:
        """Whoever has waited long enough asks again, if there is time; how many."""
        now, asked = time.time(), 0
        while self._waiting and self._waiting[0][0] <= now:
            _, client = self._waiting.pop(0)
            if now < until:
                client.send("ask", "{}")
                asked += 1
        return asked

    def close(self) -> None:
        """Hang up."""
        for one in self._clients:
            one.socket.close()
        self._ready.close()
