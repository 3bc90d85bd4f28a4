"""One row of a plan: what one strategy does at one privacy level in one scenario."""

import math
import warnings
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from discreet import theory
from discreet._types import Doing, Flags, Floats, Progress
from discreet.accrual import ENROLMENTS, Calendar
from discreet.errors import RoundedWarning
from discreet.instances import Instance
from discreet.numerics import compute_clopper_pearson
from discreet.results import Results
from discreet.simulation.engine import (
    RUNS_PER_GENERATOR,
    MayNotStopWarning,
    find_correct_arms,
    simulate,
)
from discreet.strategies.presets import ttucb
from discreet.strategies.strategy import Strategy
from discreet.validation import check_progress, check_whole


class Example(NamedTuple):
    """Hold simulated trials of one strategy in one scenario."""

    scenario: str
    strategy: Strategy
    results: Results


class Simulations:
    """Simulate with one seed, each case once. Tell how far it is, and warn once of a
    kind.
    """

    def __init__(
        self,
        runs: int,
        seed: int,
        progress: Progress | None,
        calendar: Calendar | None = None,
        doing: Doing | None = None,
    ) -> None:
        check_progress(progress)
        check_progress(doing, "doing")
        self.runs = check_whole("runs", runs, least=1, most=10**9)
        self.seed = seed
        self.calendar = calendar
        self.progress = progress
        self.doing = doing
        self.purpose = "participants it takes"
        """What the next simulations are for, in words."""
        self.total = 0
        self.finished = 0
        self.known: dict[Any, Results] = {}
        self.planned: list[Strategy] = []
        """What is planned, not only compared with."""
        self.warned: set[str] = set()

    def expect(self, simulations: int, runs: int | None = None) -> None:
        """Announce about so many simulations more, of so many runs."""
        self.total += simulations * (runs or self.runs)

    def __call__(
        self,
        instance: Instance,
        strategy: Strategy,
        max_participants: int | None,
        runs: int | None = None,
        enrolment: str | None = None,
        fresh: int = 0,
    ) -> Results:
        """Simulate trials of at most so many participants; as many trials as all
        others, unless `runs` says so, and enrolled as all others, unless `enrolment`
        does. A strategy that learns from every answer is only compared with: it has no
        calendar. `fresh` numbers trials of the same seed that no other number has, if
        all ask for as many.
        """
        calendar = self.calendar
        if calendar is not None:
            calendar = calendar.with_enrolment(enrolment or calendar.enrolment)
        if strategy.spec.each_answer and strategy not in self.planned:
            calendar = None
        key = (instance, strategy, max_participants, runs, calendar, fresh)
        if key not in self.known:
            self._announce(strategy)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", MayNotStopWarning)
                warnings.simplefilter("ignore", RoundedWarning)  # a plan says what it expects
                days = {} if calendar is None else calendar.to_dict()
                results = simulate(
                    instance,
                    strategy,
                    runs or self.runs,
                    self.seed,
                    max_participants,
                    progress=self._tell,
                    first_run=fresh
                    * RUNS_PER_GENERATOR
                    * -(-(runs or self.runs) // RUNS_PER_GENERATOR),
                    **days,
                )
            for text in {str(warning.message) for warning in caught} - self.warned:
                self.warned.add(text)
                warnings.warn(f"{strategy.name}: {text}", MayNotStopWarning, stacklevel=4)
            if results.interrupted:
                raise KeyboardInterrupt
            self.finished += results.runs
            self.known[key] = results
        return self.known[key]

    def _announce(self, strategy: Strategy) -> None:
        if self.doing is not None:
            level = "" if strategy.epsilon is None else f" at ε = {strategy.epsilon:.3g}"
            self.doing(f"{self.purpose}: {strategy.name}{level or ' without privacy'}")

    def _tell(self, done: int, _: int) -> None:
        if self.progress is not None:
            now = self.finished + done
            self.progress(now, max(self.total, now))


def count_correct(results: Results) -> int:
    """Count the runs that stopped in time with the correct result."""
    return int((results.stopped & results.correct).sum())


@dataclass(frozen=True)
class Spread:
    """Hold how many participants, or days, a trial takes; None if too many runs did not
    stop to say.
    """

    mean: float | None
    median: float | None
    q10: float | None
    q90: float | None
    longest: float | None
    """The longest of the simulated trials, which now and then is far beyond the others.
    """


def summarise_participants(results: Results, capped: bool) -> Spread:
    """Summarise the participants of these trials; `capped` if they end at a maximum, as
    real ones would.
    """
    return summarise_spread(results.samples.astype(np.float64), results.stopped, capped)


def summarise_days(results: Results, capped: bool) -> Spread:
    """Summarise the days of these trials, counted as participants are."""
    return summarise_spread(np.asarray(results.days), results.stopped, capped)


def summarise_spread(values: Floats, stopped: Flags, capped: bool) -> Spread:
    """Summarise a number of each trial; trials that do not end have the largest."""
    if capped or stopped.all():
        quantiles = np.quantile(values, [0.5, 0.1, 0.9, 1.0]).tolist()
        return Spread(float(values.mean()), *quantiles)
    longest = np.where(stopped, values, np.inf)
    found = np.quantile(longest, [0.5, 0.1, 0.9, 1.0], method="inverted_cdf").tolist()
    mean = float(values[stopped].mean()) if stopped.any() else None
    return Spread(mean, *[q if q < math.inf else None for q in found])


@dataclass(frozen=True)
class EnrolmentOption:
    """Hold one strategy at one privacy level in one scenario, with one way to enrol."""

    scenario: str
    epsilon: float | None
    strategy: str
    enrolment: str
    participants: Spread
    days: Spread
    """Days from the start of enrolment to the end of the trial."""
    pipeline: float
    """Participants assigned and not released when the trial ended, on average."""
    releases: float
    """On average."""
    correct: float
    """Share of the trials that ended in time with the correct result."""
    start: date | None = None
    """The first day of enrolment, if known."""

    @property
    def end(self) -> dict[str, date | None] | None:
        """Return when the trial ends, by the names of `days`; None if its start is not
        known. A date is None if it is not known or beyond the calendar.
        """
        if self.start is None:
            return None
        return {name: compute_end_day(self.start, days) for name, days in vars(self.days).items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        found = {**vars(self), "participants": vars(self.participants), "days": vars(self.days)}
        del found["start"]
        if (end := self.end) is not None:
            found["end"] = {name: day and day.isoformat() for name, day in end.items()}
        return found


def compute_end_day(start: date, days: float | None) -> date | None:
    """Return the day on which so many days are over."""
    try:
        return None if days is None else start + timedelta(math.ceil(days - 1e-9))
    except OverflowError:
        return None


def list_enrolments(calendar: Calendar, strategy: Strategy) -> list[str]:
    """Return the ways to enrol that are compared: both if both can be."""
    both = calendar.last_day is not None and strategy.spec.prices_noise
    return list(ENROLMENTS) if both else [calendar.enrolment]


def simulate_enrolment(
    simulations: Simulations,
    name: str,
    instance: Instance,
    strategy: Strategy,
    max_participants: int | None,
    enrolment: str,
    start: date | None = None,
) -> EnrolmentOption:
    """Simulate one way to enrol."""
    results = simulations(instance, strategy, max_participants, enrolment=enrolment)
    assert results.pipeline is not None
    return EnrolmentOption(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy.name,
        enrolment=enrolment,
        participants=summarise_participants(results, max_participants is not None),
        days=summarise_days(results, max_participants is not None),
        pipeline=float(results.pipeline.mean()),
        releases=float(results.rounds.mean()),
        correct=count_correct(results) / results.runs,
        start=start,
    )


MAX_REFERENCE_RUNS, MIN_REFERENCE_RUNS = 100, 20
"""Runs of ttucb, which is simulated sample by sample and only tells the cost of
privacy.
"""
MAX_REFERENCE_ARMS = 4000
"""Most arms of all these runs together, as each sample looks at every arm."""


@dataclass(frozen=True)
class PlanRow:
    """Hold what one strategy does at one privacy level in one scenario."""

    scenario: str
    epsilon: float | None
    """None: without privacy."""
    strategy: Strategy
    runs: int
    participants: Spread
    """Participants that a trial enrols. A run that hits `max_participants` counts with
    these; one that hits no end counts as longest.
    """
    correct: float
    """Share of the runs that stopped in time with the correct result."""
    correct_interval: tuple[float, float]
    """Clopper–Pearson, 95 %."""
    wrong: int
    """Runs that stopped with a wrong answer."""
    best_share: float
    """Share of the participants who got the best arm; with an indifference zone, one
    within it of the best.
    """
    releases: float | None
    """Rounds with a release (interim analyses), on average over the runs that stopped.
    """
    unstopped: int
    """Runs that hit `max_participants`, or without it the simulation's cap: 1e12, or 1e9 for
    data and Beta arms whose outcomes are drawn person by person.
    """
    unstopped_interval: tuple[float, float]
    privacy_cost: float | None
    """Mean samples relative to no privacy: of bet-se to bet-se, of others to ttucb,
    whatever `max_participants`.
    """
    lower_bound: float | None
    """Fewest participants, on average, of any strategy with this privacy and error
    rate; for arms that are not Bernoulli the floor of all laws on [0, 1]; None with an
    indifference zone.
    """
    results: Results = field(repr=False, compare=False)
    """The simulated trials."""

    @property
    def unstopped_probability(self) -> float:
        """Return the share of the runs that hit the maximum."""
        return self.unstopped / self.runs

    @property
    def comparable_bound(self) -> float | None:
        """Return the lower bound, if the mean can be compared with it: not if some
        trials were cut short, which pulls the mean down and says nothing against the
        bound.
        """
        return None if self.unstopped else self.lower_bound

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON, without the simulated trials themselves."""
        return {
            **{name: value for name, value in vars(self).items() if name != "results"},
            "strategy": self.strategy.name,
            "trust": self.strategy.trust,
            "threshold": self.strategy.threshold
            if isinstance(self.strategy.threshold, str)
            else "custom",
            **self.strategy.label,
            "participants": vars(self.participants),
            "correct_interval": list(self.correct_interval),
            "unstopped_interval": list(self.unstopped_interval),
            "unstopped_probability": self.unstopped_probability,
            "target_difference": self.strategy.target_difference,
            "outcomes": self.strategy.shown_outcomes,
        }


def simulate_row(
    simulations: Simulations,
    name: str,
    instance: Instance,
    strategy: Strategy,
    max_participants: int | None,
) -> PlanRow:
    """Simulate one row of a plan."""
    results = simulations(instance, strategy, max_participants)
    hits, good = count_correct(results), find_correct_arms(instance, strategy.indifference_zone)
    stopped = results.stopped.any()
    return PlanRow(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy,
        runs=results.runs,
        participants=summarise_participants(results, max_participants is not None),
        correct=hits / results.runs,
        correct_interval=compute_clopper_pearson(hits, results.runs),
        wrong=results.errors,
        best_share=float(results.pulls[:, good].sum() / results.pulls.sum()),
        releases=float(results.rounds[results.stopped].mean()) if stopped else None,
        unstopped=results.unstopped,
        unstopped_interval=compute_clopper_pearson(results.unstopped, results.runs),
        privacy_cost=_compute_privacy_cost(simulations, instance, strategy, max_participants),
        lower_bound=_compute_lower_bound(instance, strategy),
        results=results,
    )


def _compute_lower_bound(instance: Instance, strategy: Strategy) -> float | None:
    """Return what no strategy with that privacy and error rate can beat; None with ζ,
    of which nothing is known.
    """
    if strategy.indifference_zone > 0:
        return None
    # (ε, γ)-privacy is not ε-privacy
    epsilon = strategy.epsilon if strategy.gamma is None else None
    return theory.least_samples(instance, strategy.delta, epsilon, strategy.trust)


def _compute_privacy_cost(
    simulations: Simulations, instance: Instance, strategy: Strategy, max_participants: int | None
) -> float | None:
    """Return the mean samples relative to no privacy, without a maximum of
    participants, which would hide the cost.

    A strategy of your own has none: what it would be without privacy is not known.
    """
    if strategy.spec.own:
        return None
    if not strategy.trust_model.is_private:
        return 1.0 if strategy.name in ("bet-se", "ttucb") else None
    results = simulations(instance, strategy, max_participants)
    if results.unstopped and max_participants is not None:
        if strategy.spec.each_answer:
            return None  # every sample is simulated: to go on could take hours
        results = simulations(instance, strategy, None)
    if (public := strategy.without_privacy()) is not None:
        plain = simulations(instance, public, None)
    else:
        few = max(MIN_REFERENCE_RUNS, min(MAX_REFERENCE_RUNS, MAX_REFERENCE_ARMS // instance.arms))
        plain = simulations(instance, ttucb(strategy.delta), None, min(simulations.runs, few))
    if not (results.stopped.any() and plain.stopped.any()):
        return None
    return float(results.samples[results.stopped].mean() / plain.samples[plain.stopped].mean())
