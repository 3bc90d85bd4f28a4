"""What waiting and continuous enrolment cost, beside each other: people and days."""

from dataclasses import dataclass
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

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {**vars(self), "people": vars(self.people), "days": vars(self.days)}


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
    )
