"""Show progress and warnings on stderr, and read and write the files of commands."""

import csv
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from discreet.cli.options import read_number, read_stdin
from discreet.errors import InvalidInputError
from discreet.files import check_writable, is_same_file, write_file
from discreet.validation import name_path

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from discreet.studies.run import StudyStep
    from discreet.trials.protocol import Protocol


pdf_option = click.option(
    "--pdf",
    type=click.Path(dir_okay=False),
    help="Also write the report as a PDF to this file. A browser prints it: Chromium, Chrome or "
    "Edge must be installed.",
)


def check_report(page: str | None, pdf: str | None, taken: Sequence[str] = ()) -> None:
    """Refuse a report that could not be drawn, printed or written, before the work is
    done, and files that are `taken` or named twice.
    """
    from discreet.reports import charts
    from discreet.reports.html import require_browser

    if page is None and pdf is None:
        return
    charts.require_matplotlib()
    if pdf is not None:
        require_browser()
        check_writable(pdf, taken)
    if page is not None:
        check_writable(page, taken)
    if page is not None and pdf is not None and is_same_file(page, pdf):
        raise InvalidInputError("--pdf needs a file of its own: another option names that one")


def write_report(page: str | None, pdf: str | None, document: str) -> list[str]:
    """Write the page and its PDF, as far as they are wanted; the files that were
    written.
    """
    if page is not None:
        write_file(page, document)
    if pdf is not None:
        from discreet.reports.html import write_pdf

        write_pdf(pdf, document)
    return [file for file in (page, pdf) if file is not None]


SEPARATORS = ",;\t"


@contextmanager
def reading(path: str) -> Iterator[TextIO]:
    """A text file, or stdin for -."""
    if path == "-":
        yield StringIO(read_stdin())
        return
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file in UTF-8"
        raise InvalidInputError(f"cannot read {name_path(path)}: {reason}") from None


def read_outcome(id: str, word: str, protocol: "Protocol", line: int | None = None) -> float:
    """An outcome that the protocol takes; the error says in which line of a file, or
    whose, and never which.
    """
    from discreet.trials.inputs import looks_like_id

    try:
        value = read_number(word)
        protocol.scale.convert_to_reward(value, protocol.out_of_range)
    except InvalidInputError as error:
        whose = f"of {id}: " if looks_like_id(id) else ""
        whose = whose if line is None else f"line {line}: "
        raise InvalidInputError(f"{whose}{error}; nothing was recorded") from None
    return value


def read_outcomes(file: TextIO) -> Iterator[tuple[int, str, str]]:
    """(line, id, outcome) of each line; a first line id,outcome is skipped. Errors name
    the line and not what is in it.

    Spreadsheets separate by commas, semicolons or tabs, and may say by which in a line
    sep=; before all others. Where it is not the comma, that may be the decimal point.
    """
    seen: set[str] = set()
    first = list(islice(file, 10))
    separator = _separator(first)
    rows = csv.reader(chain(first, file), delimiter=separator)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            raise InvalidInputError(
                f"line {rows.line_num} cannot be read as a line of a CSV file"
            ) from None
        if row is None:
            return
        number, cells = rows.line_num, [cell.removeprefix("\ufeff").strip() for cell in row]
        says = number <= 2 and cells[0].lower() in ("id", "sep=") if cells else False
        if not any(cells) or says:
            continue
        if separator != "," and len(cells) == 2:
            cells[1] = cells[1].replace(",", ".")
        if len(cells) != 2 or not all(cells):
            raise InvalidInputError(
                f"line {number} is not an id and an outcome separated by a comma, a semicolon or a "
                "tab; nothing was recorded"
            )
        if not _is_outcome(cells[1]):
            titles = ": it must be an id and its outcome, or titles of which the first is id"
            raise InvalidInputError(
                f"line {number} has an outcome that is not a number"
                f"{titles if number <= 2 and not seen else ''}; nothing was recorded"
            )
        if cells[0] in seen:
            raise InvalidInputError(
                f"line {number} repeats an id: give one outcome for each participant; nothing "
                f"was recorded"
            )
        seen.add(cells[0])
        yield number, cells[0], cells[1]


def pieces_of(file: TextIO) -> Iterator[dict[str, str]]:
    """The outcomes by id, from the start, as many at once as a trial takes."""
    from discreet.trials.inputs import MAX_BATCH

    file.seek(0)
    rows = read_outcomes(file)
    while piece := {id: word for _, id, word in islice(rows, MAX_BATCH)}:
        yield piece


