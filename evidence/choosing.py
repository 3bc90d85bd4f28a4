"""The figures of the docs page "Choosing a strategy": python -m evidence.choosing
[runs]

Measures into choosing.json beside this file, then prints the page's tables and draws
its picture. With 0 runs it only prints and draws what was measured before; with a name
after the runs (`1000 bet-se`) it measures the strategies that begin so, the others were
measured before.
"""

import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet import benchmarks, bounds
from discreet.instances import Bernoulli
from discreet.reports import charts
from discreet.reports.charts.style import GREY, TYPE
from discreet.simulation.engine import simulate
from discreet.strategies.presets import (
    adap_tt,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    ttucb,
    ttucb_batched,
)
from discreet.strategies.strategy import Strategy

HERE = Path(__file__).parent
DATA, PICTURE = HERE / "choosing.json", HERE.parent / "docs" / "_static" / "choosing.svg"
EPSILONS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 1000.0)
LOCAL_EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0)
DELTA = 0.01
NAMES = tuple(f"mu{i}" for i in range(1, 7))
CAP = 10**11
LOCAL_BUDGET = 2e8
"""Simulated samples a cell of ctb-tt should cost, but for two runs at least: it is
simulated one sample at a time.
"""


def row(
    instance: Bernoulli, strategy: Strategy, runs: int, cap: int | None = None
) -> dict[str, Any]:
    """What the table needs of one simulation; the median counts unstopped runs as
    longer than all others.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = simulate(instance, strategy, runs, 1, cap)
    found = results.summary()
    keep = {key: found[key] for key in ("runs", "unstopped", "errors")}
    keep |= {
        key: None if found[key] is None else float(f"{found[key]:.6g}")
        for key in ("mean", "sem", "rounds_mean")
    }
    samples = np.where(results.stopped, results.samples.astype(float), math.inf)
    median = float(np.median(samples))
    return {**keep, "median": median if median < math.inf else None}


def measure(runs: int, again: str = "", before: Any = None) -> dict[str, Any]:
    """All simulations of the page; with `again`, only those of strategies that begin
    so, the others from `before`.
    """

    def cell_of(key: str, table: str, *simulation: Any) -> dict[str, Any]:
        if key.startswith(again):
            return row(*simulation)
        found: dict[str, Any] = before[table][len(data[table])][key]
        return found

    data: dict[str, Any] = {
        "delta": DELTA,
        "runs": runs,
        "cells": [],
        "none": [],
        "local": [],
        "errors": [],
    }
    some = max(runs * 3 // 10, 10)
    for name in NAMES:
        instance: Bernoulli = getattr(benchmarks, name)
        free = {
            "bet-se": cell_of("bet-se", "none", instance, bet_se(DELTA, trust="none"), runs),
            "ttucb": cell_of("ttucb", "none", instance, ttucb(DELTA), runs),
            "ttucb-batched": cell_of("ttucb-batched", "none", instance, ttucb_batched(DELTA), some),
        }
        data["none"].append(
            {"instance": name, "lower_bound": bounds(instance, [1.0], DELTA).lower_bound, **free}
        )
        for epsilon in EPSILONS:
            cell: dict[str, Any] = {"instance": name, "epsilon": epsilon}
            cell["lower_bound"] = (
                bounds(instance, [epsilon], DELTA).per_epsilon[0].lower_bound_global
            )
            cell["bet-se"] = cell_of("bet-se", "cells", instance, bet_se(DELTA, epsilon), runs)
            cell["dp-se"] = cell_of("dp-se", "cells", instance, dp_se(epsilon, DELTA), runs)
            cell["adap-tt"] = cell_of(
                "adap-tt", "cells", instance, adap_tt(epsilon, DELTA), some, CAP
            )
            cell["adap-tt-star"] = cell_of(
                "adap-tt-star", "cells", instance, adap_tt_star(epsilon, DELTA), some, CAP
            )
            data["cells"].append(cell)
            print(name, epsilon, file=sys.stderr, flush=True)
        for epsilon in LOCAL_EPSILONS:
            expected = free["ttucb"]["mean"] / math.tanh(epsilon / 2) ** 2
            count = max(int(min(some, LOCAL_BUDGET / expected)), 2)
            cell = {"instance": name, "epsilon": epsilon}
            cell["lower_bound"] = (
                bounds(instance, [epsilon], DELTA).per_epsilon[0].lower_bound_local_both
            )
            cell["bet-se"] = cell_of(
                "bet-se", "local", instance, bet_se(DELTA, epsilon, "local"), some
            )
            cell["ctb-tt"] = cell_of("ctb-tt", "local", instance, ctb_tt(epsilon, DELTA), count)
            data["local"].append(cell)
            print(name, "local", epsilon, file=sys.stderr, flush=True)
    for means in ((0.52, 0.5), (0.6, 0.5, 0.5), (0.55, *(0.5,) * 19)):
        for epsilon in (0.01, 0.1, 1.0, 10.0):
            found = row(Bernoulli(means), bet_se(0.1, epsilon), runs)
            data["errors"].append(
                {"arms": len(means), "means": means[:3], "epsilon": epsilon, **found}
            )
    return data


def listed(value: Any) -> str:
    """JSON with one entry of a list a line."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(entry) for entry in value) + "\n]"


