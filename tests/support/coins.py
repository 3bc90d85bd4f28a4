"""A live run of bet-se whose rounds are opened, played on people of an instance, and
the tape of it: what the simulator would have had to draw.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from discreet import Discrete, Strategy
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.run import Randomisation, Totals, make_run
from tests.support.crowd import Crowd

SIMPLE = Randomisation("simple")
AHEAD = Randomisation("simple", continuous=True)


def opened(
    strategy: Strategy, arms: int, cap: int, randomisation: Randomisation = SIMPLE
) -> BettingRun:
    """A run that has not begun."""
    live = make_run(strategy, arms, cap, strategy.delta, None, randomisation)
    assert isinstance(live, BettingRun)
    return live


class Player(Crowd):
    """A run whose rounds are opened."""

    live: BettingRun

    def __init__(
        self,
        strategy: Strategy,
        instance: Discrete,
        seed: int,
        cap: int,
        randomisation: Randomisation = SIMPLE,
    ) -> None:
        super().__init__(opened(strategy, instance.arms, cap, randomisation), instance, seed)

    def play(self) -> None:
        while not self.live.is_finished:
            self.step()

    def step(self) -> None:
        """A round is opened, a person dealt, or a round released."""
        if self.live.list_due():
            self.release()
        elif self.live.needs_round:
            self.live.open_round()
        else:
            assert self.live.assign_next(self.deal) is not None

    def release(self) -> None:
        now = self.live.current
        super().release()
        self.note(self.live.settled, now.length, now.number + 1)


Delay = Callable[[np.random.Generator, int, int], int]
"""Days until an outcome is told, given the arm and the outcome."""


class Clinic:
    """One person comes a day, outcomes are told later; a round is released as soon as
    it is the oldest, closed and complete.
    """

    def __init__(self, live: BettingRun, means: Sequence[float], delay: Delay, seed: int) -> None:
        self.live, self.means, self.delay = live, means, delay
        self.rng, self.today = np.random.default_rng(seed), 0
        self.told: dict[int, list[tuple[int, int, int]]] = {}
        """By round: arm, bit and day of each person."""

    def play(self) -> None:
        while not self.live.is_finished:
            self.day()

    def day(self) -> None:
        self.today += 1
        if self.live.needs_round:
            self.live.open_round()
        place = self.live.assign_next(self.deal)
        if place is not None:
            bit = int(self.rng.random() < self.means[place.arm])
            day = self.today + self.delay(self.rng, place.arm, bit)
            self.told.setdefault(place.phase, []).append((place.arm, bit, day))
        while (due := self.live.list_due()) and self.complete(due[0].phase):
            self.release()

    def deal(self, weights: list[int]) -> int:
        return bisect_right(list(accumulate(weights)), self.rng.random() * sum(weights))

    def complete(self, phase: int) -> bool:
        return all(day <= self.today for _, _, day in self.told[phase])

    def release(self) -> None:
        live, due = self.live, self.live.list_due()
        people = self.told.pop(due[0].phase)
        totals = [Totals(sum(bit for who, bit, _ in people if who == arm)) for arm, _, _ in due]
        shown = [total.sum for total in live.combine(totals) if total is not None]
        live.release([float(total + self.noise()) for total in shown])

    def noise(self) -> int:
        if self.live.strategy.trust != "global":
            return 0
        p = -math.expm1(-float(self.live.strategy.epsilon or 0))
        return int(self.rng.geometric(p)) - int(self.rng.geometric(p))
