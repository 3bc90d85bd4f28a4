"""transport.py and equilibrium.py: shortcuts and the search among the unsettled arms
give what the long way gives.
"""

from typing import Any

import numpy as np
import pytest

from discreet import Bernoulli, bounds, theory
from discreet.theory import transport
from discreet.theory.times import solve_equilibrium
from discreet.theory.transport import Curve, Kl, Mixed, PrivateKl, Quadratic, Transport

EPSILONS = (1e-6, 1e-3, 0.05, 0.4, 1.0, 4.0, 40.0, 1e3)


def crowd(seed: int, arms: int = 40) -> Bernoulli:
    """Means of all kinds, the ends 0 and 1 among them, the best at least 1e-6 ahead."""
    rng = np.random.default_rng(seed)
    means = rng.choice(
        [
            0.0,
            0.5,
            *rng.random(8),
            *10 ** rng.uniform(-7, 0, 8),
            *(1 - 10 ** rng.uniform(-6, 0, 8)),
        ],
        arms,
    )
    lead = 10 ** rng.uniform(-6, -1)
    means = np.minimum(means, 1 - lead)
    means[seed % arms] = 1.0 if seed % 2 else means.max() + lead
    return Bernoulli(means)


@pytest.mark.parametrize("seed", range(6))
def test_going_on_with_the_unsettled_arms_only_changes_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = crowd(seed)
    for epsilon in EPSILONS:
        found = []
        for many in (10**9, 1):
            monkeypatch.setattr(transport, "MANY", many)
            times = (
                theory.t_kl(instance),
                theory.t_kl_beta(instance, 0.2),
                theory.t_local(instance, epsilon),
            )
            found.append(
                (*times, theory.t_global(instance, epsilon), theory.t_epsilon(instance, epsilon))
            )
        for whole, narrowed in zip(*found, strict=True):
            assert narrowed.value == pytest.approx(whole.value, rel=1e-12)
            assert narrowed.allocation == pytest.approx(whole.allocation, abs=1e-8)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.3, 0.58224])
def test_local_time_by_pinsker(epsilon: float) -> None:
    """Up to c(ε) = 2 the squared costs alone count: adding the other three changes
    nothing.
    """
    for seed in range(4):
        instance = crowd(seed)
        top, means, factor = (
            max(instance.means),
            np.array(instance.means),
            theory.local_factor(epsilon),
        )
        means = np.delete(means, instance.best)
        costs: list[Transport] = [
            Kl(top, means),
            Mixed(top, means, factor),
            Quadratic(factor * (top - means) ** 2),
        ]
        assert theory.t_local(instance, epsilon).value == pytest.approx(
            solve_equilibrium(costs)[0], rel=1e-12
        )


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0, 10.0])
def test_local_time_where_kl_is_the_smaller_one(epsilon: float) -> None:
    """For 2 c(ε) μ(1−μ) ≥ 1 the KL costs alone count: adding the other three changes
    nothing.
    """
    factor = theory.local_factor(epsilon)
    edge = (1 - np.sqrt(1 - 2 / factor)) / 2 * (1 + 1e-12)
    for means in (np.array([edge, 0.5, 0.6]), np.array([0.4, 0.5, 0.6])):
        top = 1 - edge
        instance = Bernoulli([top, *means])
        costs: list[Transport] = [
            Kl(top, means),
            Mixed(top, means, factor),
            Quadratic(factor * (top - means) ** 2),
        ]
        assert theory.t_local(instance, epsilon).value == pytest.approx(
            solve_equilibrium(costs)[0], rel=1e-12
        )
        assert theory.t_local(instance, epsilon).value == theory.t_kl(instance).value


@pytest.mark.parametrize("seed", range(6))
def test_a_known_time_without_privacy_changes_nothing(seed: int) -> None:
    for instance in (crowd(seed), Bernoulli([0.75, 0.6, 0.5, 0.3 + seed / 100])):
        known = theory.t_kl(instance)
        for epsilon in EPSILONS:
            for compute in (theory.t_local, theory.t_global, theory.t_epsilon):
                found, expected = compute(instance, epsilon, known), compute(instance, epsilon)
                assert found.value == pytest.approx(expected.value, rel=1e-12)
                assert found.allocation == pytest.approx(expected.allocation, abs=1e-7)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.01, 0.1, 1.0])
