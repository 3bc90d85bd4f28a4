"""The studies of β, of rounds and of δ: what they simulate, and that what they say
follows from the results.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from discreet import InvalidInputError, benchmarks, theory
from discreet.cli import main
from discreet.reports import paper as report
from discreet.reports.charts.lines import draw_lines
from discreet.studies.paper import MARKER, prepare_folder
from discreet.studies.questions import (
    DELTAS,
    QUESTIONS,
    SHARES,
    MeasuredCell,
    QuestionScope,
    StudyQuestion,
    compute_lower_constant,
    compute_rounds_limit,
    compute_upper_constant,
    judge_question,
    make_question_scope,
)

Mean = Callable[[Any], float | None]


def test_what_is_asked() -> None:
    assert make_question_scope("beta", quick=True).instances == ("mu1", "mu2")
    assert make_question_scope("delta").instances == ("mu1", "mu2", "mu3", "mu4", "mu5", "mu6")
    assert (
        make_question_scope("delta").runs,
        make_question_scope("delta", quick=True).runs,
        make_question_scope("delta", 7).runs,
    ) == (
        1000,
        100,
        7,
    )
    assert (max(DELTAS), min(DELTAS)) == (1e-1, 1e-30)
    shares = {
        s.beta for part in make_question_scope("beta").question.strategies.values() for s in part
    }
    assert shares == set(SHARES)
    kinds = {
        s.episodes
        for part in make_question_scope("adaptivity").question.strategies.values()
        for s in part
    }
    assert kinds == {"arm", "global", "global-yielding"}
    for name in QUESTIONS:
        for study in make_question_scope(name).question.make_studies(("mu1",), 2).values():
            assert len(set(study.cells)) == len(study.cells)


@pytest.mark.parametrize(("name", "runs"), [("gamma", None), ("beta", 1), ("beta", True)])
def test_what_cannot_be_asked(name: str, runs: Any) -> None:
    with pytest.raises(InvalidInputError):
        make_question_scope(name, runs)


def cells_of(name: str, mean: Mean, rounds: float = 15.0, unstopped: int = 0) -> list[MeasuredCell]:
    """The cells of a study on mu4 with made-up results."""
    return [
        MeasuredCell(
            "mu4",
            strategy,
            {
                "mean": mean(strategy),
                "median": mean(strategy),
                "rounds_mean": rounds,
                "runs": 10,
                "unstopped": unstopped * (strategy.episodes == "global"),
                "errors": 0,
            },
        )
        for part in make_question_scope(name).question.strategies.values()
        for strategy in part
    ]


def verdicts(name: str, cells: list[MeasuredCell]) -> list[str]:
    return [finding.verdict for finding in judge_question(name, cells)]


def by_share(ids: float, half: float) -> Mean:
    """Samples in proportion to T*_β, but for IDS and β = 1/2."""

    def mean(strategy: Any) -> float:
        if strategy.beta == "ids":
            return ids
        value = theory.t_gaussian_beta(benchmarks.mu4, float(strategy.beta)).value
        return half * value if strategy.beta == 0.5 else value

    return mean


def test_findings_on_shares_follow_the_results() -> None:
    assert verdicts("beta", cells_of("beta", by_share(1.0, 1.0))) == ["agrees"] * 3
    assert verdicts("beta", cells_of("beta", by_share(1e9, 1.0))) == ["agrees", "differs", "agrees"]
    assert verdicts("beta", cells_of("beta", by_share(1.0, 3.0)))[0] == "differs"
    upside_down = cells_of("beta", lambda s: 1.0 if s.beta in ("ids", 0.9) else 2.0)
    assert verdicts("beta", upside_down)[2] == "differs"


def test_findings_on_rounds_follow_the_results() -> None:
    cells = cells_of("adaptivity", lambda _: 1e6)
    assert verdicts("adaptivity", cells) == ["agrees", "not in the paper", "agrees"]
    cell = next(cell for cell in cells if cell.strategy.name == "adap-tt")
    assert compute_rounds_limit(cell) == theory.rounds_bound(1e6, 5)
    many = cells_of("adaptivity", lambda _: 1e6, rounds=1e4, unstopped=7)
    assert verdicts("adaptivity", many) == ["differs", "not in the paper", "differs"]
    assert any("70 %" in words for words in judge_question("adaptivity", many)[2].evidence)
    assert "infinite" in judge_question("adaptivity", many)[0].evidence[-1]


def test_findings_on_small_errors_follow_the_results() -> None:
    def scaled(factor: float) -> Mean:
        def mean(strategy: Any) -> float:
            cell = MeasuredCell("mu4", strategy, {})
            return factor * compute_lower_constant(cell) * (math.log(1 / strategy.delta) + 5)

        return mean

    assert verdicts("delta", cells_of("delta", scaled(1.0))) == ["agrees"] * 3
    assert verdicts("delta", cells_of("delta", scaled(0.5)))[1] == "differs"
    assert verdicts("delta", cells_of("delta", scaled(1e4)))[0] == "differs"
    rising = cells_of("delta", lambda s: 1e6 * math.log(1 / s.delta) ** 2)
    assert verdicts("delta", rising)[2] == "differs"
    assert verdicts("delta", cells_of("delta", lambda _: None)) == []


def test_constants_stand_in_the_right_order() -> None:
    for cell in cells_of("delta", lambda _: 1.0):
        assert compute_lower_constant(cell) <= compute_upper_constant(cell)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_picture_is_drawn(name: str) -> None:
    cells = cells_of(name, lambda s: None if s.beta == 0.1 else 1e5, unstopped=3)
    pictures = report.PICTURES[name]("mu4", cells)
    assert len(pictures) == {"beta": 4, "adaptivity": 2, "delta": 5}[name]
    texts = draw_lines(pictures[0]).axes[0].texts
    labels = {text.get_text().replace("\n", " ") for text in texts}
    assert labels >= {line.label for line in pictures[0].lines}
    assert labels >= {level.label for level in pictures[0].levels}


def test_the_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    prepare_folder(tmp_path, {}, "beta")
    assert json.loads((tmp_path / MARKER).read_text())["study"] == "beta"
    prepare_folder(tmp_path, {}, "beta")
    for name in ("delta", "samples"):
        with pytest.raises(InvalidInputError, match=r"to the study 'beta', not to"):
            prepare_folder(tmp_path, {}, name)
    options = ["reproduce", "--out", str(tmp_path), "--quick"]
    for more in (["--study", "delta"], ["--study", "beta", "--trust", "local"], ["--study", "x"]):
        result = CliRunner().invoke(main, [*options, *more])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_study_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_question_scope("delta").question
    few = tuple(
        s for s in whole.strategies["delta"] if s.delta >= 1e-4 and s.name in ("ttucb", "bet-se")
    )
    asked = QuestionScope(
        StudyQuestion("delta", whole.title, {"delta": few}, {}), ("mu3",), 4, True
    )
    monkeypatch.setattr(report, "make_question_scope", lambda *_: asked)
    options = ["reproduce", "--out", str(tmp_path / "a"), "--study", "delta", "--quick"]
    result = CliRunner().invoke(main, [*options, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["study"] == "delta"
    assert found["cells"] == len(few) == 6
    assert all((tmp_path / "a" / name).stat().st_size > 1000 for name in found["figures"])
    page = (tmp_path / "a" / "report.html").read_text()
    assert "What the results say" in page
    assert "quick look" in page
    again = CliRunner().invoke(main, options)
    assert "AGREES" in again.stdout
