"""Connections to a service, and who runs the steps of a call: with `await`, or without.
The keeper of httpx.
"""

import asyncio
import os
import ssl
import time
import weakref
from typing import Any, TypeVar

from discreet.errors import InvalidInputError, MissingExtraError
from discreet.remote.address import Way
from discreet.remote.steps import Got, Lost, Send, Steps, Wait
from discreet.validate import named
from discreet.version import __version__

try:
    import httpx
except ImportError:
    raise MissingExtraError(
        'trials on another machine need httpx: pip install "discreet[remote]"'
    ) from None

Found = TypeVar("Found")
CONNECT, READ, SLOW = 5.0, 30.0, 600.0
"""Seconds to connect, to wait for an answer, and for one that takes long to make."""
AGENT = f"discreet/{__version__}"


def _options(way: Way) -> dict[str, Any]:
    """How to connect: certificates are always checked, and no other address is
    followed, nor a proxy where nothing is encrypted: the token would go there.
    """
    return {
        "base_url": way.base,
        "verify": True if way.ca is None else _trusting(way.ca),
        "timeout": httpx.Timeout(READ, connect=CONNECT, pool=None),
        "follow_redirects": False,
        "trust_env": not way.plain,
        "headers": {"user-agent": AGENT},
    }


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError:
        raise InvalidInputError(
            f"{named(ca)} contains no certificates of authorities: give ca a file that does"
        ) from None


def _timeout(step: Send) -> httpx.Timeout:
    return httpx.Timeout(SLOW if step.slow else READ, connect=CONNECT, pool=None)


def _got(answer: httpx.Response) -> Got:
    return Got(answer.status_code, answer.headers, answer.content)


def _lost(error: httpx.HTTPError | httpx.InvalidURL) -> Lost:
    """Why there is no answer; of a connection that was not made nothing was done."""
    if _certificate(error):
        return Lost(
            "its certificate cannot be trusted: in Python give ca the file of its authority, "
            "elsewhere name that file in SSL_CERT_FILE",
            *NEVER,
        )
    connecting = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    if connecting or isinstance(error, httpx.ProxyError):
        return Lost(
            "it cannot be reached: check the address, and whether the service is running",
            False,
            True,
        )
    if isinstance(error, httpx.TimeoutException):
        return Lost("its answer takes too long", True, True)
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
        return Lost("the connection was lost before its answer came", True, True)
    return Lost("the request cannot be sent: check the address", *NEVER)


NEVER = (False, False)
"""Nothing was done, and nothing will be."""


def _certificate(error: BaseException | None) -> bool:
    """Whether it was the certificate that was refused."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


class Line:
    """Connections that are used without `await`, by any number of threads."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._client: httpx.Client | None = None
        self._process = 0
        self._options = _options(way)

    def run(self, steps: Steps[Found]) -> Found:
        """Do the steps of a call."""
        found: Any = None
        while True:
            try:
                step = steps.send(found)
            except StopIteration as end:
                result: Found = end.value
                return result
            if isinstance(step, Send):
                found = self._send(step)
            elif isinstance(step, Wait):
                time.sleep(step.seconds)
            else:
                found = step.do()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _send(self, step: Send) -> Got | Lost:
        if self._client is None or self._process != os.getpid():  # nothing outlives a fork
            self._client, self._process = httpx.Client(**self._options), os.getpid()
            weakref.finalize(self, self._client.close)
        try:
            return _got(
                self._client.request(
                    step.method,
                    step.path,
                    content=step.body,
                    headers=step.headers,
                    timeout=_timeout(step),
                )
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _lost(error)


class AsyncLine:
    """The same with `await`, by any number of tasks of a loop."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._options = _options(way)

    async def run(self, steps: Steps[Found]) -> Found:
        """Do the steps of a call."""
        found: Any = None
        while True:
            try:
                step = steps.send(found)
            except StopIteration as end:
                result: Found = end.value
                return result
            if isinstance(step, Send):
                found = await self._send(step)
            elif isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            else:
                found = await asyncio.to_thread(step.do)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _send(self, step: Send) -> Got | Lost:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = httpx.AsyncClient(**self._options), loop
        try:
            answer = await self._client.request(
                step.method,
                step.path,
                content=step.body,
                headers=step.headers,
                timeout=_timeout(step),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _lost(error)
        return _got(answer)
