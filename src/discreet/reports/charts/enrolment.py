"""People of a trial as they came, by site."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.reports.charts.style import (
    End,
    arm_look,
    label_ends,
    new_figure,
    open_frame,
    short_numbers,
    styled,
)
from discreet.words import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EVERYBODY = "all"
"""What the line of all people is called."""
NOWHERE = "no site"
FEW_SITES = 12
"""Sites that have a line of their own; the others are in that of all."""
POINTS = 400
"""Of the picture; of more calls some are left out."""


class Arrival(NamedTuple):
    """People who came together."""

    at: float | None
    """When, in seconds since 1970; None if nobody says."""
    site: str | None
    people: int


@dataclass(frozen=True, eq=False)
class Enrolment:
    """People by then, of each site and in all."""

    names: tuple[str, ...]
    at: Floats
    """[row] seconds since 1970; where no times are known, people in all."""
    people: Floats
    """[row, line]"""
    dated: bool


def enrolment(arrivals: Iterable[Arrival]) -> Enrolment | None:
    """How people came; None if there is nothing to draw: nobody, or neither times nor
    sites.
    """
    came = [one for one in arrivals if one.people]
    sites = list(dict.fromkeys(one.site for one in came))
    dated = bool(came) and all(one.at is not None for one in came)
    if not came or (not dated and sites == [None]):
        return None
    counts = np.zeros((len(came), len(sites)))
    for row, one in enumerate(came):
        counts[row, sites.index(one.site)] = one.people
    sums = counts.cumsum(axis=0)
    total = sums.sum(axis=1)
    large = np.argsort(-sums[-1], kind="stable")[:FEW_SITES]
    shown = [*(sums[:, line] for line in large), total] if sites != [None] else [total]
    names = [sites[line] or NOWHERE for line in large] if sites != [None] else []
    at = np.array([one.at or 0.0 for one in came]) if dated else total
    kept = np.unique(np.linspace(0, len(came) - 1, POINTS).astype(int))
    if not dated:
        shown = shown[:-1]  # all people against all people
    else:
        names.append(EVERYBODY)
    return Enrolment(tuple(names), at[kept], np.stack(shown, axis=1)[kept], dated)


@styled
def draw_enrolment(data: Enrolment) -> "Figure":
    """A labelled step line for each site, and where times are known one for all."""
    figure = new_figure(5.2, 3.3)
    axes = figure.subplots()
    x = data.at.astype("datetime64[s]") if data.dated else data.at
    ends = list[End]()
    for line, name in enumerate(data.names):
        look, y = arm_look(line), data.people[:, line]
        whole = data.dated and line == len(data.names) - 1
        axes.step(x, y, where="post", color=look.color, ls=look.pattern, lw=2.2 if whole else 1.4)
        axes.plot(x[-1:], y[-1:], ls="", marker=look.marker, ms=4, color=look.color)
        ends.append(End(f"{cut(name)} ({y[-1]:,.0f})", float(y[-1]), look.color))
    axes.set_ylim(0, 1.05 * float(data.people.max()))
    label_ends(axes, ends, False)
    axes.set_ylabel("people assigned")
    short_numbers(axes.yaxis)
    _time_axis(axes, data)
    open_frame(axes)
    return figure


def _time_axis(axes: "Axes", data: Enrolment) -> None:
    if not data.dated:
        short_numbers(axes.xaxis)
        axes.set_xlabel("people assigned in all")
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    least = np.timedelta64(60, "s")
    low, high = data.at.astype("datetime64[s]")[[0, -1]]
    if high - low < least:  # one call: a minute around it
        axes.set_xlim(low - least, high + least)
    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_xlabel("time (UTC)")
