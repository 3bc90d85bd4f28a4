"""What the service writes down of calls: when, which, how long, by the token of which
number. Never an outcome, an identity, a token, a query or a body; of an error, its kind
and where it happened, and not its words, unless the store said them.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOG = logging.getLogger("discreet.service")
TEXT, JSON = "text", "json"
KINDS = (TEXT, JSON)
FRAMES = 20
"""Of an error, the innermost so many."""


def note(what: str, **about: Any) -> None:
    """Write a line. (Where in our code it is written nobody wants to know, and finding
    out takes longer than all of it.)
    """
    if LOG.isEnabledFor(logging.INFO):
        record = logging.LogRecord(LOG.name, logging.INFO, "", 0, what, None, None)
        record.about = about
        LOG.handle(record)


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
    said: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "what": record.getMessage().strip(),
        **getattr(record, "about", {}),
    }
    if record.exc_info and record.exc_info[1] is not None:
        said |= where(record.exc_info[1])
    return said


class JsonLines(logging.Formatter):
    """A JSON document a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return json.dumps(fields(record), ensure_ascii=True, default=str)


class TextLines(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = fields(record)
        head = f"{said.pop('time')} {said.pop('level'):7} {_plain(said.pop('what'))}"
        tail = " ".join(f"{key}={_plain(value)}" for key, value in said.items())
        return f"{head} {tail}".rstrip()


def _plain(value: Any) -> str:
    words = " < ".join(reversed(value)) if isinstance(value, list) else str(value)
    if words.isprintable():
        return words
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def start_logs(kind: str) -> None:
    """Write lines to stderr: ours, and the server's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == JSON else TextLines())
    for name, level in ((LOG.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
