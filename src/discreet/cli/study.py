"""`discreet sweep`, a study of one's own, and `discreet reproduce`, the paper's."""

import click

from discreet.cli.options import (
    answer_options,
    show_json,
    tabulate,
    threads_option,
)
from discreet.cli.progress import quiet_warnings, sweep_bar, tell
from discreet.cli.reports import check_report, pdf_option, write_report
from discreet.errors import InvalidInputError
from discreet.version import __version__
from discreet.words import counted


@click.command()
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

    from discreet.frames import require_polars
    from discreet.studies.run import dask_executor, run_study
    from discreet.studies.study import Study

    require_polars()
    wanted = Study.from_toml(study)
    if address is not None and threads is not None:
        raise InvalidInputError(
            "--threads is for this machine: leave it out with --dask, where the workers have "
            "their own"
        )
    for words in wanted.left_out:
        tell(f"left out: {words}")
    cluster = dask_executor(address) if address else nullcontext()
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
        from discreet.reports.terminal import show_sweep

        show_sweep(rows, out)


@click.command()
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
    from discreet.frames import require_polars
    from discreet.reports import paper, questions

    require_polars()
    if name != "samples" and (trust != "both" or all_local):
        raise InvalidInputError("--trust and --all-local belong to the study of samples")
    check_report(None, pdf)
    found: paper.Reproduction | questions.Answer
    try:
        with sweep_bar() as progress:
            if name == "samples":
                found = paper.reproduce(out, runs, trust, quick, all_local, progress, tell)
            else:
                found = questions.study(out, name, runs, quick, progress, tell)
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
        f"\n{found.folder / 'report.html'}  ({counted(len(found.table), 'cell')}, "
        f"{found.seconds:.0f} s)"
    )
