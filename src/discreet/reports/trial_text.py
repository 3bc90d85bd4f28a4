"""How a trial is conducted, in words and rows: the same on a page and in a terminal.

All of it is read off a status in plain types.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from discreet.strategies.estimators import SIMPLE
from discreet.strategies.strategy import Strategy
from discreet.trials.operations import ADD, DROP, RESTORED, RESTORED_WORDS, action_label
from discreet.trials.protocol import CLAIM
from discreet.trials.settings import (
    CONTINUOUS,
    RANDOMISATION,
    RELEASE,
    SCHEDULED,
)
from discreet.wording import (
    describe_privacy,
    describe_unprotected,
    format_count,
    format_likelihood_ratio,
    format_percent,
    isolate_name,
    join_names,
)

Said = Mapping[str, Any]
"""A status in plain types."""
PAUSED = "is paused: nobody is assigned until a manager resumes it"
DROPPED, ADDED = "dropped by a manager", "added later"
ARM_ACTS = {DROP: DROPPED, ADD: ADDED}
UNITS = {"days": 86_400, "hours": 3600, "minutes": 60}
ACT_HEAD = ("action", "about", "reason", "meaning")
ACT_WORDS = ("reason", "meaning")
"""The columns of these that are words."""
SITE_HEAD = ("site", "participants", "now")
FEW_ARMS = 12
"""Arms that are named one by one in a sentence."""
SAME = 1e-12
"""By so much, as a share, two means differ that only arithmetic made unlike."""


def format_duration(seconds: float) -> str:
    """A time as people say it: 604800 is 7 days, 5400 is 90 minutes."""
    for unit, size in UNITS.items():
        count, rest = divmod(seconds, size)
        if count and not rest:
            return format_count(f"{count:.0f}", unit[:-1])
    return format_count(f"{seconds:g}", "second")


def describe_enrolment(status: Said) -> str:
    """How many people there are, whose outcomes are not in, and what is waited for."""
    if not status["participants"]:
        most = f"{status['max_participants']:,} participants"
        return f"Nobody has been enrolled yet; at most {most} can be."
    here = f"{status['participants']:,} of at most {status['max_participants']:,} participants"
    pending = f"{status['pending']:,}"
    if status["stopped"] and status["pending"]:
        left = format_count(pending, "outcome was", "outcomes were")
        return f"{here}; {left} not analysed, and will not be.{describe_missed_deadlines(status)}"
    if status["release"] != RELEASE[SCHEDULED]:
        if not status["pending"]:
            known = "recorded or missing" if status["past_deadline"] else "recorded"
            return f"{here}; all outcomes are {known}.{describe_missed_deadlines(status)}"
        waits = (
            f"; the next interim analysis waits for {status['waiting']:,}"
            if status["waiting"]
            else ""
        )
        out = format_count(pending, "outcome is", "outcomes are")
        return f"{here}; {out} not recorded{waits}.{describe_missed_deadlines(status)}"
    left = format_count(pending, "outcome, recorded or not, has", "outcomes, recorded or not, have")
    words = f"{here}; {left} not been analysed yet"
    if at := status["next_release"]:
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        looked = format_count(f"{status['waiting']:,}", "of them is", "of them are")
        words += f"; {looked} analysed after {moment} UTC"
    return f"{words}.{describe_missed_deadlines(status)}"


def describe_missed_deadlines(status: Said) -> str:
    """How many deadlines have passed, where there are any."""
    past = status["past_deadline"]
    if not past:
        return ""
    whose = format_count(f"{past:,}", "participant")
    return f" The deadline of {whose} has passed, whether their outcomes were recorded or not."


def is_stopped_by_manager(status: Said) -> bool:
    """Whether a manager has ended the trial."""
    return any(act["action"] == "stop" for act in status["actions"])


def describe_end(status: Said) -> str:
    """How a trial that is inconclusive has ended."""
    return "was stopped by a manager" if is_stopped_by_manager(status) else "ended at its maximum"


def list_guarantees(status: Said, met: bool = True) -> list[tuple[str, str]]:
    """What is promised beside privacy and error rate: a title and a phrase each. If the
    error rate is not `met`, as the end was inconclusive, nothing is said of it.
    """
    seconds = status["deadline"]
    deadline = "" if seconds is None else describe_deadline(seconds)
    found = [
        ("Error probability", status["guarantee"] if met else ""),
        ("Error probability after protocol changes", explain_error_rate(status) if met else ""),
        ("Allocation", status["randomisation"]),
        ("Interim analyses", status["release"]),
        ("Enrolment", status["enrolment"]),
        ("Deadline", deadline),
        ("Returning participants", status["returning"]),
        ("Erasing", status["erasing"]),
    ]
    return [(title, words) for title, words in found if words]


def describe_deadline(seconds: float) -> str:
    """What a deadline is."""
    return (
        f"an outcome counts if it is recorded within {format_duration(seconds)} of the "
        "participant's "
        "assignment; otherwise it is missing and counts as the worst outcome"
    )


def explain_intervals(status: Said, level: str) -> str:
    """Which mean an interval covers."""
    words = (
        f"With a probability of at least {level}, the confidence sequence of an arm contains its "
        "true mean at every interim analysis, provided that this mean is the same for all "
        "participants and does not change over time."
    )
    if status["randomisation"] == RANDOMISATION[SIMPLE]:
        words += (
            " If sites differ or outcomes drift, the error probability holds, but the confidence "
            "sequences do not."
        )
    return f"{words}{_overlap_words(status)}"


def _overlap_words(status: Said) -> str:
    """Why intervals that overlap do not contradict what was found, where they do."""
    ends = {arm["name"]: arm["interval"] for arm in status["arms"] if arm["interval"]}
    best = ends.pop(status["recommendation"], None)
    if best is None or not any(low <= best[1] and best[0] <= high for low, high in ends.values()):
        return ""
    return (
        " Confidence sequences may overlap although an arm was eliminated: the trial compares the "
        "arms directly with each other, and the sequence of each mean alone is wider."
    )


def name_tied_arms(status: Said) -> str:
    """The arms that lead together, with the same released mean; empty if one leads, if
    the trial found the best, or if nothing was released. Every page that says which arm
    does best asks here first.
    """
    best = status["recommendation"]
    means = {arm["name"]: arm["mean"] for arm in status["arms"]}
    most = means.get(best)
    if most is None or status["conclusive"]:
        return ""
    apart = _apart(best, status)
    level = [
        name
        for name, mean in means.items()
        if mean is not None and math.isclose(mean, most, rel_tol=SAME) and name not in apart
    ]
    if len(level) < 2:
        return ""
    return (
        f"{len(level)} arms"
        if len(level) > FEW_ARMS
        else join_names([isolate_name(a) for a in level])
    )


def _apart(best: str, status: Said) -> set[str]:
    """Arms that are behind whatever their mean is: dropped by a manager, or by a difference
    that was released in place of means.
    """
    apart = {name for name, note in note_arm_changes(status).items() if DROPPED in note}
    for lead in status["leads"]:
        between = {lead["name"], *lead["over"]}
        if lead["better_by"] and best in between:
            apart |= between - {best}
    return apart


def choose_best_mark(status: Said) -> str:
    """What stands beside the name of the arm that leads; nothing where arms are
    level.
    """
    if status["conclusive"]:
        return "best"
    return "" if name_tied_arms(status) else "best so far"


def describe_leader(status: Said) -> str:
    """Who was ahead when a trial ended without an answer."""
    if status["recommendation"] is None:
        return "There was no interim analysis."
    if level := name_tied_arms(status):
        return f"In the end {level} were level. No arm was found to be the best."
    best = status["recommendation"]
    return f"The arm that did best so far was {best}. It was not found to be the best."


def state_conclusion(status: Said) -> str:
    """State the result of a conclusive trial, with the condition of its guarantee beside
    it. Pages, reports and quotations take it from here.
    """
    remaining = any(DROPPED in note for note in note_arm_changes(status).values())
    best = "the best of the remaining arms" if remaining else "the best arm"
    named = f"{status['recommendation']} was identified as {best} by a prespecified procedure"
    guarantee = status["guarantee"].partition(". ")[0]
    if status["error_rate"] is None:
        return f"{named}. No error probability is claimed: {guarantee}."
    rate = format_percent(status["error_rate"])
    return (
        f"{named} whose error probability is at most {rate}. {guarantee[0].upper()}{guarantee[1:]}."
    )


def explain_privacy(epsilon: float | None, words: str, gamma: float | None = None) -> str:
    """What privacy means, in plain words first."""
    if epsilon is None:
        return words
    beside = "" if gamma is None else f", except for events of probability at most γ = {gamma:g}"
    return (
        f"whatever one participant's outcome was, {_likely_words(epsilon)} (ε = "
        f"{epsilon:g}){beside}. "
        f"In technical terms: {describe_privacy(words)}"
    )


def _likely_words(epsilon: float) -> str:
    """How much another outcome may change what is shown, true at every level."""
    times = format_likelihood_ratio(epsilon)
    if not times:
        return describe_unprotected("what is published", " with another outcome")
    return (
        "the probability of everything that is published would have been at most "
        f"{times} times (e^ε) as large or as small with another outcome"
    )


def note_arm_changes(status: Said) -> dict[str, str]:
    """What managers did to arms, by the arm's name."""
    notes = dict[str, str]()
    for act in status["actions"]:
        if kind := ARM_ACTS.get(act["action"]):
            before = notes.get(act["about"])
            notes[act["about"]] = f"{before}, {kind}" if before else kind
    return notes


