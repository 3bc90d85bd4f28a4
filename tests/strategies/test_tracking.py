"""Track-and-Stop's allocation and tracking, and the coins of Thompson sampling."""

import math
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import Bernoulli
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import simulate_quietly
from discreet.strategies import sampling
from discreet.strategies.run import Run, make_run
from discreet.strategies.sampling import (
    UNITS_PER_SAMPLE,
    compute_floor,
    compute_kl_from,
    draw_ts_leader,
    fill_allocation,
    fill_kl_allocation,
    find_most_owed,
    owe,
    scramble,
)
from discreet.theory import t_gaussian, t_kl
from tests.support.oracle import oracle

SLOW_MEANS = Bernoulli([0.9, 0.6, 0.5])


def random_means(rng: np.random.Generator) -> Any:
    """Two to eight means: anywhere, on a coarse grid (0 and 1 too), or close
    together.
    """
    means = rng.random(int(rng.integers(2, 9)))
    shape = rng.integers(3)
    if shape == 1:
        return np.round(means, 1)
    return means if shape == 0 else 0.5 + means * 10.0 ** -rng.integers(1, 7)


@pytest.mark.parametrize("kl", [False, True])
def test_the_allocation_is_that_of_the_characteristic_time(kl: bool) -> None:
    rng, checked = np.random.default_rng(3), 0
    while checked < 300:
        means = random_means(rng)
        best = int(means.argmax())
        if (means[best] - np.delete(means, best)).min() < 1e-8:
            continue
        checked += 1
        instance, weights = Bernoulli(means.tolist()), np.zeros(means.size)
        if kl:
            fill_kl_allocation(best, means, weights)
            again = rng.random(means.size)
            fill_kl_allocation(best, means, again)  # begun elsewhere
            np.testing.assert_allclose(again, weights, atol=1e-9)
        else:
            fill_allocation(best, (means[best] - means) ** 2, weights)
        expected = (t_kl if kl else t_gaussian)(instance).allocation
        np.testing.assert_allclose(weights, expected, atol=1e-7)


def test_kl_keeps_its_precision() -> None:
    """Against the quadratic that it is for a small step, and its limits at 0 and 1."""
    for off in (1e-9, -1e-9, 1e-12):
        assert compute_kl_from(0.3, off) == pytest.approx(off * off / (2 * 0.3 * 0.7), rel=1e-8)
    assert compute_kl_from(1.0, -0.5) == compute_kl_from(0.0, 0.5) == pytest.approx(math.log(2))
    for step in (0.99e-3, 1.01e-3):  # on both sides of the series' end
        exact = 0.5 * math.log(0.5 / (0.5 + step / 2)) + 0.5 * math.log(0.5 / (0.5 - step / 2))
        assert compute_kl_from(0.5, step / 2) == pytest.approx(exact, rel=1e-9)


def test_tied_arms_share_and_leave_nothing() -> None:
    weights = np.zeros(4)
    fill_allocation(1, np.array([0.0, 0.0, 0.3, 0.0]), weights)
    ratio = 1 / math.sqrt(2)
    np.testing.assert_allclose(weights, np.array([ratio, 1, 0, ratio]) / (1 + 2 * ratio))


@pytest.mark.parametrize("arms", [2, 3, 7])
def test_nobody_is_far_from_what_is_owed(arms: int) -> None:
    """For any allocations: nobody is a sample ahead, so nobody is K - 1 behind, and
    every arm gets its floor (docs, "Sampling rules").
    """
    rng = np.random.default_rng(arms)
    owed, pulls = np.full(arms, UNITS_PER_SAMPLE, np.int64), np.ones(arms, np.int64)
    floors, weights = 0.0, rng.dirichlet([0.2] * arms)
    for samples in range(arms, 4000):
        if samples % 50 == 0:
            weights = rng.dirichlet([0.2] * arms)
        owe(int(weights.argmax()), weights, samples, owed)
        pulls[find_most_owed(owed, pulls)] += 1
        floors += compute_floor(samples, arms) - 0.5 / UNITS_PER_SAMPLE
        behind = owed / UNITS_PER_SAMPLE - pulls
        assert owed.sum() == UNITS_PER_SAMPLE * pulls.sum()
        assert behind.min() > -1
        assert behind.max() <= arms - 1
        assert pulls.min() >= 1 + floors - (arms - 1)


