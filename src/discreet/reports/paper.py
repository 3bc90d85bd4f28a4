"""The paper's study as a report: what agrees with the paper, every picture, and how it
was made.

`reproduce(folder)` runs the study and writes the report; started again it goes on where
it was.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.files import write_file
from discreet.instances import benchmarks
from discreet.reports import charts
from discreet.reports.charts.lines import Level, Line, LineChart, draw_lines
from discreet.reports.document import (
    Document,
    Figure,
    FigureRow,
    Heading,
    List,
    Paragraph,
    Part,
    Section,
    Table,
    Verdict,
    Verdicts,
)
from discreet.reports.html import render
from discreet.studies.findings import Finding, judge_paper
from discreet.studies.paper import (
    DELTA,
    LEAST_LOCAL,
    SEED,
    THRESHOLDS,
    PaperRows,
    Say,
    Scope,
    TableRow,
    find_switch,
    make_scope,
    run_paper,
)
from discreet.studies.questions import (
    EPSILON,
    MeasuredCell,
    QuestionScope,
    compute_lower_constant,
    compute_rounds_limit,
    compute_upper_constant,
    judge_question,
    make_question_scope,
    run_question,
    scale_by_log_delta,
)
from discreet.studies.run import OnStep
from discreet.trust import TRUSTS
from discreet.version import __version__
from discreet.wording import describe_trust, format_count, format_short, format_strategy_name

if TYPE_CHECKING:
    import polars as pl


TITLE = "Differentially private best-arm identification: the paper's study, repeated"
WORDS = {
    "empirical": "empirical thresholds (the published experiments'; no guarantee)",
    "printed": "printed thresholds (the paper's formulas)",
    "proved": "proved thresholds (the smallest with a proof)",
}
TRUSTED = {name: describe_trust(name).removeprefix("a ") for name in ("global", "local")}
SCALES = ("log-log", "log-linear")


@dataclass(frozen=True)
class Reproduction:
    """What a study came to, and where it is."""

    folder: Path
    scope: Scope
    table: "pl.DataFrame"
    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {
            "out": str(self.folder),
            "report": str(self.folder / "report.html"),
            "table": str(self.folder / "table.parquet"),
            "figures": list(self.files),
            "quick": self.scope.quick,
            "runs": self.scope.runs,
            "instances": list(self.scope.instances),
            "epsilons": {trust: list(levels) for trust, levels in self.scope.levels.items()},
            "delta": DELTA,
            "seed": SEED,
            "cells": len(self.table),
            "findings": [asdict(finding) for finding in self.findings],
            "seconds": self.seconds,
            "version": __version__,
        }


def reproduce(
    folder: str | Path,
    runs: int | None = None,
    trust: str = "both",
    quick: bool = False,
    all_local: bool = False,
    progress: OnStep | None = None,
    say: Say | None = None,
    scope: Scope | None = None,
) -> Reproduction:
    """Make the paper's study in a folder: report.html, table.parquet, every picture as
    PNG, SVG and PDF.

    `runs` are 1000 (quick: 100) per cell. Local ε below 0.1 take hours and are left
    out unless `all_local`. Started again in the same folder it goes on where it was,
    and other parts or more runs are added. `progress(step)` is called as runs are done,
    `say(words)` when there is something to tell.
    """
    charts.require_matplotlib()
    chosen = scope or make_scope(runs, trust, quick, all_local)
    started = time.perf_counter()
    target = Path(folder)
    table = run_paper(target, chosen, progress, say)
    if say is not None:
        say("drawing the pictures")
    rows = table.to_dicts()
    findings = judge_paper(rows, chosen)
    files = write_report(target, rows, chosen, findings)
    return Reproduction(target, chosen, table, findings, files, time.perf_counter() - started)


def write_report(
    folder: Path, rows: Sequence[TableRow], scope: Scope, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Draw every picture (PNG, SVG and PDF under figures/), write report.html; the
    pictures' files.
    """
    files = list[str]()
    make_figures(folder)
    save = partial(write_figure, folder, files)
    write_file(folder / "report.html", render(build_reproduction(rows, scope, findings, save)))
    return tuple(files)


Save = Callable[[str, Any], Callable[[], bytes]]
"""Writes a figure under a name, and returns what reads its SVG."""


