"""Which rounds bet-se plays, slowly: who plays, how long, of which kind. Shares no line
with the package.
"""

import math

from tests.support.naive_bets import Announced


class NaivePlans:
    """The plans of a run; what they look at is kept by whoever plays it."""

    margins, looks = True, 40.0
    """Whether margins over many are played; what sets the shortest round."""
    means: tuple[float, ...]
    arms: range
    top_two: bool
    e: float | None
    shrink: float
    zeta: float
    hint: float
    need: float
    n: int
    sums: dict[int, float]
    counts: dict[int, int]
    pulls: dict[int, int]
    met: dict[tuple[int, int], int]
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

    def hinted(self) -> float:
        return (self.need + 1.2) / self.rate(self.hint, 0.5)

    def first(self) -> Announced:
        e, two = self.e, len(self.means) == 2
        if e is None:
            length = 2 + math.ceil(min(2 / max(self.shrink, 1e-9) ** 2, 2**50))
        elif self.hint:
            wanted = max(0.9 * self.hinted(), 3 / e) if two else max(0.3 * self.hinted(), 10 / e)
            length = math.ceil(min(wanted, max(6 / e**2, 10 / e)))
        else:
            length = 2 + math.ceil((13 if two else 10) / e)
        info = math.inf if e is None else e**2 * length
        return Announced(0, 1, dict.fromkeys(self.arms, 1), length, 0.5, info < 8, two and info < 4)

    def overslept(self, a: int) -> bool:
        return self.pulls[a] * 32 * math.exp(min(self.money[a] - self.need, 700) / 2) < self.n

    def who(self) -> tuple[list[int], int]:
        """The arms that play, and the people behind each."""
        inside = self.inside() or list(self.arms)
        if not self.top_two:
            return [a for a in self.arms if a in inside or self.overslept(a)], self.n
        boss = self.ranking(inside)[0]
        late, costs = [], []
        for a in self.arms:
            if a != boss and a in inside:
                met = self.met.get((a, boss), 0) if self.zeta else self.pulls[a]
                gap, error = self.gap(a, boss)
                costs.append((gap**2 / error, a))
                if 2 * len(self.means) * met < self.n:
                    late.append((met, a))
            elif a != boss and self.overslept(a):
                late.append((self.pulls[a], a))
        other = min(late or costs)[1]
        return sorted([boss, other]), max(self.pulls[other], 1)

    def next(self, before: Announced) -> Announced:
        active, n = self.who()
        return self.plan(active, n, before.single)

    def plan(self, active: list[int], n: int, again: bool) -> Announced:
        """A round of these arms, with n people behind each; `again` if the last one
        was a margin.
        """
        leader, second = self.ranking(active)[:2]
        pull, two = 2 + (0 if self.e is None else 1 / self.e), len(active) == 2
        levels = [(self.sums[a] + pull / 2) / (self.counts[a] + pull) for a in (leader, second)]
        centre = self.centre(sum(levels) / 2)
        rivals = len(active) - 1
        lead = 2 ** min(4, max(0, math.floor(math.log2(math.sqrt(rivals)) + 0.3)))
        now = Announced(leader, second, {a: lead if a == leader else 1 for a in active}, 0, centre)
        spread = self.spread(centre, True)
        if self.e is not None:
            gap, error = self.gap(second, leader)
            if self.margins and self.hint and not two and not again and gap**2 > error:
                length = self.over_many(now, n)
                if self.e**2 * length < 0.5:
                    now.odds = dict.fromkeys(active, 1)
                    now.length, now.dear, now.single = math.ceil(length), True, True
                    return now
            length = self.dear(now, n, spread * (1 + 1 / lead))
            if self.e**2 * length * 4 * spread < 8:
                now.length, now.dear = math.ceil(length), True
                known = self.counts[leader] + self.counts[second]
                excess = 1 - 4 * centre * (1 - centre) if known else 1.0
                now.single = two and self.e**2 * length * excess < 4
                return now
        now.length = self.cheap(now, n, spread)
        return now

    def believe(self, a: int, leader: int, hint: float) -> float:
        gap, error = self.gap(a, leader)
        gap = max(gap, 0.0)
        seen = gap**3 / (gap**2 + 0.4 * error)
        return max(seen, min(hint, gap + math.sqrt(error) / 2)) if hint else seen

    def dear(self, now: Announced, n: int, variance: float) -> float:
        two = len(now.odds) == 2
        longest = 2.7 * n if two else 2.0 * n
        hint = self.hint if two else 0.0
        if hint:
            longest = max(longest, self.hinted())
        needs = []
        for a in now.odds:
            if a != now.leader:
                rate = self.rate(self.believe(a, now.leader, hint) + self.zeta, variance)
                lack = self.need - self.money[a] + math.log(1 / 0.6) + (0.5 if two else 2)
                needs.append(min(max(lack, 0.5) / max(rate, 1e-300), longest))
        return min(max(math.sqrt(min(needs) * max(needs)), n / 5), longest)

    def over_many(self, now: Announced, n: int) -> float:
        needs = []
        for a in now.odds:
            if a != now.leader:
                rate = self.rate(self.believe(a, now.leader, self.hint), 0.5)
                needs.append(max(self.need - self.money[a] + 1.2, 0.5) / max(rate, 1e-300))
        if max(needs) > 3 * min(needs):
            return math.inf
        return min(max(*needs, n / 5), max(2 * n, self.hinted()))

    def cheap(self, now: Announced, n: int, spread: float) -> int:
        info = math.inf if self.e is None else self.e**2 * n * 4 * spread
        shortest = min(max(self.looks / info, 0.03), 0.2) * n
        goal, boss = self.need + 10 / (1 + info / 50) - 6, self.front()

        def enough(length: float) -> bool:
            for a in now.odds:
                gap = max(self.mean[boss] - self.mean[a], 0.0) + self.zeta
                sampling = length * gap**2 / (8 * spread)
                nats = 2 * sampling
                if self.e is not None:
                    z = self.e * length * gap / 2
                    noise = z - 1 + math.exp(-z)
                    nats = nats * noise / max(sampling + noise, 1e-300)
                if a != boss and self.money[a] + nats >= goal:
                    return True
            return False

        if enough(shortest):
            return math.ceil(shortest)
        length = 2.0 * n
        while enough(length / 1.1):
            length /= 1.1
        return math.ceil(length)
