"""Certificates are read once for all clients of httpx: that takes longer than most
calls, and every client reads them anew, also for an address that needs none.
"""

import os
import ssl
from functools import lru_cache
from typing import Any

from httpx._config import create_ssl_context
from httpx._transports import default

PLACES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where the environment may say that other certificates are."""


@lru_cache(16)
def _read(verify: Any, cert: Any, trust_env: bool, *_places: str | None) -> ssl.SSLContext:
    return create_ssl_context(verify, cert, trust_env)


def shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    """What httpx would make of this, made once."""
    return _read(verify, cert, trust_env, *map(os.environ.get, PLACES))


def install() -> None:
    """For as long as this process lives."""
    vars(default)["create_ssl_context"] = shared
