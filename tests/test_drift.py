"""drift.py and `Drifting`: a shift for each person, and what is refused with advice."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import Bernoulli, Beta, Drift, Drifting, Instance, InvalidInputError, theory
from discreet.instances import NO_DRIFT, compute_shift
from discreet.jit import jit
from discreet.planning.scenarios import name_scenarios
from discreet.reports.charts.epsilon import make_bound_curve
from discreet.simulation.compile import compile_kernel

ARMS = Bernoulli((0.3, 0.7), ("old", "new"))


def blocks(size: float, block: int) -> list[float]:
    """A list of people, block after block."""
    return [sign * size for _ in range(400 // block + 1) for sign in (1, -1) for _ in range(block)]


def line(size: float, over: int) -> list[float]:
    """Equal steps, then none."""
    return [size * k / over for k in range(over)] + [size] * 400


SLOW: list[tuple[Drift, list[float]]] = [
    (Drift.sites(0.3), blocks(0.3, 1)),
    (Drift.sites(-0.2, block=7), blocks(-0.2, 7)),
    (Drift.step(0.1, at=1), [0.0] + [0.1] * 400),
    (Drift.step(-1, at=90), [0.0] * 90 + [-1.0] * 400),
    (Drift.season(0.25, period=12), [0.25 * math.sin(math.tau * i / 12) for i in range(400)]),
    (Drift.season(0.5, period=365), [0.5 * math.sin(math.tau * i / 365) for i in range(400)]),
    (Drift.trend(0.4, over=1), line(0.4, 1)),
    (Drift.trend(-0.3, over=150), line(-0.3, 150)),
    (NO_DRIFT, [0.0] * 400),
]


@jit(allocates=True)
def shifts(drift: Drift, people: int, found: Any) -> None:
    """The shifts of many people, as a loop asks for them."""
    for person in range(people):
        found[person] = compute_shift(drift, person)


@pytest.mark.parametrize(("drift", "expected"), SLOW, ids=[str(drift) for drift, _ in SLOW])
def test_shift(drift: Drift, expected: list[float]) -> None:
    found = np.zeros(400)
    compile_kernel(shifts)(drift, 400, found)
    assert found.tolist() == [compute_shift(drift, person) for person in range(400)]
    assert found.tolist() == pytest.approx(expected[:400], abs=1e-12)


@pytest.mark.parametrize("drift", [drift for drift, _ in SLOW if drift != NO_DRIFT], ids=str)
def test_there_and_back(drift: Drift) -> None:
    assert Drift.from_dict(drift.to_dict()) == drift
    instance = Drifting(ARMS, drift)
    again = Instance.from_dict(instance.to_dict())
    assert again == instance
    assert hash(again) == hash(instance)
    assert type(again) is Drifting
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.drift = NO_DRIFT  # type: ignore[misc]


def test_what_it_says_in_words() -> None:
    assert Drifting(ARMS, Drift.sites(0.1, block=5)).to_dict() == {
        "law": "drifting",
        "means": [0.3, 0.7],
        "names": ["old", "new"],
        "drift": {"kind": "sites", "size": 0.1, "block": 5},
    }


def test_it_is_an_instance() -> None:
    drifting = Drifting(ARMS, Drift.step(0.1, at=5))
    assert drifting.means == ARMS.means
    assert drifting.names == ARMS.names
    assert (drifting.arms, drifting.best, drifting.is_unique) == (2, 1, True)
    assert drifting != Drifting(ARMS, Drift.step(0.1, at=6))
    assert drifting != Drifting(Bernoulli((0.3, 0.7)), Drift.step(0.1, at=5))
    assert not Drifting(Bernoulli((0.5, 0.5)), Drift.sites(0.1)).is_unique


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Drift.sites(1.5), "size of a drift must be a number between -1 and 1; got 1.5"),
        (lambda: Drift.sites(math.nan), "between -1 and 1; got nan"),
        (lambda: Drift.sites("much"), "between -1 and 1; got 'much'"),  # type: ignore[arg-type]
        (lambda: Drift.sites(0.1, block=0), "block must be a whole number, from 1"),
        (lambda: Drift.step(0.1, at=2.5), "at must be a whole number"),  # type: ignore[arg-type]
        (lambda: Drift.season(0.1, period=2), "period must be a whole number, from 3"),
        (lambda: Drift.trend(0.1, over=0), "over must be a whole number, from 1"),
        (lambda: Drift.from_dict({"kind": "storm"}), "unknown drift 'storm': use one of sites,"),
        (lambda: Drift.from_dict([1]), "describe a drift as"),  # type: ignore[arg-type]
        (lambda: Drift.from_dict({"kind": "step", "size": 0.1}), "has at and size; got size"),
        (NO_DRIFT.to_dict, "this is not a drift: make one with Drift.sites"),
        (lambda: Drifting(ARMS, NO_DRIFT), "this is not a drift"),
        (lambda: Drifting(ARMS, Drift(1, 5.0, 1.0)), "between -1 and 1; got 5"),
        (lambda: Drifting(ARMS, 0.1), "say how the arms drift"),  # type: ignore[arg-type]
        (
            lambda: Drifting(Beta([1, 2], [2, 1]), Drift.sites(0.1)),  # type: ignore[arg-type]
            r"only Bernoulli arms drift; got Beta: for other laws use \.as_bernoulli\(\)",
        ),
        (
            lambda: Instance.from_dict({"law": "drifting", "means": [0.1, 0.2]}),
            "description of a drifting instance does not fit",
        ),
    ],
)
def test_refusals(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.parametrize(
    "ask",
    [
        discreet.bounds,
        theory.t_kl,
        theory.t_gaussian,
        theory.t_tv,
        theory.complexity,
        theory.free_epsilon,
        lambda arms: theory.t_epsilon(arms, 1.0),
        lambda arms: theory.tightest(arms, None, "none"),
        lambda arms: theory.upper_constant_adap_tt(arms, 1.0),
        lambda arms: discreet.plan(arms, 1.0, 0.1, runs=2),
        lambda arms: name_scenarios([arms], [1.0], "global"),
        lambda arms: make_bound_curve(arms, [1.0], 0.1),
        lambda arms: arms.as_bernoulli(),
    ],
)
def test_there_is_no_theory_of_it(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"arms that do not drift: use \.instance"):
        ask(Drifting(ARMS, Drift.sites(0.1)))
