"""A trial as it is now, for those who may see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import PlainTextResponse, Response

from discreet.reports.conduct import (
    act_rows,
    arm_notes,
    interval_words,
    left_words,
    promises,
    site_rows,
)
from discreet.service.access import ANYONE, SITE, Visitor
from discreet.service.home import Home
from discreet.service.pages import downloads
from discreet.service.pages.frame import Look, address, look
from discreet.service.pages.words import (
    event_words,
    known_words,
    privacy_words,
    state_words,
    waits_words,
)
from discreet.service.remember import Remembered
from discreet.service.routes import Route
from discreet.trials.chain import Event
from discreet.trials.protocol import BLINDING
from discreet.trials.status import Status
from discreet.trials.trial import Trial
from discreet.words import lead_words

EVENTS = 20
"""Lines of the record on a page."""
POLLED = Remembered[str](256, seconds=1.0)
"""The marks of trials that pages ask for every few seconds."""


@dataclass(frozen=True)
class Bar:
    """An arm's mean and interval as places from 0 to 100 on the line of outcomes."""

    low: float
    high: float
    mean: float


def blinded(trial: Trial, status: Status, visitor: Visitor) -> bool:
    """Whether a visitor may see nothing of how arms do."""
    return visitor.role == SITE and trial.protocol.blind and not status.stopped


def view(trial: Trial, visitor: Visitor, before: int | None, public: bool) -> dict[str, Any]:
    """All that the page of a trial shows to a visitor."""
    status = trial.status()
    said = status.to_dict()
    blind = blinded(trial, status, visitor)
    name = trial.protocol.name
    follows = public or visitor.may("transcript", name)
    record = trial.record(EVENTS, before) if follows else []
    return {
        "name": name,
        "base": address("p" if public else "t", name),
        "public": public,
        "blind": blind,
        "follows": follows,
        "operates": not public and visitor.may("operate", name),
        "enrols": not public and visitor.may("ask", name) and not status.stopped,
        "now": said,
        "state": state_words(said),
        "waits": waits_words(said),
        "known": known_words(said, blind),
        "left": left_words(said),
        "mark": mark_of(status),
        **({} if blind else _arms(said, trial)),
        "sites": site_rows(said),
        "acts": act_rows(said),
        "promised": _promised(said, trial),
        "record": _record(record, [arm["name"] for arm in said["arms"]]),
        "older": record[-1].seq if record and record[-1].seq > 1 else None,
        "newest": before is None,
    }


def mark_of(status: Status) -> str:
    """What is another one as soon as the page shows something else."""
    return f"{status.head} {status.pending} {status.waiting} {status.past_deadline}"


def _arms(said: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """How the arms do."""
    protocol, notes = trial.protocol, arm_notes(said)
    level = f"{1 - said['delta']:.4g}"
    span = (protocol.low, protocol.high)
    rows = [(arm, _bar(arm, *span), notes.get(arm["name"], "")) for arm in said["arms"]]
    intervals = any(arm["interval"] for arm in said["arms"])
    leads = [
        lead_words(lead["name"], lead["over"], lead["better_by"], lead["people"]) + "."
        for lead in said["leads"]
    ]
    return {
        "arms": rows,
        "level": level,
        "intervals": interval_words(said, level) if intervals else "",
        "outcomes": protocol.outcome_words,
        "leads": leads,
        "span": span,
        "picture": downloads.picture_key(said) if said["releases"] else "",
    }


def _bar(arm: Mapping[str, Any], low: float, high: float) -> Bar | None:
    if arm["interval"] is None or arm["mean"] is None:
        return None
    places = (*arm["interval"], arm["mean"])
    return Bar(*(min(max(100 * (at - low) / (high - low), 0), 100) for at in places))


def _promised(said: Mapping[str, Any], trial: Trial) -> list[tuple[str, str]]:
    return [
        ("Privacy", privacy_words(said["epsilon"], said["privacy"])),
        ("Error rate", said["correctness"]),
        *promises(said),
        ("Missing outcomes", said["missing"]),
        ("Retention", said["retain"]),
        *([("Blinding", BLINDING[trial.protocol.blinding])] if trial.protocol.blind else []),
    ]


def _record(events: list[Event], arms: list[str]) -> list[tuple[Event, str]]:
    return [(event, event_words(event, arms)) for event in events]


def before_of(looking: Look) -> int | None:
    """From where on the record is shown, if not from its end."""
    text = looking.request.query_params.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and 1 <= len(text) < 10 else None


async def _trial(looking: Look) -> Response:
    if looking.visitor.role == ANYONE:
        return looking.go(address("p", looking.name))
    trial = await looking.run(looking.home.trial, looking.name)
    found = await looking.run(view, trial, looking.visitor, before_of(looking) or None, False)
    published = await looking.run(looking.home.published, looking.name)
    return looking.page("trial.html", published=published, **found)


async def mark(looking: Look) -> Response:
    """A short text that changes when the page does."""

    def look_once() -> str:
        return mark_of(looking.home.trial(looking.name).status())

    key = (looking.home.url, looking.name)
    found = await looking.run(POLLED.get, key, look_once)
    return PlainTextResponse(found, headers={"Cache-Control": "no-store"})


def routes(home: Home) -> list[Route]:
    """The page of a trial, and what it fetches."""
    return [
        look(home, "/t/{name}", "status", _trial),
        look(home, "/t/{name}/head", "status", mark),
        look(home, "/t/{name}/means.svg", "status", downloads.means),
        look(home, "/t/{name}/transcript.json", "transcript", downloads.transcript),
        look(home, "/t/{name}/report.html", "report", downloads.report),
        look(home, "/t/{name}/arms.csv", "transcript", downloads.arms),
    ]
