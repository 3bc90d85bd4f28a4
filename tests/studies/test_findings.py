"""What agrees with the paper: the findings' arithmetic, on made-up tables."""

from typing import Any

from discreet.studies.findings import has_gap_of_half_epsilon, judge_paper
from discreet.studies.paper import AUTHORS, STRATEGIES, PaperRows, Scope

SCOPE = Scope(100, ("mu2", "mu4"), {"global": (0.01, 0.02, 1.0, 10.0), "local": (0.1, 0.2, 10.0)})


def made_up(**means: float) -> list[dict[str, Any]]:
    """A table in which every cell has 100 runs; `means` by strategy and threshold, 1000
    otherwise.
    """
    rows = []
    for trust, pairs in STRATEGIES.items():
        for strategy, threshold in pairs:
            mean = means.get(f"{strategy}_{threshold}".replace("-", "_"), 1000.0)
            for level in SCOPE.levels.get(trust, (None,)):
                for instance in SCOPE.instances:
                    row: dict[str, Any] = {"trust": trust, "instance": instance}
                    row |= {
                        "strategy": strategy,
                        "threshold": threshold,
                        "epsilon": level,
                        "delta": 0.01,
                    }
                    row |= {"runs": 100, "unstopped": 0, "errors": 0, "mean": mean, "median": mean}
                    rows.append({**row, "std": 10.0, "sem": 1.0, "q10": mean, "q90": mean})
    return rows


def verdict(rows: list[dict[str, Any]], words: str) -> tuple[str, str]:
    (finding,) = [finding for finding in judge_paper(rows, SCOPE) if words in finding.claim]
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
    rates = [
        finding for finding in judge_paper(rows, SCOPE) if "error rate is at most" in finding.claim
    ]
    assert {finding.verdict for finding in rates} == {"agrees"}
    row["errors"] = 20
    rates = [
        finding for finding in judge_paper(rows, SCOPE) if "error rate is at most" in finding.claim
    ]
    assert [finding.verdict for finding in rates] == ["differs", "agrees"]


def test_slopes_and_spans() -> None:
    rows = made_up()
    for row in rows:
        if row["strategy"] == "ctb-tt":
            row["mean"] = row["median"] = 1000.0 / min(row["epsilon"], 1.0) ** 2
    assert verdict(rows, "grow like ε^−2")[0] == "agrees"
    assert verdict(rows, "CTB-TT needs what TTUCB needs")[0] == "agrees"
    assert verdict(made_up(), "grow like ε^−2")[0] == "differs"


def test_growth_is_of_medians_and_names_its_instances() -> None:
    """A mean that a few runs rule changes nothing; mu2 switches at 0.07, so it says
    nothing about growth between 0.01 and 0.1.
    """
    rows = made_up()
    for row in rows:
        if row["strategy"] == "adap-tt":
            row["median"] = 10.0 / row["epsilon"]
            row["mean"] = 1e9 if row["epsilon"] == 0.01 else 1000.0
    words = verdict(rows, "Two regimes")[1]
    assert "Medians of AdaP-TT, proved: for small ε they grow like ε^-1 (mu2, mu4)" in words
    assert "The switch lines, global privacy, are the formula's: mu2 0.07, mu4 0.2." in words
    assert "0.1 and 0.4 on mu1 and mu2" in words
    for row in rows:
        row["epsilon"] = {0.02: 0.1}.get(row["epsilon"], row["epsilon"])
    wide = Scope(100, SCOPE.instances, {"global": (0.01, 0.1, 1.0, 10.0)})
    (found,) = [one for one in judge_paper(rows, wide) if "Two regimes" in one.claim]
    assert "grow like ε^-0.3 (mu4)," in " ".join(found.evidence)


def test_heavy_tails_are_looked_for_where_a_gap_is_half_epsilon() -> None:
    assert has_gap_of_half_epsilon("mu3", 0.5)
    assert has_gap_of_half_epsilon("mu4", 1.0)
    assert not has_gap_of_half_epsilon("mu4", 0.9)
    rows = made_up()
    assert "not seen" in verdict(rows, "heavy tail")[1]
    for row in rows:
        if row["strategy"] == "adap-tt-star" and row["instance"] == "mu4" and row["epsilon"] == 1.0:
            row["std"] = 5000.0
    assert "not seen" not in verdict(rows, "heavy tail")[1]


def test_a_strategy_without_that_threshold_is_shown_with_its_own() -> None:
    table = PaperRows(made_up(), SCOPE)
    shown = table.shown("mu4", "global", "printed")
    own = {row["strategy"]: row["threshold"] for row in shown}
    assert own == {
        "adap-tt": "proved",
        "adap-tt-star": "printed",
        "dp-se": "proved",
        "bet-se": "proved",
        "ttucb": "proved",
    }
    assert AUTHORS in {row["strategy"] for row in table.shown("mu4", "global", "empirical")}
