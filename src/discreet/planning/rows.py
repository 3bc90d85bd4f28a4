"""One row of a plan: what one strategy does at one privacy level in one scenario."""

from dataclasses import dataclass, field
from typing import Any

from discreet import theory
from discreet.instance import Instance
from discreet.planning.people import People, people_of
from discreet.planning.simulations import Simulations, right
from discreet.results import Results
from discreet.simulation.engine import good_arms
from discreet.statistics import clopper_pearson
from discreet.strategies.presets import ttucb
from discreet.strategies.strategy import Strategy

REFERENCE_RUNS, LEAST_REFERENCE = 100, 20
"""Of ttucb, which is simulated sample by sample and only tells the price of privacy."""
REFERENCE_ARMS = 4000
"""Arms of all these runs together, as each sample looks at every arm."""


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
    """Share of the people who got the best arm; with an indifference gap, one within it
    of the best.
    """
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

    @property
    def comparable_bound(self) -> float | None:
        """The lower bound, where the mean can be compared with it: not if some trials
        were cut short, which pulls the mean down and says nothing against the bound.
        """
        return None if self.unstopped else self.lower_bound

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


def row_of(
    simulations: Simulations, name: str, instance: Instance, strategy: Strategy, most: int | None
) -> PlanRow:
    """Simulate one row of a plan."""
    results = simulations(instance, strategy, most)
    hits, good = right(results), good_arms(instance, strategy.zeta)
    stopped = results.stopped.any()
    return PlanRow(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy,
        runs=results.runs,
        samples=people_of(results, most is not None),
        correct=hits / results.runs,
        correct_interval=clopper_pearson(hits, results.runs),
        wrong=results.errors,
        best_share=float(results.pulls[:, good].sum() / results.pulls.sum()),
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
        few = max(LEAST_REFERENCE, min(REFERENCE_RUNS, REFERENCE_ARMS // instance.arms))
        plain = simulations(instance, ttucb(strategy.delta), None, min(simulations.runs, few))
    if not (results.stopped.any() and plain.stopped.any()):
        return None
    return float(results.samples[results.stopped].mean() / plain.samples[plain.stopped].mean())
