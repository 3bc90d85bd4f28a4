"""run_study: simulate what is missing of a study, on threads or on any executor; to one
table.
"""

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import theory
from discreet.accrual import Calendar
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError, NoConvergenceError
from discreet.instances import Bernoulli, Gaussian, Instance
from discreet.results import Results
from discreet.simulation import engine
from discreet.strategies.strategy import Strategy
from discreet.studies.folder import Block, StudyFolder, lock_folder
from discreet.studies.study import Cell, Study, describe_extras
from discreet.validation import check_path, check_progress, quote

if TYPE_CHECKING:
    import polars as pl


TEXT_COLUMNS = ("instance", "strategy", "threshold", "sampling", "trust", "options", "correctness")
COUNT_COLUMNS = ("runs", "unstopped", "errors")


def make_table(folder: StudyFolder) -> "pl.DataFrame":
    """Make the table of a study whose blocks are all there."""
    import polars as pl

    times: dict[Any, float | None] = {}
    cells = folder.study.cells
    rows = [_make_row(cell, folder.join_results(cell), times) for cell in cells]
    if any(cell.strategy.label for cell in cells):  # then every row says what is promised
        rows = [
            {**row, "correctness": cell.strategy.correctness}
            for row, cell in zip(rows, cells, strict=True)
        ]
    kinds = {
        name: pl.String
        if name in TEXT_COLUMNS
        else pl.Int64
        if name in COUNT_COLUMNS
        else pl.Float64
        for name in rows[0]
    }
    return pl.DataFrame(rows, schema=kinds)


def add_seconds(table: "pl.DataFrame", seconds: list[float | None]) -> "pl.DataFrame":
    """Return the table with one column more: how long each cell took."""
    import polars as pl

    return table.with_columns(pl.Series("seconds", seconds, dtype=pl.Float64))


def compute_statistics(results: Results) -> dict[str, Any]:
    """Return what a simulation came to, as columns of the table."""
    summary = results.summary()
    names = ("runs", "unstopped", "errors", "mean", "median", "std", "sem")
    return {
        **{name: summary[name] for name in names},
        **{f"q{q}": summary["quantiles"].get(f"{q / 100:g}") for q in (10, 25, 75, 90)},
        "rounds_mean": summary["rounds_mean"],
        **{name: summary[name] for name in ("days_mean", "pipeline_mean") if name in summary},
    }


def _make_row(cell: Cell, results: Results, times: dict[Any, float | None]) -> dict[str, Any]:
    strategy = cell.strategy
    return {
        "instance": cell.instance_name,
        "strategy": strategy.name,
        "threshold": strategy.threshold,
        "sampling": strategy.sampling,
        "trust": strategy.trust,
        "options": describe_extras(strategy),
        "epsilon": strategy.epsilon,
        "delta": strategy.delta,
        **compute_statistics(results),
        "lower_bound": _compute_lower_bound(cell, times),
    }


def _compute_lower_bound(cell: Cell, times: dict[Any, float | None]) -> float | None:
    """Return the tightest bound known for the strategy's kind of privacy, or None.

    There is none for (ε, γ)-privacy and zCDP, for ζ > 0 and for arms that are neither
    Bernoulli nor Gaussian.
    """
    strategy, known = cell.strategy, isinstance(cell.instance, Bernoulli | Gaussian)
    if not known or strategy.indifference_zone > 0 or not strategy.is_pure:
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


@dataclass(frozen=True)
class StudyStep:
    """Say how far a study is, in runs: the cell that moved, and all of them."""

    cell: str
    cell_done: int
    cell_runs: int
    done: int
    total: int


OnStep = Callable[[StudyStep], None]


def run_study(
    study: Study,
    folder: str | Path,
    executor: Executor | None = None,
    progress: OnStep | None = None,
    threads: int | None = None,
) -> "pl.DataFrame":
    """Simulate what is missing in the folder, write `table.parquet`, and return it: a
    row per cell.

    Without an executor each block of runs is spread over `threads` (one per processor);
    an executor of `concurrent.futures`, Dask's for instance, gets whole blocks.
    Interrupted in any way, it keeps the finished blocks, and the same call goes on from
    there. With more `runs` than before it adds the new ones. The folder must be new,
    empty, or of this study. The table that is returned has one column more than the
    file: `seconds`, the time that the blocks took.
    """
    _check_threads(threads, executor)
    check_progress(progress)
    if not isinstance(study, Study):
        raise InvalidInputError("give a Study, such as Study.from_toml reads from a file")
    with lock_folder(study, check_path("a folder", folder)) as kept:
        _warn_of_runs_without_end(study)
        work = [block for cell in study.cells for block in kept.list_missing(cell)]
        meter = _Meter(kept, progress)
        if executor is None:
            _run_on_threads(kept, work, meter, threads)
        else:
            _run_on_executor(kept, work, meter, executor)
        table = make_table(kept)
        kept.write_table(table)
        return add_seconds(table, kept.read_seconds())


def simulate_block(
    instance: Instance,
    strategy: Strategy,
    first: int,
    last: int,
    seed: int,
    max_samples: int | None,
    calendar: Calendar | None = None,
) -> Results:
    """Simulate runs first … last − 1 of a cell, on one thread: what executors are sent."""
    results = engine.simulate_quietly(
        instance, strategy, last - first, seed, max_samples, 1, None, first, calendar
    )
    if results.interrupted:
        raise KeyboardInterrupt
    return results


