"""What a report keeps while the public record of a trial is followed: how the arms did
from look to look, who was assigned where, and when managers acted.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.reports.charts import FEW_BANDS
from discreet.strategies.pairs import Margin
from discreet.trials.chain import Event
from discreet.trials.replay import Replay

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
        says = event.says
        if event.kind == "assigned":
            self.sites += [says.get("site")] * len(says["arms"])
        elif event.kind == "managed":
            self.acts.append(Moment(len(replay.places), self.looks))
        elif event.kind == "answered":
            self.looks += len(says["answers"])
            self.used.update(replay.places[number - 1][0] for number, _ in says["answers"])
        elif event.kind == "released":
            self.looks += 1
            self.used.update({one["arm"]: one["count"] for one in says["releases"]})
            self._note_margin(says)
        if "at" in says:
            self.times.append((event.kind, says["at"]))
        if event.seq in self._kept:
            self._keep(replay)
        self._centre = replay.now.run.centre

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
        run, shown = replay.now.run, replay.protocol.scale.shown
        means = [np.nan if mean is None else shown(mean) for mean in run.means()]
        shares = [np.nan if share is None else share for share in run.evidence()]
        low = high = [np.nan] * run.arms
        if run.arms <= FEW_BANDS:  # of more they are not drawn, and they take long
            ends = [arm.interval for arm in run.table()]
            known = [sorted(map(shown, end)) if end else (np.nan, np.nan) for end in ends]
            low, high = [end for end, _ in known], [end for _, end in known]
        self._rows.append((len(replay.places), [means, low, high, shares]))

    def path(self) -> TrialPath:
        """How the means went."""
        now = None if self.replay is None else self.replay.now
        names = () if now is None else tuple(now.conduct.arms)
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
        places = [] if self.replay is None else self.replay.places
        return Counter((arm, site) for (arm, _), site in zip(places, self.sites, strict=True))


def _is_look(event: Any) -> bool:
    return isinstance(event, dict) and event.get("kind") in LOOKS
