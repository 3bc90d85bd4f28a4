"""What the service writes down of calls: when, which, how long, by the token of which
number. Never an outcome, an identity, a token, a query or a body; of an error, its kind
and where it happened, and not its words, unless the store said them.
"""

import asyncio
import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import msgspec

LOG = logging.getLogger("discreet.service")
TEXT, JSON = "text", "json"
KINDS = (TEXT, JSON)
FRAMES = 20
"""Of an error, the innermost so many."""


_own: "list[Lines]" = []
"""What writes our lines, once logs were started; until then Python's logging does."""


def note(what: str, **about: Any) -> None:
    """Write a line of the event loop's thread. (Python's logging would find out where
    in our code it is written, which nobody wants to know and takes longer than the
    call.)
    """
    if _own:
        _own[0].add(_said(time.time(), "info", what, about))
    elif LOG.isEnabledFor(logging.INFO):
        record = logging.LogRecord(LOG.name, logging.INFO, "", 0, what, None, None)
        record.about = about
        LOG.handle(record)


class Lines(logging.StreamHandler[TextIO]):
    """Writes lines; those of calls that are answered at the same moment at once."""

    def __init__(self, put: Callable[[dict[str, Any]], str]) -> None:
        super().__init__(sys.stderr)
        self.put = put
        self._line = threading.Lock()
        self._waiting: list[str] = []

    def add(self, said: dict[str, Any]) -> None:
        """Write a line soon, when all that is under way has gone on."""
        with self._line:
            self._waiting.append(self.put(said))
            first = len(self._waiting) == 1
        if first:
            asyncio.get_running_loop().call_soon(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of Python's logging, behind those that wait."""
        with self._line:
            self._waiting.append(self.put(fields(record)))
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._line:
            lines, self._waiting = self._waiting, []
            with suppress(OSError, ValueError):  # nobody reads them any more
                self.stream.write("".join(f"{line}\n" for line in lines))
                self.stream.flush()


def unexpected(error: BaseException, request: str) -> None:
    """Write down that a call ended with an error that nobody thought of."""
    LOG.error(
        "an unexpected error",
        extra={"about": {"request": request, **where(error)}},
    )


def trouble(words: str, request: str) -> None:
    """Write down that the database could not be used for a call, and why."""
    LOG.error(
        "the database cannot be used",
        extra={"about": {"request": request, "why": words}},
    )


def where(error: BaseException) -> dict[str, Any]:
    """The kind of an error, and the lines of code that led to it."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return {
        "error": type(error).__qualname__,
        "at": [f"{_short(one.filename)}:{one.lineno} {one.name}" for one in frames],
    }


def _short(path: str) -> str:
    """The last three steps of a path: the rest is about the machine."""
    return "/".join(Path(path).parts[-3:])


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a line says, of our log or another one; an error without its words."""
    what, about = record.getMessage().strip(), getattr(record, "about", {})
    said = _said(record.created, record.levelname.lower(), what, about)
    if record.exc_info and record.exc_info[1] is not None:
        said |= where(record.exc_info[1])
    return said


def _said(at: float, level: str, what: str, about: dict[str, Any]) -> dict[str, Any]:
    time = f"{_second(int(at))}.{int(at * 1000) % 1000:03d}+00:00"
    return {"time": time, "level": level, "what": what, **about}


@lru_cache(2)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def json_line(said: dict[str, Any]) -> str:
    """A JSON document a line, in letters that no terminal takes for anything else."""
    text = msgspec.json.encode(said, enc_hook=str)
    return text.decode() if text.isascii() else json.dumps(said, default=str)


def text_line(said: dict[str, Any]) -> str:
    """A line for people."""
    time, level, what, *about = said.items()
    words = [f"{time[1]} {level[1]:7} {what[1]}"]
    words += [f"{key}={_told(one)}" if type(one) is list else f"{key}={one}" for key, one in about]
    line = " ".join(words)
    if line.isprintable():
        return line
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _told(frames: list[str]) -> str:
    """What led to an error, the last of it first."""
    return " < ".join(reversed(frames))


def start_logs(kind: str) -> None:
    """Write lines to stderr: ours, and the server's."""
    handler = Lines(json_line if kind == JSON else text_line)
    _own[:] = [handler]
    for name, level in ((LOG.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
