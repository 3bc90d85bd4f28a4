"""Lines of numbers against a number, with levels that they are to be compared with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._types import Floats
from discreet.errors import InvalidInputError
from discreet.reports.charts.style import (
    BLACK,
    DASH,
    GREY,
    LOGARITHMIC,
    TYPE,
    End,
    choose_look,
    choose_strategy_styles,
    draw_participants_axis,
    fold,
    key,
    label,
    label_ends,
    label_line,
    make_figure,
    open_frame,
    set_few_ticks,
    styled,
    write_foot,
    write_title,
)
from discreet.results import Results
from discreet.wording import NO_GUARANTEE, NO_PROOF, NO_PROOF_WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    figure = make_figure(2.8)
    axes = figure.add_subplot()
    for place, line in enumerate(lines):
        look = choose_look(place)
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


MARK = f"({NO_PROOF})"
"""What a line in the key ends with that is not proved; a sentence below says it."""


NONE_DONE = "no run is done"
"""In place of a line."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """For each of some simulations the samples of the runs that stopped, in order, and
    all its runs.
    """

    labels: tuple[str, ...]
    samples: tuple[Floats, ...]
    runs: tuple[int, ...]


def distribution(results: Mapping[str, Results]) -> Distribution:
    """The distribution of samples of some simulations, by their labels."""
    if not results:
        raise InvalidInputError("there is nothing to draw: give at least one simulation")
    stopped = (
        np.sort(found.samples[found.stopped]).astype(np.float64) for found in results.values()
    )
    labels = (_label(name, found) for name, found in results.items())
    return Distribution(
        tuple(labels), tuple(stopped), tuple(found.runs for found in results.values())
    )


def _label(name: str, results: Results) -> str:
    """What was said, and where a part is your own that nothing is proved."""
    own = (results.correctness or "").startswith(NO_GUARANTEE) and MARK not in name
    return f"{name} {MARK}" if own else name


@styled
def draw_distribution(data: Distribution, title: str = "") -> "Figure":
    """The share of runs that are done, against samples. A line below 100 % has
    unstopped runs.
    """
    figure = make_figure(2.6)
    axes = figure.add_subplot()
    axes.set(xscale="log", ylim=(0, 1.02))
    for line, samples in enumerate(data.samples):
        if len(samples):
            _draw_line(axes, data, line)
        else:
            axes.plot([], [], lw=0, label=f"{data.labels[line]}: {NONE_DONE}")
    draw_participants_axis(axes)
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
    axes.set(xlabel=f"participants (samples){LOGARITHMIC}", ylabel="trials that have ended")
    open_frame(axes)
    write_title(figure, title)
    if any(MARK in label for label in data.labels):
        write_foot(figure, NO_PROOF_WORDS)
    key(figure, axes)
    return figure


def _draw_line(axes: "Axes", data: Distribution, line: int) -> None:
    """One simulation, and its name for the key."""
    samples = data.samples[line]
    share = np.arange(1, len(samples) + 1) / data.runs[line]
    look = choose_look(line)
    steps = (np.r_[samples[0], samples], np.r_[0.0, share])
    style = {"color": look.color, "ls": look.pattern, "lw": 1.7}
    axes.step(*steps, where="post", **style, label=data.labels[line])


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
class LineChart:
    """What is drawn: `across` and `up` name the axes."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    levels: tuple[Level, ...] = ()
    log_across: bool = False
    log_up: bool = True


@styled
def draw_lines(data: LineChart) -> "Figure":
    """Lines with their names where they end. Hollow marks: some runs had not
    stopped.
    """
    figure = make_figure(3.2)
    axes = figure.add_subplot()
    scales = {True: "log", False: "linear"}
    axes.set(xscale=scales[data.log_across], yscale=scales[data.log_up])
    ends = list[End]()
    styles = choose_strategy_styles([line.strategy for line in data.lines])
    for line, style in zip(data.lines, styles, strict=True):
        if line.look is not None:
            look = choose_look(line.look)
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
        set_few_ticks(axes.yaxis, *axes.get_ylim())
    if data.log_across:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    open_frame(axes)
    write_title(figure, data.title)
    label_ends(axes, ends, data.log_up)
    return figure


def _last(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return known[-1] if known else math.nan
