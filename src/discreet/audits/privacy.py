"""An empirical check of ε: lower confidence bounds on it, from many runs on two tables
that differ in one person.

If a mechanism is ε-private, no event is more than e^ε times as likely on one table as
on a neighbour. An event is chosen on one half of the runs and counted on the other;
exact bounds on its two probabilities give a lower bound on ε. An audit can catch a
promise that does not hold; it cannot prove one that does.
"""

import itertools
import math
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Floats, Ints, Progress
from discreet.audits.rehearsal import (
    KeySource,
    LiveNoise,
    NoiseSource,
    NoNoise,
    OutcomeTable,
    Rehearsal,
    RehearsalTranscript,
    SimulatedNoise,
    make_fixed_keys,
)
from discreet.errors import InvalidInputError
from discreet.numerics import bound_one_sided, divide_error
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.strategies.units import BITS, choose_kind
from discreet.tabular import Tabular
from discreet.theory.thresholds import zcdp_epsilon
from discreet.validation import check_progress, check_share, check_whole, is_word, quote
from discreet.version import __version__

UNLIMITED_PARTICIPANTS = 10**9
"""More participants than ever come."""
MAX_SHORT_RELEASES = 5
"""Releases after which a short trial is cut off …"""
MAX_SHORT_PARTICIPANTS = 100
"""… or after so many participants, if there was a release before."""
MAX_LONG_PARTICIPANTS = 600
"""Participants within which raw outcomes must lead to a stop, for a table on which one
participant decides it.
"""
LONG_RUNS_DIVISOR = 10
"""Factor by which there are fewer runs of the long trials."""
RELEASES_PER_ARM = 4
"""Number of releases of an arm that are looked at."""
PARTS = ("single", "first", "later", "stop")
BIT_PAIRS = [("0, or of 1", 0.0, 1.0)]
"""An outcome, and another one."""
NUMBER_PAIRS = [*BIT_PAIRS, ("0, or of 1/2", 0.0, 0.5), ("1/2, or of 1", 0.5, 1.0)]
"""Pairs if the closeness to the centre, first 1/2, is released too: both move."""
ZEROS, HALVES = (0.0, 1.0, "0, or 1"), (0.5, 0.0, "1/2, or 0")
"""The outcome of everybody, another outcome of one participant, and both in words."""


class Experiment(NamedTuple):
    """Hold a mechanism that can be run on two neighbouring inputs, and what is looked
    at.
    """

    name: str
    neighbours: str
    features: list[str]
    scored: int
    """The first features make up the learned score."""
    runs: int
    noise: str
    sample: Callable[[int], list[float]]
    """The features of a run on the first (0) or the second input (1)."""


class AuditTarget(NamedTuple):
    """Hold what is audited."""

    strategy: Strategy
    rehearsal: type[Rehearsal]
    source: NoiseSource
    keys: KeySource

    def make_trial(self, people: int) -> Rehearsal:
        """Make a trial of at most so many participants."""
        return self.rehearsal(self.strategy, people, self.source, 2, self.keys)

    def make_silent_trial(self, people: int) -> Rehearsal:
        """Make a trial without noise and without the user's own mechanism."""
        return Rehearsal(self.strategy, people, NoNoise(), keys=self.keys)


def make_experiments(part: str, runs: int, audited: AuditTarget) -> list[Experiment | str]:
    """Make the experiments of a part, or say why there is none."""
    bits = choose_kind(audited.strategy) == BITS
    if part == "single":
        pairs = BIT_PAIRS if bits else NUMBER_PAIRS
        return [_make_single_experiment(audited, runs, *pair) for pair in pairs]
    if part == "stop":
        return [_make_stop_experiment(audited, runs)]
    tables = [ZEROS, HALVES] if part == "first" and not bits else [ZEROS]
    return [_make_short_experiment(part, runs, audited, *table) for table in tables]


