"""When things happened: by the record, where it goes by the clock; else as whoever
publishes a report says, from the private audit trail for instance.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from discreet.reports.course import Course
from discreet.reports.page import Facts, Part, Text
from discreet.trials.status import AuditEntry

STATED = "Stated by those who publish this page; not in the record, and not checked:"
RECORDED = "By the record, in days of universal time (UTC):"
MOST_LOOKS = 24
"""Looks whose days are listed."""


def date_facts(course: Course, stated: Mapping[str, str]) -> list[Part]:
    """The days that the record tells, and those that were added."""
    found: list[Part] = []
    if recorded := _recorded(course):
        found += [Text(RECORDED), Facts(recorded)]
    if stated:
        found += [Text(STATED), Facts([*stated.items()])]
    return found


def _recorded(course: Course) -> list[tuple[str, str]]:
    came = [at for kind, at in course.times if kind == "assigned"]
    looks = [at for kind, at in course.times if kind == "released"]
    found = _ends(came)
    if looks:
        days = [day(at) for at in looks[:MOST_LOOKS]]
        more = f" and {len(looks) - MOST_LOOKS} more" if len(looks) > MOST_LOOKS else ""
        found.append(("Looks", ", ".join(days) + more))
    return found


def audit_dates(entries: Sequence[AuditEntry], stopped: bool) -> dict[str, str]:
    """The days of a trial by its private audit trail: created, first and last person,
    end.

    No more: on which days outcomes were told is nobody's business, and the day of a
    look is the day on which the last outcome of its round was.
    """
    calls = sorted(entries, key=lambda one: one.entry)
    created = [one.at for one in calls if one.action == "create"]
    found = {"Created": day(created[0])} if created else {}
    found |= dict(_ends([one.at for one in calls if one.action == "ask"]))
    changes = [one.at for one in calls if one.action in ENDS]
    if stopped and changes:
        found["Ended, at the latest"] = day(changes[-1])
    return found


ENDS = ("ask", "tell", "expire", "manage stop")
"""Calls that may end a trial."""


def _ends(came: Sequence[float]) -> list[tuple[str, str]]:
    if not came:
        return []
    return [("First person assigned", day(came[0])), ("Last person assigned", day(came[-1]))]


def day(at: float) -> str:
    """The day of a moment, in universal time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
