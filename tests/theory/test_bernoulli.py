"""W^KL and c^KL: the cost against its definition, the step of the proof on a grid, and
the error rate of the stopping rule, computed without chance.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import gammaln, xlogy

from discreet.theory import divergences
from discreet.theory.divergences import kl
from discreet.theory.thresholds import c_bernoulli, kl_constant

CASES = [(0.9, 0.2, 3, 7), (1.0, 0.0, 5, 4), (0.501, 0.5, 10**9, 10**8), (1.0, 0.97, 40, 2)]


@pytest.mark.parametrize(("best", "other", "n", "m"), CASES)
def test_the_cost_is_the_least_over_where_the_means_meet(
    best: float, other: float, n: int, m: int
) -> None:
    cost = divergences.compute_kl_cost(best, other, n, m)
    meet = np.linspace(other, best, 4001)[1:-1]
    assert cost <= (n * kl(best, meet) + m * kl(other, meet)).min() * (1 + 1e-12)
    with mp.workdps(40):
        p, q = mp.mpf(best), mp.mpf(other)
        x = (n * p + m * q) / (n + m)
        terms = [
            count * a * mp.log(a / b)
            for count, mean in ((n, p), (m, q))
            for a, b in ((mean, x), (1 - mean, 1 - x))
            if a > 0
        ]
        assert cost == pytest.approx(float(sum(terms)), rel=1e-9)
    gaussian = divergences.compute_transport_cost((best - other) ** 2, 1 / n, 1 / m, 0.5)
    assert cost >= gaussian * (1 - 1e-9)  # Pinsker's inequality
    assert (
        divergences.compute_kl_cost(other, best, m, n)
        == divergences.compute_kl_cost(best, best, n, m)
        == 0.0
    )


def test_the_threshold() -> None:
    assert c_bernoulli(1, 1, 2, 0.5) == pytest.approx(math.log(8))
    assert c_bernoulli(100, 10_000, 5, 0.01) == pytest.approx(math.log(4 * 4 * 1000 / 0.01))
    assert kl_constant(5, 0.01) == pytest.approx(float(c_bernoulli(1, 1, 5, 0.01)))


def regret(ones: np.ndarray, count: int) -> np.ndarray:
    """log of the largest likelihood over the mixture's, for sums that need not be
    whole.
    """
    zeros = count - ones
    likeliest = xlogy(ones, ones / count) + xlogy(zeros, zeros / count)
    mixture = gammaln(ones + 0.5) + gammaln(zeros + 0.5) - math.log(math.pi) - gammaln(count + 1)
    return np.asarray(likeliest - mixture)


def test_what_the_mixture_costs() -> None:
    """At most log(2 sqrt(n)), for whole sums and others; reached at n = 1, so that
    nothing smaller of this form would do.
    """
    for count in (1, 2, 3, 7, 50, 400, 10_000):
        sums = np.linspace(0, count, 2001 if count > 1 else 20_001)
        assert (regret(sums, count) <= math.log(2 * math.sqrt(count)) + 1e-9).all()
    assert regret(np.array([0.0]), 1)[0] == pytest.approx(math.log(2))


def ever_passed(mean: float, rounds: int, bar: float, paid: float) -> float:
    """The chance that the second of two arms with one and the same mean is ever said to
    beat the first, within so many samples of each in turn: W^KL >= bar + paid log(n).
    """
    alive, passed = np.ones((1, 1)), 0.0
    for n in range(1, rounds + 1):
        grown = np.zeros((n + 1, n + 1))
        for one in (0, 1):
            for other in (0, 1):
                chance = (mean if one else 1 - mean) * (mean if other else 1 - mean)
                grown[one : n + one, other : n + other] += chance * alive
        first, second = np.meshgrid(np.arange(n + 1) / n, np.arange(n + 1) / n, indexing="ij")
        both = (first + second) / 2
        cost = n * (kl(first, both) + kl(second, both))
        over = (second > first) & (cost >= bar + paid * math.log(n))
        passed += float(grown[over].sum())
        alive = np.where(over, 0.0, grown)
    return passed


@pytest.mark.parametrize("mean", [0.5, 0.03])
def test_the_error_rate_computed(mean: float) -> None:
    """At the border of the wrong answers; the rule of one look, log(1/δ), errs more
    often than δ already in 150 looks.
    """
    delta = 0.1
    assert ever_passed(mean, 150, kl_constant(2, delta), 1.0) < delta
    assert ever_passed(0.5, 150, math.log(1 / delta), 0.0) > delta
