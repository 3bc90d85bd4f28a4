"""A trial as it is now, for those who may see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from discreet.reports.arms import shown_words
from discreet.reports.conduct import (
    act_rows,
    arm_notes,
    best_mark,
    interval_words,
    left_words,
    privacy_sentence,
    promises,
    site_rows,
)
from discreet.service.access import ANYONE, Visitor
from discreet.service.blinding import blinded
from discreet.service.home import Home, ServedTrial
from discreet.service.pages import downloads
from discreet.service.pages.ahead import LABEL, ahead_of
from discreet.service.pages.deskview import outcome_words
from discreet.service.pages.flow import flow, flow_key, flow_words
from discreet.service.pages.frame import Look, address, look
from discreet.service.pages.tokens import without_token
from discreet.service.pages.words import (
    event_words,
    evidence_words,
    known_words,
    state_words,
    waits_words,
)
from discreet.service.remember import Remembered
from discreet.trials.chain import Event
from discreet.trials.protocol import BLINDING, MISSING
from discreet.trials.status import Status
from discreet.validate import read_whole
from discreet.words import as_sure, correctness_words, interval_ends, lead_words, percent

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
        **({} if blind else _arms(home, said, trial)),
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
    begins = not said["people"] and not said["stopped"]
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


def _arms(home: Home, said: Mapping[str, Any], trial: ServedTrial) -> dict[str, Any]:
    """How the arms do."""
    protocol, notes = trial.protocol, arm_notes(said)
    key = downloads.picture_key(said)
    known = EVIDENCE.get((home.url, said["name"], key), lambda: trial.copy_run().evidence())
    level = percent(1 - said["delta"])
    span = (protocol.low, protocol.high)
    rows = [
        (arm, _bar(arm, *span), notes.get(arm["name"], ""), evidence_words(share))
        for arm, share in zip(said["arms"], known, strict=False)
    ]
    intervals = any(arm["interval"] for arm in said["arms"])
    leads = [
        lead_words(lead["name"], lead["over"], lead["better_by"], lead["people"]) + "."
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
        "as_sure": as_sure,
        "interval_ends": interval_ends,
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
        ("Error rate", correctness_words(said["correctness"], trial.protocol.scale)),
        *promises(said),
        ("Missing outcomes", MISSING),
        ("Retention", said["retain"]),
        *([("Blinding", BLINDING[trial.protocol.blinding])] if trial.protocol.blind else []),
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
        look(home, "/t/{name}/means.svg", "status", downloads.means),
        look(home, "/t/{name}/evidence.svg", "status", downloads.evidence),
        look(home, "/t/{name}/people.svg", "transcript", flow),
        look(home, "/t/{name}/transcript.json", "transcript", downloads.transcript),
        look(home, "/t/{name}/report.html", "report", downloads.report),
        look(home, "/t/{name}/arms.csv", "transcript", downloads.arms),
    ]
