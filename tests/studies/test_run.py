"""Studies: from files, resumption, growth, refusals, the same bytes whatever did the
work.
"""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import discreet
from discreet import (
    DiscreetError,
    InvalidInputError,
    MissingExtraError,
    Results,
    Study,
    run_study,
    simulate,
)
from discreet.cli import main
from discreet.simulation import engine
from discreet.strategies.estimators import CustomThreshold
from discreet.studies import folder as study_folder
from discreet.studies.folder import make_cell_key
from discreet.studies.run import StudyStep, connect_dask
from discreet.studies.study import describe_extras

MU4 = discreet.benchmarks.mu4
EASY = discreet.Bernoulli((0.8, 0.5, 0.3))
STRATEGIES = (discreet.bet_se(0.1, 1), discreet.dp_se(1, 0.1), discreet.bet_se(0.1, trust="none"))
COLUMNS = [
    *("instance", "strategy", "threshold", "sampling", "trust", "options", "epsilon", "delta"),
    *("runs", "unstopped", "errors", "mean", "median", "std", "sem", "q10", "q25", "q75", "q90"),
    *("rounds_mean", "lower_bound"),
]


def small(**changes: Any) -> Study:
    parts: dict[str, Any] = {
        "instances": {"easy": EASY, "mu4": MU4},
        "strategies": STRATEGIES,
        "runs": 300,
        "seed": 5,
    }
    return Study(**{**parts, **changes})


def snapshot(folder: Path) -> dict[str, bytes]:
    """All that is there, but for what has to do with clocks."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "seconds.jsonl"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def blocks(folder: Path) -> list[Path]:
    return sorted((folder / "runs").rglob("*.parquet"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, done at once."""
    folder = tmp_path_factory.mktemp("whole")
    run_study(small(), folder)
    return folder


class Broken(Executor):
    """Runs the first few blocks and then fails."""

    def __init__(self, good: int, error: BaseException) -> None:
        self.good, self.error = good, error

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.good > 0:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(self.error)
        self.good -= 1
        return future


class TestFirstRun:
    @pytest.mark.parametrize(
        "strategy",
        [
            discreet.ttucb(0.1),
            discreet.adap_tt_star(1, 0.1),
            discreet.dp_se(1, 0.1),
            discreet.bet_se(0.1, 1),
        ],
        ids=lambda strategy: strategy.name,
    )
    def test_blocks_are_one_whole_simulation(self, strategy: discreet.Strategy) -> None:
        one = simulate(MU4, strategy, 200, seed=3)
        parts = [
            simulate(MU4, strategy, n, seed=3, first_run=first)
            for first, n in ((0, 64), (64, 128), (192, 8))
        ]
        for name in ("samples", "recommendation", "correct", "stopped", "rounds", "pulls"):
            assert np.array_equal(
                getattr(one, name), np.concatenate([getattr(part, name) for part in parts])
            )
        assert parts[1].spec == {**one.spec, "first_run": 64}

    def test_what_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="multiple of 64 for dp-se"):
            simulate(MU4, discreet.dp_se(1, 0.1), 10, first_run=10)
        with pytest.raises(InvalidInputError, match="first_run must be a whole number"):
            simulate(MU4, discreet.ttucb(0.1), 10, first_run=-1)


