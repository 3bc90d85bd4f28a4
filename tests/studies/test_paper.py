"""The paper's study: its grid, resuming, the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, benchmarks
from discreet.cli import main
from discreet.reports import paper as report
from discreet.reports.paper import reproduce
from discreet.simulation import engine
from discreet.studies.paper import (
    AUTHORS,
    MARKER,
    STRATEGIES,
    Scope,
    describe_time,
    estimate_seconds,
    make_scope,
    simulate_authors_dp_se,
)
from discreet.studies.run import StudyStep
from tests.support.pictures import undrawn

TINY = Scope(6, ("mu3",), {"global": (0.5, 1.0), "local": (2.0, 10.0)}, quick=True)


def test_the_grid_is_the_papers() -> None:
    studies = make_scope().studies()
    assert list(studies) == ["none", "global", "local"]
    levels = {
        part: {cell.strategy.epsilon for cell in study.cells} for part, study in studies.items()
    }
    assert levels["none"] == {None}
    assert levels["global"] == {
        0.001,
        0.005,
        0.01,
        0.05,
        *(i / 10 for i in range(1, 11)),
        10,
        100,
        1000,
    }
    assert levels["local"] == {*(i / 10 for i in range(1, 11)), 10, 100}
    assert make_scope().left_out == (0.01, 0.05)
    small = make_scope(trust="local", all_local=True).studies()["local-small"]
    assert {cell.strategy.epsilon for cell in small.cells} == {0.01, 0.05}
    for part, study in studies.items():
        assert set(study.instances) == set(benchmarks)
        assert study.runs == 1000
        assert {cell.strategy.delta for cell in study.cells} == {0.01}
        pairs = {(cell.strategy.name, cell.strategy.threshold) for cell in study.cells}
        assert pairs == set(STRATEGIES[part]) - {(AUTHORS, "empirical")}
    assert list(make_scope(trust="global").levels) == ["global"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trust": "none"}, "trust"),
        ({"runs": 1}, "runs"),
        ({"quick": True, "all_local": True}, "all_local"),
    ],
)
def test_bad_scopes(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_scope(**options)


def test_the_authors_dp_se_takes_more() -> None:
    samples, named, epochs = simulate_authors_dp_se(benchmarks.mu1, 0.1, 0.01, 400, 1)
    assert 370_000 < samples.mean() < 420_000  # ours: 110 000
    assert set(named.tolist()) == {0}
    assert epochs.min() >= 2


def test_the_authors_dp_se_is_dp_se_while_there_was_one_epoch() -> None:
    """On mu3 at ε = 10 both end with the first epoch: the count of all epochs is that
    of the first.
    """
    samples, _, epochs = simulate_authors_dp_se(benchmarks.mu3, 10.0, 0.01, 50, 1)
    assert set(epochs.tolist()) == {1}
    assert set(samples.tolist()) == {5310}


def test_the_time_of_the_local_study() -> None:
    rows: list[dict[str, Any]] = [
        {"strategy": "ttucb", "mean": 1000.0},
        {"strategy": "ttucb", "mean": None},
    ]
    short, long = (estimate_seconds(rows, {level: 1e-6}, 10) for level in (0.1, 0.01))
    assert short == pytest.approx(0.01 / np.tanh(0.05) ** 2)
    assert long / short == pytest.approx(100, rel=0.01)
    assert [describe_time(s) for s in (0.1, 80, 100, 7200, 1e6)] == [
        *(
            "about 1 second",
            "about 80 seconds",
            "about 1.7 minutes",
            "about 2 hours",
            "about 12 days",
        ),
    ]


@pytest.mark.slow
def test_a_study_from_end_to_end(tmp_path: Path) -> None:
    said: list[str] = []
    steps: list[StudyStep] = []
    found = reproduce(tmp_path / "new", scope=TINY, progress=steps.append, say=said.append)
    cells = sum(len(study.cells) for study in TINY.studies().values())
    assert {step.total for step in steps} == {6 * cells}
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == 6 * cells
    assert any("local study will take about" in words for words in said)
    table = pl.read_parquet(tmp_path / "new" / "table.parquet")
    assert table.equals(found.table)
    assert len(table) == cells + 2  # the authors' DP-SE
    assert {
        "instance",
        "strategy",
        "threshold",
        "epsilon",
        "delta",
        "runs",
        "unstopped",
        "errors",
    } <= set(table.columns)
    assert {"mean", "median", "std", "sem", "q10", "q90"} <= set(table.columns)
    page = (tmp_path / "new" / "report.html").read_text()
    for words in (
        "What agrees with the paper",
        "mu3, trusted collector",
        "mu3, nobody trusted",
        "quick",
        "<svg",
    ):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert len(found.files) == 3 * 2 * (3 + 2)
    assert all((tmp_path / "new" / name).stat().st_size > 1000 for name in found.files)
    json.dumps(found.to_dict(), allow_nan=False)


SMALL = Scope(6, ("mu3",), {"global": (1.0, 10.0)})


@pytest.mark.slow
@undrawn()
def test_an_interrupted_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reproduce(tmp_path / "whole", scope=SMALL).table
    played: list[Any] = []
    simulate = engine.simulate_quietly

    def counted(*args: Any) -> Any:
        if len(played) == 5:
            raise KeyboardInterrupt
        played.append(args[:2])
        return simulate(*args)

    monkeypatch.setattr(engine, "simulate_quietly", counted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "a", scope=SMALL)
    assert not (tmp_path / "a" / "report.html").exists()
    monkeypatch.setattr(engine, "simulate_quietly", simulate)
    again: list[StudyStep] = []
    table = reproduce(tmp_path / "a", scope=SMALL, progress=again.append).table
    assert again[0].done > 5 * 6
    assert table.equals(whole)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.parquet")]
    assert all(
        (tmp_path / "a" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        for name in files
    )


@pytest.mark.slow
@undrawn()
def test_parts_and_runs_are_added(tmp_path: Path) -> None:
    first = reproduce(tmp_path, scope=SMALL).table
    both = Scope(8, ("mu3",), {**SMALL.levels, "local": (10.0,)})
    more = reproduce(tmp_path, scope=both).table
    assert set(more["trust"]) == set(first["trust"]) | {"local"}
    assert set(more["runs"]) == {8}
    other = Scope(8, ("mu3",), {"global": (1.0,)})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInputError, match=r"adap-tt, ε = 10.* is gone"):
        reproduce(tmp_path, scope=other)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), "--quick"])
    assert result.exit_code == 2
    assert "'mine.txt'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    for name in (MARKER, ".report.html.abc"):
        (tmp_path / name).write_text("x")
    again = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), "--quick"])
    assert "'mine.txt'" in again.stderr
    assert not (tmp_path / "runs").exists()
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "mine.txt"), "--quick"])
    assert result.exit_code == 2
    assert "cannot use" in result.stderr


@pytest.mark.parametrize(
    "options", [["--trust", "none"], ["--runs", "0"], ["--quick", "--all-local"], []]
)
def test_bad_input_is_one_line(options: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "x")] if options else []
    result = CliRunner().invoke(main, ["reproduce", *out, *options])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        report, "make_scope", lambda *_: Scope(4, ("mu3",), {"global": (1.0, 10.0)}, True)
    )
    csv = tmp_path / "cells.csv"
    result = CliRunner().invoke(
        main, ["reproduce", "--out", str(tmp_path / "a"), "--quick", "--json", "--csv", str(csv)]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert len(pl.read_csv(csv)) == found["cells"]
    assert found["cells"] == 18  # the 16 of the studies and the authors' two
    assert Path(found["report"]).exists()
    assert {finding["trust"] for finding in found["findings"]} == {"global"}
    with undrawn():
        result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "a"), "--quick"])
    assert result.exit_code == 0
    assert "report.html" in result.stdout
    assert "bet-se" in result.stdout
