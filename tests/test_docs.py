"""Every Python block in the docs runs and prints what the page says; every command in
them works.
"""

import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

from discreet.cli import main
from tests.support.pages import ROOT, run_page
from tests.support.tree import commands

LONG = {
    "commands.md",
    "planning.md",
    "studies.md",
    "tutorial.md",
}
PAGES = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else [])
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page is one session in one empty folder."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_generated_parts_are_current() -> None:
    """If not: `python docs/generate.py`."""
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_every_command_and_setting_has_a_generated_part() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    leaves = {name for name, one in commands(main).items() if not isinstance(one, click.Group)}
    assert {*re.findall(r"<!-- generated: command (.*) -->", page)} == leaves
    assert "<!-- generated: settings -->" in page


def test_the_table_of_the_paper_names_what_is_there() -> None:
    """Every function, module and test that the section "The paper, item by item" names
    exists, and each row says where an item is.
    """
    page = (ROOT / "docs" / "studies.md").read_text()
    page = page.partition("## The paper, item by item")[2].partition("\n## ")[0]
    names = re.findall(r"`((?:discreet|theory)\.[\w.]+)`", page)
    assert len(names) > 50
    for name in names:
        resolve_name(name if name.startswith("discreet.") else f"discreet.{name}")
    paths = re.findall(r"`((?:tests|evidence)/[\w/.]+)`", page)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    assert all(len(row) == 3 and row[0].strip() and row[1].strip() for row in rows)


@pytest.mark.slow
def test_the_documentation_builds(tmp_path: Path) -> None:
    """Nothing is collected meanwhile, which would take a third of the time."""
    sphinx = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main())"
    command = [
        sys.executable,
        "-c",
        sphinx,
        "-q",
        "-W",
        "-b",
        "html",
        str(ROOT / "docs"),
        str(tmp_path / "html"),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "html" / "theory.html").read_text()
    assert "<math" in page
    assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:js|css|woff2?)"', page)