class TestStudy:
    def test_parts_and_equality(self) -> None:
        study = small()
        assert [cell.instance_name for cell in study.cells] == ["easy"] * 3 + ["mu4"] * 3
        assert Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study
        assert pickle.loads(pickle.dumps(study)) == study
        assert hash(study) == hash(small(strategies=list(STRATEGIES)))
        assert small(seed=6) != study
        assert (
            small(strategies=[discreet.bet_se(0.1, 1)]).digest
            == small(strategies=[discreet.bet_se(0.1, 1.0)]).digest
        )
        with pytest.raises(TypeError):
            study.instances["other"] = MU4  # type: ignore[index]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"instances": {}}, "needs instances by their names"),
            ({"instances": {"a": [0.5, 0.4]}}, "named instances"),
            ({"strategies": []}, "one or more strategies"),
            ({"strategies": ["bet-se"]}, "made by presets"),
            ({"strategies": [STRATEGIES[0]] * 2}, "is listed twice"),
            (
                {"strategies": [discreet.ttucb(0.1, threshold=CustomThreshold("mine", abs))]},
                "Python function",
            ),
            ({"runs": 0}, "runs must be"),
            ({"seed": -1}, "seed must be"),
            ({"max_samples": 2}, "easy, bet-se.*max_samples must be"),
            ({"max_samples": 2.5}, "whole number"),
            (
                {"instances": {"tied": discreet.Bernoulli((0.5, 0.5))}},
                "tied, bet-se.*no unique best arm",
            ),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            small(**changes)


FILE = """
runs = 70
seed = 5
max_samples = 1e9
epsilon = [0.5, 1]
delta = 0.1

[instances]
mu4 = "mu4"
doses = { means = [0.2, 0.6], names = ["5 mg", "10 mg"] }
ratings = { law = "beta", a = [2, 3], b = [2, 2] }
easy = [0.8, 0.5, 0.3]

[[strategies]]
preset = "bet-se"
trust = ["global", "local"]

[[strategies]]
preset = "ttucb"
threshold = ["proved", "empirical"]
"""


