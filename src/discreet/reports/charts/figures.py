"""Pictures: first a small frozen object with the numbers, then a function that draws them on a matplotlib Figure.

Lines differ in pattern, marker and lightness as well as in colour (Okabe and Ito's, told apart by colour-blind people)
and carry their names where they end, so that a print in black and white says the same. No pyplot, no global state.
"""

import functools
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from discreet import theory
from discreet.arrays import Floats, Ints
from discreet.errors import InvalidInputError, MissingExtraError
from discreet.instance import Instance
from discreet.results import Results
from discreet.simulation.paths import RunPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")
BLACK, GREY, PALE = "#000000", "#6b6b6b", "#e4e4e4"
DASH, DOT, DASH_DOT, FINE = (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)), (0, (1, 3))
STYLES: dict[str, dict[str, Any]] = {
    "bet-se": {"color": BLACK, "ls": "-", "marker": "o", "lw": 2.2},
    "adap-tt": {"color": "#d55e00", "ls": DOT, "marker": "s"},
    "adap-tt-star": {"color": "#0072b2", "ls": DASH, "marker": "D"},
    "dp-se": {"color": "#007a5a", "ls": DASH_DOT, "marker": "^"},
    "dp-se-authors": {"color": "#8a5a00", "ls": DASH_DOT, "marker": "v"},
    "ttucb": {"color": GREY, "ls": FINE, "marker": ""},
    "ttucb-batched": {"color": GREY, "ls": DASH, "marker": "x"},
    "ctb-tt": {"color": "#aa4480", "ls": DASH, "marker": "v"},
    "gauss-tt": {"color": "#8a5a00", "ls": DOT, "marker": "P"},
}
ORDER = ("#000000", "#0072b2", "#d55e00", "#007a5a", "#aa4480", "#8a5a00", GREY)
PATTERNS: tuple[Any, ...] = ("-", DASH, DOT, DASH_DOT, FINE)
MANY_LOOKS = 50
"""Looks in the way of a run from which their bonuses are drawn as lines, not one by one."""
MARKS = ("o", "D", "s", "^", "v", "P", "X")
PAPER_NAMES = {
    "adap-tt": "AdaP-TT",
    "adap-tt-star": "AdaP-TT*",
    "dp-se": "DP-SE",
    "dp-se-authors": "DP-SE (authors')",
    "ttucb": "TTUCB",
    "ctb-tt": "CTB-TT",
}
LONGEST_LABEL = 24
RC: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "discreet",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
}


def require_matplotlib() -> None:
    """Refuse before any work is done if no picture could be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError('pictures need matplotlib: pip install "discreet[plot]"') from None


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Draw with our settings, and leave matplotlib's as they were."""

    @functools.wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        require_matplotlib()
        import matplotlib as mpl

        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return inner


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@styled
def render(figure: "Figure", kind: str = "svg", dpi: int = 160) -> bytes:
    """The figure as a file of that kind: svg (the same bytes every time), png or pdf. Its layout is settled once."""
    buffer = io.BytesIO()
    meta = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(buffer, format=kind, dpi=dpi, metadata=meta)
    figure.set_layout_engine("none")
    return buffer.getvalue()


def short(number: float) -> str:
    """Three figures: 1234567 is 1.23M."""
    if not math.isfinite(number):
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def _count(number: float) -> str:
    """A number of people: whole below a million, else three figures."""
    return f"{math.ceil(number):,}" if number < 1e6 else short(number)


def shown_name(strategy: str) -> str:
    """The strategy's name in the paper, or ours."""
    return PAPER_NAMES.get(strategy, strategy)


# --- samples against ε ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """One strategy's samples at each ε; NaN where no run stopped. `unstopped` is a share of the runs."""

    strategy: str
    label: str
    epsilon: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unstopped: tuple[float, ...]


@dataclass(frozen=True)
class EpsilonData:
    """Samples against ε on one instance; `bound` is what no strategy can beat, `switch` where the regimes meet."""

    title: str
    statistic: str
    curves: tuple[Curve, ...]
    bound: tuple[tuple[float, float], ...]
    switch: float | None


