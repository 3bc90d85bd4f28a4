"""bet-se before and after: python -m evidence.editions [runs] [folder]

Measures into editions.json beside this file, then prints the tables of the docs page
"Betting elimination". The first edition is gone from the package: `folder` is a
checkout of discreet that still has it (commit 8555e9d), measured in the same run by a
process of its own; without it the figures measured before stay. With 0 runs it only
prints.
"""

import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from discreet import Bernoulli, bet_se, bounds, simulate
from discreet.instance import benchmarks
from discreet.results import Results

DATA = Path(__file__).parent / "editions.json"
DELTA = 0.01
EPSILONS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 1000.0)
PAPER = {f"mu{i}": benchmarks[f"mu{i}"].means for i in range(1, 7)}
TWO = {
    str(means): means
    for means in ((0.9, 0.3), (0.7, 0.5), (0.55, 0.45), (0.52, 0.5), (0.05, 0.02), (0.95, 0.9))
}
MANY = {
    "dose": (0.35, 0.5, 0.7, 0.55),
    "10 arms": (0.6, *(0.4,) * 9),
    "20 arms": (0.7, *(0.5,) * 19),
    "20 steps": tuple(round(0.7 - 0.02 * i, 2) for i in range(20)),
    "rare": (0.05, 0.02, 0.02, 0.03),
}
SETS: dict[str, Any] = {"paper": PAPER, "two": TWO, "many": MANY}
WORDS = {"paper": "mu1 to mu6", "two": "two arms", "many": "other instances"}
HINTS = (0.5, 1.0, 2.0)


def settings() -> Iterator[dict[str, Any]]:
    """Every cell, first those that both editions have."""
    for name, instances in SETS.items():
        for shown, means in instances.items():
            cell = {"set": name, "instance": shown, "means": means, "trust": "global", "hint": 0.0}
            for epsilon in EPSILONS:
                yield {**cell, "epsilon": epsilon}
                if name != "many":
                    for hint in HINTS:
                        yield {**cell, "epsilon": epsilon, "hint": hint}
            if name != "many":
                yield {**cell, "epsilon": None, "trust": "none"}
                yield {**cell, "epsilon": 1.0, "trust": "local"}


