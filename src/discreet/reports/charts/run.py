"""The way of one run: what the outside world sees of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.reports.charts.style import (
    BLACK,
    GREY,
    LOGARITHMIC,
    TYPE,
    End,
    choose_arms,
    choose_look,
    describe_left_out,
    draw_participants_axis,
    label,
    label_ends,
    make_figure,
    note,
    open_frame,
    shorten_names,
    styled,
    turned,
    write_title,
)
from discreet.wording import format_participants_short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.simulation.paths import RunPath

MANY_LOOKS = 50
"""Looks from which intervals are drawn as bands, not one by one."""
ROW, LINE = 0.17, 0.16
"""Inches of an arm's row of releases, and of a line of a label."""
FEW_STROKES = 6
"""Arms whose intervals can be told apart at every look."""
PALENESS = 0.6
"""Of intervals, which are many."""
DODGE = 0.02
"""The largest distance of two arms' intervals, as a share of the axis."""
SHORT = 14
"""Characters of a name beside such a row."""


@styled
def draw_path(path: "RunPath", title: str = "") -> "Figure":
    """Three panels over the samples: private means with their intervals, evidence,
    releases.
    """
    shown = choose_path_arms(path)
    names = shorten_names([path.names[arm] for arm in shown])
    lines = sum(label(name).count("\n") + 1 for name in names) + 1
    heights = max(2.0, LINE * lines), 1.3, ROW * len(shown) + 0.1
    figure = make_figure(sum(heights) + 1.6)
    means, evidence, releases = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    means.set_xscale("log")
    dense = path.thinned or len(path.samples) > MANY_LOOKS
    _draw_evidence(evidence, path, shown, dense)
    _draw_releases(releases, path, shown)
    for axes in (means, evidence, releases):
        open_frame(axes)
    end = (
        f"{format_participants_short(path.samples[-1])} participants"
        if path.stopped
        else "hit the cap"
    )
    title = title or f"One run of {path.strategy} ({path.threshold} threshold): {end}"
    write_title(figure, title, describe_left_out(len(shown), len(path.names)))
    _draw_means(means, path, shown, dense)
    return figure


def choose_path_arms(path: "RunPath") -> list[int]:
    """The arms that are drawn of a run: the named one, those still in, the best."""
    last = path.evidence[-1]
    unknown = np.isnan(path.means[-1]).all()
    better = np.where(np.isnan(last), np.inf, -last) if unknown else path.means[-1]
    return choose_arms(better, last >= 1, [path.recommendation])


def _draw_means(axes: "Axes", path: "RunPath", shown: list[int], dense: bool) -> None:
    """The private mean of each arm with its interval, and the names."""
    ends = []
    names = shorten_names([path.names[arm] for arm in shown])
    for place, (arm, name) in enumerate(zip(shown, names, strict=True)):
        look = choose_look(place)
        mean = path.scale.convert_to_outcome(path.means[:, arm])
        chosen = arm == path.recommendation
        width = 2.2 if chosen else 1.3
        axes.step(path.samples, mean, where="post", color=look.color, ls=look.pattern, lw=width)
        beside = min(DODGE, 0.12 / len(shown)) * (place - (len(shown) - 1) / 2)
        _draw_interval(axes, path, arm, look.color, (dense, len(shown) > FEW_STROKES), beside)
        if not path.thinned:
            fresh = path.released[:, arm]
            x = path.samples[fresh]
            size = 2 if dense else 4
            axes.plot(x, mean[fresh], ls="", marker=look.marker, ms=size, color=look.color)
        if not np.isnan(mean[-1]):
            words = label(name, "← named" if chosen else "")
            ends.append(End(words, float(mean[-1]), look.color))
    _mean_limits(axes, path, shown)
    axes.set_ylabel("estimate" + (" (less is better)" if path.scale.direction == "min" else ""))
    draw_participants_axis(axes)
    if ends:
        note(axes, _interval_words(path, shown, dense))
        label_ends(axes, ends, False)
    else:
        words = "no means: only differences\nbetween arms were released"
        axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", ha="center", color=GREY)


