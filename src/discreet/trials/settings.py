"""The settings of a live trial: one table of names, types, defaults and words.

`Protocol` extends the dataclass. The service's request body and form, the options of the
command line and the page of settings in the docs are made from the table, so that a new
setting is a field here and an effect where it acts.
"""

import re
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple, get_type_hints

from discreet.errors import InvalidInputError
from discreet.scale import OUT_OF_RANGE, REFUSE, Scale, check_range
from discreet.strategies.estimators import FIXED, SHUFFLED, SIMPLE
from discreet.trials.names import check_sites, is_writable, normalize_name, normalize_names
from discreet.validation import check_whole, is_word, quote

MAX_PARTICIPANTS = 2**30
"""Largest maximum number of participants."""
MAX_DEADLINE = 1e10
"""Largest deadline, in seconds."""
MAX_QUESTION_LENGTH = 500
UNTIL_RELEASE, FOREVER = "until-release", "forever"
RETAIN = {
    UNTIL_RELEASE: "outcomes are erased when their batch is released",
    FOREVER: (
        "OUTCOMES ARE KEPT for ever inside the privacy boundary, and everybody who can read the "
        "database can read them"
    ),
}
DIRECTION = {"max": "a larger outcome is better", "min": "a smaller outcome is better"}
RANDOMISATION = {
    SIMPLE: (
        "each participant's arm is drawn with the announced probabilities after enrolment, from a "
        "key that is revealed with the release of the round. Allocation must stay concealed: "
        "nobody may know an arm before its participant is enrolled"
    ),
    SHUFFLED: (
        "the places up to each release, which the record announces, are assigned in random order. "
        "Sites that differ, trends, and staff who guess the remaining arms can break the error "
        "rate. bet-se does not have this weakness"
    ),
    FIXED: (
        "anyone who can read the record knows the next arm. Sites that differ, trends, and staff "
        "who select participants for the next arm can break the error rate. bet-se does not have "
        "this weakness"
    ),
}
COMPLETE, SCHEDULED = "complete", "scheduled"
RELEASE = {
    COMPLETE: (
        "a round is released as soon as all its outcomes are recorded. If how soon participants "
        "answer depends on their outcomes, the time of a release reveals something about them, "
        "and ε does not cover that"
    ),
    SCHEDULED: (
        "a round is released when the deadline of its last participant has passed: the time of a "
        "release reveals nothing about outcomes"
    ),
}
WAITING, CONTINUOUS = "waiting", "continuous"
ENROLMENT = {
    WAITING: "nobody is enrolled while a full round waits for its outcomes",
    CONTINUOUS: (
        "participants are enrolled while earlier rounds wait for their outcomes. The error rate "
        "then also requires that the size of a round does not depend on the assignments and "
        "outcomes of its own participants"
    ),
}
ANONYMOUS, SAME_ARM, REFUSE_RETURNING = "anonymous", "same-arm", "refuse"
RETURNING = {
    ANONYMOUS: (
        "participants may be enrolled without an identifier; a named participant takes part only "
        "once"
    ),
    SAME_ARM: "a participant who returns gets the same assignment again",
    REFUSE_RETURNING: "a participant who returns is refused",
}
UNBLINDED, CODES = "none", "codes"
BLINDING = {
    UNBLINDED: "staff see the arms of those whom they enrol",
    CODES: (
        "staff see codes instead of arms, and sites see nothing about how the arms are doing "
        "before the end"
    ),
}


