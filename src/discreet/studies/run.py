"""run_study: a grid of cells to one table. Goes on where it was, grows, runs on threads or on any executor.

A folder holds one study: `study.json` pins what is simulated, `runs/<cell>/<first>-<last>.parquet` are finished blocks
of runs, `table.parquet` is what it comes to, `seconds.jsonl` how long blocks took. Only the last has to do with
clocks: all the rest has the same bytes whatever did the work, in whatever order.
"""

import errno
import hashlib
import io
import json
import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import theory
from discreet.errors import DiscreetError, InvalidInputError, NoConvergenceError
from discreet.instance import Bernoulli, Instance
from discreet.results import Results
from discreet.simulation import engine, runner
from discreet.strategies.strategy import Strategy
from discreet.studies.study import Cell, Study, extras, title
from discreet.version import __version__

if TYPE_CHECKING:
    import polars as pl

BLOCK = 4 * runner.BLOCK
"""Runs in a block: the unit of work, and of what an interruption can lose."""
FORMAT = 1
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
TEMPORARY = re.compile(r"\..+\.tmp")
PIECE = re.compile(r"(\d{9})-(\d{9})\.parquet")


@dataclass(frozen=True)
class Step:
    """How far a study is, in runs: the cell that moved, and all of them."""

    cell: str
    cell_done: int
    cell_runs: int
    done: int
    total: int


Progress = Callable[[Step], None]


