"""The pages of a new trial: the form with a plan that follows every change, the review,
and the start.
"""

from dataclasses import replace
from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from discreet.accrual import describe_accrual
from discreet.errors import DiscreetError, InvalidInputError
from discreet.planning.plan import Plan
from discreet.planning.power import check_reach
from discreet.planning.rows import EnrolmentOption, PlanRow
from discreet.reports.html import render_sections
from discreet.reports.plan import (
    build_plan_sections,
    explain_low_cost,
    make_end_cells,
    name_best_arms,
    qualify_cost,
    warn_of_few_correct,
)
from discreet.reports.summaries import format_in_units
from discreet.reports.trial_text import explain_privacy
from discreet.scale import YES_NO
from discreet.service import planner
from discreet.service.cache import OnceCache
from discreet.service.endpoints import start_trial
from discreet.service.pages.base import (
    ENVIRONMENT,
    PageRequest,
    address,
    form_route,
    page_route,
    without_styles,
)
from discreet.service.pages.site import outcome_words
from discreet.service.pages.trial_form import (
    FIELDS,
    FOR_DAYS,
    LABELS,
    SETTING_FIELDS,
    TrialForm,
    read_form,
)
from discreet.service.state import AppState
from discreet.strategies.presets import explain_rounding
from discreet.trials.protocol import MISSING, Protocol
from discreet.trials.settings import SETTINGS
from discreet.wording import format_count, format_day, format_participants, isolate_name, join_first

FRAGMENTS = OnceCache[str](128)
PATIENCE = 1.0
"""Seconds to wait for simulations that are being compiled, before that is said."""


async def _show_empty(page: PageRequest) -> Response:
    planner.warm()
    return _show_form(page, read_form({}), fresh=True)


def _show_form(page: PageRequest, form: TrialForm, fresh: bool = False, **more: Any) -> Response:
    """Return the form's page. A form that nobody has filled in has nothing wrong yet."""
    wrong = {} if fresh else form.wrong
    known = {"plan": "", "refused": ""} | more
    status = 422 if wrong and not known["plan"] else 200
    about = {"typed": form.typed, "wrong": wrong, "read": rate_note(form)}
    rest = [name for name in SETTING_FIELDS if name not in PLACED]
    return page.render("new.html", status, fields=FIELDS, rest=rest, **about, **known)


PLACED = ("sites", "deadline", "release", "enrolment", "returning", "blinding")
"""Settings that have a place on the page; others follow under more settings."""


async def _receive_form(page: PageRequest) -> Response:
    """Do what the pressed button says: show the plan, review or start the trial."""
    form = read_form(page.form)
    wanted = page.form.get("do", "")
    if wanted == "plan":
        plan = Markup(await page.run(plan_fragment, form))
        wrong = {name: words for name, words in form.wrong.items() if name not in NOT_FOR_PLAN}
        return _show_form(page, replace(form, wrong=wrong), plan=plan)
    if form.wrong or wanted == "back":
        return _show_form(page, form, fresh=wanted == "back")
    try:
        if wanted == "create":
            return await _create(page, form)
        return await _review(page, form)
    except InvalidInputError as error:
        return _show_form(page, form, refused=str(error))


NOT_FOR_PLAN = ("name", "max_participants")
"""Fields without which a plan can be made."""


# --- the plan -------------------------------------------------------------------------


async def _plan(page: PageRequest) -> Response:
    planner.warm()
    form = read_form(page.form)
    text = await page.run(plan_fragment, form)
    beside = ENVIRONMENT.get_template("beside.html")
    text += beside.render(wrong=form.wrong, read=rate_note(form))
    return HTMLResponse(text, headers={"Cache-Control": "no-store"})


def rate_note(form: TrialForm) -> str:
    """Say how the enrolment rate was read, if one was typed."""
    return "" if form["accrual"] is None else f"Read as {_describe_rate(form)}."


def _describe_rate(form: TrialForm) -> str:
    return describe_accrual(form.typed["accrual"].strip().replace(",", "."))


def plan_fragment(form: TrialForm) -> str:
    """Return the plan in words and charts, as a part of a page."""
    wrong = {name: words for name, words in form.wrong.items() if name not in NOT_FOR_PLAN}
    if any(name not in FOR_DAYS for name in wrong):
        return _render_plan(wrong=wrong)
    if wrong:
        form = form.without_days
    if not planner.ready(PATIENCE, bool(form.calendar)):
        return _render_plan(waits=True)
    shown = FRAGMENTS.get(form.key, lambda: _draw_plan(form))
    return _render_plan(wrong=wrong, days_wrong=True) + shown if wrong else shown


