"""Letters from processes that wait in line to whoever has the turn: what they want to
be done, so that one transaction does it for all of them.

A letter is a file in memory (`/dev/shm`) that only the user may read, and that its
writer keeps locked: one that nobody keeps locked is from a process that has died, and
is removed unread. Its name says when it was written and how far it is, and changes of
names happen once: either the writer takes it back, or another takes it. Beside it hangs
a bell, a pipe: it is rung when the letter is answered, or when nobody has the turn.
What a letter wants has keys of its own, under which it is done once, whoever does it
and whoever dies meanwhile. On a system without such files each waits for its turn, and
does what it wants by itself.
"""

import os
import secrets
import select
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # not on every system: there nobody writes letters
    fcntl = None  # type: ignore[assignment]

MEMORY = "/dev/shm"
MOST = 32
"""Letters that one takes in a turn."""
WAITING, TAKEN, DONE, BELL = ".letter", ".taken", ".done", ".bell"
PATIENCE = 0.05
"""Seconds after which one looks whether the bell was forgotten: who should have rung it
may have died.
"""
STEP = 0.0005
"""Seconds after which one who waits for letters looks again."""


class Taken(NamedTuple):
    """A letter of somebody else."""

    stem: str
    text: bytes

    def answer(self, text: bytes) -> None:
        """What it wants is on disk. The answer stands where the letter stood, in the
        file that its writer keeps locked.
        """
        with suppress(OSError):
            with open(self.stem + TAKEN, "r+b") as file:
                file.truncate(0)
                file.write(text)
            os.rename(self.stem + TAKEN, self.stem + DONE)

    def ring(self) -> None:
        """Whoever wrote it may look at it."""
        _ring(self.stem)


class Letter(NamedTuple):
    """A letter of one's own."""

    stem: str
    file: int
    bell: int

    def is_answered(self, seconds: float) -> bool:
        """Wait for the bell; whether the letter is answered."""
        ringing = select.poll()  # a bell may have any number, in a server with many files open
        ringing.register(self.bell, select.POLLIN)
        if ringing.poll(seconds * 1000):
            os.read(self.bell, 64)
        return os.path.exists(self.stem + DONE)

    def is_taken(self) -> bool:
        """Whether another has it, or had it and did not answer."""
        return not os.path.exists(self.stem + WAITING)

    def take_back(self) -> tuple[str, bytes]:
        """How far it was, waiting, taken or done, and the answer if it was."""
        try:
            os.rename(self.stem + WAITING, self.stem)
            return WAITING, b""
        except OSError:
            return self._answer()
        finally:
            _remove(self.stem)
            os.close(self.file)
            os.close(self.bell)

    def _answer(self) -> tuple[str, bytes]:
        try:
            with open(self.stem + DONE, "rb") as file:
                return DONE, file.read()
        except OSError:
            return TAKEN, b""


class Letters:
    """The letters of those who wait to write one database."""

    def __init__(self, database: str) -> None:
        self.database = database

    def post(self, start: str, text: bytes) -> Letter | None:
        """Write a letter of a kind; None if there is no place for it."""
        folder = self._folder()
        if folder is None:
            return None
        stem = f"{folder}/{time.monotonic_ns():020d}-{start}-{secrets.token_hex(8)}"
        with suppress(OSError):
            os.mkdir(folder, 0o700)
        return _post(stem, text) if is_our_own(folder) else None

    def take(self, start: str, most: int = MOST) -> list[Taken]:
        """The letters of a kind that others have written, once."""
        found = list[Taken]()
        for stem in _waiting(self._folder()):
            if start in stem and len(found) < most:
                with suppress(OSError):
                    os.rename(stem + WAITING, stem + TAKEN)
                    with open(stem + TAKEN, "rb") as file:
                        found.append(Taken(stem, file.read()))
        return found

    def anybody(self, start: str) -> bool:
        """Whether there is a letter of a kind."""
        return any(start in stem for stem in _waiting(self._folder()))

    def wait_for(self, number: int, seconds: float) -> int:
        """Wait until so many letters are here, of whatever kind; how many there are."""
        until = time.monotonic() + seconds
        while (here := self._count()) < number and time.monotonic() < until:
            time.sleep(STEP)
        return here

    def _count(self) -> int:
        folder = self._folder()
        try:
            names = os.listdir(folder) if folder and is_our_own(folder) else []
        except OSError:
            return 0
        return sum(name.endswith(WAITING) for name in names)

    def ring_first(self) -> None:
        """Tell the first one who waits that nobody has the turn."""
        for stem in _waiting(self._folder()):
            _ring(stem)
            return

    def _folder(self) -> str | None:
        """Where they are: of this file, and this user, and nobody else's to read."""
        if fcntl is None:
            return None
        try:
            file = os.stat(self.database)
            return f"{MEMORY}/{_prefix()}{file.st_dev}-{file.st_ino}"
        except OSError:
            return None


def clear() -> None:
    """Remove the letters of the dead, since an outcome may be in them, and the folders
    in which nobody waits: of all databases, as one may never be opened again.
    """
    with suppress(OSError):
        for name in os.listdir(MEMORY) if fcntl else []:
            if name.startswith(_prefix()):
                for _ in _waiting(f"{MEMORY}/{name}"):
                    pass
                with suppress(OSError):
                    os.rmdir(f"{MEMORY}/{name}")


def _prefix() -> str:
    """What the names of this user's folders begin with."""
    return f"discreet-{os.geteuid()}-"


def _waiting(folder: str | None) -> Iterator[str]:
    """The letters that wait, without their endings, the first one first; those of the
    dead are removed on the way.
    """
    if folder is None or not is_our_own(folder):
        return
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        stem, end = os.path.splitext(f"{folder}/{name}")
        if end != BELL and _is_dead(f"{folder}/{name}"):
            _remove(stem)
        elif end == WAITING:
            yield stem


def _post(stem: str, text: bytes) -> Letter | None:
    """Write a letter; if there is no room for it, nothing is left of it."""
    file = bell = -1
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        file = os.open(stem, flags, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.mkfifo(stem + BELL, 0o600)
        bell = os.open(stem + BELL, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if os.write(file, text) == len(text):
            os.rename(stem, stem + WAITING)
            return Letter(stem, file, bell)
    except OSError:
        pass
    _remove(stem)
    for one in (file, bell):
        if one >= 0:
            os.close(one)
    return None


def is_our_own(folder: str) -> bool:
    """Whether there is such a folder, into which nobody else can look or write."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    private = not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and private


def _is_dead(path: str) -> bool:
    """Whether nobody keeps a letter locked."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        finally:
            os.close(file)
    return False


def _ring(stem: str) -> None:
    with suppress(OSError):
        bell = os.open(stem + BELL, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(bell, b".")
        finally:
            os.close(bell)


def _remove(stem: str) -> None:
    for end in (BELL, "", WAITING, TAKEN, DONE):  # no bell stays without its letter
        with suppress(OSError):
            os.unlink(stem + end)
