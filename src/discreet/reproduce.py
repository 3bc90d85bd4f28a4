"""The paper's study again: six instances, its ε grids, its strategies under three thresholds, and bet-se beside them.

`reproduce(folder)` simulates cell by cell (each kept in a Parquet file of its own, so that an interrupted study goes on
where it was), then writes the table, the pictures and one report that says what agrees with the paper.
"""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import decision, engine, strategy, theory
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, benchmarks
from discreet.report import write
from discreet.version import __version__

if TYPE_CHECKING:
    import polars as pl

DELTA = 0.01
SEED = 1
GLOBAL = (0.001, 0.005, 0.01, 0.05, *(i / 10 for i in range(1, 11)), 10.0, 100.0, 1000.0)
LOCAL = (0.01, 0.05, *(i / 10 for i in range(1, 11)), 10.0, 100.0)
LEAST_LOCAL = 0.1
QUICK = {
    "instances": ("mu2", "mu4"),
    "global": (0.01, 0.1, 0.5, 1.0, 10.0),
    "local": (0.5, 1.0, 10.0),
    "runs": 100,
}
AUTHORS = "dp-se-authors"
"""DP-SE as the authors' published code has it: an epoch's sum divided by the count of all epochs."""
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
"""By trust. Where `printed` and `proved` are one and the same threshold it is simulated once, as `proved`."""
MARKER = "reproduce.json"
Progress = Callable[[int, int], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """One simulation of the study. The trust `none` has no ε."""

    instance: str
    trust: str
    strategy: str
    threshold: str
    epsilon: float | None
    runs: int
    delta: float = DELTA
    seed: int = SEED

    @property
    def file(self) -> str:
        """The name of its Parquet file."""
        level = "none" if self.epsilon is None else f"{self.epsilon:g}"
        return f"{self.instance}-{self.trust}-{self.strategy}-{self.threshold}-{level}-{self.runs}.parquet"


@dataclass(frozen=True)
class Scope:
    """What is simulated."""

    runs: int
    instances: tuple[str, ...]
    levels: dict[str, tuple[float, ...]]
    """ε by trust, `global` and `local`."""
    quick: bool = False
    left_out: tuple[float, ...] = ()
    """ε of the paper's local grid that were not asked for."""

    def cells(self) -> list[Cell]:
        """All cells, the ones without privacy first: they tell how long the others take."""
        trusts: list[tuple[str, tuple[float | None, ...]]] = [("none", (None,)), *self.levels.items()]
        return [
            Cell(instance, trust, name, threshold, level, self.runs)
            for trust, levels in trusts
            for instance in self.instances
            for name, threshold in STRATEGIES[trust]
            for level in sorted(levels, key=lambda value: -(value or 0.0))
        ]


def make_scope(runs: int | None = None, trust: str = "both", quick: bool = False, all_local: bool = False) -> Scope:
    """The paper's study, or the quick one; for one trust model or `both`."""
    if trust not in ("global", "local", "both"):
        raise InvalidInputError(f"trust must be one of global, local, both; got {trust!r}")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 2):
        raise InvalidInputError(f"runs must be a whole number, 2 or more; got {runs!r}")
    if all_local and (trust == "global" or quick):
        raise InvalidInputError(
            "all_local belongs to the full local study: leave out quick, and take trust local or both"
        )
    grids: dict[str, Any] = QUICK if quick else {"global": GLOBAL, "local": LOCAL}
    levels = {which: tuple(grids[which]) for which in ("global", "local") if trust in (which, "both")}
    left_out: tuple[float, ...] = ()
    if "local" in levels and not all_local:
        left_out = tuple(level for level in levels["local"] if level < LEAST_LOCAL)
        levels["local"] = tuple(level for level in levels["local"] if level >= LEAST_LOCAL)
    instances: Any = QUICK["instances"] if quick else tuple(benchmarks)
    default: Any = QUICK["runs"] if quick else 1000
    return Scope(runs or default, instances, levels, quick, left_out)


# --- cells to rows --------------------------------------------------------------------------------


