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
from discreet.reports.charts.style import shown_words
from discreet.reports.html import POLICY
from discreet.reports.trial import trial_page, trial_pictures
from discreet.reports.trial_data import check_control
from discreet.reports.trial_text import (
    act_rows,
    arm_notes,
    best_mark,
    interval_words,
    left_words,
    privacy_sentence,
    promises,
    site_rows,
)
from discreet.service.auth import ANYONE, Visitor
from discreet.service.cache import Remembered
from discreet.service.pages.account import without_token
from discreet.service.pages.base import Look, address, look, without_styles
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
from discreet.service.state import Computation, Home, ServedTrial, blinded
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


async def means(looking: Look) -> Response:
    """The private means at each look, drawn."""
    return await _picture(looking, "means")


async def evidence(looking: Look) -> Response:
    """The evidence against each arm, drawn."""
    return await _picture(looking, "evidence")


async def _picture(looking: Look, which: str) -> Response:
    def plan() -> Computation:
        seen = looking.home.seen(looking.name, looking.visitor)
        trial, status = seen.trial, seen.status
        if blinded(trial.protocol, status.stopped, looking.visitor):
            raise RefusedError(NO_MEANS, True)
        key = (looking.name, "pictures", picture_key(seen.said()))
        return Computation(
            key, lambda: _draw_pictures(trial), lambda found: found.get(which, NOTHING)
        )

    return svg(await looking.home.compute(await looking.run(plan)))


def svg(text: str) -> Response:
    """Return a picture as a response. No browser stores it: it may be a shared one."""
    return Response(text, 200, {"Cache-Control": "no-store"}, "image/svg+xml")


def _draw_pictures(trial: Trial) -> dict[str, str]:
    """All pictures of a trial, in one walk through its record."""
    found = trial_pictures(trial.transcript())
    return {name: without_styles(figure.draw().decode()) for name, figure in found.items()}


async def transcript(looking: Look) -> Response:
    """What may be published."""
    return await _file(looking, "transcript.json", "application/json", transcript_text)


def transcript_text(trial: Trial) -> str:
    """The transcript as it is written to a file."""
    return json.dumps(trial.transcript(), indent=1, ensure_ascii=False) + "\n"


async def report(looking: Look) -> Response:
    """The transcript as a page of its own, with its own styles and no script; arms are
    compared with the one that is asked for.
    """
    control = looking.request.query_params.get("control") or None
    found = await _file(
        looking,
        "report.html",
        "text/html",
        lambda trial: trial_page(trial.transcript(), control),
        control,
    )
    found.headers["Content-Security-Policy"] = POLICY
    return found


async def arms(looking: Look) -> Response:
    """The arms as a table for a spreadsheet."""
    return await _file(looking, "arms.csv", "text/csv", _write_arms_csv)


def _write_arms_csv(trial: Trial) -> str:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["arm", "people", "outcomes behind the mean", "private mean", "low", "high"])
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
    looking: Look,
    ending: str,
    media: str,
    make: Callable[[Trial], str],
    control: str | None = None,
) -> Response:
    """A file of a trial, made once for a state of it."""

    def plan() -> Computation:
        seen = looking.home.seen(looking.name, looking.visitor)
        trial, status = seen.trial, seen.status
        check_control(control, [arm.name for arm in status.arms])
        key = (looking.name, status.head, status.pending, status.erasing, ending, control)
        return Computation(key, lambda: make(trial))

    text = await looking.home.compute(await looking.run(plan))
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", looking.name).strip("-")[:60] or "trial"
    shown = "inline" if media == "text/html" else "attachment"
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'{shown}; filename="{plain}-{ending}"',
    }
    return Response(text, 200, headers, media)


FLOWS = Remembered[str](64)
STEPS = 50
"""The picture is drawn again when there is so great a part of people more."""
MOST_CALLS = 100_000
"""Calls by which people are drawn: the last ones, if there were more."""
TIMED = "People assigned over time, by site and in all, with the times of the public record."
NOTED = "People assigned over time, by site and in all, with the times of the audit trail."
IN_ORDER = (
    "People assigned at each site against people assigned in all: the public record of this "
    "trial has their order, but no times."
)


def flow_words(trial: Trial, status: Status, visitor: Visitor, follows: bool) -> str:
    """What the picture shows to a visitor, who may follow the record; empty if there is
    none.
    """
    if status.participants < 2 or not follows:
        return ""
    if trial.protocol.has_times:
        return TIMED
    if visitor.may("audit-trail", status.name):
        return NOTED
    return IN_ORDER if any(site.participants for site in status.sites) else ""