def describe_arm_changes(status: Said) -> str:
    """Which arms came and went by hand, and which the answer is about."""
    notes = note_arm_changes(status)
    came = [name for name, note in notes.items() if ADDED in note]
    gone = [name for name, note in notes.items() if DROPPED in note]
    words = [f"{_were(came)} {ADDED}."] if came else []
    if gone:
        words.append(f"{_were(gone)} {DROPPED}: the answer is about the arms that were left.")
    return " ".join(words)


def _were(names: list[str]) -> str:
    return f"{', '.join(names)} {'was' if len(names) == 1 else 'were'}"


def explain_error_rate(status: Said) -> str:
    """What the error rate is where arms were dropped or added, each of which costs one
    δ.
    """
    rate = status["error_rate"]
    if rate is None or not note_arm_changes(status):
        return ""
    return (
        "δ is for the arms of the start, and once more for each time that an arm was dropped or "
        f"added. Over the whole trial the answer is wrong with probability at most {rate:.4g}, "
        f"which takes the place of {status['delta']:g}"
    )


def list_site_rows(status: Said) -> list[list[str]]:
    """Site, people, open or closed; last the people without a site, if there are
    both.
    """
    sites = status["sites"]
    rows = [[site["name"], str(site["participants"]), _state(status, site)] for site in sites]
    elsewhere = status["participants"] - sum(site["participants"] for site in sites)
    return [*rows, ["(not said)", str(elsewhere), "–"]] if rows and elsewhere else rows


