"""Where the noise of a rehearsed trial comes from: as live, the same laws drawn
quickly, or none.
"""

import math
from typing import Protocol

import numpy as np

from discreet.errors import DiscreetError
from discreet.simulation.laws import draw_gaussian
from discreet.strategies.betting.bets import slip_of
from discreet.strategies.run import Totals
from discreet.strategies.units import FINE, PLACES
from discreet.trials import mechanisms
from discreet.trials.responses import middle_units, to_level


class Source(Protocol):
    """Where noise comes from."""

    name: str

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """A sum with noise, in units of 1/grid."""

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """A sum and closeness with noise, in units of 1/grid."""

    def gaussian_sum(self, total: int, sigma: float, grid: int) -> int:
        """A sum with Gaussian noise, in units of 1/grid."""

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """A randomised response to an outcome, 0 or 1 but with a middle level."""


class Live:
    """The noise of live trials."""

    name = "opendp"

    def __init__(self) -> None:
        mechanisms.load()  # refused here, and not after the parts that numpy draws

    def noisy_sum(self, total: int, epsilon: float, grid: int) -> int:
        """As a live trial releases a sum."""
        return mechanisms.noisy_sum(total, epsilon, grid)[0]

    def noisy_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """As a live trial releases both."""
        return mechanisms.noisy_totals(total, epsilon, grid)

    def gaussian_sum(self, total: int, sigma: float, grid: int) -> int:
        """As a live trial releases it."""
        return mechanisms.gaussian_totals(Totals(total), sigma, grid).sum

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """As a person responds."""
        return mechanisms.respond(outcome, epsilon, gamma, middle=middle).value


class Simulated:
    """The same laws drawn with numpy, a hundred times as fast, for audits only; not for
    Gaussian responses.

    Discrete Laplace noise is the difference of two geometric variables with success
    probability 1 - e^(-ε/grid); discrete Gaussian noise is made of it as in
    simulations.
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

    def gaussian_sum(self, total: int, sigma: float, grid: int) -> int:
        """A sum with discrete Gaussian noise."""
        drawn = self.ready.setdefault(-sigma * grid, [])
        if not drawn:
            drawn += [int(draw_gaussian(self.rng, sigma * grid)) for _ in range(self.BLOCK)]
        return total + drawn.pop()

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

    def gaussian_sum(self, total: int, sigma: float, grid: int) -> int:
        """The sum itself."""
        return total

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """The outcome itself, or the level that it is rounded to."""
        if middle is not None:
            return (0, middle_units(middle), PLACES)[to_level(float(outcome), middle)]
        return int(outcome) if gamma is None else int(outcome) * 2**FINE
