"""What waiting and continuous enrolment cost, beside each other: people and days."""

import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from discreet.calendar import ENROLMENTS, Calendar
from discreet.instance import Instance
from discreet.planning.people import People, days_of, people_of
from discreet.planning.simulations import Simulations, right
from discreet.strategies.strategy import Strategy


@dataclass(frozen=True)
class Way:
    """One strategy at one privacy level in one scenario, with one way to enrol."""

    scenario: str
    epsilon: float | None
    strategy: str
    enrolment: str
    people: People
    days: People
    """From the first day of enrolment to the end of the trial."""
    in_flight: float
    """People assigned and not released when the trial ended, on average."""
    releases: float
    """On average."""
    correct: float
    """Share of the trials that ended in time with the right answer."""
    start: date | None = None
    """The first day of enrolment, if known."""

    @property
    def end(self) -> dict[str, date | None] | None:
        """When the trial ends, by the names of `days`; None if nobody says when it
        starts, of one of them if it is not known or beyond the calendar.
        """
        if self.start is None:
            return None
        return {name: day_after(self.start, days) for name, days in vars(self.days).items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        found = {**vars(self), "people": vars(self.people), "days": vars(self.days)}
        del found["start"]
        if (end := self.end) is not None:
            found["end"] = {name: day and day.isoformat() for name, day in end.items()}
        return found


def day_after(start: date, days: float | None) -> date | None:
    """The day on which so many days are over."""
    try:
        return None if days is None else start + timedelta(math.ceil(days - 1e-9))
    except OverflowError:
        return None


def ways_of(calendar: Calendar, strategy: Strategy) -> list[str]:
    """The ways to enrol that are compared: both where both can be."""
    both = calendar.last is not None and strategy.part.prices_noise
    return list(ENROLMENTS) if both else [calendar.enrolment]


def way_of(
    simulations: Simulations,
    name: str,
    instance: Instance,
    strategy: Strategy,
    most: int | None,
    enrolment: str,
    start: date | None = None,
) -> Way:
    """Simulate one way to enrol."""
    results = simulations(instance, strategy, most, enrolment=enrolment)
    assert results.in_flight is not None
    return Way(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy.name,
        enrolment=enrolment,
        people=people_of(results, most is not None),
        days=days_of(results, most is not None),
        in_flight=float(results.in_flight.mean()),
        releases=float(results.rounds.mean()),
        correct=right(results) / results.runs,
        start=start,
    )
