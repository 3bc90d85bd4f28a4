"""The wall: the only place that makes live noise. Every release and every response states its ε.

Outcomes are rounded at random to a grid of whole units, without bias, so that sums are whole numbers; the noise is
whole too, drawn exactly by OpenDP from the system's randomness. Nothing here takes a seed. The scale of each mechanism
is the smallest whose own privacy map keeps the promised ε. The docs page "Live trials" has the proofs.
"""

import math
import numbers
import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.errors import InvalidInputError, MissingExtraError
from discreet.strategies.strategy import Strategy
from discreet.validate import check_epsilon, check_gamma

LARGEST = 1e100
"""Of an end of the range of outcomes."""
FINE = 20
"""Outcomes are kept in units of 2^-20 where noise need not be on bits: a billion people add up to 2^50."""


@dataclass(frozen=True)
class Response:
    """An answer that was randomised where the person is; the only thing a trial with local trust takes."""

    mechanism: str
    """`rr`, randomised response on a bit; `gauss`, a sum of the outcome and discrete Gaussian noise."""
    epsilon: float
    gamma: float | None
    value: int
    """The bit, or the noisy outcome in units of the grid."""
    scale: "Scale"
    """Which outcomes there are and which are better, as it was randomised."""

    def __post_init__(self) -> None:
        """Refuse what no mechanism of ours gives."""
        whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        if self.mechanism not in ("rr", "gauss") or not whole or (self.mechanism == "rr" and self.value not in (0, 1)):
            raise InvalidInputError("not a randomised response: make one with privacy.respond")

    def __str__(self) -> str:
        """The response as one word, to be sent; `Response.parse` reads it."""
        levels = f"{self.epsilon!r}" if self.gamma is None else f"{self.epsilon!r}/{self.gamma!r}"
        span = f"@{self.scale.low!r}:{self.scale.high!r}:{self.scale.direction}" if self.scale != Scale() else ""
        return f"{self.mechanism}/{levels}/{self.value}{span}"

    @staticmethod
    def parse(word: str) -> "Response":
        """The response that was written as a word. A bare number, such as a raw outcome, is refused."""
        try:
            answer, _, span = word.strip().partition("@")
            low, high, direction = span.split(":") if span else ("0", "1", "max")
            mechanism, *levels, value = answer.split("/")
            if (mechanism, len(levels)) not in (("rr", 1), ("gauss", 2)):
                raise ValueError
            epsilon, gamma = float(levels[0]), float(levels[1]) if levels[1:] else None
            return Response(mechanism, epsilon, gamma, int(value), Scale(float(low), float(high), direction))
        except ValueError:
            raise InvalidInputError(
                "not a randomised response: have the outcome randomised where the person is, with `discreet respond`"
            ) from None


