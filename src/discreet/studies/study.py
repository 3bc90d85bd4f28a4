"""Study: every instance with every strategy, a number of runs and a seed; frozen and
written down.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.calendar import Calendar, Delay, calendar_of
from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.scale import YES_NO
from discreet.simulation import engine
from discreet.strategies.presets import PARTS
from discreet.strategies.strategy import Strategy
from discreet.validate import quoted, real


@dataclass(frozen=True)
class Cell:
    """One instance with one strategy."""

    instance_name: str
    instance: Instance
    strategy: Strategy

    @property
    def title(self) -> str:
        """A few words for people."""
        return f"{self.instance_name}, {title(self.strategy)}"


@dataclass(frozen=True, eq=False)
class Study:
    """Every instance with every strategy, `runs` times each. For several ε, δ or
    thresholds, list one strategy for each.
    """

    instances: Mapping[str, Instance]
    strategies: Sequence[Strategy]
    runs: int = 1000
    seed: int = 0
    max_samples: int | None = None
    left_out: tuple[str, ...] = field(default=(), repr=False)
    """Combinations a file listed that no strategy fits; it said `skip_unfit = true`."""
    accrual: float | None = None
    """With it and what follows the study has days, as in `simulate`."""
    delay: float | Delay | None = None
    deadline: float | None = None
    enrolment: str | None = None
    release: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated, naming it."""
        _check_instances(self.instances)
        object.__setattr__(self, "instances", MappingProxyType(dict(self.instances)))
        object.__setattr__(self, "strategies", _checked_strategies(self.strategies))
        object.__setattr__(self, "max_samples", _checked_cap(self.max_samples))
        _ = self.calendar  # refuses days that do not fit together
        for cell in self.cells:
            try:
                numbers = (self.runs, self.seed, self.max_samples, 0)
                engine.check(cell.instance, cell.strategy, *numbers, self.calendar)
            except InvalidInputError as error:
                raise InvalidInputError(f"{cell.title}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its parts."""
        numbers = (self.runs, self.seed, self.max_samples, self.left_out)
        days = (self.accrual, self.delay, self.deadline, self.enrolment, self.release)
        return Study, (dict(self.instances), self.strategies, *numbers, *days)

    def __eq__(self, other: object) -> bool:
        """Equal if the same cells are simulated in the same order with the same
        numbers.
        """
        return isinstance(other, Study) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Of the digest."""
        return hash(self.digest)

    @property
    def calendar(self) -> Calendar | None:
        """How people come and outcomes are told, or None."""
        days = (self.delay, self.deadline, self.enrolment, self.release)
        return calendar_of(self.accrual, *days)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, instance by instance."""
        pairs = itertools.product(self.instances.items(), self.strategies)
        return tuple(Cell(name, instance, strategy) for (name, instance), strategy in pairs)

    @property
    def digest(self) -> str:
        """SHA-256 of what `to_dict` says."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain types from which `from_dict` makes an equal study, unless it has
        strategies of your own.
        """
        return {
            "instances": {name: instance.to_dict() for name, instance in self.instances.items()},
            "strategies": [strategy.identity for strategy in self.strategies],
            "runs": self.runs,
            "seed": self.seed,
            "max_samples": self.max_samples,
            **({} if self.calendar is None else {"calendar": self.calendar.to_dict()}),
        }

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Study":
        """The study that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise InvalidInputError("not the description of a study")
        try:
            instances = {
                name: Instance.from_dict(part) for name, part in description["instances"].items()
            }
            strategies = [Strategy.from_dict(part) for part in description["strategies"]]
            numbers = {key: description[key] for key in ("runs", "seed", "max_samples")}
            days = dict(description.get("calendar", {}))
        except (KeyError, TypeError, AttributeError):
            raise InvalidInputError("not the description of a study") from None
        return Study(instances, strategies, **numbers, **days)

    @staticmethod
    def from_toml(path: str | Path) -> "Study":
        """Read a study file; the docs page "Sweeps" says what it may contain."""
        from discreet.studies.study_file import read_study

        return read_study(path)


def title(strategy: Strategy) -> str:
    """A strategy in a few words: name, threshold, and what differs from the usual."""
    numbers = [f"ε = {strategy.epsilon:g}"] if strategy.epsilon is not None else []
    words = [strategy.shown, *numbers, f"δ = {strategy.delta:g}", str(strategy.threshold)]
    return ", ".join([*words, *filter(None, [extras(strategy)])])


def extras(strategy: Strategy) -> str:
    """The parts that differ from the preset and have no column of their own, as
    words.
    """
    usual = {"gamma": None, "rho": None, "beta": 0.5, "episodes": "arm", "s": 1.2, "alpha": 1.2}
    usual |= {"zeta": 0.0, "hint": 0.0, "outcomes": YES_NO, "sigma": None}
    usual["cost"] = PARTS.get(strategy.name, {}).get("cost", "gaussian")
    usual["sampling"] = strategy.part.samplings[0]
    usual["trust"] = strategy.part.trusts[0]
    parts = {key: getattr(strategy, key) for key in usual}
    told = {key: value for key, value in parts.items() if value != usual[key]} | strategy.extra
    return ", ".join(
        f"{key} = {value:g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in told.items()
    )


def _check_instances(instances: Any) -> None:
    if not isinstance(instances, Mapping) or not instances:
        raise InvalidInputError(
            "a study needs instances by their names, for instance {'mu1': benchmarks.mu1}"
        )
    for name, instance in instances.items():
        if not isinstance(name, str) or not name or not isinstance(instance, Instance):
            raise InvalidInputError(
                f"instances must be named instances; got {quoted(name)}: {quoted(instance)}"
            )


def _checked_strategies(strategies: Any) -> tuple[Strategy, ...]:
    """The strategies, if each is one, is there once and can be written down."""
    if not isinstance(strategies, list | tuple) or not strategies:
        raise InvalidInputError("a study needs a list of one or more strategies")
    for strategy in strategies:
        if not isinstance(strategy, Strategy):
            raise InvalidInputError(
                "a study takes strategies made by presets, such as bet_se(0.05, 1); got "
                f"{quoted(strategy)}"
            )
    found = tuple(strategies)
    for strategy in found:
        _ = strategy.identity  # refuses Python functions: a study must be written down
        if found.count(strategy) > 1:
            raise InvalidInputError(
                f"the strategy {title(strategy)} is listed twice: name each one once"
            )
    return found


def _checked_cap(cap: Any) -> int | None:
    if cap is None:
        return None
    if not math.isfinite(real(cap)) or cap != int(cap):
        raise InvalidInputError(f"max_samples must be a whole number; got {quoted(cap)}")
    return int(cap)
