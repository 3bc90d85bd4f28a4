"""Mean participants of bet-se in this version and in an earlier one: python -m
evidence.bet_se_participants [runs [folder]]

Measures into bet_se_participants.json beside this file, then prints the comparison and
the tables of the docs page "Betting elimination". `folder` is a checkout of the earlier
version, measured in a process of its own; without it the earlier figures stay, which
are those of the version before mechanisms were taken out. With 0 runs it only prints.
"""

import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from discreet import Bernoulli, Beta, Delay, Discrete, bet_se, bounds, simulate
from discreet.instances import benchmarks
from discreet.results import Results

DATA = Path(__file__).parent / "bet_se_participants.json"
DELTA = 0.01
EPSILONS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 1000.0)
PAPER = {f"mu{i}": benchmarks[f"mu{i}"].means for i in range(1, 7)}
TWO_ARMS = {
    str(means): means for means in ((0.6, 0.5), (0.85, 0.7), (0.1, 0.07), (0.99, 0.96), (0.4, 0.2))
}
MORE_ARMS: dict[str, tuple[float, ...]] = {
    "4 arms": (0.62, 0.55, 0.5, 0.41),
    "5 rare": (0.15, 0.1, 0.1, 0.06, 0.05),
    "6 arms": (0.45, *(0.3,) * 5),
    "10 arms": (0.8, *(0.7,) * 9),
    "4 frequent": (0.97, 0.93, 0.93, 0.9),
}
NUMBERS: dict[str, Any] = {
    "two beta": Beta([50, 55], [50, 45]),
    "four beta": Beta([50, 55, 52, 47], [50, 45, 48, 53]),
    "three values": Discrete([0, 0.5, 1], [[0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.35, 0.4, 0.25]]),
}
UNTUNED_EPSILONS = (0.003, 0.03, 0.3, 3.0)
PARTS = {
    "plain": "mu1 to mu6",
    "target_difference": "mu1 to mu6, the right target difference",
    "two arms": "untuned, two arms",
    "more arms": "untuned, more arms",
    "two arms, target_difference": "untuned, two arms, the right target difference",
    "none": "no privacy",
    "local": "local trust",
    "rho": "zero-concentrated, ρ = ε²/2",
    "numbers": "numbers",
    "indifference_zone": "indifference zone ζ = 0.05",
    "continuous": "continuous enrolment",
}


def settings() -> Iterator[dict[str, Any]]:
    """Yield every cell: its part, instance and ε."""
    cells: list[tuple[str, Iterable[str], tuple[float | None, ...]]] = [
        ("plain", PAPER, EPSILONS),
        ("target_difference", PAPER, EPSILONS),
        ("none", PAPER, (None,)),
        ("local", PAPER, (0.5, 2.0)),
        ("rho", PAPER, (0.01, 0.1, 1.0)),
        ("indifference_zone", PAPER, (0.05, 0.5)),
        ("continuous", PAPER, (0.1, 1.0)),
        ("two arms", TWO_ARMS, UNTUNED_EPSILONS),
        ("more arms", MORE_ARMS, UNTUNED_EPSILONS),
        ("two arms, target_difference", TWO_ARMS, UNTUNED_EPSILONS),
        ("numbers", NUMBERS, (0.01, 0.1, 1.0, 5.0)),
    ]
    for part, instances, epsilons in cells:
        for instance in instances:
            for epsilon in epsilons:
                yield {"part": part, "instance": instance, "epsilon": epsilon}


def means_of(cell: dict[str, Any]) -> tuple[float, ...]:
    """Return the means of a cell's instance."""
    name = cell["instance"]
    if cell["part"] == "numbers":
        return tuple(float(mean) for mean in NUMBERS[name].means)
    return tuple((PAPER | TWO_ARMS | MORE_ARMS)[name])


