"""What outcomes are: yes or no, or numbers; and how they become rewards in [0, 1]."""

import math
import numbers
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError
from discreet.validation import is_word, quote

YES_NO, NUMBERS = "yes-no", "numbers"
REFUSE, CLIP = "refuse", "clip"
OUT_OF_RANGE = {
    REFUSE: "an outcome outside the range is refused",
    CLIP: "an outcome outside the range counts as the nearer end of it",
}
CLIP_WORDS = f'--out-of-range {CLIP} on the command line (out_of_range="{CLIP}" in Python)'
Number = TypeVar("Number", float, Floats)
MAX_RANGE_END = 1e100
"""Of an end of the range of outcomes."""


@dataclass(frozen=True)
class Scale:
    """The map from an experimenter's outcomes to rewards in [0, 1], where more is
    better, and back.
    """

    low: float = 0.0
    high: float = 1.0
    direction: str = "max"

    def __post_init__(self) -> None:
        """Refuse a range or a direction that makes no sense."""
        numbers_only = _is_number(self.low) and _is_number(self.high)
        within = numbers_only and -MAX_RANGE_END <= self.low < self.high <= MAX_RANGE_END
        if not within or self.high - self.low < 1 / MAX_RANGE_END:
            raise InvalidInputError(
                "range must be two numbers (low, high) with low < high, not beyond "
                f"±{MAX_RANGE_END:g} nor closer than {1 / MAX_RANGE_END:g}"
            )
        if not is_word(self.direction, ("max", "min")):
            raise InvalidInputError(f"direction must be max or min; got {quote(self.direction)}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def convert_to_reward(self, outcome: float, out_of_range: str = REFUSE) -> float:
        """Return the reward of an outcome. Refuse one outside the range, or count it as
        the nearer end.
        """
        value = math.nan
        with suppress(Exception):  # a class of the caller's may raise anything, and say it
            plain = type(outcome) in (float, int) or not (
                isinstance(outcome, str) or np.ndim(outcome)
            )
            value = float(outcome) if plain else math.nan
        if out_of_range == CLIP and not math.isnan(value):
            value = min(max(value, self.low), self.high)
        if not self.low <= value <= self.high:
            ends = f" from {self.low:g} to {self.high:g}, the range in the protocol"
            raise InvalidInputError(
                f"the outcome must be a number{ends if out_of_range != CLIP else ''}"
            )
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return share if self.direction == "max" else 1.0 - share

    def convert_to_rewards(self, outcomes: Floats, out_of_range: str = REFUSE) -> Floats:
        """Return the rewards of past outcomes, none of them NaN. Refuse what lies
        outside the range, or count it as the nearer end.
        """
        beyond = self.count_outside(outcomes)
        if beyond and out_of_range != CLIP:
            finite = outcomes[np.isfinite(outcomes)]
            wider = f", such as {_format_pair(finite)}," if len(finite) == len(outcomes) else ""
            raise InvalidInputError(
                f"{beyond} of {len(outcomes)} outcomes {'lies' if beyond == 1 else 'lie'} outside "
                f"the range {self.low:.12g} to {self.high:.12g}: give a wider range{wider} or "
                f"let them count as the nearer end with {CLIP_WORDS}"
            )
        within = np.clip(outcomes, self.low, self.high)
        share = np.clip((within - self.low) / (self.high - self.low), 0.0, 1.0)
        return share if self.direction == "max" else 1.0 - share

    @property
    def is_numbers(self) -> bool:
        """Return whether outcomes of such a range are other numbers than 0 and 1."""
        return (self.low, self.high) != (0.0, 1.0)

    def count_outside(self, outcomes: Floats) -> int:
        """Count the outcomes that lie outside the range."""
        return int(((outcomes < self.low) | (outcomes > self.high)).sum())

    def convert_to_outcome(self, reward: Number) -> Number:
        """Return a mean reward, or several, in the experimenter's units."""
        share = reward if self.direction == "max" else 1.0 - reward
        return self.low + share * (self.high - self.low)


def check_range(range: Any) -> tuple[float, float]:
    """Return the two ends of a range, or refuse it."""
    try:
        low, high = range
    except (TypeError, ValueError):
        raise InvalidInputError("range must be two numbers (low, high)") from None
    return low, high


def check_out_of_range(out_of_range: Any) -> str:
    """Return what becomes of outcomes outside the range."""
    if not is_word(out_of_range, OUT_OF_RANGE):
        raise InvalidInputError(
            f"out_of_range must be one of {', '.join(OUT_OF_RANGE)}; got {quote(out_of_range)}"
        )
    return str(out_of_range)


def suggest_range(values: ArrayLike, room: float = 0.1) -> tuple[float, float]:
    """Return round numbers between which all these outcomes lie, with some room beyond
    them: a range for a trial with participants like these.

    `room` is a share of the difference between the largest and the smallest, on either
    side. If no outcome is below 0, neither is the range. Use *past* outcomes: a range
    chosen from the trial's own outcomes would reveal something about them, without
    privacy.
    """
    outcomes = None
    with suppress(Exception):  # a class of the caller's may raise anything, and say it
        outcomes = np.asarray(values, dtype=np.float64).ravel()
    if outcomes is None:
        raise InvalidInputError(
            "a range can be suggested only for numbers: some of these are not numbers"
        )
    if not len(outcomes) or not (np.abs(outcomes) <= MAX_RANGE_END).all():
        raise InvalidInputError(
            "a range can be suggested only for at least one finite number, not beyond "
            f"±{MAX_RANGE_END:g}"
        )
    if not _is_number(room) or not 0 <= room <= 100:
        raise InvalidInputError(f"room must be a number from 0 to 100; got {quote(room)}")
    least, most = float(outcomes.min()), float(outcomes.max())
    span = max(most - least or abs(most) or 1.0, 1 / MAX_RANGE_END)
    step = _find_round_step(span / 5)
    low = math.floor(round((least - room * span) / step, 9)) * step
    high = math.ceil(round((most + room * span) / step, 9)) * step
    low = max(low, 0.0) if least >= 0 else low
    digits = -math.floor(math.log10(step))
    low, high = round(low, digits), round(high, digits)
    # without room the rounding above may have cut off what lies at an end
    low = low if low <= least else round(low - step, digits)
    return low, high if high >= most else round(high + step, digits)


def explain_range(values: Floats) -> str:
    """Say that a range is needed and none was given."""
    if not np.isfinite(values).all():
        return f"there are infinite outcomes: give the range of outcomes, and {CLIP_WORDS}"
    return (
        "the outcomes do not all lie in [0, 1]: give the range of outcomes that the trial will "
        f"have, such as {_format_pair(values)}, which contains all of these with some room "
        "(suggest_range); if the scale has ends of its own, such as 0,100, give these. If a few "
        "outcomes lie far beyond the others, a narrower range takes fewer people, and they "
        f"count as its nearer end with {CLIP_WORDS}. Choose the range from past data, never from "
        "the trial's own outcomes, which would not be private"
    )


def _format_pair(values: Floats) -> str:
    """Format a suggested range as an option takes it."""
    return ",".join(f"{end:.12g}" for end in suggest_range(values))


def _find_round_step(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not larger."""
    power = 10.0 ** math.floor(math.log10(most))
    steps = (power * times for times in (0.5, 1.0, 2.0, 5.0))
    return max(step for step in steps if step <= most * (1 + 1e-9))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_yes_no(scale: Scale, outcomes: str | None) -> bool:
    """Return whether outcomes of this range and kind are entered as yes or no."""
    return not scale.is_numbers and outcomes != NUMBERS


def describe_yes_no(direction: str) -> str:
    """Say which outcomes there are then, and which are better."""
    return f"yes or no (1 or 0), {'yes' if direction == 'max' else 'no'} is better"
