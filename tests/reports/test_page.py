"""One self-contained page: everything escaped, nothing active, nothing from
elsewhere.
"""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from discreet import InvalidInputError
from discreet.files import write_file
from discreet.reports import charts
from discreet.reports.document import (
    Document,
    Figure,
    FigureRow,
    Heading,
    List,
    Paragraph,
    Part,
    Section,
    Table,
    Verdict,
    Verdicts,
)
from discreet.reports.html import render

EVIL = "<script>alert('x')</script> & \"more\""
DRAWING = (
    b"<?xml version='1.0'?><svg viewBox='0 0 1 1'><defs><path id=\"a\" d='M0 0'/></defs>"
    b'<use href="#a"/></svg>'
)


class Balanced(HTMLParser):
    """Counts the tags, and keeps every id and every address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        self.note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def note(self, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            assert not key.startswith("on")
            if key == "id":
                self.ids.append(value or "")
            if key in ("href", "src", "xlink:href"):
                self.addresses.append(value or "")


def read(document: str) -> Balanced:
    parser = Balanced()
    parser.feed(document)
    parser.close()
    assert not parser.open
    return parser


def everything() -> list[Section]:
    parts: list[Part] = [
        Paragraph(EVIL),
        Heading(EVIL),
        List([EVIL]),
        Verdicts([Verdict(EVIL, EVIL, [EVIL]), Verdict("a", "b")]),
    ]
    parts += [
        Table([EVIL, "n"], [[EVIL, "1"]], EVIL),
        Figure(lambda: DRAWING, EVIL, EVIL),
        FigureRow([Figure(lambda: DRAWING, "d")]),
    ]
    return [Section(EVIL, parts), Section("two"), Section("three")]


def test_everything_is_escaped() -> None:
    document = render(Document(EVIL, everything(), EVIL))
    found = read(document)
    assert "script" not in found.tags
    assert "<script" not in document
    assert document.count("&lt;script&gt;") > 10


def test_nothing_comes_from_elsewhere_and_ids_are_unique() -> None:
    found = read(render(Document("t", everything())))
    assert len(set(found.ids)) == len(found.ids)
    assert all(address.startswith("#") for address in found.addresses)
    assert {address[1:] for address in found.addresses} <= set(found.ids)


def test_a_picture_of_ours_fits() -> None:
    data = charts.Distribution(("a",), (np.array([1.0, 2.0]),), (2,))
    svg = charts.render(charts.draw_distribution(data))
    figures = [Figure(lambda: svg, "what it shows"), Figure(lambda: svg, "again")]
    document = render(Document("t", [Section("s", figures)]))
    found = read(document)
    assert len(set(found.ids)) == len(found.ids)
    assert all(address.startswith("#") for address in found.addresses)
    assert not re.search(r"(src|href)=.https?:", document)
    assert 'aria-label="what it shows"' in document
    assert "<metadata" not in document


@pytest.mark.parametrize(
    "svg",
    [
        b"no drawing",
        b"<svg><script>1</script></svg>",
        b"<svg onload='x()'></svg>",
        b"<svg><image href='data:x'/></svg>",
        b"<svg><use href='https://example.org/x.svg#a'/></svg>",
        b"<svg><foreignObject/></svg>",
        b"<svg><style>@import 'x'</style></svg>",
    ],
)
def test_pictures_only_draw(svg: bytes) -> None:
    with pytest.raises(InvalidInputError, match="only draws"):
        render(Document("t", [Section("s", [Figure(lambda: svg, "d")])]))


def test_write_is_whole_or_not_at_all(tmp_path: Path) -> None:
    write_file(tmp_path / "a.html", "ä")
    assert (tmp_path / "a.html").read_bytes() == "ä".encode()
    write_file(tmp_path / "a.html", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(InvalidInputError, match="cannot write"):
        write_file(tmp_path / "no" / "a.html", "x")
