"""An empirical check of ε: lower confidence bounds on it, from many runs on two tables that differ in one person.

If a mechanism is ε-private, no event is more than e^ε times as likely on one table as on a neighbour. An event is
chosen on one half of the runs and counted on the other; exact bounds on its two probabilities give a lower bound on ε.
An audit can catch a promise that does not hold; it cannot prove one that does.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Floats, Ints, Progress
from discreet.audits.rehearsal import Live, Rehearsal, Silent, Simulated, Source, Table, Transcript
from discreet.errors import InvalidInputError
from discreet.statistics import clopper_pearson
from discreet.strategies.strategy import Strategy
from discreet.trials.record import live_course
from discreet.validate import check_whole
from discreet.version import __version__

RUNS = 10_000
LOOKS = 5
"""Releases after which a short trial is cut off …"""
SHORT = 100
"""… or after so many people, if there was a release before."""
LONG = 600
"""People within which raw outcomes must lead to a stop, for a table on which one person decides it."""
SHARE = 10
"""Of the long trials there are fewer runs, by this factor."""
INPUTS = ("the first input", "the second input")
DEEP = 4
"""Releases of an arm that are looked at."""
NOISES = ("mixed", "opendp", "numpy")
PARTS = ("single", "first", "later", "stop")


@dataclass(frozen=True)
class Leak:
    """What was found out about one mechanism, on one pair of neighbours."""

    name: str
    """`release`, `response` or `transcript`, and which person the tables differ in."""
    neighbours: str
    """The two inputs, in words."""
    event: str
    """What was counted, in words."""
    runs: int
    """Runs on each input in which it was counted; as many before them served to choose it."""
    hits: int
    """How often it happened on the input where it is likelier …"""
    hits_other: int
    """… and on the other one."""
    low: float
    """The lower confidence bound on ε."""
    verdict: str
    noise: str
    """What drew the noise: `opendp`, as in live trials, or `numpy`."""

    @property
    def violated(self) -> bool:
        """Whether the promised ε is exceeded."""
        return self.verdict != "no violation found"


@dataclass(frozen=True)
class PrivacyAudit:
    """An audit of ε."""

    strategy: Strategy
    level: float
    leaks: tuple[Leak, ...]
    left_out: tuple[str, ...]
    """What was not audited, and why."""
    noise: str
    version: str = __version__

    @property
    def epsilon(self) -> float:
        """The ε that was promised."""
        return float(self.strategy.epsilon or 0)

    @property
    def violated(self) -> bool:
        """Whether some lower bound exceeds the promised ε."""
        return any(leak.violated for leak in self.leaks)

    @property
    def worst(self) -> Leak:
        """The largest lower bound."""
        return max(self.leaks, key=lambda leak: leak.low)

    @property
    def rule(self) -> str:
        """The multiple-testing rule in words."""
        count = len(self.leaks)
        return (
            f"{count} rows in both directions, two Clopper–Pearson bounds each, every one at level "
            f"1 − {1 - self.level:.3g}/{4 * count} (Bonferroni), on runs that had no part in choosing the event; a "
            f"mechanism that keeps its ε is accused with probability at most {1 - self.level:.3g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {
            "strategy": self.strategy.name,
            "trust": self.strategy.trust,
            "epsilon": self.epsilon,
            "gamma": self.strategy.gamma,
            "level": self.level,
            "rule": self.rule,
            "violated": self.violated,
            "worst": self.worst.name,
            "leaks": [{**vars(leak), "violated": leak.violated} for leak in self.leaks],
            "left_out": list(self.left_out),
            "noise": self.noise,
            "version": self.version,
        }


def audit_privacy(
    strategy: Strategy,
    runs: int = RUNS,
    level: float = 0.95,
    noise: str = "mixed",
    seed: int | None = None,
    parts: Collection[str] = PARTS,
    rehearsal: type[Rehearsal] = Rehearsal,
    progress: Progress | None = None,
) -> PrivacyAudit:
    """Search for events that tell one person's outcome better than ε allows, and bound ε from below.

    Audited are one release (global trust) or one response (local trust), and whole transcripts of trials with two
    arms, `runs` times on each of two neighbouring inputs; a tenth of that where trials are long. `level` is the
    confidence of the whole audit: a mechanism that keeps its ε is accused with probability at most 1 − level. `noise`
    is `mixed` (releases and responses live, by OpenDP; whole trials by numpy with the same law), `opendp` (all live) or
    `numpy`, for which `seed` is; Gaussian responses are always live. `parts` are some of `single` (a release or a
    response), `first` and `later` (transcripts of short trials, for a person of the first or of a later batch) and
    `stop` (transcripts of trials that raw outcomes would stop or not by one person alone). `rehearsal` is what is
    audited, if not the mechanisms of this package.
    """
    runs = _check(strategy, runs, level, noise, parts)
    drawn: Source = Simulated(seed) if strategy.gamma is None else Live()
    sources = dict.fromkeys(PARTS, Live() if noise == "opendp" else drawn)
    sources["single"] = drawn if noise == "numpy" else Live()
    planned = [_plan(part, strategy, runs, rehearsal, sources[part]) for part in PARTS if part in parts]
    experiments = [one for one in planned if isinstance(one, Experiment)]
    if not experiments:
        raise InvalidInputError("nothing to audit is left: choose other parts")
    tail, total, done = (1 - level) / (4 * len(experiments)), 2 * sum(one.runs for one in experiments), 0
    leaks = []
    for experiment in experiments:
        found = np.zeros((2, experiment.runs, len(experiment.features)))
        for which, run in np.ndindex(2, experiment.runs):
            found[which, run] = experiment.sample(which)
            done += 1
            if progress is not None and done % 100 == 0:
                progress(done, total)
        leaks.append(_judge(experiment, found, strategy, tail, level))
    left_out = tuple(one for one in planned if isinstance(one, str))
    return PrivacyAudit(strategy, level, tuple(leaks), left_out, noise)


def _check(strategy: Strategy, runs: int, level: float, noise: str, parts: Collection[str]) -> int:
    if strategy.trust == "none":
        raise InvalidInputError(f"{strategy.name} promises no privacy: there is nothing to audit")
    if not set(parts) <= set(PARTS):
        raise InvalidInputError(f"parts must be some of {', '.join(PARTS)}; got {', '.join(map(str, parts))}")
    if not 0 < level < 1:
        raise InvalidInputError(f"level must lie strictly between 0 and 1; got {level!r}")
    if noise not in NOISES:
        raise InvalidInputError(f"noise must be one of {', '.join(NOISES)}; got {noise!r}")
    return check_whole("runs", runs, least=4 * SHARE)


# --- what is run ----------------------------------------------------------------------------------


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


def _plan(part: str, strategy: Strategy, runs: int, rehearsal: type[Rehearsal], source: Source) -> Experiment | str:
    """The experiment of a part, or why there is none."""
    if part == "single":
        return _single(rehearsal(strategy, 2, source), runs)
    if part == "stop":
        return _stop(strategy, runs, rehearsal, source)
    people, person = short_trial(strategy), 0
    if part == "later":
        silent = Rehearsal(strategy, people, Silent())
        silent.run(np.zeros((people, 2), np.int64))
        later = [members[0] for (_, phase), members in silent.batches.items() if phase > 1]
        if not later:
            return f"a person of a second batch: it comes after the {people} people of short trials"
        person = min(later)
    tables = np.zeros((2, people, 2), np.int64)
    tables[1, person] = 1
    words = f"{people} people with outcomes of 0; person {person + 1} has 0, or 1"
    return _whole(f"transcript, person {person + 1}", words, rehearsal(strategy, people, source), tables, runs)


def _single(mechanism: Rehearsal, runs: int) -> Experiment:
    """One release, or with local trust one response."""
    local = mechanism.strategy.trust == "local"

    def sample(which: int) -> list[float]:
        sent = mechanism.respond(which)
        return [(sent if local else mechanism.noisy(sent)) / mechanism.grid]

    name, feature = ("response", "the response") if local else ("release", "the released sum")
    return Experiment(name, "an outcome of 0, or of 1", [feature], 0, runs, mechanism.source.name, sample)


def _stop(strategy: Strategy, runs: int, rehearsal: type[Rehearsal], source: Source) -> Experiment | str:
    """Trials at whose end raw outcomes would stop or go on by one person alone."""
    if strategy.trust == "local":
        return "a stop by raw outcomes: with local trust nobody has them"
    tables = critical_tables(strategy)
    if tables is None:
        return f"a stop by raw outcomes: within {LONG} people they lead to none"
    people, person = tables.shape[1], int(np.flatnonzero((tables[0] != tables[1]).any(axis=1))[0])
    words = f"{people} people; without noise person {person + 1} alone would decide whether it stops"
    return _whole("transcript, the stop", words, rehearsal(strategy, people, source), tables, runs // SHARE)


def _whole(name: str, words: str, trial: Rehearsal, tables: Table, runs: int) -> Experiment:
    def sample(which: int) -> list[float]:
        return features(trial.run(tables[which]), trial.grid)

    return Experiment(name, words, FEATURES, 2 * DEEP, runs, trial.source.name, sample)


def short_trial(strategy: Strategy) -> int:
    """People in a trial of a few releases."""
    course, people = live_course(strategy, 2, 10**9), 0
    if course.learns_always:
        return 2 * DEEP
    for _ in range(LOOKS):
        while course.take() is not None:
            if people and course.samples > SHORT:
                return people
        people = course.samples
        course.release([0.0] * len(course.due()))
        if course.stopped:
            break
    return people


def critical_tables(strategy: Strategy) -> Table | None:
    """Two neighbours on only the first of which the raw outcomes, without noise, would stop the trial.

    From all successes on arm 0 to all successes on arm 1, people are turned over one by one; somewhere on the way it
    happens. None if even the first table stops no trial of `LONG` people (or of one batch, if that is longer).
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

    stops, goes_on = 0, people
    while goes_on - stops > 1:
        middle = (stops + goes_on) // 2
        transcript = trial.run(turned(middle))
        if transcript.stopped and transcript.recommendation == 0:
            stops = middle
        else:
            goes_on = middle
    return np.array([turned(stops), turned(goes_on)])