def bound_curve(
    instance: Instance, epsilons: Sequence[float], delta: float, trust: str = "global", points: int = 40
) -> tuple[tuple[float, float], ...]:
    """(ε, lower bound on the expected samples) from the smallest ε to the largest, evenly spread in log ε."""
    arms, found = instance.as_bernoulli(), []
    for epsilon in np.geomspace(min(epsilons), max(epsilons), points if len(set(epsilons)) > 1 else 1):
        time = theory.t_epsilon(arms, float(epsilon)).value
        if trust == "local":
            time = max(time, theory.t_local(arms, float(epsilon)).value)
        found.append((float(epsilon), theory.lower_bound(time, delta)))
    return tuple(found)


def samples_by_epsilon(
    rows: Iterable[Mapping[str, Any]],
    instance: Instance | None = None,
    trust: str = "global",
    statistic: str = "mean",
    title: str = "",
    bound: tuple[tuple[float, float], ...] | None = None,
) -> EpsilonData:
    """From rows of a study of one instance (strategy, epsilon, runs, unstopped, mean, std, median, q10, q90).

    A row without an epsilon (no privacy) becomes a level line. `statistic` is `mean`, with a band of one standard
    deviation, or `median`, with one from the 10 % to the 90 % quantile. With an instance its lower bound and the switch
    of regimes are added; a `bound` computed before is taken as it is.
    """
    if statistic not in ("mean", "median"):
        raise InvalidInputError(f"statistic must be mean or median; got {statistic!r}")
    table = list(rows)
    levels = sorted({float(row["epsilon"]) for row in table if row["epsilon"] is not None})
    if not levels:
        raise InvalidInputError("there is nothing to draw: no row has an epsilon")
    curves = []
    for strategy in dict.fromkeys(str(row["strategy"]) for row in table):
        mine = [row for row in table if row["strategy"] == strategy]
        if any(row["epsilon"] is None for row in mine):
            mine = [{**mine[0], "epsilon": level} for level in levels]
        mine.sort(key=lambda row: float(row["epsilon"]))
        label = shown_name(strategy) + (" (no privacy)" if strategy.startswith("ttucb") else "")
        columns = [_spread(row, statistic) for row in mine]
        curves.append(Curve(strategy, label, *(tuple(column) for column in zip(*columns, strict=True))))
    switch = None
    if instance is not None:
        arms = instance.as_bernoulli()
        switch = theory.switch_epsilon_local(arms) if trust == "local" else theory.switch_epsilon_global(arms)
        if bound is None:
            bound = bound_curve(instance, levels, float(table[0]["delta"]), trust)
    return EpsilonData(title, statistic, tuple(curves), bound or (), switch)


def _spread(row: Mapping[str, Any], statistic: str) -> tuple[float, float, float, float, float]:
    def number(key: str) -> float:
        return math.nan if row[key] is None else float(row[key])

    share = float(row["unstopped"]) / float(row["runs"])
    if statistic == "median":
        return float(row["epsilon"]), number("median"), number("q10"), number("q90"), share
    mean, std = number("mean"), number("std")
    std = 0.0 if math.isnan(std) else std
    return float(row["epsilon"]), mean, mean - std, mean + std, share


