"""The power of a plan, as a section of its page."""

from discreet.planning.plan import Plan
from discreet.reports import charts
from discreet.reports.chances import (
    Curve,
    power_curves,
    power_table,
    power_title,
    power_words,
    sure_words,
)
from discreet.reports.page import Part, Picture, Section, Table, Text
from discreet.words import cut

MOST_LINES = 6
"""Lines in a picture: more are hard to tell apart."""
SEEN = 0.02
"""The least difference of two shares that can be seen in the picture."""


def power_section(plan: Plan) -> Section:
    """A picture and a table for each scenario."""
    parts: list[Part] = []
    several = len(plan.scenarios) > 1
    for name, instance in plan.scenarios.items():
        curves = power_curves(plan, name)
        if curves and (sure := sure_words(plan, curves)):
            parts.append(Text(f"{name}: {sure}" if several else sure))
        elif curves:
            title = power_title(plan) + (f", {name}" if several else "")
            last = curves[0][2][-1]
            width = last.shown_gap / last.gap
            parts.append(_picture(plan, curves, float(instance.gaps.min()) * width))
            parts.append(Table(*power_table(curves), f"{title}."))
    if any(isinstance(part, Table) for part in parts):
        parts.insert(0, Text(power_words(plan)))
    return Section("How likely an answer is", parts)


def _picture(plan: Plan, curves: list[Curve], planned: float) -> Picture:
    """Of several strategies the first one, and no privacy."""
    first = plan.per_epsilon[0].strategy.name
    shown = [one for one in curves if one[0] == "none" or one[1] == first][:MOST_LINES]
    several = len({strategy for _, strategy, _ in curves}) > 1
    lines = [_line(one, several) for one in shown]
    people = plan.power[0].people
    return Picture(
        charts.render(charts.draw_power(lines, planned)),
        "Share of the trials that end with the right answer, and with any, against the true "
        "difference; numbers below",
        f"Share of the trials that end within {people:,} people with the right answer (marks, "
        "with 95 % intervals) and with any answer (thin lines without marks), against the true "
        f"difference between the best arm and the next.{_alike_words(shown)}",
    )


def _alike_words(curves: list[Curve]) -> str:
    """Why there seems to be one line of each two, where no eye can tell them apart."""
    wrong = max(point.answered - point.right for _, _, points in curves for point in points)
    if wrong >= SEEN:
        return ""
    return " The two coincide, as hardly any answer is wrong."


def _line(curve: Curve, several: bool) -> charts.PowerLine:
    epsilon, strategy, points = curve
    label = "no privacy" if epsilon == "none" else f"ε = {epsilon}"
    return charts.PowerLine(
        f"{label}, {cut(strategy)}" if several else label,
        tuple(point.shown_gap for point in points),
        tuple(point.right for point in points),
        tuple(point.right_interval[0] for point in points),
        tuple(point.right_interval[1] for point in points),
        tuple(point.answered for point in points),
    )
