"""Strategies of one's own, in plain Python: the engine's runs again, every mistake
named, the label everywhere.
"""

import functools
import itertools
import json
import math
import multiprocessing
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import (
    Bernoulli,
    Beta,
    Discrete,
    InvalidInputError,
    Results,
    Sampled,
    Study,
    UserStrategy,
    plan,
    run_study,
    simulate,
)
from discreet.cli.simulate import simulation_report
from discreet.reports import charts
from discreet.reports.plan import build_plan, plan_page
from discreet.reports.summaries import (
    build_correctness_audit,
    build_simulation,
    build_sweep,
)
from discreet.reports.terminal import render
from discreet.simulation.engine import make_generator
from discreet.simulation.paths import run_path
from discreet.simulation.user_strategies import hash_class
from discreet.theory import thresholds
from discreet.wording import NO_GUARANTEE as LABEL

MU4 = discreet.benchmarks.mu4
EASY = Bernoulli([0.9, 0.2, 0.3])


class Means:
    """What the strategies here share: counts and sums."""

    def __init__(self, arms: int, delta: float, rng: np.random.Generator) -> None:
        self.arms, self.delta, self.rng = arms, delta, rng
        self.count, self.total = np.zeros(arms, int), np.zeros(arms)

    def tell(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward

    @property
    def mean(self) -> Any:
        return self.total / np.maximum(self.count, 1)

    @property
    def recommendation(self) -> int:
        return int(np.argmax(self.mean))


class Uniform(Means):
    """Round robin until the two best are apart by twice Hoeffding's radius, which pays
    for every look.
    """

    def ask(self) -> int | None:
        looks = int(self.count.min())
        if looks and self.count.max() == looks:
            radius = math.sqrt(math.log(4 * self.arms * looks**2 / self.delta) / (2 * looks))
            second, best = np.sort(self.mean)[-2:]
            if best - second > 2 * radius:
                return None
        return int(np.argmin(self.count))


class Elimination(Means):
    """Successive elimination with the same radius."""

    rounds = 0

    def __init__(self, arms: int, delta: float, rng: np.random.Generator) -> None:
        super().__init__(arms, delta, rng)
        self.left, self.queue = list(range(arms)), list(range(arms))

    def ask(self) -> int | None:
        if not self.queue:
            self.rounds += 1
            radius = math.sqrt(
                math.log(4 * self.arms * self.rounds**2 / self.delta) / (2 * self.rounds)
            )
            best = max(self.mean[self.left])
            self.left = [arm for arm in self.left if self.mean[arm] > best - 2 * radius]
            self.queue = list(self.left)
        return self.queue.pop(0) if len(self.left) > 1 else None


class TopTwo(Means):
    """TTUCB as its paper writes it, with our threshold."""

    def __init__(self, arms: int, delta: float, rng: np.random.Generator) -> None:
        super().__init__(arms, delta, rng)
        self.constant = 2 * float(thresholds.c_g(math.log((arms - 1) / delta) / 2))
        self.led, self.led_pulls = np.zeros(arms, int), np.zeros(arms, int)

    def cost(self, one: int, other: int) -> float:
        gap = max(self.mean[one] - self.mean[other], 0.0)
        return float(gap**2 / (0.5 * (1 / self.count[one] + 1 / self.count[other])))

    def bar(self, one: int, other: int) -> float:
        return self.constant + sum(
            2 * math.log(4 + math.log(self.count[arm])) for arm in (one, other)
        )

    def ask(self) -> int | None:
        samples, best = int(self.count.sum()), self.recommendation
        if samples < self.arms:
            return samples
        others = [arm for arm in range(self.arms) if arm != best]
        if all(self.cost(best, arm) >= self.bar(best, arm) for arm in others):
            return None
        bonus = np.sqrt(0.5 * 1.2 * 2.2 * math.log(samples) / self.count)
        leader = int(np.argmax(self.mean + bonus))
        rivals = [arm for arm in range(self.arms) if arm != leader]
        chosen = min(rivals, key=lambda arm: self.cost(leader, arm))
        if self.led_pulls[leader] <= 0.5 * (self.led[leader] + 1):
            chosen = leader
            self.led_pulls[leader] += 1
        self.led[leader] += 1
        return chosen


class Noisy(Uniform):
    """Round robin on randomised responses: it claims local DP and does it itself."""

    def __init__(
        self, arms: int, delta: float, rng: np.random.Generator, epsilon: float, people: int = 60
    ) -> None:
        super().__init__(arms, delta, rng)
        self.keep = 1 / (1 + math.exp(-epsilon))
        self.people = people

    def ask(self) -> int | None:
        return None if self.count.sum() >= self.people else int(np.argmin(self.count))

    def tell(self, arm: int, reward: float) -> None:
        super().tell(arm, reward if self.rng.random() < self.keep else 1 - reward)


class Hasty(Means):
    """Cheats: two samples an arm, and done."""

    def ask(self) -> int | None:
        return None if self.count.min() >= 2 else int(np.argmin(self.count))


UNIFORM = UserStrategy("uniform", Uniform, delta=0.1)
ELIMINATION = UserStrategy("plain-se", Elimination, delta=0.1)
NOISY = UserStrategy("noisy", Noisy, delta=0.1, epsilon=1.0, trust="local")
HASTY = UserStrategy("hasty", Hasty, delta=0.1)


def same(one: Results, other: Results) -> bool:
    fields = ("samples", "recommendation", "correct", "stopped", "rounds", "pulls")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


class TestRuns:
    @pytest.mark.parametrize(
        "instance",
        [
            Bernoulli([0.8, 0.3, 0.2]),
            Discrete([0.0, 0.5, 1.0], [[0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]),
            Beta([4.0, 2.0], [2.0, 4.0]),
            Sampled([[0.9, 0.5, 0.6], [0.1, 0.7]]),
        ],
        ids=["bernoulli", "discrete", "beta", "data"],
    )
    def test_the_same_runs_as_the_engine(self, instance: discreet.Instance) -> None:
        """TTUCB in plain Python meets the rewards that the compiled one meets, run by
        run, also from a later run on.
        """
        own, ours = UserStrategy("plain", TopTwo, delta=0.1), discreet.ttucb(0.1)
        choices: list[dict[str, Any]] = [
            {"seed": 3},
            {"seed": 3, "max_samples": 60},
            {"seed": 5, "first_run": 7},
        ]
        for numbers in choices:
            assert same(
                simulate(instance, own, runs=12, **numbers),
                simulate(instance, ours, runs=12, **numbers),
            )

    def test_a_run_draws_from_the_generator_of_its_number(self) -> None:
        results = simulate(EASY, NOISY, runs=4, seed=9)
        rng = make_generator(9, 3)
        rule = Noisy(3, 0.1, rng, 1.0)
        while (arm := rule.ask()) is not None:
            rule.tell(arm, float(rng.random() < EASY.means[arm]))
        assert results.recommendation[3] == rule.recommendation
        assert np.array_equal(results.pulls[3], rule.count)

    @pytest.mark.parametrize("strategy", [UNIFORM, ELIMINATION, NOISY], ids=lambda each: each.name)
    def test_the_same_numbers_at_any_number_of_threads(self, strategy: UserStrategy) -> None:
        one, other = (
            simulate(EASY, strategy, runs=30, seed=3, threads=threads) for threads in (1, 4)
        )
        assert same(one, other)
        assert same(one, simulate(EASY, strategy.with_(), runs=30, seed=3))

    def test_what_a_run_reports_fits_together(self) -> None:
        uniform, elimination = (
            simulate(EASY, UNIFORM, runs=40),
            simulate(EASY, ELIMINATION, runs=40),
        )
        for results in (uniform, elimination):
            assert results.stopped.all()
            assert results.errors == 0
            assert np.array_equal(results.pulls.sum(axis=1), results.samples)
        assert np.array_equal(uniform.rounds, uniform.samples)
        assert (elimination.rounds < elimination.samples).all()
        assert elimination.samples.mean() < uniform.samples.mean()

    def test_at_the_cap(self) -> None:
        results = simulate(EASY, UNIFORM, runs=10, max_samples=20)
        assert results.unstopped == 10
        assert (results.samples == 20).all()
        until = int(simulate(EASY, HASTY, runs=1).samples[0])
        assert simulate(EASY, HASTY, runs=1, max_samples=until).stopped.all(), (
            "right at the cap it has stopped"
        )

    def test_options_reach_the_class(self) -> None:
        short = UserStrategy("noisy", Noisy, delta=0.1, epsilon=1.0, trust="local", people=30)
        assert set(simulate(EASY, short, runs=5).samples) == {30}
        assert set(simulate(EASY, short.with_(people=33, epsilon=2), runs=5).samples) == {33}
        assert short != NOISY
        assert short.with_(delta=0.2).delta == 0.2
        assert repr(short).startswith(
            "UserStrategy('noisy', Noisy, delta=0.1, epsilon=1.0, trust='local'"
        )

    def test_an_indifference_gap_is_told_and_counts(self) -> None:
        class Gap(Hasty):
            def __init__(
                self, arms: int, delta: float, rng: np.random.Generator, indifference_zone: float
            ) -> None:
                super().__init__(arms, delta, rng)
                assert indifference_zone == 0.7

        assert simulate(
            EASY, UserStrategy("gap", Gap, delta=0.1, indifference_zone=0.7), runs=20
        ).correct.all()

    def test_the_way_of_a_run_is_not_drawn(self) -> None:
        with pytest.raises(InvalidInputError, match="only you know"):
            run_path(EASY, UNIFORM)


class TestMistakes:
    def broken(self, **parts: Any) -> UserStrategy:
        return UserStrategy("broken", type("Broken", (Hasty,), parts), delta=0.1)

    @pytest.mark.parametrize("arm", [3, -1, 1.0, "0", True, np.float64(1)])
    def test_ask_gives_no_arm(self, arm: Any) -> None:
        words = r"Broken\.ask gave .*it must be an arm, a whole number from 0 to 2, or None to stop"
        with pytest.raises(InvalidInputError, match=words):
            simulate(EASY, self.broken(ask=lambda _: arm), runs=2)

    def test_a_number_of_numpy_is_an_arm(self) -> None:
        arms = (np.int64(arm) for arm in itertools.repeat(1, 4))
        broken = self.broken(ask=lambda _: next(arms, None))
        assert simulate(EASY, broken, runs=1).pulls.tolist() == [[0, 4, 0]]

    @pytest.mark.parametrize("named", [None, 3, 0.0])
    def test_the_recommendation_is_no_arm(self, named: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"Broken\.recommendation is .*, when it stops"):
            simulate(EASY, self.broken(recommendation=named), runs=2)
        with pytest.raises(InvalidInputError, match="also when the cap ends a run"):
            simulate(EASY, self.broken(recommendation=named), runs=2, max_samples=3)

    def test_it_stops_before_its_first_sample(self) -> None:
        with pytest.raises(InvalidInputError, match="Broken stopped before its first sample"):
            simulate(EASY, self.broken(ask=lambda _: None), runs=2)

    @pytest.mark.parametrize("rounds", [-1, 1.5, None])
    def test_rounds_count_nothing(self, rounds: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"Broken\.rounds is"):
            simulate(EASY, self.broken(rounds=rounds), runs=2)

    def test_an_exception_reaches_the_caller_as_it_is(self) -> None:
        class MineError(Exception):
            pass

        mine = MineError("my own words")

        def tell(_: Any, arm: int, reward: float) -> None:
            raise mine

        with pytest.raises(MineError) as caught:
            simulate(EASY, self.broken(tell=tell), runs=5)
        assert caught.value is mine

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ({"make": UNIFORM}, "give the class itself"),
            ({"make": functools.partial(Uniform, arms=2)}, "give the class itself"),
            ({"make": Means}, "Means needs a method ask"),
            (
                {"make": Noisy},
                "Noisy must accept arms, delta, rng under these names: missing.*'epsilon'",
            ),
            ({"scale": 2}, "unexpected keyword argument 'scale'"),
            ({"epsilon": 1.0}, "leave epsilon out, or say trust='global' or trust='local'"),
            ({"trust": "global"}, "say how private"),
            ({"trust": "nobody"}, "trust must be one of"),
            ({"delta": 0}, "delta must lie"),
            ({"indifference_zone": 1.0}, "indifference_zone must lie"),
            ({"name": "ttucb"}, "a name that no preset has"),
            ({"name": ""}, "a name that no preset has"),
            ({"scale": [1]}, "options must be numbers, texts"),
        ],
    )
    def test_what_is_refused_at_once(self, parts: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            UserStrategy(**{"name": "mine", "make": Uniform, "delta": 0.1, **parts})

    def test_where_it_has_no_place(self) -> None:
        with pytest.raises(InvalidInputError, match="a Python class and cannot be saved"):
            UNIFORM.to_dict()
        with pytest.raises(InvalidInputError, match="a Python class and cannot be saved"):
            discreet.Trial.create("sqlite://", "trial", ["a", "b"], UNIFORM, max_participants=10)
        with pytest.raises(InvalidInputError, match="only mechanisms of a live trial"):
            discreet.audit_privacy(NOISY)


class TestLabel:
    """Whatever shows the strategy says that there is no guarantee of ours."""

    def test_results(self, tmp_path: Path) -> None:
        results = simulate(EASY, UNIFORM, runs=5)
        assert results.correctness == f"{LABEL}: the strategy 'uniform' is your own"
        assert results.summary()["correctness"] == results.correctness
        assert results.to_frame()["correctness"].to_list() == [results.correctness] * 5
        results.save(tmp_path / "runs.parquet")
        assert Results.load(tmp_path / "runs.parquet").correctness == results.correctness
        assert results.spec["strategy"]["code"] == hash_class(Uniform)

    def test_the_strategy(self) -> None:
        assert not UNIFORM.is_proved
        assert UNIFORM.privacy.startswith("none")
        assert LABEL in NOISY.privacy
        assert LABEL in UNIFORM.shown
        assert "Uniform" in UNIFORM.reference
        assert json.dumps(UNIFORM.describe())
        assert discreet.ttucb(0.1).shown == "ttucb"

    def test_a_simulation_in_a_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = simulation_report(EASY, UNIFORM, simulate(EASY, UNIFORM, runs=5))
        render(build_simulation(found, EASY))
        assert LABEL in capsys.readouterr().out

    def test_a_plan(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = plan(
            EASY, [1.0, 2.0], 0.1, strategies=[UNIFORM, NOISY], trust="local", runs=10, budget=60
        )
        rows = found.to_dict()["per_epsilon"]
        assert [row["strategy"] for row in rows] == ["noisy", "noisy", "uniform"]
        assert [row["epsilon"] for row in rows] == [1.0, 2.0, None]
        assert all(
            row["correctness"].startswith(LABEL) and row["privacy_cost"] is None for row in rows
        )
        bounds = [row["lower_bound"] for row in rows]
        assert bounds[0] > bounds[1] > bounds[2] > 0
        assert "correctness" not in found.to_dict()["no_privacy"][0]
        assert all(LABEL in entry.strategy for entry in found.affordable)
        render(build_plan(found))
        shown = " ".join(capsys.readouterr().out.split())
        for name in ("noisy", "uniform"):
            assert f"{LABEL}: the strategy '{name}' is your own" in shown.lower()
        page = plan_page(found)
        assert f"noisy ({LABEL})" in page.partition("<table")[0]
        assert "<td>noisy (no proof)</td>" in page
        assert all(LABEL not in table for table in re.findall("<table.*?</table>", page, re.S))
        assert f"No proof: {LABEL} that its error rate holds." in page

    def test_an_audit(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = discreet.audit_correctness(
            HASTY, runs=100, instances={"near tie": Bernoulli([0.5, 0.51])}
        )
        assert found.is_violated
        assert found.to_dict()["correctness"].startswith(LABEL)
        render(build_correctness_audit(found))
        shown = capsys.readouterr().out
        assert LABEL in shown
        assert "VIOLATED" in shown
        honest = discreet.audit_correctness(UNIFORM, runs=50, instances={"easy": EASY})
        assert not honest.is_violated

    def test_a_study(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        table = run_study(Study({"easy": EASY}, [NOISY, discreet.bet_se(0.1, 1)], runs=5), tmp_path)
        rows = table.to_dicts()
        assert rows[0]["correctness"].startswith(LABEL)
        assert rows[1]["correctness"].startswith("wrong with probability at most 0.1")
        assert rows[0]["threshold"] == rows[0]["sampling"] == "own"
        assert str(hash_class(Noisy))[:8] in rows[0]["options"]
        assert LABEL in (tmp_path / "study.json").read_text()
        render(build_sweep(rows, "folder"))
        assert LABEL in capsys.readouterr().out.lower()
        drawn = charts.make_epsilon_data(rows)
        assert [curve.label for curve in drawn.curves] == ["noisy (no proof)", "bet-se"]

    def test_a_picture(self) -> None:
        results = simulate(EASY, UNIFORM, runs=5)
        drawn = charts.distribution({"mine": results})
        assert drawn.labels == ("mine (no proof)",)
        foot = charts.draw_distribution(drawn).get_supxlabel()
        assert " ".join(foot.split()).startswith(f"no proof: {LABEL}")
        assert charts.render(charts.draw_allocation(charts.allocation(results)))


TYPED = """
class Mine:
    constant = {constant}

    def __init__(self, arms, delta, rng):
        pass

    @property
    def recommendation(self):
        return self.constant

    def ask(self):
        return {answer}

    def tell(self, arm, reward):
        pass
"""


class TestStudy:
    def test_goes_on_and_grows(self, tmp_path: Path) -> None:
        run_study(Study({"easy": EASY}, [UNIFORM], runs=5), tmp_path / "a")
        grown = run_study(Study({"easy": EASY}, [UNIFORM], runs=12), tmp_path / "a")
        whole = run_study(Study({"easy": EASY}, [UNIFORM], runs=12), tmp_path / "b")
        assert grown.drop("seconds").equals(whole.drop("seconds"))
        assert grown["mean"][0] == simulate(EASY, UNIFORM, runs=12).summary()["mean"]

    def test_refuses_a_folder_whose_strategy_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        versions = []
        for version, answer in enumerate(("0", "1")):
            text = TYPED.format(constant=0, answer=answer)
            (tmp_path / f"mine{version}.py").write_text(text)
            monkeypatch.syspath_prepend(tmp_path)
            versions.append(UserStrategy("mine", __import__(f"mine{version}").Mine, delta=0.1))
        first, second = (Study({"easy": EASY}, [each], runs=2, max_samples=9) for each in versions)
        assert first != second
        run_study(first, tmp_path / "folder")
        with pytest.raises(
            InvalidInputError, match=r"another study \(the code of Mine changed \(\w{8} → \w{8}\)\)"
        ):
            run_study(second, tmp_path / "folder")
        other = Study({"easy": EASY}, [versions[0].with_(delta=0.2)], runs=2, max_samples=9)
        with pytest.raises(InvalidInputError, match=r"delta = 0.1, .*is gone"):
            run_study(other, tmp_path / "folder")
        with pytest.raises(InvalidInputError, match="not the description of a strategy"):
            Study.from_dict(first.to_dict())

    def test_a_constant_and_a_base_class_are_code(self) -> None:
        assert hash_class(Elimination) != hash_class(Uniform)
        derived = [
            type("Same", (base,), {"__module__": "builtins"}) for base in (Uniform, Elimination)
        ]
        assert hash_class(derived[0]) == hash_class(Uniform)
        assert hash_class(derived[0]) != hash_class(derived[1])

    def test_a_class_of_a_notebook_is_known_by_its_functions(self, tmp_path: Path) -> None:
        """There the text of a class is not to be found, that of its functions is."""
        codes = []
        for number, constant in enumerate((0, 0, 1)):
            text = TYPED.format(constant=constant, answer=0)
            cell = tmp_path / f"cell{number}"
            cell.write_text(text)
            space: dict[str, Any] = {"__name__": "no module"}
            exec(compile(text, str(cell), "exec"), space)
            codes.append(hash_class(space["Mine"]))
        assert codes[0] == codes[1] != codes[2]
        assert None not in codes

    def test_a_class_without_a_text_is_refused(self) -> None:
        space: dict[str, Any] = {"__name__": "no module"}
        exec(TYPED.format(constant=0, answer=0), space)
        typed = UserStrategy("typed", space["Mine"], delta=0.1)
        with pytest.raises(InvalidInputError, match=r"put the class into a \.py file"):
            Study({"easy": EASY}, [typed])

    def test_is_sent_to_other_processes(self, tmp_path: Path) -> None:
        assert pickle.loads(pickle.dumps(NOISY)) == NOISY
        study = Study({"easy": EASY}, [NOISY], runs=6)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            there = run_study(study, tmp_path / "there", executor=pool)
        assert there.drop("seconds").equals(run_study(study, tmp_path / "here").drop("seconds"))


def test_ctrl_c_returns_the_runs_that_are_done() -> None:
    def interrupt(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    results = simulate(EASY, HASTY, runs=10_000, threads=1, progress=interrupt)
    assert results.interrupted
    assert 5 <= results.runs < 10_000
