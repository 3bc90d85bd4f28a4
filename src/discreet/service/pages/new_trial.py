"""A new trial: thought out with a plan that answers at every change, looked at once
more, and started.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from discreet.accrual import people_a_day, rate_words
from discreet.errors import DiscreetError, InvalidInputError
from discreet.planning.plan import Plan
from discreet.planning.power import check_reach
from discreet.planning.rows import Enrolment, PlanRow
from discreet.reports.html import render_sections
from discreet.reports.plan import (
    end_cells,
    explain_low_cost,
    name_best_arms,
    plan_sections,
    qualify_cost,
    warn_of_few_correct,
)
from discreet.reports.summaries import format_in_units
from discreet.reports.trial_text import privacy_sentence
from discreet.scale import NUMBERS, YES_NO, Scale
from discreet.service import planner
from discreet.service.cache import Remembered
from discreet.service.endpoints import start_trial
from discreet.service.pages.base import ENVIRONMENT, Look, address, look, send, without_styles
from discreet.service.pages.site import outcome_words
from discreet.service.state import Home, script_for
from discreet.strategies.presets import explain_rounding, recommended
from discreet.strategies.strategy import Strategy
from discreet.trials.names import check_names, check_sites, normalize_name
from discreet.trials.protocol import MISSING, Protocol
from discreet.trials.settings import (
    ANONYMOUS,
    BLINDING,
    COMPLETE,
    CONTINUOUS,
    ENROLMENT,
    MAX_PARTICIPANTS,
    MAX_QUESTION_LENGTH,
    RANDOMISATION,
    RELEASE,
    RETAIN,
    RETURNING,
    SCHEDULED,
    UNBLINDED,
    WAITING,
    is_question,
)
from discreet.wording import closed, counted, day_words, listed, people

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
    "max_participants": "",
    "sites": "",
    "deadline": "",
    "release": COMPLETE,
    "enrolment": WAITING,
    "returning": ANONYMOUS,
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
    "max_participants": "Maximum number of people",
    "trust": "Who may see a person's outcome",
    "epsilon": "How much a person's outcome may change what is seen (ε)",
    "sites": "Sites",
    "deadline": "Deadline: days until an outcome must be told",
    "release": "Results are released",
    "enrolment": "While a round waits for outcomes",
    "returning": "If somebody comes again",
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
    "returning": tuple(RETURNING),
    "blinding": tuple(BLINDING),
}
NEEDS_DEADLINE = "this needs a deadline: say after how many days an outcome no longer counts"
FOR_THE_PLAN = (
    *("arms", "outcomes", "low", "high", "direction", "difference", "base", "trust", "epsilon"),
    *("delta", "max_participants", "deadline", "release", "enrolment", "accrual", "delay", "start"),
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
            "max_participants": self["max_participants"],
            "range": (0.0, 1.0) if yes_no else (self["low"], self["high"]),
            "direction": self["direction"],
            "sites": self["sites"] or None,
            "deadline": None if deadline is None else float(round(deadline * DAY)),
            "question": self["question"],
            "script": script_for(self.strategy),
            **{name: self[name] for name in ("release", "enrolment", "returning", "blinding")},
        }

    @property
    def protocol(self) -> Protocol:
        """What would be frozen; refuses what cannot be carried out."""
        return Protocol(self["name"], tuple(self["arms"]), self.strategy, **self.settings)

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
        for name, word in (("enrolment", CONTINUOUS), ("release", SCHEDULED)):
            if values[name] == word:
                found[name] = NEEDS_DEADLINE
    elif (values["delay"] or 0) > values["deadline"]:
        found["delay"] = "all outcomes would come after the deadline"
    if values["start"] is not None and values["accrual"] is None:
        found["start"] = "to say when the trial ends, say also how many people come"
    arms, most_people = values["arms"], values["max_participants"]
    if arms is not None and most_people is not None and most_people < len(arms):
        found["max_participants"] = f"it takes at least {len(arms)} people, one for each arm"
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
    return str(normalize_name("the name of the trial", text))


def _question(text: str) -> str:
    asked = str(normalize_name("the question", " ".join(text.split())))
    if asked and not is_question(asked):
        raise InvalidInputError(
            f"this must be one line of at most {MAX_QUESTION_LENGTH} characters"
        )
    return asked


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _arms(text: str) -> list[str]:
    arms = [str(normalize_name("the name of an arm", one)) for one in _lines(text)]
    if len(arms) < 2:
        raise InvalidInputError("name at least two arms, each on a line of its own")
    check_names("x", arms)
    return arms


def _sites(text: str) -> list[str]:
    sites = [str(normalize_name("the name of a site", one)) for one in _lines(text)]
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
    if not (
        plain.isascii() and plain.isdigit() and len(plain) < 11 and int(plain) <= MAX_PARTICIPANTS
    ):
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
    "max_participants": _most,
    "sites": _sites,
    "deadline": _number(1e-5, 36_600, DAYS, empty=True),
    "accrual": _rate,
    "delay": _number(-1e-9, 36_600, DAYS, empty=True),
    "start": _day,
    **{name: _choice(name) for name in CHOICES},
}


FRAGMENTS = Remembered[str](128)
PATIENCE = 1.0
"""Seconds to wait for simulations that are being compiled, before that is said."""


async def _form(looking: Look) -> Response:
    planner.warm()
    return _shown(looking, read(DEFAULTS), fresh=True)


def _shown(looking: Look, draft: Draft, fresh: bool = False, **more: Any) -> Response:
    """The form. One that nobody has filled in has nothing wrong with it yet."""
    wrong = {} if fresh else draft.wrong
    known = {"plan": "", "refused": ""} | more
    status = 422 if wrong and not known["plan"] else 200
    about = {"said": draft.said, "wrong": wrong, "labels": LABELS, "read": read_words(draft)}
    return looking.page("new.html", status, **about, **known)


async def _sent(looking: Look) -> Response:
    """What is to be done with the form, its button says."""
    draft = read(looking.form)
    wanted = looking.form.get("do", "")
    if wanted == "plan":
        shown = await looking.run(plan_fragment, draft)
        without = {name: words for name, words in draft.wrong.items() if name not in LATER}
        kept = Draft(draft.said, without, draft.values)
        return _shown(looking, kept, plan=Markup(shown))
    if draft.wrong or wanted == "back":
        return _shown(looking, draft, fresh=wanted == "back")
    try:
        if wanted == "create":
            return await _create(looking, draft)
        return await _review(looking, draft)
    except InvalidInputError as error:
        return _shown(looking, draft, refused=str(error))


LATER = ("name", "max_participants")
"""What a plan can be made without."""


# --- the plan -------------------------------------------------------------------------


async def _plan(looking: Look) -> Response:
    planner.warm()
    draft = read(looking.form)
    text = await looking.run(plan_fragment, draft)
    beside = ENVIRONMENT.get_template("beside.html")
    text += beside.render(wrong=draft.wrong, read=read_words(draft))
    return HTMLResponse(text, headers={"Cache-Control": "no-store"})


def read_words(draft: Draft) -> str:
    """How the pace of enrolment was read, if one was typed that can be."""
    return "" if draft["accrual"] is None else f"Read as {_pace_words(draft)}."


def _pace_words(draft: Draft) -> str:
    return rate_words(draft.said["accrual"].strip().replace(",", "."))


def plan_fragment(draft: Draft) -> str:
    """The plan in words and pictures, as a part of a page."""
    wrong = {name: words for name, words in draft.wrong.items() if name not in LATER}
    template = ENVIRONMENT.get_template("plan.html")
    known = {"plan": "", "wrong": wrong, "labels": LABELS, "waits": False, "lines": [], "room": 0}
    if any(name not in FOR_DAYS for name in wrong):
        return template.render(known)
    if wrong:
        draft = draft.without_days
    if not planner.ready(PATIENCE, bool(draft.calendar)):
        return template.render(known | {"wrong": {}, "waits": True})
    drawn = FRAGMENTS.get(draft.key, lambda: _drawn(draft))
    return template.render(known | {"days_wrong": True}) + drawn if wrong else drawn


def _drawn(draft: Draft) -> str:
    template = ENVIRONMENT.get_template("plan.html")
    try:
        found = _planned(draft)
        sections = plan_sections(found, example=False, about=about_words(draft, found))
        drawn = without_styles(render_sections(sections[1:]))
    except DiscreetError as error:
        known = {"plan": "", "wrong": {"": str(error)}, "labels": LABELS, "lines": [], "room": 0}
        return template.render(known, waits=False)
    room = room_of(found)
    known = {"plan": Markup(drawn), "wrong": {}, "lines": plan_words(found), "room": room}
    return template.render(known, waits=False)


def _planned(draft: Draft) -> Plan:
    return planner.planned(
        draft.simulated,
        draft["arms"],
        draft.gap,
        draft.base,
        start=draft["start"],
        width=None if draft.scale is None else draft.scale.high - draft.scale.low,
        epsilons=[draft["epsilon"]],
        delta=draft["delta"] / 100,
        trust=draft["trust"],
        max_participants=draft["max_participants"],
        outcomes=draft["outcomes"],
        **draft.calendar,
    )


def room_of(found: Plan) -> int:
    """A maximum of people that leaves room for bad luck; 0 if there is one already."""
    most = found.per_epsilon[0].participants.q90
    return (
        0 if found.max_participants is not None or most is None else int(float(f"{1.5 * most:.2g}"))
    )


def plan_words(found: Plan) -> list[str]:
    """What a plan comes to, in plain words."""
    row = found.per_epsilon[0]
    lines = [f"About {people(row.participants.mean)} people on average."]
    stuck = row.unstopped_probability
    if stuck >= 0.01 and found.max_participants is not None:
        lines.append(
            f"{stuck:.0%} of such trials reach the maximum of {found.max_participants:,} people "
            "without "
            "an answer."
        )
    elif row.participants.q90 is not None:
        lines.append(f"Nine of ten such trials end within {people(row.participants.q90)} people.")
    if room := room_of(found):
        lines.append(f"A maximum of {people(room)} people leaves room for bad luck.")
    if row.privacy_cost is not None:
        lines.append(
            f"With privacy a trial takes {row.privacy_cost:.3g} times as many people as without "
            f"it{qualify_cost(found)}."
        )
        lines.append(explain_low_cost(found.per_epsilon))
    if warning := warn_of_few_correct(found, row):
        lines.insert(0, f"Warning: {warning}")
    lines.append(_chance_words(found, row))
    lines += [_end_words(way) for way in found.enrolments if way.epsilon is not None]
    return [line for line in lines if line]


def about_words(draft: Draft, found: Plan) -> str:
    """What the simulations assume of the arms, in the units of outcomes that are
    numbers; and that the best of them is only an example.
    """
    ((name, arms),) = found.scenarios.items()
    scale, means = draft.scale, zip(arms.names, arms.means, strict=True)
    best = (
        f"In these simulations {name_best_arms(found, name)} is best, only because it is the first "
        "in the list: with another one the numbers would hardly differ."
    )
    if scale is None:
        success = " (a success is the answer no)" if draft["direction"] == "min" else ""
        shown = listed([f"{closed(arm)} {mean:g}" for arm, mean in means])
        return f"Success rates{success}: {shown}. {best}"
    shown = listed([f"{closed(arm)} {format_in_units(mean, scale)}" for arm, mean in means])
    better = "more" if scale.direction == "max" else "less"
    return (
        f"Mean outcomes: {shown}, where outcomes lie between {scale.low:g} and {scale.high:g} and "
        f"{better} is better. {best} Every simulated outcome is {scale.low:g} or {scale.high:g}; "
        "outcomes that lie closer together may take fewer people."
    )


def _chance_words(found: Plan, row: PlanRow) -> str:
    """How likely an answer is, at the difference worth finding."""
    low, high = row.correct_interval
    sure = f"95 % interval: {low:.0%} to {high:.0%}, from {row.runs} simulated trials"
    if found.max_participants is None:
        return f"{row.correct:.0%} of such trials give the right answer ({sure})."
    return (
        f"Power: at the difference worth finding, {row.correct:.0%} of such trials end within "
        f"{found.max_participants:,} people with the right answer ({sure}), and "
        f"{1 - row.unstopped_probability:.0%} with any answer."
    )


def _end_words(way: Enrolment) -> str:
    """How long a trial takes, and when it ends, if its first day is known."""
    if way.days.mean is None:
        return ""
    words = (
        f"With {way.enrolment} enrolment it takes about {counted(f'{way.days.mean:,.0f}', 'day')}"
    )
    if way.start is None:
        return f"{words}."
    _, expected, band = end_cells(way)
    return (
        f"{words}: if it begins on {day_words(way.start)}, it is expected to end on {expected} "
        f"(eight of ten such trials: {band})."
    )


# --- the last look --------------------------------------------------------------------


async def _review(looking: Look, draft: Draft, refused: str = "") -> Response:
    protocol = draft.protocol
    warning = await looking.run(_warning, protocol)
    found = await looking.run(_foreseen, draft)
    return looking.page(
        "review.html",
        422 if refused else 200,
        said=draft.said,
        protocol=protocol,
        outcomes=outcome_words(protocol),
        unit=" percentage points" if draft["outcomes"] == YES_NO else "",
        expected=[] if found is None else plan_words(found)[:2],
        when=when_words(draft, found),
        promised=promised(protocol),
        warning=warning,
        refused=refused,
    )


def _foreseen(draft: Draft) -> Plan | None:
    """The plan of the trial, if plans are quick by now."""
    return _planned(draft) if planner.ready(0.0, bool(draft.calendar)) else None


def when_words(draft: Draft, found: Plan | None) -> str:
    """When the trial is planned to begin and to end; empty if nobody has said."""
    if draft["start"] is None:
        return ""
    begin = f"Planned to begin on {day_words(draft['start'])}"
    for way in () if found is None else found.enrolments:
        if way.epsilon is None or way.enrolment != draft["enrolment"] or way.end is None:
            continue
        first, last = way.end["q10"], way.end["q90"]
        if first is not None and last is not None:
            return (
                f"{begin}, planned to end between {day_words(first)} and {day_words(last)}: eight "
                f"of ten simulated trials did, with {_pace_words(draft)}."
            )
    return f"{begin}."


def promised(protocol: Protocol) -> list[tuple[str, str]]:
    """What the trial will promise, before it begins."""
    strategy = protocol.strategy
    return [
        ("Privacy", privacy_sentence(strategy.epsilon, strategy.privacy, strategy.gamma)),
        ("Error probability", protocol.describe_guarantee()),
        ("Assignment", RANDOMISATION[protocol.randomisation]),
        ("Looks", RELEASE[protocol.release]),
        ("Enrolment", ENROLMENT[protocol.enrolment]),
        ("If somebody comes again", RETURNING[protocol.returning]),
        ("Blinding", BLINDING[protocol.blinding]),
        ("Missing outcomes", MISSING),
        ("Retention", RETAIN[protocol.retain]),
    ]


def _warning(protocol: Protocol) -> str:
    """That the trial would end without an answer, if that can be said; else that it
    would round outcomes for no reason.
    """
    found = check_reach(protocol.strategy, len(protocol.arms), protocol.max_participants)
    if found is None:
        rounded = explain_rounding(protocol.strategy, protocol.scale.numbers)
        return rounded and f"{rounded[:1].upper()}{rounded[1:]}."
    takes = (
        "more people than that"
        if found.participants is None
        else f"about {found.participants:,} people"
    )
    return (
        "Even if one arm did as well as possible and the others as badly as possible, the trial "
        f"would take {takes}: with at most {protocol.max_participants:,} it will end without an "
        "answer. "
        "Raise the maximum, or choose less privacy."
    )


async def _create(looking: Look, draft: Draft) -> Response:
    try:
        await looking.run(_made, looking, draft)
    except InvalidInputError as error:
        return await _review(looking, draft, str(error))
    return looking.go(address("t", draft["name"]))


def _made(looking: Look, draft: Draft) -> None:
    said = {"name": draft["name"], "arms": draft["arms"], **draft.settings}
    start_trial(looking.home, looking.visitor.who, draft.strategy, said)


def routes(home: Home) -> list[Route]:
    """The pages of a new trial."""
    return [
        look(home, "/new", "create", _form),
        send(home, "/new", "create", _sent),
        send(home, "/new/plan", "plan", _plan),
    ]
