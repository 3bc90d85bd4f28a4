"""How axes look: their frame, scale and ticks."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.words import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.dates import AutoDateLocator

FAR = 30.0
"""Times the least from which on numbers of people are drawn on a logarithmic axis."""
NEAR = (
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0),
)
"""Ticks of a logarithmic axis that spans little: as few as its scale can be read by."""
FEWEST = 3
"""Ticks from which the scale of an axis can be read."""
LOGARITHMIC = ", logarithmic"
"""What the name of such an axis ends with."""


def open_frame(axes: "Axes", *also: str) -> None:
    """No frame at the top and the right."""
    axes.spines[["top", "right", *also]].set_visible(False)


def short_numbers(axis: "Axis") -> None:
    """Ticks as 1k, 1M."""
    axis.set_major_formatter(lambda value, _: short(value))


def powers_of_ten(axis: "Axis") -> None:
    """Ticks at powers of ten alone."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_minor_locator(NullLocator())


def people_scale(axes: "Axes", least: float, most: float, words: str) -> None:
    """An axis of people from the least to the most: from 0 on, or logarithmic where
    they are far apart, which its name then says.
    """
    if most < FAR * least:
        axes.set_xlim(0, 1.03 * most)
        short_numbers(axes.xaxis)
        axes.set_xlabel(words)
    else:
        axes.set_xscale("log")
        people_axis(axes)
        axes.set_xlabel(f"{words}{LOGARITHMIC}")


def people_axis(axes: "Axes") -> None:
    """A logarithmic axis of people: ticks at 1, 2, 5 where it spans little, else at
    powers of ten.
    """
    low, high = axes.get_xlim()
    if high < 2 * low:  # one look: no tick would fall into the picture
        low, high = low / 2, 2 * high
        axes.set_xlim(low, high)
    few_ticks(axes.xaxis, low, high)


def _count(steps: Sequence[float], low: float, high: float) -> int:
    """How many ticks at such steps are on an axis."""
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return sum(low <= step * 10.0**ten <= high for ten in tens for step in steps)


def few_ticks(axis: "Axis", low: float, high: float) -> None:
    """Short numbers on a logarithmic axis: at 1, 2, 5 where it spans little, at more
    where it spans so little that hardly one of these is on it, else at powers of ten.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    short_numbers(axis)
    near = high < 300 * low
    enough = (steps for steps in NEAR if _count(steps, low, high) >= FEWEST)
    steps = next(enough, NEAR[-1]) if near else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=20 if near else 7))
    axis.set_minor_locator(NullLocator())


def date_locator() -> "AutoDateLocator":
    """Where the days or times of an axis stand, three to six of them. Its steps go up
    to the next unit: without that it warns just before that unit begins.
    """
    from matplotlib.dates import HOURLY, MONTHLY, SECONDLY, AutoDateLocator

    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    for unit, whole in ((SECONDLY, 60), (HOURLY, 24), (MONTHLY, 12)):
        locator.intervald[unit] = [*locator.intervald[unit], whole]
    return locator
