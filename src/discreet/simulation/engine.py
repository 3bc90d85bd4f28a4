"""simulate(instance, strategy, runs, seed): exact simulation, on as many threads as
there are processors.

Each run draws from a Generator of its own, made from the seed and the run's number, so
results depend neither on the number of threads nor on their order, and more runs extend
fewer. (Runs that leap are so quick that they share Generators in blocks of a fixed
length.)
"""

import os
import queue
import threading
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints, Progress
from discreet.accrual import Calendar, Delay, make_calendar
from discreet.errors import InvalidInputError
from discreet.instances import STEADY, UNBOUNDED, Bernoulli, Beta, Drifting, Instance
from discreet.past_data import Sampled
from discreet.results import Results
from discreet.scale import NUMBERS
from discreet.simulation.laws import Generator
from discreet.strategies.phased.state import check_grid, make_grid
from discreet.strategies.presets import warn_if_rounded
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import is_rounded_to_bits
from discreet.theory.thresholds import compute_epoch_length
from discreet.validation import check_progress, check_whole
from discreet.version import __version__


class RunResult(NamedTuple):
    """Hold what one run came to; its pulls are written beside it."""

    samples: int
    recommendation: int
    stopped: bool
    """True if it stopped by its rule, not at the cap."""
    rounds: int
    """Number of releases, or of rounds of releases."""


class RunResults(NamedTuple):
    """Hold what many runs came to, a row each."""

    samples: Ints
    recommendation: Ints
    stopped: Flags
    rounds: Ints
    pulls: Ints
    """[run, arm]"""
    days: Floats
    """Days from the start of enrolment to the end, if there is a calendar."""
    pipeline: Ints
    """Participants assigned and not released at the end, if there is a calendar."""

    def select(self, rows: slice | Flags) -> "RunResults":
        """Return some of the runs; what is written into a slice is written here."""
        return RunResults(
            self.samples[rows],
            self.recommendation[rows],
            self.stopped[rows],
            self.rounds[rows],
            self.pulls[rows],
            self.days[rows],
            self.pipeline[rows],
        )

    def write(self, row: int, result: RunResult) -> None:
        """Write what one run came to, except its pulls."""
        self.samples[row] = result.samples
        self.recommendation[row] = result.recommendation
        self.stopped[row] = result.stopped
        self.rounds[row] = result.rounds


def make_run_results(runs: int, arms: int) -> RunResults:
    """Make room for the results of so many runs."""
    return RunResults(
        np.zeros(runs, np.int64),
        np.zeros(runs, np.int64),
        np.zeros(runs, np.bool_),
        np.zeros(runs, np.int64),
        np.zeros((runs, arms), np.int64),
        np.zeros(runs),
        np.zeros(runs, np.int64),
    )


def make_empty_trace(arms: int) -> Floats:
    """Make a trace without rows: most runs are not written down."""
    return np.zeros((0, 4 + arms))


def check_calendar(instance: Instance, strategy: Strategy, calendar: Calendar) -> None:
    """Refuse a calendar that this strategy is not simulated with on this instance."""
    if strategy.spec.each_answer:
        raise InvalidInputError(
            f"{strategy.shown} learns from every answer, and what it does while answers are "
            "outstanding is not simulated: leave accrual out, or use bet-se or another strategy "
            "that releases in batches (adap-tt, adap-tt-star, dp-se, ttucb-batched)"
        )
    if strategy.spec.prices_noise:
        if calendar.delay.failures != calendar.delay.days and not has_binary_outcomes(instance):
            raise InvalidInputError(
                "a separate delay for failures is for outcomes that are yes or no: use "
                "Bernoulli arms, or one delay for all"
            )
        return
    if strategy.has_global_episode:
        raise InvalidInputError(
            "days are not simulated with one global episode: leave accrual out, or use "
            "episodes='arm'"
        )
    if not calendar.is_simple:
        why = (
            "continuous enrolment is for bet-se, whose error rate is proved for it"
            if calendar.continuous
            else "outcomes that are late at random, or missing, are simulated for bet-se only, "
            f"not for {strategy.shown}"
        )
        raise InvalidInputError(
            f"{why}: use bet-se, or waiting enrolment with a fixed delay and nobody missing"
        )


