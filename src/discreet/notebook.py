"""What a notebook shows: small tables in the colours of its theme, and how far some
work is. There is no script, and every name is escaped.
"""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol

from discreet.errors import InvalidInputError

FEW = 20
"""So many rows are shown."""
LONG = 30
"""Characters of a text that stands on a line of its own, below the table."""
EVERY = 0.2
"""Seconds between two looks at how far the work is."""
LETTERS = {"epsilon": "ε", "delta": "δ", "gamma": "γ"}
LINE = "1px solid rgba(128, 128, 128, .4)"
CELL = f"padding: .2em .7em; border-bottom: {LINE}; color: inherit; background: none; text-align:"


def html_table(
    title: str, rows: Sequence[Mapping[str, Any]], whole: Mapping[str, Any], shown: Sequence[str]
) -> str:
    """A small table with these columns, where there are such, of the first rows; those
    of the whole stand above it, sentences below.
    """
    names = [name for name in shown if any(row.get(name) is not None for row in rows)]
    rest = [name for name in shown if name not in names]
    said = {name: whole[name] for name in rest if whole.get(name) is not None}
    long = [name for name, value in said.items() if len(str(value)) > LONG]
    above = [f"<b>{escape(title)}</b>"]
    above += [_said(name, said[name], "") for name in said if name not in long]
    below = [_said(name, said[name], ":") for name in long]
    if len(rows) > FEW:
        below.append(f"These are the first {FEW} of {len(rows)} rows.")
    sides = {name: _side(name, rows) for name in names}
    head = "".join(_cell("th", _word(name), side) for name, side in sides.items())
    lines = [
        "".join(_cell("td", _value(row.get(name)), side) for name, side in sides.items())
        for row in rows[:FEW]
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines if line)
    return (
        '<div style="overflow-x: auto; color: inherit">'
        f"<div>{' · '.join(above)}</div>"
        '<table style="border-collapse: collapse; margin: .4em 0; color: inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{''.join(f'<div>{line}</div>' for line in below)}</div>"
    )


def _said(name: str, value: Any, sign: str) -> str:
    return escape(f"{_word(name)}{sign} {_value(value)}")


def _word(name: str) -> str:
    """A column for people."""
    return LETTERS.get(name, name.replace("_", " "))


def _value(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _side(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Numbers stand on the right."""
    texts = any(isinstance(row.get(name), str) for row in rows)
    return "left" if texts else "right"


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="{CELL} {side}">{escape(text)}</{tag}>'


# --- how far some work is -------------------------------------------------------------


class Step(Protocol):
    """How far a study is, as `run_study` tells it."""

    cell: str
    done: int
    total: int


class NotebookBar:
    """A bar that is called with how much is done, of how much."""

    def __init__(self, title: str, handle: Any = None) -> None:
        self.words, self._handle = title, handle
        self._last, self._lock = 0.0, threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        now = time.monotonic()
        with self._lock:
            if self._handle is None or (now - self._last < EVERY and done < total):
                return
            self._last = now
            self._handle.update(self._page(done, total), raw=True)

    def doing(self, words: str) -> None:
        """This is what is done next."""
        self.words = words

    def step(self, step: Step) -> None:
        """For `run_study` and `reproduce`: so far is the study."""
        self.words = step.cell
        self(step.done, step.total)

    def _page(self, done: int, total: int) -> dict[str, str]:
        words = f"{self.words}: {done:,} of {total:,}"
        bar = f'<progress value="{int(done)}" max="{int(total)}"></progress>'
        return {"text/html": f"<div>{bar} {escape(words)}</div>", "text/plain": words}


@contextmanager
def notebook_bar(title: str) -> Iterator[NotebookBar]:
    """A progress bar in the output of a notebook's cell, which disappears when the work
    is done; outside a notebook nothing is shown.

    `with notebook_bar("planning") as bar: plan(…, progress=bar)`; for studies,
    `progress=bar.step`.
    """
    if not isinstance(title, str):
        raise InvalidInputError("a bar's title is a text")
    if not _in_notebook():
        yield NotebookBar(title)
        return
    from IPython.display import display

    handle = display({"text/plain": title}, raw=True, display_id=True)
    try:
        yield NotebookBar(title, handle)
    finally:
        handle.update({"text/plain": ""}, raw=True)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
