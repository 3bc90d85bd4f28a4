"""One round of DP-SE is an epoch: its length is known before, and when its means are
released far arms drop out.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.jit import jit
from discreet.strategies.run import (
    ArmBatch,
    ArmView,
    DrawArm,
    Margin,
    Pair,
    Radii,
    Run,
    choose_first,
)
from discreet.strategies.sampling import find_best_arm
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import replace_nan
from discreet.theory.thresholds import compute_epoch_length, compute_epoch_radius


class Epochs(NamedTuple):
    """The state of a run of DP-SE, one entry per arm."""

    mean: Floats
    """Of the arm's last epoch, released."""
    active: Flags
    pulls: Ints
    behind: Ints
    """Samples behind the mean."""
    radius: Floats
    """Half of the radius when the mean was released."""


@jit(allocates=True)
def make_epochs(arms: int) -> Epochs:
    """Return the state before anything was pulled."""
    return Epochs(
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
    )


@jit
def end_epoch(
    state: Epochs, left: int, epoch: int, length: int, epsilon: float, delta: float
) -> int:
    """Eliminate the arms that lie too far below the best by the means of this epoch.
    Return how many of the `left` arms stay.
    """
    radius = compute_epoch_radius(left, epoch, length, epsilon, delta)
    for arm in range(state.mean.size):
        if state.active[arm]:
            state.behind[arm] = length
            state.radius[arm] = radius / 2.0
    return eliminate_far(state.mean, state.active, radius)


@jit
def eliminate_far(mean: Floats, active: Flags, radius: float) -> int:
    """Eliminate the active arms more than `radius` below the best active one. Return
    how many stay.
    """
    top = mean[find_best_arm(mean, active)]
    left = 0
    for arm in range(mean.size):
        if active[arm] and top - mean[arm] > radius:
            active[arm] = False
        if active[arm]:
            left += 1
    return left


def measure_epochs_evidence(state: Epochs, best: int) -> Floats:
    """Return the gap of each arm to the best one, over twice the radius."""
    share: Floats = (state.mean[best] - state.mean) / (2 * state.radius[best])
    share[best] = math.nan
    return share


class EpochsRun(Run):
    """A live run of DP-SE: play an epoch at a time."""

    fields: ClassVar = (*Run.fields, "epoch", "place")

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.state = make_epochs(arms)
        self.epoch = 1
        """The epoch, from 1 on."""
        self.place = 0
        """How many people are in it."""

    def list_arrays(self) -> dict[str, Any]:
        """Return what was released, and which arms are left."""
        state = self.state
        return {
            "mean": state.mean,
            "active": state.active,
            "pulls": state.pulls,
            "behind": state.behind,
            "radius": state.radius,
        }

    @property
    def _epsilon(self) -> float:
        return float(self.strategy.epsilon or 0)

    def _list_active(self) -> list[int]:
        return [int(arm) for arm in np.flatnonzero(self.state.active)]

    def _compute_length(self) -> int:
        left = int(self.state.active.sum())
        return int(compute_epoch_length(left, self.epoch, self._epsilon, self.strategy.delta))

    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Assign the arms that are left in turn. Cut off an epoch that would pass the
        cap; it releases nothing.
        """
        playing = self._list_active()
        if (
            self.stopped
            or self.samples >= self.cap
            or self.place == len(playing) * self._compute_length()
        ):
            return None
        arm = playing[self.place % len(playing)]
        self.state.pulls[arm] += 1
        self.samples += 1
        self.place += 1
        return ArmBatch(arm, self.epoch, 1)

    def assign_all(self) -> list[ArmBatch]:
        """Assign the rest of the epoch in one step, as far as the cap allows."""
        playing, length = self._list_active(), self._compute_length()
        rest = min(len(playing) * length - self.place, self.cap - self.samples)
        if self.stopped or rest <= 0:
            return []
        # A turn of everybody is one place more for each; turns count from the arm next.
        turn = [(arm - self.place) % len(playing) for arm in range(len(playing))]
        sizes = [max(rest - wait + len(playing) - 1, 0) // len(playing) for wait in turn]
        self.state.pulls[playing] += sizes
        self.samples += rest
        self.place += rest
        return [
            ArmBatch(arm, self.epoch, size)
            for arm, size in zip(playing, sizes, strict=True)
            if size
        ]

    def list_due(self) -> list[ArmBatch]:
        """Return a batch of every arm that is left, when the epoch is full."""
        playing, length = self._list_active(), self._compute_length()
        full = not self.stopped and self.place == len(playing) * length
        return [ArmBatch(arm, self.epoch, length) for arm in playing] if full else []

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Renew the means, and eliminate the arms that are far below the best."""
        length, playing = self._compute_length(), self._list_active()
        for arm, total in zip(playing, sums, strict=True):
            self.state.mean[arm] = total / length
        left = end_epoch(
            self.state, len(playing), self.epoch, length, self._epsilon, self.strategy.delta
        )
        self.stopped = bool(left == 1)
        self.recommendation = int(find_best_arm(self.state.mean, self.state.active))
        self.epoch += 1
        self.place = 0

    def can_stop(self, delta: float) -> bool:
        """Return False: DP-SE plans its epochs with δ, so another δ would have been
        another trial.
        """
        return False

    def measure_evidence(self) -> list[float | None]:
        """Return the evidence by the last epoch of each arm; an eliminated arm has all."""
        best = self.recommendation
        if best is None:
            return super().measure_evidence()
        share = measure_epochs_evidence(self.state, best)
        return replace_nan(np.where(self.state.active, share, np.maximum(share, 1.0)))

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Bound the difference by two radii; eliminated arms have those of the latest
        epoch too.
        """
        if not self.state.behind[[one, other]].all():
            return None
        lengths = [int(self.state.behind[arm]) for arm in (one, other)]
        latest = self.epoch - 1

        def radius(alpha: float) -> float:
            return sum(
                compute_epoch_radius(2, latest, length, self._epsilon, alpha) / 2
                for length in lengths
            )

        return Radii(float(self.state.mean[one] - self.state.mean[other]), radius)

    def view_arms(self) -> list[ArmView]:
        """Return means with the radius within which, with probability 1 - δ, all true
        means lie at all times.
        """
        return [self._view(arm) for arm in range(self.arms)]

    def _view(self, arm: int) -> ArmView:
        mean, radius = float(self.state.mean[arm]), float(self.state.radius[arm])
        count, pulls = int(self.state.behind[arm]), int(self.state.pulls[arm])
        within = (max(mean - radius, 0.0), min(mean + radius, 1.0))
        return ArmView(pulls, count, mean if count else None, within if count else None)


def make_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """Return a run that has not begun."""
    return EpochsRun(strategy, arms, cap)
