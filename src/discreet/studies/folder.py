"""The folder of one study: what is finished, what is missing, and who is at work in it.

`study.json` pins what is simulated, `runs/<cell>/<first>-<last>.parquet` are finished
blocks of runs, `table.parquet` is what it comes to, `seconds.jsonl` how long blocks
took. Only the last has to do with clocks: all the rest has the same bytes whatever did
the work, in whatever order.
"""

import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.errors import DiscreetError, InvalidInputError
from discreet.files import explain_write_error, write_file
from discreet.results import COLUMNS, DATED, Results
from discreet.simulation import engine
from discreet.simulation.user_strategies import describe_identity
from discreet.strategies.strategy import Strategy
from discreet.studies.study import Cell, Study, make_title
from discreet.validation import name_path
from discreet.version import __version__

if TYPE_CHECKING:
    import polars as pl

RUNS_PER_BLOCK = 4 * engine.RUNS_PER_GENERATOR
"""Runs in a block: the unit of work, and of what an interruption can lose."""
FOLDER_FORMAT = 1
TEMPORARY_FILE = re.compile(r"\..+\.tmp")
BLOCK_FILE = re.compile(r"(\d{9})-(\d{9})\.parquet")
KEPT_WORDS = "the finished blocks are kept: "
"""What an error says if the disk is full."""


class Block(NamedTuple):
    """Name runs first … last − 1 of a cell."""

    cell: Cell
    first: int
    last: int


