"""bet-se for outcomes that are numbers, slowly, from the section "Numeric outcomes" of
the docs page "Betting elimination": what is sent of an outcome, and what closeness adds
to bets and plans. Shares no line with the package.
"""

import math
from typing import Any

import numpy as np

from discreet import Beta, Discrete, Drift, Drifting, Instance, Sampled
from tests.support.naive_bets import Announced, TellResult, Weights
from tests.support.naive_betting import NaiveBetting

# --- the bump -------------------------------------------------------------------------


def dent(t: float, y: float) -> float:
    """rho_t(y): log E e^(t X) - t E X of a bit X with mean y."""
    return math.log1p(y * math.expm1(t)) - t * y


def top_of(c: float) -> float:
    """h: the bump at its centre."""
    return math.e * min(dent(-1, c), dent(1, c))


def bump(y: float, c: float) -> float:
    """q: how close y is to the centre."""
    return top_of(c) * min(dent(-1, y) / dent(-1, c), dent(1, y) / dent(1, c))


def fit(t: float, c: float) -> float:
    """B without privacy: how many bumps fit under rho_t."""
    if -1 <= t <= 1:
        most = dent(t, c) / top_of(c)
    else:
        unit = dent(1 if t > 0 else -1, c) / top_of(c)
        most = unit * math.e * (abs(t) - 1 + math.exp(-abs(t)))
    return most * (1 - 1e-9)


def fine_moment(slope: float, e: float | None) -> float:
    """A bound on log E exp(slope Z) for noise of any grid."""
    return 0.0 if e is None else 2 * math.log(e) - math.log(e - slope) - math.log(e + slope)


