"""planning/reach.py: whether so many people can lead to an answer at all."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import (
    Bernoulli,
    CustomThreshold,
    InvalidInputError,
    OutOfReach,
    Strategy,
    bet_se,
    check_reach,
    simulate,
)
from discreet.simulation.engine import make_generator
from discreet.simulation.laws import make_laws
from discreet.simulation.paths import make_plain_player

MIXED = Bernoulli([0.9, 0.4, 0.2])
FAMILIES = {
    "bets": bet_se(0.1, 1.0),
    "local bets": bet_se(0.1, 2.0, "local", outcomes="numbers"),
    "epochs": discreet.dp_se(1, 0.1),
    "phased": discreet.adap_tt_star(2, 0.1),
    "stream": discreet.ttucb(0.1),
    "randomised stream": discreet.ctb_tt(2, 0.1),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_plain_runs_are_those_of_a_simulation(name: str) -> None:
    """The first run of each Generator, which some share with others."""
    strategy, cap = FAMILIES[name], 100_000
    play = make_plain_player(strategy, make_laws(MIXED), cap)
    assert play is not None
    compiled = simulate(MIXED, strategy, 65, 3, cap)
    step = 64 if strategy.spec.short or strategy.spec.leaps else 1
    for run in range(2):
        found, row = play(make_generator(3, run)), run * step
        assert found.samples == compiled.samples[row]
        assert found.recommendation == compiled.recommendation[row]
        assert found.stopped == compiled.stopped[row]


def test_no_privacy_is_too_strong_to_be_noticed() -> None:
    assert check_reach(bet_se(0.05, 0.001), 2, 2000) == OutOfReach(2000, 17, 26_000)
    assert check_reach(bet_se(0.05, 0.001), 2, 30_000) is None
    assert check_reach(bet_se(0.05, 1.0), 2, 2000) is None
    found = check_reach(discreet.dp_se(0.001, 0.05), 200, 2000)
    assert found is not None
    assert found.to_dict() == {"max_participants": 2000, "runs": 3, "participants": 31_000_000}


CASES: list[tuple[Strategy, int]] = [
    (bet_se(0.05, 0.1), 3),
    (bet_se(0.05, 0.1, "local"), 2),
    (bet_se(0.05, trust="none"), 8),
    (bet_se(0.05, 1.0, indifference_zone=0.1, outcomes="numbers"), 3),
    (discreet.dp_se(1, 0.05), 4),
    (discreet.adap_tt_star(1, 0.05), 2),
    (discreet.ttucb_batched(0.05), 5),
]


@pytest.mark.parametrize(("strategy", "arms"), CASES, ids=lambda value: str(value)[:60])
def test_it_is_what_simulations_say(strategy: Strategy, arms: int) -> None:
    easiest = Bernoulli([1.0] + [0.0] * (arms - 1))
    samples = simulate(easiest, strategy, 200, 5, 10**9).samples
    scarce = int(samples.min() * 0.6)
    found = check_reach(strategy, arms, scarce)
    assert found is not None
    assert simulate(easiest, strategy, 200, 5, scarce).stopped.mean() < 0.1
    assert found.participants == pytest.approx(np.median(samples), rel=0.35)
    assert check_reach(strategy, arms, int(np.median(samples) * 1.1) + 1) is None


def test_strategies_that_learn_from_every_answer() -> None:
    assert check_reach(discreet.ctb_tt(0.1, 0.05), 2, 500) == OutOfReach(500, 20, None)
    assert check_reach(discreet.ctb_tt(3, 0.05), 2, 500) is None
    assert check_reach(discreet.ttucb(0.05), 2, 10) == OutOfReach(10, 20, None)


@pytest.mark.parametrize(
    ("strategy", "arms", "people"),
    [
        (bet_se(0.05, 0.001), 201, 300),
        (discreet.adap_tt(0.001, 0.05), 29, 30),
        (discreet.ctb_tt(0.001, 0.05), 2, 12_001),
        (discreet.adap_tt(0.001, 0.05, beta="ids"), 2, 12_001),
        (discreet.adap_tt(0.001, 0.05, episodes="global"), 2, 10),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_takes_long_is_not_judged(strategy: Strategy, arms: int, people: int) -> None:
    assert check_reach(strategy, arms, people) is None


def test_as_many_arms_as_the_page_says_are_judged() -> None:
    assert check_reach(bet_se(0.05, 0.001), 200, 300) is not None
    assert check_reach(discreet.dp_se(0.001, 0.05), 28, 30) is not None
    assert check_reach(bet_se(0.05, 0.001), 28, 30) is not None


def test_nothing_is_compiled() -> None:
    lines = [
        "import sys",
        "from discreet import bet_se, check_reach",
        "assert check_reach(bet_se(0.05, 0.001), 2, 2000) is not None",
        "assert 'numba' not in sys.modules",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bet-se", 2, 10), "strategy must be a Strategy"),
        ((bet_se(0.05, 1.0), 1, 10), "arms must be a whole number, 2 or more"),
        ((bet_se(0.05, 1.0), 3, 2), "max_participants must be a whole number, from 3"),
        ((bet_se(0.05, 1.0), 3, "many"), "max_participants must be a whole number"),
        (
            (discreet.ttucb(0.05, threshold=CustomThreshold("mine", lambda *_: 1.0)), 2, 10),
            "is a Python function",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input(words: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_reach(*words)
