"""Who was assigned where, and whose outcome was looked at, by the public record alone.

How many outcomes are missing is not in it, on purpose: that one is missing may be the
outcome.
"""

from collections import Counter
from typing import Any

from discreet.reports.conduct import DROPPED, SITE_HEAD, arm_notes, past_words, site_rows
from discreet.reports.course import Course
from discreet.reports.page import Box, Flow, Table
from discreet.strategies.parts import ORDER
from discreet.words import counted

FEW_ARMS = 6
"""Arms that have a box each."""
NOT_RECORDED = (
    "Not in the record, which knows of people only from their assignment on. Take the number "
    "from your own list."
)
NOT_PUBLIC = (
    "How many outcomes were declared missing is not public: that an outcome is missing may itself "
    "be the outcome. A missing one counts as the worst, and is among those looked at."
)
AS_ASSIGNED = "Everybody counts on the arm they were assigned to, whatever was done later."
LEFT = {False: "not looked at yet", True: "never looked at, as the trial ended before"}
"""Whose outcomes were in no look, by whether the trial is over."""


def flow_parts(
    said: dict[str, Any], course: Course, assessed: int | None = None
) -> list[Flow | Table]:
    """The diagram, and the same by arm and site."""
    status, names = said["status"], [arm["name"] for arm in said["status"]["arms"]]
    assigned, by_arm = course.assigned(), Counter[int]()
    for (arm, _), count in assigned.items():
        by_arm[arm] += count
    left = LEFT[bool(status["stopped"])]
    levels = [
        [_assessed(assessed, status["people"])],
        [_assigned(said, course)],
        _arms(names, by_arm, course.used, dict.fromkeys(names, left) | _dropped(status)),
        [_missing(status)],
    ]
    found: list[Flow | Table] = [Flow("Flow of people through the trial", levels)]
    found.append(_table(names, assigned, by_arm, course.used))
    if sites := site_rows(status):
        found.append(Table(SITE_HEAD, sites, "Sites, and whether they are open now."))
    return found


def _assessed(assessed: int | None, people: int) -> Box:
    if assessed is None:
        return Box("Assessed for eligibility", [NOT_RECORDED])
    lines = [
        f"{_people(assessed)}, as stated by those who publish this; not in the record",
        f"not assigned: {assessed - people}",
    ]
    return Box("Assessed for eligibility", lines)


def _assigned(said: dict[str, Any], course: Course) -> Box:
    dealing, sites = said["protocol"]["dealing"], {*course.sites} - {None}
    lines = [_people(said["status"]["people"])]
    if sites:
        lines.append(f"from {counted(len(sites), 'site')}")
    return Box("Assigned" if dealing == ORDER else "Assigned at random", lines)


def _dropped(status: dict[str, Any]) -> dict[str, str]:
    """What is said of outcomes of arms that were dropped."""
    notes = arm_notes(status).items()
    return {
        name: "never looked at, as the arm was dropped" for name, note in notes if DROPPED in note
    }


def _arms(
    names: list[str], assigned: Counter[int], used: Counter[int], left: dict[str, str]
) -> list[Box]:
    each = [assigned[arm] for arm in range(len(names))]
    if len(names) <= FEW_ARMS:
        return [
            Box(name, _lines(count, used[arm], left[name]))
            for arm, (name, count) in enumerate(zip(names, each, strict=True))
        ]
    least, most = min(each), max(each)
    people = counted(f"{least}" if least == most else f"{least} to {most}", "person", "people")
    lines = _lines(assigned.total(), used.total(), "not looked at")
    return [Box(f"{len(names)} arms", [f"{people} each: see the table", *lines])]


def _lines(assigned: int, used: int, left: str) -> list[str]:
    lines = [f"assigned: {assigned}", f"outcomes looked at: {used}"]
    return [*lines, f"{left}: {assigned - used}"] if assigned > used else lines


def _missing(status: dict[str, Any]) -> Box:
    past = past_words(status).strip()
    lines = [NOT_PUBLIC, *([past] if past else []), AS_ASSIGNED]
    return Box("Missing outcomes, and who counts", lines)


def _table(
    names: list[str],
    assigned: Counter[tuple[int, str | None]],
    by_arm: Counter[int],
    used: Counter[int],
) -> Table:
    """By arm, and by site where sites are named."""
    sites: list[str | None] = [*sorted({site for _, site in assigned if site is not None})]
    if sites and any(site is None for _, site in assigned):
        sites.append(None)
    head = ["arm", *(site if site is not None else "(not said)" for site in sites)]
    head += ["assigned", "outcomes looked at"]
    rows = [
        [name, *(str(assigned[arm, site]) for site in sites), str(by_arm[arm]), str(used[arm])]
        for arm, name in enumerate(names)
    ]
    all_of = [str(sum(assigned[arm, site] for arm in range(len(names)))) for site in sites]
    rows.append(["all", *all_of, str(by_arm.total()), str(used.total())])
    return Table(head, rows, "People by arm and site." if sites else "People by arm.")


def _people(count: int) -> str:
    return counted(count, "person", "people")
