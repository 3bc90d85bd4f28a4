"""What stands on stderr while a command works: bars with the time left, warnings of one
line.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from discreet.studies.run import Step

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


class Bar:
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
def progress_bar(title: str, quiet: bool = False) -> Iterator[Bar]:
    """A bar, once the work has taken more than a second and if a person is watching;
    none if it is to be quiet.
    """
    from rich.progress import Progress as Bars

    console = terminal()
    bars = Bars(console=console, transient=True)
    bar = Bar(bars, title)
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
def simulation_bar(title: str) -> Iterator[Bar]:
    """A bar for simulations; whoever watches it is told if something has to be
    compiled.
    """
    with progress_bar(title) as bar:
        console = bar.bars.console
        with _compiling_told(console) if console.is_terminal else nullcontext():
            yield bar


def _compiling_told(console: "Console") -> AbstractContextManager[None]:
    """Say it once, in a line of its own above the bar."""
    from discreet.simulation.hearing import hearing

    return hearing(lambda: console.print(COMPILING))


def _lines() -> Callable[["Step"], None]:
    """How far a study is, in a line every half minute."""
    last = time.monotonic()

    def show(step: "Step") -> None:
        nonlocal last
        if time.monotonic() - last >= INTERVAL:
            last = time.monotonic()
            tell(f"{step.done:,} of {step.total:,} runs are done; now {step.cell}")

    return show


@contextmanager
def sweep_bar() -> Iterator[Callable[["Step"], None]]:
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

    def show(step: "Step") -> None:
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
