"""The end of the demonstration: the service's page of its trial."""

from pathlib import Path

import pytest

from discreet import Trial, bet_se
from discreet.cli.demo import show_pages


def trial_in(folder: Path) -> str:
    url = f"sqlite:///{folder}/trial.db"
    made = Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=200)
    made.tell_many({one.id: 1.0 for one in made.ask(40).assignments})
    made.close()
    return url


def test_a_browser_takes_a_picture_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that fetches the page, and writes it where the picture should be."""
    browser = tmp_path / "chromium"
    browser.write_text(
        "#!/bin/sh\n"
        'for one in "$@"; do case $one in --screenshot=*) file=${one#*=};; http*) url=$one;; esac; '
        "done\n"
        'python3 -c "import sys, urllib.request as u; '
        'print(u.urlopen(sys.argv[1]).read().decode())" "$url" > "$file"\n'
    )
    browser.chmod(0o700)
    monkeypatch.setattr("discreet.reports.html.shutil.which", lambda name: str(browser))
    show_pages(trial_in(tmp_path), "dose", tmp_path)
    text = (tmp_path / "service.png").read_text()
    assert "<h1>dose</h1>" in text
    assert "Published by those who run the trial" in text
    said = capsys.readouterr().out
    assert str(tmp_path / "service.png") in said.replace("\n", "")
    assert "discreet serve --url sqlite:///" in said


@pytest.mark.parametrize("found", [None, "/bin/false"])
def test_without_a_browser_it_says_so_and_how_to_look(
    found: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("discreet.reports.html.shutil.which", lambda name: found)
    show_pages(trial_in(tmp_path), "dose", tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "There is no picture" in said
    assert "discreet serve --url sqlite:///" in said
    assert not (tmp_path / "service.png").exists()
