"""Reports on a phone and on paper, in a real browser."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet.cli import main
from discreet.errors import DiscreetError
from discreet.reports import charts
from discreet.reports.document import (
    Document,
    Figure,
    FigureRow,
    List,
    Paragraph,
    Part,
    Section,
    Table,
)
from discreet.reports.html import render, write_pdf
from tests.support.pictures import MANY, names

PHONE, PAPER = 390, 690
"""Widths in px: of a phone, and of A4 without its margins."""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('body *')]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && !['STYLE', 'TITLE'].includes(e.tagName))
  .map(e => parseFloat(getComputedStyle(e).fontSize)
    * (e.getScreenCTM ? Math.hypot(e.getScreenCTM().a, e.getScreenCTM().b) : 1)))"""
"""The smallest type of a page as it is shown, in px."""
CUT = """() => [...document.querySelectorAll('figure, tr, section > p')]
  .filter(e => getComputedStyle(e).breakInside !== 'avoid' || e.offsetHeight > 900).length"""
"""Pictures, rows and paragraphs that a page break may cut, or that no page of paper can
hold.
"""


@pytest.fixture(scope="module")
def report() -> str:
    """Everything a report may have, with many arms and names of all kinds."""
    pictures = [Figure(partial(charts.render, draw(100)), kind) for kind, draw in MANY.items()]
    head = ["arm", *(f"column {number}" for number in range(9))]
    rows = [[name, *["12.3k (12.1k) u 0.1 %"] * 9] for name in names(100)]
    words = Table(["setting", "value"], [["arms", ", ".join(names(30))]])
    parts: list[Part] = [
        Paragraph("x" * 200),
        List(names(30)),
        *pictures[:2],
        FigureRow(pictures[2:]),
    ]
    section = Section("z" * 90, [*parts, Table(head, rows, "w" * 300), words])
    return render(Document("y" * 90, [section] * 3))


def test_a_report_fits_on_a_phone_and_on_paper(report: str, page: Any) -> None:
    page.set_viewport_size({"width": PHONE, "height": 800})
    page.set_content(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert page.evaluate(SMALLEST) >= 12
    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == 0


TOO_WIDE = """() => [...document.querySelectorAll('.scroll')]
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => [e.scrollWidth, e.innerText])"""
"""Tables that have to be moved sideways."""


def test_tables_of_a_trial_fit_on_a_phone(page: Any) -> None:
    """All arms with intervals and p-values, and what managers did."""
    head = ["arm", "people", "outcomes analysed", "estimate", "90 % interval"]
    row = ["1234", "1234", "-0.68", "-0.68 to 0.88", "> 0.99"]
    long = "nobody is assigned during the pause, and deadlines keep running as before"
    acts = [["lower-maximum", "2000", "1119 people, 12 looks", long, long]]
    tables = [
        Table([*head, 'p-value of "is the best"'], [[name, *row] for name in names(9)]),
        Table(["action", "about", "after", "reason", "what it means"], acts),
        Table(["ε", "enrolment", "days"], [["0.1", "waiting", "1,823 … 3,755"]]),
    ]
    page.set_viewport_size({"width": PHONE, "height": 800})
    page.set_content(render(Document("t", [Section("s", tables)])))
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(SMALLEST) >= 12
    page.emulate_media(media="print")
    sizes = "() => [...document.querySelectorAll('table')].map(e => getComputedStyle(e).fontSize)"
    assert page.evaluate(sizes)[1] == page.evaluate(sizes)[2], "words are broken, not made small"


def test_a_report_is_printed(report: str, tmp_path: Path, browser: object) -> None:
    write_pdf(tmp_path / "report.pdf", report)
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 3


@pytest.mark.parametrize(
    "words",
    [
        "plan --means 0.9,0.1 --pdf plan.pdf",
        "report transcript.json --out page.html --pdf page.pdf",
        "reproduce --out study --pdf study.pdf",
    ],
)
def test_without_a_browser_it_says_what_to_install_before_any_work(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("discreet.reports.html.find_browser", lambda: None)
    found = CliRunner().invoke(main, words.split())
    assert found.exit_code == 1
    assert "install Chromium, Chrome or Edge" in found.stderr
    assert not [*tmp_path.iterdir()]


def test_a_browser_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho no usable sandbox >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr("discreet.reports.html.find_browser", lambda: str(program))
    with pytest.raises(DiscreetError, match="what it says: no usable sandbox"):
        write_pdf(tmp_path / "a.pdf", "<html><head></head></html>")
    assert not (tmp_path / "a.pdf").exists()


def test_a_pdf_needs_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.reports.html.find_browser", lambda: "chromium")
    file = str(tmp_path / "a")
    found = CliRunner().invoke(main, ["plan", "--means", ".9,.1", "--html", file, "--pdf", file])
    assert found.exit_code == 2
    assert "--pdf needs a file of its own" in found.stderr
