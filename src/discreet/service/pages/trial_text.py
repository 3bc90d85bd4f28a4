"""What pages say of a trial, in whole sentences; all of it is read off a status in
plain types.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from discreet.planning.forecast import Forecast
from discreet.reports.trial_text import (
    describe_enrolment,
    describe_leader,
    describe_missed_deadlines,
    is_stopped_by_manager,
    name_tied_arms,
    state_conclusion,
)
from discreet.service.auth import Principal
from discreet.service.cache import OnceCache
from discreet.service.state import AppState, ServedTrial, blinded
from discreet.trials.operations import UNBLIND, action_phrase
from discreet.trials.record import Event
from discreet.trials.status import Status
from discreet.wording import format_count, format_participants, isolate_name

DAY = 86_400.0
SOON = 3600.0
"""Seconds of enrolment before its pace says anything."""
CALLS = 1000
"""The last calls of the audit trail, by which a pace is judged."""
OFTEN, RARELY = 0.5, 0.05
"""From which share of continuations without a conclusion that is the first thing to say,
and one to say in a table.
"""
FAR = 3650
"""Days beyond which no date is said."""
PACES = OnceCache[float | None](256, seconds=60.0)
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


def ahead_of(
    app_state: AppState, trial: ServedTrial, status: Status, principal: Principal
) -> Ahead | None:
    """What a principal may know of how a trial may go on; None: nothing."""
    if status.stopped or blinded(trial.protocol, status.stopped, principal):
        return None
    if not status.releases:
        return Ahead((NOTHING_YET,), "not yet")
    name, key = trial.protocol.name, f"{status.releases}-{len(status.actions)}"
    seed = int(trial.protocol_hash[:8], 16) + status.releases
    seen = app_state.forecasts.see(name, key, seed, trial.copy_run)
    if seen is None:
        return Ahead((SOON_THERE,), "being simulated")
    if seen.found is None:
        return Ahead((f"No forecast: {seen.reason}.",), "–")
    pace = None if status.paused else pace_of(app_state, trial, principal)
    return _told(seen.found, status, pace)


def _told(found: Forecast, status: Status, pace: float | None) -> Ahead:
    most, now = format_participants(status.max_participants), status.participants
    low, middle, high = (max(one, now) for one in (found.low, found.median, found.high))
    stuck, often = f"{found.inconclusive:.0%}", found.inconclusive >= OFTEN
    brief = _between(low, high) + (
        f", {stuck} without a conclusion" if found.inconclusive >= RARELY else ""
    )
    if often:
        lines = [
            f"The trial may well reach its maximum of {most} participants without a conclusion: "
            f"{stuck} of {found.runs} simulated continuations did."
        ]
    else:
        lines = [
            f"The trial may take {_between(low, high)} in all: eight of ten simulated "
            f"continuations did ({found.runs} were simulated), and half of them took at most "
            f"{format_participants(middle)}.",
            f"{stuck} of them reached the maximum of {most} participants without a conclusion.",
        ]
    if (days := _days(low, high, now, pace)) is not None and pace is not None:
        first, last = (_date(one) for one in days)
        when = f"about {first}" if first == last else f"{first} to {last}"
        brief += f" ({when})"
        lines.append(
            "At the enrolment rate so far, "
            f"{format_count(f'{pace * DAY:.2g}', 'participant')} a day, {_between(low, high)} will "
            f"be enrolled by {when}; their outcomes come later."
        )
    return Ahead(tuple(lines), brief, True)


def _between(low: int, high: int) -> str:
    return (
        f"about {format_participants(low)} participants"
        if low == high
        else f"{format_participants(low)} to {format_participants(high)} participants"
    )


def _days(low: int, high: int, now: int, pace: float | None) -> tuple[float, float] | None:
    """Days from now until so many participants have come, as soon and as late."""
    if pace is None:
        return None
    days = (low - now) / pace / DAY, (high - now) / pace / DAY
    return days if days[1] < FAR else None


def _date(days: float) -> str:
    return datetime.fromtimestamp(time.time() + days * DAY, UTC).strftime("%Y-%m-%d")


# --- the pace -------------------------------------------------------------------------


def pace_of(app_state: AppState, trial: ServedTrial, principal: Principal) -> float | None:
    """Participants a second, as far as a principal may know; None if nobody can say."""
    name, timed = trial.protocol.name, trial.protocol.has_times
    if timed:
        return PACES.get((app_state.url, name, "record"), lambda: _recorded(trial))
    if principal.may("audit-trail", name):
        return PACES.get((app_state.url, name, "audit trail"), lambda: _noted(trial))
    return None


def _recorded(trial: ServedTrial) -> float | None:
    """By the times in the public record, of its last events."""
    events = [one.content for one in reversed(trial.record(CALLS)) if one.kind == "assigned"]
    return pace([(float(says["at"]), len(says["arms"])) for says in events], time.time())


def _noted(trial: ServedTrial) -> float | None:
    """By the audit trail."""
    calls = [one for one in reversed(trial.audit_trail(CALLS)) if one.action == "ask"]
    return pace([(one.at, one.participants) for one in calls], time.time())


def pace(came: Sequence[tuple[float, int]], now: float) -> float | None:
    """Participants a second since the first of these times; those who came with it were
    before.
    """
    if not came or now - came[0][0] < SOON:
        return None
    count = sum(participants for _, participants in came[1:])
    return count / (now - came[0][0]) if count else None


Said = Mapping[str, Any]
FEW_ARMS = 12
"""Arms that are named one by one in a line of the record."""


def when(seconds: float | None) -> str:
    """A moment, in the time of nobody's place."""
    if seconds is None:
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def state_words(status: Said) -> str:
    """How a trial stands, in short."""
    if status["stopped"]:
        return "ended with a conclusion" if status["conclusive"] else "ended without a conclusion"
    return "paused" if status["paused"] else "running"