def read(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return Study.from_toml(path)


class TestFile:
    def test_a_grid(self, tmp_path: Path) -> None:
        study = read(tmp_path, FILE)
        assert list(study.instances) == ["mu4", "doses", "ratings", "easy"]
        assert study.instances["mu4"] == MU4
        assert study.instances["doses"].names == ("5 mg", "10 mg")
        assert isinstance(study.instances["ratings"], discreet.Beta)
        found = [(s.name, s.epsilon, s.trust, s.threshold) for s in study.strategies]
        assert sorted(map(str, found)) == sorted(
            str(("bet-se", epsilon, trust, "proved"))
            for epsilon in (0.5, 1.0)
            for trust in ("global", "local")
        ) + [str(("ttucb", None, "none", threshold)) for threshold in ("empirical", "proved")]
        assert (study.runs, study.seed, study.max_samples, study.left_out) == (70, 5, 10**9, ())

    def test_outcomes(self, tmp_path: Path) -> None:
        text = (
            'delta = 0.1\nepsilon = 1\ninstances = ["mu4"]\n[[strategies]]\n'
            'preset = "bet-se"\noutcomes = ["yes-no", "numbers"]\n'
        )
        study = read(tmp_path, text)
        assert [strategy.outcomes for strategy in study.strategies] == ["yes-no", "numbers"]
        assert [describe_extras(strategy) for strategy in study.strategies] == [
            "",
            "outcomes = numbers",
        ]
        assert Study.from_dict(study.to_dict()) == study
        with pytest.raises(InvalidInputError, match="outcomes must be one of yes-no, numbers"):
            read(tmp_path, text.replace('"numbers"', '"bits"'))
        with pytest.raises(
            InvalidInputError, match="outcomes, the kind of outcomes to expect, is for bet-se only"
        ):
            read(tmp_path, text.replace("bet-se", "dp-se"))

    def test_data_of_its_own(self, tmp_path: Path) -> None:
        text = (
            'delta = 0.1\nepsilon = 1\n[instances]\npast = { law = "sampled", rewards = [[0.1, '
            '0.2], [0.9]] }\n[[strategies]]\npreset = "bet-se"\n'
        )
        study = read(tmp_path, text)
        assert study.instances["past"] == discreet.Sampled([[0.1, 0.2], [0.9]])
        assert Study.from_dict(study.to_dict()) == study

    def test_unfit_combinations(self, tmp_path: Path) -> None:
        text = (
            'delta = 0.1\nepsilon = 1\nthreshold = ["proved", "empirical"]\ninstances = ["mu1", "mu4"]\n'
            '[[strategies]]\npreset = "dp-se"\n[[strategies]]\npreset = "adap-tt"\n'
        )
        with pytest.raises(
            InvalidInputError,
            match=r"dp-se.*threshold = empirical: dp-se has no empirical.*skip_unfit",
        ):
            read(tmp_path, text)
        study = read(tmp_path, "skip_unfit = true\n" + text)
        assert [(s.name, s.threshold) for s in study.strategies] == [
            ("dp-se", "proved"),
            ("adap-tt", "proved"),
            ("adap-tt", "empirical"),
        ]
        assert len(study.left_out) == 1
        assert "threshold = empirical" in study.left_out[0]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("runs = ", "not a TOML file"),
            ("rums = 1", "a study has no entry 'rums'"),
            ("delta = 0.1", "write the instances"),
            ('instances = ["mu1"]', "write the strategies"),
            ('instances = ["mu9"]', "unknown benchmark 'mu9'"),
            ("instances = {a = [0.5, 1.5]}", "instance 'a'.*rescale"),
            ("instances = {a = {law = 'x'}}", "instance 'a'.*unknown law"),
            (
                "instances = {a = {means = [0.1, 0.2], drift = {kind = 'x'}}}",
                "instance 'a'.*unknown drift 'x'",
            ),
            ("S nope", "unknown preset 'nope'"),
            ("S ttucb\ndelta = 0.1\nfoo = 1", "ttucb has no entry 'foo'"),
            ("S ttucb", "also give 'delta'"),
            ("S gauss-tt\ndelta = 0.1", "also give 'epsilon' and 'gamma'"),
            ("S ttucb\ndelta = []", "delta is an empty list"),
            ("S ttucb\ndelta = 1", "delta must lie"),
            ("S bet-se\ndelta = 0.1\nepsilon = [1, 0]", "epsilon must be a positive"),
            ("S ttucb\ndelta = 0.1\nbeta = 2", "beta must lie"),
            ("S ttucb\ndelta = 0.1\nthreshold = 'prooved'", "threshold must be one of"),
            (
                "S ttucb\ndelta = 0.1\nepsilon = 1",
                "no combination for the strategy ttucb fits: .*no option 'epsilon'",
            ),
            (
                "S bet-se\ndelta = 0.1\nepsilon = 1\nindifference_zone = 'x'",
                "indifference_zone must be a number",
            ),
            ("skip_unfit = 1\nS ttucb\ndelta = 0.1", "skip_unfit must be true or false"),
            ("runs = 1.5\nS ttucb\ndelta = 0.1", "runs must be"),
        ],
    )
    def test_what_is_refused_even_if_unfit_is_skipped(
        self, tmp_path: Path, text: str, words: str
    ) -> None:
        head, strategy, options = text.partition("S ")
        if strategy:
            name, _, rest = options.partition("\n")
            skip = "" if "skip_unfit" in head else "skip_unfit = true\n"
            text = f'{head}{skip}instances = ["mu4"]\n[[strategies]]\npreset = "{name}"\n{rest}'
        with pytest.raises(InvalidInputError, match=words):
            read(tmp_path, text)

    def test_the_one_in_the_docs(self, tmp_path: Path) -> None:
        page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
        study = read(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
        assert len(study.cells) == 5 * (2 * 3 + 3 + 2)
        drift = discreet.Drift.sites(0.2, block=5)
        assert study.instances["sites"] == discreet.Drifting(discreet.Bernoulli((0.5, 0.6)), drift)
        assert len(study.left_out) == 3
        assert all("dp-se" in words for words in study.left_out)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="cannot read"):
            Study.from_toml(tmp_path / "none.toml")


