"""Requests that make a token once, although its secret is stored nowhere.

The secret is drawn from two things that nobody else has together: what the caller logs
in with, and a salt that the database keeps for a day. So whoever repeats a request is
given the same secret, neither the database nor a stolen login tells it alone, and when
the salt is deleted nobody can draw it again.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from discreet.trials.protocol import canonical


@dataclass(frozen=True)
class Once:
    """A request that makes a token once."""

    _seed: bytes = field(repr=False)
    """Of which all else is drawn; it tells nothing of the caller's own secret, which
    goes no further than to `of`.
    """

    @classmethod
    def of(cls, caller: str, key: str) -> "Once":
        """The request of whoever has a secret (a token, or the login of a browser),
        under a key of its own. (What forms carry is drawn from a login too: the first
        word keeps the two apart.)
        """
        about = f"once\0{key}".encode(errors="replace")
        return cls(hmac.digest(caller.encode(errors="replace"), about, "sha256"))

    @property
    def hash(self) -> bytes:
        """By which the database knows it."""
        return self._drawn(b"hash")

    def about(self, what: str) -> bytes:
        """By which it knows one that makes no token, but does this."""
        return self._drawn(b"about " + what.encode(errors="replace"))

    def said(self, wish: Sequence[str | float | None]) -> bytes:
        """What it asks for, as the database keeps it: only the caller can compare."""
        return self._drawn(b"said " + canonical(list(wish)).encode())

    def secret(self, salt: bytes) -> bytes:
        """The bits of the secret."""
        return self._drawn(b"secret " + salt)

    def _drawn(self, about: bytes) -> bytes:
        return hmac.digest(self._seed, about, "sha256")
