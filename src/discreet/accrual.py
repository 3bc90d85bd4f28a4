"""Calendar: how fast people come, how late their outcomes are known, and who waits.

People come one every 1/accrual days while enrolment is open, and are assigned at once.
An outcome told within the deadline counts; a later one, or one that is never told,
counts as the worst one once the deadline has passed. A `Calendar` is numbers only, so
that a compiled loop can ask it for each person.
"""

import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.validation import is_word, quote
from discreet.wording import format_count

FIXED, EXPONENTIAL = 0, 1
KINDS = {"fixed": FIXED, "exponential": EXPONENTIAL}
ENROLMENTS = ("waiting", "continuous")
RELEASES = ("complete", "scheduled")
MAX_DAYS = 1e9
DAYS_PER_MONTH = 365.25 / 12
"""Days of a month, on average."""
DAYS_PER_UNIT = {"": 1.0, "day": 1.0, "week": 7.0, "month": DAYS_PER_MONTH}


def read_accrual(text: str) -> float:
    """Read a rate such as 1.5, 10/week or 40/month, and return participants per day.
    Raise a ValueError if it is none of these.
    """
    number, _, unit = text.partition("/")
    if unit.strip() not in DAYS_PER_UNIT:
        raise ValueError(unit)
    return float(number) / DAYS_PER_UNIT[unit.strip()]


def describe_accrual(text: str) -> str:
    """Describe in words how `read_accrual` reads a text, with another unit beside it."""
    number, _, unit = text.partition("/")
    coming = format_count(f"{float(number):,g}", "participant")
    if (unit := unit.strip() or "day") == "day":
        other = f"{read_accrual(text) * DAYS_PER_MONTH:,.3g} a month"
    else:
        other = f"{read_accrual(text):,.3g} a day"
    return f"{coming} a {unit}, which is about {other}"


