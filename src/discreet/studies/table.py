"""What a study comes to: a table with a row for each cell."""

import math
from typing import TYPE_CHECKING, Any

from discreet import theory
from discreet.errors import InvalidInputError, NoConvergenceError
from discreet.gaussian import Gaussian
from discreet.instance import Bernoulli
from discreet.results import Results
from discreet.studies.folder import StudyFolder
from discreet.studies.study import Cell, extras

if TYPE_CHECKING:
    import polars as pl

TEXTS = ("instance", "strategy", "threshold", "sampling", "trust", "options", "correctness")
COUNTS = ("runs", "unstopped", "errors")


def make_table(folder: StudyFolder) -> "pl.DataFrame":
    """The table of a study whose blocks are all there."""
    import polars as pl

    times: dict[Any, float | None] = {}
    cells = folder.study.cells
    rows = [_row(cell, folder.results(cell), times) for cell in cells]
    if any(cell.strategy.label for cell in cells):  # then every row says what is promised
        rows = [
            {**row, "correctness": cell.strategy.correctness}
            for row, cell in zip(rows, cells, strict=True)
        ]
    kinds = {
        name: pl.String if name in TEXTS else pl.Int64 if name in COUNTS else pl.Float64
        for name in rows[0]
    }
    return pl.DataFrame(rows, schema=kinds)


def with_seconds(table: "pl.DataFrame", seconds: list[float | None]) -> "pl.DataFrame":
    """The table with one column more: how long each cell took."""
    import polars as pl

    return table.with_columns(pl.Series("seconds", seconds, dtype=pl.Float64))


def statistics(results: Results) -> dict[str, Any]:
    """What a simulation came to, as columns of the table."""
    summary = results.summary()
    names = ("runs", "unstopped", "errors", "mean", "median", "std", "sem")
    return {
        **{name: summary[name] for name in names},
        **{f"q{q}": summary["quantiles"].get(f"{q / 100:g}") for q in (10, 25, 75, 90)},
        "rounds_mean": summary["rounds_mean"],
        **{name: summary[name] for name in ("days_mean", "in_flight_mean") if name in summary},
    }


def _row(cell: Cell, results: Results, times: dict[Any, float | None]) -> dict[str, Any]:
    strategy = cell.strategy
    return {
        "instance": cell.instance_name,
        "strategy": strategy.name,
        "threshold": strategy.threshold,
        "sampling": strategy.sampling,
        "trust": strategy.trust,
        "options": extras(strategy),
        "epsilon": strategy.epsilon,
        "delta": strategy.delta,
        **statistics(results),
        "lower_bound": _lower_bound(cell, times),
    }


def _lower_bound(cell: Cell, times: dict[Any, float | None]) -> float | None:
    """The tightest known for the strategy's kind of privacy, or None.

    There is none for (ε, γ)-privacy and zCDP, for ζ > 0 and for arms that are neither
    Bernoulli nor Gaussian.
    """
    strategy, known = cell.strategy, isinstance(cell.instance, Bernoulli | Gaussian)
    if not known or strategy.zeta > 0 or not strategy.pure:
        return None
    key = (cell.instance_name, strategy.trust, strategy.epsilon)
    if key not in times:
        try:
            time = theory.tightest(cell.instance, strategy.epsilon, strategy.trust).value
            times[key] = time if math.isfinite(time) else None
        except (InvalidInputError, NoConvergenceError):
            times[key] = None
    found = times[key]
    return None if found is None else theory.lower_bound(found, strategy.delta)
