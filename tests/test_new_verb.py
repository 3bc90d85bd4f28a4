"""docs/contributing.md: its code blocks are a new verb, which works everywhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "contributing.md"
BLOCK = re.compile(
    r"^```\{code-block\} python\n:caption: ([\w/.]+), before ([^\n]*)\n\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
CALLS = """
import json, sys
from click.testing import CliRunner
from discreet import RemoteTrial, Trial, bet_se
from discreet.cli import main
from discreet.service.auth import ACTIONS
from discreet.errors import RefusedError
from tests.support.remote import far_away

url = "sqlite:///discreet-trials.db"
trial = Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), 100, sites=["x", "y"])
trial.ask(3, site="x")
assert (trial.count_open(), trial.count_open("x"), trial.count_open("y")) == (3, 3, 0)
assert trial.as_user("ann", "y").count_open() == 0
assert ACTIONS["count-open"] == {"manager", "site"}
with far_away(url) as far:
    remote = RemoteTrial.open(far.base, "dose", token=far.secret)
    assert (remote.count_open(), remote.count_open("y")) == (3, 0)
    try:
        RemoteTrial.open(far.base, "dose", token=far.token("monitor")).count_open()
    except RefusedError:
        pass
    else:
        raise AssertionError("a monitor counted")
done = CliRunner().invoke(main, ["trial", "count-open", "dose", "--site", "x", "--json"])
assert json.loads(done.stdout) == {"count": 3}, done.output
"""


@pytest.mark.slow
def test_the_example_of_a_new_verb_works(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    blocks = BLOCK.findall(PAGE.read_text())
    assert len({file for file, _, _ in blocks}) == 4
    for file, anchor, code in blocks:
        path = tmp_path / file
        text = path.read_text()
        assert text.count(f"\n{anchor}") == 1, (file, anchor)
        path.write_text(text.replace(f"\n{anchor}", f"\n{code}{anchor}"))
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
