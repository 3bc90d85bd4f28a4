"""plan(scenarios, epsilons, delta): how many people it will take, simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from discreet import theory
from discreet.arrays import Progress
from discreet.calendar import Calendar, Delay, calendar_of
from discreet.errors import InvalidInputError
from discreet.frames import Tabular
from discreet.instance import Instance
from discreet.planning.budget import Affordable, Budget
from discreet.planning.choices import strategies_of
from discreet.planning.people import People, people_of
from discreet.planning.ranges import RangeCost
from discreet.planning.scenarios import GapScenarios, named_scenarios
from discreet.planning.simulations import Simulations, right
from discreet.planning.ways import Way, way_of, ways_of
from discreet.results import Results
from discreet.sampled import Sampled
from discreet.scale import NUMBERS, YES_NO
from discreet.simulation.engine import MAX_SAMPLES
from discreet.statistics import clopper_pearson
from discreet.strategies.presets import Recommendation, bet_se, recommended, ttucb
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import to_bits
from discreet.trust import TRUSTS
from discreet.validate import check_delta, check_levels, check_share, is_word, quoted
from discreet.version import __version__

RUNS = 500
REFERENCE_RUNS = 100
"""Of ttucb, which is simulated sample by sample and only tells the price of privacy."""
SEARCH = 9
"""About so many simulations find an affordable ε."""


@dataclass(frozen=True)
class PlanRow:
    """What one strategy does at one privacy level in one scenario."""

    scenario: str
    epsilon: float | None
    """None: without privacy."""
    strategy: Strategy
    runs: int
    samples: People
    """People a trial enrols. A run that hits `max_people` counts with these; one that
    hits no end counts as longest.
    """
    correct: float
    """Share of the runs that stopped in time with the right answer."""
    correct_interval: tuple[float, float]
    """Clopper–Pearson, 95 %."""
    wrong: int
    """Runs that stopped with a wrong answer."""
    best_share: float
    """Share of the people who got the best arm."""
    releases: float | None
    """Rounds with a release, interim looks, on average over the runs that stopped."""
    unstopped: int
    """Runs that hit `max_people`, or without it the simulation's cap: 1e12, or 1e9 for
    data and Beta arms whose outcomes are drawn person by person.
    """
    unstopped_interval: tuple[float, float]
    privacy_cost: float | None
    """Mean samples relative to no privacy: of bet-se to bet-se, of others to ttucb,
    whatever `max_people`.
    """
    lower_bound: float | None
    """No strategy with this privacy and error rate takes fewer people on average; for
    arms not Bernoulli the floor of all laws on [0, 1]; None with an indifference gap.
    """
    results: Results = field(repr=False, compare=False)
    """The simulated trials."""

    @property
    def unstopped_probability(self) -> float:
        """The share of the runs that hit the maximum."""
        return self.unstopped / self.runs

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, without the simulated trials themselves."""
        return {
            **{name: value for name, value in vars(self).items() if name != "results"},
            "strategy": self.strategy.name,
            "trust": self.strategy.trust,
            "threshold": self.strategy.threshold
            if isinstance(self.strategy.threshold, str)
            else "custom",
            **self.strategy.label,
            "samples": vars(self.samples),
            "correct_interval": list(self.correct_interval),
            "unstopped_interval": list(self.unstopped_interval),
            "unstopped_probability": self.unstopped_probability,
            "hint": self.strategy.hint,
            "outcomes": self.strategy.shown_outcomes,
        }


