"""What a run stores is stored for ever: its names are these, whatever the code calls
things.
"""

from typing import Any, ClassVar

import numpy as np
import pytest

import discreet
from discreet import Strategy
from discreet.strategies.run import new_run
from discreet.strategies.stream.run import StreamRun

ALWAYS = ["samples", "stopped", "recommendation"]
BOARD = ["board.pulls", "board.due", "board.led", "board.led_pulls", "board.share"]
BOOK = ["wealth", "total", "mean", "precision", "money", "out", "active", "slot", "pair", "met"]
STORED: dict[str, tuple[Strategy, list[str], list[str]]] = {
    "phased": (
        discreet.adap_tt(1, 0.1),
        [*ALWAYS, "ended"],
        [*BOARD, "mean", "counts", "phase", "bonus", "active", "begun", "sums"],
    ),
    "stream": (
        discreet.ttucb(0.1),
        [*ALWAYS, "count"],
        ["mean", "pulls", "inverse", "led", "led_pulls", "share", "active", "sums"],
    ),
    "epochs": (
        discreet.dp_se(1, 0.1),
        [*ALWAYS, "epoch", "place"],
        ["mean", "active", "pulls", "behind", "radius"],
    ),
    "betting": (
        discreet.bet_se(0.1, 1),
        [*ALWAYS, "margins", "round"],
        [*BOOK, "sigma", "pick", "left"],
    ),
    "numbers": (
        discreet.bet_se(0.1, 1, outcomes="numbers"),
        [*ALWAYS, "margins", "round"],
        [*BOOK, "sigma", "pick", "left", "close", "aside", "lift"],
    ),
}


@pytest.mark.parametrize("family", STORED)
def test_the_names_of_a_stored_run(family: str) -> None:
    """Files of people's trials hold these names, in this order, since version 1 of the
    schema.
    """
    strategy, fields, arrays = STORED[family]
    state = new_run(strategy, 3, 100, 0.1).dump()
    assert list(state) == [*fields, "arrays"]
    assert list(state["arrays"]) == arrays


@pytest.mark.parametrize("family", STORED)
def test_a_field_that_should_be_there_is_missed(family: str) -> None:
    strategy, fields, arrays = STORED[family]
    for name in fields:
        state = new_run(strategy, 3, 100, 0.1).dump()
        del state[name]
        with pytest.raises(KeyError, match=name):
            new_run(strategy, 3, 100, 0.1).load(state)
    for name in arrays:
        state = new_run(strategy, 3, 100, 0.1).dump()
        del state["arrays"][name]
        with pytest.raises(KeyError, match=name):
            new_run(strategy, 3, 100, 0.1).load(state)


class LaterRun(StreamRun):
    """A run as a later version may write it: a field and an array more, which older
    files lack.
    """

    fields: ClassVar = {**StreamRun.fields, "reached": 7}
    optional_arrays: ClassVar = frozenset({"seen"})

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap, None)
        self.reached = 0
        self.seen = np.full(arms, 5)

    def arrays(self) -> dict[str, Any]:
        return {**super().arrays(), "seen": self.seen}


def test_what_an_older_file_lacks_has_its_default() -> None:
    older = StreamRun(discreet.ttucb(0.1), 3, 100, None)
    older.take()
    run = LaterRun(discreet.ttucb(0.1), 3, 100)
    run.load(older.dump())
    assert (run.samples, run.reached, run.seen.tolist()) == (1, 7, [5, 5, 5])
    run.reached = 9
    run.seen[0] = 1
    again = LaterRun(discreet.ttucb(0.1), 3, 100)
    again.load(run.dump())
    assert (again.reached, again.seen.tolist()) == (9, [1, 5, 5])


def test_the_names_of_an_announced_round() -> None:
    state = new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).dump()
    names = "number leader second odds weight length centre dear margin n samples winner"
    assert list(state["round"]) == names.split()


def test_a_round_without_one_of_its_names_is_missed() -> None:
    for name in new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).dump()["round"]:
        state = new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).dump()
        del state["round"][name]
        with pytest.raises(KeyError, match=name):
            new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).load(state)


def test_a_trial_of_the_first_edition_of_bet_se_is_refused() -> None:
    state = new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).dump()
    state["arrays"]["own"] = []
    with pytest.raises(discreet.DiscreetError, match="start a new one"):
        new_run(discreet.bet_se(0.1, 1), 3, 100, 0.1).load(state)
