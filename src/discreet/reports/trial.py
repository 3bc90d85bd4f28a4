"""The page of a live trial, made of its transcript alone: whatever stands on it may be
published. Additions by those who publish it (dates, participants assessed) are marked.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from discreet.errors import InvalidInputError
from discreet.reports.document import (
    Box,
    Definitions,
    Document,
    Figure,
    FigureRow,
    FlowDiagram,
    Heading,
    List,
    Note,
    Paragraph,
    Part,
    Quote,
    Section,
    Table,
)
from discreet.reports.html import render
from discreet.reports.trial_data import (
    AHEAD,
    Compared,
    Course,
    check_control,
    compare,
    draw_comparison,
    draw_standing,
    draw_trial_figures,
)
from discreet.reports.trial_text import (
    ACT_HEAD,
    ACT_WORDS,
    DROPPED,
    PAUSED,
    SITE_HEAD,
    choose_best_mark,
    describe_arm_changes,
    describe_end,
    describe_enrolment,
    describe_leader,
    describe_missed_deadlines,
    explain_intervals,
    explain_privacy,
    format_duration,
    list_action_rows,
    list_guarantees,
    list_site_rows,
    name_tied_arms,
    note_arm_changes,
    quotes,
    state_conclusion,
)
from discreet.scale import Scale, check_range, describe_yes_no, is_yes_no
from discreet.strategies.estimators import FIXED, SHUFFLED, SIMPLE
from discreet.strategies.strategy import Strategy
from discreet.trials.operations import RESTORED, RESTORED_WORDS
from discreet.trials.protocol import MISSING, Protocol
from discreet.trials.record import BROKEN, AuditEntry
from discreet.trials.settings import (
    BLINDING,
    CODES,
    COMPLETE,
    RETURNING,
    SCHEDULED,
)
from discreet.trials.status import Status, Verification
from discreet.trials.transcript import check_parsed_transcript, read_transcript
from discreet.validation import check_whole
from discreet.wording import (
    describe_lead,
    describe_privacy,
    format_count,
    format_interval,
    format_percent,
    format_to_precision,
)

Said = Mapping[str, Any]
ALLOCATION = {
    SIMPLE: "each participant individually, with announced probabilities, after enrolment",
    SHUFFLED: "in random order within the places up to the next interim analysis",
    FIXED: "in the order that the strategy gives",
}
ANALYSES = {
    COMPLETE: "as soon as all outcomes of a round are recorded",
    SCHEDULED: "scheduled: when the deadline of the last participant of a round has passed",
}
EACH_ANSWER = "after every outcome, in the order of assignment"
ENROLMENT = {
    "waiting": "nobody is enrolled while a full round waits for its outcomes",
    "continuous": "participants are enrolled while earlier rounds wait for their outcomes",
}
RETAINED = {
    "until-release": "outcomes are erased as soon as they have been used in an interim analysis",
    "forever": "OUTCOMES ARE KEPT, and whoever can read the database can read them",
}


def list_protocol_facts(said: Said) -> list[tuple[str, str]]:
    """A name and a value each."""
    protocol = said["protocol"]
    strategy = protocol["strategy"]
    question = [("Question", protocol["question"])] if protocol["question"] else []
    return [
        *question,
        ("Arms", ", ".join(protocol["arms"])),
        ("Outcomes", _outcomes(protocol)),
        *_outside(said["status"]),
        ("Missing outcomes", MISSING),
        ("Strategy", f"{strategy['name']}, threshold {strategy['threshold']}"),
        *_levels(strategy),
        *_design(strategy),
        ("Maximum", f"{protocol['max_participants']:,} participants"),
        *_field(protocol, Strategy.from_dict(strategy).spec.each_answer),
        ("Returning participants", RETURNING[protocol["returning"]]),
        ("Blinding", BLINDING[protocol["blinding"]]),
        ("Storage", RETAINED[protocol["retain"]]),
        ("Made with", f"discreet {protocol['version']}"),
    ]


def read_scale(protocol: Said) -> Scale:
    """How outcomes become rewards, and back."""
    return Scale(*check_range(protocol["range"]), protocol["direction"])


def _outcomes(protocol: Said) -> str:
    if _find_factor(protocol) > 1:
        return describe_yes_no(protocol["direction"])
    better = "more is better" if protocol["direction"] == "max" else "less is better"
    low, high = protocol["range"]
    return f"{low:g} to {high:g}, {better}"


def _levels(strategy: Said) -> list[tuple[str, str]]:
    """How private, and how often wrong."""
    gamma = "" if strategy["gamma"] is None else f", γ = {strategy['gamma']:g}"
    if strategy["rho"] is not None:
        privacy = f"ρ = {strategy['rho']:g}"
    elif strategy["epsilon"] is None:
        privacy = "none"
    else:
        privacy = f"ε = {strategy['epsilon']:g}{gamma}"
    rate = f"{100 * strategy['delta']:.4g} % (δ = {strategy['delta']:g})"
    return [("Privacy", privacy), ("Error probability", rate)]


def _field(protocol: Said, each_answer: bool) -> list[tuple[str, str]]:
    """List how participants are enrolled and assigned, and when outcomes count."""
    deadline, sites = protocol["deadline"], protocol["sites"]
    late = "none" if deadline is None else f"{format_duration(deadline)} from assignment"
    return [
        ("Allocation", ALLOCATION[protocol["randomisation"]]),
        ("Sites", "anywhere" if sites is None else ", ".join(sites)),
        ("Deadline of an outcome", late),
        ("Interim analyses", EACH_ANSWER if each_answer else ANALYSES[protocol["release"]]),
        ("Enrolment", ENROLMENT[protocol["enrolment"]]),
    ]


def _outside(status: Said) -> list[tuple[str, str]]:
    """What outcomes outside the range count as, if they are not refused."""
    return (
        [("Outcomes outside that range", status["out_of_range"])] if status["out_of_range"] else []
    )


def _design(strategy: Said) -> list[tuple[str, str]]:
    """What else was chosen of the strategy."""
    from discreet.studies.study import describe_extras

    chosen = describe_extras(Strategy.from_dict(dict(strategy)))
    return [("Design", chosen)] if chosen else []


FEW_ARMS = 6
"""Arms that have a box each."""
NOT_RECORDED = (
    "Not in the record, which begins with the assignment of a participant. Take the number from "
    "the screening list."
)
NOT_PUBLIC = (
    "How many outcomes are missing is not public: that an outcome is missing may itself be the "
    "outcome. A missing outcome counts as the worst, and is among those analysed."
)
AS_ASSIGNED = (
    "All randomised participants are analysed in the arm to which they were assigned (intention to "
    "treat)."
)
LEFT = {False: "not analysed yet", True: "not analysed, as the trial ended before (pipeline)"}
"""Participants in no interim analysis, by whether the trial is over."""


def make_participant_flow(
    said: dict[str, Any], course: Course, assessed: int | None = None
) -> list[FlowDiagram | Table]:
    """The diagram, and the same by arm and site."""
    status, names = said["status"], [arm["name"] for arm in said["status"]["arms"]]
    assigned, by_arm = course.assigned(), Counter[int]()
    for (arm, _), count in assigned.items():
        by_arm[arm] += count
    left = LEFT[bool(status["stopped"])]
    levels = [
        [_assessed(assessed, status["participants"])],
        [_assigned(said, course)],
        _draw_arm_boxes(names, by_arm, course.used, dict.fromkeys(names, left) | _dropped(status)),
        [_missing(status)],
    ]
    found: list[FlowDiagram | Table] = [
        FlowDiagram("Flow of participants through the trial", levels)
    ]
    found.append(_table(names, assigned, by_arm, course.used))
    if sites := list_site_rows(status):
        found.append(Table(SITE_HEAD, sites, "Sites, and whether they are open now."))
    return found


def _assessed(assessed: int | None, people: int) -> Box:
    if assessed is None:
        return Box("Assessed for eligibility", [NOT_RECORDED])
    lines = [
        f"{_people(assessed)}, as stated by those who publish this; not in the record",
        f"not randomised: {assessed - people}",
    ]
    return Box("Assessed for eligibility", lines)


def _assigned(said: dict[str, Any], course: Course) -> Box:
    randomisation, sites = said["protocol"]["randomisation"], {*course.sites} - {None}
    lines = [_people(said["status"]["participants"])]
    if sites:
        lines.append(f"from {format_count(len(sites), 'site')}")
    return Box("Assigned" if randomisation == FIXED else "Randomised", lines)


def _dropped(status: dict[str, Any]) -> dict[str, str]:
    """What is said of outcomes of arms that were dropped."""
    notes = note_arm_changes(status).items()
    return {name: "not analysed, as the arm was dropped" for name, note in notes if DROPPED in note}


def _draw_arm_boxes(
    names: list[str], assigned: Counter[int], used: Counter[int], left: dict[str, str]
) -> list[Box]:
    each = [assigned[arm] for arm in range(len(names))]
    if len(names) <= FEW_ARMS:
        return [
            Box(name, _lines(count, used[arm], left[name]))
            for arm, (name, count) in enumerate(zip(names, each, strict=True))
        ]
    least, most = min(each), max(each)
    people = format_count(f"{least}" if least == most else f"{least} to {most}", "participant")
    lines = _lines(assigned.total(), used.total(), "not analysed")
    return [Box(f"{len(names)} arms", [f"{people} each: see the table", *lines])]


def _lines(assigned: int, used: int, left: str) -> list[str]:
    lines = [f"assigned: {assigned}", f"outcomes analysed: {used}"]
    return [*lines, f"{left}: {assigned - used}"] if assigned > used else lines


def _missing(status: dict[str, Any]) -> Box:
    past = describe_missed_deadlines(status).strip()
    lines = [NOT_PUBLIC, *([past] if past else []), AS_ASSIGNED]
    return Box("Missing outcomes, and who is analysed", lines)


def _table(
    names: list[str],
    assigned: Counter[tuple[int, str | None]],
    by_arm: Counter[int],
    used: Counter[int],
) -> Table:
    """By arm, and by site where sites are named."""
    sites: list[str | None] = [*sorted({site for _, site in assigned if site is not None})]
    if sites and any(site is None for _, site in assigned):
        sites.append(None)
    head = ["arm", *(site if site is not None else "(not said)" for site in sites)]
    head += ["assigned", "outcomes analysed"]
    rows = [
        [name, *(str(assigned[arm, site]) for site in sites), str(by_arm[arm]), str(used[arm])]
        for arm, name in enumerate(names)
    ]
    all_of = [str(sum(assigned[arm, site] for arm in range(len(names)))) for site in sites]
    rows.append(["all", *all_of, str(by_arm.total()), str(used.total())])
    return Table(head, rows, "Participants by arm and site." if sites else "Participants by arm.")


def _people(count: int) -> str:
    return format_count(count, "participant")


STATED = "Stated by those who publish this page; not in the record, and not checked:"
RECORDED = "By the record, in days of universal time (UTC):"
MAX_DAYS = 24
"""Interim analyses whose days are listed."""


def list_dates(course: Course, stated: Mapping[str, str]) -> list[Part]:
    """The days that the record tells, and those that were added."""
    found: list[Part] = []
    if recorded := _recorded(course):
        found += [Paragraph(RECORDED), Definitions(recorded)]
    if stated:
        found += [Paragraph(STATED), Definitions([*stated.items()])]
    return found


def _recorded(course: Course) -> list[tuple[str, str]]:
    came = [at for kind, at in course.times if kind == "assigned"]
    looks = [at for kind, at in course.times if kind == "released"]
    found = _ends(came)
    if looks:
        days = [day(at) for at in looks[:MAX_DAYS]]
        more = f" and {len(looks) - MAX_DAYS} more" if len(looks) > MAX_DAYS else ""
        found.append(("Interim analyses", ", ".join(days) + more))
    return found


def find_audit_dates(entries: Sequence[AuditEntry], stopped: bool) -> dict[str, str]:
    """The days of a trial by its private audit trail: created, first and last participant,
    end.

    No more: on which days outcomes were recorded stays private, and the day of an
    interim analysis is the day on which the last outcome of its round was.
    """
    calls = sorted(entries, key=lambda one: one.entry)
    created = [one.at for one in calls if one.action == "create"]
    found = {"Created": day(created[0])} if created else {}
    found |= dict(_ends([one.at for one in calls if one.action == "ask"]))
    changes = [one.at for one in calls if one.action in ENDS]
    if stopped and changes:
        found["Ended, at the latest"] = day(changes[-1])
    return found


ENDS = ("ask", "tell", "expire", "manage stop")
"""Calls that may end a trial."""


def _ends(came: Sequence[float]) -> list[tuple[str, str]]:
    if not came:
        return []
    return [
        ("First participant assigned", day(came[0])),
        ("Last participant assigned", day(came[-1])),
    ]


def day(at: float) -> str:
    """The day of a moment, in universal time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


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
    "assesses participants."
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
    """How many participants were assessed for eligibility."""
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
    arms, participant flow, sentences to quote, protocol, protocol changes, record.

    Arms are compared with the best one, or with a `control`. The record does not say
    how many participants were `assessed` for eligibility, and it has `dates` (of what, and
    the day) only if the trial goes by the clock. If you give them, the page shows them
    as stated by whoever publishes it. If the transcript does not pass its checks, the
    page says NOT VERIFIED, and what is wrong.
    """
    return render(build_trial_report(transcript, Added(control, assessed, dates or {}))[0])


def build_trial_report(
    transcript: Transcript, added: Added | None = None
) -> tuple[Document, Verification]:
    """Build the document of a trial, and verify the transcript for it."""
    said, more = read_transcript(transcript), added or Added()
    course = Course(said)
    found = check_parsed_transcript(said, watch=course.watch)
    lead = MADE_OF_MORE if more.more else MADE_OF
    if found.intact:
        _check_added(more, said)
        title = f"Trial {said['status']['name']}"
        return Document(title, _sections(said, course, found, more), lead), found
    sections = [Section(NOT_VERIFIED, [Paragraph(WARNING), List([*found.problems])])]
    with suppress(*BROKEN):  # what was tampered with may be of any shape
        sections += _sections(said, course, found, more)
    name = f"{NOT_VERIFIED}: {said['status'].get('name')}"
    return Document(name, sections, lead), found


def _check_added(added: Added, said: dict[str, Any]) -> None:
    """Refuse what cannot be said of this trial."""
    check_control(added.control, [arm["name"] for arm in said["status"]["arms"]])
    if added.assessed is not None:
        people = said["status"]["participants"]
        check_whole("assessed", added.assessed, least=people, most=10**12)
    texts = [*added.dates, *added.dates.values()]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise InvalidInputError("dates must have a text each: what happened, and the day")


def draw_trial(transcript: Transcript) -> dict[str, Figure]:
    """What can be drawn of a trial by now: private `means` and the `evidence` against
    each arm at each look.
    """
    said = read_transcript(transcript)
    course = Course(said)
    check_parsed_transcript(said, watch=course.watch)
    return draw_trial_figures(course.path(), said)


def build_status(status: Status, protocol: Protocol | None = None) -> Document:
    """Build the document of a running or ended trial: where it stands, what was released
    about each arm, what is guaranteed, and what sites and managers did.
    """
    said = status.to_dict()
    promised = [
        f"Privacy: {describe_privacy(status.privacy)}; {status.retain}.",
        *(f"{title}: {words}." for title, words in list_guarantees(said)),
    ]
    if status.out_of_range:
        promised.append(f"{status.out_of_range[0].upper()}{status.out_of_range[1:]}.")
    items = _found(said)
    if not status.stopped and status.recommendation is not None:
        level = name_tied_arms(said)
        best = f"The best arm so far is {status.recommendation}."
        items.insert(1, f"{level} are level so far." if level else best)
    if status.smallest_delta is not None:
        items.append(
            f"It would have been conclusive at an error rate of δ = {status.smallest_delta:.3g}."
        )
    if protocol is not None:
        items.append(f"Outcomes: {protocol.outcome_description}.")
    factor = 1 if protocol is None else _find_factor(protocol.to_dict())
    blinded = "The staff of this trial are blinded: estimates are shown only at the end."
    arms = _make_arms_table(said, None, factor) if status.arms else [Note(blinded)]
    acts = list_action_rows(said, named=str)
    conduct: list[Part] = []
    if sites := list_site_rows(said):
        conduct.append(Table(SITE_HEAD, sites, words=["now"]))
    if acts:
        conduct.append(Table(ACT_HEAD, acts, words=ACT_WORDS))
    sections = [
        Section("", [List(items), *arms, *_leads(said)]),
        *([Section("Sites and protocol changes", conduct)] if conduct else []),
        Section("Guarantees and assumptions", [List(promised)]),
        Section("Record", [Paragraph(f"Head: {status.head}")]),
    ]
    return Document(f"Trial {status.name}", sections, f"Strategy: {status.strategy}.")


def _sections(
    said: dict[str, Any], course: Course, found: Verification, added: Added
) -> list[Section]:
    status = said["status"]
    compared = compare(course, added.control)
    quoted = [part for title, words in quotes(said) for part in (Heading(title), Quote(words))]
    blind = said["protocol"]["blinding"] == CODES and not status["stopped"]
    dates = list_dates(course, added.dates)
    return [
        Section(
            "Result", [*([Paragraph(BLINDED)] if blind else []), *_result(said, course, compared)]
        ),
        *([_differences(status, compared, said)] if compared else []),
        Section("Participant flow", make_participant_flow(said, course, added.assessed)),
        Section("Sentences to quote", quoted),
        Section("Prespecified design", _protocol(said)),
        Section("Protocol changes", _deviations(status, course)),
        *([Section("Dates", dates)] if dates else []),
        Section("Guarantees and assumptions", [List(_promises(said, course))]),
        Section("Record", [List(_record(said, found, added.more))]),
    ]


# --- result ---------------------------------------------------------------------------


def _result(said: dict[str, Any], course: Course, compared: Compared | None) -> list[Part]:
    status, path = said["status"], course.path()
    parts: list[Part] = [
        List(_found(status)),
        *_make_arms_table(status, compared, _find_factor(said["protocol"])),
        *_leads(status),
    ]
    if not len(path.people):
        yet = "" if status["stopped"] else " yet"
        return [*parts, Paragraph(f"There was no interim analysis{yet}: nothing can be drawn.")]
    standing = draw_standing(said)
    drawn = draw_trial_figures(path, said)
    if "means" not in drawn:
        parts.append(Paragraph("No estimate was released that could be drawn: see above."))
    pictures = [*([standing] if standing else []), *drawn.values()]
    return [*parts, *([FigureRow(pictures)] if pictures else [])]


def _leads(status: dict[str, Any]) -> list[Part]:
    """List what was released in place of means."""
    leads = [
        describe_lead(lead["name"], lead["over"], lead["better_by"], lead["participants"]) + "."
        for lead in status["leads"]
    ]
    return [List(leads)] if leads else []


def _found(status: dict[str, Any]) -> list[str]:
    people = (
        f"{status['participants']:,} of at most {status['max_participants']:,} participants were "
        "enrolled."
    )
    left = [words] if (words := describe_arm_changes(status)) else []
    if not status["stopped"]:
        stands = PAUSED if status["paused"] else "goes on"
        return [f"The trial {stands}.", describe_enrolment(status), *left]
    if status["conclusive"]:
        return [state_conclusion(status), people, *left]
    return [
        f"The trial {describe_end(status)} without a conclusion.",
        people,
        describe_leader(status),
        *left,
    ]


def _find_factor(protocol: Said) -> int:
    """Return 100 if outcomes are yes or no, so that means are percentages, and 1 if not."""
    rates = is_yes_no(read_scale(protocol), Strategy.from_dict(protocol["strategy"]).outcomes)
    return 100 if rates else 1


def _show_mean(value: float, interval: Sequence[float] | None, factor: int) -> str:
    """Return an estimate as precisely as its interval supports; a rate in per cent."""
    ends = None if interval is None else [factor * end for end in interval]
    return format_to_precision(factor * value, ends) + (" %" if factor > 1 else "")


def _show_interval(interval: Sequence[float] | None, factor: int) -> str:
    if interval is None:
        return "–"
    return format_interval([factor * end for end in interval]) + (" %" if factor > 1 else "")


def _make_arms_table(
    status: dict[str, Any], compared: Compared | None, factor: int = 1
) -> list[Part]:
    """Make a row for each arm, and the notes that stand under the table."""
    level, words = format_percent(1 - status["delta"]), list[str]()
    head = ["arm", "participants", "outcomes analysed", "estimate"]
    rows = []
    for arm in status["arms"]:
        mean = "–" if arm["mean"] is None else _show_mean(arm["mean"], arm["interval"], factor)
        rows.append([arm["name"], str(arm["assigned"]), str(arm["count"]), mean])
    if any(arm["interval"] for arm in status["arms"]):
        head.append(f"{level} confidence sequence")
        words.append(explain_intervals(status, level))
        for row, arm in zip(rows, status["arms"], strict=True):
            row.append(_show_interval(arm["interval"], factor))
    if compared and any(value is not None for value in compared.best):
        head.append("p-value (null hypothesis: this arm is the best)")
        words.append(
            "The p-value bounds the probability of this much evidence against an arm if that arm "
            "was at least as good as every other for the participants of each round; it holds at "
            "every interim analysis, also if sites differ or outcomes drift. The p-values of "
            "differences have another null hypothesis, so they are other numbers."
        )
        for row, value in zip(rows, compared.best, strict=True):
            row.append("–" if value is None else _p_value(value))
    if notes := note_arm_changes(status):
        head.append("note")
        for row in rows:
            row.append(notes.get(row[0], ""))
    mark = choose_best_mark(status)
    for row in rows:
        row[0] += f" ({mark})" if mark and row[0] == status["recommendation"] else ""
    table = Table(head, rows, "Estimates carry privacy noise.")
    return [table, *map(Note, words)]


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
    level, factor = format_percent(compared.level), _find_factor(said["protocol"])
    head = (
        "arm",
        f"difference{' (percentage points)' if factor > 1 else ''}",
        f"{level} confidence sequence",
        "p-value (null hypothesis: same mean)",
    )
    rows = [
        [
            names[row.arm],
            format_to_precision(
                factor * row.difference, [factor * end for end in row.interval], "+"
            ),
            format_interval([factor * end for end in row.interval]),
            _p_value(row.p_value),
        ]
        for row in compared.rows
    ]
    reference = names[compared.reference]
    why = "level" if compared.why == AHEAD and name_tied_arms(status) else compared.why
    better = "above" if said["protocol"]["direction"] == "max" else "below"
    what = f"Mean of the arm minus the mean of {reference}: {better} 0 the arm did better."
    return Section(
        "Differences between the arms",
        [
            Paragraph(WHY[why].format(name=reference)),
            Table(head, rows, what),
            *draw_comparison(said, compared),
            List(_how_to_read(level, len(names), compared, status)),
        ],
    )


def _how_to_read(level: str, arms: int, compared: Compared, status: dict[str, Any]) -> list[str]:
    lines = [
        f"With a probability of at least {level}, the intervals of all pairs of arms contain the "
        "true differences at all interim analyses at once. So it does not matter how many there "
        "were, when "
        "the trial ended, or that the arm to compare with was chosen by its results.",
        "The null hypothesis of this p-value is that the two arms have the same mean; that of the "
        "p-value in the table of results is that an arm is the best. So they differ. This one is "
        "adjusted for all "
        f"{arms * (arms - 1) // 2} pairs of arms and for any number of interim analyses: the "
        "probability that "
        "arms with the same mean ever get a p-value of 0.05 or less is at most 0.05.",
        "Both are for arms whose mean is the same for all participants and does not change over "
        "time, "
        "and both are computed from the noisy numbers that were released.",
    ]
    if arms == 2:
        lines[1] = lines[1].replace("all 1 pairs of arms and for ", "")
    if status["conclusive"] and any(low <= 0 <= high for low, high in _intervals(compared)):
        lines.append(
            "A confidence sequence may contain 0 although the trial was conclusive: the trial "
            "compares arms round by round and is not adjusted for all pairs or for both directions."
        )
    return lines


def _intervals(compared: Compared) -> list[tuple[float, float]]:
    return [row.interval for row in compared.rows]


# --- protocol, managers, promises ----------------------------------------------------


def _protocol(said: dict[str, Any]) -> list[Part]:
    words = (
        "The design was fixed when the trial was created, before any participant was assigned. Its "
        f"hash (SHA-256) is {said['protocol_hash']}; published at that time, it shows that "
        "nothing was changed since."
    )
    return [Paragraph(words), Definitions(list_protocol_facts(said))]


def _deviations(status: dict[str, Any], course: Course) -> list[Part]:
    acts = list_action_rows(status)
    if not acts:
        return [Paragraph("None: the record contains no management action.")]
    moments = [
        f"{format_count(moment.people, 'participant')}, "
        f"{format_count(moment.looks, 'interim analysis', 'interim analyses')}"
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
    kept = explain_privacy(strategy["epsilon"], status["privacy"], strategy["gamma"])
    found = [f"Privacy: {kept}."]
    found += [f"{title}: {words}." for title, words in list_guarantees(status, met)]
    if spent and strategy[level]:
        beside = "" if strategy["gamma"] is None else f", γ = {strategy['gamma']:g}"
        found.append(
            f"Interim analyses: {course.looks}, which released "
            f"{format_count(status['releases'], 'number')}, "
            f"each of at most {sign} = {max(spent):.6g}{beside}; each participant is in one, so "
            f"the whole transcript has {sign} = {strategy[level]:g}{beside}. A participant who "
            "took "
            f"part k times has k times that.{_restored(status)}"
        )
    return found


def _restored(status: dict[str, Any]) -> str:
    """What does not hold after a forced restore."""
    acts = [act["action"] for act in status["actions"]]
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
