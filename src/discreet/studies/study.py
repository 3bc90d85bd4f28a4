"""Study: every instance with every strategy, a number of runs and a seed; frozen and
written down.
"""

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from discreet.accrual import Calendar, Delay, make_calendar
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, Instance, benchmarks
from discreet.simulation import engine
from discreet.strategies.estimators import THRESHOLDS, check_leader_share
from discreet.strategies.presets import PARTS, PRESETS, list_levels
from discreet.strategies.strategy import Strategy, list_options
from discreet.trust import TRUSTS
from discreet.validation import (
    check_delta,
    check_epsilon,
    check_gamma,
    check_path,
    check_rho,
    check_sigma,
    convert_to_float,
    name_path,
    quote,
)


@dataclass(frozen=True)
class Cell:
    """Hold one instance with one strategy."""

    instance_name: str
    instance: Instance
    strategy: Strategy

    @property
    def title(self) -> str:
        """Return a few words for readers."""
        return f"{self.instance_name}, {make_title(self.strategy)}"


@dataclass(frozen=True, eq=False)
class Study:
    """Simulate every instance with every strategy, `runs` times each. For several ε, δ
    or thresholds, list one strategy for each.
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
        object.__setattr__(self, "strategies", _check_strategies(self.strategies))
        object.__setattr__(self, "max_samples", _check_cap(self.max_samples))
        _ = self.calendar  # refuses days that do not fit together
        for cell in self.cells:
            try:
                numbers = (self.runs, self.seed, self.max_samples, 0)
                engine.check_simulation(cell.instance, cell.strategy, *numbers, self.calendar)
            except InvalidInputError as error:
                raise InvalidInputError(f"{cell.title}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by its parts."""
        numbers = (self.runs, self.seed, self.max_samples, self.left_out)
        days = (self.accrual, self.delay, self.deadline, self.enrolment, self.release)
        return Study, (dict(self.instances), self.strategies, *numbers, *days)

    def __eq__(self, other: object) -> bool:
        """Return whether the same cells are simulated in the same order with the same
        numbers.
        """
        return isinstance(other, Study) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Return the hash of the digest."""
        return hash(self.digest)

    @property
    def calendar(self) -> Calendar | None:
        """Return how participants come and outcomes are recorded, or None."""
        days = (self.delay, self.deadline, self.enrolment, self.release)
        return make_calendar(self.accrual, *days)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return all cells, instance by instance."""
        pairs = itertools.product(self.instances.items(), self.strategies)
        return tuple(Cell(name, instance, strategy) for (name, instance), strategy in pairs)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of what `to_dict` says."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return plain types from which `from_dict` makes an equal study, unless it has
        user strategies.
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
        """Make the study that `to_dict` described."""
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
        """Read a study file; the docs page "Studies" says what it may contain."""

        return read_study(path)


def make_title(strategy: Strategy) -> str:
    """Describe a strategy in a few words: name, threshold, and what differs from the
    usual.
    """
    numbers = [f"ε = {strategy.epsilon:g}"] if strategy.epsilon is not None else []
    words = [strategy.shown, *numbers, f"δ = {strategy.delta:g}", str(strategy.threshold)]
    return ", ".join([*words, *filter(None, [describe_extras(strategy)])])


def describe_extras(strategy: Strategy) -> str:
    """Describe the parts that differ from the preset and have no column of their own."""
    usual = {name: each.default for name, each in list_options().items()}
    usual |= {"gamma": None, "rho": None, "sigma": None}
    usual["cost"] = PARTS.get(strategy.name, {}).get("cost", "gaussian")
    usual["sampling"] = strategy.spec.samplings[0]
    usual["trust"] = strategy.spec.trusts[0]
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
                f"instances must be named instances; got {quote(name)}: {quote(instance)}"
            )


def _check_strategies(strategies: Any) -> tuple[Strategy, ...]:
    """Return the strategies, if each is one, is there once and can be written down."""
    if not isinstance(strategies, list | tuple) or not strategies:
        raise InvalidInputError("a study needs a list of one or more strategies")
    for strategy in strategies:
        if not isinstance(strategy, Strategy):
            raise InvalidInputError(
                "a study takes strategies made by presets, such as bet_se(0.05, 1); got "
                f"{quote(strategy)}"
            )
    found = tuple(strategies)
    for strategy in found:
        _ = strategy.identity  # refuses Python functions: a study must be written down
        if found.count(strategy) > 1:
            raise InvalidInputError(
                f"the strategy {make_title(strategy)} is listed twice: name each one once"
            )
    return found


def _check_cap(cap: Any) -> int | None:
    if cap is None:
        return None
    if not math.isfinite(convert_to_float(cap)) or cap != int(cap):
        raise InvalidInputError(f"max_samples must be a whole number; got {quote(cap)}")
    return int(cap)


OPTION_CHECKS: dict[str, Any] = {
    "epsilon": check_epsilon,
    "delta": check_delta,
    "gamma": check_gamma,
    "rho": check_rho,
    "threshold": THRESHOLDS,
    "trust": tuple(TRUSTS),
    "sigma": check_sigma,
    **{name: each.metadata["choices"] or None for name, each in list_options().items()},
    "beta": check_leader_share,
}
"""What a strategy in a file may say, each with a check of its values that needs no
other option.
"""
LAW_KEYS = {"drift": "drifting", "sigma": "gaussian"}
"""The law of an instance that says this of its arms."""
SHARED_KEYS = ("epsilon", "delta", "threshold")
CALENDAR_KEYS = ("accrual", "delay", "deadline", "enrolment", "release")
NUMBER_KEYS = ("runs", "seed", "max_samples", *CALENDAR_KEYS)
STUDY_KEYS = {"instances", "strategies", "skip_unfit", *NUMBER_KEYS, *SHARED_KEYS}


