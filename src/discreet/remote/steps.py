"""What is sent to a service, and again if no answer comes; nothing is sent here.

A call is a generator of steps: each is done by whoever runs it, with or without `await`
(`lines`), and its result is sent back into the generator. So there is one way to make a
request, to repeat it and to read its answer.
"""

import hashlib
import json
import random
import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from discreet.errors import (
    DiscreetError,
    InvalidInputError,
    RefusedError,
    StoreError,
    TamperedError,
)
from discreet.remote.address import TOKEN, TOKEN_FILE, Way

Found = TypeVar("Found")
PREFIX = "/api/v1"
HEAD, KEY = "discreet-head", "idempotency-key"
AGAIN = frozenset({429, 502, 503, 504})
"""Answers after which the same request is made again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 8.0
STRANGER = 5.0
"""Seconds for which a service that has never answered is tried: its address may be
wrong.
"""
LONGEST = 4000
"""Characters of a service's sentence that are repeated."""


class Send(NamedTuple):
    """A request to be sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    slow: bool = False
    """Whether the answer may take minutes to be made."""


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(NamedTuple):
    """No answer, and why."""

    why: str
    reached: bool
    """Whether the service may have got the request."""
    again: bool
    """Whether it may help to try again."""


class Wait(NamedTuple):
    """Time to let pass."""

    seconds: float


class Work(NamedTuple):
    """Something that takes long, and is done while others are served."""

    do: Callable[[], Any]


Steps = Generator[Send | Wait | Work, Any, Found]
"""A call, up to what it gives."""


@dataclass
class Service:
    """A service, as we know it."""

    way: Way
    answered: bool = False
    """Whether it ever did."""


class Asked(NamedTuple):
    """A request, as a call wants it."""

    method: str
    path: str
    said: Any = None
    """What it carries."""
    request: str | None = None
    """The caller's key."""
    once: bool = True
    """Whether the service does what has the same key once."""
    known: str | None = None
    """A head that its record must have."""
    slow: bool = False


def called(service: Service, asked: Asked) -> Steps[Got]:
    """Make a request until it is answered, and give the answer that is no error."""
    key = secrets.token_hex(16) if asked.request is None else asked.request
    headers = {"accept": "application/json, */*;q=0.5"}
    if service.way.token is not None:
        headers["authorization"] = f"Bearer {service.way.token}"
    if asked.method == "POST" or asked.request is not None:
        headers[KEY] = plain_key(key)
    if asked.known is not None:
        headers[HEAD] = asked.known
    body = None
    if asked.said is not None:
        body = json.dumps(asked.said, allow_nan=False).encode()
        headers["content-type"] = "application/json"
    send = Send(asked.method, f"{PREFIX}{asked.path}", headers, body, asked.slow)
    got = yield from _patiently(service, send, _advice(asked, key))
    if got.status != 200:
        raise error_of(service.way, got, _advice(asked, key))
    return got


def plain_key(key: str) -> str:
    """A caller's key as a header can carry it."""
    if re.fullmatch(r"[!-~]{1,200}", key):
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def _advice(asked: Asked, key: str) -> str:
    """What to do if nobody knows whether a request was done."""
    if asked.method == "GET":
        return "Nothing was changed: try again"
    unknown = "It is not known whether this was done: repeat it"
    return f"{unknown} with request={key!r}; it will be done only once" if asked.once else unknown


def _patiently(service: Service, send: Send, advice: str) -> Steps[Got]:
    """The same request until there is an answer, or no patience any more."""
    start, tries, reached = time.monotonic(), 0, False
    while True:
        got: Got | Lost = yield send
        if isinstance(got, Got):
            service.answered = True
            if got.status not in AGAIN:
                return got
        reached = reached or (got.reached if isinstance(got, Lost) else got.status != 429)
        patience = service.way.patience
        if not service.answered:
            patience = min(patience, STRANGER)
        pause = _pause(tries, got)
        late = time.monotonic() + pause > start + patience
        in_vain = isinstance(got, Lost) and not got.again
        if late or in_vain:
            nothing = "Nothing was done" if in_vain else "Nothing was done: try again later"
            said = advice if reached else nothing
            raise StoreError(f"{service.way.base}: {_why(got)}. {said}")
        yield Wait(pause)
        tries += 1


def _pause(tries: int, got: Got | Lost) -> float:
    """How long to wait: longer each time, by chance, and not less than it says."""
    longest = min(FIRST_PAUSE * 2.0 ** min(tries, 30), LONGEST_PAUSE)
    usual: float = longest * random.uniform(0.5, 1.0)
    said = "" if isinstance(got, Lost) else got.headers.get("retry-after", "")
    return max(usual, float(said)) if re.fullmatch(r"[0-9]{1,6}", said) else usual


def _why(got: Got | Lost) -> str:
    if isinstance(got, Lost):
        return got.why
    return _detail(got) or f"it answers {got.status} now"


# --- errors ---------------------------------------------------------------------------


def error_of(way: Way, got: Got, advice: str) -> DiscreetError:
    """The error that an answer tells: that of the library, with its sentence."""
    detail = _detail(got)
    if detail is None:
        return StoreError(
            f"{way.base} answered {got.status}, which is not an answer of a discreet service: "
            f"check the address. {advice}"
        )
    if got.status in (401, 403):
        login = "" if way.token else f". Put your token into {TOKEN}, or its file into {TOKEN_FILE}"
        return RefusedError(f"{detail}{login}", got.status == 403)
    if got.status == 409:
        return TamperedError(detail)
    if got.status >= 500:
        return StoreError(f"{way.base}: {detail}. {advice}")
    return InvalidInputError(detail)


def _detail(got: Got) -> str | None:
    """The sentence of a problem document; None: it is none."""
    if not got.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        found = json.loads(got.body)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(found, str):
        return None
    return "".join(one if one.isprintable() else " " for one in found[:LONGEST])
