"""Names beside lines and under pictures, and the axes that they stand on: what was seen
to be wrong when every picture was looked at with two to a hundred arms.
"""

import math
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from discreet import Bernoulli, plan
from discreet.reports import charts
from discreet.reports.charts.style import BACK, TURNED, label, settle
from discreet.reports.plan import plan_page
from discreet.wording import LEFT_TO_RIGHT_MARK, isolate_name
from tests.support.pictures import FEW, MANY, draw_done, draw_trial, path

HEBREW = "תרופה חדשה במינון כפול פעמיים ביום (שני)"
TWO, LATER = 2, 1.7e9


def leaders(axes: Any) -> list[Any]:
    """What ties names to their lines."""
    return [line for line in axes.lines if line.get_transform() is axes.transAxes]


@pytest.mark.parametrize("arms", [5, 30])
def test_what_ties_a_name_to_its_line_keeps_away_from_both(arms: int) -> None:
    figure = draw_trial(arms, True)
    (axes,) = figure.axes
    settle(figure)
    names = min(text.get_window_extent().x0 for text in axes.texts)
    strokes = leaders(axes)
    assert strokes
    for stroke in strokes:
        box = stroke.get_window_extent()
        assert names - box.x1 > 1.5 * figure.dpi / 72
        assert box.x1 - box.x0 > 6 * figure.dpi / 72, "a steep one cannot be followed"


def test_lines_of_a_name_from_the_right_go_from_the_right() -> None:
    lines = label(HEBREW, "← best").split("\n")
    assert len(lines) > 2
    for line in lines[:-1]:
        assert line.startswith(LEFT_TO_RIGHT_MARK + TURNED)
        assert line.endswith(BACK + LEFT_TO_RIGHT_MARK), (
            "its last sign, a bracket or dots, is on its left"
        )
    assert lines[-1].endswith("← best")
    assert not lines[-1].endswith(BACK)
    assert label("tea") == "tea"
    assert label("tea (תה)") == f"tea (תה){LEFT_TO_RIGHT_MARK}", "from the left, as it begins"


def test_a_number_after_such_a_name_stays_with_it() -> None:
    assert isolate_name("tea") == "tea"
    assert isolate_name("תרופה 2") == f"תרופה 2{LEFT_TO_RIGHT_MARK}"
    arms = Bernoulli((0.9, 0.1), ("תרופה 1", "תרופה 2"))
    assert f"תרופה 1{LEFT_TO_RIGHT_MARK} 90 %" in plan_page(plan(arms, 1.0, 0.1, runs=20))


def drawn_words(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.findobj(match=lambda one: hasattr(one, "get_text"))]


@pytest.mark.parametrize("kind", ["draw_path", "draw_distribution", "draw_forest"])
def test_every_picture_turns_such_names(kind: str) -> None:
    figure = {**MANY, **FEW}[kind](5)
    names = [words for words in drawn_words(figure) if "תרופה" in words]
    assert names
    assert all(words.startswith(LEFT_TO_RIGHT_MARK + TURNED) for words in names)


def test_the_arm_that_others_differ_from_has_lines_of_its_own() -> None:
    rows = (charts.ForestRow("tea", -0.2, (-0.3, 0.1)),)
    for name, words in (
        ("placebo", "difference from placebo"),
        ("פלצבו", f"difference from\n{LEFT_TO_RIGHT_MARK}{TURNED}פלצבו{BACK}{LEFT_TO_RIGHT_MARK}"),
    ):
        data = charts.Forest(rows, "difference from", (-1, 1), 20, True, name)
        figure = charts.draw_forest(data)
        assert figure.axes[0].get_xlabel() == words
        assert "1 of 20 differences; 19 are left out" in drawn_words(figure)


@pytest.mark.parametrize("low", [-0.347, -0.26, -0.61, -7.3])
def test_no_difference_has_a_tick(low: float) -> None:
    rows = tuple(
        charts.ForestRow(name, 0.9 * low, (low, 0.8 * low))
        for name in ("Amoxicillin 500 mg", "Amoxicillin 1000 mg")
    )
    figure = charts.draw_forest(charts.Forest(rows, "difference from", (-9, 9), 2, True, "tea"))
    ticks = figure.axes[0].get_xticks()
    assert min(abs(tick) for tick in ticks) < 1e-9
    steps = [right - left for left, right in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps))


@pytest.mark.parametrize("kind", sorted({**MANY, **FEW}))
@pytest.mark.parametrize("count", [2, 5])
def test_the_scale_of_an_axis_can_be_read(kind: str, count: int) -> None:
    figure = {**MANY, **FEW}[kind](count)
    axes = figure.axes[-1]
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert len(ticks) > 1
    powers = all(math.log10(tick).is_integer() for tick in ticks if tick > 0)
    if axes.get_xscale() == "log" and not powers:
        assert "logarithmic" in f"{axes.get_xlabel()}{figure.get_supxlabel()}"


