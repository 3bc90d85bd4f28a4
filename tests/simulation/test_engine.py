"""engine.py and results.py: the same numbers whatever the threads, caps, warnings,
interruption, files.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta as beta_law

import discreet
from discreet import InvalidInputError, Results, TiedBestArmError, simulate
from discreet.numerics import compute_clopper_pearson
from discreet.simulation.engine import MayNotStopWarning, list_reasons_not_to_stop, simulate_quietly
from discreet.strategies import sampling
from discreet.strategies.estimators import CustomBonus, CustomGrid, CustomThreshold

MU4 = discreet.benchmarks.mu4
QUICK = {
    "ttucb": discreet.ttucb(0.1),
    "ctb-tt": discreet.ctb_tt(2, 0.1),
    "adap-tt": discreet.adap_tt(1, 0.1),
    "adap-tt-star": discreet.adap_tt_star(1, 0.1),
    "dp-se": discreet.dp_se(1, 0.1),
}


def same(one: Results, other: Results) -> bool:
    fields = ("samples", "recommendation", "correct", "stopped", "rounds", "pulls")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


@pytest.mark.parametrize("name", QUICK)
def test_the_same_numbers_at_any_number_of_threads(name: str) -> None:
    results = [
        simulate(MU4, QUICK[name], runs=150, seed=3, threads=threads) for threads in (1, 2, 5)
    ]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    assert not same(results[0], simulate(MU4, QUICK[name], runs=150, seed=4))


@pytest.mark.parametrize("name", QUICK)
def test_more_runs_extend_fewer(name: str) -> None:
    few, many = (
        simulate(MU4, QUICK[name], runs=70, seed=1),
        simulate(MU4, QUICK[name], runs=150, seed=1),
    )
    assert np.array_equal(few.samples, many.samples[:70])


@pytest.mark.parametrize("name", QUICK)
def test_what_a_run_reports_fits_together(name: str) -> None:
    results = simulate(MU4, QUICK[name], runs=100)
    assert np.array_equal(results.pulls.sum(axis=1), results.samples)
    assert np.array_equal(results.correct, results.recommendation == 0)
    assert results.stopped.all()
    assert (results.rounds > 0).all()


def test_a_billion_samples() -> None:
    hard = discreet.Bernoulli([0.5005, 0.5, 0.4995, 0.499, 0.4985])
    results = simulate(hard, discreet.adap_tt(0.01, 0.01), runs=20)
    assert (
        results.stopped.any()
    )  # not all: the noise of a first sample can freeze an arm beyond any cap
    assert results.samples.min() > 10**8


class TestCap:
    def test_unstopped_runs_are_counted_and_never_averaged_in(self) -> None:
        results = simulate(MU4, discreet.adap_tt(0.1, 0.01), runs=50, max_samples=10_000)
        assert results.unstopped == 50
        assert (results.samples == 10_000).all()
        summary = results.summary()
        assert summary["mean"] is None
        assert summary["errors"] == 0
        assert json.dumps(summary, allow_nan=False)

    @pytest.mark.parametrize("name", QUICK)
    def test_every_strategy_keeps_to_it(self, name: str) -> None:
        for cap in (5, 7, 64, 1001):
            results = simulate(MU4, QUICK[name], runs=5, max_samples=cap)
            assert (results.samples <= cap).all()
            assert np.array_equal(results.pulls.sum(axis=1), results.samples)

    def test_beta_arms_have_a_lower_one(self) -> None:
        law = discreet.Beta([3, 2], [1, 2])
        assert simulate(law, QUICK["adap-tt"], runs=2).spec["max_samples"] == 10**9
        with pytest.raises(InvalidInputError, match=r"to 1e\+09"):
            simulate(law, QUICK["adap-tt"], runs=2, max_samples=10**10)


def test_other_laws_with_the_same_means_need_about_the_same() -> None:
    """Bounded rewards of smaller variance never need many more samples than Bernoulli
    ones; here clearly fewer.
    """
    discrete = discreet.Discrete([0, 0.5, 1], [[0, 0.2, 0.8], [0.2, 0.6, 0.2]])
    beta = discreet.Beta([9, 5], [1, 5])
    for law in (discrete, beta):
        private = simulate(law, discreet.adap_tt(2, 0.1), runs=60)
        plain = simulate(law.as_bernoulli(), discreet.adap_tt(2, 0.1), runs=60)
        assert private.errors == plain.errors == 0
        assert private.summary()["median"] <= 2 * plain.summary()["median"]


class TestWarnings:
    def test_tied_suboptimal_arms(self) -> None:
        with pytest.warns(MayNotStopWarning, match="tied"):
            simulate(discreet.benchmarks.mu2, discreet.adap_tt(1, 0.1), runs=2, max_samples=1000)
        simulate(discreet.benchmarks.mu2, discreet.dp_se(1, 0.1), runs=2)

    def test_tied_arms_under_eb_tc(self) -> None:
        strategy = discreet.ttucb(0.1, sampling="eb-tc")
        with pytest.warns(MayNotStopWarning, match="use eb-tci"):
            simulate(discreet.benchmarks.mu2, strategy, runs=2, max_samples=1000)
        for rule in ("eb-tci", "ts-tc", "track-and-stop"):
            assert not list_reasons_not_to_stop(
                discreet.benchmarks.mu2, strategy.with_(sampling=rule)
            )

    def test_track_and_stop_always_stops(self) -> None:
        """Tied arms and one global episode: runs of Top Two do not."""
        tied, cap = discreet.Bernoulli([0.9, 0.3, 0.3, 0.3]), 100_000
        for episodes in ("arm", "global"):
            strategy = discreet.adap_tt(5, 0.1, episodes=episodes, sampling="track-and-stop")
            assert not list_reasons_not_to_stop(tied, strategy)
            assert simulate(tied, strategy, runs=20, max_samples=cap).unstopped == 0
        hangs = strategy.with_(sampling="top-two")
        assert simulate_quietly(tied, hangs, 20, 0, cap).unstopped > 0

    def test_lucb_in_phases(self) -> None:
        with pytest.warns(MayNotStopWarning, match="LUCB"):
            simulate(MU4, discreet.adap_tt(1, 0.1, sampling="lucb"), runs=2, max_samples=10_000)

    def test_global_episodes(self) -> None:
        with pytest.warns(MayNotStopWarning, match="global episode"):
            simulate(MU4, discreet.adap_tt(1, 0.1, episodes="global"), runs=2, max_samples=10_000)


class TestRefused:
    def test_other_things(self) -> None:
        wrong: list[Any] = [("mu4", QUICK["ttucb"]), (MU4, "ttucb")]
        for arguments in wrong:
            with pytest.raises(InvalidInputError, match="takes an Instance"):
                simulate(*arguments)

    def test_a_tie_for_best(self) -> None:
        with pytest.raises(TiedBestArmError):
            simulate(discreet.Bernoulli([0.5, 0.5]), QUICK["ttucb"])

    @pytest.mark.parametrize(
        ("options", "advice"),
        [
            ({"runs": 0}, "runs must be"),
            ({"runs": 1.5}, "runs must be"),
            ({"seed": -1}, "seed must be"),
            ({"max_samples": 3}, "from 5 "),
            ({"max_samples": float("nan")}, "whole number"),
            ({"max_samples": "a"}, "whole number"),
            ({"threads": 0}, "threads must be"),
            ({"threads": -1}, "threads must be"),
            ({"threads": 1.5}, "threads must be"),
            ({"max_samples": 10**13}, r"to 1e\+12"),
            ({"max_samples": 100.5}, "whole number"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], advice: str) -> None:
        with pytest.raises(InvalidInputError, match=advice):
            simulate(MU4, QUICK["ttucb"], **options)


class TestYourOwnParts:
    def test_a_threshold_table_equal_to_ours_gives_the_same_runs(self) -> None:
        from discreet.theory import thresholds as threshold

        own = CustomThreshold("copy", lambda a, b: threshold.c_private(a, b, 5, 0.1, 1.0))
        assert same(
            simulate(MU4, discreet.adap_tt(1, 0.1, threshold=own), 40),
            simulate(MU4, QUICK["adap-tt"], 40),
        )

    def test_a_threshold_of_single_counts(self) -> None:
        half = CustomThreshold("half of c^G", lambda count: float(np.log(4 + np.log(count))))
        few = simulate(MU4, discreet.ttucb(0.1, threshold=half), 40).summary()["mean"]
        assert few < simulate(MU4, QUICK["ttucb"], 40).summary()["mean"]

    @pytest.mark.parametrize(
        "function",
        [lambda a, b: np.ones(3), lambda a, b: np.nan * (a + b)],
        ids=["wrong shape", "NaN"],
    )
    def test_tables_a_kernel_must_not_read(self, function: Any) -> None:
        with pytest.raises(InvalidInputError, match="your threshold"):
            simulate(MU4, discreet.adap_tt(1, 0.1, threshold=CustomThreshold("bad", function)), 2)

    def test_a_threshold_of_one_count_only_is_spread_over_the_other(self) -> None:
        short = CustomThreshold("short", lambda a, b: 20 + 2 * np.log(a))
        full = CustomThreshold("full", lambda a, b: 20 + 2 * np.log(a) + 0 * b)
        results = [
            simulate(MU4, discreet.adap_tt(1, 0.1, threshold=part), 40) for part in (short, full)
        ]
        assert same(*results)

    def test_thresholds_of_single_counts_must_not_fall(self) -> None:
        functions: list[Any] = [lambda n: 12 / (1 + n / 50), lambda n: float("nan"), lambda n: "x"]
        for function in functions:
            with pytest.raises(InvalidInputError):
                simulate(MU4, discreet.ttucb(0.1, threshold=CustomThreshold("bad", function)), 2)

    def test_a_bonus(self) -> None:
        flat = CustomBonus("none", lambda count: 0 * np.asarray(count))
        for base in (discreet.adap_tt(1, 0.1, bonus=flat), discreet.ttucb(0.1, bonus=flat)):
            assert simulate(MU4, base, 5, max_samples=100_000).runs == 5

    def test_a_grid(self) -> None:
        triple = CustomGrid("triple", lambda phase: 3 ** (phase - 1))
        fewer = simulate(MU4, discreet.adap_tt(1, 0.1, grid=triple), 30)
        assert fewer.rounds.mean() < simulate(MU4, QUICK["adap-tt"], 30).rounds.mean()
        often = CustomGrid("half more", lambda phase: int(1.5**phase) if phase > 1 else 1)
        with pytest.raises(InvalidInputError, match="CustomThreshold"):
            simulate(MU4, discreet.adap_tt(1, 0.1, grid=often), 5)
        with pytest.raises(InvalidInputError, match="must grow"):
            simulate(MU4, discreet.adap_tt(1, 0.1, grid=CustomGrid("flat", lambda phase: 1)), 5)
        with pytest.raises(InvalidInputError, match="let it grow"):
            simulate(
                MU4, discreet.ttucb_batched(0.1, grid=CustomGrid("each", lambda phase: phase)), 5
            )


class TestInterruption:
    SCRIPT = (
        "import discreet, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nhard "
        "= discreet.Bernoulli([0.505, 0.5])\ndef progress(done, total):\n    if done == 1:\n      "
        "  print('ready', flush=True)\nresults = discreet.simulate(hard, discreet.ttucb(0.01), "
        "runs=100_000, threads=1, progress=progress)\nprint(results.interrupted, 0 < results.runs "
        "< 100_000, len(results.samples) == results.runs)\n"
    )

    def test_ctrl_c_stops_at_once_with_what_is_done(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        assert out.split() == ["True", "True", "True"]


class TestResults:
    def test_there_and_back(self, tmp_path: Path) -> None:
        results = simulate(MU4, QUICK["adap-tt-star"], runs=30, seed=9)
        results.save(tmp_path / "runs.parquet")
        again = Results.load(tmp_path / "runs.parquet")
        assert same(results, again)
        assert (again.spec, again.seed, again.version) == (results.spec, 9, discreet.__version__)
        assert discreet.Strategy.from_dict(again.spec["strategy"]) == QUICK["adap-tt-star"]
        assert discreet.Instance.from_dict(again.spec["instance"]) == MU4
        assert again.to_frame().shape == (30, 5 + MU4.arms)

    def test_foreign_files(self, tmp_path: Path) -> None:
        import polars as pl

        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
        (tmp_path / "text.parquet").write_text("hello")
        for name in ("other.parquet", "text.parquet"):
            with pytest.raises(InvalidInputError, match="not a file of simulation results"):
                Results.load(tmp_path / name)
        with pytest.raises(InvalidInputError, match="there is no file"):
            Results.load(tmp_path / "none.parquet")
        with pytest.raises(InvalidInputError, match="cannot write"):
            simulate(MU4, QUICK["dp-se"], runs=2).save(tmp_path / "no" / "such" / "folder.parquet")

    def test_summary(self) -> None:
        results = simulate(MU4, QUICK["ttucb"], runs=200)
        summary = results.summary()
        assert summary["mean"] == pytest.approx(results.samples.mean())
        assert summary["sem"] == pytest.approx(results.samples.std(ddof=1) / np.sqrt(200))
        assert summary["quantiles"]["0.5"] == summary["median"]
        assert sum(summary["pulls_mean"]) == pytest.approx(summary["mean"])

    def test_no_guarantee_is_said_wherever_results_go(self, tmp_path: Path) -> None:
        import polars as pl

        empirical = simulate(MU4, discreet.ttucb(0.1, threshold="empirical"), runs=5)
        empirical.save(tmp_path / "runs.parquet")
        again = Results.load(tmp_path / "runs.parquet")
        for results in (empirical, again):
            assert results.summary()["correctness"].startswith("no guarantee")
            assert results.to_frame()["correctness"].str.starts_with("no guarantee").all()
        assert "no guarantee" in pl.read_parquet_metadata(tmp_path / "runs.parquet")["discreet"]
        proved = simulate(MU4, QUICK["ttucb"], runs=5)
        assert proved.summary()["correctness"].startswith("wrong with probability at most 0.1")
        assert "correctness" not in proved.to_frame().columns

    def test_clopper_pearson(self) -> None:
        for hits, trials in [
            (0, 10),
            (10, 10),
            (1, 1000),
            (37, 1000),
            (999, 1000),
            (500, 100_000),
            (50_000, 10**6),
        ]:
            low, high = compute_clopper_pearson(hits, trials)
            if hits:
                assert low == pytest.approx(beta_law.ppf(0.025, hits, trials - hits + 1), rel=1e-9)
            if hits < trials:
                assert high == pytest.approx(beta_law.ppf(0.975, hits + 1, trials - hits), rel=1e-9)


def test_kernels_survive_a_home_without_a_cache(tmp_path: Path) -> None:
    """They are kept with temporary files then. Any leaf shows it: all are compiled by
    `compile_kernel`, and most take long.
    """
    home = tmp_path / "home"
    home.write_text("a file, not a folder")
    code = (
        "from discreet.simulation.compile import compile_kernel; from discreet.strategies import "
        "sampling; print(compile_kernel(sampling.count_tracked)(0.5, 10))"
    )
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{sampling.count_tracked(0.5, 10)}\n", done.stderr
    assert len(list(tmp_path.glob("discreet-*/kernels-*/*/sampling.count_tracked*.nbc"))) == 1
