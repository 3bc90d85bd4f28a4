"""Instance: the reward laws of K arms, and the paper's six benchmarks.

`Bernoulli`, `Discrete` and `Beta` are three kinds of law on [0, 1]; each is an
`Instance`, frozen and equal by value. `Drifting` is a Bernoulli instance that moves
from person to person; arms that are given by data are in `discreet.past_data`, and those
whose rewards have no bounds in `discreet.instances`.
"""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError, TiedBestArmError
from discreet.jit import jit
from discreet.scale import NUMBERS, YES_NO
from discreet.validation import check_numbers, check_sigma, check_whole, is_word, quote

STEADY, SITES, STEP, SEASON, TREND = range(5)
MAX_PARTICIPANTS = 10**12
KINDS = {
    "sites": (SITES, "block", 1),
    "step": (STEP, "at", 1),
    "season": (SEASON, "period", 3),
    "trend": (TREND, "over", 1),
}
"""Of each kind: its code, what its number of people is called, and the least of it."""


class Drift(NamedTuple):
    """A way to drift; make one with `Drift.sites`, `step`, `season` or `trend`.

    `size` is added to every arm's chance of success (see `instance.Drifting`) and lies
    between -1 and 1; a negative one is the same drift downwards.
    """

    kind: int
    size: float
    people: float
    """The length of a block, a step's first person, a period, or a trend's length."""

    @staticmethod
    def sites(size: float, block: int = 1) -> "Drift":
        """Return the drift of two sites that enrol `block` participants in turn: `size`
        up in the first, down in the second.
        """
        return _make_drift("sites", size, block)

    @staticmethod
    def step(size: float, at: int) -> "Drift":
        """Return no shift before participant number `at`, a shift of `size` from that
        one on.
        """
        return _make_drift("step", size, at)

    @staticmethod
    def season(size: float, period: int) -> "Drift":
        """Return a wave: `size` times the sine of 2π · participant / `period`."""
        return _make_drift("season", size, period)

    @staticmethod
    def trend(size: float, over: int) -> "Drift":
        """Return a straight line from 0 at participant 0 to `size` at participant
        `over`, constant from there on.
        """
        return _make_drift("trend", size, over)

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Drift":
        """Make the drift that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise InvalidInputError(
                f'describe a drift as {{"kind": "step", "size": 0.1, "at": 100}}; got '
                f"{quote(description)}"
            )
        parts = dict(description)
        kind = parts.pop("kind", None)
        if kind not in KINDS:
            raise InvalidInputError(f"unknown drift {quote(kind)}: use one of {', '.join(KINDS)}")
        wanted = {"size", KINDS[kind][1]}
        if set(parts) != wanted:
            raise InvalidInputError(
                f"a drift of the kind {kind} has {' and '.join(sorted(wanted))}; got "
                f"{', '.join(sorted(map(str, parts))) or 'neither'}"
            )
        return _make_drift(kind, parts["size"], parts[KINDS[kind][1]])

    def to_dict(self) -> dict[str, Any]:
        """Return a description in plain types from which `Drift.from_dict` makes an
        equal drift.
        """
        for kind, (code, people, _) in KINDS.items():
            if code == self.kind:
                return {"kind": kind, "size": self.size, people: int(self.people)}
        raise InvalidInputError(
            "this is not a drift: make one with Drift.sites, Drift.step, Drift.season or "
            "Drift.trend"
        )


NO_DRIFT = Drift(STEADY, 0.0, 1.0)
"""Arms that stay as they are."""


@jit
def compute_shift(drift: Drift, person: int) -> float:
    """Return how far the drift moves every arm's chance of success for this
    participant.
    """
    if drift.kind == SITES:
        return drift.size if (person // drift.people) % 2.0 == 0.0 else -drift.size
    if drift.kind == STEP:
        return drift.size if person >= drift.people else 0.0
    if drift.kind == SEASON:
        return drift.size * math.sin(2.0 * math.pi * (person % drift.people) / drift.people)
    if drift.kind == TREND:
        return drift.size * min(person / drift.people, 1.0)
    return 0.0


def _make_drift(kind: str, size: float, people: float) -> Drift:
    code, name, least = KINDS[kind]
    if isinstance(size, bool) or not isinstance(size, numbers.Real) or not -1 <= size <= 1:
        raise InvalidInputError(
            f"the size of a drift must be a number between -1 and 1; got {quote(size)}"
        )
    return Drift(code, float(size), float(check_whole(name, people, least, MAX_PARTICIPANTS)))


RESCALE = "rescale outcomes to [0, 1] with (outcome - lowest) / (highest - lowest)"
UNBOUNDED = (
    "rewards of Gaussian arms are unbounded, and this is for rewards in [0, 1]: choose a range, "
    "and clip what lies outside it, with Sampled.from_outcomes(outcomes, range=(low, high), "
    "out_of_range='clip') for data, or with the same range and out_of_range='clip' in a live trial"
)
NO_THEORY = (
    "times, bounds and plans are for arms that do not drift: use .instance, which has the arms "
    "without their drift, or simulate"
)


class Instance(ABC):
    """K arms, each with a reward law on [0, 1] (except in `Gaussian`). Means, gaps and
    the best arm are what the theory needs.
    """

    means: tuple[float, ...]
    names: tuple[str, ...]
    is_bounded = True
    """Whether rewards lie in [0, 1]."""
    sigma: float = 0.5
    """Rewards are σ-sub-Gaussian; those in [0, 1] are so with 1/2 (Hoeffding's
    lemma).
    """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description in plain types from which `Instance.from_dict` makes an
        equal instance.
        """

    def describe(self) -> dict[str, Any]:
        """Describe the instance in plain types for people: as `to_dict`, except that
        data is not written out.
        """
        return self.to_dict()

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Instance":
        """Make the instance that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise InvalidInputError("describe an instance as to_dict does, by a dictionary")
        parts = dict(description)
        law = parts.pop("law", None)
        if not is_word(law, LAWS):
            raise InvalidInputError(f"unknown law {quote(law)}: use one of {', '.join(LAWS)}")
        try:
            instance: Instance = LAWS[law](**parts)
        except TypeError as error:
            raise InvalidInputError(
                f"the description of a {law} instance does not fit: {error}"
            ) from None
        return instance

    @property
    def outcomes(self) -> str:
        """What outcomes are, `yes-no` (0 or 1) or `numbers`: what `bet_se` is to
        expect.
        """
        return YES_NO

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.means)

    @property
    def is_unique(self) -> bool:
        """Return whether one arm alone has the largest mean."""
        return self.means.count(max(self.means)) == 1

    @property
    def best(self) -> int:
        """The index of the best arm; refuses an instance whose largest mean is
        shared.
        """
        if not self.is_unique:
            top = max(self.means)
            tied = [name for name, mean in zip(self.names, self.means, strict=True) if mean == top]
            shown = ", ".join(tied[:5]) + (f" and {len(tied) - 5} more" if len(tied) > 5 else "")
            raise TiedBestArmError(
                f"no unique best arm: {shown} share the mean {top:g}; make one of them better, "
                "or drop all but one of them, or give bet-se an indifference zone "
                "(--indifference-zone)"
            )
        return self.means.index(max(self.means))

    @cached_property
    def gaps(self) -> Floats:
        """Δ_a = μ* − μ_a, and for the best arm itself Δ_min (Section 2.2 of the
        paper).
        """
        best = self.best
        gaps = self.means[best] - np.array(self.means)
        gaps[best] = np.delete(gaps, best).min()
        gaps.flags.writeable = False
        return gaps

    def as_bernoulli(self) -> "Bernoulli":
        """Return the instance seen after rounding each reward r to a Bernoulli(r) bit:
        same means, Bernoulli arms.
        """
        return Bernoulli(self.means, self.names)


@dataclass(frozen=True, init=False)
class Bernoulli(Instance):
    """Arms that pay 1 with probability `means[a]`, else 0."""

    means: tuple[float, ...]
    names: tuple[str, ...]

    def __init__(self, means: ArrayLike, names: Sequence[str] | None = None) -> None:
        """Take these success probabilities; `names` default to "arm 1" … "arm K"."""
        values = check_vector("means", means)
        check_in_unit("a mean", values)
        freeze(self, means=tuple(values.tolist()), names=choose_names(names, len(values)))

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        return {"law": "bernoulli", "means": list(self.means), "names": list(self.names)}


@dataclass(frozen=True, init=False)
class Discrete(Instance):
    """Arms on finitely many common values in [0, 1]: arm a pays `values[i]` with
    probability `probabilities[a][i]`.
    """

    values: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...]
    names: tuple[str, ...]
    means: tuple[float, ...] = field(compare=False, repr=False)

    def __init__(
        self, values: ArrayLike, probabilities: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        """Take `values` of length V and a K × V table of `probabilities`, each row
        summing to one.
        """
        points = check_vector("values", values, least=1)
        check_in_unit("a value", points)
        table = _check_array("probabilities", probabilities)
        if table.ndim != 2 or table.shape[1] != len(points) or table.shape[0] < 2:
            raise InvalidInputError(
                f"probabilities must be a table of at least 2 rows (arms) and {len(points)} "
                f"columns (values); got the shape {table.shape}"
            )
        if (table < 0).any() or (np.abs(table.sum(axis=1) - 1) > 1e-9).any():
            raise InvalidInputError("each arm's probabilities must be at least 0 and sum to 1")
        rows = table / table.sum(axis=1, keepdims=True)
        freeze(
            self,
            values=tuple(points.tolist()),
            probabilities=tuple(tuple(row) for row in rows.tolist()),
            names=choose_names(names, len(rows)),
            means=tuple(min(1.0, math.fsum(row)) for row in (rows * points).tolist()),
        )

    @property
    def outcomes(self) -> str:
        """`yes-no` if only 0 and 1 have a chance, else `numbers`."""
        possible = np.array(self.values)[np.array(self.probabilities).max(axis=0) > 0]
        return YES_NO if np.isin(possible, (0.0, 1.0)).all() else NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        return {
            "law": "discrete",
            "values": list(self.values),
            "probabilities": [list(row) for row in self.probabilities],
            "names": list(self.names),
        }


@dataclass(frozen=True, init=False)
class Beta(Instance):
    """Arms with Beta(`a`, `b`) rewards; the mean of arm i is a[i] / (a[i] + b[i])."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    names: tuple[str, ...]
    means: tuple[float, ...] = field(compare=False, repr=False)

    def __init__(self, a: ArrayLike, b: ArrayLike, names: Sequence[str] | None = None) -> None:
        """Take two lists of K positive shape parameters."""
        first, second = check_vector("a", a), check_vector("b", b)
        if len(first) != len(second):
            raise InvalidInputError(
                f"a has {len(first)} arms and b has {len(second)}: give both for every arm"
            )
        if (first <= 0).any() or (second <= 0).any():
            raise InvalidInputError("the shape parameters a and b of a Beta arm must be positive")
        freeze(
            self,
            a=tuple(first.tolist()),
            b=tuple(second.tolist()),
            names=choose_names(names, len(first)),
            means=tuple((first / (first + second)).tolist()),
        )

    @property
    def outcomes(self) -> str:
        """`numbers`."""
        return NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        return {"law": "beta", "a": list(self.a), "b": list(self.b), "names": list(self.names)}


