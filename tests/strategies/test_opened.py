"""bet-se dealt by coins: rounds are opened, coins decide how many people each arm gets,
and the same coins, outcomes and noise lead the simulator to the same decisions.
"""

from typing import Any

import numpy as np
import pytest

from discreet import DiscreetError, Discrete, Strategy, bet_se
from discreet.simulation import betting as play
from discreet.simulation.laws import make_laws
from discreet.strategies.betting import run as room
from discreet.strategies.betting.bets import make_betting_rules
from tests.support.coins import AHEAD, SIMPLE, Player, opened

BITS = Discrete([0.0, 1.0], [[0.1, 0.9], [0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
TWO = Discrete([0.0, 1.0], [[0.1, 0.9], [0.6, 0.4]])
VALUES = [0.0, 0.25, 0.3, 0.5, 0.7, 1.0]
NARROW = Discrete(
    VALUES,
    [
        [0, 0.02, 0.08, 0.3, 0.55, 0.05],
        [0.05, 0.2, 0.3, 0.4, 0.04, 0.01],
        [0.1, 0.3, 0.4, 0.2, 0, 0],
    ],
)
NARROW_TWO = Discrete(VALUES, NARROW.probabilities[:2])
NEARLY_BITS = Discrete(
    VALUES, [[0.45, 0, 0.05, 0, 0, 0.5], [0.6, 0, 0.05, 0, 0, 0.35], [0.7, 0, 0, 0.05, 0, 0.25]]
)
CAP = 4000


def bets(**options: Any) -> Strategy:
    return bet_se(0.1, **options)


CASES = {
    "ε = 1": (bets(epsilon=1.0), BITS, {"bits"}),
    "ζ": (bets(epsilon=1.0, indifference_zone=0.1), BITS, {"bits"}),
    "tails": (bets(epsilon=0.1), BITS, {"by_tails"}),
    "target_difference": (bets(epsilon=0.05, target_difference=0.5), BITS, {"by_tails"}),
    "differences": (bets(epsilon=0.1), TWO, {"by_tails", "difference"}),
    "local": (bets(epsilon=1.0, trust="local"), BITS, {"bits"}),
    "open": (bets(trust="none"), BITS, {"bits"}),
    "numbers": (bets(epsilon=1.0, outcomes="numbers"), NARROW, {"fine"}),
    "numbers or bits": (bets(epsilon=2.0, outcomes="numbers"), NEARLY_BITS, {"fine"}),
    "differences of numbers": (
        bets(epsilon=0.1, outcomes="numbers"),
        NARROW_TWO,
        {"fine", "by_tails", "difference"},
    ),
    "levels": (bets(epsilon=2.0, trust="local", outcomes="numbers"), NARROW, {"fine"}),
}
"""With the kinds of rounds that must have been played."""


def simulated(player: Player, instance: Discrete) -> tuple[Any, list[list[float]], list[int]]:
    """The simulator's run with these draws, its rounds, and who was dealt what."""
    rules = make_betting_rules(player.live.strategy, instance.arms)
    pulls, trace = np.zeros(instance.arms, np.int64), np.zeros((400, 4 + instance.arms))
    tape: Any = player.tape
    outcome = play.run_betting(tape, make_laws(instance), rules, CAP, pulls, trace)
    return outcome, trace[: outcome.rounds].tolist(), pulls.tolist()


@pytest.mark.parametrize("case", CASES)
def test_same_decisions_as_the_simulator(case: str) -> None:
    """Run for run: samples, stop, arm, and after each round the means and who is in."""
    strategy, instance, kinds = CASES[case]
    seen, stops = set[str](), 0
    for seed in range(4):
        player = Player(strategy, instance, seed, CAP)
        player.play()
        live, seen = player.live, seen | player.kinds
        outcome, rounds, pulls = simulated(player, instance)
        assert (live.samples, live.stopped) == (outcome.samples, outcome.stopped)
        assert live.recommendation == outcome.recommendation
        assert rounds == player.rounds
        assert [arm.pulls for arm in live.view_arms()] == pulls
        assert not player.tape.sums + player.tape.jumps
        stops += live.stopped
    assert kinds <= seen
    assert stops > 0


def test_a_difference_without_its_handicap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy, instance, _ = CASES["differences"]
    monkeypatch.setattr(room, "count_handicap", lambda *_: 0)
    differ = 0
    for seed in range(4):
        player = Player(strategy, instance, seed, CAP)
        player.play()
        try:
            differ += simulated(player, instance)[1] != player.rounds
        except (IndexError, AssertionError):
            differ += 1
    assert differ > 0


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("randomisation", [SIMPLE, AHEAD], ids=["waiting", "ahead"])
def test_a_run_goes_on_from_what_it_wrote(case: str, randomisation: Any) -> None:
    """Written and read back again and again, it comes to the same end."""
    strategy, instance, _ = CASES[case]
    whole, broken = (Player(strategy, instance, 3, 1500, randomisation) for _ in range(2))
    whole.play()
    steps = 0
    while not broken.live.is_finished:
        broken.step()
        steps += 1
        if steps % 7 == 0 or broken.live.list_due():
            state = broken.live.dump()
            broken.live = opened(strategy, instance.arms, 1500, randomisation)
            broken.live.load(state)
            assert broken.live.dump() == state
    assert broken.live.dump() == whole.live.dump()
    assert broken.live.view_arms() == whole.live.view_arms()


def test_a_round_is_opened_before_anybody_is_dealt() -> None:
    live = opened(bets(epsilon=1.0), 3, 1000)
    assert live.needs_round
    assert live.assign_next() is None
    first = live.open_round()
    assert first.round == 1
    assert first.odds == [[0, 1], [1, 1], [2, 1]]
    assert first.participants == live.count_unassigned() == 36
    assert not live.needs_round
    with pytest.raises(DiscreetError, match="closed"):
        live.open_round()
    assert [live.assign_next(lambda _: 1) for _ in range(36)][-1] == (1, 1, 1)
    assert live.assign_next() is None
    assert live.list_due() == [(0, 1, 0), (1, 1, 36), (2, 1, 0)]
    live.release([0.0, 18.0, -1.0])
    assert live.needs_round
    assert live.open_round().round == 2
    assert live.assign_next(lambda _: 7) is None


NAMES = {
    "": "samples stopped recommendation margins rounds queue arrays",
    "rounds": "arms opened lengths settled rows dropped",
    "arrays": "wealth total mean precision log_wealth eliminated pair_slot pair_wealth",
}
FLIGHT = "number favoured planned played_length played_participants closed void "
FLIGHT += "odds length centre by_tails difference fine"


def test_the_names_of_a_stored_run() -> None:
    """Files of people's trials hold these names."""
    live = opened(bets(epsilon=1.0), 3, 1000, AHEAD)
    live.open_round()
    live.assign_next(lambda _: 1)
    live.drop_arm(0)
    state = live.dump()
    assert " ".join(state) == NAMES[""]
    assert " ".join(state["rounds"]) == NAMES["rounds"]
    assert " ".join(state["arrays"]) == NAMES["arrays"]
    assert [" ".join(flight) for flight in state["queue"]] == [f"{FLIGHT} playing assigned"]
    assert [" ".join(one) for one in state["rounds"]["dropped"]] == ["arm total fixed shift"]
    numbers = opened(bets(epsilon=1.0, outcomes="numbers"), 3, 1000).dump()
    assert " ".join(numbers["arrays"]) == NAMES["arrays"] + " closeness_totals fixed shift"


@pytest.mark.parametrize("part", ["", "rounds", "arrays", "flight"])
def test_a_name_that_should_be_there_is_missed(part: str) -> None:
    def state() -> tuple[Any, Any]:
        live = opened(bets(epsilon=1.0), 3, 1000)
        live.open_round()
        whole = live.dump()
        return whole, whole["queue"][0] if part == "flight" else whole[part] if part else whole

    for name in list(state()[1]):
        whole, some = state()
        del some[name]
        with pytest.raises(KeyError, match=name):
            opened(bets(epsilon=1.0), 3, 1000).load(whole)
