"""Who may do what: roles, what each may do, and where a caller's reach ends.

This table is the one in docs/service.md, and the test that runs it.
"""

from dataclasses import dataclass

from discreet.errors import InvalidInputError, RefusedError
from discreet.trials.store.doors import Token
from discreet.trials.verbs import MANAGER, MONITOR, SITE, STAFF, VERBS

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
class Visitor:
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
