"""People of a trial as they came, by site."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays import Floats
from discreet.reports.arms import MOST_SHOWN, left_out_words, short_names
from discreet.reports.charts.axes import date_locator, open_frame, short_numbers
from discreet.reports.charts.style import (
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

EVERYBODY = "all"
"""What the line of all people is called."""
NOWHERE = "no site"
DWARFED = 4.0
"""Times the largest site from which on all people are drawn above the sites."""
ABOVE, LINE = 1.1, 0.19
"""Inches of that picture, and of a line of a label."""
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
    sites: int = 0
    """In all; the smallest of many have no line, and are in that of all."""


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
    large = np.argsort(-sums[-1], kind="stable")[:MOST_SHOWN]
    shown = [*(sums[:, line] for line in large), total] if sites != [None] else [total]
    names = [sites[line] or NOWHERE for line in large] if sites != [None] else []
    at = np.array([one.at or 0.0 for one in came]) if dated else total
    kept = np.unique(np.linspace(0, len(came) - 1, POINTS).astype(int))
    if not dated:
        shown = shown[:-1]  # all people against all people
    else:
        names.append(EVERYBODY)
    people = np.stack(shown, axis=1)[kept]
    return Enrolment(tuple(names), at[kept], people, dated, len(sites))


@styled
def draw_enrolment(data: Enrolment) -> "Figure":
    """A labelled step line for each site, and where times are known one for all; above
    the others where these are so small beside it that all would look level.
    """
    lines = list(range(len(data.names)))
    if data.dated and _dwarfed(data):
        names = zip(short_names(data.names[:-1]), data.people[-1], strict=False)
        words = "\n".join(label(name, f"({people:,.0f})") for name, people in names)
        heights = ABOVE, max(2.2, LINE * (words.count("\n") + 1))
        figure = new_figure(sum(heights) + 0.6)
        above, axes = figure.subplots(2, 1, sharex=True, height_ratios=heights)
        label_ends(above, _draw_lines(above, data, lines[-1:]), False)
        ends = _draw_lines(axes, data, lines[:-1])
    else:
        figure = new_figure(2.8)
        above = axes = figure.subplots()
        ends = _draw_lines(axes, data, lines)
    _time_axis(axes, data)
    drawn = len(data.names) - data.dated
    note(above, left_out_words(drawn, max(drawn, data.sites if drawn else 0), "sites"))
    label_ends(axes, ends, False)
    return figure


def _dwarfed(data: Enrolment) -> bool:
    """Whether the line of all leaves no room for those of the sites."""
    return len(data.names) > 1 and data.people[-1, -1] > DWARFED * data.people[-1, :-1].max()


def _draw_lines(axes: "Axes", data: Enrolment, lines: Sequence[int]) -> list[End]:
    """Some of the lines, and where they end."""
    x = data.at.astype("datetime64[s]") if data.dated else data.at
    names, ends = short_names(data.names), list[End]()
    for line in lines:
        look, y = arm_look(line), data.people[:, line]
        whole = data.dated and line == len(data.names) - 1
        axes.step(x, y, where="post", color=look.color, ls=look.pattern, lw=2.2 if whole else 1.4)
        axes.plot(x[-1:], y[-1:], ls="", marker=look.marker, ms=4, color=look.color)
        ends.append(End(label(names[line], f"({y[-1]:,.0f})"), float(y[-1]), look.color))
    axes.set_ylim(0, 1.05 * float(data.people[:, lines].max()))
    axes.set_ylabel("people assigned")
    short_numbers(axes.yaxis)
    open_frame(axes)
    return ends


def _time_axis(axes: "Axes", data: Enrolment) -> None:
    if not data.dated:
        short_numbers(axes.xaxis)
        axes.set_xlabel("people assigned in all")
        return
    from matplotlib.dates import ConciseDateFormatter

    least = np.timedelta64(60, "s")
    low, high = data.at.astype("datetime64[s]")[[0, -1]]
    if high - low < least:  # one call: a minute around it
        axes.set_xlim(low - least, high + least)
    locator = date_locator()
    axes.xaxis.set_major_locator(locator)
    told = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    told.formats[-1] = "%H:%M:%S"
    told.offset_formats[3:] = ["%Y-%b-%d"] * 3  # a day, never an hour that looks like an end
    axes.xaxis.set_major_formatter(told)
    axes.set_xlabel("time (UTC)", loc="left")  # on the right is which month or day
