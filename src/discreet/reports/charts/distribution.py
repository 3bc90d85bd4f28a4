"""The distribution of samples: the share of runs that are done, against samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.reports.charts.axes import LOGARITHMIC, open_frame, people_axis
from discreet.reports.charts.style import (
    arm_look,
    key,
    new_figure,
    styled,
    write_foot,
    write_title,
)
from discreet.results import Results
from discreet.words import NO_GUARANTEE, NO_PROOF, NO_PROOF_WORDS

MARK = f"({NO_PROOF})"
"""What a line in the key ends with that is not proved; a sentence below says it."""

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NONE_DONE = "no run is done"
"""In place of a line."""


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
    """What was said, and where a part is your own that nothing is proved."""
    own = (results.correctness or "").startswith(NO_GUARANTEE) and MARK not in name
    return f"{name} {MARK}" if own else name


@styled
def draw_distribution(data: Distribution, title: str = "") -> "Figure":
    """The share of runs that are done, against samples. A line below 100 % has
    unstopped runs.
    """
    figure = new_figure(2.6)
    axes = figure.add_subplot()
    axes.set(xscale="log", ylim=(0, 1.02))
    for line, samples in enumerate(data.samples):
        if len(samples):
            _draw_line(axes, data, line)
        else:
            axes.plot([], [], lw=0, label=f"{data.labels[line]}: {NONE_DONE}")
    people_axis(axes)
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
    axes.set(xlabel=f"people (samples){LOGARITHMIC}", ylabel="trials that have ended")
    open_frame(axes)
    write_title(figure, title)
    if any(MARK in label for label in data.labels):
        write_foot(figure, NO_PROOF_WORDS)
    key(figure, axes)
    return figure


def _draw_line(axes: "Axes", data: Distribution, line: int) -> None:
    """One simulation, and its name for the key."""
    samples = data.samples[line]
    share = np.arange(1, len(samples) + 1) / data.runs[line]
    look = arm_look(line)
    steps = (np.r_[samples[0], samples], np.r_[0.0, share])
    style = {"color": look.color, "ls": look.pattern, "lw": 1.7}
    axes.step(*steps, where="post", **style, label=data.labels[line])
