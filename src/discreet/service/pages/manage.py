"""What a manager does to a trial: each action on a page that says what it means
before it is done; publishing; the list of codes.
"""

from collections.abc import Iterable
from itertools import groupby, islice
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import InvalidInputError
from discreet.service.auth import NotHereError
from discreet.service.pages.base import PageRequest, address, form_route, once_of, page_route
from discreet.service.pages.trial_text import when
from discreet.service.state import AppState
from discreet.trials.operations import (
    IRREVERSIBLE,
    LABELS,
    MAX_REASON_LENGTH,
    MEANINGS,
    action_phrase,
)
from discreet.trials.record import AuditEntry
from discreet.trials.trial import Trial
from discreet.validation import read_whole

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


def make_audit_trail_routes(app_state: AppState) -> list[Route]:
    """The page of a trial's audit trail."""
    return [page_route(app_state, "/t/{name}/audit-trail", "audit-trail", _audit_trail)]


SHOWN = {action: name for action, name in LABELS.items() if action in MEANINGS}
"""What a manager may do, as buttons say it."""
ABOUT = {
    "raise-maximum": ("The new maximum of participants", "number"),
    "lower-maximum": ("The new maximum of participants", "number"),
    "close-site": ("Which site", "open"),
    "open-site": ("Which site", "closed"),
    "drop-arm": ("Which arm", "arms"),
    "add-arm": ("The name of the new arm", "text"),
}
"""What an action is about, and how that is asked for."""
TAKES_BACK = {"pause": "resume", "close-site": "open-site", "raise-maximum": "lower-maximum"}
UNLESS_OVER = {
    "lower-maximum": "You can raise the maximum again, unless the trial has ended: it ends if "
    "no further round fits below the new maximum"
}
"""What can be undone under a condition, which is said on its page."""


MAX_CODES = 200
"""Codes that the page lists at once; any other one is found by its text."""


def offers(trial: Trial) -> dict[str, Any]:
    """The state of a trial, and what can be done to it now."""
    status = trial.status()
    sites = {True: [one.name for one in status.sites if one.closed]}
    sites[False] = [one.name for one in status.sites if not one.closed]
    dropped = {act.about for act in status.actions if act.action == "drop-arm"}
    arms = [arm.name for arm in status.arms if arm.name not in dropped]
    hidden = {"resume" if not status.paused else "pause"}
    hidden |= {"close-site"} if not sites[False] else set()
    hidden |= {"drop-arm"} if len(arms) <= 2 else set()
    hidden |= {"set-clock"} if trial.protocol.deadline is None else set()
    actions = [] if status.stopped else [one for one in SHOWN if one not in hidden]
    return {
        "status": status,
        "actions": actions,
        "choices": {"open": sites[False], "closed": sites[True], "arms": arms},
        "blind": trial.protocol.is_blinded,
    }


async def _manage(page: PageRequest) -> Response:
    trial = await page.run(page.app_state.trial, page.name)
    found = await page.run(offers, trial)
    published = await page.run(page.app_state.published, page.name)
    rows = [(one, SHOWN[one], MEANINGS[one], one in IRREVERSIBLE) for one in found["actions"]]
    return page.render(
        "manage.html", name=page.name, rows=rows, published=published, blind=found["blind"]
    )


async def _confirm(page: PageRequest) -> Response:
    action = str(page.request.path_params.get("action", ""))
    if action not in SHOWN:
        raise NotHereError("there is no such action")
    return await _asked(page, action)


async def _asked(page: PageRequest, action: str, wrong: str = "") -> Response:
    """The page that asks whether to do it, and why."""
    trial = await page.run(page.app_state.trial, page.name)
    found = await page.run(offers, trial)
    label, kind = ABOUT.get(action, ("", ""))
    return page.render(
        "action.html",
        422 if wrong else 200,
        name=page.name,
        action=action,
        title=SHOWN[action],
        means=MEANINGS[action],
        for_good=action in IRREVERSIBLE,
        unless=UNLESS_OVER.get(action, ""),
        back=SHOWN.get(TAKES_BACK.get(action, ""), ""),
        label=label,
        kind=kind,
        choices=found["choices"].get(kind, []),
        free=action == "open-site",
        seen=len(found["status"].actions),
        now=found["status"],
        said=page.form,
        longest=MAX_REASON_LENGTH,
        wrong=wrong,
    )


