"""A strategy of your own, in plain Python: a class with `ask`, `tell` and
`recommendation`. No guarantee but yours.

It is simulated, planned, swept and audited beside the presets, slowly: every sample is
a call of `ask` and of `tell`. What it claims about privacy is its own affair: it is
told raw rewards, and adds what noise it wants by itself.
"""

import hashlib
import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from discreet._types import Ints
from discreet.errors import InvalidInputError
from discreet.simulation.engine import Runner, RunResult, make_single_runner
from discreet.simulation.laws import Generator, Laws, draw_reward
from discreet.strategies import estimators
from discreet.strategies.presets import PARTS
from discreet.strategies.strategy import Strategy
from discreet.trust import check_trust
from discreet.validation import quote
from discreet.wording import NO_GUARANTEE

FOREIGN_MODULES = ("builtins", "abc", "typing")
"""Modules whose classes are no part of a user's strategy."""


class UserRun(Protocol):
    """Play one run of a user strategy. `rounds`, if it has that, counts its releases;
    else every sample is one.
    """

    @property
    def recommendation(self) -> int:
        """Return the arm to name when the run has stopped, or when the cap ends it."""
        ...

    def ask(self) -> int | None:
        """Return the arm of the next sample, 0 … K−1; None to stop."""
        ...

    def tell(self, arm: int, reward: float) -> None:
        """Record the reward of that sample, in [0, 1]."""
        ...


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class UserStrategy(Strategy):
    """Make a strategy of your class: `UserStrategy("uniform", Uniform, delta=0.05)`.

    For each run, `make(arms=…, delta=…, rng=…)` makes an object with `ask`, `tell` and
    `recommendation` (see `UserRun`). It is also given `epsilon` if there is one,
    `indifference_zone` if it is not 0, and your further options. `rng` is the run's
    numpy Generator, from which rewards are drawn too: draw all your random numbers from
    it, so that a seed gives the same numbers again.

    `trust` and `epsilon` are what you claim (global: a trusted collector, local:
    nobody). discreet neither adds the noise nor checks it: the class itself adds it to
    what it is told.
    """

    make: Callable[..., UserRun]
    options: tuple[tuple[str, Any], ...]
    """Further arguments of the class, by name."""

    def __init__(
        self,
        name: str,
        make: Callable[..., UserRun],
        delta: float,
        epsilon: float | None = None,
        trust: str = "none",
        indifference_zone: float = 0.0,
        **options: Any,
    ) -> None:
        object.__setattr__(self, "make", make)
        object.__setattr__(self, "options", tuple(sorted(options.items())))
        super().__init__(
            name,
            "own",
            delta,
            epsilon,
            sampling="own",
            threshold="own",
            trust=trust,
            indifference_zone=indifference_zone,
        )

    def __repr__(self) -> str:
        """Return the call that made it."""
        words = ", ".join(f"{key}={value!r}" for key, value in self._given().items())
        return f"UserStrategy({self.name!r}, {self.class_name}, {words})"

    def _check_parts(self) -> None:
        """Refuse what is no class of this kind, or does not take what it will be
        given.
        """
        if not isinstance(self.name, str) or not self.name or self.name in PARTS:
            raise InvalidInputError(
                f"give your strategy a name that no preset has; got {quote(self.name)}"
            )
        check_trust(self.trust)
        estimators.check_parts(self)
        for name, value in self.options:
            if name in ("arms", "rng"):
                raise InvalidInputError(f"{name} is set by each run: leave it out")
            unknown = isinstance(value, float) and math.isnan(value)
            if unknown or not isinstance(value, int | float | str | None):
                raise InvalidInputError(
                    "options must be numbers, texts, True, False or None; got "
                    f"{name}={quote(value)}"
                )
        _check_class(self.make)
        try:
            inspect.signature(self.make).bind(**self._arguments(2, None))
        except TypeError as error:
            wanted = ", ".join(self._arguments(2, None))
            raise InvalidInputError(
                f"{self.class_name} must accept {wanted} under these names: {error}"
            ) from None

    def start(self, arms: int, rng: Any) -> UserRun:
        """Make a new run, which has not begun."""
        return self.make(**self._arguments(arms, rng))

    def _arguments(self, arms: int, rng: Any) -> dict[str, Any]:
        private = {"epsilon": self.epsilon} if self.epsilon is not None else {}
        gap = {"indifference_zone": self.indifference_zone} if self.indifference_zone > 0 else {}
        return {
            "arms": arms,
            "delta": self.delta,
            "rng": rng,
            **private,
            **gap,
            **dict(self.options),
        }

    def with_(self, **changes: Any) -> "UserStrategy":
        """Return the same class with other levels or options."""
        return UserStrategy(**{"name": self.name, "make": self.make, **self._given(), **changes})

    def _given(self) -> dict[str, Any]:
        levels = {
            "delta": self.delta,
            "epsilon": self.epsilon,
            "trust": self.trust,
            "indifference_zone": self.indifference_zone,
        }
        return {**levels, **dict(self.options)}

    def without_privacy(self) -> None:
        """Return None: only you know what the same strategy would be without privacy."""

    @property
    def spec(self) -> estimators.Estimator:
        """Return what is known of it: nothing but what you say."""
        return estimators.OWN

    @property
    def class_name(self) -> str:
        """Return the name of the class."""
        return str(self.make.__qualname__)

    @property
    def reference(self) -> str:
        """Return where the strategy comes from."""
        return f"your own class {self.class_name}"

    @property
    def privacy(self) -> str:
        """Return what you claim."""
        if self.epsilon is None:
            return super().privacy
        return (
            f"{self.epsilon:.15g}-{self.trust} DP is claimed by {self.class_name}: "
            f"{NO_GUARANTEE}, it adds the noise itself"
        )

    @property
    def correctness(self) -> str:
        """Return the sentence that nothing is known about the error rate."""
        return f"{NO_GUARANTEE}: the strategy {self.name!r} is your own"

    @property
    def is_proved(self) -> bool:
        """Return False: nothing is guaranteed about a user strategy."""
        return False

    @property
    def shown(self) -> str:
        """Return the name, with the label."""
        return f"{self.name} ({NO_GUARANTEE})"

    @property
    def label(self) -> dict[str, str]:
        """Return what a table row that shows it says beside its numbers."""
        return {"correctness": self.correctness}

    @property
    def extra(self) -> dict[str, Any]:
        """Return your options, and which code was run."""
        return {**dict(self.options), "code": (hash_class(self.make) or "unknown")[:8]}

    def describe(self) -> dict[str, Any]:
        """Return plain types for readers."""
        return {
            "name": self.name,
            "estimator": self.estimator,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "threshold": "own",
            "trust": self.trust,
            "indifference_zone": self.indifference_zone,
            "class": self.class_name,
            "code": hash_class(self.make),
            "options": dict(self.options),
        }

    def to_dict(self) -> dict[str, Any]:
        """Refuse: `from_dict` could not make the class again."""
        raise InvalidInputError(f"{self.name!r} is a Python class and cannot be saved as data")

    @property
    def identity(self) -> dict[str, Any]:
        """Return what identifies it in a study's folder: its levels, its options and
        the text of the class.
        """
        if hash_class(self.make) is None:
            raise InvalidInputError(
                f"the text of {self.class_name} cannot be found, and a study has to know when it "
                "changes: put the class into a .py file"
            )
        return self.describe()


