"""The engine: cost of a sample, of a leap, of a run, against the oracle, with threads.
Prints; asserts nothing.

Runs of the first tables have thresholds out of reach and go to their cap, so that the
number of samples is known.
"""

import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from tests.support import naive

import discreet
from discreet import Bernoulli, Strategy
from discreet.simulation import laws as laws_module
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import RunResult
from discreet.simulation.phased import run_phased
from discreet.simulation.stream import run_stream
from discreet.strategies.phased.state import make_phased_rules
from discreet.strategies.stream import make_stream_rules

Run = Callable[[np.random.Generator], RunResult]


def spread_means(arms: int) -> Bernoulli:
    """Distinct means, the gaps growing like those of mu5 and mu6."""
    return Bernoulli(0.75 - 0.5 * (np.arange(arms) / (arms - 1)) ** 1.5)


def phased(instance: Bernoulli, strategy: Strategy, leaping: bool, cap: int) -> Run:
    made = make_phased_rules(strategy, instance.arms)
    made = made._replace(low=made.low + np.inf, high=made.high + np.inf)
    epsilon = float(strategy.epsilon or 0)
    run = compile_kernel(run_phased)
    laws, pulls = (
        laws_module.make_bernoulli_laws(np.array(instance.means)),
        np.zeros(instance.arms, np.int64),
    )
    none = np.zeros((0, 4 + instance.arms))
    return lambda rng: run(rng, laws, epsilon, made, leaping, cap, pulls, none)


def stream(instance: Bernoulli, strategy: Strategy, alone: int, cap: int) -> Run:
    made = make_stream_rules(strategy, instance.arms)._replace(constant=1e9)
    laws, pulls = (
        laws_module.make_bernoulli_laws(np.array(instance.means)),
        np.zeros(instance.arms, np.int64),
    )
    if strategy.epsilon is not None:
        laws = laws_module.make_response_laws(laws, strategy.epsilon)
    none = np.zeros((0, 4 + instance.arms))
    run = compile_kernel(run_stream)
    return lambda rng: run(rng, laws, 0.0, made, alone, cap, pulls, none)


def best(run: Run, repeat: int) -> float:
    """Seconds of the best of some runs; the machine is not ours alone."""
    run(np.random.default_rng(0))
    least = math.inf
    for seed in range(repeat):
        rng = np.random.default_rng(seed)
        start = time.perf_counter()
        run(rng)
        least = min(least, time.perf_counter() - start)
    return least


def samples_one_by_one() -> None:
    print("\nA sample, taken one by one (ns)           K = 5   K = 100")
    table: dict[str, Callable[[int], Run]] = {
        "phased (adap-tt)": lambda arms: phased(
            spread_means(arms), discreet.adap_tt(1, 0.01), False, 2_000_000
        ),
        "ttucb": lambda arms: stream(
            spread_means(arms), discreet.ttucb(0.01), 1_000_000, 1_000_000
        ),
        "ctb-tt": lambda arms: stream(
            spread_means(arms), discreet.ctb_tt(1, 0.01), 1_000_000, 1_000_000
        ),
    }
    for name, make in table.items():
        cap = 2_000_000 if name.startswith("phased") else 1_000_000
        cost = [1e9 * best(make(arms), 6) / cap for arms in (5, 100)]
        print(f"{name:38}{cost[0]:>9.1f}{cost[1]:>10.1f}")


def leaps() -> None:
    print(
        "\nA leaping run (ms), by its samples          1e5      1e6      1e9     1e12   growth "
        "1e6 to 1e12"
    )
    for arms in (5, 100):
        for strategy in (discreet.adap_tt(0.1, 0.01), discreet.adap_tt_star(0.1, 0.01)):
            repeat = 40 if arms == 5 else 4
            cost = [
                1e3 * best(phased(spread_means(arms), strategy, True, 10**p), repeat)
                for p in (5, 6, 9, 12)
            ]
            row = "".join(f"{value:>9.3f}" for value in cost)
            print(f"{strategy.name + f', K = {arms}':40}{row}{cost[3] / cost[1]:>12.1f}")


def throughput(instance: Bernoulli, strategy: Strategy, runs: int) -> tuple[float, float]:
    """Seconds with one thread and with two, the best of five each, taken in turn as the
    machine is not ours alone.
    """
    discreet.simulate(instance, strategy, runs=64)
    least = [math.inf, math.inf]
    for threads in 5 * (1, 2):
        seconds = discreet.simulate(instance, strategy, runs=runs, threads=threads).seconds
        least[threads - 1] = min(least[threads - 1], seconds)
    return least[0], least[1]