def _make_short_experiment(
    part: str, runs: int, audited: AuditTarget, usual: float, other: float, shown: str
) -> Experiment | str:
    """Make short trials in which everybody has the usual outcome, and one participant
    that or another.
    """
    people = count_short_trial(audited)
    person = _find_first_participant(audited, people, later=part == "later")
    if person is None:
        return f"a person of a second batch: it comes after the {people} people of short trials"
    tables = np.full((2, people, 2), usual)
    tables[1, person] = other
    name = f"transcript, person {person + 1}{'' if usual == 0 else f' has {shown}'}"
    usually = shown.partition(",")[0]
    words = f"{people} people with outcomes of {usually}; person {person + 1} has {shown}"
    return _make_transcript_experiment(name, words, audited.make_trial(people), tables, runs)


def _find_first_participant(audited: AuditTarget, people: int, later: bool) -> int | None:
    """Return the first participant of arm 1, or of a later batch, if there is one."""
    silent = audited.make_silent_trial(people)
    silent.run(np.zeros((people, 2), np.int64))
    found = [
        members[0]
        for (arm, phase), members in silent.batches.items()
        if (phase > 1 if later else arm == 0)
    ]
    return min(found, default=None)


def _make_single_experiment(
    audited: AuditTarget, runs: int, words: str, one: float, other: float
) -> Experiment:
    """Make one release, or with local trust one response, of an outcome or of another."""
    mechanism = audited.make_trial(UNLIMITED_PARTICIPANTS)
    mechanism.begin(np.zeros((1, 2)))
    mechanism.step()
    mechanism.middle = mechanism.live.middle_level
    local, pairs = mechanism.strategy.trust_model.randomised, mechanism.live.releases_closeness

    def sample(which: int) -> list[float]:
        sent = mechanism.respond(other if which else one)
        if local:
            return [sent / mechanism.grid]
        if not pairs:
            return [mechanism.add_noise(sent) / mechanism.grid]
        shown = mechanism.add_noise_to_totals(mechanism.live.add_up([sent]))
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


def _make_stop_experiment(audited: AuditTarget, runs: int) -> Experiment | str:
    """Make trials at whose end raw outcomes would stop or go on by one participant
    alone.
    """
    if audited.strategy.trust_model.randomised:
        return "a stop by raw outcomes: with local trust nobody has them"
    tables = find_critical_tables(audited)
    if tables is None:
        return f"a stop by raw outcomes: within {MAX_LONG_PARTICIPANTS} people they lead to none"
    people = tables.shape[1]
    person = int(np.flatnonzero((tables[0] != tables[1]).any(axis=1))[0])
    words = (
        f"{people} people; without noise person {person + 1} alone would decide whether it stops"
    )
    return _make_transcript_experiment(
        "transcript, the stop", words, audited.make_trial(people), tables, runs // LONG_RUNS_DIVISOR
    )


def _make_transcript_experiment(
    name: str, words: str, trial: Rehearsal, tables: OutcomeTable, runs: int
) -> Experiment:
    numbers = not trial.live.releases_only_sums

    def sample(which: int) -> list[float]:
        transcript = trial.run(tables[which])
        found = [
            *extract_features(transcript, trial.grid, numbers),
            *extract_round_features(transcript),
        ]
        return [*found, *extract_closeness_features(transcript, trial.grid)] if numbers else found

    seen = [*FEATURES, *ROUNDS, *(CLOSENESS if numbers else [])]
    return Experiment(name, words, seen, 2 * RELEASES_PER_ARM, runs, trial.source.name, sample)


def count_short_trial(audited: AuditTarget) -> int:
    """Count the participants in a trial of a few releases."""
    trial = audited.make_silent_trial(UNLIMITED_PARTICIPANTS)
    if trial.live.releases_each_answer:
        return 2 * RELEASES_PER_ARM
    trial.begin(lambda number, site, record: (0.0, 0.0))
    people, looks = 0, 0
    while looks < MAX_SHORT_RELEASES and not trial.live.stopped and trial.step():
        if len(trial.record.times) > looks:
            people, looks = trial.live.samples, looks + 1
        elif people and trial.live.samples > MAX_SHORT_PARTICIPANTS:
            break
    return people