@styled
def draw_samples_by_epsilon(
    data: EpsilonData, scale: str = "log-log", limits: tuple[float, float] | None = None, note: str = ""
) -> "Figure":
    """Samples against ε; `scale` is log-log or log-linear. Hollow marks: some runs had not stopped.

    `limits` of the samples' axis make pictures comparable.
    """
    if scale not in ("log-log", "log-linear"):
        raise InvalidInputError(f"scale must be log-log or log-linear; got {scale!r}")
    figure = new_figure(5.4, 4.0)
    axes = figure.add_subplot()
    log = scale == "log-log"
    low, high = limits or sample_limits([data], log)
    levels = sorted({x for curve in data.curves for x in curve.epsilon})
    axes.set(xscale="log", yscale="log" if log else "linear", ylim=(low, high))
    right = levels[-1] * (levels[-1] / levels[0]) ** 0.02 if len(levels) > 1 else levels[0] * 1.1
    axes.set_xlim(levels[0] / 1.3, right * 1.2)
    if data.switch is not None and levels[0] < data.switch < levels[-1]:
        axes.axvspan(data.switch / 1.06, data.switch * 1.06, color="#c4c4c4", lw=0, zorder=0)
        axes.annotate(
            f"switch of regimes, ε = {data.switch:.2g}",
            (data.switch, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=GREY,
            fontsize=8,
        )
    ends = []
    if data.bound:
        x, y = (np.array(part) for part in zip(*data.bound, strict=True))
        axes.fill_between(x, y, low, color=PALE, lw=0, zorder=0.5)
        axes.plot(x, y, color=BLACK, lw=0.9, zorder=2)
        ends.append(("lower bound", float(y[-1]), BLACK, False))
    for curve in data.curves:
        ends.append((curve.label, _draw_curve(axes, curve, low), _style(curve.strategy)["color"], True))
    _label_ends(axes, ends, log)
    _samples_axis(axes, data.statistic, log)
    _epsilon_axis(axes)
    _title(axes, data.title, note)
    return figure


def sample_limits(pictures: Iterable[EpsilonData], log: bool = True) -> tuple[float, float]:
    """Limits of the samples' axis that hold every line; a linear one is for the right ends, lines leave at the top."""
    pictures = list(pictures)
    values = np.array([y for data in pictures for curve in data.curves for y in curve.middle])
    values = values[np.isfinite(values) & (values > 0)]
    least = [y for data in pictures for _, y in data.bound if y > 0]
    if not len(values):
        values = np.array(least or [1.0])
    if log:
        return min([*least, float(values.min())]) / 1.6, float(values.max()) * 2.0
    ends = [[y for y in curve.middle if math.isfinite(y)][-1:] for data in pictures for curve in data.curves]
    return 0.0, 2.5 * max([y for end in ends for y in end] or [float(np.median(values))])


def _style(strategy: str) -> dict[str, Any]:
    return {"lw": 1.4, "ms": 4.5, **STYLES.get(strategy, {"color": GREY, "ls": DASH_DOT, "marker": "*"})}


def _draw_curve(axes: "Axes", curve: Curve, floor: float) -> float:
    """Draw the band, the line and its marks; where the line ends."""
    style = _style(curve.strategy)
    x, y = np.array(curve.epsilon), np.array(curve.middle)
    low, high = np.array(curve.low), np.array(curve.high)
    sensible = low > 0  # a band that reaches below zero is no band of samples
    axes.fill_between(x, np.maximum(low, floor), high, where=sensible, color=style["color"], alpha=0.11, lw=0, zorder=1)
    marker = style.pop("marker")
    axes.plot(x, y, **style, zorder=3)
    hollow = np.array(curve.unstopped) > 0
    for some, face in ((~hollow, style["color"]), (hollow, "white")):
        if marker and some.any():
            mark = {"marker": marker, "ms": style["ms"], "mfc": face, "mec": style["color"]}
            axes.plot(x[some], y[some], ls="", **mark, zorder=4)
    known = np.flatnonzero(np.isfinite(y))
    return float(y[known[-1]]) if len(known) else math.nan


def _label_ends(axes: "Axes", ends: Sequence[tuple[str, float, str, bool]], log: bool) -> None:
    """Names at the right end of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()

    def place(y: float) -> float:
        if log:
            return math.log(y / low) / math.log(high / low)
        return (y - low) / (high - low)

    known = sorted((min(max(place(end[1]), 0.0), 1.0), end) for end in ends if math.isfinite(end[1]))
    room = 0.058
    spots = [spot for spot, _ in known]
    for _ in range(200):
        for i in range(len(spots) - 1):
            overlap = room - (spots[i + 1] - spots[i])
            if overlap > 1e-9:
                spots[i], spots[i + 1] = spots[i] - overlap / 2, spots[i + 1] + overlap / 2
        shift = max(0.0, 0.01 - min(spots, default=0.01))
        spots = [spot + shift for spot in spots]
    for spot, (at, (label, _, color, _)) in zip(spots, known, strict=True):
        weight = "bold" if label == "bet-se" else "normal"
        axes.text(1.04, spot, label, transform=axes.transAxes, va="center", color=color, weight=weight)
        axes.plot([1.0, 1.033], [at, spot], transform=axes.transAxes, color=color, lw=0.5, clip_on=False)


def _samples_axis(axes: "Axes", statistic: str, log: bool) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.yaxis.set_major_formatter(lambda y, _: short(y))
    if log:
        axes.yaxis.set_major_locator(LogLocator(numticks=12))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(f"people (samples), {statistic}")
    axes.spines[["top", "right"]].set_visible(False)


def _epsilon_axis(axes: "Axes") -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("ε (stronger privacy to the left)")


def _title(axes: "Axes", title: str, note: str = "") -> None:
    words = title + (f"\n{note}" if note else "")
    if words:
        axes.set_title(words, loc="left", pad=16)


# --- people a trial takes ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PeopleRow:
    """What trials of one kind take: median, 10 % and 90 % quantile, and what none can beat on average; NaN: unknown."""

    label: str
    low: float
    middle: float
    high: float
    bound: float


@styled
def draw_people(rows: Sequence[PeopleRow], title: str = "", limit: float | None = None) -> "Figure":
    """A row for each kind of trial: eight of ten trials end within the bar. `limit` draws a maximum of people."""
    if not rows:
        raise InvalidInputError("there is nothing to draw: give at least one row")
    figure = new_figure(5.0, 1.35 + 0.46 * len(rows))
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for place, row in enumerate(rows):
        axes.hlines(place, row.low, row.high, color="#7fb2d6", lw=7)
        axes.plot([row.middle], [place], ls="", marker="o", color=BLACK, ms=6)
        axes.plot([row.bound], [place], ls="", marker="D", mfc="white", mec=BLACK, ms=6)
        _label_point(axes, row.middle, place, _count(row.middle), 9)
    _label_point(axes, rows[0].bound, 0, "lower bound", -11, "right")
    _label_point(axes, rows[0].middle, 0, "median", -11, "left")
    if limit is not None:
        axes.axvline(limit, color=BLACK, lw=0.9, ls=DASH, zorder=0)
        axes.annotate(
            f"maximum {limit:,.0f}",
            (limit, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
        )
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.45, -0.75)
    axes.margins(x=0.12)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda x, _: short(x))
    _few_ticks(axes)
    axes.set_xlabel("people; eight of ten trials end within the bar")
    axes.spines[["top", "right", "left"]].set_visible(False)
    _title(axes, title)
    return figure


def _label_point(axes: "Axes", x: float, y: float, words: str, above: float, side: str = "center") -> None:
    """Small words above a point, or below it."""
    if math.isfinite(x):
        axes.annotate(
            words,
            (x, y),
            xytext=(0, above),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
            bbox={"fc": "white", "ec": "none", "pad": 0.6},
        )


# --- distribution of samples ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Distribution:
    """For each of some simulations the samples of the runs that stopped, in order, and how many runs there were."""

    labels: tuple[str, ...]
    samples: tuple[Floats, ...]
    runs: tuple[int, ...]


def distribution(results: Mapping[str, Results]) -> Distribution:
    """The distribution of samples of some simulations, by their labels."""
    if not results:
        raise InvalidInputError("there is nothing to draw: give at least one simulation")
    stopped = (np.sort(found.samples[found.stopped]).astype(np.float64) for found in results.values())
    return Distribution(tuple(results), tuple(stopped), tuple(found.runs for found in results.values()))


@styled
def draw_distribution(data: Distribution, title: str = "") -> "Figure":
    """The share of runs that are done, against samples. A line that does not reach 100 % has unstopped runs."""
    figure = new_figure(5.0, 3.5)
    axes = figure.add_subplot()
    axes.set(xscale="log", ylim=(0, 1.02))
    quickest = min(
        range(len(data.runs)), key=lambda i: np.median(data.samples[i]) if len(data.samples[i]) else math.inf
    )
    for i, (label, samples, runs) in enumerate(zip(data.labels, data.samples, data.runs, strict=True)):
        color, pattern = ORDER[i % len(ORDER)], PATTERNS[i % len(PATTERNS)]
        if not len(samples):
            continue
        share = np.arange(1, len(samples) + 1) / runs
        axes.step(np.r_[samples[0], samples], np.r_[0.0, share], where="post", color=color, ls=pattern, lw=1.7)
        at = min(int(len(samples) * (i + 1) / (len(data.labels) + 1)), len(samples) - 1)
        axes.annotate(
            label,
            (samples[at], share[at]),
            xytext=(-7 if i == quickest else 7, 0),
            textcoords="offset points",
            ha="right" if i == quickest else "left",  # the quickest has nothing on its left
            va="center",
            color=color,
            bbox={"fc": "white", "ec": "none", "pad": 1.2, "alpha": 0.85},
            zorder=5,
        )
    axes.xaxis.set_major_formatter(lambda x, _: short(x))
    _few_ticks(axes)
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
    axes.set(xlabel="people (samples)", ylabel="runs that are done")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1)
    _title(axes, title)
    return figure


def _few_ticks(axes: "Axes") -> None:
    """Ticks at 1, 2, 5 where a log axis spans little, else at powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axes.get_xlim()
    near = high < 300 * low
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if near else (1.0,), numticks=20 if near else 7))
    axes.xaxis.set_minor_locator(NullLocator())


