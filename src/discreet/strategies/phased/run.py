"""A live run of AdaP-TT, AdaP-TT* or TTUCB in batches: means renewed when an arm (or
every arm) has doubled.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet._types import Ints
from discreet.strategies.phased.decide import (
    advance,
    advance_whole,
    begin_phase,
    decide,
    decide_whole,
    fill_bonus,
    make_state,
    make_whole_rules,
    publish,
    set_due,
)
from discreet.strategies.phased.state import make_phased_rules, measure_phased_evidence
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
from discreet.strategies.sampling import TRACK
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import compute_sum_noise, replace_nan
from discreet.theory.thresholds import c_gaussian, compute_phase_number

PHASES = math.pi**2 / 6
"""At least the sum of one over the squares of all phase numbers."""


def compute_radius(strategy: Strategy, forget: bool, one: int, other: int, alpha: float) -> float:
    """Return the radius that means of so many outcomes each pass at any time with a
    probability of at most alpha.
    """
    if not forget:
        return math.sqrt((1 / one + 1 / other) / 2 * float(c_gaussian(one, other, 2, alpha)))
    numbers = [float(compute_phase_number(count)) for count in (one, other)]
    sigma = compute_sum_noise(strategy)
    variance = sum(1 / (4 * count) + (sigma / count) ** 2 for count in (one, other))
    laplace = strategy.trust_model.noised and not sigma
    share = alpha / 2 if laplace else alpha
    spent = math.log(2 / share) + 2 * sum(math.log(PHASES**0.5 * number) for number in numbers)
    radius = math.sqrt(2 * variance * spent)
    if laplace:
        epsilon = float(strategy.epsilon or 0)
        for count, number in zip((one, other), numbers, strict=True):
            radius += math.log(4 * PHASES * number**2 / alpha) / (epsilon * count)
    return radius


class PhasedRun(Run):
    """A live run in phases: take one step of the simulator's way from release to
    release at a time.
    """

    fields: ClassVar = (*Run.fields, "ended")

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.rules = make_phased_rules(strategy, arms)
        self.whole = (
            make_whole_rules(strategy, arms, self.rules) if strategy.has_global_episode else None
        )
        self.state = make_state(arms)
        self.ended = -1
        """The arm whose pull ended a phase that is not released yet."""

    def list_arrays(self) -> dict[str, Any]:
        """Return the public counts, and what was released."""
        state, board = self.state, self.state.board
        owed = {"board.owed": board.owed} if self.rules.sampling == TRACK else {}
        return {
            "board.pulls": board.pulls,
            "board.due": board.due,
            "board.led": board.led,
            "board.led_pulls": board.led_pulls,
            "board.share": board.share,
            "mean": state.mean,
            "counts": state.counts,
            "phase": state.phase,
            "bonus": state.bonus,
            "active": state.active,
            "begun": state.begun,
            "sums": state.sums,
            **owed,
        }

    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Assign every arm once, then take one step of `advance`."""
        places = self._assign(1, False)
        return places[0] if places else None

    def assign_all(self) -> list[ArmBatch]:
        """Assign as step by step, but leaping: the time it takes hardly grows with the
        phase. (With IDS it does.)
        """
        return self._assign(self.cap - self.samples, True)

    def _assign(self, most: int, leaping: bool) -> list[ArmBatch]:
        """Take up to so many places, not beyond the end of a phase."""
        if self.stopped or self.ended >= 0 or self.samples >= self.cap:
            return []
        before, until = self._count_assigned(), min(self.samples + most, self.cap)
        if self.samples < self.arms:
            self.samples = min(until, self.arms)
            self.ended = self.arms - 1 if self.samples == self.arms else -1
        else:
            way = (self.state, self.rules, leaping, self.samples, until)
            ended, samples = (
                advance(*way) if self.whole is None else advance_whole(*way, self.whole.yields)
            )
            self.ended, self.samples = int(ended), int(samples)
        more = self._count_assigned() - before
        return [
            ArmBatch(arm, int(self.state.phase[arm]) + 1, int(more[arm]))
            for arm in np.flatnonzero(more).tolist()
        ]

    def _count_assigned(self) -> Ints:
        """Return how many participants each arm has; the board begins with one each."""
        if self.samples >= self.arms:
            return self.state.board.pulls.copy()
        return (np.arange(self.arms) < self.samples).astype(np.int64)

    def list_due(self) -> list[ArmBatch]:
        """Return all arms at first and with one global episode, else the arm that
        doubled.
        """
        if self.ended < 0:
            return []
        pulls, begun = self.state.board.pulls, self.state.begun
        everyone = self.whole is not None or self.samples == self.arms
        arms = range(self.arms) if everyone else (self.ended,)
        return [
            ArmBatch(arm, int(self.state.phase[arm]) + 1, int(pulls[arm] - begun[arm]))
            for arm in arms
        ]

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Publish means and counts, then decide."""
        for (arm, _, fresh), total in zip(self.list_due(), sums, strict=True):
            publish(self.state, self.rules.forget, arm, fresh, total)
            if self.whole is None:
                set_due(self.state, self.rules, arm)
        if self.whole is not None:
            begin_phase(self.state)
            fill_bonus(self.state, self.whole)
        self.ended = -1
        self.recommendation, self.stopped = self._decide()

    def _decide(self) -> tuple[int, bool]:
        if self.whole is not None:
            return decide_whole(self.state, self.whole)
        best, stopped = decide(self.state, self.rules)
        return int(best), bool(stopped)

    def can_stop(self, delta: float) -> bool:
        """Return whether the stopping rule holds at another δ on this state."""
        if self.recommendation is None:
            return False
        other = PhasedRun(self.strategy.with_(delta=delta), self.arms, self.cap)
        other.load(self.dump())
        return other._decide()[1]

    def measure_evidence(self) -> list[float | None]:
        """Return the evidence by the last released means; none with one global episode."""
        state = self.state
        if self.whole is not None or not state.counts.all():
            return super().measure_evidence()
        counts = state.counts.astype(float)
        return replace_nan(measure_phased_evidence(self.strategy, self.rules, state.mean, counts))

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Bound the difference by Hoeffding's inequality and the tails of the noise,
        for all phases.
        """
        mean, counts = self.state.mean, self.state.counts
        sizes = int(counts[one]), int(counts[other])
        if not all(sizes):
            return None
        strategy, forget = self.strategy, bool(self.rules.forget)

        def radius(alpha: float) -> float:
            return compute_radius(strategy, forget, *sizes, alpha)

        return Radii(float(mean[one] - mean[other]), radius)

    def view_arms(self) -> list[ArmView]:
        """Return the arms: pulls are public from the start, means from the first
        release on.
        """
        state, assigned = self.state, self._count_assigned()
        means = [
            float(mean) if count else None
            for mean, count in zip(state.mean, state.counts, strict=True)
        ]
        return [
            ArmView(int(assigned[arm]), int(state.counts[arm]), means[arm], None)
            for arm in range(self.arms)
        ]


def make_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """Return a run that has not begun."""
    return PhasedRun(strategy, arms, cap)
