"""Tables for other programs: frames whose cells hold one value each, and CSV that no
spreadsheet computes with.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import MissingExtraError
from discreet.files import write
from discreet.notebook import html_table

if TYPE_CHECKING:
    import polars as pl

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r")
"""With what a cell begins that a spreadsheet would compute, some by wide signs too."""
ENDS = ("low", "high")
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
        """Lists and columns are names with spaces between them."""
        cls._rows, cls._more, cls._shown = rows.split(), more.split(), shown.split()
        cls._called, cls._numbers = called, numbers.split()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain types."""

    def to_frame(self) -> "pl.DataFrame":
        """A polars DataFrame with one value a cell: intervals are two columns, `…_low`
        and `…_high`, and what each arm has is a column for each, counted from 0.
        """
        rows, whole = self._parts(self._rows + self._more)
        return frame_of([{**row, **whole} for row in rows], numbers=self._numbers)

    def _repr_html_(self) -> str:
        """A small table, for a notebook."""
        return html_table(type(self).__name__, *self._parts(self._rows), self._shown)

    def _parts(self, lists: list[str]) -> tuple[list[Row], Row]:
        """Flat rows of these lists, one at least, and what is said of the whole."""
        fields = self.to_dict()
        several = len(self._rows) > 1
        entries = [
            {**({"table": key} if several else {}), **entry}
            for key in lists
            for entry in fields.pop(key, ())
        ]
        own, whole = self._called
        about = {key: value for key, value in fields.items() if not _is_table(value)}
        rows = [_renamed(flat(entry), own) for entry in entries or [{}]]
        said = {key for row in rows for key in row}  # by each for itself, also where by some
        behind = _renamed(flat(about), whole)
        return rows, {key: value for key, value in behind.items() if key not in said}


def _renamed(row: Row, name: str) -> Row:
    return {name if key == "name" else key: value for key, value in row.items()}


def _is_table(value: Any) -> bool:
    """Whether this has rows of its own."""
    inner = value.values() if isinstance(value, Mapping) else value
    listed = isinstance(value, Mapping | list) and len(value) > 0
    return listed and all(isinstance(each, Mapping) for each in inner)


def flat(fields: Mapping[str, Any]) -> Row:
    """One value a column: what is inside a dictionary or a list has the name of that
    before its own name or its place, from 0 on. An interval has two ends, also where
    there is none.
    """
    found: Row = {}
    for key, value in fields.items():
        name = key.replace("-", "_")
        if name.endswith("interval"):
            ends = zip(ENDS, value or (None, None), strict=True)
            found |= {f"{name}_{end}": each for end, each in ends}
        elif isinstance(value, Mapping):
            found |= {f"{name}_{inner}": each for inner, each in flat(value).items()}
        elif isinstance(value, list | tuple):
            places = {str(place): each for place, each in enumerate(value)}
            found |= {f"{name}_{inner}": each for inner, each in flat(places).items()}
        else:
            found[name] = value
    return found


def require_polars() -> None:
    """Say what to install, before work is done whose result could not be kept."""
    if find_spec("polars") is None:
        raise MissingExtraError("tables and Parquet files need polars: pip install polars")


def frame_of(
    rows: Sequence[Row], columns: Iterable[str] = (), numbers: Sequence[str] = ()
) -> "pl.DataFrame":
    """A frame of flat rows, which need not have the same columns; those named here are
    there in any case, also where there is no row. Of `numbers` a column that is empty
    holds numbers, others texts.
    """
    import polars as pl

    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    columns = {name: [row.get(name) for row in rows] for name in names}
    kinds = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}
    return pl.DataFrame(
        [
            pl.Series(name, _alike(values, kind), dtype=kinds[kind])
            for name, values in columns.items()
            for kind in [_kind(values, float if name in numbers else str)]
        ]
    )


def _kind(values: Iterable[Any], empty: type) -> type:
    """What all values of a column can be; `empty` if it has none."""
    some = [value for value in values if value is not None]
    kinds: dict[type, Any] = {bool: bool, int: int, float: int | float}
    found = (kind for kind, takes in kinds.items() if all(isinstance(one, takes) for one in some))
    return next(found, str) if some else empty


def _alike(values: Iterable[Any], kind: type) -> list[Any]:
    return [None if value is None else kind(value) for value in values]


# --- CSV ------------------------------------------------------------------------------


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def plain_number(value: float) -> float:
    """1898 for 1897.9999999999998: without what computing with 16 digits has left, and
    any other number as it is.
    """
    near = float(f"{value:.15g}")
    return near if len(repr(value)) - len(repr(near)) > 2 else value


def csv_text(frame: "pl.DataFrame") -> str:
    """A frame as CSV, where no text and no column is a formula; TRUE and FALSE are
    written as R and spreadsheets read them, and numbers without the last digits' noise.
    """
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    flags = [name for name, kind in frame.schema.items() if kind == pl.Boolean]
    safe = frame.with_columns(
        *(frame[name].map_elements(cell, return_dtype=pl.String) for name in texts),
        *(frame[name].map_elements(plain_number, return_dtype=pl.Float64) for name in floats),
        *(frame[name].cast(pl.String).str.to_uppercase() for name in flags),
    )
    return safe.rename({name: cell(name) for name in safe.columns}).write_csv()


def write_csv(path: str, frame: "pl.DataFrame", private: bool = False) -> None:
    """Write a frame as CSV: all of it or nothing. A `private` file only its owner may
    read.
    """
    write(path, csv_text(frame), private=private)
