"""The names of what a run stores, whatever the code calls things."""

import pytest

import discreet
from discreet import Strategy
from discreet.strategies.run import make_run

ALWAYS = ["samples", "stopped", "recommendation"]
BOARD = ["board.pulls", "board.due", "board.led", "board.led_pulls", "board.share"]
BOOK = ["wealth", "total", "mean", "precision", "log_wealth", "eliminated"]
BOOK += ["pair_slot", "pair_wealth"]
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
        [*ALWAYS, "margins", "rounds", "queue"],
        BOOK,
    ),
    "numbers": (
        discreet.bet_se(0.1, 1, outcomes="numbers"),
        [*ALWAYS, "margins", "rounds", "queue"],
        [*BOOK, "closeness_totals", "fixed", "shift"],
    ),
}


@pytest.mark.parametrize("family", STORED)
def test_the_names_of_a_stored_run(family: str) -> None:
    """A change of them is a change of the stored format."""
    strategy, fields, arrays = STORED[family]
    state = make_run(strategy, 3, 100, 0.1).dump()
    assert list(state) == [*fields, "arrays"]
    assert list(state["arrays"]) == arrays


@pytest.mark.parametrize("family", STORED)
def test_a_field_that_should_be_there_is_missed(family: str) -> None:
    strategy, fields, arrays = STORED[family]
    for name in fields:
        state = make_run(strategy, 3, 100, 0.1).dump()
        del state[name]
        with pytest.raises(KeyError, match=name):
            make_run(strategy, 3, 100, 0.1).load(state)
    for name in arrays:
        state = make_run(strategy, 3, 100, 0.1).dump()
        del state["arrays"][name]
        with pytest.raises(KeyError, match=name):
            make_run(strategy, 3, 100, 0.1).load(state)
