"""One round of DP-SE is an epoch: its length is known before, and when its means are
released far arms drop out.
"""

from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.top_two import best_arm
from discreet.theory.thresholds import epoch_radius


class Epochs(NamedTuple):
    """A run of DP-SE, one entry per arm."""

    mean: Floats
    """Of the arm's last epoch, released."""
    active: Flags
    pulls: Ints
    behind: Ints
    """Samples behind the mean."""
    radius: Floats
    """Half of the radius when the mean was released."""


@leaf(allocates=True)
def new_epochs(arms: int) -> Epochs:
    """Nothing pulled yet."""
    return Epochs(
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
    )


@leaf
def settle(state: Epochs, left: int, epoch: int, length: int, epsilon: float, delta: float) -> int:
    """Drop the arms that lie too far below the best, by the means of this epoch; how
    many of the `left` arms stay.
    """
    radius = epoch_radius(left, epoch, length, epsilon, delta)
    for arm in range(state.mean.size):
        if state.active[arm]:
            state.behind[arm] = length
            state.radius[arm] = radius / 2.0
    return drop_far(state.mean, state.active, radius)


@leaf
def drop_far(mean: Floats, active: Flags, radius: float) -> int:
    """Drop the active arms more than `radius` below the best active one; how many
    stay.
    """
    top = mean[best_arm(mean, active)]
    left = 0
    for arm in range(mean.size):
        if active[arm] and top - mean[arm] > radius:
            active[arm] = False
        if active[arm]:
            left += 1
    return left