def run_study(
    study: Study,
    folder: str | Path,
    executor: Executor | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> "pl.DataFrame":
    """Simulate what is missing in the folder, write `table.parquet`, and return it: a row per cell.

    Without an executor each block of runs is spread over `threads` (one per processor); an executor of
    `concurrent.futures`, Dask's for instance, gets whole blocks. Interrupted in any way, it keeps the finished blocks,
    and the same call goes on from there. With more `runs` than before it adds the new ones. The folder must be new,
    empty, or of this study. The table returned has a column more than the file: `seconds`, the time the blocks took.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InvalidInputError(f"threads must be 1 or more; got {threads}")
    if threads is not None and executor is not None:
        raise InvalidInputError("threads are for runs on this machine: an executor has workers of its own")
    with _locked(study, Path(folder)) as store:
        _warn(study)
        work = [(cell, first, last) for cell in study.cells for first, last in store.missing(cell)]
        meter = _Meter(study, store, progress)
        if executor is None:
            _run_here(study, store, work, meter, threads)
        else:
            _run_there(study, store, work, meter, executor)
        table = _table(study, store)
        store.write_table(table)
        seconds = store.seconds()
    return table.with_columns(_series("seconds", [seconds.get(_key(study, cell)) for cell in study.cells]))


def check_folder(study: Study, folder: str | Path) -> None:
    """Refuse a folder that `run_study` would refuse for its files' names or its manifest; changes nothing."""
    if Path(folder).exists():
        _Store(study, Path(folder)).check()


def simulate_block(
    instance: Instance, strategy: Strategy, first: int, last: int, seed: int, max_samples: int | None
) -> Results:
    """Runs first … last − 1 of a cell, on one thread: what executors are sent."""
    results = engine.simulate_quietly(instance, strategy, last - first, seed, max_samples, 1, first_run=first)
    if results.interrupted:
        raise KeyboardInterrupt
    return results


@contextmanager
def dask_executor(address: str, timeout: float = 10) -> Iterator[Executor]:
    """An executor on the Dask cluster whose scheduler has this address, such as tcp://10.0.0.1:8786."""
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInputError('Dask is not installed: pip install "discreet[dask]"') from None
    with _quiet("distributed.client"):  # what matters comes back as an error, in one line
        try:
            client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InvalidInputError(
                f"no Dask scheduler answers at {address}: start one, or mend it ({reason})"
            ) from None
        try:
            if not client.scheduler_info()["workers"]:
                warnings.warn(f"the Dask cluster at {address} has no workers yet: waiting for some", stacklevel=3)
            yield client.get_executor()
        finally:
            client.close()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


class _Store:
    """The folder of one study. Makes nothing before `begin`."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self.folder = study, folder
        self.keys = {_key(study, cell): cell for cell in study.cells}
        self.pieces: dict[str, dict[tuple[int, int], Results]] = {key: {} for key in self.keys}

    def begin(self) -> None:
        """Pin the study and drop what a killed process was writing."""
        manifest = {"format": FORMAT, "version": __version__, "study": self.study.to_dict()}
        cells = {key: cell.title for key, cell in self.keys.items()}
        document = json.dumps({**manifest, "cells": cells}, indent=1, ensure_ascii=False) + "\n"
        path = self.folder / "study.json"
        if not path.exists() or path.read_text(encoding="utf-8") != document:
            _write(path, document.encode())
        for place in (self.folder, *(self.folder / "runs" / key for key in self.keys)):
            for left in place.glob(".*.tmp"):
                left.unlink(missing_ok=True)

    def check(self) -> None:
        """Refuse another study and foreign files, by their names."""
        self._check_manifest()
        self._check_names()

    def read(self) -> None:
        """Read the blocks that are there; refuse foreign ones."""
        for key, cell in self.keys.items():
            for path in sorted((self.folder / "runs" / key).glob("[0-9]*.parquet")):
                match = PIECE.fullmatch(path.name)
                assert match is not None
                first, last = int(match[1]), int(match[2])
                try:
                    results = Results.load(path)
                    wrong = self._wrong(cell, first, last, results)
                except InvalidInputError:
                    wrong = "is not a block of runs, or damaged"
                if wrong:
                    raise InvalidInputError(f"{path} {wrong}: move it away to have these runs simulated again")
                self.pieces[key][first, last] = _slim(results)
        for cell in self.study.cells:
            self.missing(cell)

    def missing(self, cell: Cell) -> list[tuple[int, int]]:
        """The blocks of runs that are not there, as [first, last)."""
        key, unit = _key(self.study, cell), runner.BLOCK if engine.in_blocks(cell.instance, cell.strategy) else 1
        target = -(-self.study.runs // unit) * unit  # runs that share a Generator are made together
        gaps, position = list[tuple[int, int]](), 0
        for first, last in [*sorted(self.pieces[key]), (target, target)]:
            if first < position and first < target:
                raise InvalidInputError(
                    f"{self.folder / 'runs' / key} holds some runs twice: move the file from {first} on away"
                )
            while position < min(first, target):
                end = min(first, target, (position // BLOCK + 1) * BLOCK)
                gaps.append((position, end))
                position = end
            position = max(position, last)
        return gaps

    def add(self, cell: Cell, first: int, last: int, results: Results) -> None:
        """Keep a finished block."""
        wrong = self._wrong(cell, first, last, results)
        if wrong:
            raise DiscreetError(f"a worker's answer {wrong}: give all workers discreet {__version__}")
        key, seconds, content = _key(self.study, cell), results.seconds, io.BytesIO()
        replace(results, seconds=0.0).save(content)
        _write(self.folder / "runs" / key / f"{first:09d}-{last:09d}.parquet", content.getvalue())
        self.pieces[key][first, last] = _slim(results)
        line = json.dumps({"cell": key, "first": first, "last": last, "seconds": round(seconds, 6)})
        with suppress(OSError), open(self.folder / "seconds.jsonl", "a", encoding="utf-8") as log:
            log.write(line + "\n")

    def write_table(self, table: "pl.DataFrame") -> None:
        """Write `table.parquet` unless it stands there already."""
        content, path = io.BytesIO(), self.folder / "table.parquet"
        meta = {"format": FORMAT, "version": __version__, "study": self.study.to_dict()}
        table.write_parquet(content, metadata={"discreet": json.dumps(meta)})
        if not path.exists() or path.read_bytes() != content.getvalue():
            _write(path, content.getvalue())

    def seconds(self) -> dict[str, float]:
        """Seconds by cell, as far as they were written."""
        found: dict[str, float] = {}
        with suppress(OSError):
            for line in (self.folder / "seconds.jsonl").read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):  # a line that a killed process left unfinished
                    entry = json.loads(line)
                    found[entry["cell"]] = found.get(entry["cell"], 0.0) + float(entry["seconds"])
        return found

    def _check_manifest(self) -> None:
        path = self.folder / "study.json"
        if not path.exists():
            return
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            there, written_by = manifest["study"], manifest["version"]
            differences = list(_differences(there, self.study.to_dict()))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInputError(f"{path} is not the manifest of a study: take another folder") from None
        if manifest.get("format") != FORMAT or written_by != __version__:
            differences.append(f"it was written by discreet {written_by}, and this is {__version__}")
        if differences:
            raise InvalidInputError(
                f"{self.folder} holds another study ({'; '.join(differences)}): take another folder for this one"
            )

    def _check_names(self) -> None:
        runs = self.folder / "runs"
        begun = (self.folder / "study.json").exists()
        ours = {"study.json", "table.parquet", "seconds.jsonl", "runs"} if begun else set()
        strange = [path for path in _list(self.folder) if path.name not in ours | {".lock"}]
        if begun:
            strange += [path for path in _list(runs) if path.name not in self.keys or not path.is_dir()]
            strange += [path for key in self.keys for path in _list(runs / key) if not PIECE.fullmatch(path.name)]
        for path in strange:
            if not TEMPORARY.fullmatch(path.name):
                raise InvalidInputError(f"{path} is no part of this study: move it away, or take another folder")

    def _wrong(self, cell: Cell, first: int, last: int, results: Results) -> str:
        """What is wrong with a block, in words; empty if nothing."""
        cap = engine.check(cell.instance, cell.strategy, 1, self.study.seed, self.study.max_samples)
        if results.version != __version__:
            return f"was made by discreet {results.version}"
        wanted = json.loads(json.dumps(engine.spec(cell.instance, cell.strategy, cap, first)))
        right = json.loads(json.dumps(results.spec)) == wanted and results.seed == self.study.seed
        if not right or results.runs != last - first or results.interrupted:
            return "has other runs than it should"
        return ""


@contextmanager
def _locked(study: Study, folder: Path) -> Iterator[_Store]:
    """The folder's store, for one process at a time; refuses before it changes anything."""
    try:
        check_folder(study, folder)
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    try:
        _lock(handle, folder)
        store = _Store(study, folder)
        try:
            store.check()
            store.read()
            store.begin()
        except OSError as error:
            raise _cannot_write(folder, error) from None
        yield store
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(f"another process is at work in {folder}: wait until it is done") from None
        except OSError:  # a file system without locks
            pass


class _Meter:
    """Counts runs and tells `progress`."""

    def __init__(self, study: Study, store: _Store, progress: Progress | None) -> None:
        self.progress, self.runs = progress, study.runs
        there = {
            cell: sum(min(last, study.runs) - first for first, last in store.missing(cell)) for cell in study.cells
        }
        self.cells = {cell: study.runs - missing for cell, missing in there.items()}
        self.done, self.total = sum(self.cells.values()), study.runs * len(self.cells)

    def add(self, cell: Cell, runs: int, within: int = 0) -> None:
        """So many runs more are done for good, and so many of a block that is still under way."""
        before = self.cells[cell]
        self.cells[cell] = min(self.runs, before + runs)
        self.done += self.cells[cell] - before
        if self.progress is not None:
            more = min(within, self.runs - self.cells[cell])
            here, all_of_it = self.cells[cell] + more, self.done + more
            self.progress(Step(cell.title, here, self.runs, all_of_it, self.total))


Work = list[tuple[Cell, int, int]]


def _run_here(study: Study, store: _Store, work: Work, meter: _Meter, threads: int | None) -> None:
    for cell, first, last in work:

        def tell(done: int, _: int, cell: Cell = cell) -> None:
            meter.add(cell, 0, done)

        results = engine.simulate_quietly(
            cell.instance, cell.strategy, last - first, study.seed, study.max_samples, threads, tell, first
        )
        if results.interrupted:
            raise KeyboardInterrupt
        store.add(cell, first, last, results)
        meter.add(cell, last - first)


def _run_there(study: Study, store: _Store, work: Work, meter: _Meter, executor: Executor) -> None:
    waiting: dict[Future[Results], tuple[Cell, int, int]] = {}
    try:
        for cell, first, last in work:
            future = executor.submit(
                simulate_block, cell.instance, cell.strategy, first, last, study.seed, study.max_samples
            )
            waiting[future] = cell, first, last
        for future in as_completed(list(waiting)):
            cell, first, last = waiting.pop(future)
            store.add(cell, first, last, future.result())
            meter.add(cell, last - first)
    except DiscreetError:
        raise
    except CancelledError:
        raise DiscreetError(
            "the executor dropped the work, as when its cluster is gone; what is finished is kept: start again to go on"
        ) from None
    except BrokenExecutor:
        raise DiscreetError("a worker process died; the finished blocks are kept: start again to go on") from None
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise DiscreetError(f"a block failed on a worker ({what}); the finished ones are kept") from error
    finally:
        for future in waiting:
            future.cancel()
        with suppress(DiscreetError):  # one is on its way already
            for future, (cell, first, last) in waiting.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    store.add(cell, first, last, future.result())


def _warn(study: Study) -> None:
    """Say once for the whole study why some runs may not stop."""
    cells: dict[str, list[str]] = {}
    for cell in study.cells:
        for reason in engine.reasons_not_to_stop(cell.instance, cell.strategy):
            cells.setdefault(reason, []).append(cell.title)
    for reason, titles in cells.items():
        others = f" and in {len(titles) - 1} more cells" if len(titles) > 1 else ""
        text = f"in '{titles[0]}'{others} some runs may not stop ({reason}); they count as unstopped"
        warnings.warn(text, engine.MayNotStopWarning, stacklevel=3)


def _table(study: Study, store: _Store) -> "pl.DataFrame":
    import polars as pl

    times: dict[Any, float | None] = {}
    rows = [_row(study, cell, store.pieces[_key(study, cell)], times) for cell in study.cells]
    texts = ("instance", "strategy", "threshold", "sampling", "trust", "options")
    whole = ("runs", "unstopped", "errors")
    kinds = {name: pl.String if name in texts else pl.Int64 if name in whole else pl.Float64 for name in rows[0]}
    return pl.DataFrame(rows, schema=kinds)


def _series(name: str, values: list[float | None]) -> "pl.Series":
    import polars as pl

    return pl.Series(name, values, dtype=pl.Float64)


def _row(study: Study, cell: Cell, pieces: dict[tuple[int, int], Results], times: dict[Any, Any]) -> dict[str, Any]:
    strategy, blocks = cell.strategy, [pieces[piece] for piece in sorted(pieces)]
    names = ("samples", "recommendation", "correct", "stopped", "rounds", "pulls")
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])[: study.runs] for name in names
    }
    return {
        "instance": cell.instance_name,
        "strategy": strategy.name,
        "threshold": strategy.threshold,
        "sampling": strategy.sampling,
        "trust": strategy.trust,
        "options": extras(strategy),
        "epsilon": strategy.epsilon,
        "delta": strategy.delta,
        **statistics(Results(**whole, spec={}, seed=study.seed, version=__version__)),
        "lower_bound": _lower_bound(cell, times),
    }


