"""plan(scenarios, epsilons, delta): how many people it will take, and the privacy that a number of people can afford.

Everything is simulated with one seed, so that strategies and privacy levels meet the same luck (common random numbers).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import theory
from discreet.arrays import Progress
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance
from discreet.results import Results
from discreet.simulation.engine import MAX_SAMPLES, MayNotStopWarning, simulate
from discreet.statistics import clopper_pearson
from discreet.strategies.presets import PRESETS, Recommendation, bet_se, recommended, ttucb
from discreet.strategies.strategy import Strategy
from discreet.validate import check_arms, check_delta, check_epsilon
from discreet.version import __version__

RUNS = 500
REFERENCE_RUNS = 100  # of ttucb, which is simulated sample by sample and only tells the price of privacy
TOLERANCE = 0.05
LEAST_EPSILON, MOST_EPSILON, STRIDE = 1e-9, 1e3, 8.0


@dataclass(frozen=True)
class GapScenarios:
    """What "K arms, the best at least `gap` better than the rest, success rates around `base`" may mean.

    `shapes` are instances that fit these words, by name. Which is hardest is for `hardest` to say.
    """

    arms: int
    gap: float
    base: float
    shapes: dict[str, Bernoulli] = field(compare=False)

    def hardest(self, epsilons: Sequence[float] = (), trust: str = "global") -> tuple[str, Bernoulli]:
        """The shape with the largest lower bound: in the geometric mean over no privacy and the privacy levels.

        With the best arm held fixed, all others tied exactly `gap` below it is the hardest: raising another arm's mean
        makes every alternative in which it is best cheaper. Where the two success rates lie is a matter of which
        reading of "around" is nearest to 1/2, where outcomes tell the least; so the shapes are compared by number.
        """

        def hardness(shape: Bernoulli) -> float:
            return sum(math.log(_time(shape, epsilon, trust)) for epsilon in (None, *epsilons))

        return max(self.shapes.items(), key=lambda item: hardness(item[1]))


def gap_scenarios(arms: int, gap: float, base: float) -> GapScenarios:
    """The instances with `arms` arms, the best at least `gap` better than the rest and success rates around `base`.

    `base` may be the rate of all arms but the best, of the best, or the middle between them. The shapes "one rival" and
    "ladder" put the other arms further below.
    """
    check_arms(arms)
    if not 0 < gap < 1:
        raise InvalidInputError(f"gap must lie strictly between 0 and 1; got {gap!r}")
    if not 0 <= base <= 1:
        raise InvalidInputError(f"base is a success rate and must lie in [0, 1]; got {base!r}")
    rest, middle = arms - 1, base + gap / 2
    means = {
        "rest at the base": [base + gap] + [base] * rest,
        "base in the middle": [middle] + [base - gap / 2] * rest,
        "best at the base": [base] + [base - gap] * rest,
    }
    if arms > 2:
        pair = [middle, base - gap / 2]
        means["one rival"] = pair + [max(0.0, middle - 2 * gap)] * (arms - 2)
        means["ladder"] = pair + [max(0.0, middle - i * gap) for i in range(2, arms)]
    rounded = {name: [round(mean, 12) for mean in shape] for name, shape in means.items()}
    fitting = {name: Bernoulli(shape) for name, shape in rounded.items() if min(shape) >= 0 and max(shape) <= 1}
    if not fitting:
        raise InvalidInputError(
            f"no success rates around {base:g} differ by {gap:g} within [0, 1]: take a smaller gap or another base"
        )
    return GapScenarios(arms, gap, base, fitting)


@dataclass(frozen=True)
class People:
    """How many people a trial takes; None where too many runs did not stop to say."""

    mean: float | None
    median: float | None
    q10: float | None
    q90: float | None
    longest: float | None
    """The longest of the simulated trials, which now and then is far beyond the others."""


@dataclass(frozen=True)
class Row:
    """What one strategy does at one privacy level in one scenario."""

    scenario: str
    epsilon: float | None
    """None: without privacy."""
    strategy: Strategy
    runs: int
    samples: People
    """People a trial enrols. A run that hits `max_people` counts with these; one that hits no end counts as longest."""
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
    """Mean samples relative to no privacy: of bet-se to bet-se, of others to ttucb, whatever `max_people`."""
    lower_bound: float | None
    """No strategy with this privacy and error rate takes fewer people on average; None for arms not Bernoulli."""
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
            "threshold": self.strategy.threshold if isinstance(self.strategy.threshold, str) else "custom",
            "samples": vars(self.samples),
            "correct_interval": list(self.correct_interval),
            "unstopped_interval": list(self.unstopped_interval),
            "unstopped_probability": self.unstopped_probability,
        }


@dataclass(frozen=True)
class Affordable:
    """The smallest ε for which a budget of people suffices, to within the relative `tolerance` of the bisection."""

    strategy: str
    epsilon: float | None
    """None: the budget does not suffice; `reason` says why."""
    correct: float
    """Share of the runs with the right answer within the budget, at this ε (or at the best there is, if None)."""
    correct_interval: tuple[float, float]
    reason: str
    tolerance: float = TOLERANCE

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {**vars(self), "correct_interval": list(self.correct_interval)}


@dataclass(frozen=True)
class Plan:
    """What it takes: a row for each scenario, privacy level and strategy, and the one to take."""

    scenarios: dict[str, Instance]
    delta: float
    trust: str
    per_epsilon: tuple[Row, ...]
    no_privacy: tuple[Row, ...]
    """bet-se without privacy, a row for each scenario: what privacy is compared with."""
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
    def affordable_epsilon(self) -> float | None:
        """The strongest privacy that the budget affords with any of the strategies; None if none of them does."""
        found = [entry.epsilon for entry in self.affordable if entry.epsilon is not None]
        return min(found, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        fields = dict(vars(self))
        fields["scenarios"] = {name: instance.to_dict() for name, instance in self.scenarios.items()}
        fields["recommended"] = {"strategy": self.recommended.strategy.name, "reason": self.recommended.reason}
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
) -> Plan:
    """How many people it takes to find the best arm, for each privacy level, simulated.

    `scenarios` is an instance, several, or what `gap_scenarios` returns, of which the hardest is taken. `strategies`
    are presets by name, or strategies of your own (planned at each ε and at this δ); without them the recommended one.
    `trust` says who may see outcomes: the collector (`global`) or nobody (`local`). Trials end without an answer at
    `max_people`. With a `budget`, the smallest ε is searched for which that many people lead to the right answer with
    this `probability`, in every scenario.
    """
    levels = [
        check_epsilon(level) for level in ([epsilons] if isinstance(epsilons, int | float | np.integer) else epsilons)
    ]
    if not levels:
        raise InvalidInputError("say at least one privacy level, for instance epsilons=[1.0]")
    check_delta(delta)
    if trust not in ("global", "local"):
        raise InvalidInputError(f"trust must be global (the collector may see outcomes) or local; got {trust!r}")
    if not 0 < probability < 1:
        raise InvalidInputError(f"probability must lie strictly between 0 and 1; got {probability!r}")
    cases = _cases(scenarios, levels, trust)
    for what, number in (("max_people", max_people), ("budget", budget)):
        _check_people(what, number, max(instance.arms for instance in cases.values()))
    choices = [_choice(each, delta, trust) for each in (["bet-se"] if strategies is None else strategies)]
    if not choices:
        raise InvalidInputError("say at least one strategy, or leave strategies out for the recommended one")
    strategy_rows = [at(level) for level in levels for at in choices if at(level).epsilon is not None]
    strategy_rows += [at(levels[0]) for at in choices if at(levels[0]).epsilon is None]
    searched = [at for at in choices if at(levels[0]).epsilon is not None] if budget is not None else []
    simulator = _Simulator(runs, seed, progress, len(cases) * (len(strategy_rows) + 1 + 9 * len(searched)))
    rows = [_row(simulator, name, cases[name], strategy, max_people) for name in cases for strategy in strategy_rows]
    plain = bet_se(delta, trust="none")
    found = tuple(_affordable(simulator, cases, at, int(budget or 0), probability) for at in searched)
    return Plan(
        scenarios=cases,
        delta=delta,
        trust=trust,
        per_epsilon=tuple(rows),
        no_privacy=tuple(_row(simulator, name, instance, plain, max_people) for name, instance in cases.items()),
        recommended=recommended(levels[0], delta, trust),
        runs=runs,
        seed=seed,
        max_people=max_people,
        budget=budget,
        probability=probability,
        affordable=found,
    )


def _cases(scenarios: Any, levels: list[float], trust: str) -> dict[str, Instance]:
    """The scenarios by name."""
    if isinstance(scenarios, GapScenarios):
        name, hardest = scenarios.hardest(levels, trust)
        return {f"{scenarios.arms} arms, gap {scenarios.gap:g}, base {scenarios.base:g}: {name}": hardest}
    instances = [scenarios] if isinstance(scenarios, Instance) else list(scenarios)
    if not instances or not all(isinstance(instance, Instance) for instance in instances):
        raise InvalidInputError("scenarios must be an instance, a list of instances, or what gap_scenarios returns")
    cases: dict[str, Instance] = {}
    for instance in instances:
        _ = instance.best  # refuses a tie
        shown = ", ".join(f"{mean:g}" for mean in instance.means[:6])
        name = f"{shown}{', …' if instance.arms > 6 else ''}"
        cases[name if name not in cases else f"{name} ({len(cases) + 1})"] = instance
    return cases


def _check_people(what: str, number: int | None, arms: int) -> None:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if number is not None and not (whole and arms <= number <= MAX_SAMPLES):
        raise InvalidInputError(
            f"{what} must be a whole number from {arms} (one person for each arm) to {MAX_SAMPLES:g}; got {number!r}"
        )


def _choice(each: str | Strategy, delta: float, trust: str) -> Callable[[float], Strategy]:
    """A strategy as a function of ε; those without privacy do not mind."""
    if isinstance(each, Strategy):
        own = each

        def at(epsilon: float) -> Strategy:
            return own.with_(delta=delta) if own.epsilon is None else own.with_(delta=delta, epsilon=epsilon)
    elif each == "gauss-tt":
        raise InvalidInputError(
            "gauss-tt needs a γ of your choice: plan it from Python, with a gauss_tt(…) of your own"
        )
    elif each not in PRESETS:
        raise InvalidInputError(f"unknown strategy {each!r}: use one of {', '.join(PRESETS)}")
    else:
        preset, name = PRESETS[each], each

        def at(epsilon: float) -> Strategy:
            if name in ("ttucb", "ttucb-batched"):
                return preset(delta=delta)
            return preset(delta=delta, epsilon=epsilon, **({"trust": trust} if name == "bet-se" else {}))

    if trust == "local" and at(1.0).trust == "global":
        raise InvalidInputError(
            f"{at(1.0).name} needs a trusted collector: with trust=local take bet-se or ctb-tt, or leave it out"
        )
    return at


class _Simulator:
    """Simulations with one seed, each made once; tells how far it is, and warns once of a kind."""

    def __init__(self, runs: int, seed: int, progress: Progress | None, expected: int) -> None:
        self.runs, self.seed, self.progress = runs, seed, progress
        self.total, self.finished = expected * max(runs, 1), 0
        self.known: dict[Any, Results] = {}
        self.warned: set[str] = set()

    def __call__(self, instance: Instance, strategy: Strategy, most: int | None, runs: int | None = None) -> Results:
        key = (instance, strategy, most, runs)
        if key not in self.known:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", MayNotStopWarning)
                results = simulate(instance, strategy, runs or self.runs, self.seed, most, progress=self._tell)
            for text in {str(warning.message) for warning in caught} - self.warned:
                self.warned.add(text)
                warnings.warn(f"{strategy.name}: {text}", MayNotStopWarning, stacklevel=4)
            if results.interrupted:
                raise KeyboardInterrupt
            self.finished += results.runs
            self.known[key] = results
        return self.known[key]

    def _tell(self, done: int, _: int) -> None:
        if self.progress is not None:
            now = self.finished + done
            self.progress(now, max(self.total, now))


def _row(simulator: _Simulator, name: str, instance: Instance, strategy: Strategy, most: int | None) -> Row:
    results = simulator(instance, strategy, most)
    right = int((results.stopped & results.correct).sum())
    bernoulli, stopped = isinstance(instance, Bernoulli), results.stopped.any()
    return Row(
        scenario=name,
        epsilon=strategy.epsilon,
        strategy=strategy,
        runs=results.runs,
        samples=_people(results, most is not None),
        correct=right / results.runs,
        correct_interval=clopper_pearson(right, results.runs),
        wrong=results.errors,
        best_share=float(results.pulls[:, instance.best].sum() / results.pulls.sum()),
        releases=float(results.rounds[results.stopped].mean()) if stopped else None,
        unstopped=results.unstopped,
        unstopped_interval=clopper_pearson(results.unstopped, results.runs),
        privacy_cost=_price(simulator, instance, strategy, most),
        lower_bound=theory.lower_bound(_bound_time(instance, strategy), strategy.delta) if bernoulli else None,
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


def _price(simulator: _Simulator, instance: Instance, strategy: Strategy, most: int | None) -> float | None:
    """Mean samples relative to no privacy, without a maximum of people, which would hide the price."""
    if strategy.trust == "none":
        return 1.0 if strategy.name in ("bet-se", "ttucb") else None
    results = simulator(instance, strategy, most)
    if results.unstopped and most is not None:
        if strategy.estimator in ("ctb", "gauss"):
            return None  # every sample is simulated: to go on could take hours
        results = simulator(instance, strategy, None)
    if strategy.estimator == "bets":
        plain = simulator(instance, strategy.with_(trust="none", epsilon=None), None)
    else:
        plain = simulator(instance, ttucb(strategy.delta), None, min(simulator.runs, REFERENCE_RUNS))
    if not (results.stopped.any() and plain.stopped.any()):
        return None
    return float(results.samples[results.stopped].mean() / plain.samples[plain.stopped].mean())


def _bound_time(instance: Instance, strategy: Strategy) -> float:
    """The characteristic time that the strategy cannot beat; (ε, γ)-privacy is not ε-privacy and has the plain one."""
    return _time(instance, None if strategy.estimator == "gauss" else strategy.epsilon, strategy.trust)


def _time(instance: Instance, epsilon: float | None, trust: str) -> float:
    if epsilon is None:
        return theory.t_kl(instance).value
    private = theory.t_epsilon(instance, epsilon).value
    return max(private, theory.t_local(instance, epsilon).value) if trust == "local" else private


def _affordable(
    simulator: _Simulator,
    cases: dict[str, Instance],
    at: Callable[[float], Strategy],
    budget: int,
    probability: float,
) -> Affordable:
    """Bisection on log ε. With less ε fewer runs are good, but for chance, which the common seed keeps small."""
    name = at(1.0).name

    def right(strategy: Strategy) -> int:
        every = (simulator(instance, strategy, budget) for instance in cases.values())
        return min(int((results.stopped & results.correct).sum()) for results in every)

    def enough(hits: int) -> bool:
        return hits >= probability * simulator.runs

    def answer(epsilon: float | None, hits: int, reason: str) -> Affordable:
        return Affordable(name, epsilon, hits / simulator.runs, clopper_pearson(hits, simulator.runs), reason)

    if at(1.0).estimator == "bets" and not enough(hits := right(at(1.0).with_(trust="none", epsilon=None))):
        reason = f"{budget:,} people do not suffice even without privacy: the answer is right and in time "
        return answer(None, hits, f"{reason}in {hits / simulator.runs:.0%} of the trials, not in {probability:.0%}")
    low, high, hits = 1.0, 1.0, right(at(1.0))
    if enough(hits):
        while low > LEAST_EPSILON and enough(again := right(at(low / STRIDE))):
            low, hits = low / STRIDE, again
        if low <= LEAST_EPSILON:
            return answer(low, hits, f"{budget:,} people suffice even at this ε; less was not tried")
        low, high = low / STRIDE, low
    else:
        while high < MOST_EPSILON and not enough(hits):
            low, high = high, min(high * STRIDE, MOST_EPSILON)
            hits = right(at(high))
        if not enough(hits):
            return answer(None, hits, f"{budget:,} people do not suffice for {name} at any ε up to {MOST_EPSILON:g}")
    while high > low * (1 + TOLERANCE):
        middle = math.sqrt(low * high)
        now = right(at(middle))
        if enough(now):
            high, hits = middle, now
        else:
            low = middle
    return answer(high, hits, f"at ε = {low:.4g} the answer was right and in time in less than {probability:.0%}")
