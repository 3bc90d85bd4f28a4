"""The privacy that a number of people can afford."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from discreet.instance import Instance
from discreet.planning.simulations import Simulations, right
from discreet.statistics import clopper_pearson
from discreet.strategies.strategy import Strategy

TOLERANCE = 0.05
LEAST_EPSILON = 1e-9
MOST_EPSILON = 1e3
STRIDE = 8.0


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

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {**vars(self), "correct_interval": list(self.correct_interval)}


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
        return self._answer(name, high, hits, reason)

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
        instances = self.scenarios.values()
        return min(right(self.simulations(arms, strategy, self.people)) for arms in instances)

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
