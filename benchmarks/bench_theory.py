"""Characteristic times: all quantities of one instance, and how they grow with the
number of arms.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from discreet import Bernoulli, benchmarks, bounds, theory

EPSILON = 0.7
TIMES: dict[str, Callable[[Bernoulli], object]] = {
    "t_kl": theory.t_kl,
    "t_kl_beta": theory.t_kl_beta,
    "t_gaussian": theory.t_gaussian,
    "t_local": lambda instance: theory.t_local(instance, EPSILON),
    "t_global": lambda instance: theory.t_global(instance, EPSILON),
    "t_epsilon": lambda instance: theory.t_epsilon(instance, EPSILON),
    "everything": lambda instance: bounds(instance, [EPSILON]),
}


def seconds(call: Callable[[], object], repeat: int) -> float:
    """The best of a few, as the machine is not ours alone."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def many_arms(arms: int) -> Bernoulli:
    means = np.random.default_rng(1).uniform(0, 0.9, arms)
    means[arms // 2] = 0.95
    return Bernoulli(means)


def hard_arms(arms: int) -> Bernoulli:
    """The best mean at 1, the others up to 1e-6 below it."""
    return Bernoulli((1.0, *np.linspace(0, 1 - 1e-6, arms - 1)))


def table(
    title: str, rows: Mapping[str, Callable[[Bernoulli], object]], make: Callable[[int], Bernoulli]
) -> None:
    sizes = (5, 100, 1_000, 10_000, 100_000)
    print(f"\n{title}: milliseconds by number of arms (growth: K = 100 000 against K = 5)")
    print(f"{'':16}" + "".join(f"{size:>10}" for size in sizes) + f"{'growth':>10}")
    for name, compute in rows.items():
        cost = [seconds(partial(compute, make(size)), 20 if size < 1_000 else 1) for size in sizes]
        print(
            f"{name:16}"
            + "".join(f"{1e3 * c:>10.2f}" for c in cost)
            + f"{cost[-1] / cost[0]:>10.0f}"
        )


def run() -> None:
    table(f"Theory, ε = {EPSILON}", TIMES, many_arms)
    hard = {f"t_epsilon {e:g}": partial(theory.t_epsilon, epsilon=e) for e in (1e-6, 1e-3, 1.0)}
    table("Theory, hard means", hard, hard_arms)
    print("\nAll quantities of one instance at one ε, K = 5, milliseconds (best and median of 30)")
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        cost = [seconds(partial(bounds, benchmarks.mu4, [epsilon]), 1) for _ in range(30)]
        print(f"mu4, ε = {epsilon:<5g}{1e3 * min(cost):>8.2f}{1e3 * statistics.median(cost):>8.2f}")
