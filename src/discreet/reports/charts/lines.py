"""Lines of numbers against a number, with levels that they are to be compared with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.reports.charts.axes import LOGARITHMIC, few_ticks, open_frame
from discreet.reports.charts.fit import fold
from discreet.reports.charts.style import (
    BLACK,
    TYPE,
    End,
    arm_look,
    label,
    label_ends,
    new_figure,
    strategy_styles,
    styled,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UP, ACROSS = 150.0, 180.0
"""Points of the longest lines beside the axes."""


@dataclass(frozen=True)
class Line:
    """One strategy: its numbers at each x, and the share of runs that had not stopped;
    `look` tells lines of one strategy apart.
    """

    strategy: str
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    unstopped: tuple[float, ...]
    look: int | None = None


@dataclass(frozen=True)
class Level:
    """A number that does not depend on x."""

    label: str
    value: float


@dataclass(frozen=True)
class Lines:
    """What is drawn: `across` and `up` name the axes."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...] = ()
    log_across: bool = False
    log_up: bool = True


@styled
def draw_lines(data: Lines) -> "Figure":
    """Lines with their names where they end. Hollow marks: some runs had not
    stopped.
    """
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    scales = {True: "log", False: "linear"}
    axes.set(xscale=scales[data.log_across], yscale=scales[data.log_up])
    ends = list[End]()
    styles = strategy_styles([line.strategy for line in data.lines])
    for line, style in zip(data.lines, styles, strict=True):
        if line.look is not None:
            look = arm_look(line.look)
            style |= {"color": look.color, "ls": look.pattern, "marker": look.marker}
        marker, color = style.pop("marker"), style["color"]
        axes.plot(line.x, line.y, **style, zorder=3)
        for x, y, share in zip(line.x, line.y, line.unstopped, strict=True):
            face = "white" if share > 0 else color
            axes.plot([x], [y], marker=marker or ".", ms=4.5, mfc=face, mec=color, zorder=4)
        ends.append(End(label(line.label), _last(line.y), color))
    for level in data.levels:
        axes.axhline(level.value, color=BLACK, lw=0.9, zorder=2)
        ends.append(End(label(level.label), level.value, BLACK))
    up = f"{data.up}{LOGARITHMIC if data.log_up else ''}"
    axes.set(xlabel=fold(data.across, ACROSS, TYPE), ylabel=fold(up, UP, TYPE))
    if data.log_up:
        low, high = axes.get_ylim()
        axes.set_ylim(low, max(high, 2.5 * low))
        few_ticks(axes.yaxis, *axes.get_ylim())
    if data.log_across:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    open_frame(axes)
    write_title(figure, data.title)
    label_ends(axes, ends, data.log_up)
    return figure


def _last(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return known[-1] if known else math.nan