@contextmanager
def connect_dask(address: str, timeout: float = 10) -> Iterator[Executor]:
    """Yield an executor on the Dask cluster whose scheduler has this address, such as
    tcp://10.0.0.1:8786.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError('Dask is not installed: pip install "discreet[dask]"') from None
    with _silence_logger("distributed.client"):  # what matters comes back as an error, in one line
        try:
            client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InvalidInputError(
                f"no Dask scheduler answers at {address}: start one, or correct the "
                f"address ({reason})"
            ) from None
        try:
            if not client.scheduler_info()["workers"]:
                warnings.warn(
                    f"the Dask cluster at {address} has no workers yet: waiting for some",
                    stacklevel=3,
                )
            yield client.get_executor()
        finally:
            client.close()


@contextmanager
def _silence_logger(name: str) -> Iterator[None]:
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def _check_threads(threads: int | None, executor: Executor | None) -> None:
    if threads is None:
        return
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidInputError(f"threads must be 1 or more; got {quote(threads)}")
    if executor is not None:
        raise InvalidInputError(
            "leave threads out: they are for this machine, and an executor has its own workers"
        )


def _warn_of_runs_without_end(study: Study) -> None:
    """Say once for the whole study why some runs may not stop."""
    cells: dict[str, list[str]] = {}
    for cell in study.cells:
        for reason in engine.list_reasons_not_to_stop(cell.instance, cell.strategy):
            cells.setdefault(reason, []).append(cell.title)
    for reason, titles in cells.items():
        others = f" and in {len(titles) - 1} more cells" if len(titles) > 1 else ""
        text = (
            f"in '{titles[0]}'{others} some runs may not stop ({reason}); they count as unstopped"
        )
        warnings.warn(text, engine.MayNotStopWarning, stacklevel=3)


class _Meter:
    """Count runs and tell `progress`."""

    def __init__(self, folder: StudyFolder, progress: OnStep | None) -> None:
        self.progress = progress
        self.runs = folder.study.runs
        self.cells = {cell: self._count_done(folder, cell) for cell in folder.study.cells}
        self.done = sum(self.cells.values())
        self.total = self.runs * len(self.cells)

    def _count_done(self, folder: StudyFolder, cell: Cell) -> int:
        missing = folder.list_missing(cell)
        return self.runs - sum(min(block.last, self.runs) - block.first for block in missing)

    def add(self, cell: Cell, runs: int, within: int = 0) -> None:
        """Count so many runs more as done for good, and report so many of a block that
        is still under way.
        """
        before = self.cells[cell]
        self.cells[cell] = min(self.runs, before + runs)
        self.done += self.cells[cell] - before
        if self.progress is not None:
            more = min(within, self.runs - self.cells[cell])
            here = self.cells[cell] + more
            self.progress(StudyStep(cell.title, here, self.runs, self.done + more, self.total))


def _run_on_threads(
    folder: StudyFolder, work: list[Block], meter: _Meter, threads: int | None
) -> None:
    """Run one block after the other, each on several threads."""
    study = folder.study
    for block in work:
        cell = block.cell

        def tell(done: int, _: int, cell: Cell = cell) -> None:
            meter.add(cell, 0, done)

        runs = block.last - block.first
        numbers = (runs, study.seed, study.max_samples, threads)
        results = engine.simulate_quietly(
            cell.instance, cell.strategy, *numbers, tell, block.first, study.calendar
        )
        if results.interrupted:
            raise KeyboardInterrupt
        folder.add(block, results)
        meter.add(cell, runs)


def _run_on_executor(
    folder: StudyFolder, work: list[Block], meter: _Meter, executor: Executor
) -> None:
    """Send all blocks to the executor; those that finish are kept, whatever becomes of
    the others.
    """
    waiting: dict[Future[Results], Block] = {}
    try:
        for block in work:
            waiting[_submit(folder.study, block, executor)] = block
        for future in as_completed(list(waiting)):
            block = waiting.pop(future)
            folder.add(block, future.result())
            meter.add(block.cell, block.last - block.first)
    except DiscreetError:
        raise
    except CancelledError:
        raise DiscreetError(
            "the executor dropped the work, as it does when its cluster is gone; finished work "
            "is kept: start again to continue"
        ) from None
    except BrokenExecutor:
        raise DiscreetError(
            "a worker process died; the finished blocks are kept: start again to continue"
        ) from None
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise DiscreetError(
            f"a block failed on a worker ({what}); the finished ones are kept"
        ) from error
    finally:
        _keep_finished(folder, waiting)


def _submit(study: Study, block: Block, executor: Executor) -> "Future[Results]":
    cell, first, last = block
    span = (first, last, study.seed, study.max_samples, study.calendar)
    return executor.submit(simulate_block, cell.instance, cell.strategy, *span)


def _keep_finished(folder: StudyFolder, waiting: "dict[Future[Results], Block]") -> None:
    """Stop what has not begun, and keep what was finished in the meantime."""
    for future in waiting:
        future.cancel()
    with suppress(DiscreetError):  # one is on its way already
        for future, block in waiting.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                folder.add(block, future.result())
