"""What the callers of a live trial get to see: assignments, status, and what a verification found."""

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Assignment:
    """One person's place in the trial: give them this arm, and tell the outcome under this id."""

    id: str
    arm: str


@dataclass(frozen=True)
class Batch:
    """What `ask` gives: assignments (maybe none), how many outcomes are waited for, whether the trial is over."""

    assignments: tuple[Assignment, ...]
    waiting: int
    stopped: bool


@dataclass(frozen=True)
class ArmStatus:
    """What is public about an arm, in the experimenter's units."""

    name: str
    pulls: int
    """People assigned to it."""
    count: int
    """Outcomes behind the mean."""
    mean: float | None
    """The released mean: private, hence noisy, and not confined to the range of outcomes."""
    interval: tuple[float, float] | None
    """Holds the true mean at all times with probability 1 - δ, where the strategy gives one."""


@dataclass(frozen=True)
class Status:
    """The trial as anyone may see it."""

    name: str
    strategy: str
    stopped: bool
    conclusive: bool
    """Whether it stopped by the strategy's rule, so that the error rate δ holds."""
    recommendation: str | None
    smallest_delta: float | None
    """Of an inconclusive end: the smallest δ at which these releases would have been enough, if there is one."""
    people: int
    max_people: int
    pending: int
    """People assigned whose outcome is not in."""
    waiting: int
    """Outcomes that the next release waits for; then `ask` assigns nobody, but for those who replace others."""
    releases: int
    epsilon: float | None
    gamma: float | None
    delta: float
    privacy: str
    correctness: str
    missing: str
    retain: str
    arms: tuple[ArmStatus, ...]
    head: str
    """Length and hash of the public record: note it down, and give it to `Trial.open` after a restore."""
    protocol_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Verification:
    """What `verify` found."""

    events: int
    head: str
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether the record is what was written, and the present state follows from it."""
        return not self.problems
