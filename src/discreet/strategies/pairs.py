"""How two arms differ: anytime-valid intervals and p-values from what was released.

All of them are for arms whose outcomes have one mean throughout. The docs page
"Differences between arms" has the proofs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

LEAST = 1e-99
"""No p-value is said to be smaller."""


class Lead(NamedTuple):
    """A number released in place of means: how much better an arm did than the best of
    others, a person.
    """

    arm: int
    over: tuple[int, ...]
    people: int
    """Of the arm, and as many of each other."""
    value: float


class Margin(NamedTuple):
    """How much more the people of one arm had in all than those of another, released
    with noise in place of two sums, in rewards.
    """

    one: int
    other: int
    people: tuple[int, int]
    """Of the one, and of the other."""
    lead: float
    """Sum of the one less sum of the other."""
    near: float | None = None
    """Where outcomes are numbers: how close all of them are to the centre, as it was
    released beside.
    """
    centre: float | None = None
    """That centre, if it is known."""

    def turned(self) -> "Margin":
        """Seen from the other arm."""
        return self._replace(
            one=self.other, other=self.one, people=self.people[::-1], lead=-self.lead
        )


@dataclass(frozen=True, eq=False)
class Pair(ABC):
    """What is known of the difference between the means of two arms."""

    difference: float
    """As it was released: private, hence noisy."""

    @abstractmethod
    def interval(self, alpha: float) -> tuple[float, float]:
        """Holds the true difference at all times with probability 1 - alpha."""

    @abstractmethod
    def p_value(self) -> float:
        """Of "the two means are equal", valid at any time; 1 if nothing speaks against
        it.
        """


@dataclass(frozen=True, eq=False)
class Radii(Pair):
    """A difference that lies within a radius of the true one."""

    radius: Callable[[float], float]
    """Of alpha: passed at any time with a probability of at most that."""

    def interval(self, alpha: float) -> tuple[float, float]:
        """As far as differences can be."""
        radius = self.radius(alpha)
        return max(self.difference - radius, -1.0), min(self.difference + radius, 1.0)

    def p_value(self) -> float:
        """The smallest alpha whose interval leaves out 0, rounded up by a thousandth at
        most.
        """
        low, high = math.log(LEAST), 0.0
        if self.radius(math.exp(low)) < abs(self.difference):
            return LEAST
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.radius(math.exp(middle)) < abs(self.difference):
                high = middle
            else:
                low = middle
        return math.exp(high)
