"""One self-contained HTML page from titled sections of text, tables and figures.

No network, no script: styles and pictures (SVG) stand in the page itself. It reads well
on a phone and prints well. Whatever comes in is text and is escaped; only a `Picture`
brings markup, and that is checked to be an SVG that draws and does nothing else.
"""

import html
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

from discreet.errors import InvalidInputError
from discreet.version import __version__

STYLE = """
:root{--ink:#111;--soft:#555;--line:#ccc;--back:#fff;color-scheme:light}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0 auto;
padding:1rem;max-width:66rem;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.2}
h2{font-size:1.3rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:.7rem}
h3{font-size:1.05rem;margin-bottom:.3rem}p,li{max-width:46rem}a{color:#0b4f8a}
nav ul{columns:14rem;column-gap:2rem;padding-left:1.2rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1rem}
figure{margin:.4rem 0}figure svg{width:100%;height:auto;max-width:30rem;display:block}
figcaption{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.82rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.3rem 0;max-width:min(46rem,100vw - 2rem)}
th,td{padding:.18rem .45rem;text-align:right;border-bottom:1px solid #e6e6e6;white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0;position:sticky;left:0;background:var(--back)}
table.names td:first-child{white-space:normal;min-width:6.5rem;max-width:min(20rem,40vw);
overflow-wrap:anywhere}
td{vertical-align:top}
th.words,td.words{white-space:normal;text-align:left;min-width:8rem;max-width:34rem;overflow-wrap:anywhere}
thead th{border-bottom:1px solid var(--ink);vertical-align:bottom;white-space:normal}
dt{margin-top:.9rem;font-weight:600}dd{margin:0 0 0 1rem}dd ul{margin:.2rem 0;padding-left:1rem}
.mark{border:1px solid;border-radius:3px;padding:0 .35rem;font-size:.8rem;white-space:nowrap}
blockquote{margin:.3rem 0 1rem;padding:.2rem 0 .2rem .9rem;border-left:3px solid var(--line);
max-width:46rem}
.facts div{display:grid;grid-template-columns:minmax(9rem,13rem) 1fr;gap:0 1rem;padding:.25rem 0;
border-bottom:1px solid #e6e6e6;max-width:52rem}
.facts dt,.facts dd{margin:0;text-align:left;overflow-wrap:anywhere;min-width:0}
.flow{max-width:52rem;margin:.6rem 0}.arrow{text-align:center;line-height:1.4}
.level{display:flex;flex-wrap:wrap;justify-content:center;gap:.5rem}
.box{border:1px solid var(--ink);border-radius:3px;padding:.4rem .6rem;font-size:.85rem;
max-width:28rem;min-width:min(100%,10rem);overflow-wrap:anywhere}
@media(max-width:36rem){.facts div{grid-template-columns:1fr}.box{flex:1 1 100%}
table{font-size:.75rem}th,td{padding:.18rem;white-space:normal}
th.words,td.words{min-width:5rem}table.names td:first-child{min-width:4.5rem;max-width:30vw}}
footer{margin-top:3rem;color:var(--soft);font-size:.85rem}
@media print{body{font-size:10pt;max-width:none;padding:0}
figure,tr,h3,p,dt,li,caption,blockquote,.flow,.facts div{break-inside:avoid}
h2,h3,h2+p,caption,thead{break-after:avoid}
.figures{grid-template-columns:1fr 1fr}figure{margin:.5rem 0 .6rem}
.scroll{overflow:visible}nav{display:none}
table{font-size:8.5pt}table.wide{font-size:6.5pt}th,td{padding:.1rem .3rem}
figure svg{width:auto;max-width:100%;max-height:8.5in}a{color:inherit;text-decoration:none}}
"""
WIDE = 90
"""Characters in a row from which a table is printed small, to fit on paper."""
LONG = 60
"""Characters in a cell from which its column is words, which are broken into lines."""
BROKEN = 25
"""Characters of such a column that are wide enough for its lines on paper."""
FIRST = 36
"""Characters of the first column, which is broken into lines too."""
SHORT = 12
"""Characters of a first column that is not broken into lines."""
SCROLLS = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
"""A table that is wider than the page can be moved by keyboard."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
FROM_THE_RIGHT = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe][^,;:()]*)(?=[,;:()])")
"""A name written from right to left, up to where a list or a sentence goes on."""
STAYS = "\u00a0"
"""A space at which no line is broken."""
LEFT_TO_RIGHT = "\u200e"
"""Keeps what follows such a name on its right: the next name, a number in brackets."""
ACTIVE = {"script", "foreignobject", "iframe", "object", "embed", "image", "a"}
"""Elements that do more than draw."""
LEADS_OUT = re.compile(r"javascript:|@import|url\((?!#)", re.IGNORECASE)
ASIDE = re.compile(rb"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
"""What matplotlib says about itself and its texts in a picture; it holds links and
names, and is left out.
"""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[str]


@dataclass(frozen=True)
class Point:
    """A sentence with a short mark before it (a verdict, say) and details under it."""

    mark: str
    words: str
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Points:
    """Sentences with marks and details."""

    items: Sequence[Point]


@dataclass(frozen=True)
class Heading:
    """A small heading inside a section."""

    words: str


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the first column is left-aligned, numbers to the
    right.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: Collection[str] = ()
    """Heads of columns of words: left-aligned, and broken into lines; so is every
    column with a long cell.
    """


@dataclass(frozen=True)
class Facts:
    """A list of what is what: a name and a sentence each."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Quote:
    """A passage that may be taken over word by word."""

    words: str


