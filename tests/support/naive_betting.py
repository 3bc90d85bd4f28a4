"""bet-se, slowly, from its definitions; shares no line with the package.

Every bet is written as what each person's outcome multiplies money by, every tilt has
its own account, tail constants come from the generating function of the noise, plans
are spelt out. Chance is drawn in the order of the compiled loop, so runs are equal.
"""

import math
from typing import Any

import numpy as np

from tests.support.naive_bets import (
    Announced,
    Told,
    Weights,
    log_of_sum,
    mixture,
    moment,
    one_tail,
    two_tails,
)
from tests.support.naive_plans import NaivePlans


class NaiveBetting(NaivePlans):
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
        self.shrink = self.shrinks(epsilon or 0) if trust == "local" else 1.0
        self.e = epsilon if trust == "global" else None
        self.zeta, self.hint = zeta * self.shrink, hint * self.shrink
        self.need = math.log((2 if zeta else 1) / delta)
        self.zeta_need = math.log(2 * (len(means) - 1) / delta)
        self.tilts, self.shares = mixture(self.shrink, self.e, self.hint)
        self.loud = 0 if self.e is None else sum(tilt >= self.e / 4 for tilt in self.tilts)
        self.kinds: list[str] = []
        """Of the rounds of the last run."""
        self.story: list[list[float]] = []
        """The money of all arms after each of them."""

    # --- what differs if outcomes are numbers -----------------------------------------

    def shrinks(self, epsilon: float) -> float:
        """What randomised response leaves of a difference."""
        return math.tanh(epsilon / 2)

    def level_of(self, now: Announced, n: int, seen: float) -> float:
        """A sum as if randomised response had been used."""
        return seen

    def weigh(self, now: Announced, tilt: float, a: int) -> Weights:
        return now.weigh(tilt, a, now.centre)

    def told(self, a: int, seen: dict[int, float], people: dict[int, int]) -> Told:
        """What a score is told about an arm: sum, people."""
        return seen[a], people[a]

    def expected(self, now: Announced, a: int) -> Told:
        """The same if all is as the plan has it and nobody is better."""
        people = now.length * now.odds[a]
        return people * (0.5 if now.single else now.centre), people

    def moments(self, now: Announced, w: Weights) -> float:
        """What noise costs a moment bet."""
        own, rival = (moment(slope, self.e) for slope in w.slopes)
        return own if now.single else own + rival

    def tail(self, now: Announced, w: Weights) -> float:
        """What noise costs a tail bet."""
        return self.tail_of_sums(now, w, self.e or 0.0)

    def tail_of_sums(self, now: Announced, w: Weights, tick: float) -> float:
        """The same of the noise in sums, if a unit of it costs `tick`."""
        own, rival = (min(slope / (self.e or 1.0), 1.0) for slope in w.slopes)
        return (one_tail(own, tick) if now.single else two_tails(own, rival, tick)) + 1e-7

    # --- a run ------------------------------------------------------------------------

    def run(
        self, rng: np.random.Generator, cap: int = 10**12
    ) -> tuple[int, int, bool, int, list[int]]:
        """Samples, recommendation, stopped, rounds, pulls."""
        self.begin()
        now = self.finish(self.first())
        while True:
            used = sum(self.pulls.values())
            now.length = min(now.length, (cap - used) // sum(now.odds.values()))
            if now.length < 1:
                return used, self.front(), False, self.rounds, list(self.pulls.values())
            self.stake(now)
            self.kinds.append(now.kind)
            seen, people = self.draw(now, rng)
            self.settle(now, seen, people)
            found = self.winner()
            if found is not None:
                pulls = list(self.pulls.values())
                return sum(pulls), found, True, self.rounds, pulls
            now = self.finish(self.next(now))

    def begin(self) -> None:
        """Nobody has been asked."""
        self.wealth = {a: [0.0] * len(self.tilts) for a in self.arms}
        self.pairs: dict[tuple[int, int], list[float]] = {}
        self.met: dict[tuple[int, int], int] = {}
        self.sums, self.counts = dict.fromkeys(self.arms, 0.0), dict.fromkeys(self.arms, 0)
        self.pulls = dict.fromkeys(self.arms, 0)
        self.mean, self.sure = dict.fromkeys(self.arms, 0.5), dict.fromkeys(self.arms, 12.0)
        self.money, self.out = dict.fromkeys(self.arms, 0.0), set[int]()
        self.n, self.rounds, self.kinds, self.story = 0, 0, [], []

    def settle(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        """A round is over."""
        self.n += now.length
        self.bet(now, seen, people)
        self.learn(now, seen, people)
        self.judge(now)
        self.story.append(list(self.money.values()))
        self.rounds += 1

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
        two, spread = sum(now.odds.values()) == 2, self.spread(now.centre, now.fine)
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
                w = self.weigh(now, e * share, a)
                price = self.tail(now, w)
                level = w.score(self.expected(now, a), self.expected(now, c))
                pull = w.slopes[0] * now.odds[a] + w.slopes[1] * now.odds[c]
                gap = (price + nats - level) / pull
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
                        score = w.score(self.told(a, seen, people), self.told(c, seen, people))
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
        own, rival = self.told(a, seen, people), self.told(c, seen, people)
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
                w = self.weigh(now, tilt, a)
                account[j] += w.score(own, rival) + w.step * worth - self.moments(now, w)

    # --- what is known ----------------------------------------------------------------

    def learn(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        spread, noise = self.spread(now.centre, now.fine), 0.0
        if self.e is not None:
            noise = 2 / self.e**2
        for a in now.odds:
            n = people[a]
            self.pulls[a] += n
            if not now.single:
                level = self.level_of(now, n, seen[a])
                self.sums[a] += level
                self.counts[a] += n
                if n:
                    more = 1 / (0.8 * spread / n + noise / n**2)
                    whole = self.sure[a] + more
                    self.mean[a] += more / whole * (level / n - self.mean[a])
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
