"""The privacy that a number of people can afford, and how sure that is.

The answer is found by bisection on simulated trials, and so it has an error of
simulation. Its interval is found by fresh trials, which the search has not seen: from
the answer away, up and down, in steps that do not depend on them, to the first ε at
which an exact bound settles that the budget is enough, or that it is not. The n-th step
may be wrong with probability 1/(n (n + 1)) of half of what is allowed; these shares add
up to 1, so both ends are right with the confidence that is said, whatever happened in
the search. That more ε makes a right answer likelier is not needed for this.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from discreet.instance import Instance
from discreet.planning.simulations import Example, Simulations, right
from discreet.statistics import clopper_pearson, one_sided
from discreet.strategies.strategy import Strategy

TOLERANCE = 0.05
LEAST_EPSILON = 1e-9
MOST_EPSILON = 1e3
STRIDE = 8.0
LEVEL = 0.95
"""The confidence that both ends of an interval are right."""
LEAST_RUNS = 200
"""Fresh trials for each step: fewer would settle nothing, even if all are right."""
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
"""How far from the answer its interval is looked for, in powers of 1 + TOLERANCE."""


@dataclass(frozen=True)
class Affordable:
    """The smallest ε for which a budget of people suffices, to within the relative
    `tolerance` of the bisection.
    """

    strategy: str
    epsilon: float | None
    """None: the budget does not suffice; `reason` says why."""
    correct: float
    """Share of the runs with the right answer within the budget, at this ε (or at the
    best there is, if None).
    """
    correct_interval: tuple[float, float]
    reason: str
    tolerance: float = TOLERANCE
    level: float = LEVEL
    epsilon_interval: tuple[float | None, float | None] = (None, None)
    """Two ε between which the smallest one lies with confidence `level`: the budget is
    not enough at the lower one, and enough at the upper one. None: not found.
    """
    example: Example | None = field(default=None, repr=False, compare=False)
    """The simulated trials at this ε, of the scenario with the fewest right answers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, without the simulated trials themselves."""
        found = {name: value for name, value in vars(self).items() if name != "example"}
        intervals = {key: list(found[key]) for key in ("correct_interval", "epsilon_interval")}
        return {**found, **intervals}


class _Bracket(NamedTuple):
    """Two ε, the budget enough at the upper one alone, where so many runs are right."""

    low: float
    high: float
    hits: int


class Budget:
    """A budget of people, and the probability with which it should lead to the right
    answer in every scenario.
    """

    def __init__(
        self,
        simulations: Simulations,
        scenarios: Mapping[str, Instance],
        people: int,
        probability: float,
    ) -> None:
        self.simulations = simulations
        self.scenarios = scenarios
        self.people = people
        self.probability = probability

    def affordable(self, at: Callable[[float], Strategy]) -> Affordable:
        """The smallest ε for a strategy, given as a function of ε: by bisection on log
        ε.

        With less ε fewer runs are good, but for chance, which the common seed keeps
        small.
        """
        name = at(1.0).shown
        if (bare := at(1.0).without_privacy()) is not None:
            plain = self._right(bare)
            if not self._enough(plain):
                return self._answer(name, None, plain, self._not_even_without_privacy(plain))
        bracket = self._bracket(at)
        if not self._enough(bracket.hits):
            reason = (
                f"{self.people:,} people do not suffice for {name} at any ε up to {MOST_EPSILON:g}"
            )
            return self._answer(name, None, bracket.hits, reason)
        if bracket.low == bracket.high:
            reason = f"{self.people:,} people suffice even at this ε; no smaller one was tried"
            return self._answer(name, bracket.low, bracket.hits, reason)
        low, high, hits = self._bisect(at, bracket)
        reason = (
            f"at ε = {low:.4g} the answer was right and in time in less than {self.probability:.0%}"
        )
        found = self._answer(name, high, hits, reason)
        ends = self._end(at, high, up=False), self._end(at, high, up=True)
        return replace(found, epsilon_interval=ends, example=self._worst(at(high)))

    def _end(self, at: Callable[[float], Strategy], epsilon: float, up: bool) -> float | None:
        """The nearest ε above this one at which fresh trials settle that the budget is
        enough, or below it that it is not.
        """
        for number, step in enumerate(STEPS, 1):
            level = epsilon * (1 + TOLERANCE) ** (step if up else -step)
            tail = (1 - LEVEL) / 2 / (number * (number + 1))
            runs = self._fresh_runs
            possible = not up or one_sided(runs, runs, tail)[0] >= self.probability
            if not possible or not LEAST_EPSILON <= level <= MOST_EPSILON:
                return None
            if self._settled(at(level), tail, up, fresh=2 * number + up):
                return level
        return None

    @property
    def _fresh_runs(self) -> int:
        """As many as in the search, or as an exact bound needs."""
        return max(self.simulations.runs, LEAST_RUNS)

    def _settled(self, strategy: Strategy, tail: float, up: bool, fresh: int) -> bool:
        """Whether fresh trials tell that the budget is enough in all scenarios, or that
        it is not in one of them; wrong with probability `tail` at most.
        """
        runs, cases = self._fresh_runs, self.scenarios.values()
        every = [self.simulations(arms, strategy, self.people, runs, fresh=fresh) for arms in cases]
        if up:
            return all(
                one_sided(right(found), runs, tail)[0] >= self.probability for found in every
            )
        share = tail / len(every)
        return any(one_sided(right(found), runs, share)[1] < self.probability for found in every)

    def _bracket(self, at: Callable[[float], Strategy]) -> _Bracket:
        """From ε = 1 down or up by strides; both ends the same if the budget suffices
        at the least ε.
        """
        low = high = 1.0
        hits = self._right(at(1.0))
        if self._enough(hits):
            while low > LEAST_EPSILON:
                again = self._right(at(low / STRIDE))
                if not self._enough(again):
                    return _Bracket(low / STRIDE, low, hits)
                low = low / STRIDE
                hits = again
            return _Bracket(low, low, hits)
        while high < MOST_EPSILON and not self._enough(hits):
            low = high
            high = min(high * STRIDE, MOST_EPSILON)
            hits = self._right(at(high))
        return _Bracket(low, high, hits)

    def _bisect(self, at: Callable[[float], Strategy], bracket: _Bracket) -> _Bracket:
        low, high, hits = bracket
        while high > low * (1 + TOLERANCE):
            middle = math.sqrt(low * high)
            now = self._right(at(middle))
            if self._enough(now):
                high = middle
                hits = now
            else:
                low = middle
        return _Bracket(low, high, hits)

    def _right(self, strategy: Strategy) -> int:
        """Runs that are right and in time, in the scenario with the fewest."""
        return right(self._worst(strategy).results)

    def _worst(self, strategy: Strategy) -> Example:
        """The simulated trials of the scenario with the fewest right answers."""
        every = [
            Example(name, strategy, self.simulations(arms, strategy, self.people))
            for name, arms in self.scenarios.items()
        ]
        return min(every, key=lambda one: right(one.results))

    def _enough(self, hits: int) -> bool:
        return hits >= self.probability * self.simulations.runs

    def _not_even_without_privacy(self, hits: int) -> str:
        share = hits / self.simulations.runs
        return (
            f"{self.people:,} people do not suffice even without privacy: the answer is right and "
            f"in time in {share:.0%} of the trials, not in {self.probability:.0%}"
        )

    def _answer(self, name: str, epsilon: float | None, hits: int, reason: str) -> Affordable:
        runs = self.simulations.runs
        return Affordable(name, epsilon, hits / runs, clopper_pearson(hits, runs), reason)
