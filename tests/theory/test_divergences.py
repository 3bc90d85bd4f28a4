"""divergence.py against 50 digits of mpmath, over means and gaps of all sizes."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from discreet import InvalidInputError
from discreet.theory import divergences as divergence
from tests.support.exact import exact_d_epsilon, exact_kl


def moves(count: int) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(count):
        p = float(
            rng.choice(
                [0.0, 1.0, rng.random(), 10 ** rng.uniform(-8, 0), 1 - 10 ** rng.uniform(-8, 0)]
            )
        )
        near = p + float(rng.choice([-1, 1])) * 10 ** rng.uniform(-8, 0)
        q = float(rng.choice([rng.random(), min(1 - 1e-12, max(1e-12, near))]))
        found.append((p, q, float(10 ** rng.uniform(-6, 3))))
    return found


def test_full_precision() -> None:
    for p, q, epsilon in moves(3000):
        assert float(divergence.kl(p, q)) == pytest.approx(float(exact_kl(p, q)), rel=2e-12)
        expected = float(exact_d_epsilon(p, q, epsilon))
        assert float(divergence.d_epsilon(p, q, epsilon)) == pytest.approx(expected, rel=1e-9)


def test_ends() -> None:
    assert divergence.kl(0.3, 0.3) == 0
    assert divergence.kl(0.0, 0.0) == 0
    assert divergence.kl(1.0, 1.0) == 0
    assert divergence.kl(0.3, 0.0) == math.inf
    assert divergence.kl(0.0, 0.5) == pytest.approx(math.log(2))
    assert divergence.d_epsilon(0.0, 1.0, 2.0) == pytest.approx(2.0)


def test_d_epsilon_lies_below_both_of_its_parts() -> None:
    for p, q, epsilon in moves(500):
        value = float(divergence.d_epsilon(p, q, epsilon))
        assert value <= float(divergence.kl(p, q)) * (1 + 1e-9)
        assert value <= epsilon * float(divergence.tv(p, q)) * (1 + 1e-9)


def test_slopes_and_curvatures_are_derivatives() -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(0.01, 0.6, 200)
    off = rng.uniform(0.01, 0.39, 200)
    step = 1e-6

    def at(offset: np.typing.NDArray[np.float64]) -> list[divergence.Rise]:
        move = divergence.Move(p, 1 - p, offset, p + offset, 1 - p - offset)
        return [divergence.kl_rise(*move), divergence.square_rise(offset, 3.0)]

    for here, before, after in zip(at(off), at(off - step), at(off + step), strict=True):
        assert (after.value - before.value) / (2 * step) == pytest.approx(here.slope, rel=1e-5)
        assert (after.slope - before.slope) / (2 * step) == pytest.approx(here.curvature, rel=1e-5)


def test_randomised_mean() -> None:
    share = math.exp(1.5) / (1 + math.exp(1.5))
    assert divergence.compute_randomised_mean(0.3, 1.5) == pytest.approx(
        0.3 * share + 0.7 * (1 - share)
    )
    assert divergence.compute_randomised_mean(0.3, 1000.0) == pytest.approx(0.3)


def test_refusals() -> None:
    calls: list[Callable[[], object]] = [
        lambda: divergence.kl(2, 0.5),
        lambda: divergence.kl(0.5, math.nan),
        lambda: divergence.tv(-1, 0),
        lambda: divergence.d_epsilon(0.2, 0.5, -1),
        lambda: divergence.d_epsilon(0.2, 0.5, math.nan),
        lambda: divergence.compute_randomised_mean(2, 1),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError):
            call()