# --- what is looked at ----------------------------------------------------------------------------

PLACES = [(arm, place) for arm in range(2) for place in range(DEEP)]
RELEASES = [f"release {place + 1} of arm {arm + 1}" for arm, place in PLACES]
FEATURES = [
    *RELEASES,
    *(f"{one} minus {other}" for one, other in combinations(RELEASES, 2)),
    "the number of people",
    "the number of releases",
    "stopping by the rule (1 or 0)",
    "the number of the recommended arm",
    *(f"the number of person {number}'s arm" for number in range(3, 9)),
]


def features(transcript: Transcript, grid: int) -> list[float]:
    """What is looked at in a transcript, in the order of `FEATURES`; nan for what did not happen."""
    sums: list[list[float]] = [[], []]
    for release in transcript.releases:
        sums[release.arm].append(release.sum / grid)
    values = [sums[arm][place] if place < len(sums[arm]) else math.nan for arm, place in PLACES]
    best = math.nan if transcript.recommendation is None else transcript.recommendation + 1.0
    arms = [transcript.arms[person] + 1.0 if person < len(transcript.arms) else math.nan for person in range(2, 8)]
    return [
        *values,
        *(one - other for one, other in combinations(values, 2)),
        float(len(transcript.arms)),
        float(len(transcript.releases)),
        float(transcript.stopped),
        best,
        *arms,
    ]