def _state(status: Said, site: Said) -> str:
    if site["closed"]:
        return "closed"
    return "ended" if status["stopped"] else "open"


def list_action_rows(status: Said, named: Callable[[str], str] = action_label) -> list[list[str]]:
    """Action, what it is about, reason, and what it means; actions as pages call them,
    unless they are to be named in another way.
    """
    return [
        [named(act["action"]), _about(act["about"]), act["reason"], _means(status, act)]
        for act in status["actions"]
    ]


def _means(status: Said, act: Said) -> str:
    """What an act means; of an end that supports no error rate, that one is not
    mentioned.
    """
    bare = act["action"] == "stop" and status["smallest_delta"] is None
    return "the end is inconclusive" if bare else str(act["meaning"])


def _about(about: str | int | None) -> str:
    return "–" if about is None else str(about)


def quotes(said: Said) -> list[tuple[str, str]]:
    """A title and sentences each: privacy, and the error rate."""
    return [("Privacy", write_privacy_quote(said)), ("Error probability", write_error_quote(said))]


def write_privacy_quote(said: Said) -> str:
    """What is promised to each person, with its conditions."""
    protocol, status = said["protocol"], said["status"]
    strategy = Strategy.from_dict(protocol["strategy"])
    model = strategy.trust_model
    if not model.is_private:
        return (
            "No privacy is promised: everything published about this trial was computed from the "
            "outcomes as they are, without noise."
        )
    where = (
        "Each participant's outcome was randomised before it was sent, so that nobody had to be "
        "trusted "
        "with it."
        if model.randomised
        else "Random noise was added to every number before it was shown or used for a decision."
    )
    conditions = "This holds if nobody took part twice"
    if protocol["release"] != SCHEDULED and not model.randomised:
        conditions += (
            ", and if the time at which an outcome was recorded did not depend on the outcome"
        )
    acts = [act["action"] for act in status["actions"]]
    restored = f" {RESTORED_WORDS}." if RESTORED in acts else ""
    return (
        f"Everything published about this trial, taken together, is {_level(strategy)} with "
        f"respect to the outcome of one participant{_factor(strategy)}. {where} Who took part, "
        "where "
        f"and on which arm is not protected. {conditions}.{restored}"
    )


