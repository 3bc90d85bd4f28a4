"""People that trials of several kinds take: a bar for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInputError
from discreet.reports.charts.axes import LOGARITHMIC, open_frame, people_axis
from discreet.reports.charts.style import (
    BLACK,
    DASH,
    TYPE,
    label,
    label_line,
    label_rows,
    new_figure,
    styled,
    write_title,
)
from discreet.words import short_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BOUND = ", ◇ lower bound"
GROUND: Any = {"fc": "white", "ec": "none", "pad": 0.6}
"""Of a number that the line of the maximum may go through."""


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
    labels = [label(row.label) for row in rows]
    places, height = label_rows(labels, 0.38)
    figure = new_figure(1.0 + height)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for place, row in zip(places, rows, strict=True):
        axes.hlines(place, row.low, row.high, color="#7fb2d6", lw=7)
        axes.plot([row.middle], [place], ls="", marker="o", color=BLACK, ms=6)
        axes.plot([row.bound], [place], ls="", marker="D", mfc="white", mec=BLACK, ms=6)
        _label(axes, row.middle, place)
    if limit is not None:
        axes.axvline(limit, color=BLACK, lw=0.9, ls=DASH, zorder=0)
        label_line(axes, limit, f"maximum {limit:,.0f}")
    axes.set_yticks(places, labels)
    axes.set_ylim(height, -0.05)
    axes.margins(x=0.12)
    axes.tick_params(axis="y", length=0)
    people_axis(axes)
    bound = BOUND if any(math.isfinite(row.bound) for row in rows) else ""
    words = f"people{LOGARITHMIC}: ● median{bound};\neight of ten trials end within the bar"
    figure.supxlabel(words, fontsize=TYPE)
    open_frame(axes, "left")
    write_title(figure, title)
    return figure


def _label(axes: "Axes", people: float, row: float) -> None:
    """The number above its mark."""
    if math.isfinite(people):
        axes.annotate(
            short_people(people),
            (people, row),
            xytext=(0, 10),
            textcoords="offset points",
            ha="center",
            va="center",
            bbox=GROUND,
        )