# --- what is concluded ----------------------------------------------------------------------------


class Event(NamedTuple):
    """One statistic is at least, or at most, a threshold."""

    column: int
    at_least: bool
    threshold: float
    promise: float
    """The bound on ε that it gives where it was chosen; there it may be too good."""

    def count(self, values: Floats) -> int:
        """How often it happened."""
        column = values[:, self.column]
        return int((column >= self.threshold if self.at_least else column <= self.threshold).sum())


def _judge(experiment: Experiment, found: Floats, strategy: Strategy, tail: float, level: float) -> Leak:
    """Learn a score on the first quarter, choose an event for each direction on the second, count it on the rest."""
    slack, half, quarter = strategy.gamma or 0.0, experiment.runs // 2, experiment.runs // 4
    score = Score(found[:, :quarter, : experiment.scored])
    found = np.concatenate([found, score(found[:, :, : experiment.scored])[:, :, None]], axis=2)
    names = [*experiment.features, "the learned score of all releases"]
    bounds = []
    for likelier in (0, 1):
        event = choose_event(found[likelier, quarter:half], found[1 - likelier, quarter:half], tail, slack)
        hits, other = event.count(found[likelier, half:]), event.count(found[1 - likelier, half:])
        bounds.append((epsilon_low(hits, other, experiment.runs - half, tail, slack), likelier, event, hits, other))
    low, likelier, event, hits, other = max(bounds)
    side = "least" if event.at_least else "most"
    words = f"{names[event.column]} is at {side} {event.threshold:.6g} (likelier with {INPUTS[likelier]})"
    if event.threshold == math.inf:
        words = "no event stood out"
    promised, verdict = float(strategy.epsilon or 0), "no violation found"
    if low > promised:
        verdict = f"violation: at least {low:.3f} > {promised:g} at confidence level {level:.10g}"
    counts = (experiment.runs - half, hits, other)
    return Leak(experiment.name, experiment.neighbours, words, *counts, low, verdict, experiment.noise)


