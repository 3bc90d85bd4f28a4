"""The bets of bet-se, slowly: what each outcome multiplies money by, and what noise
costs. Shares no line with the package.
"""

import math
from dataclasses import dataclass


def log_of_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(sum(math.exp(x - top) for x in logs))


TellResult = tuple[float, ...]
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

    def score(self, own: TellResult, rival: TellResult) -> float:
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


def mixture(
    shrink: float, top: float | None, target_difference: float
) -> tuple[list[float], list[float]]:
    """Tilts falling, and what each has of the stake; `top` bounds them where there is
    noise.
    """
    octaves = [j + 0.5 for j in range(20)]
    tilts = [3 * shrink * 2**-o for o in octaves]
    shares = [1 / (1 + ((o - 3.5) / 1.5) ** 2) for o in octaves]
    shares = [share / sum(shares) for share in shares]
    if target_difference:
        near = []
        for tilt in tilts:
            off = math.log2(tilt / (2 * target_difference))
            near.append(1 / (1 + (off / (0.7 if off < 0 else 2)) ** 2) ** 2)
        shares = [0.6 * x + 0.4 * y / sum(near) for x, y in zip(shares, near, strict=True)]
    high = sum(tilt >= top / 2 for tilt in tilts) if top is not None else 0
    if top is not None and high:
        tilts = [0.7 * top, *tilts[high:]]
        shares = [sum(shares[:high]), *shares[high:]]
    return tilts, shares


# --- what noise costs -----------------------------------------------------------------


def moment(slope: float, e: float | None) -> float:
    """log E exp(slope Z)."""
    if e is None or e > 300:
        return 0.0
    whole, more, less = (math.sinh(x / 2) for x in (e, e + slope, e - slope))
    return 2 * math.log(whole) - math.log(more) - math.log(less)


def tail(tick: float) -> float:
    """log sup_w e^w P(tick Z >= w), if Z is discrete Laplace with parameter `tick`."""
    return -math.log(1 + math.exp(-tick))


# --- a round --------------------------------------------------------------------------


@dataclass
class Announced:
    """A round before it is played."""

    leader: int
    second: int
    odds: dict[int, int]
    length: int
    centre: float
    by_tails: bool = False
    single: bool = False
    fine: bool = False

    @property
    def kind(self) -> str:
        kind = ("difference" if self.single else "sums") + " by tails" * self.by_tails
        return kind + (" of numbers" if self.fine else "")

    def rival(self, a: int) -> int:
        return self.second if a == self.leader else self.leader

    def weigh(self, tilt: float, a: int, centre: float) -> Weights:
        x = 0.5 if self.single else centre
        return weights(tilt, x, self.odds[a], self.odds[self.rival(a)])
