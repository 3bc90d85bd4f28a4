"""Tokens: made, shown, found again by their hash, and logins of browsers made of
them.
"""

import base64
import hashlib
import hmac
import secrets
import threading
import time
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.service.access import OPERATOR, PARTICIPANT, ROLES, SITE
from discreet.service.once import Once
from discreet.trials.again import ANOTHER
from discreet.trials.names import LONGEST_NAME, check_place, plain_name, writable
from discreet.trials.protocol import Protocol
from discreet.trials.status import Status
from discreet.trials.store.doors import Doors, Token
from discreet.validate import quoted

PREFIX = "discreet_"
"""What a token begins with, so that it is recognised where it should not be."""
BYTES = 32
REMEMBERED = 1.0
"""Seconds for which a token that was found is not looked up again: so long may one that
was revoked on another server still be taken here.
"""
USED = 60.0
"""Seconds after which the last use of a token is noted again."""
LOGIN = 12 * 3600.0
"""Seconds for which a browser stays logged in."""
GONE = (
    "what this request made has been revoked or has expired since then: for another one, make a "
    "new request. Nothing was changed"
)


def secret_of(bits: bytes) -> str:
    """A token, of its bits."""
    return PREFIX + base64.urlsafe_b64encode(bits).rstrip(b"=").decode()


def new_secret() -> str:
    """A token: 256 random bits."""
    return secret_of(secrets.token_bytes(BYTES))


def hash_of(secret: str) -> bytes:
    """What is kept of it."""
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def form_key(login: str) -> str:
    """What a form of a logged-in browser must carry, so that no other page can send
    one: it follows from the login, and does not tell it.
    """
    return hmac.digest(login.encode(errors="replace"), b"forms", "sha256").hex()


class Wish(NamedTuple):
    """A token that somebody wants."""

    name: str
    role: str
    made_by: str
    trial: str | None = None
    site: str | None = None
    days: float | None = None
    person: str | None = None


class Made(NamedTuple):
    """A token that was made."""

    secret: str
    token: Token
    new: bool
    """Whether it was made just now, and not when this was asked for before."""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Made({self.token!r}, new={self.new})"


class _Found(NamedTuple):
    token: Token | None
    until: float