def describe_identity(identity: dict[str, Any]) -> str | None:
    """Describe a user strategy in a few words, from its `identity`. Return None for all
    others.
    """
    if "class" not in identity:
        return None
    levels = {key: identity[key] for key in ("epsilon", "delta", "trust", "indifference_zone")}
    told = {**levels, **identity["options"], "code": identity["code"][:8]}
    return ", ".join(
        [identity["name"], *(f"{key} = {value}" for key, value in told.items() if value)]
    )


def _check_class(make: object) -> None:
    if not inspect.isclass(make):
        raise InvalidInputError(
            f"give the class itself, from which every run makes an object; got {quote(make)}"
        )
    for method in ("ask", "tell"):
        if not callable(getattr(make, method, None)):
            raise InvalidInputError(
                f"{make.__qualname__} needs a method {method}: see the docs page 'Strategies'"
            )


@lru_cache(maxsize=256)
def hash_class(make: Any) -> str | None:
    """Return the SHA-256 of the text of a class and those it is derived from; None if
    some of it cannot be found.
    """
    try:
        texts = [
            _read_source(each) for each in make.__mro__ if each.__module__ not in FOREIGN_MODULES
        ]
    except OSError:
        return None
    return hashlib.sha256("\n".join(texts).encode()).hexdigest() if all(texts) else None


