"""What every answer tells a browser."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script, style or address but ours, and none that stands in a page itself."""
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Of pages that are one file, as `reports.page` makes them: their styles stand in the
page; there is no script.
"""
SAFE = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""No other site learns an address of ours. (With `no-referrer` browsers would not say
that our own forms are ours.)
"""
STORED = b"/static/"
"""Where paths begin whose answers a browser may keep, if it asks each time whether they
are still the ones: a page and its scripts belong together.
"""
UNSTORED = (b"cache-control", b"no-store")
ASKED_FOR = (b"cache-control", b"no-cache")
ENCRYPTED = (b"strict-transport-security", b"max-age=31536000")
CLOSES = (b"connection", b"close")
JSON = (b"content-type", b"application/json")
LINES = {
    pair: b"%b: %b\r\n" % pair for pair in (*SAFE, UNSTORED, ASKED_FOR, ENCRYPTED, CLOSES, JSON)
}
"""Headers that most answers have, as they are written."""
_NAMES = frozenset(name for name, _ in (*SAFE, UNSTORED))
Header = tuple[bytes, bytes]


class Added(NamedTuple):
    """What an answer is told to a browser with, beside its own headers."""

    headers: tuple[Header, ...]
    lines: bytes
    """The same, as it is written."""


def added(headers: Sequence[Header], path: bytes, encrypted: bool) -> Added:
    """What an answer with these headers has not said yet."""
    there = _NAMES.intersection([name.lower() for name, _ in headers])
    return _added(there, path.startswith(STORED), encrypted)


@lru_cache
def _added(there: frozenset[bytes], stored: bool, encrypted: bool) -> Added:
    every = (*SAFE, ASKED_FOR if stored else UNSTORED, *((ENCRYPTED,) if encrypted else ()))
    found = tuple(one for one in every if one[0] not in there)
    return Added(found, b"".join(LINES[one] for one in found))