# --- tables ---------------------------------------------------------------------------


def number(value: float | None) -> str:
    """Three figures: 1234567 -> 1.23M."""
    if value is None:
        return "none"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def mean_of(found: dict[str, Any]) -> str:
    """Mean ± standard error, the same number of digits in both."""
    mean, sem = found["mean"], found["sem"]
    for unit, size in (("M", 1e6), ("k", 1e3), ("", 1.0)):
        if mean >= 0.9995 * size:
            digits = min(2, max(0, 1 - math.floor(math.log10(sem / size)))) if size > 1 else 0
            return f"{mean / size:.{digits}f}{unit} ± {sem / size:.{digits}f}{unit}"
    return f"{mean:.3g} ± {sem:.1g}"


def median_of(found: dict[str, Any]) -> str:
    """Median, with the share of unstopped runs."""
    share = found["unstopped"] / found["runs"]
    return number(found["median"]) + (f" ({share:.1%})" if share else "")


def table(heads: list[str], rows: list[list[str]]) -> None:
    """A Markdown table."""
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


def show(data: dict[str, Any]) -> None:
    """The page's tables and sentences."""
    cells = data["cells"]
    heads = [
        "instance",
        "ε",
        "`bet-se`",
        "`dp-se`",
        "`adap-tt-star`",
        "`adap-tt`",
        "bound",
        "wrong",
    ]
    rows = []
    for c in cells:
        line = [
            c["instance"],
            f"{c['epsilon']:g}",
            mean_of(c["bet-se"]),
            number(c["dp-se"]["mean"]),
        ]
        line += [
            median_of(c["adap-tt-star"]),
            median_of(c["adap-tt"]),
        ]
        rows.append([*line, number(c["lower_bound"]), str(c["bet-se"]["errors"])])
    table(heads, rows)
    spans: list[tuple[str, Callable[[dict[str, Any]], float | None]]] = [
        ("bet-se / dp-se", lambda c: c["bet-se"]["mean"] / c["dp-se"]["mean"]),
        (
            "bet-se / adap-tt-star median",
            lambda c: c["bet-se"]["mean"] / (c["adap-tt-star"]["median"] or math.inf),
        ),
        (
            "bet-se / adap-tt median",
            lambda c: c["bet-se"]["mean"] / (c["adap-tt"]["median"] or math.inf),
        ),
        ("bet-se / bound", lambda c: c["bet-se"]["mean"] / c["lower_bound"]),
    ]
    for what, ratio in spans:
        values = [value for c in cells if (value := ratio(c)) is not None]
        print(f"{what}: {min(values):.3f} to {max(values):.3f}, mean {np.mean(values):.3f}")
    for name in ("bet-se", "dp-se", "adap-tt", "adap-tt-star"):
        runs, wrong = (sum(c[name][key] for c in cells) for key in ("runs", "errors"))
        print(
            f"{name}: {wrong} errors, {sum(c[name]['unstopped'] for c in cells)} unstopped of "
            f"{runs}"
        )
    print()
    rows = []
    for c in data["none"]:
        line = [c["instance"], mean_of(c["bet-se"]), mean_of(c["ttucb"]), ratio_of(c, "ttucb")]
        rows.append([*line, mean_of(c["ttucb-batched"]), number(c["lower_bound"])])
    table(["instance", "`bet-se`", "`ttucb`", "ratio", "`ttucb-batched`", "bound"], rows)
    rows = []
    for c in data["local"]:
        other = c["ctb-tt"]
        line = [c["instance"], f"{c['epsilon']:g}", mean_of(c["bet-se"])]
        line += [mean_of(other), str(other["runs"]), ratio_of(c, "ctb-tt")]
        rows.append([*line, number(c["lower_bound"])])
    table(["instance", "ε", "`bet-se`", "`ctb-tt`", "runs of `ctb-tt`", "ratio", "bound"], rows)
    rows = []
    for c in data["errors"]:
        more = ", …" if c["arms"] > len(c["means"]) else ""
        means = ", ".join(f"{mean:g}" for mean in c["means"]) + more
        rows.append(
            [
                f"({means})",
                str(c["arms"]),
                f"{c['epsilon']:g}",
                f"{c['errors']} of {c['runs']}",
                mean_of(c),
            ]
        )
    table(["means", "K", "ε", "wrong", "samples"], rows)


