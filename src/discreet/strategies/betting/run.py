"""A live run of bet-se: rounds of batches, the leader pulled more often, arms out by
betting.
"""

import math
from typing import Any, ClassVar

import numpy as np

from discreet.strategies.betting.bets import betting_rules
from discreet.strategies.betting.evidence import PULLS, SUM, interval, log_p_value
from discreet.strategies.betting.rounds import (
    announce,
    batch_of,
    first_round,
    front_runner,
    new_book,
    next_round,
)
from discreet.strategies.run import REQUIRED, ArmView, Place, Run
from discreet.strategies.strategy import Strategy


class BettingRun(Run):
    """A round at a time: announced, filled, settled."""

    fields: ClassVar = {
        **Run.fields,
        "rounds": REQUIRED,
        "n": REQUIRED,
        "length": REQUIRED,
        "place": REQUIRED,
    }

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.bets, self.setting = betting_rules(strategy, arms)
        self.book = new_book(arms)
        self.now = first_round(self.setting, cap, self.book)
        self.place = 0
        """How many people are in the round."""
        self.rounds = 0
        self.n = 0
        self.length = self.now.length
        """These three are what is stored of the round; the rest of it follows from the
        book.
        """

    def arrays(self) -> dict[str, Any]:
        """The released sums, and what was decided from them."""
        book = self.book
        return {
            "total": book.total,
            "own": book.own,
            "rival": book.rival,
            "money": book.money,
            "out": book.out,
            "active": book.active,
        }

    def load(self, state: dict[str, Any]) -> None:
        """The book, and what was announced from it."""
        super().load(state)
        before = self.samples - self.place
        self.now = announce(self.rounds, self.n, before, self.length, self.cap, self.book)

    @property
    def finished(self) -> bool:
        """Stopped, or no whole cycle fits below the cap."""
        return self.stopped or self.now.length < 1

    def _cycle(self) -> list[int]:
        """The arms of a round in the order of assignment, to be repeated `length`
        times.
        """
        playing = [int(arm) for arm in np.flatnonzero(self.book.active)]
        return playing + [int(self.now.leader)] * (2**self.now.octave - 1)

    def take(self) -> Place | None:
        """The next arm of the round."""
        cycle = self._cycle()
        if self.finished or self.place == len(cycle) * self.now.length:
            return None
        arm = cycle[self.place % len(cycle)]
        self.place += 1
        self.samples += 1
        return Place(arm, self.now.number + 1, 1)

    def due(self) -> list[Place]:
        """Every arm that plays, when the round is full."""
        if self.finished or self.place < self.now.weight * self.now.length:
            return []
        playing = [int(arm) for arm in np.flatnonzero(self.book.active)]
        return [Place(arm, self.now.number + 1, int(batch_of(arm, self.now))) for arm in playing]

    def release(self, sums: list[float]) -> None:
        """Settle the bets, and announce the next round."""
        for (arm, _, count), total in zip(self.due(), sums, strict=True):
            self.book.fresh[arm] = (total, count, 1)
        self.now = next_round(self.now, self.bets, self.setting, self.cap, self.book)
        self.place = 0
        self.stopped = self.now.winner >= 0
        self.recommendation = int(self.now.winner) if self.stopped else int(front_runner(self.book))
        self.rounds = self.now.number
        self.n = self.now.n
        if not self.stopped:
            self.length = self.now.length

    def would_stop(self, delta: float) -> bool:
        """Whether at this δ all other arms would be out, with the bets made so far."""
        smallest = self.smallest_delta()
        return smallest is not None and smallest <= delta

    def smallest_delta(self) -> float | None:
        """The largest p-value of "this arm is best" among the other arms."""
        if self.recommendation is None:
            return None
        own, rival, others = (
            self.book.own,
            self.book.rival,
            set(range(self.arms)) - {self.recommendation},
        )
        logs = [
            log_p_value(own[arm], rival[arm], self.n, self.bets, self.setting) for arm in others
        ]
        value = math.exp(max(logs)) * (2 if self.strategy.zeta > 0 else 1)
        return value if value < 1 else None

    def table(self) -> list[ArmView]:
        """Means of everything released, with anytime-valid intervals of level 1 - δ."""
        cycle = self._cycle()
        cycles, rest = divmod(self.place, self.now.weight)
        waiting = [cycles * cycle.count(arm) + cycle[:rest].count(arm) for arm in range(self.arms)]
        return [self._view(arm, waiting[arm]) for arm in range(self.arms)]

    def _view(self, arm: int, waiting: int) -> ArmView:
        total = self.book.total[arm]
        count = int(total[PULLS])
        if not count:
            return ArmView(waiting, 0, None, None)
        within = interval(total, self.strategy.delta, self.bets, self.setting)
        mean = 0.5 + (float(total[SUM] / count) - 0.5) / self.setting.scale
        return ArmView(count + waiting, count, mean, within)


def new_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """A run that has not begun."""
    return BettingRun(strategy, arms, cap)
