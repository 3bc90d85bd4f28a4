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
    TellResult,
    Weights,
    log_of_sum,
    mixture,
    moment,
    tail,
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
        indifference_zone: float = 0.0,
        target_difference: float = 0.0,
    ) -> None:
        self.means, self.arms = means, range(len(means))
        self.shrink = self.shrinks(epsilon or 0) if trust == "local" else 1.0
        self.e = epsilon if trust == "global" else None
        self.indifference_zone, self.target_difference = (
            indifference_zone * self.shrink,
            target_difference * self.shrink,
        )
        self.need = math.log((2 if indifference_zone else 1) / delta)
        self.zone_need = math.log(2 * (len(means) - 1) / delta)
        self.tilts, self.shares = mixture(self.shrink, self.e, self.target_difference)
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

    def told(self, a: int, seen: dict[int, float], people: dict[int, int]) -> TellResult:
        """What a score is told about an arm: sum, people."""
        return seen[a], people[a]

    def moments(self, now: Announced, w: Weights) -> float:
        """What noise costs a moment bet."""
        own, rival = (self.one_moment(now, slope) for slope in w.slopes)
        return own if now.single else own + rival

    def tail(self, now: Announced, w: Weights) -> float:
        """What noise costs a tail bet: the larger slope is paid for by its tail, the
        smaller by its moment.
        """
        return self.tail_of_sums(now, w, self.e or 0.0)

    def tail_of_sums(self, now: Announced, w: Weights, tick: float) -> float:
        """The same of the noise in sums, if a unit of it costs `tick`."""
        return tail(tick) + (0.0 if now.single else self.one_moment(now, min(w.slopes))) + 1e-6

    def one_moment(self, now: Announced, slope: float) -> float:
        """What one noise costs a moment bet."""
        return moment(slope, self.e)

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
        """Sums with their noise, or what a difference says about them."""
        if not now.single:
            return {a: total + self.noise(rng) for a, total in seen.items()}
        b, c = now.leader, now.second
        allowed = (people[b] - people[c]) // 2
        return {b: seen[b] - seen[c] - allowed + self.noise(rng), c: float(-allowed)}

    # --- bets -------------------------------------------------------------------------

    def sigma(self, now: Announced, a: int) -> float:
        """The share of a tail bet that goes all in."""
        variance = self.spread(now.centre, now.fine) * (1 + 1 / now.odds[now.leader])
        gap = self.believe(a, now.rival(a))
        sure = now.length * self.rate(gap, variance) + self.money[a] - self.need
        return 0.6 / (1 + math.exp(min(-sure - 0.5, 700)))

    def all_money(self, account: list[float]) -> float:
        return log_of_sum(
            [math.log(share) + won for share, won in zip(self.shares, account, strict=True)]
        )

    def bet(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        if (self.rounds == 0 and len(now.odds) > 2) or now.length < 1:
            return
        for a in now.odds:
            self.multiply(self.wealth[a], self.need, 0.0, a, now, seen, people)
            if self.indifference_zone:
                pair = self.pairs.setdefault((a, now.rival(a)), [0.0] * len(self.tilts))
                worth = self.indifference_zone * now.length * now.odds[a]
                self.multiply(pair, self.zone_need, worth, a, now, seen, people)

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
        if now.by_tails:
            sigma, w = self.sigma(now, a), self.weigh(now, (self.e or 0) * (1 - 1e-9), a)
            log_p = min(self.tail(now, w) - w.score(own, rival) - w.step * worth, 0.0)
            alpha = math.log(sigma) + self.all_money(account) - need
            logs = [math.log(0.4 * (1 - sigma)) - 0.6 * log_p]
            if log_p <= alpha:
                logs.append(math.log(sigma) - alpha)
            for j in range(len(self.tilts)):
                account[j] += log_of_sum(logs)
            return
        for j, tilt in enumerate(self.tilts):
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
                self.sure[a] *= 1 + before / news

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
        if not left or not self.indifference_zone:
            return None
        for a in left[1:]:
            need = self.zone_need + 1e-14 * self.pulls[a]
            if self.all_money(self.pairs.get((a, left[0]), [-1e9] * len(self.tilts))) < need:
                return None
        return left[0]
