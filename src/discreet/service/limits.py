"""How much a caller may want: of calls a second, of calls at once, of patience.

All of it is per process: several servers in front of one database allow as many times
as much.
"""

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from starlette.types import Scope

from discreet.errors import DiscreetError
from discreet.service.observability import Metrics
from discreet.trials.store.tokens import Token

MOST_KEYS = 10_000
"""Callers whose allowance is remembered; of more, the one who was here longest ago is
forgotten.
"""


MOST_BYTES = 2_000_000
"""Of a body: ten thousand outcomes are well below it."""


@dataclass(frozen=True)
class LimitConfig:
    """The limits, and why they are what they are."""

    rate: float = 50.0
    """Calls a second of one token: a busy site enrols somebody every few seconds, a
    platform behind a product says more with `discreet serve --rate`.
    """
    burst: float = 4.0
    """Seconds of that rate which may come at once: a site that was offline catches
    up.
    """
    stranger_rate: float = 10.0
    """Calls a second of one address without a token, or with a wrong one."""
    stranger_burst: float = 3.0
    """Seconds of that which may come at once: a public page and what is on it."""
    each: int = 512
    """Calls of one token at once: half of all, so that no caller keeps out the others;
    and as many as monitors of one trial who come back at the same moment.
    """
    calls: int = 1024
    """Calls at once in all: what waits behind them is better told to come back."""
    forms_each: int = 16
    """Forms of one address without a login that are read at once: so many requests, and
    no more, can somebody hold open by sending their bodies slowly.
    """
    streams_each: int = 1000
    """Streams of events at once, of one token, or of one address without one."""
    streams: int = 2000
    """Streams at once in all: each is a connection, and little else."""
    connections: int = 4000
    """Connections at once in all, idle ones too: below the files a process may open on
    common systems with a service manager. From this number on every request is refused.
    """
    patience: float = 10.0
    """Seconds without a byte of the body after which a request is refused."""
    whole: float = 30.0
    """Seconds within which a body must be there: 2 MB at 0.5 Mbit/s."""
    idle: int = 15
    """Seconds for which a connection is kept between calls."""
    grace: int = 30
    """Seconds for which a service that ends waits for what is under way: as long as
    the database waits for others who write.
    """


class TooManyError(DiscreetError):
    """A caller who wants more than its share."""

    def __init__(self, words: str, status: int, seconds: int) -> None:
        super().__init__(words)
        self.status = status
        self.seconds = seconds
        """After which it may try again."""


class SlowError(DiscreetError):
    """A caller whose body does not come."""


class TooLargeError(DiscreetError):
    """A caller whose body has more bytes than anybody needs."""


class Buckets:
    """Allowances that fill up over time, one for each key."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self.rate = rate
        self.most = max(rate * burst, 1.0)
        self._clock = clock
        self._levels: dict[int | str, tuple[float, float]] = {}
        """What each had when it was used last; those used last at the end."""

    def take(self, key: int | str) -> float:
        """Take one; 0, or the seconds until there is one."""
        now = self._clock()
        level, since = self._levels.pop(key, (self.most, now))
        level = min(self.most, level + (now - since) * self.rate)
        taken = level >= 1
        self._levels[key] = (level - taken, now)
        if len(self._levels) > MOST_KEYS:
            del self._levels[next(iter(self._levels))]
        return 0.0 if taken else (1 - level) / self.rate


@dataclass(slots=True)
class RequestInfo:
    """A request, from its first line to the end of its response."""

    id: str
    """In the log, and in the header X-Request-ID of the response."""
    address: str
    token: int | None = None
    """Number of the token, once it is known."""
    key: int | str | None = None
    """Under which the request is counted among those at once."""
    stream: bool = False


def get_info(scope: Scope) -> RequestInfo:
    """Return what the middleware knows of a request."""
    info: RequestInfo = scope["request_info"]
    return info


class Limits:
    """Who may come in now. Used in the event loop's thread alone."""

    def __init__(
        self,
        limit_config: LimitConfig,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_config = limit_config
        self._known = Buckets(limit_config.rate, limit_config.burst, clock)
        self._strangers = Buckets(limit_config.stranger_rate, limit_config.stranger_burst, clock)
        self._wrong = Buckets(limit_config.stranger_rate, limit_config.stranger_burst, clock)
        self._calls = 0
        self._streams = 0
        self._each = Counter[int | str]()
        self._streams_each = Counter[int | str]()
        self._forms = Counter[str]()
        metrics.watch(
            "discreet_requests_under_way", "Calls that are served now.", lambda: self._calls
        )
        metrics.watch("discreet_streams", "Streams of events that are open.", lambda: self._streams)

    def enter(self) -> None:
        """Count a request; refuse it if there are too many in all."""
        if self._calls >= self.limit_config.calls:
            raise TooManyError("the service is too busy now: try again in a second", 503, 1)
        self._calls += 1

    def admit(self, scope: Scope, token: Token | None, is_wrong: bool = False) -> None:
        """Count a call for the holder of its token, or for its address if it has none
        or a wrong one; refuse it if that caller makes too many. Wrong secrets are
        counted apart: those of one caller keep nobody else at its address out.
        """
        info: RequestInfo = scope["request_info"]
        info.token = None if token is None else token.number
        key = info.address if token is None else token.number
        strangers = self._wrong if is_wrong else self._strangers
        buckets = strangers if token is None else self._known
        if seconds := buckets.take(key):
            words = f"this is more than {buckets.rate:g} calls per second"
            if token is None:
                words += " with a wrong token" if is_wrong else " without a token"
            raise TooManyError(f"{words}: try again a little later", 429, math.ceil(seconds))
        if token is not None:
            if self._each[key] >= self.limit_config.each:
                raise TooManyError(
                    f"this token already has {self.limit_config.each} calls in progress: wait for "
                    "their answers",
                    *(503, 1),
                )
            info.key = key
            self._each[key] += 1

    @contextmanager
    def reading_form(self, scope: Scope, token: Token | None) -> Iterator[None]:
        """Count a form of an address without a login while its body is read."""
        address = get_info(scope).address
        if token is not None:
            yield
            return
        if self._forms[address] >= self.limit_config.forms_each:
            raise TooManyError("too many forms come from your address: try again soon", 503, 1)
        self._forms[address] += 1
        try:
            yield
        finally:
            self._forms[address] -= 1
            if not self._forms[address]:
                del self._forms[address]

    def begin_stream(self, scope: Scope) -> None:
        """The call becomes a stream: it is counted among these from now on."""
        info = get_info(scope)
        key = info.address if info.token is None else info.token
        each = self._streams_each[key] >= self.limit_config.streams_each
        if each or self._streams >= self.limit_config.streams:
            raise TooManyError("too many streams are open: try again later", 503, 60)
        self.leave(info)
        info.stream, info.key = True, key
        self._streams += 1
        self._streams_each[key] += 1

    def leave(self, info: RequestInfo) -> None:
        """Count a request no more."""
        counter = self._streams_each if info.stream else self._each
        if info.key is not None:
            counter[info.key] -= 1
            if not counter[info.key]:
                del counter[info.key]
            info.key = None
        if info.stream:
            self._streams -= 1
        else:
            self._calls -= 1


def address_of(scope: Scope) -> str:
    """Who calls, without a token: the address; of IPv6 the network, since whoever has
    one address has all of that.
    """
    client = scope.get("client")
    return _network(str(client[0])) if client else ""


@lru_cache(MOST_KEYS)
def _network(host: str) -> str:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    if found.version == 4:
        return host
    if found.ipv4_mapped is not None:  # of a server that listens for both
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
