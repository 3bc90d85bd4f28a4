"""The command line: JSON keys that stay put, one line for bad input, exit codes."""

import inspect
import json
import math
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner, Result

import discreet
from discreet.cli import main
from discreet.trials import mechanisms

WORK = (
    "discreet.planning.plan.plan",
    "discreet.reports.paper.run_paper",
    "discreet.cli.demo.tell_story",
    "discreet.reports.trial.build_trial_report",
    "discreet.audits.privacy.make_experiments",
    "discreet.service.server.serve",
)
"""Where commands begin to work."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_bounds_json() -> None:
    result = run("bounds", "--instance", "mu3", "--epsilon", "0.1,1", "--delta", "0.01", "--json")
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    for key in ("t_kl", "t_gaussian", "t_gaussian_beta", "t_tv", "t_tv2"):
        assert found[key] > 0
        assert sum(found["allocation"][key]) == pytest.approx(1)
    assert set(found["switch_epsilon"]) == {"local", "global"}
    assert found["free_epsilon"] is None
    assert [row["epsilon"] for row in found["per_epsilon"]] == [0.1, 1]
    for row in found["per_epsilon"]:
        for key in ("t_local", "t_global", "t_epsilon", "t_relaxed_beta"):
            assert sum(row["allocation"][key]) == pytest.approx(1)
        log = 0.98 * math.log(99)
        assert row["lower_bound_local"] == pytest.approx(row["t_local"] * log)
        assert row["lower_bound_global"] == pytest.approx(row["t_epsilon"] * log)
        assert row["lower_bound_local_both"] >= row["lower_bound_global"]
        assert {"adap-tt", "adap-tt-star", "ctb-tt"} <= set(row["upper_constant"])


def test_the_same_from_python() -> None:
    found = discreet.bounds(discreet.benchmarks.mu3, [0.1, 1], 0.01).to_dict()
    shown = json.loads(
        run("bounds", "--instance", "mu3", "--epsilon", "0.1,1", "--delta", "0.01", "--json").stdout
    )
    assert shown == json.loads(json.dumps(found))


def test_a_table_for_people() -> None:
    result = run("bounds", "--means", "0.5,0.7", "--names", "old,new", "--epsilon", "0.01,10")
    assert result.exit_code == 0
    for words in ("2 arms, new is best", "0.01", "free", "high", "collector"):
        assert words in result.stdout


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_tables_keep_their_numbers_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = "[red]a[/],[/b],a rather long name for an arm that goes on and on"
    levels = "0.001,0.01,0.02,0.05,0.1,0.2,0.5,1,5,10"
    result = run("bounds", "--means", "0.5,0.4,0.3", "--names", names, "--epsilon", levels)
    assert result.exit_code == 0, result.output
    assert "[red]a[/]" in result.stdout
    for level in levels.split(","):
        assert f" {level} " in result.stdout
    assert "6,6…" not in result.stdout


def test_an_error_rate_that_asks_for_nothing() -> None:
    assert "no samples are needed" in run("bounds", "--means", "0.5,0.4", "--delta", "0.9").stdout


def test_regimes() -> None:
    rows = discreet.bounds(discreet.benchmarks.mu2, [0.01, 0.16, 0.17]).per_epsilon
    assert [row.regime_global for row in rows] == ["high", "low", "free"]
    assert [row.regime_local for row in rows] == ["high", "high", "high"]
    assert rows[1].cost_global > 1 == rows[2].cost_global


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the arms either as --means"),
        (["--means", "0.5,0.4", "--instance", "mu1"], "give the arms either as --means"),
        (["--means", "0.5,high"], "not a list of numbers"),
        (["--means", "0.5"], "at least 2"),
        (["--means", "0.5,0.5"], "no unique best arm"),
        (["--means", "0.5,1.5"], "rescale"),
        (["--means", "0.5,nan"], "NaN"),
        (["--instance", "mu7"], "unknown instance 'mu7': use one of mu1"),
        (["--instance", "mu1", "--epsilon", "0"], "epsilon must be a positive"),
        (["--instance", "mu1", "--epsilon", "1,,2"], "not a list of numbers"),
        (["--instance", "mu1", "--delta", "1"], "delta must lie strictly between 0 and 1"),
        (["--instance", "mu1", "--delta", "x"], "not a valid float"),
        (["--instance", "mu1", "--beta", "1"], "beta must lie"),
        (["--instance", "mu1", "--sigma", "-1"], "sigma must be"),
        (["--instance", "mu1", "--names", "a,b"], "names must be a list of 5"),
        (["--frobnicate"], "No such option"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    result = run("bounds", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


GAUSSIAN = ("--means", "-1,0.5,7", "--gaussian", "2")


def test_bounds_of_gaussian_arms() -> None:
    found = json.loads(run("bounds", *GAUSSIAN, "--json").stdout)
    assert found["t_kl"] == found["t_gaussian"] == pytest.approx(8 * 4 / 6.5**2, rel=0.3)
    assert found["per_epsilon"] == []
    assert "3 Gaussian arms with σ = 2, arm 3 is best" in run("bounds", *GAUSSIAN).stdout
    refused = run("bounds", *GAUSSIAN, "--epsilon", "1")
    assert refused.exit_code == 2
    assert "out_of_range='clip'" in refused.stderr


class TestSimulate:
    ARMS = ("simulate", "--means", "0.8,0.5,0.3")

    def test_costs_and_gaussian_arms(self) -> None:
        result = run(*self.ARMS, *["--strategy", "ttucb", "--cost", "kl", "--runs", "2", "--json"])
        assert json.loads(result.stdout)["spec"]["strategy"]["cost"] == "kl"
        result = run("simulate", *GAUSSIAN, *["--strategy", "ttucb", "--runs", "2", "--json"])
        assert json.loads(result.stdout)["spec"]["strategy"]["sigma"] == 2.0
        result = run("simulate", *GAUSSIAN, *["--strategy", "dp-se", "--epsilon", "1"])
        assert result.exit_code == 2
        assert "dp-se is not for Gaussian arms" in result.stderr

    def test_json(self) -> None:
        result = run(
            *self.ARMS,
            "--strategy",
            "adap-tt-star",
            "--epsilon",
            "1",
            "--runs",
            "50",
            "--seed",
            "3",
            "--json",
        )
        assert result.exit_code == 0
        found = json.loads(result.stdout)
        keys = (
            "strategy threshold epsilon delta runs unstopped errors mean median std sem "
            "quantiles pulls_mean"
        )
        for key in (keys + " rounds_mean seconds seed version").split():
            assert key in found
        assert (found["strategy"], found["threshold"], found["runs"], found["seed"]) == (
            "adap-tt-star",
            "proved",
            50,
            3,
        )
        again = run(
            *self.ARMS,
            "--strategy",
            "adap-tt-star",
            "--epsilon",
            "1",
            "--runs",
            "50",
            "--seed",
            "3",
            "--json",
        )
        assert json.loads(again.stdout)["mean"] == found["mean"]

    def test_table_and_file(self, tmp_path: Path) -> None:
        out = tmp_path / "runs.parquet"
        result = run(
            *self.ARMS, "--strategy", "ttucb", "--beta", "ids", "--runs", "20", "--out", str(out)
        )
        assert result.exit_code == 0
        assert "samples, median" in result.stdout
        assert discreet.Results.load(out).runs == 20

    def test_gaussian_noise_is_said(self) -> None:
        levels = ("--strategy", "bet-se", "--epsilon", "2", "--gamma", "1e-6", "--runs", "5")
        found = json.loads(run(*self.ARMS, *levels, "--json").stdout)
        assert found["privacy"] == "(2, 1e-06)-global DP: noise is added to every release"
        assert found["spec"]["strategy"]["gamma"] == 1e-6
        result = run(*self.ARMS, "--strategy", "adap-tt", "--rho", "2", "--runs", "5")
        assert result.exit_code == 0
        assert "2-global zCDP" in result.stdout

    def test_share_and_bonus_are_options(self) -> None:
        options = ("--beta", "0.4", "--s", "2", "--alpha", "1.5", "--runs", "5", "--json")
        result = run(*self.ARMS, "--strategy", "ttucb", *options)
        strategy = json.loads(result.stdout)["spec"]["strategy"]
        assert (strategy["beta"], strategy["s"], strategy["alpha"]) == (0.4, 2.0, 1.5)
        result = run(*self.ARMS, "--strategy", "adap-tt", "--epsilon", "1", "--s", "2")
        assert result.exit_code == 2
        assert "b^G" in result.stderr

    def test_no_guarantee_is_said(self) -> None:
        result = run(*self.ARMS, "--strategy", "ttucb", "--threshold", "empirical", "--runs", "20")
        assert "no guarantee" in result.stdout

    def test_warnings_are_one_line_on_stderr(self) -> None:
        options = (
            "--strategy",
            "adap-tt",
            "--epsilon",
            "1",
            "--runs",
            "5",
            "--max-samples",
            "1e6",
            "--json",
        )
        result = run("simulate", "--means", "0.8,0.5,0.5", *options)
        assert json.loads(result.stdout)["runs"] == 5
        assert result.stderr.startswith("discreet: warning: some runs may not stop")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--strategy", "nope"], "unknown strategy 'nope': use one of"),
            (["--strategy", "adap-tt"], "say how private, with --epsilon"),
            (["--strategy", "gauss-tt", "--epsilon", "1"], "with --gamma"),
            (["--strategy", "ttucb", "--epsilon", "1"], "takes no --epsilon"),
            (["--strategy", "ctb-tt", "--epsilon", "1", "--rho", "1"], "takes no --rho"),
            (["--strategy", "bet-se", "--trust", "local", "--rho", "1"], "takes no --rho"),
            (["--strategy", "adap-tt", "--gamma", "1e-6"], "say how private, with --epsilon"),
            (["--strategy", "ttucb", "--beta", "x"], "beta must be a number"),
            (["--strategy", "ttucb", "--runs", "0"], "runs must be"),
            (["--strategy", "ttucb", "--seed", "-1"], "seed must be"),
            (["--strategy", "ttucb", "--threads", "0"], "threads must be"),
            (["--strategy", "ttucb", "--max-samples", "2"], "max_samples must be"),
            (["--strategy", "ttucb", "--episodes", "global"], "strategies in phases"),
            (
                ["--strategy", "ttucb", "--runs", "2", "--out", "/no/such/folder/x.parquet"],
                "cannot write",
            ),
            ([], "--strategy"),
        ],
    )
    def test_bad_input(self, options: list[str], words: str) -> None:
        result = run(*self.ARMS, *options)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert words in result.stderr


def test_unknown_command() -> None:
    result = run("frobnicate")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_demo_ends_with_its_report(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = run("demo", "--out", str(page))
    assert result.exit_code == 0, result.output
    for words in (
        "The plan",
        "One trial, step by step",
        "Only 20 mg is left",
        "without privacy",
        "A live trial",
        "alone: intact",
        "discreet serve --url sqlite:",
        str(page),
    ):
        assert words in result.stdout.replace("\n", " " if words != str(page) else ""), words
    html = page.read_text()
    assert html.count("<svg") == 4
    for words in ("One trial, step by step", "dropped.", "Without privacy"):
        assert words in html


def test_the_demo_needs_a_place_to_write() -> None:
    result = run("demo", "--out", "/no/such/folder/report.html")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


def test_version_and_help() -> None:
    assert discreet.__version__ in run("--version").stdout
    assert run("--help").exit_code == 0


def test_serve_takes_only_a_database() -> None:
    """Other commands may also go to a service."""
    shown = run("serve", "--help").stdout
    assert "postgresql://" in shown
    assert "https://" not in shown
    assert "DISCREET_TOKEN" not in shown
    assert "https://" in run("trial", "status", "--help").stdout


def test_epsilons_must_be_a_list() -> None:
    with pytest.raises(discreet.InvalidInputError, match="list of privacy levels"):
        discreet.bounds(discreet.benchmarks.mu1, 1.0)  # type: ignore[arg-type]


def every_command(
    command: click.Command = main, *path: str
) -> Iterator[tuple[click.Command, list[str]]]:
    """A command and all below it, each with its path."""
    yield command, [*path]
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield from every_command(below, *path, name)


def test_every_help_ends_with_an_example_that_can_be_read() -> None:
    """A line that begins with the command; every word is an option or an argument."""
    for command, path in every_command():
        example = run(*path, "--help").stdout.rstrip().rpartition("\n")[2].strip()
        first, *words = shlex.split(example.partition(" > ")[0])
        assert [first, *words[: len(path)]] == ["discreet", *path]
        context, named = None, cast("click.Command", main)
        while isinstance(named, click.Group):
            context = click.Context(named, parent=context, info_name=named.name)
            named, words = named.commands[words[0]], words[1:]
        named.make_context(named.name, words, parent=context)
        assert isinstance(command, click.Group) or named is command


def test_every_help_is_whole_sentences() -> None:
    for command, path in every_command():
        first = inspect.cleandoc(command.help or "").split("\n\n")[0]
        assert first[:1].isupper(), path
        assert first.endswith("."), path
        for option in command.params:
            if isinstance(option, click.Option):
                words, _, rest = (option.help or "").partition("  [")
                assert words[:1].isupper(), (path, option.name)
                assert words.endswith("."), (path, option.name)
                assert not rest or rest.endswith("]"), (path, option.name)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("plan", "--nonsense"), "discreet plan --help"),
        (("trial", "ask"), "discreet trial ask --help"),
        (("trial", "nonsense"), "discreet trial --help"),
        (("nonsense",), "discreet --help"),
    ],
)
def test_a_misuse_points_to_the_help_of_its_own_command(words: tuple[str, ...], hint: str) -> None:
    found = run(*words)
    assert found.exit_code == 2
    assert f"See '{hint}'." in found.stderr


@pytest.mark.parametrize(
    ("library", "extra", "words"),
    [
        ("matplotlib", "plot", "plan --means 0.9,0.1 --html page.html"),
        ("matplotlib", "plot", "reproduce --out study"),
        ("matplotlib", "plot", "demo"),
        ("matplotlib", "plot", "report transcript.json --out page.html"),
        ("matplotlib", "plot", "serve"),
        ("opendp", "live", "demo"),
        ("opendp", "live", "audit privacy --strategy bet-se --epsilon 1"),
    ],
)
def test_an_extra_that_is_missing_is_said_before_any_work(
    library: str, extra: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is simulated, read or written before."""

    def worked(*_: object, **__: object) -> None:
        raise AssertionError("work was done before")

    for place in WORK:
        monkeypatch.setattr(place, worked)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    mechanisms._opendp.cache_clear()
    found = run(*words.split())
    assert found.exit_code == 1
    assert f'pip install "discreet[{extra}]"' in found.stderr
    assert not [*tmp_path.iterdir()]