@dataclass(frozen=True)
class Box:
    """A box of a flow diagram."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Flow:
    """A flow diagram: levels of boxes from the top, made of text that wraps."""

    description: str
    levels: Sequence[Sequence[Box]]


@dataclass(frozen=True)
class Picture:
    """An SVG drawing, and what it shows in words for those who cannot see it."""

    svg: bytes
    description: str
    caption: str = ""


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room."""

    items: Sequence[Picture]


Plain = Text | Bullets | Points | Heading | Table | Facts | Quote | Flow
Part = Plain | Picture | Pictures


@dataclass(frozen=True)
class Section:
    """A titled part of a report."""

    title: str
    parts: Sequence[Part] = field(default_factory=tuple)


def page(title: str, sections: Sequence[Section], lead: str = "", language: str = "en") -> str:
    """The whole page as a string."""
    links = "".join(
        f'<li><a href="#s{number}">{_text(section.title)}</a></li>'
        for number, section in enumerate(sections, 1)
    )
    body = fragment(sections)
    contents = f"<nav><ul>{links}</ul></nav>" if len(sections) > 2 else ""
    opening = f"<p>{_text(lead)}</p>" if lead else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{_text(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>\n<body><header><h1>{_text(title)}</h1>"
        f"{opening}{contents}</header>\n<main>{body}</main>\n<footer>Made by discreet "
        f"{_text(__version__)}. This page is one file and needs no network.</footer>"
        "</body></html>\n"
    )


def fragment(sections: Sequence[Section]) -> str:
    """The sections alone, to stand on a page of somebody else's."""
    counter = _Counter()
    return "".join(
        f'<section><h2 id="s{number}">{_text(section.title)}</h2>'
        + "".join(_part(part, counter) for part in section.parts)
        + "</section>\n"
        for number, section in enumerate(sections, 1)
    )


class _Counter:
    """Numbers the pictures of a page, so that their inner names differ."""

    value = 0

    def next(self) -> int:
        self.value += 1
        return self.value


def _text(words: str) -> str:
    return html.escape(FROM_THE_RIGHT.sub(rf"\1{LEFT_TO_RIGHT}", words), quote=True)


def _part(part: Part, counter: _Counter) -> str:
    if isinstance(part, Picture):
        return _picture(part, counter)
    if isinstance(part, Pictures):
        return (
            '<div class="figures">'
            + "".join(_picture(item, counter) for item in part.items)
            + "</div>"
        )
    return _words(part)


def _words(part: Plain) -> str:
    if isinstance(part, Text | Heading | Quote):
        tag = {Text: "p", Heading: "h3", Quote: "blockquote"}[type(part)]
        return f"<{tag}>{_text(part.words)}</{tag}>"
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Bullets):
        return _bullets(part.items)
    if isinstance(part, Points):
        return "<dl>" + "".join(_point(item) for item in part.items) + "</dl>"
    return _flow(part) if isinstance(part, Flow) else _facts(part)


