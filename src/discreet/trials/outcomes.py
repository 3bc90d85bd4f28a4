"""What outcomes are: their scale, their units, and the answers that were randomised
before they came.

Outcomes are rounded at random to a grid of whole units, without bias, so that sums are
whole numbers. Nothing here makes noise, and nothing needs OpenDP.
"""

import math
import numbers
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidInputError
from discreet.strategies.strategy import Strategy

LARGEST = 1e100
"""Of an end of the range of outcomes."""
FINE = 20
"""Outcomes are in units of 2^-20 where noise need not be on bits: a billion people add
up to 2^50.
"""


@dataclass(frozen=True)
class Scale:
    """How an experimenter's outcomes become rewards in [0, 1], where more is better,
    and back.
    """

    low: float = 0.0
    high: float = 1.0
    direction: str = "max"

    def __post_init__(self) -> None:
        """Refuse a range or a direction that makes no sense."""
        numbers_only = _is_number(self.low) and _is_number(self.high)
        within = numbers_only and -LARGEST <= self.low < self.high <= LARGEST
        if not within or self.high - self.low < 1 / LARGEST:
            raise InvalidInputError(
                f"range must be two numbers (low, high) with low < high, not beyond ±{LARGEST:g} "
                f"nor closer than {1 / LARGEST:g}"
            )
        if self.direction not in ("max", "min"):
            raise InvalidInputError(f"direction must be max or min; got {self.direction!r}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def reward(self, outcome: float) -> float:
        """The reward of an outcome. The error does not repeat the outcome: errors end
        up in logs.
        """
        try:
            value = math.nan if isinstance(outcome, str) or np.ndim(outcome) else float(outcome)
        except (TypeError, ValueError, ArithmeticError):
            value = math.nan
        if not self.low <= value <= self.high:
            raise InvalidInputError(
                f"the outcome must be a number from {self.low:g} to {self.high:g}, the range in "
                "the protocol"
            )
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return share if self.direction == "max" else 1.0 - share

    def shown(self, reward: float) -> float:
        """A mean reward in the experimenter's units."""
        share = reward if self.direction == "max" else 1.0 - reward
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True)
class Response:
    """An answer that was randomised where the person is: all that a trial with local
    trust takes.
    """

    mechanism: str
    """`rr`, randomised response on a bit; `gauss`, a sum of the outcome and discrete
    Gaussian noise.
    """
    epsilon: float
    gamma: float | None
    value: int
    """The bit, or the noisy outcome in units of the grid."""
    scale: Scale
    """Which outcomes there are and which are better, as it was randomised."""

    def __post_init__(self) -> None:
        """Refuse what no mechanism of ours gives."""
        whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        no_bit = self.mechanism == "rr" and self.value not in (0, 1)
        if self.mechanism not in ("rr", "gauss") or not whole or no_bit:
            raise InvalidInputError("not a randomised response: make one with discreet.respond")

    def __str__(self) -> str:
        """The response as one word, to be sent; `Response.parse` reads it."""
        levels = f"{self.epsilon!r}" if self.gamma is None else f"{self.epsilon!r}/{self.gamma!r}"
        span = f"@{self.scale.low!r}:{self.scale.high!r}:{self.scale.direction}"
        if self.scale == Scale():
            span = ""
        return f"{self.mechanism}/{levels}/{self.value}{span}"

    @staticmethod
    def parse(word: str) -> "Response":
        """The response that was written as a word; a bare number, such as a raw
        outcome, is refused.
        """
        try:
            answer, _, span = word.strip().partition("@")
            low, high, direction = span.split(":") if span else ("0", "1", "max")
            mechanism, *levels, value = answer.split("/")
            if (mechanism, len(levels)) not in (("rr", 1), ("gauss", 2)):
                raise ValueError
            epsilon = float(levels[0])
            gamma = float(levels[1]) if levels[1:] else None
            scale = Scale(float(low), float(high), direction)
            return Response(mechanism, epsilon, gamma, int(value), scale)
        except ValueError:
            raise InvalidInputError(
                "not a randomised response: have the outcome randomised where the person is, with "
                "`discreet respond`"
            ) from None


def chance(probability: float) -> bool:
    """True with exactly this probability: a float is a whole number over a power of
    two.
    """
    hits, cases = probability.as_integer_ratio()
    return secrets.randbelow(cases) < hits


def to_units(reward: float, grid: int) -> int:
    """A reward in whole units of 1/grid, rounded at random so that its mean is the
    reward exactly.
    """
    exact = reward * grid
    whole = math.floor(exact)
    return whole + chance(exact - whole)


def grid_of(strategy: Strategy) -> int:
    """Units of an outcome behind the wall: 1 (bits) for bet-se and randomised response,
    else fine.

    The units of noise at the smallest ε must still fit a 64-bit number.
    """
    if strategy.part.bits:
        return 1
    epsilon = strategy.epsilon if strategy.trust_model.noised and strategy.epsilon else 1.0
    return int(2 ** min(max(40 + math.floor(math.log2(epsilon)), 0), FINE))


def payable_delta(strategy: Strategy) -> float:
    """The δ to compute thresholds with, so that discrete noise keeps the promised one.

    The tails of discrete Laplace noise of η = ε/grid exceed those of Laplace noise by a
    factor of 2/(1 + e^-η), and no more; the proofs of adap-tt, adap-tt-star and dp-se
    use tails. bet-se pays for its noise exactly.
    """
    if not strategy.trust_model.noised or strategy.part.prices_noise or strategy.epsilon is None:
        return strategy.delta
    eta = strategy.epsilon / grid_of(strategy)
    return float(strategy.delta * (1.0 + math.exp(-eta)) / 2.0)


def largest_response(noise: float | None) -> float:
    """No response lies beyond, in units: a bit, or 40 standard deviations of noise
    (chance below e^-800).

    `noise` is the standard deviation, in rewards, of a Gaussian response, None of
    randomised response.
    """
    return 1.0 if noise is None else 2.0**FINE * (1 + 40 * noise)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
