"""The calendar of strategies that release in batches, where every release waits for the
same time: derived from what a run came to, as it changes nothing else.

A release comes with the last outcome of its batch, and the batch is full when its last
person is assigned; everybody before was assigned earlier, and is known by then. So days
are 1/accrual for each person and the wait for each release.
"""

import numpy as np

from discreet.arrays import Ints
from discreet.calendar import Calendar
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Drifting, Instance
from discreet.simulation.outcome import Outcomes
from discreet.strategies.phased.tables import grid
from discreet.strategies.strategy import Strategy
from discreet.theory.thresholds import epoch_length


def check_calendar(instance: Instance, strategy: Strategy, calendar: Calendar) -> None:
    """Refuse a calendar that this strategy is not simulated with on this instance."""
    if strategy.part.each_answer:
        raise InvalidInputError(
            f"{strategy.shown} learns from every answer, and what it does while answers are "
            "outstanding is not simulated: leave accrual out, or use bet-se or another strategy "
            "that releases in batches (adap-tt, adap-tt-star, dp-se, ttucb-batched)"
        )
    if strategy.part.prices_noise:
        if calendar.delay.failures != calendar.delay.days and not yes_no(instance):
            raise InvalidInputError(
                "a separate delay for failures is for outcomes that are yes or no: use "
                "Bernoulli arms, or one delay for all"
            )
        return
    if strategy.together:
        raise InvalidInputError(
            "days are not simulated with one global episode: leave accrual out, or use "
            "episodes='arm'"
        )
    if not calendar.simple:
        why = (
            "continuous enrolment is for bet-se, whose error rate is proved for it"
            if calendar.continuous
            else "outcomes that are late at random, or missing, are simulated for bet-se only, "
            f"not for {strategy.shown}"
        )
        raise InvalidInputError(
            f"{why}: use bet-se, or waiting enrolment with a fixed delay and nobody missing"
        )


def yes_no(instance: Instance) -> bool:
    """Whether each outcome is a success or a failure."""
    return isinstance(instance, Bernoulli | Drifting)


def add_days(strategy: Strategy, calendar: Calendar, outcomes: Outcomes) -> None:
    """Write the days and the people in flight of runs with a simple calendar."""
    releases, arms = outcomes.rounds, outcomes.pulls.shape[1]
    if strategy.phased:
        releases = releases - arms + 1  # the first phases of all arms are released together
        outcomes.in_flight[:] = beyond(grid(strategy)[1:], outcomes.pulls).sum(axis=1)
    elif not strategy.part.prices_noise:
        for row in np.flatnonzero(~outcomes.stopped):
            outcomes.in_flight[row] = cut_epoch(strategy, outcomes, int(row))
    outcomes.days[:] = outcomes.samples / calendar.accrual + releases * calendar.wait


def beyond(ends: Ints, pulls: Ints) -> Ints:
    """Of each arm's pulls those after the last complete phase; `ends` says where phases
    end.
    """
    return np.asarray(pulls - ends[np.searchsorted(ends, pulls, side="right") - 1])


def cut_epoch(strategy: Strategy, outcomes: Outcomes, row: int) -> int:
    """People of an epoch of DP-SE that the cap cut off: those beyond the epochs that
    were released, whose lengths follow from when arms went out.
    """
    pulls, whole, epsilon = outcomes.pulls[row], 0, float(strategy.epsilon or 0)
    for epoch in range(1, int(outcomes.rounds[row]) + 1):
        left = int((pulls > whole).sum())
        whole += int(epoch_length(left, epoch, epsilon, strategy.delta))
    return int(np.maximum(pulls - whole, 0).sum())
