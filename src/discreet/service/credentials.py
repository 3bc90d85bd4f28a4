"""The kinds of secrets that callers hold, and the one way each is hashed.

Every kind has a prefix and a hash domain of its own, so that a secret of one kind is
unknown wherever another kind is expected, whatever was looked up before.
"""

import hashlib
import hmac
import secrets
from enum import StrEnum

SECRET_BYTES = 32


class SecretKind(StrEnum):
    """What a secret is for."""

    TOKEN = "token"
    """Sent by programs as a bearer token, typed by staff to log in."""
    INVITATION = "invite"
    """In the link of one participant, who can answer with it and nothing else."""
    LOGIN = "login"
    """In the cookie of a browser that is logged in."""
    LOGIN_CODE = "code"
    """In a login link: exchanged once, within minutes, for a login."""

    @property
    def prefix(self) -> str:
        """Beginning of every secret of this kind, to recognise one that has leaked."""
        return f"discreet_{self.value}_"


def new_secret(kind: SecretKind) -> str:
    """Draw a secret of 256 random bits."""
    return kind.prefix + secrets.token_urlsafe(SECRET_BYTES)


def is_kind(kind: SecretKind, secret: str) -> bool:
    """Return whether a text has the form of a secret of this kind."""
    length = len(kind.prefix) + 43
    return len(secret) == length and secret.isascii() and secret.startswith(kind.prefix)


def hash_secret(kind: SecretKind, secret: str) -> bytes:
    """Return what the database stores of a secret."""
    return hashlib.sha256(f"discreet {kind.value}\0{secret}".encode()).digest()


def form_key(login: str) -> str:
    """Return what every form of a logged-in browser must carry. Pages of other sites
    cannot compute it, and it does not reveal the login.
    """
    return hmac.digest(login.encode(errors="replace"), b"forms", "sha256").hex()


def is_form_key(key: str, login: str) -> bool:
    """Return whether a form carries the key of a login."""
    return hmac.compare_digest(key.encode(errors="replace"), form_key(login).encode())
