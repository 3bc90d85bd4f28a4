"""A trial in memory, for audits: the live run and the live mechanisms on a table of
outcomes that is known.

It goes through the steps of a live trial without a database, so that a trial can be run
thousands of times on the same outcomes. A mechanism of your own, or a mistake, is a
subclass.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.errors import DiscreetError
from discreet.strategies.betting.tilts import slip_of
from discreet.strategies.run import Place, Run, Totals
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import FINE, PLACES, grid_of
from discreet.trials import mechanisms
from discreet.trials.outcomes import middle_units, to_level, to_units
from discreet.trials.record import Release, live_run, release

Table = Ints | Floats
"""The outcome of each person (row) on each arm (column): 0 or 1, or a number between.
"""


class Source(Protocol):
    """Where noise comes from."""

    name: str

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """A sum with noise, in units of 1/grid."""

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """A sum and closeness with noise, in units of 1/grid."""

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """A randomised response to an outcome, 0 or 1 but with a middle level."""


class Live:
    """The noise of live trials."""

    name = "opendp"

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """As a live trial releases a sum."""
        return mechanisms.noisy_sum(total, epsilon, grid)[0]

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """As a live trial releases both."""
        return mechanisms.noisy_totals(total, epsilon, grid)

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """As a person responds."""
        return mechanisms.respond(outcome, epsilon, gamma, middle=middle).value


class Simulated:
    """The same laws drawn with numpy, a hundred times as fast, for audits only; not for
    Gaussian responses.

    Discrete Laplace noise is the difference of two geometric variables with success
    probability 1 - e^(-ε/grid).
    """

    name = "numpy"
    BLOCK = 4096

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.ready: dict[float, list[int]] = {}

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """A sum with discrete Laplace noise."""
        drawn = self.ready.setdefault(epsilon / grid, [])
        if not drawn:
            two = self.rng.geometric(-math.expm1(-epsilon / grid), (2, self.BLOCK))
            drawn += (two[0] - two[1]).tolist()
        return total + drawn.pop()

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Both with noise of their own."""
        near = None if total.near is None else self.noisy_sum(total.near, epsilon, grid)
        return Totals(self.noisy_sum(total.sum, epsilon, grid), near)

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """Randomised response."""
        if gamma is not None:
            raise DiscreetError("Gaussian responses are drawn live only")
        if middle is not None:
            level, slip = to_level(float(outcome), middle), slip_of(epsilon)
            drawn = self.rng.random()
            turn = (drawn < slip) + (drawn < 2 * slip)  # 1 and 2 as likely as each other
            return (0, middle_units(middle), PLACES)[(level + turn) % 3]
        return int(outcome) ^ int(
            self.rng.random() * (1.0 + math.exp(-epsilon)) < math.exp(-epsilon)
        )


class Silent:
    """No noise at all: what the raw outcomes would decide, for finding tables on which
    a leak would show.
    """

    name = "none"

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """The sum itself."""
        return total

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Both themselves."""
        return total

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """The outcome itself, or the level that it is rounded to."""
        if middle is not None:
            return (0, middle_units(middle), PLACES)[to_level(float(outcome), middle)]
        return int(outcome) if gamma is None else int(outcome) * 2**FINE


class Transcript(NamedTuple):
    """What a trial publishes."""

    arms: list[int]
    """The arm of each person."""
    releases: list[Release]
    stopped: bool
    """Whether it stopped by the strategy's rule."""
    recommendation: int | None


class Rehearsal:
    """A trial of at most so many people that can be run again and again, on any
    table.
    """

    def __init__(self, strategy: Strategy, people: int, source: Source, arms: int = 2) -> None:
        self.strategy, self.source = strategy, source
        self.epsilon, self.grid = float(strategy.epsilon or 0), grid_of(strategy)
        self.live: Run = live_run(strategy, arms, people)
        self.table: Table = np.zeros((0, arms), np.int64)
        self.batches: dict[tuple[int, int], list[int]] = {}
        """The people of each batch, by (arm, phase)."""
        self._before = [(place.arm, place.phase) for place in self._until_release()]
        self._start = self.live.dump()
        self.near: list[float] | None = None
        """The closeness that was released last, where it is."""

    def _until_release(self) -> list[Place]:
        """The places before the first release: the same in every run, hence handed out
        once.
        """
        places = []
        while not self.live.learns_always and (place := self.live.take()) is not None:
            places.append(place)
        return places

    def noisy(self, total: int) -> int:
        """What is released of a sum of outcomes (both in units of what is due)."""
        return (
            self.source.noisy_sum(total, self.epsilon, self.live.due_grid(self.grid))
            if self.strategy.trust_model.noised
            else total
        )

    def noisy_totals(self, total: Totals) -> Totals:
        """What is released of what was summed."""
        if total.near is None:
            return Totals(self.noisy(total.sum))
        noised = self.strategy.trust_model.noised
        return self.source.noisy_totals(total, self.epsilon, self.grid) if noised else total

    def respond(self, outcome: float) -> int:
        """What a person sends, in units of the grid: the outcome, or with local trust a
        randomised response.
        """
        if self.strategy.trust_model.randomised:
            gamma, middle = self.strategy.gamma, self.live.middle
            return self.source.respond(outcome, self.epsilon, gamma, middle)
        return round(outcome * self.grid)

    def total(self, arm: int, phase: int) -> int:
        """What the people of a batch sent, added up."""
        people = self.batches[arm, phase]
        if self.strategy.trust_model.randomised:
            return sum(self.respond(int(self.table[person, arm])) for person in people)
        return int(self.table[people, arm].sum()) * self.grid

    def totals(self, arm: int, phase: int) -> Totals:
        """What is summed of a batch: with closeness, where that is released."""
        if self.live.sums_only:
            return Totals(self.total(arm, phase))
        units = [self.respond(float(self.table[one, arm])) for one in self.batches[arm, phase]]
        if self.live.due_grid(self.grid) != self.grid:
            units = [to_units(one / self.grid, 1) for one in units]
        return self.live.totals(units)

    def restart(self) -> list[int]:
        """Back to the moment before the first release; the arms of the people so
        far.
        """
        self.live.load(self._start)
        self.batches = {}
        for person, place in enumerate(self._before):
            self.batches.setdefault(place, []).append(person)
        return [arm for arm, _ in self._before]

    def run(self, table: Table) -> Transcript:
        """One trial on these outcomes; every run draws noise of its own."""
        self.table = table
        arms, live = self.restart(), self.live
        releases: list[Release] = []
        while not live.stopped:
            if (place := live.take()) is not None:
                person = len(arms)
                arms.append(place.arm)
                self.batches.setdefault((place.arm, place.phase), []).append(person)
                if live.learns_always:
                    value = self.respond(int(table[person, place.arm]))
                    live.answer(place.arm, value / self.grid)
                    releases.append(Release(*place, value))
            elif due := live.due():
                releases += self.release(due)
            else:
                break
        return Transcript(arms, releases, live.stopped, live.recommendation)

    def release(self, due: list[Place]) -> list[Release]:
        """Publish what is due, and decide."""
        totals = self.live.combine([self.totals(arm, phase) for arm, phase, _ in due])
        grid = self.live.due_grid(self.grid)
        raw = [total.sum / grid for total in totals if total is not None]

        def decide(sums: list[float], near: list[float] | None = None) -> None:
            self.near = near
            self.decide(sums, raw)

        return release(due, totals, grid, self.noisy_totals, decide)

    def decide(self, released: list[float], raw: list[float]) -> None:
        """Go on with the released sums; the raw ones are there for mistakes only."""
        self.live.release(released, *([] if self.near is None else [self.near]))
