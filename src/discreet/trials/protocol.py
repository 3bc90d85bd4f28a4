"""The protocol of a live trial: everything that is fixed before the first person, its
text and its hash.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import CLIP, OUTSIDE, REFUSE, Scale, ends_of
from discreet.strategies.estimators import COINS, ORDER
from discreet.strategies.run import Dealing
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS, grid_of, kind_of
from discreet.trials.names import check_names, check_sites, plain_name, plain_names, writable
from discreet.trials.randomisation import usual_dealing
from discreet.trials.responses import payable_delta
from discreet.validation import check_whole, is_word, quoted
from discreet.version import __version__

MISSING = "an outcome that stays missing counts as the worst one (non-responder imputation)"
RETAIN = {
    "until-release": "outcomes are erased when their batch is released",
    "forever": (
        "OUTCOMES ARE KEPT for ever behind the wall, and whoever can read the database can read "
        "them"
    ),
}
COMPLETE, CLOCK = "complete", "clock"
RELEASE = {
    COMPLETE: (
        "the outcomes of a round are looked at as soon as all of them are in. If how soon people "
        "answer depends on their outcomes, the moment of a look reveals something about them, and "
        "ε does not cover that"
    ),
    CLOCK: (
        "the outcomes of a round are looked at by the clock, when the deadline of its last person "
        "has passed: the moment reveals nothing about outcomes"
    ),
}
"""When a round is released, and what that tells."""
WAITING, CONTINUOUS = "waiting", "continuous"
ENROLMENT = {
    WAITING: "nobody is enrolled while a full round waits for its outcomes",
    CONTINUOUS: (
        "people are enrolled while earlier rounds wait for their outcomes. The error rate then "
        "also requires that the pace at which people come does not depend on how people fare whose"
        " outcomes are not released"
    ),
}
STICKY, REFUSED, ANONYMOUS = "sticky", "refuse", "anonymous"
PEOPLE = {
    ANONYMOUS: (
        "people may be enrolled without saying who they are; somebody who is named takes part only"
        " once"
    ),
    STICKY: "a person who comes again gets the same assignment again",
    REFUSED: "a person who comes again is refused",
}
"""What a second coming means."""
UNBLINDED, CODES = "none", "codes"
BLINDING = {
    UNBLINDED: "those who enrol people see their arms",
    CODES: (
        "those who enrol people see codes instead of arms, and sites see nothing about how the "
        "arms are doing before the end"
    ),
}
"""What staff may know."""
MOST_PEOPLE = 2**30
LONGEST_QUESTION = 500


@dataclass(frozen=True)
class Protocol:
    """What a trial was started with; it never changes."""

    name: str
    arms: tuple[str, ...]
    strategy: Strategy
    max_people: int
    dealing: str
    """How people get their arms, a row of `DEALING`."""
    retain: str = "until-release"
    low: float = 0.0
    high: float = 1.0
    direction: str = "max"
    version: str = __version__
    outside: str = REFUSE
    """What an outcome outside the range is: refused, or the nearer end."""
    sites: tuple[str, ...] | None = None
    """Where people are enrolled; None: anywhere."""
    deadline: float | None = None
    """Seconds from assignment within which an outcome counts; later it is the worst."""
    release: str = COMPLETE
    """When a round is released."""
    enrolment: str = WAITING
    """Whether people are enrolled while a round waits for its outcomes."""
    people: str = ANONYMOUS
    """What it means if somebody comes a second time, a row of `PEOPLE`."""
    blinding: str = UNBLINDED
    """What staff may know, a row of `BLINDING`."""
    question: str = ""
    """What each outcome answers, in words for people; empty if that is not written."""
    script: str | None = None
    """SHA-256 of the script that randomises answers in people's browsers, where that is
    how they come in.
    """

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out."""
        if not isinstance(self.strategy, Strategy):
            raise InvalidInputError(
                "strategy must be a Strategy, such as adap_tt_star(epsilon=1, delta=0.05)"
            )
        self.strategy.to_dict()  # refuses parts that are Python functions
        if self.strategy.sigma is not None:
            raise InvalidInputError(
                "outcomes of a live trial lie in a range and are rewards in [0, 1]: leave sigma out"
            )
        check_names(self.name, self.arms)
        if not writable(self.version):
            raise InvalidInputError("version must be the text of a version of discreet")
        _check_word("retain", self.retain, RETAIN)
        _check_word("outside", self.outside, OUTSIDE)
        most = check_whole("max_people", self.max_people, least=len(self.arms), most=MOST_PEOPLE)
        object.__setattr__(self, "arms", tuple(self.arms))
        object.__setattr__(self, "max_people", most)
        object.__setattr__(self, "low", self.scale.low)
        object.__setattr__(self, "high", self.scale.high)
        self._check_field()

    def _check_field(self) -> None:
        """Refuse ways of coming, dealing and answering that cannot be carried out."""
        _check_word("release", self.release, RELEASE)
        _check_word("enrolment", self.enrolment, ENROLMENT)
        _check_word("people", self.people, PEOPLE)
        _check_word("blinding", self.blinding, BLINDING)
        if self.question != "" and not is_question(self.question):
            raise InvalidInputError(
                f"question must be a text of one line, of at most {LONGEST_QUESTION} characters"
            )
        if self.script is not None and not _is_hash(self.script):
            raise InvalidInputError("script must be the SHA-256 of a script, in hex, or None")
        if self.sites is not None:
            object.__setattr__(self, "sites", check_sites(self.sites))
        if self.deadline is not None:
            object.__setattr__(self, "deadline", _check_seconds("deadline", self.deadline))
        if refusal := self._field_refusal():
            raise InvalidInputError(refusal)

    def _field_refusal(self) -> str | None:
        """Why these settings do not go together, if they do not."""
        name, ways = self.strategy.name, self.strategy.part.dealings
        if not is_word(self.dealing, ways):
            return f"{name} assigns arms by {' or '.join(ways)}; got {quoted(self.dealing)}"
        if self.deadline is None:
            if self.release == COMPLETE and self.enrolment == WAITING:
                return None
            what = f"release={CLOCK!r}" if self.release == CLOCK else f"enrolment={CONTINUOUS!r}"
            return (
                f"{what} needs a deadline: say after how many seconds an outcome no longer counts"
            )
        return self._deadline_refusal()

    def _deadline_refusal(self) -> str | None:
        """Return why settings with this deadline do not go together, if they do not."""
        if self.release == CLOCK and self.strategy.part.each_answer:
            return (
                f"release='clock' is for rounds, and {self.strategy.name} releases every answer by "
                "itself"
            )
        if self.release == CLOCK and float(self.deadline or 0) % 1:
            return (
                "release='clock' works in whole seconds: give a deadline in whole seconds, so "
                "that what is told in time counts"
            )
        if self.enrolment == CONTINUOUS and self.dealing != COINS:
            return "enrolment='continuous' is for trials of bet-se with dealing='coins'"
        return None

    @property
    def dealt(self) -> Dealing:
        """How a run of this protocol deals people."""
        return Dealing(self.dealing, self.enrolment == CONTINUOUS)

    @property
    def erases(self) -> bool:
        """Whether outcomes are erased that nobody may read afterwards: not those that
        are kept, and not answers, which are published.
        """
        published = self.strategy.trust_model.randomised or self.strategy.part.each_answer
        return self.retain != "forever" and not published

    @property
    def blind(self) -> bool:
        """Whether staff see codes in place of arms."""
        return self.blinding == CODES

    @property
    def keyed(self) -> bool:
        """Whether people are dealt by keys of rounds."""
        return self.dealing != ORDER

    @property
    def timed(self) -> bool:
        """Whether the record tells when people came and rounds were released."""
        return self.release == CLOCK

    @cached_property
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
            words += " --middle-level MIDDLE"
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

    def shown_delta(self, smallest: float | None, added: int) -> float | None:
        """The smallest δ of an inconclusive end: with what discrete noise costs, and
        once more for each arm that was added; none without a proof.
        """
        if smallest is None or not self.strategy.proved:
            return None
        paid = (1 + added) * smallest * self.strategy.delta / payable_delta(self.strategy)
        return paid if paid < 1 else None

    @cached_property
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
        sites = None if self.sites is None else list(self.sites)
        lists = {"arms": list(self.arms), "sites": sites}
        return {**plain, **lists, "strategy": self.strategy.to_dict()}

    @staticmethod
    def from_dict(description: dict[str, Any]) -> "Protocol":
        """The protocol that `to_dict` described."""
        if other := set(description) ^ {field.name for field in fields(Protocol)}:
            raise InvalidInputError(
                f"another version of discreet than {__version__} wrote this protocol: only one of "
                f"the two knows {', '.join(sorted(other))}"
            )
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
        own, wanted = mine["strategy"], theirs["strategy"]
        for name in {**own, **wanted}:
            flat.append((f"strategy {name}", own.get(name), wanted.get(name)))
        return [f"{name} is {one!r}, not {two!r}" for name, one, two in flat if one != two]