def statistics(results: Results) -> dict[str, Any]:
    """What a simulation came to, as columns of the table."""
    summary = results.summary()
    return {
        **{key: summary[key] for key in ("runs", "unstopped", "errors", "mean", "median", "std", "sem")},
        **{f"q{q}": summary["quantiles"].get(f"{q / 100:g}") for q in (10, 25, 75, 90)},
        "rounds_mean": summary["rounds_mean"],
    }


def _lower_bound(cell: Cell, times: dict[Any, float | None]) -> float | None:
    """The tightest known for the strategy's kind of privacy; None for (ε, γ)-privacy, ζ > 0 and arms not Bernoulli."""
    strategy, epsilon = cell.strategy, cell.strategy.epsilon
    if not isinstance(cell.instance, Bernoulli) or strategy.zeta > 0 or strategy.estimator == "gauss":
        return None
    key = cell.instance_name, strategy.trust, epsilon
    if key not in times:
        try:
            if epsilon is None:
                time = float(theory.t_kl(cell.instance))
            else:
                time = float(theory.t_epsilon(cell.instance, epsilon))
                if strategy.trust == "local":
                    time = max(time, float(theory.t_local(cell.instance, epsilon)))
            times[key] = time if math.isfinite(time) else None
        except (InvalidInputError, NoConvergenceError):
            times[key] = None
    found = times[key]
    return None if found is None else theory.lower_bound(found, strategy.delta)


