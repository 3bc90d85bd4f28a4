"""The protocol of a live trial: everything that is fixed before the first person, its
text and its hash.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import CLIP, OUTSIDE, REFUSE, Scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS, grid_of, kind_of
from discreet.trials.outcomes import payable_delta
from discreet.validate import check_whole
from discreet.version import __version__

MISSING = {
    "failure": "an outcome that stays missing counts as the worst one (non-responder imputation)",
    "replace": "a person whose outcome stays missing is replaced by another one",
}
RETAIN = {
    "until-release": "outcomes are erased when their batch is released",
    "forever": (
        "OUTCOMES ARE KEPT for ever behind the wall, and whoever can read the database can read "
        "them"
    ),
}
MOST_PEOPLE = 2**30
LONGEST_NAME = 200


@dataclass(frozen=True)
class Protocol:
    """What a trial was started with; it never changes."""

    name: str
    arms: tuple[str, ...]
    strategy: Strategy
    max_people: int
    missing: str = "failure"
    retain: str = "until-release"
    low: float = 0.0
    high: float = 1.0
    direction: str = "max"
    lease: float | None = None
    """Seconds after which an outcome counts as missing; None: never by itself."""
    version: str = __version__
    outside: str = REFUSE
    """What an outcome outside the range is: refused, or the nearer end."""

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out."""
        if not isinstance(self.strategy, Strategy):
            raise InvalidInputError(
                "strategy must be a Strategy, such as adap_tt_star(epsilon=1, delta=0.05)"
            )
        self.strategy.to_dict()  # refuses parts that are Python functions
        _check_names(self.name, self.arms)
        if not _writable(self.version):
            raise InvalidInputError("version must be the text of a version of discreet")
        _check_word("missing", self.missing, MISSING)
        _check_word("retain", self.retain, RETAIN)
        _check_word("outside", self.outside, OUTSIDE)
        most = check_whole("max_people", self.max_people, least=len(self.arms), most=MOST_PEOPLE)
        object.__setattr__(self, "arms", tuple(self.arms))
        object.__setattr__(self, "max_people", most)
        object.__setattr__(self, "low", self.scale.low)
        object.__setattr__(self, "high", self.scale.high)
        if self.lease is not None:
            object.__setattr__(self, "lease", _check_lease(self.lease))

    @property
    def scale(self) -> Scale:
        """How outcomes become rewards, and back."""
        return Scale(self.low, self.high, self.direction)

    @property
    def respond_options(self) -> str:
        """How `discreet respond` must be called for this trial, if it has local trust;
        with the middle level that `ask` announces, where there is one.
        """
        words = f"--epsilon {self.strategy.epsilon!r}"
        if self.strategy.gamma is not None:
            words += f" --gamma {self.strategy.gamma!r}"
        if kind_of(self.strategy) == LEVELS:
            words += " --middle MIDDLE"
        if self.scale != Scale():
            words += f" --range {self.low!r},{self.high!r} --direction {self.direction}"
        if self.outside == CLIP:
            words += f" --outside {CLIP}"
        return words

    @property
    def outcome_words(self) -> str:
        """Which outcomes there are, and which are better."""
        better = "more" if self.direction == "max" else "less"
        if kind_of(self.strategy) != BITS or not self.strategy.part.bits:
            return f"numbers from {self.low:g} to {self.high:g}, {better} is better"
        ends = f"{self.low:g} or {self.high:g}"
        return f"{ends}, {better} is better; those between are rounded at random to one of the two"

    def shown_delta(self, smallest: float | None) -> float | None:
        """The smallest δ of an inconclusive end: with what discrete noise costs; none
        without a proof.
        """
        if smallest is None or not self.strategy.proved:
            return None
        paid = smallest * self.strategy.delta / payable_delta(self.strategy)
        return paid if paid < 1 else None

    @property
    def grid(self) -> int:
        """Units of an outcome behind the wall."""
        return grid_of(self.strategy)

    @property
    def text(self) -> str:
        """The protocol as it is written down and hashed."""
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain types from which `from_dict` makes an equal protocol."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**plain, "arms": list(self.arms), "strategy": asdict(self.strategy)}

    @staticmethod
    def from_dict(description: dict[str, Any]) -> "Protocol":
        """The protocol that `to_dict` described."""
        strategy = Strategy.from_dict(description["strategy"])
        return Protocol(**{**description, "arms": tuple(description["arms"]), "strategy": strategy})

    def differences(self, other: "Protocol") -> list[str]:
        """What is set otherwise in another protocol, in words; the version does not
        count.
        """
        mine = self.to_dict()
        theirs = other.to_dict()
        plain = [name for name in mine if name not in ("version", "strategy")]
        flat = [(name, mine[name], theirs[name]) for name in plain]
        for name, own in mine["strategy"].items():
            flat.append((f"strategy {name}", own, theirs["strategy"][name]))
        return [f"{name} is {own!r}, not {wanted!r}" for name, own, wanted in flat if own != wanted]


def canonical(value: Any) -> str:
    """JSON that is the same for the same value."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(text: str) -> str:
    """The hash of a protocol as it was written down."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_names(name: Any, arms: Any) -> None:
    if not _writable(name) or len(name) > LONGEST_NAME or name.startswith("-"):
        raise InvalidInputError(
            f"name must be a text of 1 to {LONGEST_NAME} characters that does not begin with -"
        )
    if not isinstance(arms, tuple | list) or not all(_writable(arm) for arm in arms):
        raise InvalidInputError("arms must be a list of names, such as ['5 mg', '10 mg']")
    if max(map(len, arms), default=0) > LONGEST_NAME:
        raise InvalidInputError(f"an arm's name may have {LONGEST_NAME} characters")
    if len(arms) < 2:
        raise InvalidInputError("a trial needs two arms or more")
    if len(set(arms)) < len(arms):
        raise InvalidInputError("two arms have the same name: give each its own")


def _check_word(what: str, value: Any, allowed: dict[str, str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInputError(f"{what} must be one of {', '.join(allowed)}; got {value!r}")


def _check_lease(lease: Any) -> float:
    number = isinstance(lease, int | float) and not isinstance(lease, bool)
    if not number or not 0 < lease < 1e10:
        raise InvalidInputError("lease must be a positive number of seconds, or None")
    return float(lease)


def _writable(text: Any) -> bool:
    """Whether it is a text that every database can hold."""
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
