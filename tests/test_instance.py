"""instance.py: what an instance knows, and what is refused with advice."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from discreet import (
    Bernoulli,
    Beta,
    Discrete,
    Drift,
    Drifting,
    Instance,
    InvalidInputError,
    TiedBestArmError,
    benchmarks,
)


def test_bernoulli() -> None:
    instance = Bernoulli([0.2, 0.9, 0.5], ["a", "b", "c"])
    assert instance.arms == 3
    assert instance.best == 1
    assert instance.is_unique
    assert instance.gaps == pytest.approx([0.7, 0.4, 0.4])


def test_discrete() -> None:
    instance = Discrete([0, 0.5, 1], [[0.2, 0.2, 0.6], [0.5, 0.5, 0.0]])
    assert instance.means == pytest.approx((0.7, 0.25))
    assert instance.as_bernoulli() == Bernoulli(instance.means)


def test_beta() -> None:
    assert Beta([1, 3], [1, 1]).means == pytest.approx((0.5, 0.75))


@pytest.mark.parametrize(
    "instance",
    [
        Bernoulli([0.1, 0.2]),
        Discrete([0, 1], [[0.5, 0.5], [0.1, 0.9]], ["x", "y"]),
        Beta([1, 2], [2, 2]),
    ],
)
def test_frozen_equal_by_value_and_json_there_and_back(instance: Any) -> None:
    again = Instance.from_dict(instance.to_dict())
    assert again == instance
    assert hash(again) == hash(instance)
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.names = ("no", "no")
    with pytest.raises(ValueError, match="read-only"):
        instance.gaps[0] = 1


@pytest.mark.parametrize(
    ("instance", "outcomes"),
    [
        (Bernoulli([0.1, 0.2]), "yes-no"),
        (Drifting(Bernoulli([0.1, 0.2]), Drift.step(0.1, at=5)), "yes-no"),
        (Discrete([0, 1], [[0.5, 0.5], [0.1, 0.9]]), "yes-no"),
        (Discrete([0, 0.5, 1], [[0.5, 0, 0.5], [0.1, 0, 0.9]]), "yes-no"),
        (Discrete([0, 0.5, 1], [[0.5, 0, 0.5], [0.1, 0.1, 0.8]]), "numbers"),
        (Beta([1, 2], [2, 2]), "numbers"),
    ],
)
def test_outcomes_are_yes_no_or_numbers(instance: Instance, outcomes: str) -> None:
    assert instance.outcomes == outcomes


def test_other_names_make_another_instance() -> None:
    assert Bernoulli([0.1, 0.2], ["x", "y"]) != Bernoulli([0.1, 0.2])


def test_benchmarks() -> None:
    assert list(benchmarks) == [f"mu{i}" for i in range(1, 7)]
    assert benchmarks["mu2"] is benchmarks.mu2
    assert len(benchmarks) == 6
    assert benchmarks.mu3.best == 4
    with pytest.raises(KeyError):
        benchmarks["names"]


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: Bernoulli([0.5]), "at least 2"),
        (lambda: Bernoulli([]), "at least 2"),
        (lambda: Bernoulli([0.5, 1.1]), "rescale outcomes"),
        (lambda: Bernoulli([0.5, -0.1]), "rescale outcomes"),
        (lambda: Bernoulli([0.5, math.nan]), "NaN"),
        (lambda: Bernoulli([0.5, math.inf]), "infinity"),
        (lambda: Bernoulli([[0.5, 0.2]]), "flat list"),
        (lambda: Bernoulli(["a", "b"]), "must be numbers"),
        (lambda: Bernoulli([0.5, 0.2], ["x"]), "names must be a list of 2"),
        (lambda: Bernoulli([0.5, 0.2], "xy"), "names must be a list of 2"),
        (lambda: Bernoulli([0.5, 0.2], ["x", "x"]), "a name of its own"),
        (lambda: Discrete([0, 2], [[1, 0], [0, 1]]), "rescale outcomes"),
        (lambda: Discrete([0, 1], [[1, 0]]), "at least 2 rows"),
        (lambda: Discrete([0, 1], [[1, 0], [1]]), "equal length"),
        (lambda: Discrete([0, 1], [[1.0, 0.0], [0.5, 0.4]]), "sum to 1"),
        (lambda: Discrete([0, 1], [[1.0, 0.0], [1.5, -0.5]]), "at least 0"),
        (lambda: Beta([1, 2], [1, 2, 3]), "a has 2 arms and b has 3"),
        (lambda: Beta([1, 0], [1, 2]), "positive"),
        (lambda: Instance.from_dict({"law": "cauchy"}), "unknown law"),
        (lambda: Instance.from_dict({"law": "beta", "means": [1]}), "does not fit"),
    ],
)
def test_refused(make: Any, advice: str) -> None:
    with pytest.raises(InvalidInputError, match=advice):
        make()


def test_a_tie_is_refused_where_a_best_arm_is_needed() -> None:
    tied = Bernoulli([0.5, 0.5, 0.1])
    assert not tied.is_unique
    for ask in (lambda: tied.best, lambda: tied.gaps):
        with pytest.raises(TiedBestArmError, match="drop all but one"):
            ask()


def test_arrays_are_taken_too() -> None:
    assert Bernoulli(np.array([0.1, 0.2])) == Bernoulli([0.1, 0.2])