def test_axes_of_people_say_that_they_are_logarithmic() -> None:
    done = np.array([100.0, 200.0, 900.0])
    spread = charts.draw_distribution(charts.Distribution(("ε = 1",), (done,), (3,)))
    assert spread.axes[0].get_xlabel() == "participants (samples), logarithmic"
    bars = charts.draw_participants([charts.ParticipantsRow("ε = 1", 100, 200, 900, 50)], limit=800)
    assert bars.get_supxlabel().startswith("participants, logarithmic: ● median")
    assert FEW["draw_lines"](2).axes[0].get_ylabel() == "people, logarithmic"


@pytest.mark.parametrize(("first", "last"), [(58, 174), (31, 63), (20, 9000), (300, 800)])
def test_a_run_of_few_looks_has_ticks(first: float, last: float) -> None:
    run = path(3)
    run.samples[:] = np.geomspace(first, last, len(run.samples))
    axes = charts.draw_path(run).axes[-1]
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 3


@pytest.mark.parametrize(("arms", "each"), [(5, True), (30, False)])
def test_intervals_of_many_arms_are_drawn_once(arms: int, each: bool) -> None:
    figure: Any = charts.draw_path(path(arms))
    strokes = [len(one.get_segments()) for one in figure.axes[0].collections]
    assert max(strokes) == (len(path(arms).samples) if each else 1)
    words = figure.axes[0].get_title("left").replace("\n", " ")
    assert words.endswith("each arm's last") != each


def test_the_key_takes_nothing_from_the_picture() -> None:
    heights = []
    for lines in (2, 12):
        figure = draw_done(lines)
        settle(figure)
        heights.append(figure.axes[0].get_window_extent().height)
    assert heights[0] == pytest.approx(heights[1], rel=0.05)


@pytest.mark.parametrize(("sites", "panels"), [(2, 1), (3, 1), (8, 2), (100, 2)])
def test_many_sites_are_not_pressed_down_by_all(sites: int, panels: int) -> None:
    came = [charts.Arrival(LATER + 7200 * i, f"site {i % sites}", TWO) for i in range(3 * sites)]
    data = charts.enrolment(came)
    assert data is not None
    figure = charts.draw_enrolment(data)
    assert len(figure.axes) == panels
    assert figure.axes[-1].get_ylim()[1] < 5 * 3 * TWO
    ends = [text.get_text() for text in figure.axes[0].texts]
    assert f"all ({3 * sites * TWO:,})" in ends
    assert [axes.get_ylabel() for axes in figure.axes] == ["participants"] * panels


def test_what_marks_and_numbers_are_is_said() -> None:
    shares = drawn_words(MANY["draw_allocation"](2))
    assert any("eight of ten runs" in words and "true mean" in words for words in shares)
    power = FEW["draw_power"](2).axes[0]
    assert power.get_ylabel() == "right answers (thin line: any)"
    evidence = draw_trial(2, False).axes[0]
    evidence.figure.draw_without_rendering()
    assert evidence.get_yticklabels()[0].get_text() == "0 %"


def test_a_simulation_of_which_no_run_is_done_is_in_the_key() -> None:
    done = np.array([100.0, 200.0])
    data = charts.Distribution(("ε = 1", "ε = 0.1"), (done, done[:0]), (2, 2))
    figure = charts.draw_distribution(data)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "ε = 1",
        "ε = 0.1: no run is done",
    ]


def test_evidence_is_marked_where_it_changed() -> None:
    shares = np.array([[0.1, np.nan], [1.0, np.nan], [1.0, np.nan], [1.0, np.nan]])
    data = charts.TrialEvidence(("a", "b"), np.array([10, 20, 30, 40]), shares, (0, 1))
    axes: Any = charts.draw_evidence(data).axes[0]
    (marks,) = [
        line for line in axes.lines if line.get_marker() == "o" and line.get_linestyle() == "None"
    ]
    assert [*marks.get_xdata()] == [10, 20]
    run = path(3)
    run.evidence[4:, 0] = run.evidence[4, 0]
    lines = charts.draw_path(run).axes[1].lines
    assert lines[0].get_markevery() == [0, 1, 2, 3, 4]


def test_days_near_the_first_stand_inside_the_picture() -> None:
    rows = [charts.EndRow("ε = 0.1, continuous", 100.0, 160.0, 500.0)]
    rows += [charts.EndRow("ε = 1, continuous", 50.0, at, 120.0) for at in (60.0, 85.0, 98.0)]
    figure = charts.draw_ends(rows, date(2027, 3, 1))
    (axes,) = figure.axes
    settle(figure)
    left = axes.get_window_extent().x0
    assert all(text.get_window_extent().x0 >= left - 0.5 for text in axes.texts)
