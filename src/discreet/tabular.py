"""Tables for other programs: frames whose cells hold one value each, and CSV that no
spreadsheet computes with.
"""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from discreet.errors import InvalidInputError, MissingExtraError
from discreet.files import write_file

if TYPE_CHECKING:
    import polars as pl


MAX_ROWS_SHOWN = 20
"""So many rows are shown."""
MIN_LONG_CHARACTERS = 30
"""Characters of a text that stands on a line of its own, below the table."""
SECONDS_BETWEEN_UPDATES = 0.2
"""Seconds between two looks at how far the work is."""
LETTERS = {"epsilon": "ε", "delta": "δ", "gamma": "γ"}
LINE = "1px solid rgba(128, 128, 128, .4)"
CELL = f"padding: .2em .7em; border-bottom: {LINE}; color: inherit; background: none; text-align:"


def render_html_table(
    title: str, rows: Sequence[Mapping[str, Any]], whole: Mapping[str, Any], shown: Sequence[str]
) -> str:
    """Return a small table with these columns, those of them that there are, of the
    first rows; fields of the whole stand above it, sentences below.
    """
    names = [name for name in shown if any(row.get(name) is not None for row in rows)]
    rest = [name for name in shown if name not in names]
    said = {name: whole[name] for name in rest if whole.get(name) is not None}
    long = [name for name, value in said.items() if len(str(value)) > MIN_LONG_CHARACTERS]
    above = [f"<b>{escape(title)}</b>"]
    above += [_describe_field(name, said[name], "") for name in said if name not in long]
    below = [_describe_field(name, said[name], ":") for name in long]
    if len(rows) > MAX_ROWS_SHOWN:
        below.append(f"These are the first {MAX_ROWS_SHOWN} of {len(rows)} rows.")
    sides = {name: _find_numeric(name, rows) for name in names}
    head = "".join(_render_cell("th", _format_column(name), side) for name, side in sides.items())
    lines = [
        "".join(
            _render_cell("td", _format_value(row.get(name)), side) for name, side in sides.items()
        )
        for row in rows[:MAX_ROWS_SHOWN]
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines if line)
    return (
        '<div style="overflow-x: auto; color: inherit">'
        f"<div>{' · '.join(above)}</div>"
        '<table style="border-collapse: collapse; margin: .4em 0; color: inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{''.join(f'<div>{line}</div>' for line in below)}</div>"
    )


def _describe_field(name: str, value: Any, sign: str) -> str:
    return escape(f"{_format_column(name)}{sign} {_format_value(value)}")


def _format_column(name: str) -> str:
    """Return the name of a column for people."""
    return LETTERS.get(name, name.replace("_", " "))


def _format_value(value: Any) -> str:
    """Return a value for people."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _find_numeric(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the style of a column: numbers stand on the right."""
    texts = any(isinstance(row.get(name), str) for row in rows)
    return "left" if texts else "right"


def _render_cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="{CELL} {side}">{escape(text)}</{tag}>'


# --- how far some work is -------------------------------------------------------------


class Step(Protocol):
    """How far a study is, as `run_study` tells it."""

    cell: str
    done: int
    total: int


class NotebookBar:
    """A progress bar that is called with how much is done, of how much."""

    def __init__(self, title: str, handle: Any = None) -> None:
        self.words, self._handle = title, handle
        self._last, self._lock = 0.0, threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        """Show that so much is done, of so much."""
        now = time.monotonic()
        with self._lock:
            if self._handle is None or (
                now - self._last < SECONDS_BETWEEN_UPDATES and done < total
            ):
                return
            self._last = now
            self._handle.update(self._page(done, total), raw=True)

    def show_work(self, words: str) -> None:
        """Show what is done next."""
        self.words = words

    def show_step(self, step: Step) -> None:
        """Show how far a study is, for `run_study` and `reproduce`."""
        self.words = step.cell
        self(step.done, step.total)

    def _page(self, done: int, total: int) -> dict[str, str]:
        words = f"{self.words}: {done:,} of {total:,}"
        bar = f'<progress value="{int(done)}" max="{int(total)}"></progress>'
        return {"text/html": f"<div>{bar} {escape(words)}</div>", "text/plain": words}


@contextmanager
def notebook_bar(title: str) -> Iterator[NotebookBar]:
    """Yield a progress bar in the output of a notebook's cell, which disappears when
    the work is done; outside a notebook show nothing.

    `with notebook_bar("planning") as bar: plan(…, progress=bar)`; for studies,
    `progress=bar.show_step`.
    """
    if not isinstance(title, str):
        raise InvalidInputError("a bar's title is a text")
    if not _is_in_notebook():
        yield NotebookBar(title)
        return
    from IPython.display import display

    handle = display({"text/plain": title}, raw=True, display_id=True)
    try:
        yield NotebookBar(title, handle)
    finally:
        handle.update({"text/plain": ""}, raw=True)


def _is_in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r")
"""With what a cell begins that a spreadsheet would compute, some by wide signs too."""
INTERVAL_ENDS = ("low", "high")
"""The columns of an interval, after its name."""
Row = dict[str, Any]
"""One value a column."""


