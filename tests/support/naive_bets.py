"""The bets of bet-se, slowly: what each outcome multiplies money by, and what noise
costs. Shares no line with the package.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field


def log_of_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(sum(math.exp(x - top) for x in logs))


Told = tuple[float, ...]
"""What was released of an arm: sum and people; of numbers also how close they were."""


@dataclass
class Weights:
    """What a person does to money, in logs: of the arm with outcome 0 or 1, of the
    rival with outcome 0 or 1; `step` is d. What one who is close to the centre does
    more: one of the arm, one of the rival.
    """

    own: tuple[float, float]
    rival: tuple[float, float]
    step: float
    close: tuple[float, float] = (0.0, 0.0)

    def score(self, own: Told, rival: Told) -> float:
        """T of an arm and its rival."""
        value = 0.0
        for (no, yes), close, (total, people, *near) in zip(
            (self.own, self.rival), self.close, (own, rival), strict=True
        ):
            value += (yes - no) * total + no * people + close * sum(near)
        return value

    @property
    def slopes(self) -> tuple[float, float]:
        return self.own[0] - self.own[1], self.rival[1] - self.rival[0]


def weights(tilt: float, centre: float, own_odds: int, rival_odds: int) -> Weights:
    """The largest d whose four logs differ by the tilt at most."""
    down, up = -math.expm1(-tilt), math.expm1(tilt)
    d = min(down / (1 - centre * down), rival_odds / own_odds * up / (1 + centre * up))
    e = d * own_odds / rival_odds
    return Weights(
        (math.log1p(d * centre), math.log1p(-d * (1 - centre))),
        (math.log1p(-e * centre), math.log1p(e * (1 - centre))),
        d,
    )


def mixture(shrink: float, e: float | None, hint: float) -> tuple[list[float], list[float]]:
    """Tilts falling, and what each has of the stake."""
    octaves = [(j + 0.5) / 2 for j in range(40)]
    tilts = [3 * shrink * 2**-o for o in octaves]
    shares = [1 / (1 + ((o - 3.5) / 1.5) ** 2) for o in octaves]
    shares = [share / sum(shares) for share in shares]
    if hint:
        near = []
        for tilt in tilts:
            off = math.log2(tilt / (2 * hint))
            near.append(1 / (1 + (off / (0.7 if off < 0 else 2)) ** 2) ** 2)
        shares = [0.6 * x + 0.4 * y / sum(near) for x, y in zip(shares, near, strict=True)]
    high = sum(tilt >= e / 2 for tilt in tilts) if e is not None else 0
    if e is not None and high:
        whole = sum(shares[:high])
        tilts = [0.8 * e, 0.6 * e, *tilts[high:]]
        shares = [whole / 2, whole / 2, *shares[high:]]
    return tilts, shares


# --- what noise costs -----------------------------------------------------------------


def moment(slope: float, e: float | None) -> float:
    """log E exp(slope Z)."""
    if e is None or e > 300:
        return 0.0
    whole, more, less = (math.sinh(x / 2) for x in (e, e + slope, e - slope))
    return 2 * math.log(whole) - math.log(more) - math.log(less)


def one_tail(beta: float, e: float) -> float:
    """log sup_u e^u P(beta X >= u); X an exponential variable, negative with odds e^-e.

    The slope of the logarithm is 1 - 1/beta above 0 and vanishes below where the share
    of X below u is beta / (1 + beta).
    """
    minus = 1 / (1 + math.exp(e))
    u = beta * math.log(beta / (1 + beta) / minus)
    return math.log(1 - minus) if u >= 0 else u + math.log(1 - minus * math.exp(u / beta))


def two_tails(one: float, two: float, e: float) -> float:
    """The same for the sum of two, by partial fractions of its generating function.

    Two nearly equal slopes count as equal: both the larger above 0, the smaller below.
    """
    minus = 1 / (1 + math.exp(e))
    plus = 1 - minus
    big, small = max(one, two), min(one, two)
    if small > 0.98 * big:
        if big >= 1:
            return math.inf
        candidates = [0.0, max(0.0, big / (1 - big) - big / plus)]
        above = [u + math.log(plus + plus**2 * u / big) - u / big for u in candidates]

        def left(t: float) -> float:
            return -t + math.log(1 - math.exp(-t / small) * (minus + minus**2 * t / small))

        return max(*above) if minus <= small else max(*above, largest(left))

    def generate(b: float, t: float) -> float:
        return plus / (1 - b * t) + minus / (1 + b * t)

    p, q = plus * generate(small, 1 / big), plus * generate(big, 1 / small)
    x, y = p * (1 - 1 / big), q * (1 - 1 / small)
    if x == 0:
        return math.log(p)
    if -x <= y:  # rising at 0
        u = math.log(-y / x) / (1 / small - 1 / big)
        return math.log(p * math.exp(u - u / big) + q * math.exp(u - u / small))
    p, q = minus * generate(small, -1 / big), minus * generate(big, -1 / small)
    return largest(lambda t: -t + math.log(1 - p * math.exp(-t / big) - q * math.exp(-t / small)))


def largest(f: Callable[[float], float]) -> float:
    """A bound on the largest value on [0, 1] of a function -t + g(t), g rising, that
    rises, then falls: from the ends of the 4096th in which it is largest.
    """
    low, high = 0.0, 1.0
    for _ in range(100):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (one, high) if f(one) < f(two) else (low, two)
    right = (math.floor(4096 * low) + 1) / 4096
    return f(right) + 1 / 4096


# --- a round --------------------------------------------------------------------------


@dataclass
class Announced:
    """A round before it is played."""

    leader: int
    second: int
    odds: dict[int, int]
    length: int
    centre: float
    dear: bool = False
    single: bool = False
    fine: bool = False
    tails: dict[int, tuple[float, Weights, float]] = field(default_factory=dict)
    """sigma, score, log A"""

    @property
    def kind(self) -> str:
        if self.single and len(self.odds) > 2:
            return "margin over many"
        kind = ("dear " if self.dear else "") + ("difference" if self.single else "sums")
        return kind + (" of numbers" if self.fine else "")

    def rival(self, a: int) -> int:
        return self.second if a == self.leader else self.leader

    def weigh(self, tilt: float, a: int, centre: float) -> Weights:
        x = 0.5 if self.single else centre
        return weights(tilt, x, self.odds[a], self.odds[self.rival(a)])