@dataclass(frozen=True, init=False)
class Drifting(Instance):
    """Bernoulli arms whose chances of success all move together: that of arm a for
    person i is `means[a]` plus the drift's shift for i, kept within [0, 1].

    People are counted from 0 in the order of enrolment. `means`, `best` and `unique`
    are those of `instance`, the arms without the drift. Keeping within [0, 1] may make
    arms tie for some people; it never changes their order. It is for simulations,
    studies and audits: there is no theory of arms that drift.
    """

    instance: Bernoulli
    drift: Drift
    means: tuple[float, ...] = field(compare=False, repr=False)
    names: tuple[str, ...] = field(compare=False, repr=False)

    def __init__(self, instance: Bernoulli, drift: Drift) -> None:
        """Take Bernoulli arms, and their drift, such as `Drift.season(0.1,
        period=365)`.
        """
        if not isinstance(instance, Bernoulli):
            raise InvalidInputError(
                f"only Bernoulli arms drift; got {type(instance).__name__}: for other laws use "
                ".as_bernoulli(), which rounds each reward r to a Bernoulli(r) bit"
            )
        if not isinstance(drift, Drift):
            raise InvalidInputError(
                "say how the arms drift, with Drift.sites, Drift.step, Drift.season or "
                f"Drift.trend; got {quote(drift)}"
            )
        known = Drift.from_dict(drift.to_dict())
        freeze(self, instance=instance, drift=known, means=instance.means, names=instance.names)

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        return {**self.instance.to_dict(), "law": "drifting", "drift": self.drift.to_dict()}

    @cached_property
    def gaps(self) -> Floats:
        """Refused: times and bounds are for arms that stay as they are."""
        raise InvalidInputError(NO_THEORY)

    def as_bernoulli(self) -> Bernoulli:
        """Refuse: an arm that drifts does not have one law."""
        raise InvalidInputError(NO_THEORY)