class StudyFolder:
    """Keep the blocks of one study in its folder. Make nothing before `begin`."""

    def __init__(self, study: Study, folder: Path) -> None:
        self.study = study
        self.folder = folder
        self.keys = {cell: make_cell_key(study, cell) for cell in study.cells}
        self.blocks: dict[Cell, dict[Block, Results]] = {cell: {} for cell in study.cells}

    def begin(self) -> None:
        """Pin the study and drop what a killed process was writing."""
        cells = {key: cell.title for cell, key in self.keys.items()}
        manifest = {**_make_manifest(self.study), "cells": cells}
        document = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        path = self.folder / "study.json"
        if not path.exists() or path.read_text(encoding="utf-8") != document:
            write_file(path, document, KEPT_WORDS)
        for place in (self.folder, *map(self._locate, self.keys)):
            for left in place.glob(".*.tmp"):
                left.unlink(missing_ok=True)

    def check(self) -> None:
        """Refuse another study and foreign files, by their names."""
        _check_manifest(self.study, self.folder)
        self._check_names()

    def read(self) -> None:
        """Read the blocks that are there; refuse foreign ones."""
        for cell in self.keys:
            for path in sorted(self._locate(cell).glob("[0-9]*.parquet")):
                match = BLOCK_FILE.fullmatch(path.name)
                assert match is not None
                block = Block(cell, int(match[1]), int(match[2]))
                try:
                    results = Results.load(path)
                    fault = self._find_fault(block, results)
                except InvalidInputError:
                    fault = "is not a block of runs, or is damaged"
                if fault:
                    raise InvalidInputError(
                        f"{name_path(path)} {fault}: move it elsewhere to have these runs "
                        "simulated again"
                    )
                self.blocks[cell][block] = _drop_pulls(results)
        for cell in self.study.cells:
            self.list_missing(cell)

    def list_missing(self, cell: Cell) -> list[Block]:
        """Return the blocks of a cell that are not there."""
        unit = engine.RUNS_PER_GENERATOR if engine.is_in_blocks(cell.instance, cell.strategy) else 1
        target = -(-self.study.runs // unit) * unit  # runs that share a Generator are made together
        gaps = list[Block]()
        position = 0
        for _, first, last in [*_sort_blocks(self.blocks[cell]), Block(cell, target, target)]:
            if first < position and first < target:
                raise InvalidInputError(
                    f"{self._locate(cell)} contains some runs twice: move the file that begins "
                    f"with run {first} elsewhere"
                )
            while position < min(first, target):
                end = min(first, target, (position // RUNS_PER_BLOCK + 1) * RUNS_PER_BLOCK)
                gaps.append(Block(cell, position, end))
                position = end
            position = max(position, last)
        return gaps

    def add(self, block: Block, results: Results) -> None:
        """Keep a finished block."""
        fault = self._find_fault(block, results)
        if fault:
            raise DiscreetError(
                f"a worker's answer {fault}: give all workers discreet {__version__}"
            )
        path = self._locate(block.cell) / f"{block.first:09d}-{block.last:09d}.parquet"
        content = io.BytesIO()
        replace(results, seconds=0.0).save(content)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise explain_write_error(path, error, KEPT_WORDS) from None
        write_file(path, content.getvalue(), KEPT_WORDS)
        self.blocks[block.cell][block] = _drop_pulls(results)
        self._note_seconds(block, results.seconds)

    def join_results(self, cell: Cell) -> Results:
        """Return all runs of a cell as one, as many as the study wants; without the
        pulls of each arm.
        """
        blocks = [self.blocks[cell][block] for block in _sort_blocks(self.blocks[cell])]
        names = COLUMNS if self.study.calendar is None else (*COLUMNS, *DATED)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(block, name) for block in blocks])[: self.study.runs]
            for name in names
        }
        return Results(**columns, spec={}, seed=self.study.seed, version=__version__)

    def write_table(self, table: "pl.DataFrame") -> None:
        """Write `table.parquet` unless it stands there already."""
        path = self.folder / "table.parquet"
        content = io.BytesIO()
        table.write_parquet(content, metadata={"discreet": json.dumps(_make_manifest(self.study))})
        if not path.exists() or path.read_bytes() != content.getvalue():
            write_file(path, content.getvalue(), KEPT_WORDS)

    def read_seconds(self) -> list[float | None]:
        """Return how long the blocks of each cell took, as far as it was written."""
        found: dict[str, float] = {}
        with suppress(OSError):
            text = (self.folder / "seconds.jsonl").read_text(encoding="utf-8", errors="replace")
            for line in text.splitlines():
                with suppress(
                    ValueError, KeyError, TypeError
                ):  # left unfinished by a killed process
                    entry = json.loads(line)
                    found[entry["cell"]] = found.get(entry["cell"], 0.0) + float(entry["seconds"])
        return [found.get(self.keys[cell]) for cell in self.study.cells]

    def _locate(self, cell: Cell) -> Path:
        return self.folder / "runs" / self.keys[cell]

    def _note_seconds(self, block: Block, seconds: float) -> None:
        """Add a line to `seconds.jsonl`; that it cannot be written stops nothing."""
        span = {"first": block.first, "last": block.last}
        entry = {"cell": self.keys[block.cell], **span, "seconds": round(seconds, 6)}
        with suppress(OSError), open(self.folder / "seconds.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def _check_names(self) -> None:
        runs = self.folder / "runs"
        begun = (self.folder / "study.json").exists()
        ours = {"study.json", "table.parquet", "seconds.jsonl", "runs"} if begun else set()
        strange = [path for path in _list_folder(self.folder) if path.name not in ours | {".lock"}]
        if begun:
            keys = set(self.keys.values())
            strange += [
                path for path in _list_folder(runs) if path.name not in keys or not path.is_dir()
            ]
            files = [path for key in self.keys.values() for path in _list_folder(runs / key)]
            strange += [path for path in files if not BLOCK_FILE.fullmatch(path.name)]
        for path in strange:
            if not TEMPORARY_FILE.fullmatch(path.name):
                raise InvalidInputError(
                    f"{path} is not part of this study: move it elsewhere, or use another folder"
                )

    def _find_fault(self, block: Block, results: Results) -> str:
        """Return what is wrong with a block, in words; empty if nothing."""
        instance = block.cell.instance
        strategy = block.cell.strategy
        calendar = self.study.calendar
        numbers = (1, self.study.seed, self.study.max_samples, 0)
        cap = engine.check_simulation(instance, strategy, *numbers, calendar)
        if results.version != __version__:
            return f"was made by discreet {results.version}"
        wanted = engine.describe_simulation(instance, strategy, cap, block.first, calendar)
        right = (
            _pass_through_json(results.spec) == _pass_through_json(wanted)
            and results.seed == self.study.seed
        )
        if not right or results.runs != block.last - block.first or results.interrupted:
            return "does not have the runs that it should have"
        return ""


def check_folder(study: Study, folder: str | Path) -> None:
    """Refuse a folder that `run_study` would refuse for its files' names or its
    manifest.
    """
    if Path(folder).exists():
        StudyFolder(study, Path(folder)).check()


@contextmanager
def lock_folder(study: Study, folder: Path) -> Iterator[StudyFolder]:
    """Lock the folder for one process at a time; refuse before anything changes."""
    try:
        check_folder(study, folder)
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise explain_write_error(folder, error, KEPT_WORDS) from None
    try:
        _lock(handle, folder)
        study_folder = StudyFolder(study, folder)
        try:
            study_folder.check()
            study_folder.read()
            study_folder.begin()
        except OSError as error:
            raise explain_write_error(folder, error, KEPT_WORDS) from None
        yield study_folder
    finally:
        os.close(handle)


def make_cell_key(study: Study, cell: Cell) -> str:
    """Return the name of a cell's folder: it depends on what is simulated, whatever
    else is in the study.
    """
    described = [cell.instance_name, cell.instance.to_dict(), cell.strategy.identity]
    parts = [*described, study.seed, study.max_samples]
    if study.calendar is not None:
        parts.append(study.calendar.to_dict())
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _lock(handle: int, folder: Path) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(
                f"another process is at work in {folder}: wait until it is done"
            ) from None
        except OSError:  # a file system without locks
            pass


def _make_manifest(study: Study) -> dict[str, Any]:
    return {"format": FOLDER_FORMAT, "version": __version__, "study": study.to_dict()}


def _check_manifest(study: Study, folder: Path) -> None:
    """Refuse a folder whose manifest is of another study."""
    path = folder / "study.json"
    if not path.exists():
        return
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        written_by = manifest["version"]
        differences = list(_list_differences(manifest["study"], study.to_dict()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(
            f"{path} is not the manifest of a study: use another folder"
        ) from None
    if manifest.get("format") != FOLDER_FORMAT or written_by != __version__:
        differences.append(f"it was written by discreet {written_by}, and this is {__version__}")
    if differences:
        raise InvalidInputError(
            f"{folder} holds another study ({'; '.join(differences)}): use another folder for "
            "this one"
        )


def _list_differences(there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    """Yield what keeps two descriptions of a study apart, in words; more runs than
    before do not.
    """
    for name in dict.fromkeys([*there["instances"], *here["instances"]]):
        before = there["instances"].get(name)
        now = here["instances"].get(name)
        if before != now:
            what = "is new" if before is None else "is gone" if now is None else "has other arms"
            yield f"the instance {name!r} {what}"
    new = [strategy for strategy in here["strategies"] if strategy not in there["strategies"]]
    gone = [strategy for strategy in there["strategies"] if strategy not in here["strategies"]]
    changed = [(old, now) for old in gone for now in new if _has_other_code(old, now)]
    yield from dict.fromkeys(
        f"the code of {now['class']} changed ({old['code'][:8]} → {now['code'][:8]})"
        for old, now in changed
    )
    for strategies, what in ((new, "new"), (gone, "gone")):
        for strategy in strategies:
            if not any(strategy in pair for pair in changed):
                yield f"the strategy {_describe_strategy(strategy)} is {what}"
    for key in ("seed", "max_samples", "calendar"):
        if there.get(key) != here.get(key):
            yield f"{key} was {there.get(key)} and is now {here.get(key)}"
    if here["runs"] < there["runs"]:
        yield f"runs was {there['runs']} and is now {here['runs']}: it may grow, but not shrink"


def _has_other_code(old: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether two user strategies differ in the text of the class alone."""
    return "class" in old and {**old, "code": now.get("code")} == now


def _describe_strategy(identity: dict[str, Any]) -> str:
    """Describe a strategy of a manifest in a few words."""
    return describe_identity(identity) or make_title(Strategy.from_dict(identity))


def _drop_pulls(results: Results) -> Results:
    """Drop the pulls of each arm, which need memory and which the table does not need."""
    return replace(results, pulls=np.zeros((results.runs, 0), np.int64), spec={})


def _sort_blocks(blocks: dict[Block, Results]) -> list[Block]:
    return sorted(blocks, key=lambda block: (block.first, block.last))


def _pass_through_json(value: Any) -> Any:
    """Return a value as it comes back from a file: tuples are lists there."""
    return json.loads(json.dumps(value))


def _list_folder(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
