"""simulate(instance, strategy, runs, seed): exact simulation, on as many threads as there are processors.

Each run draws from a Generator of its own, made from the seed and the run's number, so results depend neither on the
number of threads nor on their order, and more runs extend fewer. (Runs that leap are so quick that they share
Generators in blocks of a fixed length.)
"""

import os
import queue
import threading
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.arrays import Flags, Ints, Progress
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Beta, Discrete, Instance
from discreet.results import Results
from discreet.strategies import rules
from discreet.strategies.strategy import Strategy
from discreet.validate import check_whole
from discreet.version import __version__

MAX_SAMPLES = 10**12
MAX_SAMPLES_BETA = 10**9
BLOCK = 64
Play = Callable[[np.random.Generator, int, "Table"], None]


class MayNotStopWarning(UserWarning):
    """A strategy was asked for that leaves some runs without an end; they are counted as unstopped."""


class Table:
    """What the runs did, one row each; rows are filled in any order."""

    def __init__(self, runs: int, arms: int) -> None:
        self.samples = np.zeros(runs, np.int64)
        self.recommendation = np.zeros(runs, np.int64)
        self.stopped = np.zeros(runs, np.bool_)
        self.rounds = np.zeros(runs, np.int64)
        self.pulls = np.zeros((runs, arms), np.int64)
        self.done = np.zeros(runs, np.bool_)


def simulate(
    instance: Instance,
    strategy: Strategy,
    runs: int = 1000,
    seed: int = 0,
    max_samples: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    first_run: int = 0,
) -> Results:
    """Simulate a strategy on an instance.

    Phased strategies, dp-se and bet-se go from release to release, so that a run of 1e12 samples costs little more than
    one of 1e6; the others take each sample. A run that reaches `max_samples` (1e12; 1e9 for Beta arms, whose rewards
    are drawn one by one except by bet-se) counts as unstopped. `progress(done, runs)` is called now and then. Ctrl-C
    returns the runs done so far. With `first_run` the runs of that seed are numbered from there, so that blocks of runs
    put together are one whole simulation; for strategies that leap and dp-se it must be a multiple of 64.
    """
    check(instance, strategy, runs, seed, max_samples, first_run)
    for reason in reasons_not_to_stop(instance, strategy):
        warnings.warn(f"some runs may not stop ({reason}); they count as unstopped", MayNotStopWarning, stacklevel=2)
    return simulate_quietly(instance, strategy, runs, seed, max_samples, threads, progress, first_run)


