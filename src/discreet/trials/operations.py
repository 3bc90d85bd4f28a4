"""The conduct of a trial: what sites and managers have done, all of it public.

A manager may do what the proofs allow, gives a reason, and all of it stands in the
record. What each action means for the guarantee is on the docs page "What the guarantee
means".
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.strategies.run import Run
from discreet.trials.names import (
    MAX_NAME_LENGTH,
    check_arms,
    check_distinct,
    is_site_name,
    is_writable,
)
from discreet.trials.protocol import Protocol
from discreet.trials.settings import (
    MAX_PARTICIPANTS,
)
from discreet.validation import is_word, quote

MAX_REASON_LENGTH = 1000
DROP, ADD, UNBLIND = "drop-arm", "add-arm", "unblind"
RAISE, LOWER, SET_CLOCK, RESTORED = "raise-maximum", "lower-maximum", "set-clock", "restored"

_MAXIMUM_MEANING = (
    "the error rate holds at every size at once: a maximum only says when the last look is"
)

MEANINGS = {
    RAISE: _MAXIMUM_MEANING,
    LOWER: _MAXIMUM_MEANING,
    "pause": (
        "nobody is assigned during the pause. The deadlines of people who are in keep running, so "
        "keep telling outcomes"
    ),
    "resume": (
        "nobody was assigned during the pause; the deadlines of people who were in kept running"
    ),
    "stop": (
        "the end is inconclusive; the smallest error rate that is shown for it is valid whatever "
        "the reason was"
    ),
    "close-site": (
        "people who are in stay in; from then on the answer is about the people who still come"
    ),
    "open-site": "from then on the answer is also about its people",
    DROP: (
        "all bets start again among the arms that are left. Nothing more is released about the "
        "people of the dropped arm, and rounds that were open are released without bets. Given "
        "everything before, the probability that the trial ends with an arm that is not the best "
        "of those left is at most δ; over a whole trial with h arms dropped, at most (h + 1) δ"
    ),
    ADD: (
        "the new arm is compared only with people who are assigned at the same time. With h arms "
        "added the error rate is at most (h + 1) δ, and at most δ if the best of all arms was "
        "there from the start"
    ),
    SET_CLOCK: (
        "the clock that decides deadlines was set back. Deadlines that had passed by the wrong "
        "clock stay passed, whatever the outcomes. For everybody else in the trial, the time until "
        "the deadline is counted from now at the latest"
    ),
}
"""What a manager may do, and what it means for the guarantee."""
LABELS = {
    "pause": "Pause",
    "resume": "Resume",
    "stop": "Stop for good",
    RAISE: "Raise the maximum",
    LOWER: "Lower the maximum",
    "close-site": "Close a site",
    "open-site": "Open a site",
    DROP: "Drop an arm",
    ADD: "Add an arm",
    SET_CLOCK: "Set the clock back",
    UNBLIND: "Reveal the arm of a person",
    RESTORED: "Restore the record from a backup",
}
"""What managers do, as pages say it, in the order in which it is offered; commands,
records and programs have words of their own for it.
"""
IRREVERSIBLE = ("stop", DROP, ADD)
"""What cannot be taken back. (A maximum that was lowered can be raised again, unless
the trial has ended by it.)
"""
RECORDED_MEANINGS = MEANINGS | {
    UNBLIND: (
        "staff know the arm of this person (its number is given). What the error rate means for "
        "everybody else is as before"
    ),
    RESTORED: (
        "the record was restored from a backup that may not be the latest. What was released after "
        "it may be released again, with fresh noise: the people concerned have then spent their ε "
        "twice"
    ),
}
"""The same, with what is no action of a manager's: unblinding, and what only a
restore writes.
"""
RESTORED_WORDS = (
    "Not so for people whose outcomes were released again after the record was restored from a "
    "backup (see what managers did): they may have spent twice as much"
)
"""What a restore has left of the promise of privacy."""
REFUSED_ACTIONS = {
    "epsilon": (
        "ε cannot be changed: a larger one would break the promise made to the people who are "
        "in, and a smaller one for those still to come would be another trial"
    ),
    "delta": (
        "δ cannot be changed: if it is raised after a look at the releases, it means nothing. "
        "At an inconclusive end the status shows the smallest error rate that the releases "
        "support, and you may look at that freely"
    ),
    "redo-round": (
        "a round cannot be redone, cut or left out because of its outcomes: that would be "
        "choosing among results, and its people's ε would be spent twice"
    ),
    "deadline": "the deadline cannot be changed: it defines the outcome. Start another trial",
    "range": "the range cannot be changed: it defines the outcome. Start another trial",
    "randomisation": "how arms are assigned cannot be changed: the error rate rests on it",
}
"""What a manager may not do, and why."""
NO_MANAGEMENT_ACTIONS = {
    RESTORED: "only a restore records this: discreet trial restore",
    UNBLIND: "say whose arm must be known: discreet trial unblind NAME ID --reason …",
}
"""What stands in records, and is no action of a manager's."""
SET_CLOCK_TAKES_REASON = "set-clock takes a reason and nothing else: the time comes from the clock"


