"""The private means of a live trial, and the evidence against its arms."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.reports.arms import left_out_words, short_names
from discreet.reports.charts.axes import open_frame, people_scale
from discreet.reports.charts.style import (
    BLACK,
    End,
    arm_look,
    label,
    label_ends,
    new_figure,
    note,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW_BANDS = 2
"""Arms whose intervals can be told apart as bands."""
MANY_RELEASES = 40
"""Releases of an arm from which they are not marked one by one."""


@dataclass(frozen=True, eq=False)
class TrialMeans:
    """Private means of a live trial, a row for each time something was released."""

    names: tuple[str, ...]
    people: Ints
    """[row] people assigned by then."""
    means: Floats
    """[row, arm] in the experimenter's units; NaN before the first release of an
    arm.
    """
    chosen: int | None
    """The arm that is named, if any."""
    unit: str
    """What the means are, for the axis."""
    span: tuple[float, float]
    """The range of outcomes."""
    shown: tuple[int, ...]
    """The arms that are drawn."""
    low: Floats | None = None
    high: Floats | None = None
    """[row, arm] the ends of intervals, where there are any."""


@styled
def draw_means(data: TrialMeans) -> "Figure":
    """A labelled step line for each arm, of few arms with its interval as a band; the
    first noisy means may lie far outside, and leave the picture.
    """
    figure = new_figure(2.8)
    axes = figure.subplots()
    released = ~np.isnan(data.means)
    names = short_names([data.names[arm] for arm in data.shown])
    ends = [
        _draw_arm(axes, data, arm, place, name)
        for place, (arm, name) in enumerate(zip(data.shown, names, strict=True))
        if released[:, arm].any()
    ]
    _mean_limits(axes, data)
    axes.set_ylabel(data.unit)
    open_frame(axes)
    people_scale(axes, data.people[0], data.people[-1], "people assigned")
    note(axes, left_out_words(len(data.shown), len(data.names)))
    label_ends(axes, ends, False)
    return figure


def _draw_arm(axes: "Axes", data: TrialMeans, arm: int, place: int, name: str) -> End:
    """The means of one arm; where the line ends."""
    look = arm_look(place)
    there = ~np.isnan(data.means[:, arm])
    x = data.people[there]
    y = data.means[there, arm]
    width = 2.2 if arm == data.chosen else 1.3
    if data.low is not None and data.high is not None and len(data.names) <= FEW_BANDS:
        ends = data.low[there, arm], data.high[there, arm]
        axes.fill_between(x, *ends, step="post", color=look.color, alpha=0.13, lw=0)
        axes.vlines(x[-1], ends[0][-1], ends[1][-1], color=look.color, lw=1.3)
    axes.step(x, y, where="post", color=look.color, ls=look.pattern, lw=width)
    fresh = np.append(True, np.diff(y) != 0)
    if fresh.sum() <= MANY_RELEASES:
        axes.plot(x[fresh], y[fresh], ls="", marker=look.marker, ms=4, color=look.color)
    best = "← best" if arm == data.chosen else ""
    return End(label(name, best), float(y[-1]), look.color)


@dataclass(frozen=True, eq=False)
class TrialEvidence:
    """The evidence against each arm, a row for each time something was released."""

    names: tuple[str, ...]
    people: Ints
    """[row] people assigned by then."""
    shares: Floats
    """[row, arm] of what puts an arm out; NaN while it leads, and where nothing is
    known.
    """
    shown: tuple[int, ...]
    """The arms that are drawn."""


@styled
def draw_evidence(data: TrialEvidence) -> "Figure":
    """A labelled step line for each arm, below the line from which on it is out."""
    figure = new_figure(2.8)
    axes = figure.subplots()
    ends = list[End]()
    top = float(np.nanmax(data.shares[:, data.shown], initial=0.0))
    axes.set_ylim(0, min(max(1.2, 1.1 * top), 2.0))
    names = short_names([data.names[arm] for arm in data.shown])
    for place, (arm, name) in enumerate(zip(data.shown, names, strict=True)):
        look, y = arm_look(place), data.shares[:, arm]
        axes.step(data.people, y, where="post", color=look.color, ls=look.pattern, lw=1.5)
        fresh = np.isfinite(y) & np.append(True, np.diff(y) != 0)
        if 0 < fresh.sum() <= MANY_RELEASES:
            axes.plot(
                data.people[fresh], y[fresh], ls="", marker=look.marker, ms=4, color=look.color
            )
        if math.isfinite(y[-1]):
            out = "(out)" if y[-1] >= 1 else ""
            ends.append(End(label(name, out), float(y[-1]), look.color))
    axes.axhline(1, color=BLACK, lw=0.9, zorder=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_ylabel("evidence against an arm")
    open_frame(axes)
    people_scale(axes, data.people[0], data.people[-1], "people assigned")
    note(axes, "at 100 % an arm is out", left_out_words(len(data.shown), len(data.names)))
    label_ends(axes, ends, False)
    return figure


def _mean_limits(axes: "Axes", data: TrialMeans) -> None:
    """Show the range of outcomes, and a little more where means are there."""
    least, most = data.span
    room = 0.3 * (most - least)
    means = data.means[:, data.shown]
    if data.low is not None and data.high is not None and len(data.names) <= FEW_BANDS:
        means = np.vstack([means, data.low[-1:, data.shown], data.high[-1:, data.shown]])
    low = max(float(np.nanmin(means, initial=most)), least - room)
    high = min(float(np.nanmax(means, initial=least)), most + room)
    axes.set_ylim(low - room / 6, high + room / 6)
