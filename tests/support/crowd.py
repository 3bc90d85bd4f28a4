"""People of an instance in a live run of bet-se, and the tape of it: what the simulator
would have had to draw.
"""

import math

import numpy as np

from discreet import Discrete
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.run import Totals
from discreet.strategies.units import LEVELS
from tests.support.tape import Tape


class Crowd:
    """Outcomes are drawn when a round is released."""

    def __init__(self, live: BettingRun, instance: Discrete, seed: int) -> None:
        self.live = live
        self.values, self.chances = list(instance.values), np.array(instance.probabilities)
        self.rng, self.tape = np.random.default_rng(seed), Tape()
        self.kinds: set[str] = set()
        self.rounds: list[list[float]] = []
        """Of each round what `loops.betting.note` says."""

    def deal(self, weights: list[int]) -> int:
        return int(self.rng.choice(len(weights), p=np.array(weights) / sum(weights)))

    def release(self) -> None:
        """What is due, with noise."""
        live, now = self.live, self.live.current
        marks = {
            "fine": now.fine,
            "bits": not now.fine,
            "by_tails": now.by_tails,
            "difference": now.difference,
        }
        self.kinds |= {name for name, mark in marks.items() if mark}
        due, totals, jumps = live.list_due(), [], list[int]()
        left = sum(batch.size for batch in due)
        for place, (arm, _, size) in enumerate(due):
            if place < len(due) - 1:
                self.tape.sums.append((left, size))
            left -= size
            totals.append(live.add_up(self._people(arm, size)))
        grid = live.scale_grid(live.setting.grid)
        shown = [total for total in live.combine(totals) if total is not None]
        noisy = [self._noisy(total, grid, jumps) for total in shown]
        self.tape.jumps += jumps
        close = [total.near / grid for total in noisy if total.near is not None]
        live.release([total.sum / grid for total in noisy], close if now.fine else None)

    def note(self, samples: int, length: int, number: int) -> None:
        """A round that was released."""
        book = self.live.book
        public = [samples, book.eliminated.size - book.eliminated.sum(), length, number]
        self.rounds.append([*public, *book.mean])

    def _people(self, arm: int, size: int) -> list[int]:
        """What the people of a batch come to, in units of what is due."""
        values = self.rng.choice(len(self.values), size, p=self.chances[arm]).tolist()
        if self.live.setting.kind == LEVELS:
            return self._levels([self.values[one] for one in values])
        if not self.live.current.fine:
            bits = [int(self.rng.random() < self.values[one]) for one in values]
            self.tape.sums.append((size, sum(bits)))
            return bits
        units, left = list[int](), size
        for index, value in enumerate(self.values):
            hits = values.count(index)
            if left > 0:
                self.tape.sums.append((left, hits))
            left -= hits
            exact = value * self.live.setting.grid
            ups = [int(self.rng.random() < exact - math.floor(exact)) for _ in range(hits)]
            if hits:
                self.tape.sums.append((hits, sum(ups)))
            units += [math.floor(exact) + up for up in ups]
        return units

    def _levels(self, values: list[float]) -> list[int]:
        """One of three levels, then with some chance another."""
        middle, slip = float(self.live.current.centre), self.live.setting.level_error
        levels = (0, round(middle * self.live.setting.grid), self.live.setting.grid)
        sent = []
        for value in values:
            share = value / middle if value < middle else (value - middle) / (1 - middle)
            level = int(value >= middle) + int(self.rng.random() < share)
            turn = int(self.rng.choice(3, p=[1 - 2 * slip, slip, slip]))
            sent.append((level + turn) % 3)
        self.tape.sums.append((len(sent), sent.count(1)))
        if sent.count(1) < len(sent):
            self.tape.sums.append((len(sent) - sent.count(1), sent.count(2)))
        return [levels[one] for one in sent]

    def _noisy(self, total: Totals, grid: int, jumps: list[int]) -> Totals:
        strategy = self.live.strategy
        if strategy.trust != "global":
            return total
        p = -math.expm1(-float(strategy.epsilon or 0) / grid)
        noise = []
        for _ in range(1 if total.near is None else 2):
            up, down = int(self.rng.geometric(p)), int(self.rng.geometric(p))
            jumps += [up, down]
            noise.append(up - down)
        close = None if total.near is None else total.near + noise[1]
        return Totals(total.sum + noise[0], close)
