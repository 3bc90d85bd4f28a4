"""Every Python block in the docs runs and prints what the page says; every command in them works."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks(page: Path) -> None:
    """One page is one session; a text block right after a Python block is what that one prints."""
    namespace: dict[str, Any] = {"__name__": "docs"}
    printed = ""
    for kind, text in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text":
            assert printed.strip() == text.strip()


@pytest.mark.parametrize(
    "command",
    [
        line.removeprefix("$ ")
        for page in PAGES
        for kind, text in blocks(page)
        if kind == "console"
        for line in text.splitlines()
    ],
)
def test_commands(command: str) -> None:
    program, *arguments = shlex.split(command, comments=True)
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert program == "discreet"
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output


def test_the_documentation_builds(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
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