def find_critical_tables(audited: AuditTarget) -> OutcomeTable | None:
    """Return two neighbours on only the first of which the raw outcomes, without noise,
    would stop the trial.

    From all successes on arm 0 to all successes on arm 1, people are turned over one by
    one; somewhere on the way it happens. None if even the first table stops no trial of
    `MAX_LONG_PARTICIPANTS` people (or of one batch, if that is longer).
    """
    trial = audited.make_silent_trial(UNLIMITED_PARTICIPANTS)
    trial.begin(lambda number, site, record: (0.0, 0.0))
    while not trial.record.releases and trial.step():
        least = trial.live.samples
    easy = np.tile(np.array([1, 0]), (max(MAX_LONG_PARTICIPANTS, least), 1))
    transcript = audited.make_silent_trial(len(easy)).run(easy)
    if not transcript.stopped or transcript.recommendation != 0:
        return None
    people = len(transcript.arms)
    trial = audited.make_silent_trial(people)

    def turned(first: int) -> OutcomeTable:
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


RELEASE_PLACES = [(arm, place) for arm in range(2) for place in range(RELEASES_PER_ARM)]
RELEASES = [f"release {place + 1} of arm {arm + 1}" for arm, place in RELEASE_PLACES]
ROUNDS = [
    f"{what} {number}"
    for what in (
        "the time of release",
        "the people announced for round",
        "the largest share announced for round",
        "the first byte of the key of round",
    )
    for number in range(1, RELEASES_PER_ARM + 1)
]
CLOSENESS = [f"closeness {place + 1} of arm {arm + 1}" for arm, place in RELEASE_PLACES]
FEATURES = [
    *RELEASES,
    *(f"{one} minus {other}" for one, other in combinations(RELEASES, 2)),
    "the number of people",
    "the number of releases",
    "stopping by the rule (1 or 0)",
    "the number of the recommended arm",
    *(f"the number of person {number}'s arm" for number in range(3, 9)),
]


def extract_features(
    transcript: RehearsalTranscript, grid: int, numbers: bool = False
) -> list[float]:
    """Return what is looked at in a transcript, in the order of `FEATURES`; nan for
    what did not happen. With `numbers` a sum without closeness is one of bits.
    """
    sums: list[list[float]] = [[], []]
    for release in transcript.releases:
        if release.sum is not None:
            unit = 1 if numbers and release.near is None else grid
            sums[release.arm].append(release.sum / unit)
    values = _fill_places(sums)
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


def extract_round_features(transcript: RehearsalTranscript) -> list[float]:
    """Return when releases came, what was announced of rounds, and their keys:
    `ROUNDS`.
    """
    opened = transcript.openings[:RELEASES_PER_ARM]
    shares = [
        max(weight for _, weight in one.odds) / sum(weight for _, weight in one.odds)
        for one in opened
    ]
    first_bytes = [float(int(key[:2], 16)) for _, key in transcript.keys[:RELEASES_PER_ARM]]
    found = [
        transcript.times[:RELEASES_PER_ARM],
        [float(one.people) for one in opened],
        shares,
        first_bytes,
    ]
    return [value for row in found for value in [*row, *[math.nan] * (RELEASES_PER_ARM - len(row))]]


def extract_closeness_features(transcript: RehearsalTranscript, grid: int) -> list[float]:
    """Return what else is looked at if closeness is released: see `CLOSENESS`."""
    near: list[list[float]] = [[], []]
    for release in transcript.releases:
        if release.near is not None:
            near[release.arm].append(release.near / grid)
    return _fill_places(near)


def _fill_places(values: list[list[float]]) -> list[float]:
    return [values[arm][at] if at < len(values[arm]) else math.nan for arm, at in RELEASE_PLACES]


RUNS = 10_000
RHO_GAMMA = 1e-3
"""The γ at which an audit asks what ρ-zCDP means in terms of ε."""
INPUTS = ("the first input", "the second input")
NOISES = ("mixed", "opendp", "numpy")


