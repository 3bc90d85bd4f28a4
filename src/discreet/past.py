"""Outcomes of past people, out of a CSV or Parquet file with a row for each person."""

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidInputError
from discreet.validate import check_path, named, quoted
from discreet.words import listed

if TYPE_CHECKING:
    import polars as pl

PARQUET = b"PAR1"
"""How a Parquet file begins."""
SEPARATORS = {";": "semicolons", "\t": "tabs"}
MOST_ARMS = 10
"""More arms than this with hardly two people each are no arms."""
DIGITS = re.compile(r"(\d+(?:\.\d+)?)")
NUMBER = re.compile(r"(?:^|[,;\t\"])\s*[+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+)\s*(?:$|[,;\t\"])")
"""A cell that is nothing but a number: no name of a column, but perhaps an outcome."""


def read_outcomes(path: str | Path, arm: str, outcome: str) -> dict[str, Floats]:
    """The outcomes of each arm by its name, in the order of the names; numbers in names
    count by size.

    Errors name the column and the line of the file (of Parquet the row, from 1), and do
    not repeat what stands there.
    """
    path = check_path("a file", path)
    if not isinstance(arm, str) or not isinstance(outcome, str):
        raise InvalidInputError("arm and outcome must be texts, the names of two columns")
    if arm == outcome:
        raise InvalidInputError("arm and outcome must be two different columns")
    table, where = _table(path, arm, outcome)
    if not table.height:
        raise InvalidInputError(f"{named(path)} has no rows below its header")
    names, values = _names(table[arm], where), _numbers(table[outcome], where)
    found = {name: values[rows] for name, rows in _groups(names).items()}
    if len(found) < 2:
        raise InvalidInputError(
            f"the column {arm!r} names only one arm, {names[0]!r}: data of two or more arms are "
            "needed"
        )
    if len(found) > MOST_ARMS and 2 * len(found) > len(names):
        raise InvalidInputError(
            f"the column {quoted(arm)} names {len(found)} arms in {len(names)} rows, hardly two "
            "people each: is --arm the column of the arm?"
        )
    return found


def _table(path: str | Path, arm: str, outcome: str) -> "tuple[pl.DataFrame, Callable[[int], str]]":
    """The two columns, of a CSV file as text; and how to say where a row is."""
    import polars as pl

    try:
        with Path(path).open("rb") as file:
            parquet = file.read(len(PARQUET)) == PARQUET
        scan = pl.scan_parquet if parquet else partial(pl.scan_csv, infer_schema=False)
        whole = scan(path, glob=False)
        _check_columns(path, whole.collect_schema().names(), arm, outcome)
        table = whole.select(arm, outcome).collect()
        return table, lambda row: f"row {row + 1}" if parquet else _line(path, row)
    except OSError as error:
        raise InvalidInputError(f"cannot read {named(path)}: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        if parquet:
            reason = str(error).strip().splitlines()[0]
            raise InvalidInputError(
                f"{named(path)} cannot be read as a Parquet file: {reason}"
            ) from None
        raise InvalidInputError(
            f"{named(path)} cannot be read: {_cause(path, str(error))}"
        ) from None


def _check_columns(path: str | Path, columns: list[str], arm: str, outcome: str) -> None:
    """Refuse a file without these two columns, or with two of a name."""
    for name in (arm, outcome):
        if f"{name}_duplicated_0" in columns:  # so polars calls the second one
            raise InvalidInputError(
                f"{named(path)} has two columns {quoted(name)}: give each a name of its own"
            )
        if name in columns:
            continue
        for sign, words in SEPARATORS.items():
            if any(sign in column for column in columns):
                raise InvalidInputError(
                    f"{named(path)} has no column {quoted(name)}; it seems to be separated by "
                    f"{words}: save it with commas between columns, and with decimal points in "
                    "numbers"
                )
        if any(NUMBER.search(column) for column in columns):
            raise InvalidInputError(
                f"{named(path)} has no column {quoted(name)}, and its first line contains "
                "numbers: the first line must have the names of the columns"
            )
        raise InvalidInputError(
            f"{named(path)} has no column {quoted(name)}; its columns are {listed(columns)}"
        )


def _cause(path: str | Path, error: str) -> str:
    """Why a CSV file cannot be read, and where; polars' own words repeat what stands
    there.
    """
    try:
        Path(path).read_text("utf-8")
    except UnicodeDecodeError as wrong:
        line = wrong.object[: wrong.start].count(b"\n") + 1
        return f"line {line} has text that is not in UTF-8: save the file as CSV in UTF-8"
    if "empty" in error:
        return "it is empty; its first line must have the names of the columns"
    records = _records(path)
    width = len(next(records, (1, []))[1])
    long = next((line for line, cells in records if len(cells) > width), None)
    if long is not None:
        return (
            f"line {long} has more columns than the {width} of the header: put text with commas "
            "in quotation marks, and write numbers with decimal points"
        )
    return "it is not a CSV file with a header; is a quotation mark left open?"


def _records(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV file as far as it can be read, each with the line on which
    it begins.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader, line = csv.reader(file), 1
        with suppress(csv.Error):
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1


def _line(path: str | Path, row: int) -> str:
    """Where a row below the head is."""
    found = next((line for place, (line, _) in enumerate(_records(path)) if place == row + 1), None)
    return f"row {row + 1} below the header" if found is None else f"line {found} of the file"


def _names(column: "pl.Series", where: Callable[[int], str]) -> list[str]:
    """The name of each person's arm."""
    names = [_name(value) for value in column.to_list()]
    _refuse_rows(column.name, [not name for name in names], "is empty", where)
    return names


def _name(value: Any) -> str:
    """An arm's name; 5.0 is called 5."""
    if value is None:
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value).strip()


def _numbers(column: "pl.Series", where: Callable[[int], str]) -> Floats:
    """Each person's outcome."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.str.strip_chars()
        column = column.set(column == "", None)
    elif not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise InvalidInputError(
            f"the column {column.name!r} must contain numbers, but contains {column.dtype}"
        )
    cast = column.cast(pl.Float64, strict=False)
    wrong = (column.is_not_null() & cast.is_null()).to_list()
    _refuse_rows(column.name, wrong, "is not a number", where)
    empty = (cast.is_null() | cast.is_nan().fill_null(True)).to_list()
    _refuse_rows(column.name, empty, "is empty or NaN", where)
    return np.array(cast.to_numpy(), dtype=np.float64)


def _refuse_rows(column: str, bad: list[bool], what: str, where: Callable[[int], str]) -> None:
    if count := sum(bad):
        raise InvalidInputError(
            f"the column {quoted(column)} {what} in {count} of {len(bad)} rows, first in "
            f"{where(bad.index(True))}: correct or remove these rows"
        )


def _groups(names: list[str]) -> dict[str, "np.ndarray[Any, np.dtype[np.intp]]"]:
    """The rows of each name, in the order of the names."""
    unique, place = np.unique(np.array(names, dtype=object), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place))
    rows = dict(zip(unique.tolist(), np.split(order, ends[:-1]), strict=True))
    return {name: rows[name] for name in sorted(rows, key=_by_size)}


def _by_size(name: str) -> list[tuple[float, str]]:
    """Sorts "5 mg" before "10 mg": numbers in a name count by size, and so does a sign
    at its beginning.
    """
    try:
        return [(float(name), "")]
    except ValueError:
        parts = DIGITS.split(name)
    return [(float(part), "") if odd % 2 else (np.inf, part) for odd, part in enumerate(parts)]
