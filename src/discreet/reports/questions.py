"""The studies of β, of rounds and of δ as reports: findings, pictures, tables."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.files import write
from discreet.reports import charts
from discreet.reports.charts.lines import Level, Line, Lines, draw_lines
from discreet.reports.page import (
    Part,
    Picture,
    Pictures,
    Point,
    Points,
    Section,
    Table,
    Text,
    page,
)
from discreet.reports.paper import make_figures, write_figure
from discreet.studies.answers import answer, lower_constant, rounds_limit, upper_constant
from discreet.studies.paper import DELTA, SEED, Say
from discreet.studies.questions import EPSILON, Asked, Measured, ask, per_log, run_question
from discreet.studies.run import OnStep
from discreet.studies.verdicts import Finding
from discreet.version import __version__
from discreet.words import counted, short, shown_name

if TYPE_CHECKING:
    import polars as pl

Cells = Sequence[Measured]


@dataclass(frozen=True)
class Answer:
    """What a study came to, and where it is."""

    folder: Path
    asked: Asked
    table: "pl.DataFrame"
    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {
            "out": str(self.folder),
            "study": self.asked.question.name,
            "report": str(self.folder / "report.html"),
            "table": str(self.folder / "table.parquet"),
            "figures": list(self.files),
            "quick": self.asked.quick,
            "runs": self.asked.runs,
            "instances": list(self.asked.instances),
            "seed": SEED,
            "cells": len(self.table),
            "findings": [asdict(finding) for finding in self.findings],
            "seconds": self.seconds,
            "version": __version__,
        }


def study(
    folder: str | Path,
    name: str,
    runs: int | None = None,
    quick: bool = False,
    progress: OnStep | None = None,
    say: Say | None = None,
) -> Answer:
    """Make the study of `beta`, `adaptivity` or `delta` in a folder: report.html,
    table.parquet, every picture as PNG, SVG and PDF.

    Started again in the same folder it goes on where it was.
    """
    charts.require_matplotlib()
    asked = ask(name, runs, quick)
    started, target = time.perf_counter(), Path(folder)
    table, cells = run_question(target, asked, progress, say)
    if say is not None:
        say("drawing the pictures")
    findings = answer(name, cells)
    files = write_answer(target, asked, cells, findings)
    return Answer(target, asked, table, findings, files, time.perf_counter() - started)


def write_answer(
    folder: Path, asked: Asked, cells: Cells, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Draw every picture (PNG, SVG and PDF under figures/), write report.html; the
    pictures' files.
    """
    files = list[str]()
    make_figures(folder)
    name = asked.question.name
    said: list[Part] = [Points([Point(f.verdict, f.claim, f.evidence) for f in findings])]
    said.append(Text("Every sentence is computed from the table."))
    sections = [Section("What the results say", said)]
    for instance in asked.instances:
        mine = [cell for cell in cells if cell.instance == instance]
        pictures = []
        for number, data in enumerate(PICTURES[name](instance, mine)):
            file = f"figures/{instance}-{name}-{number + 1}"
            svg = write_figure(draw_lines(data), folder, file, files)
            words = f"{data.title}: the numbers are in the table below"
            pictures.append(Picture(svg, words, "Hollow marks: some runs had not stopped."))
        means = ", ".join(f"{mean:g}" for mean in mine[0].arms.means)
        parts: list[Part] = [Text(f"Means {means}."), Pictures(pictures), _table(name, mine)]
        sections.append(Section(instance, parts))
    kind = "A quick look, not the study: " if asked.quick else ""
    size = f"{counted(len(cells), 'cell')} of {counted(asked.runs, 'run')}"
    lead = f"{kind}{size}, seed {SEED}. {LEADS[name]}"
    write(folder / "report.html", page(asked.question.title, sections, lead))
    return tuple(files)


LEADS = {
    "beta": f"δ = {DELTA:g}; ε = {EPSILON:g} where there is privacy; proved thresholds.",
    "adaptivity": f"δ = {DELTA:g}; proved thresholds. A round is all that is released together.",
    "delta": f"ε = {EPSILON:g} where there is privacy; proved thresholds. Constants are those of "
    "the theorems as δ → 0, for distinct means.",
}


# --- the pictures ---------------------------------------------------------------------


def _line(
    cells: Cells, x: Callable[[Measured], float], y: Callable[[Measured], float], **look: Any
) -> Line:
    """A line through some cells, from the left to the right."""
    ordered = sorted(cells, key=x)
    name = ordered[0].strategy.name
    return Line(
        name,
        look.pop("label", shown_name(name)),
        tuple(x(cell) for cell in ordered),
        tuple(y(cell) for cell in ordered),
        tuple(cell.row["unstopped"] / cell.row["runs"] for cell in ordered),
        **look,
    )


def _number(cell: Measured, key: str) -> float:
    return math.nan if cell.row[key] is None else float(cell.row[key])


def _names(cells: Cells) -> list[str]:
    return list(dict.fromkeys(cell.strategy.name for cell in cells))