@dataclass(frozen=True)
class Leak:
    """Hold what was found out about one mechanism, on one pair of neighbours."""

    name: str
    """`release`, `response` or `transcript`, and which person the tables differ in."""
    neighbours: str
    """The two inputs, in words."""
    event: str
    """What was counted, in words."""
    runs: int
    """Runs on each input in which it was counted; as many before them served to choose
    it.
    """
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
    def is_violated(self) -> bool:
        """Return whether the promised ε is exceeded."""
        return self.verdict != "no violation found"


@dataclass(frozen=True)
class PrivacyAudit(
    Tabular,
    rows="leaks",
    called=("leak", "name"),
    shown="leak neighbours runs hits hits_other low verdict strategy epsilon gamma level rule",
):
    """Report an audit of ε."""

    strategy: Strategy
    level: float
    leaks: tuple[Leak, ...]
    left_out: tuple[str, ...]
    """What was not audited, and why."""
    noise: str
    version: str = __version__

    @property
    def epsilon(self) -> float:
        """Return the ε that was promised, or that follows from the promised ρ."""
        return find_promise(self.strategy)[0]

    @property
    def gamma(self) -> float | None:
        """Return the γ that goes with it."""
        return find_promise(self.strategy)[1]

    @property
    def is_violated(self) -> bool:
        """Return whether some lower bound exceeds the promised ε."""
        return any(leak.is_violated for leak in self.leaks)

    @property
    def worst(self) -> Leak:
        """Return the leak with the largest lower bound."""
        return max(self.leaks, key=lambda leak: leak.low)

    @property
    def rule(self) -> str:
        """Return the multiple-testing rule in words."""
        count = len(self.leaks)
        return (
            f"{count} rows in both directions, two Clopper–Pearson bounds each, every one at "
            f"level 1 − {1 - self.level:.3g}/{4 * count} (Bonferroni), on runs that had no part "
            "in choosing the event; a mechanism that keeps its ε is accused with probability at "
            f"most {1 - self.level:.3g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return {
            "strategy": self.strategy.name,
            "trust": self.strategy.trust,
            "epsilon": self.epsilon,
            "gamma": self.gamma,
            **({} if self.strategy.rho is None else {"rho": self.strategy.rho}),
            "level": self.level,
            "rule": self.rule,
            "violated": self.is_violated,
            "worst": self.worst.name,
            "leaks": [{**vars(leak), "violated": leak.is_violated} for leak in self.leaks],
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
    """Search for events that reveal one person's outcome better than ε allows, and
    bound ε from below.

    The audit covers one release (global trust) or one response (local trust), and whole
    transcripts of trials with two arms, `runs` times on each of two neighbouring
    inputs, or a tenth of that where trials are long. `level` is the confidence of the
    whole audit: a mechanism that keeps its ε is accused with probability at most 1 −
    level. `noise` is `mixed` (releases and responses live, by OpenDP; whole trials by
    numpy with the same law), `opendp` (all live) or `numpy`; Gaussian responses are
    always live. `seed` is for numpy's noise and for the keys that assign people, which
    are the same in all runs. `parts` are some of `single` (a release or a response),
    `first` and `later` (transcripts of short trials, for a person of the first or of a
    later batch) and `stop` (transcripts of trials in which one person alone decides
    whether raw outcomes would stop the trial). `rehearsal` is what is audited instead
    of the mechanisms of this package.
    """
    runs = _check_arguments(strategy, runs, level, noise, parts)
    check_progress(progress)
    seed = None if seed is None else check_whole("seed", seed, least=0, most=2**128)
    if not isinstance(rehearsal, type) or not issubclass(rehearsal, Rehearsal):
        raise InvalidInputError("rehearsal must be the class Rehearsal, or one made from it")
    drawn: NoiseSource = LiveNoise() if strategy.spec.gamma else SimulatedNoise(seed)
    sources = dict.fromkeys(PARTS, LiveNoise() if noise == "opendp" else drawn)
    sources["single"] = drawn if noise == "numpy" else LiveNoise()
    keys = make_fixed_keys(secrets.randbits(64) if seed is None else seed)
    planned = [
        experiment
        for part in PARTS
        if part in parts
        for experiment in make_experiments(
            part, runs, AuditTarget(strategy, rehearsal, sources[part], keys)
        )
    ]
    experiments = [one for one in planned if isinstance(one, Experiment)]
    if not experiments:
        raise InvalidInputError("nothing to audit is left: choose other parts")
    tail = divide_error(level, 4 * len(experiments))
    tell = _make_counter(progress, 2 * sum(one.runs for one in experiments))
    leaks = [_judge(one, _sample(one, tell), strategy, tail, level) for one in experiments]
    left_out = tuple(one for one in planned if isinstance(one, str))
    return PrivacyAudit(strategy, level, tuple(leaks), left_out, noise)


def find_promise(strategy: Strategy) -> tuple[float, float | None]:
    """Return the (ε, γ) that an audit holds a strategy to: for ρ-zCDP what it is at γ =
    RHO_GAMMA.
    """
    if strategy.rho is not None:
        return zcdp_epsilon(strategy.rho, RHO_GAMMA), RHO_GAMMA
    return float(strategy.epsilon or 0), strategy.gamma


def _make_counter(progress: Progress | None, total: int) -> Callable[[], None]:
    """Make the function that is called after each run and tells `progress` after every
    hundredth.
    """
    runs = itertools.count(1)

    def tell() -> None:
        done = next(runs)
        if progress is not None and done % 100 == 0:
            progress(done, total)

    return tell


def _sample(experiment: Experiment, tell: Callable[[], None]) -> Floats:
    """Return the features of all runs on both inputs: input × run × feature."""
    found = np.zeros((2, experiment.runs, len(experiment.features)))
    for which, run in np.ndindex(2, experiment.runs):
        found[which, run] = experiment.sample(which)
        tell()
    return found


def _check_arguments(
    strategy: Strategy, runs: int, level: float, noise: str, parts: Collection[str]
) -> int:
    if not check_strategy(strategy).trust_model.is_private:
        raise InvalidInputError(f"{strategy.name} promises no privacy: there is nothing to audit")
    if strategy.spec.own:
        raise InvalidInputError(
            f"{strategy.shown} adds its noise itself: only mechanisms of a live trial are audited"
        )
    listed = isinstance(parts, list | tuple | set | frozenset)
    if not listed or not all(is_word(part, PARTS) for part in parts):
        raise InvalidInputError(f"parts must be some of {', '.join(PARTS)}; got {quote(parts)}")
    check_share("level", level)
    if not is_word(noise, NOISES):
        raise InvalidInputError(f"noise must be one of {', '.join(NOISES)}; got {quote(noise)}")
    return check_whole("runs", runs, least=4 * LONG_RUNS_DIVISOR, most=10**8)


class CountedEvent(NamedTuple):
    """Name an event: one statistic is at least, or at most, a threshold."""

    column: int
    at_least: bool
    threshold: float
    promise: float
    """The bound on ε that it gives where it was chosen; there it may be too good."""

    def count(self, values: Floats) -> int:
        """Count how often it happened."""
        column = values[:, self.column]
        return int((column >= self.threshold if self.at_least else column <= self.threshold).sum())


class EventCount(NamedTuple):
    """Hold how often an event happened, and the bound on ε that follows; compared by
    the bound first.
    """

    low: float
    likelier: int
    """The input, 0 or 1, with which it should happen more often."""
    event: CountedEvent
    hits: int
    hits_other: int


def _judge(
    experiment: Experiment, values: Floats, strategy: Strategy, tail: float, level: float
) -> Leak:
    """Learn a score on the first quarter, choose an event for each direction on the
    second, count it on the rest.
    """
    epsilon, gamma = find_promise(strategy)
    slack = gamma or 0.0
    half = experiment.runs // 2
    quarter = experiment.runs // 4
    score = Score(values[:, :quarter, : experiment.scored])
    scores = score(values[:, :, : experiment.scored])
    values = np.concatenate([values, scores[:, :, None]], axis=2)
    counts = []
    for likelier in (0, 1):
        here = values[likelier]
        there = values[1 - likelier]
        event = choose_event(here[quarter:half], there[quarter:half], tail, slack)
        hits = event.count(here[half:])
        other = event.count(there[half:])
        low = bound_epsilon(hits, other, experiment.runs - half, tail, slack)
        counts.append(EventCount(low, likelier, event, hits, other))
    most = max(counts)
    return Leak(
        name=experiment.name,
        neighbours=experiment.neighbours,
        event=_describe_event(most, [*experiment.features, "the learned score of all releases"]),
        runs=experiment.runs - half,
        hits=most.hits,
        hits_other=most.hits_other,
        low=most.low,
        verdict=_word_verdict(most.low, epsilon, level),
        noise=experiment.noise,
    )


def _describe_event(count: EventCount, names: list[str]) -> str:
    event = count.event
    if event.threshold == math.inf:
        return "no event stood out"
    side = "least" if event.at_least else "most"
    likelier = f"(likelier with {INPUTS[count.likelier]})"
    return f"{names[event.column]} is at {side} {event.threshold:.6g} {likelier}"


def _word_verdict(low: float, promised: float, level: float) -> str:
    if low <= promised:
        return "no violation found"
    return f"violation: at least {low:.3f} > {promised:g} at confidence level {level:.10g}"


def bound_epsilon(hits: int, other: int, runs: int, tail: float, slack: float = 0.0) -> float:
    """Return a lower bound on ε from an event's counts on two inputs, wrong with
    probability at most 2 · tail; 0 or more.
    """
    likely = bound_one_sided(hits, runs, tail)[0] - slack
    rare = bound_one_sided(other, runs, tail)[1]
    return max(math.log(likely / rare), 0.0) if likely > 0 else 0.0


class Score:
    """Learn a log-likelihood ratio from histograms; it treats features as independent."""

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
        """Return the bin of each value; what did not happen has one of its own."""
        return np.where(
            np.isnan(column), edges.size + 1, np.searchsorted(edges, column, side="right")
        )

    def __call__(self, values: Floats) -> Floats:
        """Return the score of each run: large if the second input is likelier."""
        total = np.zeros(values.shape[:2])
        for column, edges, weights in zip(
            np.moveaxis(values, 2, 0), self.edges, self.weights, strict=True
        ):
            total += weights[self._bins(column, edges)]
        return total


def choose_event(here: Floats, there: Floats, tail: float, slack: float) -> CountedEvent:
    """Return the event with the largest bound on ε, by a quick approximation of it
    (Wilson's).
    """
    return max(_list_candidates(here, there, tail, slack), key=lambda event: event.promise)


def _list_candidates(
    here: Floats, there: Floats, tail: float, slack: float
) -> Iterator[CountedEvent]:
    runs, z = len(here), NormalDist().inv_cdf(1 - min(tail, 0.499))
    yield CountedEvent(0, True, math.inf, 0.0)
    for column in range(here.shape[1]):
        mine, theirs = (
            np.sort(values[~np.isnan(values)]) for values in (here[:, column], there[:, column])
        )
        both = np.concatenate([mine, theirs])
        if not both.size:
            continue
        cuts = np.unique(np.quantile(both, np.linspace(0, 1, 101), method="nearest"))
        for at_least in (True, False):
            counts = [_count_beyond(values, cuts, at_least) / runs for values in (mine, theirs)]
            likely, rare = (
                _bound_share(counts[0], runs, -z) - slack,
                _bound_share(counts[1], runs, z),
            )
            promise = np.log(np.maximum(likely, 1e-300)) - np.log(rare)
            best = int(promise.argmax())
            yield CountedEvent(column, at_least, float(cuts[best]), float(promise[best]))


def _count_beyond(values: Floats, cuts: Floats, at_least: bool) -> Ints:
    if at_least:
        return values.size - np.searchsorted(values, cuts, side="left")
    return np.searchsorted(values, cuts, side="right")


def _bound_share(share: Floats, runs: int, z: float) -> Floats:
    """Return Wilson's bound on a probability that was seen as this share of the runs:
    lower for z < 0, upper for z > 0.
    """
    root = z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    bound: Floats = (share + z * z / (2 * runs) + root) / (1 + z * z / runs)
    return bound
