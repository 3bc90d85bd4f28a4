"""Power: how likely a trial of so many people ends with the right answer, and with any,
against the true difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import InvalidInputError
from discreet.reports.charts.axes import open_frame
from discreet.reports.charts.style import (
    DASH,
    GREY,
    arm_look,
    key,
    label_line,
    new_figure,
    styled,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PowerLine:
    """One kind of trial: shares of right answers and of any at each true difference,
    and intervals of the former.
    """

    label: str
    gaps: tuple[float, ...]
    right: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    answered: tuple[float, ...]


@styled
def draw_power(
    lines: Sequence[PowerLine], planned: float | None = None, title: str = ""
) -> "Figure":
    """A line with marks for right answers, with intervals, and a thin one without marks
    for any answer; `planned` marks the difference that the plan is about.
    """
    if not lines:
        raise InvalidInputError("there is nothing to draw: give at least one line")
    figure = new_figure(2.8)
    axes = figure.add_subplot()
    for place, line in enumerate(lines):
        look = arm_look(place)
        axes.vlines(line.gaps, line.low, line.high, color=look.color, lw=0.8, zorder=2)
        axes.plot(line.gaps, line.answered, color=look.color, lw=0.8, zorder=2)
        axes.plot(
            line.gaps,
            line.right,
            color=look.color,
            ls=look.pattern,
            marker=look.marker,
            ms=4.5,
            lw=1.7,
            zorder=3,
            label=line.label,
        )
    if planned is not None:
        axes.axvline(planned, color=GREY, lw=0.9, ls=DASH, zorder=0)
        label_line(axes, planned, f"planned {planned:.3g}", GREY)
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlim(left=0)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set(xlabel="true difference, best arm to next", ylabel="right answers (thin line: any)")
    open_frame(axes)
    write_title(figure, title)
    key(figure, axes)
    return figure
