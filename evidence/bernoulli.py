"""What Bernoulli costs save: python -m evidence.bernoulli [runs]

Measures ttucb and ctb-tt with cost="kl" and with the Gaussian cost into bernoulli.json
beside this file, on the paper's instances and near 0 and 1, and prints the tables of
docs/strategies.md, "Bernoulli costs". With 0 runs it prints only.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from discreet import Bernoulli, Strategy, benchmarks, bet_se, ctb_tt, simulate, theory, ttucb
from discreet.theory import divergences

DATA = Path(__file__).parent / "bernoulli.json"
DELTA, SEED = 0.01, 1
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
INSTANCES = {
    **dict(benchmarks),
    "rare": Bernoulli((0.02, 0.01)),
    "seldom": Bernoulli((0.1, 0.05, 0.05)),
    "sure": Bernoulli((0.99, 0.97, 0.95)),
    "middle": Bernoulli((0.55, 0.5)),
}
LOCAL = ("mu1", "mu2", "mu3", "mu4", "seldom", "sure")
STRONG = [("mu3", 0.05), ("mu4", 0.1), ("mu4", 0.05)]
"""Where responses hardly differ and runs are long."""
PLAIN = {
    "gaussian": ttucb(DELTA),
    "kl": ttucb(DELTA, cost="kl"),
    "kl ids": ttucb(DELTA, cost="kl", beta="ids"),
    "kl empirical": ttucb(DELTA, cost="kl", threshold="empirical"),
    "bet-se": bet_se(DELTA, trust="none"),
}


def figures(instance: Bernoulli, strategy: Strategy, runs: int) -> dict[str, Any]:
    """Mean samples with their standard error, and wrong answers."""
    summary = simulate(instance, strategy, runs, SEED).summary()
    found = {key: float(f"{summary[key]:.5g}") for key in ("mean", "sem")}
    return {**found, "errors": summary["errors"], "unstopped": summary["unstopped"]}


def plain_cell(name: str, runs: int) -> dict[str, Any]:
    """One instance without privacy."""
    instance = INSTANCES[name]
    ways = {way: figures(instance, strategy, runs) for way, strategy in PLAIN.items()}
    bound = theory.lower_bound(theory.t_kl(instance), DELTA)
    return {"instance": name, "bound": float(f"{bound:.5g}"), **ways}


def local_cell(name: str, epsilon: float, runs: int) -> dict[str, Any]:
    """One instance and ε of ctb-tt; the bound is that of any strategy on its
    responses.
    """
    instance = INSTANCES[name]
    answers = Bernoulli(divergences.compute_randomised_mean(instance.means, epsilon))
    bound = theory.lower_bound(theory.t_kl(answers), DELTA)
    ways = {
        cost: figures(instance, ctb_tt(epsilon, DELTA, cost=cost), runs)
        for cost in ("gaussian", "kl")
    }
    return {"instance": name, "epsilon": epsilon, "bound": float(f"{bound:.5g}"), **ways}


def measure(runs: int) -> dict[str, Any]:
    """Everything; a fifth of the runs with privacy, which take longer."""
    return {
        "delta": DELTA,
        "runs": runs,
        "local runs": runs // 5,
        "cells": [plain_cell(name, runs) for name in INSTANCES],
        "local": [local_cell(name, level, runs // 5) for name in LOCAL for level in EPSILONS],
        "strong": [local_cell(name, level, runs // 10) for name, level in STRONG],
    }


def saved(cell: dict[str, Any]) -> float:
    """Samples with Bernoulli costs over those with Gaussian ones."""
    return float(cell["kl"]["mean"] / cell["gaussian"]["mean"])


def error_of_saved(cell: dict[str, Any]) -> float:
    """The standard error of `saved`."""
    parts = (cell[cost]["sem"] / cell[cost]["mean"] for cost in ("gaussian", "kl"))
    return saved(cell) * math.hypot(*parts)


def show(found: dict[str, Any]) -> None:
    """The tables of the docs."""
    print("| instance | Gaussian | Bernoulli | ratio | Bernoulli, β = ids | bound |")
    print("|---|---|---|---|---|---|")
    for cell in found["cells"]:
        means = [f"{cell[way]['mean']:.0f}" for way in ("gaussian", "kl")]
        row = [cell["instance"], *means, f"{saved(cell):.2f}"]
        print("|", " | ".join([*row, f"{cell['kl ids']['mean']:.0f}", f"{cell['bound']:.0f}"]), "|")
    print("\n| instance |", " | ".join(f"ε = {level:g}" for level in EPSILONS), "|")
    print("|---|" + "---|" * len(EPSILONS))
    for name in LOCAL:
        ratios = [f"{saved(cell):.2f}" for cell in found["local"] if cell["instance"] == name]
        print("|", " | ".join([name, *ratios]), "|")
    print()
    for cell in found["strong"]:
        print(f"{cell['instance']} at ε = {cell['epsilon']:g}: {saved(cell):.2f}")


if __name__ == "__main__":
    runs = int(sys.argv[1]) if sys.argv[1:] else 1000
    if runs:
        text = json.dumps(measure(runs), ensure_ascii=False, indent=1)
        DATA.write_text(text + "\n", encoding="utf-8")
    show(json.loads(DATA.read_text(encoding="utf-8")))