# --- allocation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Allocation:
    """Each arm's share of the samples, over the runs that stopped, beside that of an ideal strategy."""

    names: tuple[str, ...]
    means: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    ideal: tuple[float, ...]


def allocation(results: Results) -> Allocation:
    """Shares of a simulation (mean, 10 % and 90 % quantile), and the ones that attain the lower bound."""
    instance, strategy = Instance.from_dict(results.spec["instance"]), results.spec["strategy"]
    if not results.stopped.any():
        raise InvalidInputError("there is nothing to draw: no run stopped")
    pulls = results.pulls[results.stopped].astype(np.float64)
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    arms, epsilon = instance.as_bernoulli(), strategy["epsilon"]
    ideal = theory.t_kl(arms) if epsilon is None else theory.t_epsilon(arms, epsilon)
    if strategy["trust"] == "local" and (local := theory.t_local(arms, epsilon)).value > ideal.value:
        ideal = local
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
    """A row for each arm: its share of the samples (10 % to 90 % of the runs), and the ideal one."""
    arms = len(data.names)
    figure = new_figure(5.0, 1.5 + 0.36 * arms)
    axes = figure.add_subplot()
    rows = np.arange(arms)
    axes.hlines(rows, 0, [max(pair) for pair in zip(data.high, data.ideal, strict=True)], color=PALE, lw=0.8, zorder=0)
    axes.hlines(rows, data.low, data.high, color="#0072b2", lw=3.5, alpha=0.4)
    axes.plot(data.share, rows, ls="", marker="o", color="#0072b2", ms=6)
    axes.plot(data.ideal, rows, ls="", marker="D", mfc="none", mec=BLACK, ms=8)
    top = int(np.argmax(data.means))
    marks = ((data.share[top], "mean of the runs", "#0072b2"), (data.ideal[top], "ideal", BLACK))
    rightmost = max(marks)
    for at, words, color in marks:
        end = (at, words, color) == rightmost
        axes.annotate(
            words,
            (at, top),
            xytext=(9 if end else -9, 9),
            textcoords="offset points",
            ha="left" if end else "right",
            color=color,
            fontsize=8.5,
        )
    axes.set_yticks(rows, [f"{name} ({mean:g})" for name, mean in zip(data.names, data.means, strict=True)])
    axes.set_ylim(arms - 0.5, -0.8)
    axes.set_xlim(0, 1.12 * max(*data.high, *data.ideal))
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
    axes.set_xlabel("share of the samples")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _title(axes, title)
    return figure