def has_binary_outcomes(instance: Instance) -> bool:
    """Return whether each outcome is a success or a failure."""
    return isinstance(instance, Bernoulli | Drifting)


def add_days(strategy: Strategy, calendar: Calendar, outcomes: RunResults) -> None:
    """Write the days and the pipeline participants of runs with a simple calendar."""
    releases, arms = outcomes.rounds, outcomes.pulls.shape[1]
    if strategy.is_phased:
        releases = releases - arms + 1  # the first phases of all arms are released together
        outcomes.pipeline[:] = count_unreleased(make_grid(strategy)[1:], outcomes.pulls).sum(axis=1)
    elif not strategy.spec.prices_noise:
        for row in np.flatnonzero(~outcomes.stopped):
            outcomes.pipeline[row] = count_cut_epoch(strategy, outcomes, int(row))
    outcomes.days[:] = outcomes.samples / calendar.accrual + releases * calendar.wait


def count_unreleased(ends: Ints, pulls: Ints) -> Ints:
    """Count each arm's pulls after its last complete phase; `ends` says where phases
    end.
    """
    return np.asarray(pulls - ends[np.searchsorted(ends, pulls, side="right") - 1])


def count_cut_epoch(strategy: Strategy, outcomes: RunResults, row: int) -> int:
    """Count the participants of an epoch of DP-SE that the cap cut off: those beyond
    the epochs that were released. Their lengths follow from when arms were eliminated.
    """
    pulls, whole, epsilon = outcomes.pulls[row], 0, float(strategy.epsilon or 0)
    for epoch in range(1, int(outcomes.rounds[row]) + 1):
        left = int((pulls > whole).sum())
        whole += int(compute_epoch_length(left, epoch, epsilon, strategy.delta))
    return int(np.maximum(pulls - whole, 0).sum())


RUNS_PER_GENERATOR = 64
"""Number of runs that share a Generator if making one costs as much as a run, and holds
back the other threads.
"""


class Runner(NamedTuple):
    """Play runs of one strategy on one instance."""

    runs_per_generator: int
    """Runs that share a Generator."""
    play: Callable[[Generator, RunResults, int], None]
    """Plays a block of runs on this Generator, from this row of the outcomes on."""


def make_single_runner(run: Callable[[Generator, Ints], RunResult]) -> Runner:
    """Make what plays runs that have a Generator each; `run(rng, pulls)` plays one and
    writes its pulls.
    """

    def play(rng: Generator, outcomes: RunResults, row: int) -> None:
        outcomes.write(row, run(rng, outcomes.pulls[row]))

    return Runner(1, play)


def make_block_runner(play_runs: Callable[[Generator, RunResults], None]) -> Runner:
    """Make what plays runs that share a Generator in blocks of a fixed length;
    `runs(rng, outcomes)` plays as many as there are rows, one after the other.
    """

    def play(rng: Generator, outcomes: RunResults, row: int) -> None:
        play_runs(rng, outcomes.select(slice(row, row + RUNS_PER_GENERATOR)))

    return Runner(RUNS_PER_GENERATOR, play)


def make_generator(seed: int, block: int) -> np.random.Generator:
    """Make the Generator of a block of runs, from the seed and the block's number
    alone.
    """
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(block,)))
    )


