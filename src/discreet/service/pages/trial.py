"""A trial as it is now, for those who may see it."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from discreet.errors import RefusedError
from discreet.reports import charts
from discreet.reports.charts.style import describe_shown
from discreet.reports.html import POLICY
from discreet.reports.trial import draw_trial, trial_page
from discreet.reports.trial_data import check_control
from discreet.reports.trial_text import (
    choose_best_mark,
    describe_arm_changes,
    explain_intervals,
    explain_privacy,
    list_action_rows,
    list_guarantees,
    list_site_rows,
    note_arm_changes,
)
from discreet.service.auth import ANYONE, Principal
from discreet.service.cache import OnceCache
from discreet.service.pages.account import without_token
from discreet.service.pages.base import PageRequest, address, page_route, without_styles
from discreet.service.pages.site import outcome_words
from discreet.service.pages.trial_text import (
    LABEL,
    ahead_of,
    event_words,
    evidence_words,
    known_words,
    state_words,
    waits_words,
)
from discreet.service.state import AppState, Computation, ServedTrial, blinded
from discreet.tabular import escape_formula
from discreet.trials.protocol import MISSING
from discreet.trials.record import Event
from discreet.trials.settings import (
    BLINDING,
)
from discreet.trials.status import Status
from discreet.trials.trial import Trial
from discreet.validation import read_whole
from discreet.wording import describe_lead, format_interval, format_percent, format_to_precision

NO_MEANS = "sites see how the arms did only after the trial has ended"
NOTHING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 1"/>'


def picture_key(said: Mapping[str, Any]) -> str:
    """What the picture of a trial depends on: another one is another picture."""
    return f"{said['releases']}-{len(said['actions'])}-{int(said['stopped'])}"


async def means(page: PageRequest) -> Response:
    """The private means at each interim analysis, drawn."""
    return await _picture(page, "means")


async def evidence(page: PageRequest) -> Response:
    """The evidence against each arm, drawn."""
    return await _picture(page, "evidence")


async def _picture(page: PageRequest, which: str) -> Response:
    def plan() -> Computation:
        seen = page.app_state.seen(page.name, page.principal)
        trial, status = seen.trial, seen.status
        if blinded(trial.protocol, status.stopped, page.principal):
            raise RefusedError(NO_MEANS, True)
        key = (page.name, "pictures", picture_key(seen.said()))
        return Computation(
            key, lambda: _draw_pictures(trial), lambda found: found.get(which, NOTHING)
        )

    return svg(await page.app_state.compute(await page.run(plan)))


def svg(text: str) -> Response:
    """Return a picture as a response. No browser stores it: it may be a shared one."""
    return Response(text, 200, {"Cache-Control": "no-store"}, "image/svg+xml")


def _draw_pictures(trial: Trial) -> dict[str, str]:
    """All pictures of a trial, in one walk through its record."""
    found = draw_trial(trial.transcript())
    return {name: without_styles(figure.draw().decode()) for name, figure in found.items()}


async def transcript(page: PageRequest) -> Response:
    """What may be published."""
    return await _file(page, "transcript.json", "application/json", transcript_text)


def transcript_text(trial: Trial) -> str:
    """The transcript as it is written to a file."""
    return json.dumps(trial.transcript(), indent=1, ensure_ascii=False) + "\n"


async def report(page: PageRequest) -> Response:
    """The transcript as a page of its own, with its own styles and no script; arms are
    compared with the one that is asked for.
    """
    control = page.request.query_params.get("control") or None
    found = await _file(
        page,
        "report.html",
        "text/html",
        lambda trial: trial_page(trial.transcript(), control),
        control,
    )
    found.headers["Content-Security-Policy"] = POLICY
    return found


async def arms(page: PageRequest) -> Response:
    """The arms as a table for a spreadsheet."""
    return await _file(page, "arms.csv", "text/csv", _write_arms_csv)


def _write_arms_csv(trial: Trial) -> str:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["arm", "participants", "outcomes in the estimate", "estimate", "low", "high"])
    for arm in trial.status().arms:
        ends = arm.interval or ("", "")
        table.writerow(
            [
                escape_formula(arm.name),
                arm.assigned,
                arm.count,
                "" if arm.mean is None else arm.mean,
                *ends,
            ]
        )
    return text.getvalue()


async def _file(
    page: PageRequest,
    ending: str,
    media: str,
    make: Callable[[Trial], str],
    control: str | None = None,
) -> Response:
    """A file of a trial, made once for a state of it."""

    def plan() -> Computation:
        seen = page.app_state.seen(page.name, page.principal)
        trial, status = seen.trial, seen.status
        check_control(control, [arm.name for arm in status.arms])
        key = (page.name, status.head, status.pending, status.erasing, ending, control)
        return Computation(key, lambda: make(trial))

    text = await page.app_state.compute(await page.run(plan))
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", page.name).strip("-")[:60] or "trial"
    shown = "inline" if media == "text/html" else "attachment"
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'{shown}; filename="{plain}-{ending}"',
    }
    return Response(text, 200, headers, media)


FLOWS = OnceCache[str](64)
STEPS = 50
"""The picture is drawn again when there is so great a part of participants more."""
MOST_CALLS = 100_000
"""Calls by which participants are drawn: the last ones, if there were more."""
TIMED = "Participants assigned over time, by site and in all, with the times of the public record."
NOTED = "Participants assigned over time, by site and in all, with the times of the audit trail."
IN_ORDER = (
    "Participants assigned at each site against participants assigned in all: the public record of "
    "this trial has their order, but no times."
)


def describe_enrolment(trial: Trial, status: Status, principal: Principal, follows: bool) -> str:
    """What the picture shows to a principal, who may follow the record; empty if there is
    none.
    """
    if status.participants < 2 or not follows:
        return ""
    if trial.protocol.has_times:
        return TIMED
    if principal.may("audit-trail", status.name):
        return NOTED
    return IN_ORDER if any(site.participants for site in status.sites) else ""


def flow_key(status: Status) -> str:
    """What the picture depends on."""
    step = max(status.participants // STEPS, 1)
    return f"{status.participants - status.participants % step}-{status.stopped}"


async def flow(page: PageRequest) -> Response:
    """Participants against time, by site."""

    def drawn() -> str:
        trial = page.app_state.trial(page.name)
        private = not trial.protocol.has_times and page.principal.may("audit-trail", page.name)
        key = (
            page.app_state.url,
            page.name,
            private,
            flow_key(page.app_state.seen(page.name, page.principal).status),
        )
        return FLOWS.get(key, lambda: _draw_enrolment(trial, private))

    return svg(await page.run(drawn))


def _draw_enrolment(trial: Trial, private: bool) -> str:
    data = charts.enrolment(_noted(trial) if private else _recorded(trial))
    if data is None:
        return NOTHING
    return without_styles(charts.render(charts.draw_enrolment(data)).decode())


def _noted(trial: Trial) -> list[charts.Arrival]:
    calls = reversed(trial.audit_trail(MOST_CALLS))
    return [
        charts.Arrival(one.at, one.site, one.participants) for one in calls if one.action == "ask"
    ]


def _recorded(trial: Trial) -> list[charts.Arrival]:
    said = [one.content for one in reversed(trial.record(MOST_CALLS)) if one.kind == "assigned"]
    return [charts.Arrival(one.get("at"), one.get("site"), len(one["arms"])) for one in said]


EVENTS = 20
"""Lines of the record on a page."""
EVIDENCE = OnceCache[list[float | None]](256)
"""Against each arm, after the last release."""


@dataclass(frozen=True)
class Bar:
    """An arm's mean and interval as places from 0 to 100 on the line of outcomes."""

    low: float
    high: float
    mean: float


