"""Plan a trial: simulate how many participants it takes, by `plan(scenarios, epsilons, delta)`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Doing, Progress
from discreet.accrual import Calendar, Delay, make_calendar
from discreet.errors import InvalidInputError
from discreet.instances import Instance
from discreet.past_data import Sampled
from discreet.planning.power import GAP_FACTORS, Affordable, Budget, Power, simulate_power
from discreet.planning.power import MAX_POWER_RUNS as POWER_RUNS
from discreet.planning.rows import (
    EnrolmentOption,
    Example,
    PlanRow,
    Simulations,
    list_enrolments,
    simulate_enrolment,
    simulate_row,
)
from discreet.planning.scenarios import GapScenarios, RangeCost, name_scenarios
from discreet.scale import NUMBERS, YES_NO
from discreet.simulation.engine import MAX_SAMPLES
from discreet.strategies.estimators import ESTIMATORS, check_indifference_zone
from discreet.strategies.presets import (
    Recommendation,
    bet_se,
    find_preset,
    list_levels,
    list_trusts,
    recommended,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import is_rounded_to_bits
from discreet.tabular import Tabular
from discreet.trust import TRUSTS
from discreet.validation import check_delta, check_levels, check_share, is_word, quote
from discreet.version import __version__

StrategyAt = Callable[[float], Strategy]
"""A strategy as a function of ε."""


class PlanOptions(NamedTuple):
    """Hold what all strategies of a plan are made with, if they take it."""

    delta: float
    trust: str
    options: dict[str, Any]
    """The options of bet-se that are not as usual; other strategies get those they take."""


def choose_strategies(
    strategies: Sequence[str | Strategy] | None, design: PlanOptions
) -> list[StrategyAt]:
    """Return the strategies to plan, each as a function of ε; the recommended one if
    none are named.
    """
    wanted = ["bet-se"] if strategies is None else strategies
    if not isinstance(wanted, list | tuple):
        raise InvalidInputError('strategies must be a list, such as ["bet-se", "dp-se"], or None')
    choices = [_make_choice(each, design) for each in wanted]
    if not choices:
        raise InvalidInputError(
            "give at least one strategy, or leave strategies out for the recommended one"
        )
    return choices


def _make_choice(each: str | Strategy, design: PlanOptions) -> StrategyAt:
    """Return a strategy as a function of ε; one without privacy ignores it."""
    delta, trust = design.delta, design.trust
    if isinstance(each, Strategy):
        strategy = each
        if strategy.rho is not None:
            raise InvalidInputError(
                "a plan compares values of ε: give epsilon and gamma instead of rho, or "
                "simulate the strategy"
            )

        def at(epsilon: float) -> Strategy:
            level = {} if strategy.epsilon is None else {"epsilon": epsilon}
            return _apply_zone(strategy.with_(delta=delta, **level), design)
    else:
        preset = find_preset(each)
        needed = list_levels(each, trust)
        chosen = {"trust": trust} if len(list_trusts(each)) > 1 else {}
        if "gamma" in needed:
            raise InvalidInputError(
                f"{each} needs a γ of your choice: plan it from Python, with your own "
                f"{preset.__name__}(…)"
            )

        def at(epsilon: float) -> Strategy:
            made = preset(delta=delta, **dict.fromkeys(needed, epsilon), **chosen)
            taken = {k: v for k, v in design.options.items() if k in made.spec.options}
            return _apply_zone(made.with_(**taken), design)

    if TRUSTS[trust].randomised and at(1.0).trust_model.noised:
        raise InvalidInputError(
            f"{at(1.0).name} needs a trusted collector: with trust=local use bet-se or ctb-tt, "
            "or name no strategy"
        )
    return at


def _apply_zone(strategy: Strategy, design: PlanOptions) -> Strategy:
    """Return the strategy with the plan's indifference zone, if there is one.

    Refuse a strategy that takes none: it would answer another question.
    """
    zone = design.options["indifference_zone"]
    if zone == 0 or strategy.indifference_zone > 0:
        return strategy
    if "indifference_zone" not in strategy.spec.options:
        raise InvalidInputError(
            f"{strategy.name} takes no indifference_zone, a difference too small to matter: plan "
            "bet-se with it, or leave indifference_zone out"
        )
    return strategy.with_(indifference_zone=zone)


DEFAULT_RUNS = 500
SIMULATIONS_PER_SEARCH = 14
"""About so many simulations find an affordable ε and its interval."""


@dataclass(frozen=True)
class Plan(
    Tabular,
    rows="no_privacy per_epsilon enrolments",
    more="power affordable",
    shown="scenario strategy epsilon enrolment participants_median participants_q90 "
    "days_median correct unstopped_probability privacy_cost correctness delta runs "
    "max_participants",
):
    """Say what a trial takes: a row for each scenario, privacy level and strategy, and
    the recommended strategy.
    """

    scenarios: dict[str, Instance]
    delta: float
    trust: str
    per_epsilon: tuple[PlanRow, ...]
    no_privacy: tuple[PlanRow, ...]
    """bet-se without privacy, a row for each scenario: what privacy is compared with.
    """
    recommended: Recommendation
    runs: int
    seed: int
    max_participants: int | None = None
    budget: int | None = None
    probability: float = 0.9
    affordable: tuple[Affordable, ...] = ()
    """With a budget: an entry for each private strategy."""
    ranges: tuple[RangeCost, ...] = ()
    """What other ranges of outcomes would take, if `plan_ranges` was asked."""
    calendar: Calendar | None = None
    """How participants come and outcomes are recorded, if an accrual was given."""
    enrolments: tuple[EnrolmentOption, ...] = ()
    """With an accrual: what each way to enrol takes, for each row of the plan."""
    power: tuple[Power, ...] = ()
    """With a maximum, or else a budget: how likely results are within it, if the best
    arm is more or less better than the next.
    """
    indifference_zone: float = 0.0
    """Difference too small to matter: an arm so close to the best is a correct result.
    """
    start: date | None = None
    """The first day of enrolment, if one was given."""
    version: str = __version__

    @property
    def target_difference(self) -> float:
        """Return the difference that the recommended strategy is planned to expect; 0
        for none.
        """
        return self.recommended.strategy.target_difference

    @property
    def has_floor_bounds(self) -> bool:
        """Return whether some arms are not Bernoulli, so that their lower bound is a
        floor.
        """
        return has_numbers(self.scenarios)

    @property
    def outcomes(self) -> str:
        """Return what the recommended strategy is planned to expect outcomes to be."""
        return self.recommended.strategy.outcomes

    @property
    def bit_epsilons(self) -> list[float]:
        """Return the values of ε at which participants send outcomes that are numbers
        as randomised bits.
        """
        every = (self.recommended.strategy, *(row.strategy for row in self.per_epsilon))
        found = {
            each.epsilon for each in every if each.outcomes == NUMBERS and is_rounded_to_bits(each)
        }
        return sorted(epsilon for epsilon in found if epsilon is not None)

    @property
    def clipped(self) -> int | None:
        """Count the past outcomes that count as an end of their range; None without
        data in known units.
        """
        data = [arms for arms in self.scenarios.values() if isinstance(arms, Sampled)]
        counts = [arms.clipped for arms in data if arms.scale is not None]
        return sum(counts) if counts else None

    @property
    def affordable_epsilon(self) -> float | None:
        """Return the strongest privacy that the budget affords with any of the
        strategies; None if none of them does.
        """
        found = [entry.epsilon for entry in self.affordable if entry.epsilon is not None]
        return min(found, default=None)

    @property
    def example(self) -> Example | None:
        """Return simulated trials with the ε to take: the one that the budget affords,
        if there is one, else the first of those that were asked for; None if nothing is
        private.
        """
        afforded = [entry.example for entry in self.affordable if entry.example is not None]
        rows = [row for row in self.per_epsilon if row.epsilon is not None]
        every = afforded or [Example(row.scenario, row.strategy, row.results) for row in rows]
        wanted = self.recommended.strategy.name
        return min(every, key=lambda one: one.strategy.name != wanted, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        fields = dict(vars(self))
        fields["scenarios"] = {
            name: instance.describe() for name, instance in self.scenarios.items()
        }
        fields["recommended"] = {
            "strategy": self.recommended.strategy.name,
            "reason": self.recommended.reason,
            "epsilon": self.example and self.example.strategy.epsilon,
        }
        for rows in ("per_epsilon", "no_privacy", "affordable", "ranges", "enrolments", "power"):
            fields[rows] = [row.to_dict() for row in fields[rows]]
        for optional in ("ranges", "power", "start"):
            if not fields[optional]:
                del fields[optional]
        if self.start is not None:
            fields["start"] = self.start.isoformat()
        if self.calendar is None:
            del fields["calendar"], fields["enrolments"]
        else:
            fields["calendar"] = self.calendar.to_dict()
        if self.budget is None:
            del fields["affordable"]
        else:
            fields["affordable_epsilon"] = self.affordable_epsilon
        if self.clipped is not None:
            fields["clipped"] = self.clipped
        return fields


def has_numbers(scenarios: Mapping[str, Instance]) -> bool:
    """Return whether outcomes of some arms are more than yes or no."""
    return any(arms.outcomes == NUMBERS for arms in scenarios.values())


def plan(
    scenarios: Instance | Sequence[Instance] | GapScenarios,
    epsilons: float | Sequence[float],
    delta: float,
    strategies: Sequence[str | Strategy] | None = None,
    trust: str = "global",
    runs: int = DEFAULT_RUNS,
    seed: int = 0,
    max_participants: int | None = None,
    budget: int | None = None,
    probability: float = 0.9,
    progress: Progress | None = None,
    target_difference: float | None = None,
    outcomes: str | None = None,
    accrual: float | None = None,
    delay: float | Delay | None = None,
    deadline: float | None = None,
    enrolment: str | None = None,
    release: str | None = None,
    indifference_zone: float = 0.0,
    start: date | None = None,
    doing: Doing | None = None,
    power: bool = True,
    **options: Any,
) -> Plan:
    """Simulate how many participants it takes to find the best arm, for each privacy level.

    `scenarios` is an instance, several, or what `make_gap_scenarios` returns. Of the last,
    the hardest is taken, and its gap is the target difference for strategies that take one, unless
    you give another `target_difference` (0 for none). `strategies` are presets by name, or
    strategies of your own (planned at each ε and at this δ); without them the
    recommended one. `trust` says who may see outcomes: the collector (`global`) or
    nobody (`local`). `outcomes` is what strategies are told to expect, where that
    matters to them: `numbers` if the outcomes of a scenario are numbers, else `yes-no`,
    unless you say otherwise. With an `indifference_zone`, a difference too small to matter, any arm
    so close to the best is a correct result, and arms may tie. `options` are further
    options of bet-se, which strategies planned by name get if they take them.

    Trials end without an answer at `max_participants`. With a `budget`, the plan also finds
    the smallest ε at which that many participants lead to the correct result with this
    `probability`, in every scenario. With either, `power` says how likely an answer is
    if the true difference is another one, unless you set `power` to False.

    With an `accrual`, the number of participants per day, trials are simulated with the
    calendar that it and `delay`, `deadline`, `enrolment` and `release` describe, as in
    `simulate`. `enrolments` then says how many participants and days waiting and continuous
    enrolment take; with a `start`, the first day of enrolment, also when the trial
    ends.

    `progress(done, all)` is called now and then, and `doing(words)` with a description
    of what comes next.
    """
    calendar = make_calendar(accrual, delay, deadline, enrolment, release)
    _check_start(start, calendar)
    levels = _check_levels(epsilons)
    check_delta(delta)
    _check_words(trust, probability)
    check_indifference_zone(indifference_zone)
    named = name_scenarios(scenarios, levels, trust, ties=indifference_zone > 0)
    _check_participants(named, max_participants=max_participants, budget=budget)
    if target_difference is None:
        target_difference = scenarios.gap if isinstance(scenarios, GapScenarios) else 0.0
    if outcomes is None:
        outcomes = NUMBERS if has_numbers(named) else YES_NO
    unknown = sorted(set(options) - ESTIMATORS["bets"].options)
    if unknown:
        raise InvalidInputError(f"plan and bet-se have no option {unknown[0]!r}")
    options |= {"target_difference": target_difference, "outcomes": outcomes}
    options["indifference_zone"] = float(indifference_zone)
    design = PlanOptions(delta, trust, options)
    within = (max_participants or budget) if power else None
    request = PlanRequest(named, levels, max_participants, budget, probability, within, start)
    simulations = Simulations(runs, seed, progress, calendar, doing)
    return Plan(
        scenarios=named,
        delta=delta,
        trust=trust,
        recommended=_recommend(levels[0], design),
        runs=runs,
        seed=seed,
        max_participants=max_participants,
        budget=budget,
        probability=probability,
        calendar=calendar,
        indifference_zone=float(indifference_zone),
        start=start,
        **_simulate_plan(simulations, request, design, choose_strategies(strategies, design)),
    )


def _recommend(level: float, design: PlanOptions) -> Recommendation:
    """Return the strategy to take at an ε."""
    take = recommended(level, design.delta, design.trust)
    return replace(take, strategy=take.strategy.with_(**design.options))


class PlanRequest(NamedTuple):
    """Hold what a plan is to find out, checked."""

    scenarios: dict[str, Instance]
    levels: list[float]
    max_participants: int | None
    budget: int | None
    probability: float
    power_participants: int | None
    """Participants of the power curve, if one is asked for."""
    start: date | None


def _simulate_plan(
    simulations: Simulations, request: PlanRequest, design: PlanOptions, choices: list[StrategyAt]
) -> dict[str, Any]:
    """Return what is simulated of a plan, by the names of its fields."""
    scenarios, levels, max_participants = (
        request.scenarios,
        request.levels,
        request.max_participants,
    )
    private = [at for at in choices if at(levels[0]).epsilon is not None]
    planned = [at(level) for level in levels for at in private]
    planned += [at(levels[0]) for at in choices if at not in private]
    plain = bet_se(design.delta, trust="none", **design.options)
    searched = private if request.budget is not None else []
    curve = () if request.power_participants is None else GAP_FACTORS
    rows = len(planned) + 1
    simulations.planned = planned
    simulations.expect(len(scenarios) * (rows + SIMULATIONS_PER_SEARCH * len(searched)))
    simulations.expect(len(scenarios) * rows * len(curve), min(POWER_RUNS, simulations.runs))

    def rows_of(some: list[Strategy]) -> tuple[PlanRow, ...]:
        pairs = [(name, each) for name in scenarios for each in some]
        return tuple(
            simulate_row(simulations, name, scenarios[name], each, max_participants)
            for name, each in pairs
        )

    rows_found = rows_of(planned)
    purse = Budget(simulations, scenarios, int(request.budget or 0), request.probability)
    simulations.purpose = f"the ε that {request.budget or 0:,} participants afford"
    affordable = tuple(purse.find_affordable(at) for at in searched)
    simulations.purpose = "participants it takes"
    no_privacy = rows_of([plain])
    return {
        "per_epsilon": rows_found,
        "no_privacy": no_privacy,
        "affordable": affordable,
        "power": _simulate_power(simulations, request, [plain, *planned]),
        "enrolments": _simulate_enrolments(simulations, request, [plain, *planned]),
    }


def _simulate_power(
    simulations: Simulations, request: PlanRequest, strategies: list[Strategy]
) -> tuple[Power, ...]:
    """Return how likely results are within so many participants; nothing if that is not
    asked.
    """
    if request.power_participants is None:
        return ()
    return tuple(
        point
        for name, instance in request.scenarios.items()
        for strategy in strategies
        for point in simulate_power(
            simulations, name, instance, strategy, request.power_participants
        )
    )


def _simulate_enrolments(
    simulations: Simulations, request: PlanRequest, strategies: list[Strategy]
) -> tuple[EnrolmentOption, ...]:
    """Return what each way to enrol takes; nothing without a calendar."""
    calendar = simulations.calendar
    if calendar is None:
        return ()
    simulations.purpose = "participants and days"
    return tuple(
        simulate_enrolment(
            simulations,
            name,
            request.scenarios[name],
            strategy,
            request.max_participants,
            way,
            request.start,
        )
        for name in request.scenarios
        for strategy in strategies
        for way in list_enrolments(calendar, strategy)
    )


def _check_start(start: object, calendar: Calendar | None) -> None:
    if start is None:
        return
    if not isinstance(start, date) or isinstance(start, datetime):
        raise InvalidInputError(
            f"start must be a day, such as datetime.date(2027, 3, 1); got {quote(start)}"
        )
    if calendar is None:
        raise InvalidInputError(
            "start is the first day of enrolment: say also accrual, the participants per day "
            "(on the command line --accrual 40/month, for instance)"
        )


def _check_words(trust: str, probability: float) -> None:
    if not is_word(trust, TRUSTS) or not TRUSTS[trust].is_private:
        raise InvalidInputError(
            f"trust must be global (the collector may see outcomes) or local; got {quote(trust)}"
        )
    check_share("probability", probability)


def _check_levels(epsilons: float | Sequence[float]) -> list[float]:
    levels = check_levels([epsilons] if isinstance(epsilons, Real) else epsilons)
    if not levels:
        raise InvalidInputError("give at least one privacy level, for instance epsilons=[1.0]")
    return levels


def _check_participants(scenarios: Mapping[str, Instance], **numbers: int | None) -> None:
    arms = max(instance.arms for instance in scenarios.values())
    for what, number in numbers.items():
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is not None and not (whole and arms <= number <= MAX_SAMPLES):
            raise InvalidInputError(
                f"{what} must be a whole number from {arms} (one person for each arm) to "
                f"{MAX_SAMPLES:g}; got {quote(number)}"
            )
