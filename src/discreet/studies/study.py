"""Study: a grid of instances × strategies, with a number of runs and a seed; from Python or from a small TOML file."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance, benchmarks
from discreet.simulation import engine
from discreet.strategies.parts import SAMPLINGS, THRESHOLDS
from discreet.strategies.presets import PRESETS
from discreet.strategies.strategy import Strategy
from discreet.validate import check_beta, check_delta, check_epsilon, check_gamma


def _check_share(beta: Any) -> None:
    if beta != "ids":
        check_beta(beta)


# Options of a strategy in a file, with a check of each value that needs no other; the rest is up to the strategy.
OPTIONS: dict[str, Any] = {
    "epsilon": check_epsilon,
    "delta": check_delta,
    "gamma": check_gamma,
    "threshold": THRESHOLDS,
    "sampling": SAMPLINGS,
    "trust": ("global", "local", "none"),
    "episodes": ("arm", "global"),
    "beta": _check_share,
    "zeta": None,
    "s": None,
    "alpha": None,
}
SHARED = ("epsilon", "delta", "threshold")
KEYS = {"instances", "strategies", "runs", "seed", "max_samples", "skip_unfit", *SHARED}


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
    """Every instance with every strategy, `runs` times each. Several ε, δ or thresholds are several strategies."""

    instances: Mapping[str, Instance]
    strategies: Sequence[Strategy]
    runs: int = 1000
    seed: int = 0
    max_samples: int | None = None
    left_out: tuple[str, ...] = field(default=(), repr=False)
    """Combinations a file listed that no strategy fits; it said `skip_unfit = true`."""

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated, naming it."""
        if not isinstance(self.instances, Mapping) or not self.instances:
            raise InvalidInputError("a study needs instances by their names, for instance {'mu1': benchmarks.mu1}")
        if isinstance(self.strategies, Strategy) or not self.strategies:
            raise InvalidInputError("a study needs a list of one or more strategies")
        for name, instance in self.instances.items():
            if not isinstance(name, str) or not name or not isinstance(instance, Instance):
                raise InvalidInputError(f"instances must be named instances; got {name!r}: {instance!r}")
        strategies = tuple(_strategy(strategy) for strategy in self.strategies)
        for strategy in strategies:
            strategy.to_dict()  # refuses Python functions: a study must be written down
            if strategies.count(strategy) > 1:
                raise InvalidInputError(f"the strategy {title(strategy)} is there twice: name each one once")
        cap = self.max_samples
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int | float) or cap != int(cap)):
            raise InvalidInputError(f"max_samples must be a whole number; got {cap!r}")
        values: dict[str, Any] = {"instances": MappingProxyType(dict(self.instances)), "strategies": strategies}
        values["max_samples"] = None if cap is None else int(cap)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for cell in self.cells:
            try:
                engine.check(cell.instance, cell.strategy, self.runs, self.seed, self.max_samples)
            except InvalidInputError as error:
                raise InvalidInputError(f"{cell.title}: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its parts."""
        parts = dict(self.instances), self.strategies, self.runs, self.seed, self.max_samples, self.left_out
        return Study, parts

    def __eq__(self, other: object) -> bool:
        """Equal if the same cells are simulated in the same order with the same numbers."""
        return isinstance(other, Study) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Of the digest."""
        return hash(self.digest)

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
        """Plain types from which `from_dict` makes an equal study."""
        return {
            "instances": {name: instance.to_dict() for name, instance in self.instances.items()},
            "strategies": [strategy.to_dict() for strategy in self.strategies],
            "runs": self.runs,
            "seed": self.seed,
            "max_samples": self.max_samples,
        }

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Study":
        """The study that `to_dict` described."""
        try:
            instances = {name: Instance.from_dict(part) for name, part in description["instances"].items()}
            strategies = [Strategy.from_dict(part) for part in description["strategies"]]
            numbers = {key: description[key] for key in ("runs", "seed", "max_samples")}
        except (KeyError, TypeError, AttributeError):
            raise InvalidInputError("not the description of a study") from None
        return Study(instances, strategies, **numbers)

    @staticmethod
    def from_toml(path: str | Path) -> "Study":
        """Read a study file; the docs page "Sweeps" says what may stand in it."""
        import tomllib

        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
        try:
            return _read(document)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from None


def title(strategy: Strategy) -> str:
    """A strategy in a few words: name, threshold, and what differs from the usual."""
    numbers = [f"ε = {strategy.epsilon:g}"] if strategy.epsilon is not None else []
    words = [strategy.name, *numbers, f"δ = {strategy.delta:g}", str(strategy.threshold)]
    return ", ".join([*words, *filter(None, [extras(strategy)])])


def extras(strategy: Strategy) -> str:
    """The parts that differ from the preset and have no column of their own, as words."""
    usual = {"gamma": None, "beta": 0.5, "episodes": "arm", "s": 1.2, "alpha": 1.2, "zeta": 0.0}
    usual["cost"] = "private" if strategy.name == "adap-tt-star" else "gaussian"
    usual["sampling"] = "elimination" if strategy.estimator in ("epochs", "bets") else "top-two"
    usual["trust"] = "global" if strategy.estimator == "bets" else strategy.trust
    parts = {key: getattr(strategy, key) for key in usual}
    shown = {key: f"{value:g}" if isinstance(value, float) else value for key, value in parts.items()}
    return ", ".join(f"{key} = {shown[key]}" for key, value in parts.items() if value != usual[key])


def _strategy(strategy: Strategy) -> Strategy:
    """The strategy, if it is one."""
    if not isinstance(strategy, Strategy):
        raise InvalidInputError(f"a study takes strategies made by presets, such as bet_se(0.05, 1); got {strategy!r}")
    return strategy


def _read(document: dict[str, Any]) -> Study:
    _known("a study", document, KEYS)
    instances = _instances(document.get("instances"))
    entries = document.get("strategies")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError('write the strategies as [[strategies]] tables, each with preset = "bet-se" or another')
    skip = document.get("skip_unfit", False)
    if not isinstance(skip, bool):
        raise InvalidInputError(f"skip_unfit must be true or false; got {skip!r}")
    shared = {key: document[key] for key in SHARED if key in document}
    strategies, left_out = list[Strategy](), list[str]()
    for entry in entries:
        found, unfit = _strategies(entry, shared, skip)
        strategies += found
        left_out += unfit
    numbers = {key: document[key] for key in ("runs", "seed", "max_samples") if key in document}
    return Study(instances, strategies, left_out=tuple(left_out), **numbers)


def _known(what: str, table: dict[str, Any], keys: Any) -> None:
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise InvalidInputError(f"{what} has no entry {unknown[0]!r}: use {', '.join(sorted(keys))}")


def _instances(part: Any) -> dict[str, Instance]:
    if isinstance(part, list) and all(isinstance(name, str) for name in part):
        part = {name: name for name in part}
    if not isinstance(part, dict) or not part:
        raise InvalidInputError(
            'write the instances as instances = ["mu1", "mu2"], or as a table [instances] with lines name = [means]'
        )
    return {name: _instance(name, value) for name, value in part.items()}


def _instance(name: str, value: Any) -> Instance:
    try:
        if isinstance(value, str):
            if value not in benchmarks:
                raise InvalidInputError(f"unknown benchmark {value!r}: use one of {', '.join(benchmarks)}")
            return benchmarks[value]
        if isinstance(value, dict):
            return Instance.from_dict({"law": "bernoulli", **value})
        return Bernoulli(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"instance {name!r}: {error}") from None


def _strategies(entry: dict[str, Any], shared: dict[str, Any], skip: bool) -> tuple[list[Strategy], list[str]]:
    """The grid of one entry, and in words what of it does not fit."""
    preset = entry.get("preset")
    if preset not in PRESETS:
        raise InvalidInputError(f"unknown preset {preset!r}: use one of {', '.join(PRESETS)}")
    own = {key: value for key, value in entry.items() if key != "preset"}
    _known(f"strategy {preset}", own, OPTIONS)
    axes = {key: value if isinstance(value, list) else [value] for key, value in {**shared, **own}.items()}
    for key, values in axes.items():
        if not values:
            raise InvalidInputError(f"strategy {preset}: {key} is an empty list")
        for value in values:
            _check_alone(preset, key, value)
    found, unfit = list[Strategy](), list[str]()
    for point in itertools.product(*axes.values()):
        chosen = dict(zip(axes, point, strict=True))
        if "epsilon" not in own and (preset in ("ttucb", "ttucb-batched") or chosen.get("trust") == "none"):
            chosen.pop("epsilon", None)  # the shared levels are for the private strategies
        words = ", ".join([preset, *(f"{key} = {value}" for key, value in chosen.items())])
        try:
            strategy = _strategy(PRESETS[preset](**chosen))
        except TypeError as error:
            missing = str(error).rpartition("argument")[2].removeprefix("s:").strip(": ")
            raise InvalidInputError(f"{words}: say also {missing}") from None
        except InvalidInputError as error:
            if not skip:
                raise InvalidInputError(f"{words}: {error}; or write skip_unfit = true to leave it out") from None
            unfit.append(f"{words}: {error}")
            continue
        if strategy not in found:
            found.append(strategy)
    if not found:
        raise InvalidInputError(f"nothing of the strategy {preset} fits: {unfit[0]}")
    return found, unfit


def _check_alone(preset: str, key: str, value: Any) -> None:
    rule = OPTIONS[key]
    try:
        if callable(rule):
            rule(value)
        elif rule is not None and value not in rule:
            raise InvalidInputError(f"{key} must be one of {', '.join(rule)}; got {value!r}")
        elif rule is None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInputError(f"{key} must be a number; got {value!r}")
    except InvalidInputError as error:
        raise InvalidInputError(f"strategy {preset}: {error}") from None
