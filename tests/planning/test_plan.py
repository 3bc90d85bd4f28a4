"""How many people it takes: a plan's numbers against simulations of their own, and the
privacy a budget affords.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import discreet
from discreet import (
    Bernoulli,
    Beta,
    InvalidInputError,
    MayNotStopWarning,
    TiedBestArmError,
    bet_se,
    bounds,
    gauss_tt,
    make_gap_scenarios,
    plan,
    simulate,
    theory,
    ttucb,
)
from discreet.cli import main
from discreet.planning.power import EPSILON_TOLERANCE, Budget
from discreet.planning.rows import Simulations
from discreet.reports.document import Table
from discreet.reports.plan import build_plan, plan_page
from discreet.reports.terminal import print_table, render

EASY = Bernoulli((0.3, 0.7, 0.5))
KEYS = {
    "epsilon",
    "strategy",
    "participants",
    "correct",
    "unstopped",
    "privacy_cost",
    "lower_bound",
    "best_share",
    "releases",
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


class TestRows:
    def test_are_what_simulate_says(self) -> None:
        found = plan(EASY, [0.2, 1.0], 0.05, runs=100, seed=3)
        assert [row.epsilon for row in found.per_epsilon] == [0.2, 1.0]
        plain = simulate(EASY, bet_se(0.05, trust="none"), 100, 3)
        for row in found.per_epsilon:
            results = simulate(EASY, bet_se(0.05, row.epsilon), 100, 3)
            summary = results.summary()
            assert row.strategy == bet_se(0.05, row.epsilon)
            assert row.participants.mean == summary["mean"]
            assert row.participants.median == summary["median"]
            assert (row.participants.q10, row.participants.q90) == (
                summary["quantiles"]["0.1"],
                summary["quantiles"]["0.9"],
            )
            assert row.participants.longest == results.samples.max()
            assert row.correct == 1 - results.errors / 100
            assert row.correct_interval[0] <= row.correct <= row.correct_interval[1]
            assert row.best_share == pytest.approx(
                results.pulls[:, 1].sum() / results.samples.sum()
            )
            assert row.releases == summary["rounds_mean"]
            assert (row.unstopped, row.wrong) == (0, results.errors)
            assert row.privacy_cost == pytest.approx(results.samples.mean() / plain.samples.mean())
            assert (
                row.lower_bound
                == bounds(EASY, [row.epsilon or 0], 0.05).per_epsilon[0].lower_bound_global
            )
        (reference,) = found.no_privacy
        assert (reference.participants.mean, reference.privacy_cost) == (plain.samples.mean(), 1.0)
        assert found.recommended.strategy.name == "bet-se"

    def test_stop_at_the_most_people(self) -> None:
        free, most = plan(EASY, 0.5, 0.05, runs=200), 400
        (row,), (whole,) = (
            plan(EASY, 0.5, 0.05, runs=200, max_participants=most).per_epsilon,
            free.per_epsilon,
        )
        late = ~simulate(EASY, bet_se(0.05, 0.5), 200, 0, most).stopped
        assert 0 < row.unstopped == late.sum() < 200
        assert row.unstopped_probability == late.mean()
        assert row.participants.q90 is not None
        assert row.participants.q90 <= most
        assert row.correct <= 1 - late.mean() + 1e-12
        assert row.privacy_cost == whole.privacy_cost  # the maximum hides people, not the price

    def test_of_several_strategies_and_scenarios(self) -> None:
        instances = [EASY, Bernoulli((0.2, 0.8))]
        found = plan(instances, [1.0, 2.0], 0.1, ["bet-se", "dp-se", "ttucb"], runs=20)
        assert len(found.per_epsilon) == 2 * (2 * 2 + 1)
        assert [row.strategy.name for row in found.per_epsilon[:5]] == [
            "bet-se",
            "dp-se",
            "bet-se",
            "dp-se",
            "ttucb",
        ]
        assert found.per_epsilon[4].epsilon is None
        assert (
            {row.scenario for row in found.per_epsilon}
            == set(found.scenarios)
            == {"0.3, 0.7, 0.5", "0.2, 0.8"}
        )
        dpse = found.per_epsilon[1]
        reference = simulate(EASY, ttucb(0.1), 20, 0).samples.mean()
        assert dpse.participants.mean is not None
        assert dpse.privacy_cost == pytest.approx(dpse.participants.mean / reference)

    def test_under_local_privacy(self) -> None:
        (row,) = plan(EASY, 1.0, 0.05, trust="local", runs=20).per_epsilon
        assert row.strategy.trust == "local"
        assert row.lower_bound == bounds(EASY, [1.0], 0.05).per_epsilon[0].lower_bound_local_both

    def test_of_a_strategy_of_your_own(self) -> None:
        own = gauss_tt(9.0, 1e-6, 0.3)
        (row,) = plan(Bernoulli((0.1, 0.9)), 2.0, 0.2, [own], runs=5).per_epsilon
        assert row.strategy == own.with_(epsilon=2.0, delta=0.2)
        assert row.lower_bound == theory.lower_bound(theory.t_kl(Bernoulli((0.1, 0.9))), 0.2)

    def test_of_arms_that_are_not_bernoulli(self) -> None:
        found = plan([Beta([1, 6], [6, 1]), EASY], 1.0, 0.1, runs=5)
        row, other = found.per_epsilon
        assert found.has_floor_bounds
        assert not plan(EASY, 1.0, 0.1, runs=5).has_floor_bounds
        assert other.lower_bound == bounds(EASY, [1.0], 0.1).per_epsilon[0].lower_bound_global
        assert row.lower_bound == theory.floor_bound(Beta([1, 6], [6, 1]), 0.1, 1.0)
        assert row.participants.mean is not None

    def test_with_an_indifference_gap_have_no_lower_bound(self) -> None:
        (row,) = plan(EASY, 1.0, 0.1, [bet_se(0.1, 1.0, indifference_zone=0.1)], runs=2).per_epsilon
        assert row.lower_bound is None

    def test_that_do_not_end_count_as_longest(self) -> None:
        tied = Bernoulli((0.9, 0.1, 0.1, 0.1))
        with pytest.warns(MayNotStopWarning, match="adap-tt: some runs may not stop"):
            (row,) = plan(tied, 0.05, 0.1, ["adap-tt"], runs=60, seed=5).per_epsilon
        results = [row.participants.mean, row.participants.median, row.participants.q10]
        assert row.unstopped > 6
        assert None not in results
        assert row.participants.q90 is None
        assert row.participants.longest is None
        assert row.correct + row.unstopped_probability + row.wrong / 60 == pytest.approx(1)


class TestGap:
    @pytest.mark.parametrize(
        ("base", "name"),
        [(0.3, "rest at the base"), (0.5, "base in the middle"), (0.8, "best at the base")],
    )
    def test_the_hardest_lies_nearest_to_one_half(self, base: float, name: str) -> None:
        shapes = make_gap_scenarios(4, 0.1, base)
        for trust in ("global", "local"):
            assert shapes.find_hardest([0.01, 1.0], trust)[0] == name
        (scenario,) = plan(shapes, 1.0, 0.1, runs=2).scenarios
        assert scenario == f"4 arms, gap 0.1, base {base:g}: {name}"

    def test_no_random_shape_with_the_same_best_arm_is_harder(self) -> None:
        rng = np.random.default_rng(1)
        tied = Bernoulli((0.6, 0.5, 0.5, 0.5))
        for _ in range(10):
            other = Bernoulli((0.6, *rng.uniform(0, 0.5, 3)))
            for epsilon in (0.05, 2.0):
                assert (
                    theory.t_epsilon(other, epsilon).value <= theory.t_epsilon(tied, epsilon).value
                )
                assert theory.t_local(other, epsilon).value <= theory.t_local(
                    tied, epsilon
                ).value * (1 + 1e-9)

    def test_the_hardest_takes_the_most_people(self) -> None:
        shapes = make_gap_scenarios(5, 0.1, 0.3)
        means = {
            name: simulate(shape, bet_se(0.05, 0.5), 150, 0).samples.mean()
            for name, shape in shapes.shapes.items()
        }
        assert max(means, key=lambda name: means[name]) == shapes.find_hardest([0.5])[0]

    def test_keeps_the_gap_and_the_range(self) -> None:
        for base in (0.0, 0.02, 0.5, 0.97, 1.0):
            for shape in make_gap_scenarios(4, 0.1, base).shapes.values():
                assert min(shape.gaps) >= 0.1 - 1e-9
        assert set(make_gap_scenarios(2, 0.1, 0.5).shapes) == {
            "rest at the base",
            "base in the middle",
            "best at the base",
        }


class TestBudget:
    @pytest.mark.parametrize("budget", [400, 3000])
    def test_the_answer_suffices_and_less_does_not(self, budget: int) -> None:
        found = plan(EASY, 1.0, 0.05, runs=100, budget=budget, probability=0.8)
        epsilon = found.affordable_epsilon
        assert epsilon is not None

        def share(level: float) -> float:
            results = simulate(EASY, bet_se(0.05, level), 100, 0, budget)
            return float((results.stopped & results.correct).mean())

        assert share(epsilon) == found.affordable[0].correct >= 0.8
        low = float(found.affordable[0].reason.split(" = ")[1].split()[0])
        assert epsilon / (1 + EPSILON_TOLERANCE) <= low * 1.001 < epsilon
        assert share(low) < 0.8

    def test_the_interval_holds_the_limit(self) -> None:
        """Each of twelve seeds may miss it with probability 0.05, so four or more do
        with less than 0.003. By 40 000 trials the limit lies between the two numbers.
        """
        low, high, missed = 0.10096, 0.10124, 0
        for seed in range(12):
            purse = Budget(Simulations(60, seed, None), {"two": Bernoulli((0.2, 0.8))}, 200, 0.9)
            found = purse.find_affordable(lambda epsilon: bet_se(0.1, epsilon))
            least, most = found.epsilon_interval
            assert least is not None
            assert most is not None
            assert found.epsilon is not None
            assert least < found.epsilon < most < 2 * least
            missed += least > high or most < low
        assert missed < 4

    def test_the_interval_is_of_fresh_trials_and_of_all_scenarios(self) -> None:
        arms = {"easy": EASY, "hard": Bernoulli((0.5, 0.7, 0.6))}
        simulations = Simulations(200, 0, None)
        purse = Budget(simulations, arms, 900, 0.8)
        found = purse.find_affordable(lambda epsilon: bet_se(0.05, epsilon))
        assert found.epsilon is None  # the harder one
        found = Budget(simulations, arms, 9000, 0.8).find_affordable(lambda e: bet_se(0.05, e))
        assert found.example is not None
        assert found.example.scenario == "hard"
        fresh = {
            (results.spec["first_run"], results.spec["strategy"]["epsilon"])
            for results in simulations.known.values()
            if "first_run" in results.spec
        }
        assert len({first for first, _ in fresh}) == len(fresh)
        assert {level for _, level in fresh} >= set(found.epsilon_interval)
        assert found.to_dict()["epsilon_interval"] == list(found.epsilon_interval)

    def test_too_few_trials_leave_an_end_open(self) -> None:
        found = plan(EASY, 1.0, 0.05, runs=20, budget=900, probability=0.99).affordable[0]
        assert found.epsilon_interval[1] is None

    def test_more_people_afford_more_privacy(self) -> None:
        found = [
            plan(EASY, 1.0, 0.05, runs=50, budget=n).affordable_epsilon for n in (800, 2000, 10**12)
        ]
        assert None not in found
        assert found == sorted(found, key=lambda value: -(value or 0))
        assert found[2] == pytest.approx(8.0**-10)

    def test_too_few_people_get_the_reason(self) -> None:
        found = plan(EASY, 1.0, 0.05, runs=50, budget=20)
        assert found.affordable_epsilon is None
        assert "even without privacy" in found.affordable[0].reason
        document = found.to_dict()
        assert document["affordable_epsilon"] is None
        other = plan(EASY, 1.0, 0.05, ["dp-se"], runs=50, budget=20).affordable[0]
        assert other.epsilon is None
        assert "at any ε up to 1000" in other.reason


class TestCommand:
    def test_json_is_the_same_from_python(self) -> None:
        result = run(
            "--means",
            "0.3,0.7,0.5",
            "--epsilon",
            "0.5,1",
            "--runs",
            "20",
            "--budget",
            "900",
            "--json",
        )
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        assert found == json.loads(
            json.dumps(plan(EASY, [0.5, 1], 0.05, runs=20, budget=900).to_dict())
        )
        for row in found["per_epsilon"]:
            assert set(row) >= KEYS
            assert set(row["participants"]) == {"mean", "median", "q10", "q90", "longest"}
        assert found["affordable_epsilon"] > 0
        assert "affordable_epsilon" not in plan(EASY, 1, 0.05, runs=2).to_dict()

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_a_table_for_people(self, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        arms = ("--arms", "3", "--gap", "0.3", "--base", "0.5")
        result = run(
            *arms,
            "--strategy",
            "bet-se,dp-se",
            "--runs",
            "20",
            "--max-participants",
            "700",
            "--budget",
            "700",
        )
        assert result.exit_code == 0, result.output
        words = " ".join(result.stdout.split())
        for part in (
            "Success rates: arm 1 65 %, arm 2 35 %, arm 3 35 %. Best: arm 1.",
            "none",
            "Take bet-se",
            "reach 700 participants and stay inconclusive",
            "Budget, bet-se",
        ):
            assert part in words
        assert ("For lack of room without" in words) == (width < 200)
        for line in result.stdout.splitlines():
            if line.startswith("  "):
                assert not line.rstrip().endswith("…")

    @pytest.mark.parametrize("width", [64, 80, 200])
    @pytest.mark.parametrize("most", [None, 150])
    def test_columns_are_explained_and_left_out_by_name(
        self,
        width: int,
        most: int | None,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """And no lower bound stands beside a mean that the maximum has cut."""
        monkeypatch.setenv("COLUMNS", str(width))
        document = build_plan(
            plan(Bernoulli((0.3, 0.7)), [0.1, 0.2], 0.05, runs=10, max_participants=most)
        )
        (table,) = (part for part in document.sections[1].parts if isinstance(part, Table))
        explained = str(document.sections[-1]).lower()
        assert all(head in explained for head in table.head if head != "ε")
        assert ("inconclusive at 150" in table.head) == bool(most)
        if most:
            bounds = [row[table.head.index("lower bound")] == "–" for row in table.rows]
            assert bounds == [False, True, True]
        print_table(table)
        shown, _, left_out = " ".join(capsys.readouterr().out.split()).partition("without: ")
        names = left_out.removesuffix(".").split(", ") if left_out else []
        assert bool(names) == (width < 200)
        assert set(names) <= set(table.optional)
        assert all(cell in shown for row in table.rows for cell in row[:2])

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "--arms 5 --gap 0.1"),
            (["--means", "0.5,0.4", "--arms", "3"], "give either --means, --instance or --data"),
            (["--arms", "3"], "--arms and --gap"),
            (["--arms", "1", "--gap", "0.1"], "arms must be a whole number, 2 or more"),
            (["--arms", "3", "--gap", "0"], "gap must lie strictly between 0 and 1"),
            (["--arms", "3", "--gap", "nan"], "gap must lie"),
            (["--arms", "3", "--gap", "0.8", "--base", "0.5"], None),
            (["--arms", "3", "--gap", "0.9", "--base", "0.3"], "choose a smaller gap"),
            (["--arms", "3", "--gap", "0.1", "--base", "2"], "base is a success rate"),
            (["--means", "0.5,0.5"], "no unique best arm"),
            (["--means", "0.5,0.4", "--epsilon", "0"], "epsilon must be"),
            (["--means", "0.5,0.4", "--epsilon", "x"], "not a list of numbers"),
            (["--means", "0.5,0.4", "--delta", "1"], "delta must lie"),
            (["--means", "0.5,0.4", "--strategy", "best"], "unknown strategy 'best'"),
            (["--means", "0.5,0.4", "--strategy", "gauss-tt"], "plan it from Python"),
            (
                ["--means", "0.5,0.4", "--strategy", "dp-se", "--trust", "local"],
                "needs a trusted collector",
            ),
            (["--means", "0.5,0.4", "--trust", "none"], "trust must be global"),
            (
                ["--means", "0.5,0.4", "--max-participants", "1"],
                "max_participants must be a whole number from 2",
            ),
            (["--means", "0.5,0.4", "--budget", "0"], "budget must be a whole number"),
            (["--means", "0.5,0.4", "--probability", "1"], "probability must lie"),
            (["--means", "0.5,0.4", "--runs", "0"], "runs must be"),
            (["--means", "0.5,0.4", "--seed", "-1"], "seed must be"),
        ],
    )
    def test_bad_input_gets_one_line(self, arguments: list[str], words: str | None) -> None:
        if words is None:
            assert run(*arguments, "--runs", "5").exit_code == 0
            return
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert words in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenarios": []}, "scenarios must be"),
        ({"scenarios": [1]}, "scenarios must be"),
        ({"epsilons": []}, "at least one privacy level"),
        ({"epsilons": math.inf}, "epsilon must be"),
        ({"strategies": []}, "at least one strategy"),
        ({"max_participants": 10.5}, "max_participants must be a whole number"),
        ({"budget": True}, "budget must be a whole number"),
    ],
)
def test_bad_input_from_python(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        plan(**{"scenarios": EASY, "epsilons": [1.0], "delta": 0.05, **change})


class TestThePage:
    def test_holds_numbers_pictures_and_no_network(self, tmp_path: Path) -> None:
        page = tmp_path / "plan.html"
        names = ["--names", "<b>low</b>,high,mid", "--means", "0.3,0.7,0.5"]
        budget = ["--budget", "900", "--max-participants", "2000", "--strategy", "bet-se,dp-se"]
        result = run(
            *names, *budget, "--epsilon", "0.5,1", "--runs", "60", "--html", str(page), "--json"
        )
        assert result.exit_code == 0, result.output
        found, html = json.loads(result.stdout), page.read_text()
        assert "results" not in found["per_epsilon"][0]
        assert html.count("<svg") == 5
        epsilon = found["recommended"]["epsilon"]
        assert epsilon == found["affordable_epsilon"]
        for words in (
            "The answer",
            "Participants and privacy",
            "Power: how likely an answer is",
            f"An example: one simulated trial at ε = {epsilon:.3g}",
            "This ε is what a budget of 900 participants affords.",
            "Budget, bet-se",
            "inconclusive at 2,000",
        ):
            assert words in html, words
        assert "&lt;b&gt;low" in html
        assert "<b>low" not in html
        assert "http" not in html.replace("http://www.w3.org/", "").replace("http-equiv", "")
        mean = math.ceil(found["per_epsilon"][0]["participants"]["mean"] - 1e-9)
        assert f"{mean:,} participants on average" in html

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "strategies",
        [["ttucb"], [bet_se(0.1, 1.0, "local")], ["adap-tt"]],
        ids=["free", "local", "adap-tt"],
    )
    def test_of_other_strategies(self, strategies: Any) -> None:
        trust = "local" if isinstance(strategies[0], discreet.Strategy) else "global"
        found = plan([EASY, Bernoulli((0.9, 0.2))], [2.0], 0.1, strategies, trust, runs=40)
        html = plan_page(found)
        assert "scenario 2" in html
        assert ("An example" in html) == (strategies != ["ttucb"])

    def test_of_arms_that_are_not_bernoulli(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = plan(Beta([2, 5], [2, 2]), [1.0], 0.1, runs=20)
        html = plan_page(found)
        assert "An example: one simulated trial at ε = 1" in html
        assert "Its means are outcomes on a scale from 0 to 1, and 1 is the better end" in html
        assert "Mean outcomes on a scale from 0 to 1: " in html
        render(build_plan(found))
        shown = " ".join(capsys.readouterr().out.split())
        assert "Mean outcomes on a scale from 0 to 1: arm 1 0.5, arm 2 0.714286." in shown
        assert "reward" not in shown + html
        assert (
            "Share of the participants on each arm" not in html
        )  # the ideal spread is one of bits
        monkeypatch.setattr("discreet.reports.plan.MAX_EXAMPLE", 3)
        assert "An example" not in plan_page(found)
        assert html.count("no strategy whose error rate holds however they are spread") == 2
        render(build_plan(found))
        shown = " ".join(capsys.readouterr().out.split())
        assert "(where outcomes are more than yes or no: no strategy whose error rate" in shown
        assert "laws on" not in shown + html
        assert html.count("<svg") == 3

    def test_that_cannot_be_written_is_refused_before_the_work(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("discreet.planning.rows.simulate", None)
        result = run("--means", "0.3,0.7", "--html", "/no/such/folder/plan.html")
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert "cannot write /no/such/folder/plan.html" in result.stderr


def test_a_tie_is_refused_before_anything_is_simulated() -> None:
    with pytest.raises(TiedBestArmError):
        plan([EASY, Bernoulli((0.5, 0.5))], 1.0, 0.05)


def test_progress_and_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    plan(EASY, 1.0, 0.05, runs=10, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (20, 20)
    words: list[str] = []
    plan(EASY, 1.0, 0.05, runs=2, max_participants=90, doing=words.append)
    assert words[0] == "participants it takes: bet-se at ε = 1"
    assert "power if the best arm is 0.1 better: bet-se without privacy" in words
    with pytest.raises(InvalidInputError, match="doing must be a function"):
        plan(EASY, 1.0, 0.05, doing=1)  # type: ignore[arg-type]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(EASY, 1.0, 0.05, runs=10, progress=stop)
    assert discreet.plan is plan
