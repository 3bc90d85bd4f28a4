"""Results of a simulation: what each run did, what was simulated, and what it all comes
to.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.errors import InvalidInputError
from discreet.numerics import compute_clopper_pearson
from discreet.tabular import flatten, render_html_table
from discreet.validation import check_path, convert_to_float, join_line, name_path, quote

if TYPE_CHECKING:
    import polars as pl

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
FORMAT = 1
COLUMNS = ("samples", "recommendation", "correct", "stopped", "rounds", "pulls")
SHOWN = (
    *("runs", "unstopped", "errors", "error_rate", "error_interval_low", "error_interval_high"),
    *("mean", "median", "quantiles_0.1", "quantiles_0.9", "days_mean"),
)
"""What a notebook shows of a summary, as a table; beside it the promise."""
DATED = ("days", "pipeline")
"""Columns of simulations with a calendar."""


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a simulation: one entry per run, in the order of the runs."""

    samples: Ints
    recommendation: Ints
    correct: Flags
    """Named the best arm; with an indifference zone ζ, an arm at most ζ below it."""
    stopped: Flags
    rounds: Ints
    pulls: Ints
    """[run, arm]"""
    spec: dict[str, Any]
    """What was simulated, in plain types: instance, strategy, max_samples."""
    seed: int
    version: str
    seconds: float = 0.0
    interrupted: bool = field(default=False)
    """Stopped by the user: the runs that were done by then, which are the shorter
    ones.
    """
    days: Floats | None = None
    """From the first day of enrolment to the end; only with an accrual."""
    pipeline: Ints | None = None
    """People assigned and not released at the end; only with an accrual."""

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.samples)

    @property
    def unstopped(self) -> int:
        """Runs that hit the cap."""
        return int((~self.stopped).sum())

    @property
    def errors(self) -> int:
        """Runs that stopped with a wrong answer."""
        return int((self.stopped & ~self.correct).sum())

    @property
    def correctness(self) -> str | None:
        """What the strategy promises about its error rate, in words; None for results
        put together by hand.
        """
        return self.spec.get("correctness")

    def error_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the Clopper–Pearson interval for the probability of stopping with a
        wrong answer.
        """
        if not 0 < convert_to_float(level) < 1 or self.runs == 0:
            raise InvalidInputError(
                f"an interval needs a level between 0 and 1, and runs; got {quote(level)}, "
                f"{self.runs}"
            )
        return compute_clopper_pearson(self.errors, self.runs, float(level))

    def summary(self) -> dict[str, Any]:
        """Return numbers for a table: statistics over the runs that stopped, counts
        over all; None if none stopped.
        """
        samples = self.samples[self.stopped].astype(np.float64)
        some, several = len(samples) > 0, len(samples) > 1
        std = float(samples.std(ddof=1)) if several else None
        low, high = self.error_interval()
        return {
            "correctness": self.correctness,
            "runs": self.runs,
            "unstopped": self.unstopped,
            "errors": self.errors,
            "error_rate": self.errors / self.runs,
            "error_interval": [low, high],
            "mean": float(samples.mean()) if some else None,
            "median": float(np.median(samples)) if some else None,
            "std": std,
            "sem": None if std is None else std / math.sqrt(len(samples)),
            "quantiles": {f"{q:g}": float(np.quantile(samples, q)) for q in QUANTILES}
            if some
            else {},
            "pulls_mean": self.pulls[self.stopped].mean(axis=0).tolist() if some else None,
            "rounds_mean": float(self.rounds[self.stopped].mean()) if some else None,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": self.version,
            "interrupted": self.interrupted,
            **self._dated(),
        }

    def _dated(self) -> dict[str, Any]:
        """Return what the summary says of the calendar, of the runs that stopped."""
        if self.days is None or self.pipeline is None:
            return {}
        days, some = self.days[self.stopped], self.stopped.any()
        quantiles = {f"{q:g}": float(np.quantile(days, q)) for q in QUANTILES} if some else {}
        return {
            "days_mean": float(days.mean()) if some else None,
            "days_quantiles": quantiles,
            "pipeline_mean": float(self.pipeline[self.stopped].mean()) if some else None,
        }

    def to_frame(self) -> "pl.DataFrame":
        """Return a polars DataFrame with a row per run and one value in each cell: the
        pulls of the arms are columns `pulls_0`, `pulls_1`, …, numbered as in
        `recommendation`.
        """
        import polars as pl

        pulls = [pl.Series(f"pulls_{arm}", column) for arm, column in enumerate(self.pulls.T)]
        frame = self._stored()
        places = [
            place for name in frame.columns for place in (pulls if name == "pulls" else [name])
        ]
        return frame.select(places)

    def _stored(self) -> "pl.DataFrame":
        """Return the frame as files have it, with all pulls of a run in one cell."""
        import polars as pl

        frame = pl.DataFrame(
            {
                "samples": self.samples,
                "recommendation": self.recommendation,
                "correct": self.correct,
                "stopped": self.stopped,
                "rounds": self.rounds,
                "pulls": pl.Series(self.pulls, dtype=pl.Array(pl.Int64, self.pulls.shape[1])),
                **{name: getattr(self, name) for name in DATED if self.days is not None},
            }
        )
        promise = self.correctness or ""
        return (
            frame.with_columns(correctness=pl.lit(promise))
            if promise.startswith("no guarantee")
            else frame
        )

    def _repr_html_(self) -> str:
        """Return a small table, for a notebook."""
        summary = flatten(self.summary()) if self.runs else {"runs": 0}
        return render_html_table(
            "Results",
            [{name: summary.get(name) for name in SHOWN}],
            summary,
            (*SHOWN, "correctness"),
        )

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write a Parquet file, whose metadata say what was simulated."""
        import polars as pl

        target = path if hasattr(path, "write") else check_path("a file", path)
        meta = {"format": FORMAT, "spec": self.spec, "seed": self.seed, "version": self.version}
        meta |= {"seconds": self.seconds, "interrupted": self.interrupted}
        try:
            self._stored().write_parquet(target, metadata={"discreet": json.dumps(meta)})
        except (OSError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise InvalidInputError(f"cannot write {name_path(path)}: {join_line(error)}") from None

    @staticmethod
    def load(path: str | Path) -> "Results":
        """Read what `save` wrote."""
        import polars as pl

        path = check_path("a file", path)
        try:
            meta = json.loads(pl.read_parquet_metadata(path)["discreet"])
            frame = pl.read_parquet(path)
            kept = {key: meta[key] for key in ("spec", "seed", "version", "seconds", "interrupted")}
            names = [*COLUMNS, *(name for name in DATED if name in frame.columns)]
            columns: dict[str, Any] = {name: frame[name].to_numpy() for name in names}
        except FileNotFoundError:
            raise InvalidInputError(f"there is no file {name_path(path)}") from None
        except (
            AttributeError,
            KeyError,
            OSError,
            TypeError,
            ValueError,
            pl.exceptions.PolarsError,
        ):
            raise InvalidInputError(
                f"{name_path(path)} is not a file of simulation results"
            ) from None
        if meta.get("format") != FORMAT:
            raise InvalidInputError(
                f"{name_path(path)} was written by version {meta.get('version')}: read it with "
                "that version"
            )
        return Results(**columns, **kept)
