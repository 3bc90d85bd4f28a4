"""Outcomes of past people, out of a CSV or Parquet file with a row for each person."""

import csv
import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError, TiedBestArmError
from discreet.instances import RESCALE, Instance, choose_names, freeze
from discreet.scale import (
    NUMBERS,
    REFUSE,
    YES_NO,
    Scale,
    check_out_of_range,
    check_range,
    explain_range,
)
from discreet.validation import check_numbers, check_path, name_path, quote
from discreet.wording import join_first

if TYPE_CHECKING:
    import polars as pl


PARQUET_HEADER = b"PAR1"
"""How a Parquet file begins."""
SEPARATORS = {";": "semicolons", "\t": "tabs"}
MAX_ARMS_IN_DATA = 10
"""More arms than this with hardly two people each are no arms."""
DIGITS_PATTERN = re.compile(r"(\d+(?:\.\d+)?)")
NUMBER_PATTERN = re.compile(r"(?:^|[,;\t\"])\s*[+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+)\s*(?:$|[,;\t\"])")
"""A cell that is nothing but a number: no name of a column, but perhaps an outcome."""


def read_past_outcomes(path: str | Path, arm: str, outcome: str) -> dict[str, Floats]:
    """Read the outcomes of each arm by its name, in the order of the names; numbers in
    names count by size.

    Errors name the column and the line of the file (of Parquet the row, from 1), and do
    not repeat what stands there.
    """
    path = check_path("a file", path)
    if not isinstance(arm, str) or not isinstance(outcome, str):
        raise InvalidInputError("arm and outcome must be texts, the names of two columns")
    if arm == outcome:
        raise InvalidInputError("arm and outcome must be two different columns")
    table, where = _read_table(path, arm, outcome)
    if not table.height:
        raise InvalidInputError(f"{name_path(path)} has no rows below its header")
    names, values = _read_names(table[arm], where), _read_numbers(table[outcome], where)
    found = {name: values[rows] for name, rows in _group_rows(names).items()}
    if len(found) < 2:
        raise InvalidInputError(
            f"the column {arm!r} names only one arm, {names[0]!r}: data of two or more arms are "
            "needed"
        )
    if len(found) > MAX_ARMS_IN_DATA and 2 * len(found) > len(names):
        raise InvalidInputError(
            f"the column {quote(arm)} names {len(found)} arms in {len(names)} rows, hardly two "
            "people each: is --arm the column of the arm?"
        )
    return found


def _read_table(
    path: str | Path, arm: str, outcome: str
) -> "tuple[pl.DataFrame, Callable[[int], str]]":
    """Read the two columns, of a CSV file as text, and return how to say where a row
    is.
    """
    import polars as pl

    try:
        with Path(path).open("rb") as file:
            parquet = file.read(len(PARQUET_HEADER)) == PARQUET_HEADER
        scan = pl.scan_parquet if parquet else partial(pl.scan_csv, infer_schema=False)
        whole = scan(path, glob=False)
        _check_columns(path, whole.collect_schema().names(), arm, outcome)
        table = whole.select(arm, outcome).collect()
        return table, lambda row: f"row {row + 1}" if parquet else _find_line(path, row)
    except OSError as error:
        raise InvalidInputError(
            f"cannot read {name_path(path)}: {error.strerror or error}"
        ) from None
    except pl.exceptions.PolarsError as error:
        if parquet:
            reason = str(error).strip().splitlines()[0]
            raise InvalidInputError(
                f"{name_path(path)} cannot be read as a Parquet file: {reason}"
            ) from None
        raise InvalidInputError(
            f"{name_path(path)} cannot be read: {_explain_error(path, str(error))}"
        ) from None


