"""Which rounds bet-se plays, slowly: who plays, how long, of which kind. Shares no line
with the package.
"""

import math

from tests.support.naive_bets import Announced


class NaivePlans:
    """The plans of a run; what they look at is kept by whoever plays it."""

    tails = True
    """Whether bets by tails are made."""
    means: tuple[float, ...]
    arms: range
    e: float | None
    shrink: float
    indifference_zone: float
    target_difference: float
    need: float
    n: int
    sums: dict[int, float]
    counts: dict[int, int]
    pulls: dict[int, int]
    mean: dict[int, float]
    sure: dict[int, float]
    money: dict[int, float]
    out: set[int]

    def centre(self, middle: float) -> float:
        """Where to bet, if the means of sums of the two leaders have this middle."""
        middle = max(middle, 0.5 - self.shrink / 2, 1 / 64)
        return min(middle, 0.5 + self.shrink / 2, 63 / 64)

    def finish(self, now: Announced) -> Announced:
        """What else is announced of a round."""
        return now

    def spread(self, centre: float, fine: bool) -> float:
        """The variance of what is summed."""
        return max(centre * (1 - centre), 0.001)

    # --- who --------------------------------------------------------------------------

    def ranking(self, arms: list[int]) -> list[int]:
        return sorted(arms, key=lambda a: (-self.mean[a], a))

    def inside(self) -> list[int]:
        return [a for a in self.arms if a not in self.out]

    def front(self) -> int:
        return self.ranking(self.inside() or list(self.arms))[0]

    def gap(self, a: int, c: int) -> tuple[float, float]:
        return self.mean[c] - self.mean[a], 1 / self.sure[c] + 1 / self.sure[a]

    # --- how long ---------------------------------------------------------------------

    def rate(self, gap: float, variance: float) -> float:
        if gap <= 0:
            return 0.0
        if self.e is None or gap / variance <= self.e:
            return gap**2 / variance / 2
        return self.e * (gap - self.e * variance / 2)

    def target_length(self) -> float:
        return self.people_for(self.need + 1.2, self.target_difference, 0.5)

    def first(self) -> Announced:
        e, two = self.e, len(self.means) == 2
        if e is None:
            length = 2 + math.ceil(min(2 / max(self.shrink, 1e-9) ** 2, 2**50))
        elif self.target_difference:
            wanted = (
                max(0.9 * self.target_length(), 3 / e)
                if two
                else max(0.3 * self.target_length(), 10 / e)
            )
            length = math.ceil(min(wanted, max(6 / e**2, 10 / e)))
        else:
            length = 2 + math.ceil((13 if two else 10) / e)
        now = Announced(0, 1, dict.fromkeys(self.arms, 1), length, 0.5)
        return self.choose(now, length)

    def choose(self, now: Announced, length: float) -> Announced:
        """Which release and which bets a round of this length has."""
        if self.e is not None:
            two, even = len(now.odds) == 2, len(set(now.odds.values())) == 1
            info = self.e**2 * length
            known = self.counts[now.leader] + self.counts[now.second]
            excess = 1 - 4 * now.centre * (1 - now.centre) if known else 1.0
            dear = info * 4 * self.spread(now.centre, True) < 8
            now.single = dear and two and even and info * excess < 4
            now.by_tails = dear and self.tails and (now.single or not even)
        return now

    def overslept(self, a: int) -> bool:
        return self.pulls[a] * 32 * math.exp(min(self.money[a] - self.need, 700) / 2) < self.n

    def who(self) -> list[int]:
        """The arms that play."""
        inside = self.inside() or list(self.arms)
        return [a for a in self.arms if a in inside or self.overslept(a)]

    def next(self, before: Announced) -> Announced:
        return self.plan(self.who(), self.n)

    def plan(self, active: list[int], n: int) -> Announced:
        """A round of these arms, after rounds with the lengths n."""
        leader, second = self.ranking(active)[:2]
        pull = 2 + (0 if self.e is None else 1 / self.e)
        levels = [(self.sums[a] + pull / 2) / (self.counts[a] + pull) for a in (leader, second)]
        centre, lead = self.centre(sum(levels) / 2), 1
        while (
            len(active) > 2 and lead < 16 and (lead == 1 or len(active) - 1 >= 4 * lead**2 / 4**0.3)
        ):
            lead *= 2
        now = Announced(leader, second, {a: lead if a == leader else 1 for a in active}, 0, centre)
        length = self.length(now, n)
        now.length = math.ceil(length)
        return self.choose(now, length)

    def believe(self, a: int, rival: int) -> float:
        """The gap as it was seen; a target difference is believed until releases contradict it."""
        gap, error = self.gap(a, rival)
        return max(
            gap,
            0.0,
            min(self.target_difference, gap + math.sqrt(error) / 2)
            if self.target_difference
            else 0.0,
        )

    def length(self, now: Announced, n: int) -> float:
        two = len(now.odds) == 2
        variance = self.spread(now.centre, True) * (1 + 1 / now.odds[now.leader])
        longest = 2.0 * n
        if two and self.target_difference and self.e is not None:
            longest = max(longest, min(self.target_length(), 6 / self.e**2))
        needs = []
        for a in now.odds:
            if a != now.leader:
                gap = self.believe(a, now.leader) + self.indifference_zone
                nats = max(self.need - self.money[a] + 2.5, 0.5)
                needs.append(min(self.people_for(nats, gap, variance), longest))
        middle = math.sqrt(min(needs) * max(needs))
        middle /= 1 + (math.inf if self.e is None else 2 * self.e**2 * n * variance / 100)
        return min(max(middle, n / 30), longest)

    def people_for(self, nats: float, gap: float, variance: float) -> float:
        """How many people of an arm should win so many nats."""
        rate = self.rate(gap, variance)
        return nats / rate if rate > 0 else math.inf
