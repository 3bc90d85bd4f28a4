"""What a plan says of days, in a terminal and on a page."""

from discreet.planning.plan import Plan
from discreet.planning.ways import Way
from discreet.words import known, level, people

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


def headline(plan: Plan) -> str:
    """Which way to enrol the people of a plan's rows are about; empty without days."""
    return "" if plan.calendar is None else f", {plan.calendar.enrolment} enrolment"


def calendar_words(plan: Plan) -> str:
    """The calendar of a plan, and how to read what it comes to."""
    calendar = plan.calendar
    if calendar is None:
        return ""
    last = "" if calendar.last is None else f" (those after {calendar.last:g} count as the worst)"
    words = (
        f"{calendar.accrual:g} people come a day; outcomes are told after "
        f"{calendar.delay.words}{last}"
    )
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
    return (
        f"{words} 'In flight': people who are assigned, but whose outcomes are not released, "
        "when the trial ends."
    )
