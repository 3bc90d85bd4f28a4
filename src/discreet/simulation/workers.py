"""Runs spread over threads, each block of runs with a Generator of its own."""

import queue
import threading

import numpy as np

from discreet.arrays import Flags, Progress
from discreet.simulation.outcome import Outcomes
from discreet.simulation.runner import Runner


def generator(seed: int, block: int) -> np.random.Generator:
    """The Generator of a block of runs: of the seed and the block's number alone."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(block,)))
    )


def play_all(
    runner: Runner,
    outcomes: Outcomes,
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
    runs, block = len(done), runner.block
    starts = iter(range(0, runs, block))
    lock, finished, failures = threading.Lock(), queue.SimpleQueue[int](), list[BaseException]()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    row = next(starts, None)
                if row is None:
                    break
                runner.play(generator(seed, first + row // block), outcomes, row)
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
