"""The notebooks of the documentation run from the first cell to the last, in a real
kernel, and show what they are there for.
"""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from discreet import InvalidInputError, notebook_bar
from discreet.cli.output import KERNEL, terminal
from discreet.tabular import NotebookBar

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
SHOWN = {"paper-figures": 12, "plan-and-rehearse": 1}
"""Pictures in each: the paper's six instances, with a trusted collector and without."""


def run(cells: Any, folder: Path) -> list[dict[str, Any]]:
    """What the cells show, in order; an error in one is raised."""
    NotebookClient(cells, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    return [shown for cell in cells.cells if cell.cell_type == "code" for shown in cell.outputs]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text()
    cells = nbformat.reads(text, as_version=4)
    code = [cell for cell in cells.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and not cell.outputs for cell in code)
    found = run(cells, tmp_path)
    kinds = [kind for shown in found for kind in shown.get("data", {})]
    assert kinds.count("image/svg+xml") == SHOWN[name]
    assert "text/html" in kinds
    assert "\x1b" not in json.dumps(found, ensure_ascii=False)
    assert not any(shown.get("name") == "stderr" for shown in found)


# --- how far some work is -------------------------------------------------------------


def test_a_command_in_a_cell_draws_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel gives it what looks like a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv(KERNEL, raising=False)
    assert terminal().is_terminal
    monkeypatch.setenv(KERNEL, "1")
    assert not terminal().is_terminal


class Handle:
    """What IPython gives for an output that changes."""

    def __init__(self) -> None:
        self.pages: list[dict[str, str]] = []

    def update(self, page: dict[str, str], raw: bool) -> None:
        assert raw
        self.pages.append(page)


def test_a_bar_is_a_picture_without_a_script() -> None:
    handle = Handle()
    bar = NotebookBar("<script>", handle)
    for done in range(1, 1001):
        bar(done, 1000)
    assert len(handle.pages) < 100  # a look now and then, and the last one
    assert handle.pages[-1]["text/plain"] == "<script>: 1,000 of 1,000"
    assert "<script" not in handle.pages[-1]["text/html"]
    assert '<progress value="1000" max="1000">' in handle.pages[-1]["text/html"]
    bar.show_work("<b>")
    bar(1000, 1000)
    assert "&lt;b&gt;" in handle.pages[-1]["text/html"]


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with notebook_bar("planning") as bar:
        bar(1, 2)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(InvalidInputError), notebook_bar(3):  # type: ignore[arg-type]
        pass