def _separator(lines: list[str]) -> str:
    """Return the separator of a CSV file, judged by its first line that is not empty."""
    first = next((line for line in lines if line.strip("\ufeff \r\n")), "").strip("\ufeff \r\n")
    if first.lower().startswith("sep=") and first[4:5] in (*SEPARATORS,):
        return first[4:5]
    return next((sign for sign in ";\t" if sign in first), ",")


def _is_outcome(word: str) -> bool:
    """Return True if a word may be an outcome: a number, or a randomised response."""
    try:
        float(word)
    except ValueError:
        return "/" in word
    return True


COMPILING = (
    "discreet: compiling the simulation, once after an installation or an update: half a minute "
    "or so for each kind of strategy."
)
KERNEL = "JPY_PARENT_PID"
"""Set for whatever a notebook's kernel starts."""
PATIENCE = 1.0
"""Seconds of work before a bar is shown."""
INTERVAL = 30.0
"""Seconds between two lines where nobody watches a bar."""


def tell(words: str) -> None:
    """A line of ours."""
    click.echo(f"discreet: {words}", err=True)


def terminal() -> "Console":
    """Where bars are drawn. What is started from a cell of a notebook has a terminal
    that is none: the cell would keep every state of a bar.
    """
    from rich.console import Console

    return Console(stderr=True, force_terminal=False if KERNEL in os.environ else None)


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Our warnings as one line each; without the one that outcomes are rounded, as a
    command chooses what they are, or is told it.
    """
    import warnings

    from discreet.errors import RoundedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", RoundedWarning)
        warnings.showwarning = lambda message, *_: tell(f"warning: {message}")
        yield


class ProgressBar:
    """What is shown while one piece of work is done: how far it is, and with what it is
    busy.
    """

    def __init__(self, bars: "Bars", title: str) -> None:
        self.bars, self.task = bars, bars.add_task(title, total=None)

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        self.bars.update(self.task, completed=done, total=total)

    def doing(self, words: str) -> None:
        """This is what is done next."""
        from rich.markup import escape

        self.bars.update(self.task, description=escape(words))


@contextmanager
def progress_bar(title: str, quiet: bool = False) -> Iterator[ProgressBar]:
    """A bar, once the work has taken more than a second and if a person is watching;
    none if it is to be quiet.
    """
    from rich.progress import Progress as Bars

    console = terminal()
    bars = Bars(console=console, transient=True)
    bar = ProgressBar(bars, title)
    later = threading.Timer(PATIENCE, bars.start)
    if console.is_terminal and not quiet:
        later.start()
    try:
        yield bar
    finally:
        later.cancel()
        if bars.live.is_started:
            bars.stop()


@contextmanager
def simulation_bar(title: str) -> Iterator[ProgressBar]:
    """A bar for simulations; whoever watches it is told if something has to be
    compiled.
    """
    with progress_bar(title) as bar:
        console = bar.bars.console
        with _compiling_told(console) if console.is_terminal else nullcontext():
            yield bar


def _compiling_told(console: "Console") -> AbstractContextManager[None]:
    """Say it once, in a line of its own above the bar."""
    from discreet.simulation.compile import notify_of_compilation

    return notify_of_compilation(lambda: console.print(COMPILING))


def _lines() -> Callable[["StudyStep"], None]:
    """How far a study is, in a line every half minute."""
    last = time.monotonic()

    def show(step: "StudyStep") -> None:
        nonlocal last
        if time.monotonic() - last >= INTERVAL:
            last = time.monotonic()
            tell(f"{step.done:,} of {step.total:,} runs are done; now {step.cell}")

    return show


@contextmanager
def sweep_bar() -> Iterator[Callable[["StudyStep"], None]]:
    """Two bars, for all cells and for the one at work, if a person is watching; else a
    line now and then.
    """
    from rich.markup import escape
    from rich.progress import Progress as Bars

    console = terminal()
    if not console.is_terminal:
        yield _lines()
        return
    bars = Bars(console=console, transient=True)
    everything: list[TaskID] = []
    cells: dict[str, TaskID] = {}

    def show(step: "StudyStep") -> None:
        if not everything:
            everything.append(bars.add_task("all cells", total=step.total, completed=step.done))
        if step.cell not in cells:
            name = escape(step.cell)
            cells[step.cell] = bars.add_task(name, total=step.cell_runs, completed=step.cell_done)
        bars.update(everything[0], completed=step.done)
        bars.update(cells[step.cell], completed=step.cell_done)
        if step.cell_done == step.cell_runs:
            bars.remove_task(cells.pop(step.cell))

    with bars, _compiling_told(console):
        yield show
