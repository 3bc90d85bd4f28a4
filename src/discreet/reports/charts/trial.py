"""The private means of a live trial, and the evidence against its arms."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.reports.charts.style import (
    BLACK,
    End,
    arm_look,
    label_ends,
    new_figure,
    open_frame,
    people_axis,
    styled,
)
from discreet.words import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


@styled
def draw_means(data: TrialMeans) -> "Figure":
    """A labelled step line for each arm; the first noisy means may lie far outside, and
    leave the picture.
    """
    figure = new_figure(5.2, 3.3)
    axes = figure.subplots()
    axes.set_xscale("log")
    released = ~np.isnan(data.means)
    ends = [_draw_arm(axes, data, arm) for arm in range(len(data.names)) if released[:, arm].any()]
    _mean_limits(axes, data)
    label_ends(axes, ends, False)
    axes.set_xlabel("people assigned")
    axes.set_ylabel(data.unit)
    open_frame(axes)
    people_axis(axes)
    return figure


def _draw_arm(axes: "Axes", data: TrialMeans, arm: int) -> End:
    """The means of one arm; where the line ends."""
    look = arm_look(arm)
    there = ~np.isnan(data.means[:, arm])
    x = data.people[there]
    y = data.means[there, arm]
    width = 2.2 if arm == data.chosen else 1.3
    axes.step(x, y, where="post", color=look.color, ls=look.pattern, lw=width)
    fresh = np.append(True, np.diff(y) != 0)
    if fresh.sum() <= MANY_RELEASES:
        axes.plot(x[fresh], y[fresh], ls="", marker=look.marker, ms=4, color=look.color)
    best = " ← best" if arm == data.chosen else ""
    return End(cut(data.names[arm]) + best, float(y[-1]), look.color)


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


@styled
def draw_evidence(data: TrialEvidence) -> "Figure":
    """A labelled step line for each arm, below the line from which on it is out."""
    figure = new_figure(5.2, 3.3)
    axes = figure.subplots()
    axes.set_xscale("log")
    ends = list[End]()
    top = float(np.nanmax(data.shares, initial=0.0))
    axes.set_ylim(0, min(max(1.2, 1.1 * top), 2.0))
    for arm, name in enumerate(data.names):
        look, y = arm_look(arm), data.shares[:, arm]
        axes.step(data.people, y, where="post", color=look.color, ls=look.pattern, lw=1.5)
        fresh = np.isfinite(y)
        if 0 < fresh.sum() <= MANY_RELEASES:
            axes.plot(
                data.people[fresh], y[fresh], ls="", marker=look.marker, ms=4, color=look.color
            )
        if math.isfinite(y[-1]):
            out = " (out)" if y[-1] >= 1 else ""
            ends.append(End(cut(name) + out, float(y[-1]), look.color))
    axes.axhline(1, color=BLACK, lw=0.9, zorder=0)
    axes.annotate(
        "enough to put an arm out",
        (0.01, 1),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
    )
    label_ends(axes, ends, False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("people assigned")
    axes.set_ylabel("evidence against an arm")
    open_frame(axes)
    people_axis(axes)
    return figure


def _mean_limits(axes: "Axes", data: TrialMeans) -> None:
    """Show the range of outcomes, and a little more where means are there."""
    least, most = data.span
    room = 0.3 * (most - least)
    low = max(float(np.nanmin(data.means)), least - room)
    high = min(float(np.nanmax(data.means)), most + room)
    axes.set_ylim(low - room / 6, high + room / 6)
