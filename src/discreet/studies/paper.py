"""The paper's study: six instances, its ε, its strategies under three thresholds, and
bet-se beside them.

`run_paper(folder, scope)` runs it as studies of `run_study` (no privacy, global,
local), so that an interrupted one goes on where it was, to one table. What it says
about the paper is in `findings`, the report in `discreet.reports`.
"""

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet import theory
from discreet._types import Ints
from discreet.errors import InvalidInputError
from discreet.files import write_file
from discreet.instances import Bernoulli, benchmarks
from discreet.results import Results
from discreet.simulation import engine
from discreet.strategies import presets, strategy
from discreet.studies.folder import check_folder
from discreet.studies.run import OnStep, StudyStep, compute_statistics, run_study
from discreet.studies.study import Study
from discreet.theory import thresholds
from discreet.trust import TRUSTS
from discreet.validation import name_path, quote
from discreet.version import __version__
from discreet.wording import format_count

if TYPE_CHECKING:
    import polars as pl


MARKER = "reproduce.json"
OURS = {MARKER, "runs", "figures", "report.html", "table.parquet"}
SAMPLES = "samples"
"""The study of the paper's experiments."""


def prepare_folder(folder: Path, studies: Mapping[str, Study], name: str = SAMPLES) -> None:
    """Make the folder ours: new, empty, or one of an earlier start of the same study.
    Refuses before it changes anything.
    """
    try:
        if folder.exists():
            _check_names(folder)
            _check_marker(folder, name)
        for part, study in studies.items():
            check_folder(study, folder / "runs" / part)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot use {folder}: {error.strerror or error}") from None
    if not (folder / MARKER).exists():
        said = {"made by": "discreet reproduce", "study": name, "version": __version__}
        write_file(folder / MARKER, json.dumps(said) + "\n")


def _check_names(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    ours = OURS if MARKER in names else set[str]()
    for name in names:
        if name not in ours and not name.startswith(tuple(f".{part}." for part in ours)):
            raise InvalidInputError(
                f"{name_path(folder)} holds {name!r}, which is not part of this study: use an "
                "empty or a new folder"
            )


def _check_marker(folder: Path, name: str) -> None:
    if not (folder / MARKER).exists():
        return
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))["study"]
    except (ValueError, KeyError, TypeError):
        found = "unknown"
    if found != name:
        raise InvalidInputError(
            f"{name_path(folder)} belongs to the study {quote(found)}, not to {name}: use another "
            "folder"
        )


def run_part(
    folder: Path, studies: Mapping[str, Study], part: str, progress: OnStep | None
) -> "pl.DataFrame":
    """Simulate what is missing of one part; `progress` counts the runs of all."""
    total = sum(study.runs * len(study.cells) for study in studies.values())
    names = list(studies)
    earlier = [studies[name] for name in names[: names.index(part)]]
    before = sum(study.runs * len(study.cells) for study in earlier)

    def show(step: StudyStep) -> None:
        if progress is not None:
            progress(
                StudyStep(step.cell, step.cell_done, step.cell_runs, before + step.done, total)
            )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", engine.MayNotStopWarning)
        return run_study(studies[part], folder / "runs" / part, progress=show).drop("seconds")


def write_table(folder: Path, table: "pl.DataFrame") -> None:
    """Write the table of all parts."""
    content = BytesIO()
    table.write_parquet(content)
    write_file(folder / "table.parquet", content.getvalue())


