"""Requests to a service, repeated while no answer comes. The one importer of httpx."""

import hashlib
import json
import os
import random
import re
import secrets
import ssl
import time
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from discreet.client.address import TOKEN, TOKEN_FILE, ServiceAddress
from discreet.errors import (
    DiscreetError,
    InvalidInputError,
    MissingExtraError,
    RefusedError,
    StoreError,
    TamperedError,
)
from discreet.validation import name_path
from discreet.version import __version__

try:
    import httpx
except ImportError:
    raise MissingExtraError(
        'trials on another machine need httpx: pip install "discreet[remote]"'
    ) from None

PREFIX = "/api/v1"
HEAD, KEY = "discreet-head", "idempotency-key"
RETRY_STATUSES = frozenset({429, 502, 503, 504})
"""Status codes after which the same request is sent again."""
MIN_PAUSE, MAX_PAUSE = 0.1, 8.0
UNKNOWN_SERVICE_SECONDS = 5.0
"""Seconds for which a service that has never answered is tried: its address may be
wrong.
"""
MAX_DETAIL_LENGTH = 4000
"""Characters of a service's sentence that are repeated."""
CONNECT, READ, SLOW = 5.0, 30.0, 600.0
"""Seconds to connect, to wait for an answer, and for one that takes long to make."""
AGENT = f"discreet/{__version__}"


class ApiRequest(NamedTuple):
    """A request to the API."""

    method: str
    path: str
    body: Any = None
    """Plain types, sent as JSON."""
    key: str | None = None
    """The caller's idempotency key; None: each POST gets one of its own."""
    once: bool = True
    """True if the service does requests with one key only once."""
    known: str | None = None
    """A head that the record of the service must have."""
    slow: bool = False
    """True if the answer may take minutes to be made."""


