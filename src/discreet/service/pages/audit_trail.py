"""The audit trail of a trial: who did what, and when. Calls that are alike and follow
one another share a row, or looks at a site would hide everything else.
"""

from collections.abc import Iterable
from itertools import groupby, islice
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from discreet.service.pages.base import PageRequest, page_route
from discreet.service.pages.trial_text import when
from discreet.service.state import AppState
from discreet.trials.operations import action_phrase
from discreet.trials.record import AuditEntry

MOST_CALLS = 10_000
"""So many of the last calls are read."""
MOST_ROWS = 500
ADDED = ("ask", "tell")
"""Calls whose participants are others each time, and add up."""
OPERATE = "manage "
"""What the call of a manager begins with, before its action."""
DAY = len("2027-03-01")
MINUTE = len("2027-03-01 08:00")


class AuditTrailRow(NamedTuple):
    """Calls that are alike, in words."""

    at: str
    who: str
    site: str
    call: str
    participants: str


def grouped(entries: Iterable[AuditEntry], most: int) -> list[AuditTrailRow]:
    """The first rows of an audit trail whose newest call is the first."""
    alike = groupby(entries, lambda one: (one.user, one.site, one.action))
    return [_row(list(calls)) for _, calls in islice(alike, most)]


def _row(calls: list[AuditEntry]) -> AuditTrailRow:
    last, first = calls[0], calls[-1]
    often = f", {len(calls):,} times" if len(calls) > 1 else ""
    at = _span(when(first.at), when(last.at))
    return AuditTrailRow(
        at, last.user, last.site or "–", f"{_called(last.action)}{often}", _participants(calls)
    )


def _called(call: str) -> str:
    """A call, a manager's action in plain words."""
    of_manager = call.startswith(OPERATE)
    return f"manage: {action_phrase(call.removeprefix(OPERATE))}" if of_manager else call


def _span(first: str, last: str) -> str:
    """From when to when; the day is said once if it is the same."""
    if first == last:
        return last
    same_day = first[:DAY] == last[:DAY]
    return f"{first[:MINUTE]} to {last[DAY + 1 :] if same_day else last}"


def _participants(calls: list[AuditEntry]) -> str:
    counts = [one.participants for one in calls]
    if calls[0].action in ADDED:
        return f"{sum(counts):,}"
    least, most = min(counts), max(counts)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


async def _audit_trail(page: PageRequest) -> Response:
    trial = await page.run(page.app_state.trial, page.name)
    entries = await page.run(trial.audit_trail, MOST_CALLS)
    rows = grouped(entries, MOST_ROWS)
    return page.render(
        "audit_trail.html", name=page.name, rows=rows, most=MOST_ROWS, calls=MOST_CALLS
    )


def routes(app_state: AppState) -> list[Route]:
    """The page of a trial's audit trail."""
    return [page_route(app_state, "/t/{name}/audit-trail", "audit-trail", _audit_trail)]
