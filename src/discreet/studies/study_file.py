"""A study from a small TOML file: instances, and strategies with lists of values for
their options.
"""

import itertools
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance, benchmarks
from discreet.strategies.parts import COSTS, EPISODES, SAMPLINGS, THRESHOLDS
from discreet.strategies.presets import PRESETS, levels_of
from discreet.strategies.strategy import Strategy
from discreet.strategies.values import OUTCOMES
from discreet.studies.study import Study
from discreet.trust import TRUSTS
from discreet.validate import (
    check_beta,
    check_delta,
    check_epsilon,
    check_gamma,
    check_path,
    check_rho,
    check_sigma,
    named,
    quoted,
)


def _check_share(beta: Any) -> None:
    if beta != "ids":
        check_beta(beta)


OPTIONS: dict[str, Any] = {
    "epsilon": check_epsilon,
    "delta": check_delta,
    "gamma": check_gamma,
    "rho": check_rho,
    "threshold": THRESHOLDS,
    "sampling": SAMPLINGS,
    "cost": COSTS,
    "trust": tuple(TRUSTS),
    "episodes": EPISODES,
    "beta": _check_share,
    "zeta": None,
    "hint": None,
    "outcomes": OUTCOMES,
    "s": None,
    "alpha": None,
    "sigma": check_sigma,
}
"""What a strategy in a file may say, each with a check of its values that needs no
other option.
"""
LAWS = {"drift": "drifting", "sigma": "gaussian"}
"""The law of an instance that says this of its arms."""
SHARED = ("epsilon", "delta", "threshold")
DAYS = ("accrual", "delay", "deadline", "enrolment", "release")
NUMBERS = ("runs", "seed", "max_samples", *DAYS)
KEYS = {"instances", "strategies", "skip_unfit", *NUMBERS, *SHARED}


def read_study(path: str | Path) -> Study:
    """Read a study file; the docs page "Sweeps" says what it may contain."""
    path = check_path("a study file", path)
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"cannot read {named(path)}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{named(path)} is not a TOML file: {error}") from None
    try:
        return _read(document)
    except InvalidInputError as error:
        raise InvalidInputError(f"{named(path)}: {error}") from None


def _read(document: dict[str, Any]) -> Study:
    _known("a study", document, KEYS)
    instances = _instances(document.get("instances"))
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
        raise InvalidInputError(f"skip_unfit must be true or false; got {quoted(skip)}")
    shared = {key: document[key] for key in SHARED if key in document}
    chosen = [_chosen(entry, shared, skip) for entry in entries]
    strategies = [strategy for some in chosen for strategy in some.strategies]
    left_out = [words for some in chosen for words in some.unfit]
    numbers = {key: document[key] for key in NUMBERS if key in document}
    return Study(instances, strategies, left_out=tuple(left_out), **numbers)


def _known(what: str, table: dict[str, Any], keys: Any) -> None:
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise InvalidInputError(
            f"{what} has no entry {quoted(unknown[0])}: use {', '.join(sorted(keys))}"
        )


def _instances(part: Any) -> dict[str, Instance]:
    if isinstance(part, list) and all(isinstance(name, str) for name in part):
        part = {name: name for name in part}
    if not isinstance(part, dict) or not part:
        raise InvalidInputError(
            'write the instances as instances = ["mu1", "mu2"], or as a table [instances] with '
            "lines name = [means]"
        )
    return {name: _instance(name, value) for name, value in part.items()}


def _instance(name: str, value: Any) -> Instance:
    try:
        if isinstance(value, str):
            if value not in benchmarks:
                raise InvalidInputError(
                    f"unknown benchmark {quoted(value)}: use one of {', '.join(benchmarks)}"
                )
            return benchmarks[value]
        if isinstance(value, dict):
            laws = [law for key, law in LAWS.items() if key in value]
            return Instance.from_dict({"law": laws[0] if laws else "bernoulli", **value})
        return Bernoulli(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"instance {quoted(name)}: {error}") from None


class Chosen(NamedTuple):
    """Strategies of a file, and in words what of it fits none."""

    strategies: list[Strategy]
    unfit: list[str]


def _chosen(entry: dict[str, Any], shared: dict[str, Any], skip: bool) -> Chosen:
    """Every combination of what one entry lists."""
    preset = entry.get("preset")
    if preset not in PRESETS:
        raise InvalidInputError(f"unknown preset {quoted(preset)}: use one of {', '.join(PRESETS)}")
    own = {key: value for key, value in entry.items() if key != "preset"}
    axes = _axes(preset, own, shared)
    found = Chosen([], [])
    for point in itertools.product(*axes.values()):
        options = dict(zip(axes, point, strict=True))
        public = "epsilon" not in levels_of(preset, options.get("trust"))
        if "epsilon" not in own and public:
            options.pop("epsilon", None)  # the shared levels are for the private strategies
        elif "epsilon" not in own and "rho" in own:
            options["epsilon"] = None
        made = _made(preset, options, skip)
        if isinstance(made, str):
            found.unfit.append(made)
        elif made not in found.strategies:
            found.strategies.append(made)
    if not found.strategies:
        raise InvalidInputError(f"no combination for the strategy {preset} fits: {found.unfit[0]}")
    return found


def _axes(preset: str, own: dict[str, Any], shared: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of each option, as a list; each is checked alone."""
    _known(f"strategy {preset}", own, OPTIONS)
    both = {**shared, **own}
    axes = {key: value if isinstance(value, list) else [value] for key, value in both.items()}
    for key, values in axes.items():
        if not values:
            raise InvalidInputError(f"strategy {preset}: {key} is an empty list")
        for value in values:
            _check_alone(preset, key, value)
    return axes


def _made(preset: str, options: dict[str, Any], skip: bool) -> Strategy | str:
    """The strategy, or if `skip` in words why there is none with these options."""
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
    rule = OPTIONS[key]
    try:
        if callable(rule):
            rule(value)
        elif rule is not None and value not in rule:
            raise InvalidInputError(f"{key} must be one of {', '.join(rule)}; got {quoted(value)}")
        elif rule is None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInputError(f"{key} must be a number; got {quoted(value)}")
    except InvalidInputError as error:
        raise InvalidInputError(f"strategy {preset}: {error}") from None
