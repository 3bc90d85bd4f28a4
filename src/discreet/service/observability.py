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
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TextIO

import msgspec
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OTHER = "other"
"""The endpoint of calls that meant none: what was typed is not a label."""
METHODS = frozenset({"GET", "HEAD", "POST"})
LABELS = ("endpoint", "method", "status")


class _Took:
    """How long the calls of one endpoint and method took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Calls(Collector):
    """The calls that were answered. They are counted in the event loop's thread alone,
    and put into the words of Prometheus when it asks: a call is counted in no time.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, int], int] = {}
        """By endpoint, method and class of status: no more than there are."""
        self._took: dict[tuple[str, str], _Took] = {}

    def count(self, template: str, method: str, status: int, seconds: float) -> None:
        """Count a call."""
        about = (template or OTHER, method if method in METHODS else OTHER)
        kind = (*about, status // 100)
        self._calls[kind] = self._calls.get(kind, 0) + 1
        took = self._took.get(about)
        if took is None:
            took = self._took[about] = _Took()
        took.counts[bisect_left(BUCKETS, seconds)] += 1
        took.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        calls = CounterMetricFamily(
            "discreet_requests",
            "Calls that were answered, by the class of the status.",
            labels=LABELS,
        )
        for (endpoint, method, status), count in self._calls.items():
            calls.add_metric((endpoint, method, f"{status}xx"), count)
        yield calls
        seconds = HistogramMetricFamily(
            "discreet_request_seconds", "How long they took.", labels=LABELS[:2]
        )
        edges = [*map(str, BUCKETS), "+Inf"]
        for about, took in self._took.items():
            below = zip(edges, map(float, accumulate(took.counts)), strict=True)
            seconds.add_metric(about, list(below), took.seconds)
        yield seconds


class Metrics:
    """What one process has served."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._calls = Calls()
        self._registry.register(self._calls)
        self.count = self._calls.count

    def watch(self, name: str, says: str, look: Callable[[], float]) -> None:
        """Tell a number that goes up and down, as it is when Prometheus asks."""
        Gauge(name, says, registry=self._registry).set_function(look)

    def text(self) -> bytes:
        """What Prometheus reads."""
        return generate_latest(self._registry)


LOG = logging.getLogger("discreet.service")
TEXT, JSON = "text", "json"
KINDS = (TEXT, JSON)
FRAMES = 20
"""Of an error, the innermost so many."""


_own: "list[LogLines]" = []
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


class LogLines(logging.StreamHandler[TextIO]):
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
    handler = LogLines(json_line if kind == JSON else text_line)
    _own[:] = [handler]
    for name, level in ((LOG.name, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