async def _act(page: PageRequest) -> Response:
    action = str(page.request.path_params.get("action", ""))
    if action not in SHOWN:
        raise NotHereError("there is no such action")
    try:
        await page.run(_done, page, action)
    except InvalidInputError as error:
        return await _asked(page, action, str(error))
    return page.redirect(address("t", page.name))


def _done(page: PageRequest, action: str) -> None:
    form = page.form
    reason = form.get("reason", "").strip()
    if not reason:
        raise InvalidInputError("give a reason: it is part of the public record")
    seen = read_whole(form.get("seen", ""))
    if seen is None:
        raise InvalidInputError("reload this page, and try once more")
    caller = page.app_state.as_user(page.name, page.principal)
    about = _about(action, form.get("about", "").strip())
    caller.manage(action, reason, about, seen, once_of(form, page.principal))


def _about(action: str, text: str) -> str | int | None:
    label, kind = ABOUT.get(action, ("", ""))
    if not kind:
        return None
    if not text:
        raise InvalidInputError(f"say {label[:1].lower()}{label[1:]}")
    if kind != "number":
        return text
    number = read_whole(text)
    if number is None:
        raise InvalidInputError(
            "the new maximum must be a whole number of participants, such as 500"
        )
    return number


# --- publishing and the codes ---------------------------------------------------------


async def _ask_publish(page: PageRequest, status: int = 200) -> Response:
    trial = await page.run(page.app_state.trial, page.name)
    now = await page.run(trial.status)
    published = await page.run(page.app_state.published, page.name)
    blind = trial.protocol.is_blinded and not now.stopped
    about = {"name": page.name, "published": published, "blind": blind}
    return page.render("publish.html", status, stopped=now.stopped, **about)


async def _publish(page: PageRequest) -> Response:
    app_state, name = page.app_state, page.name
    await page.run(app_state.trial, name)
    if page.form.get("published") != "yes":
        await page.run(app_state.token_table.unpublish, name, page.principal.who)
        return page.redirect(address("t", name))
    try:
        await page.run(app_state.publish, name, page.principal.who)
    except InvalidInputError:  # which the page says, and why
        return await _ask_publish(page, 422)
    return page.redirect(address("t", name))


async def _ask_codes(page: PageRequest) -> Response:
    """The page that asks whether to show the list: looking is noted, and whoever loads
    the page of the list again may not want that.
    """
    trial = await page.run(page.app_state.trial, page.name)
    blind = trial.protocol.is_blinded
    return page.render("codes.html", name=page.name, blind=blind, rows=None, left=0)


async def _codes(page: PageRequest) -> Response:
    """Show the arm behind one code, or behind the last ones, to those who hand out what
    participants are given. The audit trail notes who has looked.
    """
    caller = await page.run(page.app_state.as_user, page.name, page.principal)
    found: dict[str, str] = await page.run(caller.list_codes)
    wanted = page.form.get("code", "").strip().upper()
    rows = [one for one in reversed(found.items()) if wanted in ("", one[0])]
    left = max(len(rows) - MAX_CODES, 0)
    about: dict[str, Any] = {"blind": caller.protocol.is_blinded, "rows": rows[:MAX_CODES]}
    return page.render("codes.html", name=page.name, **about, left=left)


def routes(app_state: AppState) -> list[Route]:
    """What a manager may do to a trial, and see of it."""
    return [
        page_route(app_state, "/t/{name}/manage", "manage", _manage),
        page_route(app_state, "/t/{name}/manage/{action}", "manage", _confirm),
        form_route(app_state, "/t/{name}/manage/{action}", "manage", _act),
        page_route(app_state, "/t/{name}/publish", "publish", _ask_publish),
        form_route(app_state, "/t/{name}/publish", "publish", _publish),
        page_route(app_state, "/t/{name}/codes", "list-codes", _ask_codes),
        form_route(app_state, "/t/{name}/codes", "list-codes", _codes),
    ]
