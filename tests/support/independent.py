"""A simulation of its own: the paper's pseudocode on many runs side by side, a row
each, one reward at a time.

It shares nothing with discreet or naive.py: its random source is Philox, thresholds are
made with SciPy from the paper's equations, rewards are drawn one by one (randomised
responses in two steps), costs are compared as costs. So it agrees in law only, which is
what it is for. Departures from the paper are those of the docs: the first K rewards are
released as phase 1 with their noise, and the second case of AdaP-TT*'s threshold is
SHARP.

It takes a minute, so what it found is kept: `python -m tests.support.independent` makes
tests/assets/independent.json.
"""

import json
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import zeta

from tests.support.reference import ASSETS, INSTANCES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
VARIANCE = 0.25
PHASES = 40


class Outcomes(NamedTuple):
    """What the runs came to, an entry each; runs that reached the cap have it as their
    samples.
    """

    samples: Ints
    recommendation: Ints
    pulls: Ints


class Finished:
    """The runs that still go on, and what the others came to."""

    def __init__(self, runs: int, arms: int) -> None:
        self.left = np.arange(runs)
        self.outcomes = Outcomes(
            np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.zeros((runs, arms), np.int64)
        )

    def leave(
        self, gone: NDArray[np.bool_], samples: int, recommendation: Ints, pulls: Ints
    ) -> NDArray[np.bool_]:
        """Write down the runs that are `gone`; which of the others stay."""
        rows = self.left[gone]
        self.outcomes.samples[rows] = samples
        self.outcomes.recommendation[rows] = recommendation[gone]
        self.outcomes.pulls[rows] = pulls[gone]
        self.left = self.left[~gone]
        return ~gone


# --- thresholds -----------------------------------------------------------------------


def c_g(x: float) -> float:
    """C_G(x), Eq. def_C_gaussian_KK18Mixtures."""

    def value(lam: float) -> float:
        g = 2 * lam - 2 * lam * math.log(4 * lam) + math.log(zeta(2 * lam)) - math.log(1 - lam) / 2
        return float((g + x) / lam)

    return float(
        minimize_scalar(
            value, bounds=(0.5 + 1e-9, 1 - 1e-12), method="bounded", options={"xatol": 1e-12}
        ).fun
    )


def c_plain(a: float, b: float, arms: int, delta: float) -> float:
    """c^G, Eq. threshold_non_private."""
    return (
        2 * c_g(math.log((arms - 1) / delta) / 2)
        + 2 * math.log(4 + math.log(a))
        + 2 * math.log(4 + math.log(b))
    )


def k(x: float) -> float:
    """The phase whose local count is x."""
    return math.log2(x) + 2


def c_private(a: float, b: float, arms: int, delta: float, epsilon: float) -> float:
    """c^{G,ε}, Eq. threshold_TTUCB_global_v1."""
    noise = sum(math.log(math.pi**2 * arms * k(n) ** 2 / (3 * delta)) ** 2 / n for n in (a, b))
    union = k(a) ** 2 * k(b) ** 2 * math.pi**4 / 18
    return 2 * c_plain(a, b, arms, delta / union) + noise / (epsilon**2 * VARIANCE)


def c_star(a: float, b: float, arms: int, delta: float, epsilon: float) -> tuple[float, float]:
    """The first case of c̃^{G,ε}, Eq. threshold_TTUCB_global_v2, and SHARP of the
    docs.
    """
    sigma = math.sqrt(VARIANCE)
    logs = {n: math.log(math.pi**2 * arms * k(n) ** 2 / (2 * delta)) for n in (a, b)}
    roots = {}
    for n in (a, b):
        x = 2 * logs[n] + 4 * math.log(4 + math.log(n)) + 0.5
        roots[n] = brentq(lambda w, x=x: w - math.log(w) - x, 1.0, 10 * x, xtol=1e-12) / 2
    cross = sum(math.sqrt(roots[n] / n) * logs[n] for n in (a, b))
    low = (
        c_private(a, b, arms, 2 * delta / 3, epsilon) / 2 + math.sqrt(2) / (epsilon * sigma) * cross
    )
    share = {0: b / (a + b), 1: a / (a + b)}
    high = sum(
        share[place]
        * (
            logs[n] / (4 * VARIANCE)
            + epsilon / (2 * math.sqrt(2) * sigma) * math.sqrt(n * roots[n])
        )
        for place, n in enumerate((a, b))
    )
    return low, high


# --- what all Top Two strategies share ------------------------------------------------


def costs(gaps: Floats, best: Ints, counts: Ints, cap: float) -> Floats:
    """W of every arm against `best`: (gap)₊ min{cap, gap₊} / (2σ² (1/n + 1/m));
    infinite for `best` itself.
    """
    rows = np.arange(len(best))
    gaps = np.maximum(gaps, 0)
    value = (
        gaps
        * np.minimum(gaps, cap)
        / (2 * VARIANCE * (1 / counts[rows, best][:, None] + 1 / counts))
    )
    value[rows, best] = np.inf
    return value


