"""Samples against ε on one instance, with the lower bound and the switch of regimes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.reports.charts.style import (
    BLACK,
    GREY,
    PALE,
    End,
    label,
    label_ends,
    label_line,
    new_figure,
    open_frame,
    powers_of_ten,
    short_numbers,
    strategy_style,
    styled,
    write_title,
)
from discreet.scale import YES_NO
from discreet.validate import quoted
from discreet.words import NO_GUARANTEE, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALES = ("log-log", "log-linear")


@dataclass(frozen=True)
class Curve:
    """One strategy's samples at each ε; NaN where no run stopped. `unstopped` is a
    share of the runs.
    """

    strategy: str
    label: str
    epsilon: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unstopped: tuple[float, ...]


@dataclass(frozen=True)
class EpsilonData:
    """Samples against ε; `bound` is what no strategy can beat, `switch` where the
    regimes meet.
    """

    title: str
    statistic: str
    curves: tuple[Curve, ...]
    bound: tuple[tuple[float, float], ...]
    switch: float | None


class Spread(NamedTuple):
    """Samples at one ε, in the order of `Curve`."""

    epsilon: float
    middle: float
    low: float
    high: float
    unstopped: float


# --- the numbers ----------------------------------------------------------------------


def bound_curve(
    instance: Instance,
    epsilons: Sequence[float],
    delta: float,
    trust: str = "global",
    points: int = 40,
) -> tuple[tuple[float, float], ...]:
    """(ε, lower bound on the expected samples) from the smallest ε to the largest, even
    in log ε; of arms not Bernoulli the floor of all laws on [0, 1].
    """
    count = points if len(set(epsilons)) > 1 else 1
    found = []
    for epsilon in np.geomspace(min(epsilons), max(epsilons), count):
        least = theory.least_samples(instance, delta, float(epsilon), trust)
        found.append((float(epsilon), least))
    return tuple(found)


def samples_by_epsilon(
    rows: Iterable[Mapping[str, Any]],
    instance: Instance | None = None,
    trust: str = "global",
    statistic: str = "mean",
    title: str = "",
    bound: tuple[tuple[float, float], ...] | None = None,
) -> EpsilonData:
    """From a study's rows of one instance (strategy, epsilon, runs, unstopped, mean,
    std, median, …).

    A row without an epsilon (no privacy) becomes a level line. `statistic` is `mean`,
    with a band of one standard deviation, or `median`, with one from the 10 % to the 90
    % quantile (q10, q90). With an instance its lower bound and the switch of regimes
    are added; a `bound` computed before is taken as it is.
    """
    if statistic not in ("mean", "median"):
        raise InvalidInputError(f"statistic must be mean or median; got {quoted(statistic)}")
    table = list(rows)
    levels = sorted({float(row["epsilon"]) for row in table if row["epsilon"] is not None})
    if not levels:
        raise InvalidInputError("there is nothing to draw: no row has an epsilon")
    names = dict.fromkeys(str(row["strategy"]) for row in table)
    curves = tuple(_curve(table, name, levels, statistic) for name in names)
    switch = None
    if instance is not None:
        if instance.outcomes == YES_NO:
            switch = theory.switch_epsilon(instance.as_bernoulli(), trust)
        if bound is None:
            bound = bound_curve(instance, levels, float(table[0]["delta"]), trust)
    return EpsilonData(title, statistic, curves, bound or (), switch)


def _curve(
    table: Sequence[Mapping[str, Any]], strategy: str, levels: Sequence[float], statistic: str
) -> Curve:
    """The rows of one strategy, ordered by ε."""
    mine = [row for row in table if row["strategy"] == strategy]
    if any(row["epsilon"] is None for row in mine):
        mine = [{**mine[0], "epsilon": level} for level in levels]
    mine.sort(key=lambda row: float(row["epsilon"]))
    label = shown_name(strategy) + (" (no privacy)" if strategy.startswith("ttucb") else "")
    label += (
        f" ({NO_GUARANTEE})" if str(mine[0].get("correctness")).startswith(NO_GUARANTEE) else ""
    )
    columns = zip(*(_spread(row, statistic) for row in mine), strict=True)
    return Curve(strategy, label, *(tuple(column) for column in columns))


def _spread(row: Mapping[str, Any], statistic: str) -> Spread:
    def number(key: str) -> float:
        return math.nan if row[key] is None else float(row[key])

    epsilon = float(row["epsilon"])
    share = float(row["unstopped"]) / float(row["runs"])
    if statistic == "median":
        return Spread(epsilon, number("median"), number("q10"), number("q90"), share)
    mean = number("mean")
    std = 0.0 if math.isnan(number("std")) else number("std")
    return Spread(epsilon, mean, mean - std, mean + std, share)


def sample_limits(pictures: Iterable[EpsilonData], log: bool = True) -> tuple[float, float]:
    """Limits of the samples' axis that hold every line, for pictures that are to be
    compared.

    Linear ones are for the right ends: lines leave at the top.
    """
    pictures = list(pictures)
    curves = [curve for data in pictures for curve in data.curves]
    values = np.array([y for curve in curves for y in curve.middle])
    values = values[np.isfinite(values) & (values > 0)]
    least = [y for data in pictures for _, y in data.bound if y > 0]
    if not len(values):
        values = np.array(least or [1.0])
    if log:
        return min([*least, float(values.min())]) / 1.6, float(values.max()) * 2.0
    ends = [y for curve in curves for y in [y for y in curve.middle if math.isfinite(y)][-1:]]
    return 0.0, 2.5 * max(ends or [float(np.median(values))])


# --- the picture ----------------------------------------------------------------------


@styled
def draw_samples_by_epsilon(
    data: EpsilonData,
    scale: str = "log-log",
    limits: tuple[float, float] | None = None,
    note: str = "",
) -> "Figure":
    """Samples against ε; `scale` is log-log or log-linear. Hollow marks: some runs had
    not stopped.

    `limits` of the samples' axis make pictures comparable.
    """
    if scale not in SCALES:
        raise InvalidInputError(f"scale must be log-log or log-linear; got {quoted(scale)}")
    figure = new_figure(3.2)
    axes = figure.add_subplot()
    log = scale == "log-log"
    floor, top = limits or sample_limits([data], log)
    axes.set(xscale="log", yscale="log" if log else "linear", ylim=(floor, top))
    _epsilon_limits(axes, data)
    ends = _draw_bound(axes, data, floor)
    ends += [_draw_curve(axes, curve, floor) for curve in data.curves]
    _samples_axis(axes, data.statistic, log)
    _epsilon_axis(axes)
    write_title(figure, data.title, note)
    label_ends(axes, ends, log)
    return figure


def _epsilon_limits(axes: "Axes", data: EpsilonData) -> None:
    """From the smallest ε to the largest, and where the regimes meet between them."""
    levels = sorted({x for curve in data.curves for x in curve.epsilon})
    least = levels[0]
    most = levels[-1]
    right = most * (most / least) ** 0.02 if len(levels) > 1 else least * 1.1
    axes.set_xlim(least / 1.3, right * 1.2)
    if data.switch is not None and least < data.switch < most:
        axes.axvspan(data.switch / 1.06, data.switch * 1.06, color="#c4c4c4", lw=0, zorder=0)
        label_line(axes, data.switch, f"switch of regimes, ε = {data.switch:.2g}", GREY)


def _draw_bound(axes: "Axes", data: EpsilonData, floor: float) -> list[End]:
    """Shade what no strategy can reach; where that ends."""
    if not data.bound:
        return []
    x, y = (np.array(part) for part in zip(*data.bound, strict=True))
    axes.fill_between(x, y, floor, color=PALE, lw=0, zorder=0.5)
    axes.plot(x, y, color=BLACK, lw=0.9, zorder=2)
    return [End("lower bound", float(y[-1]), BLACK)]


def _draw_curve(axes: "Axes", curve: Curve, floor: float) -> End:
    """Draw the band, the line and its marks; where the line ends."""
    style = strategy_style(curve.strategy)
    color = style["color"]
    marker = style.pop("marker")
    x = np.array(curve.epsilon)
    y = np.array(curve.middle)
    low = np.array(curve.low)
    sensible = low > 0  # a band that reaches below zero is no band of samples
    band = {"color": color, "alpha": 0.11, "lw": 0}
    axes.fill_between(
        x, np.maximum(low, floor), np.array(curve.high), where=sensible, **band, zorder=1
    )
    axes.plot(x, y, **style, zorder=3)
    hollow = np.array(curve.unstopped) > 0
    for some, face in ((~hollow, color), (hollow, "white")):
        if marker and some.any():
            mark = {"marker": marker, "ms": style["ms"], "mfc": face, "mec": color}
            axes.plot(x[some], y[some], ls="", **mark, zorder=4)
    known = np.flatnonzero(np.isfinite(y))
    return End(label(curve.label), float(y[known[-1]]) if len(known) else math.nan, color)


def _samples_axis(axes: "Axes", statistic: str, log: bool) -> None:
    short_numbers(axes.yaxis)
    if log:
        powers_of_ten(axes.yaxis)
    axes.set_ylabel(f"people (samples), {statistic}")
    open_frame(axes)


def _epsilon_axis(axes: "Axes") -> None:
    powers_of_ten(axes.xaxis)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("ε (stronger privacy to the left)")
