"""What the API takes and gives, as typed structures. What it gives of a trial is what
the library gives (`trials.status`), field by field.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from discreet.trials.status import Status
from discreet.trials.store.doors import Token
from discreet.trials.verbs import Body, Text


class NewTrial(Body):
    """A trial to be started: the protocol, field by field, as for `Trial.create`."""

    name: Text
    arms: list[Text]
    max_people: int
    strategy: dict[Text, Any]
    """A strategy, as `Strategy.to_dict` describes it; or `name` with what its preset
    takes, such as {"name": "bet-se", "delta": 0.05, "epsilon": 1}.
    """
    retain: Text = "until-release"
    range: tuple[float, float] = (0.0, 1.0)
    direction: Text = "max"
    outside: Text = "refuse"
    dealing: Text | None = None
    sites: list[Text] | None = None
    deadline: float | None = None
    release: Text = "complete"
    enrolment: Text = "waiting"
    people: Text = "anonymous"
    blinding: Text = "none"
    question: Text = ""


class Invite(Body):
    """Who is to answer, and for how many days the link is good."""

    id: Text
    days: float = 7.0


class Invited(msgspec.Struct):
    """An invitation: the link is shown here and nowhere else."""

    link: str
    """A path of this service. What stands behind the # is a secret."""
    token: Token


class NewToken(Body):
    """A token to be made."""

    name: Text
    role: Text
    trial: Text | None = None
    site: Text | None = None
    days: float | None = None


class Opened(msgspec.Struct):
    """A trial, for whoever comes back to it."""

    protocol: dict[str, Any]
    """As it was written down."""
    protocol_hash: str
    head: str
    user: str
    """The caller's name in the audit trail."""
    role: str
    site: str | None


class Warned(msgspec.Struct):
    """A warning of the library, such as `RoundedWarning`, and what it says."""

    kind: str
    words: str


@dataclass(frozen=True)
class Started(Status):
    """A trial that was started, and what its manager should know of it."""

    warnings: tuple[Warned, ...] = ()


class MadeToken(msgspec.Struct):
    """A token that was made: the secret is shown here and nowhere else."""

    secret: str
    token: Token


class Verified(msgspec.Struct):
    """What a verification found."""

    intact: bool
    events: int
    head: str
    problems: tuple[str, ...]


class Published(msgspec.Struct):
    """Whether anyone may see a trial."""

    published: bool


class AuditRow(msgspec.Struct):
    """An entry of the audit trail (`trials.status.AuditEntry`)."""

    entry: int
    at: float
    user: str
    site: str | None
    action: str
    participants: int