class TestTable:
    def test_says_what_simulate_says(self, whole: Path) -> None:
        table = pl.read_parquet(whole / "table.parquet")
        assert table.columns == COLUMNS
        for row, cell in zip(table.to_dicts(), small().cells, strict=True):
            summary = simulate(cell.instance, cell.strategy, 300, seed=5).summary()
            for key in (
                "runs",
                "unstopped",
                "errors",
                "mean",
                "median",
                "std",
                "sem",
                "rounds_mean",
            ):
                assert row[key] == summary[key]
            assert [row[f"q{q}"] for q in (10, 25, 75, 90)] == [
                summary["quantiles"][q] for q in ("0.1", "0.25", "0.75", "0.9")
            ]
            assert (row["instance"], row["strategy"]) == (cell.instance_name, cell.strategy.name)

    def test_lower_bounds(self, tmp_path: Path) -> None:
        strategies = [
            discreet.bet_se(0.1, 1),
            discreet.bet_se(0.1, 1, trust="local"),
            discreet.bet_se(0.1, trust="none"),
            discreet.bet_se(0.1, 1, indifference_zone=0.05),
        ]
        study = Study({"mu4": MU4, "beta": discreet.Beta([3, 1], [1, 3])}, strategies, runs=1)
        table = run_study(study, tmp_path / "out")
        found = discreet.bounds(MU4, [1], 0.1)
        at_one = found.per_epsilon[0]
        wanted = [at_one.lower_bound_global, at_one.lower_bound_local_both, found.lower_bound, None]
        assert table["lower_bound"].to_list() == [*wanted, None, None, None, None]
        assert table["options"].to_list()[:4] == [
            "",
            "trust = local",
            "trust = none",
            "indifference_zone = 0.05",
        ]
        assert table["std"].to_list() == [None] * 8
        assert all(seconds > 0 for seconds in table["seconds"])

    def test_none_stopped(self, tmp_path: Path) -> None:
        table = run_study(
            Study({"mu4": MU4}, [discreet.adap_tt(0.1, 0.01)], 3, max_samples=1000), tmp_path
        )
        assert table.row(0, named=True)["unstopped"] == 3
        assert table.row(0, named=True)["mean"] is None

    def test_one_warning_for_all(self, tmp_path: Path) -> None:
        study = Study(
            {"a": discreet.Bernoulli((0.9, 0.2, 0.2))},
            [discreet.adap_tt(e, 0.1) for e in (1, 2)],
            2,
            0,
            1000,
        )
        with pytest.warns(
            engine.MayNotStopWarning, match="in 'a, adap-tt, ε = 1.*1 more cells"
        ) as caught:
            run_study(study, tmp_path)
        assert len(caught) == 1


class TestSameBytes:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_threads(self, whole: Path, tmp_path: Path, threads: int) -> None:
        run_study(small(), tmp_path, threads=threads)
        assert snapshot(tmp_path) == snapshot(whole)

    @pytest.mark.slow
    def test_executors(self, whole: Path, tmp_path: Path) -> None:
        with ThreadPoolExecutor(3) as pool:
            run_study(small(), tmp_path / "threads", pool)
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            run_study(small(), tmp_path / "processes", pool)
        assert snapshot(tmp_path / "threads") == snapshot(whole)
        assert snapshot(tmp_path / "processes") == snapshot(whole)

    def test_growing(self, whole: Path, tmp_path: Path) -> None:
        run_study(small(runs=100), tmp_path)
        before = {path: path.stat().st_mtime_ns for path in blocks(tmp_path)}
        run_study(small(), tmp_path)
        assert {path: path.stat().st_mtime_ns for path in before} == before
        assert len(blocks(tmp_path)) == 6 * 3
        for name in ("table.parquet", "study.json"):
            assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


