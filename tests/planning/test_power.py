"""Power: how likely answers are within so many people, against the true difference."""

import numpy as np
import pytest

from discreet import Bernoulli, Beta, Discrete, RoundedWarning, Sampled, bet_se, plan, simulate
from discreet.instances import Instance
from discreet.planning.power import GAP_FACTORS, set_gap
from discreet.reports.charts import draw_path
from discreet.reports.plan import (
    build_plan,
    describe_certainty,
    group_power_curves,
    make_power_table,
)
from discreet.reports.terminal import render
from discreet.simulation.paths import run_path

ARMS = Bernoulli((0.3, 0.7, 0.5), ("a", "b", "c"))
DATA = Sampled([[0.0, 0.4], [0.5, 1.0, 0.9], [0.2, 0.6, 0.4, 0.4]], ["a", "b", "c"])


def test_points_are_what_simulate_says() -> None:
    found = plan(ARMS, 0.5, 0.05, runs=250, seed=3, max_participants=500)
    private = [point for point in found.power if point.epsilon is not None]
    assert [point.gap for point in private] == pytest.approx(
        [0.2 * factor for factor in GAP_FACTORS[1:]]
    )
    for point in private:
        arms = Bernoulli((0.3, 0.5 + point.gap, 0.5), ARMS.names)
        own = point.gap == pytest.approx(0.2)
        alone = simulate(arms, bet_se(0.05, 0.5), 250 if own else 200, 3, 500)
        assert point.runs == alone.runs
        assert point.participants == 500
        assert point.conclusive == alone.stopped.mean()
        assert point.correct == (alone.stopped & alone.correct).mean()
        assert point.correct_interval[0] < point.correct <= point.correct_interval[1]
        if own:
            assert point.correct == found.per_epsilon[0].correct
    assert private[0].correct < 0.5 < private[-1].correct
    assert len(found.power) == 2 * len(private)
    described = found.to_dict()["power"]
    assert described[0]["conclusive_interval"] == list(found.power[0].conclusive_interval)


def test_curves_are_of_the_maximum_else_of_the_budget_and_can_be_left_out() -> None:
    both = plan(ARMS, 1.0, 0.1, runs=10, max_participants=300, budget=400)
    assert {point.participants for point in both.power} == {300}
    budget = plan(ARMS, 1.0, 0.1, runs=10, budget=400)
    assert {point.participants for point in budget.power} == {400}
    for without in (
        plan(ARMS, 1.0, 0.1, runs=10),
        plan(ARMS, 1.0, 0.1, runs=10, max_participants=300, power=False),
    ):
        assert without.power == ()
        assert "power" not in without.to_dict()


@pytest.mark.parametrize("factor", GAP_FACTORS)
@pytest.mark.parametrize(
    "arms",
    [
        ARMS,
        Beta([2, 4, 1], [2, 1, 3], ["a", "b", "c"]),
        Discrete([0, 0.5, 1], [[0.5, 0.5, 0], [0, 0.2, 0.8], [0.2, 0.2, 0.6]], ["a", "b", "c"]),
        DATA,
    ],
    ids=["bernoulli", "beta", "discrete", "sampled"],
)
def test_only_the_best_arm_moves(arms: Instance, factor: float) -> None:
    """Its mean is so many times as far above the next; other laws cannot go further."""
    best, gap = int(np.argmax(arms.means)), float(arms.gaps.min())
    moved = set_gap(arms, factor)
    top = arms.means[best] + (factor - 1) * gap
    if moved is None:
        assert factor > 1
        assert top > 1 or isinstance(arms, Discrete | Sampled)
        return
    assert moved.names == arms.names
    assert moved.means[best] == pytest.approx(top)
    assert np.delete(moved.means, best) == pytest.approx(np.delete(arms.means, best))
    if factor == 1:
        assert moved is arms


def test_a_tie_is_a_point_only_where_any_of_the_arms_will_do() -> None:
    found = plan(ARMS, 1.0, 0.1, runs=10, max_participants=300, indifference_zone=0.1)
    assert min(point.gap for point in found.power) == 0
    assert all(point.correct == point.conclusive for point in found.power if point.gap == 0)
    tied = plan(
        Bernoulli((0.6, 0.6)), 1.0, 0.1, runs=10, max_participants=300, indifference_zone=0.1
    )
    assert tied.power == ()


def test_data_in_units_are_shown_in_units() -> None:
    past = {"old": [160.0, 200.0, 240.0], "new": [80.0, 100.0, 90.0]}
    data = Sampled.from_outcomes(past, range=(0, 400), direction="min")
    with pytest.warns(RoundedWarning, match=r'outcomes="numbers"'):
        simulate(data, bet_se(0.05, 1.0), runs=1)
    found = plan(data, 2.0, 0.05, runs=20, max_participants=150)
    assert {row.scenario for row in found.per_epsilon} == {"old, new"}
    assert found.to_dict()["power"][-1]["difference"] == pytest.approx(110)
    assert make_power_table(group_power_curves(found, "old, new"), "").head[-1] == "110"
    path = run_path(data, found.recommended.strategy)
    (means, *_) = draw_path(path).axes
    assert means.get_ylabel() == "estimate (less is better)"
    low, high = means.get_ylim()
    assert (low < 0, high > 400) == (True, True)
    drawn = {round(float(np.asarray(line.get_ydata())[-1]), 6) for line in means.get_lines()}
    assert {round(400 * (1 - mean), 6) for mean in path.means[-1]} < drawn


def test_a_table_of_nothing_but_certainty_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    sure = plan(Bernoulli((0.1, 0.9)), 4.0, 0.05, runs=10, max_participants=100_000)
    render(build_plan(sure))
    said = " ".join(capsys.readouterr().out.split())
    assert "At every true difference from 0.2 to 0.8 between the best arm and the next, all" in said
    assert "Each column is a true difference" not in said
    unsure = plan(ARMS, 1.0, 0.1, runs=10, max_participants=300)
    assert describe_certainty(unsure, group_power_curves(unsure, "0.3, 0.7, 0.5")) is None
