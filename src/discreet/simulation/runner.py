"""How runs of one strategy on one instance are simulated: one by one, or in blocks that
share a Generator.
"""

from collections.abc import Callable
from typing import NamedTuple

from discreet.arrays import Ints
from discreet.simulation.laws import Generator
from discreet.simulation.outcome import Outcome, Outcomes

BLOCK = 64
"""Runs that share a Generator where making one costs as much as a run, and holds back
the other threads.
"""


class Runner(NamedTuple):
    """What plays runs."""

    block: int
    """Runs that share a Generator."""
    play: Callable[[Generator, Outcomes, int], None]
    """Plays a block of runs on this Generator, from this row of the outcomes on."""


def one_by_one(run: Callable[[Generator, Ints], Outcome]) -> Runner:
    """Every run has a Generator of its own; `run(rng, pulls)` plays one and writes its
    pulls.
    """

    def play(rng: Generator, outcomes: Outcomes, row: int) -> None:
        outcomes.write(row, run(rng, outcomes.pulls[row]))

    return Runner(1, play)


def in_blocks(runs: Callable[[Generator, Outcomes], None]) -> Runner:
    """Runs share a Generator in blocks of a fixed length; `runs(rng, outcomes)` plays
    as many as there are rows, one after the other.
    """

    def play(rng: Generator, outcomes: Outcomes, row: int) -> None:
        runs(rng, outcomes.part(slice(row, row + BLOCK)))

    return Runner(BLOCK, play)
