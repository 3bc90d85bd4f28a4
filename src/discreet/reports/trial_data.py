"""What a report keeps while the public record of a trial is followed: how the arms did
from look to look, who was assigned where, and when managers acted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.reports import charts
from discreet.reports.charts import FEW_BANDS
from discreet.reports.charts.style import MOST_SHOWN, choose_arms, describe_shown
from discreet.reports.document import Figure
from discreet.strategies.run import MIN_P_VALUE, Margin, Pair
from discreet.trials.record import Event, PublicState, Replay
from discreet.trials.responses import payable_delta
from discreet.validation import quote
from discreet.wording import shorten

SHOWN = 400
"""Points of a picture; with more looks some are left out."""
LOOKS = ("released", "answered")
"""Events in which something about outcomes becomes public."""


@dataclass(frozen=True, eq=False)
class TrialPath:
    """How the private means went, a row for each look."""

    names: tuple[str, ...]
    people: Ints
    """[row] people assigned by then."""
    means: Floats
    """[row, arm] in the experimenter's units; NaN before the first look at an arm, and
    before it was added.
    """
    low: Floats
    high: Floats
    """[row, arm] the ends of its interval; NaN where there is none, and of more arms
    than are drawn with it.
    """
    evidence: Floats
    """[row, arm] against it, as a share of what puts it out; NaN as in the means, and
    while an arm leads.
    """
    recommendation: int | None


class Moment(NamedTuple):
    """When something happened, as the record counts time."""

    people: int
    """Assigned by then."""
    looks: int
    """Made by then."""


class Course:
    """Watches a record that is followed."""

    def __init__(self, transcript: dict[str, Any]) -> None:
        places = enumerate(transcript["events"], start=1)
        wanted = [place for place, event in places if _is_look(event)]
        self._kept = {*wanted[:: max(1, len(wanted) // SHOWN)], *wanted[-1:]}
        self._rows: list[tuple[int, list[list[float]]]] = []
        self.replay: Replay | None = None
        """After the last event that is in order."""
        self.looks = 0
        self.margins: list[Margin] = []
        """Those between two arms."""
        self.acts: list[Moment] = []
        """Of what managers did."""
        self.sites: list[str | None] = []
        """Where each person came from, in the order of assignment."""
        self.times: list[tuple[str, int]] = []
        """(kind of event, seconds since 1970), where the record tells times."""
        self.used = Counter[int]()
        """By arm: outcomes that were looked at."""
        self._centre: float | None = None
        """Of what is due to be released next."""

    def watch(self, event: Event, replay: Replay) -> None:
        """Take a look after an event."""
        self.replay = replay
        says = event.content
        if event.kind == "assigned":
            self.sites += [says.get("site")] * len(says["arms"])
        elif event.kind == "managed":
            self.acts.append(Moment(len(replay.seats), self.looks))
        elif event.kind == "answered":
            self.looks += len(says["answers"])
            self.used.update(replay.seats[number - 1][0] for number, _ in says["answers"])
        elif event.kind == "released":
            self.looks += 1
            self.used.update({one["arm"]: one["count"] for one in says["releases"]})
            self._note_margin(says)
        if "at" in says:
            self.times.append((event.kind, says["at"]))
        if event.seq in self._kept:
            self._keep(replay)
        self._centre = replay.state.run.centre

    def _note_margin(self, says: dict[str, Any]) -> None:
        """A number for two arms in place of two sums; the allowance for people that the
        first had more is taken back.
        """
        batches = {one["arm"]: one for one in says["releases"]}
        if "margin" not in says or len(batches) != 2:
            return
        first = batches.pop(says["margin"])
        ((other, second),) = batches.items()
        people = first["count"], second["count"]
        lead = first["sum"] * says["unit"] + (people[0] - people[1]) // 2
        near = first["near"] * says["unit"] if "near" in first else None
        self.margins.append(Margin(first["arm"], other, people, lead, near, self._centre))

    def _keep(self, replay: Replay) -> None:
        run, shown = replay.state.run, replay.protocol.scale.convert_to_outcome
        means = [np.nan if mean is None else shown(mean) for mean in run.list_means()]
        shares = [np.nan if share is None else share for share in run.measure_evidence()]
        low = high = [np.nan] * run.arms
        if run.arms <= FEW_BANDS:  # of more they are not drawn, and they take long
            ends = [arm.interval for arm in run.view_arms()]
            known = [sorted(map(shown, end)) if end else (np.nan, np.nan) for end in ends]
            low, high = [end for end, _ in known], [end for _, end in known]
        self._rows.append((len(replay.seats), [means, low, high, shares]))

    def path(self) -> TrialPath:
        """How the means went."""
        now = None if self.replay is None else self.replay.state
        names = () if now is None else tuple(now.management.arms)
        people = np.array([people for people, _ in self._rows], np.int64)
        means, low, high, shares = (
            self._padded([columns[which] for _, columns in self._rows], len(names))
            for which in range(4)
        )
        best = None if now is None else now.run.recommendation
        return TrialPath(names, people, means, low, high, shares, best)

    @staticmethod
    def _padded(rows: list[list[float]], arms: int) -> Floats:
        """[row, arm], where arms may have been added."""
        padded = [row + [np.nan] * (arms - len(row)) for row in rows]
        return np.array(padded, np.float64).reshape(len(rows), arms)

    def assigned(self) -> Counter[tuple[int, str | None]]:
        """By arm and site: people assigned."""
        places = [] if self.replay is None else self.replay.seats
        return Counter((arm, site) for (arm, _), site in zip(places, self.sites, strict=True))


def _is_look(event: Any) -> bool:
    return isinstance(event, dict) and event.get("kind") in LOOKS


CONTROL, BEST, AHEAD = "control", "best", "ahead"
"""Why an arm is compared with."""


@dataclass(frozen=True)
class Comparison:
    """An arm against the one it is compared with, in the experimenter's units."""

    arm: int
    difference: float
    interval: tuple[float, float]
    """For all pairs of arms at once."""
    p_value: float
    """Of no difference, times the number of comparisons."""


