"""The pages of the documentation: their blocks, and what runs in them."""

import contextlib
import io
import linecache
import re
import shlex
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from discreet.cli import main

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```(python|text|console|r)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the kind and text of each block. Python blocks keep their line numbers in the
    page, so that the source text of a class can be read from it.
    """
    text = page.read_text()
    return [
        (match[1], "\n" * text.count("\n", 0, match.start(2)) * (match[1] == "python") + match[2])
        for match in BLOCK.finditer(text)
    ]


def run_page(page: Path) -> None:
    """Run what is in Python, and commands; a text block right after a Python block is
    what that one prints. R has a test of its own.
    """
    namespace: dict[str, Any] = {"__name__": "docs"}
    printed, last = "", ""
    for number, (kind, text) in enumerate(blocks(page)):
        if kind == "python":
            name = f"<block {number} of {page.name}>"
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, name, "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text" and last != "r":
            assert printed.strip() == text.strip()
        elif kind == "console":
            for line in text.splitlines():
                run_command(line.removeprefix("$ "))
        last = kind


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
