"""The folder of a study of the paper: what may be in it, which study it is of, and its
parts, each a study of `run_study`.
"""

import json
import warnings
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import InvalidInputError
from discreet.files import write
from discreet.simulation import engine
from discreet.studies.folder import check_folder
from discreet.studies.run import OnStep, Step, run_study
from discreet.studies.study import Study
from discreet.validate import named, quoted
from discreet.version import __version__

if TYPE_CHECKING:
    import polars as pl

MARKER = "reproduce.json"
OURS = {MARKER, "runs", "figures", "report.html", "table.parquet"}
SAMPLES = "samples"
"""The study of the paper's experiments."""


def prepare(folder: Path, studies: Mapping[str, Study], name: str = SAMPLES) -> None:
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
        write(folder / MARKER, json.dumps(said) + "\n")


def _check_names(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    ours = OURS if MARKER in names else set[str]()
    for name in names:
        if name not in ours and not name.startswith(tuple(f".{part}." for part in ours)):
            raise InvalidInputError(
                f"{named(folder)} holds {name!r}, which is not part of this study: use an empty "
                "or a new folder"
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
            f"{named(folder)} belongs to the study {quoted(found)}, not to {name}: use another "
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

    def show(step: Step) -> None:
        if progress is not None:
            progress(Step(step.cell, step.cell_done, step.cell_runs, before + step.done, total))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", engine.MayNotStopWarning)
        return run_study(studies[part], folder / "runs" / part, progress=show).drop("seconds")


def write_table(folder: Path, table: "pl.DataFrame") -> None:
    """Write the table of all parts."""
    content = BytesIO()
    table.write_parquet(content)
    write(folder / "table.parquet", content.getvalue())
