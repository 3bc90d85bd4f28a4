"""An option of bet-se is declared once: the command line, study files and plans follow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import discreet

SOURCE = Path(discreet.__file__).parent
CHANGES = {
    "strategies/strategy.py": (
        "    rho: float | None = None\n",
        '    caution: float = option(2.0, "caution", "How carefully bet-se bets.")\n',
    ),
    "strategies/estimators.py": (
        '    "episodes": Option("arm", NO_PHASES),\n',
        '    "caution": Option(2.0, "caution is for bet-se only", make_check_above_one("caution"))'
        ",\n",
    ),
}
"""A new option: a line of a file, and what is written before it."""
TAKEN = ('frozenset({"indifference_zone", ', 'frozenset({"caution", "indifference_zone", ')
"""The row of bet-se, before and after."""
READ = """
from pathlib import Path
import discreet
from discreet.cli import main
from discreet.errors import InvalidInputError
from click.testing import CliRunner

def run(*words):
    return CliRunner().invoke(main, [*words, "--means", "0.9,0.1", "--epsilon", "1", "--runs", "2"])

for name, strategy in (("simulate", ["--strategy", "bet-se"]), ("plan", [])):
    assert "How carefully bet-se bets. [default: 2.0]" in " ".join(
        CliRunner().invoke(main, [name, "--help"], terminal_width=500).output.split()
    ), name
    done = run(name, *strategy, "--caution", "3", "--json")
    assert done.exit_code == 0, done.output
    done = run(name, *strategy, "--caution", "0.5")
    assert "caution must be a number larger than 1" in done.stderr, done.output
refused = run("simulate", "--strategy", "dp-se", "--caution", "3")
assert "caution is for bet-se only" in refused.stderr
Path("study.toml").write_text('''
runs = 2
delta = 0.1
epsilon = 1
[instances]
near = [0.9, 0.1]
[[strategies]]
preset = "bet-se"
caution = [3, 4]
''')
study = discreet.Study.from_toml("study.toml")
assert [strategy.caution for strategy in study.strategies] == [3.0, 4.0]
arms = discreet.Bernoulli([0.9, 0.1])
rows = discreet.plan(arms, 1.0, 0.1, ["bet-se", "dp-se"], runs=2, caution=3)
assert [row.strategy.caution for row in rows.per_epsilon] == [3.0, 2.0]
assert discreet.bet_se(0.1, 1.0, caution=3).to_dict()["caution"] == 3.0
"""


def test_a_new_option_is_a_field_and_a_row(tmp_path: Path) -> None:
    """Where it is read (`betting.bets`) and where it acts are the third and the fourth file."""
    copy = tmp_path / "discreet"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (line, new) in CHANGES.items():
        text = (copy / name).read_text()
        assert text.count(line) == 1, name
        text = text.replace(line, new + line)
        if name.endswith("estimators.py"):
            assert text.count(TAKEN[0]) == 1
            text = text.replace(*TAKEN)
        (copy / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
