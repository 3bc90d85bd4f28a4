"""One global episode: why it hangs, and that yielding arms make every phase end, by the
bound of the proof (docs, "Theory and proofs", section 5).
"""

from typing import Any

import numpy as np
import pytest

import discreet
from discreet import Bernoulli, InvalidInputError, Strategy, benchmarks
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import list_reasons_not_to_stop, simulate_quietly
from discreet.strategies.phased.decide import State, advance_whole, begin_phase, make_state, publish
from discreet.strategies.phased.state import make_phased_rules

GO_ON = compile_kernel(advance_whole)


def state_of(means: list[float], pulls: list[int], bonus: list[float]) -> State:
    """A state at the begin of a phase, with these released means and counts."""
    state = make_state(len(means))
    for arm, (mean, count) in enumerate(zip(means, pulls, strict=True)):
        state.board.pulls[arm] = count
        publish(state, True, arm, count, mean * count)
    state.bonus[:] = bonus
    begin_phase(state)
    return state


def travel(
    state: State, strategy: Strategy, cap: int, yields: bool, leaping: bool = True
) -> tuple[int, int]:
    rules = make_phased_rules(strategy, state.mean.size)
    return GO_ON(state, rules, leaping, int(state.board.pulls.sum()), cap, yields)


@pytest.mark.parametrize("means", [[0.4, 0.5, 0.3], [0.5, 0.5, 0.3], [0.2, 0.3, 0.4]])
def test_a_leader_that_lacks_the_largest_mean_hangs(means: list[float]) -> None:
    """The first arm leads by its bonus. An arm that is not below it has W = 0 and takes
    every challenger's sample; of several such arms the first one does.
    """
    strategy, bonus = discreet.adap_tt(1, 0.1), [9.0, 0.0, 0.0]
    state = state_of(means, [8, 8, 8], bonus)
    assert travel(state, strategy, 10**9, yields=False) == (-1, 10**9)
    assert state.board.pulls[2] == 8
    below = state_of([0.6, 0.5, 0.3], [8, 8, 8], bonus)
    assert travel(below, strategy, 10**9, yields=False)[0] >= 0
    repaired = state_of(means, [8, 8, 8], bonus)
    ended, samples = travel(repaired, strategy, 10**9, yields=True)
    assert ended >= 0
    assert repaired.board.pulls.tolist() == [8 + samples - 40, 16, 16]


def test_with_two_arms_nobody_waits() -> None:
    state = state_of([0.4, 0.5], [8, 8], [9.0, 0.0])
    assert travel(state, discreet.adap_tt(1, 0.1), 10**9, yields=False)[0] >= 0


@pytest.mark.parametrize("cost", ["gaussian", "private"])
def test_a_phase_ends_within_the_bound(cost: str) -> None:
    """At most (T + 1) max{1/β, 1/(1 − β)} samples more, from any state, and all arms
    but the leader, and one that keeps it company, have just doubled; leaping and
    stepping agree.
    """
    rng = np.random.default_rng(3)
    make = discreet.adap_tt if cost == "gaussian" else discreet.adap_tt_star
    for case in range(200):
        arms, beta = int(rng.integers(2, 7)), float(rng.choice([0.5, 0.2, 0.9]))
        means = np.round(rng.random(arms), 1).tolist()
        most = 10**9 if case % 2 else 50
        pulls = rng.integers(1, most, arms)
        bonus = rng.random(arms).tolist()
        strategy, total = make(1, 0.1, beta=beta), int(pulls.sum())
        found = []
        for leaping in (True,) if case % 2 else (True, False):
            state = state_of(means, pulls.tolist(), bonus)
            ended, samples = travel(state, strategy, 10**13, True, leaping)
            assert ended >= 0
            assert 2 * total <= samples <= total + (total + 1) * max(1 / beta, 1 / (1 - beta))
            assert (state.board.pulls >= 2 * pulls).all()
            assert (state.board.pulls > 2 * pulls).sum() <= 2
            found.append((ended, samples, state.board.pulls.tolist()))
        assert found[0] == found[-1]


@pytest.mark.parametrize("name", ["mu1", "mu4"])
def test_every_run_stops(name: str) -> None:
    """Also with tied arms, where one episode an arm may freeze the best one; one global
    episode hangs in most runs.
    """
    arms, levels = benchmarks[name], {"delta": 0.01, "epsilon": 1}
    for make, own in ((discreet.adap_tt_star, levels), (discreet.ttucb_batched, {"delta": 0.01})):
        repaired = make(**own, episodes="global-yielding")
        assert not list_reasons_not_to_stop(arms, repaired)
        results = simulate_quietly(arms, repaired, 20, 5, 10**8)
        assert results.stopped.all()
        assert results.correct.all()
        hanging = make(**own, episodes="global")
        assert list_reasons_not_to_stop(arms, hanging)
        assert simulate_quietly(arms, hanging, 20, 5, 10**8).unstopped > 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampling": "uniform"}, "with uniform every episode"),
        ({"sampling": "lucb"}, "never double"),
        ({"grid": discreet.CustomGrid("x", int)}, "all arms have doubled"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        discreet.adap_tt(1, 0.1, episodes="global-yielding", **options)


def test_arms_of_one_mean_are_no_obstacle() -> None:
    tied = Bernoulli([0.5, 0.5, 0.5, 0.9])
    strategy = discreet.ttucb_batched(0.1, episodes="global-yielding")
    assert simulate_quietly(tied, strategy, 50, 3, 10**7).stopped.all()
