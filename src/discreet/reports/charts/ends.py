"""When trials of several kinds end: a bar for each, in days or on the calendar."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from discreet.calendar import MONTH
from discreet.errors import InvalidInputError
from discreet.reports.charts.axes import date_locator, open_frame
from discreet.reports.charts.style import (
    BLACK,
    label,
    label_rows,
    new_figure,
    styled,
    write_title,
)
from discreet.words import day_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = 4 * MONTH
"""Days from which on months are shown."""
LAST = date(9000, 1, 1)
"""Beyond it days are shown as they are."""


@dataclass(frozen=True)
class EndRow:
    """Days that trials of one kind take: on average, 10 % and 90 % quantile; NaN:
    unknown.
    """

    label: str
    low: float
    mean: float
    high: float
    continuous: bool = False


@styled
def draw_ends(rows: Sequence[EndRow], start: date | None = None, title: str = "") -> "Figure":
    """A row for each kind of trial: eight of ten end within the bar, the mark is the
    average; hollow where enrolment does not wait. With a `start` on the calendar.
    """
    if not rows:
        raise InvalidInputError("there is nothing to draw: give at least one row")
    longest = max((row.high for row in rows if math.isfinite(row.high)), default=1.0)
    begin = start if start is not None and _fits(start, longest) else None
    unit = 1.0 if begin is not None or longest < LONG else MONTH
    labels = [label(row.label) for row in rows]
    places, height = label_rows(labels, 0.38)
    figure = new_figure(0.8 + height)
    axes = figure.add_subplot()
    zero = _time_axis(axes, begin, unit)
    for place, row in zip(places, rows, strict=True):
        low, mean, high = (zero + days / unit for days in (row.low, row.mean, row.high))
        axes.hlines(place, low, high, color="#7fb2d6" if row.continuous else "#b9b9b9", lw=7)
        face = "white" if row.continuous else BLACK
        axes.plot([mean], [place], ls="", marker="o", mfc=face, mec=BLACK, ms=6)
        if math.isfinite(mean):
            side = "left" if row.mean < 0.2 * longest else "center"
            axes.annotate(
                _words(row.mean, unit, begin),
                (mean, place),
                xytext=(0, 10),
                textcoords="offset points",
                ha=side,
                va="center",
            )
    axes.set_yticks(places, labels)
    axes.set_ylim(height, -0.05)
    axes.set_xlim(zero, zero + 1.12 * longest / unit)
    axes.tick_params(axis="y", length=0)
    open_frame(axes, "left")
    write_title(figure, title)
    return figure


def _fits(start: date, days: float) -> bool:
    return days < (LAST - start).days


def _words(days: float, unit: float, start: date | None) -> str:
    if start is not None:
        return day_words(start + timedelta(math.ceil(days - 1e-9)))
    return f"{days / unit:,.3g}"


def _time_axis(axes: "Axes", start: date | None, unit: float) -> float:
    """Name the axis; the place on it at which enrolment begins."""
    if start is None:
        name = "days" if unit == 1 else "months"
        axes.set_xlabel(f"{name} from the first day")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
        return 0.0
    from matplotlib.dates import ConciseDateFormatter, date2num

    locator = date_locator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_xlabel("when the trial ends")
    return float(date2num(start))  # type: ignore[no-untyped-call]