def view(
    app_state: AppState, trial: ServedTrial, principal: Principal, before: int | None, public: bool
) -> dict[str, Any]:
    """All that the page of a trial shows to a principal."""
    seen = app_state.seen(trial.protocol.name, principal)
    status, said = seen.status, seen.said()
    blind = blinded(trial.protocol, status.stopped, principal)
    name = trial.protocol.name
    follows = public or principal.may("transcript", name)
    record = seen.record(EVENTS, before) if follows else []
    return {
        "name": name,
        "base": address("p" if public else "t", name),
        "public": public,
        "question": trial.protocol.question,
        "blind": blind,
        "follows": follows,
        "manages": not public and principal.may("manage", name),
        "enrols": not public and principal.may("ask", name) and not status.stopped,
        "next": _next(app_state, principal, said) if not public else None,
        "admits": _admits(principal, said) if not public else [],
        "now": said,
        "state": state_words(said),
        "waits": waits_words(said),
        "known": known_words(said, blind),
        "left": describe_arm_changes(said),
        "ahead": ahead_of(app_state, trial, status, principal),
        "label": LABEL,
        "mark": mark_of(app_state, status, blind),
        **({} if blind else _describe_arms(app_state, said, trial)),
        "flow": describe_enrolment(trial, status, principal, follows),
        "flow_key": flow_key(status),
        "sites": list_site_rows(said),
        "acts": list_action_rows(said),
        "promised": _promised(said, trial),
        "record": _record(record, [arm["name"] for arm in said["arms"]]),
        "older": record[-1].seq if record and record[-1].seq > 1 else None,
        "newest": before is None,
    }


