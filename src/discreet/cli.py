"""The command line. Thin: it reads options, calls the library, and shows what comes back.

Exit code 0: done. 2: bad input, with one line on stderr that says what is wrong and what to do. 1: anything else.
"""

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.bounding import Bounds
    from discreet.instance import Bernoulli
    from discreet.results import Results
    from discreet.strategy import Strategy


class Numbers(click.ParamType[tuple[float, ...]]):
    """A list of numbers separated by commas."""

    name = "NUMBER,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """The numbers as floats."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas, such as 0.75,0.7,0.7", param, ctx)


class OneLine(click.Group):
    """Shows an error of ours, or a misuse of the command, as one line on stderr with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DiscreetError as error:
            code = 2 if isinstance(error, InvalidInputError) else 1
            click.echo(f"discreet: {error}", err=True)
            ctx.exit(code)
        except click.UsageError as error:
            click.echo(f"discreet: {error.format_message()} See 'discreet --help'.", err=True)
            ctx.exit(2)


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discreet")
def main() -> None:
    """Find the best of K options from people's outcomes, privately and with a guaranteed error rate."""


def instance_options(command: Any) -> Any:
    """--means or --instance, and --names: the arms a command is about."""
    for option in (
        click.option("--names", help="The arms' names, separated by commas."),
        click.option("--instance", "benchmark", help="One of the paper's instances: mu1 … mu6."),
        click.option("--means", type=Numbers(), help="The arms' success probabilities, such as 0.75,0.7,0.7."),
    ):
        command = option(command)
    return command


def read_instance(means: tuple[float, ...] | None, benchmark: str | None, names: str | None) -> "Bernoulli":
    """The Bernoulli instance that the options describe."""
    from discreet.instance import Bernoulli, benchmarks

    if (means is None) == (benchmark is None):
        raise InvalidInputError("give the arms either as --means 0.75,0.7,0.7 or as --instance mu2")
    if benchmark is not None:
        if benchmark not in benchmarks:
            raise InvalidInputError(f"unknown instance {benchmark!r}: use one of {', '.join(benchmarks)}")
        means = benchmarks[benchmark].means
    return Bernoulli(means or (), [name.strip() for name in names.split(",")] if names else None)