def whole_runs() -> None:
    one, _ = throughput(discreet.benchmarks.mu2, discreet.dp_se(1, 0.01), 20_000)
    print(f"\ndp-se on mu2: {one / 20_000 * 1e6:.1f} µs a run")
    print("two threads, with two free cores, times the throughput of one:", end="")
    for strategy, runs in ((discreet.ttucb(0.01), 400), (discreet.adap_tt(0.1, 0.01), 8000)):
        one, two = throughput(discreet.benchmarks.mu6, strategy, runs)
        print(f" {one / two:.2f} ({strategy.name})", end="")
    print()


def oracle(rng: np.random.Generator) -> RunResult:
    """30 000 samples by the oracle, thresholds out of reach."""
    sampler = naive.Sampler("top two", naive.d_gauss, math.inf, 0.5, False, 5)
    source = naive.Source(rng, "bernoulli", list(discreet.benchmarks.mu2.means))
    never, cap = (1e9, 1e9), 30_000
    found = naive.run_phased(
        source,
        5,
        sampler,
        1.0,
        True,
        False,
        lambda *_: never,
        lambda k, n, t: 1 / math.sqrt(n),
        "low",
        0.5,
        cap,
    )
    return RunResult(found.samples, found.recommendation, found.stopped, found.rounds)


def rounds_of_bets() -> None:
    """Cost of a round of bet-se for each arm: it should hardly depend on K."""
    arms = (5, 100, 1000, 10_000)
    print("\nA round of bet-se, for each arm (ns)   " + "".join(f"{f'K = {k}':>12}" for k in arms))
    for epsilon in (0.01, 1.0, 10.0):
        row = ""
        for k in arms:
            instance = Bernoulli((0.7, *(0.5,) * (k - 1)))
            strategy, runs = discreet.bet_se(0.01, epsilon), max(20_000 // k, 2)
            discreet.simulate(instance, strategy, 1, threads=1)
            start = time.process_time()
            found = discreet.simulate(instance, strategy, runs, 1, threads=1)
            cost = (time.process_time() - start) / (found.rounds.sum() * k)
            row += f"{cost * 1e9:>12.0f}"
        print(f"{f'ε = {epsilon:g}':38}{row}")


def numbers_by_person() -> None:
    """A run of bet-se on outcomes that are numbers beside one on bits, of as many
    people: laws drawn person by person cost more, discrete ones hardly.
    """
    laws = {
        "five values": discreet.Discrete(np.linspace(0, 1, 5), [[0.2] * 5, [0.19] * 4 + [0.24]]),
        "Beta": discreet.Beta([50, 51], [50, 49]),
        "data": discreet.Sampled([np.linspace(0, 0.9, 1000), np.linspace(0, 0.92, 1000)]),
    }
    print("\nbet-se, ε = 1, 20 000 people: a person, bits and numbers (ns)")
    for name, instance in laws.items():
        costs = []
        for outcomes in ("yes-no", "numbers"):
            strategy = discreet.bet_se(1e-90, 1.0, outcomes=outcomes)
            discreet.simulate(instance, strategy, 1, max_samples=20_000, threads=1)
            start = time.process_time()
            found = discreet.simulate(instance, strategy, 50, max_samples=20_000, threads=1)
            costs.append((time.process_time() - start) / found.samples.sum() * 1e9)
        print(f"  {name:14}{costs[0]:>8.1f}{costs[1]:>8.1f}   times {costs[1] / costs[0]:.1f}")


def against_the_oracle() -> None:
    instance, strategy = discreet.benchmarks.mu2, discreet.adap_tt(0.001, 0.01)
    slow = best(oracle, 5) / 30_000
    quick = (
        best(phased(spread_means(5), discreet.adap_tt(1, 0.01), False, 2_000_000), 5) / 2_000_000
    )
    print(f"against the oracle, a sample: {slow / quick:,.0f} times faster stepping")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = discreet.simulate(instance, strategy, runs=200, threads=1)
    stopped = results.samples[results.stopped]
    print(
        f"against the oracle, a run of {stopped.mean():.2e} samples on mu2 at ε = 0.001: "
        f"{slow * stopped.mean() / (results.seconds / 200):,.0f} times faster leaping"
    )


def start_up_and_memory() -> None:
    command = [
        sys.executable,
        "-m",
        "discreet",
        "simulate",
        "--instance",
        "mu4",
        "--strategy",
        "adap-tt",
    ]
    command += ["--epsilon", "1", "--runs", "10", "--json"]
    subprocess.run(command, check=True, capture_output=True)
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    print(f"start of `discreet simulate` with warm kernels: {time.perf_counter() - start:.2f} s")
    code = (
        "import resource, discreet\n"
        "low = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "discreet.simulate(discreet.benchmarks.mu4, discreet.adap_tt(1, 0.1), runs=100_000)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - low) // 1024, low // 1024)"
    )
    more, low = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    print(f"memory of 100 000 runs: {more} MB above the {low} MB of the import")


def run() -> None:
    samples_one_by_one()
    leaps()
    whole_runs()
    rounds_of_bets()
    numbers_by_person()
    against_the_oracle()
    start_up_and_memory()
