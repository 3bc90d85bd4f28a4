"""The oracle's other sampling rules, from their papers: Top Two with other leaders and
challengers (Jourdan et al. 2022), Track-and-Stop (Garivier & Kaufmann 2016). Shares no
code with discreet: what it solves, it solves by halving.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from scipy.optimize import brentq


def halve(low: float, high: float, too_high: Callable[[float], bool]) -> float:
    """Where a condition becomes true, to the last bit."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        low, high = (low, middle) if too_high(middle) else (middle, high)


def hashed(text: int) -> int:
    """Two rounds of (x xor x >> 16) · 0x45d9f3b modulo 2^32, and x xor x >> 16."""
    for _ in range(2):
        text = (text ^ (text // 2**16)) * 0x45D9F3B % 2**32
    return text ^ (text // 2**16)


def ts_leader(
    means: Sequence[float], pulls: Sequence[int], sums: Sequence[float], variance2: float
) -> int:
    """B_n = argmax of one posterior draw each; the coins are a hash of counts and
    sums.
    """
    text = 1
    for n, total in zip(pulls, sums, strict=True):
        text = hashed(text ^ (n % 2**32))
        text = hashed(text ^ (math.trunc(65536 * total) % 2**32))
    draws = []
    for a, (mean, n) in enumerate(zip(means, pulls, strict=True)):
        u, v = (hashed(text ^ (2 * a + 1)) + 0.5) / 2**32, hashed(text ^ (2 * a + 2)) / 2**32
        normal = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
        draws.append(mean + math.sqrt(variance2 / 2 / n) * normal)
    return max(range(len(means)), key=lambda a: (draws[a], -a))


@lru_cache(maxsize=10**5)
def allocation(best: int, tops: tuple[float, ...]) -> tuple[float, ...]:
    """ω*: all costs d_a x/(1 + x) are equal, and the squares of the ratios x add up to
    1.
    """
    others = [a for a in range(len(tops)) if a != best]
    tied = [a for a in others if tops[a] <= 0]
    if tied:
        ratio = {a: (1 / math.sqrt(len(tied)) if a in tied else 0.0) for a in others}
    else:
        least = min(tops[a] for a in others)

        def ratios(y: float) -> dict[int, float]:
            return {a: y / (tops[a] - y) for a in others}

        level = halve(0.0, least / 2, lambda y: sum(x * x for x in ratios(y).values()) > 1)
        ratio = ratios(level)
    total = 1 + math.fsum(ratio.values())
    return tuple(1 / total if a == best else ratio[a] / total for a in range(len(tops)))


def kl(p: float, q: float) -> float:
    """0 log 0 = 0."""
    one = p * math.log(p / q) if p > 0 else 0.0
    return one + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_allocation(best: int, means: tuple[float, ...]) -> tuple[float, ...]:
    """ω* of T*_KL, the best mean unique: Theorem 5 of Garivier & Kaufmann, by two
    nested searches.
    """
    p, others = means[best], [a for a in range(len(means)) if a != best]

    def moved(a: int, x: float) -> tuple[float, float]:
        m = (p + x * means[a]) / (1 + x)
        return kl(p, m), kl(means[a], m)

    def lack(x: float, a: int, y: float) -> float:
        one, other = moved(a, x)
        return one + x * other - y

    def ratios(y: float) -> dict[int, float]:
        return {a: brentq(lack, 1e-12, 1e9, (a, y), xtol=1e-300, rtol=1e-14) for a in others}

    def ratio(a: int, x: float) -> float:
        one, other = moved(a, x)
        return one / other

    top = min(lack(1e9, a, 0.0) for a in others)
    y = brentq(
        lambda y: sum(ratio(a, x) for a, x in ratios(y).items()) - 1,
        1e-6 * top,
        0.999 * top,
        rtol=1e-14,
    )
    found = ratios(y)
    total = 1 + math.fsum(found.values())
    return tuple(1 / total if a == best else found[a] / total for a in range(len(means)))


def projected(weights: Sequence[float], floor: float) -> list[float]:
    """The nearest allocation in the maximum norm with every share at least the
    floor.
    """
    if min(weights) >= floor:
        return list(weights)
    cut = halve(0.0, 1.0, lambda c: math.fsum(max(floor, w - c) for w in weights) < 1)
    return [max(floor, w - cut) for w in weights]


class Tracker:
    """C-tracking: pull the arm furthest behind the sum of its shares, which are whole
    numbers of 2^-20.
    """

    def __init__(self, arms: int) -> None:
        self.owed = [2**20] * arms

    def arm(
        self,
        best: int,
        means: Sequence[float] | None,
        tops: Sequence[float],
        pulls: Sequence[int],
    ) -> int:
        """With `means` by T*_KL, else by the numerators of quadratic costs."""
        arms, n = len(pulls), sum(pulls)
        if means is not None and min(top for a, top in enumerate(tops) if a != best) > 0:
            aim = kl_allocation(best, tuple(means))
        else:
            aim = allocation(best, tuple(tops))
        shares = projected(aim, 1 / (2 * math.sqrt(arms**2 + n)))
        units = [max(math.floor(2**20 * share + 0.5), 1) for share in shares]
        units[best] += 2**20 - sum(units)
        self.owed = [owed + unit for owed, unit in zip(self.owed, units, strict=True)]
        behind = [self.owed[a] - 2**20 * pulls[a] for a in range(arms)]
        return behind.index(max(behind))