def read_study(path: str | Path) -> Study:
    """Read a study file; the docs page "Studies" says what it may contain."""
    path = check_path("a study file", path)
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(
            f"cannot read {name_path(path)}: {error.strerror or error}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{name_path(path)} is not a TOML file: {error}") from None
    try:
        return _parse_study(document)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name_path(path)}: {error}") from None


def _parse_study(document: dict[str, Any]) -> Study:
    _check_keys("a study", document, STUDY_KEYS)
    instances = _read_instances(document.get("instances"))
    entries = document.get("strategies")
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InvalidInputError(
            'write the strategies as [[strategies]] tables, each with preset = "bet-se" or another'
        )
    skip = document.get("skip_unfit", False)
    if not isinstance(skip, bool):
        raise InvalidInputError(f"skip_unfit must be true or false; got {quote(skip)}")
    shared = {key: document[key] for key in SHARED_KEYS if key in document}
    chosen = [_expand_entry(entry, shared, skip) for entry in entries]
    strategies = [strategy for some in chosen for strategy in some.strategies]
    left_out = [words for some in chosen for words in some.unfit]
    numbers = {key: document[key] for key in NUMBER_KEYS if key in document}
    return Study(instances, strategies, left_out=tuple(left_out), **numbers)


def _check_keys(what: str, table: dict[str, Any], keys: Any) -> None:
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise InvalidInputError(
            f"{what} has no entry {quote(unknown[0])}: use {', '.join(sorted(keys))}"
        )


def _read_instances(part: Any) -> dict[str, Instance]:
    if isinstance(part, list) and all(isinstance(name, str) for name in part):
        part = {name: name for name in part}
    if not isinstance(part, dict) or not part:
        raise InvalidInputError(
            'write the instances as instances = ["mu1", "mu2"], or as a table [instances] with '
            "lines name = [means]"
        )
    return {name: _read_instance(name, value) for name, value in part.items()}


def _read_instance(name: str, value: Any) -> Instance:
    try:
        if isinstance(value, str):
            if value not in benchmarks:
                raise InvalidInputError(
                    f"unknown benchmark {quote(value)}: use one of {', '.join(benchmarks)}"
                )
            return benchmarks[value]
        if isinstance(value, dict):
            laws = [law for key, law in LAW_KEYS.items() if key in value]
            return Instance.from_dict({"law": laws[0] if laws else "bernoulli", **value})
        return Bernoulli(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"instance {quote(name)}: {error}") from None


class ExpandedEntry(NamedTuple):
    """Hold the strategies of an entry of a file, and in words what of it fits none."""

    strategies: list[Strategy]
    unfit: list[str]


def _expand_entry(entry: dict[str, Any], shared: dict[str, Any], skip: bool) -> ExpandedEntry:
    """Make every combination of what one entry lists."""
    preset = entry.get("preset")
    if preset not in PRESETS:
        raise InvalidInputError(f"unknown preset {quote(preset)}: use one of {', '.join(PRESETS)}")
    given = {key: value for key, value in entry.items() if key != "preset"}
    axes = _list_axes(preset, given, shared)
    expanded = ExpandedEntry([], [])
    for point in itertools.product(*axes.values()):
        options = dict(zip(axes, point, strict=True))
        public = "epsilon" not in list_levels(preset, options.get("trust"))
        if "epsilon" not in given and public:
            options.pop("epsilon", None)  # the shared levels are for the private strategies
        elif "epsilon" not in given and "rho" in given:
            options["epsilon"] = None
        made = _make_strategy(preset, options, skip)
        if isinstance(made, str):
            expanded.unfit.append(made)
        elif made not in expanded.strategies:
            expanded.strategies.append(made)
    if not expanded.strategies:
        raise InvalidInputError(
            f"no combination for the strategy {preset} fits: {expanded.unfit[0]}"
        )
    return expanded


def _list_axes(preset: str, given: dict[str, Any], shared: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the values of each option, as a list; each is checked alone."""
    _check_keys(f"strategy {preset}", given, OPTION_CHECKS)
    both = {**shared, **given}
    axes = {key: value if isinstance(value, list) else [value] for key, value in both.items()}
    for key, values in axes.items():
        if not values:
            raise InvalidInputError(f"strategy {preset}: {key} is an empty list")
        for value in values:
            _check_alone(preset, key, value)
    return axes


def _make_strategy(preset: str, options: dict[str, Any], skip: bool) -> Strategy | str:
    """Make the strategy, or if `skip` say why there is none with these options."""
    words = ", ".join([preset, *(f"{key} = {value}" for key, value in options.items())])
    try:
        return PRESETS[preset](**options)
    except TypeError as error:
        missing = str(error).rpartition("argument")[2].removeprefix("s:").strip(": ")
        raise InvalidInputError(f"{words}: also give {missing}") from None
    except InvalidInputError as error:
        if not skip:
            raise InvalidInputError(
                f"{words}: {error}; or write skip_unfit = true to leave it out"
            ) from None
        return f"{words}: {error}"


def _check_alone(preset: str, key: str, value: Any) -> None:
    rule = OPTION_CHECKS[key]
    try:
        if callable(rule):
            rule(value)
        elif rule is not None and value not in rule:
            raise InvalidInputError(f"{key} must be one of {', '.join(rule)}; got {quote(value)}")
        elif rule is None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInputError(f"{key} must be a number; got {quote(value)}")
    except InvalidInputError as error:
        raise InvalidInputError(f"strategy {preset}: {error}") from None
