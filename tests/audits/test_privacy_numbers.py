"""The audit of ε where outcomes are numbers: a pair of sums, or one of three levels.

An honest mechanism would be accused in one of a million runs of a test, and where numpy
draws the noise never: its seed is fixed.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from discreet import Rehearsal, Strategy, audit_privacy, bet_se
from discreet.audits.rehearsal import LiveNoise, NoNoise, SimulatedNoise
from discreet.strategies.run import Totals
from tests.support.audits import SURE, audited, said_in_the_docs

PAIRS = bet_se(0.1, 1.0, outcomes="numbers")
LEVELS = bet_se(0.1, 2.0, trust="local", outcomes="numbers")
HALVES = ["0, or of 1/2", "1/2, or of 1"]


# --- planted mistakes -----------------------------------------------------------------


class TooTall(Rehearsal):
    """Closeness of 1 at the centre and 0 at both ends: outcomes of 0 and 1/2 are then
    3/2 apart.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.live.add_up = self.tall  # type: ignore[method-assign, assignment]

    def tall(self, units: list[int]) -> Totals:
        return Totals(sum(units), sum(2 * min(one, self.grid - one) for one in units))


class BareCloseness(Rehearsal):
    """Noise on the sum alone."""

    def add_noise_to_totals(self, total: Totals) -> Totals:
        return super().add_noise_to_totals(total)._replace(near=total.near)


class Twice(Rehearsal):
    """An ε for the sum, and two for closeness."""

    def add_noise_to_totals(self, total: Totals) -> Totals:
        near = self.source.add_laplace_noise(total.near or 0, 2 * self.epsilon, self.grid)
        return Totals(self.add_noise(total.sum), near)


class Repeated(Rehearsal):
    """The same noise on both: their difference has none."""

    def add_noise_to_totals(self, total: Totals) -> Totals:
        noisy = self.add_noise(total.sum)
        return Totals(noisy, (total.near or 0) + noisy - total.sum)


class TooTrue(Rehearsal):
    """Levels as if ε were 1/0.8 times as large."""

    def respond(self, outcome: float) -> int:
        return self.source.respond(outcome, self.epsilon / 0.8, None, self.middle)


MISTAKES: dict[str, tuple[Strategy, type[Rehearsal], list[str]]] = {
    "closeness released as 1 at the centre": (PAIRS, TooTall, HALVES),
    "closeness without noise": (PAIRS, BareCloseness, HALVES),
    "closeness with the noise of 2ε": (PAIRS, Twice, HALVES),
    "the same noise on sum and closeness": (PAIRS, Repeated, HALVES),
    "responses on three levels": (LEVELS, TooTrue, HALVES),
}
"""Each with the beginning of its row in the docs, and the neighbours that give it
away.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistakes_are_found(name: str) -> None:
    strategy, mistake, where = MISTAKES[name]
    part, runs, low = said_in_the_docs(name)
    found = audited(strategy, mistake, part, runs)
    guilty = [leak.name.partition(" of ")[2] for leak in found.leaks if leak.is_violated]
    assert set(where) <= set(guilty)
    assert f"{found.worst.low:.2f}" == low


@pytest.mark.slow
def test_closeness_without_noise_is_found_in_transcripts() -> None:
    """Of people who all have 1/2 but one, where closeness moves; where all have 0 it
    says nothing.
    """
    found = audit_privacy(PAIRS, 150, SURE, "numpy", 1, ["first"], BareCloseness)
    assert [leak.is_violated for leak in found.leaks] == [False, True]
    honest = audit_privacy(PAIRS, 150, SURE, "numpy", 1, ["first"])
    assert not honest.is_violated


# --- honest mechanisms ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "name", "runs"), [(PAIRS, "release", 40_000), (LEVELS, "response", 20_000)]
)
def test_without_the_mistakes_nothing_is_found(strategy: Strategy, name: str, runs: int) -> None:
    honest = audited(strategy, Rehearsal, "single", runs)
    assert [leak.name for leak in honest.leaks] == [name, *(f"{name} of {one}" for one in HALVES)]
    assert not honest.is_violated
    lows = [leak.low / honest.epsilon for leak in honest.leaks]
    assert 0.85 < lows[0] < 1
    assert min(lows) > 0.6, "0 and 1/2 are 0.83 apart in a pair, the whole ε in levels"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "runs"), [(PAIRS, 120), (LEVELS, 300)], ids=["pairs", "levels"]
)
def test_honest_mechanisms_are_not_accused(strategy: Strategy, runs: int) -> None:
    """Of all parts; single releases by OpenDP. False alarm 1e-6, whatever the runs: as
    many as show an ε of 1.1, or of 2.1 in levels, where neighbours never look alike.
    """
    found = audit_privacy(strategy, runs, SURE)
    assert not found.is_violated
    assert {leak.noise for leak in found.leaks[:3]} == {"opendp"}
    assert len(found.leaks) + len(found.left_out) == 7


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_differences_and_bits_are_audited_too(epsilon: float) -> None:
    strategy = bet_se(0.1, epsilon, outcomes="numbers")
    assert Rehearsal(strategy, 200, NoNoise()).live.current.difference == (epsilon < 1)  # type: ignore[attr-defined]
    found = audited(strategy, Rehearsal, "first", 150)
    assert not found.is_violated


@pytest.mark.real_chance
def test_numpy_draws_the_law_of_live_levels() -> None:
    """Both against the exact law, by chi-squared statistics with two degrees of freedom
    that are exceeded with probability 1e-9.
    """
    draws, slip = 3000, 1 / (math.exp(2) + 2)
    for source in (LiveNoise(), SimulatedNoise(2)):
        for outcome, level in ((0.0, 0), (0.25, 256), (1.0, 1024)):
            sent = Counter(source.respond(outcome, 2.0, None, 0.25) for _ in range(draws))
            chances = np.array([slip] * 3)
            chances[[0, 256, 1024].index(level)] = 1 - 2 * slip
            seen = np.array([sent[one] for one in (0, 256, 1024)])
            assert seen.sum() == draws
            chi = float(((seen - draws * chances) ** 2 / (draws * chances)).sum())
            assert chi < 2 * math.log(1e9), source.name