def _render_plan(**about: Any) -> str:
    known = {"plan": "", "wrong": {}, "waits": False, "days_wrong": False, "lines": [], "room": 0}
    return ENVIRONMENT.get_template("plan.html").render(known | {"labels": LABELS} | about)


def _draw_plan(form: TrialForm) -> str:
    try:
        plan = _make_plan(form)
        sections = build_plan_sections(plan, example=False, about=about_words(form, plan))
        drawn = without_styles(render_sections(sections[1:]))
    except DiscreetError as error:
        return _render_plan(wrong={"": str(error)})
    return _render_plan(plan=Markup(drawn), lines=plan_words(plan), room=room_of(plan))


def _make_plan(form: TrialForm) -> Plan:
    return planner.planned(
        form.simulated,
        form["arms"],
        form.gap,
        form.base,
        start=form["start"],
        width=None if form.scale is None else form.scale.high - form.scale.low,
        epsilons=[form["epsilon"]],
        delta=form["delta"] / 100,
        trust=form["trust"],
        max_participants=form["max_participants"],
        outcomes=form["outcomes"],
        **form.calendar,
    )


def room_of(plan: Plan) -> int:
    """Return a maximum number of participants with a margin over what nine of ten
    trials take; 0 if the plan has a maximum already.
    """
    q90 = plan.per_epsilon[0].participants.q90
    if plan.max_participants is not None or q90 is None:
        return 0
    return int(float(f"{1.5 * q90:.2g}"))


def plan_words(plan: Plan) -> list[str]:
    """Return the results of a plan as sentences."""
    row = plan.per_epsilon[0]
    lines = [f"About {format_participants(row.participants.mean)} participants on average."]
    inconclusive = row.unstopped_probability
    if inconclusive >= 0.01 and plan.max_participants is not None:
        lines.append(
            f"{inconclusive:.0%} of such trials reach the maximum of {plan.max_participants:,} "
            "participants without a conclusion."
        )
    elif row.participants.q90 is not None:
        lines.append(
            "Nine of ten such trials end within "
            f"{format_participants(row.participants.q90)} participants."
        )
    if room := room_of(plan):
        lines.append(f"A maximum of {format_participants(room)} participants leaves a margin.")
    if row.privacy_cost is not None:
        lines.append(
            f"With privacy a trial takes {row.privacy_cost:.3g} times as many participants as "
            f"without it{qualify_cost(plan)}."
        )
        lines.append(explain_low_cost(plan.per_epsilon))
    if warning := warn_of_few_correct(plan, row):
        lines.insert(0, f"Warning: {warning}")
    lines.append(_describe_power(plan, row))
    lines += [_describe_end(way) for way in plan.enrolments if way.epsilon is not None]
    return [line for line in lines if line]


def about_words(form: TrialForm, plan: Plan) -> str:
    """Say what the simulations assume about the arms, in the units of the outcomes,
    and that the best of them is only an example.
    """
    ((name, arms),) = plan.scenarios.items()
    scale, means = form.scale, zip(arms.names, arms.means, strict=True)
    best = (
        f"In these simulations {name_best_arms(plan, name)} is best, only because it is the first "
        "in the list: with another one the numbers would hardly differ."
    )
    if scale is None:
        success = " (a success is the answer no)" if form["direction"] == "min" else ""
        rates = join_first([f"{isolate_name(arm)} {100 * mean:g} %" for arm, mean in means])
        return f"Success rates{success}: {rates}. {best}"
    values = join_first(
        [f"{isolate_name(arm)} {format_in_units(mean, scale)}" for arm, mean in means]
    )
    better = "more" if scale.direction == "max" else "less"
    return (
        f"Mean outcomes: {values}, where outcomes lie between {scale.low:g} and {scale.high:g} and "
        f"{better} is better. {best} Every simulated outcome is {scale.low:g} or {scale.high:g}; "
        "outcomes that lie closer together may take fewer participants."
    )


def _describe_power(plan: Plan, row: PlanRow) -> str:
    """Say how likely a correct conclusion is at the target difference."""
    low, high = row.correct_interval
    interval = f"95 % interval: {low:.0%} to {high:.0%}, from {row.runs} simulated trials"
    if plan.max_participants is None:
        return f"{row.correct:.0%} of such trials identify the best arm ({interval})."
    return (
        f"Power: at the target difference, {row.correct:.0%} of such trials identify the best arm "
        f"within {plan.max_participants:,} participants ({interval}), and "
        f"{1 - row.unstopped_probability:.0%} come to any conclusion."
    )