def _setting(
    label: str,
    help: str,
    default: Any = MISSING,
    choices: dict[str, str] | None = None,
    unit: str = "",
) -> Any:
    """Return a field with what people read about it."""
    words = {"label": label, "help": help, "choices": choices or {}, "unit": unit}
    return field(default=default, metadata=words)


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """Settings that are fixed when a trial is started."""

    max_participants: int = _setting(
        "Maximum number of participants",
        "The trial ends after this number of participants, with or without a conclusion. A "
        "manager can change it later.",
        unit="participants",
    )
    retain: str = _setting(
        "Retention of outcomes", "How long outcomes are kept.", UNTIL_RELEASE, RETAIN
    )
    range: tuple[float, float] = _setting(
        "Range of outcomes", "The smallest and the largest possible outcome.", (0.0, 1.0)
    )
    direction: str = _setting("Better outcomes", "Which outcomes are better.", "max", DIRECTION)
    out_of_range: str = _setting(
        "Outcomes outside the range",
        "What happens to an outcome outside the range.",
        REFUSE,
        OUT_OF_RANGE,
    )
    randomisation: str = _setting(
        "Randomisation",
        "How arms are assigned. Each strategy has one way, which is the default.",
        "",
        RANDOMISATION,
    )
    sites: tuple[str, ...] | None = _setting(
        "Sites",
        "Where participants are enrolled; each enrolment then names one of them. The default is "
        "anywhere.",
        None,
    )
    deadline: float | None = _setting(
        "Deadline",
        "How long after the assignment an outcome may be recorded; a later one counts as the "
        "worst outcome. The default is any time.",
        None,
        unit="seconds",
    )
    release: str = _setting(
        "Release of rounds",
        "When a round is released. A scheduled release needs a deadline.",
        COMPLETE,
        RELEASE,
    )
    enrolment: str = _setting(
        "Enrolment",
        "Whether participants are enrolled while a full round waits for its outcomes. Continuous "
        "enrolment is for bet-se and needs a deadline.",
        WAITING,
        ENROLMENT,
    )
    returning: str = _setting(
        "Returning participants",
        "What happens if somebody returns who was enrolled before.",
        ANONYMOUS,
        RETURNING,
    )
    blinding: str = _setting("Blinding", "What staff see.", UNBLINDED, BLINDING)
    question: str = _setting(
        "Question",
        "The question that each outcome answers, in words for participants, such as 'Was the pain "
        "gone after two hours?'. For a number, include its unit. It is shown wherever an outcome "
        "is entered.",
        "",
    )
    script: str | None = _setting(
        "Script",
        "SHA-256 of the script that randomises responses in participants' browsers. A service "
        "sets it for trials with local trust.",
        None,
    )

    def __post_init__(self) -> None:
        """Refuse values that are not allowed, and convert the others to plain types."""
        for name, setting in SETTINGS.items():
            value = getattr(self, name)
            if setting.choices and name != "randomisation" and not is_word(value, setting.choices):
                raise InvalidInputError(
                    f"{name} must be one of {', '.join(setting.choices)}; got {quote(value)}"
                )
        maximum = check_whole("max_participants", self.max_participants, 1, MAX_PARTICIPANTS)
        scale = Scale(*check_range(self.range), self.direction)
        sites = normalize_names("the name of a site", self.sites)
        question = normalize_name("the question", self.question)
        if question != "" and not is_question(question):
            raise InvalidInputError(
                f"question must be a text of one line, of at most {MAX_QUESTION_LENGTH} characters"
            )
        if self.script is not None and not re.fullmatch("[0-9a-f]{64}", str(self.script)):
            raise InvalidInputError("script must be the SHA-256 of a script, in hex, or None")
        plain = {
            "max_participants": maximum,
            "range": (scale.low, scale.high),
            "sites": None if sites is None else check_sites(sites),
            "question": question,
            "deadline": None if self.deadline is None else _check_deadline(self.deadline),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)


def is_question(value: Any) -> bool:
    """Return whether this is one line of text that is not too long."""
    return is_writable(value) and len(value) <= MAX_QUESTION_LENGTH and value == value.strip()


def _check_deadline(value: Any) -> float:
    """Return a deadline as a float; refuse what is no positive number of seconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < MAX_DEADLINE:
        raise InvalidInputError("deadline must be a positive number of seconds, or None")
    return float(value)


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    type: Any
    """Type of the value."""
    default: Any
    """Default value; `dataclasses.MISSING` if the setting must be given."""
    label: str
    """Label in forms and tables."""
    help: str
    """Sentences of explanation."""
    choices: dict[str, str]
    """Sentence for each allowed value; empty if other values are allowed."""
    unit: str
    """Unit of the value, or empty."""


_types = get_type_hints(TrialSettings)
SETTINGS = {
    one.name: Setting(one.name, _types[one.name], one.default, **one.metadata)
    for one in fields(TrialSettings)
}
"""Table of the settings by name, in the order of the arguments of `Trial.create`."""