def build_reproduction(
    rows: Sequence[TableRow], scope: Scope, findings: Sequence[Finding], save: Save
) -> Document:
    """Build the document of the paper's study."""
    table = PaperRows(rows, scope)
    sections = [_summary(scope, findings)]
    for trust in scope.levels:
        for instance in scope.instances:
            sections.append(_instance_section(table, instance, trust, save))
    kind = "A quick look, not the study: " if scope.quick else ""
    size = f"{format_count(len(rows), 'cell')} of {format_count(scope.runs, 'run')}"
    lead = f"{kind}{size}, δ = {DELTA:g}, seed {SEED}."
    return Document(TITLE, [*sections, _method(scope)], lead)


def make_figures(folder: Path) -> None:
    """The folder of the pictures."""
    try:
        (folder / "figures").mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot use {folder / 'figures'}: {error.strerror or error}"
        ) from None


def write_figure(folder: Path, files: list[str], name: str, figure: Any) -> Callable[[], bytes]:
    """Write a chart as SVG, PNG and PDF, and note the files. Return what reads the SVG."""
    for kind in ("svg", "png", "pdf"):
        write_file(folder / f"{name}.{kind}", charts.render(figure, kind))
        files.append(f"{name}.{kind}")
    return (folder / f"{name}.svg").read_bytes


def _summary(scope: Scope, findings: Sequence[Finding]) -> Section:
    parts: list[Part] = []
    if scope.quick:
        parts.append(
            Paragraph(
                f"This is the quick version: {', '.join(scope.instances)} only, few ε, "
                f"{format_count(scope.runs, 'run')} in a cell. It is good for a first look; run "
                "the whole study before you quote a number."
            )
        )
    titles = {"global": "A trusted collector (global DP)", "local": "Nobody trusted (local DP)"}
    for trust, words in titles.items():
        mine = [finding for finding in findings if finding.trust == trust]
        if mine:
            parts.append(Heading(words))
            parts.append(Verdicts([Verdict(f.verdict, f.claim, f.evidence) for f in mine]))
    parts.append(
        Paragraph(
            "Statistics are over the runs that stopped, which flatters a strategy that leaves "
            "runs unstopped; verdicts are based on means, as in the paper, except where medians "
            "are named: a few runs that almost never stop can dominate a mean. Every sentence "
            "is computed from the table."
        )
    )
    return Section("What agrees with the paper, and what does not", parts)


class _View(NamedTuple):
    """What is shown of one instance under one kind of threshold."""

    instance: str
    trust: str
    threshold: str

    @property
    def same(self) -> bool:
        """Whether printed and proved thresholds are the same here."""
        return TRUSTS[self.trust].randomised and self.threshold == "proved"

    @property
    def title(self) -> str:
        words = "printed = proved" if self.same else self.threshold
        return f"{self.instance}, {self.trust} privacy, {words} thresholds"

    @property
    def heading(self) -> str:
        words = WORDS[self.threshold]
        if self.same:
            words = "printed and proved thresholds (the same here)"
        return words[0].upper() + words[1:]


def _instance_section(table: PaperRows, instance: str, trust: str, save: Save) -> Section:
    arms = benchmarks[instance]
    bound = charts.make_bound_curve(arms, table.scope.levels[trust], DELTA, trust)
    drawn = {}
    for threshold in THRESHOLDS[trust]:
        view = _View(instance, trust, threshold)
        rows = table.shown(*view)
        drawn[view] = charts.make_epsilon_data(rows, arms, trust, title=view.title, bound=bound)
    limits = charts.find_sample_limits(drawn.values())
    means = ", ".join(f"{mean:g}" for mean in arms.means)
    switch = f"{find_switch(instance, trust):.3g}"
    lead = f"Means {means}. Switch of regimes, by the formula, at ε = {switch}."
    parts: list[Part] = [Paragraph(lead)]
    for view, data in drawn.items():
        pictures = [_picture(view, data, scale, limits, save) for scale in SCALES]
        parts += [Heading(view.heading), FigureRow(pictures), _make_paper_table(table, view)]
    return Section(f"{instance}, {TRUSTED[trust]}", parts)


