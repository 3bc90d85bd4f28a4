"""The oracle: the paper's pseudocode, sample by sample, slow and obvious. Shares no
code with discreet.

It asks the same source (`Source`) for a phase's sum as the engine does, in the same
order, so that draws line up. Where the paper is silent or wrong it follows the docs.
Lines of the pseudocode are quoted where they happen.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.naive_rules import Tracker, ts_leader

Numerator = Callable[[float, float], float]


class Source:
    """Rewards and noise of one run, from one Generator."""

    def __init__(self, rng: np.random.Generator, law: str, arms: Sequence[Any]) -> None:
        """`law`: "bernoulli" (arms = means), "discrete" (arms = (values,
        probabilities)), "beta" (arms = (a, b)), "gaussian" (arms = (mean, sigma)).
        """
        self.rng, self.law, self.arms = rng, law, arms

    def total(self, arm: int, count: int) -> float:
        """Sum of `count` rewards."""
        if self.law == "bernoulli":
            return float(self.rng.binomial(count, self.arms[arm]))
        if self.law == "gaussian":
            mean, sigma = self.arms[arm]
            return float(count * mean + sigma * math.sqrt(count) * self.rng.standard_normal())
        if self.law == "beta":
            total = 0.0
            for _ in range(count):
                total += self.rng.beta(*self.arms[arm])
            return total
        values, chances = self.arms[arm]
        possible = [i for i, chance in enumerate(chances) if chance > 0]
        total, left = 0.0, count
        for index, value in enumerate(values):
            if left == 0:
                break
            rest = sum(reversed(chances[index:]))
            share = 1.0 if index >= possible[-1] else min(chances[index] / rest, 1.0)
            hits = int(self.rng.binomial(left, share))
            total += hits * value
            left -= hits
        return total

    def one(self, arm: int) -> float:
        """One reward."""
        if self.law == "bernoulli":
            return 1.0 if self.rng.random() < self.arms[arm] else 0.0
        if self.law == "beta":
            return float(self.rng.beta(*self.arms[arm]))
        if self.law == "gaussian":
            mean, sigma = self.arms[arm]
            return float(mean + sigma * self.rng.standard_normal())
        values, chances = self.arms[arm]
        possible = [i for i, chance in enumerate(chances) if chance > 0]
        u, reached = self.rng.random(), 0.0
        for index in possible:
            reached += chances[index]
            if u < reached or index == possible[-1]:
                return float(values[index])
        raise AssertionError

    def laplace(self, scale: float) -> float:
        """Laplace noise."""
        return float(self.rng.laplace(0.0, scale))

    def gauss(self, scale: float) -> float:
        """Gaussian noise."""
        return scale * float(self.rng.standard_normal())


@dataclass
class Outcome:
    """What a run came to."""

    samples: int
    recommendation: int
    stopped: bool
    pulls: list[int]
    rounds: int
    trace: list[list[float]] = field(default_factory=list)


def argmax(
    values: Sequence[float] | Mapping[int, float], among: Iterable[int] | None = None
) -> int:
    """First index of the largest value."""
    best = -1
    for index in among if among is not None else range(len(values)):
        if best < 0 or values[index] > values[best]:
            best = index
    return best


def d_gauss(gap: float, half_epsilon: float) -> float:
    """Numerator of W^G."""
    return gap * gap if gap > 0 else 0.0


def d_private(gap: float, half_epsilon: float) -> float:
    """Numerator of W^{G,eps}."""
    return gap * min(half_epsilon, gap) if gap > 0 else 0.0


def cost(d: float, n: int, m: int, two_variance: float) -> float:
    """W."""
    return d / (two_variance * (1.0 / n + 1.0 / m))


def kl_share(p: float, q: float, n: int, m: int) -> float:
    """n kl(p, x) with x the mean of n samples of mean p and m of mean q."""
    off = (q - p) * (m / (n + m))
    one = p * math.log1p(off / p) if p > 0 else 0.0
    zero = (1.0 - p) * math.log1p(-off / (1.0 - p)) if p < 1 else 0.0
    return n * (0.0 - one - zero)


def w_kl(p: float, q: float, n: int, m: int) -> float:
    """W^KL."""
    return kl_share(p, q, n, m) + kl_share(q, p, m, n) if p > q else 0.0


def tc_challenger(
    leader: int,
    means: list[float],
    pulls: list[int],
    d: Numerator,
    half_epsilon: float,
    yielding: Sequence[int] = (),
) -> int:
    """C_n = argmin W: W = 0 first, otherwise the largest (1/N_a + 1/N_B)/d_a.

    One of `yielding` only if there is nobody else.
    """
    others = [a for a in range(len(means)) if a != leader]
    left = [a for a in others if a not in yielding]
    others = left or others[:1]
    tops = {a: d(means[leader] - means[a], half_epsilon) for a in others}
    for a in others:
        if tops[a] <= 0:
            return a
    return argmax({a: (1.0 / pulls[a] + 1.0 / pulls[leader]) / tops[a] for a in others}, others)


def beats(
    how: str,
    i: int,
    j: int,
    means: list[float],
    counts: list[int],
    low: float,
    high: float,
    half_epsilon: float,
    two_variance: float,
) -> bool:
    """STOP_{i,j} of a phased strategy."""
    gap = means[i] - means[j]
    w_g = cost(d_gauss(gap, half_epsilon), counts[i], counts[j], two_variance)
    w_p = cost(d_private(gap, half_epsilon), counts[i], counts[j], two_variance)
    large = gap >= half_epsilon - 2.0**-50 * max(abs(means[i]), abs(means[j]))
    if how == "low":
        return w_g >= low
    if how == "split":
        return w_p >= high if large else w_g >= low
    assert how == "either"
    return w_g >= low or (large and w_p >= high)


@dataclass
class Sampler:
    """What to pull: Top Two with a fixed share or IDS and any leader and challenger,
    uniform, LUCB, elimination, Track-and-Stop.
    """

    rule: str
    d: Numerator
    half_epsilon: float
    beta: float
    ids: bool
    arms: int
    kl: bool = False
    """W^KL in place of W."""
    yields: bool = False
    two_variance: float = 0.5

    def __post_init__(self) -> None:
        """L_a = N_a^a = 0."""
        self.tracker = Tracker(self.arms)
        self.led = [0] * self.arms
        self.led_pulls = [0] * self.arms
        self.share = [0.0] * self.arms

    def arm(
        self,
        means: list[float],
        bonuses: list[float],
        pulls: list[int],
        active: list[bool],
        sums: list[float],
        doubled: Sequence[int] = (),
    ) -> int:
        """a_n."""
        everyone = range(self.arms)
        if self.rule in ("uniform", "elimination"):
            return min((pulls[a], a) for a in everyone if active[a])[1]
        upper = [means[a] + bonuses[a] for a in everyone]
        if self.rule == "lucb":
            best = argmax(means)
            rival = argmax(upper, [a for a in everyone if a != best])
            return min((pulls[a], a) for a in (best, rival))[1]
        b = argmax(means)
        if self.rule == "top two":
            b = argmax(upper)  # "Set arm B_n = argmax mean + bonus"
        if self.rule == "ts-tc":
            b = ts_leader(means, pulls, sums, self.two_variance)
        if self.rule == "track-and-stop":
            tops = [self.d(means[b] - mean, self.half_epsilon) for mean in means]
            return self.tracker.arm(b, means if self.kl else None, tops, pulls)
        yielding = doubled if self.yields else ()
        c = self.challenger(b, means, pulls, yielding)  # "Set arm C_n = argmin W"
        if self.ids:
            self.share[b] += self.ids_share(b, c, means, pulls)
            goal = self.share[b]
        else:
            goal = self.beta * (self.led[b] + 1)
        self.led[b] += 1
        if self.led_pulls[b] <= goal:  # "a_n = B_n if N^B_B <= beta L_{n+1,B}"
            self.led_pulls[b] += 1
            return b
        return c

    def challenger(
        self, b: int, means: list[float], pulls: list[int], yielding: Sequence[int] = ()
    ) -> int:
        """C_n."""
        if self.rule == "eb-tci":
            others = [a for a in range(self.arms) if a != b]
            evidence = {a: self.evidence(b, a, means, pulls, self.two_variance) for a in others}
            return min(others, key=lambda a: (evidence[a] + math.log(pulls[a]), a))
        if not self.kl:
            return tc_challenger(b, means, pulls, self.d, self.half_epsilon, yielding)
        others = [a for a in range(self.arms) if a != b]
        return argmax({a: -w_kl(means[b], means[a], pulls[b], pulls[a]) for a in others}, others)

    def ids_share(self, b: int, c: int, means: list[float], pulls: list[int]) -> float:
        """beta_n of IDS."""
        if self.kl and means[b] > means[c]:
            own = kl_share(means[b], means[c], pulls[b], pulls[c])
            return own / (own + kl_share(means[c], means[b], pulls[c], pulls[b]))
        return pulls[c] / (pulls[c] + pulls[b])

    def evidence(
        self, i: int, j: int, means: list[float], pulls: list[int], two_variance: float
    ) -> float:
        """W of the stopping rule."""
        if self.kl:
            return w_kl(means[i], means[j], pulls[i], pulls[j])
        return cost(
            self.d(means[i] - means[j], self.half_epsilon), pulls[i], pulls[j], two_variance
        )


def run_phased(
    source: Source,
    arms: int,
    sampler: Sampler,
    epsilon: float,
    forget: bool,
    whole: bool,
    thresholds: Callable[[int, int, int, int], tuple[float, float]],
    bonus: Callable[[int, int, int], float],
    stop: str,
    two_variance: float,
    cap: int,
) -> Outcome:
    """DAF (forget, Laplace noise) or DPA, one episode per arm or one global episode
    (`whole`).

    `thresholds(phase_i, phase_j, count_i, count_j)` gives (low, high), `bonus(phase,
    count, sum of counts)` the bonus.
    """
    everyone = range(arms)
    pulls, begun, phase = [1] * arms, [0] * arms, [0] * arms
    means, counts, sums = [0.0] * arms, [0] * arms, [0.0] * arms
    active = [True] * arms
    trace: list[list[float]] = []
    n, rounds = arms, 0

    def release(a: int) -> None:
        fresh = pulls[a] - begun[a]
        total = source.total(a, fresh)
        sums[a] += total
        counts[a] = fresh if forget else pulls[a]
        means[a] = (total if forget else sums[a]) / counts[a]
        if epsilon < math.inf:
            means[a] += source.laplace(1.0 / (epsilon * counts[a]))
        begun[a] = pulls[a]
        phase[a] += 1

    for a in everyone:
        release(a)
        if not whole:
            trace.append([n, a, means[a], counts[a], *pulls])
    rounds = 1 if whole else arms
    if whole:
        trace.append([n, arms - 1, means[-1], counts[-1], *pulls])
    while True:
        best = argmax(means, [a for a in everyone if active[a]])
        good = [
            a
            for a in everyone
            if a != best
            and active[a]
            and beats(
                stop,
                best,
                a,
                means,
                counts,
                *thresholds(phase[best], phase[a], counts[best], counts[a]),
                sampler.half_epsilon,
                two_variance,
            )
        ]
        if sampler.rule == "elimination":
            for a in good:
                active[a] = False
            done = sum(active) == 1
        else:
            done = len(good) == arms - 1
        if done or n >= cap:
            return Outcome(n, best, done, pulls, rounds, trace)
        bonuses = [bonus(phase[a], counts[a], sum(counts)) for a in everyone]
        while n < cap:
            doubled = [i for i in everyone if pulls[i] >= 2 * begun[i]] if whole else []
            a = sampler.arm(means, bonuses, pulls, active, sums, doubled)
            pulls[a] += 1
            n += 1
            if not whole and pulls[a] >= 2 * begun[a]:  # "If N_{n,a} >= 2 N_{T_k(a),a}"
                release(a)
                rounds += 1
                trace.append([n, a, means[a], counts[a], *pulls])
                break
            if whole and all(pulls[i] >= 2 * begun[i] for i in everyone):
                for i in everyone:
                    release(i)
                rounds += 1
                trace.append([n, a, means[a], counts[a], *pulls])
                break


def run_stream(
    source: Source,
    arms: int,
    sampler: Sampler,
    noise: float,
    threshold: Callable[[int, int, int], float],
    bonus: Callable[[int, int], float],
    two_variance: float,
    cap: int,
) -> Outcome:
    """MLE, CTB (a source of responses) or Gaussian noise. `threshold(n_i, n_j, n)`,
    `bonus(n_a, n)`.
    """
    everyone = range(arms)
    pulls, sums, active, n = [0] * arms, [0.0] * arms, [True] * arms, 0
    trace: list[list[float]] = []

    def pull(a: int) -> None:
        reward = source.one(a)
        if noise > 0:
            reward += source.gauss(noise)
        sums[a] += reward
        pulls[a] += 1
        trace.append([n, a, sums[a] / pulls[a], pulls[a], *pulls])

    for a in everyone:
        n += 1
        pull(a)
    while True:
        means = [sums[a] / pulls[a] for a in everyone]
        best = argmax(means, [a for a in everyone if active[a]])
        good = []
        for a in everyone:
            if a != best and active[a]:
                found = sampler.evidence(best, a, means, pulls, two_variance)
                if found >= threshold(pulls[best], pulls[a], n):
                    good.append(a)
        if sampler.rule == "elimination":
            for a in good:
                active[a] = False
            done = sum(active) == 1
        else:
            done = len(good) == arms - 1
        if done or n >= cap:
            return Outcome(n, best, done, pulls, n, trace)
        a = sampler.arm(means, [bonus(pulls[i], n) for i in everyone], pulls, active, sums)
        n += 1
        pull(a)


def run_dpse(source: Source, arms: int, epsilon: float, delta: float, cap: int) -> Outcome:
    """DP-SE (Sajed and Sheffet): fresh samples each epoch, estimates, drop what is
    too far below the best.
    """
    active, pulls, means, n, e = list(range(arms)), [0] * arms, [0.0] * arms, 0, 0
    trace: list[list[float]] = []
    while len(active) > 1:
        e += 1
        gap = 2.0**-e
        size = len(active)
        log8, log4 = math.log(8.0 * size * e * e / delta), math.log(4.0 * size * e * e / delta)
        length = math.floor(max(32.0 * log8 / (gap * gap), 8.0 * log4 / (epsilon * gap)) + 1.0)
        if n + size * length > cap:
            for turn in range(min(cap - n, 10**6)):
                pulls[active[turn % size]] += 1
            return Outcome(cap, argmax(means, active), False, pulls, e - 1, trace)
        for a in active:
            means[a] = source.total(a, length) / length + source.laplace(1.0 / (epsilon * length))
            pulls[a] += length
            n += length
        radius = 2.0 * (math.sqrt(log8 / (2.0 * length)) + log4 / (epsilon * length))
        top = max(means[a] for a in active)
        active = [a for a in active if not top - means[a] > radius]
        trace.append([n, len(active), length, e, *means])
    return Outcome(n, active[0], True, pulls, e, trace)
