"""Print documents, tables and sentences in a terminal."""

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import rich.table
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, JustifyMethod
from rich.padding import Padding

from discreet.reports.document import (
    Definitions,
    Document,
    Figure,
    FigureRow,
    FlowDiagram,
    Heading,
    List,
    Note,
    Paragraph,
    Part,
    Quote,
    Table,
    Verdicts,
)
from discreet.reports.html import lay_out_table

MIN_HEAD = 8
"""Characters from which the head of a column is broken into lines."""
NARROWEST = 64
"""Columns below which numbers would be cut."""
MAX_TERM = 24
"""Most columns of a term before its definition."""


def make_console() -> Console:
    """Return a console for plain text on stdout, wide enough that no number is cut."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, NARROWEST)
    return console


def render(document: Document) -> None:
    """Print a document without its figures."""
    console = make_console()
    if document.title:
        console.print(f"{document.title}\n{'═' * min(len(document.title), console.width)}")
    if document.lead:
        console.print(document.lead)
    for section in document.sections:
        parts = [part for part in section.parts if not isinstance(part, Figure | FigureRow)]
        if section.title and parts:
            console.print(f"\n{section.title}\n{'─' * min(len(section.title), console.width)}")
        for part in parts:
            _print_part(part, console)


def _print_part(part: Part, console: Console) -> None:
    match part:
        case Paragraph() | Note():
            console.print(part.text)
        case Heading():
            console.print(f"\n{part.text}")
        case Quote():
            console.print(Padding(part.text, (0, 0, 0, 2)))
        case List():
            _print_pairs([("-", item) for item in part.items], console)
        case Verdicts():
            for item in part.items:
                console.print(f"[{item.mark}] {item.text}")
                _print_pairs([("  -", words) for words in item.details], console)
        case Definitions():
            _print_pairs([(f"{term}:", text) for term, text in part.items], console)
        case FlowDiagram():
            for number, level in enumerate(part.levels):
                boxes = [f"{box.title}: {'; '.join(box.lines)}" for box in level]
                _print_pairs([("↓" if number else " ", box) for box in boxes], console)
        case Table():
            print_table(part, console)


def _print_pairs(pairs: Iterable[tuple[str, str]], console: Console) -> None:
    """Print a short text and a long one in each row, the long one broken into lines.

    A word longer than a line, as a path is, is neither cut nor broken.
    """
    pairs = list(pairs)
    width = min(MAX_TERM, max((cell_len(short) for short, _ in pairs), default=0))
    for short, long in pairs:
        terms = textwrap.wrap(short, width) or [""]
        lines = _break_lines(long, console.width - width - 1)
        for term, line in zip_longest(terms, lines, fillvalue=""):
            console.print(f"{set_cell_size(term, width)} {line}".rstrip(), soft_wrap=True)


def _break_lines(text: str, width: int) -> list[str]:
    """Return the lines of a text; a word longer than a line stays whole."""
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return [line for part in text.split("\n") for line in wrapper.wrap(part) or [""]]


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table. Columns that are `optional` are left out if there is no room for
    them; a line below the table names them.
    """
    console = console or make_console()
    text = lay_out_table(table).columns
    columns = [
        (head, [row[place] for row in table.rows], is_text)
        for place, (head, is_text) in enumerate(zip(table.head, text, strict=True))
    ]
    left_out = list[str]()
    for head in table.optional:
        if sum(_column_width(*column) for column in columns) + 2 <= console.width:
            break
        if head in [column[0] for column in columns[1:]]:
            columns = [columns[0], *(column for column in columns[1:] if column[0] != head)]
            left_out.insert(0, head)
    if table.caption:
        console.print(f"\n{table.caption}")
    shown = rich.table.Table(box=box.SIMPLE_HEAD)
    for place, (head, cells, is_text) in enumerate(columns):
        written = "".join(cells)
        plain = (
            place == 0 or is_text or (not re.search(r"\d", written) and re.search(r"\w", written))
        )
        width = max(MIN_HEAD, *map(len, [*cells, *head.split()]))
        title = head if is_text else textwrap.fill(head, width)
        justify: JustifyMethod = "left" if plain else "right"
        shown.add_column(title, justify=justify, no_wrap=not plain, overflow="fold")
    for row in zip(*(cells for _, cells, _ in columns), strict=True):
        shown.add_row(*row)
    console.print(shown)
    if left_out:
        console.print(f"For lack of room without: {', '.join(left_out)}.")


def _column_width(head: str, cells: Sequence[str], is_text: bool) -> int:
    """Return the least number of characters that a column takes with its border."""
    words = head.split() if is_text else [*cells, *head.split()]
    return max(min(len(head), MIN_HEAD), *map(len, words)) + 3


def say(words: str, wrap: bool = True) -> None:
    """Print words, broken into lines that fit unless `wrap` is false."""
    make_console().print(words, soft_wrap=not wrap)
