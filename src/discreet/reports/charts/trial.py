"""The private means of a live trial, and the evidence against its arms."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.reports.charts.style import (
    BLACK,
    GREY,
    MOST_SHOWN,
    TYPE,
    End,
    choose_look,
    describe_left_out,
    fold,
    format_short_numbers,
    is_written_from_right,
    label,
    label_ends,
    label_rows,
    make_date_locator,
    make_figure,
    note,
    open_frame,
    scale_participants,
    shorten_names,
    styled,
    turned,
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
    labels = [label(name) for name in shorten_names([row.name for row in data.rows])]
    places, height = label_rows(labels)
    unit = _unit(data)
    figure = make_figure(0.7 + 0.2 * (unit.count("\n") + 1) + height)
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
    note(axes, describe_left_out(len(data.rows), data.count, what))
    return figure


def _unit(data: Forest) -> str:
    """What the axis is; a name written from right to left has lines of its own."""
    if not is_written_from_right(data.other):
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
class EnrolmentCurves:
    """People by then, of each site and in all."""

    names: tuple[str, ...]
    at: Floats
    """[row] seconds since 1970; where no times are known, people in all."""
    people: Floats
    """[row, line]"""
    dated: bool
    sites: int = 0
    """In all; the smallest of many have no line, and are in that of all."""


def enrolment(arrivals: Iterable[Arrival]) -> EnrolmentCurves | None:
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
    return EnrolmentCurves(tuple(names), at[kept], people, dated, len(sites))


@styled
def draw_enrolment(data: EnrolmentCurves) -> "Figure":
    """A labelled step line for each site, and where times are known one for all; above
    the others where these are so small beside it that all would look level.
    """
    lines = list(range(len(data.names)))
    if data.dated and _dwarfed(data):
        names = zip(shorten_names(data.names[:-1]), data.people[-1], strict=False)
        words = "\n".join(label(name, f"({people:,.0f})") for name, people in names)
        heights = ABOVE, max(2.2, LINE * (words.count("\n") + 1))
        figure = make_figure(sum(heights) + 0.6)
        above, axes = figure.subplots(2, 1, sharex=True, height_ratios=heights)
        label_ends(above, _draw_lines(above, data, lines[-1:]), False)
        ends = _draw_lines(axes, data, lines[:-1])
    else:
        figure = make_figure(2.8)
        above = axes = figure.subplots()
        ends = _draw_lines(axes, data, lines)
    _time_axis(axes, data)
    drawn = len(data.names) - data.dated
    note(above, describe_left_out(drawn, max(drawn, data.sites if drawn else 0), "sites"))
    label_ends(axes, ends, False)
    return figure


def _dwarfed(data: EnrolmentCurves) -> bool:
    """Whether the line of all leaves no room for those of the sites."""
    return len(data.names) > 1 and data.people[-1, -1] > DWARFED * data.people[-1, :-1].max()


def _draw_lines(axes: "Axes", data: EnrolmentCurves, lines: Sequence[int]) -> list[End]:
    """Some of the lines, and where they end."""
    x = data.at.astype("datetime64[s]") if data.dated else data.at
    names, ends = shorten_names(data.names), list[End]()
    for line in lines:
        look, y = choose_look(line), data.people[:, line]
        whole = data.dated and line == len(data.names) - 1
        axes.step(x, y, where="post", color=look.color, ls=look.pattern, lw=2.2 if whole else 1.4)
        axes.plot(x[-1:], y[-1:], ls="", marker=look.marker, ms=4, color=look.color)
        ends.append(End(label(names[line], f"({y[-1]:,.0f})"), float(y[-1]), look.color))
    axes.set_ylim(0, 1.05 * float(data.people[:, lines].max()))
    axes.set_ylabel("participants")
    format_short_numbers(axes.yaxis)
    open_frame(axes)
    return ends


def _time_axis(axes: "Axes", data: EnrolmentCurves) -> None:
    if not data.dated:
        format_short_numbers(axes.xaxis)
        axes.set_xlabel("participants assigned in all")
        return
    from matplotlib.dates import ConciseDateFormatter

    least = np.timedelta64(60, "s")
    low, high = data.at.astype("datetime64[s]")[[0, -1]]
    if high - low < least:  # one call: a minute around it
        axes.set_xlim(low - least, high + least)
    locator = make_date_locator()
    axes.xaxis.set_major_locator(locator)
    told = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    told.formats[-1] = "%H:%M:%S"
    told.offset_formats[3:] = ["%Y-%b-%d"] * 3  # a day, never an hour that looks like an end
    axes.xaxis.set_major_formatter(told)
    axes.set_xlabel("time (UTC)", loc="left")  # on the right is which month or day


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
    figure = make_figure(2.8)
    axes = figure.subplots()
    released = ~np.isnan(data.means)
    names = shorten_names([data.names[arm] for arm in data.shown])
    ends = [
        _draw_arm(axes, data, arm, place, name)
        for place, (arm, name) in enumerate(zip(data.shown, names, strict=True))
        if released[:, arm].any()
    ]
    _mean_limits(axes, data)
    axes.set_ylabel(data.unit)
    open_frame(axes)
    scale_participants(axes, data.people[0], data.people[-1], "participants assigned")
    note(axes, describe_left_out(len(data.shown), len(data.names)))
    label_ends(axes, ends, False)
    return figure


def _draw_arm(axes: "Axes", data: TrialMeans, arm: int, place: int, name: str) -> End:
    """The means of one arm; where the line ends."""
    look = choose_look(place)
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
    figure = make_figure(2.8)
    axes = figure.subplots()
    ends = list[End]()
    top = float(np.nanmax(data.shares[:, data.shown], initial=0.0))
    axes.set_ylim(0, min(max(1.2, 1.1 * top), 2.0))
    names = shorten_names([data.names[arm] for arm in data.shown])
    for place, (arm, name) in enumerate(zip(data.shown, names, strict=True)):
        look, y = choose_look(place), data.shares[:, arm]
        axes.step(data.people, y, where="post", color=look.color, ls=look.pattern, lw=1.5)
        fresh = np.isfinite(y) & np.append(True, np.diff(y) != 0)
        if 0 < fresh.sum() <= MANY_RELEASES:
            axes.plot(
                data.people[fresh], y[fresh], ls="", marker=look.marker, ms=4, color=look.color
            )
        if math.isfinite(y[-1]):
            out = "(eliminated)" if y[-1] >= 1 else ""
            ends.append(End(label(name, out), float(y[-1]), look.color))
    axes.axhline(1, color=BLACK, lw=0.9, zorder=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_ylabel("evidence against an arm")
    open_frame(axes)
    scale_participants(axes, data.people[0], data.people[-1], "participants assigned")
    note(axes, "at 100 % an arm is eliminated", describe_left_out(len(data.shown), len(data.names)))
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