def test_the_projection_is_nearest() -> None:
    """No allocation with these floors is closer in the maximum norm: whoever is above
    its floor gave the same.
    """
    rng = np.random.default_rng(1)
    for _ in range(300):
        weights = rng.dirichlet([0.3] * int(rng.integers(2, 8)))
        floor = 0.5 / weights.size * rng.random()
        cut = sampling.find_cut(floor, weights)
        nearest = np.maximum(floor, weights - cut)
        assert nearest.sum() == pytest.approx(1)
        lack = max(cut, float((floor - weights).max()))
        assert np.abs(nearest - weights).max() == pytest.approx(lack, abs=1e-12)


def test_coins_look_drawn() -> None:
    """Two arms of the same mean and count lead equally often, and a mean one deviation
    up as often as it should (false-alarm rate 1e-6 each).
    """
    counts, draws = np.array([100, 100]), 20_000
    for gap, chance in ((0.0, 0.5), (0.05 * math.sqrt(2), 0.5 * (1 + math.erf(1 / math.sqrt(2))))):
        mean = np.array([0.5 + gap, 0.5])
        led = sum(
            draw_ts_leader(mean, counts, np.array([100 + n, n]), 100 * mean, 0.5) == 0
            for n in range(draws)
        )
        assert abs(led - draws * chance) < 4.9 * math.sqrt(draws * chance * (1 - chance))
    assert len({scramble(word) for word in range(10_000)}) == 10_000


def test_kl_tracking_equals_the_oracle() -> None:
    """On its own, as the oracle solves by two nested searches at every sample."""
    strategy = discreet.ttucb(0.2, sampling="track-and-stop", cost="kl")
    for seed in range(2):
        results = simulate_quietly(SLOW_MEANS, strategy, 1, seed, 300)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
        outcome = oracle(strategy, SLOW_MEANS, rng, 300)
        assert results.pulls[0].tolist() == outcome.pulls
        assert (results.samples[0], results.stopped[0]) == (outcome.samples, outcome.stopped)


def taken(run: Run, people: int, rng: np.random.Generator, again: bool) -> list[int]:
    """The arms of so many people, each of whom answers at once; `again` goes on from
    what was written after each.
    """
    arms = []
    for _ in range(people):
        place = run.assign_next()
        assert place is not None
        arms.append(place.arm)
        run.record_answer(place.arm, float(rng.random() < (0.9, 0.6, 0.5)[place.arm]))
        if again:
            state = run.dump()
            run = make_run(run.strategy, 3, 500, run.strategy.delta)
            run.load(state)
            assert run.dump() == state
    return arms


@pytest.mark.parametrize(
    "options", [{}, {"cost": "kl"}, {"sampling": "ts-tc"}, {"sampling": "eb-tci"}]
)
def test_a_run_goes_on_from_what_it_wrote(options: dict[str, Any]) -> None:
    strategy = discreet.ttucb(1e-9, **{"sampling": "track-and-stop", **options})
    found = [
        taken(make_run(strategy, 3, 500, 1e-9), 150, np.random.default_rng(2), again)
        for again in (False, True)
    ]
    assert found[0] == found[1]


def test_the_floor_is_what_keeps_arms_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the floor an arm starves."""
    weights = np.array([0.9, 0.1, 0.0])
    owed, pulls = np.full(3, UNITS_PER_SAMPLE, np.int64), np.ones(3, np.int64)
    monkeypatch.setattr(sampling, "compute_floor", lambda *_: 0.0)
    for samples in range(3, 2000):
        owe(0, weights, samples, owed)
        pulls[find_most_owed(owed, pulls)] += 1
    assert pulls[2] < 3


def test_compiled_is_plain() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        means = random_means(rng)
        best = int(means.argmax())
        if (means == means[best]).sum() > 1:
            continue
        plain, fast = np.zeros(means.size), np.zeros(means.size)
        fill_kl_allocation(best, means, plain)
        compile_kernel(fill_kl_allocation)(best, means, fast)
        np.testing.assert_array_equal(plain, fast)