def _read_drifting(
    means: ArrayLike, drift: Mapping[str, Any], names: Sequence[str] | None = None
) -> Drifting:
    """Make the instance that `Drifting.to_dict` described."""
    return Drifting(Bernoulli(means, names), Drift.from_dict(drift))


def _read_sampled(rewards: Sequence[ArrayLike], names: Sequence[str] | None = None) -> Instance:
    """Make the instance that `Sampled.to_dict` described."""
    from discreet.past_data import Sampled

    return Sampled(rewards, names)


def _read_gaussian(means: ArrayLike, sigma: float, names: Sequence[str] | None = None) -> Instance:
    """Make the instance that `Gaussian.to_dict` described."""

    return Gaussian(means, sigma, names)


LAWS: dict[str, Any] = {
    "bernoulli": Bernoulli,
    "discrete": Discrete,
    "beta": Beta,
    "drifting": _read_drifting,
    "sampled": _read_sampled,
    "gaussian": _read_gaussian,
}


def check_instance(instance: Any) -> Instance:
    """Refuse what is not an instance."""
    if not isinstance(instance, Instance):
        raise InvalidInputError(f"give an Instance, such as benchmarks.mu4; got {quote(instance)}")
    return instance


def check_bounded(instance: Instance) -> None:
    """Refuse arms whose rewards do not lie in [0, 1], where privacy needs that."""
    if not instance.is_bounded:
        raise InvalidInputError(UNBOUNDED)


