"""Parts of a strategy that are functions of your own: a threshold, a bonus, a grid.
There is no guarantee but yours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.validate import quoted


@dataclass(frozen=True)
class CustomThreshold:
    """A stopping threshold of your own, to be compared with the transportation cost
    W^G.

    For phased estimators it is `function(count_best, count_other)` on arrays of counts.
    For estimators that release every sample it is `function(count)` of one arm's count,
    nondecreasing; its values for the two arms are added up. discreet guarantees nothing
    for it: whether the error rate holds is for you to prove.
    """

    name: str
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomBonus:
    """A confidence bonus of your own, by which the leader is chosen: `function(count)`,
    where `count` is an array of an arm's counts.
    """

    name: str
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomGrid:
    """When a phased estimator renews an arm's mean: `function(phase)` is the number of
    the arm's pulls when that phase is complete. It must grow, and be 1 for phase 1.
    """

    name: str
    function: Callable[[int], int]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


def checked_table(what: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Values of a function as the table a kernel reads: of the right shape and without
    NaN, or refused.
    """
    array = np.asarray(values, dtype=np.float64)
    try:
        table = np.ascontiguousarray(np.broadcast_to(array, shape)).copy()
    except ValueError:
        raise InvalidInputError(
            f"your {what} must give one number for each count: asked for the shape {shape}, got "
            f"{array.shape}"
        ) from None
    if np.isnan(table).any():
        raise InvalidInputError(f"your {what} gives NaN for some counts")
    return table


def _check_callable(name: str, function: object) -> None:
    if not callable(function):
        raise InvalidInputError(f"{quoted(name)} needs a function; got {quoted(function)}")
