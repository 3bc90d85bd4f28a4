"""Power: how likely a trial of so many participants ends with the correct result, and with any,
against the true difference between the best arm and the next.

The arms are those of a scenario, but that the best one is as much better than the next
as is asked; the strategy stays as it was planned, with its target difference.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, islice
from math import inf
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from discreet.instances import Bernoulli, Beta, Discrete, Instance
from discreet.numerics import bound_one_sided, compute_clopper_pearson
from discreet.past_data import Sampled
from discreet.planning.rows import Example, Simulations, count_correct
from discreet.simulation.engine import MAX_SAMPLES, RunResult, make_generator
from discreet.simulation.laws import make_laws
from discreet.simulation.paths import make_plain_player
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.validation import check_arms, check_whole

EPSILON_TOLERANCE = 0.05
MIN_EPSILON = 1e-9
MAX_EPSILON = 1e3
EPSILON_STRIDE = 8.0
CONFIDENCE_LEVEL = 0.95
"""Confidence that both ends of an interval are right."""
MIN_BUDGET_RUNS = 200
"""Number of fresh trials for each step: fewer would settle nothing, even if all are
correct.
"""
INTERVAL_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
"""Powers of 1 + EPSILON_TOLERANCE, away from the answer, at which its interval is
looked for.
"""


@dataclass(frozen=True)
class Affordable:
    """Hold the smallest ε for which a budget of participants suffices, to within the
    relative `tolerance` of the bisection.
    """

    strategy: str
    epsilon: float | None
    """None: the budget does not suffice; `reason` says why."""
    correct: float
    """Share of the runs with a correct result within the budget, at this ε (or at the
    best there is, if None).
    """
    correct_interval: tuple[float, float]
    reason: str
    tolerance: float = EPSILON_TOLERANCE
    level: float = CONFIDENCE_LEVEL
    epsilon_interval: tuple[float | None, float | None] = (None, None)
    """Two ε between which the smallest one lies with confidence `level`: the budget is
    not enough at the lower one, and enough at the upper one. None: not found.
    """
    example: Example | None = field(default=None, repr=False, compare=False)
    """The simulated trials at this ε, of the scenario with the fewest correct results.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON, without the simulated trials themselves."""
        found = {name: value for name, value in vars(self).items() if name != "example"}
        intervals = {key: list(found[key]) for key in ("correct_interval", "epsilon_interval")}
        return {**found, **intervals}


class _Bracket(NamedTuple):
    """Hold two ε, the budget enough at the upper one alone, and how many runs are
    correct there.
    """

    low: float
    high: float
    hits: int


class Budget:
    """Search the ε at which a budget of participants leads to the correct result with
    this probability in every scenario.
    """

    def __init__(
        self,
        simulations: Simulations,
        scenarios: Mapping[str, Instance],
        participants: int,
        probability: float,
    ) -> None:
        self.simulations = simulations
        self.scenarios = scenarios
        self.participants = participants
        self.probability = probability

    def find_affordable(self, at: Callable[[float], Strategy]) -> Affordable:
        """Return the smallest ε for a strategy, given as a function of ε: by bisection
        on log ε.

        With less ε fewer runs are good, but for chance, which the common seed keeps
        small.
        """
        name = at(1.0).shown
        if (bare := at(1.0).without_privacy()) is not None:
            plain = self._count_correct(bare)
            if not self._is_enough(plain):
                return self._make_answer(name, None, plain, self._explain_impossible(plain))
        bracket = self._find_bracket(at)
        if not self._is_enough(bracket.hits):
            reason = (
                f"{self.participants:,} participants do not suffice for {name} at any ε up to "
                f"{MAX_EPSILON:g}"
            )
            return self._make_answer(name, None, bracket.hits, reason)
        if bracket.low == bracket.high:
            reason = (
                f"{self.participants:,} participants suffice even at this ε; no smaller one was "
                "tried"
            )
            return self._make_answer(name, bracket.low, bracket.hits, reason)
        low, high, hits = self._bisect(at, bracket)
        reason = (
            f"at ε = {low:.4g} the answer was right and in time in less than {self.probability:.0%}"
        )
        found = self._make_answer(name, high, hits, reason)
        ends = (
            self._find_interval_end(at, high, up=False),
            self._find_interval_end(at, high, up=True),
        )
        return replace(found, epsilon_interval=ends, example=self._simulate_worst(at(high)))

    def _find_interval_end(
        self, at: Callable[[float], Strategy], epsilon: float, up: bool
    ) -> float | None:
        """Return the nearest ε above this one at which fresh trials settle that the
        budget is enough, or below it that it is not.
        """
        for number, step in enumerate(INTERVAL_STEPS, 1):
            level = epsilon * (1 + EPSILON_TOLERANCE) ** (step if up else -step)
            tail = (1 - CONFIDENCE_LEVEL) / 2 / (number * (number + 1))
            runs = self._fresh_runs
            possible = not up or bound_one_sided(runs, runs, tail)[0] >= self.probability
            if not possible or not MIN_EPSILON <= level <= MAX_EPSILON:
                return None
            if self._is_settled(at(level), tail, up, fresh=2 * number + up):
                return level
        return None

    @property
    def _fresh_runs(self) -> int:
        """Return as many runs as in the search, or as an exact bound needs."""
        return max(self.simulations.runs, MIN_BUDGET_RUNS)

    def _is_settled(self, strategy: Strategy, tail: float, up: bool, fresh: int) -> bool:
        """Return whether fresh trials tell that the budget is enough in all scenarios,
        or that it is not in one of them; wrong with probability `tail` at most.
        """
        runs, cases = self._fresh_runs, self.scenarios.values()
        every = [
            self.simulations(arms, strategy, self.participants, runs, fresh=fresh) for arms in cases
        ]
        if up:
            return all(
                bound_one_sided(count_correct(found), runs, tail)[0] >= self.probability
                for found in every
            )
        share = tail / len(every)
        return any(
            bound_one_sided(count_correct(found), runs, share)[1] < self.probability
            for found in every
        )

    def _find_bracket(self, at: Callable[[float], Strategy]) -> _Bracket:
        """Go from ε = 1 down or up by strides. Return both ends, the same if the budget
        suffices at the least ε.
        """
        low = high = 1.0
        hits = self._count_correct(at(1.0))
        if self._is_enough(hits):
            while low > MIN_EPSILON:
                again = self._count_correct(at(low / EPSILON_STRIDE))
                if not self._is_enough(again):
                    return _Bracket(low / EPSILON_STRIDE, low, hits)
                low = low / EPSILON_STRIDE
                hits = again
            return _Bracket(low, low, hits)
        while high < MAX_EPSILON and not self._is_enough(hits):
            low = high
            high = min(high * EPSILON_STRIDE, MAX_EPSILON)
            hits = self._count_correct(at(high))
        return _Bracket(low, high, hits)

    def _bisect(self, at: Callable[[float], Strategy], bracket: _Bracket) -> _Bracket:
        low, high, hits = bracket
        while high > low * (1 + EPSILON_TOLERANCE):
            middle = math.sqrt(low * high)
            now = self._count_correct(at(middle))
            if self._is_enough(now):
                high = middle
                hits = now
            else:
                low = middle
        return _Bracket(low, high, hits)

    def _count_correct(self, strategy: Strategy) -> int:
        """Count the runs that are correct and in time, in the scenario with the fewest."""
        return count_correct(self._simulate_worst(strategy).results)

    def _simulate_worst(self, strategy: Strategy) -> Example:
        """Return the simulated trials of the scenario with the fewest correct results."""
        examples = [
            Example(name, strategy, self.simulations(arms, strategy, self.participants))
            for name, arms in self.scenarios.items()
        ]
        return min(examples, key=lambda one: count_correct(one.results))

    def _is_enough(self, hits: int) -> bool:
        return hits >= self.probability * self.simulations.runs

    def _explain_impossible(self, hits: int) -> str:
        share = hits / self.simulations.runs
        return (
            f"{self.participants:,} participants do not suffice even without privacy: the answer "
            f"is right and in time in {share:.0%} of the trials, not in {self.probability:.0%}"
        )

    def _make_answer(self, name: str, epsilon: float | None, hits: int, reason: str) -> Affordable:
        runs = self.simulations.runs
        return Affordable(name, epsilon, hits / runs, compute_clopper_pearson(hits, runs), reason)


REACH_SEED = 0
MAX_REACH_RUNS, MIN_REACH_RUNS = 20, 3
MAX_REACH_COST = 720.0
"""About a second of plain Python, in the units of `_estimate_cost`."""


@dataclass(frozen=True)
class OutOfReach:
    """Report a trial that will end inconclusive, however far apart its arms are."""

    max_participants: int
    runs: int
    """Number of simulated trials on the easiest arms there are, none of which ended in
    time.
    """
    participants: int | None
    """About how many participants it takes on them; None if that is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return dict(vars(self))


