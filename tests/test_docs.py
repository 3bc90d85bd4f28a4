"""Every Python block in the docs runs and prints what the page says; every command in
them works.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from click.testing import CliRunner

from discreet.cli import main

ROOT = Path(__file__).parent.parent
LONG = {
    "auditing.md",
    "commands.md",
    "model-selection.md",
    "planning.md",
    "reproducing.md",
    "tutorial.md",
}
PAGES = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else [])
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page is one session in one empty folder; a text block right after a Python
    block is what that one prints.
    """
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs"}
    printed = ""
    for kind, text in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text":
            assert printed.strip() == text.strip()
        else:
            for line in text.splitlines():
                run_command(line.removeprefix("$ "))


def test_the_table_of_the_paper_names_what_is_there() -> None:
    """Every function, module and test that the page "The paper, item by item" names
    exists, and each row says where an item is.
    """
    page = (ROOT / "docs" / "paper.md").read_text()
    names = re.findall(r"`((?:discreet|theory)\.[\w.]+)`", page)
    assert len(names) > 50
    for name in names:
        resolve_name(name if name.startswith("discreet.") else f"discreet.{name}")
    paths = re.findall(r"`((?:tests|evidence)/[\w/.]+)`", page)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    assert all(len(row) == 3 and row[0].strip() and row[1].strip() for row in rows)


def run_command(command: str) -> None:
    """A command of ours, maybe with its output into a file; of `make` only that there
    is such a target.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    target = words[words.index(">") + 1] if ">" in words else None
    assert words[0] == "discreet"
    result = CliRunner().invoke(main, words[1 : words.index(">")] if target else words[1:])
    assert result.exit_code == 0, (command, result.output)
    if target:
        Path(target).write_text(result.stdout)


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