class HttpResponse(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(NamedTuple):
    """No answer, and why."""

    why: str
    reached: bool
    """True if the service may have received the request."""
    again: bool
    """True if it may help to try again."""


NEVER = (False, False)
"""Nothing was done, and nothing will be."""


class HttpClient:
    """Connections to a service, which any number of threads may use."""

    def __init__(self, way: ServiceAddress) -> None:
        self.address = way
        self._client: httpx.Client | None = None
        self._process = 0
        self._options = _options(way)
        self._answered = False
        """True once the service has answered."""

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def call(self, request: ApiRequest) -> HttpResponse:
        """Send a request until it is answered, and return the answer; raise the error
        that it tells.
        """
        key = secrets.token_hex(16) if request.key is None else request.key
        headers = {"accept": "application/json, */*;q=0.5"}
        if self.address.token is not None:
            headers["authorization"] = f"Bearer {self.address.token}"
        if request.method == "POST" or request.key is not None:
            headers[KEY] = encode_key(key)
        if request.known is not None:
            headers[HEAD] = request.known
        content = None
        if request.body is not None:
            content = json.dumps(request.body, allow_nan=False).encode()
            headers["content-type"] = "application/json"
        advice = _advice(request, key)
        got = self._repeat(request, headers, content, advice)
        if got.status != 200:
            raise make_error(self.address, got, advice)
        return got

    def _repeat(
        self, request: ApiRequest, headers: dict[str, str], content: bytes | None, advice: str
    ) -> HttpResponse:
        """Send the same request until there is an answer, or patience ends."""
        start, tries, reached = time.monotonic(), 0, False
        while True:
            got = self._send(request, headers, content)
            if isinstance(got, HttpResponse):
                self._answered = True
                if got.status not in RETRY_STATUSES:
                    return got
            reached = reached or (got.reached if isinstance(got, NoAnswer) else got.status != 429)
            patience = self.address.patience
            if not self._answered:
                patience = min(patience, UNKNOWN_SERVICE_SECONDS)
            pause = _pause(tries, got)
            late = time.monotonic() + pause > start + patience
            in_vain = isinstance(got, NoAnswer) and not got.again
            if late or in_vain:
                nothing = "Nothing was done" if in_vain else "Nothing was done: try again later"
                raise StoreError(
                    f"{self.address.base}: {_why(got)}. {advice if reached else nothing}"
                )
            time.sleep(pause)
            tries += 1

    def _send(
        self, request: ApiRequest, headers: dict[str, str], content: bytes | None
    ) -> HttpResponse | NoAnswer:
        """Send a request once."""
        if self._client is None or self._process != os.getpid():  # nothing outlives a fork
            self._client, self._process = httpx.Client(**self._options), os.getpid()
            weakref.finalize(self, self._client.close)
        path, timeout = f"{PREFIX}{request.path}", _timeout(request.slow)
        try:
            answer = self._client.request(
                request.method, path, content=content, headers=headers, timeout=timeout
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _lost(error)
        return HttpResponse(answer.status_code, answer.headers, answer.content)


def encode_key(key: str) -> str:
    """Return a caller's key as a header can carry it."""
    if re.fullmatch(r"[!-~]{1,200}", key):
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def _advice(request: ApiRequest, key: str) -> str:
    """Say what to do if nobody knows whether a request was done."""
    if request.method == "GET":
        return "Nothing was changed: try again"
    unknown = "It is not known whether this was done: repeat it"
    return f"{unknown} with key={key!r}; it will be done only once" if request.once else unknown


def _pause(tries: int, got: HttpResponse | NoAnswer) -> float:
    """Return how many seconds to wait: longer each time, with jitter, and not less than
    the service says.
    """
    longest = min(MIN_PAUSE * 2.0 ** min(tries, 30), MAX_PAUSE)
    usual: float = longest * random.uniform(0.5, 1.0)
    least = "" if isinstance(got, NoAnswer) else got.headers.get("retry-after", "")
    return max(usual, float(least)) if re.fullmatch(r"[0-9]{1,6}", least) else usual


def _why(got: HttpResponse | NoAnswer) -> str:
    if isinstance(got, NoAnswer):
        return got.why
    return _detail(got) or f"it answers {got.status} now"


# --- connections ----------------------------------------------------------------------


def _options(way: ServiceAddress) -> dict[str, Any]:
    """Return how to connect: certificates are always checked, and no other address is
    followed, nor a proxy where nothing is encrypted: the token would go there.
    """
    return {
        "base_url": way.base,
        "verify": True if way.ca is None else _trusting(way.ca),
        "timeout": _timeout(False),
        "follow_redirects": False,
        "trust_env": not way.is_unencrypted,
        "headers": {"user-agent": AGENT},
    }


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError:
        raise InvalidInputError(
            f"{name_path(ca)} contains no certificates of authorities: give ca a file that does"
        ) from None


def _timeout(slow: bool) -> httpx.Timeout:
    return httpx.Timeout(SLOW if slow else READ, connect=CONNECT, pool=None)


def _lost(error: httpx.HTTPError | httpx.InvalidURL) -> NoAnswer:
    """Say why there is no answer; of a connection that was not made nothing was
    done.
    """
    if _certificate(error):
        return NoAnswer(
            "its certificate cannot be trusted: in Python give ca the file of its authority, "
            "elsewhere name that file in SSL_CERT_FILE",
            *NEVER,
        )
    connecting = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    if connecting or isinstance(error, httpx.ProxyError):
        return NoAnswer(
            "it cannot be reached: check the address, and whether the service is running",
            False,
            True,
        )
    if isinstance(error, httpx.TimeoutException):
        return NoAnswer("its answer takes too long", True, True)
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
        return NoAnswer("the connection was lost before its answer came", True, True)
    return NoAnswer("the request cannot be sent: check the address", *NEVER)


def _certificate(error: BaseException | None) -> bool:
    """Return whether it was the certificate that was refused."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


# --- errors ---------------------------------------------------------------------------


def make_error(way: ServiceAddress, got: HttpResponse, advice: str) -> DiscreetError:
    """Return the error that an answer tells: that of the library, with its sentence."""
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


def _detail(got: HttpResponse) -> str | None:
    """Return the sentence of a problem document; None: it is none."""
    if not got.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        detail = json.loads(got.body)["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(detail, str):
        return None
    return "".join(one if one.isprintable() else " " for one in detail[:MAX_DETAIL_LENGTH])
