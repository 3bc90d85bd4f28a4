"""Writers of a SQLite file take turns.

SQLite's own lock lets whoever polls at the right moment in: with several processes some
wait for seconds. In a line that the system keeps, each comes when it was there first.
The line orders, and does not protect: that is still SQLite's lock.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # not on every system: there SQLite's lock alone decides
    fcntl = None  # type: ignore[assignment]

LINE = "-line"
"""What the name of the line's file has more than the database's."""


class Line:
    """A line of writers, in this process and in others, kept by the lock of a file."""

    def __init__(self, database: str, seconds: float) -> None:
        self.database = database
        self.path = f"{database}{LINE}"
        self.seconds = seconds
        """How long to wait before one goes without a turn, and has SQLite decide."""

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the others who came before."""
        file = None if fcntl is None else self._open()
        if file is None:
            yield
            return
        waiting = _Waiting(file)
        waiting.wait(self.seconds)
        try:
            yield
        finally:
            waiting.leave()

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

    def wait(self, seconds: float) -> None:
        """Until it is our turn. A process that hangs with the turn holds nobody up for
        ever: who has waited too long goes without.
        """
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.waits = True
            threading.Thread(target=self._block, daemon=True).start()
            self.here.wait(seconds)
        except OSError:
            pass  # a file system without locks

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