def _next(app_state: AppState, principal: Principal, said: Mapping[str, Any]) -> list[str] | None:
    """Sites that the manager of a trial without participants may let in now; None if there
    is no next step to say.
    """
    name = said["name"]
    begins = not said["participants"] and not said["stopped"]
    if not begins or not principal.may("tokens", name):
        return None
    return without_token(app_state, name, [site["name"] for site in said["sites"]])


def _admits(principal: Principal, said: Mapping[str, Any]) -> list[str]:
    """Sites that the manager of a trial may make another token for."""
    lets = principal.may("tokens", said["name"]) and not said["stopped"]
    return [site["name"] for site in said["sites"] if not site["closed"]] if lets else []


def mark_of(app_state: AppState, status: Status, blind: bool) -> str:
    """Return a text that changes as soon as the page shows something else. Blinded
    visitors see no forecast, which is another one after each action on an arm.
    """
    counts = f"{status.pending} {status.waiting} {status.past_deadline}"
    forecast = "" if blind else app_state.forecasts.known(status.name)
    return f"{status.head} {counts} {forecast}"


def _describe_arms(
    app_state: AppState, said: Mapping[str, Any], trial: ServedTrial
) -> dict[str, Any]:
    """How the arms do."""
    protocol, notes = trial.protocol, note_arm_changes(said)
    key = picture_key(said)
    known = EVIDENCE.get(
        (app_state.url, said["name"], key), lambda: trial.copy_run().measure_evidence()
    )
    level = format_percent(1 - said["delta"])
    span = (protocol.low, protocol.high)
    rows = [
        (arm, _bar(arm, *span), notes.get(arm["name"], ""), evidence_words(share))
        for arm, share in zip(said["arms"], known, strict=False)
    ]
    intervals = any(arm["interval"] for arm in said["arms"])
    leads = [
        describe_lead(lead["name"], lead["over"], lead["better_by"], lead["participants"]) + "."
        for lead in said["leads"]
    ]
    return {
        "arms": rows,
        "best_mark": choose_best_mark(said),
        "which": describe_shown(len(rows)),
        "level": level,
        "intervals": explain_intervals(said, level) if intervals else "",
        "outcomes": outcome_words(protocol),
        "leads": leads,
        "as_sure": format_to_precision,
        "interval_ends": format_interval,
        "span": span,
        "evident": any(share is not None for share in known),
        "picture": key if said["releases"] else "",
    }


def _bar(arm: Mapping[str, Any], low: float, high: float) -> Bar | None:
    if arm["interval"] is None or arm["mean"] is None:
        return None
    places = (*arm["interval"], arm["mean"])
    return Bar(*(min(max(100 * (at - low) / (high - low), 0), 100) for at in places))


def _promised(said: Mapping[str, Any], trial: ServedTrial) -> list[tuple[str, str]]:
    return [
        ("Privacy", explain_privacy(said["epsilon"], said["privacy"], said["gamma"])),
        *list_guarantees(said),
        ("Missing outcomes", MISSING),
        ("Retention", said["retain"]),
        *([("Blinding", BLINDING[trial.protocol.blinding])] if trial.protocol.is_blinded else []),
    ]


def _record(events: list[Event], arms: list[str]) -> list[tuple[Event, str]]:
    return [(event, event_words(event, arms)) for event in events]


def before_of(page: PageRequest) -> int | None:
    """From where on the record is shown, if not from its end."""
    return read_whole(page.request.query_params.get("before", ""))


async def _trial(page: PageRequest) -> Response:
    if page.principal.role == ANYONE:
        return page.redirect(address("p", page.name))
    trial = await page.run(page.app_state.trial, page.name)
    found = await page.run(
        view, page.app_state, trial, page.principal, before_of(page) or None, False
    )
    published = await page.run(page.app_state.published, page.name)
    return page.render("trial.html", published=published, **found)


async def mark(page: PageRequest) -> Response:
    """A short text that changes when the page does."""

    seen = await page.run(page.app_state.seen, page.name, page.principal)
    blind = blinded(seen.trial.protocol, seen.status.stopped, page.principal)
    found = mark_of(page.app_state, seen.status, blind)
    return PlainTextResponse(found, headers={"Cache-Control": "no-store"})


def routes(app_state: AppState) -> list[Route]:
    """The page of a trial, and what it fetches."""
    return [
        page_route(app_state, "/t/{name}", "status", _trial),
        page_route(app_state, "/t/{name}/head", "status", mark),
        page_route(app_state, "/t/{name}/means.svg", "status", means),
        page_route(app_state, "/t/{name}/evidence.svg", "status", evidence),
        page_route(app_state, "/t/{name}/participants.svg", "transcript", flow),
        page_route(app_state, "/t/{name}/transcript.json", "transcript", transcript),
        page_route(app_state, "/t/{name}/report.html", "report", report),
        page_route(app_state, "/t/{name}/arms.csv", "transcript", arms),
    ]
