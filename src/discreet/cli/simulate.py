"""`discreet bounds` and `discreet simulate`."""

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    Numbers,
    answer_options,
    arms_options,
    calendar_options,
    delta_option,
    design_options,
    gaussian_option,
    read_arms,
    read_strategy,
    seed_option,
    show_json,
    strategy_options,
    tabulate,
    take_arms,
    take_calendar,
    threads_option,
)
from discreet.cli.output import (
    check_report,
    pdf_option,
    quiet_warnings,
    simulation_bar,
    sweep_bar,
    tell,
    write_report,
)
from discreet.errors import DiscreetError, InvalidInputError
from discreet.files import check_writable
from discreet.version import __version__
from discreet.wording import format_count

if TYPE_CHECKING:
    from discreet.instances import Instance
    from discreet.results import Results
    from discreet.strategies.strategy import Strategy


@click.command(epilog="discreet sweep study.toml --out results")
@click.argument("study", type=click.Path())
@click.option(
    "--out",
    required=True,
    type=click.Path(),
    help="The folder of the study. A study that was interrupted there is continued.",
)
@threads_option
@click.option("--dask", "address", help="Run on the Dask cluster whose scheduler has this address.")
@answer_options
@click.pass_context
def sweep(
    ctx: click.Context,
    study: str,
    out: str,
    threads: int | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Simulate all combinations that a study file describes. The TOML file names
    instances and strategies. If the command is interrupted, give it again to continue.
    """
    from contextlib import nullcontext

    from discreet.studies.run import connect_dask, run_study
    from discreet.studies.study import Study
    from discreet.tabular import require_polars

    require_polars()
    wanted = Study.from_toml(study)
    if address is not None and threads is not None:
        raise InvalidInputError(
            "--threads is for this machine: leave it out with --dask, where the workers have "
            "their own"
        )
    for words in wanted.left_out:
        tell(f"left out: {words}")
    cluster = connect_dask(address) if address else nullcontext()
    try:
        with quiet_warnings(), cluster as executor, sweep_bar() as show:
            found = run_study(wanted, out, executor, show, threads)
    except KeyboardInterrupt:
        tell(f"interrupted; finished work is kept in {out}, and the same command continues it")
        ctx.exit(1)
    tabulate(lambda: found)
    rows = found.to_dicts()
    if as_json:
        show_json(
            {
                "folder": out,
                "runs": wanted.runs,
                "seed": wanted.seed,
                "max_samples": wanted.max_samples,
                "cells": rows,
                "left_out": list(wanted.left_out),
                "version": __version__,
            }
        )
    else:
        from discreet.reports.summaries import build_sweep
        from discreet.reports.terminal import render

        render(build_sweep(rows, out))


@click.command(epilog="discreet reproduce --out study --quick")
@click.option(
    "--out",
    required=True,
    help="The folder for the report, the pictures and the table: a new or empty one, or one in "
    "which the study was started before.",
)
@click.option(
    "--study",
    "name",
    default="samples",
    show_default=True,
    help="Which study: samples (the paper's experiments), beta (how the leader's share β, fixed or "
    "adapted by IDS, changes the samples), adaptivity (how many rounds there are, compared with "
    "the paper's bound), or delta (how samples grow as the error rate δ becomes small).",
)
@click.option(
    "--runs", type=int, help="How many runs in each cell.  [default: 1000; 100 with --quick]"
)
@click.option(
    "--trust",
    default="both",
    show_default=True,
    help="Which part of the study: global (a trusted collector), local (nobody trusted) or both.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Take a quick look: only the instances mu1 and mu2, with fewer ε and runs.",
)
@click.option(
    "--all-local", is_flag=True, help="Include ε below 0.1 with nobody trusted, which takes hours."
)
@pdf_option
@answer_options
@click.pass_context
def reproduce(
    ctx: click.Context,
    out: str,
    pdf: str | None,
    name: str,
    runs: int | None,
    trust: str,
    quick: bool,
    all_local: bool,
    as_json: bool,
) -> None:
    """Repeat the paper's study and write a report. The study covers six instances and
    all of the paper's strategies; the report says what agrees and what does not. With
    --study the report is about what the paper's theorems say.
    """
    from discreet.reports import paper
    from discreet.tabular import require_polars

    require_polars()
    if name != "samples" and (trust != "both" or all_local):
        raise InvalidInputError("--trust and --all-local belong to the study of samples")
    check_report(None, pdf)
    found: paper.Reproduction | paper.StudyResult
    try:
        with sweep_bar() as progress:
            if name == "samples":
                found = paper.reproduce(out, runs, trust, quick, all_local, progress, tell)
            else:
                found = paper.study(out, name, runs, quick, progress, tell)
    except KeyboardInterrupt:
        tell("interrupted; the same command continues where it stopped")
        ctx.exit(1)
    if pdf is not None:
        write_report(None, pdf, (found.folder / "report.html").read_text("utf-8"))
    tabulate(lambda: found.table)
    if as_json:
        show_json(found.to_dict() | ({} if pdf is None else {"pdf": pdf}))
        return
    for finding in found.findings:
        click.echo(f"{finding.verdict.upper()} ({finding.trust}) {finding.claim}")
        for words in finding.evidence:
            click.echo(f"    {words}")
    click.echo(
        f"\n{found.folder / 'report.html'}  ({format_count(len(found.table), 'cell')}, "
        f"{found.seconds:.0f} s)"
    )


LEVELS = (0.01, 0.1, 1.0, 10.0)
"""ε of `discreet bounds` unless others are given."""


@click.command(epilog="discreet bounds --means 0.75,0.7,0.7 --epsilon 0.1,1 --delta 0.01")
@arms_options
@gaussian_option
@click.option(
    "--epsilon",
    type=Numbers(),
    help="One or more levels of privacy (ε): smaller is more private.  [default: 0.01,0.1,1,10]",
)
@delta_option
@click.option(
    "--beta",
    type=float,
    default=0.5,
    show_default=True,
    help="The share of the samples that the best arm gets (β), in times with a fixed share.",
)
@click.option(
    "--sigma",
    type=float,
    help="The standard deviation (σ) in the Gaussian times.  [default: 0.5, or as --gaussian says]",
)
@answer_options
def bounds(
    epsilon: tuple[float, ...] | None,
    delta: float,
    beta: float,
    sigma: float | None,
    gaussian: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show the fewest samples that any strategy needs on average. It also shows how to
    spread them over the arms, and when privacy is free.
    """
    from discreet.theory.bounds import bounds as compute

    instance = read_arms(take_arms(options), sigma=gaussian)
    if epsilon is None:
        epsilon = LEVELS if instance.is_bounded else ()
    found = compute(instance, epsilon, delta, beta, sigma)
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.summaries import build_bounds
        from discreet.reports.terminal import render

        render(build_bounds(found))


@click.command(
    epilog="discreet simulate --means 0.75,0.6,0.5 --strategy bet-se --epsilon 1 --runs 200"
)
@arms_options
@gaussian_option
@strategy_options
@design_options
@calendar_options
@click.option(
    "--runs", type=int, default=1000, show_default=True, help="How many trials are simulated."
)
@seed_option
@click.option(
    "--max-samples",
    type=float,
    help="The number of samples at which a run is given up.  [default: 1e12; 1e9 where outcomes "
    "are drawn one by one]",
)
@threads_option
@click.option(
    "--out", type=click.Path(dir_okay=False), help="Write every run to this Parquet file."
)
@answer_options
def simulate(
    name: str,
    runs: int,
    seed: int,
    max_samples: float | None,
    threads: int | None,
    out: str | None,
    gaussian: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Simulate a strategy on arms that you describe. The command shows how many samples
    the strategy takes, how often it is wrong, and how often it does not stop.
    """
    from discreet.simulation import engine
    from discreet.strategies.presets import with_outcomes, with_sigma
    from discreet.tabular import require_polars

    instance = read_arms(take_arms(options), sigma=gaussian)
    days = take_calendar(options)
    strategy = read_strategy(name, options)
    if options["outcomes"] is None:
        strategy = with_outcomes(strategy, instance.outcomes)
    if gaussian is not None:
        strategy = with_sigma(strategy, gaussian)
    if out is not None:
        require_polars()
        check_writable(out)
    with quiet_warnings(), simulation_bar(f"{strategy.name} on {instance.arms} arms") as progress:
        results = engine.simulate(
            instance, strategy, runs, seed, max_samples, threads, progress, **days
        )
    if not results.runs:
        raise DiscreetError("interrupted before the first run had ended")
    if out is not None:
        results.save(out)
    tabulate(results.to_frame)
    found = simulation_report(instance, strategy, results)
    if as_json:
        show_json(found)
    else:
        from discreet.reports.summaries import build_simulation
        from discreet.reports.terminal import render
        from discreet.studies.study import describe_extras

        render(build_simulation(found, instance, describe_extras(strategy)))


def simulation_report(
    instance: "Instance", strategy: "Strategy", results: "Results"
) -> dict[str, Any]:
    """What `discreet simulate --json` prints; data is not written out."""
    return {
        "strategy": strategy.name,
        "threshold": strategy.threshold,
        "epsilon": strategy.epsilon,
        "delta": strategy.delta,
        "trust": strategy.trust,
        "privacy": strategy.privacy,
        "correctness": strategy.correctness,
        **results.summary(),
        "spec": {**results.spec, "instance": instance.describe()},
        "outcomes": strategy.shown_outcomes,
    }
