"""The page of a live trial, made of its transcript alone: whatever stands on it may be published."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.reports import charts
from discreet.reports.page import Bullets, Picture, Section, Table, Text, page
from discreet.trials.protocol import MISSING, RETAIN, Protocol
from discreet.trials.record import Replay
from discreet.trials.store.schema import Event, canonical

SHOWN = 400
"""Points of the picture; with more releases some are left out."""


@dataclass(frozen=True, eq=False)
class TrialPath:
    """How the private means went, a row for each time something was released."""

    names: tuple[str, ...]
    people: Ints
    """[row] people assigned by then."""
    means: Floats
    """[row, arm] in the experimenter's units; NaN before the first release of an arm."""
    recommendation: int | None


def trial_path(transcript: dict[str, Any]) -> TrialPath:
    """Follow the record, and keep the means after each release."""
    protocol = Protocol.from_dict(transcript["protocol"])
    replay, people, means = Replay(protocol), [], []
    wanted = [event for event in transcript["events"] if event["kind"] in ("released", "answered")]
    kept = {event["seq"] for event in wanted[:: max(1, len(wanted) // SHOWN)] + wanted[-1:]}
    for event in transcript["events"]:
        body = {key: value for key, value in event.items() if key not in ("seq", "kind", "hash")}
        replay.follow(Event(event["seq"], event["kind"], canonical(body), event["hash"]))
        if event["seq"] in kept:
            people.append(len(replay.places))
            shown = [np.nan if arm.mean is None else arm.mean for arm in replay.now.course.table()]
            means.append([protocol.scale.shown(mean) for mean in shown])
    table = np.array(means, dtype=np.float64).reshape(len(people), len(protocol.arms))
    return TrialPath(protocol.arms, np.array(people, np.int64), table, replay.now.course.recommendation)


def trial_page(transcript: dict[str, Any]) -> str:
    """One HTML page: result, arms, the way of the means, what is promised, the protocol, the record."""
    status = transcript["status"]
    path = trial_path(transcript)
    sections = [Section("Result", [Bullets(_result(status)), _arms(status), *_pictures(path, transcript)])]
    sections.append(Section("What is promised", [Bullets(_promises(transcript))]))
    sections.append(Section("Protocol", [_protocol(transcript)]))
    sections.append(Section("Record", [Bullets(_record(transcript))]))
    return page(f"Trial {status['name']}", sections, "Made of the trial's public transcript, and of nothing else.")


def _result(status: dict[str, Any]) -> list[str]:
    people = f"{status['people']} of at most {status['max_people']} people took part."
    if not status["stopped"]:
        return ["The trial goes on.", people, f"{status['pending']} outcomes are not in yet."]
    if status["conclusive"]:
        return [f"The best arm is {status['recommendation']}.", people]
    best = status["recommendation"]
    found = ["The trial ended at its maximum without a conclusion.", people]
    found.append("Nothing was released." if best is None else f"The best arm so far was {best}; this is no conclusion.")
    if status["smallest_delta"] is not None:
        found.append(f"It would have been conclusive at an error rate of δ = {status['smallest_delta']:.3g}.")
    return found


def _arms(status: dict[str, Any]) -> Table:
    level = f"{1 - status['delta']:.4g}"
    head, words = ["arm", "people", "outcomes behind the mean", "private mean"], "Private means carry noise."
    rows = []
    for arm in status["arms"]:
        mean = "–" if arm["mean"] is None else f"{arm['mean']:.4g}"
        rows.append([arm["name"], str(arm["pulls"]), str(arm["count"]), mean])
    if any(arm["interval"] for arm in status["arms"]):
        head.append(f"{level} interval")
        words += f" An interval holds the true mean at all times with probability {level}."
        for row, arm in zip(rows, status["arms"], strict=True):
            ends = arm["interval"]
            row.append("–" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}")
    return Table(head, rows, words)


def _pictures(path: TrialPath, transcript: dict[str, Any]) -> list[Picture | Text]:
    if not len(path.people):
        return [Text("Nothing has been released yet, so there is no picture.")]
    protocol = transcript["protocol"]
    better = "more is better" if protocol["direction"] == "max" else "less is better"
    span = (protocol["low"], protocol["high"])
    unit = f"private mean ({better})"
    data = charts.TrialMeans(path.names, path.people, path.means, path.recommendation, unit, span)
    words = f"The private mean of each of {len(path.names)} arms after each release, against the people assigned."
    return [Picture(charts.render(charts.draw_means(data)), words, words)]


def _promises(transcript: dict[str, Any]) -> list[str]:
    status = transcript["status"]
    spent = [one["epsilon"] for event in transcript["events"] for one in event.get("releases", ()) if one["epsilon"]]
    found = [f"Privacy: {status['privacy']}.", f"Error rate: {status['correctness']}."]
    if spent and status["epsilon"]:
        found.append(
            f"{status['releases']} releases, each of at most ε = {max(spent):.6g}; each person is in one of them, so "
            f"the whole transcript has ε = {status['epsilon']:g}. A person who took part k times has k times that."
        )
    return found


def _protocol(transcript: dict[str, Any]) -> Table:
    protocol = transcript["protocol"]
    strategy = protocol["strategy"]
    rows = [
        ["arms", ", ".join(protocol["arms"])],
        ["strategy", f"{strategy['name']}, threshold {strategy['threshold']}"],
        ["ε, δ", f"{strategy['epsilon']}, {strategy['delta']}"],
        ["most people", str(protocol["max_people"])],
        ["outcomes", f"{protocol['low']:g} to {protocol['high']:g}, best is the {protocol['direction']}imum"],
        ["missing outcomes", MISSING[protocol["missing"]]],
        ["retention", RETAIN[protocol["retain"]]],
        ["discreet", protocol["version"]],
    ]
    return Table(["setting", "value"], rows)


def _record(transcript: dict[str, Any]) -> list[str]:
    return [
        f"{len(transcript['events'])} public events, tied by a hash chain.",
        f"Protocol: {transcript['protocol_hash']}",
        f"Head: {transcript['status']['head']}",
    ]
