"""The page of a live trial, made of its transcript alone: whatever stands on it may be
published.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.reports import charts
from discreet.reports.arms import arms_shown
from discreet.reports.conduct import (
    ACT_HEAD,
    ACT_WORDS,
    PAUSED,
    SITE_HEAD,
    act_rows,
    arm_notes,
    duration_words,
    end_words,
    flow_words,
    interval_words,
    left_words,
    promises,
    site_rows,
)
from discreet.reports.page import Bullets, Picture, Section, Table, Text, page
from discreet.trials.chain import Event
from discreet.trials.conduct import RESTORED, RESTORED_WORDS
from discreet.trials.protocol import MISSING, RETAIN
from discreet.trials.record import BROKEN
from discreet.trials.replay import Replay
from discreet.trials.status import Verification
from discreet.trials.verify import check_transcript, read_transcript
from discreet.words import lead_words

SHOWN = 400
"""Points of the picture; with more releases some are left out."""
MADE_OF = "Made of the trial's public transcript, and of nothing else."
NOT_VERIFIED = "NOT VERIFIED"
WARNING = (
    "This transcript does not hold what it says: it was changed, or is not whole. Nothing below "
    "can be relied on. What is wrong with it:"
)
Transcript = str | os.PathLike[str] | Mapping[str, Any]
"""What `Trial.transcript` returned, or a file of it."""


@dataclass(frozen=True, eq=False)
class TrialPath:
    """How the private means went, a row for each time something was released."""

    names: tuple[str, ...]
    people: Ints
    """[row] people assigned by then."""
    means: Floats
    """[row, arm] in the experimenter's units; NaN before the first release of an arm,
    and before it was added.
    """
    evidence: Floats
    """[row, arm] against it, as a share of what puts it out; NaN as in the means, and
    while an arm leads.
    """
    recommendation: int | None


class _Path:
    """Keeps the means after some of the releases while a record is followed."""

    def __init__(self, transcript: dict[str, Any]) -> None:
        places = enumerate(transcript["events"], start=1)
        wanted = [place for place, event in places if _releases(event)]
        self.kept = {*wanted[:: max(1, len(wanted) // SHOWN)], *wanted[-1:]}
        self.people: list[int] = []
        self.means: list[list[float]] = []
        self.evidence: list[list[float]] = []
        self.arms: tuple[str, ...] = ()
        self.recommendation: int | None = None

    def watch(self, event: Event, replay: Replay) -> None:
        """Take a look after an event."""
        self.arms = tuple(replay.now.conduct.arms)
        self.recommendation = replay.now.run.recommendation
        if event.seq in self.kept:
            scale = replay.protocol.scale
            table = replay.now.run.table()
            means = [np.nan if arm.mean is None else scale.shown(arm.mean) for arm in table]
            self.people.append(len(replay.places))
            self.means.append(means)
            shares = replay.now.run.evidence()
            self.evidence.append([np.nan if share is None else share for share in shares])

    def made(self) -> TrialPath:
        """What was kept."""
        people = np.array(self.people, np.int64)
        found = self._padded(self.means), self._padded(self.evidence)
        return TrialPath(self.arms, people, *found, self.recommendation)

    def _padded(self, rows: list[list[float]]) -> Floats:
        """[row, arm], where arms may have been added."""
        arms = len(self.arms)
        padded = [row + [np.nan] * (arms - len(row)) for row in rows]
        return np.array(padded, np.float64).reshape(len(rows), arms)


def _releases(event: Any) -> bool:
    return isinstance(event, dict) and event.get("kind") in ("released", "answered")


def trial_page(transcript: Transcript) -> str:
    """One HTML page, from a transcript or its file: result, arms, promises, protocol,
    record.

    A transcript that does not hold what it says is shown under NOT VERIFIED, and what
    is wrong with it.
    """
    return checked_page(transcript)[0]


def checked_page(transcript: Transcript) -> tuple[str, Verification]:
    """The page, and what was found when the transcript was checked for it."""
    said = read_transcript(transcript)
    path = _Path(said)
    found = check_transcript(said, watch=path.watch)
    if found.intact:
        title = f"Trial {said['status']['name']}"
        return page(title, _sections(said, path.made(), found), MADE_OF), found
    sections = [Section(NOT_VERIFIED, [Text(WARNING), Bullets([*found.problems])])]
    with suppress(*BROKEN):  # what was tampered with may be of any shape
        sections += _sections(said, path.made(), found)
    return page(f"{NOT_VERIFIED}: {said['status'].get('name')}", sections, MADE_OF), found


def trial_pictures(transcript: Transcript) -> dict[str, Picture]:
    """What can be drawn of a trial by now: private `means` and the `evidence` against
    each arm after each release.
    """
    said = read_transcript(transcript)
    path = _Path(said)
    check_transcript(said, watch=path.watch)
    return _drawn(path.made(), said)


def _sections(said: dict[str, Any], path: TrialPath, found: Verification) -> list[Section]:
    status = said["status"]
    leads = [
        lead_words(lead["name"], lead["over"], lead["better_by"], lead["people"]) + "."
        for lead in status.get("leads", ())
    ]
    shown = [Bullets(leads)] if leads else []
    result = [Bullets(_result(status)), _arms(status), *shown, *_pictures(path, said)]
    return [
        Section("Result", result),
        *_conduct(status),
        Section("What is promised", [Bullets(_promises(said))]),
        Section("Protocol", [_protocol(said)]),
        Section("Record", [Bullets(_record(said, found))]),
    ]


def _conduct(status: dict[str, Any]) -> list[Section]:
    """Where people came from and what operators did, if there is anything to say."""
    found = list[Section]()
    if sites := site_rows(status):
        found.append(Section("Where people came from", [Table(SITE_HEAD, sites)]))
    if acts := act_rows(status):
        words = "All of it stands in the record, at the place where it was done."
        found.append(Section("What operators did", [Table(ACT_HEAD, acts, words, ACT_WORDS)]))
    return found


def _result(status: dict[str, Any]) -> list[str]:
    people = f"{status['people']} of at most {status['max_people']} people took part."
    left = [words] if (words := left_words(status)) else []
    if not status["stopped"]:
        stands = PAUSED if status.get("paused") else "goes on"
        return [f"The trial {stands}.", flow_words(status), *left]
    if status["conclusive"]:
        return [f"The best arm is {status['recommendation']}.", people, *left]
    best = status["recommendation"]
    found = [f"The trial {end_words(status)} without a conclusion.", people]
    found.append(
        "Nothing was released."
        if best is None
        else f"The best arm so far was {best}; this is no conclusion."
    )
    if status["smallest_delta"] is not None:
        found.append(
            f"It would have been conclusive at an error rate of δ = {status['smallest_delta']:.3g}."
        )
    return [*found, *left]


def _arms(status: dict[str, Any]) -> Table:
    level = f"{1 - status['delta']:.4g}"
    head, words = (
        ["arm", "people", "outcomes behind the mean", "private mean"],
        "Private means carry noise.",
    )
    rows = []
    for arm in status["arms"]:
        mean = "–" if arm["mean"] is None else f"{arm['mean']:.4g}"
        rows.append([arm["name"], str(arm["pulls"]), str(arm["count"]), mean])
    if any(arm["interval"] for arm in status["arms"]):
        head.append(f"{level} interval")
        words += f" {interval_words(status, level)}"
        for row, arm in zip(rows, status["arms"], strict=True):
            ends = arm["interval"]
            row.append("–" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}")
    if notes := arm_notes(status):
        head.append("note")
        for row in rows:
            row.append(notes.get(row[0], ""))
    return Table(head, rows, words)


def _pictures(path: TrialPath, transcript: dict[str, Any]) -> list[Picture | Text]:
    if not len(path.people):
        return [Text("There is no release to draw yet.")]
    drawn = _drawn(path, transcript)
    none = (
        [] if "means" in drawn else [Text("No mean was released that could be drawn: see above.")]
    )
    return [*none, *drawn.values()]


def _drawn(path: TrialPath, transcript: dict[str, Any]) -> dict[str, Picture]:
    found = dict[str, Picture]()
    protocol = transcript["protocol"]
    shown = _shown(path, protocol["direction"])
    if not np.isnan(path.means).all():
        better = "more is better" if protocol["direction"] == "max" else "less is better"
        span = (protocol["low"], protocol["high"])
        about = (path.recommendation, f"private mean ({better})", span, shown)
        data = charts.TrialMeans(path.names, path.people, path.means, *about)
        words = (
            f"The private mean of each of {len(path.names)} arms after each release, against the "
            "people assigned."
        )
        found["means"] = Picture(charts.render(charts.draw_means(data)), words, words)
    if not np.isnan(path.evidence).all():
        shares = charts.TrialEvidence(path.names, path.people, path.evidence, shown)
        words = (
            "The evidence against each arm after each release, as a share of what puts an arm out; "
            "an arm has no line while it leads."
        )
        found["evidence"] = Picture(charts.render(charts.draw_evidence(shares)), words, words)
    return found


def _shown(path: TrialPath, direction: str) -> tuple[int, ...]:
    """The arms that all pictures of a trial show."""
    if not len(path.people):
        return ()
    sign = 1 if direction == "max" else -1
    last = sign * path.means[-1]
    return tuple(arms_shown(last, path.evidence[-1] >= 1, [path.recommendation]))


def _promises(transcript: dict[str, Any]) -> list[str]:
    status = transcript["status"]
    strategy = transcript["protocol"]["strategy"]
    level, sign = ("epsilon", "ε") if strategy.get("rho") is None else ("rho", "ρ")
    spent = [
        one[level]
        for event in transcript["events"]
        for one in event.get("releases", ())
        if one[level]
    ]
    found = [f"Privacy: {status['privacy']}.", f"Error rate: {status['correctness']}."]
    found += [f"{title}: {words}." for title, words in promises(status)]
    if spent and strategy[level]:
        beside = "" if strategy["gamma"] is None else f", γ = {strategy['gamma']:g}"
        found.append(
            f"{status['releases']} releases, each of at most {sign} = {max(spent):.6g}{beside}; "
            "each person is in one of them, so the whole transcript has "
            f"{sign} = {strategy[level]:g}{beside}. A person who took part k times has k times "
            f"that.{_restored(status)}"
        )
    return found


def _restored(status: dict[str, Any]) -> str:
    """What does not hold after a forced restore."""
    acts = [act["action"] for act in status.get("acts", ())]
    return f" {RESTORED_WORDS}." if RESTORED in acts else ""


def _protocol(transcript: dict[str, Any]) -> Table:
    protocol = transcript["protocol"]
    strategy = protocol["strategy"]
    rows = [
        ["arms", ", ".join(protocol["arms"])],
        ["strategy", f"{strategy['name']}, threshold {strategy['threshold']}"],
        _levels(strategy),
        *_design(strategy),
        ["most people", str(protocol["max_people"])],
        [
            "outcomes",
            f"{protocol['low']:g} to {protocol['high']:g}, best is the {protocol['direction']}imum",
        ],
        *_outside(transcript["status"]),
        *_field(protocol),
        ["missing outcomes", MISSING[protocol["missing"]]],
        ["retention", RETAIN[protocol["retain"]]],
        ["discreet", protocol["version"]],
    ]
    return Table(["setting", "value"], rows)


def _levels(strategy: dict[str, Any]) -> list[str]:
    """How private, and how often wrong."""
    level = "epsilon" if strategy.get("rho") is None else "rho"
    return [f"{'ε' if level == 'epsilon' else 'ρ'}, δ", f"{strategy[level]}, {strategy['delta']}"]


def _field(protocol: dict[str, Any]) -> list[list[str]]:
    """How people come, are dealt and answer, where the protocol says so."""
    if not protocol.get("dealing"):
        return []
    deadline, sites = protocol["deadline"], protocol["sites"]
    block = f" of at least {protocol['block']} people" if protocol["block"] else ""
    return [
        ["dealing", f"{protocol['dealing']}{block}"],
        ["sites", "anywhere" if sites is None else ", ".join(sites)],
        ["deadline", "none" if deadline is None else f"{duration_words(deadline)} from assignment"],
        ["release", protocol["release"]],
        ["enrolment", protocol["enrolment"]],
    ]


def _outside(status: dict[str, Any]) -> list[list[str]]:
    """What outcomes outside the range count as, if they are not refused."""
    return [["outside of these", status["outside"]]] if status.get("outside") else []


def _design(strategy: dict[str, Any]) -> list[list[str]]:
    """What else was chosen of the strategy."""
    from discreet.strategies.strategy import Strategy
    from discreet.studies.study import extras

    chosen = extras(Strategy.from_dict(strategy))
    return [["design", chosen]] if chosen else []


def _record(transcript: dict[str, Any], found: Verification) -> list[str]:
    lines = [
        f"{len(transcript['events'])} public events, tied by a hash chain.",
        f"Protocol: {transcript['protocol_hash']}",
        f"Head: {transcript['status']['head']}",
    ]
    if found.intact:
        lines.append("Checked when this page was made: all of the above follows from the record.")
    return lines