def _facts(facts: Facts) -> str:
    items = (f"<dt>{_text(name)}</dt><dd>{_text(words)}</dd>" for name, words in facts.items)
    return '<dl class="facts">' + "".join(f"<div>{item}</div>" for item in items) + "</dl>"


def _bullets(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"


def _point(point: Point) -> str:
    details = f"<dd>{_bullets(point.details)}</dd>" if point.details else ""
    return f'<dt><span class="mark">{_text(point.mark)}</span> {_text(point.words)}</dt>{details}'


def _flow(flow: Flow) -> str:
    arrow = '<div class="arrow" aria-hidden="true">↓</div>'
    levels = [
        '<div class="level">' + "".join(_box(box) for box in level) + "</div>"
        for level in flow.levels
    ]
    label = _text(flow.description)
    return f'<div class="flow" role="group" aria-label="{label}">{arrow.join(levels)}</div>'


def _box(box: Box) -> str:
    lines = "".join(f"<br>{_text(line)}" for line in box.lines)
    return f'<div class="box"><strong>{_text(box.title)}</strong>{lines}</div>'


def _table(table: Table) -> str:
    columns = [
        [*head.split(), *cells] for head, *cells in zip(table.head, *table.rows, strict=True)
    ]
    widths = [max(map(len, column), default=0) for column in columns]
    words = [
        width > LONG or head in table.words for width, head in zip(widths, table.head, strict=True)
    ]
    head = _row(table.head, words, "th", ' scope="col"')
    rows = "".join(f"{_row(row, words, 'td')}\n" for row in table.rows)
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    rest = zip(widths[1:], words[1:], strict=True)
    taken = min(widths[0], FIRST) + sum(
        min(width, BROKEN) if long else width for width, long in rest
    )
    names = widths[0] > SHORT
    kind = " ".join(["wide"] * (taken > WIDE) + ["names"] * names)
    classes = f' class="{kind}"' if kind else ""
    body = f"<thead>{head}</thead><tbody>{rows}</tbody>"
    return f"{SCROLLS}<table{classes}>{caption}{body}</table></div>"


def _row(cells: Sequence[str], words: Sequence[bool], tag: str, more: str = "") -> str:
    """A row of a table; cells of columns of words are marked."""
    marked = [f' class="words"{more}' if long else more for long in words]
    pairs = zip(map(_together, cells), marked, strict=True)
    return "<tr>" + "".join(f"<{tag}{mark}>{_text(cell)}</{tag}>" for cell, mark in pairs) + "</tr>"


def _together(cell: str) -> str:
    """A cell whose lines, where it has to be broken, begin with numbers."""
    return cell.replace(" …", f"{STAYS}…").replace("× ", f"×{STAYS}")


def _picture(picture: Picture, counter: _Counter) -> str:
    caption = f"<figcaption>{_text(picture.caption)}</figcaption>" if picture.caption else ""
    return f"<figure>{_inline(picture, counter.next())}{caption}</figure>\n"


def _only_draws(drawing: bytes) -> bool:
    """Whether a picture has no scripts, links or images: asked of its elements and
    attributes, not of the words in it.
    """
    try:
        elements = list(ElementTree.fromstring(drawing).iter())
    except ElementTree.ParseError:
        return False
    for one in elements:
        kind = str(one.tag).rpartition("}")[2].lower()
        if kind in ACTIVE or (kind == "style" and LEADS_OUT.search(one.text or "")):
            return False
        for name, value in one.attrib.items():
            word = name.rpartition("}")[2].lower()
            away = word == "href" and not value.startswith("#")
            if word.startswith("on") or away or LEADS_OUT.search(value):
                return False
    return True


def _inline(picture: Picture, number: int) -> str:
    """The <svg> element alone, its ids made unique on the page, with a text for screen
    readers.
    """
    start = picture.svg.find(b"<svg")
    end = picture.svg.rfind(b"</svg>")
    drawing = ASIDE.sub(b"", picture.svg[start : end + len(b"</svg>")])
    if start < 0 or end < 0 or not _only_draws(drawing):
        raise InvalidInputError(
            "a picture must be an SVG that only draws: no scripts, no links, no images"
        )
    svg = drawing.decode()
    svg = re.sub(r'\bid="([^"]+)"', rf'id="p{number}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>p{number}-", svg)
    label = f'<svg role="img" aria-label="{_text(picture.description)}"'
    return svg.replace("<svg", label, 1)