def ratio_of(cell: dict[str, Any], other: str) -> str:
    return f"{cell['bet-se']['mean'] / cell[other]['mean']:.2f}"


# --- the picture ----------------------------------------------------------------------


def draw(data: dict[str, Any], name: str = "mu2", picture: Path = PICTURE) -> None:
    """Samples against ε for all strategies on one instance: medians of those whose runs
    may not stop, means of the others.
    """
    cells = [c for c in data["cells"] if c["instance"] == name]
    free = next(c for c in data["none"] if c["instance"] == name)
    x = tuple(c["epsilon"] for c in cells)
    lines: list[tuple[str, str, list[float]]] = [
        ("adap-tt", "AdaP-TT", [c["adap-tt"]["median"] or math.nan for c in cells]),
        ("adap-tt-star", "AdaP-TT*", [c["adap-tt-star"]["median"] or math.nan for c in cells]),
        ("dp-se", "DP-SE", [c["dp-se"]["mean"] for c in cells]),
        ("ttucb", "TTUCB (no privacy)", [free["ttucb"]["mean"]] * len(x)),
        ("bet-se", "bet-se", [c["bet-se"]["mean"] for c in cells]),
    ]
    bare = (math.nan,) * len(x), (math.nan,) * len(x), (0.0,) * len(x)
    curves = tuple(charts.EpsilonCurve(key, words, x, tuple(y), *bare) for key, words, y in lines)
    bound = tuple((c["epsilon"], c["lower_bound"]) for c in cells)
    shown = charts.EpsilonData("", "mean or median", curves, bound, None)
    figure = charts.draw_samples_by_epsilon(shown, limits=(3e3, 1e8))
    figure.axes[0].text(1.3e-3, 3.7e3, "impossible", color=GREY, fontsize=TYPE)
    picture.write_bytes(charts.render(figure, picture.suffix[1:]))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    again = sys.argv[2] if len(sys.argv) > 2 else ""
    if runs:
        before = json.loads(DATA.read_text()) if again else None
        found = measure(runs, again, before)
        lines = [f"{json.dumps(key)}: {listed(value)}" for key, value in found.items()]
        DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    data = json.loads(DATA.read_text())
    show(data)
    draw(data)


if __name__ == "__main__":
    main()
