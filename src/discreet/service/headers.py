"""What every answer tells a browser."""

from starlette.types import Message

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
SAFE: dict[bytes, bytes] = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
"""No other site learns an address of ours. (With `no-referrer` browsers would not say
that our own forms are ours.)
"""
STORED = b"/static/"
"""Where paths begin whose answers a browser may keep."""
YEAR = b"max-age=31536000"


def add_headers(message: Message, path: bytes, encrypted: bool) -> None:
    """Add to the beginning of an answer what is not there yet."""
    wanted = dict(SAFE)
    if not path.startswith(STORED):
        wanted[b"cache-control"] = b"no-store"
    if encrypted:
        wanted[b"strict-transport-security"] = YEAR
    headers = list(message.get("headers", []))
    there = {name.lower() for name, _ in headers}
    headers += [(name, value) for name, value in wanted.items() if name not in there]
    message["headers"] = headers