def check_reach(strategy: Strategy, arms: int, max_participants: int) -> OutOfReach | None:
    """Return an `OutOfReach` if a trial with this strategy cannot end with a result
    within `max_participants`; None if it can.

    Up to 20 trials are simulated on the easiest arms there are: the best one always
    does as well as can be, the others as badly as can be, and no outcome is late or
    missing. If none of them ends with an answer in time, no real trial can be expected
    to. One that is within reach may still take many more participants, as most arms are
    closer to each other: `plan` says how many.

    The trials are played in plain Python, so that nothing has to be compiled, and take
    about a second at most. What would take longer is not judged (the answer is None).
    That is so for more than 200 arms (28 with a phased strategy or with Top Two
    sampling); for more than 12 000 participants with two arms, or 5000 with ten, if the
    strategy learns from every answer, has β = ids or samples by eb-tci or
    track-and-stop; and for one global episode.
    """
    check_strategy(
        strategy
    ).to_dict()  # refuses parts that are Python functions, as a live trial does
    check_arms(arms)
    most = check_whole("max_participants", max_participants, least=arms, most=MAX_SAMPLES)
    runs = min(MAX_REACH_RUNS, int(MAX_REACH_COST / _estimate_cost(strategy, arms, most)))
    if runs < MIN_REACH_RUNS:
        return None
    trials = _play_trials(strategy, arms, most)
    if trials is None or any(found.stopped for found in islice(trials, runs)):
        return None
    return OutOfReach(most, runs, _estimate_participants(strategy, arms, runs - MIN_REACH_RUNS + 1))


