"""The document model: a report is a `Document` of titled sections of text, tables and
figures.

Builders write each sentence and each table once. `discreet.reports.html` renders a
document as a page, `discreet.reports.terminal` as text.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Note:
    """A remark on how to read the part above it, in smaller letters."""

    text: str


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Quote:
    """A passage that may be quoted word by word."""

    text: str


@dataclass(frozen=True)
class List:
    """A list of sentences."""

    items: Sequence[str]


@dataclass(frozen=True)
class Verdict:
    """A sentence with a short mark before it and details below it."""

    mark: str
    text: str
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Verdicts:
    """A list of verdicts."""

    items: Sequence[Verdict]


@dataclass(frozen=True)
class Definitions:
    """A list of terms with a sentence each."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head. The first column is left-aligned, numbers are
    right-aligned.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: Collection[str] = ()
    """Heads of columns of text, which are left-aligned and broken into lines. A column
    with a long cell is one of them.
    """
    optional: Sequence[str] = ()
    """Heads of columns that a narrow terminal leaves out, the least important first."""


@dataclass(frozen=True)
class Box:
    """A box of a flow diagram."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class FlowDiagram:
    """A flow diagram: levels of boxes from the top."""

    description: str
    levels: Sequence[Sequence[Box]]


@dataclass(frozen=True)
class Figure:
    """A chart. It is drawn when a page is rendered; a terminal shows none."""

    draw: Callable[[], bytes]
    """Returns an SVG."""
    description: str
    """What the chart shows, for readers who cannot see it."""
    caption: str = ""


@dataclass(frozen=True)
class FigureRow:
    """Figures side by side if there is room."""

    items: Sequence[Figure]


Part = (
    Paragraph
    | Note
    | Heading
    | Quote
    | List
    | Verdicts
    | Definitions
    | Table
    | FlowDiagram
    | Figure
    | FigureRow
)


@dataclass(frozen=True)
class Section:
    """A titled part of a document; without a title it goes on with the one before."""

    title: str
    parts: Sequence[Part] = field(default_factory=tuple)


@dataclass(frozen=True)
class Document:
    """A report."""

    title: str
    sections: Sequence[Section]
    lead: str = ""