def simulate_quietly(
    instance: Instance,
    strategy: Strategy,
    runs: int,
    seed: int,
    max_samples: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    first_run: int = 0,
) -> Results:
    """`simulate` without its warnings, for whoever gave them before."""
    cap = check(instance, strategy, runs, seed, max_samples, first_run)
    workers = (os.cpu_count() or 1) if threads is None else check_whole("threads", threads, least=1)
    table = Table(runs, instance.arms)
    block = BLOCK if in_blocks(instance, strategy) else 1
    started = time.perf_counter()
    player = _player(instance, strategy, cap)
    interrupted = _spread(player, table, seed, block, first_run // block, workers, progress)
    done = table.done
    recommendation = table.recommendation[done]
    return Results(
        samples=table.samples[done],
        recommendation=recommendation,
        correct=good_arms(instance, strategy.zeta)[recommendation],
        stopped=table.stopped[done],
        rounds=table.rounds[done],
        pulls=table.pulls[done],
        spec=spec(instance, strategy, cap, first_run),
        seed=int(seed),
        version=__version__,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
    )


def spec(instance: Instance, strategy: Strategy, cap: int, first_run: int = 0) -> dict[str, Any]:
    """What is simulated, in plain types."""
    described = {"instance": instance.to_dict(), "strategy": describe(strategy), "max_samples": cap}
    described["correctness"] = strategy.correctness
    return {**described, "first_run": first_run} if first_run else described


def good_arms(instance: Instance, zeta: float) -> Flags:
    """The arms a strategy may name without being wrong: the best one; with ζ > 0 all that are at most ζ below it."""
    means = np.array(instance.means)
    return np.asarray(means >= means.max() - zeta * (1 + 1e-12))


def describe(strategy: Strategy) -> dict[str, Any]:
    """The strategy in plain types; parts that are Python functions by their names."""
    custom = {part: getattr(strategy, part) for part in ("threshold", "bonus", "grid")}
    named = {part: f"custom: {value.name}" for part, value in custom.items() if not isinstance(value, str)}
    return {name: named.get(name, getattr(strategy, name)) for name in strategy.__dataclass_fields__}


def check(
    instance: Instance, strategy: Strategy, runs: int, seed: int, max_samples: float | None, first_run: int = 0
) -> int:
    """The cap; refuses what cannot be simulated."""
    if not isinstance(instance, Instance) or not isinstance(strategy, Strategy):
        raise InvalidInputError(
            "simulate takes an Instance, such as benchmarks.mu4, and a Strategy, such as ttucb(0.05)"
        )
    if strategy.zeta == 0:
        _ = instance.best  # refuses a tie, which no strategy can decide
    check_whole("runs", runs, least=1, most=10**9)
    check_whole("seed", seed, least=0)
    check_whole("first_run", first_run, least=0)
    if in_blocks(instance, strategy) and first_run % BLOCK:
        raise InvalidInputError(f"first_run must be a multiple of {BLOCK} for {strategy.name}; got {first_run}")
    one_by_one = isinstance(instance, Beta) and strategy.estimator != "bets"
    most = MAX_SAMPLES_BETA if one_by_one else MAX_SAMPLES
    cap = most if max_samples is None else check_whole("max_samples", max_samples, least=instance.arms, most=most)
    rules.check_grid(strategy, cap)
    return cap


def in_blocks(instance: Instance, strategy: Strategy) -> bool:
    """Whether runs are so quick that they share a Generator in blocks: DP-SE, and everything that leaps."""
    leaps = strategy.phased and strategy.episodes == "arm" and strategy.beta != "ids"
    return (leaps and not isinstance(instance, Beta)) or strategy.estimator == "epochs"


def reasons_not_to_stop(instance: Instance, strategy: Strategy) -> list[str]:
    """Why some runs may not stop; mostly none."""
    others = sorted(instance.means)[:-1]
    reasons = []
    if strategy.phased and strategy.sampling == "lucb":
        reasons.append(
            "LUCB pulls two arms only until one of them is renewed, and an arm with a low mean may wait for ever"
        )
    if strategy.estimator == "daf" and strategy.sampling == "top-two" and len(set(others)) < len(others):
        reasons.append(
            "some suboptimal arms are tied: the paper's proof that AdaP-TT and AdaP-TT* stop needs distinct means, and "
            "a first noisy mean far below 0 can freeze the best arm"
        )
    if strategy.episodes == "global" and strategy.sampling == "top-two" and instance.arms > 2:
        reasons.append(
            "often most of them: one global episode does not end while the leader's mean is not the largest, as the "
            "arm above it takes every challenger's sample and the others never double"
        )
    return reasons


@lru_cache(maxsize=8)
def _kept_rules(strategy: Strategy, arms: int) -> Any:
    return rules.phased_rules(strategy, arms)


def _phased_rules(strategy: Strategy, arms: int) -> Any:
    """Tables that take longer to make than many a run; kept, as blocks of runs ask for the same ones again."""
    data = all(isinstance(part, str) for part in (strategy.threshold, strategy.bonus, strategy.grid))
    return _kept_rules(strategy, arms) if data else rules.phased_rules(strategy, arms)


def _player(instance: Instance, strategy: Strategy, cap: int) -> Play:
    """A function that plays the runs of one block into the table. Compiled kernels are imported only here."""
    from discreet.simulation import kernels as kernel

    arms, none = instance.arms, np.zeros((0, 4 + instance.arms))
    laws = laws_of(instance)
    if in_blocks(instance, strategy):
        return _block_player(strategy, arms, laws, cap)
    if strategy.estimator == "bets":
        bets, setting = rules.betting_rules(strategy, arms)

        def run(rng: np.random.Generator, pulls: Ints) -> tuple[int, int, bool, int]:
            return kernel.run_betting(rng, laws, bets, setting, cap, pulls, none)
    elif strategy.episodes == "global":
        run = _global_runner(strategy, arms, laws, cap, none)
    elif strategy.phased:
        release, phased = kernel.Release(*release_of(strategy)), _phased_rules(strategy, arms)

        def run(rng: np.random.Generator, pulls: Ints) -> tuple[int, int, bool, int]:
            return kernel.run_phased(rng, laws, release, phased, True, cap, pulls, none)
    else:
        noise, stream = rules.noise_scale(strategy), rules.stream_rules(strategy, arms)
        if strategy.estimator == "ctb":
            laws = kernel.responses(laws, float(strategy.epsilon or 0))

        def run(rng: np.random.Generator, pulls: Ints) -> tuple[int, int, bool, int]:
            return kernel.run_stream(rng, laws, noise, stream, cap, pulls, none)

    def play(rng: np.random.Generator, row: int, table: Table) -> None:
        found = run(rng, table.pulls[row])
        table.samples[row], table.recommendation[row], table.stopped[row], table.rounds[row] = found

    return play


def _block_player(strategy: Strategy, arms: int, laws: Any, cap: int) -> Play:
    from discreet.simulation import kernels as kernel

    epsilon, delta = float(strategy.epsilon or 0), strategy.delta
    if strategy.phased:
        release, phased = kernel.Release(*release_of(strategy)), _phased_rules(strategy, arms)

    def play(rng: np.random.Generator, row: int, table: Table) -> None:
        rows = slice(row, row + BLOCK)
        outputs: Any = (table.samples, table.recommendation, table.stopped, table.rounds, table.pulls)
        outputs = tuple(output[rows] for output in outputs)
        if strategy.phased:
            kernel.run_phased_block(rng, laws, release, phased, cap, *outputs)
        else:
            kernel.run_dpse_block(rng, laws, epsilon, delta, cap, *outputs)

    return play


def _global_runner(strategy: Strategy, arms: int, laws: Any, cap: int, none: Any) -> Any:
    """Runs with one global episode. A threshold costs more than a run, and runs come to the same counts: it is kept."""
    from discreet.simulation import kernels as kernel

    release, phased = kernel.Release(*release_of(strategy)), _phased_rules(strategy, arms)
    pair, bonus = rules.pair_thresholds(strategy, arms), rules.phase_bonus(strategy)

    @lru_cache(maxsize=10**5)
    def thresholds(best: int, other: int) -> tuple[float, float]:
        low, high = pair(best, other)
        return float(low), float(high)

    @lru_cache(maxsize=10**5)
    def own(count: int) -> float:
        return float(bonus(count))

    def run(rng: np.random.Generator, pulls: Ints) -> tuple[int, int, bool, int]:
        return kernel.run_global(rng, laws, release, phased, thresholds, own, True, cap, pulls, none)

    return run


def release_of(strategy: Strategy) -> tuple[float, bool, Ints]:
    """ε, whether phases are forgotten, and the grid of a phased strategy: the fields of `phased.Release`."""
    private = strategy.estimator == "daf"
    return float(strategy.epsilon or 0) if private else np.inf, private, rules.grid(strategy)


def laws_of(instance: Instance) -> Any:
    """The instance as the kernels draw from it."""
    from discreet.simulation import kernels as kernel

    if isinstance(instance, Bernoulli):
        return kernel.bernoulli(np.array(instance.means))
    if isinstance(instance, Discrete):
        values = np.tile(np.array(instance.values), (instance.arms, 1))
        return kernel.discrete(values, np.array(instance.probabilities))
    if isinstance(instance, Beta):
        return kernel.beta(np.array([instance.a, instance.b]).T)
    raise InvalidInputError(f"there is no simulation of {type(instance).__name__} arms")


def _spread(
    play: Play, table: Table, seed: int, block: int, first: int, threads: int, progress: Progress | None
) -> bool:
    """Play all blocks, numbered from `first`, on daemon threads (Ctrl-C waits for no run); true if interrupted."""
    runs = len(table.samples)
    starts = iter(range(0, runs, block))
    lock, finished, failures = threading.Lock(), queue.SimpleQueue[int](), list[BaseException]()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    row = next(starts, None)
                if row is None:
                    break
                key = (first + row // block,)
                rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
                play(rng, row, table)
                table.done[row : row + block] = True
                if progress is not None:  # otherwise nobody needs to wake up for it
                    finished.put(min(block, runs - row))
        except BaseException as error:  # handed to the caller's thread
            failures.append(error)
        finished.put(0)

    workers = min(threads, -(-runs // block))
    try:
        for _ in range(workers):
            threading.Thread(target=work, daemon=True).start()
        done = left = 0
        while left < workers:
            count = finished.get()
            done, left = done + count, left + (count == 0)
            if progress is not None and count:
                progress(done, runs)
    except KeyboardInterrupt as error:
        failures.append(error)
        return True
    except BaseException as error:  # of `progress`: the threads must not go on alone
        failures.append(error)
        raise
    if failures:
        raise failures[0]
    return False