def _check_columns(path: str | Path, columns: list[str], arm: str, outcome: str) -> None:
    """Refuse a file without these two columns, or with two of a name."""
    for name in (arm, outcome):
        if f"{name}_duplicated_0" in columns:  # so polars calls the second one
            raise InvalidInputError(
                f"{name_path(path)} has two columns {quote(name)}: give each a name of its own"
            )
        if name in columns:
            continue
        for sign, words in SEPARATORS.items():
            if any(sign in column for column in columns):
                raise InvalidInputError(
                    f"{name_path(path)} has no column {quote(name)}; it seems to be separated by "
                    f"{words}: save it with commas between columns, and with decimal points in "
                    "numbers"
                )
        if any(NUMBER_PATTERN.search(column) for column in columns):
            raise InvalidInputError(
                f"{name_path(path)} has no column {quote(name)}, and its first line contains "
                "numbers: the first line must have the names of the columns"
            )
        raise InvalidInputError(
            f"{name_path(path)} has no column {quote(name)}; its columns are {join_first(columns)}"
        )


def _explain_error(path: str | Path, error: str) -> str:
    """Return why a CSV file cannot be read, and where; polars' own words repeat what
    stands there.
    """
    try:
        Path(path).read_text("utf-8")
    except UnicodeDecodeError as wrong:
        line = wrong.object[: wrong.start].count(b"\n") + 1
        return f"line {line} has text that is not in UTF-8: save the file as CSV in UTF-8"
    if "empty" in error:
        return "it is empty; its first line must have the names of the columns"
    records = _read_records(path)
    width = len(next(records, (1, []))[1])
    long = next((line for line, cells in records if len(cells) > width), None)
    if long is not None:
        return (
            f"line {long} has more columns than the {width} of the header: put text with commas "
            "in quotation marks, and write numbers with decimal points"
        )
    return "it is not a CSV file with a header; is a quotation mark left open?"


def _read_records(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file as far as it can be read, each with the line on
    which it begins.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader, line = csv.reader(file), 1
        with suppress(csv.Error):
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1


def _find_line(path: str | Path, row: int) -> str:
    """Return where a row below the head is."""
    found = next(
        (line for place, (line, _) in enumerate(_read_records(path)) if place == row + 1), None
    )
    return f"row {row + 1} below the header" if found is None else f"line {found} of the file"


def _read_names(column: "pl.Series", where: Callable[[int], str]) -> list[str]:
    """Return the name of each participant's arm."""
    names = [_read_name(value) for value in column.to_list()]
    _refuse_rows(column.name, [not name for name in names], "is empty", where)
    return names


def _read_name(value: Any) -> str:
    """Return an arm's name; 5.0 is called 5."""
    if value is None:
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value).strip()


def _read_numbers(column: "pl.Series", where: Callable[[int], str]) -> Floats:
    """Return each participant's outcome."""
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
            f"the column {quote(column)} {what} in {count} of {len(bad)} rows, first in "
            f"{where(bad.index(True))}: correct or remove these rows"
        )


def _group_rows(names: list[str]) -> dict[str, "np.ndarray[Any, np.dtype[np.intp]]"]:
    """Return the rows of each name, in the order of the names."""
    unique, place = np.unique(np.array(names, dtype=object), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place))
    rows = dict(zip(unique.tolist(), np.split(order, ends[:-1]), strict=True))
    return {name: rows[name] for name in sorted(rows, key=_make_sort_key)}