def _level(strategy: Strategy) -> str:
    if strategy.rho is not None:
        return f"{strategy.rho:g}-zero-concentrated differentially private (ρ = {strategy.rho:g})"
    if strategy.gamma is not None:
        level = f"({strategy.epsilon:g}, {strategy.gamma:g})"
        return f"{level}-differentially private (ε = {strategy.epsilon:g}, γ = {strategy.gamma:g})"
    return f"{strategy.epsilon:g}-differentially private (ε = {strategy.epsilon:g})"


def _factor(strategy: Strategy) -> str:
    """What that means, where one number says it."""
    if strategy.rho is not None or strategy.epsilon is None:
        return ""
    another = ": had that outcome been another one,"
    times = format_likelihood_ratio(strategy.epsilon)
    if not times:
        return describe_unprotected(f"{another} a result")
    rare = "" if strategy.gamma is None else f", apart from a probability of {strategy.gamma:g}"
    return (
        f"{another} no result would have been more than {times} times as likely, or as "
        f"unlikely{rare}"
    )


def write_error_quote(said: Said) -> str:
    """What the error rate says of this end; of an inconclusive one, nothing."""
    status = said["status"]
    if not status["stopped"]:
        return "The trial is still running: nothing can be said about an answer yet."
    if not status["conclusive"]:
        return _inconclusive(status)
    conclusion = state_conclusion(status)
    if status["error_rate"] is None:
        return conclusion
    simple = said["protocol"]["randomisation"] == SIMPLE
    rest = f" {CLAIM}." if simple else ""
    return f"{conclusion}{rest}{_pace(said['protocol'])} {_counted(said['protocol'])}"


def _pace(protocol: Said) -> str:
    """What continuous enrolment asks for beside."""
    if protocol["enrolment"] != CONTINUOUS:
        return ""
    return (
        " It is assumed that the sizes of rounds did not depend on the assignments or outcomes of "
        "their own participants."
    )


def _counted(protocol: Said) -> str:
    """What a missing outcome was."""
    seconds = protocol["deadline"]
    within = "" if seconds is None else f" within {format_duration(seconds)} of the assignment"
    return f"An outcome that was not recorded{within} counted as the worst."


def _inconclusive(status: Said) -> str:
    lead = "arms that were level" if name_tied_arms(status) else "arm that did best so far"
    words = (
        "The trial ended without a conclusion. No arm was found to be the best, and the error rate "
        f"of the protocol does not apply to the {lead}."
    )
    if status["smallest_delta"] is None:
        return words
    among = (
        " remaining" if any(DROPPED in note for note in note_arm_changes(status).values()) else ""
    )
    return (
        f"{words} The p-value of the null hypothesis that another{among} arm is the best is "
        f"{status['smallest_delta']:.3g}; it is valid although the trial was stopped early."
    )