def _draw_interval(
    axes: "Axes", path: "RunPath", arm: int, color: str, much: tuple[bool, bool], beside: float
) -> None:
    """A pale band, or a stroke with ends at each released mean, `beside` those of other
    arms by a share of the axis; with `much` to show of looks a band, of arms the last
    stroke.
    """
    dense, crowded = much
    low, high = (path.scale.convert_to_outcome(ends[:, arm]) for ends in (path.low, path.high))
    if dense and not crowded:
        axes.fill_between(path.samples, low, high, step="post", color=color, alpha=0.1, lw=0)
        return
    fresh = np.flatnonzero(path.released[:, arm])
    fresh = fresh[-1:] if crowded else fresh
    span = max(2.0, float(path.samples[-1] / path.samples[0]))
    x = path.samples[fresh] * span**beside
    axes.vlines(x, low[fresh], high[fresh], color=color, lw=0.6, alpha=PALENESS)
    for end in (low, high):
        axes.plot(x, end[fresh], ls="", marker="_", ms=4, mew=0.6, color=color, alpha=PALENESS)


def _interval_words(path: "RunPath", shown: list[int], dense: bool) -> str:
    """What the intervals are, and which of them are drawn."""
    if len(shown) > FEW_STROKES:
        return f"{path.interval_words}; each arm's last"
    return path.interval_words.replace("strokes:", "bands:") if dense else path.interval_words


def _mean_limits(axes: "Axes", path: "RunPath", shown: list[int]) -> None:
    """Show the range of outcomes; the first noisy means may leave the picture."""
    later = path.means[len(path.samples) // 3 :, shown]
    low = float(np.min(later, initial=1.0, where=~np.isnan(later)))
    high = float(np.max(later, initial=0.0, where=~np.isnan(later)))
    ends = max(min(0.0, low) - 0.05, -0.6), min(max(1.0, high) + 0.05, 1.6)
    axes.set_ylim(*sorted(path.scale.convert_to_outcome(end) for end in ends))


def _draw_evidence(axes: "Axes", path: "RunPath", shown: list[int], dense: bool) -> None:
    """The evidence against each arm, and the threshold it has to reach."""
    for place, arm in enumerate(shown):
        look = choose_look(place)
        line = {"color": look.color, "ls": look.pattern, "marker": "" if dense else look.marker}
        width = 2.2 if arm == path.recommendation else 1.3
        share = path.evidence[:, arm]
        fresh = np.flatnonzero(np.append(True, np.diff(share) != 0)).tolist()
        look_of: Any = {**line, "lw": width, "ms": 3, "markevery": fresh}
        axes.step(path.samples, share, where="post", **look_of)
    axes.axhline(1, color=BLACK, lw=0.9)
    beside = ("axes fraction", "data")
    axes.annotate("threshold", (1.035, 1), xycoords=beside, va="center", annotation_clip=False)
    seen = path.evidence[:, shown]
    top = np.nanmax(np.where(np.isfinite(seen), seen, 0.0))
    axes.set_ylim(0, min(max(1.25, 1.1 * float(top)), 3.0))
    axes.set_ylabel("evidence")
    note(axes, path.evidence_words)


def _draw_releases(axes: "Axes", path: "RunPath", shown: list[int]) -> None:
    """A stroke for each release, or a bar where every sample is one; the names on the
    side where the lines have theirs.
    """
    for place, arm in enumerate(shown):
        color = choose_look(place).color
        if path.thinned:
            axes.hlines(place, path.samples[0], path.samples[-1], color=color, lw=4, alpha=0.5)
        else:
            fresh = path.released[:, arm]
            row = np.full(fresh.sum(), place)
            axes.plot(path.samples[fresh], row, ls="", marker="|", ms=8, color=color)
    short = shorten_names([path.names[arm] for arm in shown], SHORT)
    names = [turned(name, [name])[0] for name in short]
    axes.yaxis.tick_right()
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    words = (
        "every sample is a release" if path.thinned else f"interim analyses: {len(path.samples)}"
    )
    note(axes, words)
    axes.set_xlabel(f"participants (samples){LOGARITHMIC}", fontsize=TYPE)
