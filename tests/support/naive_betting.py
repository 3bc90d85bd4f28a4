"""bet-se, slowly, from the definitions of docs/betting.md; shares no line with
betting.py or play.py.

Every release is kept and every factor multiplied out. The infimum is found by splitting
[low, high] into cells with a monotonicity bound (down at the cell's low end, up at its
high end), never by convexity.
"""

import math

import numpy as np

Release = tuple[int, int, int]
"""Sum, pulls, octave."""


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
    ) -> None:
        self.means, self.arms, self.sampling = means, len(means), sampling
        self.shrink = math.tanh((epsilon or 0) / 2) if trust == "local" else 1.0
        self.noise = epsilon if trust == "global" else None
        self.low, self.high, self.zeta = (
            0.5 - self.shrink / 2,
            0.5 + self.shrink / 2,
            zeta * self.shrink,
        )
        self.need = math.log((2 if zeta else 1) / delta)
        self.zeta_need = math.log(2 * (self.arms - 1) / delta)
        self.first = 2 + math.ceil(2 / self.shrink**2 if self.noise is None else 12 / self.noise)
        self.stakes = self.mixture()
        self.all: list[list[Release]] = []

    def mixture(self) -> list[tuple[float, float]]:
        """(tilt, stake), tilts falling."""
        raw = []
        for j in range(120):
            octave = (j + 0.5) / 2
            raw.append((3 * self.shrink * 2**-octave, 1 / (1 + ((octave - 3.5) / 1.5) ** 2)))
        whole = sum(stake for _, stake in raw)
        raw = [(tilt, stake / whole) for tilt, stake in raw]
        if self.noise is not None:
            e = self.noise
            big = sum(stake for tilt, stake in raw if tilt >= e / 2)
            if big:
                raw = [(0.8 * e, big / 2), (0.6 * e, big / 2)] + [
                    pair for pair in raw if pair[0] < e / 2
                ]
        return raw

    def price(self, tilt: float) -> float:
        """log E exp(tilt Z)."""
        if self.noise is None or self.noise > 300:
            return 0.0
        e = self.noise
        return (
            2 * math.log(2 * math.sinh(e / 2))
            - math.log(2 * math.sinh((e + tilt) / 2))
            - math.log(2 * math.sinh((e - tilt) / 2))
        )

    def factor(self, x: float, releases: list[Release], tilt: float, sign: int) -> float:
        """The log of the product of one side's factors."""
        log = 0.0
        for total, pulls, octave in releases:
            t = tilt / 2**octave
            log += sign * t * total - pulls * math.log1p(x * math.expm1(sign * t)) - self.price(t)
        return log

    def evidence(
        self, x_down: float, x_up: float, own: list[Release], rival: list[Release], n: int
    ) -> float:
        """log E with x_down in the down factors and x_up in the up factors."""
        logs = []
        for j, (tilt, stake) in enumerate(self.stakes):
            if j >= 4 and tilt**2 * n < 0.01:
                break
            down, up = self.factor(x_down, own, tilt, -1), self.factor(x_up, rival, tilt, 1)
            logs += [
                math.log(0.05 * stake) + down,
                math.log(0.9 * stake) + down + up,
                math.log(0.05 * stake) + up,
            ]
        top = max(logs)
        return top + math.log(sum(math.exp(value - top) for value in logs))

    def beaten(
        self, own: list[Release], rival: list[Release], n: int, need: float, zeta: float = 0.0
    ) -> bool:
        """Is E >= exp(need) at every x?  Cells that cannot be decided are split."""
        need += 1e-14 * (sum(r[1] for r in own) + sum(r[1] for r in rival))
        cells = [(min(self.low + zeta, self.high), self.high)]
        while cells:
            left, right = cells.pop()
            if self.evidence(left, right - zeta, own, rival, n) >= need:
                continue
            middle = (left + right) / 2
            if self.evidence(middle, middle - zeta, own, rival, n) < need:
                return False
            if right - left < 1e-13:
                raise ArithmeticError("too close to call")
            cells += [(left, middle), (middle, right)]
        return True

    def pulled(self, a: int) -> int:
        return sum(r[1] for r in self.all[a])

    def mean(self, a: int) -> float:
        return sum(r[0] for r in self.all[a]) / max(1, self.pulled(a))

    def clipped(self, a: int) -> float:
        return min(max(self.mean(a), self.low), self.high)

    def ranking(self, arms: list[int]) -> list[int]:
        return sorted(arms, key=lambda a: (-self.mean(a), a))

    def gain(self, length: float, gap: float, variance: float) -> float:
        g = length * gap * gap / (8 * variance)
        if self.noise is None:
            return 2 * g
        z = self.noise * length * gap / 2
        q = z - 1 + math.exp(-z)
        return 2 * g * q / max(g + q, 1e-300)

    def length(self, n: int, arms: list[int], money: list[float]) -> int:
        """Of the next batch, for the sake of these arms."""
        info = math.inf if self.noise is None else self.noise**2 * n
        length = min(max(40 / info, 0.03), 0.2) * n
        goal = self.need + 8 / (1 + info / 50) - 4
        rest = self.ranking(arms)
        while length < 2 * n:
            for a in rest[1:]:
                top, own = self.clipped(rest[0]), self.clipped(a)
                middle = (top + own) / 2
                if (
                    money[a]
                    + self.gain(length, top - own + self.zeta, max(middle * (1 - middle), 0.01))
                    >= goal
                ):
                    return math.ceil(length)
            length *= 1.1
        return 2 * n

    def overslept(self, a: int, n: int, money: list[float]) -> bool:
        return self.pulled(a) * 32 * math.exp((min(money[a] - self.need, 700)) / 2) < n

    def plan(self, n: int, out: set[int], money: list[float]) -> tuple[list[int], int]:
        """Who plays next, and how long."""
        inside = [a for a in range(self.arms) if a not in out]
        if self.sampling == "elimination":
            active = [
                a
                for a in range(self.arms)
                if a in inside or not inside or self.overslept(a, n, money)
            ]
            return active, self.length(n, inside, money)
        inside = inside or list(range(self.arms))
        boss = self.ranking(inside)[0]
        late = []
        for a in range(self.arms):
            if a != boss and (
                2 * self.arms * self.pulled(a) < n if a in inside else self.overslept(a, n, money)
            ):
                late.append((self.pulled(a), a))
        costs = []
        for a in inside:
            if a != boss:
                gap = self.mean(boss) - self.mean(a)
                costs.append((gap * gap / (1 / self.pulled(a) + 1 / self.pulled(boss)), a))
        other = min(late or costs)[1]
        return sorted([boss, other]), self.length(self.pulled(other), [boss, other], money)

    def draw(self, rng: np.random.Generator, a: int, pulls: int) -> int:
        total = int(rng.binomial(pulls, 0.5 + self.shrink * (self.means[a] - 0.5)))
        if self.noise is not None:
            p = -math.expm1(-self.noise)
            total += int(rng.geometric(p)) - int(rng.geometric(p))
        return total

    def run(
        self, rng: np.random.Generator, cap: int = 10**12
    ) -> tuple[int, int, bool, int, list[int]]:
        """Samples, recommendation, stopped, rounds, pulls."""
        arms = self.arms
        self.all = [[] for _ in range(arms)]
        own: list[list[Release]] = [[] for _ in range(arms)]
        rival: list[list[Release]] = [[] for _ in range(arms)]
        active, out, money = list(range(arms)), set[int](), [0.0] * arms
        n = rounds = 0
        length = self.first
        while True:
            boss, second = self.ranking(active)[:2]
            octave = (
                min(4, max(0, math.floor(math.log2(math.sqrt(len(active) - 1)) + 0.3)))
                if rounds
                else 0
            )
            used = sum(self.pulled(a) for a in range(arms))
            length = min(length, (cap - used) // (len(active) - 1 + 2**octave))
            rest = self.ranking([a for a in range(arms) if a not in out])
            if length == 0:
                named = rest or self.ranking(list(range(arms)))
                return used, named[0], False, rounds, [self.pulled(a) for a in range(arms)]
            fresh = {}
            for a in active:
                pulls = length * 2**octave if a == boss else length
                fresh[a] = (self.draw(rng, a, pulls), pulls, octave if a == boss else 0)
            for a in active:
                self.all[a].append(fresh[a])
                if rounds:
                    own[a].append(fresh[a])
                    rival[a].append(fresh[second if a == boss else boss])
            rounds, n = rounds + 1, n + length
            boss = self.ranking(active)[0]
            for a in active:
                x = (self.clipped(a) + self.clipped(boss)) / 2
                money[a] = self.evidence(x, x, own[a], rival[a], n)
                out.discard(a)
                if self.beaten(own[a], rival[a], n, self.need):
                    out.add(a)
            rest = self.ranking([a for a in range(arms) if a not in out])
            good = bool(rest and self.zeta) and all(
                self.beaten(own[a], own[rest[0]], n, self.zeta_need, self.zeta) for a in rest[1:]
            )
            if len(rest) == 1 or good:
                pulled = [self.pulled(a) for a in range(arms)]
                return sum(pulled), rest[0], True, rounds, pulled
            active, length = self.plan(n, out, money)
