"""A service's clerk (`clerking`), as the service sees it: hired when many call at once,
handed their jobs, and let go with the service. Whatever it leaves undone, the service
does: if it is not known what that is, the clerk's slip says it (`trials.slips`).
"""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from discreet.service import logs
from discreet.service.clerking import HERE, READ, Hired, Messages, Said, Wish, framed, key_of
from discreet.trials.jobs import claim, lend, may_leave, plain
from discreet.trials.kept import Kept
from discreet.trials.together import Job

CROWD = 8
"""Calls that wait for the store at once, for which a clerk is hired: it takes nearly
as much memory as the service, and a desk or two do not need it.
"""
PAUSE = 10.0
"""Seconds between two hirings."""
PATIENCE = 5.0
"""Seconds within which a clerk that nobody needs any more has gone."""
SILENCE = 90.0
"""Seconds after which a clerk with work that says nothing is given up: it waits half a
minute for its turn, and half a minute for the database, at the most.
"""
COMMAND: tuple[str, ...] = ("-P", "-m", "discreet.service.clerking")
"""What Python is started with, and the number of the line; -P: nothing is imported from
where the service happens to be started.
"""

Back = Callable[[Kept, Job[Any, Any], "asyncio.Future[None]"], None]
"""What has a job done that a clerk did not do."""
Run = Callable[..., Awaitable[Any]]
"""What has something done in a thread of its own."""


class _Handed(NamedTuple):
    """A job in the hands of the clerk."""

    number: int
    trial: Kept
    job: Job[Any, Any]
    done: "asyncio.Future[None]"

    def finish(self, answer: Any) -> None:
        """This came of it."""
        self.job.finish(answer)
        self.wake()

    def wake(self) -> None:
        """Whoever waits for it goes on."""
        if not self.done.done():
            self.done.set_result(None)


class Clerk(asyncio.Protocol):
    """A clerk, or the place for one. Used in the thread of the event loop alone, except
    for `close`.
    """

    def __init__(self, url: str, back: Back, run: Run) -> None:
        self._url = url
        self._back = back
        self._run = run
        self._name = ""
        """Of the clerk that is here; of each its own."""
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._transport: asyncio.Transport | None = None
        self._here = False
        self._closed = False
        self._after = 0.0
        """When the next one may be hired."""
        self._heard = 0.0
        """When it said something last, or got work."""
        self._watching: asyncio.TimerHandle | None = None
        self._numbers = 0
        self._handed: dict[int, _Handed] = {}
        self._leaving: list[Wish] = []
        """What is handed on when all that is under way in the event loop has gone
        on.
        """
        self._tasks = set[asyncio.Task[None]]()
        """What looks at slips."""
        self._messages = Messages()
        self._read = msgspec.msgpack.Decoder(Said)

    @property
    def process(self) -> int:
        """Of which number, for who measures it; -1 if there is none."""
        return -1 if self._process is None else self._process.pid

    async def hire(self, callers: int) -> None:
        """Start one for so many callers, unless there is one, or was a moment ago."""
        if callers < CROWD or self._process or self._closed or os.name != "posix":
            return
        if time.monotonic() < self._after:
            return
        self._after = time.monotonic() + PAUSE
        self._name = secrets.token_hex(16)
        try:
            self._line, self._process = _started()
        except OSError:
            logs.note("no clerk can be started")
        else:
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: self, sock=self._line.dup())

    def takes(self, job: Job[Any, Any]) -> bool:
        """Whether a job can be handed on."""
        return self._here and may_leave(job)

    def put(self, trial: Kept, job: Job[Any, Any], done: "asyncio.Future[None]") -> None:
        """Hand on a job, whose maker waits for `done`."""
        if not self._handed:
            self._heard = time.monotonic()
        if self._watching is None:
            self._watch(SILENCE)
        self._numbers += 1
        self._handed[self._numbers] = _Handed(self._numbers, trial, job, done)
        lend(job, key_of(self._name, self._numbers))
        name = trial.protocol.name
        self._leaving.append(Wish(self._numbers, name, trial.seen, plain(job)))
        if len(self._leaving) == 1:
            asyncio.get_running_loop().call_soon(self._hand_on)

    def _hand_on(self) -> None:
        leaving, self._leaving = self._leaving, []
        if self._transport is not None:
            self._transport.write(framed(msgspec.msgpack.encode(leaving)))

    def _watch(self, seconds: float) -> None:
        self._watching = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Whether it works; one that hangs is killed, and its work is done here."""
        self._watching = None
        left = self._heard + SILENCE - time.monotonic()
        if not self._handed or self._process is None:
            return
        if left > 0:
            self._watch(left)
        else:
            logs.note("the clerk hangs")
            self._process.kill()

    # --- the line ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """There is a line to it."""
        self._transport, self._messages = transport, Messages()
        transport.write(framed(msgspec.msgpack.encode(Hired(self._name, self._url))))

    def data_received(self, data: bytes) -> None:
        """It says that it is here, or what came of jobs."""
        self._heard = time.monotonic()
        for message in self._messages.add(data):
            if message == HERE:
                self._here = True
            else:
                self._answer(self._read.decode(message))

    def _answer(self, said: Said) -> None:
        handed = [(self._handed.pop(number), answer) for number, answer in said.done.items()]
        if handed:
            handed[0][0].trial.hear(said.head)  # they are all of one trial
        for one, answer in handed:
            one.finish(None if answer == b"null" else msgspec.Raw(answer))
        self._see_to([self._handed.pop(number) for number in said.refused], gone=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, and so is its process: nothing of what it had in hand is done any
        more, unless it is done.
        """
        self._let_go(0.0)
        self._hear_last()
        self._here, self._transport = False, None
        handed, self._handed, self._leaving = self._handed, {}, []
        if self._closed:
            return
        logs.note("the clerk has gone", jobs=len(handed))
        self._see_to(list(handed.values()), gone=True)

    def _hear_last(self) -> None:
        """Take what it said and nobody has heard yet: its slip has no more than the
        last of it.
        """
        if self._line is not None:
            with self._line, suppress(OSError):
                while piece := self._line.recv(READ, socket.MSG_DONTWAIT):
                    self.data_received(piece)

    def _see_to(self, handed: Sequence[_Handed], gone: bool) -> None:
        """See to jobs that the clerk refused, or of which it is not known what it did
        before it had `gone`.
        """
        for trial in {one.trial for one in handed}:
            ours = [one for one in handed if one.trial is trial]
            task = asyncio.ensure_future(self._do_ourselves(trial, ours, self._name, gone))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _do_ourselves(
        self, trial: Kept, handed: Sequence[_Handed], name: str, gone: bool
    ) -> None:
        """Do what is not on the clerk's slip; under its key, if another process may
        have done it for the clerk.
        """
        try:
            known = await self._run(trial.slip, name, {one.number: one.job for one in handed})
        except Exception as error:
            for one in handed:
                one.job.fail(error)
                one.wake()
            return
        for one in handed:
            if one.number in known:
                one.finish(known[one.number])
            else:
                claim(one.job, gone)
                self._back(one.trial, one.job, one.done)

    # --- its end ----------------------------------------------------------------------

    def close(self) -> None:
        """Hang up, and wait until it has gone."""
        self._closed = True
        if self._line is not None:
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)
        self._let_go(PATIENCE)
        if self._line is not None:
            self._line.close()

    def _let_go(self, seconds: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A line, and a process at its other end. Ctrl-C is not for it, but for the
    service.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, *COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return ours, process
