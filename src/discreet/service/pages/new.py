"""A new trial: thought out with a plan that answers at every change, looked at once
more, and started.
"""

from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from discreet.calendar import rate_words
from discreet.errors import DiscreetError, InvalidInputError
from discreet.planning.plan import Plan
from discreet.planning.reach import out_of_reach
from discreet.planning.rows import PlanRow
from discreet.planning.ways import Way
from discreet.reports.chances import best_words, cheap_words, few_right_words, price_words
from discreet.reports.conduct import privacy_sentence
from discreet.reports.days import end_cells
from discreet.reports.page import fragment
from discreet.reports.past import in_units
from discreet.reports.plan import plan_sections
from discreet.scale import YES_NO
from discreet.service import planner
from discreet.service.home import Home
from discreet.service.pages.deskview import outcome_words
from discreet.service.pages.draft import DEFAULTS, FOR_DAYS, LABELS, Draft, read
from discreet.service.pages.frame import ENVIRONMENT, Look, address, look, send
from discreet.service.pictures import without_styles
from discreet.service.remember import Remembered
from discreet.service.starting import start_trial
from discreet.strategies.presets import rounded_words
from discreet.trials.dealing import DEALING, GUARANTEE
from discreet.trials.protocol import (
    BLINDING,
    ENROLMENT,
    MISSING,
    PEOPLE,
    RELEASE,
    RETAIN,
    Protocol,
)
from discreet.words import closed, correctness_words, counted, day_words, listed, people

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


LATER = ("name", "max_people")
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
        sections = plan_sections(found, trial=False, about=about_words(draft, found))
        drawn = without_styles(fragment(sections[1:]))
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
        max_people=draft["max_people"],
        outcomes=draft["outcomes"],
        **draft.calendar,
    )


def room_of(found: Plan) -> int:
    """A maximum of people that leaves room for bad luck; 0 if there is one already."""
    most = found.per_epsilon[0].samples.q90
    return 0 if found.max_people is not None or most is None else int(float(f"{1.5 * most:.2g}"))


def plan_words(found: Plan) -> list[str]:
    """What a plan comes to, in plain words."""
    row = found.per_epsilon[0]
    lines = [f"About {people(row.samples.mean)} people on average."]
    stuck = row.unstopped_probability
    if stuck >= 0.01 and found.max_people is not None:
        lines.append(
            f"{stuck:.0%} of such trials reach the maximum of {found.max_people:,} people without "
            "an answer."
        )
    elif row.samples.q90 is not None:
        lines.append(f"Nine of ten such trials end within {people(row.samples.q90)} people.")
    if room := room_of(found):
        lines.append(f"A maximum of {people(room)} people leaves room for bad luck.")
    if row.privacy_cost is not None:
        lines.append(
            f"With privacy a trial takes {row.privacy_cost:.3g} times as many people as without "
            f"it{price_words(found)}."
        )
        lines.append(cheap_words(found.per_epsilon))
    if warning := few_right_words(found, row):
        lines.insert(0, f"Warning: {warning}")
    lines.append(_chance_words(found, row))
    lines += [_end_words(way) for way in found.ways if way.epsilon is not None]
    return [line for line in lines if line]


def about_words(draft: Draft, found: Plan) -> str:
    """What the simulations assume of the arms, in the units of outcomes that are
    numbers; and that the best of them is only an example.
    """
    ((name, arms),) = found.scenarios.items()
    scale, means = draft.scale, zip(arms.names, arms.means, strict=True)
    best = (
        f"In these simulations {best_words(found, name)} is best, only because it is the first in "
        "the list: with another one the numbers would hardly differ."
    )
    if scale is None:
        success = " (a success is the answer no)" if draft["direction"] == "min" else ""
        shown = listed([f"{closed(arm)} {mean:g}" for arm, mean in means])
        return f"Success rates{success}: {shown}. {best}"
    shown = listed([f"{closed(arm)} {in_units(mean, scale)}" for arm, mean in means])
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
    if found.max_people is None:
        return f"{row.correct:.0%} of such trials give the right answer ({sure})."
    return (
        f"Power: at the difference worth finding, {row.correct:.0%} of such trials end within "
        f"{found.max_people:,} people with the right answer ({sure}), and "
        f"{1 - row.unstopped_probability:.0%} with any answer."
    )


def _end_words(way: Way) -> str:
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
    for way in () if found is None else found.ways:
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
        ("Error rate", correctness_words(strategy.correctness, protocol.scale)),
        ("What the answer means", GUARANTEE[protocol.dealing]),
        ("Assignment", DEALING[protocol.dealing]),
        ("Looks", RELEASE[protocol.release]),
        ("Enrolment", ENROLMENT[protocol.enrolment]),
        ("If somebody comes again", PEOPLE[protocol.people]),
        ("Blinding", BLINDING[protocol.blinding]),
        ("Missing outcomes", MISSING),
        ("Retention", RETAIN[protocol.retain]),
    ]


def _warning(protocol: Protocol) -> str:
    """That the trial would end without an answer, if that can be said; else that it
    would round outcomes for no reason.
    """
    found = out_of_reach(protocol.strategy, len(protocol.arms), protocol.max_people)
    if found is None:
        rounded = rounded_words(protocol.strategy, protocol.scale.numbers)
        return rounded and f"{rounded[:1].upper()}{rounded[1:]}."
    takes = "more people than that" if found.people is None else f"about {found.people:,} people"
    return (
        "Even if one arm did as well as possible and the others as badly as possible, the trial "
        f"would take {takes}: with at most {protocol.max_people:,} it will end without an answer. "
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
