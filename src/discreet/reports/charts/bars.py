"""How the samples of a simulation are spread over the arms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import theory
from discreet.accrual import DAYS_PER_MONTH
from discreet.errors import InvalidInputError
from discreet.instances import Instance
from discreet.reports.charts.style import (
    BLACK,
    BLUE,
    DASH,
    LOGARITHMIC,
    PALE,
    TYPE,
    choose_arms,
    describe_left_out,
    draw_participants_axis,
    label,
    label_line,
    label_rows,
    make_date_locator,
    make_figure,
    note,
    open_frame,
    shorten_names,
    styled,
    write_title,
)
from discreet.results import Results
from discreet.wording import format_day, format_participants_short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BOUND = ", ◇ lower bound"
GROUND: Any = {"fc": "white", "ec": "none", "pad": 0.6}
"""Of a number that the line of the maximum may go through."""


@dataclass(frozen=True)
class ParticipantsRow:
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
def draw_participants(
    rows: Sequence[ParticipantsRow], title: str = "", limit: float | None = None
) -> "Figure":
    """A row for each kind of trial: eight of ten trials end within the bar. `limit`
    draws a maximum.
    """
    if not rows:
        raise InvalidInputError("there is nothing to draw: give at least one row")
    labels = [label(row.label) for row in rows]
    places, height = label_rows(labels, 0.38)
    figure = make_figure(1.0 + height)
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
    draw_participants_axis(axes)
    bound = BOUND if any(math.isfinite(row.bound) for row in rows) else ""
    words = f"participants{LOGARITHMIC}: ● median{bound};\neight of ten trials end within the bar"
    figure.supxlabel(words, fontsize=TYPE)
    open_frame(axes, "left")
    write_title(figure, title)
    return figure


def _label(axes: "Axes", people: float, row: float) -> None:
    """The number above its mark."""
    if math.isfinite(people):
        axes.annotate(
            format_participants_short(people),
            (people, row),
            xytext=(0, 10),
            textcoords="offset points",
            ha="center",
            va="center",
            bbox=GROUND,
        )


LONG = 4 * DAYS_PER_MONTH
"""Days from which on months are shown."""
LAST = date(9000, 1, 1)
"""Beyond it days are shown as they are."""


@dataclass(frozen=True)
class EndRow:
    """Days that trials of one kind take: on average, 10 % and 90 % quantile; NaN:
    unknown.
    """

    label: str
    low: float
    mean: float
    high: float
    continuous: bool = False


@styled
def draw_ends(rows: Sequence[EndRow], start: date | None = None, title: str = "") -> "Figure":
    """A row for each kind of trial: eight of ten end within the bar, the mark is the
    average; hollow where enrolment does not wait. With a `start` on the calendar.
    """
    if not rows:
        raise InvalidInputError("there is nothing to draw: give at least one row")
    longest = max((row.high for row in rows if math.isfinite(row.high)), default=1.0)
    begin = start if start is not None and _fits(start, longest) else None
    unit = 1.0 if begin is not None or longest < LONG else DAYS_PER_MONTH
    labels = [label(row.label) for row in rows]
    places, height = label_rows(labels, 0.38)
    figure = make_figure(0.8 + height)
    axes = figure.add_subplot()
    zero = _time_axis(axes, begin, unit)
    for place, row in zip(places, rows, strict=True):
        low, mean, high = (zero + days / unit for days in (row.low, row.mean, row.high))
        axes.hlines(place, low, high, color="#7fb2d6" if row.continuous else "#b9b9b9", lw=7)
        face = "white" if row.continuous else BLACK
        axes.plot([mean], [place], ls="", marker="o", mfc=face, mec=BLACK, ms=6)
        if math.isfinite(mean):
            side = "left" if row.mean < 0.2 * longest else "center"
            axes.annotate(
                _words(row.mean, unit, begin),
                (mean, place),
                xytext=(0, 10),
                textcoords="offset points",
                ha=side,
                va="center",
            )
    axes.set_yticks(places, labels)
    axes.set_ylim(height, -0.05)
    axes.set_xlim(zero, zero + 1.12 * longest / unit)
    axes.tick_params(axis="y", length=0)
    open_frame(axes, "left")
    write_title(figure, title)
    return figure


def _fits(start: date, days: float) -> bool:
    return days < (LAST - start).days


def _words(days: float, unit: float, start: date | None) -> str:
    if start is not None:
        return format_day(start + timedelta(math.ceil(days - 1e-9)))
    return f"{days / unit:,.3g}"


def _time_axis(axes: "Axes", start: date | None, unit: float) -> float:
    """Name the axis; the place on it at which enrolment begins."""
    if start is None:
        name = "days" if unit == 1 else "months"
        axes.set_xlabel(f"{name} from the first day")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
        return 0.0
    from matplotlib.dates import ConciseDateFormatter, date2num

    locator = make_date_locator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_xlabel("when the trial ends")
    return float(date2num(start))  # type: ignore[no-untyped-call]


KEY = """share of the samples: ● mean of the runs,
bar: eight of ten runs, ◇ ideal;
in brackets: the true mean of the arm"""


@dataclass(frozen=True)
class Allocation:
    """Each arm's share of the samples, over the runs that stopped, beside that of an
    ideal strategy.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    ideal: tuple[float, ...]


