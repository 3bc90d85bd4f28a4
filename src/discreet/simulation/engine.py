"""simulate(instance, strategy, runs, seed): exact simulation, on as many threads as
there are processors.

Each run draws from a Generator of its own, made from the seed and the run's number, so
results depend neither on the number of threads nor on their order, and more runs extend
fewer. (Runs that leap are so quick that they share Generators in blocks of a fixed
length.)
"""

import os
import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from discreet.arrays import Flags, Progress
from discreet.calendar import Calendar, Delay, calendar_of
from discreet.drift import STEADY
from discreet.errors import InvalidInputError
from discreet.instance import UNBOUNDED, Beta, Drifting, Instance
from discreet.results import Results
from discreet.sampled import Sampled
from discreet.scale import NUMBERS
from discreet.simulation.outcome import new_outcomes
from discreet.simulation.runner import BLOCK, Runner
from discreet.simulation.waits import add_days, check_calendar
from discreet.simulation.workers import play_all
from discreet.strategies.phased.tables import check_grid
from discreet.strategies.presets import warn_if_rounded
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import to_bits
from discreet.validate import check_progress, check_whole
from discreet.version import __version__

MAX_SAMPLES = 10**12
MAX_SAMPLES_BETA = 10**9
MAX_SAMPLES_SLOW = 10**7
"""Unless told otherwise: a strategy of your own takes half a minute for them. Arms that
drift have the same cap, as their rewards are drawn one by one.
"""
ONE_BY_ONE = (Beta, Sampled)
"""Arms whose rewards are drawn one by one."""


class MayNotStopWarning(UserWarning):
    """Some runs of the chosen strategy may never end; they are counted as unstopped."""


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
    calendar = calendar_of(accrual, delay, deadline, enrolment, release)
    cap = check(instance, strategy, runs, seed, max_samples, first_run, calendar)
    for reason in reasons_not_to_stop(instance, strategy):
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
    """`simulate` without its warnings, for whoever gave them before."""
    cap = check(instance, strategy, runs, seed, max_samples, first_run, calendar)
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
    outcomes, done = new_outcomes(runs, instance.arms), np.zeros(runs, np.bool_)
    started = time.perf_counter()
    runner = runner_of(instance, strategy, cap, calendar)
    interrupted = play_all(
        runner, outcomes, done, seed, first_run // runner.block, workers, progress
    )
    found = outcomes.part(done)
    if calendar is not None and calendar.simple:
        add_days(strategy, calendar, found)
    return Results(
        samples=found.samples,
        recommendation=found.recommendation,
        correct=good_arms(instance, strategy.zeta)[found.recommendation],
        stopped=found.stopped,
        rounds=found.rounds,
        pulls=found.pulls,
        spec=spec(instance, strategy, cap, first_run, calendar),
        seed=int(seed),
        version=__version__,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        days=None if calendar is None else found.days,
        in_flight=None if calendar is None else found.in_flight,
    )


def spec(
    instance: Instance,
    strategy: Strategy,
    cap: int,
    first_run: int = 0,
    calendar: Calendar | None = None,
) -> dict[str, Any]:
    """What is simulated, in plain types."""
    described = {
        "instance": instance.to_dict(),
        "strategy": strategy.describe(),
        "max_samples": cap,
    }
    described["correctness"] = strategy.correctness
    if calendar is not None:
        described["calendar"] = calendar.to_dict()
    return {**described, "first_run": first_run} if first_run else described


def good_arms(instance: Instance, zeta: float) -> Flags:
    """The arms a strategy may name without being wrong: the best one; with ζ > 0 all
    that are at most ζ below it.
    """
    means = np.array(instance.means)
    return np.asarray(means >= means.max() - zeta * (1 + 1e-12))


def check(
    instance: Instance,
    strategy: Strategy,
    runs: int,
    seed: int,
    max_samples: float | None,
    first_run: int = 0,
    calendar: Calendar | None = None,
) -> int:
    """The cap; refuses what cannot be simulated."""
    if not isinstance(instance, Instance) or not isinstance(strategy, Strategy):
        raise InvalidInputError(
            "simulate takes an Instance, such as benchmarks.mu4, and a Strategy, such as "
            "ttucb(0.05)"
        )
    check_rewards(instance, strategy)
    if strategy.zeta == 0:
        _ = instance.best  # refuses a tie, which no strategy can decide
    check_whole("runs", runs, least=1, most=10**9)
    check_whole("seed", seed, least=0)
    check_whole("first_run", first_run, least=0)
    if in_blocks(instance, strategy) and first_run % BLOCK:
        raise InvalidInputError(
            f"first_run must be a multiple of {BLOCK} for {strategy.name}; got {first_run}"
        )
    if calendar is not None:
        check_calendar(instance, strategy, calendar)
    slow = isinstance(instance, Drifting) or (calendar is not None and not calendar.simple)
    one_by_one = slow or (
        isinstance(instance, ONE_BY_ONE) and (strategy.part.each_answer or not to_bits(strategy))
    )
    most = MAX_SAMPLES_BETA if one_by_one else MAX_SAMPLES
    usual = MAX_SAMPLES_SLOW if strategy.part.own or slow else most
    cap = (
        usual
        if max_samples is None
        else check_whole("max_samples", max_samples, least=instance.arms, most=most)
    )
    check_grid(strategy, cap)
    return cap


def check_rewards(instance: Instance, strategy: Strategy) -> None:
    """Refuse arms whose rewards the strategy is not made for."""
    if strategy.part.own:
        return
    if not instance.bounded and strategy.sigma is None:
        if "sigma" not in strategy.part.options:
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


def in_blocks(instance: Instance, strategy: Strategy) -> bool:
    """Whether runs are so quick that they share a Generator in blocks: DP-SE, and
    everything that leaps; never under a drift.
    """
    if isinstance(instance, Drifting):
        return False
    leaps = strategy.part.leaps and not strategy.together and not strategy.by_person
    return (leaps and not isinstance(instance, ONE_BY_ONE)) or strategy.part.short


def reasons_not_to_stop(instance: Instance, strategy: Strategy) -> list[str]:
    """Why some runs may not stop; mostly none."""
    others = sorted(instance.means)[:-1]
    reasons = []
    if strategy.phased and strategy.sampling == "lucb":
        reasons.append(
            "LUCB pulls its two arms only until the mean of one is renewed, and an arm with a low "
            "mean may wait for ever"
        )
    tied = len(set(others)) < len(others) and not strategy.together
    if strategy.part.freezes and strategy.sampling in ("top-two", "eb-tci") and tied:
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


def runner_of(
    instance: Instance, strategy: Strategy, cap: int, calendar: Calendar | None = None
) -> Runner:
    """What plays the runs: the loop of the strategy's family. Compiled kernels are
    imported only here.

    Arms that drift are for loops that say `BY_PERSON`; the others would draw sums of
    many people as if nothing moved, so their strategies go in the steps of a live run.
    Outcomes that are late at random, or counted while others wait, have a loop too.
    """
    from discreet.simulation.laws import laws_of

    loop = import_module(f"discreet.simulation.loops.{strategy.part.family}")
    laws = laws_of(instance)
    if calendar is not None and not calendar.simple:
        from discreet.simulation.late import runner as late_runner

        return late_runner(strategy, laws, cap, calendar)
    if laws.drift.kind != STEADY and not getattr(loop, "BY_PERSON", False):
        from discreet.simulation.people import runner

        return runner(strategy, laws, cap)
    made: Runner = loop.runner(strategy, laws, cap, in_blocks(instance, strategy))
    return made