def _slim(results: Results) -> Results:
    """Without the pulls of each arm, which the table does not need and memory does."""
    return replace(results, pulls=np.zeros((results.runs, 0), np.int64), spec={})


def _key(study: Study, cell: Cell) -> str:
    """Names a cell's folder: by what is simulated, whatever else is in the study."""
    parts = [cell.instance_name, cell.instance.to_dict(), cell.strategy.to_dict(), study.seed, study.max_samples]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _differences(there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    """What keeps two descriptions of a study apart, in words; more runs than before do not."""
    for name in dict.fromkeys([*there["instances"], *here["instances"]]):
        one, other = there["instances"].get(name), here["instances"].get(name)
        if one != other:
            what = "is new" if one is None else "is gone" if other is None else "has other arms"
            yield f"the instance {name!r} {what}"
    for strategy in here["strategies"]:
        if strategy not in there["strategies"]:
            yield f"the strategy {title(Strategy.from_dict(strategy))} is new"
    for strategy in there["strategies"]:
        if strategy not in here["strategies"]:
            yield f"the strategy {title(Strategy.from_dict(strategy))} is gone"
    for key in ("seed", "max_samples"):
        if there[key] != here[key]:
            yield f"{key} was {there[key]} and is {here[key]}"
    if here["runs"] < there["runs"]:
        yield f"runs were {there['runs']} and are {here['runs']}: they may grow, not shrink"


def _list(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing, on the disk before it has its name."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        if os.name == "posix":
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> DiscreetError:
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return DiscreetError(f"cannot write {path}: {reason}; the finished blocks are kept: make room and start again")
    return InvalidInputError(f"cannot write {path}: {reason}")
