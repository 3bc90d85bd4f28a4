"""The R code of the page "Publish and report" does what the page says, where R is installed."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.pages import ROOT, blocks, run_page

PAGE = ROOT / "docs" / "reporting.md"
REQUIRED = "DISCREET_REQUIRE_R"
MARK = "--- next block ---"
JSONLITE = 'quit(status = !requireNamespace("jsonlite", quietly = TRUE))'


def find_r() -> str | None:
    """Rscript, if there is one that has jsonlite."""
    found = shutil.which("Rscript")
    if found is None or subprocess.run([found, "-e", JSONLITE], check=False).returncode:
        return None
    return found


@pytest.fixture(scope="module")
def rscript() -> str:
    found = find_r()
    if found is None:
        assert REQUIRED not in os.environ, "R with jsonlite is not installed, and it must be there"
        pytest.skip("R with jsonlite is not installed")
    return found


def test_the_page_runs_in_r(rscript: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks in one session, after those in Python and the commands, whose files
    they read; a text block right after one is what R prints.
    """
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)
    parts = blocks(PAGE)
    code = [text for kind, text in parts if kind == "r"]
    wanted = [
        after if then == "text" else None
        for (kind, _), (then, after) in pairwise(parts)
        if kind == "r"
    ]
    assert len(wanted) >= 4
    Path("page.R").write_text(f'cat("{MARK}\\n")\n'.join(code))
    folder = Path(sys.executable).parent
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [rscript, "page.R"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    for said, text in zip(done.stdout.split(f"{MARK}\n"), wanted, strict=True):
        assert text is None or said.strip() == text.strip()
