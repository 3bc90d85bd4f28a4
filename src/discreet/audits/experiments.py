"""What an audit of ε runs: a release, a response or whole trials, on two inputs that
differ in one person.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from discreet.audits.rehearsal import Rehearsal, Silent, Source, Table, Transcript
from discreet.strategies.run import Totals
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, kind_of
from discreet.trials.record import in_rewards, live_run

LOOKS = 5
"""Releases after which a short trial is cut off …"""
SHORT = 100
"""… or after so many people, if there was a release before."""
LONG = 600
"""People within which raw outcomes must lead to a stop, for a table on which one person
decides it.
"""
SHARE = 10
"""Of the long trials there are fewer runs, by this factor."""
DEEP = 4
"""Releases of an arm that are looked at."""
PARTS = ("single", "first", "later", "stop")
ONE_PERSON = [("0, or of 1", 0.0, 1.0)]
"""An outcome, and another one."""
CLOSE = [*ONE_PERSON, ("0, or of 1/2", 0.0, 0.5), ("1/2, or of 1", 0.5, 1.0)]
"""Where the closeness to the centre, first 1/2, is released too: both move."""
ZEROS, HALVES = (0.0, 1.0, "0, or 1"), (0.5, 0.0, "1/2, or 0")
"""What everybody has, what one person may have instead, and that in words."""


class Experiment(NamedTuple):
    """A mechanism that can be run on two neighbouring inputs, and what is looked at."""

    name: str
    neighbours: str
    features: list[str]
    scored: int
    """The first features make up the learned score."""
    runs: int
    noise: str
    sample: Callable[[int], list[float]]
    """The features of a run on the first (0) or the second input (1)."""


def make_experiments(
    part: str, strategy: Strategy, runs: int, rehearsal: type[Rehearsal], source: Source
) -> list[Experiment | str]:
    """The experiments of a part, or why there is none."""
    if part == "single":
        pairs = ONE_PERSON if kind_of(strategy) == BITS else CLOSE
        return [_single(rehearsal(strategy, 2, source), runs, *pair) for pair in pairs]
    if part == "stop":
        return [_stop(strategy, runs, rehearsal, source)]
    close = part == "first" and kind_of(strategy) != BITS
    tables = [ZEROS, HALVES] if close else [ZEROS]
    return [_short(part, strategy, runs, rehearsal, source, *table) for table in tables]


def _short(
    part: str,
    strategy: Strategy,
    runs: int,
    rehearsal: type[Rehearsal],
    source: Source,
    usual: float,
    other: float,
    shown: str,
) -> Experiment | str:
    """Short trials in which everybody has the usual outcome, and one person that or
    another.
    """
    people = short_trial(strategy)
    person = _first_of_a_second_batch(strategy, people) if part == "later" else 0
    if person is None:
        return f"a person of a second batch: it comes after the {people} people of short trials"
    tables = np.full((2, people, 2), usual)
    tables[1, person] = other
    name = f"transcript, person {person + 1}{'' if usual == 0 else f' has {shown}'}"
    usually = shown.partition(",")[0]
    words = f"{people} people with outcomes of {usually}; person {person + 1} has {shown}"
    return _whole(name, words, rehearsal(strategy, people, source), tables, runs)


def _first_of_a_second_batch(strategy: Strategy, people: int) -> int | None:
    silent = Rehearsal(strategy, people, Silent())
    silent.run(np.zeros((people, 2), np.int64))
    later = [members[0] for (_, phase), members in silent.batches.items() if phase > 1]
    return min(later, default=None)


def _single(mechanism: Rehearsal, runs: int, words: str, one: float, other: float) -> Experiment:
    """One release, or with local trust one response, of an outcome or of another."""
    local, pairs = mechanism.strategy.trust_model.randomised, mechanism.live.fine

    def sample(which: int) -> list[float]:
        sent = mechanism.respond(other if which else one)
        if local:
            return [sent / mechanism.grid]
        if not pairs:
            return [mechanism.noisy(sent) / mechanism.grid]
        shown = mechanism.noisy_totals(mechanism.live.totals([sent]))
        total, near = shown.sum / mechanism.grid, (shown.near or 0) / mechanism.grid
        return [total, near, total - near]

    sums = ["the released sum", "the released closeness", "the sum minus the closeness"]
    name = "response" if local else "release"
    return Experiment(
        name=name if (one, other) == (0.0, 1.0) else f"{name} of {words}",
        neighbours=f"an outcome of {words}",
        features=["the response"] if local else sums if pairs else sums[:1],
        scored=2 if pairs and not local else 0,
        runs=runs,
        noise=mechanism.source.name,
        sample=sample,
    )


def _stop(
    strategy: Strategy, runs: int, rehearsal: type[Rehearsal], source: Source
) -> Experiment | str:
    """Trials at whose end raw outcomes would stop or go on by one person alone."""
    if strategy.trust_model.randomised:
        return "a stop by raw outcomes: with local trust nobody has them"
    tables = critical_tables(strategy)
    if tables is None:
        return f"a stop by raw outcomes: within {LONG} people they lead to none"
    people = tables.shape[1]
    person = int(np.flatnonzero((tables[0] != tables[1]).any(axis=1))[0])
    words = (
        f"{people} people; without noise person {person + 1} alone would decide whether it stops"
    )
    trial = rehearsal(strategy, people, source)
    return _whole("transcript, the stop", words, trial, tables, runs // SHARE)


def _whole(name: str, words: str, trial: Rehearsal, tables: Table, runs: int) -> Experiment:
    numbers = not trial.live.sums_only

    def sample(which: int) -> list[float]:
        transcript = trial.run(tables[which])
        found = features(transcript, trial.grid, numbers)
        return [*found, *near_features(transcript, trial.grid)] if numbers else found

    seen = [*FEATURES, *CLOSENESS] if numbers else FEATURES
    return Experiment(name, words, seen, 2 * DEEP, runs, trial.source.name, sample)


def short_trial(strategy: Strategy) -> int:
    """People in a trial of a few releases."""
    live = live_run(strategy, 2, 10**9)
    people = 0
    if live.learns_always:
        return 2 * DEEP
    for _ in range(LOOKS):
        while live.take() is not None:
            if people and live.samples > SHORT:
                return people
        people = live.samples
        empty = [Totals(0, 0 if live.fine else None)] * len(live.due())
        shown = [total for total in live.combine(empty) if total is not None]
        live.release(*in_rewards(shown, 1.0))
        if live.stopped:
            break
    return people


def critical_tables(strategy: Strategy) -> Table | None:
    """Two neighbours on only the first of which the raw outcomes, without noise, would
    stop the trial.

    From all successes on arm 0 to all successes on arm 1, people are turned over one by
    one; somewhere on the way it happens. None if even the first table stops no trial of
    `LONG` people (or of one batch, if that is longer).
    """
    least = len(Rehearsal(strategy, 10**9, Silent()).restart())
    easy = np.tile(np.array([1, 0]), (max(LONG, least), 1))
    transcript = Rehearsal(strategy, len(easy), Silent()).run(easy)
    if not transcript.stopped or transcript.recommendation != 0:
        return None
    people = len(transcript.arms)
    trial = Rehearsal(strategy, people, Silent())

    def turned(first: int) -> Table:
        return np.array([[0, 1]] * first + [[1, 0]] * (people - first))

    stops = 0
    goes_on = people
    while goes_on - stops > 1:
        middle = (stops + goes_on) // 2
        transcript = trial.run(turned(middle))
        if transcript.stopped and transcript.recommendation == 0:
            stops = middle
        else:
            goes_on = middle
    return np.array([turned(stops), turned(goes_on)])


PLACES = [(arm, place) for arm in range(2) for place in range(DEEP)]
RELEASES = [f"release {place + 1} of arm {arm + 1}" for arm, place in PLACES]
CLOSENESS = [f"closeness {place + 1} of arm {arm + 1}" for arm, place in PLACES]
FEATURES = [
    *RELEASES,
    *(f"{one} minus {other}" for one, other in combinations(RELEASES, 2)),
    "the number of people",
    "the number of releases",
    "stopping by the rule (1 or 0)",
    "the number of the recommended arm",
    *(f"the number of person {number}'s arm" for number in range(3, 9)),
]


def features(transcript: Transcript, grid: int, numbers: bool = False) -> list[float]:
    """What is looked at in a transcript, in the order of `FEATURES`; nan for what did
    not happen. Of `numbers` a sum without closeness is one of bits.
    """
    sums: list[list[float]] = [[], []]
    for release in transcript.releases:
        if release.sum is not None:
            unit = 1 if numbers and release.near is None else grid
            sums[release.arm].append(release.sum / unit)
    values = _at_places(sums)
    best = math.nan if transcript.recommendation is None else transcript.recommendation + 1.0
    arms = [
        transcript.arms[person] + 1.0 if person < len(transcript.arms) else math.nan
        for person in range(2, 8)
    ]
    return [
        *values,
        *(one - other for one, other in combinations(values, 2)),
        float(len(transcript.arms)),
        float(len(transcript.releases)),
        float(transcript.stopped),
        best,
        *arms,
    ]


def near_features(transcript: Transcript, grid: int) -> list[float]:
    """What is looked at beside, where closeness is released: see `CLOSENESS`."""
    near: list[list[float]] = [[], []]
    for release in transcript.releases:
        if release.near is not None:
            near[release.arm].append(release.near / grid)
    return _at_places(near)


def _at_places(values: list[list[float]]) -> list[float]:
    return [values[arm][at] if at < len(values[arm]) else math.nan for arm, at in PLACES]