DELTA = 0.01
"""δ of the paper's experiments."""
SEED = 1
GLOBAL = (0.001, 0.005, 0.01, 0.05, *(i / 10 for i in range(1, 11)), 10.0, 100.0, 1000.0)
LOCAL = (0.01, 0.05, *(i / 10 for i in range(1, 11)), 10.0, 100.0)
LEAST_LOCAL = 0.1
QUICK = {
    "instances": ("mu1", "mu2"),
    "global": (0.01, 0.1, 0.5, 1.0, 10.0),
    "local": (0.5, 1.0, 10.0),
    "runs": 100,
}
AUTHORS = "dp-se-authors"
"""DP-SE as the authors' published code has it: an epoch's sum divided by the count of
all epochs.
"""
STRATEGIES: dict[str, tuple[tuple[str, str], ...]] = {
    "none": (("ttucb", "empirical"), ("ttucb", "proved")),
    "global": (
        ("adap-tt", "empirical"),
        ("adap-tt", "proved"),
        ("adap-tt-star", "empirical"),
        ("adap-tt-star", "printed"),
        ("adap-tt-star", "proved"),
        ("dp-se", "proved"),
        (AUTHORS, "empirical"),
        ("bet-se", "proved"),
    ),
    "local": (("ctb-tt", "empirical"), ("ctb-tt", "proved"), ("bet-se", "proved")),
}
"""By trust. Where `printed` and `proved` are one and the same threshold it is simulated
once, as `proved`.
"""
THRESHOLDS = {"global": ("empirical", "printed", "proved"), "local": ("empirical", "proved")}
"""By trust, what the findings and the pictures tell apart."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Scope:
    """Hold what is simulated."""

    runs: int
    instances: tuple[str, ...]
    levels: dict[str, tuple[float, ...]]
    """ε by trust, `global` and `local`."""
    quick: bool = False
    left_out: tuple[float, ...] = ()
    """ε of the paper's local grid that were not asked for."""

    def studies(self) -> dict[str, Study]:
        """Return the parts by name: the one without privacy first, as it tells how long
        local ones take; small ε last.
        """
        local = self.levels.get("local", ())
        levels: dict[str, tuple[float | None, ...]] = {
            "none": (None,),
            "global": self.levels.get("global", ()),
            "local": tuple(level for level in local if level >= LEAST_LOCAL),
            "local-small": tuple(level for level in local if level < LEAST_LOCAL),
        }
        arms = {name: benchmarks[name] for name in self.instances}
        return {
            part: Study(arms, _make_strategies(part.partition("-")[0], mine), self.runs, SEED)
            for part, mine in levels.items()
            if mine
        }


def _make_strategies(trust: str, levels: Iterable[float | None]) -> list[strategy.Strategy]:
    """Make all strategies of one trust model except the authors' DP-SE, the large ε
    first: they are the quick ones.
    """
    found = []
    for name, threshold in STRATEGIES[trust]:
        own: dict[str, Any] = {"trust": trust} if name == "bet-se" else {"threshold": threshold}
        for level in sorted(levels, key=lambda value: -(value or 0.0)):
            if name != AUTHORS:
                private = {} if level is None else {"epsilon": level}
                found.append(presets.PRESETS[name](delta=DELTA, **private, **own))
    return found


def make_scope(
    runs: int | None = None, trust: str = "both", quick: bool = False, all_local: bool = False
) -> Scope:
    """Return the paper's study, or the quick one; for one trust model or `both`."""
    if trust not in ("global", "local", "both"):
        raise InvalidInputError(f"trust must be one of global, local, both; got {quote(trust)}")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 2):
        raise InvalidInputError(f"runs must be a whole number, 2 or more; got {quote(runs)}")
    if all_local and (quick or trust not in ("local", "both")):
        raise InvalidInputError(
            "all_local belongs to the full local study: leave out quick, and give trust local "
            "or both"
        )
    grids: dict[str, Any] = QUICK if quick else {"global": GLOBAL, "local": LOCAL}
    levels = {
        which: tuple(grids[which]) for which in ("global", "local") if trust in (which, "both")
    }
    left_out: tuple[float, ...] = ()
    if "local" in levels and not all_local:
        left_out = tuple(level for level in levels["local"] if level < LEAST_LOCAL)
        levels["local"] = tuple(level for level in levels["local"] if level >= LEAST_LOCAL)
    instances: Any = QUICK["instances"] if quick else tuple(benchmarks)
    default: Any = QUICK["runs"] if quick else 1000
    return Scope(runs or default, instances, levels, quick, left_out)


# --- DP-SE by the authors' code -------------------------------------------------------


