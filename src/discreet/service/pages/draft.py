"""A trial that is being thought out: what its form says, what is wrong with it field by
field, and the protocol that it comes to.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from discreet.calendar import people_a_day
from discreet.errors import InvalidInputError
from discreet.scale import NUMBERS, YES_NO, Scale
from discreet.service.scripts import script_for
from discreet.strategies.presets import recommended
from discreet.strategies.strategy import Strategy
from discreet.trials.dealing import usual_dealing
from discreet.trials.names import check_names, check_sites, plain_name
from discreet.trials.protocol import (
    ANONYMOUS,
    BLINDING,
    CLOCK,
    COMPLETE,
    CONTINUOUS,
    ENROLMENT,
    LONGEST_QUESTION,
    MOST_PEOPLE,
    PEOPLE,
    RELEASE,
    UNBLINDED,
    WAITING,
    Protocol,
    is_question,
)

DAY = 86_400
DEFAULTS: dict[str, str] = {
    "name": "",
    "arms": "usual\nnew",
    "question": "",
    "outcomes": YES_NO,
    "low": "0",
    "high": "10",
    "direction": "max",
    "difference": "15",
    "base": "50",
    "trust": "global",
    "epsilon": "1",
    "delta": "5",
    "max_people": "",
    "sites": "",
    "deadline": "",
    "release": COMPLETE,
    "enrolment": WAITING,
    "people": ANONYMOUS,
    "blinding": UNBLINDED,
    "accrual": "",
    "delay": "",
    "start": "",
}
"""Every field of the form, and what it says at first."""
LABELS: dict[str, str] = {
    "name": "Name of the trial",
    "arms": "Arms",
    "question": "The question that each outcome answers",
    "outcomes": "An outcome is",
    "low": "Smallest outcome",
    "high": "Largest outcome",
    "direction": "Which is better",
    "difference": "Difference worth finding",
    "base": "About how many in 100 do well today",
    "delta": "Wrong answers allowed, in 100 trials (δ)",
    "max_people": "Maximum number of people",
    "trust": "Who may see a person's outcome",
    "epsilon": "How much a person's outcome may change what is seen (ε)",
    "sites": "Sites",
    "deadline": "Deadline: days until an outcome must be told",
    "release": "Results are released",
    "enrolment": "While a round waits for outcomes",
    "people": "If somebody comes again",
    "blinding": "Those who enrol people see",
    "accrual": "People who come in a day, a week or a month",
    "delay": "Days until an outcome is known",
    "start": "First day of enrolment",
}
"""What each field of the form is called, from the first to the last."""
CHOICES: dict[str, tuple[str, ...]] = {
    "outcomes": (YES_NO, NUMBERS),
    "direction": ("max", "min"),
    "trust": ("global", "local"),
    "release": tuple(RELEASE),
    "enrolment": tuple(ENROLMENT),
    "people": tuple(PEOPLE),
    "blinding": tuple(BLINDING),
}
NEEDS_DEADLINE = "this needs a deadline: say after how many days an outcome no longer counts"
FOR_THE_PLAN = (
    *("arms", "outcomes", "low", "high", "direction", "difference", "base", "trust", "epsilon"),
    *("delta", "max_people", "deadline", "release", "enrolment", "accrual", "delay", "start"),
)
"""What the plan depends on."""
FOR_DAYS = ("deadline", "release", "enrolment", "accrual", "delay", "start")
"""What only a plan in days depends on."""
NOT_SIMULATED = ("arms", "low", "high", "direction", "difference", "start")
"""Of what a plan depends on: what needs no other simulations, but for the number of
arms and what share of the range the difference is.
"""


@dataclass(frozen=True)
class Draft:
    """What the form says, read; fields that are wrong have a sentence in `wrong`."""

    said: Mapping[str, str]
    """As it was typed."""
    wrong: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """What a field says."""
        return self.values[name]

    @property
    def plannable(self) -> bool:
        """Whether a plan can be made."""
        return not any(name in self.wrong for name in FOR_THE_PLAN)

    @property
    def without_days(self) -> "Draft":
        """The same, of which nobody has said how people come and answer."""
        return Draft(self.said, self.wrong, {**self.values, **dict.fromkeys(FOR_DAYS)})

    @property
    def key(self) -> tuple[Any, ...]:
        """What a plan depends on."""
        said = tuple(self.values[name] for name in NOT_SIMULATED[1:])
        return (tuple(self["arms"]), said, self.simulated)

    @property
    def simulated(self) -> tuple[Any, ...]:
        """What the simulations of a plan depend on, beside the number of arms."""
        said = (self.values[name] for name in FOR_THE_PLAN if name not in NOT_SIMULATED)
        return (self.gap, *said)

    @property
    def gap(self) -> float:
        """The difference worth finding, as a share of the range of outcomes."""
        return float(self["difference"] / self._span)

    @property
    def scale(self) -> Scale | None:
        """In which units outcomes are, if they are numbers."""
        if self["outcomes"] == YES_NO:
            return None
        return Scale(self["low"], self["high"], self["direction"])

    @property
    def base(self) -> float:
        """About where the arms are; of numbers the middle of their range, as hard as
        it gets.
        """
        return float(self["base"] / 100) if self["outcomes"] == YES_NO else 0.5

    @property
    def strategy(self) -> Strategy:
        """The recommended one."""
        return recommended(
            self["epsilon"], self["delta"] / 100, self["trust"], self.gap, self["outcomes"]
        ).strategy

    @property
    def calendar(self) -> dict[str, Any]:
        """How people come and answer, for a plan in days; empty if nobody has said."""
        if self["accrual"] is None:
            return {}
        days = {"accrual": self["accrual"], "delay": self["delay"] or 0.0}
        if self["deadline"] is None:
            return days
        how = {"enrolment": self["enrolment"], "release": self["release"]}
        return {**days, "deadline": self["deadline"], **how}

    @property
    def settings(self) -> dict[str, Any]:
        """What a trial is made with, beside its name, arms and strategy."""
        yes_no = self["outcomes"] == YES_NO
        deadline = self["deadline"]
        return {
            "max_people": self["max_people"],
            "range": (0.0, 1.0) if yes_no else (self["low"], self["high"]),
            "direction": self["direction"],
            "sites": self["sites"] or None,
            "deadline": None if deadline is None else float(round(deadline * DAY)),
            "question": self["question"],
            "script": script_for(self.strategy),
            **{name: self[name] for name in ("release", "enrolment", "people", "blinding")},
        }

    @property
    def protocol(self) -> Protocol:
        """What would be frozen; refuses what cannot be carried out."""
        settings, strategy = self.settings, self.strategy
        low, high = settings.pop("range")
        return Protocol(
            self["name"],
            tuple(self["arms"]),
            strategy,
            low=low,
            high=high,
            dealing=usual_dealing(strategy),
            **settings,
        )

    @property
    def _span(self) -> float:
        return 100.0 if self["outcomes"] == YES_NO else float(self["high"] - self["low"])


def read(form: Mapping[str, str]) -> Draft:
    """What a form says; a field that is not there says what it says at first."""
    said = {name: form.get(name, usual)[:100_000] for name, usual in DEFAULTS.items()}
    wrong, values = dict[str, str](), dict[str, Any]()
    for name, reader in READERS.items():
        try:
            values[name] = reader(said[name].strip())
        except InvalidInputError as error:
            wrong[name], values[name] = str(error), None
    for name, words in _together(values).items():
        wrong.setdefault(name, words)
    return Draft(said, {name: wrong[name] for name in LABELS if name in wrong}, values)


def _together(values: Mapping[str, Any]) -> dict[str, str]:
    """What does not go together."""
    found = dict[str, str]()
    yes_no, difference = values["outcomes"] == YES_NO, values["difference"]
    low, high = values["low"], values["high"]
    if not yes_no and None not in (low, high) and low >= high:
        found["high"] = "the largest outcome must be above the smallest one"
    elif difference is not None and None not in (low, high):
        most = 100.0 if yes_no else high - low
        if difference >= most:
            found["difference"] = f"the difference must be smaller than {most:g}"
        elif yes_no and values["base"] is not None and not _fits(values["base"], difference):
            found["base"] = "with this difference, no rates around this one lie between 0 and 100"
    if values["deadline"] is None:
        for name, word in (("enrolment", CONTINUOUS), ("release", CLOCK)):
            if values[name] == word:
                found[name] = NEEDS_DEADLINE
    elif (values["delay"] or 0) > values["deadline"]:
        found["delay"] = "all outcomes would come after the deadline"
    if values["start"] is not None and values["accrual"] is None:
        found["start"] = "to say when the trial ends, say also how many people come"
    arms, most_people = values["arms"], values["max_people"]
    if arms is not None and most_people is not None and most_people < len(arms):
        found["max_people"] = f"it takes at least {len(arms)} people, one for each arm"
    return found


def _fits(base: float, gap: float) -> bool:
    """Whether rates around a base differ so much, in one of the ways of a plan."""
    middle = base + gap / 2 <= 100 and base - gap / 2 >= 0
    return middle or base + gap <= 100 or base - gap >= 0


# --- fields ---------------------------------------------------------------------------


def _name(text: str) -> str:
    if not text:
        raise InvalidInputError("give the trial a name")
    check_names(text, ["a", "b"])
    return str(plain_name("the name of the trial", text))


def _question(text: str) -> str:
    asked = str(plain_name("the question", " ".join(text.split())))
    if asked and not is_question(asked):
        raise InvalidInputError(f"this must be one line of at most {LONGEST_QUESTION} characters")
    return asked


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _arms(text: str) -> list[str]:
    arms = [str(plain_name("the name of an arm", one)) for one in _lines(text)]
    if len(arms) < 2:
        raise InvalidInputError("name at least two arms, each on a line of its own")
    check_names("x", arms)
    return arms


def _sites(text: str) -> list[str]:
    sites = [str(plain_name("the name of a site", one)) for one in _lines(text)]
    if len(set(sites)) < len(sites):
        raise InvalidInputError("two sites have the same name: give each its own")
    return list(check_sites(sites)) if sites else []


def _number(low: float, high: float, words: str, empty: bool = False) -> Callable[[str], Any]:
    """A field with a number strictly between two; None where it is empty and may be."""

    def read_number(text: str) -> float | None:
        if not text and empty:
            return None
        try:
            number = float(text.replace(",", "."))
        except ValueError:
            number = math.nan
        if not low < number < high:
            raise InvalidInputError(words)
        return number

    return read_number


def _most(text: str) -> int | None:
    plain = text.replace(" ", "").replace("\u202f", "")
    if not plain:
        raise InvalidInputError(
            "say after how many people the trial ends at the latest; the plan proposes a number"
        )
    if not (plain.isascii() and plain.isdigit() and len(plain) < 11 and int(plain) <= MOST_PEOPLE):
        raise InvalidInputError("this must be a whole number of people, such as 2000")
    return int(plain)


def _choice(name: str) -> Callable[[str], str]:
    def read_choice(text: str) -> str:
        if text not in CHOICES[name]:
            raise InvalidInputError("choose one of these")
        return text

    return read_choice


def _rate(text: str) -> float | None:
    if not text:
        return None
    try:
        found = people_a_day(text.replace(",", "."))
    except ValueError:
        found = math.nan
    if not 0 < found < 1e6:
        raise InvalidInputError(
            "this must be a number of people above 0, such as 1.5, 10/week or 40/month, or be "
            "left empty"
        )
    return found


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInputError(
            "this must be a day, such as 2027-03-01, or be left empty"
        ) from None


DAYS = "this must be a number of days above 0, such as 14, or be left empty"
READERS: dict[str, Callable[[str], Any]] = {
    "name": _name,
    "arms": _arms,
    "question": _question,
    "low": _number(-1e12, 1e12, "this must be a number, such as 0"),
    "high": _number(-1e12, 1e12, "this must be a number, such as 10"),
    "difference": _number(0, 1e12, "this must be a number above 0"),
    "base": _number(-1e-9, 100 + 1e-9, "this must be a number from 0 to 100"),
    "epsilon": _number(
        1e-3, 100.000001, "this must be a number from 0.001 to 100; 1 is a usual choice"
    ),
    "delta": _number(0, 50, "this must be a number above 0 and below 50, such as 5"),
    "max_people": _most,
    "sites": _sites,
    "deadline": _number(1e-5, 36_600, DAYS, empty=True),
    "accrual": _rate,
    "delay": _number(-1e-9, 36_600, DAYS, empty=True),
    "start": _day,
    **{name: _choice(name) for name in CHOICES},
}