def _read_source(made: type) -> str:
    try:
        return inspect.getsource(made)
    except (OSError, TypeError):  # typed into a notebook, which keeps the text of functions alone
        return "\n".join(
            filter(None, (_read_member_source(name, part) for name, part in vars(made).items()))
        )


def _read_member_source(name: str, part: Any) -> str:
    """Return a method as it was written, or a constant; nothing for what Python itself
    adds to a class.
    """
    function = getattr(part, "fget", None) or getattr(part, "__func__", part)
    if inspect.isfunction(function):
        generated = (
            name.startswith("__") and function.__code__.co_filename == "<string>"
        )  # of a dataclass
        return "" if generated else inspect.getsource(function)
    return "" if name.startswith("__") else f"{name} = {part!r}"


DRAWS_PER_PARTICIPANT = True
"""Arms may drift, see `engine.select_runner`."""


def run_user_strategy(run: UserRun, rng: Generator, laws: Laws, cap: int, pulls: Ints) -> RunResult:
    """Play one run. Write `pulls`. A strategy that stops right at the cap has stopped,
    as all others have.
    """
    name, samples = type(run).__qualname__, 0
    while (arm_asked := run.ask()) is not None and samples < cap:
        arm = _check_arm(arm_asked, pulls.size, f"{name}.ask gave", "or None to stop")
        reward = draw_reward(rng, laws, arm, samples)
        pulls[arm] += 1
        samples += 1
        run.tell(arm, reward)
    if samples == 0:
        raise InvalidInputError(
            f"{name} stopped before its first sample: ask must name an arm first"
        )
    when = "when it stops" if arm_asked is None else "also when the cap ends a run"
    named = _check_arm(run.recommendation, pulls.size, f"{name}.recommendation is", when)
    return RunResult(
        samples, named, arm_asked is None, _check_rounds(name, getattr(run, "rounds", samples))
    )


def _check_arm(given: Any, arms: int, what: str, also: str) -> int:
    """Refuse what is no arm, and say what it must be. Return the arm."""
    if not _is_whole(given) or not 0 <= given < arms:
        raise InvalidInputError(
            f"{what} {quote(given)}: it must be an arm, a whole number from 0 to {arms - 1}, {also}"
        )
    return int(given)


def _check_rounds(name: str, given: Any) -> int:
    if not _is_whole(given) or not 0 <= given < 2**63:
        raise InvalidInputError(
            f"{name}.rounds is {quote(given)}: it must count releases, or be left out"
        )
    return int(given)


def _is_whole(given: Any) -> bool:
    return isinstance(given, numbers.Integral) and not isinstance(given, bool)


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """Make what plays a user strategy on these laws."""
    assert isinstance(strategy, UserStrategy)
    arms = laws.mean.size
    return make_single_runner(
        lambda rng, pulls: run_user_strategy(strategy.start(arms, rng), rng, laws, cap, pulls)
    )