def simulate_authors_dp_se(
    instance: Bernoulli, epsilon: float, delta: float, runs: int, seed: int
) -> tuple[Ints, Ints, Ints]:
    """Simulate DP-SE by the authors' published code. Return samples, recommendations
    and epochs.

    As in Sajed and Sheffet, but an epoch's sum is divided by the count of all epochs,
    which shrinks every gap.
    """
    rng = np.random.default_rng(seed)
    active = np.ones((runs, instance.arms), np.bool_)
    samples, count, epochs = (np.zeros(runs, np.int64) for _ in range(3))
    epoch = 0
    while (left := active.sum(axis=1)).max() > 1:
        epoch += 1
        for size in range(2, instance.arms + 1):
            rows = np.flatnonzero(left == size)
            length = thresholds.compute_epoch_length(size, epoch, epsilon, delta)
            count[rows] += length
            mean = (
                rng.binomial(length, instance.means, (len(rows), instance.arms))
                / count[rows, np.newaxis]
            )
            mean += rng.laplace(0, 1 / (epsilon * length), mean.shape)
            mean[~active[rows]] = -math.inf
            radius = thresholds.compute_epoch_radius(size, epoch, length, epsilon, delta)
            active[rows] &= mean >= mean.max(axis=1, keepdims=True) - radius
            samples[rows] += size * length
            epochs[rows] = epoch
    return samples, active.argmax(axis=1), epochs


def _add_authors(table: "pl.DataFrame", runs: int) -> "pl.DataFrame":
    """Return the table of the global study with rows of the authors' DP-SE after those
    of DP-SE.
    """
    import polars as pl

    rows = list[dict[str, Any]]()
    for row in table.to_dicts():
        rows.append(row)
        if row["strategy"] == "dp-se":
            arms = benchmarks[row["instance"]]
            samples, named, epochs = simulate_authors_dp_se(
                arms, row["epsilon"], row["delta"], runs, SEED
            )
            results = Results(
                samples=samples,
                recommendation=named,
                correct=named == arms.best,
                stopped=np.ones(runs, np.bool_),
                rounds=epochs,
                pulls=np.zeros((runs, 0), np.int64),
                spec={},
                seed=SEED,
                version=__version__,
            )
            rows.append(
                {
                    **row,
                    "strategy": AUTHORS,
                    "threshold": "empirical",
                    **compute_statistics(results),
                }
            )
    return pl.DataFrame(rows, schema=table.schema)


# --- how long the local part takes ----------------------------------------------------


def measure_pace(level: float) -> float:
    """Return the seconds for a sample of ctb-tt on this machine, on all its threads.

    The best of a few tries of some millions; below `LEAST_LOCAL`, where runs leap and
    longer ones have a better pace, one try with a run for each thread.
    """
    short = level >= LEAST_LOCAL
    trial = presets.ctb_tt(0.5 if short else level, DELTA)
    engine.simulate(benchmarks.mu4, presets.ctb_tt(1, DELTA), 2, SEED)  # compiles
    runs, times = (8, 5) if short else (os.cpu_count() or 1, 1)
    tries = [engine.simulate(benchmarks.mu2, trial, runs, SEED) for _ in range(times)]
    return min(float(results.seconds / results.samples.sum()) for results in tries)


def estimate_seconds(
    free: Iterable[dict[str, Any]], paces: Mapping[float, float], runs: int
) -> float:
    """Estimate how long ctb-tt will take at each ε with its pace, from the samples of
    the cells without privacy: randomised response shrinks gaps by tanh(ε/2).
    """
    samples = sum(
        row["mean"] for row in free if row["strategy"] == "ttucb" and row["mean"] is not None
    )
    shrink = TRUSTS["local"].shrink
    return float(runs * samples * sum(pace / shrink(level) ** 2 for level, pace in paces.items()))