def _share_pictures(instance: str, cells: Cells) -> list[Lines]:
    """Samples against β, IDS as a level, a picture for each strategy."""
    found = []
    for name in _names(cells):
        mine = [cell for cell in cells if cell.strategy.name == name]
        fixed = [cell for cell in mine if cell.strategy.beta != "ids"]
        ids = [_number(cell, "mean") for cell in mine if cell.strategy.beta == "ids"]
        line = _line(fixed, lambda cell: float(cell.strategy.beta), lambda c: _number(c, "mean"))
        levels = tuple(Level("IDS", value) for value in ids if math.isfinite(value))
        title = f"{instance}, {shown_name(name)}"
        across = "β, the share of the leader"
        found.append(Lines(title, across, "people (samples), mean", (line,), levels))
    return found


def _round_pictures(instance: str, cells: Cells) -> list[Lines]:
    """Rounds against ε with the bound of AdaP-TT; and unstopped runs of one episode."""
    rounds, bounds = list[Line](), list[Line]()

    def level(cell: Measured) -> float:
        return float(cell.strategy.epsilon or 0)

    private = [cell for cell in cells if cell.strategy.epsilon is not None]
    by_arm = [cell for cell in private if cell.strategy.episodes == "arm"]
    for name in _names(by_arm):
        mine = [cell for cell in by_arm if cell.strategy.name == name]
        rounds.append(_line(mine, level, lambda cell: _number(cell, "rounds_mean")))
        if name == "adap-tt":
            bounds.append(_line(mine, level, rounds_limit, label="bound of AdaP-TT", look=6))
    across = "ε (stronger privacy to the left)"
    found = [Lines(f"{instance}, rounds", across, "rounds, mean", (*rounds, *bounds), (), True)]
    whole = [cell for cell in private if cell.strategy.name == "adap-tt"]
    kinds = dict.fromkeys(cell.strategy.episodes for cell in whole)
    shares = tuple(
        _line(
            [cell for cell in whole if cell.strategy.episodes == kind],
            level,
            lambda cell: 100 * cell.row["unstopped"] / cell.row["runs"],
            label={"arm": "by arm", "global": "global", "global-yielding": "yielding"}[kind],
            look=number,
        )
        for number, kind in enumerate(kinds)
    )
    title = f"{instance}, AdaP-TT by episodes: runs that did not stop"
    found.append(Lines(title, across, "runs, %", shares, (), True, False))
    return found


def _delta_pictures(instance: str, cells: Cells) -> list[Lines]:
    """E[τ]/log(1/δ) against δ between the constants, a picture for each strategy."""
    found = []
    for name in _names(cells):
        mine = [cell for cell in cells if cell.strategy.name == name]
        line = _line(mine, lambda cell: -math.log10(cell.strategy.delta), per_log, label="measured")
        levels = [Level("lower constant", lower_constant(mine[0]))]
        if math.isfinite(upper_constant(mine[0])):
            levels.append(Level("upper constant", upper_constant(mine[0])))
        title = f"{instance}, {shown_name(name)}"
        across = "log10(1/δ) (fewer errors to the right)"
        found.append(Lines(title, across, "mean samples over log(1/δ)", (line,), tuple(levels)))
    return found


PICTURES: dict[str, Callable[[str, Cells], list[Lines]]] = {
    "beta": _share_pictures,
    "adaptivity": _round_pictures,
    "delta": _delta_pictures,
}


# --- the tables -----------------------------------------------------------------------


def _own_shares(cell: Measured) -> list[str]:
    return [str(cell.strategy.beta)]


def _own_rounds(cell: Measured) -> list[str]:
    level = "–" if cell.strategy.epsilon is None else f"{cell.strategy.epsilon:g}"
    episodes = cell.strategy.episodes if cell.strategy.phased else "–"
    return [episodes, level, short(rounds_limit(cell))]


def _own_deltas(cell: Measured) -> list[str]:
    constants = (per_log(cell), lower_constant(cell), upper_constant(cell))
    return [f"{cell.strategy.delta:g}", *map(short, constants)]


OWN: dict[str, tuple[list[str], Callable[[Measured], list[str]]]] = {
    "beta": (["β"], _own_shares),
    "adaptivity": (["episodes", "ε", "bound"], _own_rounds),
    "delta": (["δ", "over log(1/δ)", "lower", "upper"], _own_deltas),
}
"""The columns that only one study has."""


def _table(name: str, cells: Cells) -> Table:
    """A row for each cell: what it is, and what it came to."""
    heads, own = OWN[name]
    rows = [
        [
            shown_name(cell.strategy.name),
            *own(cell),
            *(short(_number(cell, key)) for key in ("mean", "median", "rounds_mean")),
            f"{cell.row['unstopped'] / cell.row['runs']:.1%}",
            str(cell.row["errors"]),
        ]
        for cell in cells
    ]
    shown = ["strategy", *heads, "mean", "median", "rounds", "unstopped", "wrong"]
    return Table(shown, rows, "Samples and rounds over the runs that stopped.")