MAX_TIME = 10**12
"""Seconds of a clock: no year of five digits."""


class ManagementAction(NamedTuple):
    """What a manager did."""

    action: str
    about: str | int | None
    """The arm, the site, or the new maximum."""
    reason: str


@dataclass
class Management:
    """What sites and managers have done so far."""

    maximum: int
    arms: list[str]
    """Their names; those that were added come last."""
    dropped_arms: list[str] = field(default_factory=list)
    paused: bool = False
    ended: bool = False
    """Stopped by hand."""
    sites: dict[str, int] = field(default_factory=dict)
    """People of each site, in the order in which sites came."""
    closed_sites: list[str] = field(default_factory=list)
    """Sites that are closed."""
    opened_sites: list[str] = field(default_factory=list)
    """Sites that were opened beside those of the protocol."""
    actions: list[ManagementAction] = field(default_factory=list)
    at: int = 0
    """The last time that the record tells, in seconds, where it tells any."""
    last_arrivals: list[list[int]] = field(default_factory=list)
    """[round, time] of the last person of each round that is not released, where the
    record tells times.
    """

    @property
    def added_arms(self) -> int:
        """Arms that were added."""
        return sum(act.action == ADD for act in self.actions)

    @property
    def arm_changes(self) -> int:
        """How often an arm was dropped or added: each time costs one δ."""
        return sum(act.action in (DROP, ADD) for act in self.actions)

    def dump(self) -> dict[str, Any]:
        """Return it in plain types."""
        return {**asdict(self), "actions": [list(act) for act in self.actions]}

    @staticmethod
    def load(state: dict[str, Any]) -> "Management":
        """What `dump` wrote."""
        return Management(
            **{**state, "actions": [ManagementAction(*act) for act in state["actions"]]}
        )

    def list_sites(self, protocol: Protocol) -> list[str] | None:
        """The sites that people may come from, those that are closed among them; None:
        anywhere.
        """
        return None if protocol.sites is None else [*protocol.sites, *self.opened_sites]

    def count_site(self, site: str, people: int) -> None:
        """Count people of a site."""
        self.sites[site] = self.sites.get(site, 0) + people

    def note_arrival(self, round: int) -> None:
        """Somebody of a round has come at the last time told."""
        if self.last_arrivals and self.last_arrivals[-1][0] == round:
            self.last_arrivals[-1][1] = self.at
        else:
            self.last_arrivals.append([round, self.at])

    def is_past_deadline(self, round: int, deadline: float, now: int) -> bool:
        """Whether the deadline has passed for all people of a round."""
        return now >= self.compute_release_time(round, deadline)

    def compute_release_time(self, round: int, deadline: float) -> int:
        """From when on it has, in whole seconds."""
        came = [at for number, at in self.last_arrivals if number <= round]
        return math.floor(max(came, default=-deadline) + deadline) + 1

    def note_release(self, round: int, now: int) -> None:
        """A round was released at this time."""
        self.at = now
        self.last_arrivals = [entry for entry in self.last_arrivals if entry[0] > round]

    def apply(self, act: ManagementAction, run: Run, people: int, protocol: Protocol) -> None:
        """Do what a manager wants, or refuse it with the reason and change
        nothing.
        """
        word = act.action if isinstance(act.action, str) else ""
        if word in REFUSED_ACTIONS:
            raise InvalidInputError(REFUSED_ACTIONS[word])
        if word not in RECORDED_MEANINGS:
            raise InvalidInputError(
                f"a manager may do one of {', '.join(MEANINGS)}; got {quote(act.action)}"
            )
        check_reason(act.reason)
        handlers: dict[str, Callable[[], None]] = {
            RAISE: lambda: self._maximum(act, run, people, protocol),
            LOWER: lambda: self._maximum(act, run, people, protocol),
            SET_CLOCK: lambda: self._set_clock(act.about),
            RESTORED: lambda: _refuse_argument(act.about, RESTORED),
            "pause": lambda: self._pause(True, act.about),
            "resume": lambda: self._pause(False, act.about),
            "stop": lambda: self._stop(act.about),
            "close-site": lambda: self._site(act.about, False, protocol),
            "open-site": lambda: self._site(act.about, True, protocol),
            DROP: lambda: self._drop(act.about, run),
            ADD: lambda: self._add(act.about, run),
            UNBLIND: lambda: _unblind(act.about, people, protocol),
        }
        handlers[act.action]()
        self.actions.append(act)

    def _maximum(self, act: ManagementAction, run: Run, people: int, protocol: Protocol) -> None:
        about: Any = act.about
        if type(about) is not int or not people <= about <= MAX_PARTICIPANTS or about < 1:
            raise InvalidInputError(
                f"the maximum must be a whole number from {max(people, 1)}, the people who are in, "
                f"to {MAX_PARTICIPANTS}; got {quote(about)}"
            )
        if about == self.maximum:
            raise InvalidInputError(f"the maximum is {about} already")
        if act.action == (LOWER if about > self.maximum else RAISE):
            raise InvalidInputError(
                f"the maximum is {self.maximum}: {act.action} needs one that is "
                f"{'smaller' if act.action == LOWER else 'larger'}; got {about}"
            )
        run.set_cap(about)
        self.maximum = about

    def _pause(self, wanted: bool, about: Any) -> None:
        _refuse_argument(about, "pause" if wanted else "resume")
        if self.paused == wanted:
            raise InvalidInputError(f"the trial is {'paused already' if wanted else 'not paused'}")
        self.paused = wanted

    def _set_clock(self, about: Any) -> None:
        if type(about) is not int or not 0 <= about < MAX_TIME:
            raise InvalidInputError(SET_CLOCK_TAKES_REASON)
        self.at = min(self.at, about)
        self.last_arrivals = [[round, min(at, about)] for round, at in self.last_arrivals]

    def _stop(self, about: Any) -> None:
        _refuse_argument(about, "stop")
        self.ended = True

    def _site(self, about: Any, wanted: bool, protocol: Protocol) -> None:
        known = self.list_sites(protocol)
        if not is_site_name(about) or (known is not None and about not in known and not wanted):
            names = ", ".join(self.sites if known is None else known) or "none yet"
            raise InvalidInputError(f"give the name of a site; got {quote(about)}, sites: {names}")
        if wanted and known is not None and about not in known:
            check_distinct("sites", [*known, about])
            self.opened_sites.append(about)
        elif (about in self.closed_sites) != wanted:
            raise InvalidInputError(f"{about} is {'open' if wanted else 'closed'} already")
        elif wanted:
            self.closed_sites.remove(about)
        else:
            self.closed_sites.append(about)

    def _drop(self, about: Any, run: Run) -> None:
        left = [arm for arm in self.arms if arm not in self.dropped_arms]
        if not is_word(about, left):
            raise InvalidInputError(
                f"give the name of an arm to drop; got {quote(about)}, arms: {', '.join(left)}"
            )
        if len(left) <= 2:
            raise InvalidInputError("two arms must be left: stop the trial instead")
        run.drop_arm(self.arms.index(about))
        self.dropped_arms.append(about)

    def _add(self, about: Any, run: Run) -> None:
        if not is_writable(about) or len(about) > MAX_NAME_LENGTH or about in self.arms:
            raise InvalidInputError(
                f"give the new arm a name of its own, of at most {MAX_NAME_LENGTH} characters; got "
                f"{quote(about)}"
            )
        check_arms([*self.arms, about])
        run.add_arm()
        if run.is_finished:
            raise InvalidInputError(
                "with another arm no round fits below the maximum: raise the maximum first"
            )
        self.arms.append(about)


def action_label(action: str) -> str:
    """A manager's action, as a page calls it."""
    return LABELS.get(action, action)


def action_phrase(action: str) -> str:
    """The same within a sentence."""
    name = action_label(action)
    return f"{name[:1].lower()}{name[1:]}"


def check_reason(reason: Any) -> str:
    """The reason for something that stands in the public record."""
    if not is_writable(reason) or len(reason) > MAX_REASON_LENGTH:
        raise InvalidInputError(
            f"give a reason, a text of at most {MAX_REASON_LENGTH} characters. It is published, so "
            "it must not name a person or an outcome"
        )
    return str(reason)


def _unblind(about: Any, people: int, protocol: Protocol) -> None:
    if not protocol.is_blinded:
        raise InvalidInputError("nobody is blinded in this trial: ask shows the arms")
    if type(about) is not int or not 1 <= about <= people:
        raise InvalidInputError("say whose arm must be known, by the person's number")


def _refuse_argument(about: Any, action: str) -> None:
    if about is not None:
        raise InvalidInputError(f"{action} takes a reason and nothing else; got {quote(about)}")
