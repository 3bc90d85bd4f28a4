"""What waiting and continuous enrolment cost: python -m evidence.field [runs]

Measures into field.json beside this file, then prints the table of the docs page
"Planning a trial". One person comes a day; delays are 10, 50 and 200 % of the people
that the trial takes without delay, the same for all, or exponential with a third of
that for mean and that for deadline. With 0 runs it only prints.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from discreet import Bernoulli, Delay, bet_se, simulate
from discreet.instances import benchmarks
from discreet.results import Results

DATA = Path(__file__).parent / "field.json"
DELTA = 0.05
INSTANCES = {"dose": (0.35, 0.5, 0.7, 0.55)} | {
    name: benchmarks[name].means for name in ("mu1", "mu2", "mu4")
}
EPSILONS = (0.1, 1.0, None)
SHARES = (0.1, 0.5, 2.0)
KINDS = ("fixed", "exponential")
WAYS = ("waiting", "continuous")


def measured(found: Results) -> dict[str, float]:
    """What is kept of simulated runs."""
    assert found.days is not None
    assert found.pipeline is not None
    return {
        "participants": float(f"{found.samples.mean():.5g}"),
        "days": float(f"{found.days.mean():.5g}"),
        "sem": float(f"{found.days.std() / math.sqrt(found.runs):.3g}"),
        "pipeline": float(f"{found.pipeline.mean():.4g}"),
        "errors": int(found.errors),
        "unstopped": int(found.unstopped),
    }


def measure(runs: int) -> dict[str, Any]:
    """Every cell, simulated."""
    cells = []
    for name, means in INSTANCES.items():
        for epsilon in EPSILONS:
            strategy = bet_se(DELTA, epsilon, "none" if epsilon is None else "global")
            people = float(simulate(Bernoulli(means), strategy, runs, 1).samples.mean())
            for share in SHARES:
                days = round(share * people, 1)
                for kind in KINDS:
                    late = Delay.fixed(days) if kind == "fixed" else Delay.exponential(days / 3)
                    cell: dict[str, Any] = {"instance": name, "epsilon": epsilon, "share": share}
                    cell |= {"kind": kind, "participants": round(people)}
                    for way in WAYS:
                        given: dict[str, Any] = {"accrual": 1, "delay": late, "deadline": days}
                        given["enrolment"] = way
                        cell[way] = measured(simulate(Bernoulli(means), strategy, runs, 1, **given))
                    cells.append(cell)
                    print(cell, file=sys.stderr, flush=True)
    return {"delta": DELTA, "runs": runs, "cells": cells}


def cells_of(data: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """The cells that have these values."""
    return [c for c in data["cells"] if all(c[key] == value for key, value in wanted.items())]


def days(cell: dict[str, Any], way: str) -> float:
    """Days over the people without delay."""
    return float(cell[way]["days"] / cell["participants"])


def shown(value: float) -> str:
    """Three digits at most."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def table(data: dict[str, Any]) -> list[str]:
    """The table of the page."""
    heads = [f"{share:.0%} {kind}" for share in SHARES for kind in KINDS]
    lines = ["| arms | ε | people | " + " | ".join(heads) + " |", "|---" * (3 + len(heads)) + "|"]
    for name in INSTANCES:
        for epsilon in EPSILONS:
            cells = cells_of(data, instance=name, epsilon=epsilon)
            level = "none" if epsilon is None else f"{epsilon:g}"
            both = [" → ".join(shown(days(cell, way)) for way in WAYS) for cell in cells]
            people = f"{cells[0]['participants']}"
            lines.append(f"| {name} | {level} | {people} | " + " | ".join(both) + " |")
    return lines


def extra(data: dict[str, Any], way: str, kind: str) -> list[float]:
    """People over those without delay, of all cells of a kind."""
    return [cell[way]["participants"] / cell["participants"] for cell in cells_of(data, kind=kind)]


def saved(data: dict[str, Any], share: float) -> list[float]:
    """Days of waiting over those of continuous enrolment."""
    return [days(c, "waiting") / days(c, "continuous") for c in cells_of(data, share=share)]


def wrong(data: dict[str, Any]) -> tuple[int, int]:
    """Wrong answers, and runs, of both ways."""
    errors = sum(cell[way]["errors"] for cell in data["cells"] for way in WAYS)
    return errors, data["runs"] * len(data["cells"]) * len(WAYS)


def show(data: dict[str, Any]) -> None:
    """The table, and what stands in the sentences."""
    print(*table(data), sep="\n")
    for share in SHARES:
        found = saved(data, share)
        print(f"{share:.0%}: waiting takes {min(found):.2f} to {max(found):.0f} times the days")
    late = extra(data, "waiting", "exponential")
    print(f"people, waiting, exponential: {min(late):.2f} to {max(late):.2f}")
    print("wrong, of runs:", *wrong(data))


def main() -> None:
    """Measure, and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if runs:
        data = measure(runs)
        lines = ",\n".join(json.dumps(cell) for cell in data.pop("cells"))
        DATA.write_text(f'{json.dumps(data)[:-1]}, "cells": [\n{lines}\n]}}\n')
    show(json.loads(DATA.read_text()))


if __name__ == "__main__":
    main()