@main.command()
@instance_options
@click.option("--epsilon", type=Numbers(), default="0.01,0.1,1,10", show_default=True, help="Privacy levels.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="Error rate.")
@click.option("--beta", type=float, default=0.5, show_default=True, help="The leader's share in the β-times.")
@click.option("--sigma", type=float, default=0.5, show_default=True, help="σ of the Gaussian times.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def bounds(
    means: tuple[float, ...] | None,
    benchmark: str | None,
    names: str | None,
    epsilon: tuple[float, ...],
    delta: float,
    beta: float,
    sigma: float,
    as_json: bool,
) -> None:
    """How many samples any strategy must use, how to spread them, and when privacy is free."""
    from discreet.bounding import bounds as compute

    found = compute(read_instance(means, benchmark, names), epsilon, delta, beta, sigma)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        _show_bounds(found)


def _console() -> "Console":
    """Plain text on stdout, never so narrow that numbers would be cut."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, 64)
    return console


def _show_bounds(found: "Bounds") -> None:
    from rich import box
    from rich.table import Table

    console = _console()
    instance = found.instance
    console.print(
        f"{instance.arms} arms, {instance.names[instance.best]} is best; error rate δ = {found.delta:g}\n"
        + (
            f"Without privacy every strategy needs at least {_count(found.lower_bound)} samples on average.\n"
            if found.delta < 0.5
            else "An error rate of 1/2 or more asks for nothing: the lower bounds are empty.\n"
        )
    )
    table = Table(box=box.SIMPLE_HEAD, title="At least this many samples on average under ε-privacy")
    table.add_column("\nε", justify="right", no_wrap=True)
    wide = console.width >= 76
    for trust in ("collector\ntrusted", "nobody\ntrusted"):
        table.add_column(trust, justify="right", no_wrap=True)
        table.add_column("\nprice", justify="right", no_wrap=True)
        if wide:
            table.add_column("privacy\nregime", no_wrap=True)
    for row in found.per_epsilon:
        trusted = [_count(row.lower_bound_global), _ratio(row.cost_global), row.regime_global]
        local = [_count(row.lower_bound_local_both), _ratio(row.cost_local), row.regime_local]
        shown = trusted + local if wide else trusted[:2] + local[:2]
        table.add_row(f"{row.epsilon:g}", *shown)
    console.print(table)
    _show_allocation(found, console)
    switch, free = found.switch_epsilon, found.free_epsilon
    price = f"is free from ε = {free:.4g} on" if free < math.inf else "is never quite free"
    console.print(
        f"With a trusted collector (global DP) privacy matters most below ε ≈ {switch['global']:.4g} and {price}; "
        f"with nobody trusted (local DP) it matters most below ε ≈ {switch['local']:.4g}. "
        "The price is the ratio to no privacy. All of this is what no strategy can beat, T · kl(1−δ, δ); "
        "--json has every quantity, and the docs page 'Theory and proofs' says where each comes from.",
    )


def _show_allocation(found: "Bounds", console: Any) -> None:
    from rich import box
    from rich.table import Table

    instance = found.instance
    columns = [("no\nprivacy", found.t_kl)]
    columns += [(f"global\nε = {row.epsilon:g}", row.t_epsilon) for row in found.per_epsilon]
    names = [name if len(name) <= 24 else name[:23] + "…" for name in instance.names]
    fitting = max(1, (console.width - 14 - max(map(len, names))) // 13)
    left_out, columns = columns[fitting:], columns[:fitting]
    table = Table(box=box.SIMPLE_HEAD, title="How an ideal strategy spreads its samples")
    table.add_column("\narm", no_wrap=True)
    table.add_column("\nmean", justify="right", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    shown = sorted(range(instance.arms), key=lambda a: -instance.means[a])[:12]
    for a in sorted(shown):
        shares = [f"{time.allocation[a]:.1%}" for _, time in columns]
        table.add_row(names[a], f"{instance.means[a]:g}", *shares)
    console.print(table)
    if left_out:
        console.print(f"(for {len(left_out)} more levels of ε a wider window is needed, or --json)\n")
    if len(shown) < instance.arms:
        console.print(f"(the best {len(shown)} of {instance.arms} arms)\n")


def _count(samples: float) -> str:
    """A lower bound on a number of people, rounded up."""
    return f"{math.ceil(samples):,}" if samples < 1e12 else f"{samples:.3e}"


def _ratio(value: float) -> str:
    return f"× {value:.2f}" if value < 100 else f"× {value:,.0f}"


@main.command()
@instance_options
@click.option("--strategy", "name", required=True, help="A preset: bet-se, ttucb, ctb-tt, adap-tt, dp-se, …")
@click.option("--threshold", default="proved", show_default=True, help="printed, proved or empirical.")
@click.option("--epsilon", type=float, help="Privacy level of a private strategy.")
@click.option("--trust", default=None, help="bet-se: global, local or none.  [default: global]")
@click.option("--zeta", type=float, help="bet-se: an arm within ζ of the best is good enough.  [default: 0]")
@click.option("--gamma", type=float, help="γ of gauss-tt's (ε, γ)-local privacy.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="Error rate.")
@click.option("--beta", default="0.5", show_default=True, help="The leader's share of the samples, or ids.")
@click.option("--sampling", default=None, help="top-two, uniform, lucb or elimination.")
@click.option("--episodes", default=None, help="arm or global: what the phases of a phased strategy belong to.")
@click.option("--runs", type=int, default=1000, show_default=True, help="Simulated trials.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option("--max-samples", type=float, help="Cap of a run.  [default: 1e12]")
@click.option("--threads", type=int, help="Threads to run on.  [default: one per processor]")
@click.option("--out", type=click.Path(dir_okay=False), help="Write every run to this Parquet file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def simulate(
    means: tuple[float, ...] | None,
    benchmark: str | None,
    names: str | None,
    name: str,
    runs: int,
    seed: int,
    max_samples: float | None,
    threads: int | None,
    out: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """How many samples a strategy takes, how often it errs, and how often it does not stop."""
    from discreet import engine

    instance, strategy = read_instance(means, benchmark, names), read_strategy(name, options)
    if out is not None and not os.access(Path(out).absolute().parent, os.W_OK):
        raise InvalidInputError(f"cannot write {out}: there is no such folder, or it may not be written to")
    with quiet_warnings(), progress_bar(f"{strategy.name} on {instance.arms} arms") as progress:
        results = engine.simulate(instance, strategy, runs, seed, max_samples, threads, progress)
    if not results.runs:
        raise DiscreetError("interrupted before the first run was done")
    if out is not None:
        results.save(out)
    found = simulation_report(strategy, results)
    if as_json:
        click.echo(json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        _show_simulation(found, instance)


def simulation_report(strategy: "Strategy", results: "Results") -> dict[str, Any]:
    """What `discreet simulate --json` prints."""
    return {
        "strategy": strategy.name,
        "threshold": strategy.threshold,
        "epsilon": strategy.epsilon,
        "delta": strategy.delta,
        "trust": strategy.trust,
        "privacy": strategy.privacy,
        "correctness": strategy.correctness,
        **results.summary(),
        "spec": results.spec,
    }


def read_strategy(name: str, options: dict[str, Any]) -> "Strategy":
    """The preset of that name with those options that were given."""
    from discreet.strategy import PRESETS

    if name not in PRESETS:
        raise InvalidInputError(f"unknown strategy {name!r}: use one of {', '.join(PRESETS)}")
    given = {key: value for key, value in options.items() if value is not None}
    beta = given.pop("beta", "0.5")
    if beta != "0.5":
        try:
            given["beta"] = beta if beta == "ids" else float(beta)
        except ValueError:
            raise InvalidInputError(f"beta must be a number in (0, 1) or ids; got {beta!r}") from None
    needed = {"ctb-tt": ["epsilon"], "gauss-tt": ["epsilon", "gamma"], "ttucb": [], "ttucb-batched": []}
    if given.get("trust") == "none":
        needed["bet-se"] = []
    for key in needed.get(name, ["epsilon"]):
        if key not in given:
            raise InvalidInputError(f"{name} is private: say how private, with --{key}")
    for key in ("epsilon", "gamma"):
        if key in given and key not in needed.get(name, ["epsilon"]):
            raise InvalidInputError(f"{name} takes no --{key}")
    return PRESETS[name](**given)


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Our warnings as one line each on stderr."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: click.echo(f"discreet: warning: {message}", err=True)
        yield


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with the time left, once the work has taken more than a second and if a person is watching."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    bar = Progress(console=console, transient=True)
    task = bar.add_task(title, total=None)
    later = threading.Timer(1.0, bar.start)
    if console.is_terminal:
        later.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        later.cancel()
        if bar.live.is_started:
            bar.stop()


def _show_simulation(found: dict[str, Any], instance: "Bernoulli") -> None:
    from rich import box
    from rich.table import Table

    console = _console()
    done = "interrupted; the runs done so far, which are the shorter ones" if found["interrupted"] else "all done"
    console.print(
        f"{found['strategy']} with the {found['threshold']} threshold, {found['runs']} runs ({done}), "
        f"{found['seconds']:.2f} s\nprivacy: {found['privacy']}\nerror rate: {found['correctness']}"
    )
    low, high = found["error_interval"]
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    if found["mean"] is not None:
        sem = "" if found["sem"] is None else f" ± {found['sem']:,.0f}"
        table.add_row("samples, mean ± standard error", f"{found['mean']:,.0f}{sem}")
        table.add_row("samples, median", f"{found['median']:,.0f}")
        table.add_row("samples, 10 % … 90 %", f"{found['quantiles']['0.1']:,.0f} … {found['quantiles']['0.9']:,.0f}")
        table.add_row("releases, mean", f"{found['rounds_mean']:,.1f}")
    table.add_row("wrong answers", f"{found['errors']} of {found['runs']}")
    table.add_row("error rate, 95 % interval", f"{low:.2%} … {high:.2%}")
    table.add_row("runs that hit the cap", f"{found['unstopped']} of {found['runs']}")
    console.print(table)
    if found["pulls_mean"] is not None:
        total = sum(found["pulls_mean"])
        spread = zip(instance.names, found["pulls_mean"], strict=True)
        shares = [f"{name} {pulls / total:.1%}" for name, pulls in spread]
        console.print("samples went to: " + ", ".join(shares[:12]) + (" …" if len(shares) > 12 else ""))


@main.command()
def demo() -> None:
    """What discreet can do so far, on a small dose-finding question."""
    from discreet import engine
    from discreet.bounding import bounds as compute
    from discreet.instance import Bernoulli
    from discreet.strategy import recommended

    doses = Bernoulli((0.35, 0.5, 0.7, 0.55), ("5 mg", "10 mg", "20 mg", "40 mg"))
    click.echo(
        "Four doses of a drug; 35, 50, 70 and 55 % of patients respond. Which dose is best, wrongly named\n"
        "with probability at most 5 %, each patient's outcome ε-private? First: what is possible at all?\n"
    )
    found = compute(doses, (0.05, 0.2, 1.0, 5.0), 0.05)
    _show_bounds(found)
    choice = recommended(0.2, 0.05)
    click.echo(
        f"\nAnd what does it take? Simulated at ε = 0.2 with the recommended strategy, {choice.reason}.\n"
        "(The first time, compiling the simulator takes a while.)\n"
    )
    with quiet_warnings(), progress_bar("simulating the trial 1000 times") as progress:
        results = engine.simulate(doses, choice.strategy, 1000, 1, progress=progress)
    _show_simulation(simulation_report(choice.strategy, results), doses)
    least = found.per_epsilon[1].lower_bound_global
    click.echo(f"No strategy can do with fewer than {_count(least)} on average.")


if __name__ == "__main__":
    main()
