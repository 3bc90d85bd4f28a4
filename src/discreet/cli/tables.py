"""Files of people and outcomes, as they come from spreadsheets."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from discreet.cli.respond import read_number, read_stdin
from discreet.errors import InvalidInputError
from discreet.validate import named

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol

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
        raise InvalidInputError(f"cannot read {named(path)}: {reason}") from None


def read_outcome(id: str, word: str, protocol: "Protocol", line: int | None = None) -> float:
    """An outcome that the protocol takes; the error says in which line of a file, or
    whose, and never which.
    """
    from discreet.trials.inputs import looks_like_id

    try:
        value = read_number(word)
        protocol.scale.reward(value, protocol.outside)
    except InvalidInputError as error:
        whose = f"of {id}: " if looks_like_id(id) else ""
        whose = whose if line is None else f"line {line}: "
        raise InvalidInputError(f"{whose}{error}; nothing was told") from None
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
                "tab; nothing was told"
            )
        if not _is_outcome(cells[1]):
            titles = ": it must be an id and its outcome, or titles of which the first is id"
            raise InvalidInputError(
                f"line {number} has an outcome that is not a number"
                f"{titles if number <= 2 and not seen else ''}; nothing was told"
            )
        if cells[0] in seen:
            raise InvalidInputError(
                f"line {number} repeats an id: give one outcome for each person; nothing was told"
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
    """What stands between the cells, by the first line that says anything."""
    first = next((line for line in lines if line.strip("\ufeff \r\n")), "").strip("\ufeff \r\n")
    if first.lower().startswith("sep=") and first[4:5] in (*SEPARATORS,):
        return first[4:5]
    return next((sign for sign in ";\t" if sign in first), ",")


def _is_outcome(word: str) -> bool:
    """Whether it may be an outcome: a number, or a randomised response."""
    try:
        float(word)
    except ValueError:
        return "/" in word
    return True
