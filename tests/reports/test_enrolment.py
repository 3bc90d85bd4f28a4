"""People as they came: by site, against time or in their order."""

import numpy as np

from discreet.reports import charts
from discreet.reports.charts import Arrival, draw_enrolment, enrolment


def test_people_are_counted_by_site_and_in_all() -> None:
    found = enrolment([Arrival(10.0, "a", 2), Arrival(20.0, "b", 1), Arrival(30.0, "a", 4)])
    assert found is not None
    assert found.names == ("a", "b", "all")
    assert found.people.tolist() == [[2, 0, 2], [2, 1, 3], [6, 1, 7]]
    assert found.at.tolist() == [10, 20, 30]


def test_without_times_the_order_is_what_there_is() -> None:
    found = enrolment([Arrival(None, "a", 2), Arrival(None, None, 1)])
    assert found is not None
    assert not found.dated
    assert found.names == ("a", "no site")
    assert found.at.tolist() == [2, 3]


def test_there_may_be_nothing_to_draw() -> None:
    assert enrolment([]) is None
    assert enrolment([Arrival(None, None, 5)]) is None
    assert enrolment([Arrival(1.0, None, 5)]) is not None


def test_many_calls_and_sites_make_a_small_picture() -> None:
    came = [Arrival(60.0 * call, f"site {call % 30}", 1) for call in range(5000)]
    found = enrolment(came)
    assert found is not None
    assert len(found.names) == 13
    assert len(found.at) == 400
    assert found.people[-1, -1] == 5000
    assert np.all(np.diff(found.people, axis=0) >= 0)
    drawn = charts.render(draw_enrolment(found))
    assert b"all (5,000)" in drawn
    assert b"time (UTC)" in drawn


def test_beside_a_time_axis_stands_a_day_and_no_hour() -> None:
    """An hour there looks like the end of the axis."""
    noon = 1_795_000_000.0
    for seconds in (90.0, 600.0, 7200.0):
        found = enrolment([Arrival(noon, "a", 2), Arrival(noon + seconds, "a", 3)])
        assert found is not None
        figure = draw_enrolment(found)
        figure.canvas.draw()
        axes = figure.axes[-1]
        assert axes.xaxis.get_offset_text().get_text() == "2026-Nov-18"
        times = [label.get_text() for label in axes.get_xticklabels()]
        assert all(":" in time for time in times), times
