"""Points with intervals, a row each: means of arms, or their differences."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.reports.arms import left_out_words, short_names
from discreet.reports.charts.axes import open_frame
from discreet.reports.charts.fit import fold, starts_right, turned
from discreet.reports.charts.style import (
    BLACK,
    GREY,
    TYPE,
    label,
    label_rows,
    new_figure,
    note,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNIT = 150.0
"""Points of the longest line under the axis."""


@dataclass(frozen=True)
class ForestRow:
    """A point, and the interval around it if there is one."""

    name: str
    value: float
    interval: tuple[float, float] | None
    chosen: bool = False
    """Whether it is the one that was found."""


@dataclass(frozen=True)
class Forest:
    """Rows from the top, on one axis."""

    rows: tuple[ForestRow, ...]
    unit: str
    """What the axis is."""
    span: tuple[float, float]
    """Beyond it nothing can be."""
    count: int
    """How many there are, with those that are left out."""
    zero: bool = False
    """Whether a line stands at no difference."""
    other: str = ""
    """The name that the axis ends with: of the arm that others are compared with."""


@styled
def draw_forest(data: Forest) -> "Figure":
    """A labelled row for each; what noise has carried outside what can be stands at the
    edge, as an arrow.
    """
    labels = [label(name) for name in short_names([row.name for row in data.rows])]
    places, height = label_rows(labels)
    unit = _unit(data)
    figure = new_figure(0.7 + 0.2 * (unit.count("\n") + 1) + height)
    axes = figure.add_subplot()
    if data.zero:
        axes.axvline(0, color=GREY, lw=0.9, zorder=0)
    for place, row in zip(places, data.rows, strict=True):
        _draw_row(axes, place, row, data.span)
    axes.set_yticks(places, labels)
    for name, row in zip(axes.get_yticklabels(), data.rows, strict=True):
        name.set_fontweight("bold" if row.chosen else "normal")
    axes.set_ylim(height, -0.05)
    axes.margins(x=0.06)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(unit)
    open_frame(axes, "left")
    what = "differences" if data.zero else "arms"
    note(axes, left_out_words(len(data.rows), data.count, what))
    return figure


def _unit(data: Forest) -> str:
    """What the axis is; a name written from right to left has lines of its own."""
    if not starts_right(data.other):
        return fold(f"{data.unit} {data.other}", UNIT, TYPE)
    name = turned(data.other, fold(data.other, UNIT, TYPE).split("\n"))
    return "\n".join([fold(data.unit, UNIT, TYPE), *name])


def _draw_row(axes: "Axes", place: float, row: ForestRow, span: tuple[float, float]) -> None:
    low, high = span
    if row.interval is not None:
        axes.plot(row.interval, (place, place), color=BLACK, lw=1.4, solid_capstyle="butt")
        axes.plot(row.interval, (place, place), ls="", marker="|", ms=6, color=BLACK)
    marker = "<" if row.value < low else ">" if row.value > high else "D" if row.chosen else "o"
    at = min(max(row.value, low), high)
    filled = BLACK if row.chosen else "white"
    axes.plot([at], [place], marker=marker, ms=5.5, mfc=filled, mec=BLACK, clip_on=False)