def epsilon_low(hits: int, other: int, runs: int, tail: float, slack: float = 0.0) -> float:
    """A lower bound on ε from an event's counts on two inputs, wrong with probability at most 2 · tail; 0 or more."""
    level = 1 - 2 * min(tail, 0.499)
    likely, rare = clopper_pearson(hits, runs, level)[0] - slack, clopper_pearson(other, runs, level)[1]
    return max(math.log(likely / rare), 0.0) if likely > 0 else 0.0


class Score:
    """A log-likelihood ratio that treats features as independent, learned from histograms."""

    BINS = 16

    def __init__(self, learning: Floats) -> None:
        self.edges: list[Floats] = []
        self.weights: list[Floats] = []
        for column in np.moveaxis(learning, 2, 0):
            known = column[~np.isnan(column)]
            shares = np.linspace(0, 1, self.BINS + 1)[1:-1]
            edges = np.unique(np.quantile(known, shares)) if known.size else np.zeros(0)
            bins = self._bins(column, edges)
            counts = [np.bincount(one, minlength=edges.size + 2) + 1.0 for one in bins]
            self.edges.append(edges)
            self.weights.append(np.log(counts[1] / counts[0]))

    @staticmethod
    def _bins(column: Floats, edges: Floats) -> Ints:
        """The bin of each value; what did not happen has one of its own."""
        return np.where(np.isnan(column), edges.size + 1, np.searchsorted(edges, column, side="right"))

    def __call__(self, values: Floats) -> Floats:
        """The score of each run: large where the second input is likelier."""
        total = np.zeros(values.shape[:2])
        for column, edges, weights in zip(np.moveaxis(values, 2, 0), self.edges, self.weights, strict=True):
            total += weights[self._bins(column, edges)]
        return total


def choose_event(here: Floats, there: Floats, tail: float, slack: float) -> Event:
    """The event with the largest bound on ε, by a quick approximation of it (Wilson's)."""
    return max(_candidates(here, there, tail, slack), key=lambda event: event.promise)


def _candidates(here: Floats, there: Floats, tail: float, slack: float) -> Iterator[Event]:
    runs, z = len(here), NormalDist().inv_cdf(1 - min(tail, 0.499))
    yield Event(0, True, math.inf, 0.0)
    for column in range(here.shape[1]):
        mine, theirs = (np.sort(values[~np.isnan(values)]) for values in (here[:, column], there[:, column]))
        both = np.concatenate([mine, theirs])
        if not both.size:
            continue
        cuts = np.unique(np.quantile(both, np.linspace(0, 1, 101), method="nearest"))
        for at_least in (True, False):
            counts = [_count(values, cuts, at_least) / runs for values in (mine, theirs)]
            likely, rare = _wilson(counts[0], runs, -z) - slack, _wilson(counts[1], runs, z)
            promise = np.log(np.maximum(likely, 1e-300)) - np.log(rare)
            best = int(promise.argmax())
            yield Event(column, at_least, float(cuts[best]), float(promise[best]))


def _count(values: Floats, cuts: Floats, at_least: bool) -> Ints:
    if at_least:
        return values.size - np.searchsorted(values, cuts, side="left")
    return np.searchsorted(values, cuts, side="right")


def _wilson(share: Floats, runs: int, z: float) -> Floats:
    """Wilson's bound on a probability that was seen as this share of the runs: lower for z < 0, upper for z > 0."""
    root = z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    bound: Floats = (share + z * z / (2 * runs) + root) / (1 + z * z / runs)
    return bound