@dataclass(frozen=True)
class Scale:
    """How an experimenter's outcomes become rewards in [0, 1], where more is better, and back."""

    low: float = 0.0
    high: float = 1.0
    direction: str = "max"

    def __post_init__(self) -> None:
        """Refuse a range or a direction that makes no sense."""
        ends = [end for end in (self.low, self.high) if isinstance(end, numbers.Real) and not isinstance(end, bool)]
        if len(ends) < 2 or not -LARGEST <= self.low < self.high <= LARGEST or self.high - self.low < 1 / LARGEST:
            raise InvalidInputError(
                f"range must be two numbers (low, high) with low < high, not beyond ±{LARGEST:g} nor closer than "
                f"{1 / LARGEST:g}"
            )
        if self.direction not in ("max", "min"):
            raise InvalidInputError(f"direction must be max or min; got {self.direction!r}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def reward(self, outcome: float) -> float:
        """The reward of an outcome. The error does not repeat the outcome: errors end up in logs."""
        try:
            value = math.nan if isinstance(outcome, str) or np.ndim(outcome) else float(outcome)
        except (TypeError, ValueError, ArithmeticError):
            value = math.nan
        if not self.low <= value <= self.high:
            raise InvalidInputError(
                f"the outcome must be a number from {self.low:g} to {self.high:g}, the range in the protocol"
            )
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return share if self.direction == "max" else 1.0 - share

    def shown(self, reward: float) -> float:
        """A mean reward in the experimenter's units."""
        share = reward if self.direction == "max" else 1.0 - reward
        return self.low + share * (self.high - self.low)


def chance(probability: float) -> bool:
    """True with exactly this probability: a float is a whole number over a power of two."""
    hits, cases = probability.as_integer_ratio()
    return secrets.randbelow(cases) < hits


def to_units(reward: float, grid: int) -> int:
    """A reward as a whole number of units 1/grid, rounded at random so that its mean is the reward exactly."""
    exact = reward * grid
    whole = math.floor(exact)
    return whole + chance(exact - whole)


def respond(
    outcome: float,
    epsilon: float,
    gamma: float | None = None,
    range: tuple[float, float] = (0.0, 1.0),
    direction: str = "max",
) -> Response:
    """Randomise one outcome where the person is: ε-DP, or (ε, γ)-DP with Gaussian noise if gamma is given.

    An outcome in [0, 1] becomes a bit with that chance, then the bit is flipped with probability 1/(1 + e^ε). Call it
    once for each outcome, and send only what it returns.
    """
    scale = Scale(*range, direction)
    reward = scale.reward(outcome)
    check_epsilon(epsilon)
    if gamma is None:
        bit = _answerer(float(epsilon))(bool(to_units(reward, 1)))
        return Response("rr", float(epsilon), None, int(bit), scale)
    check_gamma(gamma)
    noise = _gaussian(float(epsilon), float(gamma))
    return Response("gauss", float(epsilon), float(gamma), int(noise(to_units(reward, 2**FINE))), scale)


def largest_response(strategy: Strategy) -> float:
    """No response lies beyond, in units: a bit, or 40 standard deviations of Gaussian noise (chance below e^-800)."""
    if strategy.gamma is None:
        return 1.0
    return 2.0**FINE * (1 + 40 * gaussian_noise_scale(float(strategy.epsilon or 0), strategy.gamma))


def ready() -> None:
    """Refuse before anyone is asked if there could be no noise."""
    _opendp()


def grid_of(strategy: Strategy) -> int:
    """Units of an outcome behind the wall: 1 (bits) for bet-se and randomised response, else fine.

    The units of noise at the smallest ε must still fit a 64-bit number.
    """
    if strategy.estimator in ("bets", "ctb"):
        return 1
    epsilon = strategy.epsilon if strategy.trust == "global" and strategy.epsilon else 1.0
    return int(2 ** min(max(40 + math.floor(math.log2(epsilon)), 0), FINE))


def payable_delta(strategy: Strategy) -> float:
    """The δ to compute thresholds with, so that discrete noise keeps the promised one.

    The tails of discrete Laplace noise of η = ε/grid exceed those of Laplace noise by a factor of 2/(1 + e^-η), and no
    more; the proofs of adap-tt, adap-tt-star and dp-se use tails. bet-se pays for its noise exactly.
    """
    if strategy.trust != "global" or strategy.estimator == "bets" or strategy.epsilon is None:
        return strategy.delta
    return float(strategy.delta * (1.0 + math.exp(-strategy.epsilon / grid_of(strategy))) / 2.0)


def noisy_sum(total: int, epsilon: float, grid: int) -> tuple[int, float]:
    """(total + discrete Laplace noise, the ε it costs), for a sum to which one person adds 0 to `grid` units."""
    mechanism, spent = _laplace(epsilon, grid)
    return int(mechanism(total)), spent


def gaussian_noise_scale(epsilon: float, gamma: float) -> float:
    """The standard deviation, in rewards, of the noise in a Gaussian response."""
    return float(_gaussian_scale(epsilon, gamma) / 2**FINE)


def response_epsilon(epsilon: float, gamma: float | None = None) -> float:
    """The ε that one response costs by its mechanism's own map."""
    if gamma is None:
        return float(_answerer(epsilon).map(1))
    return _gaussian_cost(_gaussian_scale(epsilon, gamma), gamma)


# --- OpenDP ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _opendp() -> Any:
    """OpenDP with its vetted mechanisms switched on: global state of that library, touched here only."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError('live noise needs OpenDP: pip install "discreet[live]"') from None
    dp.enable_features("contrib")
    return dp


def _integers() -> tuple[Any, Any]:
    dp = _opendp()
    return dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64)


@lru_cache(maxsize=64)
def _laplace(epsilon: float, grid: int) -> tuple[Any, float]:
    scale = grid / epsilon
    while True:
        mechanism = _opendp().m.make_laplace(*_integers(), scale=scale)
        spent = float(mechanism.map(grid))
        if spent <= epsilon:
            return mechanism, spent
        scale = math.nextafter(scale, math.inf)


@lru_cache(maxsize=64)
def _answerer(epsilon: float) -> Any:
    """Randomised response that tells the truth with the largest probability its map allows, nearly e^ε/(1 + e^ε)."""
    truth = min(1.0 / (1.0 + math.exp(-epsilon)), math.nextafter(1.0, 0.0))
    while True:
        mechanism = _opendp().m.make_randomized_response_bool(prob=truth)
        if float(mechanism.map(1)) <= epsilon:
            return mechanism
        truth = math.nextafter(truth, 0.0)


@lru_cache(maxsize=64)
def _gaussian(epsilon: float, gamma: float) -> Any:
    return _opendp().m.make_gaussian(*_integers(), scale=_gaussian_scale(epsilon, gamma))


@lru_cache(maxsize=64)
def _gaussian_scale(epsilon: float, gamma: float) -> float:
    """The smallest scale, to 1 in 10^9, at which OpenDP's map gives at most ε at this γ."""
    if not 1e-6 <= epsilon <= 1e4:
        raise InvalidInputError("live Gaussian responses need an epsilon between 1e-6 and 1e4")
    high = 2.0**FINE
    while _gaussian_cost(high, gamma) > epsilon:
        high *= 2.0
    low = high / 2.0
    while _gaussian_cost(low, gamma) <= epsilon:
        low, high = low / 2.0, low
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        if _gaussian_cost(middle, gamma) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def _gaussian_cost(scale: float, gamma: float) -> float:
    dp = _opendp()
    noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*_integers(), scale=scale))
    return float(noise.map(2**FINE).epsilon(gamma))
