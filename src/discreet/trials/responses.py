"""Outcomes of a live trial: their units, and the answers that were randomised before
they came.

Outcomes are rounded at random to a grid of whole units, without bias, so that sums are
whole numbers. Nothing here makes noise, and nothing needs OpenDP.
"""

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidInputError
from discreet.scale import Scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import CENTRE_UNITS, FINE_UNITS, LEVELS, choose_grid, choose_kind
from discreet.validation import quote

MAX_RESPONSE_CHARACTERS = 500
"""A randomised response in words is far shorter."""


@dataclass(frozen=True)
class Response:
    """An answer that was randomised before it left the person; a trial with local trust
    accepts nothing else.
    """

    mechanism: str
    """`rr`, randomised response on a bit; `levels`, on one of three levels; `gauss`, a
    sum of the outcome and discrete Gaussian noise.
    """
    epsilon: float
    gamma: float | None
    value: int
    """The bit, or the level or noisy outcome in units of the grid."""
    scale: Scale
    """Which outcomes there are and which are better, as it was randomised."""
    middle_level: float | None = None
    """The middle one of three levels, in rewards."""

    def __post_init__(self) -> None:
        """Refuse what no mechanism of ours gives."""
        values = {"rr": (0, 1), "levels": (0, CENTRE_UNITS, middle_units(self.middle_level))}
        whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        word = self.mechanism if isinstance(self.mechanism, str) else ""
        known = whole and self.value in values.get(word, ())
        extra = {"rr": (), "levels": ("middle_level",), "gauss": ("gamma",)}.get(word)
        given = tuple(name for name in ("middle_level", "gamma") if getattr(self, name) is not None)
        if extra != given or not whole or not (known or word == "gauss"):
            raise InvalidInputError("not a randomised response: make one with discreet.respond")

    def __str__(self) -> str:
        """The response as one word, to be sent; `Response.parse` reads it."""
        more = self.gamma if self.middle_level is None else self.middle_level
        levels = f"{self.epsilon!r}" if more is None else f"{self.epsilon!r}/{more!r}"
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
            if len(word) > MAX_RESPONSE_CHARACTERS:
                raise ValueError
            answer, _, span = word.strip().partition("@")
            low, high, direction = span.split(":") if span else ("0", "1", "max")
            mechanism, *levels, value = answer.split("/")
            if (mechanism, len(levels)) not in (("rr", 1), ("levels", 2), ("gauss", 2)):
                raise ValueError
            epsilon, more = float(levels[0]), float(levels[1]) if levels[1:] else None
            scale = Scale(float(low), float(high), direction)
            if mechanism == "levels":
                return Response(mechanism, epsilon, None, int(value), scale, more)
            return Response(mechanism, epsilon, more, int(value), scale)
        except (AttributeError, TypeError, ValueError):
            raise InvalidInputError(
                "not a randomised response: randomise the outcome where the person is, with "
                "`discreet respond`"
            ) from None


def middle_units(middle: float | None) -> int:
    """A middle level in units; refuses what is never announced as one."""
    if middle is None:
        return 0
    units = middle * CENTRE_UNITS if isinstance(middle, float | int) else math.nan
    if not CENTRE_UNITS / 64 <= units <= CENTRE_UNITS * 63 / 64 or units != round(units):
        raise InvalidInputError(
            "middle_level must be the level that was announced with the assignment, on the scale "
            f"from 0 (worst) to 1 (best) and a multiple of 1/{CENTRE_UNITS} from 1/64 to 63/64; "
            f"got {quote(middle)}"
        )
    return round(units)


def to_level(reward: float, middle: float) -> int:
    """A reward rounded at random to one of the levels 0, middle and 1, numbered from 0,
    so that its mean is the reward exactly.
    """
    low, high = (0, Fraction(middle)) if reward < middle else (Fraction(middle), 1)
    share = (Fraction(reward) - low) / (high - low)
    up = secrets.randbelow(share.denominator) < share.numerator
    return int(reward >= middle) + up


def response_kind(strategy: Strategy) -> str:
    """The mechanism by which answers to this strategy are randomised."""
    if strategy.spec.gamma:
        return "gauss"
    return "levels" if choose_kind(strategy) == LEVELS else "rr"


def flip_coin(probability: float) -> bool:
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
    return whole if whole == exact else whole + flip_coin(exact - whole)


def payable_delta(strategy: Strategy) -> float:
    """The δ to compute thresholds with, so that discrete noise keeps the promised one.

    The tails of discrete Laplace noise of η = ε/grid exceed those of Laplace noise by a
    factor of 2/(1 + e^-η), and no more; the proofs of adap-tt, adap-tt-star and dp-se
    use tails. bet-se pays for its noise exactly, and discrete Gaussian noise has the
    moments that its price is made of.
    """
    laplace = strategy.trust_model.noised and strategy.is_pure
    if not laplace or strategy.spec.prices_noise:
        return strategy.delta
    eta = float(strategy.epsilon or 0) / choose_grid(strategy)
    return float(strategy.delta * (1.0 + math.exp(-eta)) / 2.0)


def compute_largest_response(noise: float | None, grid: int) -> float:
    """No response lies beyond, in units: the best outcome, or 40 standard deviations of
    noise (chance below e^-800).

    `noise` is the standard deviation, in rewards, of a Gaussian response, None of
    randomised response.
    """
    return grid if noise is None else 2.0**FINE_UNITS * (1 + 40 * noise)
