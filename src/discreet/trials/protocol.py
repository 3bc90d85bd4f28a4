"""The protocol of a live trial: everything that is fixed before the first participant,
its text and its hash.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import CLIP, Scale
from discreet.strategies.estimators import FIXED, SIMPLE
from discreet.strategies.run import Randomisation
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS, choose_grid, choose_kind
from discreet.trials.names import check_names, is_writable, normalize_name, normalize_names
from discreet.trials.responses import payable_delta
from discreet.trials.settings import (
    CODES,
    CONTINUOUS,
    FOREVER,
    SCHEDULED,
    SETTINGS,
    TrialSettings,
)
from discreet.validation import is_word, quote
from discreet.version import __version__
from discreet.wording import format_percent

MISSING = "an outcome that stays missing counts as the worst one (non-responder imputation)"
CLAIM = (
    "The probability is over the randomisation and the added noise. Sites, trends, seasons and the "
    "selection of participants do not matter as long as allocation is concealed. The claim is "
    "about the participants who were enrolled"
)
"""What else is guaranteed of participants who are randomised one by one."""


@dataclass(frozen=True)
class Protocol(TrialSettings):
    """What a trial was started with; it never changes."""

    name: str
    arms: tuple[str, ...]
    strategy: Strategy
    version: str = __version__
    """Version of discreet that started the trial."""

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
        if not is_writable(self.version):
            raise InvalidInputError("version must be the text of a version of discreet")
        object.__setattr__(self, "arms", tuple(self.arms))
        super().__post_init__()
        if self.max_participants < len(self.arms):
            raise InvalidInputError(
                f"max_participants must be at least {len(self.arms)}, the number of arms"
            )
        if self.randomisation == "":
            object.__setattr__(self, "randomisation", self.strategy.spec.randomisations[0])
        for is_wrong, words in self._refusals():
            if is_wrong:
                raise InvalidInputError(words)

    def _refusals(self) -> Iterator[tuple[bool, str]]:
        """Yield rules of which settings do not go together: if the rule is broken, and
        what to say.
        """
        name, ways = self.strategy.name, self.strategy.spec.randomisations
        scheduled, continuous = self.release == SCHEDULED, self.enrolment == CONTINUOUS
        yield (
            not is_word(self.randomisation, ways),
            f"{name} has randomisation {' or '.join(ways)}; got {quote(self.randomisation)}",
        )
        what = f"release={SCHEDULED!r}" if scheduled else f"enrolment={CONTINUOUS!r}"
        yield (
            self.deadline is None and (scheduled or continuous),
            f"{what} needs a deadline: say after how many seconds an outcome no longer counts",
        )
        yield (
            scheduled and self.strategy.spec.each_answer,
            f"{what} is for rounds, and {name} releases every outcome by itself",
        )
        yield (
            scheduled and bool((self.deadline or 0) % 1),
            f"{what} works in whole seconds: give a deadline in whole seconds, so that an outcome "
            "that is recorded in time counts",
        )
        yield (
            continuous and self.randomisation != SIMPLE,
            f"enrolment={CONTINUOUS!r} is for trials of bet-se, with randomisation={SIMPLE!r}",
        )

    @property
    def low(self) -> float:
        """The smallest possible outcome."""
        return self.range[0]

    @property
    def high(self) -> float:
        """The largest possible outcome."""
        return self.range[1]

    @property
    def live_randomisation(self) -> Randomisation:
        """How a run of this protocol deals people."""
        return Randomisation(self.randomisation, self.enrolment == CONTINUOUS)

    @property
    def erases_outcomes(self) -> bool:
        """Whether outcomes are erased that nobody may read afterwards: not those that
        are kept, and not answers, which are published.
        """
        published = self.strategy.trust_model.randomised or self.strategy.spec.each_answer
        return self.retain != FOREVER and not published

    @property
    def is_blinded(self) -> bool:
        """Whether staff see codes in place of arms."""
        return self.blinding == CODES

    @property
    def has_round_keys(self) -> bool:
        """Whether people are dealt by keys of rounds."""
        return self.randomisation != FIXED

    @property
    def has_times(self) -> bool:
        """Whether the record tells when people came and rounds were released."""
        return self.release == SCHEDULED

    @cached_property
    def scale(self) -> Scale:
        """How outcomes become rewards, and back."""
        return Scale(*self.range, self.direction)

    @property
    def respond_options(self) -> str:
        """How `discreet respond` must be called for this trial, if it has local trust;
        with the middle level that `ask` announces, where there is one.
        """
        words = f"--epsilon {self.strategy.epsilon!r}"
        if self.strategy.gamma is not None:
            words += f" --gamma {self.strategy.gamma!r}"
        if choose_kind(self.strategy) == LEVELS:
            words += " --middle-level MIDDLE"
        if self.scale != Scale():
            words += f" --range {self.low!r},{self.high!r} --direction {self.direction}"
        if self.out_of_range == CLIP:
            words += f" --out-of-range {CLIP}"
        return words

    @property
    def outcome_description(self) -> str:
        """Which outcomes there are, and which are better."""
        better = "more" if self.direction == "max" else "less"
        if choose_kind(self.strategy) != BITS or not self.strategy.spec.bits:
            return f"numbers from {self.low:g} to {self.high:g}, {better} is better"
        ends = f"{self.low:g} or {self.high:g}"
        return f"{ends}, {better} is better; those between are rounded at random to one of the two"

    def describe_guarantee(self, rate: float | None = None, among: str = "") -> str:
        """Describe what is guaranteed of the answer, and on which condition: the only
        source of these sentences. The `rate` takes the place of δ; `among` names the
        arms that are left after some were dropped.
        """
        strategy = self.strategy
        if not strategy.is_proved:
            return strategy.correctness
        rate, zone = strategy.delta if rate is None else rate, strategy.indifference_zone
        in_rounds = self.randomisation == SIMPLE
        below = f"less than {zone:g}{' (on a scale from 0 to 1)' if self.scale.is_numbers else ''}"
        sure = f"with a probability of at least {format_percent(1 - rate)}"
        if in_rounds:
            condition = f"one arm{among} is at least as good as every other for the participants of"
            condition += " each round"
            claim = f"the probability of eliminating it is at most {format_percent(rate)}"
            near = f"the arm that is named is {below} worse than it for the participants of at"
            near += f" least one round, {sure}"
        else:
            condition = "the outcomes of each arm are independent with one mean, at all sites and "
            condition += f"at all times, and one arm{among} has the best mean"
            claim = f"the probability of naming another arm is at most {format_percent(rate)}"
            near = f"the mean of the arm that is named is {below} below it, {sure}"
        sentence = f"if {condition}, {near if zone else claim}, at all interim analyses together"
        if not in_rounds:
            return sentence
        changes = (
            " If the best arm changes during the trial, less is guaranteed: for each arm, the "
            "probability of eliminating it although it was at least as good as its rival for the "
            f"participants of each of its rounds is at most {format_percent(rate)}."
        )
        return f"{sentence}.{'' if zone else changes} {CLAIM}"

    def compute_shown_delta(self, smallest: float | None, arm_changes: int) -> float | None:
        """Return the smallest δ of an inconclusive end: with what discrete noise costs,
        and once more for each arm that was dropped or added; None without a proof.
        """
        if smallest is None or not self.strategy.is_proved:
            return None
        paid = (1 + arm_changes) * smallest * self.strategy.delta / payable_delta(self.strategy)
        return paid if paid < 1 else None

    @cached_property
    def grid(self) -> int:
        """How many units an outcome of 1.0 has inside the privacy boundary."""
        return choose_grid(self.strategy)

    @property
    def text(self) -> str:
        """The protocol as it is written down and hashed."""
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain types from which `from_dict` makes an equal protocol."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
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
        return Protocol(**{**description, "strategy": strategy})

    def find_differences(self, other: "Protocol") -> list[str]:
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


def new_protocol(name: str, arms: Sequence[str], strategy: Strategy, **settings: Any) -> Protocol:
    """Return the protocol of a trial to be started, with names as they are stored."""
    if unknown := set(settings) - set(SETTINGS):
        raise InvalidInputError(f"a trial has no setting {', '.join(sorted(unknown))}")
    name = normalize_name("the name of the trial", name)
    return Protocol(name, normalize_names("the name of an arm", arms), strategy, **settings)
