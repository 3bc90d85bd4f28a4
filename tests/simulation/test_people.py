"""Arms that drift: simulated person by person, and equal to slow loops written from the
paper.

The slow versions are naive.py's, fed by a source that draws each person's reward when
the person comes, with a drift written here once more. They draw from the same
Generator, so equality is asked for.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

import discreet
from discreet import Bernoulli, Drift, Drifting, InvalidInputError, OwnStrategy, Strategy
from discreet.simulation.engine import runner_of, simulate_quietly
from discreet.simulation.paths import run_path
from discreet.simulation.people import run_people
from discreet.strategies.strategy import Strategy as AnyStrategy
from tests.support import naive
from tests.support.oracle import OPTIONS, make, phased_oracle, stream_oracle

MEANS = [0.8, 0.55, 0.5, 0.3]
WAYS: dict[Drift, Callable[[int], float]] = {
    Drift.sites(0.3, block=7): lambda i: (0.3, -0.3)[i // 7 % 2],
    Drift.step(-0.4, at=60): lambda i: -0.4 * (i >= 60),
    Drift.season(0.5, period=90): lambda i: 0.5 * math.sin(2 * math.pi * i / 90),
    Drift.trend(0.45, over=200): lambda i: 0.45 * min(i / 200, 1),
}


class Enrolled(naive.Source):
    """A source that knows the person's number, and holds back rewards until a sum is
    asked for.
    """

    def __init__(
        self, rng: np.random.Generator, strategy: Strategy, moved: Callable[[int], float]
    ) -> None:
        super().__init__(rng, "bernoulli", MEANS)
        self.moved, self.people, self.held = moved, 0, [0.0] * len(MEANS)
        self.truth = 1.0
        if strategy.estimator == "ctb":
            self.truth = 1 / (1 + math.exp(-float(strategy.epsilon or 0)))

    def one(self, arm: int) -> float:
        """The reward (or response) of the next person."""
        p = min(1.0, max(0.0, self.arms[arm] + self.moved(self.people)))
        self.people += 1
        return float(self.rng.random() < p * self.truth + (1 - p) * (1 - self.truth))

    def enrol(self, arm: int) -> None:
        """A person whose reward waits for a release."""
        self.held[arm] += self.one(arm)

    def total(self, arm: int, count: int) -> float:
        """What the arm's people since the last sum were worth."""
        total, self.held[arm] = self.held[arm], 0.0
        return total


class Desk(naive.Sampler):
    """A sampler that enrols whom it samples."""

    source: Enrolled

    def arm(
        self, means: list[float], bonuses: list[float], pulls: list[int], active: list[bool]
    ) -> int:
        chosen = super().arm(means, bonuses, pulls, active)
        self.source.enrol(chosen)
        return chosen


def slow(
    strategy: Strategy, moved: Callable[[int], float], rng: np.random.Generator, cap: int
) -> naive.Outcome:
    """One run, from the paper's pseudocode."""
    source = Enrolled(rng, strategy, moved)
    ids = strategy.beta == "ids"
    rule = {"top-two": "top two"}.get(strategy.sampling, strategy.sampling)
    cost = naive.d_private if strategy.cost == "private" else naive.d_gauss
    parts: Any = (
        rule,
        cost,
        (strategy.epsilon or math.inf) / 2,
        0.5 if ids else float(strategy.beta),
        ids,
        len(MEANS),
    )
    if not strategy.phased:
        return stream_oracle(strategy, source, naive.Sampler(*parts), cap)
    desk = Desk(*parts)
    desk.source = source
    for arm in range(len(MEANS)):
        source.enrol(arm)
    return phased_oracle(strategy, source, desk, cap)


def generator(seed: int, run: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))


CASES = [
    case for case in OPTIONS if case[0] != "dp-se" and (made := make(*case)) and made.phased
] + [case for case in OPTIONS if case[0] in ("ttucb", "ctb-tt", "gauss-tt")]


@pytest.mark.parametrize("place", range(len(CASES)), ids=lambda place: str(CASES[place]))
def test_every_run_equals_the_slow_one(place: int) -> None:
    strategy = make(*CASES[place])
    assert strategy is not None
    drift, moved = list(WAYS.items())[place % len(WAYS)]
    found = simulate_quietly(Drifting(Bernoulli(MEANS), drift), strategy, 3, 7, 1500)
    for run in range(3):
        outcome = slow(strategy, moved, generator(7, run), 1500)
        assert (found.samples[run], found.recommendation[run], found.stopped[run]) == (
            outcome.samples,
            outcome.recommendation,
            outcome.stopped,
        )
        assert found.rounds[run] == outcome.rounds
        assert found.pulls[run].tolist() == outcome.pulls


@pytest.mark.parametrize("drift", WAYS)
def test_dp_se_equals_a_slow_loop(drift: Drift) -> None:
    """Two arms in turn; each epoch's people come before its noise."""
    moved, epsilon, delta = WAYS[drift], 1.0, 0.3

    class Turns(naive.Source):
        people, held = 0, 0.0

        def total(self, arm: int, count: int) -> float:
            if arm == 1:
                return self.held
            sums = [0.0, 0.0]
            for _ in range(count):
                for turn, mean in enumerate((0.6, 0.5)):
                    p = min(1.0, max(0.0, mean + moved(self.people)))
                    sums[turn] += self.rng.random() < p
                    self.people += 1
            self.held = sums[1]
            return sums[0]

        noise: list[float] = []

    drifting = Drifting(Bernoulli([0.6, 0.5]), drift)
    found = simulate_quietly(drifting, discreet.dp_se(epsilon, delta), 2, 3, 60_000)
    for run in range(2):
        outcome = naive.run_dpse(Turns(generator(3, run), "", []), 2, epsilon, delta, 60_000)
        assert found.samples[run] == outcome.samples
        assert found.recommendation[run] == outcome.recommendation
        assert found.rounds[run] == outcome.rounds
        assert found.pulls[run].tolist() == outcome.pulls