def freeze(instance: Instance, /, **fields: object) -> None:
    """Set the fields of an instance that is being made."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def _check_array(what: str, values: ArrayLike) -> Floats:
    array = check_numbers(what, values)
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{what} must be finite numbers: found NaN or infinity")
    return array


def check_vector(what: str, values: ArrayLike, least: int = 2) -> Floats:
    """Return a flat list of finite numbers, `least` of them or more, or refuse it."""
    array = _check_array(what, values)
    if array.ndim != 1:
        raise InvalidInputError(
            f"{what} must be a flat list of numbers; got the shape {array.shape}"
        )
    if len(array) < least:
        raise InvalidInputError(
            f"{what} must contain at least {least}, one for each arm; got {len(array)}"
        )
    return array


def check_in_unit(what: str, values: Floats) -> None:
    """Refuse values outside [0, 1]."""
    outside = values[(values < 0) | (values > 1)]
    if len(outside):
        raise InvalidInputError(f"{what} lies outside [0, 1]: {outside[0]:g}; {RESCALE}")


def choose_names(names: Sequence[str] | None, arms: int) -> tuple[str, ...]:
    """Return the arms' names, the usual ones if none are given."""
    if names is None:
        return tuple(f"arm {i}" for i in range(1, arms + 1))
    if not isinstance(names, list | tuple) or len(names) != arms:
        raise InvalidInputError(
            f"names must be a list of {arms}, one for each arm; got {quote(names)}"
        )
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != arms:
        raise InvalidInputError("each arm needs a name of its own that is not empty")
    return tuple(names)


class Benchmarks(Mapping[str, Bernoulli]):
    """The paper's six Bernoulli instances, as `benchmarks.mu1` or
    `benchmarks["mu1"]`.
    """

    mu1 = Bernoulli((0.95, 0.9, 0.9, 0.9, 0.5))
    mu2 = Bernoulli((0.75, 0.7, 0.7, 0.7, 0.7))
    mu3 = Bernoulli((0, 0.25, 0.5, 0.75, 1))
    mu4 = Bernoulli((0.75, 0.625, 0.5, 0.375, 0.25))
    mu5 = Bernoulli((0.75, 0.53125, 0.375, 0.28125, 0.25))
    mu6 = Bernoulli((0.75, 0.71875, 0.625, 0.46875, 0.25))

    def __iter__(self) -> Iterator[str]:
        """Yield the names mu1 … mu6."""
        return (f"mu{i}" for i in range(1, 7))

    def __len__(self) -> int:
        """Return six."""
        return 6

    def __getitem__(self, name: str) -> Bernoulli:
        """Return the benchmark of that name."""
        if name not in set(self):
            raise KeyError(name)
        instance: Bernoulli = getattr(self, name)
        return instance


benchmarks = Benchmarks()


NO_BITS = (
    "Gaussian rewards do not lie in [0, 1], so they cannot be rounded to bits; their "
    "characteristic times are t_kl and t_gaussian"
)


@dataclass(frozen=True, init=False)
class Gaussian(Instance):
    """Arms with normal rewards of these means and one standard deviation, `sigma`.

    Means may be any numbers, as rewards have no bounds. Strategies without privacy
    that are told a sigma take them; private ones do not, as no noise can hide a reward
    that may be arbitrarily large.
    """

    means: tuple[float, ...]
    sigma: float
    names: tuple[str, ...]
    is_bounded = False

    def __init__(self, means: ArrayLike, sigma: float, names: Sequence[str] | None = None) -> None:
        """Take two or more means, and the standard deviation of all arms' rewards."""
        values = check_vector("means", means)
        freeze(self, means=tuple(values.tolist()), sigma=float(check_sigma(sigma)))
        freeze(self, names=choose_names(names, len(values)))

    @property
    def outcomes(self) -> str:
        """`numbers`."""
        return NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        described = {"law": "gaussian", "means": list(self.means), "sigma": self.sigma}
        return {**described, "names": list(self.names)}

    def as_bernoulli(self) -> Bernoulli:
        """Refuse: there is nothing to round to a bit."""
        raise InvalidInputError(NO_BITS)
