"""plan(scenarios, epsilons, delta): how many people it will take, simulated."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import theory
from discreet.arrays import Progress
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance
from discreet.planning.budget import Affordable, Budget
from discreet.planning.scenarios import GapScenarios, named_scenarios
from discreet.planning.simulations import Simulations, right
from discreet.results import Results
from discreet.simulation.engine import MAX_SAMPLES
from discreet.statistics import clopper_pearson
from discreet.strategies.presets import (
    Recommendation,
    bet_se,
    levels_of,
    preset_of,
    recommended,
    trusts_of,
    ttucb,
)
from discreet.strategies.strategy import Strategy
from discreet.trust import TRUSTS
from discreet.validate import check_delta, check_epsilon
from discreet.version import __version__

RUNS = 500
REFERENCE_RUNS = 100
"""Of ttucb, which is simulated sample by sample and only tells the price of privacy."""
SEARCH = 9
"""About so many simulations find an affordable ε."""


@dataclass(frozen=True)
class People:
    """How many people a trial takes; None where too many runs did not stop to say."""

    mean: float | None
    median: float | None
    q10: float | None
    q90: float | None
    longest: float | None
    """The longest of the simulated trials, which now and then is far beyond the
    others.
    """


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
    """Runs that hit `max_people`, or without it the simulation's cap of 1e12."""
    unstopped_interval: tuple[float, float]
    privacy_cost: float | None
    """Mean samples relative to no privacy: of bet-se to bet-se, of others to ttucb,
    whatever `max_people`.
    """
    lower_bound: float | None
    """No strategy with this privacy and error rate takes fewer people on average; None
    for arms not Bernoulli.
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
        }


@dataclass(frozen=True)
class Plan:
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
    version: str = __version__

    @property
    def hint(self) -> float:
        """The difference that the recommended strategy is planned to expect; 0 for
        none.
        """
        return self.recommended.strategy.hint

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
            name: instance.to_dict() for name, instance in self.scenarios.items()
        }
        fields["recommended"] = {
            "strategy": self.recommended.strategy.name,
            "reason": self.recommended.reason,
        }
        for rows in ("per_epsilon", "no_privacy", "affordable"):
            fields[rows] = [row.to_dict() for row in fields[rows]]
        if self.budget is None:
            del fields["affordable"]
        else:
            fields["affordable_epsilon"] = self.affordable_epsilon
        return fields


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
) -> Plan:
    """How many people it takes to find the best arm, for each privacy level, simulated.

    `scenarios` is an instance, several, or what `gap_scenarios` returns, of which the
    hardest is taken and whose gap is the hint of strategies that take one, unless you
    give another `hint` (0 for none). `strategies` are presets by name, or strategies of
    your own (planned at each ε and at this δ); without them the recommended one.
    `trust` says who may see outcomes: the collector (`global`) or nobody (`local`).
    Trials end without an answer at `max_people`. With a `budget`, the smallest ε is
    searched for which that many people lead to the right answer with this
    `probability`, in every scenario.
    """
    levels = _levels(epsilons)
    check_delta(delta)
    _check_words(trust, probability)
    cases = named_scenarios(scenarios, levels, trust)
    arms = max(instance.arms for instance in cases.values())
    _check_people("max_people", max_people, arms)
    _check_people("budget", budget, arms)
    if hint is None:
        hint = scenarios.gap if isinstance(scenarios, GapScenarios) else 0.0
    choices = _choices(strategies, delta, trust, hint)
    private = [at for at in choices if at(levels[0]).epsilon is not None]
    planned = [at(level) for level in levels for at in private]
    planned += [at(levels[0]) for at in choices if at not in private]
    searched = private if budget is not None else []
    expected = len(cases) * (len(planned) + 1 + SEARCH * len(searched))
    simulations = Simulations(runs, seed, progress, expected)
    plain = bet_se(delta, trust="none", hint=hint)
    rows = [
        _row(simulations, name, cases[name], each, max_people) for name in cases for each in planned
    ]
    purse = Budget(simulations, cases, int(budget or 0), probability)
    affordable = tuple(purse.affordable(at) for at in searched)
    free = [
        _row(simulations, name, instance, plain, max_people) for name, instance in cases.items()
    ]
    return Plan(
        scenarios=cases,
        delta=delta,
        trust=trust,
        per_epsilon=tuple(rows),
        no_privacy=tuple(free),
        recommended=recommended(levels[0], delta, trust, hint),
        runs=runs,
        seed=seed,
        max_people=max_people,
        budget=budget,
        probability=probability,
        affordable=affordable,
    )


def _check_words(trust: str, probability: float) -> None:
    if trust not in TRUSTS or not TRUSTS[trust].private:
        raise InvalidInputError(
            f"trust must be global (the collector may see outcomes) or local; got {trust!r}"
        )
    if not 0 < probability < 1:
        raise InvalidInputError(
            f"probability must lie strictly between 0 and 1; got {probability!r}"
        )


def _levels(epsilons: float | Sequence[float]) -> list[float]:
    every = [epsilons] if isinstance(epsilons, int | float | np.integer) else epsilons
    levels = [check_epsilon(level) for level in every]
    if not levels:
        raise InvalidInputError("say at least one privacy level, for instance epsilons=[1.0]")
    return levels


def _check_people(what: str, number: int | None, arms: int) -> None:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if number is not None and not (whole and arms <= number <= MAX_SAMPLES):
        raise InvalidInputError(
            f"{what} must be a whole number from {arms} (one person for each arm) to "
            f"{MAX_SAMPLES:g}; got {number!r}"
        )


def _choices(
    strategies: Sequence[str | Strategy] | None, delta: float, trust: str, hint: float
) -> list[Callable[[float], Strategy]]:
    """The strategies to plan, each as a function of ε; the recommended one if none are
    named.
    """
    wanted = ["bet-se"] if strategies is None else strategies
    choices = [_choice(each, delta, trust, hint) for each in wanted]
    if not choices:
        raise InvalidInputError(
            "say at least one strategy, or leave strategies out for the recommended one"
        )
    return choices


def _choice(
    each: str | Strategy, delta: float, trust: str, hint: float
) -> Callable[[float], Strategy]:
    """A strategy as a function of ε; those without privacy do not mind."""
    if isinstance(each, Strategy):
        own = each

        def at(epsilon: float) -> Strategy:
            return (
                own.with_(delta=delta)
                if own.epsilon is None
                else own.with_(delta=delta, epsilon=epsilon)
            )
    else:
        preset = preset_of(each)
        needed = levels_of(each, trust)
        chosen = {"trust": trust} if len(trusts_of(each)) > 1 else {}
        if "gamma" in needed:
            raise InvalidInputError(
                f"{each} needs a γ of your choice: plan it from Python, with a "
                f"{preset.__name__}(…) of your own"
            )

        def at(epsilon: float) -> Strategy:
            made = preset(delta=delta, **dict.fromkeys(needed, epsilon), **chosen)
            return made.with_(hint=hint) if "hint" in made.part.options else made

    if TRUSTS[trust].randomised and at(1.0).trust_model.noised:
        raise InvalidInputError(
            f"{at(1.0).name} needs a trusted collector: with trust=local take bet-se or ctb-tt, "
            "or leave it out"
        )
    return at


def _row(
    simulations: Simulations, name: str, instance: Instance, strategy: Strategy, most: int | None
) -> PlanRow:
    results = simulations(instance, strategy, most)
    good = right(results)
    stopped = results.stopped.any()
    bound = None
    if isinstance(instance, Bernoulli):
        epsilon = (
            strategy.epsilon if strategy.gamma is None else None
        )  # (ε, γ)-privacy is not ε-privacy
        bound = theory.lower_bound(
            theory.tightest(instance, epsilon, strategy.trust), strategy.delta
        )
    return PlanRow(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy,
        runs=results.runs,
        samples=_people(results, most is not None),
        correct=good / results.runs,
        correct_interval=clopper_pearson(good, results.runs),
        wrong=results.errors,
        best_share=float(results.pulls[:, instance.best].sum() / results.pulls.sum()),
        releases=float(results.rounds[results.stopped].mean()) if stopped else None,
        unstopped=results.unstopped,
        unstopped_interval=clopper_pearson(results.unstopped, results.runs),
        privacy_cost=_price(simulations, instance, strategy, most),
        lower_bound=bound,
        results=results,
    )


def _people(results: Results, capped: bool) -> People:
    samples = results.samples.astype(np.float64)
    if capped or results.stopped.all():
        quantiles = np.quantile(samples, [0.5, 0.1, 0.9, 1.0]).tolist()
        return People(float(samples.mean()), *quantiles)
    longest = np.where(results.stopped, samples, np.inf)
    found = np.quantile(longest, [0.5, 0.1, 0.9, 1.0], method="inverted_cdf").tolist()
    quantiles = [q if q < math.inf else None for q in found]
    mean = float(samples[results.stopped].mean()) if results.stopped.any() else None
    return People(mean, *quantiles)


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
