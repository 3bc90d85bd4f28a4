"""Outcomes that are numbers: the same outcomes and noise lead a live run of bet-se and
the simulator to the same rounds, releases, stop and arm.

As in test_run.py a live run is played first, person by person; then the simulator plays
again with the counts of those people and that noise as its draws. Some values lie
between two units, so that rounding is drawn too.
"""

from typing import Any

import numpy as np
import pytest

from discreet import Discrete, Strategy, bet_se
from discreet._types import Floats
from discreet.simulation import betting as play
from discreet.simulation.laws import make_laws
from discreet.strategies.betting import run as room
from discreet.strategies.betting.bets import Bump, make_betting_rules, measure_closeness
from discreet.strategies.run import Totals
from tests.support import coins

VALUES = [0.0, 0.25, 0.3, 0.5, 0.7, 1.0]
NARROW = Discrete(
    VALUES,
    [
        [0, 0.02, 0.08, 0.3, 0.55, 0.05],
        [0.05, 0.2, 0.3, 0.4, 0.04, 0.01],
        [0.1, 0.3, 0.4, 0.2, 0, 0],
    ],
)
"""Most outcomes are near each other."""
NEARLY_BITS = Discrete(
    VALUES, [[0.45, 0, 0.05, 0, 0, 0.5], [0.6, 0, 0.05, 0, 0, 0.35], [0.7, 0, 0, 0.05, 0, 0.25]]
)
"""So that rounds are announced in which outcomes are rounded to bits."""
CAP = 4000


def numbers(epsilon: float | None, **options: Any) -> Strategy:
    return bet_se(0.1, epsilon, outcomes="numbers", **options)


CASES = [
    (numbers(1.0), NARROW, {"fine"}),
    (numbers(2.0), NEARLY_BITS, {"fine"}),
    (numbers(5.0), NEARLY_BITS, {"fine"}),
    (numbers(0.1), NARROW, {"fine", "by_tails"}),
    (numbers(0.1, target_difference=0.2), NARROW, {"fine", "by_tails"}),
    (numbers(1.0, indifference_zone=0.1), NEARLY_BITS, {"fine"}),
    (numbers(2.0, trust="local"), NARROW, {"fine"}),
    (numbers(4.0, trust="local"), NEARLY_BITS, {"fine"}),
    (numbers(None, trust="none"), NARROW, {"fine"}),
    (numbers(None, trust="none"), NEARLY_BITS, {"fine"}),
]
"""With the kinds of rounds that must have been played."""


class Player(coins.Player):
    """A run with one round at a time."""

    def __init__(self, strategy: Strategy, instance: Discrete, seed: int) -> None:
        super().__init__(strategy, instance, seed, CAP)


def simulated(player: Player, instance: Discrete) -> tuple[Any, Floats, list[int]]:
    """The run of the simulator with these draws, its rounds, and how many were dealt to
    each arm.
    """
    rules, pulls = make_betting_rules(player.live.strategy, instance.arms), np.zeros(3, np.int64)
    trace = np.zeros((200, 4 + instance.arms))
    tape: Any = player.tape
    outcome = play.run_betting(tape, make_laws(instance), rules, CAP, pulls, trace)
    return outcome, trace[: outcome.rounds], pulls.tolist()


@pytest.mark.parametrize(
    ("strategy", "instance", "kinds"), CASES, ids=[f"{c[0].trust} {c[0].epsilon}" for c in CASES]
)
def test_same_decisions_as_the_simulator(
    strategy: Strategy, instance: Discrete, kinds: set[str]
) -> None:
    seen, stops = set[str](), 0
    for seed in range(4):
        player = Player(strategy, instance, seed)
        player.play()
        live, seen = player.live, seen | player.kinds
        outcome, rounds, pulls = simulated(player, instance)
        assert (live.samples, live.stopped) == (outcome.samples, outcome.stopped)
        assert live.recommendation == outcome.recommendation
        assert rounds.tolist() == player.rounds
        assert [arm.pulls for arm in live.view_arms()] == pulls
        assert not player.tape.sums + player.tape.jumps
        stops += live.stopped
    assert kinds <= seen
    assert stops > 0


def differs(player: Player, instance: Discrete) -> bool:
    """Whether the simulator plays other rounds, or asks for other draws."""
    try:
        return bool(simulated(player, instance)[1].tolist() != player.rounds)
    except (IndexError, AssertionError):
        return True


@pytest.mark.parametrize("case", [3, 4, 6], ids=["sums", "differences", "levels"])
def test_another_closeness_is_seen(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """65536 units of a million more for each person, in the live run only; of levels a
    quarter less.
    """
    strategy, instance, _ = CASES[case]
    player = Player(strategy, instance, 0)
    player.play()
    assert not differs(player, instance)

    def more(units: int, bump: Bump) -> int:
        return measure_closeness(units, bump) + 2**16

    monkeypatch.setattr(room, "measure_closeness", more)
    honest = room.BettingRun.add_up

    def less(run: room.BettingRun, units: Any) -> Totals:
        total = honest(run, units)
        return total._replace(near=(total.near or 0) * 3 // 4)

    if case == 6:
        monkeypatch.setattr(room.BettingRun, "add_up", less)
    player = Player(strategy, instance, 0)
    player.play()
    assert differs(player, instance)