def _make_sort_key(name: str) -> list[tuple[float, str]]:
    """Return a key that sorts "5 mg" before "10 mg": numbers in a name count by size,
    and so does a sign at its beginning.
    """
    try:
        return [(float(name), "")]
    except ValueError:
        parts = DIGITS_PATTERN.split(name)
    return [(float(part), "") if odd % 2 else (np.inf, part) for odd, part in enumerate(parts)]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Sampled(Instance):
    """Arms given by data: arm a pays one of `rewards[a]`, each as likely as the
    others.

    What is simulated is a trial among people like those in the data. The data itself
    is part of the instance: `to_dict`, and what `Results.save` writes, hold it in full.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    flat: Floats
    """The rewards of all arms, one arm after the other."""
    starts: tuple[int, ...]
    """Where each arm begins in `flat`, and where the last one ends."""
    scale: Scale | None
    """In which units the outcomes were, if known: not part of what is drawn."""
    clipped: int
    """How many outcomes lay outside the range and count as an end of it."""
    _digest: bytes = field(repr=False)

    def __init__(self, rewards: Sequence[ArrayLike], names: Sequence[str] | None = None) -> None:
        """Take a list of rewards in [0, 1] for each arm; the lists may differ in
        length.
        """
        if not isinstance(rewards, Sequence | np.ndarray) or isinstance(rewards, str | bytes):
            raise InvalidInputError("rewards must be a list of lists, one for each arm")
        arms = [_check_rewards(values, arm) for arm, values in enumerate(rewards, 1)]
        if len(arms) < 2:
            raise InvalidInputError(f"data of at least 2 arms are needed; got {len(arms)}")
        flat = np.concatenate(arms)
        flat.flags.writeable = False
        starts = (0, *np.cumsum([len(arm) for arm in arms]).tolist())
        known = choose_names(_check_names(names), len(arms))
        digest = hashlib.sha256(repr((known, starts)).encode() + flat.tobytes()).digest()
        means = tuple(_compute_mean(arm) for arm in arms)
        freeze(self, names=known, means=means, flat=flat, starts=starts)
        freeze(self, scale=None, clipped=0, _digest=digest)

    @staticmethod
    def from_outcomes(
        outcomes: Mapping[str, ArrayLike],
        range: tuple[float, float] | None = None,
        direction: str = "max",
        out_of_range: str = REFUSE,
    ) -> "Sampled":
        """Make arms by name, each with its outcomes in the experimenter's units.

        `range` is the smallest and the largest outcome there can be in the trial, and
        may be left out if all outcomes lie in [0, 1]; `direction` says whether more is
        better (`max`) or less (`min`). An outcome outside the range is refused, or with
        `out_of_range="clip"` counts as the nearer end.
        """
        check_out_of_range(out_of_range)
        values = _check_outcomes(outcomes)
        every = np.concatenate(list(values.values()))
        scale = Scale(
            *(_choose_unit_range(every) if range is None else check_range(range)), direction
        )
        ends = np.cumsum([len(some) for some in values.values()])
        made = Sampled(
            np.split(scale.convert_to_rewards(every, out_of_range), ends[:-1]), list(values)
        )
        freeze(made, scale=scale, clipped=scale.count_outside(every))
        return made

    @staticmethod
    def read(
        path: str | Path,
        arm: str,
        outcome: str,
        range: tuple[float, float] | None = None,
        direction: str = "max",
        out_of_range: str = REFUSE,
    ) -> "Sampled":
        """Read arms from a CSV or Parquet file with a row for each person: the column
        `arm` names the arm, the column `outcome` has the outcome.

        Arms are in the order of their names; numbers in names are sorted by size ("5
        mg" before "10 mg"). The other options are those of `Sampled.from_outcomes`.
        """
        check_out_of_range(out_of_range)
        return Sampled.from_outcomes(
            read_past_outcomes(path, arm, outcome), range, direction, out_of_range
        )

    @cached_property
    def rewards(self) -> tuple[Floats, ...]:
        """The rewards of each arm."""
        return tuple(self.flat[first:end] for first, end in pairwise(self.starts))

    @property
    def best(self) -> int:
        """See `Instance.best`; in data, ties have their own causes."""
        if self.is_unique:
            return super().best
        top = max(self.means)
        tied = [name for name, mean in zip(self.names, self.means, strict=True) if mean == top]
        lie, count = ("lies", "counts") if self.clipped == 1 else ("lie", "count")
        cause = (
            f"{self.clipped} of {len(self.flat)} outcomes {lie} outside the range and {count} as "
            "the nearer end, which can make arms look alike: give a wider range; or "
            if self.clipped
            else ""
        )
        raise TiedBestArmError(
            f"the past outcomes of {join_first(tied, 5)} have the same mean, so a plan has no best "
            f"arm: {cause}leave out all but one of them, or give bet-se an indifference zone, a "
            "difference too small to matter (--indifference-zone)"
        )

    @property
    def width(self) -> float | None:
        """The width of the range of outcomes, in their units, if these are known."""
        return None if self.scale is None else self.scale.high - self.scale.low

    @property
    def counts(self) -> tuple[int, ...]:
        """How many outcomes each arm has."""
        return tuple(len(arm) for arm in self.rewards)

    @property
    def outcomes(self) -> str:
        """`yes-no` if there is nothing but 0 and 1, else `numbers`."""
        return YES_NO if np.isin(self.flat, (0.0, 1.0)).all() else NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`; all rewards are written out."""
        rewards = [arm.tolist() for arm in self.rewards]
        return {"law": "sampled", "rewards": rewards, "names": list(self.names)}

    def describe(self) -> dict[str, Any]:
        """Return how many outcomes each arm has, and their mean; not the data."""
        return {
            "law": "sampled",
            "names": list(self.names),
            "means": list(self.means),
            "counts": list(self.counts),
        }

    def __eq__(self, other: object) -> bool:
        """Return whether names and rewards are equal, in this order."""
        return isinstance(other, Sampled) and self._digest == other._digest

    def __hash__(self) -> int:
        """Return a hash of the names and rewards."""
        return hash(self._digest)

    def __repr__(self) -> str:
        """Return names, and how many rewards there are of each."""
        counts = zip(self.names, self.counts, strict=True)
        return f"Sampled({', '.join(f'{name}: {count} rewards' for name, count in counts)})"


def _compute_mean(values: Floats) -> float:
    """Return the mean to fifteen digits: means that differ by rounding only are the
    same.
    """
    return float(f"{math.fsum(values) / len(values):.15g}")


def _check_rewards(values: ArrayLike, arm: int) -> Floats:
    found = _check_numbers(f"arm {arm}", values)
    if ((found < 0) | (found > 1)).any():
        raise InvalidInputError(f"a reward of arm {arm} lies outside [0, 1]; {RESCALE}")
    return found


def _check_numbers(name: str, values: ArrayLike) -> Floats:
    """Return the outcomes of an arm as an array of their own."""
    array = check_numbers(f"the data of {name}", values)
    if array.ndim != 1 or not len(array):
        raise InvalidInputError(f"the data of {name} must be a flat list of at least one number")
    if np.isnan(array).any():
        raise InvalidInputError(f"the data of {name} contains NaN: leave these people out")
    return array


def _check_outcomes(outcomes: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the outcomes of two arms or more, or refuse them."""
    if not isinstance(outcomes, Mapping):
        raise InvalidInputError(
            'outcomes must be a dictionary from each arm to its outcomes: {"a": [3, 8], "b": [5]}'
        )
    if len(outcomes) < 2:
        raise InvalidInputError(f"data of at least 2 arms are needed; got {len(outcomes)}")
    _check_names(list(outcomes))
    return {name: _check_numbers(name, given) for name, given in outcomes.items()}


def _check_names(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names, if these are text."""
    known: Any = names
    if names is None or isinstance(names, str):
        return names
    if not isinstance(known, Sequence) or not all(isinstance(name, str) for name in known):
        raise InvalidInputError('names of arms must be texts: write "1" for an arm called 1')
    return names


def _choose_unit_range(every: Floats) -> tuple[float, float]:
    """Return (0, 1) if all outcomes lie in it; else say what to do."""
    if ((every >= 0) & (every <= 1)).all():
        return 0.0, 1.0
    raise InvalidInputError(explain_range(every))
