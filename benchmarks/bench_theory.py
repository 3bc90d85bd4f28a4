"""Characteristic times: all quantities of one instance, and how they grow with the number of arms."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from discreet import Bernoulli, benchmarks, bounds, theory

TIMES: dict[str, Callable[[Bernoulli], object]] = {
    "t_kl": theory.t_kl,
    "t_gaussian": theory.t_gaussian,
    "t_local": lambda instance: theory.t_local(instance, 0.7),
    "t_global": lambda instance: theory.t_global(instance, 0.5),
    "t_epsilon": lambda instance: theory.t_epsilon(instance, 0.5),
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


def run() -> None:
    print("\nTheory: milliseconds by number of arms (growth: K = 100 000 against K = 5)")
    sizes = (5, 100, 1_000, 10_000, 100_000)
    print(f"{'':12}" + "".join(f"{size:>10}" for size in sizes) + f"{'growth':>10}")
    for name, compute in TIMES.items():
        cost = [seconds(partial(compute, many_arms(size)), 5 if size < 10_000 else 1) for size in sizes]
        print(f"{name:12}" + "".join(f"{1e3 * c:>10.2f}" for c in cost) + f"{cost[-1] / cost[0]:>10.0f}")
    everything = seconds(lambda: bounds(benchmarks.mu4, [0.5]), 5)
    print(f"all quantities of one instance at one ε, K = 5: {1e3 * everything:.1f} ms")
