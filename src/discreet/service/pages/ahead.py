"""How a trial may go on, in words for those who may know: people in all, and by when.

It follows from the public record alone. The pace of enrolment stands in the record
where that tells times, and else in the audit trail, which is the manager's to see.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from discreet.planning.forecast import Forecast
from discreet.service.access import Visitor
from discreet.service.blinding import blinded
from discreet.service.home import Home, ServedTrial
from discreet.service.remember import Remembered
from discreet.trials.status import Status
from discreet.words import counted, people

DAY = 86_400.0
SOON = 3600.0
"""Seconds of enrolment before its pace says anything."""
CALLS = 1000
"""The last calls of the audit trail, by which a pace is judged."""
OFTEN, RARELY = 0.5, 0.05
"""From which share of continuations without an answer that is the first thing to say,
and one to say in a table.
"""
FAR = 3650
"""Days beyond which no date is said."""
PACES = Remembered[float | None](256, seconds=60.0)
LABEL = "Simulated from what was released so far; nothing about it is guaranteed."
NOTHING_YET = "No forecast yet: nothing has been released that it could be based on."
SOON_THERE = "A forecast is being simulated: it appears here in a few seconds."


@dataclass(frozen=True)
class Ahead:
    """What is said of how a trial may go on."""

    lines: tuple[str, ...]
    """Whole sentences."""
    brief: str
    """In a table."""
    label: bool = False
    """Whether there is a forecast, which has to be labelled."""


def ahead_of(home: Home, trial: ServedTrial, status: Status, visitor: Visitor) -> Ahead | None:
    """What a visitor may know of how a trial may go on; None: nothing."""
    if status.stopped or blinded(trial.protocol, status.stopped, visitor):
        return None
    if not status.releases:
        return Ahead((NOTHING_YET,), "not yet")
    name, key = trial.protocol.name, f"{status.releases}-{len(status.acts)}"
    seed = int(trial.protocol_hash[:8], 16) + status.releases
    seen = home.forecasts.see(name, key, seed, trial.copy_run)
    if seen is None:
        return Ahead((SOON_THERE,), "being simulated")
    if seen.found is None:
        return Ahead((f"No forecast: {seen.reason}.",), "–")
    pace = None if status.paused else pace_of(home, trial, visitor)
    return _told(seen.found, status, pace)


def _told(found: Forecast, status: Status, pace: float | None) -> Ahead:
    most, now = people(status.max_people), status.people
    low, middle, high = (max(one, now) for one in (found.low, found.middle, found.high))
    stuck, often = f"{found.stuck:.0%}", found.stuck >= OFTEN
    brief = _between(low, high) + (f", {stuck} without an answer" if found.stuck >= RARELY else "")
    if often:
        lines = [
            f"The trial may well reach its maximum of {most} people without an answer: {stuck} "
            f"of {found.runs} simulated continuations did."
        ]
    else:
        lines = [
            f"The trial may take {_between(low, high)} in all: eight of ten simulated "
            f"continuations did ({found.runs} were simulated), and half of them took at most "
            f"{people(middle)}.",
            f"{stuck} of them reached the maximum of {most} people without an answer.",
        ]
    if (days := _days(low, high, now, pace)) is not None and pace is not None:
        first, last = (_date(one) for one in days)
        when = f"about {first}" if first == last else f"{first} to {last}"
        brief += f" ({when})"
        lines.append(
            f"At the pace so far, {counted(f'{pace * DAY:.2g}', 'person', 'people')} a day, "
            f"{_between(low, high)} will have come by {when}; their outcomes come later."
        )
    return Ahead(tuple(lines), brief, True)


def _between(low: int, high: int) -> str:
    return (
        f"about {people(low)} people" if low == high else f"{people(low)} to {people(high)} people"
    )


def _days(low: int, high: int, now: int, pace: float | None) -> tuple[float, float] | None:
    """Days from now until so many people have come, as soon and as late."""
    if pace is None:
        return None
    days = (low - now) / pace / DAY, (high - now) / pace / DAY
    return days if days[1] < FAR else None


def _date(days: float) -> str:
    return datetime.fromtimestamp(time.time() + days * DAY, UTC).strftime("%Y-%m-%d")


# --- the pace -------------------------------------------------------------------------


def pace_of(home: Home, trial: ServedTrial, visitor: Visitor) -> float | None:
    """People a second, as far as a visitor may know; None if nobody can say."""
    name, timed = trial.protocol.name, trial.protocol.timed
    if timed:
        return PACES.get((home.url, name, "record"), lambda: _recorded(trial))
    if visitor.may("audit-trail", name):
        return PACES.get((home.url, name, "audit trail"), lambda: _noted(trial))
    return None


def _recorded(trial: ServedTrial) -> float | None:
    """By the times in the public record, of its last events."""
    events = [one.says for one in reversed(trial.record(CALLS)) if one.kind == "assigned"]
    return pace([(float(says["at"]), len(says["arms"])) for says in events], time.time())


def _noted(trial: ServedTrial) -> float | None:
    """By the audit trail."""
    calls = [one for one in reversed(trial.audit_trail(CALLS)) if one.action == "ask"]
    return pace([(one.at, one.participants) for one in calls], time.time())


def pace(came: Sequence[tuple[float, int]], now: float) -> float | None:
    """People a second since the first of these times; those who came with it were
    before.
    """
    if not came or now - came[0][0] < SOON:
        return None
    count = sum(people for _, people in came[1:])
    return count / (now - came[0][0]) if count else None
