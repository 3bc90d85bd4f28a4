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
    play: Callable[[Generator, Outcomes], None]
    """Plays as many runs as there are rows, one after the other on this Generator."""


def one_by_one(run: Callable[[Generator, Ints], Outcome]) -> Runner:
    """Every run has a Generator of its own; `run(rng, pulls)` plays one and writes its
    pulls.
    """

    def play(rng: Generator, outcomes: Outcomes) -> None:
        for row in range(outcomes.samples.size):
            outcomes.write(row, run(rng, outcomes.pulls[row]))

    return Runner(1, play)


def in_blocks(play: Callable[[Generator, Outcomes], None]) -> Runner:
    """Runs share a Generator in blocks of a fixed length."""
    return Runner(BLOCK, play)