@dataclass(frozen=True)
class Compared:
    """All arms against one of them."""

    reference: int
    why: str
    level: float
    """With this probability all intervals hold at all looks."""
    rows: tuple[Comparison, ...]
    """Those of which something was released."""
    best: tuple[float | None, ...]
    """[arm]: the p-value of being the best, where the strategy has one."""


def compare(course: Course, control: str | None = None) -> Compared | None:
    """The differences from a control, or from the arm that did best; None if there is
    nothing to compare yet.
    """
    if course.replay is None:
        return None
    now = course.replay.state
    reference, why = _reference(now, control)
    if reference is None:
        return None
    rows = tuple(
        _comparison(arm, now, pair, _pairs(max(arm, reference), now))
        for arm in range(len(now.management.arms))
        if arm != reference and (pair := _pair(arm, reference, course, now)) is not None
    )
    again = 1 + len(now.management.dropped_arms)  # the comparison of the arms started anew
    best = tuple(
        None if value is None else min(again * value, 1.0) for value in now.run.compute_p_values()
    )
    return Compared(reference, why, _level(now), rows, best) if rows else None


def check_control(control: str | None, arms: Sequence[str]) -> None:
    """Refuse a control that is no arm of the trial."""
    if control is not None and control not in arms:
        raise InvalidInputError(
            f"control must be an arm of the trial, one of {', '.join(arms)}; got {quote(control)}"
        )


def _reference(now: PublicState, control: str | None) -> tuple[int | None, str]:
    if control is not None:
        return now.management.arms.index(control), CONTROL
    return now.run.recommendation, BEST if now.conclusive else AHEAD


def _pair(arm: int, reference: int, course: Course, now: PublicState) -> Pair | None:
    between = [one for one in course.margins if {one.one, one.other} == {arm, reference}]
    turned = [one if one.one == arm else one.reverse() for one in between]
    return now.run.compare(arm, reference, turned)


def _pairs(latest: int, now: PublicState) -> int:
    """With how many others a pair shares one δ: those of the arms of the start, or
    those of an arm that was added with the arms before it.
    """
    first = len(now.protocol.arms)
    return first * (first - 1) // 2 if latest < first else latest


def _level(now: PublicState) -> float:
    return 1 - min((1 + now.management.added_arms) * now.protocol.strategy.delta, 1.0)


def _comparison(arm: int, now: PublicState, pair: Pair, pairs: int) -> Comparison:
    strategy, scale = now.protocol.strategy, now.protocol.scale
    # The other pairs, and what discrete noise costs beyond continuous noise.
    price = pairs * strategy.delta / payable_delta(strategy)
    unit = scale.convert_to_outcome(1.0) - scale.convert_to_outcome(0.0)
    low, high = sorted(unit * end for end in pair.interval(strategy.delta / price))
    p_value = min((1 + now.management.added_arms) * price * max(pair.p_value(), MIN_P_VALUE), 1.0)
    return Comparison(arm, unit * pair.difference, (low, high), p_value)


