"""What the API takes and gives, as typed structures. What it gives of a trial is what
the library gives (`trials.status`), field by field.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from discreet.trials.status import Status
from discreet.trials.store.doors import Token

Text = Annotated[str, msgspec.Meta(max_length=2000)]
"""A name, an id, a response or a reason: a longer text is refused when it is read."""


class In(msgspec.Struct, forbid_unknown_fields=True):
    """What a request carries; a field that is not known is refused."""


class NewTrial(In):
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


class Ask(In):
    """People who are there."""

    n: int = 1
    people: list[Text] | None = None
    site: Text | None = None
    person: Text | None = None


class Tell(In):
    """Outcomes by id; null: the outcome will not come. That it is missing may be the
    outcome, so that no address or log line may tell.
    """

    outcomes: dict[Text, float | None]


class Answer(In):
    """Randomised responses by id, each as `discreet respond` writes it; null: the
    response will not come.
    """

    answers: dict[Text, Text | None]


class Amend(In):
    """An outcome in the place of another one."""

    id: Text
    outcome: float


class About(In):
    """One assignment."""

    id: Text


class Unblind(In):
    """Whose arm must be known now, and why."""

    id: Text
    reason: Text


class Invite(In):
    """Who is to answer, and for how many days the link is good."""

    id: Text
    days: float = 7.0


class Invited(msgspec.Struct):
    """An invitation: the link is shown here and nowhere else."""

    link: str
    """A path of this service. What stands behind the # is a secret."""
    token: Token


class Operate(In):
    """What an operator does, and why."""

    action: Text
    reason: Text
    about: Text | int | None = None
    seen: int | None = None


class NewToken(In):
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
    who: str
    """What the journal calls whoever asks."""
    role: str
    site: str | None


class Unblinded(msgspec.Struct):
    """The arm of a person."""

    arm: str


class Asked(msgspec.Struct):
    """Whether there was a request of a key."""

    asked: bool


class Warned(msgspec.Struct):
    """A warning of the library, such as `RoundedWarning`, and what it says."""

    kind: str
    words: str


@dataclass(frozen=True)
class Started(Status):
    """A trial that was started, and what its operator should know of it."""

    warnings: tuple[Warned, ...] = ()


class MadeToken(msgspec.Struct):
    """A token that was made: the secret is shown here and nowhere else."""

    secret: str
    token: Token


class Done(msgspec.Struct):
    """That something was done."""

    done: bool = True


class Released(msgspec.Struct):
    """What `expire` released."""

    releases: int


class Verified(msgspec.Struct):
    """What a verification found."""

    intact: bool
    events: int
    head: str
    problems: tuple[str, ...]


class Published(msgspec.Struct):
    """Whether anyone may see a trial."""

    published: bool


class Noted(msgspec.Struct):
    """A call, as the journal notes it (`trials.status.Entry`)."""

    entry: int
    at: float
    who: str
    site: str | None
    call: str
    people: int
