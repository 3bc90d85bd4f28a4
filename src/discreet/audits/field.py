"""What trials meet in the field: hospitals that differ, seasons, staff who guess the
next arm and pick people for it, outcomes that come the later the better they are.

All arms are as good as each other for everybody who comes, so nothing is to be found.
Where arm 1 is lost more often than δ allows, who came when is what was found.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from discreet.arrays import Progress
from discreet.audits.rehearsal import Rehearsal, Transcript, fixed_keys
from discreet.audits.sources import Live, Simulated, Source
from discreet.drift import Drift, shift
from discreet.strategies.strategy import Strategy

Moved = Callable[[int, str | None, Transcript], float]
"""How far a person's chance of success is from one half, by the person's number, site,
and what is public before they come.
"""
LATE = 40.0
"""The deadline where outcomes are late, in units of one person's coming."""


class Field(NamedTuple):
    """Who comes to a trial, and whether good news is late."""

    words: str
    moved: Moved
    block: int = 0
    """People that each of two hospitals sends in turn; 0 where nobody asks."""
    late: bool = False

    def site(self, number: int) -> str | None:
        """Where a person comes from."""
        if not self.block:
            return None
        return "south" if (number - 1) // self.block % 2 else "north"


def by_site(size: float) -> Moved:
    """People of the south do better than those of the north."""
    return lambda number, site, record: size if site == "south" else -size


def by_time(drift: Drift, before: float = 0.0) -> Moved:
    """Everybody does better or worse as time goes on."""
    return lambda number, site, record: before + shift(drift, number - 1)


def by_staff(size: float) -> Moved:
    """Staff send worse people when they expect arm 1, and better ones otherwise."""
    return lambda number, site, record: -size if lacking(record) == 0 else size


def lacking(record: Transcript) -> int:
    """The arm that has had the fewest people for its odds in this round, of several the
    one after the last: the next arm of every deal that keeps arms balanced. Where no
    round is opened, in the whole trial, of two arms.
    """
    odds, dealt = [[0, 1], [1, 1]], record.arms
    if record.openings:
        opened = record.openings[-1]
        odds, dealt = opened.odds, record.arms[opened.first - 1 :]
    need = {arm: dealt.count(arm) / weight for arm, weight in odds}
    least = min(need.values())
    arms = [arm for arm in need if need[arm] == least]
    return next((arm for arm in arms if dealt and arm > dealt[-1]), arms[0])


def fields() -> dict[str, Field]:
    """What goes wrong where trials are run, for trials of some hundred people."""
    wave = Drift.season(0.4, 200)
    return {
        "hospitals in turn": Field("two send people in turn, 0.3 apart", by_site(0.15), 1),
        "hospitals far apart": Field("the same, 0.6 apart", by_site(0.3), 1),
        "hospitals of all and none": Field("the same; all succeed, or nobody", by_site(0.5), 1),
        "hospitals in blocks": Field("25 people each in turn, 0.6 apart", by_site(0.3), 25),
        "trend": Field("from 0.1 to 0.9", by_time(Drift.trend(0.8, 600), -0.4)),
        "step": Field("from 0.2 to 0.8 at person 100", by_time(Drift.step(0.6, 100), -0.3)),
        "season": Field("up and down by 0.4 in 200 people", by_time(wave)),
        "staff who pick a little": Field("guess the next arm, ±0.1", by_staff(0.1)),
        "staff who pick": Field("guess the next arm, ±0.3", by_staff(0.3)),
        "late good news": Field(
            "hospitals far apart, successes late and many too late", by_site(0.3), 1, late=True
        ),
    }


class FieldTrial(Rehearsal):
    """A trial in the field."""

    field = Field("nothing goes wrong", lambda number, site, record: 0.0)
    rng = np.random.default_rng(0)

    def meet(self, field: Field, rng: np.random.Generator) -> Transcript:
        """One trial; chance has a seed but for the noise and the keys."""
        self.field, self.rng = field, rng
        self.deadline = LATE if field.late else None
        return self.run(self.person, field.site)

    def person(self, number: int, site: str | None, record: Transcript) -> list[float]:
        """Whoever comes has the same outcome on all arms."""
        success = self.rng.random() < 0.5 + self.field.moved(number, site, record)
        return [float(success)] * self.live.arms

    def delay(self, number: int, outcome: float) -> float:
        """Failures are known at once."""
        return 1.5 * LATE * self.rng.random() if self.field.late and outcome > 0 else 0.0


def play_field(
    strategy: Strategy, runs: int, seed: int, people: int, progress: Progress | None = None
) -> Iterator[tuple[str, int, int]]:
    """Trials of two arms in each field: its name, how many lost arm 1, and how many had
    no end.
    """
    source: Source = Simulated(seed) if not strategy.part.gamma else Live()
    trial, known = FieldTrial(strategy, people, source), fields()
    for place, (name, field) in enumerate(known.items()):
        ends = list[int | None]()
        for run in range(runs):
            rng = np.random.default_rng([seed, place, run])
            trial.keys = fixed_keys(int(rng.integers(2**62)))
            found = trial.meet(field, rng)
            ends.append(found.recommendation if found.stopped else None)
            if progress is not None:
                progress(place * runs + run + 1, runs * len(known))
        yield name, sum(end not in (0, None) for end in ends), ends.count(None)