def _play_trials(strategy: Strategy, arms: int, most: int) -> Iterator[RunResult] | None:
    """Play trials on the easiest arms, one after the other; None if they cannot be
    played in plain Python.
    """
    easiest = Bernoulli([1.0] + [0.0] * (arms - 1))
    play = make_plain_player(strategy, make_laws(easiest), most)
    return None if play is None else (play(make_generator(REACH_SEED, run)) for run in count())


def _estimate_participants(strategy: Strategy, arms: int, runs: int) -> int | None:
    """Return about how many participants it takes on the easiest arms, to two digits;
    None if too many trials do not end, or each participant would have to be played.
    """
    trials = None if strategy.needs_each_sample else _play_trials(strategy, arms, MAX_SAMPLES)
    if trials is None:
        return None
    middle = median(found.samples if found.stopped else inf for found in islice(trials, runs))
    return None if middle == inf else int(float(f"{middle:.2g}"))


def _estimate_cost(strategy: Strategy, arms: int, participants: int) -> float:
    """Return about how long a trial of at most so many participants takes to play: 1
    for each arm of an elimination in rounds.
    """
    if strategy.needs_each_sample:
        return participants * (4 + arms) / 300
    rounds = strategy.sampling == "elimination" and not strategy.is_phased
    return 40 + (arms if rounds else arms**2 / 4)


GAP_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""True differences, each as a multiple of the scenario's own. That of 0, a tie, only if
a strategy may name any of the arms that tie.
"""
MAX_POWER_RUNS = 200
"""Most trials for each of them, except for the plan's own."""