class Tabular(ABC):
    """What can be had as a table: a row for each entry of the lists `rows` of
    `to_dict`, then of the lists `more`, which a notebook does not show; and in every
    row what is said of the whole. Where there are several lists, the column `table`
    says of which one it is. Other lists of entries are tables of their own, and left
    out.

    `called` is what the column `name` is called, of an entry and of the whole; `shown`
    are the columns that a notebook shows, those of them that there are; `numbers` those
    that hold numbers, also while none of them is known.
    """

    _rows: ClassVar[list[str]]
    _more: ClassVar[list[str]]
    _called: ClassVar[tuple[str, str]]
    _shown: ClassVar[list[str]]
    _numbers: ClassVar[list[str]]

    def __init_subclass__(
        cls,
        rows: str = "",
        called: tuple[str, str] = ("name", "name"),
        shown: str = "",
        more: str = "",
        numbers: str = "",
    ) -> None:
        """Set the lists and columns, which are names with spaces between them."""
        cls._rows, cls._more, cls._shown = rows.split(), more.split(), shown.split()
        cls._called, cls._numbers = called, numbers.split()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""

    def to_frame(self) -> "pl.DataFrame":
        """Return a polars DataFrame with one value a cell: intervals are two columns,
        `…_low` and `…_high`, and what each arm has is a column for each, counted from
        0.
        """
        rows, whole = self._parts(self._rows + self._more)
        return make_frame([{**row, **whole} for row in rows], numbers=self._numbers)

    def _repr_html_(self) -> str:
        """Return a small table, for a notebook."""
        return render_html_table(type(self).__name__, *self._parts(self._rows), self._shown)

    def _parts(self, lists: list[str]) -> tuple[list[Row], Row]:
        """Return flat rows of these lists, one at least, and what is said of the whole."""
        fields = self.to_dict()
        several = len(self._rows) > 1
        entries = [
            {**({"table": key} if several else {}), **entry}
            for key in lists
            for entry in fields.pop(key, ())
        ]
        own, whole = self._called
        about = {key: value for key, value in fields.items() if not _is_table(value)}
        rows = [_rename(flatten(entry), own) for entry in entries or [{}]]
        said = {key for row in rows for key in row}  # by each for itself, also where by some
        behind = _rename(flatten(about), whole)
        return rows, {key: value for key, value in behind.items() if key not in said}


def _rename(row: Row, name: str) -> Row:
    return {name if key == "name" else key: value for key, value in row.items()}


def _is_table(value: Any) -> bool:
    """Return whether this has rows of its own."""
    inner = value.values() if isinstance(value, Mapping) else value
    listed = isinstance(value, Mapping | list) and len(value) > 0
    return listed and all(isinstance(each, Mapping) for each in inner)


def flatten(fields: Mapping[str, Any]) -> Row:
    """Return one value per column: what is inside a dictionary or a list has the name
    of that before its own name or its place, from 0 on. An interval has two ends, also
    if there is none.
    """
    found: Row = {}
    for key, value in fields.items():
        name = key.replace("-", "_")
        if name.endswith("interval"):
            ends = zip(INTERVAL_ENDS, value or (None, None), strict=True)
            found |= {f"{name}_{end}": each for end, each in ends}
        elif isinstance(value, Mapping):
            found |= {f"{name}_{inner}": each for inner, each in flatten(value).items()}
        elif isinstance(value, list | tuple):
            places = {str(place): each for place, each in enumerate(value)}
            found |= {f"{name}_{inner}": each for inner, each in flatten(places).items()}
        else:
            found[name] = value
    return found


def require_polars() -> None:
    """Refuse to begin work whose result could not be kept, and say what to install."""
    if find_spec("polars") is None:
        raise MissingExtraError("tables and Parquet files need polars: pip install polars")


def make_frame(
    rows: Sequence[Row], columns: Iterable[str] = (), numbers: Sequence[str] = ()
) -> "pl.DataFrame":
    """Make a frame of flat rows, which need not have the same columns; those named here
    are there in any case, also if there is no row. Of `numbers` a column that is empty
    holds numbers, others texts.
    """
    import polars as pl

    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    columns = {name: [row.get(name) for row in rows] for name in names}
    kinds = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}
    return pl.DataFrame(
        [
            pl.Series(name, _is_all(values, kind), dtype=kinds[kind])
            for name, values in columns.items()
            for kind in [_choose_type(values, float if name in numbers else str)]
        ]
    )


def _choose_type(values: Iterable[Any], empty: type) -> type:
    """Return what all values of a column can be; `empty` if it has none."""
    some = [value for value in values if value is not None]
    kinds: dict[type, Any] = {bool: bool, int: int, float: int | float}
    found = (kind for kind, takes in kinds.items() if all(isinstance(one, takes) for one in some))
    return next(found, str) if some else empty


def _is_all(values: Iterable[Any], kind: type) -> list[Any]:
    return [None if value is None else kind(value) for value in values]


# --- CSV ------------------------------------------------------------------------------


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip().startswith(FORMULA_STARTS) else text


def round_noise(value: float) -> float:
    """Return 1898 for 1897.9999999999998: without what computing with 16 digits has
    left, and any other number as it is.
    """
    near = float(f"{value:.15g}")
    return near if len(repr(value)) - len(repr(near)) > 2 else value


def format_csv(frame: "pl.DataFrame") -> str:
    """Return a frame as CSV, in which no text and no column is a formula; TRUE and
    FALSE are written as R and spreadsheets read them, and numbers without the last
    digits' noise.
    """
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    flags = [name for name, kind in frame.schema.items() if kind == pl.Boolean]
    safe = frame.with_columns(
        *(frame[name].map_elements(escape_formula, return_dtype=pl.String) for name in texts),
        *(frame[name].map_elements(round_noise, return_dtype=pl.Float64) for name in floats),
        *(frame[name].cast(pl.String).str.to_uppercase() for name in flags),
    )
    return safe.rename({name: escape_formula(name) for name in safe.columns}).write_csv()


def write_csv(path: str, frame: "pl.DataFrame", private: bool = False) -> None:
    """Write a frame as CSV: all of it or nothing. A `private` file only its owner may
    read.
    """
    write_file(path, format_csv(frame), private=private)
