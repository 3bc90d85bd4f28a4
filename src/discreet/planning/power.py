"""Power: how likely a trial of so many people ends with the right answer, and with any,
against the true difference between the best arm and the next.

The arms are those of a scenario, but that the best one is as much better than the next
as is asked; the strategy stays as it was planned, with its hint.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.instance import Bernoulli, Beta, Discrete, Instance
from discreet.planning.simulations import Simulations, right
from discreet.sampled import Sampled
from discreet.statistics import clopper_pearson
from discreet.strategies.strategy import Strategy

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""True differences, each as a multiple of the scenario's own. That of 0, a tie, only
where a strategy may name any of the arms that tie.
"""
RUNS = 200
"""Trials for each of them at most, but for the plan's own."""


@dataclass(frozen=True)
class Power:
    """What becomes of trials of at most `people` people, if the best arm is `gap`
    better than the next.
    """

    scenario: str
    epsilon: float | None
    strategy: str
    gap: float
    people: int
    runs: int
    right: float
    """Share of the trials that end in time with the right answer."""
    right_interval: tuple[float, float]
    """Clopper–Pearson, 95 %."""
    answered: float
    """Share of the trials that end in time with any answer."""
    answered_interval: tuple[float, float]
    difference: float | None = None
    """The gap in the units of the outcomes, where these are known of data."""

    @property
    def shown_gap(self) -> float:
        """The gap as people read it."""
        return self.gap if self.difference is None else self.difference

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        intervals = ("right_interval", "answered_interval")
        found = {**vars(self), **{key: list(vars(self)[key]) for key in intervals}}
        if self.difference is None:
            del found["difference"]
        return found


def power_of(
    simulations: Simulations, name: str, instance: Instance, strategy: Strategy, people: int
) -> Iterator[Power]:
    """Simulate a curve, from the smallest difference to the largest; nothing for arms
    that tie.
    """
    if not instance.unique:
        return
    width = instance.width if isinstance(instance, Sampled) else None
    for factor in FACTORS:
        arms = with_gap(instance, factor)
        if arms is None or (factor == 0 and strategy.zeta == 0):
            continue
        gap = round(factor * float(instance.gaps.min()), 12)
        simulations.purpose = f"power if the best arm is {gap * (width or 1):.3g} better"
        runs = None if factor == 1 else min(RUNS, simulations.runs)
        found = simulations(arms, strategy, people, runs)
        hits, ends = right(found), int(found.stopped.sum())
        yield Power(
            scenario=name,
            epsilon=strategy.epsilon,
            strategy=strategy.name,
            gap=gap,
            people=people,
            runs=found.runs,
            right=hits / found.runs,
            right_interval=clopper_pearson(hits, found.runs),
            answered=ends / found.runs,
            answered_interval=clopper_pearson(ends, found.runs),
            difference=None if width is None else round(gap * width, 12),
        )


def with_gap(instance: Instance, factor: float) -> Instance | None:
    """The arms with the best one so many times as far above the next; None if it cannot
    be.

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
    values, chances = _table(instance)
    chances[best] = factor * chances[best] + (1 - factor) * chances[next_one]
    return Discrete(values, chances, list(instance.names))


def _table(instance: Discrete | Sampled) -> tuple[np.ndarray, np.ndarray]:
    """Values, and the chance of each for each arm."""
    if isinstance(instance, Discrete):
        return np.array(instance.values), np.array(instance.probabilities)
    values = np.unique(instance.flat)
    counts = [
        np.bincount(np.searchsorted(values, some), minlength=len(values))
        for some in instance.rewards
    ]
    return values, np.array([some / some.sum() for some in counts])
