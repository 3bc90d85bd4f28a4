"""Why answers are taken in the global order of assignment, not in each arm's own.

Two arms, people assigned in turn. Each arm has a test martingale as tight as can be: a
success multiplies it by 1 + η, has the chance 1/(1 + η), and a failure ends it. A test
of level δ stops when the product of the two reaches 1/δ. Successes are told at once,
failures late. In the order of assignment the first failure ends the product, whenever
it is told. With a queue for each arm, both queues are held up at their own peaks, and
the level is that of a product of two maxima, δ (1 + log(1/δ)) for small η.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

TellResult = Sequence[float]
"""When each person's answer is told, in the order of assignment; arms take turns."""
Order = Callable[[TellResult, float], tuple[int, int]]
"""How many answers of each arm count at a time."""
LATE = 10**6


def in_own_order(told: TellResult, now: float) -> tuple[int, int]:
    """An answer counts when all earlier people of its arm have answered."""
    return leading(told[0::2], now), leading(told[1::2], now)


def in_global_order(told: TellResult, now: float) -> tuple[int, int]:
    """An answer counts when all people assigned earlier have answered."""
    people = leading(told, now)
    return (people + 1) // 2, people // 2


def leading(told: TellResult, now: float) -> int:
    return next((place for place, at in enumerate(told) if at > now), len(told))


def delays(successes: Sequence[bool]) -> list[float]:
    """Person i is assigned at time i; successes are told at once, failures late."""
    return [place + (0 if success else LATE) for place, success in enumerate(successes)]


def punctual(successes: Sequence[bool]) -> list[float]:
    """Everybody tells at once."""
    return [float(place) for place in range(len(successes))]


def rejects(
    order: Order,
    successes: Sequence[bool],
    gain: float,
    delta: float,
    told: Callable[[Sequence[bool]], list[float]] = delays,
) -> bool:
    """Whether the product of the martingales ever reaches 1/δ along the answers that
    count.
    """
    times = told(successes)
    for now in sorted(times):
        one, two = order(times, now)
        counted = [*successes[0 : 2 * one : 2], *successes[1 : 2 * two : 2]]
        if all(counted) and gain ** len(counted) >= (1 - 1e-12) / delta:
            return True
    return False


def chance(order: Order, **options: Callable[[Sequence[bool]], list[float]]) -> float:
    """The exact level of double or nothing, two people an arm, at δ = 1/4."""
    every = list(itertools.product((True, False), repeat=4))
    return sum(rejects(order, one, 2.0, 0.25, **options) for one in every) / len(every)


def test_double_or_nothing() -> None:
    """Peaks 2^G of the two arms, G geometric: P(G + G' >= 2) = 1/2."""
    assert chance(in_global_order) == 0.25
    assert chance(in_own_order) == 0.5


def test_without_late_answers_both_orders_keep_the_level() -> None:
    assert chance(in_global_order, told=punctual) == 0.25
    assert chance(in_own_order, told=punctual) == 0.25


def share(order: Order, delta: float, runs: int = 4000, gain: float = 1.1) -> float:
    """How often the product reaches 1/δ."""
    rng = np.random.default_rng(7)
    people = 2 * math.ceil(-math.log(delta) / math.log(gain))
    drawn = rng.random((runs, people)) < 1 / gain
    return sum(rejects(order, one.tolist(), gain, delta) for one in drawn) / runs


@pytest.mark.parametrize("delta", [0.1, 0.05])
def test_level_of_a_nearly_continuous_martingale(delta: float) -> None:
    """4000 runs: five standard errors, a false alarm less often than in one of 10^6."""
    error = 5 * math.sqrt(0.25 / 4000)
    needed = math.ceil(-math.log(delta) / math.log(1.1))
    success = 1 / 1.1
    exact = success**needed * (success + (needed + 1) * (1 - success))
    limit = delta * (1 + math.log(1 / delta))
    assert share(in_global_order, delta) < delta + 5 * math.sqrt(delta / 4000)
    found = share(in_own_order, delta)
    assert found == pytest.approx(exact, abs=error)
    assert found > 2.5 * delta
    assert 0.85 * limit < exact < limit
