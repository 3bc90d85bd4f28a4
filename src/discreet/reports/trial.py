"""The page of a live trial, made of its transcript alone: whatever stands on it may be
published. What whoever publishes adds to it (dates, people assessed) is marked so.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import InvalidInputError
from discreet.reports.compared import AHEAD, Compared, check_control, compare
from discreet.reports.conduct import (
    ACT_HEAD,
    ACT_WORDS,
    PAUSED,
    act_rows,
    ahead_words,
    answer_words,
    arm_notes,
    best_mark,
    end_words,
    flow_words,
    interval_words,
    left_words,
    level_words,
    privacy_sentence,
    promises,
)
from discreet.reports.course import Course
from discreet.reports.dates import date_facts
from discreet.reports.drawn import compared_picture, standing_picture, trial_drawings
from discreet.reports.flow import flow_parts
from discreet.reports.page import (
    Bullets,
    Facts,
    Heading,
    Part,
    Picture,
    Pictures,
    Quote,
    Section,
    Table,
    Text,
    page,
)
from discreet.reports.protocol import protocol_facts, scale_of
from discreet.reports.quotes import quotes
from discreet.trials.conduct import RESTORED, RESTORED_WORDS
from discreet.trials.protocol import CODES
from discreet.trials.record import BROKEN
from discreet.trials.status import Verification
from discreet.trials.verify import check_transcript, read_transcript
from discreet.validate import check_whole
from discreet.words import (
    as_sure,
    correctness_words,
    counted,
    interval_ends,
    lead_words,
    percent,
)

MADE_OF = "Made from the trial's public transcript, and from nothing else."
MADE_OF_MORE = (
    "Made from the trial's public transcript, and from additions by those who publish it. These "
    "are marked as such, and are not part of the record that can be checked."
)
NOT_VERIFIED = "NOT VERIFIED"
WARNING = (
    "This transcript is not what it claims to be: it was changed, or it is incomplete. Nothing "
    "below can be relied on. What is wrong with it:"
)
BLINDED = (
    "This trial is blinded and has not ended: keep this page from everybody who enrols, treats or "
    "assesses people."
)
SMALL = 0.001
"""P-values below it are said to be below it."""
Transcript = str | os.PathLike[str] | Mapping[str, Any]
"""What `Trial.transcript` returned, or a file of it."""


@dataclass(frozen=True)
class Added:
    """What whoever publishes a report adds to the transcript."""

    control: str | None = None
    """The arm that others are compared with; the best one if none is named."""
    assessed: int | None = None
    """How many people were assessed for eligibility."""
    dates: Mapping[str, str] = field(default_factory=dict)
    """What happened on which day."""

    @property
    def more(self) -> bool:
        """Whether anything is said that the record does not."""
        return bool(self.dates) or self.assessed is not None


def trial_page(
    transcript: Transcript,
    control: str | None = None,
    assessed: int | None = None,
    dates: Mapping[str, str] | None = None,
) -> str:
    """One HTML page, from a transcript or its file: result, differences between the
    arms, flow of people, sentences to quote, protocol, deviations, record.

    Arms are compared with the best one, or with a `control`. The record does not say
    how many people were `assessed` for eligibility, and it has `dates` (of what, and
    the day) only if the trial goes by the clock. If you give them, the page shows them
    as stated by whoever publishes it. If the transcript does not pass its checks, the
    page says NOT VERIFIED, and what is wrong.
    """
    return checked_page(transcript, Added(control, assessed, dates or {}))[0]


def checked_page(transcript: Transcript, added: Added | None = None) -> tuple[str, Verification]:
    """The page, and what was found when the transcript was checked for it."""
    said, more = read_transcript(transcript), added or Added()
    course = Course(said)
    found = check_transcript(said, watch=course.watch)
    lead = MADE_OF_MORE if more.more else MADE_OF
    if found.intact:
        _check_added(more, said)
        title = f"Trial {said['status']['name']}"
        return page(title, _sections(said, course, found, more), lead), found
    sections = [Section(NOT_VERIFIED, [Text(WARNING), Bullets([*found.problems])])]
    with suppress(*BROKEN):  # what was tampered with may be of any shape
        sections += _sections(said, course, found, more)
    return page(f"{NOT_VERIFIED}: {said['status'].get('name')}", sections, lead), found


def _check_added(added: Added, said: dict[str, Any]) -> None:
    """Refuse what cannot be said of this trial."""
    check_control(added.control, [arm["name"] for arm in said["status"]["arms"]])
    if added.assessed is not None:
        people = said["status"]["people"]
        check_whole("assessed", added.assessed, least=people, most=10**12)
    texts = [*added.dates, *added.dates.values()]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise InvalidInputError("dates must have a text each: what happened, and the day")


def trial_pictures(transcript: Transcript) -> dict[str, Picture]:
    """What can be drawn of a trial by now: private `means` and the `evidence` against
    each arm at each look.
    """
    said = read_transcript(transcript)
    course = Course(said)
    check_transcript(said, watch=course.watch)
    return trial_drawings(course.path(), said)


def _sections(
    said: dict[str, Any], course: Course, found: Verification, added: Added
) -> list[Section]:
    status = said["status"]
    compared = compare(course, added.control)
    quoted = [part for title, words in quotes(said) for part in (Heading(title), Quote(words))]
    blind = said["protocol"]["blinding"] == CODES and not status["stopped"]
    dates = date_facts(course, added.dates)
    return [
        Section("Result", [*([Text(BLINDED)] if blind else []), *_result(said, course, compared)]),
        *([_differences(status, compared, said)] if compared else []),
        Section("Flow of people", flow_parts(said, course, added.assessed)),
        Section("Sentences to quote", quoted),
        Section("What was fixed before the first person", _protocol(said)),
        Section("Deviations: what managers did", _deviations(status, course)),
        *([Section("Dates", dates)] if dates else []),
        Section("What holds, and on what it rests", [Bullets(_promises(said, course))]),
        Section("Record", [Bullets(_record(said, found, added.more))]),
    ]


# --- result ---------------------------------------------------------------------------


def _result(said: dict[str, Any], course: Course, compared: Compared | None) -> list[Part]:
    status, path = said["status"], course.path()
    leads = [
        lead_words(lead["name"], lead["over"], lead["better_by"], lead["people"]) + "."
        for lead in status["leads"]
    ]
    parts: list[Part] = [Bullets(_found(status)), _arms(status, compared)]
    parts += [Bullets(leads)] if leads else []
    if not len(path.people):
        yet = "" if status["stopped"] else " yet"
        return [*parts, Text(f"There was no look at the data{yet}: nothing can be drawn.")]
    standing = standing_picture(said)
    drawn = trial_drawings(path, said)
    if "means" not in drawn:
        parts.append(Text("No mean was released that could be drawn: see above."))
    pictures = [*([standing] if standing else []), *drawn.values()]
    return [*parts, *([Pictures(pictures)] if pictures else [])]


def _found(status: dict[str, Any]) -> list[str]:
    people = f"{status['people']:,} of at most {status['max_people']:,} people took part."
    left = [words] if (words := left_words(status)) else []
    if not status["stopped"]:
        stands = PAUSED if status["paused"] else "goes on"
        return [f"The trial {stands}.", flow_words(status), *left]
    if status["conclusive"]:
        return [answer_words(status), people, *left]
    return [
        f"The trial {end_words(status)} without a conclusion.",
        people,
        ahead_words(status),
        *left,
    ]


def _arms(status: dict[str, Any], compared: Compared | None) -> Table:
    level = percent(1 - status["delta"])
    head, words = (
        ["arm", "people", "outcomes behind the mean", "private mean"],
        "Private means carry noise.",
    )
    rows = []
    for arm in status["arms"]:
        mean = "–" if arm["mean"] is None else as_sure(arm["mean"], arm["interval"])
        rows.append([arm["name"], str(arm["pulls"]), str(arm["count"]), mean])
    if any(arm["interval"] for arm in status["arms"]):
        head.append(f"{level} interval")
        words += f" {interval_words(status, level)}"
        for row, arm in zip(rows, status["arms"], strict=True):
            row.append("–" if arm["interval"] is None else interval_ends(arm["interval"]))
    if compared and any(value is not None for value in compared.best):
        head.append('p-value of "is the best"')
        words += (
            ' The p-value of "is the best" bounds the probability of this much evidence against an '
            "arm if that arm was at least as good as every other for the people of each round; it "
            "holds at every look, and where sites differ or outcomes drift."
        )
        for row, value in zip(rows, compared.best, strict=True):
            row.append("–" if value is None else _p_value(value))
    if notes := arm_notes(status):
        head.append("note")
        for row in rows:
            row.append(notes.get(row[0], ""))
    mark = best_mark(status)
    for row in rows:
        row[0] += f" ({mark})" if mark and row[0] == status["recommendation"] else ""
    return Table(head, rows, words)


def _p_value(value: float) -> str:
    """As audit trails write them; never rounded down."""
    if value < SMALL:
        return f"< {SMALL:g}"
    if value > 0.99:
        return "> 0.99"
    digits = 3 if value < 0.1 else 2
    return f"{min(value + 0.5 * 10**-digits - 1e-12, 0.99):.{digits}f}"


# --- differences ----------------------------------------------------------------------


WHY = {
    "control": "All arms are compared with {name}, as chosen by those who made this page.",
    "best": "All arms are compared with {name}, which was found to be the best.",
    "ahead": "All arms are compared with {name}, which did best so far and was not found to be "
    "the best.",
    "level": "All arms are compared with {name}, which was level with another arm and was not "
    "found to be the best.",
}


def _differences(status: dict[str, Any], compared: Compared, said: dict[str, Any]) -> Section:
    """Each arm against one of them, with what a reader has to know of it."""
    names = [arm["name"] for arm in status["arms"]]
    level = percent(compared.level)
    head = ("arm", "difference", f"{level} interval", "p-value")
    rows = [
        [
            names[row.arm],
            as_sure(row.difference, row.interval, "+"),
            interval_ends(row.interval),
            _p_value(row.p_value),
        ]
        for row in compared.rows
    ]
    reference = names[compared.reference]
    why = "level" if compared.why == AHEAD and level_words(status) else compared.why
    better = "above" if said["protocol"]["direction"] == "max" else "below"
    what = f"Mean of the arm minus the mean of {reference}: {better} 0 the arm did better."
    return Section(
        "Differences between the arms",
        [
            Text(WHY[why].format(name=reference)),
            Table(head, rows, what),
            *compared_picture(said, compared),
            Bullets(_how_to_read(level, len(names), compared, status)),
        ],
    )


def _how_to_read(level: str, arms: int, compared: Compared, status: dict[str, Any]) -> list[str]:
    lines = [
        f"With a probability of at least {level}, the intervals of all pairs of arms contain the "
        "true differences at every look at once. So it does not matter how often one looked, when "
        "the trial ended, or that the arm to compare with was chosen by its results.",
        'A p-value is for "the two arms have the same mean". It is adjusted for all '
        f"{arms * (arms - 1) // 2} pairs of arms and for any number of looks: the probability that "
        "arms with the same mean ever get a p-value of 0.05 or less is at most 0.05.",
        "Both are for arms whose mean is the same for all people and does not change over time, "
        "and both are computed from the noisy numbers that were released.",
    ]
    if arms == 2:
        lines[1] = lines[1].replace("all 1 pairs of arms and for ", "")
    if status["conclusive"] and any(low <= 0 <= high for low, high in _intervals(compared)):
        lines.append(
            "An interval may contain 0 although the trial was conclusive: the rule of the trial "
            "compares arms round by round and is not adjusted for all pairs or for both directions."
        )
    return lines


def _intervals(compared: Compared) -> list[tuple[float, float]]:
    return [row.interval for row in compared.rows]


# --- protocol, managers, promises ----------------------------------------------------


def _protocol(said: dict[str, Any]) -> list[Part]:
    words = (
        "The protocol below was fixed when the trial was created, before anybody was assigned. Its "
        f"hash (SHA-256) is {said['protocol_hash']}; published at that time, it shows that "
        "nothing was changed since."
    )
    return [Text(words), Facts(protocol_facts(said))]


def _deviations(status: dict[str, Any], course: Course) -> list[Part]:
    acts = act_rows(status)
    if not acts:
        return [Text("None: the record contains no action by a manager.")]
    moments = [
        f"{counted(moment.people, 'person', 'people')}, {counted(moment.looks, 'look')}"
        for moment in course.acts
    ]
    moments += [""] * (len(acts) - len(moments))
    rows = [[*row[:2], moment, *row[2:]] for row, moment in zip(acts, moments, strict=False)]
    head = (*ACT_HEAD[:2], "after", *ACT_HEAD[2:])
    words = "Every action is in the record, with its reason, at the point where it was taken."
    return [Table(head, rows, words, ACT_WORDS)]


def _promises(transcript: dict[str, Any], course: Course) -> list[str]:
    status = transcript["status"]
    strategy = transcript["protocol"]["strategy"]
    level, sign = ("epsilon", "ε") if strategy["rho"] is None else ("rho", "ρ")
    spent = [
        one[level]
        for event in transcript["events"]
        for one in event.get("releases", ())
        if one[level]
    ]
    met = status["conclusive"] or not status["stopped"]
    kept = privacy_sentence(strategy["epsilon"], status["privacy"], strategy["gamma"])
    found = [f"Privacy: {kept}."]
    rate = correctness_words(status["correctness"], scale_of(transcript["protocol"]))
    found += [f"Error rate: {rate}."] if met else []
    found += [f"{title}: {words}." for title, words in promises(status, met)]
    if spent and strategy[level]:
        beside = "" if strategy["gamma"] is None else f", γ = {strategy['gamma']:g}"
        found.append(
            f"Looks: {course.looks}, which released {counted(status['releases'], 'number')}, each "
            f"of at most {sign} = {max(spent):.6g}{beside}; each person is in one of them, so "
            f"the whole transcript has {sign} = {strategy[level]:g}{beside}. A person who took "
            f"part k times has k times that.{_restored(status)}"
        )
    return found


def _restored(status: dict[str, Any]) -> str:
    """What does not hold after a forced restore."""
    acts = [act["action"] for act in status["acts"]]
    return f" {RESTORED_WORDS}." if RESTORED in acts else ""


def _record(transcript: dict[str, Any], found: Verification, more: bool) -> list[str]:
    lines = [
        f"{len(transcript['events'])} public events, tied by a hash chain.",
        f"Protocol: {transcript['protocol_hash']}",
        f"Head: {transcript['status']['head']}",
    ]
    if found.intact:
        beside = ["what is marked as added"] if more else []
        if transcript["status"]["pending"]:
            beside.append("how many outcomes are not in, of which the record says nothing")
        but = f", except {' and '.join(beside)}" if beside else ""
        lines.append(
            f"Checked when this page was made: all of the above follows from the record{but}."
        )
    return lines
