"""Empirical checks of what is promised: of δ, a strategy's error rate, on instances
that make errors likely.

An audit can catch a guarantee that does not hold; it cannot prove one that does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Progress
from discreet.audits.rehearsal import (
    LiveNoise,
    NoiseSource,
    Rehearsal,
    RehearsalTranscript,
    SimulatedNoise,
    make_fixed_keys,
)
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, Drift, Drifting, Instance, compute_shift
from discreet.numerics import bound_one_sided, divide_error
from discreet.results import Results
from discreet.simulation.engine import simulate
from discreet.strategies.estimators import SIMPLE
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.tabular import Tabular
from discreet.trials.randomisation import default_randomisation
from discreet.validation import check_delta, check_progress, check_share, check_whole, quote
from discreet.version import __version__

SuccessShift = Callable[[int, str | None, RehearsalTranscript], float]
"""How far a participant's chance of success is from one half, by the participant's
number, site, and what is public before they come.
"""
LATE_DEADLINE = 40.0
"""Deadline if outcomes are late, in units of the time between two participants."""


class Field(NamedTuple):
    """Hold who comes to a trial, and whether good news is late."""

    words: str
    shift: SuccessShift
    block: int = 0
    """Participants that each of two hospitals sends in turn; 0 if nobody asks."""
    late: bool = False

    def site(self, number: int) -> str | None:
        """Return where a participant comes from."""
        if not self.block:
            return None
        return "south" if (number - 1) // self.block % 2 else "north"


def shift_by_site(size: float) -> SuccessShift:
    """Let participants of the south do better than those of the north."""
    return lambda number, site, record: size if site == "south" else -size


def shift_by_time(drift: Drift, before: float = 0.0) -> SuccessShift:
    """Let everybody do better or worse as time goes on."""
    return lambda number, site, record: before + compute_shift(drift, number - 1)


def shift_by_staff(size: float) -> SuccessShift:
    """Let staff send worse participants when they expect arm 1, and better ones
    otherwise.
    """
    return lambda number, site, record: -size if find_lagging_arm(record) == 0 else size


def find_lagging_arm(record: RehearsalTranscript) -> int:
    """Return the arm that has had the fewest participants for its odds in this round,
    of several the one after the last: the next arm of every allocation that keeps arms
    balanced. If no round is opened, in the whole trial, of two arms.
    """
    odds, dealt = [[0, 1], [1, 1]], record.arms
    if record.openings:
        opened = record.openings[-1]
        odds, dealt = opened.odds, record.arms[opened.first - 1 :]
    need = {arm: dealt.count(arm) / weight for arm, weight in odds}
    least = min(need.values())
    arms = [arm for arm in need if need[arm] == least]
    return next((arm for arm in arms if dealt and arm > dealt[-1]), arms[0])


def make_fields() -> dict[str, Field]:
    """Return what goes wrong where trials are run, for trials of some hundred
    participants.
    """
    wave = Drift.season(0.4, 200)
    return {
        "hospitals in turn": Field("two send people in turn, 0.3 apart", shift_by_site(0.15), 1),
        "hospitals far apart": Field("the same, 0.6 apart", shift_by_site(0.3), 1),
        "hospitals of all and none": Field(
            "the same; all succeed, or nobody", shift_by_site(0.5), 1
        ),
        "hospitals in blocks": Field("25 people each in turn, 0.6 apart", shift_by_site(0.3), 25),
        "trend": Field("from 0.1 to 0.9", shift_by_time(Drift.trend(0.8, 600), -0.4)),
        "step": Field("from 0.2 to 0.8 at person 100", shift_by_time(Drift.step(0.6, 100), -0.3)),
        "season": Field("up and down by 0.4 in 200 people", shift_by_time(wave)),
        "staff who pick a little": Field("guess the next arm, ±0.1", shift_by_staff(0.1)),
        "staff who pick": Field("guess the next arm, ±0.3", shift_by_staff(0.3)),
        "late good news": Field(
            "hospitals far apart, successes late and many too late",
            shift_by_site(0.3),
            1,
            late=True,
        ),
    }


class FieldTrial(Rehearsal):
    """Run a trial in the field."""

    field = Field("nothing goes wrong", lambda number, site, record: 0.0)
    rng = np.random.default_rng(0)

    def run_in_field(self, field: Field, rng: np.random.Generator) -> RehearsalTranscript:
        """Run one trial; chance has a seed except for the noise and the keys."""
        self.field, self.rng = field, rng
        self.deadline = LATE_DEADLINE if field.late else None
        return self.run(self.draw_participant, field.site)

    def draw_participant(
        self, number: int, site: str | None, record: RehearsalTranscript
    ) -> list[float]:
        """Draw a participant, who has the same outcome on all arms."""
        success = self.rng.random() < 0.5 + self.field.shift(number, site, record)
        return [float(success)] * self.live.arms

    def draw_delay(self, number: int, outcome: float) -> float:
        """Draw the delay of a success; failures are known at once."""
        return 1.5 * LATE_DEADLINE * self.rng.random() if self.field.late and outcome > 0 else 0.0


def play_field(
    strategy: Strategy, runs: int, seed: int, people: int, progress: Progress | None = None
) -> Iterator[tuple[str, int, int]]:
    """Play trials of two arms in each field. Yield its name, how many eliminated arm 1,
    and how many had no end.
    """
    source: NoiseSource = SimulatedNoise(seed) if not strategy.spec.gamma else LiveNoise()
    trial, known = FieldTrial(strategy, people, source), make_fields()
    for place, (name, field) in enumerate(known.items()):
        ends = list[int | None]()
        for run in range(runs):
            rng = np.random.default_rng([seed, place, run])
            trial.keys = make_fixed_keys(int(rng.integers(2**62)))
            found = trial.run_in_field(field, rng)
            ends.append(found.recommendation if found.stopped else None)
            if progress is not None:
                progress(place * runs + run + 1, runs * len(known))
        yield name, sum(end not in (0, None) for end in ends), ends.count(None)


RUNS = 1000
MAX_SAMPLES = 10**9
MAX_SAMPLES_STREAM = 200_000  # of strategies that are simulated sample by sample
FIELD_RUNS = 300
FIELD_PARTICIPANTS = 500  # of a trial in the field


def make_hard_instances() -> dict[str, Bernoulli]:
    """Make instances on which a strategy that stops too early errs: the best arm comes
    last, as ties favour the first.

    Near ties in the middle and at both ends of [0, 1], near ties with worse arms beside
    them, tied suboptimal arms, and many arms.
    """
    return {
        "near tie": Bernoulli((0.5, 0.51)),
        "nearer tie": Bernoulli((0.5, 0.502)),
        "near tie near 1": Bernoulli((0.98, 0.99)),
        "near tie near 0": Bernoulli((0.01, 0.02)),
        "best is sure": Bernoulli((0.99, 1.0)),
        "rest is hopeless": Bernoulli((0.0, 0.01)),
        "near tie among worse": Bernoulli((0.2, 0.2, 0.5, 0.51)),
        "rest tied": Bernoulli((0.5, 0.5, 0.5, 0.5, 0.52)),
        "many arms": Bernoulli((0.5,) * 19 + (0.55,)),
    }


@dataclass(frozen=True)
class AuditCase:
    """Hold how often a strategy erred on one instance."""

    name: str
    means: tuple[float, ...]
    runs: int
    errors: int
    """Runs that stopped with a wrong answer."""
    unstopped: int
    """Runs that hit the cap; not errors, but they might have become some."""
    low: float
    """A lower confidence bound on the error rate: unstopped runs count as right."""
    high: float
    """An upper confidence bound: unstopped runs count as wrong (in the field as right:
    what is counted there is whether arm 1 was eliminated by then).
    """
    verdict: str
    """`violated` (low > δ), `held` (high ≤ δ) or `open`; `not promised` in the field
    where the proof of a strategy does not cover it.
    """


@dataclass(frozen=True)
class CorrectnessAudit(
    Tabular,
    rows="cases",
    called=("case", "name"),
    shown="case runs errors unstopped low high verdict strategy delta level rule",
):
    """Report an audit of δ over several instances."""

    strategy: Strategy
    delta: float
    """The error rate that the strategy was held to."""
    level: float
    cases: tuple[AuditCase, ...]
    seed: int
    max_samples: int
    field: bool = False
    """True if these are live trials rehearsed in the field, and not simulations."""
    version: str = __version__

    @property
    def is_promised(self) -> bool:
        """Return whether what was audited is promised; in the field only simple
        randomisation promises it.
        """
        return not self.field or default_randomisation(self.strategy) == SIMPLE

    @property
    def is_violated(self) -> bool:
        """Return whether some instance's lower confidence bound exceeds δ: then δ does
        not hold, at the stated level.
        """
        return any(case.verdict == "violated" for case in self.cases)

    @property
    def worst(self) -> AuditCase:
        """Return the instance with the most errors."""
        return max(self.cases, key=lambda case: case.errors / case.runs)

    @property
    def rule(self) -> str:
        """Return the multiple-testing rule in words."""
        count = len(self.cases)
        if not self.is_promised:
            return (
                f"{self.strategy.name} promises nothing in the field: its proof is for outcomes of "
                "an arm that are independent and have one mean. The bounds are "
                f"Clopper–Pearson's, one-sided at level 1 − {1 - self.level:g}/{count}"
            )
        counted = (
            "the audit counts how often arm 1 of two equally good ones is lost within "
            f"{self.max_samples} people (a trial that is undecided then has not lost it). "
            if self.field
            else ""
        )
        return (
            f"{counted}Clopper–Pearson bounds on {count} instances, each one-sided at level 1 − "
            f"{1 - self.level:g}/{count} (Bonferroni); violated if a lower bound exceeds δ: a "
            f"strategy that keeps δ is accused with probability at most {1 - self.level:g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return {
            "strategy": self.strategy.name,
            "threshold": self.strategy.threshold
            if isinstance(self.strategy.threshold, str)
            else "custom",
            **self.strategy.label,
            "epsilon": self.strategy.epsilon,
            "trust": self.strategy.trust,
            "delta": self.delta,
            "level": self.level,
            "rule": self.rule,
            "field": self.field,
            "promised": self.is_promised,
            "violated": self.is_violated,
            "worst": self.worst.name,
            "cases": [{**vars(case), "means": list(case.means)} for case in self.cases],
            "seed": self.seed,
            "max_samples": self.max_samples,
            "version": self.version,
            "spec": self.strategy.describe(),
        }


def audit_correctness(
    strategy: Strategy,
    runs: int = RUNS,
    seed: int = 0,
    level: float = 0.95,
    delta: float | None = None,
    instances: Mapping[str, Instance] | None = None,
    max_samples: int | None = None,
    progress: Progress | None = None,
    field: bool = False,
) -> CorrectnessAudit:
    """Simulate a strategy on hard instances and compare its error rates with δ.

    `level` is the confidence of the whole audit: a strategy that keeps its δ is called
    `violated` with probability at most 1 − level, whatever the number of instances.
    `delta` is the error rate to hold the strategy to, its own unless given. `instances`
    are `make_hard_instances()` unless given; they may drift (`Drifting`). A run that reaches
    `max_samples` (1e9; 200 000 for what is simulated sample by sample, as arms that
    drift are) is left open: it counts as right for the lower bound, as wrong for the
    upper.

    With `field`, live trials of two equally good arms are rehearsed with the people of
    `discreet.audits.correctness.fields()`, and the audit counts how often arm 1 is lost
    within `max_samples` people (500). Only `randomisation="simple"` promises δ there.
    """
    check_progress(progress)
    runs = check_whole("runs", runs, least=1, most=10**9)
    check_strategy(strategy)
    allowed = check_delta(strategy.delta if delta is None else delta)
    level = check_share("level", level)
    if instances is None and strategy.indifference_zone > 0:
        raise InvalidInputError(
            "with an indifference zone a near tie has no wrong answer: give instances with gaps "
            "just above it"
        )
    if field is not False:
        _check_field(field, instances, strategy)
        return _audit_field(strategy, runs, seed, level, allowed, max_samples, progress)
    family: Mapping[str, Instance] = make_hard_instances() if instances is None else instances
    if not isinstance(family, Mapping) or not family:
        raise InvalidInputError(
            "give at least one instance, or leave instances out for the hard ones"
        )
    cap = _choose_cap(strategy, family) if max_samples is None else max_samples
    tail = divide_error(level, len(family))
    cases: list[AuditCase] = []
    for name, instance in family.items():
        before = len(cases) * runs

        def tell(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, runs * len(family))

        results = simulate(instance, strategy, runs, seed, cap, progress=tell)
        if results.interrupted:
            raise KeyboardInterrupt
        cases.append(_judge_case(name, instance, results, tail, allowed))
    return CorrectnessAudit(strategy, allowed, level, tuple(cases), seed, int(cap))


def _check_field(field: object, instances: object, strategy: Strategy) -> None:
    if field is not True:
        raise InvalidInputError(f"field must be True or False; got {quote(field)}")
    if instances is not None:
        raise InvalidInputError("the field has instances of its own: leave yours out")
    if strategy.spec.own:
        raise InvalidInputError("a strategy of your own is simulated only: leave field out")


def _choose_cap(strategy: Strategy, family: Mapping[str, Instance]) -> int:
    """Return where runs end, unless the caller says it: sooner if each sample is
    simulated.
    """
    drifts = any(isinstance(instance, Drifting) for instance in family.values())
    return MAX_SAMPLES_STREAM if strategy.spec.each_answer or drifts else MAX_SAMPLES


def _judge_case(
    name: str, instance: Instance, results: Results, tail: float, allowed: float
) -> AuditCase:
    """Return what the runs on one instance say."""
    runs, errors, unstopped = results.runs, results.errors, results.unstopped
    low = bound_one_sided(errors, runs, tail)[0]
    high = bound_one_sided(errors + unstopped, runs, tail)[1]
    verdict = "violated" if low > allowed else "held" if high <= allowed else "open"
    means = tuple(np.array(instance.means).tolist())
    return AuditCase(name, means, runs, errors, unstopped, low, high, verdict)


def _audit_field(
    strategy: Strategy,
    runs: int,
    seed: int,
    level: float,
    allowed: float,
    max_samples: int | None,
    progress: Progress | None,
) -> CorrectnessAudit:
    """Audit in the field. A trial without an end has not eliminated the arm: it is
    right for both bounds.
    """
    runs = check_whole("runs", runs, least=1)
    people = check_whole(
        "max_samples", FIELD_PARTICIPANTS if max_samples is None else max_samples, least=2
    )
    tail = divide_error(level, len(make_fields()))
    promised = default_randomisation(strategy) == SIMPLE
    cases = []
    for name, errors, unstopped in play_field(strategy, runs, seed, people, progress):
        low, high = bound_one_sided(errors, runs, tail)
        verdict = "violated" if low > allowed else "held" if high <= allowed else "open"
        verdict = verdict if promised else "not promised"
        cases.append(AuditCase(name, (0.5, 0.5), runs, errors, unstopped, low, high, verdict))
    return CorrectnessAudit(strategy, allowed, level, tuple(cases), seed, people, field=True)