def canonical(value: Any) -> str:
    """JSON that is the same for the same value."""
    return _encoder.encode(value)


_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def digest(text: str) -> str:
    """The hash of a protocol as it was written down."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_word(what: str, value: Any, allowed: dict[str, str]) -> None:
    if not is_word(value, allowed):
        raise InvalidInputError(f"{what} must be one of {', '.join(allowed)}; got {quoted(value)}")


def is_question(value: Any) -> bool:
    """Whether people can be asked so: one line that is not too long."""
    return writable(value) and len(value) <= LONGEST_QUESTION and value == value.strip()


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _check_seconds(what: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e10:
        raise InvalidInputError(f"{what} must be a positive number of seconds, or None")
    return float(value)


SETTINGS = {"outside", "deadline", "release", "enrolment", "people", "blinding", "script"}
"""Those that are taken as they are given."""


def new_protocol(
    name: str,
    arms: Sequence[str],
    strategy: Strategy,
    max_people: int,
    retain: str = "until-release",
    range: tuple[float, float] = (0.0, 1.0),
    direction: str = "max",
    dealing: str | None = None,
    sites: Sequence[str] | None = None,
    question: str = "",
    **settings: Any,
) -> Protocol:
    """The protocol of a trial to be started, with the settings of `Trial.create`; names
    as they are kept.
    """
    if unknown := set(settings) - SETTINGS:
        raise InvalidInputError(f"a trial has no setting {', '.join(sorted(unknown))}")
    return Protocol(
        plain_name("the name of the trial", name),
        plain_names("the name of an arm", arms),
        strategy,
        max_people,
        usual_dealing(strategy) if dealing is None else dealing,
        retain,
        *ends_of(range),
        direction,
        sites=plain_names("the name of a site", sites),
        question=plain_name("the question", question),
        **settings,
    )
