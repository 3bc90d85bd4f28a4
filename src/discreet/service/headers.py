"""What every answer tells a browser."""

from collections.abc import Sequence

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


def with_headers(
    headers: Sequence[tuple[bytes, bytes]], path: bytes, encrypted: bool
) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with what is not there yet."""
    there = _NAMES.intersection([name.lower() for name, _ in headers])
    found = (
        [*headers, *(one for one in SAFE if one[0] not in there)] if there else [*headers, *SAFE]
    )
    if UNSTORED[0] not in there:
        found.append(ASKED_FOR if path.startswith(STORED) else UNSTORED)
    if encrypted:
        found.append(ENCRYPTED)
    return found
