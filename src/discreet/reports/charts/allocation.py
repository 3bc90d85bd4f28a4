"""How the samples of a simulation are spread over the arms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.reports.arms import arms_shown, left_out_words, short_names
from discreet.reports.charts.axes import open_frame
from discreet.reports.charts.style import (
    BLACK,
    BLUE,
    PALE,
    TYPE,
    label,
    label_rows,
    new_figure,
    note,
    styled,
    write_title,
)
from discreet.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    from matplotlib.ticker import MaxNLocator

    shown = arms_shown(data.share, named=[int(np.argmax(data.means))])
    names = short_names([data.names[arm] for arm in shown])
    labels = [label(name, f"({data.means[arm]:g})") for name, arm in zip(names, shown, strict=True)]
    rows, height = label_rows(labels)
    figure = new_figure(1.25 + height)
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
    note(axes, left_out_words(len(shown), len(data.names)))
    write_title(figure, title)
    return figure
