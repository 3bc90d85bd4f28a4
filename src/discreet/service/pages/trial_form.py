"""The form of a new trial: its fields, most of which are made from the table of settings,
and what was typed, read.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, get_args, get_origin

from discreet.accrual import read_accrual
from discreet.errors import InvalidInputError
from discreet.scale import NUMBERS, YES_NO, Scale
from discreet.service.state import script_for
from discreet.strategies.presets import recommended
from discreet.strategies.strategy import Strategy
from discreet.trials.names import check_names, normalize_name
from discreet.trials.protocol import Protocol, new_protocol
from discreet.trials.settings import (
    CONTINUOUS,
    MAX_PARTICIPANTS,
    SCHEDULED,
    SETTINGS,
    Setting,
    TrialSettings,
)

DAY = 86_400
LONGEST_LIST = 100_000
"""Characters of a field that are read."""
PERCENT = 100.0


class FormField(NamedTuple):
    """A field of the form."""

    name: str
    label: str
    read: Callable[[str], Any]
    """Reads what was typed; refuses what is no value of the field."""
    default: str = ""
    """What the field shows at first."""
    hint: str = ""
    kind: str = "text"
    """How it is entered: as a `text`, `lines`, a `choice` or a `date`."""
    options: Mapping[str, str] = {}
    """Words for each choice."""
    mode: str = "text"
    """Keyboard that a phone shows."""


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_name(text: str) -> str:
    if not text:
        raise InvalidInputError("give the trial a name")
    check_names(text, ["a", "b"])
    return str(normalize_name("the name of the trial", text))


def _read_arms(text: str) -> list[str]:
    arms = [str(normalize_name("the name of an arm", line)) for line in _split_lines(text)]
    if len(arms) < 2:
        raise InvalidInputError("name at least two arms, each on a line of its own")
    check_names("x", arms)
    return arms


def _make_number_reader(
    low: float, high: float, words: str, may_be_empty: bool = False
) -> Callable[[str], float | None]:
    """Return a reader of a number strictly between two others; None for an empty
    field.
    """

    def read_number(text: str) -> float | None:
        if not text and may_be_empty:
            return None
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            number = math.nan
        if not low < number < high:
            raise InvalidInputError(words)
        return number

    return read_number


def _read_whole(text: str) -> int:
    plain = text.replace(" ", "").replace("\u202f", "")
    if not (plain.isascii() and plain.isdigit() and len(plain) < 11):
        raise InvalidInputError("this must be a whole number, such as 2000")
    return int(plain)


def _make_choice_reader(choices: Mapping[str, str]) -> Callable[[str], str]:
    def read_choice(text: str) -> str:
        if text not in choices:
            raise InvalidInputError("choose one of these")
        return text

    return read_choice


def _read_rate(text: str) -> float | None:
    if not text:
        return None
    try:
        rate = read_accrual(text.replace(",", "."))
    except ValueError:
        rate = math.nan
    if not 0 < rate < 1e6:
        raise InvalidInputError(
            "this must be a number of participants above 0, such as 1.5, 10/week or 40/month, or "
            "be left empty"
        )
    return rate


def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInputError(
            "this must be a day, such as 2027-03-01, or be left empty"
        ) from None


def _read_line(text: str) -> str:
    return " ".join(text.split())


DAYS = "this must be a number of days above 0, such as 14, or be left empty"
NOT_ON_FORM = ("range", "randomisation", "script")
"""Settings that follow from other fields, from the strategy and from the service."""
HINTS = {"direction": "Of yes and no, yes is the larger outcome."}
"""Hints of settings that are asked for in another way here."""


def _make_field(setting: Setting) -> FormField:
    """Return the field in which a setting is entered. Times are entered in days."""
    read: Callable[[str], Any] = _read_line
    label, kind, mode = setting.label, "text", "text"
    if setting.choices:
        read, kind = _make_choice_reader(setting.choices), "choice"
    elif setting.unit == "seconds":
        label, mode = f"{label} (days)", "decimal"
        read = _make_number_reader(1e-5, 36_600, DAYS, may_be_empty=True)
    elif setting.type is int:
        read, mode = _read_whole, "numeric"
    elif tuple in [get_origin(part) for part in (setting.type, *get_args(setting.type))]:
        read, kind = _split_lines, "lines"

    def read_setting(text: str) -> Any:
        value = read(text)
        if value is None or value == []:
            return None
        stored = value * DAY if setting.unit == "seconds" else value
        TrialSettings(**{"max_participants": MAX_PARTICIPANTS, setting.name: stored})
        return value

    hint = HINTS.get(setting.name, setting.help)
    default = str(setting.default) if isinstance(setting.default, str | int | float) else ""
    return FormField(setting.name, label, read_setting, default, hint, kind, setting.choices, mode)


SETTING_FIELDS = {
    name: _make_field(setting) for name, setting in SETTINGS.items() if name not in NOT_ON_FORM
}
"""Fields of settings, made from the table of settings."""
_numbers = _make_number_reader(-1e12, 1e12, "this must be a number, such as 10")
TYPES = {YES_NO: "yes or no (1 or 0)", NUMBERS: "a number in a range"}
TRUST = {
    "global": "this service only: it adds noise to what it releases",
    "local": "nobody: each answer is randomised on the participant's own device",
}
FIELDS: dict[str, FormField] = {
    field.name: field
    for field in (
        FormField(
            *("name", "Name of the trial", _read_name),
            hint="Keep it short: it is part of addresses and of the record.",
        ),
        FormField(
            *("arms", "Arms", _read_arms, "usual\nnew"),
            hint="The treatments, doses, pages or models that are compared, each on a line of its "
            "own.",
            kind="lines",
        ),
        SETTING_FIELDS.pop("question"),
        FormField(
            *("outcomes", "Type of outcome", _make_choice_reader(TYPES), YES_NO),
            kind="choice",
            options=TYPES,
        ),
        FormField("low", "Smallest possible outcome", _numbers, "0", mode="decimal"),
        FormField("high", "Largest possible outcome", _numbers, "10", mode="decimal"),
        SETTING_FIELDS.pop("direction"),
        FormField(
            "difference",
            "Target difference",
            _make_number_reader(0, 1e12, "this must be a number above 0"),
            "15",
            "The difference between the best arm and the others that the trial is planned for: in "
            "percentage points for outcomes yes or no, else in the unit of the outcome. A smaller "
            "one takes many more participants.",
            mode="decimal",
        ),
        FormField(
            "base",
            "Success rate expected today (%)",
            _make_number_reader(-1e-9, 100 + 1e-9, "this must be a number from 0 to 100"),
            "50",
            "Only the plan uses this.",
            mode="decimal",
        ),
        FormField(
            "delta",
            "Error probability δ (%)",
            _make_number_reader(0, 50, "this must be a number above 0 and below 50, such as 5"),
            "5",
            "The largest probability that an arm is identified as the best one and is not. 5 is "
            "usual.",
            mode="decimal",
        ),
        SETTING_FIELDS.pop("max_participants"),
        FormField(
            *("trust", "Who may see a participant's outcome", _make_choice_reader(TRUST), "global"),
            kind="choice",
            options=TRUST,
        ),
        FormField(
            "epsilon",
            "Privacy parameter ε",
            _make_number_reader(
                1e-3, 100.000001, "this must be a number from 0.001 to 100; 1 is a usual choice"
            ),
            "1",
            "A smaller ε is more private and takes more participants. 1 is a usual choice.",
            mode="decimal",
        ),
        *SETTING_FIELDS.values(),
        FormField(
            "accrual",
            "Enrolment rate",
            _read_rate,
            hint="Such as 40/month, 10/week or 1.5/day; a number alone means participants a day. "
            "Only the plan uses this, which then shows days as well.",
        ),
        FormField(
            *("delay", "Days until an outcome is known"),
            _make_number_reader(-1e-9, 36_600, DAYS, may_be_empty=True),
            mode="decimal",
        ),
        FormField(
            *("start", "First day of enrolment", _read_day),
            hint="The plan then also says on which day the trial is expected to end.",
            kind="date",
        ),
    )
}
"""All fields, from the first to the last."""
LABELS = {name: field.label for name, field in FIELDS.items()}
NEEDS_DEADLINE = "this needs a deadline: say after how many days an outcome no longer counts"
FOR_THE_PLAN = (
    *("arms", "outcomes", "low", "high", "direction", "difference", "base", "trust", "epsilon"),
    *("delta", "max_participants", "deadline", "release", "enrolment", "accrual", "delay", "start"),
)
"""Fields that the plan depends on."""
FOR_DAYS = ("deadline", "release", "enrolment", "accrual", "delay", "start")
"""Fields that only a plan in days depends on."""
NOT_SIMULATED = ("arms", "low", "high", "direction", "difference", "start")
"""Of the fields that a plan depends on, those that need no other simulations: but for
the number of arms and what share of the range the difference is.
"""


@dataclass(frozen=True)
class TrialForm:
    """The form as it was read; fields that are wrong have a sentence in `wrong`."""

    typed: Mapping[str, str]
    """Texts of the fields."""
    wrong: Mapping[str, str]
    values: Mapping[str, Any]
    """Values of the fields; None for those that are empty or wrong."""

    def __getitem__(self, name: str) -> Any:
        """Return the value of a field."""
        return self.values[name]

    @property
    def without_days(self) -> "TrialForm":
        """The same form without enrolment rate, delays and dates."""
        return TrialForm(self.typed, self.wrong, {**self.values, **dict.fromkeys(FOR_DAYS)})

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a plan depends on."""
        others = tuple(self.values[name] for name in NOT_SIMULATED[1:])
        return (tuple(self["arms"]), others, self.simulated)

    @property
    def simulated(self) -> tuple[Any, ...]:
        """All that the simulations of a plan depend on, beside the number of arms."""
        others = (self.values[name] for name in FOR_THE_PLAN if name not in NOT_SIMULATED)
        return (self.gap, *others)

    @property
    def gap(self) -> float:
        """The target difference, as a share of the range of outcomes."""
        return float(self["difference"] / self._span)

    @property
    def scale(self) -> Scale | None:
        """The units of outcomes, if they are numbers."""
        if self["outcomes"] == YES_NO:
            return None
        return Scale(self["low"], self["high"], self["direction"])

    @property
    def base(self) -> float:
        """The mean around which the arms lie; for numbers the middle of their range,
        which is the hardest case.
        """
        return float(self["base"] / PERCENT) if self["outcomes"] == YES_NO else 0.5

    @property
    def strategy(self) -> Strategy:
        """The recommended strategy."""
        return recommended(
            self["epsilon"], self["delta"] / PERCENT, self["trust"], self.gap, self["outcomes"]
        ).strategy

    @property
    def calendar(self) -> dict[str, Any]:
        """The enrolment rate and delays, for a plan in days; empty if there is no
        rate.
        """
        if self["accrual"] is None:
            return {}
        days = {"accrual": self["accrual"], "delay": self["delay"] or 0.0}
        if self["deadline"] is None:
            return days
        names = ("deadline", "enrolment", "release")
        return {**days, **{name: self[name] for name in names}}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the trial."""
        ends = (0.0, 1.0) if self["outcomes"] == YES_NO else (self["low"], self["high"])
        values = {name: self[name] for name in SETTINGS if name not in NOT_ON_FORM}
        for name, value in values.items():
            if SETTINGS[name].unit == "seconds" and value is not None:
                values[name] = float(round(value * DAY))
        return {**values, "range": ends, "script": script_for(self.strategy)}

    @property
    def protocol(self) -> Protocol:
        """The protocol that would be frozen; refuses what cannot be carried out."""
        return new_protocol(self["name"], self["arms"], self.strategy, **self.settings)

    @property
    def _span(self) -> float:
        return PERCENT if self["outcomes"] == YES_NO else float(self["high"] - self["low"])


def read_form(form: Mapping[str, str]) -> TrialForm:
    """Read a form; a field that is not there has its default."""
    typed = {name: form.get(name, one.default)[:LONGEST_LIST] for name, one in FIELDS.items()}
    wrong, values = dict[str, str](), dict[str, Any]()
    for name, one in FIELDS.items():
        try:
            values[name] = one.read(typed[name].strip())
        except InvalidInputError as error:
            wrong[name], values[name] = str(error), None
    wrong = {**_find_contradictions(values), **wrong}
    return TrialForm(typed, {name: wrong[name] for name in FIELDS if name in wrong}, values)


def _find_contradictions(values: Mapping[str, Any]) -> dict[str, str]:
    """Return sentences about fields that do not go together, by field."""
    found = dict[str, str]()
    yes_no, difference = values["outcomes"] == YES_NO, values["difference"]
    low, high = values["low"], values["high"]
    if not yes_no and None not in (low, high) and low >= high:
        found["high"] = "the largest outcome must be above the smallest one"
    elif difference is not None and None not in (low, high):
        most = PERCENT if yes_no else high - low
        if difference >= most:
            found["difference"] = f"the difference must be smaller than {most:g}"
        elif yes_no and values["base"] is not None and not _can_differ(values["base"], difference):
            found["base"] = "with this difference, no rates around this one lie between 0 and 100"
    if values["deadline"] is None:
        for name, word in (("enrolment", CONTINUOUS), ("release", SCHEDULED)):
            if values[name] == word:
                found[name] = NEEDS_DEADLINE
    elif (values["delay"] or 0) > values["deadline"]:
        found["delay"] = "all outcomes would come after the deadline"
    if values["start"] is not None and values["accrual"] is None:
        found["start"] = "to say when the trial ends, give the enrolment rate as well"
    arms, maximum = values["arms"], values["max_participants"]
    if arms is not None and maximum is not None and maximum < len(arms):
        found["max_participants"] = f"it takes at least {len(arms)} participants, one for each arm"
    return found


def _can_differ(base: float, gap: float) -> bool:
    """Return whether rates around a base can differ so much, in one of the ways of a
    plan.
    """
    is_in_the_middle = base + gap / 2 <= PERCENT and base - gap / 2 >= 0
    return is_in_the_middle or base + gap <= PERCENT or base - gap >= 0
