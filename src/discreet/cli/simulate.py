"""`discreet bounds` and `discreet simulate`."""

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    Numbers,
    check_writable,
    delta_option,
    design_options,
    instance_options,
    json_option,
    read_instance,
    read_strategy,
    seed_option,
    show_json,
    strategy_options,
    threads_option,
)
from discreet.cli.progress import progress_bar, quiet_warnings
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.results import Results
    from discreet.strategies.strategy import Strategy


@click.command()
@instance_options
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
    means: tuple[float, ...] | None,
    benchmark: str | None,
    names: str | None,
    epsilon: tuple[float, ...],
    delta: float,
    beta: float,
    sigma: float,
    as_json: bool,
) -> None:
    """How many samples any strategy must use, how to spread them, and when privacy is
    free.
    """
    from discreet.theory.bounds import bounds as compute

    found = compute(read_instance(means, benchmark, names), epsilon, delta, beta, sigma)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import show_bounds

        show_bounds(found)


@click.command()
@instance_options
@strategy_options
@design_options
@click.option("--runs", type=int, default=1000, show_default=True, help="Simulated trials.")
@seed_option
@click.option("--max-samples", type=float, help="Cap of a run.  [default: 1e12]")
@threads_option
@click.option(
    "--out", type=click.Path(dir_okay=False), help="Write every run to this Parquet file."
)
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
    """How many samples a strategy takes, how often it errs, and how often it does not
    stop.
    """
    from discreet.simulation import engine

    instance = read_instance(means, benchmark, names)
    strategy = read_strategy(name, options)
    if out is not None:
        check_writable(out)
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
        from discreet.studies.study import extras

        show_simulation(found, instance, extras(strategy))


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
