"""`discreet bounds` and `discreet simulate`."""

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.data import arms_options, read_arms, take_arms
from discreet.cli.options import (
    Numbers,
    calendar_options,
    delta_option,
    design_options,
    json_option,
    read_strategy,
    seed_option,
    show_json,
    strategy_options,
    take_calendar,
    threads_option,
)
from discreet.cli.progress import progress_bar, quiet_warnings
from discreet.errors import DiscreetError
from discreet.files import check_writable

if TYPE_CHECKING:
    from discreet.instance import Instance
    from discreet.results import Results
    from discreet.strategies.strategy import Strategy


@click.command()
@arms_options
@click.option(
    "--epsilon", type=Numbers(), default="0.01,0.1,1,10", show_default=True, help="Privacy levels."
)
@delta_option
@click.option(
    "--beta", type=float, default=0.5, show_default=True, help="The leader's share in the β-times."
)
@click.option(
    "--sigma", type=float, default=0.5, show_default=True, help="σ of the Gaussian times."
)
@json_option
def bounds(
    epsilon: tuple[float, ...],
    delta: float,
    beta: float,
    sigma: float,
    as_json: bool,
    **options: Any,
) -> None:
    """How many samples any strategy must use, how to spread them, and when privacy is
    free.
    """
    from discreet.theory.bounds import bounds as compute

    instance = read_arms(take_arms(options))
    found = compute(instance, epsilon, delta, beta, sigma)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.bounds import show_bounds

        show_bounds(found)


@click.command()
@arms_options
@strategy_options
@design_options
@calendar_options
@click.option("--runs", type=int, default=1000, show_default=True, help="Simulated trials.")
@seed_option
@click.option(
    "--max-samples",
    type=float,
    help="Cap of a run.  [default: 1e12; 1e9 where outcomes are drawn person by person]",
)
@threads_option
@click.option(
    "--out", type=click.Path(dir_okay=False), help="Write every run to this Parquet file."
)
@json_option
def simulate(
    name: str,
    runs: int,
    seed: int,
    max_samples: float | None,
    threads: int | None,
    out: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """How many samples a strategy takes, how often it errs, and how often it does not
    stop.
    """
    from discreet.simulation import engine
    from discreet.strategies.presets import expecting

    instance = read_arms(take_arms(options))
    days = take_calendar(options)
    strategy = read_strategy(name, options)
    if options["outcomes"] is None:
        strategy = expecting(strategy, instance.outcomes)
    if out is not None:
        check_writable(out)
    with quiet_warnings(), progress_bar(f"{strategy.name} on {instance.arms} arms") as progress:
        results = engine.simulate(
            instance, strategy, runs, seed, max_samples, threads, progress, **days
        )
    if not results.runs:
        raise DiscreetError("interrupted before the first run was done")
    if out is not None:
        results.save(out)
    found = simulation_report(instance, strategy, results)
    if as_json:
        show_json(found)
    else:
        from discreet.reports.terminal import show_simulation
        from discreet.studies.study import extras

        show_simulation(found, instance, extras(strategy))


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