def measure(cells: Sequence[Cell], folder: Path, progress: Progress | None = None) -> "pl.DataFrame":
    """A row for each cell, in their order; those whose file is in `folder` are not simulated again."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for done, cell in enumerate(cells):
        path = folder / cell.file
        frame = _kept(path, cell)
        if frame is None:
            frame = pl.DataFrame([simulate_cell(cell)], schema=schema())
            buffer = BytesIO()
            frame.write_parquet(buffer)
            write(path, buffer.getvalue())
        frames.append(frame)
        if progress is not None:
            progress(done + 1, len(cells))
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema())


def schema() -> dict[str, Any]:
    """The columns of the table."""
    import polars as pl

    words = ("instance", "trust", "strategy", "threshold")
    numbers = ("mean", "median", "std", "sem", "q10", "q90", "rounds_mean", "seconds")
    return {
        **dict.fromkeys(words, pl.String),
        **dict.fromkeys(("epsilon", "delta"), pl.Float64),
        **dict.fromkeys(("runs", "unstopped", "errors"), pl.Int64),
        **dict.fromkeys(numbers, pl.Float64),
        **dict.fromkeys(("seed", "max_samples"), pl.Int64),
        "version": pl.String,
    }


def _kept(path: Path, cell: Cell) -> "pl.DataFrame | None":
    """What was simulated before, if it is this cell and was simulated by this version."""
    import polars as pl

    if not path.exists():
        return None
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        return None
    wanted = {**asdict(cell), "version": __version__}
    if dict(frame.schema) != schema() or len(frame) != 1:
        return None
    row = frame.row(0, named=True)
    return frame if all(row[key] == value for key, value in wanted.items()) else None


def simulate_cell(cell: Cell) -> dict[str, Any]:
    """Simulate one cell: its row of the table. Statistics are over the runs that stopped."""
    instance = benchmarks[cell.instance]
    cap = engine.MAX_SAMPLES
    if cell.strategy == AUTHORS:
        found = _authors(instance, cell)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", engine.MayNotStopWarning)
            results = engine.simulate(instance, make_strategy(cell), cell.runs, cell.seed, cap)
        if results.interrupted:
            raise KeyboardInterrupt
        found = results.summary()
    quantiles = {f"q{level}": found["quantiles"].get(f"{level / 100:g}") for level in (10, 90)}
    row = {**asdict(cell), **found, **quantiles, "max_samples": cap, "version": __version__}
    return {key: row[key] for key in schema()}


def make_strategy(cell: Cell) -> strategy.Strategy:
    """The strategy of a cell."""
    own: dict[str, Any] = {} if cell.epsilon is None else {"epsilon": cell.epsilon}
    if cell.strategy == "bet-se":
        own["trust"] = cell.trust
    else:
        own["threshold"] = cell.threshold
    return strategy.PRESETS[cell.strategy](delta=cell.delta, **own)


def authors_dp_se(instance: Bernoulli, epsilon: float, delta: float, rng: np.random.Generator) -> tuple[int, int, int]:
    """A run of DP-SE by the authors' published code: (samples, recommendation, epochs).

    As in Sajed and Sheffet, but an epoch's sum is divided by the count of all epochs, which shrinks every gap.
    """
    arms = instance.arms
    mean, active = np.zeros(arms), np.ones(arms, np.bool_)
    samples, epoch, count = 0, 0, 0
    while active.sum() > 1:
        epoch, left = epoch + 1, int(active.sum())
        length = decision.epoch_length(left, epoch, epsilon, delta)
        count += length
        for arm in np.flatnonzero(active):
            mean[arm] = rng.binomial(length, instance.means[arm]) / count + rng.laplace(0, 1 / (epsilon * length))
        samples += left * length
        decision.drop_far(mean, active, decision.epoch_radius(left, epoch, length, epsilon, delta))
    return samples, decision.best_arm(mean, active), epoch


def _authors(instance: Bernoulli, cell: Cell) -> dict[str, Any]:
    started, rng = time.perf_counter(), np.random.default_rng(cell.seed)
    runs = [authors_dp_se(instance, float(cell.epsilon or 0), cell.delta, rng) for _ in range(cell.runs)]
    samples, named, epochs = (np.array(column) for column in zip(*runs, strict=True))
    std = float(samples.std(ddof=1))
    return {
        "unstopped": 0,
        "errors": int((named != instance.best).sum()),
        "mean": float(samples.mean()),
        "median": float(np.median(samples)),
        "std": std,
        "sem": std / math.sqrt(cell.runs),
        "quantiles": {level: float(np.quantile(samples, float(level))) for level in ("0.1", "0.9")},
        "rounds_mean": float(epochs.mean()),
        "seconds": time.perf_counter() - started,
    }


def local_pace() -> float:
    """Seconds for a sample of ctb-tt on this machine, now, on all its threads: some millions of them are taken."""
    trial = strategy.ctb_tt(0.5, DELTA)
    engine.simulate(benchmarks.mu4, trial, 2, SEED)  # compiles
    results = engine.simulate(benchmarks.mu2, trial, 8, SEED)
    return float(results.seconds / results.samples.sum())


def local_seconds(free: Iterable[dict[str, Any]], levels: Iterable[float], runs: int, pace: float) -> float:
    """About how long ctb-tt will take, from the samples of the cells without privacy.

    Randomised response shrinks gaps by tanh(ε/2), and it is simulated one sample at a time.
    """
    samples = sum(row["mean"] for row in free if row["strategy"] == "ttucb" and row["mean"] is not None)
    return float(pace * runs * samples * sum(1 / math.tanh(level / 2) ** 2 for level in levels))


def in_words(seconds: float) -> str:
    """About how long that is."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {max(1, round(seconds))} seconds"


