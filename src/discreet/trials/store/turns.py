"""Writers of a SQLite file, and of a trial on a server, take turns.

SQLite's own lock lets whoever polls at the right moment in: with several processes some
wait for seconds. In a line that the system keeps, each comes when it was there first.
The line orders, and does not protect: that is still the database's lock.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from discreet.trials.store.letters import MOST, PATIENCE, WAITING, Letter, Letters, Taken

try:
    import fcntl
except ImportError:  # not on every system: there the database's lock alone decides
    fcntl = None  # type: ignore[assignment]

LINE = "-line"
"""What the name of the line's file has more than the database's."""


class Turn:
    """One's turn to write."""

    def __init__(self, letters: Letters, start: str) -> None:
        self._letters = letters
        self._start = start
        self.own = WAITING
        """How far a letter of our own is that was written while we waited."""
        self.answer = b""
        """What is said to it, if it is done."""
        self._taken = list[Taken]()
        self._answers = dict[Taken, bytes]()

    def take_letters(self, here: Callable[[], bool]) -> list[Taken]:
        """What others want who wait for their turn, if we write `here`, where they
        would: those who have come since the last time, up to so many in a turn.
        """
        if not (self._start and self._letters.anybody(self._start) and here()):
            return []
        taken = self._letters.take(self._start, MOST - len(self._taken))
        self._taken += taken
        return taken

    def wait_for_letters(self, number: int, seconds: float) -> int:
        """Until so many wait, but not for long, since all of them wait for us."""
        return self._letters.wait_for(number, min(seconds, PATIENCE)) if self._start else 0

    @property
    def taken(self) -> int:
        """How many letters were taken in this turn."""
        return len(self._taken)

    def reply(self, letter: Taken, answer: bytes) -> None:
        """What a letter wants is done when the turn ends well."""
        self._answers[letter] = answer

    def _end(self, well: bool) -> None:
        """Whoever has no answer hears that it must do it itself."""
        for letter in self._taken:
            if well and letter in self._answers:
                letter.answer(self._answers[letter])
            letter.ring()


class Note(NamedTuple):
    """What to write to whoever has the turn, if we have to wait for ours."""

    trial: str
    """Which one, in the names of files."""
    kind: str
    """Of what is wanted: whoever has the turn does what others want of the same kind,
    which brings them into step. Empty: nothing that another could do.
    """
    text: Callable[[], bytes] | None
    """None: it is too much for another to do."""

    @property
    def start(self) -> str:
        """What is in the names of letters of this trial and kind."""
        return f"{self.trial}-{self.kind}" if self.kind else ""


class Line:
    """A line of writers, in this process and in others, kept by the lock of a file."""

    def __init__(self, database: str, seconds: float) -> None:
        self.database = database
        self.path = f"{database}{LINE}"
        self.seconds = seconds
        """How long to wait before one goes without a turn, to the database's lock."""
        self.letters = Letters(database)

    @contextmanager
    def turn(self, note: Note | None = None) -> Iterator[Turn]:
        """Wait for the others who came before, or until one of them has done what we
        want.
        """
        turn = Turn(self.letters, "" if note is None else note.start)
        file = None if fcntl is None else self._open()
        if file is None:
            yield turn
            return
        waiting, well = _Waiting(file), False
        try:
            if not waiting.is_next():
                letter = note and note.text and self.letters.post(note.start, note.text())
                if letter:
                    turn.own, turn.answer = waiting.correspond(letter, self.seconds)
                else:
                    waiting.wait(self.seconds)
            yield turn
            well = True
        finally:
            turn._end(well)
            waiting.leave()
            if waiting.had_it:
                self.letters.ring_first()

    def _open(self) -> int | None:
        """The file whose lock is the line: for whoever may write the database."""
        with suppress(OSError):
            mode = os.stat(self.database).st_mode & 0o777
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        return None


class _Waiting:
    """One who waits in line, and has the turn from then on."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.lock = threading.Lock()
        self.here = threading.Event()
        self.waits = False
        """Whether a thread waits for the file's lock, and closes it if we have left."""
        self.left = False
        self.had_it = False
        """Whether we have had the turn: without it nobody waits for us to leave."""

    def is_next(self) -> bool:
        """Whether it is our turn already."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks
        self.had_it = True
        return True

    def correspond(self, letter: Letter, seconds: float) -> tuple[str, bytes]:
        """Until a letter of ours is answered, or it is our turn; how far the letter is,
        and the answer.
        """
        until = time.monotonic() + seconds
        while not self.is_next() and time.monotonic() < until:
            if letter.is_answered(PATIENCE):
                break
            if letter.is_taken():  # by somebody who works long, or did not do it
                self.wait(until - time.monotonic())
                break
        return letter.take_back()

    def wait(self, seconds: float) -> None:
        """Until it is our turn. A process that hangs with the turn holds nobody up for
        ever: who has waited too long goes without.
        """
        self.waits = True
        threading.Thread(target=self._block, daemon=True).start()
        self.had_it = self.here.wait(seconds)

    def _block(self) -> None:
        with suppress(OSError):
            fcntl.flock(self.file, fcntl.LOCK_EX)
        with self.lock:
            self.waits = False
            self.here.set()
            if self.left:
                self._close()

    def leave(self) -> None:
        """The next one's turn."""
        with self.lock:
            self.left = True
            if not self.waits:
                self._close()

    def _close(self) -> None:
        """Unlock, then close: a process that was forked meanwhile may have the file."""
        with suppress(OSError):
            fcntl.flock(self.file, fcntl.LOCK_UN)
        os.close(self.file)
