"""A new trial: thought out with a plan that answers at every change, looked at once
more, and started.
"""

from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from discreet.errors import DiscreetError, InvalidInputError
from discreet.planning.plan import Plan
from discreet.planning.reach import out_of_reach
from discreet.reports.chances import few_right_words, price_words
from discreet.reports.page import fragment
from discreet.reports.plan import plan_sections
from discreet.service import planner
from discreet.service.home import Home
from discreet.service.pages.deskview import outcome_words
from discreet.service.pages.draft import DEFAULTS, Draft, read
from discreet.service.pages.frame import ENVIRONMENT, Look, address, look, send
from discreet.service.pages.words import privacy_words
from discreet.service.pictures import without_styles
from discreet.service.remember import Remembered
from discreet.service.routes import Route
from discreet.trials.aloud import plainly
from discreet.trials.dealing import GUARANTEE, assignment_words
from discreet.trials.protocol import (
    BLINDING,
    ENROLMENT,
    MISSING,
    PEOPLE,
    RELEASE,
    RETAIN,
    Protocol,
)
from discreet.trials.trial import Trial
from discreet.words import correctness_words, people

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
    return looking.page("new.html", status, said=draft.said, wrong=wrong, **known)


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
    text = await looking.run(plan_fragment, read(looking.form))
    return HTMLResponse(text, headers={"Cache-Control": "no-store"})


def plan_fragment(draft: Draft) -> str:
    """The plan in words and pictures, as a part of a page."""
    wrong = {name: words for name, words in draft.wrong.items() if name not in LATER}
    template = ENVIRONMENT.get_template("plan.html")
    if wrong:
        return template.render(plan="", wrong=wrong, waits=False, lines=[])
    if not planner.ready(PATIENCE, bool(draft.calendar)):
        return template.render(plan="", wrong={}, waits=True, lines=[])
    return FRAGMENTS.get(draft.key, lambda: _drawn(draft))


def _drawn(draft: Draft) -> str:
    template = ENVIRONMENT.get_template("plan.html")
    try:
        found = planner.planned(
            draft.key,
            len(draft["arms"]),
            draft.gap,
            draft.base,
            epsilons=[draft["epsilon"]],
            delta=draft["delta"] / 100,
            trust=draft["trust"],
            max_people=draft["max_people"],
            outcomes=draft["outcomes"],
            **draft.calendar,
        )
        drawn = without_styles(fragment(plan_sections(found, trial=False)[1:]))
    except DiscreetError as error:
        return template.render(plan="", wrong={"": str(error)}, waits=False, lines=[])
    return template.render(plan=Markup(drawn), wrong={}, waits=False, lines=plan_words(found))


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
    if found.max_people is None and row.samples.q90 is not None:
        room = float(f"{1.5 * row.samples.q90:.2g}")
        lines.append(f"A maximum of {people(room)} people leaves room for bad luck.")
    if row.privacy_cost is not None:
        lines.append(
            f"Privacy costs {row.privacy_cost:.3g} times as many people as without "
            f"it{price_words(found)}."
        )
    if warning := few_right_words(found, row):
        lines.insert(0, f"Warning: {warning}")
    else:
        lines.append(f"{row.correct:.0%} of {row.runs} simulated trials gave the right answer.")
    chosen = [way for way in found.ways if way.epsilon is not None]
    for way in chosen:
        if way.days.mean is not None:
            lines.append(f"With {way.enrolment} enrolment about {way.days.mean:,.0f} days.")
    return lines


# --- the last look --------------------------------------------------------------------


async def _review(looking: Look, draft: Draft, refused: str = "") -> Response:
    protocol = draft.protocol
    warning = await looking.run(_warning, protocol)
    return looking.page(
        "review.html",
        422 if refused else 200,
        said=draft.said,
        protocol=protocol,
        outcomes=outcome_words(protocol),
        promised=promised(protocol),
        warning=warning,
        refused=refused,
    )


def promised(protocol: Protocol) -> list[tuple[str, str]]:
    """What the trial will promise, before it begins."""
    strategy = protocol.strategy
    assigned = assignment_words(strategy, protocol.dealing)
    found = [
        ("Privacy", privacy_words(strategy.epsilon, strategy.privacy, strategy.gamma)),
        ("Error rate", correctness_words(strategy.correctness, protocol.scale)),
        ("What the answer means", GUARANTEE.get(protocol.dealing, "")),
        ("Assignment", assigned),
        ("Releases", RELEASE[protocol.release]),
        ("Enrolment", ENROLMENT[protocol.enrolment]),
        ("If somebody comes again", PEOPLE[protocol.people]),
        ("Blinding", BLINDING[protocol.blinding]),
        ("Missing outcomes", MISSING[protocol.missing]),
        ("Retention", RETAIN[protocol.retain]),
    ]
    return [(title, plainly(words)) for title, words in found if words]


def _warning(protocol: Protocol) -> str:
    """That the trial would end without an answer, if that can be said."""
    found = out_of_reach(protocol.strategy, len(protocol.arms), protocol.max_people)
    if found is None:
        return ""
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
    made = Trial.create(
        looking.home.url,
        draft["name"],
        draft["arms"],
        draft.strategy,
        who=looking.visitor.who,
        **draft.settings,
    )
    made.close()


def routes(home: Home) -> list[Route]:
    """The pages of a new trial."""
    return [
        look(home, "/new", "create", _form),
        send(home, "/new", "create", _sent),
        send(home, "/new/plan", "plan", _plan),
    ]
