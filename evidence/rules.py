"""Sampling rules against each other: python -m evidence.rules [runs]

Measures ttucb (Gaussian and Bernoulli costs), ctb-tt and adap-tt with every rule that
has a leader and with Track-and-Stop into rules.json beside this file, on the paper's
instances, and prints the tables of docs/strategies.md, "Sampling rules". With 0 runs it
prints only.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import discreet
from discreet import Bernoulli, Strategy, adap_tt, benchmarks, ctb_tt, simulate, ttucb

DATA = Path(__file__).parent / "rules.json"
DELTA, EPSILON, SEED = 0.01, 1.0, 1
RULES = ("top-two", "eb-tc", "eb-tci", "ts-tc", "track-and-stop")
WAYS = {
    "ttucb": {rule: ttucb(DELTA, sampling=rule) for rule in RULES},
    "ttucb kl": {rule: ttucb(DELTA, sampling=rule, cost="kl") for rule in RULES},
    "ctb-tt": {rule: ctb_tt(EPSILON, DELTA, sampling=rule) for rule in RULES},
    "adap-tt": {rule: adap_tt(EPSILON, DELTA, sampling=rule) for rule in RULES if rule != "ts-tc"},
}
CAPS = {"ttucb": 10**6, "ttucb kl": 10**6, "ctb-tt": 3 * 10**6, "adap-tt": 10**8}


def figures(instance: Bernoulli, strategy: Strategy, runs: int, cap: int) -> dict[str, Any]:
    """Mean samples of the runs that stopped, how many did not, and wrong answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.MayNotStopWarning)
        results = simulate(instance, strategy, runs, SEED, cap)
    samples = results.samples[results.stopped]
    return {
        "mean": float(f"{samples.mean():.4g}"),
        "sem": float(f"{samples.std(ddof=1) / len(samples) ** 0.5:.2g}"),
        "unstopped": results.unstopped,
        "errors": results.errors,
    }


def measure(runs: int) -> dict[str, Any]:
    """Every way with every rule on every instance; a third of the runs where samples
    are many.
    """
    found: dict[str, Any] = {"runs": {}, "cells": []}
    for way, rules in WAYS.items():
        here = runs if way.startswith("ttucb") else max(runs // 3, 2)
        found["runs"][way] = here
        for name, instance in benchmarks.items():
            cell: dict[str, Any] = {"way": way, "instance": name}
            for rule, strategy in rules.items():
                cell[rule] = figures(instance, strategy, here, CAPS[way])
            found["cells"].append(cell)
            print(json.dumps(cell), flush=True)
    return found


def ratios(data: dict[str, Any], ways: tuple[str, ...], rules: tuple[str, ...]) -> list[float]:
    """Samples over those of top-two, in every cell of these ways, of these rules."""
    return [
        cell[rule]["mean"] / cell["top-two"]["mean"]
        for cell in data["cells"]
        for rule in rules
        if cell["way"] in ways
    ]


def wrong(data: dict[str, Any]) -> tuple[int, int]:
    """Wrong answers, and in how many runs."""
    cells = [(cell, rule) for cell in data["cells"] for rule in WAYS[cell["way"]]]
    errors = sum(cell[rule]["errors"] for cell, rule in cells)
    return errors, sum(data["runs"][cell["way"]] for cell, _ in cells)


def shown(figure: dict[str, Any], runs: int) -> str:
    """Thousands of samples, and the share of runs that hit the cap."""
    left = f" ({figure['unstopped'] / runs:.0%} unstopped)" if figure["unstopped"] else ""
    thousands = float(f"{figure['mean'] / 1000:.3g}")
    return f"{thousands:g}{left}"


def table(data: dict[str, Any], way: str) -> list[str]:
    """The table of one way, as it stands in the docs."""
    rules = list(WAYS[way])
    lines = ["| instance | " + " | ".join(f"`{rule}`" for rule in rules) + " |"]
    lines.append("|---" * (len(rules) + 1) + "|")
    for cell in data["cells"]:
        if cell["way"] == way:
            row = [shown(cell[rule], data["runs"][way]) for rule in rules]
            lines.append(f"| {cell['instance']} | " + " | ".join(row) + " |")
    return lines


def show(data: dict[str, Any]) -> None:
    """Print the tables."""
    for way in WAYS:
        print(f"\n{way}", *table(data, way), sep="\n")


def main(runs: int = 300) -> None:
    """Measure, and print the tables."""
    if runs:
        DATA.write_text(json.dumps(measure(runs), indent=1) + "\n")
    show(json.loads(DATA.read_text()))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
