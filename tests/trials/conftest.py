"""What several tests of live trials need."""

from pathlib import Path

import pytest

from discreet.trials.store import letters


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where letters are."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(letters, "MEMORY", str(folder))
    return folder
