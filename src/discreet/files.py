"""Files that are written whole or not at all."""

import errno
import glob
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import DiscreetError, InvalidInputError
from discreet.validation import join_line, name_path

try:
    import fcntl
except ImportError:  # not on every system: there nothing that was left is removed
    fcntl = None  # type: ignore[assignment]

DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
SQLITE_HEADER = b"SQLite format 3\0"
"""How a database begins."""
SQLITE_SUFFIXES = ("-wal", "-shm", "-journal", "-line")
"""With what the names of the files end that go with one."""
TEMPORARY_SUFFIX = ".tmp"
"""Ends the name of a file that is being written; it begins with a dot and the name it
will have.
"""


def write_file(
    path: str | Path, document: str | bytes, kept: str = "", private: bool = False
) -> None:
    """Write a file: all of it or nothing, on the disk before it has its name.

    `kept` says what is not lost where the disk is full, such as "the finished blocks
    are kept: ". A `private` file only its owner may read.
    """
    target = Path(path)
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    content = document.encode() if isinstance(document, str) else document
    temporary = _choose_temporary(target)
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as device:  # a pipe, a terminal: nothing to be replaced
                device.write(content)
            return
        try:
            with open(temporary, "xb", opener=_open_private if private else None) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise explain_write_error(target, error, kept) from None


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def open_private_file(path: str | Path, ends: Sequence[str] = ()) -> Iterator[Path]:
    """Yield an empty file that only its owner may read, to be filled: it gets its name,
    in the place of any before it, when all of it is on the disk, or is removed.
    """
    target = Path(os.path.realpath(path))
    temporary, lock = _choose_temporary(target), -1
    try:
        _remove_left(target, ends)
        lock = _open_private(str(temporary), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise explain_write_error(target, error) from None
    finally:
        _remove(temporary, ends)
        if lock >= 0:
            os.close(lock)


def _remove_left(target: Path, ends: Sequence[str]) -> None:
    """Remove files that processes were writing, to become `target`, when they were
    killed.
    """
    pattern = f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}{TEMPORARY_SUFFIX}"
    for path in target.parent.glob(pattern) if fcntl is not None else ():
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path, ends)
            finally:
                os.close(lock)


def _remove(path: Path, ends: Sequence[str]) -> None:
    """Remove a file and those beside it; the file last, by which they are found."""
    for end in (*ends, ""):
        with suppress(OSError):
            Path(f"{path}{end}").unlink(missing_ok=True)


def check_writable(path: str, taken: Sequence[str] = (), devices: bool = True) -> None:
    """Refuse a file that could not be written, before the work is done, and one of the
    files that are `taken`; where `devices` will not do, also pipes and terminals.
    """
    try:
        target = Path(os.path.realpath(path))
        target.exists()
    except OSError as error:
        raise explain_write_error(Path(path), error) from None
    for other in taken:
        if is_same_file(target, other):
            raise InvalidInputError(
                f"cannot write {path}: the trial itself is kept there. Choose another file"
            )
    if target.exists() and not target.is_file():
        if not devices or target.is_dir() or not os.access(target, os.W_OK):
            raise InvalidInputError(f"cannot write {path}: it is not a file that may be written to")
    elif not os.access(target.parent, os.W_OK):
        raise InvalidInputError(
            f"cannot write {path}: there is no such folder, or it may not be written to"
        )


def is_same_file(one: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file, also by links."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def is_database(path: str | Path) -> bool:
    """Return whether there is an SQLite file, or the log of one."""
    homes = [Path(str(path).removesuffix(end)) for end in ("", *SQLITE_SUFFIXES)]
    for home in homes:
        with suppress(OSError):
            if home.is_file():
                with home.open("rb") as file:
                    if file.read(len(SQLITE_HEADER)) == SQLITE_HEADER:
                        return True
    return False


def _choose_temporary(target: Path) -> Path:
    """Return the path of a file that is being written."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")


def explain_write_error(path: Path, error: OSError, kept: str = "") -> DiscreetError:
    """Return an error that says why a file cannot be written, and what to do about it."""
    problem = f"cannot write {name_path(path)}: {error.strerror or join_line(error)}"
    if error.errno in DISK_FULL_ERRORS:
        return DiscreetError(f"{problem}; {kept}make room and start again")
    return InvalidInputError(problem)


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk too, if folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
