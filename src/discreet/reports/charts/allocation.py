"""How the samples of a simulation are spread over the arms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.reports.charts.style import (
    BLACK,
    BLUE,
    PALE,
    new_figure,
    open_frame,
    styled,
    write_title,
)
from discreet.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    arms = instance.as_bernoulli() if instance.bounded else instance
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
    arms = len(data.names)
    figure = new_figure(5.0, 1.5 + 0.36 * arms)
    axes = figure.add_subplot()
    rows = np.arange(arms)
    reach = [max(pair) for pair in zip(data.high, data.ideal, strict=True)]
    axes.hlines(rows, 0, reach, color=PALE, lw=0.8, zorder=0)
    axes.hlines(rows, data.low, data.high, color=BLUE, lw=3.5, alpha=0.4)
    axes.plot(data.share, rows, ls="", marker="o", color=BLUE, ms=6)
    axes.plot(data.ideal, rows, ls="", marker="D", mfc="none", mec=BLACK, ms=8)
    _label_marks(axes, data)
    shown = [f"{name} ({mean:g})" for name, mean in zip(data.names, data.means, strict=True)]
    axes.set_yticks(rows, shown)
    axes.set_ylim(arms - 0.5, -0.8)
    axes.set_xlim(0, 1.12 * max(*data.high, *data.ideal))
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
    axes.set_xlabel("share of the samples")
    open_frame(axes, "left")
    axes.tick_params(axis="y", length=0)
    write_title(axes, title)
    return figure


def _label_marks(axes: "Axes", data: Allocation) -> None:
    """Say at the best arm which mark is which, on the outer side of each."""
    top = int(np.argmax(data.means))
    marks = ((data.share[top], "mean of the runs", BLUE), (data.ideal[top], "ideal", BLACK))
    rightmost = max(marks)
    for mark in marks:
        at, words, color = mark
        end = mark == rightmost
        axes.annotate(
            words,
            (at, top),
            xytext=(9 if end else -9, 9),
            textcoords="offset points",
            ha="left" if end else "right",
            color=color,
            fontsize=8.5,
        )