def play_all(
    runner: Runner,
    outcomes: RunResults,
    done: Flags,
    seed: int,
    first: int,
    threads: int,
    progress: Progress | None,
) -> bool:
    """Play all blocks, numbered from `first`, on daemon threads (Ctrl-C waits for no
    run); true if interrupted.

    `done` marks the runs that are finished.
    """
    runs, block = len(done), runner.runs_per_generator
    starts = iter(range(0, runs, block))
    lock, finished, failures = threading.Lock(), queue.SimpleQueue[int](), list[BaseException]()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    row = next(starts, None)
                if row is None:
                    break
                runner.play(make_generator(seed, first + row // block), outcomes, row)
                done[row : row + block] = True
                if progress is not None:  # otherwise nobody needs to wake up for it
                    finished.put(min(block, runs - row))
        except BaseException as error:  # handed to the caller's thread
            failures.append(error)
        finished.put(0)

    workers = min(threads, -(-runs // block))
    try:
        for _ in range(workers):
            threading.Thread(target=work, daemon=True).start()
        finished_runs = left = 0
        while left < workers:
            count = finished.get()
            finished_runs += count
            left += count == 0
            if progress is not None and count:
                progress(finished_runs, runs)
    except KeyboardInterrupt as error:
        failures.append(error)
        return True
    except BaseException as error:  # of `progress`: the threads must not go on alone
        failures.append(error)
        raise
    if failures:
        raise failures[0]
    return False


MAX_SAMPLES = 10**12
MAX_SAMPLES_BETA = 10**9
MAX_SAMPLES_SLOW = 10**7
"""Unless told otherwise: a strategy of your own takes half a minute for them. Arms that
drift have the same cap, as their rewards are drawn one by one.
"""
SAMPLE_BY_SAMPLE_LAWS = (Beta, Sampled)
"""Arms whose rewards are drawn one by one."""


class MayNotStopWarning(UserWarning):
    """Warn that some runs of the chosen strategy may never end; they count as
    unstopped.
    """


def simulate(
    instance: Instance,
    strategy: Strategy,
    runs: int = 1000,
    seed: int = 0,
    max_samples: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    first_run: int = 0,
    accrual: float | None = None,
    delay: float | Delay | None = None,
    deadline: float | None = None,
    enrolment: str | None = None,
    release: str | None = None,
) -> Results:
    """Simulate a strategy on an instance. There is a `RoundedWarning` if past data are
    numbers and the strategy rounds them to yes or no without need.

    Phased strategies, dp-se and bet-se go from release to release, so that a run of
    1e12 samples costs little more than one of 1e6. The others simulate every sample,
    except that ttucb and ctb-tt leap too after two million samples, with results that
    are equal in law. A run that reaches `max_samples` (1e12; 1e9 for Beta arms and arms
    given by data, whose rewards are drawn one by one unless they are rounded to bits;
    1e7 for strategies of your own and for arms that drift) counts as unstopped.
    `progress(done, runs)` is called now and then. Ctrl-C returns the runs done so far.
    With `first_run` the runs of that seed are numbered from there, so that blocks of
    runs put together are one whole simulation; for strategies that leap and dp-se it
    must be a multiple of 64.

    With an `accrual`, the people per day, the results have days. `delay` is the number
    of days until an outcome is told, a number or a `Delay`. An outcome told within the
    `deadline` counts; one told later or never counts as the worst one. `enrolment` is
    `waiting` (nobody is assigned until what is due is released) or, for bet-se with a
    deadline, `continuous` (rounds are opened ahead); `release` is `complete` (with the
    last outcome) or `clock` (the deadline after the last assignment).
    """
    check_progress(progress)
    calendar = make_calendar(accrual, delay, deadline, enrolment, release)
    cap = check_simulation(instance, strategy, runs, seed, max_samples, first_run, calendar)
    for reason in list_reasons_not_to_stop(instance, strategy):
        warnings.warn(
            f"some runs may not stop ({reason}); they count as unstopped",
            MayNotStopWarning,
            stacklevel=2,
        )
    warn_if_rounded(strategy, isinstance(instance, Sampled) and instance.outcomes == NUMBERS)
    first = int(first_run)
    return _simulate(instance, strategy, int(runs), seed, cap, threads, progress, first, calendar)


def simulate_quietly(
    instance: Instance,
    strategy: Strategy,
    runs: int,
    seed: int,
    max_samples: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    first_run: int = 0,
    calendar: Calendar | None = None,
) -> Results:
    """Simulate without warnings, for callers that gave them before."""
    cap = check_simulation(instance, strategy, runs, seed, max_samples, first_run, calendar)
    return _simulate(instance, strategy, runs, seed, cap, threads, progress, first_run, calendar)


def _simulate(
    instance: Instance,
    strategy: Strategy,
    runs: int,
    seed: int,
    cap: int,
    threads: int | None,
    progress: Progress | None,
    first_run: int,
    calendar: Calendar | None,
) -> Results:
    workers = (os.cpu_count() or 1) if threads is None else check_whole("threads", threads, least=1)
    outcomes, done = make_run_results(runs, instance.arms), np.zeros(runs, np.bool_)
    started = time.perf_counter()
    runner = select_runner(instance, strategy, cap, calendar)
    interrupted = play_all(
        runner, outcomes, done, seed, first_run // runner.runs_per_generator, workers, progress
    )
    finished = outcomes.select(done)
    if calendar is not None and calendar.is_simple:
        add_days(strategy, calendar, finished)
    return Results(
        samples=finished.samples,
        recommendation=finished.recommendation,
        correct=find_correct_arms(instance, strategy.indifference_zone)[finished.recommendation],
        stopped=finished.stopped,
        rounds=finished.rounds,
        pulls=finished.pulls,
        spec=describe_simulation(instance, strategy, cap, first_run, calendar),
        seed=int(seed),
        version=__version__,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        days=None if calendar is None else finished.days,
        pipeline=None if calendar is None else finished.pipeline,
    )


def describe_simulation(
    instance: Instance,
    strategy: Strategy,
    cap: int,
    first_run: int = 0,
    calendar: Calendar | None = None,
) -> dict[str, Any]:
    """Return what is simulated, in plain types."""
    described = {
        "instance": instance.to_dict(),
        "strategy": strategy.describe(),
        "max_samples": cap,
    }
    described["correctness"] = strategy.correctness
    if calendar is not None:
        described["calendar"] = calendar.to_dict()
    return {**described, "first_run": first_run} if first_run else described


def find_correct_arms(instance: Instance, indifference_zone: float) -> Flags:
    """Return the arms that a strategy may name without being wrong: the best one, and
    with an indifference zone ζ all that are at most ζ below it.
    """
    means = np.array(instance.means)
    return np.asarray(means >= means.max() - indifference_zone * (1 + 1e-12))


def check_simulation(
    instance: Instance,
    strategy: Strategy,
    runs: int,
    seed: int,
    max_samples: float | None,
    first_run: int = 0,
    calendar: Calendar | None = None,
) -> int:
    """Refuse what cannot be simulated. Return the cap."""
    if not isinstance(instance, Instance) or not isinstance(strategy, Strategy):
        raise InvalidInputError(
            "simulate takes an Instance, such as benchmarks.mu4, and a Strategy, such as "
            "ttucb(0.05)"
        )
    check_rewards(instance, strategy)
    if strategy.indifference_zone == 0:
        _ = instance.best  # refuses a tie, which no strategy can decide
    check_whole("runs", runs, least=1, most=10**9)
    check_whole("seed", seed, least=0)
    check_whole("first_run", first_run, least=0)
    if is_in_blocks(instance, strategy) and first_run % RUNS_PER_GENERATOR:
        raise InvalidInputError(
            f"first_run must be a multiple of {RUNS_PER_GENERATOR} for {strategy.name}; "
            f"got {first_run}"
        )
    if calendar is not None:
        check_calendar(instance, strategy, calendar)
    slow = isinstance(instance, Drifting) or (calendar is not None and not calendar.is_simple)
    one_by_one = slow or (
        isinstance(instance, SAMPLE_BY_SAMPLE_LAWS)
        and (strategy.spec.each_answer or not is_rounded_to_bits(strategy))
    )
    most = MAX_SAMPLES_BETA if one_by_one else MAX_SAMPLES
    usual = MAX_SAMPLES_SLOW if strategy.spec.own or slow else most
    cap = (
        usual
        if max_samples is None
        else check_whole("max_samples", max_samples, least=instance.arms, most=most)
    )
    check_grid(strategy, cap)
    return cap


def check_rewards(instance: Instance, strategy: Strategy) -> None:
    """Refuse arms whose rewards the strategy is not made for."""
    if strategy.spec.own:
        return
    if not instance.is_bounded and strategy.sigma is None:
        if "sigma" not in strategy.spec.options:
            raise InvalidInputError(f"{strategy.name} is not for Gaussian arms: {UNBOUNDED}")
        raise InvalidInputError(
            f"rewards of Gaussian arms are unbounded: make {strategy.name} with "
            f"sigma={instance.sigma:g}"
        )
    if strategy.sigma is not None and strategy.sigma < instance.sigma:
        raise InvalidInputError(
            f"{strategy.name} was told that σ is {strategy.sigma:g}, but the rewards of these "
            f"arms have {instance.sigma:g}, so its error rate would not hold: make it with "
            f"sigma={instance.sigma:g}"
        )


def is_in_blocks(instance: Instance, strategy: Strategy) -> bool:
    """Return whether runs are so quick that they share a Generator in blocks: those of
    DP-SE and all that leap, but never under a drift.
    """
    if isinstance(instance, Drifting):
        return False
    leaps = (
        strategy.spec.leaps and not strategy.has_global_episode and not strategy.needs_each_sample
    )
    return (leaps and not isinstance(instance, SAMPLE_BY_SAMPLE_LAWS)) or strategy.spec.short


def list_reasons_not_to_stop(instance: Instance, strategy: Strategy) -> list[str]:
    """Return why some runs may not stop; mostly nothing."""
    others = sorted(instance.means)[:-1]
    reasons = []
    if strategy.is_phased and strategy.sampling == "lucb":
        reasons.append(
            "LUCB pulls its two arms only until the mean of one is renewed, and an arm with a low "
            "mean may wait for ever"
        )
    tied = len(set(others)) < len(others) and not strategy.has_global_episode
    if strategy.spec.freezes and strategy.sampling in ("top-two", "eb-tci") and tied:
        reasons.append(
            "some suboptimal arms are tied: the paper's proof that AdaP-TT and AdaP-TT* stop "
            "needs distinct means, and a first noisy mean far below 0 can freeze the best arm"
        )
    if strategy.sampling == "eb-tc" and tied:
        reasons.append(
            "some suboptimal arms are tied: under eb-tc two of them may lead and challenge each "
            "other for ever, while the best arm waits; use eb-tci"
        )
    if strategy.episodes == "global" and strategy.sampling == "top-two" and instance.arms > 2:
        reasons.append(
            "often most of them do not: one global episode does not end while the leader's mean "
            "is not the largest, because the arm above it takes every challenger's sample and "
            "the others never double (with episodes='global-yielding' it always ends)"
        )
    return reasons


def select_runner(
    instance: Instance, strategy: Strategy, cap: int, calendar: Calendar | None = None
) -> Runner:
    """Return what plays the runs: the loop of the strategy's family. Compiled kernels
    are imported only here.

    Arms that drift are for loops that say `DRAWS_PER_PARTICIPANT`; the others would draw sums of
    many people as if nothing moved, so their strategies go in the steps of a live run.
    Outcomes that are late at random, or counted while others wait, have a loop too.
    """
    from discreet.simulation.laws import make_laws

    loop = import_module(f"discreet.simulation.{strategy.spec.family}")
    laws = make_laws(instance)
    if calendar is not None and not calendar.is_simple:
        from discreet.simulation.betting import make_calendar_runner as late_runner

        return late_runner(strategy, laws, cap, calendar)
    if laws.drift.kind != STEADY and not getattr(loop, "DRAWS_PER_PARTICIPANT", False):
        from discreet.simulation.per_participant import make_participant_runner

        return make_participant_runner(strategy, laws, cap)
    made: Runner = loop.make_runner(strategy, laws, cap, is_in_blocks(instance, strategy))
    return made
