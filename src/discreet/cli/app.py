"""The command line. Thin: it reads options, calls the library, and shows what comes back.

Exit code 0: done. 2: bad input, with one line on stderr that says what is wrong and what to do. 1: anything else.
"""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    Numbers,
    design_options,
    instance_options,
    json_option,
    read_instance,
    read_strategy,
    show_json,
    strategy_options,
)
from discreet.cli.trial import report_file, respond, trial, verify_file
from discreet.errors import DiscreetError, InvalidInputError
from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.instance import Bernoulli
    from discreet.results import Results
    from discreet.strategies.strategy import Strategy
    from discreet.studies.run import Step


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


@main.command()
@instance_options
@click.option("--epsilon", type=Numbers(), default="0.01,0.1,1,10", show_default=True, help="Privacy levels.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="Error rate.")
@click.option("--beta", type=float, default=0.5, show_default=True, help="The leader's share in the β-times.")
@click.option("--sigma", type=float, default=0.5, show_default=True, help="σ of the Gaussian times.")
@json_option
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
    from discreet.theory.bounds import bounds as compute

    found = compute(read_instance(means, benchmark, names), epsilon, delta, beta, sigma)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import show_bounds

        show_bounds(found)


@main.command()
@instance_options
@strategy_options
@design_options
@click.option("--runs", type=int, default=1000, show_default=True, help="Simulated trials.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option("--max-samples", type=float, help="Cap of a run.  [default: 1e12]")
@click.option("--threads", type=int, help="Threads to run on.  [default: one per processor]")
@click.option("--out", type=click.Path(dir_okay=False), help="Write every run to this Parquet file.")
@json_option
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
    from discreet.simulation import engine

    instance, strategy = read_instance(means, benchmark, names), read_strategy(name, options)
    if out is not None:
        _check_writable(out)
    with quiet_warnings(), progress_bar(f"{strategy.name} on {instance.arms} arms") as progress:
        results = engine.simulate(instance, strategy, runs, seed, max_samples, threads, progress)
    if not results.runs:
        raise DiscreetError("interrupted before the first run was done")
    if out is not None:
        results.save(out)
    found = simulation_report(strategy, results)
    if as_json:
        show_json(found)
    else:
        from discreet.reports.terminal import show_simulation

        show_simulation(found, instance)


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


def _whole(option: str, number: float | None) -> int | None:
    """A number of samples, which may be written as 1e9."""
    if number is not None and not math.isfinite(number):
        raise InvalidInputError(f"--{option} must be a finite number; got {number}")
    return None if number is None else int(number)


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


@main.command()
@instance_options
@click.option("--arms", type=int, help="In place of the arms' rates: their number, with --gap and --base.")
@click.option("--gap", type=float, help="The best arm is at least this much better than the rest.")
@click.option("--base", type=float, help="The arms' success rates are around this.  [default: 0.5]")
@click.option("--epsilon", type=Numbers(), default="0.1,1", show_default=True, help="Privacy levels.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="Error rate.")
@click.option("--strategy", "strategies", help="Presets, separated by commas.  [default: the recommended one]")
@click.option("--trust", default="global", show_default=True, help="Who may see outcomes: global or local.")
@click.option("--max-people", type=int, help="Trials end here, with or without an answer.")
@click.option("--budget", type=int, help="Find the smallest ε for which this many people suffice …")
@click.option("--probability", type=float, default=0.9, show_default=True, help="… with this probability.")
@click.option("--runs", type=int, default=500, show_default=True, help="Simulated trials for each row.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option("--html", type=click.Path(dir_okay=False), help="Also write a page with pictures to this file.")
@json_option
def plan(
    means: tuple[float, ...] | None,
    benchmark: str | None,
    names: str | None,
    arms: int | None,
    gap: float | None,
    base: float | None,
    epsilon: tuple[float, ...],
    strategies: str | None,
    html: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """How many people it will take, what privacy costs, and how much privacy a budget affords."""
    from discreet.planning.plan import GapScenarios, gap_scenarios
    from discreet.planning.plan import plan as compute

    scenarios: Bernoulli | GapScenarios
    if arms is None and gap is None and base is None:
        scenarios = read_instance(means, benchmark, names, " or as --arms 5 --gap 0.1 --base 0.5")
    elif means is not None or benchmark is not None or names is not None or arms is None or gap is None:
        raise InvalidInputError(
            "give either --means or --instance, or else --arms and --gap (and --base), without --names"
        )
    else:
        scenarios = gap_scenarios(arms, gap, 0.5 if base is None else base)
    chosen = None if strategies is None else [name.strip() for name in strategies.split(",")]
    if html is not None:
        _check_page(html)
    with quiet_warnings(), progress_bar("simulating trials") as progress:
        found = compute(scenarios, epsilon, strategies=chosen, progress=progress, **options)
    if html is not None:
        from discreet.files import write
        from discreet.reports.plan import plan_page

        write(html, plan_page(found))
        click.echo(f"discreet: wrote {html}", err=True)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import plain_console, show_plan

        show_plan(found, plain_console())


def _check_page(path: str) -> None:
    """Refuse a page that could not be drawn or written, before the work is done."""
    from discreet.reports.charts.figures import require_matplotlib

    require_matplotlib()
    _check_writable(path)


def _check_writable(path: str) -> None:
    if not os.access(Path(path).absolute().parent, os.W_OK):
        raise InvalidInputError(f"cannot write {path}: there is no such folder, or it may not be written to")


@main.group(no_args_is_help=False)
def audit() -> None:
    """Check empirically what a strategy promises."""


@audit.command()
@strategy_options
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the whole audit.")
@click.option("--runs", type=int, default=1000, show_default=True, help="Simulated trials for each instance.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option("--max-samples", type=float, help="Cap of a run.  [default: 1e9; 2e5 if simulated sample by sample]")
@json_option
def correctness(
    name: str,
    level: float,
    runs: int,
    seed: int,
    max_samples: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Whether a strategy keeps its error rate δ on instances that make errors likely."""
    from discreet.audits.correctness import audit_correctness

    strategy, cap = read_strategy(name, options), _whole("max-samples", max_samples)
    with quiet_warnings(), progress_bar(f"auditing {strategy.name}") as progress:
        found = audit_correctness(strategy, runs, seed, level, max_samples=cap, progress=progress)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import plain_console, show_correctness

        show_correctness(found, plain_console())


@audit.command()
@strategy_options
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the whole audit.")
@click.option("--runs", type=int, default=10_000, show_default=True, help="Runs on each of two neighbouring inputs.")
@click.option("--noise", default="mixed", show_default=True, help="mixed, opendp (all live) or numpy (the same laws).")
@click.option("--seed", type=int, help="Of numpy's noise; live noise has none.")
@json_option
def privacy(name: str, level: float, runs: int, noise: str, seed: int | None, as_json: bool, **options: Any) -> None:
    """A lower confidence bound on ε: of a release or response, and of whole transcripts."""
    from discreet.audits.privacy import audit_privacy

    strategy = read_strategy(name, options)
    with progress_bar(f"auditing {strategy.name}") as progress:
        found = audit_privacy(strategy, runs, level, noise, seed, progress=progress)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import plain_console, show_privacy

        show_privacy(found, plain_console())


@main.command()
@click.argument("study", type=click.Path())
@click.option("--out", required=True, type=click.Path(), help="Folder of the study; an unfinished one goes on.")
@click.option("--threads", type=int, help="Threads to run on.  [default: one per processor]")
@click.option("--dask", "address", help="Run on the Dask cluster whose scheduler has this address.")
@json_option
@click.pass_context
def sweep(ctx: click.Context, study: str, out: str, threads: int | None, address: str | None, as_json: bool) -> None:
    """Simulate a grid of instances and strategies that a TOML file describes; resumable."""
    from contextlib import nullcontext

    from discreet.studies.run import dask_executor, run_study
    from discreet.studies.study import Study

    plan = Study.from_toml(study)
    if address is not None and threads is not None:
        raise InvalidInputError("--threads is for this machine: leave it out with --dask, whose workers have their own")
    for words in plan.left_out:
        click.echo(f"discreet: left out: {words}", err=True)
    try:
        with quiet_warnings(), dask_executor(address) if address else nullcontext() as executor, sweep_bar() as show:
            table = run_study(plan, out, executor, show, threads)
    except KeyboardInterrupt:
        click.echo(f"discreet: interrupted; what is finished stays in {out}, and the same command goes on", err=True)
        ctx.exit(1)
    rows = table.to_dicts()
    if as_json:
        found = {"folder": out, "runs": plan.runs, "seed": plan.seed, "max_samples": plan.max_samples, "cells": rows}
        found |= {"left_out": list(plan.left_out), "version": __version__}
        show_json(found)
    else:
        from discreet.reports.terminal import show_sweep

        show_sweep(rows, out)


@contextmanager
def sweep_bar() -> Iterator[Callable[["Step"], None] | None]:
    """Two bars on stderr with the time left, for all cells and for the one at work, if a person is watching."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, TaskID

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    bars = Progress(console=console, transient=True)
    everything, cells = list[TaskID](), dict[str, TaskID]()

    def show(step: "Step") -> None:
        if not everything:
            everything.append(bars.add_task("all cells", total=step.total, completed=step.done))
        if step.cell not in cells:
            cells[step.cell] = bars.add_task(escape(step.cell), total=step.cell_runs, completed=step.cell_done)
        bars.update(everything[0], completed=step.done)
        bars.update(cells[step.cell], completed=step.cell_done)
        if step.cell_done == step.cell_runs:
            bars.remove_task(cells.pop(step.cell))

    with bars:
        yield show


@main.command()
@click.option(
    "--out", required=True, help="Folder for the report, the pictures and the table: new, empty, or one of before."
)
@click.option("--runs", type=int, help="Runs of each cell: 1000; with --quick 100.")
@click.option("--trust", default="both", show_default=True, help="global, local or both.")
@click.option("--quick", is_flag=True, help="A look in about half a minute: fewer instances, ε and runs.")
@click.option("--all-local", is_flag=True, help="Also local ε below 0.1, which take very long.")
@json_option
def reproduce(out: str, runs: int | None, trust: str, quick: bool, all_local: bool, as_json: bool) -> None:
    """The paper's study again: six instances, its strategies, a report that says what agrees and what does not."""
    from discreet.studies import paper as study

    def say(words: str) -> None:
        click.echo(f"discreet: {words}", err=True)

    try:
        with sweep_bar() as progress:
            found = study.reproduce(out, runs, trust, quick, all_local, progress, say)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on where it was")
        sys.exit(1)
    if as_json:
        show_json(found.to_dict())
    else:
        for finding in found.findings:
            click.echo(f"{finding.verdict.upper()} ({finding.trust}) {finding.claim}")
            for words in finding.evidence:
                click.echo(f"    {words}")
        click.echo(f"\n{found.folder / 'report.html'}  ({len(found.table)} cells, {found.seconds:.0f} s)")


@main.command()
@click.option("--out", type=click.Path(dir_okay=False), help="The report.  [default: a file in a new temporary folder]")
def demo(out: str | None) -> None:
    """A dose-finding question from the plan to a report with pictures and a live trial."""
    import tempfile

    from discreet.cli import demo as story
    from discreet.reports.terminal import plain_console

    if out is not None:
        _check_page(out)
    folder = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
    with quiet_warnings():
        story.demo(Path(out) if out else folder / "report.html", folder, plain_console())


main.add_command(trial)
main.add_command(respond)
main.add_command(verify_file)
main.add_command(report_file)


if __name__ == "__main__":
    main()
