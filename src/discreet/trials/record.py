"""What is public about a live trial and changes, and how it follows from the record of public events."""

import json
from dataclasses import dataclass, field
from typing import Any

from discreet.strategies.run import Run
from discreet.strategies.stream.run import StreamRun
from discreet.trials.mechanisms import largest_response
from discreet.trials.protocol import Protocol
from discreet.trials.store.schema import Event

PLAIN = ("releases", "stopped", "conclusive", "cursor")


@dataclass
class Public:
    """What is public and changes: the course, and what is known beside it."""

    course: Run
    releases: int = 0
    stopped: bool = False
    conclusive: bool = False
    cursor: list[int] = field(default_factory=list)
    """Answers taken in, by arm, for strategies that learn from every answer."""

    def dump(self) -> str:
        """The state as text."""
        plain = {name: getattr(self, name) for name in PLAIN}
        return json.dumps({**plain, "course": self.course.dump()})

    def load(self, text: str) -> None:
        """The state that `dump` wrote."""
        state = json.loads(text)
        self.course.load(state["course"])
        for name in PLAIN:
            setattr(self, name, state[name])


def fresh(protocol: Protocol) -> Public:
    """A trial that has not begun."""
    return Public(protocol.course(), cursor=[0] * len(protocol.arms))


class Replay:
    """The state, from public events alone."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol, self.now = protocol, fresh(protocol)
        self.events = 0
        self.places: list[tuple[int, int]] = []
        """(arm, phase) of each person; where answers are taken in turn, the place among the arm's people."""
        self.open: dict[int, int] = {}
        """The phase that is being filled, by arm: where somebody is replaced."""

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
        if self.now.course.stopped and event.kind != "stopped":
            return "the strategy had stopped before"
        try:
            return kinds[event.kind](event.says)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
            return "it does not say what such an event says"

    def _created(self, body: dict[str, Any]) -> str | None:
        return None  # the chain begins with the hash of the protocol

    def _assigned(self, body: dict[str, Any]) -> str | None:
        if body["first"] != len(self.places) + 1:
            return "people are numbered wrongly"
        if body["replacing"] and self.protocol.missing != "replace":
            return "nobody is replaced by this protocol"
        for offset, arm in enumerate(body["arms"]):
            if offset >= body["replacing"]:
                place = self.now.course.take()
                if place is None or place.arm != arm:
                    return "the strategy would not have assigned this arm"
                self.open[arm] = place.phase
            self.places.append((arm, self.open[arm]))
        over = len(self.places) > self.protocol.max_people
        return "more people than the protocol allows" if over else None

    def _released(self, body: dict[str, Any]) -> str | None:
        due = [[*batch] for batch in self.now.course.due()]
        if due != [[one["arm"], one["phase"], one["count"]] for one in body["releases"]]:
            return "no such release was due"
        if body["unit"] != 1 / self.protocol.grid or not all(type(one["sum"]) is int for one in body["releases"]):
            return "not in the units of the protocol"
        if not all(self._payable(one["epsilon"]) for one in body["releases"]):
            return "not of the ε that the protocol promises"
        self.now.releases += len(due)
        self.now.course.release([one["sum"] * body["unit"] for one in body["releases"]])
        return None

    def _answered(self, body: dict[str, Any]) -> str | None:
        course = self.now.course
        if not isinstance(course, StreamRun):
            return "this strategy takes no single answers"
        largest = (
            largest_response(self.protocol.strategy) if self.protocol.strategy.trust == "local" else self.protocol.grid
        )
        for number, units in body["answers"]:
            arm, place = self.places[number - 1]
            passed = place - self.now.cursor[arm] - 1
            if number < 1 or passed < 0 or (passed and self.protocol.missing != "replace") or course.stopped:
                return "an answer that was taken before, or out of turn"
            if type(units) is not int or abs(units) > largest or body["unit"] != 1 / self.protocol.grid:
                return "not in the units of the protocol"
            self.now.cursor[arm] = place
            course.answer(arm, units * body["unit"])
        self.now.releases += len(body["answers"])
        return None

    def _stopped(self, body: dict[str, Any]) -> str | None:
        now, course = self.now, self.now.course
        now.stopped, now.conclusive = True, course.stopped
        if (body["conclusive"], body["recommendation"]) != (now.conclusive, course.recommendation):
            return "the strategy would have ended otherwise"
        early = not (course.finished or len(self.places) >= self.protocol.max_people)
        return "an end before the maximum" if early else None

    def _payable(self, epsilon: float | None) -> bool:
        """Whether a release may state this ε."""
        promised = self.protocol.strategy.epsilon
        return epsilon is None if promised is None else epsilon is not None and 0 < epsilon <= promised
