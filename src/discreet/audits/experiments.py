"""What an audit of ε runs: a release, a response or whole trials, on two inputs that
differ in one person.

All runs of an experiment are dealt by the same keys: coins know nothing of outcomes, so
ε must hold given any of them, and given them a person's place is known, where a leak
would show most. A key or a deal that does depend on outcomes would show as well.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from discreet.audits.rehearsal import Keys, Rehearsal, Table, Transcript
from discreet.audits.sources import Silent, Source
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, kind_of

MANY = 10**9
"""People: more than ever come."""
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


class Audited(NamedTuple):
    """What is audited."""

    strategy: Strategy
    rehearsal: type[Rehearsal]
    source: Source
    keys: Keys

    def trial(self, people: int) -> Rehearsal:
        """A trial of at most so many people."""
        return self.rehearsal(self.strategy, people, self.source, 2, self.keys)

    def silent(self, people: int) -> Rehearsal:
        """The same with nothing of somebody's own, and without noise."""
        return Rehearsal(self.strategy, people, Silent(), keys=self.keys)


def make_experiments(part: str, runs: int, audited: Audited) -> list[Experiment | str]:
    """The experiments of a part, or why there is none."""
    bits = kind_of(audited.strategy) == BITS
    if part == "single":
        pairs = ONE_PERSON if bits else CLOSE
        return [_single(audited, runs, *pair) for pair in pairs]
    if part == "stop":
        return [_stop(audited, runs)]
    tables = [ZEROS, HALVES] if part == "first" and not bits else [ZEROS]
    return [_short(part, runs, audited, *table) for table in tables]


def _short(
    part: str, runs: int, audited: Audited, usual: float, other: float, shown: str
) -> Experiment | str:
    """Short trials in which everybody has the usual outcome, and one person that or
    another.
    """
    people = short_trial(audited)
    person = _first_person(audited, people, later=part == "later")
    if person is None:
        return f"a person of a second batch: it comes after the {people} people of short trials"
    tables = np.full((2, people, 2), usual)
    tables[1, person] = other
    name = f"transcript, person {person + 1}{'' if usual == 0 else f' has {shown}'}"
    usually = shown.partition(",")[0]
    words = f"{people} people with outcomes of {usually}; person {person + 1} has {shown}"
    return _whole(name, words, audited.trial(people), tables, runs)


def _first_person(audited: Audited, people: int, later: bool) -> int | None:
    """The first person of arm 1, or of a later batch, if there is one."""
    silent = audited.silent(people)
    silent.run(np.zeros((people, 2), np.int64))
    found = [
        members[0]
        for (arm, phase), members in silent.batches.items()
        if (phase > 1 if later else arm == 0)
    ]
    return min(found, default=None)


def _single(audited: Audited, runs: int, words: str, one: float, other: float) -> Experiment:
    """One release, or with local trust one response, of an outcome or of another."""
    mechanism = audited.trial(MANY)
    mechanism.begin(np.zeros((1, 2)))
    mechanism.step()
    mechanism.middle = mechanism.live.middle
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


def _stop(audited: Audited, runs: int) -> Experiment | str:
    """Trials at whose end raw outcomes would stop or go on by one person alone."""
    if audited.strategy.trust_model.randomised:
        return "a stop by raw outcomes: with local trust nobody has them"
    tables = critical_tables(audited)
    if tables is None:
        return f"a stop by raw outcomes: within {LONG} people they lead to none"
    people = tables.shape[1]
    person = int(np.flatnonzero((tables[0] != tables[1]).any(axis=1))[0])
    words = (
        f"{people} people; without noise person {person + 1} alone would decide whether it stops"
    )
    return _whole("transcript, the stop", words, audited.trial(people), tables, runs // SHARE)


def _whole(name: str, words: str, trial: Rehearsal, tables: Table, runs: int) -> Experiment:
    numbers = not trial.live.sums_only

    def sample(which: int) -> list[float]:
        transcript = trial.run(tables[which])
        found = [*features(transcript, trial.grid, numbers), *round_features(transcript)]
        return [*found, *near_features(transcript, trial.grid)] if numbers else found

    seen = [*FEATURES, *ROUNDS, *(CLOSENESS if numbers else [])]
    return Experiment(name, words, seen, 2 * DEEP, runs, trial.source.name, sample)


def short_trial(audited: Audited) -> int:
    """People in a trial of a few releases."""
    trial = audited.silent(MANY)
    if trial.live.learns_always:
        return 2 * DEEP
    trial.begin(lambda number, site, record: (0.0, 0.0))
    people, looks = 0, 0
    while looks < LOOKS and not trial.live.stopped and trial.step():
        if len(trial.record.times) > looks:
            people, looks = trial.live.samples, looks + 1
        elif people and trial.live.samples > SHORT:
            break
    return people


def critical_tables(audited: Audited) -> Table | None:
    """Two neighbours on only the first of which the raw outcomes, without noise, would
    stop the trial.

    From all successes on arm 0 to all successes on arm 1, people are turned over one by
    one; somewhere on the way it happens. None if even the first table stops no trial of
    `LONG` people (or of one batch, if that is longer).
    """
    trial = audited.silent(MANY)
    trial.begin(lambda number, site, record: (0.0, 0.0))
    while not trial.record.releases and trial.step():
        least = trial.live.samples
    easy = np.tile(np.array([1, 0]), (max(LONG, least), 1))
    transcript = audited.silent(len(easy)).run(easy)
    if not transcript.stopped or transcript.recommendation != 0:
        return None
    people = len(transcript.arms)
    trial = audited.silent(people)

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
ROUNDS = [
    f"{what} {number}"
    for what in (
        "the time of release",
        "the people announced for round",
        "the largest share announced for round",
        "the first byte of the key of round",
    )
    for number in range(1, DEEP + 1)
]
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


def round_features(transcript: Transcript) -> list[float]:
    """When releases came, what was announced of rounds, and their keys: `ROUNDS`."""
    opened = transcript.openings[:DEEP]
    shares = [
        max(weight for _, weight in one.odds) / sum(weight for _, weight in one.odds)
        for one in opened
    ]
    first_bytes = [float(int(key[:2], 16)) for _, key in transcript.keys[:DEEP]]
    found = [transcript.times[:DEEP], [float(one.people) for one in opened], shares, first_bytes]
    return [value for row in found for value in [*row, *[math.nan] * (DEEP - len(row))]]


def near_features(transcript: Transcript, grid: int) -> list[float]:
    """What is looked at beside, where closeness is released: see `CLOSENESS`."""
    near: list[list[float]] = [[], []]
    for release in transcript.releases:
        if release.near is not None:
            near[release.arm].append(release.near / grid)
    return _at_places(near)


def _at_places(values: list[list[float]]) -> list[float]:
    return [values[arm][at] if at < len(values[arm]) else math.nan for arm, at in PLACES]
