"""The paper's study: its grid, resuming, the findings' arithmetic, the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, benchmarks
from discreet.cli import main
from discreet.reports.paper import Study, at_half_epsilon, find
from discreet.simulation import engine
from discreet.studies import paper as reproduce
from discreet.studies.paper import AUTHORS, STRATEGIES, Scope, authors_dp_se, in_words, local_seconds, make_scope
from discreet.studies.run import Step

TINY = Scope(6, ("mu3",), {"global": (0.5, 1.0), "local": (2.0, 10.0)}, quick=True)


def test_the_grid_is_the_papers() -> None:
    studies = make_scope().studies()
    assert list(studies) == ["none", "global", "local"]
    levels = {part: {cell.strategy.epsilon for cell in study.cells} for part, study in studies.items()}
    assert levels["none"] == {None}
    assert levels["global"] == {0.001, 0.005, 0.01, 0.05, *(i / 10 for i in range(1, 11)), 10, 100, 1000}
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
    [({"trust": "none"}, "trust"), ({"runs": 1}, "runs"), ({"quick": True, "all_local": True}, "all_local")],
)
def test_bad_scopes(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_scope(**options)


def test_the_authors_dp_se_takes_more() -> None:
    samples, named, epochs = authors_dp_se(benchmarks.mu1, 0.1, 0.01, 400, 1)
    assert 370_000 < samples.mean() < 420_000  # ours: 110 000
    assert set(named.tolist()) == {0}
    assert epochs.min() >= 2


def test_the_authors_dp_se_is_dp_se_while_there_was_one_epoch() -> None:
    """On mu3 at ε = 10 both end with the first epoch: the count of all epochs is that of the first."""
    samples, _, epochs = authors_dp_se(benchmarks.mu3, 10.0, 0.01, 50, 1)
    assert set(epochs.tolist()) == {1}
    assert set(samples.tolist()) == {5310}


def test_the_time_of_the_local_study() -> None:
    rows: list[dict[str, Any]] = [{"strategy": "ttucb", "mean": 1000.0}, {"strategy": "ttucb", "mean": None}]
    short, long = (local_seconds(rows, [level], 10, 1e-6) for level in (0.1, 0.01))
    assert short == pytest.approx(0.01 / np.tanh(0.05) ** 2)
    assert long / short == pytest.approx(100, rel=0.01)
    assert [in_words(s) for s in (0.1, 80, 100, 7200, 1e6)] == [
        *("about 1 seconds", "about 80 seconds", "about 1.7 minutes", "about 2 hours", "about 12 days"),
    ]


@pytest.mark.slow
def test_a_study_from_end_to_end(tmp_path: Path) -> None:
    said: list[str] = []
    steps: list[Step] = []
    found = reproduce.reproduce(tmp_path / "new", scope=TINY, progress=steps.append, say=said.append)
    cells = sum(len(study.cells) for study in TINY.studies().values())
    assert {step.total for step in steps} == {6 * cells}
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == 6 * cells
    assert any("local study will take about" in words for words in said)
    table = pl.read_parquet(tmp_path / "new" / "table.parquet")
    assert table.equals(found.table)
    assert len(table) == cells + 2  # the authors' DP-SE
    assert {"instance", "strategy", "threshold", "epsilon", "delta", "runs", "unstopped", "errors"} <= set(
        table.columns
    )
    assert {"mean", "median", "std", "sem", "q10", "q90"} <= set(table.columns)
    page = (tmp_path / "new" / "report.html").read_text()
    for words in ("What agrees with the paper", "mu3, trusted collector", "mu3, nobody trusted", "quick", "<svg"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert len(found.files) == 2 * 2 * (3 + 2)
    assert all((tmp_path / "new" / name).stat().st_size > 1000 for name in found.files)
    json.dumps(found.to_dict(), allow_nan=False)


SMALL = Scope(6, ("mu3",), {"global": (1.0, 10.0)})


@pytest.mark.slow
def test_an_interrupted_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reproduce.reproduce(tmp_path / "whole", scope=SMALL).table
    played: list[Any] = []
    simulate = engine.simulate_quietly

    def counted(*args: Any) -> Any:
        if len(played) == 5:
            raise KeyboardInterrupt
        played.append(args[:2])
        return simulate(*args)

    monkeypatch.setattr(engine, "simulate_quietly", counted)
    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce(tmp_path / "a", scope=SMALL)
    assert not (tmp_path / "a" / "report.html").exists()
    monkeypatch.setattr(engine, "simulate_quietly", simulate)
    again: list[Step] = []
    table = reproduce.reproduce(tmp_path / "a", scope=SMALL, progress=again.append).table
    assert again[0].done > 5 * 6
    assert table.equals(whole)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.parquet")]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in files)


@pytest.mark.slow
def test_parts_and_runs_are_added(tmp_path: Path) -> None:
    first = reproduce.reproduce(tmp_path, scope=SMALL).table
    both = Scope(8, ("mu3",), {**SMALL.levels, "local": (10.0,)})
    more = reproduce.reproduce(tmp_path, scope=both).table
    assert set(more["trust"]) == set(first["trust"]) | {"local"}
    assert set(more["runs"]) == {8}
    other = Scope(8, ("mu3",), {"global": (1.0,)})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInputError, match=r"adap-tt, ε = 10.* is gone"):
        reproduce.reproduce(tmp_path, scope=other)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), "--quick"])
    assert result.exit_code == 2
    assert "'mine.txt'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    for name in (reproduce.MARKER, ".report.html.abc"):
        (tmp_path / name).write_text("x")
    again = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), "--quick"])
    assert "'mine.txt'" in again.stderr
    assert not (tmp_path / "runs").exists()
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "mine.txt"), "--quick"])
    assert result.exit_code == 2
    assert "cannot use" in result.stderr


@pytest.mark.parametrize("options", [["--trust", "none"], ["--runs", "0"], ["--quick", "--all-local"], []])
def test_bad_input_is_one_line(options: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "x")] if options else []
    result = CliRunner().invoke(main, ["reproduce", *out, *options])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "make_scope", lambda *_: Scope(4, ("mu3",), {"global": (1.0, 10.0)}, True))
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "a"), "--quick", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["cells"] == 18  # the 16 of the studies and the authors' two
    assert Path(found["report"]).exists()
    assert {finding["trust"] for finding in found["findings"]} == {"global"}
    result = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path / "a"), "--quick"])
    assert result.exit_code == 0
    assert "report.html" in result.stdout
    assert "bet-se" in result.stdout


# --- findings from made-up tables -----------------------------------------------------------------


SCOPE = Scope(100, ("mu2", "mu4"), {"global": (0.01, 0.02, 1.0, 10.0), "local": (0.1, 0.2, 10.0)})


def made_up(**means: float) -> list[dict[str, Any]]:
    """A table in which every cell has 100 runs; `means` by strategy and threshold, 1000 otherwise."""
    rows = []
    for trust, pairs in STRATEGIES.items():
        for strategy, threshold in pairs:
            mean = means.get(f"{strategy}_{threshold}".replace("-", "_"), 1000.0)
            for level in SCOPE.levels.get(trust, (None,)):
                for instance in SCOPE.instances:
                    row: dict[str, Any] = {"trust": trust, "instance": instance}
                    row |= {"strategy": strategy, "threshold": threshold, "epsilon": level, "delta": 0.01}
                    row |= {"runs": 100, "unstopped": 0, "errors": 0, "mean": mean, "median": mean}
                    rows.append({**row, "std": 10.0, "sem": 1.0, "q10": mean, "q90": mean})
    return rows


def verdict(rows: list[dict[str, Any]], words: str) -> tuple[str, str]:
    (finding,) = [finding for finding in find(rows, SCOPE) if words in finding.claim]
    return finding.verdict, " ".join(finding.evidence)


def test_rankings_are_counted() -> None:
    words = "need fewer samples than DP-SE"
    quick = made_up(adap_tt_empirical=10.0, adap_tt_star_empirical=10.0)
    assert verdict(quick, words)[0] == "agrees"
    assert "8 of 8 cells by means, 8 by medians" in verdict(quick, words)[1]
    assert verdict(made_up(), words)[0] == "differs"
    assert verdict(made_up(adap_tt_proved=10.0), "guarantee the error rate")[0] == "differs"
    assert (
        "AdaP-TT (printed = proved) is below DP-SE in 8 of 8"
        in verdict(made_up(adap_tt_proved=10.0), "guarantee the error rate")[1]
    )
    authors = made_up(**{f"{AUTHORS}_empirical".replace("-", "_"): 3000.0})
    assert verdict(authors, "of Sajed and Sheffet")[0] == "differs"
    assert verdict(made_up(), "of Sajed and Sheffet")[0] == "agrees"


def test_unstopped_runs_and_errors_are_seen() -> None:
    rows = made_up()
    assert verdict(rows, "Every run stops")[0] == "agrees"
    row = next(row for row in rows if row["strategy"] == "adap-tt" and row["instance"] == "mu2")
    row["unstopped"] = 26
    found = verdict(rows, "Every run stops")
    assert found[0] == "differs"
    assert "26.0%" in found[1]
    rates = [finding for finding in find(rows, SCOPE) if "error rate is at most" in finding.claim]
    assert {finding.verdict for finding in rates} == {"agrees"}
    row["errors"] = 20
    rates = [finding for finding in find(rows, SCOPE) if "error rate is at most" in finding.claim]
    assert [finding.verdict for finding in rates] == ["differs", "agrees"]


def test_slopes_and_spans() -> None:
    rows = made_up()
    for row in rows:
        if row["strategy"] == "ctb-tt":
            row["mean"] = row["median"] = 1000.0 / min(row["epsilon"], 1.0) ** 2
    assert verdict(rows, "grow like ε^−2")[0] == "agrees"
    assert verdict(rows, "CTB-TT needs what TTUCB needs")[0] == "agrees"
    assert verdict(made_up(), "grow like ε^−2")[0] == "differs"


def test_heavy_tails_are_looked_for_where_a_gap_is_half_epsilon() -> None:
    assert at_half_epsilon("mu3", 0.5)
    assert at_half_epsilon("mu4", 1.0)
    assert not at_half_epsilon("mu4", 0.9)
    rows = made_up()
    assert "not seen" in verdict(rows, "heavy tail")[1]
    for row in rows:
        if row["strategy"] == "adap-tt-star" and row["instance"] == "mu4" and row["epsilon"] == 1.0:
            row["std"] = 5000.0
    assert "not seen" not in verdict(rows, "heavy tail")[1]


def test_a_strategy_without_that_threshold_is_shown_with_its_own() -> None:
    study = Study(made_up(), SCOPE)
    shown = study.shown("mu4", "global", "printed")
    own = {row["strategy"]: row["threshold"] for row in shown}
    assert own == {
        "adap-tt": "proved",
        "adap-tt-star": "printed",
        "dp-se": "proved",
        "bet-se": "proved",
        "ttucb": "proved",
    }
    assert AUTHORS in {row["strategy"] for row in study.shown("mu4", "global", "empirical")}