def measure_cell(cell: dict[str, Any], runs: int) -> dict[str, Any]:
    """Simulate one cell and return its mean number of participants."""
    part, epsilon, means = cell["part"], cell["epsilon"], means_of(cell)
    best, second = sorted(means)[:-3:-1]
    options: dict[str, Any] = {"epsilon": epsilon}
    if part in ("none", "local"):
        options["trust"] = part
    elif part == "rho":
        options = {"epsilon": None, "rho": epsilon**2 / 2}
    elif part in ("target_difference", "two arms, target_difference"):
        options["target_difference"] = best - second
    elif part == "indifference_zone":
        options["indifference_zone"] = 0.05
    elif part == "numbers":
        options["outcomes"] = "numbers"
    instance = NUMBERS[cell["instance"]] if part == "numbers" else Bernoulli(means)
    calendar: dict[str, Any] = {}
    if part == "continuous":
        days = round(find_bound(cell))
        calendar = {"accrual": 1, "delay": Delay.fixed(days), "deadline": days}
        calendar["enrolment"] = "continuous"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return figures(simulate(instance, bet_se(DELTA, **options), runs, 1, **calendar))


def figures(found: Results) -> dict[str, Any]:
    """Return what is kept of simulated runs."""
    return {
        "mean": float(f"{found.samples.mean():.6g}"),
        "sem": float(f"{found.samples.std() / math.sqrt(found.runs):.3g}"),
        "errors": int(found.errors),
        "unstopped": int(found.unstopped),
        "rounds": round(float(found.rounds.mean()), 1),
    }


def find_bound(cell: dict[str, Any]) -> float:
    """Return the lower bound on the mean number of participants with this privacy; that
    of bits.
    """
    found = bounds(Bernoulli(means_of(cell)), [cell["epsilon"] or 1.0], DELTA)
    if cell["part"] == "none":
        return float(found.lower_bound)
    level = found.per_epsilon[0]
    local = cell["part"] == "local"
    return float(level.lower_bound_local_both if local else level.lower_bound_global)


def key_of(cell: dict[str, Any]) -> str:
    """Return a cell's name."""
    return f"{cell['part']} {cell['instance']} {cell['epsilon']}"


def measure_here(runs: int) -> dict[str, Any]:
    """Simulate every cell with the package on the path."""
    found = {}
    for cell in settings():
        found[key_of(cell)] = measure_cell(cell, runs)
        print(key_of(cell), found[key_of(cell)], file=sys.stderr, flush=True)
    return found


