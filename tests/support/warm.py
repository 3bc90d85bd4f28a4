"""Compiles every kernel into the cache, a process each: `python -m tests.support.warm`.

Workers that start with an empty cache would each compile what they meet first, mostly
the same.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import discreet
from discreet import Bernoulli, Beta, Drift, Drifting, Instance, Strategy

TWO = Bernoulli([0.9, 0.1])
KERNELS: dict[str, Callable[[], tuple[Instance, Strategy]]] = {
    "bets": lambda: (TWO, discreet.bet_se(0.2, epsilon=1.0)),
    "blocks of phased runs": lambda: (TWO, discreet.adap_tt(5, 0.2)),
    "phased runs": lambda: (Beta([9, 1], [1, 9]), discreet.adap_tt(5, 0.2)),
    "phased runs that drift": lambda: (
        Drifting(TWO, Drift.sites(0.1)),
        discreet.adap_tt(5, 0.2),
    ),
    "global episodes": lambda: (TWO, discreet.adap_tt(5, 0.2, episodes="global")),
    "streams": lambda: (TWO, discreet.ttucb(0.2)),
    "epochs": lambda: (TWO, discreet.dp_se(1, 0.2)),
}
"""A simulation for each way of playing a run; the ones that take longest to compile
first.
"""


def compile_one(name: str) -> None:
    """Play one run, which compiles what it needs."""
    instance, strategy = KERNELS[name]()
    discreet.simulate(instance, strategy, runs=1, threads=1)


def warm() -> None:
    """All kernels, as many at once as there are processors."""

    def apart(name: str) -> None:
        subprocess.run([sys.executable, "-m", "tests.support.warm", name], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(apart, KERNELS))


if __name__ == "__main__":
    names = sys.argv[1:]
    for name in names:
        compile_one(name)
    if not names:
        warm()