def measured(cell: dict[str, Any], runs: int) -> dict[str, Any]:
    """One cell, simulated."""
    means = cell["means"]
    best, second = sorted(means)[:-3:-1]
    hint = {"hint": min(cell["hint"] * (best - second), 1.0)} if cell["hint"] else {}
    strategy = bet_se(DELTA, cell["epsilon"], cell["trust"], **hint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = simulate(Bernoulli(means), strategy, runs, 1)
    return figures(found)


def figures(found: Results) -> dict[str, Any]:
    """What is kept of simulated runs."""
    return {
        "mean": float(f"{found.samples.mean():.6g}"),
        "sem": float(f"{found.samples.std() / math.sqrt(found.runs):.3g}"),
        "errors": int(found.errors),
        "unstopped": int(found.unstopped),
        "rounds": round(float(found.rounds.mean()), 1),
    }


def bound(cell: dict[str, Any]) -> float:
    """What no strategy with this privacy can beat."""
    found = bounds(Bernoulli(cell["means"]), [cell["epsilon"] or 1.0], DELTA)
    if cell["trust"] == "none":
        return float(found.lower_bound)
    level = found.per_epsilon[0]
    local = cell["trust"] == "local"
    return float(level.lower_bound_local_both if local else level.lower_bound_global)


def measure(runs: int, folder: str | None, before: dict[str, Any]) -> dict[str, Any]:
    """Both editions."""
    first = {}
    if folder is not None:
        code = "from evidence.editions import first_edition; first_edition()"
        made = subprocess.run(
            [sys.executable, "-c", code, str(runs)],
            env={**os.environ, "PYTHONPATH": f"{folder}/src"},
            cwd=DATA.parent.parent,
            stdout=subprocess.PIPE,
            check=True,
        )
        first = json.loads(made.stdout)
    cells = []
    for cell in settings():
        key = key_of(cell)
        some = runs if cell["hint"] in (0, 1) else max(runs // 3, 1)
        entry = {**cell, "bound": float(f"{bound(cell):.6g}"), "runs": some}
        entry["second"] = measured(cell, some)
        if not cell["hint"]:
            entry["first"] = first.get(key) or before.get(key, {}).get("first")
        cells.append(entry)
        print(key, entry["second"], file=sys.stderr, flush=True)
    return {"delta": DELTA, "runs": runs, "cells": cells}


def first_edition() -> None:
    """Run by a process that has the first edition on its path."""
    runs = int(sys.argv[1])
    plain = [cell for cell in settings() if not cell["hint"]]
    json.dump({key_of(cell): measured(cell, runs) for cell in plain}, sys.stdout)


def key_of(cell: dict[str, Any]) -> str:
    """A cell in one word."""
    return f"{cell['instance']} {cell['epsilon']} {cell['trust']} {cell['hint']}"


# --- tables ---------------------------------------------------------------------------


class Mean(NamedTuple):
    """A geometric mean over cells of people over the bound, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """As a table shows it."""
        return f"{self.value:.2f} ± {self.error:.2f}"


def cells_of(data: dict[str, Any], edition: str, **wanted: Any) -> list[dict[str, Any]]:
    """The cells that have these values and were measured with this edition."""
    return [
        cell
        for cell in data["cells"]
        if all(cell[key] == value for key, value in wanted.items()) and cell.get(edition)
    ]


def over_bound(data: dict[str, Any], edition: str, **wanted: Any) -> Mean:
    """People over the bound in these cells."""
    cells = cells_of(data, edition, **wanted)
    logs = [math.log(cell[edition]["mean"] / cell["bound"]) for cell in cells]
    errors = [cell[edition]["sem"] / cell[edition]["mean"] for cell in cells]
    value = math.exp(math.fsum(logs) / len(cells))
    return Mean(value, value * math.hypot(*errors) / len(cells))


def changes(data: dict[str, Any]) -> list[tuple[float, str]]:
    """People of the second edition for each of the first, cell by cell, falling."""
    both = cells_of(data, "first")
    found = [(cell["second"]["mean"] / cell["first"]["mean"], key_of(cell)) for cell in both]
    return sorted(found, reverse=True)


def table(data: dict[str, Any], name: str, words: str) -> list[str]:
    """The table of one set of instances."""
    columns: list[tuple[str, str, float]] = [("first", "first", 0.0), ("second", "second", 0.0)]
    if name != "many":
        columns += [("half the hint", "second", 0.5), ("the right hint", "second", 1.0)]
        columns += [("twice the hint", "second", 2.0)]
    lines = [f"| {words} | " + " | ".join(column[0] for column in columns) + " |"]
    lines.append("|---" * (1 + len(columns)) + "|")
    rows: list[tuple[str, dict[str, Any]]] = [
        (f"ε = {epsilon:g}", {"epsilon": epsilon, "trust": "global"}) for epsilon in EPSILONS
    ]
    rows.append(("all of these", {"trust": "global"}))
    if name != "many":
        rows += [("no privacy", {"trust": "none"}), ("local, ε = 1", {"trust": "local"})]
    for shown, wanted in rows:
        means = [
            str(over_bound(data, edition, set=name, hint=hint, **wanted))
            if cells_of(data, edition, set=name, hint=hint, **wanted)
            else "–"
            for _, edition, hint in columns
        ]
        lines.append(f"| {shown} | " + " | ".join(means) + " |")
    return lines


def show(data: dict[str, Any]) -> None:
    """The tables of the page, and what stands in its sentences."""
    for name, words in WORDS.items():
        print("", *table(data, name, words), sep="\n")
    print("\nlargest changes:", *changes(data)[:8], sep="\n  ")
    for edition in ("first", "second"):
        cells = cells_of(data, edition)
        errors = sum(cell[edition]["errors"] for cell in cells)
        unstopped = sum(cell[edition]["unstopped"] for cell in cells)
        runs = sum(cell["runs"] for cell in cells)
        print(f"{edition}: {errors} wrong, {unstopped} unstopped of {runs} runs")


def main() -> None:
    """Measure, and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    data = json.loads(DATA.read_text()) if DATA.exists() else {"cells": []}
    if runs:
        before = {key_of(cell): cell for cell in data["cells"]}
        data = measure(runs, sys.argv[2] if len(sys.argv) > 2 else None, before)
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in data.pop("cells"))
        head = json.dumps(data)[:-1]
        DATA.write_text(f'{head}, "cells": [\n{lines}\n]}}\n')
        data = json.loads(DATA.read_text())
    show(data)


if __name__ == "__main__":
    main()