@dataclass(frozen=True)
class Power:
    """Say what becomes of trials of at most so many participants, if the best arm is
    `gap` better than the next.
    """

    scenario: str
    epsilon: float | None
    strategy: str
    gap: float
    participants: int
    runs: int
    correct: float
    """Share of the trials that end in time with the correct result."""
    correct_interval: tuple[float, float]
    """Clopper–Pearson, 95 %."""
    conclusive: float
    """Share of the trials that end in time with any result."""
    conclusive_interval: tuple[float, float]
    difference: float | None = None
    """The gap in the units of the outcomes, if these are known of data."""

    @property
    def shown_gap(self) -> float:
        """Return the gap as readers see it."""
        return self.gap if self.difference is None else self.difference

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        intervals = ("correct_interval", "conclusive_interval")
        found = {**vars(self), **{key: list(vars(self)[key]) for key in intervals}}
        if self.difference is None:
            del found["difference"]
        return found


def simulate_power(
    simulations: Simulations, name: str, instance: Instance, strategy: Strategy, participants: int
) -> Iterator[Power]:
    """Simulate a curve, from the smallest difference to the largest; nothing for arms
    that tie.
    """
    if not instance.is_unique:
        return
    width = instance.width if isinstance(instance, Sampled) else None
    for factor in GAP_FACTORS:
        arms = set_gap(instance, factor)
        if arms is None or (factor == 0 and strategy.indifference_zone == 0):
            continue
        gap = round(factor * float(instance.gaps.min()), 12)
        simulations.purpose = f"power if the best arm is {gap * (width or 1):.3g} better"
        runs = None if factor == 1 else min(MAX_POWER_RUNS, simulations.runs)
        found = simulations(arms, strategy, participants, runs)
        hits, ends = count_correct(found), int(found.stopped.sum())
        yield Power(
            scenario=name,
            epsilon=strategy.epsilon,
            strategy=strategy.name,
            gap=gap,
            participants=participants,
            runs=found.runs,
            correct=hits / found.runs,
            correct_interval=compute_clopper_pearson(hits, found.runs),
            conclusive=ends / found.runs,
            conclusive_interval=compute_clopper_pearson(ends, found.runs),
            difference=None if width is None else round(gap * width, 12),
        )


def set_gap(instance: Instance, factor: float) -> Instance | None:
    """Return the arms with the best one so many times as far above the next; None if
    that cannot be.

    Bernoulli arms have that mean, Beta arms too with a + b as it is. Of other laws the
    best arm pays as it does with probability `factor`, and else as the next one.
    """
    if factor == 1:
        return instance
    best = instance.best
    next_one = int(np.argsort(instance.means, kind="stable")[::-1][1])
    mean = instance.means[next_one] + factor * (instance.means[best] - instance.means[next_one])
    if isinstance(instance, Bernoulli):
        means = [*instance.means]
        means[best] = round(mean, 12) if factor else mean
        return Bernoulli(means, list(instance.names)) if means[best] <= 1 else None
    if isinstance(instance, Beta):
        a, b = [*instance.a], [*instance.b]
        size = a[best] + b[best]
        a[best], b[best] = mean * size, (1 - mean) * size
        return Beta(a, b, list(instance.names)) if mean < 1 else None
    if factor > 1 or not isinstance(instance, Discrete | Sampled):
        return None
    values, chances = _tabulate_outcomes(instance)
    chances[best] = factor * chances[best] + (1 - factor) * chances[next_one]
    return Discrete(values, chances, list(instance.names))


def _tabulate_outcomes(instance: Discrete | Sampled) -> tuple[np.ndarray, np.ndarray]:
    """Return the values, and the chance of each for each arm."""
    if isinstance(instance, Discrete):
        return np.array(instance.values), np.array(instance.probabilities)
    values = np.unique(instance.flat)
    counts = [
        np.bincount(np.searchsorted(values, some), minlength=len(values))
        for some in instance.rewards
    ]
    return values, np.array([some / some.sum() for some in counts])
