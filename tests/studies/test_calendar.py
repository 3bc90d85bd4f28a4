"""Studies with a calendar: kept, gone on with, and told apart."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet import Bernoulli, Delay, InvalidInputError, Study, bet_se, run_study, simulate

ARMS = {"two": Bernoulli((0.2, 0.7))}
FILE = """
runs = 30
epsilon = 1
delta = 0.1
accrual = 2
delay = "exponential:10"
deadline = 30
enrolment = "continuous"
[instances]
two = [0.2, 0.7]
[[strategies]]
preset = "bet-se"
"""


def study(runs: int = 30, deadline: float = 30.0) -> Study:
    late = Delay.exponential(10)
    days = {"accrual": 2.0, "delay": late, "deadline": deadline, "enrolment": "continuous"}
    return Study(ARMS, [bet_se(0.1, 1.0)], runs, **days)  # type: ignore[arg-type]


def test_a_file_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FILE)
    read = Study.from_toml(tmp_path / "study.toml")
    assert read == study() == Study.from_dict(study().to_dict())
    assert "calendar" not in Study(ARMS, [bet_se(0.1, 1.0)]).to_dict()


def test_run_and_gone_on_with(tmp_path: Path) -> None:
    run_study(study(10), tmp_path / "one")
    table = run_study(study(), tmp_path / "one")
    with ThreadPoolExecutor(2) as executor:
        other = run_study(study(), tmp_path / "other", executor)
    assert table.drop("seconds").equals(other.drop("seconds"))
    days = {"accrual": 2, "delay": Delay.exponential(10), "deadline": 30}
    alone = simulate(ARMS["two"], bet_se(0.1, 1.0), 30, enrolment="continuous", **days)  # type: ignore[arg-type]
    assert alone.days is not None
    assert table["days_mean"][0] == pytest.approx(alone.days.mean())
    with pytest.raises(InvalidInputError, match=r"another study.*calendar was"):
        run_study(study(deadline=40.0), tmp_path / "one")
    plain = run_study(Study(ARMS, [bet_se(0.1, 1.0)], 10), tmp_path / "plain")
    assert "days_mean" not in plain.columns


def test_refused() -> None:
    with pytest.raises(InvalidInputError, match="also give accrual"):
        Study(ARMS, [bet_se(0.1, 1.0)], delay=3)