def measure_folder(runs: int, folder: str) -> dict[str, Any]:
    """Simulate every cell with the package of another checkout, and its own copy of
    this file, which must give cells the same names.
    """
    code = (
        "import json, sys; from evidence.bet_se_participants import measure_here; "
        f"json.dump(measure_here({runs}), sys.stdout)"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{folder}/src"},
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def measure(runs: int, folder: str | None, before: dict[str, Any]) -> dict[str, Any]:
    """Measure this version, and the earlier one if its folder is given."""
    earlier = measure_folder(runs, folder) if folder is not None else before
    now = measure_here(runs)
    cells = [
        {
            **cell,
            "bound": float(f"{find_bound(cell):.6g}"),
            "before": earlier.get(key_of(cell)),
            "now": now[key_of(cell)],
        }
        for cell in settings()
    ]
    return {"delta": DELTA, "runs": runs, "cells": cells}


# --- tables ---------------------------------------------------------------------------


class Mean(NamedTuple):
    """A geometric mean over cells, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Format it as a table shows it."""
        return f"{self.value:.2f} ± {self.error:.2f}"

    @property
    def change(self) -> str:
        """Format a ratio as a change in percent."""
        return f"{100 * self.value - 100:+.1f} ± {100 * self.error:.1f} %"


def select_cells(data: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """Return the cells that have these values."""
    return [
        cell for cell in data["cells"] if all(cell[key] == value for key, value in wanted.items())
    ]


def mean_over_bound(data: dict[str, Any], version: str = "now", **wanted: Any) -> Mean:
    """Return the geometric mean of participants over the lower bound."""
    cells = select_cells(data, **wanted)
    logs = [math.log(cell[version]["mean"] / cell["bound"]) for cell in cells]
    errors = [cell[version]["sem"] / cell[version]["mean"] for cell in cells]
    value = math.exp(math.fsum(logs) / len(cells))
    return Mean(value, value * math.hypot(*errors) / len(cells))


def mean_change(data: dict[str, Any], **wanted: Any) -> Mean:
    """Return the geometric mean of participants now over those before."""
    cells = select_cells(data, **wanted)
    logs = [math.log(cell["now"]["mean"] / cell["before"]["mean"]) for cell in cells]
    errors = [cell[one]["sem"] / cell[one]["mean"] for cell in cells for one in ("now", "before")]
    value = math.exp(math.fsum(logs) / len(cells))
    return Mean(value, value * math.hypot(*errors) / len(cells))


def largest_changes(data: dict[str, Any], part: str) -> list[tuple[float, str]]:
    """Return participants now over those before, cell by cell, largest first."""
    cells = select_cells(data, part=part)
    return sorted(
        ((c["now"]["mean"] / c["before"]["mean"], key_of(c)) for c in cells), reverse=True
    )


def make_table(data: dict[str, Any]) -> list[str]:
    """Return the table of the docs page: participants over the bound."""
    heads = [f"{epsilon:g}" for epsilon in EPSILONS]
    heads += ["no privacy", "local, ε = 0.5", "local, ε = 2"]
    plain = [mean_over_bound(data, part="plain", epsilon=epsilon) for epsilon in EPSILONS]
    plain.append(mean_over_bound(data, part="none"))
    plain += [mean_over_bound(data, part="local", epsilon=epsilon) for epsilon in (0.5, 2.0)]
    told = [mean_over_bound(data, part="target_difference", epsilon=level) for level in EPSILONS]
    return [
        f"| target difference, ε = | {' | '.join(heads)} |",
        "|---" * (1 + len(heads)) + "|",
        f"| none | {' | '.join(f'{mean.value:.2f}' for mean in plain)} |",
        f"| the right one | {' | '.join(f'{mean.value:.2f}' for mean in told)} | – | – | – |",
    ]


def show(data: dict[str, Any]) -> None:
    """Print the comparison and the table of the page."""
    print(*make_table(data), sep="\n")
    for version in ("before", "now"):
        for part in ("plain", "target_difference"):
            print(version, part, mean_over_bound(data, version, part=part))
    for part, words in PARTS.items():
        print(f"\n{words}: {mean_change(data, part=part).change}")
        epsilons = {cell["epsilon"] for cell in select_cells(data, part=part)}
        for epsilon in sorted(epsilons, key=lambda x: x or 0):
            change = mean_change(data, part=part, epsilon=epsilon).change
            print(f"  ε = {epsilon}: {change}")
        print(
            "  largest:",
            *(f"{ratio:.3f} {name}," for ratio, name in largest_changes(data, part)[:3]),
        )
    for version in ("before", "now"):
        cells = [cell[version] for cell in data["cells"]]
        errors = sum(cell["errors"] for cell in cells)
        unstopped = sum(cell["unstopped"] for cell in cells)
        print(f"{version}: {errors} wrong, {unstopped} unstopped of {len(cells) * data['runs']}")


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    data = json.loads(DATA.read_text()) if DATA.exists() else {"cells": []}
    if runs:
        before = {key_of(cell): cell["before"] for cell in data["cells"]}
        data = measure(runs, sys.argv[2] if len(sys.argv) > 2 else None, before)
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in data["cells"])
        head = json.dumps({"delta": data["delta"], "runs": runs})[:-1]
        DATA.write_text(f'{head}, "cells": [\n{lines}\n]}}\n')
    show(data)


if __name__ == "__main__":
    main()