class Tokens:
    """The tokens of a service."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self._lock = threading.Lock()
        self._known: dict[bytes, _Found] = {}
        self._noted: dict[int, float] = {}

    def make(
        self,
        name: str,
        role: str,
        made_by: str,
        trial: str | None = None,
        site: str | None = None,
        days: float | None = None,
        person: str | None = None,
    ) -> tuple[str, Token]:
        """A new token, and its secret, which is shown now and never again."""
        made = self.make_once(Wish(name, role, made_by, trial, site, days, person))
        return made.secret, made.token

    def make_once(self, wish: Wish, once: Once | None = None) -> Made:
        """A token, and its secret; the same, for a day, for a request that is made
        again.
        """
        wish = _checked(wish)
        bare = self._bare(wish)
        if once is None:
            secret = new_secret()
            return Made(secret, self.doors.add(hash_of(secret), bare), True)

        def hash_with(salt: bytes) -> bytes:
            return hash_of(secret_of(once.secret(salt)))

        said = once.said(wish)
        kept = self.doors.add_once(once.hash, said, hash_with, bare)
        if kept.said != said:
            raise InvalidInputError(ANOTHER)
        if not kept.new and not kept.token.valid(self.doors.now()):
            raise InvalidInputError(GONE)
        return Made(secret_of(once.secret(kept.salt)), kept.token, kept.new)

    def _bare(self, wish: Wish) -> Token:
        """The token before it has a number."""
        name, role, made_by, trial, site, days, person = wish
        expires = None if days is None else self.doors.now() + 86_400 * days
        return Token(0, name, role, trial, site, person, 0, made_by, expires, None, None)

    def first(self) -> str | None:
        """An operator's token for a service that has none that works; else nothing."""
        now = self.doors.now()
        if any(token.role == OPERATOR and token.valid(now) for token in self.doors.all()):
            return None
        return self.make("first operator", OPERATOR, "discreet serve")[0]

    def find(self, secret: str) -> Token | None:
        """The token of a secret, if it works now."""
        return self._find(hash_of(secret), self.doors.by_hash)

    def remembered(self, secret: str) -> Token | None:
        """The same, if it was found a moment ago, without a look at the database."""
        with self._lock:
            known = self._known.get(hash_of(secret))
        fresh = known is not None and known.until >= time.monotonic()
        return known.token if fresh and known is not None else None

    def find_login(self, login: str) -> Token | None:
        """The same of the login of a browser."""
        return self._find(hash_of(login), self.doors.by_login)

    def revoke(self, number: int, by: str) -> bool:
        """Make a token of no use; false if there is none of this number."""
        try:
            return self.doors.revoke(number, by)
        finally:
            with self._lock:
                self._known.clear()

    def log_in(self, token: Token) -> str:
        """A login for a browser, of a token."""
        login = secrets.token_urlsafe(BYTES)
        self.doors.log_in(hash_of(login), token.number, LOGIN)
        return login

    def log_out(self, login: str) -> None:
        """Forget it."""
        self.doors.log_out(hash_of(login))
        with self._lock:
            self._known.clear()

    def _find(self, hash: bytes, look: Any) -> Token | None:
        with self._lock:
            known = self._known.get(hash)
        if known is None or known.until < time.monotonic():
            found = look(hash)
            if found is not None and not found.valid(self.doors.now()):
                found = None
            known = _Found(found, time.monotonic() + REMEMBERED)
            with self._lock:
                if len(self._known) > 10_000:
                    self._known.clear()
                if found is not None:
                    self._known[hash] = known
        if known.token is not None:
            self._note(known.token.number)
        return known.token

    def _note(self, number: int) -> None:
        """Note the last use, now and then."""
        now = time.monotonic()
        with self._lock:
            if now - self._noted.get(number, -USED) < USED:
                return
            self._noted[number] = now
        self.doors.touch(number)


def _checked(wish: Wish) -> Wish:
    """A wish as it is kept; refuses what makes no sense."""
    called, role, person = plain_name("the name of a token", wish.name), wish.role, wish.person
    if not writable(called) or len(called) > LONGEST_NAME:
        raise InvalidInputError(f"name must be a text of 1 to {LONGEST_NAME} characters")
    if role not in ROLES:
        raise InvalidInputError(f"role must be one of {', '.join(ROLES)}; got {quoted(role)}")
    if (wish.site is not None) != (role == SITE) and role != PARTICIPANT:
        raise InvalidInputError("a token of the role site must name a site, and no other token may")
    if role in (SITE, PARTICIPANT) and wish.trial is None:
        raise InvalidInputError(f"a token of the role {role} must name a trial")
    if (person is not None) != (role == PARTICIPANT):
        raise InvalidInputError(
            "a token of the role participant is for one assignment, and no other token is: "
            "invite the person"
        )
    days = None if wish.days is None else _days(wish.days)
    return wish._replace(name=called, site=check_place(wish.site), days=days)


def check_site(protocol: Protocol, status: Status, site: str | None) -> None:
    """Refuse a site that a trial with named sites does not have."""
    if site is None or protocol.sites is None:
        return
    sites = [one.name for one in status.sites]
    if site not in sites:
        raise InvalidInputError(
            f"this trial has no site {quoted(site)}; its sites: {', '.join(sites)}. Another one "
            "can be opened under Operate, or with discreet trial operate"
        )


def _days(days: Any) -> float:
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not 0 < days <= 3660:
        raise InvalidInputError(
            "days must be a positive number, at most 3660; leave it out for a token that does not "
            "expire"
        )
    return float(days)
