"""The public record of a live trial, and the state that follows from its events.

Nothing here knows a database, and nothing makes noise: whoever has the record can
follow it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import NoConvergenceError
from discreet.strategies.run import Deal, Place, Run, Totals, new_run
from discreet.strategies.strategy import Strategy
from discreet.trials.chain import Event
from discreet.trials.outcomes import largest_response, payable_delta
from discreet.trials.protocol import Protocol, canonical

BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    NoConvergenceError,
)
"""What reading something raises that is not what we wrote."""


# --- the state ------------------------------------------------------------------------


def live_noise(strategy: Strategy) -> float | None:
    """The standard deviation, in rewards, of Gaussian responses; only OpenDP's own map
    knows it.
    """
    if strategy.gamma is None:
        return None
    from discreet.trials.mechanisms import gaussian_noise_scale

    return gaussian_noise_scale(float(strategy.epsilon or 0), strategy.gamma)


def live_run(strategy: Strategy, arms: int, people: int) -> Run:
    """A live run of at most so many people; its thresholds pay for discrete noise."""
    return new_run(strategy, arms, people, payable_delta(strategy), live_noise(strategy))


@dataclass
class Public:
    """What is public and changes: the run, and what is known beside it."""

    run: Run
    releases: int = 0
    stopped: bool = False
    conclusive: bool = False
    cursor: list[int] = field(default_factory=list)
    """Answers taken in, by arm, for strategies that learn from every answer."""

    def dump(self) -> str:
        """The state as text. Stored for ever: names are never changed, only added."""
        state = {
            "releases": self.releases,
            "stopped": self.stopped,
            "conclusive": self.conclusive,
            "cursor": self.cursor,
            "course": self.run.dump(),
        }
        return json.dumps(state)

    def load(self, text: str) -> None:
        """The state that `dump` wrote, or that of an earlier version, which may lack
        names.
        """
        state = json.loads(text)
        self.run.load(state["course"])
        self.releases = _whole(state.get("releases", 0))
        self.stopped = _flag(state.get("stopped", False))
        self.conclusive = _flag(state.get("conclusive", False))
        cursor = state.get("cursor", [0] * self.run.arms)
        self.cursor = [_whole(place) for place in cursor]
        if len(self.cursor) != self.run.arms:
            raise ValueError

    def end(self) -> dict[str, Any]:
        """The trial is over: what the record says about it."""
        self.stopped = True
        self.conclusive = self.run.stopped
        return {"conclusive": self.conclusive, "recommendation": self.run.recommendation}


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def fresh(protocol: Protocol) -> Public:
    """A trial that has not begun."""
    arms = len(protocol.arms)
    return Public(live_run(protocol.strategy, arms, protocol.max_people), cursor=[0] * arms)


# --- a release ------------------------------------------------------------------------


class Release(NamedTuple):
    """What is published about a batch of one arm (or one answer), in units of the
    grid.
    """

    arm: int
    phase: int
    size: int
    sum: int | None
    """None if the batch only entered the number of another arm, its margin."""
    near: int | None = None
    """How close its outcomes are to the announced centre, where that is released."""


def release(
    due: Sequence[Place],
    totals: Sequence[Totals | None],
    grid: int,
    noisy: Callable[[Totals], Totals],
    decide: Callable[..., None],
) -> list[Release]:
    """One release, live or rehearsed, of what a run has combined: noise on each total,
    and decisions from the noisy numbers alone.
    """
    shown = [None if total is None else noisy(total) for total in totals]
    with np.errstate(all="ignore"):  # no warning, made an error, may follow a draw
        decide(*in_rewards([total for total in shown if total is not None], 1 / grid))
    return [
        Release(*batch, None) if total is None else Release(*batch, *total)
        for batch, total in zip(due, shown, strict=True)
    ]


def in_rewards(totals: Sequence[Totals], unit: float) -> list[list[float]]:
    """What was released, on the scale of rewards: sums, and beside them closeness where
    it is released.
    """
    sums = [total.sum * unit for total in totals]
    near = [total.near * unit for total in totals if total.near is not None]
    return [sums, near] if near else [sums]


# --- replay ---------------------------------------------------------------------------


class Seat(NamedTuple):
    """Where a person is: the arm's phase, or where answers are taken in turn the place
    in its line.
    """

    arm: int
    phase: int


SAYS = {
    "created": {"protocol"},
    "assigned": {"first", "arms", "replacing"},
    "released": {"releases", "unit"},
    "answered": {"answers", "unit"},
    "stopped": {"conclusive", "recommendation"},
}
"""What an event of each kind says, and nothing else."""
MAY_SAY = {"released": {"margin"}}
"""What an event of some kinds says beside, where there is such a thing."""
RELEASE = {"arm", "phase", "count", "sum", "epsilon"}
"""What it says about each batch that was released."""
NEAR = {"near"}
"""And where closeness is released beside sums."""


class Replay:
    """The state, from public events alone."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.now = fresh(protocol)
        self.events = 0
        self.places: list[Seat] = []
        """Of each person, in the order of assignment."""
        self.open: dict[int, int] = {}
        """The phase that is being filled, by arm: where somebody is replaced."""
        self.released = [0] * len(protocol.arms)
        """The last phase of each arm that was released."""

    def follow(self, event: Event) -> str | None:
        """Go on by one event; what is wrong with it, if anything."""
        kinds = {
            "created": self._created,
            "assigned": self._assigned,
            "released": self._released,
            "answered": self._answered,
            "stopped": self._stopped,
        }
        self.events += 1
        if event.kind not in kinds or (event.kind == "created") != (self.events == 1):
            return "of a kind that does not exist, or not there"
        if self.now.stopped:
            return "the trial was over before"
        if self.now.run.stopped and event.kind != "stopped":
            return "the strategy had stopped before"
        try:
            says = event.says
            if set(says) - MAY_SAY.get(event.kind, set()) != SAYS[event.kind]:
                return "it does not say what such an event says"
            return kinds[event.kind](says)
        except BROKEN:
            return "it does not say what such an event says"

    def unreleased(self) -> int:
        """People whose outcome is in no release."""
        last = self.now.cursor if self.now.run.learns_always else self.released
        return sum(place.phase > last[place.arm] for place in self.places)

    def _created(self, body: dict[str, Any]) -> str | None:
        return None  # the chain begins with the hash of the protocol

    def _assigned(self, body: dict[str, Any]) -> str | None:
        first, arms, replacing = body["first"], body["arms"], body["replacing"]
        if not _wholes([first, replacing, *arms]) or not 0 <= replacing <= len(arms) > 0:
            raise ValueError
        if first != len(self.places) + 1:
            return "people are numbered wrongly"
        in_turn = self.now.run.learns_always
        if replacing and (self.protocol.missing != "replace" or in_turn):
            return "nobody is replaced by this protocol"
        for offset, arm in enumerate(arms):
            if offset >= replacing:
                place = self.now.run.take(_dealt(arm))
                if place is None or place.arm != arm:
                    return "the strategy would not have assigned this arm"
                self.open[arm] = place.phase
            elif self.open[arm] <= self.released[arm]:
                return "somebody is replaced whose batch was released"
            self.places.append(Seat(arm, self.open[arm]))
        over = len(self.places) > self.protocol.max_people
        return "more people than the protocol allows" if over else None

    def _released(self, body: dict[str, Any]) -> str | None:
        due = [[*batch] for batch in self.now.run.due()]
        releases = body["releases"]
        whole = all(_wholes([one["arm"], one["phase"], one["count"]]) for one in releases)
        says = RELEASE | NEAR if self.now.run.fine else RELEASE
        if not whole or any(set(one) != says for one in releases):
            raise ValueError
        if not due or due != [[one["arm"], one["phase"], one["count"]] for one in releases]:
            return "no such release was due"
        run = self.now.run
        empty = Totals(0, 0 if run.fine else None)
        silent = [total is None for total in run.combine([empty] * len(due))]
        shown = [one for one in releases if one["sum"] is not None]
        margin = shown[0]["arm"] if any(silent) and shown else None
        named = body.get("margin")
        same = type(named) is type(margin) and named == margin
        if silent != [one["sum"] is None for one in releases] or not same:
            return "not the numbers that were to be released"
        numbers = [one[name] for one in shown for name in ("sum", "near") if name in one]
        grid = run.due_grid(self.protocol.grid)
        hidden = [one.get("near") for one in releases if one["sum"] is None]
        if any(near is not None for near in hidden) or not self._in_units(
            body["unit"], numbers, grid
        ):
            return "not in the units of the protocol"
        unnoised = [one["epsilon"] for one in releases if one["sum"] is None]
        if unnoised != [None] * len(unnoised) or not all(
            self._payable(one["epsilon"]) for one in shown
        ):
            return "not of the ε that the protocol promises"
        totals = [Totals(one["sum"], one.get("near")) for one in shown]
        sizes = [one["count"] for one in shown]
        noised = self.protocol.strategy.trust_model.noised
        if not noised and not all(
            run.possible(total, size, grid) for total, size in zip(totals, sizes, strict=True)
        ):
            return "no outcomes in the range of the protocol have this sum"
        for one in releases:
            self.released[one["arm"]] = one["phase"]
        self.now.releases += len(shown)
        run.release(*in_rewards(totals, body["unit"]))
        return None

    def _answered(self, body: dict[str, Any]) -> str | None:
        run = self.now.run
        if not run.learns_always:
            return "this strategy takes no single answers"
        largest = self._largest()
        for number, units in body["answers"]:
            arm, place = self.places[number - 1]
            passed = place - self.now.cursor[arm] - 1
            skipped = passed and self.protocol.missing != "replace"
            if number < 1 or passed < 0 or skipped or run.stopped:
                return "an answer that was taken before, or out of turn"
            if (
                not self._in_units(body["unit"], [units], self.protocol.grid)
                or abs(units) > largest
            ):
                return "not in the units of the protocol"
            self.now.cursor[arm] = place
            run.answer(arm, units * body["unit"])
        self.now.releases += len(body["answers"])
        return None

    def _stopped(self, body: dict[str, Any]) -> str | None:
        run = self.now.run
        if canonical(body) != canonical(self.now.end()):
            return "the strategy would have ended otherwise"
        if run.stopped:
            return None
        if not (run.finished or len(self.places) >= self.protocol.max_people):
            return "an end before the maximum"
        awaited = self.unreleased() if run.learns_always else len(run.due())
        if awaited and self.protocol.missing != "replace":
            return "an end before a release that was to come"
        return None

    def _largest(self) -> float:
        """No answer lies beyond, in units."""
        noise = live_noise(self.protocol.strategy)
        return largest_response(noise, self.protocol.grid)

    def _in_units(self, unit: Any, values: list[Any], grid: int) -> bool:
        """Whether these are whole numbers of such units, of 64 bits as noise is."""
        whole = _wholes(values) and all(abs(value) < 2**63 for value in values)
        return whole and type(unit) is float and unit == 1 / grid

    def _payable(self, epsilon: float | None) -> bool:
        """Whether a release may state this ε: the promised one, but for rounding."""
        promised = self.protocol.strategy.epsilon
        if promised is None or epsilon is None:
            return promised is epsilon
        return type(epsilon) is float and promised * (1 - 1e-6) <= epsilon <= promised


def _dealt(arm: int) -> Deal:
    """Deals what was dealt."""
    return lambda left: arm


def _wholes(values: Sequence[Any]) -> bool:
    """Whether these are whole numbers, and none a truth value."""
    return all(type(value) is int for value in values)