class TwoArms:
    """β-tracking with β = 1/2: who led how often, and was pulled how often while
    leading.
    """

    def __init__(self, runs: int, arms: int) -> None:
        self.led, self.led_pulls = np.zeros((runs, arms)), np.zeros((runs, arms))

    def choose(self, leader: Ints, challenger: Ints) -> Ints:
        """The arm to pull in each run."""
        rows = np.arange(len(leader))
        self.led[rows, leader] += 1
        own = self.led_pulls[rows, leader] <= self.led[rows, leader] / 2
        self.led_pulls[rows, leader] += own
        return np.where(own, leader, challenger)

    def keep(self, stay: NDArray[np.bool_]) -> None:
        """Forget the runs that have ended."""
        self.led, self.led_pulls = self.led[stay], self.led_pulls[stay]


def top_two_stream(
    means: tuple[float, ...],
    delta: float,
    runs: int,
    seed: int,
    cap: int,
    epsilon: float = math.inf,
) -> Outcomes:
    """TTUCB, or CTB-TT with a finite ε: every reward is answered truthfully with chance
    e^ε/(1 + e^ε).
    """
    rng, arms = np.random.Generator(np.random.Philox(seed)), len(means)
    mu, honest = np.array(means), 1 / (1 + math.exp(-epsilon))
    constant = c_plain(1, 1, arms, delta) - 4 * math.log(4)
    finished, tracking = Finished(runs, arms), TwoArms(runs, arms)
    sums, pulls = np.zeros((runs, arms)), np.zeros((runs, arms), np.int64)
    for n in range(cap + 1):
        rows = np.arange(len(finished.left))
        if n < arms:
            pulled = np.full(runs, n)
        else:
            mean = sums / pulls
            best = mean.argmax(axis=1)
            slack = costs(mean[rows, best][:, None] - mean, best, pulls, math.inf) - constant
            extra = 2 * np.log(4 + np.log(pulls))
            slack -= extra + extra[rows, best][:, None]
            done = np.asarray((slack >= 0).all(axis=1) | (n == cap))
            if done.any():
                stay = finished.leave(done, n, best, pulls)
                sums, pulls, mean, rows = sums[stay], pulls[stay], mean[stay], rows[: stay.sum()]
                tracking.keep(stay)
                if len(rows) == 0:
                    break
            upper = mean + np.sqrt(2 * VARIANCE * 1.2 * 2.2 * math.log(n) / pulls)
            leader = upper.argmax(axis=1)
            against = costs(mean[rows, leader][:, None] - mean, leader, pulls, math.inf)
            pulled = tracking.choose(leader, against.argmin(axis=1))
        reward = rng.random(len(rows)) < mu[pulled]
        if epsilon < math.inf:
            reward ^= rng.random(len(rows)) >= honest
        sums[rows, pulled] += reward
        pulls[rows, pulled] += 1
    return finished.outcomes


def top_two_phased(
    means: tuple[float, ...],
    epsilon: float,
    delta: float,
    star: bool,
    runs: int,
    seed: int,
    cap: int,
) -> Outcomes:
    """AdaP-TT, or AdaP-TT* (`star`): doubling and forgetting, Laplace noise of scale
    1/(ε · count) on each mean.
    """
    rng, arms = np.random.Generator(np.random.Philox(seed)), len(means)
    mu, half = np.array(means), epsilon / 2 if star else math.inf
    sizes = [2.0**power for power in range(PHASES)]
    pair = c_star if star else lambda *a: 2 * (c_private(*a),)
    table = np.array([[pair(a, b, arms, delta, epsilon) for b in sizes] for a in sizes])
    finished, tracking = Finished(runs, arms), TwoArms(runs, arms)
    pulls, begun = np.ones((runs, arms), np.int64), np.ones((runs, arms), np.int64)
    power, sums = np.zeros((runs, arms), np.int64), np.zeros((runs, arms))
    mean = (rng.random((runs, arms)) < mu) + rng.laplace(0, 1 / epsilon, (runs, arms))
    leader = np.zeros(runs, np.int64)
    fresh = np.ones(runs, np.bool_)
    for n in range(arms, cap + 1):
        done = np.full(len(fresh), n == cap)
        done[fresh] |= beats_all(mean[fresh], power[fresh], table, half)
        if done.any():
            stay = finished.leave(done, n, mean.argmax(axis=1), pulls)
            pulls, begun, power, sums = pulls[stay], begun[stay], power[stay], sums[stay]
            mean, leader, fresh = mean[stay], leader[stay], fresh[stay]
            tracking.keep(stay)
            if len(fresh) == 0:
                break
        rows = np.arange(len(fresh))
        rate = (power[fresh] + 2) / 2.0 ** power[fresh]
        leader[fresh] = (mean[fresh] + np.sqrt(rate) + rate / epsilon).argmax(axis=1)
        against = costs(mean[rows, leader][:, None] - mean, leader, pulls, half)
        pulled = tracking.choose(leader, against.argmin(axis=1))
        sums[rows, pulled] += rng.random(len(rows)) < mu[pulled]
        pulls[rows, pulled] += 1
        fresh = pulls[rows, pulled] >= 2 * begun[rows, pulled]
        ended, arm = rows[fresh], pulled[fresh]
        size = pulls[ended, arm] - begun[ended, arm]
        mean[ended, arm] = sums[ended, arm] / size + rng.laplace(0, 1 / (epsilon * size))
        power[ended, arm], begun[ended, arm], sums[ended, arm] = np.log2(size), pulls[ended, arm], 0
    return finished.outcomes


