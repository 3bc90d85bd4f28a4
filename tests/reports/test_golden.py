"""Documents as a reader gets them: the text in a terminal and the page, without the
drawings.

`GOLDEN=write pytest tests/reports/test_golden.py` writes tests/reports/golden anew; read
the difference before it is committed.
"""

import os
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from discreet import (
    Bernoulli,
    Beta,
    Delay,
    Gaussian,
    Sampled,
    Trial,
    audit_correctness,
    audit_privacy,
    bet_se,
    bounds,
    plan,
    simulate,
    ttucb,
)
from discreet.cli.simulate import simulation_report
from discreet.planning.scenarios import make_gap_scenarios
from discreet.reports import html, terminal
from discreet.reports.document import Document
from discreet.reports.plan import build_plan
from discreet.reports.summaries import (
    build_bounds,
    build_correctness_audit,
    build_privacy_audit,
    build_simulation,
    build_sweep,
)
from discreet.reports.trial import Added, build_status, build_trial_report
from discreet.studies.run import run_study
from discreet.studies.study import Study
from tests.support.keys import seeded_keys

FOLDER = Path(__file__).parent / "golden"
RATES = Bernoulli((0.2, 0.7), ("old", "new"))
CHANGES = (
    (re.compile(r"<svg.*?</svg>", re.DOTALL), "<svg>"),
    (re.compile(r"<style>.*?</style>", re.DOTALL), ""),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "…"),
    (re.compile(r" in \d+\.\d\d s\."), " in 0.00 s."),
    (re.compile(r"discreet \d[\w.]*"), "discreet 0"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def make_plan() -> Document:
    scenarios = make_gap_scenarios(3, 0.3, 0.5)
    settings: dict[str, Any] = {"runs": 20, "max_participants": 700, "budget": 700}
    return build_plan(plan(scenarios, [0.5, 1.0], 0.05, ["bet-se", "dp-se"], **settings))


def make_plan_in_days() -> Document:
    days: dict[str, Any] = {"accrual": 2, "delay": Delay.exponential(10), "deadline": 30}
    return build_plan(plan(RATES, 1.0, 0.1, runs=20, start=date(2027, 3, 1), **days))


def make_plan_of_numbers() -> Document:
    past = {"old": [160.0, 200.0, 240.0], "new": [80.0, 100.0, 90.0]}
    data = Sampled.from_outcomes(past, range=(0, 400), direction="min")
    return build_plan(plan(data, 2.0, 0.05, runs=20, outcomes="numbers"))


def make_sweep(folder: Path) -> Document:
    study = Study({"easy": RATES}, [ttucb(0.1), bet_se(0.1, 1.0)], runs=5)
    return build_sweep(run_study(study, folder).to_dicts(), "folder")


def make_simulation() -> Document:
    found = simulation_report(RATES, bet_se(0.1, 1.0), simulate(RATES, bet_se(0.1, 1.0), 20))
    return build_simulation(found, RATES)


def play_trial(folder: Path) -> Trial:
    """Two sites, an arm that is dropped, and a conclusion."""
    url, arms = f"sqlite:///{folder}/t.db", ["5 mg", "10 mg", "20 mg"]
    settings: dict[str, Any] = {"sites": ["Leeds", "Lyon"], "deadline": 604_800.0}
    settings |= {"max_participants": 2000, "question": "Which dose?"}
    trial = Trial.create(url, "dose", arms, bet_se(0.05, epsilon=2.0), **settings)
    for turn in range(99):
        if turn == 2:
            trial.manage("drop-arm", "It is toxic.", "20 mg")
        if not (batch := trial.ask(20, site=["Leeds", "Lyon"][turn % 2])).assignments:
            break
        trial.tell_many({one.id: float(one.arm != "5 mg") for one in batch.assignments})
    return trial


def make_status(folder: Path) -> Document:
    trial = play_trial(folder)
    return build_status(trial.status(), trial.protocol)


def make_running_status(folder: Path) -> Document:
    settings: dict[str, Any] = {"max_participants": 90}
    trial = Trial.create(f"sqlite:///{folder}/t.db", "dose", ["a", "b"], ttucb(0.1), **settings)
    for one in trial.ask(7).assignments[:5]:
        trial.tell(one.id, float(one.arm == "b"))
    return build_status(trial.status(), trial.protocol)


def make_report(folder: Path) -> Document:
    said = play_trial(folder).transcript()
    added = Added(control="5 mg", assessed=500, dates={"Created": "2027-03-01"})
    return build_trial_report(said, added)[0]


DOCUMENTS: dict[str, Callable[[Path], Document]] = {
    "plan": lambda _: make_plan(),
    "plan-days": lambda _: make_plan_in_days(),
    "plan-numbers": lambda _: make_plan_of_numbers(),
    "bounds": lambda _: build_bounds(bounds(RATES, [0.1, 1.0, 10.0], 0.05)),
    "bounds-numbers": lambda _: build_bounds(bounds(Beta([2, 5], [2, 2]), [1.0], 0.05)),
    "bounds-gaussian": lambda _: build_bounds(bounds(Gaussian([0.0, 1.0], 1.0), [], 0.05)),
    "simulation": lambda _: make_simulation(),
    "sweep": make_sweep,
    "audit-correctness": lambda _: build_correctness_audit(
        audit_correctness(bet_se(0.1, 1.0), 20, 1, instances={"easy": RATES})
    ),
    "audit-privacy": lambda _: build_privacy_audit(
        audit_privacy(bet_se(0.1, 1.0), 100, 0.95, "numpy", 1)
    ),
    "status": make_status,
    "status-running": make_running_status,
    "report": make_report,
}


def plain(text: str) -> str:
    """Leave out drawings, styles, hashes, versions and durations."""
    for pattern, instead in CHANGES:
        text = pattern.sub(instead, text)
    return text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_golden(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeded_keys(monkeypatch)
    monkeypatch.setenv("COLUMNS", "90")
    document = DOCUMENTS[name](tmp_path)
    capsys.readouterr()
    terminal.render(document)
    texts = {"txt": capsys.readouterr().out, "html": html.render(document)}
    for kind, text in texts.items():
        shown, file = plain(text), FOLDER / f"{name}.{kind}"
        if os.environ.get("GOLDEN") == "write":
            file.write_text(shown, "utf-8")
        assert shown == file.read_text("utf-8")
