"""What a clerk does: a process of its own, hired by a service when many call at once,
that does their jobs in the store while the service reads and writes calls. (Python
computes in one thread of a process at a time.)

It hears of jobs on a line, a pair of sockets that only the two of them have, and says
on it what came of them. Those that wait of one trial and one kind share a transaction,
up to half of the crowd, which is waited for. What is refused it leaves to the service,
which does it again and hears what is wrong. If the clerk dies, the service looks at its
slip (`trials.slips`), and does what is not there itself: it is done once.
"""

import math
import select
import signal
import socket
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from discreet.errors import DiscreetError, StoreError
from discreet.service.pace import settle_down
from discreet.trials.chain import Head
from discreet.trials.jobs import jobs_of, lend
from discreet.trials.slips import Slip
from discreet.trials.together import LEADS_WITHOUT, MOST_PATIENCE
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


class Hired(msgspec.Struct, array_like=True):
    """What a clerk hears first."""

    name: str
    """Of its own: nobody else can guess it."""
    url: str


class Wish(msgspec.Struct, array_like=True):
    """A job that is handed on."""

    number: int
    """Of the service's own, for the answer."""
    trial: str
    head: Head
    """Of the record that the service has seen: with an older one nothing is done."""
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


def key_of(clerk: str, number: int) -> str:
    """The key of a job without one, should a clerk of this name have it done by
    others.
    """
    return f"{clerk}/{number}"


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
        self._crowd = 0.0
        """How many callers there are, about."""
        self._passed: Wish | None = None
        """The first one, if others of another kind were done before it."""
        self._answered = 0.0
        """When the last answers were said."""
        self._patience = 0.0
        """Seconds that the last transaction took, if it was no longer than usual."""
        self._without = 0
        """How many transactions are not to wait for more, since one has in vain."""
        self._trials: dict[str, Trial] = {}
        self._read = msgspec.msgpack.Decoder(list[Wish])
        self._name, self._url = "", ""

    def work(self) -> None:
        """Do what comes, until nobody is at the other end."""
        while not self._url:
            piece = self._line.recv(READ)
            if not piece:
                return
            for message in self._messages.add(piece):
                hired = msgspec.msgpack.decode(message, type=Hired)
                self._name, self._url = hired.name, hired.url
        self._line.sendall(framed(HERE))
        while self._hear():
            self._gather()
            begun = time.monotonic()
            wishes = self._next()
            text = msgspec.msgpack.encode(self._do(wishes))
            self._count(len(wishes))
            self._line.sendall(framed(text))
            self._answered = time.monotonic()
            self._patience = min(self._answered - begun, MOST_PATIENCE)
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

    def _gather(self) -> None:
        """Wait for half of the crowd, if it was here a moment ago, for as long as the
        last transaction took at the most: a larger crowd shares what one costs.
        """
        here, half = len(self._waiting), min(self._half(), math.ceil(self._crowd))
        if here >= half or self._without:
            self._without = max(self._without - 1, 0)
            return
        until, coming = self._answered + self._patience, select.poll()
        coming.register(self._line, select.POLLIN)  # its number is the service's: any
        while len(self._waiting) < half and (left := until - time.monotonic()) > 0:
            if coming.poll(1000 * left) and not self._hear(waits=False):
                break
        if 2 * (len(self._waiting) - here) < half - here:
            self._without = LEADS_WITHOUT

    def _count(self, done: int) -> None:
        """See how many callers there are, before any of those whose jobs are done can
        come again: they, and those who wait.
        """
        self._hear(waits=False)
        self._crowd = max(done + len(self._waiting), FADES * self._crowd)

    def _half(self) -> int:
        return max(FEW, math.ceil(max(self._crowd, len(self._waiting)) / 2))

    def _next(self) -> list[Wish]:
        """Those of one kind, of which most wait, unless the first one was passed over
        before: half of the crowd at the most, so that the service answers and hears the
        other half while we write.
        """
        together, first = self._waiting[0].together, self._waiting[0]
        if self._passed is not first:
            together = Counter(one.together for one in self._waiting).most_common(1)[0][0]
        found, rest, room = list[Wish](), list[Wish](), self._half()
        for one in self._waiting:
            fits = one.together == together and len(found) < room
            (found if fits else rest).append(one)
        self._passed = None if found[0] is first else first
        self._waiting = rest
        return found

    def _do(self, wishes: list[Wish]) -> Said:
        """Do jobs of one trial and kind."""
        jobs = jobs_of([one.job for one in wishes])
        for job, one in zip(jobs, wishes, strict=True):
            lend(job, key_of(self._name, one.number))
        both = zip(jobs, wishes, strict=True)
        slip = Slip(self._name, {one.number: job for job, one in both if job.key})
        try:
            trial = self._trial(wishes[0].trial)
            for head in {one.head for one in wishes}:
                trial.check_known(str(head))
        except DiscreetError as error:
            refused = [one.number for one in wishes]
            return Said(Head(0, ""), {}, refused + self._handed_back([error]))
        trial.do_now(jobs, slip.keep)
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