class NaiveNumbers(NaiveBetting):
    """One setting; `run` plays it. Chance is drawn in the order of the compiled loop:
    Bernoulli and discrete laws by counts, others and all that drift person by person.
    """

    def __init__(
        self, instance: Instance, epsilon: float | None, delta: float, **options: Any
    ) -> None:
        self.instance, self.levels = instance, options.get("trust") == "local"
        self.slip = 1 / (math.exp(epsilon or 0) + 2) if self.levels else 0.0
        super().__init__(tuple(instance.means), epsilon, delta, **options)
        places = 40 if self.e is None else 40 + math.floor(math.log2(self.e))
        self.grid = 1024 if self.levels else 2 ** min(max(places, 0), 20)

    def run(
        self, rng: np.random.Generator, cap: int = 10**12
    ) -> tuple[int, int, bool, int, list[int]]:
        self.closeness, self.most, self.releases = 0.0, 0.0, 0
        self.near: dict[int, float] = {}
        return super().run(rng, cap)

    # --- what is sent -----------------------------------------------------------------

    def shrinks(self, epsilon: float) -> float:
        return math.expm1(epsilon) * self.slip

    def close(self, k: int, c: float) -> int:
        """Q, in units."""
        return max(0, min(math.floor(self.grid * bump(k / self.grid, c)), k, self.grid - k))

    def thirds(self, x: float, z: float) -> tuple[float, float]:
        """How likely x is rounded to the middle level z, and to 1."""
        if x <= z:
            return x / z, 0.0
        return 1 - (x - z) / (1 - z), (x - z) / (1 - z)

    def send(self, x: float, c: float, rng: np.random.Generator) -> tuple[int, int]:
        """(sum, closeness) of one person, in units."""
        if not self.levels:
            k = math.floor(x * self.grid)
            k += rng.random() < x * self.grid - k
            return k, self.close(k, c)
        middle, _ = self.thirds(x, c)
        true = "middle" if rng.random() < middle else ("low" if x <= c else "high")
        cycle = {"low": "middle", "middle": "high", "high": "low"}
        lie = rng.random()
        if lie < self.slip:
            true = cycle[true]
        elif lie < 2 * self.slip:
            true = cycle[cycle[true]]
        units = {"low": 0, "middle": round(c * self.grid), "high": self.grid}
        return units[true], self.grid * (true == "middle")

    def send_all(self, a: int, people: int, c: float, rng: np.random.Generator) -> tuple[int, int]:
        """The same of all people of an arm."""
        arms = self.instance
        if isinstance(arms, Beta):
            sent = [self.send(float(rng.beta(arms.a[a], arms.b[a])), c, rng) for _ in range(people)]
            return sum(k for k, _ in sent), sum(q for _, q in sent)
        if isinstance(arms, Sampled):
            data = arms.flat[arms.starts[a] : arms.starts[a + 1]]
            sent = [
                self.send(float(data[int(rng.random() * len(data))]), c, rng) for _ in range(people)
            ]
            return sum(k for k, _ in sent), sum(q for _, q in sent)
        values: TellResult = (0.0, 1.0)
        chances: TellResult = (1 - self.means[a], self.means[a])
        if isinstance(arms, Discrete):
            values, given = tuple(arms.values), arms.probabilities[a]
            chances = tuple(chance / sum(given) for chance in given)
        if self.levels:
            return self.count_levels(values, chances, people, c, rng)
        if not isinstance(arms, Discrete):
            return int(rng.binomial(people, self.means[a])) * self.grid, 0
        return self.count_units(values, chances, people, c, rng)

    def count_levels(
        self,
        values: TellResult,
        chances: TellResult,
        people: int,
        z: float,
        rng: np.random.Generator,
    ) -> tuple[int, int]:
        rounded = [self.thirds(x, z) for x in values]
        middle = sum(p * m for p, (m, _) in zip(chances, rounded, strict=True))
        high = sum(p * h for p, (_, h) in zip(chances, rounded, strict=True))
        middle, high = (self.slip + self.shrink * share for share in (middle, high))
        near = int(rng.binomial(people, middle))
        ones = 0
        if near < people:
            ones = int(rng.binomial(people - near, min(high / (1 - middle), 1.0)))
        return near * round(z * self.grid) + ones * self.grid, near * self.grid

    def count_units(
        self,
        values: TellResult,
        chances: TellResult,
        people: int,
        c: float,
        rng: np.random.Generator,
    ) -> tuple[int, int]:
        total, near = 0, 0
        for i, (x, chance) in enumerate(zip(values, chances, strict=True)):
            if people:
                rest = sum(reversed(chances[i:]))  # to the last digit as the loop has it
                hits = int(rng.binomial(people, chance / rest if rest > chance else 1.0))
                people -= hits
                k = math.floor(x * self.grid)
                up = int(rng.binomial(hits, x * self.grid - k))
                for units, count in ((k, hits - up), (k + 1, up)):
                    total += units * count
                    near += self.close(units, c) * count if count else 0
        return total, near

    # --- a round ----------------------------------------------------------------------

    def draw(
        self, now: Announced, rng: np.random.Generator
    ) -> tuple[dict[int, float], dict[int, int]]:
        units, near = dict.fromkeys(now.odds, 0), dict.fromkeys(now.odds, 0)
        people, noise = dict.fromkeys(now.odds, 0), dict.fromkeys(now.odds, (0, 0))
        if isinstance(self.instance, Drifting):
            self.draw_people(now, units, near, people, rng)
        left, odds = now.length * sum(now.odds.values()), sum(now.odds.values())
        for a, own in now.odds.items():
            if not isinstance(self.instance, Drifting):
                people[a] = left if own == odds else int(rng.binomial(left, own / odds))
                left, odds = left - people[a], odds - own
                if now.fine:
                    units[a], near[a] = self.send_all(a, people[a], now.centre, rng)
                else:
                    units[a] = int(rng.binomial(people[a], self.means[a]))
            if not now.single:
                noise[a] = self.noises(now, rng)
        grid = self.grid if now.fine else 1
        if not now.single:
            self.near = {a: (near[a] + noise[a][1]) / grid for a in now.odds}
            return {a: (units[a] + noise[a][0]) / grid for a in now.odds}, people
        b, c, (more, closer) = now.leader, now.second, self.noises(now, rng)
        allowed = (people[b] - people[c]) // 2
        self.near = {b: (near[b] + near[c] + closer) / grid, c: 0.0}
        return {b: (units[b] - units[c] + more) / grid - allowed, c: float(-allowed)}, people

    def noises(self, now: Announced, rng: np.random.Generator) -> tuple[int, int]:
        """Of a sum, and of its closeness."""
        if self.e is None:
            return 0, 0
        p = -math.expm1(-self.e / self.grid if now.fine else -self.e)
        first = int(rng.geometric(p)) - int(rng.geometric(p))
        return first, int(rng.geometric(p)) - int(rng.geometric(p)) if now.fine else 0

    def draw_people(
        self,
        now: Announced,
        units: dict[int, int],
        near: dict[int, int],
        people: dict[int, int],
        rng: np.random.Generator,
    ) -> None:
        """Two sites that enrol five people in turn, the first `size` above the
        second's middle.
        """
        assert isinstance(self.instance, Drifting)
        size = self.instance.drift.size
        assert self.instance.drift == Drift.sites(size, 5)
        first = sum(self.pulls.values())
        for person in range(first, first + now.length * sum(now.odds.values())):
            coin = rng.random() * sum(now.odds.values())
            a = next(a for a in now.odds if coin < sum(now.odds[c] for c in now.odds if c <= a))
            chance = self.means[a] + (size if person // 5 % 2 == 0 else -size)
            outcome = rng.random() < min(max(chance, 0.0), 1.0)
            people[a] += 1
            if now.fine:
                k, q = self.send(float(outcome), now.centre, rng)
                units[a] += k
                near[a] += q
            else:
                units[a] += outcome

    # --- bets -------------------------------------------------------------------------

    def x0(self, centre: float) -> float:
        """What is sent of an outcome at the centre, on average."""
        return self.shrink * centre + self.slip * (1 + centre) if self.levels else centre

    def weight(self, t: float, c: float) -> float:
        if self.levels:
            return dent(t, c)
        return fit(t, c) if self.e is None else min(fit(t, c), 0.8 * self.e)

    def weigh(self, now: Announced, tilt: float, a: int) -> Weights:
        w = now.weigh(tilt, a, self.x0(now.centre))
        if now.fine:
            own, rival = self.weight(-w.slopes[0], now.centre), self.weight(w.slopes[1], now.centre)
            w.close = (min(own, rival), min(own, rival)) if now.single else (own, rival)
        return w

    def told(self, a: int, seen: dict[int, float], people: dict[int, int]) -> TellResult:
        return seen[a], people[a], self.near[a]

    def closeness_price(self, now: Announced, w: Weights) -> float:
        own, rival = (fine_moment(weight, self.e) for weight in w.close)
        return own if now.single else own + rival

    def one_moment(self, now: Announced, slope: float) -> float:
        return fine_moment(slope, self.e) if now.fine else super().one_moment(now, slope)

    def moments(self, now: Announced, w: Weights) -> float:
        return super().moments(now, w) + (self.closeness_price(now, w) if now.fine else 0.0)

    def tail(self, now: Announced, w: Weights) -> float:
        if not now.fine:
            return super().tail(now, w)
        return self.tail_of_sums(now, w, (self.e or 0) / self.grid) + self.closeness_price(now, w)

    # --- plans ------------------------------------------------------------------------

    def share(self) -> float:
        """How close outcomes were, of how close they could have been."""
        return min(max(self.closeness / self.most, 0.0), 0.999) if self.most else 0.0

    def centre(self, middle: float) -> float:
        if self.levels:
            middle = (middle - 0.5) / self.shrink + 0.5
        return round(1024 * min(max(middle, 1 / 64), 63 / 64)) / 1024

    def spread(self, centre: float, fine: bool) -> float:
        x = self.x0(centre)
        return max(x * (1 - x) * (1 - self.share() if fine else 1.0), 0.001)

    def finish(self, now: Announced) -> Announced:
        """Numbers, or bits where noise on a coarse grid saves more than closeness
        tells.
        """
        now.fine = True
        if self.rounds and self.e is not None and self.most:
            doubt = math.sqrt(2 * self.releases) / self.e / self.most
            tells = now.length * now.centre * (1 - now.centre) * (self.share() + doubt)
            now.fine = tells > 2 / self.e**2 - 0.5 / math.sinh(self.e / 2) ** 2
        return now

    def level_of(self, now: Announced, n: int, seen: float) -> float:
        if not self.levels:
            return seen
        return seen - n * (self.slip * (1 + now.centre) - (1 - self.shrink) / 2)

    def learn(self, now: Announced, seen: dict[int, float], people: dict[int, int]) -> None:
        super().learn(now, seen, people)
        if now.fine:
            top = 1.0 if self.levels else top_of(now.centre)
            self.closeness += sum(self.near.values())
            self.most += top * sum(people.values())
            self.releases += 1 if now.single else len(now.odds)
