"""bet-se, slowly, from its definitions; shares no line with the package.

Every bet is written as what each person's outcome multiplies money by, every tilt has
its own account, tail constants come from the generating function of the noise, plans
are spelt out. Chance is drawn in the order of the compiled loop, so runs are equal.
"""

import math
from typing import Any

import numpy as np

from tests.support.naive_bets import Announced, log_of_sum, moment, one_tail, spread_at, two_tails


class NaiveBetting:
    """One setting; `run` plays it."""

    def __init__(
        self,
        means: tuple[float, ...],
        epsilon: float | None,
        delta: float,
        trust: str = "global",
        zeta: float = 0.0,
        sampling: str = "elimination",
        hint: float = 0.0,
    ) -> None:
        self.means, self.arms, self.top_two = means, range(len(means)), sampling == "top-two"
        self.shrink = math.tanh((epsilon or 0) / 2) if trust == "local" else 1.0
        self.e = epsilon if trust == "global" else None
        self.zeta, self.hint = zeta * self.shrink, hint * self.shrink
        self.need = math.log((2 if zeta else 1) / delta)
        self.zeta_need = math.log(2 * (len(means) - 1) / delta)
        self.tilts, self.shares = self.mixture()
        self.loud = 0 if self.e is None else sum(tilt >= self.e / 4 for tilt in self.tilts)
        self.kinds: list[str] = []
        """Of the rounds of the last run."""

    def mixture(self) -> tuple[list[float], list[float]]:
        """Tilts falling, and what each has of the stake."""
        octaves = [(j + 0.5) / 2 for j in range(40)]
        tilts = [3 * self.shrink * 2**-o for o in octaves]
        shares = [1 / (1 + ((o - 3.5) / 1.5) ** 2) for o in octaves]
        shares = [share / sum(shares) for share in shares]
        if self.hint:
            near = []
            for tilt in tilts:
                off = math.log2(tilt / (2 * self.hint))
                near.append(1 / (1 + (off / (0.7 if off < 0 else 2)) ** 2) ** 2)
            shares = [0.6 * x + 0.4 * y / sum(near) for x, y in zip(shares, near, strict=True)]
        high = sum(tilt >= self.e / 2 for tilt in tilts) if self.e is not None else 0
        if self.e is not None and high:
            whole = sum(shares[:high])
            tilts = [0.8 * self.e, 0.6 * self.e, *tilts[high:]]
            shares = [whole / 2, whole / 2, *shares[high:]]
        return tilts, shares

    def run(
        self, rng: np.random.Generator, cap: int = 10**12
    ) -> tuple[int, int, bool, int, list[int]]:
        """Samples, recommendation, stopped, rounds, pulls."""
        self.wealth = {a: [0.0] * len(self.tilts) for a in self.arms}
        self.pairs: dict[tuple[int, int], list[float]] = {}
        self.met: dict[tuple[int, int], int] = {}
        self.sums, self.counts = dict.fromkeys(self.arms, 0.0), dict.fromkeys(self.arms, 0)
        self.pulls = dict.fromkeys(self.arms, 0)
        self.mean, self.sure = dict.fromkeys(self.arms, 0.5), dict.fromkeys(self.arms, 12.0)
        self.money, self.out = dict.fromkeys(self.arms, 0.0), set[int]()
        self.n, self.rounds, self.kinds = 0, 0, []
        now = self.first()
        while True:
            used = sum(self.pulls.values())
            now.length = min(now.length, (cap - used) // sum(now.odds.values()))
            if now.length < 1:
                return used, self.front(), False, self.rounds, list(self.pulls.values())
            self.stake(now)
            self.kinds.append(now.kind)
            seen, people = self.draw(now, rng)
            self.n += now.length
            self.bet(now, seen, people)
            self.learn(now, seen, people)
            self.judge(now)
            self.rounds += 1
            found = self.winner()
            if found is not None:
                pulls = list(self.pulls.values())
                return sum(pulls), found, True, self.rounds, pulls
            now = self.next(now)

    def draw(
        self, now: Announced, rng: np.random.Generator
    ) -> tuple[dict[int, float], dict[int, int]]:
        """What is released, as sums an arm, and who was dealt what."""
        seen, people = dict[int, float](), dict[int, int]()
        left, odds = now.length * sum(now.odds.values()), sum(now.odds.values())
        for a, own in now.odds.items():
            people[a] = left if own == odds else int(rng.binomial(left, own / odds))
            left, odds = left - people[a], odds - own
            p = 0.5 + self.shrink * (self.means[a] - 0.5)
            seen[a] = int(rng.binomial(people[a], min(max(p, 0.0), 1.0)))
            if not now.single:
                seen[a] += self.noise(rng)
        return (self.noised(now, seen, people, rng) if now.single else seen), people

    def noise(self, rng: np.random.Generator) -> int:
        if self.e is None:
            return 0
        p = -math.expm1(-self.e)
        return int(rng.geometric(p)) - int(rng.geometric(p))

    def noised(
        self, now: Announced, seen: dict[int, float], people: dict[int, int], rng: Any
    ) -> dict[int, float]:
        """Sums with their noise, or what a margin says about them."""
        if not now.single:
            return {a: total + self.noise(rng) for a, total in seen.items()}
        allowed = {a: (people[now.leader] - people[a]) // 2 for a in now.odds}
        others = [a for a in now.odds if a != now.leader]
        lead = min(seen[now.leader] - seen[a] - allowed[a] for a in others) + self.noise(rng)
        return {a: float(lead if a == now.leader else -allowed[a]) for a in now.odds}

    # --- bets -------------------------------------------------------------------------

    def stake(self, now: Announced) -> None:
        """The share all in, the tilt and the tail constant of every arm's tail bet."""
        e = self.e
        if not now.dear or e is None:
            return
        two, spread = sum(now.odds.values()) == 2, spread_at(now.centre)
        for a in now.odds:
            c, b = now.rival(a), now.length
            if self.rounds == 0:
                sigma = 0.35 if two and self.hint else 0.1
            else:
                gap, error = self.gap(a, c)
                sure = b * self.rate(gap, spread * (1 + 1 / now.odds[now.leader]))
                sure += self.money[a] - self.need + (1 if two else 0.3)
                x = sure / (e * b * math.sqrt(error))
                sigma = (0.7 if two and self.hint else 0.6) / (1 + math.exp(min(-3 * x, 700)))
            if now.single and not two:
                sigma = 0.7
            nats = self.need - self.loud_money(self.wealth[a]) - math.log(max(sigma, 0.1))
            found = []
            for share in (1, 0.87, 0.74, 0.61, 0.48, 0.35):
                w = now.weigh(e * share, a)
                down, up = (min(slope / e, 1.0) for slope in w.slopes)
                price = (one_tail(down, e) if now.single else two_tails(down, up, e)) + 1e-7
                mid, mine, its = 0.5 if now.single else now.centre, now.odds[a], now.odds[c]
                level = w.score((b * mine * mid, b * mine), (b * its * mid, b * its))
                gap = (price + nats - level) / (w.slopes[0] * mine + w.slopes[1] * its)
                found.append((gap, -share, w, price))
            _, _, w, price = min(found, key=lambda x: x[:2])
            now.tails[a] = sigma, w, price

    def loud_money(self, account: list[float]) -> float:
        return log_of_sum([math.log(self.shares[j]) + account[j] for j in range(self.loud)])

    def all_money(self, account: list[float]) -> float:
        return log_of_sum(
            [math.log(share) + won for share, won in zip(self.shares, account, strict=True)]
        )

    def bet(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        if self.rounds == 0 and not now.dear:
            return
        if self.rounds == 0 and len(now.odds) > 2:
            for a in now.odds:
                _, w, price = now.tails[0]
                logs = []
                for c in now.odds:
                    if c != a:
                        score = w.score((seen[a], people[a]), (seen[c], people[c]))
                        logs.append(math.log(0.4) - 0.6 * (price - score))
                factor = log_of_sum([math.log(0.9), math.log(0.1 / len(logs)) + log_of_sum(logs)])
                for j in range(self.loud):
                    self.wealth[a][j] += factor
            return
        for a in now.odds:
            if now.single and len(now.odds) > 2 and a == now.leader:
                continue
            c = now.rival(a)
            self.multiply(self.wealth[a], self.need, 0.0, a, now, seen, people)
            if self.zeta:
                pair = self.pairs.setdefault((a, c), [0.0] * len(self.tilts))
                worth = self.zeta * now.length * now.odds[a]
                self.multiply(pair, self.zeta_need, worth, a, now, seen, people)
                self.met[a, c] = self.met.get((a, c), 0) + people[a]

    def multiply(
        self,
        account: list[float],
        need: float,
        worth: float,
        a: int,
        now: Announced,
        seen: dict[int, float],
        people: dict[int, int],
    ) -> None:
        """One account, tilt by tilt; `worth` is what the null grants the arm, in d."""
        c = now.rival(a)
        own, rival = (seen[a], people[a]), (seen[c], people[c])
        tail = 0.0
        if now.dear:
            sigma, w, price = now.tails[a]
            log_p = min(price - w.score(own, rival) - w.step * worth, 0.0)
            alpha = math.log(sigma) + self.loud_money(account) - need
            logs = [
                math.log(0.2 * (1 - sigma)),
                math.log(0.8 * 0.4 * (1 - sigma)) - 0.6 * log_p,
            ]
            if log_p <= alpha:
                logs.append(math.log(sigma) - alpha)
            tail = log_of_sum(logs)
        for j, tilt in enumerate(self.tilts):
            if now.dear and j < self.loud:
                account[j] += tail
            elif j < max(4, self.loud) or tilt**2 * self.n >= 0.2**2:
                w = now.weigh(tilt, a)
                account[j] += w.score(own, rival) + w.step * worth - moment(w.slopes[0], self.e)
                if not now.single:
                    account[j] -= moment(w.slopes[1], self.e)

    # --- what is known ----------------------------------------------------------------

    def learn(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        spread, noise = spread_at(now.centre), 0.0 if self.e is None else 2 / self.e**2
        for a in now.odds:
            n = people[a]
            self.pulls[a] += n
            if not now.single:
                self.sums[a] += seen[a]
                self.counts[a] += n
                if n:
                    more = 1 / (0.8 * spread / n + noise / n**2)
                    whole = self.sure[a] + more
                    self.mean[a] += more / whole * (seen[a] / n - self.mean[a])
                    self.sure[a] = whole
        if now.single and len(now.odds) == 2:
            b, c = now.leader, now.second
            half = (people[b] + people[c]) / 2
            gap = (seen[b] - seen[c] - now.centre * (people[b] - people[c])) / half
            before, news = 1 / self.sure[b] + 1 / self.sure[c], 2 * spread / half + noise / half**2
            move = (gap - (self.mean[b] - self.mean[c])) / (before + news)
            self.mean[b] += move / self.sure[b]
            self.mean[c] -= move / self.sure[c]
            for a in (b, c):
                if len(self.arms) - len(self.out) <= 2:
                    self.sure[a] *= 1 + before / news
                else:
                    own = 1 / self.sure[a]
                    self.sure[a] = 1 / (own - own**2 / (before + news))

    def judge(self, now: Announced) -> None:
        for a in now.odds:
            self.money[a] = self.all_money(self.wealth[a])
            self.out.discard(a)
            if self.money[a] >= self.need + 1e-14 * self.pulls[a]:
                self.out.add(a)

    def ranking(self, arms: list[int]) -> list[int]:
        return sorted(arms, key=lambda a: (-self.mean[a], a))

    def inside(self) -> list[int]:
        return [a for a in self.arms if a not in self.out]

    def front(self) -> int:
        return self.ranking(self.inside() or list(self.arms))[0]

    def winner(self) -> int | None:
        left = self.ranking(self.inside())
        if len(left) == 1:
            return left[0]
        if not left or not self.zeta:
            return None
        for a in left[1:]:
            need = self.zeta_need + 1e-14 * self.pulls[a]
            if self.all_money(self.pairs.get((a, left[0]), [-1e9] * len(self.tilts))) < need:
                return None
        return left[0]

    def gap(self, a: int, c: int) -> tuple[float, float]:
        return self.mean[c] - self.mean[a], 1 / self.sure[c] + 1 / self.sure[a]

    # --- plans ------------------------------------------------------------------------

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
        leader, second = self.ranking(active)[:2]
        pull, two = 2 + (0 if self.e is None else 1 / self.e), len(active) == 2
        levels = [(self.sums[a] + pull / 2) / (self.counts[a] + pull) for a in (leader, second)]
        centre = max(sum(levels) / 2, 0.5 - self.shrink / 2, 1 / 64)
        centre = min(centre, 0.5 + self.shrink / 2, 63 / 64)
        rivals = len(active) - 1
        lead = 2 ** min(4, max(0, math.floor(math.log2(math.sqrt(rivals)) + 0.3)))
        now = Announced(leader, second, {a: lead if a == leader else 1 for a in active}, 0, centre)
        spread = spread_at(centre)
        if self.e is not None:
            gap, error = self.gap(second, leader)
            if self.hint and not two and not before.single and gap**2 > error:
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
        shortest = min(max(40 / info, 0.03), 0.2) * n
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
