"""Who may do what: roles, what each may do, and where a caller's reach ends.

This table is the one in docs/service.md, and the test that runs it.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from discreet.errors import InvalidInputError, RefusedError
from discreet.trials.names import (
    MAX_NAME_LENGTH,
    is_writable,
    normalize_name,
    read_site,
    unquote_name,
)
from discreet.trials.protocol import Protocol
from discreet.trials.status import Status
from discreet.trials.store.tokens import Token, TokenTable
from discreet.trials.verbs import MANAGER, MONITOR, PARTICIPANT, ROLES, SITE, STAFF, VERBS
from discreet.validation import quote

if TYPE_CHECKING:
    from discreet.service.state import AppState


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


REMEMBERED = 1.0
"""Seconds for which a token that was found is not looked up again: so long may one that
was revoked on another server still be taken here.
"""
USED = 60.0
"""Seconds after which the last use of a token is noted again."""
LOGIN_SECONDS = 12 * 3600.0
"""How long a browser stays logged in."""
CODE_MINUTES = 15
"""How long a login link works."""


class _Found(NamedTuple):
    token: Token
    until: float


class TokenStore:
    """The tokens of a service."""

    def __init__(self, token_table: TokenTable) -> None:
        self.token_table = token_table
        self._lock = threading.Lock()
        self._known: dict[bytes, _Found] = {}
        """Tokens found a moment ago, by the hash of their secret: hashes of different
        kinds never meet, since each kind has a hash domain of its own.
        """
        self._noted: dict[int, float] = {}

    def make(
        self,
        name: str,
        role: str,
        made_by: str,
        trial: str | None = None,
        site: str | None = None,
        days: float | None = None,
        participant: str | None = None,
    ) -> tuple[str, Token]:
        """Make a token, or the invitation of a participant. Return its secret, which is
        stored nowhere, and the token.
        """
        name = _check_name(name)
        _check_scope(role, trial, site, participant)
        site = read_site(site)
        expires = None if days is None else self.token_table.now() + 86_400 * _check_days(days)
        kind = SecretKind.INVITATION if role == PARTICIPANT else SecretKind.TOKEN
        secret = new_secret(kind)
        new = Token(0, name, role, trial, site, participant, 0, made_by, expires, None, None)
        return secret, self.token_table.add(hash_secret(kind, secret), new)

    def make_first(self) -> tuple[str, Token] | None:
        """Make a manager's token for a service that never had one; else None. It is
        printed, and what a service prints is often kept in a log: a later start, when
        all have expired, must not make another one unasked.
        """
        if any(token.role == MANAGER for token in self.token_table.list_all()):
            return None
        return self.make("first manager", MANAGER, "discreet serve")

    def revoke(self, number: int, by: str) -> bool:
        """Revoke a token, its logins and its login links; return whether there is one
        of this number.
        """
        try:
            return self.token_table.revoke(number, by)
        finally:
            self._forget_found()

    # --- who holds a secret -----------------------------------------------------------

    def find_token(self, secret: str) -> Token | None:
        """Return the token that a program or a member of staff holds, if it works."""
        return self._find(SecretKind.TOKEN, secret, self.token_table.find)

    def find_invitation(self, secret: str) -> Token | None:
        """Return the invitation that a participant holds, if it works."""
        return self._find(SecretKind.INVITATION, secret, self.token_table.find)

    def find_login(self, login: str) -> Token | None:
        """Return the token that a browser has logged in with, if it works."""
        return self._find(SecretKind.LOGIN, login, self.token_table.find_login)

    def find_code(self, code: str) -> Token | None:
        """Return the token that a login code stands for, if the code can be used. The
        code stays unused.
        """
        if not is_kind(SecretKind.LOGIN_CODE, code):
            return None
        token = self.token_table.find_code(hash_secret(SecretKind.LOGIN_CODE, code))
        return token if token is not None and token.is_valid(self.token_table.now()) else None

    def find_recent(self, secret: str) -> Token | None:
        """Return the token of a secret if it was found a moment ago, without reading
        the database.
        """
        with self._lock:
            known = self._known.get(hash_secret(SecretKind.TOKEN, secret))
        return known.token if known is not None and known.until >= time.monotonic() else None

    # --- logins -----------------------------------------------------------------------

    def log_in(self, token: Token) -> str:
        """Make a login for a browser."""
        login = new_secret(SecretKind.LOGIN)
        self.token_table.log_in(hash_secret(SecretKind.LOGIN, login), token.number, LOGIN_SECONDS)
        return login

    def log_out(self, login: str) -> None:
        """End a login."""
        self.token_table.log_out(hash_secret(SecretKind.LOGIN, login))
        self._forget_found()

    def make_code(self, token: Token, by: str | None = None) -> str:
        """Make a one-time login code. If somebody else (`by`) makes it for the holder
        of the token, the audit trail says so.
        """
        code = new_secret(SecretKind.LOGIN_CODE)
        self.token_table.add_code(
            hash_secret(SecretKind.LOGIN_CODE, code), token, 60 * CODE_MINUTES, by
        )
        return code

    def use_code(self, code: str) -> bool:
        """Use up a login code; return whether this call was the first to use it."""
        return self.token_table.use_code(hash_secret(SecretKind.LOGIN_CODE, code))

    # --- how --------------------------------------------------------------------------

    def _find(
        self, kind: SecretKind, secret: str, look_up: Callable[[bytes], Token | None]
    ) -> Token | None:
        """Return the token that a secret of one kind stands for, if it works now."""
        if not is_kind(kind, secret):
            return None
        hash = hash_secret(kind, secret)
        with self._lock:
            known = self._known.get(hash)
        if known is None or known.until < time.monotonic():
            token = look_up(hash)
            if token is None or not token.is_valid(self.token_table.now()):
                return None
            known = _Found(token, time.monotonic() + REMEMBERED)
            with self._lock:
                if len(self._known) > 10_000:
                    self._known.clear()
                self._known[hash] = known
        self._note(known.token.number)
        return known.token

    def _forget_found(self) -> None:
        with self._lock:
            self._known.clear()

    def _note(self, number: int) -> None:
        """Note the last use, at most once a minute."""
        now = time.monotonic()
        with self._lock:
            if now - self._noted.get(number, -USED) < USED:
                return
            self._noted[number] = now
        self.token_table.note_use(number)


def _check_name(name: str) -> str:
    """Return the name of a token as it is stored."""
    name = normalize_name("the name of a token", name)
    if not is_writable(name) or len(name) > MAX_NAME_LENGTH:
        raise InvalidInputError(f"name must be a text of 1 to {MAX_NAME_LENGTH} characters")
    return name


def _check_scope(role: str, trial: str | None, site: str | None, participant: str | None) -> None:
    """Refuse a role with a reach that it cannot have."""
    if role not in ROLES:
        raise InvalidInputError(f"role must be one of {', '.join(ROLES)}; got {quote(role)}")
    if (site is not None) != (role == SITE) and role != PARTICIPANT:
        raise InvalidInputError("a token of the role site must name a site, and no other token may")
    if role in (SITE, PARTICIPANT) and trial is None:
        raise InvalidInputError(f"a token of the role {role} must name a trial")
    if (participant is not None) != (role == PARTICIPANT):
        raise InvalidInputError(
            "a token of the role participant is for one assignment, and no other token is: "
            "invite the participant"
        )


def check_site(protocol: Protocol, status: Status, site: str | None) -> None:
    """Refuse a site that a trial with named sites does not have."""
    if site is None or protocol.sites is None:
        return
    sites = [one.name for one in status.sites]
    if site not in sites:
        raise InvalidInputError(
            f"this trial has no site {quote(site)}; its sites: {', '.join(sites)}. Another one "
            "can be opened under Manage, or with discreet trial manage"
        )


def _check_days(days: Any) -> float:
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not 0 < days <= 3660:
        raise InvalidInputError(
            "days must be a positive number, at most 3660; leave it out for a token that does not "
            "expire"
        )
    return float(days)


ANYONE = "anyone"
"""The role of callers without a token."""
READERS = frozenset({MANAGER, SITE, MONITOR})
ACTIONS: dict[str, frozenset[str]] = {
    **{verb.name: verb.roles for verb in VERBS},
    "list": READERS,
    "status": READERS,
    "protocol": READERS,
    "events": READERS,
    "transcript": frozenset({MANAGER, MONITOR}),
    "report": frozenset({MANAGER, MONITOR}),
    "verify": frozenset({MANAGER, MONITOR}),
    "invite": STAFF,
    "create": frozenset({MANAGER}),
    "plan": frozenset({MANAGER}),
    "audit-trail": frozenset({MANAGER}),
    "publish": frozenset({MANAGER}),
    "tokens": frozenset({MANAGER}),
}
"""Roles that may do something. What is not here, nobody may."""
PUBLIC = frozenset({"status", "protocol", "transcript", "report", "verify", "events"})
"""What anyone may do with a trial that was published."""
WHOLE = frozenset({"create", "plan"})
"""What is not about one trial: for managers of all of them."""
WRONG = "this token is unknown here, was revoked, or has expired: ask a manager for another one"


class NotHereError(InvalidInputError):
    """Something that a path names and that is not there."""


@dataclass(frozen=True)
class Principal:
    """Whoever makes a call, by the token it has; None: anyone."""

    token: Token | None = None
    wrong: bool = False
    """Whether it has sent one that does not work: it is told so, whatever it calls. (A
    browser whose login has expired has sent none.)
    """

    @property
    def role(self) -> str:
        """What it is."""
        return ANYONE if self.token is None else self.token.role

    @property
    def who(self) -> str:
        """What the audit trail calls it."""
        return ANYONE if self.token is None else self.token.name

    @property
    def site(self) -> str | None:
        """The site it is bound to."""
        return None if self.token is None else self.token.site

    def sees(self, trial: str) -> bool:
        """Whether a trial is within its reach."""
        return self.token is not None and self.token.trial in (None, trial)

    def may(self, action: str, trial: str | None, published: bool = False) -> bool:
        """Whether it may do something, to a trial or to all of them."""
        if self.wrong:
            return False
        if published and action in PUBLIC:
            return True
        if self.token is None or self.role not in ACTIONS.get(action, ()):
            return False
        if action in WHOLE:
            return self.token.trial is None
        return trial is None or self.token.trial in (None, trial)

    def check(self, action: str, trial: str | None, published: bool = False) -> None:
        """Refuse what it may not do. That a trial is there, nobody learns from it."""
        if self.may(action, trial, published):
            return
        if self.token is None:
            needed = "this needs a token: log in, or send it as a bearer token"
            raise RefusedError(WRONG if self.wrong else needed, False)
        if trial is not None and not self.sees(trial):
            raise RefusedError("this token is not for this trial", True)
        raise RefusedError(f"a token of the role {self.role} does not let you do this", True)


# --- who calls, and what it asks for -------------------------------------------------

KEY = "idempotency-key"


def trial_in_path(request: Request) -> str:
    """Return the name of the trial in the path, or an empty text."""
    try:
        return unquote_name(request.path_params.get("name", ""))
    except UnicodeDecodeError:
        raise HTTPException(404) from None


def bearer_of(request: Request) -> str:
    """The secret that a caller sends, or an empty one."""
    kind, _, said = request.headers.get("authorization", "").partition(" ")
    return said.strip() if kind.lower() == "bearer" else ""


async def authenticate(app_state: "AppState", request: Request) -> Principal:
    """Whoever calls, by its bearer token; one that is wrong may do nothing, not even
    what anyone may.
    """
    secret = bearer_of(request)
    token = app_state.tokens.find_recent(secret) if secret else None
    if secret and token is None:
        token = await app_state.token_of(secret)
    is_wrong = bool(secret) and token is None
    app_state.limits.admit(request.scope, token, is_wrong)
    return Principal(token, wrong=is_wrong)


def key_of(request: Request) -> str | None:
    """The caller's own key of a request."""
    key = request.headers.get(KEY)
    if key is not None and (not key.strip() or len(key) > MAX_NAME_LENGTH):
        raise InvalidInputError(
            f"the Idempotency-Key must be a text of your own, of at most {MAX_NAME_LENGTH} "
            "characters, a different one for each request"
        )
    return key


def request_key(request: Request, principal: Principal) -> str | None:
    """The store's key of a request: the caller's own, apart from those of callers from
    elsewhere.
    """
    key = key_of(request)
    return None if key is None else scoped_key(key, principal)


def scoped_key(key: str, principal: Principal) -> str:
    """Return the key of a principal as it is stored: a hash in which role, site and key,
    of which the first two have no line breaks, cannot be taken for each other.
    """
    scope = f"{principal.role}\n{principal.site or ''}\n{key}"
    return hashlib.sha256(scope.encode()).hexdigest()


async def check(app_state: "AppState", principal: Principal, action: str, name: str) -> None:
    """Refuse what the principal may not do."""
    if principal.may(action, name or None):
        return
    published = bool(name) and await app_state.run(app_state.published, name)
    principal.check(action, name or None, published)
