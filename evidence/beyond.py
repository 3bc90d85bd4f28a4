"""Laplace noise for ε, Gaussian noise for (ε, γ) and for ρ: python -m evidence.beyond
[runs [strategy]]

Measures into beyond.json beside this file, one strategy anew or all, then prints the
errors that the section "Gaussian noise" of docs/betting.md names, and draws its picture.
With 0 runs it prints and draws only.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import Strategy, adap_tt, benchmarks, bet_se, simulate
from discreet.reports import charts
from discreet.reports.charts.style import (
    BLACK,
    End,
    choose_look,
    label_ends,
    make_figure,
    open_frame,
    styled,
)
from evidence.bet_se_participants import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
DATA, PICTURE = HERE / "beyond.json", HERE.parent / "docs" / "_static" / "beyond.svg"
DELTA, GAMMA = 0.01, 1e-6
EPSILONS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 100.0)
PHASED_EPSILONS = (0.1, 1.0, 10.0)
DELTAS = (1e-1, 1e-2, 1e-4, 1e-8, 1e-16, 1e-32, 1e-64)
DELTA_EPSILON, DELTA_INSTANCES = 0.05, ("mu1", "mu3", "mu5")
WAYS: dict[str, Callable[[float], dict[str, float | None]]] = {
    "pure": lambda epsilon: {"epsilon": epsilon},
    "gamma": lambda epsilon: {"epsilon": epsilon, "gamma": GAMMA},
    "rho": lambda epsilon: {"epsilon": None, "rho": epsilon**2 / 2},
}
"""Laplace noise; Gaussian noise with the same ε and a γ; Gaussian noise with the ρ that
every ε-private release has.
"""
LOOKS = {"gamma": (2, "same ε,\nγ = 10⁻⁶"), "rho": (1, "ρ = ε²/2")}
"""How each way is drawn, and called."""
UP = "people, for each one\nwith Laplace noise"
PRESETS: dict[str, Callable[..., Strategy]] = {"bet-se": bet_se, "adap-tt": adap_tt}


def settings() -> Iterator[dict[str, Any]]:
    """Every cell."""
    for name in benchmarks:
        for epsilon in EPSILONS:
            cell = {"part": "epsilons", "strategy": "bet-se", "instance": name}
            yield {**cell, "epsilon": epsilon, "delta": DELTA}
        for epsilon in PHASED_EPSILONS:
            cell = {"part": "epsilons", "strategy": "adap-tt", "instance": name}
            yield {**cell, "epsilon": epsilon, "delta": DELTA}
    for name in DELTA_INSTANCES:
        for delta in DELTAS:
            cell = {"part": "deltas", "strategy": "bet-se", "instance": name}
            yield {**cell, "epsilon": DELTA_EPSILON, "delta": delta}


def measure(runs: int, only: str, before: list[dict[str, Any]]) -> dict[str, Any]:
    """Every way in every cell; with `only` one strategy, beside what was measured of
    the other `before`.
    """
    cells = [cell for cell in before if only and cell["strategy"] != only]
    for cell in settings():
        if only not in ("", cell["strategy"]):
            continue
        for way, levels in WAYS.items():
            strategy = PRESETS[cell["strategy"]](delta=cell["delta"], **levels(cell["epsilon"]))
            found = simulate(benchmarks[cell["instance"]], strategy, runs, 1)
            cell[way] = {**figures(found), "median": float(np.median(found.samples))}
        cells.append(cell)
        print(cell, file=sys.stderr, flush=True)
    return {"gamma": GAMMA, "runs": runs, "cells": cells}


# --- figures --------------------------------------------------------------------------


def cells_of(data: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    """The cells that have these values."""
    return [cell for cell in data["cells"] if all(cell[key] == wanted[key] for key in wanted)]


def ratios(data: dict[str, Any], way: str, **wanted: Any) -> list[float]:
    """People for each one that Laplace noise takes, in each of these cells: by means;
    of adap-tt, of which some runs never stop, by medians.
    """
    found = cells_of(data, **wanted)
    kinds = ["mean" if cell["strategy"] == "bet-se" else "median" for cell in found]
    return [cell[way][kind] / cell["pure"][kind] for cell, kind in zip(found, kinds, strict=True)]


def middle(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def pure_to_phased(data: dict[str, Any]) -> list[float]:
    """People of bet-se with Laplace noise for each of adap-tt with Gaussian noise."""
    found = []
    for cell in cells_of(data, part="epsilons", strategy="adap-tt"):
        where = {key: cell[key] for key in ("part", "instance", "epsilon")}
        (other,) = cells_of(data, strategy="bet-se", **where)
        found += [other["pure"]["mean"] / cell[way]["median"] for way in ("gamma", "rho")]
    return found


def wrong(data: dict[str, Any], strategy: str) -> tuple[int, int, int]:
    """Wrong and unstopped runs with Gaussian noise, and all of them."""
    cells = cells_of(data, strategy=strategy)
    found = [cell[way] for cell in cells for way in ("gamma", "rho")]
    errors, unstopped = (sum(one[key] for one in found) for key in ("errors", "unstopped"))
    return errors, unstopped, data["runs"] * len(found)


def show(data: dict[str, Any]) -> None:
    """Print the wrong and the unstopped runs of each strategy."""
    for strategy in PRESETS:
        print(f"{strategy}, wrong, unstopped, of:", *wrong(data, strategy))


# --- the picture ----------------------------------------------------------------------


def draw(data: dict[str, Any], picture: Path = PICTURE) -> None:
    """People for each one that Laplace noise takes, against ε and against δ."""
    picture.write_bytes(charts.render(_two_panels(data), picture.suffix[1:]))


@styled
def _two_panels(data: dict[str, Any]) -> "Figure":
    figure = make_figure(5.6)
    upper, lower = figure.subplots(2, 1)
    upper.set(xlabel=f"ε, logarithmic (δ = {DELTA:g})", ylabel=UP)
    upper_ends = _draw_ways(upper, data, "epsilons", "epsilon", EPSILONS)
    upper.set_xticks([0.001, 0.01, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"])
    across = f"δ, the error rate, logarithmic (ε = {DELTA_EPSILON:g})"
    lower.set(xlabel=across, ylabel=UP)
    lower_ends = _draw_ways(lower, data, "deltas", "delta", DELTAS)
    lower.invert_xaxis()
    lower.set_xticks([1e-2, 1e-16, 1e-32, 1e-64], ["10⁻²", "10⁻¹⁶", "10⁻³²", "10⁻⁶⁴"])
    for axes, ends in ((upper, upper_ends), (lower, lower_ends)):
        label_ends(axes, ends, True)
    return figure


def _draw_ways(
    axes: "Axes", data: dict[str, Any], part: str, key: str, levels: tuple[float, ...]
) -> list[End]:
    """Both kinds of Gaussian noise, and where their lines end."""
    axes.axhline(1.0, color=BLACK, lw=0.9)
    ends = [End("Laplace noise", 1.0, BLACK)]
    for way, (place, words) in LOOKS.items():
        look = choose_look(place)
        found = [ratios(data, way, part=part, strategy="bet-se", **{key: at}) for at in levels]
        bands = [min(one) for one in found], [max(one) for one in found]
        axes.fill_between(levels, *bands, color=look.color, alpha=0.15, lw=0)
        middles = [middle(one) for one in found]
        axes.plot(levels, middles, color=look.color, marker=look.marker, ms=4.5, lw=1.7)
        ends.append(End(words, middles[-1], look.color))
    axes.set(xscale="log", yscale="log", ylim=(0.2, 4))
    axes.set_yticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
    axes.minorticks_off()
    open_frame(axes)
    return ends


def main() -> None:
    """Measure, print and draw."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    if runs:
        before = json.loads(DATA.read_text())["cells"] if only else []
        data = measure(runs, only, before)
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in data.pop("cells"))
        DATA.write_text(f'{json.dumps(data)[:-1]}, "cells": [\n{lines}\n]}}\n')
    data = json.loads(DATA.read_text())
    show(data)
    draw(data)


if __name__ == "__main__":
    main()
