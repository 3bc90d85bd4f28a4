"""Samples against ε on one instance, with the lower bound and the switch of regimes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instances import Instance
from discreet.reports.charts.style import (
    BLACK,
    GREY,
    PALE,
    End,
    choose_strategy_styles,
    format_powers_of_ten,
    format_short_numbers,
    label,
    label_ends,
    label_line,
    make_figure,
    open_frame,
    styled,
    write_foot,
    write_title,
)
from discreet.scale import YES_NO
from discreet.validation import quote
from discreet.wording import (
    NO_GUARANTEE,
    NO_PROOF,
    NO_PROOF_WORDS,
    format_strategy_name,
    join_first,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALES = ("log-log", "log-linear")
APART = ("threshold", "options", "delta")
"""Columns of a study's table that tell lines of one strategy apart; other samplings and
trust are among the options.
"""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class EpsilonCurve:
    """One strategy's samples at each ε; NaN where no run stopped. `unstopped` is a
    share of the runs; `proved` is False where nothing is guaranteed.
    """

    strategy: str
    label: str
    epsilon: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unstopped: tuple[float, ...]
    proved: bool = True


@dataclass(frozen=True)
class EpsilonData:
    """Samples against ε; `bound` is what no strategy can beat, `switch` where the
    regimes meet.
    """

    title: str
    statistic: str
    curves: tuple[EpsilonCurve, ...]
    bound: tuple[tuple[float, float], ...]
    switch: float | None


class EpsilonPoint(NamedTuple):
    """Samples at one ε, in the order of `EpsilonCurve`."""

    epsilon: float
    middle: float
    low: float
    high: float
    unstopped: float


# --- the numbers ----------------------------------------------------------------------


def make_bound_curve(
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


def make_epsilon_data(
    rows: Iterable[Row],
    instance: Instance | None = None,
    trust: str = "global",
    statistic: str = "mean",
    title: str = "",
    bound: tuple[tuple[float, float], ...] | None = None,
) -> EpsilonData:
    """From a study's rows of one instance (strategy, epsilon, runs, unstopped, mean,
    std, median, …).

    A row without an epsilon (no privacy) becomes a level line. Rows of one strategy
    that differ in threshold, options or δ become lines of their own.

    `statistic` is `mean`, with a band of one standard deviation, or `median`, with one
    from the 10 % to the 90 % quantile (q10, q90). With an instance its lower bound and
    the switch of regimes are added; a `bound` computed before is taken as it is.
    """
    if statistic not in ("mean", "median"):
        raise InvalidInputError(f"statistic must be mean or median; got {quote(statistic)}")
    table = list(rows)
    levels = sorted({float(row["epsilon"]) for row in table if row["epsilon"] is not None})
    if not levels:
        raise InvalidInputError("there is nothing to draw: no row has an epsilon")
    _check_instance(table)
    curves = _curves(table, levels, statistic)
    switch = None
    if instance is not None:
        if instance.outcomes == YES_NO:
            switch = theory.switch_epsilon(instance.as_bernoulli(), trust)
        if bound is None:
            deltas = [float(row["delta"]) for row in table]
            bound = make_bound_curve(instance, levels, max(deltas), trust)
    return EpsilonData(title, statistic, curves, bound or (), switch)


def _check_instance(table: Sequence[Row]) -> None:
    names = list(dict.fromkeys(str(row["instance"]) for row in table if "instance" in row))
    if len(names) > 1:
        raise InvalidInputError(
            f"a picture shows one instance, and these rows are of {join_first(names)}: give the "
            "rows of one, and draw a picture for each"
        )


def _curves(
    table: Sequence[Row], levels: Sequence[float], statistic: str
) -> tuple[EpsilonCurve, ...]:
    """A line for all rows that differ in ε alone."""
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        parts = (row["epsilon"] is None, *(row.get(name) for name in APART))
        lines.setdefault((str(row["strategy"]), *parts), []).append(row)
    found = []
    for (name, *_), mine in lines.items():
        if len({row["epsilon"] for row in mine}) < len(mine):
            raise InvalidInputError(
                f"two rows of {name} have the same ε, threshold, options and δ: give the rows of "
                "one study"
            )
        others = [_told(line[0]) for key, line in lines.items() if key[0] == name]
        found.append(_curve(mine, others, levels, statistic))
    return tuple(found)


def _told(row: Row) -> list[str]:
    """What may tell a row from others of its strategy."""
    delta = [f"δ = {row['delta']:g}"] if "delta" in row else []
    options = str(row.get("options") or "").split(", ")
    return [str(row.get("threshold") or ""), *delta, *options]


def _curve(
    rows: Sequence[Row], others: Sequence[list[str]], levels: Sequence[float], statistic: str
) -> EpsilonCurve:
    """One line, ordered by ε; its label says what not all `others` of the strategy
    have.
    """
    first = rows[0]
    strategy = str(first["strategy"])
    proved = not str(first.get("correctness")).startswith(NO_GUARANTEE)
    free = first.get("trust") == "none" or strategy.startswith("ttucb")
    apart = [words for words in _told(first) if not all(words in other for other in others)]
    words = [
        *(["no privacy"] if free else []),
        *(each for each in apart if each and each != "trust = none"),
        *([] if proved else [NO_PROOF]),
    ]
    if first["epsilon"] is None:
        rows = [{**first, "epsilon": level} for level in levels]
    spreads = sorted((_spread(row, statistic) for row in rows), key=lambda each: each.epsilon)
    epsilon, middle, low, high, unstopped = zip(*spreads, strict=True)
    label = format_strategy_name(strategy) + (f" ({', '.join(words)})" if words else "")
    return EpsilonCurve(strategy, label, epsilon, middle, low, high, unstopped, proved)


def _spread(row: Row, statistic: str) -> EpsilonPoint:
    def number(key: str) -> float:
        return math.nan if row[key] is None else float(row[key])

    epsilon = float(row["epsilon"])
    share = float(row["unstopped"]) / float(row["runs"])
    if statistic == "median":
        return EpsilonPoint(epsilon, number("median"), number("q10"), number("q90"), share)
    mean = number("mean")
    std = 0.0 if math.isnan(number("std")) else number("std")
    return EpsilonPoint(epsilon, mean, mean - std, mean + std, share)


def find_sample_limits(pictures: Iterable[EpsilonData], log: bool = True) -> tuple[float, float]:
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
        raise InvalidInputError(f"scale must be log-log or log-linear; got {quote(scale)}")
    figure = make_figure(3.2)
    axes = figure.add_subplot()
    log = scale == "log-log"
    floor, top = limits or find_sample_limits([data], log)
    axes.set(xscale="log", yscale="log" if log else "linear", ylim=(floor, top))
    _epsilon_limits(axes, data)
    ends = _draw_bound(axes, data, floor)
    styles = choose_strategy_styles([curve.strategy for curve in data.curves])
    for curve, style in zip(data.curves, styles, strict=True):
        ends.append(_draw_curve(axes, curve, style, floor))
    _samples_axis(axes, data.statistic, log)
    _epsilon_axis(axes)
    write_title(figure, data.title, note)
    if not all(curve.proved for curve in data.curves):
        write_foot(figure, NO_PROOF_WORDS)
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


def _draw_curve(axes: "Axes", curve: EpsilonCurve, style: dict[str, Any], floor: float) -> End:
    """Draw the band, the line and its marks; where the line ends."""
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
    format_short_numbers(axes.yaxis)
    if log:
        format_powers_of_ten(axes.yaxis)
    axes.set_ylabel(f"participants (samples), {statistic}")
    open_frame(axes)


def _epsilon_axis(axes: "Axes") -> None:
    format_powers_of_ten(axes.xaxis)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("ε (stronger privacy to the left)")