def flow_key(status: Status) -> str:
    """What the picture depends on."""
    step = max(status.participants // STEPS, 1)
    return f"{status.participants - status.participants % step}-{status.stopped}"


async def flow(looking: Look) -> Response:
    """People against time, by site."""

    def drawn() -> str:
        trial = looking.home.trial(looking.name)
        private = not trial.protocol.has_times and looking.visitor.may("audit-trail", looking.name)
        key = (
            looking.home.url,
            looking.name,
            private,
            flow_key(looking.home.seen(looking.name, looking.visitor).status),
        )
        return FLOWS.get(key, lambda: _draw_enrolment(trial, private))

    return svg(await looking.run(drawn))


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
EVIDENCE = Remembered[list[float | None]](256)
"""Against each arm, after the last release."""


@dataclass(frozen=True)
class Bar:
    """An arm's mean and interval as places from 0 to 100 on the line of outcomes."""

    low: float
    high: float
    mean: float


def view(
    home: Home, trial: ServedTrial, visitor: Visitor, before: int | None, public: bool
) -> dict[str, Any]:
    """All that the page of a trial shows to a visitor."""
    seen = home.seen(trial.protocol.name, visitor)
    status, said = seen.status, seen.said()
    blind = blinded(trial.protocol, status.stopped, visitor)
    name = trial.protocol.name
    follows = public or visitor.may("transcript", name)
    record = seen.record(EVENTS, before) if follows else []
    return {
        "name": name,
        "base": address("p" if public else "t", name),
        "public": public,
        "question": trial.protocol.question,
        "blind": blind,
        "follows": follows,
        "manages": not public and visitor.may("manage", name),
        "enrols": not public and visitor.may("ask", name) and not status.stopped,
        "next": _next(home, visitor, said) if not public else None,
        "admits": _admits(visitor, said) if not public else [],
        "now": said,
        "state": state_words(said),
        "waits": waits_words(said),
        "known": known_words(said, blind),
        "left": left_words(said),
        "ahead": ahead_of(home, trial, status, visitor),
        "label": LABEL,
        "mark": mark_of(home, status, blind),
        **({} if blind else _describe_arms(home, said, trial)),
        "flow": flow_words(trial, status, visitor, follows),
        "flow_key": flow_key(status),
        "sites": site_rows(said),
        "acts": act_rows(said),
        "promised": _promised(said, trial),
        "record": _record(record, [arm["name"] for arm in said["arms"]]),
        "older": record[-1].seq if record and record[-1].seq > 1 else None,
        "newest": before is None,
    }


def _next(home: Home, visitor: Visitor, said: Mapping[str, Any]) -> list[str] | None:
    """Sites that the manager of a trial without people may let in now; None if there
    is no next step to say.
    """
    name = said["name"]
    begins = not said["participants"] and not said["stopped"]
    if not begins or not visitor.may("tokens", name):
        return None
    return without_token(home, name, [site["name"] for site in said["sites"]])


def _admits(visitor: Visitor, said: Mapping[str, Any]) -> list[str]:
    """Sites that the manager of a trial may make another token for."""
    lets = visitor.may("tokens", said["name"]) and not said["stopped"]
    return [site["name"] for site in said["sites"] if not site["closed"]] if lets else []


def mark_of(home: Home, status: Status, blind: bool) -> str:
    """Return a text that changes as soon as the page shows something else. Blinded
    visitors see no forecast, which is another one after each action on an arm.
    """
    counts = f"{status.pending} {status.waiting} {status.past_deadline}"
    forecast = "" if blind else home.forecasts.known(status.name)
    return f"{status.head} {counts} {forecast}"


def _describe_arms(home: Home, said: Mapping[str, Any], trial: ServedTrial) -> dict[str, Any]:
    """How the arms do."""
    protocol, notes = trial.protocol, arm_notes(said)
    key = picture_key(said)
    known = EVIDENCE.get((home.url, said["name"], key), lambda: trial.copy_run().measure_evidence())
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
        "best_mark": best_mark(said),
        "which": shown_words(len(rows)),
        "level": level,
        "intervals": interval_words(said, level) if intervals else "",
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
        ("Privacy", privacy_sentence(said["epsilon"], said["privacy"], said["gamma"])),
        *promises(said),
        ("Missing outcomes", MISSING),
        ("Retention", said["retain"]),
        *([("Blinding", BLINDING[trial.protocol.blinding])] if trial.protocol.is_blinded else []),
    ]


def _record(events: list[Event], arms: list[str]) -> list[tuple[Event, str]]:
    return [(event, event_words(event, arms)) for event in events]


def before_of(looking: Look) -> int | None:
    """From where on the record is shown, if not from its end."""
    return read_whole(looking.request.query_params.get("before", ""))


async def _trial(looking: Look) -> Response:
    if looking.visitor.role == ANYONE:
        return looking.go(address("p", looking.name))
    trial = await looking.run(looking.home.trial, looking.name)
    found = await looking.run(
        view, looking.home, trial, looking.visitor, before_of(looking) or None, False
    )
    published = await looking.run(looking.home.published, looking.name)
    return looking.page("trial.html", published=published, **found)


async def mark(looking: Look) -> Response:
    """A short text that changes when the page does."""

    seen = await looking.run(looking.home.seen, looking.name, looking.visitor)
    blind = blinded(seen.trial.protocol, seen.status.stopped, looking.visitor)
    found = mark_of(looking.home, seen.status, blind)
    return PlainTextResponse(found, headers={"Cache-Control": "no-store"})


def routes(home: Home) -> list[Route]:
    """The page of a trial, and what it fetches."""
    return [
        look(home, "/t/{name}", "status", _trial),
        look(home, "/t/{name}/head", "status", mark),
        look(home, "/t/{name}/means.svg", "status", means),
        look(home, "/t/{name}/evidence.svg", "status", evidence),
        look(home, "/t/{name}/people.svg", "transcript", flow),
        look(home, "/t/{name}/transcript.json", "transcript", transcript),
        look(home, "/t/{name}/report.html", "report", report),
        look(home, "/t/{name}/arms.csv", "transcript", arms),
    ]