@dataclass(frozen=True)
class Plan(
    Tabular,
    rows="no_privacy per_epsilon ways",
    shown="scenario strategy epsilon enrolment samples_median samples_q90 people_median "
    "days_median correct unstopped_probability privacy_cost correctness delta runs max_people",
):
    """What it takes: a row for each scenario, privacy level and strategy, and the one
    to take.
    """

    scenarios: dict[str, Instance]
    delta: float
    trust: str
    per_epsilon: tuple[PlanRow, ...]
    no_privacy: tuple[PlanRow, ...]
    """bet-se without privacy, a row for each scenario: what privacy is compared
    with.
    """
    recommended: Recommendation
    runs: int
    seed: int
    max_people: int | None = None
    budget: int | None = None
    probability: float = 0.9
    affordable: tuple[Affordable, ...] = ()
    """With a budget: an entry for each private strategy."""
    ranges: tuple[RangeCost, ...] = ()
    """What other ranges of outcomes would take, if `plan_ranges` was asked."""
    calendar: Calendar | None = None
    """How people come and outcomes are told, if an accrual was given."""
    ways: tuple[Way, ...] = ()
    """With an accrual: what each way to enrol takes, for each row of the plan."""
    version: str = __version__

    @property
    def hint(self) -> float:
        """The difference that the recommended strategy is planned to expect; 0 for
        none.
        """
        return self.recommended.strategy.hint

    @property
    def floored(self) -> bool:
        """Whether some arms are not Bernoulli: their lower bound is a floor."""
        return any_numbers(self.scenarios)

    @property
    def outcomes(self) -> str:
        """What the recommended strategy is planned to expect outcomes to be."""
        return self.recommended.strategy.outcomes

    @property
    def as_bits(self) -> list[float]:
        """The ε at which outcomes that are numbers leave people as randomised bits."""
        every = (self.recommended.strategy, *(row.strategy for row in self.per_epsilon))
        found = {each.epsilon for each in every if each.outcomes == NUMBERS and to_bits(each)}
        return sorted(epsilon for epsilon in found if epsilon is not None)

    @property
    def clipped(self) -> int | None:
        """Past outcomes that count as an end of their range; None without data in known
        units.
        """
        data = [arms for arms in self.scenarios.values() if isinstance(arms, Sampled)]
        counts = [arms.clipped for arms in data if arms.scale is not None]
        return sum(counts) if counts else None

    @property
    def affordable_epsilon(self) -> float | None:
        """The strongest privacy that the budget affords with any of the strategies;
        None if none of them does.
        """
        found = [entry.epsilon for entry in self.affordable if entry.epsilon is not None]
        return min(found, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        fields = dict(vars(self))
        fields["scenarios"] = {
            name: instance.describe() for name, instance in self.scenarios.items()
        }
        fields["recommended"] = {
            "strategy": self.recommended.strategy.name,
            "reason": self.recommended.reason,
        }
        for rows in ("per_epsilon", "no_privacy", "affordable", "ranges", "ways"):
            fields[rows] = [row.to_dict() for row in fields[rows]]
        if not self.ranges:
            del fields["ranges"]
        if self.calendar is None:
            del fields["calendar"], fields["ways"]
        else:
            fields["calendar"] = self.calendar.to_dict()
        if self.budget is None:
            del fields["affordable"]
        else:
            fields["affordable_epsilon"] = self.affordable_epsilon
        if self.clipped is not None:
            fields["clipped"] = self.clipped
        return fields


def any_numbers(scenarios: Mapping[str, Instance]) -> bool:
    """Whether outcomes of some arms are more than yes or no."""
    return any(arms.outcomes == NUMBERS for arms in scenarios.values())


def plan(
    scenarios: Instance | Sequence[Instance] | GapScenarios,
    epsilons: float | Sequence[float],
    delta: float,
    strategies: Sequence[str | Strategy] | None = None,
    trust: str = "global",
    runs: int = RUNS,
    seed: int = 0,
    max_people: int | None = None,
    budget: int | None = None,
    probability: float = 0.9,
    progress: Progress | None = None,
    hint: float | None = None,
    outcomes: str | None = None,
    accrual: float | None = None,
    delay: float | Delay | None = None,
    deadline: float | None = None,
    enrolment: str | None = None,
    release: str | None = None,
) -> Plan:
    """How many people it takes to find the best arm, for each privacy level, simulated.

    `scenarios` is an instance, several, or what `gap_scenarios` returns, of which the
    hardest is taken and whose gap is the hint of strategies that take one, unless you
    give another `hint` (0 for none). `strategies` are presets by name, or strategies of
    your own (planned at each ε and at this δ); without them the recommended one.
    `trust` says who may see outcomes: the collector (`global`) or nobody (`local`).
    `outcomes`, what strategies that mind it expect outcomes to be, is `numbers` if
    those of a scenario are, else `yes-no`, unless you say otherwise.
    Trials end without an answer at `max_people`. With a `budget`, the smallest ε is
    searched for which that many people lead to the right answer with this
    `probability`, in every scenario.
    With an `accrual`, people a day, trials are simulated with the calendar that it and
    `delay`, `deadline`, `enrolment` and `release` describe, as in `simulate`, and
    `ways` says what waiting and continuous enrolment take, people and days.
    """
    calendar = calendar_of(accrual, delay, deadline, enrolment, release)
    levels = _levels(epsilons)
    check_delta(delta)
    _check_words(trust, probability)
    cases = named_scenarios(scenarios, levels, trust)
    arms = max(instance.arms for instance in cases.values())
    _check_people("max_people", max_people, arms)
    _check_people("budget", budget, arms)
    if hint is None:
        hint = scenarios.gap if isinstance(scenarios, GapScenarios) else 0.0
    if outcomes is None:
        outcomes = NUMBERS if any_numbers(cases) else YES_NO
    choices = strategies_of(strategies, delta, trust, hint, outcomes)
    private = [at for at in choices if at(levels[0]).epsilon is not None]
    planned = [at(level) for level in levels for at in private]
    planned += [at(levels[0]) for at in choices if at not in private]
    searched = private if budget is not None else []
    expected = len(cases) * (len(planned) + 1 + SEARCH * len(searched))
    simulations = Simulations(runs, seed, progress, expected, calendar)
    simulations.planned = planned
    plain = bet_se(delta, trust="none", hint=hint, outcomes=outcomes)

    def rows_of(some: list[Strategy]) -> tuple[PlanRow, ...]:
        return tuple(
            _row(simulations, name, cases[name], each, max_people)
            for name in cases
            for each in some
        )

    rows = rows_of(planned)
    purse = Budget(simulations, cases, int(budget or 0), probability)
    affordable = tuple(purse.affordable(at) for at in searched)
    bare = rows_of([plain])
    return Plan(
        scenarios=cases,
        delta=delta,
        trust=trust,
        per_epsilon=rows,
        no_privacy=bare,
        recommended=recommended(levels[0], delta, trust, hint, outcomes),
        runs=runs,
        seed=seed,
        max_people=max_people,
        budget=budget,
        probability=probability,
        affordable=affordable,
        calendar=calendar,
        ways=_ways(simulations, cases, [plain, *planned], max_people),
    )


def _ways(
    simulations: Simulations, cases: dict[str, Instance], some: list[Strategy], most: int | None
) -> tuple[Way, ...]:
    """What each way to enrol takes; nothing without a calendar."""
    calendar = simulations.calendar
    if calendar is None:
        return ()
    return tuple(
        way_of(simulations, name, cases[name], strategy, most, way)
        for name in cases
        for strategy in some
        for way in ways_of(calendar, strategy)
    )


def _check_words(trust: str, probability: float) -> None:
    if not is_word(trust, TRUSTS) or not TRUSTS[trust].private:
        raise InvalidInputError(
            f"trust must be global (the collector may see outcomes) or local; got {quoted(trust)}"
        )
    check_share("probability", probability)


def _levels(epsilons: float | Sequence[float]) -> list[float]:
    levels = check_levels([epsilons] if isinstance(epsilons, Real) else epsilons)
    if not levels:
        raise InvalidInputError("give at least one privacy level, for instance epsilons=[1.0]")
    return levels


def _check_people(what: str, number: int | None, arms: int) -> None:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if number is not None and not (whole and arms <= number <= MAX_SAMPLES):
        raise InvalidInputError(
            f"{what} must be a whole number from {arms} (one person for each arm) to "
            f"{MAX_SAMPLES:g}; got {quoted(number)}"
        )


def _row(
    simulations: Simulations, name: str, instance: Instance, strategy: Strategy, most: int | None
) -> PlanRow:
    results = simulations(instance, strategy, most)
    good = right(results)
    stopped = results.stopped.any()
    return PlanRow(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy,
        runs=results.runs,
        samples=people_of(results, most is not None),
        correct=good / results.runs,
        correct_interval=clopper_pearson(good, results.runs),
        wrong=results.errors,
        best_share=float(results.pulls[:, instance.best].sum() / results.pulls.sum()),
        releases=float(results.rounds[results.stopped].mean()) if stopped else None,
        unstopped=results.unstopped,
        unstopped_interval=clopper_pearson(results.unstopped, results.runs),
        privacy_cost=_price(simulations, instance, strategy, most),
        lower_bound=_lower_bound(instance, strategy),
        results=results,
    )


def _lower_bound(instance: Instance, strategy: Strategy) -> float | None:
    """What no strategy with that privacy and error rate can beat; None with ζ, of which
    nothing is known.
    """
    if strategy.zeta > 0:
        return None
    # (ε, γ)-privacy is not ε-privacy
    epsilon = strategy.epsilon if strategy.gamma is None else None
    return theory.least_samples(instance, strategy.delta, epsilon, strategy.trust)


def _price(
    simulations: Simulations, instance: Instance, strategy: Strategy, most: int | None
) -> float | None:
    """Mean samples relative to no privacy, without a maximum of people, which would
    hide the price.

    A strategy of your own has none: what it would be without privacy is not known.
    """
    if strategy.part.own:
        return None
    if not strategy.trust_model.private:
        return 1.0 if strategy.name in ("bet-se", "ttucb") else None
    results = simulations(instance, strategy, most)
    if results.unstopped and most is not None:
        if strategy.part.each_answer:
            return None  # every sample is simulated: to go on could take hours
        results = simulations(instance, strategy, None)
    if (bare := strategy.without_privacy()) is not None:
        plain = simulations(instance, bare, None)
    else:
        plain = simulations(
            instance, ttucb(strategy.delta), None, min(simulations.runs, REFERENCE_RUNS)
        )
    if not (results.stopped.any() and plain.stopped.any()):
        return None
    return float(results.samples[results.stopped].mean() / plain.samples[plain.stopped].mean())