def beats_all(mean: Floats, power: Ints, table: Floats, half: float) -> NDArray[np.bool_]:
    """GLR stopping of runs with a new mean: W^G ≥ low, or gap ≥ ε/2 and W^{G,ε} ≥ high,
    against every other arm.
    """
    rows, best = np.arange(len(mean)), mean.argmax(axis=1)
    gaps, counts = mean[rows, best][:, None] - mean, 2**power
    bars = table[power[rows, best][:, None], power]
    plain = costs(gaps, best, counts, math.inf) >= bars[..., 0]
    private = (gaps >= half) & (costs(gaps, best, counts, half) >= bars[..., 1])
    return np.asarray((plain | private | (costs(gaps, best, counts, half) == np.inf)).all(axis=1))


def dp_se(means: tuple[float, ...], epsilon: float, delta: float, runs: int, seed: int) -> Outcomes:
    """DP-SE (Sajed and Sheffet), run by run."""
    rng, arms = np.random.Generator(np.random.Philox(seed)), len(means)
    finished = Finished(runs, arms).outcomes
    for run in range(runs):
        active, epoch = list(range(arms)), 0
        while len(active) > 1:
            epoch += 1
            log8, log4 = (math.log(n * len(active) * epoch**2 / delta) for n in (8, 4))
            length = math.floor(max(32 * log8 * 4.0**epoch, 8 * log4 * 2.0**epoch / epsilon) + 1)
            mean = {
                a: (rng.random(length) < means[a]).mean() + rng.laplace(0, 1 / (epsilon * length))
                for a in active
            }
            finished.pulls[run, active] += length
            radius = math.sqrt(log8 / (2 * length)) + log4 / (epsilon * length)
            active = [a for a in active if max(mean.values()) - mean[a] <= 2 * radius]
        finished.recommendation[run] = active[0]
    finished.samples[:] = finished.pulls.sum(axis=1)
    return finished


# --- what is compared -----------------------------------------------------------------

CAP = 40_000
RUNS = {"ttucb": 700, "ctb-tt": 700, "adap-tt": 300, "adap-tt-star": 300, "dp-se": 1500}
STRATEGIES: dict[str, Callable[[tuple[float, ...], int], Outcomes]] = {
    "ttucb": lambda means, runs: top_two_stream(means, 0.1, runs, 1, CAP),
    "ctb-tt": lambda means, runs: top_two_stream(means, 0.1, runs, 2, CAP, 2),
    "adap-tt": lambda means, runs: top_two_phased(means, 2, 0.3, False, runs, 3, CAP),
    "adap-tt-star": lambda means, runs: top_two_phased(means, 0.5, 0.3, True, runs, 4, CAP),
    "dp-se": lambda means, runs: dp_se(means, 0.5, 0.1, runs, 5),
}
CELLS = [(name, instance) for name in STRATEGIES for instance in ("mu3", "mu4", "mu5")]
ASSET = ASSETS / "independent.json"


def simulated(name: str, instance: str) -> Outcomes:
    """The runs of a cell, played now."""
    return STRATEGIES[name](tuple(float(mean) for mean in INSTANCES[instance]["means"]), RUNS[name])


def kept(name: str, instance: str) -> Outcomes:
    """The runs of a cell, as they were played once."""
    found = json.loads(ASSET.read_text())[f"{name} {instance}"]
    return Outcomes(*(np.array(found[field], np.int64) for field in Outcomes._fields))


def main() -> None:
    """Play all cells and keep them, a line each."""
    lines = []
    for name, instance in CELLS:
        outcomes = simulated(name, instance)._asdict()
        found = {field: column.tolist() for field, column in outcomes.items()}
        lines.append(
            f"{json.dumps(f'{name} {instance}')}: {json.dumps(found, separators=(',', ':'))}"
        )
    ASSET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