# --- the study ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reproduction:
    """What a study came to, and where it is."""

    folder: Path
    scope: Scope
    table: "pl.DataFrame"
    findings: tuple[Any, ...]
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
    progress: Progress | None = None,
    say: Say | None = None,
    scope: Scope | None = None,
) -> Reproduction:
    """Make the paper's study in a folder: report.html, table.parquet, every picture as PNG and SVG.

    `runs` are 1000 (quick: 100) per cell. Local ε below 0.1 take very long and are left out unless `all_local`.
    Started again in the same folder it goes on where it was. `progress(done, cells)` is called after each cell,
    `say(words)` when there is something to tell.
    """
    from discreet.plots import require_matplotlib
    from discreet.study_report import find, write_report

    require_matplotlib()
    chosen = scope or make_scope(runs, trust, quick, all_local)
    tell: Say = say or (lambda words: None)
    started, target = time.perf_counter(), Path(folder)
    prepare(target)
    cells = chosen.cells()
    free = [cell for cell in cells if cell.trust == "none"]
    rest = cells[len(free) :]
    total = len(cells)

    def shift(before: int) -> Progress:
        return lambda done, _: progress(before + done, total) if progress is not None else None

    tell(f"{total} cells of {chosen.runs} runs: {', '.join(chosen.instances)}, δ = {DELTA:g}, in {target}")
    table = measure(free, target / "cells", shift(0))
    if "local" in chosen.levels:
        levels = chosen.levels["local"]
        small = [level for level in levels if level < LEAST_LOCAL]
        rows, pace = table.to_dicts(), local_pace()
        part = (
            f", of that ε < {LEAST_LOCAL:g} {in_words(local_seconds(rows, small, chosen.runs, pace))}" if small else ""
        )
        tell(
            f"the local study will take {in_words(local_seconds(rows, levels, chosen.runs, pace))}{part}, if begun anew"
        )
    table = table.vstack(measure(rest, target / "cells", shift(len(free))))
    buffer = BytesIO()
    table.write_parquet(buffer)
    write(target / "table.parquet", buffer.getvalue())
    tell("drawing the pictures")
    findings = find(table.to_dicts(), chosen)
    files = write_report(target, table.to_dicts(), chosen, findings)
    return Reproduction(target, chosen, table, findings, files, time.perf_counter() - started)


def prepare(folder: Path) -> None:
    """Make the folder ours: new, empty, or one of an earlier start with the same version."""
    try:
        if folder.exists():
            names = [path.name for path in folder.iterdir()]
            if MARKER not in names and names:
                raise InvalidInputError(
                    f"{folder} holds {sorted(names)[0]!r}, which is not of this study: take an empty or a new folder"
                )
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot use {folder}: {error.strerror or error}") from None
    if not (folder / MARKER).exists():
        write(folder / MARKER, json.dumps({"made by": "discreet reproduce", "version": __version__}) + "\n")


def switch_of(instance: str, trust: str) -> float:
    """The ε at which the regimes meet."""
    arms = benchmarks[instance]
    return theory.switch_epsilon_local(arms) if trust == "local" else theory.switch_epsilon_global(arms)