def describe_time(seconds: float) -> str:
    """Say about how long that is."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {format_count(max(1, round(seconds)), 'second')}"


# --- the study ------------------------------------------------------------------------


def run_paper(
    folder: Path, scope: Scope, progress: OnStep | None = None, say: Say | None = None
) -> "pl.DataFrame":
    """Simulate what is missing of the study in a folder, write `table.parquet`, and
    return it.

    Started again in the same folder it goes on where it was; other parts and more runs
    are added. `progress(step)` is called as runs are done, `say(words)` when there is
    something to tell.
    """
    studies = scope.studies()
    prepare_folder(folder, studies)
    if say is not None:
        authors = len(scope.instances) * len(scope.levels.get("global", ()))
        cells = sum(len(study.cells) for study in studies.values()) + authors
        say(
            f"{format_count(cells, 'cell')} of {format_count(scope.runs, 'run')}: "
            f"{', '.join(scope.instances)}, δ = {DELTA:g}, in {folder}"
        )
    table = _simulate(folder, scope, studies, progress, say)
    write_table(folder, table)
    return table


def _simulate(
    folder: Path, scope: Scope, studies: dict[str, Study], progress: OnStep | None, say: Say | None
) -> "pl.DataFrame":
    """Simulate all parts. Return one table."""
    import polars as pl

    tables = list[pl.DataFrame]()
    for part, study in studies.items():
        if part.startswith("local") and say is not None:
            _announce(part, tables[0], study, say)
        found = run_part(folder, studies, part, progress)
        tables.append(_add_authors(found, scope.runs) if part == "global" else found)
    return pl.concat(tables)


def _announce(part: str, free: "pl.DataFrame", study: Study, tell: Say) -> None:
    levels = {cell.strategy.epsilon for cell in study.cells if cell.strategy.epsilon is not None}
    paces = {level: measure_pace(level) for level in levels}
    seconds = estimate_seconds(free.to_dicts(), paces, study.runs)
    small = f" for ε < {LEAST_LOCAL:g}" if part == "local-small" else ""
    tell(
        f"the local study{small} will take {describe_time(seconds)} if it starts from the beginning"
    )


def find_switch(instance: str, trust: str) -> float:
    """Return the ε at which the regimes meet."""
    arms = benchmarks[instance]
    return theory.switch_epsilon(arms, trust)


# --- the table, cell by cell ----------------------------------------------------------

TableRow = dict[str, Any]


class RowPair(NamedTuple):
    """Pair two strategies in the same cell."""

    instance: str
    epsilon: float
    one: TableRow
    other: TableRow


class PaperRows:
    """Find the rows of the table by what they are about."""

    def __init__(self, rows: Sequence[TableRow], scope: Scope) -> None:
        self.scope = scope
        names = ("instance", "trust", "strategy", "threshold", "epsilon")
        self.rows = {tuple(row[name] for name in names): row for row in rows}

    def find(
        self, instance: str, trust: str, strategy: str, threshold: str, epsilon: float | None
    ) -> TableRow | None:
        """Return the row shown under that threshold: if a strategy has no such
        threshold, its proved one.
        """
        if strategy == "ttucb":
            trust = "none"
            epsilon = None
        own = [mine for name, mine in STRATEGIES[trust] if name == strategy]
        mine = threshold if threshold in own else "proved"
        return self.rows.get((instance, trust, strategy, mine, epsilon))

    def pairs(self, trust: str, one: tuple[str, str], other: tuple[str, str]) -> Iterator[RowPair]:
        """Yield two strategies, each with its threshold, in all cells in which runs of
        both stopped.
        """
        for instance in self.scope.instances:
            for level in self.scope.levels[trust]:
                first = self.find(instance, trust, *one, level)
                second = self.find(instance, trust, *other, level)
                if first and second and None not in (first["mean"], second["mean"]):
                    yield RowPair(instance, level, first, second)

    def shown(self, instance: str, trust: str, threshold: str) -> list[TableRow]:
        """Return the rows of one picture."""
        names = dict.fromkeys(name for name, _ in (*STRATEGIES[trust], ("ttucb", "")))
        rows = list[TableRow | None]()
        for name in names:
            if name != AUTHORS or threshold == "empirical":
                levels = (None,) if name == "ttucb" else sorted(self.scope.levels[trust])
                rows += [self.find(instance, trust, name, threshold, level) for level in levels]
        return [row for row in rows if row is not None]