def _describe_end(way: EnrolmentOption) -> str:
    """Say how long a trial takes, and when it ends if its first day is known."""
    if way.days.mean is None:
        return ""
    days = format_count(f"{way.days.mean:,.0f}", "day")
    words = f"With {way.enrolment} enrolment it takes about {days}"
    if way.start is None:
        return f"{words}."
    _, expected, band = make_end_cells(way)
    return (
        f"{words}: if it begins on {format_day(way.start)}, it is expected to end on {expected} "
        f"(eight of ten such trials: {band})."
    )


# --- the review -----------------------------------------------------------------------


async def _review(page: PageRequest, form: TrialForm, refused: str = "") -> Response:
    protocol = form.protocol
    warning = await page.run(_warn, protocol)
    is_quick = planner.ready(0.0, bool(form.calendar))
    plan = await page.run(_make_plan, form) if is_quick else None
    return page.render(
        "review.html",
        422 if refused else 200,
        typed=form.typed,
        protocol=protocol,
        outcomes=outcome_words(protocol),
        unit=" percentage points" if form["outcomes"] == YES_NO else "",
        expected=[] if plan is None else plan_words(plan)[:2],
        when=when_words(form, plan),
        guarantees=describe_protocol(protocol),
        warning=warning,
        refused=refused,
    )


def when_words(form: TrialForm, plan: Plan | None) -> str:
    """Say when the trial is planned to begin and to end; empty without a first day."""
    if form["start"] is None:
        return ""
    begin = f"Planned to begin on {format_day(form['start'])}"
    for way in () if plan is None else plan.enrolments:
        if way.epsilon is None or way.enrolment != form["enrolment"] or way.end is None:
            continue
        first, last = way.end["q10"], way.end["q90"]
        if first is not None and last is not None:
            return (
                f"{begin}, planned to end between {format_day(first)} and {format_day(last)}: "
                f"eight of ten simulated trials did, with {_describe_rate(form)}."
            )
    return f"{begin}."


SHOWN_OTHERWISE = (
    *("max_participants", "range", "direction", "sites", "deadline", "question", "script"),
)
"""Settings that the review shows in rows of their own."""


def describe_protocol(protocol: Protocol) -> list[tuple[str, str]]:
    """Return what the trial guarantees and how its settings act, as rows of a table."""
    strategy = protocol.strategy
    rows = [
        ("Privacy", explain_privacy(strategy.epsilon, strategy.privacy, strategy.gamma)),
        ("Error probability", protocol.describe_guarantee()),
        ("Missing outcomes", MISSING),
    ]
    for name, setting in SETTINGS.items():
        value = getattr(protocol, name)
        if name not in SHOWN_OTHERWISE and value not in ("", None):
            rows.append((setting.label, setting.choices.get(value, str(value))))
    return rows


def _warn(protocol: Protocol) -> str:
    """Warn that the trial would end without a conclusion, or round outcomes without
    need; empty if neither can be said.
    """
    reach = check_reach(protocol.strategy, len(protocol.arms), protocol.max_participants)
    if reach is None:
        rounded = explain_rounding(protocol.strategy, protocol.scale.is_numbers)
        return rounded and f"{rounded[:1].upper()}{rounded[1:]}."
    takes = (
        "more than that"
        if reach.participants is None
        else f"about {reach.participants:,} participants"
    )
    return (
        "Even if one arm did as well as possible and the others as badly as possible, the trial "
        f"would take {takes}: with at most {protocol.max_participants:,} participants it will end "
        "without a conclusion. Raise the maximum, or choose less privacy."
    )


async def _create(page: PageRequest, form: TrialForm) -> Response:
    settings = {"name": form["name"], "arms": form["arms"], **form.settings}
    who = page.principal.who
    try:
        await page.run(start_trial, page.app_state, who, form.strategy, settings)
    except InvalidInputError as error:
        return await _review(page, form, str(error))
    return page.redirect(address("t", form["name"]))


def routes(app_state: AppState) -> list[Route]:
    """Return the routes of the pages of a new trial."""
    return [
        page_route(app_state, "/new", "create", _show_empty),
        form_route(app_state, "/new", "create", _receive_form),
        form_route(app_state, "/new/plan", "plan", _plan),
    ]
