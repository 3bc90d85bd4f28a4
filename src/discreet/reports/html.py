"""Render a document as one HTML page, and print pages by a browser.

A page needs no network and runs no script: styles and charts (SVG) are part of it. All
text is escaped; only figures bring markup, and they are checked to draw and to do
nothing else. Chromium, Chrome or Edge prints a page as PDF and takes pictures of it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.files import write_file
from discreet.reports.document import Document, Figure, Section, Table
from discreet.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

WIDE = 90
"""Characters in a row from which a table is printed small, to fit on paper."""
LONG = 60
"""Characters in a cell from which its column is text, which is broken into lines."""
BROKEN = 25
"""Characters of such a column that are wide enough for its lines on paper."""
FIRST = 36
"""Characters of the first column, which is broken into lines too."""
SHORT = 12
"""Characters of a first column that is not broken into lines."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
FROM_THE_RIGHT = re.compile(r"([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe][^,;:()]*)(?=[,;:()])")
"""A name written from right to left, up to where a list or a sentence goes on."""
NO_BREAK = "\u00a0"
"""A space at which no line is broken."""
LEFT_TO_RIGHT = "\u200e"
"""Keeps what follows such a name on its right: the next name, a number in brackets."""
ACTIVE = {"script", "foreignobject", "iframe", "object", "embed", "image", "a"}
"""Elements that do more than draw."""
LEADS_OUT = re.compile(r"javascript:|@import|url\((?!#)", re.IGNORECASE)
ASIDE = re.compile(rb"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
"""What matplotlib writes about itself and its texts into an SVG; it holds links and
names, and is left out.
"""


def render(document: Document) -> str:
    """Render the whole page."""
    about = {"whole": True, "policy": POLICY, "version": __version__}
    return _template().render(document=document, numbers=count(1), **about)


def render_sections(sections: Sequence[Section]) -> str:
    """Render the sections alone, for a page that has a head of its own."""
    return _template().render(document=Document("", sections), whole=False, numbers=count(1))


@cache
def _template() -> "Template":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError('reports need jinja2: pip install "discreet[plot]"') from None
    environment = Environment(
        loader=PackageLoader("discreet.reports", ""),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "kind": lambda part: type(part).__name__,
        "text": lambda text: FROM_THE_RIGHT.sub(rf"\1{LEFT_TO_RIGHT}", text),
        "together": lambda cell: cell.replace(" …", f"{NO_BREAK}…").replace("× ", f"×{NO_BREAK}"),
        "layout": lay_out_table,
        "svg": _inline,
    }
    return environment.get_template("document.html")


class TableLayout(NamedTuple):
    """How a table is set."""

    classes: str
    columns: list[bool]
    """[column]: whether it is text that is broken into lines."""


def lay_out_table(table: Table) -> TableLayout:
    """Find the columns of text and the classes of a table."""
    columns = [
        [*head.split(), *cells] for head, *cells in zip(table.head, *table.rows, strict=True)
    ]
    widths = [max(map(len, column), default=0) for column in columns]
    words = [
        width > LONG or head in table.words for width, head in zip(widths, table.head, strict=True)
    ]
    rest = zip(widths[1:], words[1:], strict=True)
    taken = min(widths[0], FIRST) + sum(
        min(width, BROKEN) if long else width for width, long in rest
    )
    return TableLayout(" ".join(["wide"] * (taken > WIDE) + ["names"] * (widths[0] > SHORT)), words)


def only_draws(drawing: bytes) -> bool:
    """Return whether an SVG has no scripts, links or images, by its elements and
    attributes and not by its text.
    """
    try:
        elements = list(ElementTree.fromstring(drawing).iter())
    except ElementTree.ParseError:
        return False
    for element in elements:
        kind = str(element.tag).rpartition("}")[2].lower()
        if kind in ACTIVE or (kind == "style" and LEADS_OUT.search(element.text or "")):
            return False
        for name, value in element.attrib.items():
            word = name.rpartition("}")[2].lower()
            away = word == "href" and not value.startswith("#")
            if word.startswith("on") or away or LEADS_OUT.search(value):
                return False
    return True


def _inline(figure: Figure, numbers: Iterator[int]) -> "Markup":
    """Return the <svg> element alone, with a text for screen readers. The next number
    makes its ids unique on the page.
    """
    from markupsafe import Markup

    content, number = figure.draw(), next(numbers)
    start, end = content.find(b"<svg"), content.rfind(b"</svg>")
    drawing = ASIDE.sub(b"", content[start : end + len(b"</svg>")])
    if start < 0 or end < 0 or not only_draws(drawing):
        raise InvalidInputError(
            "a picture must be an SVG that only draws: no scripts, no links, no images"
        )
    svg = re.sub(r'\bid="([^"]+)"', rf'id="p{number}-\1"', drawing.decode())
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>p{number}-", svg)
    label = Markup('<svg role="img" aria-label="{}"').format(figure.description)
    return Markup(svg.replace("<svg", label, 1))


# --- a browser ------------------------------------------------------------------------

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
"""Where browsers are that no path leads to."""
MISSING = (
    "a PDF is printed by a browser, and none was found: install Chromium, Chrome or Edge (on "
    "Debian and Ubuntu: apt install chromium), or open the HTML page in any browser and print it"
)
QUIET = (
    *("--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-sync", "--disable-component-update"),
    "--disable-background-networking",
)
PATIENCE = 120
"""Seconds for a browser to start, load a page and draw it."""
SHEET = "<style>@page{size:A4}</style></head>"


def find_browser() -> str | None:
    """The program, if there is one."""
    there = (place for place in PLACES if os.access(place, os.X_OK))
    return next(filter(None, map(shutil.which, NAMES)), None) or next(there, None)


def require_browser() -> str:
    """The program; refuses before any work is done if there is none."""
    found = find_browser()
    if found is None:
        raise DiscreetError(MISSING)
    return found


def run_browser(program: str, wanted: Sequence[str], result: Path) -> None:
    """Start it with a profile of its own, and end it when the result is there."""
    boxed = not hasattr(os, "geteuid") or os.geteuid() != 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        own = [f"--user-data-dir={profile}", *(() if boxed else ("--no-sandbox",))]
        try:
            done = subprocess.run(
                [program, *QUIET, *own, *wanted], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DiscreetError(f"the browser {program} cannot be used: {error}") from None
    if done.returncode or not result.is_file():
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
        raise DiscreetError(f"the browser {program} made no file; what it says: {said[0][:300]}")


def take_picture(address: str, file: Path, size: str) -> None:
    """A picture of a page, as PNG; `size` is that of the window."""
    program = require_browser()
    wanted = [f"--window-size={size}", "--virtual-time-budget=5000", f"--screenshot={file}"]
    run_browser(program, [*wanted, address], file)


def write_pdf(path: str | Path, page: str) -> None:
    """Write a page of ours as a PDF on A4. The browser reads a copy that only its user
    can read, and asks the network for nothing.
    """
    program = require_browser()
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page.replace("</head>", SHEET, 1), "utf-8")
        wanted = ["--no-pdf-header-footer", f"--print-to-pdf={printed}", source.as_uri()]
        run_browser(program, ["--host-resolver-rules=MAP * ~NOTFOUND", *wanted], printed)
        write_file(path, printed.read_bytes())
