"""Files that are written whole or not at all."""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from discreet.errors import DiscreetError, InvalidInputError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
TEMPORARY = ".tmp"
"""Ends the name of a file that is being written; it begins with a dot and the name it
will have.
"""


def write(path: str | Path, document: str | bytes, kept: str = "") -> None:
    """Write a file: all of it or nothing, on the disk before it has its name.

    `kept` says what is not lost where the disk is full, such as "the finished blocks
    are kept: ".
    """
    target = Path(path)
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    content = document.encode() if isinstance(document, str) else document
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as device:  # a pipe, a terminal: nothing to be replaced
                device.write(content)
            return
        try:
            with open(temporary, "xb") as file:
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
        raise cannot_write(target, error, kept) from None


def cannot_write(path: Path, error: OSError, kept: str = "") -> DiscreetError:
    """What is wrong, and what to do about it."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return DiscreetError(f"cannot write {path}: {reason}; {kept}make room and start again")
    return InvalidInputError(f"cannot write {path}: {reason}")


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk too, where folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