class TestResumption:
    def test_nothing_is_done_twice(
        self, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(DiscreetError, match=r"a block failed on a worker .OSError: gone"):
            run_study(small(), tmp_path, Broken(5, OSError("gone")))
        assert len(blocks(tmp_path)) == 5
        assert not (tmp_path / "table.parquet").exists()
        calls = []
        real = engine.simulate_quietly

        def count(*args: Any) -> Results:
            calls.append(args)
            return real(*args)

        monkeypatch.setattr(engine, "simulate_quietly", count)
        run_study(small(), tmp_path)
        assert len(calls) == 7
        assert snapshot(tmp_path) == snapshot(whole)
        run_study(small(), tmp_path)
        assert len(calls) == 7

    def test_a_block_taken_away_is_made_again(self, tmp_path: Path) -> None:
        run_study(small(), tmp_path)
        before = snapshot(tmp_path)
        blocks(tmp_path)[0].unlink()
        run_study(small(), tmp_path)
        assert snapshot(tmp_path) == before

    @pytest.mark.slow
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
    def test_killed(self, tmp_path: Path, how: signal.Signals) -> None:
        """The first blocks are quick; what comes after takes a second a cell, in all
        long enough to be killed in.
        """
        text = (
            'runs = 600\ndelta = 0.1\n[instances]\neasy = [0.9, 0.1]\n[[strategies]]\npreset = "bet-se"\nepsilon = 1\n'
        ) + "".join(
            f'[[strategies]]\npreset = "ctb-tt"\nepsilon = {0.03 - place / 10_000:g}\n'
            for place in range(30)
        )
        (tmp_path / "study.toml").write_text(text)
        out = tmp_path / "out"
        command = [
            sys.executable,
            "-m",
            "discreet",
            "sweep",
            str(tmp_path / "study.toml"),
            "--out",
            str(out),
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 120
        while not (out / "runs").exists() or len(blocks(out)) < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(how)
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == (1 if how == signal.SIGINT else -signal.SIGKILL)
        assert stdout == ""
        assert not (out / "table.parquet").exists()
        if how == signal.SIGINT:
            (line,) = [one for one in stderr.splitlines() if "runs are done" not in one]
            assert "interrupted; finished work is kept" in line
        before = {path: path.read_bytes() for path in blocks(out)}
        quick = Study({"easy": discreet.Bernoulli((0.9, 0.1))}, [discreet.bet_se(0.1, 1)], 600)
        (out / ".x.parquet.tmp").write_bytes(b"half")
        assert len(before) >= 3
        for path in list(before)[:3]:
            assert Results.load(path).runs in (256, 88)
        with pytest.raises(InvalidInputError, match=r"another study .the strategy ctb-tt.*is gone"):
            run_study(quick, out)
        seen: list[StudyStep] = []
        with pytest.raises(InterruptedError):
            run_study(
                Study.from_toml(tmp_path / "study.toml"),
                out,
                progress=lambda step: stop(seen, step),
            )
        assert seen[0].done > 600  # goes on after what is there
        assert {path: path.read_bytes() for path in before} == before
        assert not list(out.rglob("*.tmp"))


def stop(seen: list[StudyStep], step: StudyStep) -> None:
    seen.append(step)
    raise InterruptedError


class TestRefusals:
    def changed(self, folder: Path, study: Study, words: str) -> None:
        before = snapshot(folder) if folder.exists() else None
        with pytest.raises(InvalidInputError, match=words):
            run_study(study, folder)
        assert (snapshot(folder) if folder.exists() else None) == before

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"seed": 6}, "seed was 5 and is now 6"),
            ({"max_samples": 10**9}, "max_samples was None and is now 1000000000"),
            ({"runs": 299}, "runs was 300 and is now 299: it may grow"),
            (
                {"instances": {"easy": EASY, "mu4": discreet.benchmarks.mu5}},
                "instance 'mu4' has other arms",
            ),
            (
                {"instances": {"easy": EASY, "new": MU4}},
                "instance 'mu4' is gone; the instance 'new' is new",
            ),
            (
                {"strategies": STRATEGIES[:2]},
                "strategy bet-se, δ = 0.1, proved, trust = none is gone",
            ),
            (
                {"strategies": [*STRATEGIES, discreet.ttucb(0.2)]},
                "strategy ttucb, δ = 0.2, proved is new",
            ),
        ],
    )
    def test_another_study(self, whole: Path, changes: dict[str, Any], words: str) -> None:
        self.changed(whole, small(**changes), f"holds another study .*{words}")

    def test_another_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run_study(small(runs=1), tmp_path)
        monkeypatch.setattr(study_folder, "__version__", "99")
        self.changed(tmp_path, small(runs=1), "was written by discreet .* and this is 99")

    @pytest.mark.parametrize(
        "where", ["notes.txt", "runs/notes.txt", "runs/KEY/notes.txt", "runs/other/x.parquet"]
    )
    def test_foreign_files(self, tmp_path: Path, where: str) -> None:
        run_study(small(runs=1), tmp_path)
        path = tmp_path / where.replace("KEY", blocks(tmp_path)[0].parent.name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        self.changed(tmp_path, small(runs=2), "is not part of this study: move it elsewhere")

    def test_a_folder_in_use(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("mine")
        self.changed(tmp_path, small(), "thesis.tex is not part of this study")
        assert os.listdir(tmp_path) == ["thesis.tex"]

    def test_foreign_blocks(self, tmp_path: Path) -> None:
        run_study(small(runs=1), tmp_path)
        one, other = blocks(tmp_path)[:2]
        kept = one.read_bytes()
        one.write_bytes(other.read_bytes())
        self.changed(tmp_path, small(runs=1), "does not have the runs that it should have")
        one.write_bytes(b"not Parquet")
        self.changed(
            tmp_path, small(runs=1), "is not a block of runs, or is damaged: move it elsewhere"
        )
        one.write_bytes(kept)
        (tmp_path / "study.json").write_text("{}")
        self.changed(tmp_path, small(runs=1), "not the manifest of a study")

    def test_runs_that_are_there_twice(self, tmp_path: Path) -> None:
        run_study(small(runs=70), tmp_path)
        path = next(path for path in blocks(tmp_path) if "000070" in path.name)
        cell = next(
            cell for cell in small().cells if make_cell_key(small(), cell) == path.parent.name
        )
        simulate(cell.instance, cell.strategy, 80, seed=5).save(
            path.with_name("000000000-000000080.parquet")
        )
        self.changed(tmp_path, small(runs=70), "contains some runs twice")
        path.unlink()
        run_study(small(runs=80), tmp_path)
        assert not path.exists()

    def test_two_at_once(self, tmp_path: Path) -> None:
        study = small(runs=1)

        def again(_: StudyStep) -> None:
            with pytest.raises(InvalidInputError, match="another process is at work"):
                run_study(study, tmp_path)

        run_study(study, tmp_path, progress=again)

    def test_a_worker_of_another_version(self, tmp_path: Path) -> None:
        class Other(Broken):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                future.set_result(Results(**{**vars(fn(*args, **kwargs)), "version": "0.0.0"}))
                return future

        with pytest.raises(DiscreetError, match=r"made by discreet 0.0.0: give all workers"):
            run_study(small(runs=1), tmp_path, Other(1, OSError()))
        assert not blocks(tmp_path)

    def test_threads(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="threads must be"):
            run_study(small(), tmp_path, threads=0)
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(InvalidInputError, match="has its own workers"),
        ):
            run_study(small(), tmp_path, pool, threads=2)

    def test_a_cluster_that_goes_away(self, tmp_path: Path) -> None:
        with pytest.raises(
            DiscreetError, match="dropped the work, as it does when its cluster is gone"
        ):
            run_study(small(), tmp_path, Broken(1, CancelledError()))
        assert len(blocks(tmp_path)) == 1

    def test_dead_worker_process(self, tmp_path: Path) -> None:
        with pytest.raises(
            DiscreetError, match="a worker process died; the finished blocks are kept"
        ):
            run_study(small(), tmp_path, Broken(1, BrokenExecutor()))
        assert len(blocks(tmp_path)) == 1


class TestDisk:
    def test_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        room, real = [6], os.fsync

        def fsync(handle: int) -> None:
            room[0] -= 1
            if room[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(
            DiscreetError, match="No space left on device; the finished blocks are kept"
        ):
            run_study(small(), tmp_path)
        monkeypatch.undo()
        assert len(blocks(tmp_path)) == 2
        assert not list(tmp_path.rglob("*.tmp"))
        run_study(small(), tmp_path)
        assert len(blocks(tmp_path)) == 12

    def test_really_no_room(self, tmp_path: Path) -> None:
        code = (
            "import resource, sys; from discreet.cli import main\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); main(sys.argv[1:])"
        )
        (tmp_path / "study.toml").write_text(
            'instances = ["mu4"]\n[[strategies]]\npreset = "ttucb"\ndelta = 0.1\n'
        )
        arguments = ["sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert "File too large" in done.stderr
        assert not blocks(tmp_path / "out")
        assert not list(tmp_path.rglob("*.tmp"))

    def test_unwritable(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidInputError, match=r"cannot write .*Not a directory"):
            run_study(small(), tmp_path / "file" / "out")
        with pytest.raises(InvalidInputError, match="cannot write"):
            run_study(small(), tmp_path / "file")


def test_progress(tmp_path: Path) -> None:
    seen: list[StudyStep] = []
    run_study(small(runs=100), tmp_path, progress=seen.append)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1] == StudyStep(small().cells[-1].title, 100, 100, 600, 600)
    seen.clear()
    run_study(small(runs=300), tmp_path, progress=seen.append)
    assert seen[0].done >= 600
    assert seen[-1].done == seen[-1].total == 1800


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


class TestCommand:
    @pytest.fixture
    def study(self, tmp_path: Path) -> Path:
        path = tmp_path / "study.toml"
        path.write_text(FILE)
        return path

    def test_json_and_table(self, study: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        result = run(study, "--out", out, "--threads", 2, "--json")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert [list(row) for row in found["cells"]] == [[*COLUMNS, "seconds"]] * 24
        assert (found["runs"], found["seed"], found["left_out"]) == (70, 5, [])
        shown = run(study, "--out", out)
        assert shown.exit_code == 0
        for words in ("ttucb, empirical", "no guarantee", "70 runs in each cell", "table.parquet"):
            assert words in shown.stdout.replace("\n", "")

    @pytest.mark.parametrize("width", [40, 80, 92, 200])
    def test_tables_keep_their_numbers_at_any_width(
        self, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        study = (
            'runs = 3\nmax_samples = 1e6\ninstances = {"[/red]" = [0.501, '
            '0.5]}\n[[strategies]]\npreset = "bet-se"\n'
        )
        (tmp_path / "study.toml").write_text(
            study + "delta = 0.005\nepsilon = [0.001, 10]\ntrust = 'local'\n"
        )
        shown = run(tmp_path / "study.toml", "--out", tmp_path / "out")
        assert shown.exit_code == 0, shown.output
        for words in ("[/red]", " 0.001 ", " 10 ", " 0.005 ", " wrong ", " at cap"):
            assert words in shown.stdout
        assert "…" not in shown.stdout
        for words in ("  ± error  ", "  lower  ", " 2.090e+13 ", " 10,480,732 "):
            assert (words in shown.stdout) == (width >= 80)
        left_out = "For lack of room without: lower bound, ± error."
        assert (left_out in shown.stdout) == (width < 80)
        assert f"{tmp_path}/out/table.parquet." in shown.stdout, "a path is not broken"

    def test_what_was_left_out_is_said(self, tmp_path: Path) -> None:
        path = tmp_path / "study.toml"
        strategy = (
            '[[strategies]]\npreset = "dp-se"\nepsilon = 1\ndelta = 0.1\nthreshold = ["printed", '
            '"empirical"]\n'
        )
        path.write_text('runs = 5\nskip_unfit = true\ninstances = ["mu4"]\n' + strategy)
        result = run(path, "--out", tmp_path / "out")
        assert result.stderr.startswith("discreet: left out: dp-se")

    def test_bad_input(self, study: Path, tmp_path: Path) -> None:
        (tmp_path / "used").mkdir()
        (tmp_path / "used" / "mine").write_text("")
        cases = [
            ((tmp_path / "none.toml", "--out", tmp_path / "a"), "cannot read"),
            ((study,), "Missing option '--out'"),
            ((study, "--out", tmp_path / "a", "--threads", "0"), "threads must be"),
            ((study, "--out", study), "cannot write"),
            ((study, "--out", tmp_path / "used"), "not part of this study"),
            (
                (study, "--out", tmp_path / "a", "--dask", "x", "--threads", "1"),
                "leave it out with --dask",
            ),
        ]
        for arguments, words in cases:
            result = run(*arguments)
            assert result.exit_code == 2, result.output
            assert result.stdout == ""
            assert result.stderr.count("\n") == 1
            assert words in result.stderr
        assert not (tmp_path / "a").exists()

    def test_without_dask(
        self, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        with (
            pytest.raises(MissingExtraError, match="Dask is not installed"),
            connect_dask("tcp://x:1"),
        ):
            pass
        result = run(study, "--out", tmp_path / "a", "--dask", "tcp://x:1")
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr == 'discreet: Dask is not installed: pip install "discreet[dask]"\n'
        assert not (tmp_path / "a").exists()

    def test_bars_for_a_person(
        self, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        study.write_text(FILE.replace("easy =", '"[/red]" ='))
        result = run(study, "--out", tmp_path / "out", "--json")
        assert len(json.loads(result.stdout)["cells"]) == 24
        assert "all cells" in result.stderr


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list["subprocess.Popen[str]"]]]:
    """A real Dask scheduler and two worker processes, on this machine."""
    pytest.importorskip("distributed")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python, place = [sys.executable, "-m"], tmp_path / "scheduler.json"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    command = [
        *python,
        "distributed.cli.dask_scheduler",
        *local,
        "--port",
        "0",
        "--scheduler-file",
        str(place),
    ]
    processes = [subprocess.Popen(command, text=True, **quiet)]  # type: ignore[call-overload]
    try:
        until = time.monotonic() + 120
        while not place.exists() or not place.read_text().rstrip().endswith("}"):
            assert time.monotonic() < until
            time.sleep(0.05)
        address = json.loads(place.read_text())["address"]
        worker = [
            *python,
            "distributed.cli.dask_worker",
            address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        ]
        worker += ["--host", "127.0.0.1", "--local-directory", str(tmp_path / "dask")]
        processes += [subprocess.Popen(worker, text=True, **quiet) for _ in range(2)]  # type: ignore[call-overload]
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_killed_in_the_middle_loses_nothing(
    scheduler: tuple[str, list["subprocess.Popen[str]"]], tmp_path: Path
) -> None:
    address, workers = scheduler
    study = Study({"easy": EASY, "mu4": MU4}, [*STRATEGIES, discreet.ttucb(0.001)], 600, 5)
    seen: list[StudyStep] = []

    def kill(step: StudyStep) -> None:
        seen.append(step)
        if len(seen) == 3:
            workers[0].kill()

    run_study(study, tmp_path / "here")
    with connect_dask(address) as executor:
        run_study(study, tmp_path / "there", executor, kill)
    assert workers[0].wait() == -signal.SIGKILL
    assert len(seen) == 8 * 3
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")
    (tmp_path / "study.toml").write_text(FILE)
    shown = run(tmp_path / "study.toml", "--out", tmp_path / "command", "--dask", address, "--json")
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["cells"]) == 24


@pytest.mark.filterwarnings("ignore")
def test_no_scheduler_there() -> None:
    pytest.importorskip("distributed")
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with (
            pytest.raises(InvalidInputError, match="no Dask scheduler answers at"),
            connect_dask(address, 1),
        ):
            pass
