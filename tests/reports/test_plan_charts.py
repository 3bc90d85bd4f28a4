"""Pictures of a plan: power, and when the trial ends."""

import math
from datetime import date
from typing import Any

import numpy as np
import pytest

from discreet import Bernoulli, InvalidInputError, plan
from discreet.reports import charts
from discreet.reports.plan import plan_page

ROWS = [
    charts.EndRow("no privacy, waiting", 2470, 4070, 5259),
    charts.EndRow("a scenario with a name that is long, ε = 0.1", 311, 612, math.nan, True),
]
LINE = charts.PowerLine("ε = 1", (0.1, 0.2), (0.3, 0.9), (0.2, 0.8), (0.4, 1.0), (0.4, 0.9))


@pytest.mark.parametrize(
    ("start", "label", "axis"),
    [
        (date(2027, 3, 1), "22 Apr 2038", "when the trial ends"),
        (None, "134", "months from the first day"),
        (date(8999, 1, 1), "134", "months from the first day"),
    ],
)
def test_ends_are_days_on_the_calendar_if_it_has_them(
    start: date | None, label: str, axis: str
) -> None:
    figure = charts.draw_ends(ROWS, start)
    (axes,) = figure.axes
    assert axes.texts[0].get_text() == label
    assert axes.get_xlabel() == axis
    assert b"<svg" in charts.render(figure)


def test_power_has_a_line_with_marks_and_one_for_any_answer() -> None:
    figure = charts.draw_power([LINE], 0.1)
    (axes,) = figure.axes
    drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines[:2]]
    assert drawn == [[0.4, 0.9], [0.3, 0.9]]
    assert [line.get_marker() for line in axes.lines[:2]] == ["None", "o"]
    assert axes.lines[0].get_linestyle() == "-"  # a dotted one may be a row of its own
    assert axes.texts[0].get_text() == "planned 0.1"
    for draw in (charts.draw_power, charts.draw_ends):
        with pytest.raises(InvalidInputError, match="nothing to draw"):
            draw([])


def test_what_a_plan_says_of_its_pictures() -> None:
    """No word of marks that are not there; and of several strategies, whose lines are
    drawn.
    """
    arms = Bernoulli((0.9, 0.2))
    about: dict[str, Any] = {"runs": 20, "max_participants": 60, "accrual": 5.0, "delay": 3.0}
    found = plan(arms, 1.0, 0.1, ["bet-se", "dp-se"], **about)
    said = plan_page(found)
    assert "When the trial ends: on average" in said
    assert "Hollow marks on blue" not in said
    likely = said.split("Power: how likely an answer is</h2>")[1].split("</figure>")[0]
    assert ">ε = 1, bet-se</text>" in likely
    both = plan(arms, 1.0, 0.1, enrolment="continuous", deadline=9.0, **about)
    assert "end. Hollow marks on blue: continuous enrolment." in plan_page(both)
