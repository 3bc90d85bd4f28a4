"""Compiles every kernel into the cache, a process for each family of them, and the
tests themselves: `python -m tests.support.warm`.

Workers that start with an empty cache would each compile what they meet first, mostly
the same. Kernels of a family call the same leaves, which one process compiles once.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import discreet
from discreet import Bernoulli, Beta, Drift, Drifting, Instance, Strategy
from discreet.simulation.compile import compile_kernel
from discreet.simulation.dp_se import run_epochs
from discreet.simulation.laws import make_bernoulli_laws
from discreet.strategies.betting.bets import make_betting_rules
from tests.support.ever_out import Field, runs_with_best_out

TWO = Bernoulli([0.9, 0.1])


def play(instance: Instance, strategy: Strategy, **days: object) -> None:
    """One run, which compiles what it needs."""
    discreet.simulate(instance, strategy, runs=1, threads=1, **days)  # type: ignore[arg-type]


def bets() -> None:
    """Runs without days, with late outcomes, with rounds opened ahead; and those of the
    guarantees.
    """
    strategy, late = discreet.bet_se(0.2, epsilon=1.0), discreet.Delay.exponential(1.0)
    play(TWO, strategy)
    play(TWO, strategy, accrual=5.0, delay=late)
    play(TWO, strategy, accrual=5.0, delay=late, deadline=3.0, enrolment="continuous")
    laws, rules = make_bernoulli_laws(np.array(TWO.means)), make_betting_rules(strategy, 2)
    compile_kernel(runs_with_best_out)(np.random.default_rng(1), laws, Field(), rules, 100, 1)


def phased() -> None:
    """Runs in blocks, of numbers, of arms that drift, and with one global episode."""
    strategy = discreet.adap_tt(5, 0.2)
    play(TWO, strategy)
    play(Beta([9, 1], [1, 9]), strategy)
    play(Drifting(TWO, Drift.sites(0.1)), strategy)
    play(TWO, discreet.adap_tt(5, 0.2, episodes="global"))


def epochs() -> None:
    """Runs in blocks, and one by one, as tests compare them: with leaves that are there
    already this takes less than alone.
    """
    play(TWO, discreet.dp_se(1, 0.2))
    laws, room = make_bernoulli_laws(np.array(TWO.means)), (np.zeros(2, np.int64), np.zeros((0, 6)))
    compile_kernel(run_epochs)(np.random.default_rng(1), laws, 1.0, 0.2, 1000, *room)


def tests() -> None:
    """pytest rewrites every file of tests when it first imports it, which takes most of
    the time until the first test. Nothing is gained where that is not kept.
    """
    if sys.dont_write_bytecode:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


FAMILIES: dict[str, Callable[[], None]] = {
    "bets": bets,
    "phased": phased,
    "tests": tests,
    "streams": lambda: play(TWO, discreet.ttucb(0.2)),
    "dp_se": epochs,
}
"""The ones that take longest to compile first."""


def warm() -> None:
    """All families, as many at once as there are processors."""

    def apart(name: str) -> None:
        subprocess.run([sys.executable, "-m", "tests.support.warm", name], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(apart, FAMILIES))


if __name__ == "__main__":
    names = sys.argv[1:]
    for name in names:
        FAMILIES[name]()
    if not names:
        warm()
