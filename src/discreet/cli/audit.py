"""`discreet audit correctness` and `discreet audit privacy`."""

import math
from typing import Any

import click

from discreet.cli.options import (
    answer_options,
    read_strategy,
    seed_option,
    show_json,
    strategy_options,
    tabulate,
)
from discreet.cli.output import progress_bar, quiet_warnings, simulation_bar
from discreet.errors import InvalidInputError

level_option = click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The confidence level of the whole audit.",
)


audited_outcomes_option = click.option(
    "--outcomes", help="Which outcomes bet-se expects: yes-no or numbers.  [default: yes-no]"
)


@click.group(
    no_args_is_help=False,
    epilog="discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1",
)
def audit() -> None:
    """Check the guarantees of a strategy by experiment."""


@audit.command(epilog="discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1")
@strategy_options
@audited_outcomes_option
@level_option
@click.option(
    "--runs", type=int, help="How many trials on each instance.  [default: 1000; 300 with --field]"
)
@seed_option
@click.option(
    "--max-samples",
    type=float,
    help="The number of samples at which a run is given up.  [default: 1e9; 2e5 if simulated "
    "sample by sample; 500 with --field]",
)
@click.option(
    "--field",
    is_flag=True,
    help="Rehearse live trials instead, with hospitals that differ, seasons, staff who select "
    "patients, and late outcomes.",
)
@answer_options
def correctness(
    name: str,
    level: float,
    runs: int | None,
    seed: int,
    max_samples: float | None,
    field: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Check whether a strategy keeps its error rate δ. It is tried on instances that
    make errors likely.
    """
    from discreet.audits.correctness import FIELD_RUNS, RUNS, audit_correctness

    usual = FIELD_RUNS if field else RUNS
    strategy = read_strategy(name, options)
    cap = _whole("max-samples", max_samples)
    with quiet_warnings(), simulation_bar(f"auditing {strategy.name}") as progress:
        found = audit_correctness(
            strategy,
            usual if runs is None else runs,
            seed,
            level,
            max_samples=cap,
            progress=progress,
            field=field,
        )
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.summaries import build_correctness_audit
        from discreet.reports.terminal import render

        render(build_correctness_audit(found))


def _whole(option: str, number: float | None) -> int | None:
    """A number of samples, which may be written as 1e9."""
    if number is not None and not math.isfinite(number):
        raise InvalidInputError(f"--{option} must be a finite number; got {number}")
    return None if number is None else int(number)


@audit.command(epilog="discreet audit privacy --strategy bet-se --epsilon 1")
@strategy_options
@audited_outcomes_option
@level_option
@click.option(
    "--runs",
    type=int,
    default=10_000,
    show_default=True,
    help="The number of runs on each of two inputs that differ in one participant.",
)
@click.option(
    "--noise",
    default="mixed",
    show_default=True,
    help="Where the noise comes from: opendp as in live trials, numpy with the same laws, or "
    "mixed.",
)
@click.option("--seed", type=int, help="The seed of numpy's noise; live noise has none.")
@answer_options
def privacy(
    name: str,
    level: float,
    runs: int,
    noise: str,
    seed: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how much a strategy reveals about one participant. The result is a lower
    confidence bound on the ε of one release or response, and of whole transcripts.
    """
    from discreet.audits.privacy import audit_privacy

    strategy = read_strategy(name, options)
    with progress_bar(f"auditing {strategy.name}") as progress:
        found = audit_privacy(strategy, runs, level, noise, seed, progress=progress)
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.summaries import build_privacy_audit
        from discreet.reports.terminal import render

        render(build_privacy_audit(found))
