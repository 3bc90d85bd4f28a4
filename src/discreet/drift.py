"""Drift: how far the chances of success of all arms move together, from person to
person.

People are counted from 0, in the order in which they are enrolled, over the whole run.
A `Drift` is numbers only, so that a compiled loop can ask `shift` for each person.
"""

import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.leaf import leaf
from discreet.validate import check_whole, quoted

STEADY, SITES, STEP, SEASON, TREND = range(5)
MOST_PEOPLE = 10**12
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
        """Two sites that enrol `block` people in turn: `size` up in the first, down in
        the second.
        """
        return _drift("sites", size, block)

    @staticmethod
    def step(size: float, at: int) -> "Drift":
        """No shift before person number `at`, a shift of `size` from that person on."""
        return _drift("step", size, at)

    @staticmethod
    def season(size: float, period: int) -> "Drift":
        """A wave: `size` times the sine of 2π · person / `period`."""
        return _drift("season", size, period)

    @staticmethod
    def trend(size: float, over: int) -> "Drift":
        """A straight line from 0 at person 0 to `size` at person `over`, constant from
        there on.
        """
        return _drift("trend", size, over)

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> "Drift":
        """The drift that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise InvalidInputError(
                f'describe a drift as {{"kind": "step", "size": 0.1, "at": 100}}; got '
                f"{quoted(description)}"
            )
        parts = dict(description)
        kind = parts.pop("kind", None)
        if kind not in KINDS:
            raise InvalidInputError(f"unknown drift {quoted(kind)}: use one of {', '.join(KINDS)}")
        wanted = {"size", KINDS[kind][1]}
        if set(parts) != wanted:
            raise InvalidInputError(
                f"a drift of the kind {kind} has {' and '.join(sorted(wanted))}; got "
                f"{', '.join(sorted(map(str, parts))) or 'neither'}"
            )
        return _drift(kind, parts["size"], parts[KINDS[kind][1]])

    def to_dict(self) -> dict[str, Any]:
        """A description in plain types from which `Drift.from_dict` makes an equal
        drift.
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


@leaf
def shift(drift: Drift, person: int) -> float:
    """How far the drift moves every arm's chance of success for this person."""
    if drift.kind == SITES:
        return drift.size if (person // drift.people) % 2.0 == 0.0 else -drift.size
    if drift.kind == STEP:
        return drift.size if person >= drift.people else 0.0
    if drift.kind == SEASON:
        return drift.size * math.sin(2.0 * math.pi * (person % drift.people) / drift.people)
    if drift.kind == TREND:
        return drift.size * min(person / drift.people, 1.0)
    return 0.0


def _drift(kind: str, size: float, people: float) -> Drift:
    code, name, least = KINDS[kind]
    if isinstance(size, bool) or not isinstance(size, numbers.Real) or not -1 <= size <= 1:
        raise InvalidInputError(
            f"the size of a drift must be a number between -1 and 1; got {quoted(size)}"
        )
    return Drift(code, float(size), float(check_whole(name, people, least, MOST_PEOPLE)))
