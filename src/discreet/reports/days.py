"""What a plan says of days, in a terminal and on a page."""

import math
from collections.abc import Callable

from discreet.calendar import MONTH
from discreet.planning.plan import Plan
from discreet.planning.rows import PlanRow
from discreet.planning.ways import Way
from discreet.reports import charts
from discreet.reports.page import Part, Picture, Section, Table, Text
from discreet.words import counted, cut, day_words, known, level, people

END_HEADS = ["enrolment", "expected end", "10 … 90 %"]
HEADS = ["ε", "enrolment", "people", "days", "days, 10 … 90 %", "in flight", "looks", "right"]


def way_cells(way: Way) -> list[str]:
    """The cells of one way to enrol."""
    return [
        level(way.epsilon),
        way.enrolment,
        people(way.people.mean),
        known(way.days.mean, ",.0f"),
        f"{known(way.days.q10, ',.0f')} … {known(way.days.q90, ',.0f')}",
        f"{way.in_flight:,.0f}",
        f"{way.releases:,.0f}",
        f"{way.correct:.1%}",
    ]


def end_cells(way: Way) -> list[str]:
    """When a trial ends, where its first day is known."""
    end = way.end or {}
    band = f"{day_words(end.get('q10'))} … {day_words(end.get('q90'))}"
    return [way.enrolment, day_words(end.get("mean")), band]


def headline(plan: Plan) -> str:
    """Which way to enrol the people of a plan's rows are about; empty without days."""
    return "" if plan.calendar is None else f", {plan.calendar.enrolment} enrolment"


def end_day_words(plan: Plan, row: PlanRow) -> str:
    """How long the trials of a row take, for each way to enrol, and when they end."""
    said = []
    for way in plan.ways:
        key = (way.scenario, way.epsilon, way.strategy)
        if key == (row.scenario, row.epsilon, row.strategy.name) and way.days.mean is not None:
            end = (way.end or {}).get("mean")
            until = "" if end is None else f", until {day_words(end)}"
            days = counted(f"{way.days.mean:,.0f}", "day")
            said.append(f"with {way.enrolment} enrolment it takes {days} on average{until}")
    words = "; ".join(said)
    return f" {words[:1].upper()}{words[1:]}." if said else ""


def calendar_words(plan: Plan) -> str:
    """The calendar of a plan, and how to read what it comes to."""
    calendar = plan.calendar
    if calendar is None:
        return ""
    last = "" if calendar.last is None else f" (those after {calendar.last:g} count as the worst)"
    month = f"{calendar.accrual * MONTH:,.4g} a month"
    coming = counted(f"{calendar.accrual:.3g}", "person comes", "people come")
    begin = "" if plan.start is None else f"Enrolment begins on {day_words(plan.start)}. "
    words = f"{begin}{coming} a day ({month}); outcomes are told after {calendar.delay.words}{last}"
    if calendar.lost:
        words += (
            f"; {calendar.lost:.1%} of the successes are late or never told, and count as the "
            "worst outcome"
        )
    when = "by the clock" if calendar.clock else "as soon as they are complete"
    words += (
        f". Rounds are released {when}. 'Waiting': nobody is assigned until then, and people who "
        "come in the meantime are turned away."
    )
    if any(way.enrolment == "continuous" for way in plan.ways):
        words += " 'Continuous': everybody who comes is assigned."
    else:
        words += (
            " With continuous enrolment, which bet-se offers where outcomes have a deadline, "
            "nobody is turned away, and the trial may end sooner."
        )
    return (
        f"{words} 'In flight': people who are assigned, but whose outcomes are not released, "
        "when the trial ends."
    )


def slower_words(plan: Plan) -> str:
    """Why some trials take longer without privacy than with it, where they do."""
    waiting = [way for way in plan.ways if way.enrolment == "waiting" and way.days.mean is not None]
    for bare in (way for way in waiting if way.epsilon is None):
        for way in reversed([way for way in waiting if way.epsilon is not None]):
            same = way.scenario == bare.scenario and way.releases < bare.releases
            if same and (way.days.mean or 0) < (bare.days.mean or 0):
                return (
                    "With waiting enrolment a trial without privacy takes longer here, however "
                    f"many people it saves: it has {counted(f'{bare.releases:,.0f}', 'look')}, "
                    f"not {way.releases:,.0f} (ε = {way.epsilon:g}), and at each of them nobody "
                    "is enrolled until the last outcomes are told."
                )
    return ""


def days_section(plan: Plan) -> Section:
    """People and days of each way to enrol, and when the trial ends."""
    parts: list[Part] = [Text(calendar_words(plan)), _ends_picture(plan)]
    parts.append(_ways_table(plan, HEADS, way_cells, "People and days a trial takes."))
    parts += [Text(words)] if (words := slower_words(plan)) else []
    if plan.start is not None:
        heads = ["ε", *END_HEADS]
        parts.append(_ways_table(plan, heads, dated_cells, "The day on which a trial ends."))
    return Section("People and days", parts)


def dated_cells(way: Way) -> list[str]:
    """The cells of one way to enrol in the table of days on the calendar."""
    return [level(way.epsilon), *end_cells(way)]


def _ways_table(
    plan: Plan, heads: list[str], cells: Callable[[Way], list[str]], caption: str
) -> Table:
    """A row for each way to enrol, with scenario and strategy where there are some."""
    differs = [
        head for head in ("scenario", "strategy") if len({vars(way)[head] for way in plan.ways}) > 1
    ]
    rows = [[*(vars(way)[head] for head in differs), *cells(way)] for way in plan.ways]
    return Table([*differs, *heads], rows, caption)


def _ends_picture(plan: Plan) -> Picture:
    """When trials end, a bar for each way to enrol."""
    several = len(plan.scenarios) > 1, len({way.strategy for way in plan.ways}) > 1
    rows = []
    for way in plan.ways:
        private = "no privacy" if way.epsilon is None else f"ε = {way.epsilon:g}"
        words = [way.scenario if several[0] else "", private, way.strategy if several[1] else ""]
        label = ", ".join(cut(word) for word in (*words, way.enrolment) if word)
        low, mean, high = (
            math.nan if number is None else number
            for number in (way.days.q10, way.days.mean, way.days.q90)
        )
        rows.append(charts.EndRow(label, low, mean, high, way.enrolment == "continuous"))
    ahead = any(row.continuous for row in rows)
    hollow = " Hollow marks on blue: continuous enrolment." if ahead else ""
    return Picture(
        charts.render(charts.draw_ends(rows, plan.start)),
        "When the trial ends, for each way to enrol: on average, and the range of eight of ten "
        "trials; numbers below",
        "When the trial ends: on average (mark), and the range in which eight of ten trials end."
        f"{hollow}",
    )
