"""People that trials of several kinds take: a bar for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import InvalidInputError
from discreet.reports.charts.style import (
    BLACK,
    DASH,
    label_line,
    new_figure,
    open_frame,
    people_axis,
    styled,
    write_title,
)
from discreet.words import short_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PeopleRow:
    """What trials of one kind take: median, 10 % and 90 % quantile; what none can beat
    on average.

    NaN: unknown.
    """

    label: str
    low: float
    middle: float
    high: float
    bound: float


@styled
def draw_people(rows: Sequence[PeopleRow], title: str = "", limit: float | None = None) -> "Figure":
    """A row for each kind of trial: eight of ten trials end within the bar. `limit`
    draws a maximum.
    """
    if not rows:
        raise InvalidInputError("there is nothing to draw: give at least one row")
    figure = new_figure(5.0, 1.35 + 0.46 * len(rows))
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for place, row in enumerate(rows):
        axes.hlines(place, row.low, row.high, color="#7fb2d6", lw=7)
        axes.plot([row.middle], [place], ls="", marker="o", color=BLACK, ms=6)
        axes.plot([row.bound], [place], ls="", marker="D", mfc="white", mec=BLACK, ms=6)
        _label(axes, row.middle, place, short_people(row.middle), 9)
    _label(axes, rows[0].bound, 0, "lower bound", -11, "right")
    _label(axes, rows[0].middle, 0, "median", -11, "left")
    if limit is not None:
        axes.axvline(limit, color=BLACK, lw=0.9, ls=DASH, zorder=0)
        label_line(axes, limit, f"maximum {limit:,.0f}")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.45, -0.75)
    axes.margins(x=0.12)
    axes.tick_params(axis="y", length=0)
    people_axis(axes)
    axes.set_xlabel("people; eight of ten trials end within the bar")
    open_frame(axes, "left")
    write_title(axes, title)
    return figure


def _label(
    axes: "Axes", x: float, y: float, words: str, above: float, side: str = "center"
) -> None:
    """Small words above a point, or below it."""
    if math.isfinite(x):
        axes.annotate(
            words,
            (x, y),
            xytext=(0, above),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
            bbox={"fc": "white", "ec": "none", "pad": 0.6},
        )