def _picture(
    view: _View,
    data: "charts.EpsilonData",
    scale: str,
    limits: tuple[float, float],
    save: Save,
) -> Figure:
    figure = charts.draw_samples_by_epsilon(data, scale, limits if scale == "log-log" else None)
    name = f"figures/{view.instance}-{view.trust}-{view.threshold}-{scale}"
    svg = save(name, figure)
    caption = f"{scale}. Band: one standard deviation, where it is less than the mean. "
    caption += "Hollow marks: some runs had not stopped."
    if scale == "log-linear":
        caption += " Scaled to the right part of the picture; lines leave it at the top."
    return Figure(svg, f"{data.title}, {scale}: the numbers are in the table below", caption)


def _make_paper_table(table: PaperRows, view: _View) -> Table:
    rows = table.shown(*view)
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    lines = []
    for level in sorted(table.scope.levels[view.trust]):
        here = [row for row in rows if row["epsilon"] in (level, None)]
        cells = [next((row for row in here if row["strategy"] == name), None) for name in names]
        bound = max(row["lower_bound"] for row in cells if row)
        lines.append([f"{level:g}", *(_cell(row) for row in cells), format_short(bound)])
    caption = (
        "Samples: mean (median) over the runs that stopped; then, where it is not zero, the "
        "share of unstopped runs (u) and of wrong answers (w). k stands for thousand, M for "
        "million, G for billion."
    )
    return Table(
        ["ε", *(format_strategy_name(name) for name in names), "lower bound"], lines, caption
    )


def _cell(row: TableRow | None) -> str:
    if row is None:
        return "–"
    words = "none stopped"
    if row["mean"] is not None:
        words = f"{format_short(row['mean'])} ({format_short(row['median'])})"
    for key, mark in (("unstopped", "u"), ("errors", "w")):
        if row[key]:
            words += f" {mark} {row[key] / row['runs']:.1%}"
    return words


METHOD = (
    "Thresholds: empirical, what the authors' experiments used, without a proof; printed, the "
    "paper's formulas to the letter; proved, the smallest with a proof in our documentation. "
    "TTUCB, CTB-TT and AdaP-TT have the same threshold printed and proved; DP-SE and bet-se "
    "have one stopping rule each and are in every picture.",
    "A run that reaches 10^12 samples counts as unstopped and enters no mean or median.",
    "The lower bound is T·kl(1−δ, δ) with our tightest characteristic time: no δ-correct private "
    "strategy needs fewer on average.",
    "DP-SE is that of Sajed and Sheffet; the authors' code, which divides by the wrong count, is "
    "drawn beside it in the pictures with empirical thresholds.",
    "AdaP-TT, AdaP-TT* and TTUCB follow the paper's pseudocode, also with empirical thresholds. "
    "The authors' code differs in more than thresholds. Measured for its AdaP-TT, 100 runs in "
    "each of the 102 cells, below its own DP-SE: by the pseudocode in 7 cells; with its bonus, "
    "where log n stands for the arm's own phase, in 40, as no arm stays frozen after a bad first "
    "mean; with its coin flips and stopping rule in 39; not counting unfinished phases, about a "
    "fifth of the samples, in 72. It is below in all 102 only if the stopping rule's cost has σ = "
    "1/2 as in the paper instead of that code's σ = 1, and then up to 39 of 100 answers in a cell "
    "are wrong.",
    "The empirical threshold of AdaP-TT* is the asymptotic form the paper displays: σ = 1/2, "
    "where those of AdaP-TT and TTUCB have σ = 1 (a factor of four), and no logarithms of counts "
    "(about a factor of two). At ε = 1000, where both have the same transport cost, that makes it "
    "nine to eleven times quicker than AdaP-TT.",
    "table.parquet has every number, figures/ every picture as PNG, SVG and PDF, runs/ what an "
    "interrupted study continues from.",
)


def _method(scope: Scope) -> Section:
    instances = ", ".join(scope.instances)
    items = [f"Instances: the paper's six Bernoulli instances mu1 … mu6 (here: {instances})."]
    for trust, levels in scope.levels.items():
        items.append(f"ε, {trust}: {', '.join(f'{level:g}' for level in levels)}.")
    items += METHOD
    if scope.left_out:
        missing = ", ".join(f"{level:g}" for level in scope.left_out)
        items.append(
            f"Left out: local ε = {missing} (below {LEAST_LOCAL:g}), which takes hours; "
            "--all-local simulates them."
        )
    return Section("How this was made", [List(items)])


