"""`discreet sweep`, a study of one's own, and `discreet reproduce`, the paper's."""

import click

from discreet.cli.options import json_option, show_json, threads_option
from discreet.cli.progress import quiet_warnings, sweep_bar, tell
from discreet.errors import InvalidInputError
from discreet.version import __version__


@click.command()
@click.argument("study", type=click.Path())
@click.option(
    "--out",
    required=True,
    type=click.Path(),
    help="Folder of the study; an unfinished one goes on.",
)
@threads_option
@click.option("--dask", "address", help="Run on the Dask cluster whose scheduler has this address.")
@json_option
@click.pass_context
def sweep(
    ctx: click.Context,
    study: str,
    out: str,
    threads: int | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Simulate a grid of instances and strategies that a TOML file describes;
    resumable.
    """
    from contextlib import nullcontext

    from discreet.studies.run import dask_executor, run_study
    from discreet.studies.study import Study

    wanted = Study.from_toml(study)
    if address is not None and threads is not None:
        raise InvalidInputError(
            "--threads is for this machine: leave it out with --dask, whose workers have their own"
        )
    for words in wanted.left_out:
        tell(f"left out: {words}")
    cluster = dask_executor(address) if address else nullcontext()
    try:
        with quiet_warnings(), cluster as executor, sweep_bar() as show:
            table = run_study(wanted, out, executor, show, threads)
    except KeyboardInterrupt:
        tell(f"interrupted; what is finished stays in {out}, and the same command goes on")
        ctx.exit(1)
    rows = table.to_dicts()
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
        from discreet.reports.terminal import show_sweep

        show_sweep(rows, out)


@click.command()
@click.option(
    "--out",
    required=True,
    help="Folder for the report, the pictures and the table: new, empty, or one of before.",
)
@click.option("--runs", type=int, help="Runs of each cell: 1000; with --quick 100.")
@click.option("--trust", default="both", show_default=True, help="global, local or both.")
@click.option(
    "--quick", is_flag=True, help="A look in about half a minute: fewer instances, ε and runs."
)
@click.option("--all-local", is_flag=True, help="Also local ε below 0.1, which take very long.")
@json_option
@click.pass_context
def reproduce(
    ctx: click.Context,
    out: str,
    runs: int | None,
    trust: str,
    quick: bool,
    all_local: bool,
    as_json: bool,
) -> None:
    """The paper's study again: six instances, its strategies, a report that says what
    agrees and what does not.
    """
    from discreet.reports import paper

    try:
        with sweep_bar() as progress:
            found = paper.reproduce(out, runs, trust, quick, all_local, progress, tell)
    except KeyboardInterrupt:
        tell("interrupted; the same command goes on where it was")
        ctx.exit(1)
    if as_json:
        show_json(found.to_dict())
        return
    for finding in found.findings:
        click.echo(f"{finding.verdict.upper()} ({finding.trust}) {finding.claim}")
        for words in finding.evidence:
            click.echo(f"    {words}")
    click.echo(
        f"\n{found.folder / 'report.html'}  ({len(found.table)} cells, {found.seconds:.0f} s)"
    )
