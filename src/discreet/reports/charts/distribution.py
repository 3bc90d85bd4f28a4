"""The distribution of samples: the share of runs that are done, against samples."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.reports.charts.style import (
    COLORS,
    PATTERNS,
    new_figure,
    open_frame,
    people_axis,
    styled,
    write_title,
)
from discreet.results import Results
from discreet.words import NO_GUARANTEE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    """What was said, and where a part is your own that we guarantee nothing."""
    own = (results.correctness or "").startswith(NO_GUARANTEE) and NO_GUARANTEE not in name
    return f"{name} ({NO_GUARANTEE})" if own else name


@styled
def draw_distribution(data: Distribution, title: str = "") -> "Figure":
    """The share of runs that are done, against samples. A line below 100 % has
    unstopped runs.
    """
    figure = new_figure(5.0, 3.5)
    axes = figure.add_subplot()
    axes.set(xscale="log", ylim=(0, 1.02))
    medians = [float(np.median(mine)) if len(mine) else math.inf for mine in data.samples]
    quickest = medians.index(min(medians))
    for line, samples in enumerate(data.samples):
        if len(samples):
            _draw_line(axes, data, line, left=line == quickest)
    people_axis(axes)
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
    axes.set(xlabel="people (samples)", ylabel="runs that are done")
    open_frame(axes)
    axes.margins(x=0.1)
    write_title(axes, title)
    return figure


def _draw_line(axes: "Axes", data: Distribution, line: int, left: bool) -> None:
    """One simulation with its name beside it, on the left of the quickest, where
    nothing else is.
    """
    samples = data.samples[line]
    share = np.arange(1, len(samples) + 1) / data.runs[line]
    color = COLORS[line % len(COLORS)]
    pattern = PATTERNS[line % len(PATTERNS)]
    steps = (np.r_[samples[0], samples], np.r_[0.0, share])
    axes.step(*steps, where="post", color=color, ls=pattern, lw=1.7)
    at = min(int(len(samples) * (line + 1) / (len(data.labels) + 1)), len(samples) - 1)
    axes.annotate(
        data.labels[line],
        (samples[at], share[at]),
        xytext=(-7 if left else 7, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        color=color,
        bbox={"fc": "white", "ec": "none", "pad": 1.2, "alpha": 0.85},
        zorder=5,
    )
