"""The way of one run: what the outside world sees of it."""

from typing import TYPE_CHECKING

import numpy as np

from discreet.reports.charts.style import (
    BLACK,
    GREY,
    End,
    arm_look,
    label_ends,
    new_figure,
    open_frame,
    people_axis,
    styled,
    write_title,
)
from discreet.words import short_people

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.simulation.paths import RunPath

MANY_LOOKS = 50
"""Looks from which the bonuses are drawn as lines, not one by one."""


@styled
def draw_path(path: "RunPath", title: str = "") -> "Figure":
    """Three panels over the samples: private means with their bonus, evidence,
    releases.
    """
    arms = len(path.names)
    figure = new_figure(5.4, 5.6 + 0.1 * arms)
    ratios = [3.0, 1.7, 0.35 + 0.16 * arms]
    means, evidence, releases = figure.subplots(3, 1, sharex=True, height_ratios=ratios)
    means.set_xscale("log")
    dense = path.thinned or len(path.samples) > MANY_LOOKS
    _draw_means(means, path, dense)
    _draw_evidence(evidence, path, dense)
    _draw_releases(releases, path)
    for axes in (means, evidence, releases):
        open_frame(axes)
    people_axis(releases)
    end = f"{short_people(path.samples[-1])} people" if path.stopped else "hit the cap"
    write_title(means, title or f"One run of {path.strategy} ({path.threshold} threshold): {end}")
    return figure


def _draw_means(axes: "Axes", path: "RunPath", dense: bool) -> None:
    """The private mean of each arm, with its bonus in thin lines."""
    ends = []
    for arm, name in enumerate(path.names):
        look = arm_look(arm)
        mean = path.means[:, arm]
        chosen = arm == path.recommendation
        width = 2.2 if chosen else 1.3
        axes.step(path.samples, mean, where="post", color=look.color, ls=look.pattern, lw=width)
        _draw_bonus(axes, path, arm, dense)
        if not path.thinned:
            fresh = path.released[:, arm]
            x = path.samples[fresh]
            size = 2 if dense else 4
            axes.plot(x, mean[fresh], ls="", marker=look.marker, ms=size, color=look.color)
        if not np.isnan(mean[-1]):
            ends.append(End(name + (" ← named" if chosen else ""), float(mean[-1]), look.color))
    _mean_limits(axes, path)
    if ends:
        label_ends(axes, ends, False)
    else:
        words = "no means: only differences between arms were released"
        axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", ha="center", color=GREY)
    axes.set_ylabel("private mean")
    words = f"thin lines: the mean plus {path.bonus_words}"
    axes.annotate(words, (0, 1.01), xycoords="axes fraction", fontsize=8, color=GREY)


def _draw_bonus(axes: "Axes", path: "RunPath", arm: int, dense: bool) -> None:
    """A thin line of means with bonus, or a stroke from each released mean."""
    color = arm_look(arm).color
    mean = path.means[:, arm]
    upper = mean + path.bonus[:, arm]
    if dense:
        axes.plot(path.samples, upper, color=color, lw=0.5)
        return
    fresh = path.released[:, arm]
    x = path.samples[fresh]
    axes.vlines(x, mean[fresh], upper[fresh], color=color, lw=0.6)
    axes.plot(x, upper[fresh], ls="", marker="_", ms=5, mew=0.6, color=color)


def _mean_limits(axes: "Axes", path: "RunPath") -> None:
    """Show [0, 1]; the first noisy means and bonuses may leave the picture."""
    later = path.means[len(path.samples) // 3 :]
    low = float(np.min(later, initial=1.0, where=~np.isnan(later)))
    high = float(np.max(later, initial=0.0, where=~np.isnan(later)))
    axes.set_ylim(max(min(0.0, low) - 0.05, -0.6), min(max(1.0, high) + 0.05, 1.6))


def _draw_evidence(axes: "Axes", path: "RunPath", dense: bool) -> None:
    """The evidence against each arm, and the threshold it has to reach."""
    for arm in range(len(path.names)):
        look = arm_look(arm)
        line = {"color": look.color, "ls": look.pattern, "marker": "" if dense else look.marker}
        width = 2.2 if arm == path.recommendation else 1.3
        axes.step(path.samples, path.evidence[:, arm], where="post", **line, lw=width, ms=3)
    axes.axhline(1, color=BLACK, lw=0.9)
    beside = ("axes fraction", "data")
    axes.annotate("threshold", (1.035, 1), xycoords=beside, va="center", annotation_clip=False)
    top = np.nanmax(np.where(np.isfinite(path.evidence), path.evidence, 0.0))
    axes.set_ylim(0, min(max(1.25, 1.1 * float(top)), 3.0))
    axes.set_ylabel("evidence")
    axes.annotate(path.evidence_words, (0, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)


def _draw_releases(axes: "Axes", path: "RunPath") -> None:
    """A stroke for each release, or a bar where every sample is one."""
    arms = len(path.names)
    for arm in range(arms):
        color = arm_look(arm).color
        if path.thinned:
            axes.hlines(arm, path.samples[0], path.samples[-1], color=color, lw=4, alpha=0.5)
        else:
            fresh = path.released[:, arm]
            place = np.full(fresh.sum(), arm)
            axes.plot(path.samples[fresh], place, ls="", marker="|", ms=8, color=color)
    axes.set_yticks(range(arms), path.names)
    axes.set_ylim(arms - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    words = "every sample is a release" if path.thinned else f"looks: {len(path.samples)}"
    axes.annotate(words, (0, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)
    axes.set_xlabel("people (samples)")