class Delay(NamedTuple):
    """The days from a participant's assignment until the outcome is told; make one with
    `Delay.fixed` or `Delay.exponential`.
    """

    kind: int
    days: float
    """All of them, or their mean."""
    failures: float
    """The same where the outcome is a failure, if that makes a difference."""
    never: float
    """The share of people who never answer."""

    @staticmethod
    def fixed(days: float, never: float = 0.0, failures: float | None = None) -> "Delay":
        """Return the same delay for everybody; you may give another one for failures."""
        return _make_delay("fixed", days, never, failures)

    @staticmethod
    def exponential(mean: float, never: float = 0.0, failures: float | None = None) -> "Delay":
        """Return an exponential delay with this mean; you may give another mean for
        failures.
        """
        return _make_delay("exponential", mean, never, failures)

    @staticmethod
    def read(words: object, never: float = 0.0) -> "Delay":
        """Read a delay as commands and files write it: `7`, `exponential:7`, or what
        `to_dict` gives.
        """
        if isinstance(words, Delay):
            return words
        if isinstance(words, Mapping):
            return Delay.from_dict(words)
        if not isinstance(words, str):
            return _make_delay("fixed", words, never, None)
        kind, _, days = words.rpartition(":")
        try:
            number = float(days)
        except ValueError:
            raise InvalidInputError(_advise(words)) from None
        return _make_delay(kind or "fixed", number, never, None)

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Delay":
        """Make the delay that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise InvalidInputError(_advise(description))
        parts = dict(description)
        kind, days = parts.pop("kind", None), parts.pop("days", None)
        never, failures = parts.pop("never", 0.0), parts.pop("failures", None)
        if parts or days is None:
            raise InvalidInputError(_advise(dict(description)))
        return _make_delay(kind, days, never, failures)

    def to_dict(self) -> dict[str, Any]:
        """Return a description in plain types from which `Delay.from_dict` makes an
        equal delay.
        """
        kind = next(word for word, code in KINDS.items() if code == self.kind)
        found: dict[str, Any] = {"kind": kind, "days": self.days, "never": self.never}
        return found if self.failures == self.days else {**found, "failures": self.failures}

    @property
    def describe(self) -> str:
        """Describe the delay in words."""
        days = format_count(f"{self.days:g}", "day")
        words = days if self.kind == FIXED else f"{days} on average, at random (exponential)"
        if self.failures != self.days:
            words += f", {self.failures:g} for failures"
        return f"{words}, {self.never:.1%} never" if self.never else words


class Calendar(NamedTuple):
    """The days of a simulation; make one with `make_calendar`."""

    accrual: float
    """People a day."""
    delay: Delay
    deadline: float
    """Days; infinite if there is none."""
    continuous: bool
    """Whether rounds are opened ahead, so that nobody is turned away."""
    clock: bool
    """Whether a round is released at its last assignment plus the deadline, not when
    its last outcome is known.
    """

    @property
    def is_simple(self) -> bool:
        """Return whether every round waits for the same time, and every outcome counts."""
        delay = self.delay
        fixed = delay.kind == FIXED and delay.failures == delay.days and delay.never == 0
        return fixed and not self.continuous

    @property
    def wait(self) -> float:
        """Days from a round's last assignment to its release, where that is simple."""
        return self.deadline if self.clock else self.delay.days

    @property
    def lost(self) -> float:
        """The share of successes that are told too late, or never, and so count as the
        worst outcome.
        """
        delay, late = self.delay, float(self.delay.days > self.deadline)
        if delay.kind == EXPONENTIAL:
            late = math.exp(-self.deadline / delay.days) if delay.days else 0.0
        return delay.never + (1 - delay.never) * late

    @property
    def enrolment(self) -> str:
        """In a word."""
        return ENROLMENTS[self.continuous]

    def with_enrolment(self, enrolment: str) -> "Calendar":
        """Return the same calendar with another way to enrol."""
        return (
            make_calendar(self.accrual, self.delay, self.last_day, enrolment, RELEASES[self.clock])
            or self
        )

    @property
    def last_day(self) -> float | None:
        """The deadline, or None."""
        return self.deadline if self.deadline < math.inf else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, by the names of `make_calendar`."""
        return {
            "accrual": self.accrual,
            "delay": self.delay.to_dict(),
            "deadline": self.last_day,
            "enrolment": self.enrolment,
            "release": RELEASES[self.clock],
        }

    @property
    def describe(self) -> str:
        """Describe the calendar in words."""
        last = (
            ""
            if self.last_day is None
            else f", deadline {format_count(f'{self.last_day:g}', 'day')}"
        )
        when = " on the clock" if self.clock else ""
        return (
            f"{format_count(f'{self.accrual:g}', 'participant')} a day, outcomes after "
            f"{self.delay.describe}{last}, {self.enrolment} enrolment, released"
            f"{when or ' when complete'}"
        )


def make_calendar(
    accrual: float | None,
    delay: object = None,
    deadline: float | None = None,
    enrolment: str | None = None,
    release: str | None = None,
) -> Calendar | None:
    """Return the calendar that these words describe; None without an accrual, with
    which all the others make sense.
    """
    if accrual is None:
        if any(part is not None for part in (delay, deadline, enrolment, release)):
            raise InvalidInputError(
                "delay, deadline, enrolment and release are about days: also give accrual, the "
                "number of people who come in a day"
            )
        return None
    rate = _check_number("accrual", accrual, "participants a day")
    late = Delay.fixed(0.0) if delay is None else Delay.read(delay)
    last = math.inf if deadline is None else _check_number("deadline", deadline, "days")
    how = ENROLMENTS[0] if enrolment is None else _check_word("enrolment", enrolment, ENROLMENTS)
    when = RELEASES[0] if release is None else _check_word("release", release, RELEASES)
    _check_deadline(late, last, how, when)
    return Calendar(rate, late, last, how == ENROLMENTS[1], when == RELEASES[1])


def _check_deadline(delay: Delay, deadline: float, enrolment: str, release: str) -> None:
    if deadline < math.inf:
        if delay.kind == FIXED and min(delay.days, delay.failures) > deadline:
            raise InvalidInputError(
                "every outcome would come after the deadline of "
                f"{format_count(f'{deadline:g}', 'day')} and count as the worst one: choose a "
                "longer deadline"
            )
        return
    needs = {
        "whoever never answers": delay.never > 0,
        "continuous enrolment": enrolment == ENROLMENTS[1],
        "release on the clock": release == RELEASES[1],
    }
    for what, needed in needs.items():
        if needed:
            raise InvalidInputError(
                f"{what} needs a deadline: the days after which an outcome counts as the worst one"
            )


def _make_delay(kind: Any, days: Any, never: Any, failures: Any) -> Delay:
    if not is_word(kind, KINDS):
        raise InvalidInputError(f"unknown delay {quote(kind)}: use one of {', '.join(KINDS)}")
    usual = _check_days("a delay", days)
    if not _is_number(never) or not 0 <= never < 1:
        raise InvalidInputError(
            f"never, the share of people who never answer, must lie in [0, 1); got {quote(never)}"
        )
    other = usual if failures is None else _check_days("the delay of failures", failures)
    return Delay(KINDS[kind], usual, other, float(never))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_days(what: str, days: Any) -> float:
    if not _is_number(days) or not 0 <= days <= MAX_DAYS:
        raise InvalidInputError(
            f"{what} must be a number of days from 0 to {MAX_DAYS:g}; got {quote(days)}"
        )
    return float(days)


def _check_number(what: str, value: Any, unit: str) -> float:
    if not _is_number(value) or not 0 < value <= MAX_DAYS:
        raise InvalidInputError(
            f"{what} must be a positive number of {unit}, at most {MAX_DAYS:g}; got {quote(value)}"
        )
    return float(value)


def _check_word(what: str, value: Any, words: tuple[str, ...]) -> str:
    if not is_word(value, words):
        raise InvalidInputError(f"{what} must be {' or '.join(words)}; got {quote(value)}")
    return str(value)


def _advise(given: object) -> str:
    return (
        "give a delay as 7 (days), as exponential:7, or from Python as Delay.exponential(7); "
        f"got {quote(given)}"
    )
