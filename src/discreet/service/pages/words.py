"""What pages say of a trial, in whole sentences; all of it is read off a status in
plain types.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from discreet.reports.conduct import (
    ahead_words,
    answer_words,
    by_hand,
    flow_words,
    level_words,
    past_words,
)
from discreet.trials.chain import Event
from discreet.trials.conduct import UNBLIND, act_phrase
from discreet.words import closed, counted

Said = Mapping[str, Any]
FEW_ARMS = 12
"""Arms that are named one by one in a line of the record."""


def when(seconds: float | None) -> str:
    """A moment, in the time of nobody's place."""
    if seconds is None:
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def state_words(status: Said) -> str:
    """How a trial stands, in short."""
    if status["stopped"]:
        return "ended with an answer" if status["conclusive"] else "ended without an answer"
    return "paused" if status["paused"] else "running"


def waits_words(status: Said) -> str:
    """What a trial waits for."""
    if status["stopped"]:
        return "Nothing: it has ended."
    if status["paused"]:
        return "A manager, to resume it."
    if status["next_release"]:
        return f"The look at {_outcomes(status['waiting'])} after {when(status['next_release'])}."
    if status["waiting"]:
        return f"{_outcomes(status['waiting']).capitalize()}, before the next look."
    return "More people."


def _outcomes(count: int) -> str:
    return "one outcome" if count == 1 else counted(f"{count:,}", "outcome")


def _of_people(count: int) -> str:
    return counted(f"{count:,}", "person", "people")


def known_words(status: Said, blind: bool) -> list[str]:
    """What is known so far, in sentences."""
    if blind:
        return [flow_words(status), BLIND]
    if not status["stopped"]:
        return [_lead_words(status), flow_words(status)]
    if status["conclusive"]:
        took_part = f"{_of_people(status['people'])} took part.{past_words(status)}"
        return [answer_words(status), took_part]
    ended = "A manager ended the trial" if by_hand(status) else "The trial ended"
    after = f"{ended} without a conclusion, after {_of_people(status['people'])}."
    found = [after, ahead_words(status)]
    if status["smallest_delta"] is not None:
        found.append(
            "The releases would have been enough at an error rate of "
            f"{status['smallest_delta']:.3g} (δ)."
        )
    return found


def _lead_words(status: Said) -> str:
    """Who is ahead while a trial runs."""
    best, level = status["recommendation"], level_words(status)
    if best is None:
        return "Nothing has been released yet, so nobody knows anything about the arms."
    lead = f"{level} are level" if level else f"{best} is doing best"
    return f"So far {lead}. This is not a conclusion: the trial goes on until it can tell."


def evidence_words(share: float | None) -> str:
    """The evidence against an arm, as a share of what puts it out."""
    if share is None:
        return "–"
    return "enough: dropped" if share >= 1 else f"{min(max(share, 0.0), 0.99):.0%}"


BLIND = "This trial is blinded: sites see how the arms did only after the trial has ended."


def event_words(event: Event, arms: Sequence[str]) -> str:
    """A line of the public record, in words."""
    words = EVENTS.get(event.kind)
    return event.kind if words is None else words(event.says, arms)


def _opened(says: Said, _: Sequence[str]) -> str:
    people = _of_people(says["participants"])
    return f"Round {says['round']} was opened for {people}, with a sealed key."


def _manager(says: Said, _: Sequence[str]) -> str:
    about = f" ({says['about']})" if says.get("about") is not None else ""
    who = "Staff" if says["action"] == UNBLIND else "Manager"
    return f"{who}: {act_phrase(says['action'])}{about}. Reason: {says['reason']}"


def _stopped(says: Said, _: Sequence[str]) -> str:
    return f"The trial ended {'with' if says.get('conclusive') else 'without'} an answer."


def _assigned(says: Said, arms: Sequence[str]) -> str:
    site = f" at {closed(says['site'])}" if says.get("site") else ""
    return f"{_people(says, arms)}{site}{_at(says)}."


def _people(says: Said, arms: Sequence[str]) -> str:
    places = says["arms"]
    first, last = says["first"], says["first"] + len(places) - 1
    if first == last:
        return f"Person {first} was assigned to {_arm(arms, places[0])}"
    counts = {arm: places.count(arm) for arm in sorted(set(places))}
    if len(counts) > FEW_ARMS:
        return f"People {first} to {last} were assigned"
    spread = ", ".join(f"{count} to {_arm(arms, arm)}" for arm, count in counts.items())
    return f"People {first} to {last} were assigned: {spread}"


def _released(says: Said, arms: Sequence[str]) -> str:
    batches = [
        f"{_arm(arms, one['arm'])}: {_sum(one, says)} over {_of_people(one['count'])}"
        for one in says["releases"][:FEW_ARMS]
    ]
    more = len(says["releases"]) - len(batches)
    words = "; ".join(batches) + (f"; and {more} more" if more else "")
    how = "as sums of outcomes on a scale from 0 (worst) to 1 (best)"
    return f"Released, with noise, {how}: {words}{_at(says)}."


def _at(says: Said) -> str:
    return f", {when(says['at'])}" if "at" in says else ""


def _sum(one: Said, says: Said) -> str:
    return "nothing" if one["sum"] is None else f"{one['sum'] * says['unit']:.6g}"


def _arm(arms: Sequence[str], place: Any) -> str:
    known = isinstance(place, int) and 0 <= place < len(arms)
    return closed(arms[place]) if known else "?"


EVENTS: dict[str, Callable[[Said, Sequence[str]], str]] = {
    "created": lambda *_: "The trial began; its protocol is frozen.",
    "opened": _opened,
    "assigned": _assigned,
    "released": _released,
    "answered": lambda says, _: f"{len(says['answers'])} randomised answers were recorded.",
    "managed": _manager,
    "stopped": _stopped,
}
"""How each kind of event is told."""
