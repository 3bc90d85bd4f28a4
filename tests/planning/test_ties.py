"""Plans with an indifference zone: ties end, and an arm within the gap is right."""

import pytest
from click.testing import CliRunner

from discreet import Bernoulli, InvalidInputError, TiedBestArmError, bet_se, plan, simulate
from discreet.cli import main
from discreet.instances import Drift, Drifting
from discreet.reports.plan import plan_page

TIED = Bernoulli((0.6, 0.6, 0.2), ("a", "b", "c"))


def test_tied_arms_are_planned() -> None:
    found = plan(TIED, 1.0, 0.1, runs=40, indifference_zone=0.15)
    (row,), (plain,) = found.per_epsilon, found.no_privacy
    assert row.strategy == found.recommended.strategy == bet_se(0.1, 1.0, indifference_zone=0.15)
    assert plain.strategy.indifference_zone == 0.15
    alone = simulate(TIED, row.strategy, 40, 0)
    assert row.participants.mean == alone.samples.mean()
    assert row.best_share == alone.pulls[:, :2].sum() / alone.pulls.sum()
    assert row.correct == (alone.recommendation < 2).mean()
    assert row.lower_bound is None
    assert found.to_dict()["indifference_zone"] == 0.15
    html = plan_page(found)
    assert "Best: a and b." in html
    assert "An example: one simulated trial at ε = 1" in html


def test_what_has_no_indifference_gap_is_refused() -> None:
    with pytest.raises(TiedBestArmError, match="indifference-zone"):
        plan(TIED, 1.0, 0.1)
    with pytest.raises(InvalidInputError, match="dp-se takes no indifference_zone"):
        plan(TIED, 1.0, 0.1, ["bet-se", "dp-se"], indifference_zone=0.1)
    with pytest.raises(InvalidInputError, match="indifference_zone must lie"):
        plan(TIED, 1.0, 0.1, indifference_zone=1.0)
    drifting = Drifting(Bernoulli((0.5, 0.5)), Drift.season(0.1, period=100))
    with pytest.raises(InvalidInputError, match="without their drift"):
        plan(drifting, 1.0, 0.1, indifference_zone=0.1)


def test_on_the_command_line() -> None:
    words = [
        "plan",
        "--means",
        "0.6,0.6,0.2",
        "--indifference-zone",
        "0.15",
        "--runs",
        "10",
        "--epsilon",
        "1",
    ]
    result = CliRunner().invoke(main, [*words, "--max-participants", "400"])
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "Best: arm 1 and arm 2." in shown
    assert "or an arm within 0.15 of it" in shown
    assert "ower bound" not in shown  # no lower bound is known with an indifference zone
    assert "the arms tie" in shown