def allocation(results: Results) -> Allocation:
    """Shares of a simulation (mean, 10 % and 90 % quantile), and those that attain the
    lower bound.
    """
    instance, strategy = Instance.from_dict(results.spec["instance"]), results.spec["strategy"]
    if not results.stopped.any():
        raise InvalidInputError("there is nothing to draw: no run stopped")
    pulls = results.pulls[results.stopped].astype(np.float64)
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    arms = instance.as_bernoulli() if instance.is_bounded else instance
    epsilon = strategy["epsilon"] if strategy.get("gamma") is None else None
    ideal = theory.tightest(arms, epsilon, strategy["trust"])
    return Allocation(
        names=instance.names,
        means=instance.means,
        share=tuple(shares.mean(axis=0).tolist()),
        low=tuple(np.quantile(shares, 0.1, axis=0).tolist()),
        high=tuple(np.quantile(shares, 0.9, axis=0).tolist()),
        ideal=tuple(ideal.allocation.tolist()),
    )


@styled
def draw_allocation(data: Allocation, title: str = "") -> "Figure":
    """A row for each arm: its share of the samples (10 % to 90 % of the runs), and the
    ideal one.
    """
    from matplotlib.ticker import MaxNLocator

    shown = choose_arms(data.share, named=[int(np.argmax(data.means))])
    names = shorten_names([data.names[arm] for arm in shown])
    labels = [label(name, f"({data.means[arm]:g})") for name, arm in zip(names, shown, strict=True)]
    rows, height = label_rows(labels)
    figure = make_figure(1.25 + height)
    axes = figure.add_subplot()
    share, low, high, ideal = (
        np.array(part)[shown] for part in (data.share, data.low, data.high, data.ideal)
    )
    axes.hlines(rows, 0, np.maximum(high, ideal), color=PALE, lw=0.8, zorder=0)
    axes.hlines(rows, low, high, color=BLUE, lw=3.5, alpha=0.4)
    axes.plot(share, rows, ls="", marker="o", color=BLUE, ms=6)
    axes.plot(ideal, rows, ls="", marker="D", mfc="none", mec=BLACK, ms=8)
    axes.set_yticks(rows, labels)
    axes.set_ylim(height, 0)
    axes.set_xlim(0, 1.12 * max(*high, *ideal))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
    figure.supxlabel(KEY, fontsize=TYPE)
    open_frame(axes, "left")
    axes.tick_params(axis="y", length=0)
    note(axes, describe_left_out(len(shown), len(data.names)))
    write_title(figure, title)
    return figure