def waits_words(status: Said) -> str:
    """What a trial waits for."""
    if status["stopped"]:
        return "Nothing: it has ended."
    if status["paused"]:
        return "A manager, to resume it."
    if status["next_release"]:
        outcomes = _outcomes(status["waiting"])
        return f"The interim analysis of {outcomes} after {when(status['next_release'])}."
    if status["waiting"]:
        return f"{_outcomes(status['waiting']).capitalize()}, before the next interim analysis."
    return "More participants."


def _outcomes(count: int) -> str:
    return "one outcome" if count == 1 else format_count(f"{count:,}", "outcome")


def _of_participants(count: int) -> str:
    return format_count(f"{count:,}", "participant", "participants")


def known_words(status: Said, blind: bool) -> list[str]:
    """What is known so far, in sentences."""
    if blind:
        return [describe_enrolment(status), BLIND]
    if not status["stopped"]:
        return [_lead_words(status), describe_enrolment(status)]
    if status["conclusive"]:
        count, missed = _of_participants(status["participants"]), describe_missed_deadlines(status)
        return [state_conclusion(status), f"{count} took part.{missed}"]
    ended = "A manager ended the trial" if is_stopped_by_manager(status) else "The trial ended"
    after = f"{ended} without a conclusion, after {_of_participants(status['participants'])}."
    found = [after, describe_leader(status)]
    if status["smallest_delta"] is not None:
        found.append(
            "The releases would have been enough at an error rate of "
            f"{status['smallest_delta']:.3g} (δ)."
        )
    return found


def _lead_words(status: Said) -> str:
    """Who is ahead while a trial runs."""
    best, level = status["recommendation"], name_tied_arms(status)
    if best is None:
        return "Nothing has been released yet, so nobody knows anything about the arms."
    lead = f"{level} are level" if level else f"{best} has the best estimate"
    return f"So far {lead}. This is not a conclusion: the trial continues."


def evidence_words(share: float | None) -> str:
    """The evidence against an arm, as a share of what puts it out."""
    if share is None:
        return "–"
    return "enough: dropped" if share >= 1 else f"{min(max(share, 0.0), 0.99):.0%}"


BLIND = "This trial is blinded: sites see how the arms did only after the trial has ended."


def event_words(event: Event, arms: Sequence[str]) -> str:
    """A line of the public record, in words."""
    words = EVENTS.get(event.kind)
    return event.kind if words is None else words(event.content, arms)


def _opened(says: Said, _: Sequence[str]) -> str:
    participants = _of_participants(says["participants"])
    return f"Round {says['round']} was opened for {participants}, with a sealed key."


def _manager(says: Said, _: Sequence[str]) -> str:
    about = f" ({says['about']})" if says.get("about") is not None else ""
    who = "Staff" if says["action"] == UNBLIND else "Manager"
    return f"{who}: {action_phrase(says['action'])}{about}. Reason: {says['reason']}"


def _stopped(says: Said, _: Sequence[str]) -> str:
    return f"The trial ended {'with' if says.get('conclusive') else 'without'} a conclusion."


def _assigned(says: Said, arms: Sequence[str]) -> str:
    site = f" at {isolate_name(says['site'])}" if says.get("site") else ""
    return f"{_participants(says, arms)}{site}{_at(says)}."


def _participants(says: Said, arms: Sequence[str]) -> str:
    places = says["arms"]
    first, last = says["first"], says["first"] + len(places) - 1
    if first == last:
        return f"Participant {first} was assigned to {_arm(arms, places[0])}"
    counts = {arm: places.count(arm) for arm in sorted(set(places))}
    if len(counts) > FEW_ARMS:
        return f"Participants {first} to {last} were assigned"
    spread = ", ".join(f"{count} to {_arm(arms, arm)}" for arm, count in counts.items())
    return f"Participants {first} to {last} were assigned: {spread}"


def _released(says: Said, arms: Sequence[str]) -> str:
    batches = [
        f"{_arm(arms, one['arm'])}: {_sum(one, says)} over {_of_participants(one['count'])}"
        for one in says["releases"][:FEW_ARMS]
    ]
    more = len(says["releases"]) - len(batches)
    words = "; ".join(batches) + (f"; and {more} more" if more else "")
    how = "as sums of outcomes on a scale from 0 (worst) to 1 (best)"
    return f"Released, with noise, {how}: {words}{_at(says)}."


def _at(says: Said) -> str:
    return f", {when(says['at'])}" if "at" in says else ""


def _sum(one: Said, says: Said) -> str:
    return "nothing" if one["sum"] is None else f"{one['sum'] * says['unit']:.6g}"


def _arm(arms: Sequence[str], place: Any) -> str:
    known = isinstance(place, int) and 0 <= place < len(arms)
    return isolate_name(arms[place]) if known else "?"


EVENTS: dict[str, Callable[[Said, Sequence[str]], str]] = {
    "created": lambda *_: "The trial began; its protocol is frozen.",
    "opened": _opened,
    "assigned": _assigned,
    "released": _released,
    "answered": lambda says, _: f"{len(says['answers'])} randomised answers were recorded.",
    "managed": _manager,
    "stopped": _stopped,
}
"""How each kind of event is told."""
