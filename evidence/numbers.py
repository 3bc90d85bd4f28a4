"""Numeric outcomes, used as they are and rounded to bits: python -m
evidence.numbers [runs]

Measures into numbers.json beside this file, then prints the tables of the section
"Numeric outcomes" of docs/betting.md and draws its picture. With 0 runs it prints and draws only.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import Bernoulli, Beta, Discrete, Sampled, bet_se, simulate, theory
from discreet.instances import Instance
from discreet.reports import charts
from discreet.reports.charts.style import (
    DASH,
    End,
    choose_look,
    label,
    label_ends,
    make_figure,
    open_frame,
    styled,
)
from evidence.bet_se_participants import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
DATA, PICTURE = HERE / "numbers.json", HERE.parent / "docs" / "_static" / "numbers.svg"
DELTA = 0.01
EPSILONS = (0.1, 0.5, 1.0, 5.0, None)
LOCAL_EPSILONS = (1.5, 2.0, 3.0, 5.0)
RANGES = ((100.0, 200.0), (0.0, 200.0), (0.0, 400.0), (0.0, 2000.0))
RANGE_EPSILONS = (0.1, 1.0, 5.0)
SPREADS = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4)
SPREAD_EPSILONS = (0.1, 1.0, None)
WAYS = ("yes-no", "numbers")
LOOKS: Any = (("yes-no", "bits", DASH, 1.0), ("numbers", "numbers", "-", 1.8))
"""Each way: its words, and its line."""
TARGETS: dict[str, tuple[float, ...]] = {
    "beta2": (5222, 1339, 930, 464, 397),
    "beta4": (17181, 4132, 2798, 1372, 1126),
    "disc": (4417, 1659, 1175, 814, 723),
    "mix": (8657, 2004, 1200, 603, 531),
    "skew2": (14564, 3546, 2013, 973, 739),
    "narrow2": (96751, 21450, 11899, 5716, 4894),
}
"""People that prototypes outside the project took, the better of two, by ε."""


def beta_of(means: tuple[float, ...], spread: float) -> Beta:
    """Beta arms with these means and one standard deviation."""
    mean = np.array(means)
    size = mean * (1 - mean) / spread**2 - 1
    return Beta(mean * size, (1 - mean) * size)


def mixed() -> Discrete:
    """Mostly close to the mean (nine of ten, standard deviation 0.02), else anywhere;
    on a grid of 1024 values.
    """
    edges = np.linspace(0, 1, 1025)
    rows = []
    for mean in (0.5, 0.55):
        bulk = np.diff([NormalDist(mean, 0.02).cdf(edge) for edge in edges])
        rows.append(0.9 * bulk / bulk.sum() + 0.1 / 1024)
    return Discrete((edges[1:] + edges[:-1]) / 2, rows)


INSTANCES: dict[str, Instance] = {
    "beta2": Beta([50, 55], [50, 45]),
    "beta4": Beta([50, 55, 52, 47], [50, 45, 48, 53]),
    "disc": Discrete(
        [0, 0.25, 0.5, 0.75, 1], [(0.05, 0.2, 0.5, 0.2, 0.05), (0.02, 0.13, 0.5, 0.27, 0.08)]
    ),
    "mix": mixed(),
    "skew2": Beta([4, 6], [76, 74]),
    "narrow2": Beta([800, 808], [800, 792]),
    "bern2": Bernoulli([0.5, 0.6]),
    "bern4": Bernoulli([0.35, 0.5, 0.7, 0.55]),
}


def latencies(ends: tuple[float, float]) -> Sampled:
    """Two servers of 150 and 140 ms on average, standard deviation 10 ms, less being
    better, with this range of outcomes in the protocol.
    """
    shares = (np.arange(2000) + 0.5) / 2000
    normal = {f"{mean} ms": NormalDist(mean, 10) for mean in (150, 140)}
    values = {name: [law.inv_cdf(share) for share in shares] for name, law in normal.items()}
    return Sampled.from_outcomes(values, range=ends, direction="min")


VALUES = [0, 0.02, 0.021, 0.1, 0.25, 0.476, 0.5, 0.502, 0.504, 0.524, 0.75, 1]


def law(*chances: tuple[float, float]) -> list[float]:
    """The chances of `VALUES`, from pairs of a value and its chance."""
    given = dict(chances)
    return [given.get(value, 0.0) for value in VALUES]


MISLEADING: dict[str, Instance] = {
    "sd 0.05, 0.501 v 0.5": beta_of((0.501, 0.5), 0.05),
    "0.5 with 5 % ones v always 0.524": Discrete(
        VALUES, [law((0.5, 0.95), (1, 0.05)), law((0.524, 1))]
    ),
    "0.5 with 1 % ones v always 0.504": Discrete(
        VALUES, [law((0.5, 0.99), (1, 0.01)), law((0.504, 1))]
    ),
    "always 0.476 v 0.5 with 5 % zeros": Discrete(
        VALUES, [law((0.476, 1)), law((0.5, 0.95), (0, 0.05))]
    ),
    "yes with 0.502 v always 0.5": Discrete(VALUES, [law((0, 0.498), (1, 0.502)), law((0.5, 1))]),
    "always 0.502 v yes with 0.5": Discrete(VALUES, [law((0.502, 1)), law((0, 0.5), (1, 0.5))]),
    "five values, 0.0015 apart": Discrete(
        VALUES,
        [
            law((0, 0.05), (0.25, 0.197), (0.5, 0.5), (0.75, 0.203), (1, 0.05)),
            law((0, 0.05), (0.25, 0.2), (0.5, 0.5), (0.75, 0.2), (1, 0.05)),
        ],
    ),
    "0.02 with 0.2 % ones v always 0.021": Discrete(
        VALUES, [law((0.02, 0.998), (1, 0.002)), law((0.021, 1))]
    ),
}
"""The first arm is best, by a little, and looks worse most of the time."""
DELTAS = (0.1, 0.2)


def errors(runs: int) -> Iterator[dict[str, Any]]:
    """How often runs on misleading arms stop with the wrong one, before a cap."""
    for name, instance in MISLEADING.items():
        for epsilon in (0.2, 1.0, 5.0, None):
            for delta in DELTAS:
                trust = "none" if epsilon is None else "global"
                strategy = bet_se(delta, epsilon, trust, outcomes="numbers")
                cap = 100_000 if epsilon == 0.2 else 20_000
                found = simulate(instance, strategy, runs, 1, cap)
                yield {
                    "arms": name,
                    "epsilon": epsilon,
                    "delta": delta,
                    "wrong": int(found.errors),
                    "stopped": int(found.stopped.sum()),
                }


def settings() -> Iterator[tuple[dict[str, Any], Instance, float | None, str]]:
    """Every cell with its arms, its ε and who is trusted."""
    for name, instance in INSTANCES.items():
        for epsilon in EPSILONS:
            trust = "none" if epsilon is None else "global"
            yield {"part": "cells", "instance": name}, instance, epsilon, trust
        for level in LOCAL_EPSILONS:
            yield {"part": "local", "instance": name}, instance, level, "local"
    for ends in RANGES:
        for level in RANGE_EPSILONS:
            yield {"part": "ranges", "range": ends}, latencies(ends), level, "global"
    for spread in SPREADS:
        for epsilon in SPREAD_EPSILONS:
            trust = "none" if epsilon is None else "global"
            arms = beta_of((0.5, 0.55), spread)
            yield {"part": "spreads", "sd": spread}, arms, epsilon, trust


def measured(
    instance: Instance, epsilon: float | None, trust: str, outcomes: str, runs: int
) -> dict[str, Any]:
    """One way in one cell, simulated."""
    strategy = bet_se(DELTA, epsilon, trust, outcomes=outcomes)
    return figures(simulate(instance, strategy, runs, 1))


def measure(runs: int) -> dict[str, Any]:
    """Both ways in every cell."""
    cells = []
    for cell, instance, epsilon, trust in settings():
        floor = theory.floor_bound(instance, DELTA, epsilon, trust)
        entry = {**cell, "epsilon": epsilon, "floor": float(f"{floor:.4g}")}
        for way in WAYS:
            entry[way] = measured(instance, epsilon, trust, way, runs)
        cells.append(entry)
        print(entry, file=sys.stderr, flush=True)
    return {"delta": DELTA, "runs": runs, "errors": list(errors(2 * runs)), "cells": cells}


# --- tables ---------------------------------------------------------------------------


def cells_of(data: dict[str, Any], part: str, **wanted: Any) -> list[dict[str, Any]]:
    """The cells of a part that have these values."""
    cells = [cell for cell in data["cells"] if cell["part"] == part]
    return [cell for cell in cells if all(cell[key] == wanted[key] for key in wanted)]


def gain(cell: dict[str, Any]) -> float:
    """People with bits for each with numbers."""
    return float(cell["yes-no"]["mean"] / cell["numbers"]["mean"])


TABLE_EPSILONS = (0.1, 1.0, None)


def make_table(data: dict[str, Any]) -> list[str]:
    """Return the table of the page: participants with numbers, and how many times as many
    bits take, for each instance and ε.
    """
    cells = [cell for cell in cells_of(data, "cells") if cell["epsilon"] in TABLE_EPSILONS]
    epsilons = list(dict.fromkeys(cell["epsilon"] for cell in cells))
    heads = ["no privacy" if level is None else f"ε = {level:g}" for level in epsilons]
    lines = [f"| arms | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name in dict.fromkeys(cell["instance"] for cell in cells):
        row = [cell for cell in cells if cell["instance"] == name]
        means = [f"{cell['numbers']['mean']:,.0f}".replace(",", " ") for cell in row]
        gains = [f"{gain(cell):.2f}" for cell in row]
        shown = [f"{mean} ({ratio})" for mean, ratio in zip(means, gains, strict=True)]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return lines


def find_worst_error(data: dict[str, Any], delta: float) -> float:
    """Return the largest share of wrong runs at this δ, over misleading arms and ε."""
    rows = [row for row in data["errors"] if row["delta"] == delta]
    return float(max(row["wrong"] for row in rows) / (2 * data["runs"]))


def show(data: dict[str, Any]) -> None:
    """The tables of the page, and what stands in its sentences."""
    print("", *make_table(data), sep="\n")
    for part in ("cells", "local", "ranges", "spreads"):
        cells = cells_of(data, part)
        errors = sum(cell["numbers"]["errors"] for cell in cells)
        unstopped = sum(cell["numbers"]["unstopped"] for cell in cells)
        print(f"{part}: {errors} wrong, {unstopped} unstopped of {data['runs'] * len(cells)} runs")
    print("worst against a prototype:", *sorted(against(data), reverse=True)[:5])


def against(data: dict[str, Any]) -> list[tuple[float, str, float | None]]:
    """People for each one that the better prototype took, cell by cell."""
    found = []
    for name, goals in TARGETS.items():
        for epsilon, goal in zip(EPSILONS, goals, strict=True):
            (cell,) = cells_of(data, "cells", instance=name, epsilon=epsilon)
            found.append((cell["numbers"]["mean"] / goal, name, epsilon))
    return found


# --- the picture ----------------------------------------------------------------------


def draw(data: dict[str, Any], picture: Path = PICTURE) -> None:
    """People against the standard deviation of outcomes, both ways, for three ε."""
    picture.write_bytes(charts.render(_both_ways(data), picture.suffix[1:]))


@styled
def _both_ways(data: dict[str, Any]) -> "Figure":
    figure = make_figure(3.6)
    axes = figure.add_subplot()
    ends = list[End]()
    for place, epsilon in enumerate(SPREAD_EPSILONS):
        look = choose_look(place)
        name = "no privacy" if epsilon is None else f"ε = {epsilon:g}"
        cells = cells_of(data, "spreads", epsilon=epsilon)
        for way, words, line, width in LOOKS:
            means = [cell[way]["mean"] for cell in cells]
            drawn: Any = {"color": look.color, "marker": look.marker, "ms": 4, "ls": line}
            axes.plot(SPREADS, means, lw=width, **drawn)
            ends.append(End(label(f"{name}, {words}"), means[-1], look.color))
    axes.set(xscale="log", yscale="log", ylabel="people needed, logarithmic")
    axes.set_xlabel("standard deviation of the outcomes,\nlogarithmic")
    axes.set_xticks(SPREADS, [f"{spread:g}" for spread in SPREADS])
    axes.set_yticks([300, 1000, 3000, 10000], ["300", "1k", "3k", "10k"])
    axes.minorticks_off()
    open_frame(axes)
    label_ends(axes, ends, True)
    return figure


def main() -> None:
    """Measure, print and draw."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    if runs:
        data = measure(runs)
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in data.pop("cells"))
        DATA.write_text(f'{json.dumps(data)[:-1]}, "cells": [\n{lines}\n]}}\n')
    data = json.loads(DATA.read_text())
    show(data)
    draw(data)


if __name__ == "__main__":
    main()