def draw_trial_figures(path: TrialPath, said: dict[str, Any]) -> dict[str, Figure]:
    """Private `means` and the `evidence` against each arm at each look, as far as they
    are there. An arm is marked as the best only if it was found to be.
    """
    found, protocol = dict[str, Figure](), said["protocol"]
    shown = _shown(path, protocol["direction"])
    if not np.isnan(path.means).all():
        span = tuple(protocol["range"])
        chosen = path.recommendation if said["status"]["conclusive"] else None
        about = (chosen, _mean_words(protocol), span, shown, path.low, path.high)
        data = charts.TrialMeans(path.names, path.people, path.means, *about)
        words = (
            f"The estimate of each of {len(path.names)} arms at each interim analysis, against the "
            "participants assigned."
        )
        if len(path.names) <= charts.FEW_BANDS and not np.isnan(path.low).all():
            words += " Bands: the confidence sequences of the table above."
        words += describe_shown(len(path.names))
        found["means"] = Figure(lambda: charts.render(charts.draw_means(data)), words, words)
    if not np.isnan(path.evidence).all():
        shares = charts.TrialEvidence(path.names, path.people, path.evidence, shown)
        words = (
            "The evidence against each arm at each interim analysis, as a share of what eliminates "
            f"an arm; an arm has no line while it leads.{describe_shown(len(path.names))}"
        )
        found["evidence"] = Figure(
            lambda: charts.render(charts.draw_evidence(shares)), words, words
        )
    return found


def _shown(path: TrialPath, direction: str) -> tuple[int, ...]:
    """The arms that all pictures of a trial show."""
    if not len(path.people):
        return ()
    sign = 1 if direction == "max" else -1
    last = sign * path.means[-1]
    return tuple(choose_arms(last, path.evidence[-1] >= 1, [path.recommendation]))


def draw_standing(said: dict[str, Any]) -> Figure | None:
    """Where the arms stand now: means with their intervals, the best first."""
    protocol, status = said["protocol"], said["status"]
    arms = [arm for arm in status["arms"] if arm["mean"] is not None]
    if not arms or not any(arm["interval"] for arm in arms):
        return None
    arms.sort(key=lambda arm: arm["mean"], reverse=protocol["direction"] == "max")
    best = status["recommendation"] if status["conclusive"] else None
    rows = tuple(
        charts.ForestRow(
            arm["name"],
            arm["mean"],
            None if arm["interval"] is None else tuple(arm["interval"]),
            arm["name"] == best,
        )
        for arm in arms[:MOST_SHOWN]
    )
    span = tuple(protocol["range"])
    words = f"The estimate of each arm with its confidence sequence.{_left_out(len(arms))}"
    words += " Filled: the arm that was found to be the best." if best is not None else ""
    data = charts.Forest(rows, _mean_words(protocol), span, len(arms))
    return Figure(lambda: charts.render(charts.draw_forest(data)), words, words)


def draw_comparison(said: dict[str, Any], compared: Compared) -> list[Figure]:
    """The differences with their intervals, the largest gain first."""
    protocol = said["protocol"]
    names = [arm["name"] for arm in said["status"]["arms"]]
    upwards = protocol["direction"] == "max"
    ordered = sorted(compared.rows, key=lambda row: row.difference, reverse=upwards)
    rows = tuple(
        charts.ForestRow(names[row.arm], row.difference, row.interval)
        for row in ordered[:MOST_SHOWN]
    )
    low, high = protocol["range"]
    reach = high - low
    better = "right" if upwards else "left"
    words = (
        f"The differences from {names[compared.reference]} with their confidence sequences; to "
        f"the {better} "
        f"of the line an arm did better.{_left_out(len(compared.rows))}"
    )
    span, other = (-reach, reach), shorten(names[compared.reference])
    data = charts.Forest(rows, "difference from", span, len(ordered), True, other)
    return [Figure(lambda: charts.render(charts.draw_forest(data)), words, words)]


def _mean_words(protocol: dict[str, Any]) -> str:
    better = "more is better" if protocol["direction"] == "max" else "less is better"
    return f"estimate ({better})"


def _left_out(count: int) -> str:
    if count <= MOST_SHOWN:
        return ""
    return f" The first {MOST_SHOWN} of {count}; the table has all."
