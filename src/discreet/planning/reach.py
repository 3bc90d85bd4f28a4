"""Whether a trial of so many people can end with an answer at all."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from math import inf
from statistics import median
from typing import Any

from discreet.instance import Bernoulli
from discreet.simulation.engine import MAX_SAMPLES
from discreet.simulation.laws import laws_of
from discreet.simulation.outcome import Outcome
from discreet.simulation.plainly import plain_player
from discreet.simulation.workers import generator
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.validate import check_arms, check_whole

SEED = 0
MOST_RUNS, LEAST_RUNS = 20, 3
EFFORT = 720.0
"""About a second of plain Python, in the units of `_cost`."""


@dataclass(frozen=True)
class OutOfReach:
    """A trial that will end without an answer, however far apart its arms are."""

    max_people: int
    runs: int
    """Simulated trials on the easiest arms there are, none of which ended in time."""
    people: int | None
    """About how many people it takes on them; None where that is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return dict(vars(self))


def out_of_reach(strategy: Strategy, arms: int, max_people: int) -> OutOfReach | None:
    """An `OutOfReach` if a trial with this strategy cannot end with an answer within
    `max_people`; None if it can.

    Up to 20 trials are simulated on the easiest arms there are: the best one always
    does as well as can be, the others as badly as can be, and no outcome is late or
    missing. If none of them ends with an answer in time, no real trial can be expected
    to. One that is within reach may still take many more people, as most arms are
    closer to each other: `plan` says how many.

    The trials are played in plain Python, so that nothing has to be compiled, and take
    about a second at most. What would take longer is not judged (the answer is None).
    That is so for more than 200 arms (28 with a phased strategy or with Top Two
    sampling); for more than 12 000 people with two arms, or 5000 with ten, if the
    strategy learns from every answer, has β = ids or samples by eb-tci or
    track-and-stop; and for one global episode.
    """
    check_strategy(
        strategy
    ).to_dict()  # refuses parts that are Python functions, as a live trial does
    check_arms(arms)
    most = check_whole("max_people", max_people, least=arms, most=MAX_SAMPLES)
    runs = min(MOST_RUNS, int(EFFORT / _cost(strategy, arms, most)))
    if runs < LEAST_RUNS:
        return None
    trials = _trials(strategy, arms, most)
    if trials is None or any(found.stopped for found in islice(trials, runs)):
        return None
    return OutOfReach(most, runs, _people(strategy, arms, runs - LEAST_RUNS + 1))


def _trials(strategy: Strategy, arms: int, most: int) -> Iterator[Outcome] | None:
    """Trials on the easiest arms, one after the other; None if they cannot be played
    plainly.
    """
    easiest = Bernoulli([1.0] + [0.0] * (arms - 1))
    play = plain_player(strategy, laws_of(easiest), most)
    return None if play is None else (play(generator(SEED, run)) for run in count())


def _people(strategy: Strategy, arms: int, runs: int) -> int | None:
    """About how many people it takes on the easiest arms, to two digits; None if too
    many trials do not end, or each person would have to be played.
    """
    trials = None if strategy.by_person else _trials(strategy, arms, MAX_SAMPLES)
    if trials is None:
        return None
    middle = median(found.samples if found.stopped else inf for found in islice(trials, runs))
    return None if middle == inf else int(float(f"{middle:.2g}"))


def _cost(strategy: Strategy, arms: int, people: int) -> float:
    """About how long a trial of at most so many people takes to play: 1 for each arm of
    an elimination in rounds.
    """
    if strategy.by_person:
        return people * (4 + arms) / 300
    rounds = strategy.sampling == "elimination" and not strategy.phased
    return 40 + (arms if rounds else arms**2 / 4)
