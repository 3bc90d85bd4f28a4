"""Why AdaP-TT needs more samples here than in the paper's figures: python -m
evidence.authors [runs]

From the paper's pseudocode to the authors' published code, one difference at a time,
all with the threshold of that code (our `empirical`) and beside DP-SE as published and
as in that code. Measures into authors.json beside this file and prints what the docs
page "Reproducing the paper" says; with 0 runs it only prints what was measured before.
"""

import json
import math
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np

from discreet import adap_tt, benchmarks, dp_se, simulate
from discreet.studies.paper import DELTA, GLOBAL, simulate_authors_dp_se

DATA = Path(__file__).parent / "authors.json"
CAP = 10**8
"""Samples a run may take; it is simulated one by one."""
VARIANTS = {
    "bonus with log n": (False, False, 2.0),
    "and coin flips, κ": (True, False, 2.0),
    "and the leader's stopping rule": (True, True, 2.0),
    "and σ = 1/2 (in no code)": (True, True, 0.5),
}
"""Whether coins are flipped, whether the stopping rule is about the leader, and 2σ² in
its cost.
"""


@numba.njit(nogil=True)
def ucb_leader(mean, last, total, epsilon):  # type: ignore[no-untyped-def]
    """The arm with the largest mean plus bonus; log n stands in the bonus where the
    paper has the arm's phase.
    """
    log = math.log(total)
    return np.argmax(mean + log / (epsilon * last) + np.sqrt(log / (2 * last)))


@numba.njit(nogil=True)
def challenger(best, mean, pulls, kappa):  # type: ignore[no-untyped-def]
    """The arm with the least transport cost, of gaps enlarged by κ."""
    chosen, least = -1, math.inf
    for arm in range(mean.size):
        if arm != best:
            gap = mean[best] - mean[arm] + kappa
            cost = (gap * abs(gap) if kappa > 0 else max(gap, 0.0) ** 2) / (
                1 / pulls[best] + 1 / pulls[arm]
            )
            if cost < least:
                chosen, least = arm, cost
    return chosen


@numba.njit(nogil=True)
def stops(best, mean, last, epsilon, log, two_variance):  # type: ignore[no-untyped-def]
    """Whether every other arm's cost reaches the threshold, whatever the sign of its
    gap.
    """
    for arm in range(mean.size):
        if arm != best:
            inverse = 1 / last[best] + 1 / last[arm]
            union = math.log(1 + math.log(last[best])) + math.log(1 + math.log(last[arm]))
            cost = (mean[best] - mean[arm]) ** 2 / (two_variance * inverse)
            if cost < log + union + inverse * (log / epsilon) ** 2:
                return False
    return True


@numba.njit(nogil=True)
def run(seed, means, epsilon, coins, of_leader, two_variance):  # type: ignore[no-untyped-def]
    """One run: samples, samples of finished phases alone, the arm named, whether it
    stopped.
    """
    np.random.seed(seed)  # noqa: NPY002
    arms, log = means.size, math.log(1 / DELTA)
    mean, last, done = np.zeros(arms), np.ones(arms), np.ones(arms)
    for arm in range(arms):
        mean[arm] = np.random.binomial(1, means[arm]) + np.random.laplace(0, 1 / epsilon)  # noqa: NPY002
    pulls, led, led_pulls, samples = done.copy(), np.zeros(arms), np.zeros(arms), arms
    while samples < CAP:
        best = ucb_leader(mean, last, done.sum(), epsilon)
        kappa = 1 / (1 + math.sqrt(done.sum())) if coins else 0.0
        arm = best
        while True:
            led[best] += 1
            arm = best
            if np.random.random() > 0.5 if coins else led_pulls[best] > 0.5 * led[best]:  # noqa: NPY002
                arm = challenger(best, mean, pulls, kappa)
            else:
                led_pulls[best] += 1
            pulls[arm] += 1
            samples += 1
            if pulls[arm] == 2 * done[arm] or samples >= CAP:
                break
        if pulls[arm] == 2 * done[arm]:
            last[arm], done[arm] = done[arm], pulls[arm]
            noise = np.random.laplace(0, 1 / epsilon)  # noqa: NPY002
            mean[arm] = (np.random.binomial(int(last[arm]), means[arm]) + noise) / last[arm]  # noqa: NPY002
            leader = ucb_leader(mean, last, done.sum(), epsilon) if of_leader else np.argmax(mean)
            if stops(leader, mean, last, epsilon, log, two_variance):
                return samples, done.sum(), np.argmax(mean), True
    return samples, done.sum(), np.argmax(mean), False


def variant(
    name: str, epsilon: float, runs: int, parts: tuple[bool, bool, float]
) -> dict[str, Any]:
    """What one variant took on an instance, its unfinished phases counted or not."""
    instance = benchmarks[name]
    means = np.array(instance.means)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda seed: run(seed, means, epsilon, *parts), range(runs)))
    samples, finished, named, stopped = (np.array(column) for column in zip(*found, strict=True))
    return {
        "mean": round(float(samples.mean())),
        "finished": round(float(finished.mean())),
        "unstopped": int((~stopped).sum()),
        "errors": int((stopped & (named != instance.best)).sum()),
    }


def measure(runs: int) -> list[dict[str, Any]]:
    """All cells of the global study."""
    cells = []
    for epsilon in sorted(GLOBAL, reverse=True):
        for name in benchmarks:
            instance = benchmarks[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                paper = simulate(
                    instance, adap_tt(epsilon, DELTA, threshold="empirical"), 1000, 1
                ).summary()
            cell = {"instance": name, "epsilon": epsilon, "paper's pseudocode": paper["mean"]}
            cell["dp-se"] = simulate(instance, dp_se(epsilon, DELTA), 1000, 1).summary()["mean"]
            cell["dp-se-authors"] = float(
                simulate_authors_dp_se(instance, epsilon, DELTA, 1000, 1)[0].mean()
            )
            cells.append(
                cell
                | {words: variant(name, epsilon, runs, parts) for words, parts in VARIANTS.items()}
            )
            print(json.dumps(cells[-1], ensure_ascii=False), file=sys.stderr, flush=True)
    return cells


def show(cells: list[dict[str, Any]]) -> None:
    """In how many cells each step towards the authors' code is below each DP-SE."""
    theirs, half = list(VARIANTS)[-2:]
    lines = [("paper's pseudocode", [cell["paper's pseudocode"] for cell in cells])]
    lines += [
        (words, [cell[words]["mean"] for cell in cells]) for words in VARIANTS if words != half
    ]
    lines.append(("and open phases not counted", [cell[theirs]["finished"] for cell in cells]))
    lines.append((half, [cell[half]["finished"] for cell in cells]))
    for words, means in lines:
        won = [
            sum(mean < cell[rival] for mean, cell in zip(means, cells, strict=True))
            for rival in ("dp-se", "dp-se-authors")
        ]
        print(f"{words:32} below DP-SE in {won[0]}, below the authors' in {won[1]} of {len(cells)}")
    for words in VARIANTS:
        wrong, most = (of(cell[words]["errors"] for cell in cells) for of in (sum, max))
        print(
            f"{words:32} wrong {wrong}, at most {most} in a cell; unstopped "
            f"{sum(c[words]['unstopped'] for c in cells)}"
        )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if count:
        DATA.write_text(
            json.dumps({"delta": DELTA, "runs": count, "cells": measure(count)}, ensure_ascii=False)
            + "\n"
        )
    show(json.loads(DATA.read_text())["cells"])
