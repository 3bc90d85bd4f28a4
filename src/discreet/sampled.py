"""Sampled: arms that are given by data, past outcomes drawn with replacement."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats
from discreet.errors import InvalidInputError, TiedBestArmError
from discreet.instance import RESCALE, Instance, arm_names, freeze
from discreet.past import read_outcomes
from discreet.scale import NUMBERS, REFUSE, YES_NO, Scale, check_outside, ends_of, range_words
from discreet.validate import numbers_of
from discreet.words import listed


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Sampled(Instance):
    """Arms given by data: arm a pays one of `rewards[a]`, each as likely as the
    others.

    What is simulated is a trial among people like those in the data. The data itself
    is part of the instance: `to_dict`, and what `Results.save` writes, hold it in full.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    flat: Floats
    """The rewards of all arms, one arm after the other."""
    starts: tuple[int, ...]
    """Where each arm begins in `flat`, and where the last one ends."""
    scale: Scale | None
    """In which units the outcomes were, if known: not part of what is drawn."""
    clipped: int
    """How many outcomes lay outside the range and count as an end of it."""
    _digest: bytes = field(repr=False)

    def __init__(self, rewards: Sequence[ArrayLike], names: Sequence[str] | None = None) -> None:
        """A list of rewards in [0, 1] for each arm; the lists may differ in length."""
        if not isinstance(rewards, Sequence | np.ndarray) or isinstance(rewards, str | bytes):
            raise InvalidInputError("rewards must be a list of lists, one for each arm")
        arms = [_rewards(values, arm) for arm, values in enumerate(rewards, 1)]
        if len(arms) < 2:
            raise InvalidInputError(f"data of at least 2 arms are needed; got {len(arms)}")
        flat = np.concatenate(arms)
        flat.flags.writeable = False
        starts = (0, *np.cumsum([len(arm) for arm in arms]).tolist())
        known = arm_names(_text(names), len(arms))
        digest = hashlib.sha256(repr((known, starts)).encode() + flat.tobytes()).digest()
        means = tuple(_mean(arm) for arm in arms)
        freeze(self, names=known, means=means, flat=flat, starts=starts)
        freeze(self, scale=None, clipped=0, _digest=digest)

    @staticmethod
    def of(
        outcomes: Mapping[str, ArrayLike],
        range: tuple[float, float] | None = None,
        direction: str = "max",
        outside: str = REFUSE,
    ) -> "Sampled":
        """Arms by name, each with its outcomes in the experimenter's units.

        `range` is the smallest and the largest outcome there can be in the trial, and
        may be left out if all outcomes lie in [0, 1]; `direction` says whether more is
        better (`max`) or less (`min`). An outcome outside the range is refused, or with
        `outside="clip"` counts as the nearer end.
        """
        check_outside(outside)
        values = _by_name(outcomes)
        every = np.concatenate(list(values.values()))
        scale = Scale(*(_unit_range(every) if range is None else ends_of(range)), direction)
        ends = np.cumsum([len(some) for some in values.values()])
        made = Sampled(np.split(scale.rewards(every, outside), ends[:-1]), list(values))
        freeze(made, scale=scale, clipped=scale.beyond(every))
        return made

    @staticmethod
    def read(
        path: str | Path,
        arm: str,
        outcome: str,
        range: tuple[float, float] | None = None,
        direction: str = "max",
        outside: str = REFUSE,
    ) -> "Sampled":
        """Read arms from a CSV or Parquet file with a row for each person: the column
        `arm` names the arm, the column `outcome` has the outcome.

        Arms are in the order of their names; numbers in names are sorted by size ("5
        mg" before "10 mg"). The other options are those of `Sampled.of`.
        """
        check_outside(outside)
        return Sampled.of(read_outcomes(path, arm, outcome), range, direction, outside)

    @cached_property
    def rewards(self) -> tuple[Floats, ...]:
        """The rewards of each arm."""
        return tuple(self.flat[first:end] for first, end in pairwise(self.starts))

    @property
    def best(self) -> int:
        """See `Instance.best`; in data, ties have their own causes."""
        if self.unique:
            return super().best
        top = max(self.means)
        tied = [name for name, mean in zip(self.names, self.means, strict=True) if mean == top]
        lie, count = ("lies", "counts") if self.clipped == 1 else ("lie", "count")
        cause = (
            f"{self.clipped} of {len(self.flat)} outcomes {lie} outside the range and {count} as "
            "the nearer end, which can make arms look alike: give a wider range; or "
            if self.clipped
            else ""
        )
        raise TiedBestArmError(
            f"the past outcomes of {listed(tied, 5)} have the same mean, so a plan has no best "
            f"arm: {cause}leave out all but one of them, or give bet-se a zeta, a difference too "
            "small to matter (--zeta)"
        )

    @property
    def width(self) -> float | None:
        """The width of the range of outcomes, in their units, if these are known."""
        return None if self.scale is None else self.scale.high - self.scale.low

    @property
    def counts(self) -> tuple[int, ...]:
        """How many outcomes each arm has."""
        return tuple(len(arm) for arm in self.rewards)

    @property
    def outcomes(self) -> str:
        """`yes-no` if there is nothing but 0 and 1, else `numbers`."""
        return YES_NO if np.isin(self.flat, (0.0, 1.0)).all() else NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`; all rewards are written out."""
        rewards = [arm.tolist() for arm in self.rewards]
        return {"law": "sampled", "rewards": rewards, "names": list(self.names)}

    def describe(self) -> dict[str, Any]:
        """How many outcomes each arm has, and their mean; not the data."""
        return {
            "law": "sampled",
            "names": list(self.names),
            "means": list(self.means),
            "counts": list(self.counts),
        }

    def __eq__(self, other: object) -> bool:
        """Equal if names and rewards are, in this order."""
        return isinstance(other, Sampled) and self._digest == other._digest

    def __hash__(self) -> int:
        """Of the names and rewards."""
        return hash(self._digest)

    def __repr__(self) -> str:
        """Names, and how many rewards there are of each."""
        counts = zip(self.names, self.counts, strict=True)
        return f"Sampled({', '.join(f'{name}: {count} rewards' for name, count in counts)})"


def _mean(values: Floats) -> float:
    """To fifteen digits: means that differ by rounding only are the same."""
    return float(f"{math.fsum(values) / len(values):.15g}")


def _rewards(values: ArrayLike, arm: int) -> Floats:
    found = _numbers(f"arm {arm}", values)
    if ((found < 0) | (found > 1)).any():
        raise InvalidInputError(f"a reward of arm {arm} lies outside [0, 1]; {RESCALE}")
    return found


def _numbers(name: str, values: ArrayLike) -> Floats:
    """Outcomes of an arm as an array of their own."""
    array = numbers_of(f"the data of {name}", values)
    if array.ndim != 1 or not len(array):
        raise InvalidInputError(f"the data of {name} must be a flat list of at least one number")
    if np.isnan(array).any():
        raise InvalidInputError(f"the data of {name} contains NaN: leave these people out")
    return array


def _by_name(outcomes: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """The outcomes of two arms or more."""
    if not isinstance(outcomes, Mapping):
        raise InvalidInputError(
            'outcomes must be a dictionary from each arm to its outcomes: {"a": [3, 8], "b": [5]}'
        )
    if len(outcomes) < 2:
        raise InvalidInputError(f"data of at least 2 arms are needed; got {len(outcomes)}")
    _text(list(outcomes))
    return {name: _numbers(name, given) for name, given in outcomes.items()}


def _text(names: Sequence[str] | None) -> Sequence[str] | None:
    """The names, if these are text."""
    known: Any = names
    if names is None or isinstance(names, str):
        return names
    if not isinstance(known, Sequence) or not all(isinstance(name, str) for name in known):
        raise InvalidInputError('names of arms must be texts: write "1" for an arm called 1')
    return names


def _unit_range(every: Floats) -> tuple[float, float]:
    """(0, 1) if all outcomes lie in it; else what to do."""
    if ((every >= 0) & (every <= 1)).all():
        return 0.0, 1.0
    raise InvalidInputError(range_words(every))
