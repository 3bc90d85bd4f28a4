"""A trial in memory, for audits: the live run and the live mechanisms on a table of
outcomes that is known.

It goes through the steps of a live trial without a database, so that a trial can be run
thousands of times on the same outcomes. A mechanism of your own, or a mistake, is a
subclass.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from discreet.arrays import Ints
from discreet.errors import DiscreetError
from discreet.strategies.run import Place, Run
from discreet.strategies.strategy import Strategy
from discreet.trials import mechanisms
from discreet.trials.outcomes import FINE, grid_of
from discreet.trials.record import Release, live_run, release

Table = Ints
"""The outcome, 0 or 1, of each person (row) on each arm (column)."""


class Source(Protocol):
    """Where noise comes from."""

    name: str

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """A sum with noise, in units of 1/grid."""

    def respond(self, outcome: int, epsilon: float, gamma: float | None) -> int:
        """A randomised response to an outcome of 0 or 1."""


class Live:
    """The noise of live trials."""

    name = "opendp"

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """As a live trial releases a sum."""
        return mechanisms.noisy_sum(total, epsilon, grid)[0]

    def respond(self, outcome: int, epsilon: float, gamma: float | None) -> int:
        """As a person responds."""
        return mechanisms.respond(outcome, epsilon, gamma).value


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

    def respond(self, outcome: int, epsilon: float, gamma: float | None) -> int:
        """Randomised response."""
        if gamma is not None:
            raise DiscreetError("Gaussian responses are drawn live only")
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

    def respond(self, outcome: int, epsilon: float, gamma: float | None) -> int:
        """The outcome itself."""
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

    def _until_release(self) -> list[Place]:
        """The places before the first release: the same in every run, hence handed out
        once.
        """
        places = []
        while not self.live.learns_always and (place := self.live.take()) is not None:
            places.append(place)
        return places

    def noisy(self, total: int) -> int:
        """What is released of a sum of outcomes (both in units of the grid)."""
        return (
            self.source.noisy_sum(total, self.epsilon, self.grid)
            if self.strategy.trust_model.noised
            else total
        )

    def respond(self, outcome: int) -> int:
        """What a person sends, in units of the grid: the outcome, or with local trust a
        randomised response.
        """
        if self.strategy.trust_model.randomised:
            return self.source.respond(outcome, self.epsilon, self.strategy.gamma)
        return outcome * self.grid

    def total(self, arm: int, phase: int) -> int:
        """What the people of a batch sent, added up."""
        people = self.batches[arm, phase]
        if self.strategy.trust_model.randomised:
            return sum(self.respond(int(self.table[person, arm])) for person in people)
        return int(self.table[people, arm].sum()) * self.grid

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
        totals = self.live.combine([self.total(arm, phase) for arm, phase, _ in due])
        raw = [total / self.grid for total in totals if total is not None]
        return release(due, totals, self.grid, self.noisy, lambda sums: self.decide(sums, raw))

    def decide(self, released: list[float], raw: list[float]) -> None:
        """Go on with the released sums; the raw ones are there for mistakes only."""
        self.live.release(released)
