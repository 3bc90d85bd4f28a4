"""Walks of +1 and -1 whose end is drawn first: with what chance they have been at a
level on the way, and the steps of one that has.
"""

import math

from discreet.leaf import leaf
from discreet.simulation.laws import Generator


@leaf
def most_reach(steps: int, end: int, height: int) -> float:
    """An upper bound on `reach` that is quick: its proof is in docs/leap.md."""
    if end >= height:
        return 1.0
    return math.exp(-2.0 * height * (height - end) / (steps + 2.0))


@leaf
def reach(steps: int, end: int, height: int) -> float:
    """The chance that a walk of so many steps from 0 to `end`, all orders alike, has
    been at `height` >= 0.

    By reflection C(steps, ups + height - end) / C(steps, ups), as the walks that have
    been there are, mirrored from then on, all those that end at 2 height - end.
    """
    if end >= height:
        return 1.0
    ups = (steps + end) // 2
    downs, more = steps - ups, height - end
    if more > downs:
        return 0.0
    return math.exp(
        math.lgamma(ups + 1.0)
        + math.lgamma(downs + 1.0)
        - math.lgamma(ups + more + 1.0)
        - math.lgamma(downs - more + 1.0)
    )


@leaf
def draw_step(rng: Generator, left: int, ups: int) -> int:
    """1 if the next of the steps that are left, `ups` of them up, is up, else 0."""
    return 1 if rng.random() * left < ups else 0
