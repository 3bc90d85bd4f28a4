"""What a clerk does: a process of its own, hired by a service when many call at once,
that does their jobs in the store while the service reads and writes calls. (Python
computes in one thread of a process at a time.)

It hears of jobs on a line, a pair of sockets that only the two of them have, and says
on it what came of them. Those that wait of one trial and one kind share a transaction,
up to half of the crowd. What is refused it leaves to the service, which does it again
and hears what is wrong. A job has a key from when it is handed on: if the clerk dies,
the service does the job itself under the key, and it is done once.
"""

import math
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import msgspec

from discreet.errors import DiscreetError, StoreError
from discreet.service.pace import settle_down
from discreet.trials.chain import Head
from discreet.trials.jobs import jobs_of
from discreet.trials.trial import Trial

MOST_OPEN = 64
"""Trials that are kept open: each has connections of its own."""
READ = 1 << 20
LENGTH = 4
"""Bytes before a message that say how long it is."""
HERE = b""
"""What a clerk says first."""
FEW = 16
"""Jobs that are not parted: what a transaction takes by itself is as much."""
FADES = 0.995
"""What is left of a crowd that has gone, after each transaction."""


class Wish(msgspec.Struct, array_like=True):
    """A job that is handed on."""

    number: int
    """Of the service's own, for the answer."""
    trial: str
    head: Head
    """Of the record that the service has seen: with an older one nothing is done."""
    site: str | None
    """Where its ids must come from."""
    job: dict[str, Any]

    @property
    def together(self) -> tuple[str, str]:
        """Jobs with the same are done in one transaction."""
        return self.trial, self.job["kind"]


class Said(msgspec.Struct, array_like=True):
    """What came of jobs of one trial, on disk."""

    head: Head
    done: dict[int, bytes]
    """The answers, as JSON."""
    refused: list[int]
    """Those of which nothing was done."""


def framed(text: bytes) -> bytes:
    """A message as it is sent."""
    return len(text).to_bytes(LENGTH, "big") + text


class Messages:
    """Messages that come in pieces."""

    def __init__(self) -> None:
        self._got = bytearray()

    def add(self, piece: bytes) -> list[bytes]:
        """The messages that are whole now."""
        self._got += piece
        found, start = list[bytes](), 0
        while len(self._got) >= (text := start + LENGTH):
            end = text + int.from_bytes(self._got[start:text], "big")
            if len(self._got) < end:
                break
            found.append(bytes(self._got[text:end]))
            start = end
        del self._got[:start]
        return found


class Clerking:
    """The work of a clerk."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._messages = Messages()
        self._waiting: list[Wish] = []
        self._before = 0
        """Jobs of the last transaction."""
        self._crowd = 0.0
        """How many callers there are, about: those whose jobs were done last, and those
        who wait. Some of them are counted twice.
        """
        self._trials: dict[str, Trial] = {}
        self._read = msgspec.msgpack.Decoder(list[Wish])
        self._url = ""

    def work(self) -> None:
        """Do what comes, until nobody is at the other end."""
        while not self._url:
            piece = self._line.recv(READ)
            if not piece:
                return
            self._url = b"".join(self._messages.add(piece)).decode()
        self._line.sendall(framed(HERE))
        while self._hear():
            text = msgspec.msgpack.encode(self._do(self._next()))
            self._line.sendall(framed(text))
        for trial in self._trials.values():
            trial.close()

    def _hear(self, waits: bool = True) -> bool:
        """Take what has come, or wait for something; whether anybody is there."""
        while True:
            at_once = self._waiting or not waits
            try:
                piece = self._line.recv(READ, socket.MSG_DONTWAIT if at_once else 0)
            except BlockingIOError:
                return True
            if not piece:
                return False
            for message in self._messages.add(piece):
                self._waiting += self._read.decode(message)

    def _next(self) -> list[Wish]:
        """Those that are done with the first one: half of the crowd at the most, so
        that the service answers and hears the other half while we write.
        """
        together, rest = self._waiting[0].together, list[Wish]()
        self._crowd = max(self._before + len(self._waiting), FADES * self._crowd)
        found, room = list[Wish](), max(FEW, math.ceil(self._crowd / 2))
        for one in self._waiting:
            fits = one.together == together and len(found) < room
            (found if fits else rest).append(one)
        self._waiting, self._before = rest, len(found)
        return found

    def _do(self, wishes: list[Wish]) -> Said:
        """Do jobs of one trial and kind."""
        jobs = jobs_of([one.job for one in wishes])
        for job, one in zip(jobs, wishes, strict=True):
            job.site = one.site
        try:
            trial = self._trial(wishes[0].trial)
            for head in {one.head for one in wishes}:
                trial.check_known(str(head))
        except DiscreetError as error:
            refused = [one.number for one in wishes]
            return Said(Head(0, ""), {}, refused + self._handed_back([error]))
        trial.do_now(jobs)
        done, refused = dict[int, bytes](), list[int]()
        for job, one in zip(jobs, wishes, strict=True):
            if job.error is None:
                done[one.number] = msgspec.json.encode(job.found())
            else:
                refused.append(one.number)
        return Said(trial.seen, done, refused + self._handed_back([job.error for job in jobs]))

    def _handed_back(self, errors: Sequence[BaseException | None]) -> list[int]:
        """If the store cannot be used, all that wait for us: one after the other they
        would find it out, and the service then once more.
        """
        if not any(isinstance(error, StoreError) for error in errors):
            return []
        self._hear(waits=False)
        waiting, self._waiting = self._waiting, []
        return [one.number for one in waiting]

    def _trial(self, name: str) -> Trial:
        found = self._trials.pop(name, None) or Trial.open(self._url, name)
        self._trials[name] = found
        while len(self._trials) > MOST_OPEN:
            self._trials.pop(next(iter(self._trials))).close()
        return found


def main() -> None:
    """Work on the line whose number is said, until it ends: a signal to the whole
    service ends the service, which then hangs up. Of an error only its kind is said,
    since its words may be about outcomes.
    """
    for ends in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ends, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # the service has said them, without where its code is
    settle_down()
    with socket.socket(fileno=int(sys.argv[1])) as line:
        try:
            Clerking(line).work()
        except ConnectionError:
            pass  # the service was killed
        except Exception as error:  # said before the line ends, since the service kills us then
            print(f"the clerk ended with a {type(error).__name__}", file=sys.stderr, flush=True)
            sys.exit(1)


if __name__ == "__main__":
    main()