# --- the way of one run ---------------------------------------------------------------------------


@styled
def draw_path(path: RunPath, title: str = "") -> "Figure":
    """Three panels over the samples: private means with their bonus, evidence against the threshold, releases."""
    arms = len(path.names)
    figure = new_figure(5.4, 5.6 + 0.1 * arms)
    ratios = [3.0, 1.7, 0.35 + 0.16 * arms]
    means, proof, rug = figure.subplots(3, 1, sharex=True, height_ratios=ratios)
    means.set_xscale("log")
    dense = path.thinned or len(path.samples) > MANY_LOOKS
    ends = []
    for arm, name in enumerate(path.names):
        color, pattern = ORDER[arm % len(ORDER)], PATTERNS[(arm // 2 + arm) % len(PATTERNS)]
        marker = MARKS[arm % len(MARKS)]
        y, extra = path.means[:, arm], path.bonus[:, arm]
        chosen = arm == path.recommendation
        lines = {"color": color, "ls": pattern, "lw": 2.2 if chosen else 1.3}
        means.step(path.samples, y, where="post", **lines)
        fresh = path.released[:, arm]
        if dense:
            means.plot(path.samples, y + extra, color=color, lw=0.5)
        else:
            means.vlines(path.samples[fresh], y[fresh], (y + extra)[fresh], color=color, lw=0.6)
            means.plot(path.samples[fresh], (y + extra)[fresh], ls="", marker="_", ms=5, mew=0.6, color=color)
        if not path.thinned:
            means.plot(path.samples[fresh], y[fresh], ls="", marker=marker, ms=2 if dense else 4, color=color)
            rug.plot(path.samples[fresh], np.full(fresh.sum(), arm), ls="", marker="|", ms=8, color=color)
        else:
            rug.hlines(arm, path.samples[0], path.samples[-1], color=color, lw=4, alpha=0.5)
        proof.step(path.samples, path.evidence[:, arm], where="post", **lines, marker="" if dense else marker, ms=3)
        ends.append((name + (" ← named" if chosen else ""), float(y[-1]), color, True))
    _mean_limits(means, path)
    _label_ends(means, ends, False)
    means.set_ylabel("private mean")
    means.annotate(f"thin lines: with {path.bonus_words}", (0, 1.01), xycoords="axes fraction", fontsize=8, color=GREY)
    proof.axhline(1, color=BLACK, lw=0.9)
    proof.annotate("threshold", (1.035, 1), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)
    top = np.nanmax(np.where(np.isfinite(path.evidence), path.evidence, 0.0))
    proof.set_ylim(0, min(max(1.25, 1.1 * float(top)), 3.0))
    proof.set_ylabel("evidence")
    proof.annotate(path.evidence_words, (0, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)
    rug.set_yticks(range(arms), path.names)
    rug.set_ylim(arms - 0.4, -0.6)
    rug.tick_params(axis="y", length=0)
    words = "every sample is a release" if path.thinned else f"looks: {len(path.samples)}"
    rug.annotate(words, (0, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)
    for axes in (means, proof, rug):
        axes.spines[["top", "right"]].set_visible(False)
    rug.set_xlabel("people (samples)")
    rug.xaxis.set_major_formatter(lambda x, _: short(x))
    _few_ticks(rug)
    end = f"{_count(path.samples[-1])} people" if path.stopped else "hit the cap"
    _title(means, title or f"One run of {path.strategy} ({path.threshold} threshold): {end}")
    return figure


@styled
def draw_means(
    people: Ints,
    means: Floats,
    names: Sequence[str],
    chosen: int | None,
    unit: str,
    span: tuple[float, float],
) -> "Figure":
    """Private means of a live trial after each release, a labelled step line for each arm.

    `span` is the range of outcomes; the first noisy means may lie far outside it, and leave the picture.
    """
    from matplotlib.ticker import FuncFormatter

    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    axes.set_xscale("log")
    ends = []
    for arm, name in enumerate(names):
        color, pattern = ORDER[arm % len(ORDER)], PATTERNS[(arm // 2 + arm) % len(PATTERNS)]
        there = ~np.isnan(means[:, arm])
        if there.any():
            x, y = people[there], means[there, arm]
            axes.step(x, y, where="post", color=color, ls=pattern, lw=2.2 if arm == chosen else 1.3)
            fresh = np.append(True, np.diff(y) != 0)
            if fresh.sum() <= 40:
                axes.plot(x[fresh], y[fresh], ls="", marker=MARKS[arm % len(MARKS)], ms=4, color=color)
            words = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
            ends.append((words + (" ← best" if arm == chosen else ""), float(y[-1]), color, True))
    room = 0.3 * (span[1] - span[0])
    low, high = max(float(np.nanmin(means)), span[0] - room), min(float(np.nanmax(means)), span[1] + room)
    axes.set_ylim(low - room / 6, high + room / 6)
    _label_ends(axes, ends, False)
    axes.set_xlabel("people assigned")
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    _few_ticks(axes)
    return figure


def _mean_limits(axes: "Axes", path: RunPath) -> None:
    """Show [0, 1]; the first noisy means and bonuses may leave the picture."""
    later = path.means[len(path.samples) // 3 :]
    low, high = float(np.nanmin(later)), float(np.nanmax(later))
    axes.set_ylim(max(min(0.0, low) - 0.05, -0.6), min(max(1.0, high) + 0.05, 1.6))