Cells = Sequence[MeasuredCell]


@dataclass(frozen=True)
class StudyResult:
    """What a study came to, and where it is."""

    folder: Path
    asked: QuestionScope
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
) -> StudyResult:
    """Make the study of `beta`, `adaptivity` or `delta` in a folder: report.html,
    table.parquet, every picture as PNG, SVG and PDF.

    Started again in the same folder it goes on where it was.
    """
    charts.require_matplotlib()
    asked = make_question_scope(name, runs, quick)
    started, target = time.perf_counter(), Path(folder)
    table, cells = run_question(target, asked, progress, say)
    if say is not None:
        say("drawing the pictures")
    findings = judge_question(name, cells)
    files = write_answer(target, asked, cells, findings)
    return StudyResult(target, asked, table, findings, files, time.perf_counter() - started)


def write_answer(
    folder: Path, asked: QuestionScope, cells: Cells, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Draw every picture (PNG, SVG and PDF under figures/), write report.html; the
    pictures' files.
    """
    files = list[str]()
    make_figures(folder)
    save = partial(write_figure, folder, files)
    write_file(folder / "report.html", render(build_study_report(asked, cells, findings, save)))
    return tuple(files)


def build_study_report(
    asked: QuestionScope, cells: Cells, findings: Sequence[Finding], save: Save
) -> Document:
    """Build the document of a study of β, of rounds or of δ."""
    name = asked.question.name
    said: list[Part] = [Verdicts([Verdict(f.verdict, f.claim, f.evidence) for f in findings])]
    said.append(Paragraph("Every sentence is computed from the table."))
    sections = [Section("What the results say", said)]
    for instance in asked.instances:
        mine = [cell for cell in cells if cell.instance == instance]
        pictures = []
        for number, data in enumerate(PICTURES[name](instance, mine)):
            file = f"figures/{instance}-{name}-{number + 1}"
            svg = save(file, draw_lines(data))
            words = f"{data.title}: the numbers are in the table below"
            pictures.append(Figure(svg, words, "Hollow marks: some runs had not stopped."))
        means = ", ".join(f"{mean:g}" for mean in mine[0].arms.means)
        parts: list[Part] = [
            Paragraph(f"Means {means}."),
            FigureRow(pictures),
            _make_question_table(name, mine),
        ]
        sections.append(Section(instance, parts))
    kind = "A quick look, not the study: " if asked.quick else ""
    size = f"{format_count(len(cells), 'cell')} of {format_count(asked.runs, 'run')}"
    lead = f"{kind}{size}, seed {SEED}. {LEADS[name]}"
    return Document(asked.question.title, sections, lead)


LEADS = {
    "beta": f"δ = {DELTA:g}; ε = {EPSILON:g} where there is privacy; proved thresholds.",
    "adaptivity": f"δ = {DELTA:g}; proved thresholds. A round is all that is released together.",
    "delta": f"ε = {EPSILON:g} where there is privacy; proved thresholds. Constants are those of "
    "the theorems as δ → 0, for distinct means.",
}


# --- the pictures ---------------------------------------------------------------------


def _line(
    cells: Cells,
    x: Callable[[MeasuredCell], float],
    y: Callable[[MeasuredCell], float],
    **look: Any,
) -> Line:
    """A line through some cells, from the left to the right."""
    ordered = sorted(cells, key=x)
    name = ordered[0].strategy.name
    return Line(
        name,
        look.pop("label", format_strategy_name(name)),
        tuple(x(cell) for cell in ordered),
        tuple(y(cell) for cell in ordered),
        tuple(cell.row["unstopped"] / cell.row["runs"] for cell in ordered),
        **look,
    )


def _number(cell: MeasuredCell, key: str) -> float:
    return math.nan if cell.row[key] is None else float(cell.row[key])


def _names(cells: Cells) -> list[str]:
    return list(dict.fromkeys(cell.strategy.name for cell in cells))


def _share_pictures(instance: str, cells: Cells) -> list[LineChart]:
    """Samples against β, IDS as a level, a picture for each strategy."""
    found = []
    for name in _names(cells):
        mine = [cell for cell in cells if cell.strategy.name == name]
        fixed = [cell for cell in mine if cell.strategy.beta != "ids"]
        ids = [_number(cell, "mean") for cell in mine if cell.strategy.beta == "ids"]
        line = _line(fixed, lambda cell: float(cell.strategy.beta), lambda c: _number(c, "mean"))
        levels = tuple(Level("IDS", value) for value in ids if math.isfinite(value))
        title = f"{instance}, {format_strategy_name(name)}"
        across = "β, the share of the leader"
        found.append(LineChart(title, across, "participants (samples), mean", (line,), levels))
    return found


def _round_pictures(instance: str, cells: Cells) -> list[LineChart]:
    """Rounds against ε with the bound of AdaP-TT; and unstopped runs of one episode."""
    rounds, bounds = list[Line](), list[Line]()

    def level(cell: MeasuredCell) -> float:
        return float(cell.strategy.epsilon or 0)

    private = [cell for cell in cells if cell.strategy.epsilon is not None]
    by_arm = [cell for cell in private if cell.strategy.episodes == "arm"]
    for name in _names(by_arm):
        mine = [cell for cell in by_arm if cell.strategy.name == name]
        rounds.append(_line(mine, level, lambda cell: _number(cell, "rounds_mean")))
        if name == "adap-tt":
            bounds.append(
                _line(mine, level, compute_rounds_limit, label="bound of AdaP-TT", look=6)
            )
    across = "ε (stronger privacy to the left)"
    found = [LineChart(f"{instance}, rounds", across, "rounds, mean", (*rounds, *bounds), (), True)]
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
    found.append(LineChart(title, across, "runs, %", shares, (), True, False))
    return found


def _delta_pictures(instance: str, cells: Cells) -> list[LineChart]:
    """E[τ]/log(1/δ) against δ between the constants, a picture for each strategy."""
    found = []
    for name in _names(cells):
        mine = [cell for cell in cells if cell.strategy.name == name]
        line = _line(
            mine,
            lambda cell: -math.log10(cell.strategy.delta),
            scale_by_log_delta,
            label="measured",
        )
        levels = [Level("lower constant", compute_lower_constant(mine[0]))]
        if math.isfinite(compute_upper_constant(mine[0])):
            levels.append(Level("upper constant", compute_upper_constant(mine[0])))
        title = f"{instance}, {format_strategy_name(name)}"
        across = "log10(1/δ) (fewer errors to the right)"
        found.append(LineChart(title, across, "mean samples over log(1/δ)", (line,), tuple(levels)))
    return found


PICTURES: dict[str, Callable[[str, Cells], list[LineChart]]] = {
    "beta": _share_pictures,
    "adaptivity": _round_pictures,
    "delta": _delta_pictures,
}


# --- the tables -----------------------------------------------------------------------


def _own_shares(cell: MeasuredCell) -> list[str]:
    return [str(cell.strategy.beta)]


def _own_rounds(cell: MeasuredCell) -> list[str]:
    level = "–" if cell.strategy.epsilon is None else f"{cell.strategy.epsilon:g}"
    episodes = cell.strategy.episodes if cell.strategy.is_phased else "–"
    return [episodes, level, format_short(compute_rounds_limit(cell))]


def _own_deltas(cell: MeasuredCell) -> list[str]:
    constants = (
        scale_by_log_delta(cell),
        compute_lower_constant(cell),
        compute_upper_constant(cell),
    )
    return [f"{cell.strategy.delta:g}", *map(format_short, constants)]


OWN: dict[str, tuple[list[str], Callable[[MeasuredCell], list[str]]]] = {
    "beta": (["β"], _own_shares),
    "adaptivity": (["episodes", "ε", "bound"], _own_rounds),
    "delta": (["δ", "over log(1/δ)", "lower", "upper"], _own_deltas),
}
"""The columns that only one study has."""


def _make_question_table(name: str, cells: Cells) -> Table:
    """A row for each cell: what it is, and what it came to."""
    heads, own = OWN[name]
    rows = [
        [
            format_strategy_name(cell.strategy.name),
            *own(cell),
            *(format_short(_number(cell, key)) for key in ("mean", "median", "rounds_mean")),
            f"{cell.row['unstopped'] / cell.row['runs']:.1%}",
            str(cell.row["errors"]),
        ]
        for cell in cells
    ]
    shown = ["strategy", *heads, "mean", "median", "rounds", "unstopped", "wrong"]
    return Table(shown, rows, "Samples and rounds over the runs that stopped.")