def test_small_epsilon_takes_no_more_points_than_others(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """d_ε is almost linear for small ε; near ties are the hardest."""
    points, point = [], PrivateKl._point

    def counted(*args: Any) -> Any:
        points.append(args)
        return point(*args)

    monkeypatch.setattr(PrivateKl, "_point", counted)
    near_ties = [0.8, *(0.5 - 10 ** np.linspace(-9, -1, 6))]
    for means in (near_ties, [0.75, 0.625, 0.5, 0.375, 0.25], [1.0, *np.linspace(0, 1 - 1e-6, 4)]):
        points.clear()
        theory.t_epsilon(Bernoulli(means), epsilon)
        assert len(points) <= 60


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_shares_reach_the_level(epsilon: float) -> None:
    """At the share found for a level y, no m costs less than y, and one costs no
    more.
    """
    best, means = 0.8, np.array([0.0, 1e-6, 0.1, 0.5, 0.79])
    curves: list[tuple[Curve, list[tuple[str, str]]]] = [
        (Kl(best, means), [("kl", "kl")]),
        (PrivateKl(best, means, epsilon), [("private", "private")]),
        (Mixed(best, means, 3.0), [("kl", "square"), ("square", "kl")]),
    ]
    for curve, sides in curves:
        for level in curve.limit.min() * np.array([1e-3, 0.1, 0.5, 0.9]):
            with np.errstate(all="ignore"):  # as in `game`
                found = curve.inverse(float(level)).share
            for shares, (near, far) in zip(found, sides, strict=True):
                for mean, share in zip(means, shares, strict=True):
                    m = mean + (best - mean) * np.r_[0, 10 ** np.linspace(-9, 0, 4001)]
                    m = np.r_[m, best - (m - mean)]
                    cost = measure(near, best, m, epsilon) + share * measure(far, mean, m, epsilon)
                    assert level * (1 - 1e-12) <= cost.min() <= level * (1 + 1e-3)


def measure(
    kind: str, p: float, m: np.typing.NDArray[np.float64], epsilon: float
) -> np.typing.NDArray[np.float64]:
    from discreet.theory import divergences as divergence

    m = np.clip(m, 0, 1)
    if kind == "square":
        return 3.0 * (p - m) ** 2
    return divergence.kl(p, m) if kind == "kl" else divergence.d_epsilon(p, m, epsilon)


def test_bounds_gives_what_theory_gives() -> None:
    instance = Bernoulli([0.75, 0.6, 0.5])
    for epsilon in (0.1, 2.0):
        found = bounds(instance, [epsilon], beta=0.3, sigma=0.4)
        constants = found.per_epsilon[0].upper_constant
        assert found.t_tv2 is not None
        assert found.t_tv2.value == pytest.approx(theory.t_tv2(instance).value, rel=1e-14)
        assert constants["ctb-tt-ids"] == theory.upper_constant_ctb_tt(
            instance, epsilon, "ids", 0.4
        )
        assert found.upper_constant == {
            "ttucb": theory.upper_constant_ttucb(instance, 0.3, 0.4),
            "ttucb-ids": theory.upper_constant_ttucb(instance, "ids", 0.4),
            "ttucb-batched": theory.upper_constant_ttucb_batched(instance, 0.3, 0.4),
        }
        assert constants["ctb-tt"] == theory.upper_constant_ctb_tt(instance, epsilon, 0.3, 0.4)
        assert constants["adap-tt"] == theory.upper_constant_adap_tt(instance, epsilon, 0.3, 0.4)
        for name, proved in (("adap-tt-star", False), ("adap-tt-star-proved", True)):
            assert constants[name] == theory.upper_constant_adap_tt_star(
                instance, epsilon, 0.3, 0.4, proved
            )
