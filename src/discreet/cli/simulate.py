"""`discreet bounds` and `discreet simulate`."""

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.chosen import design_options, read_strategy, strategy_options
from discreet.cli.data import arms_options, read_arms, take_arms
from discreet.cli.options import (
    Numbers,
    answer_options,
    calendar_options,
    delta_option,
    gaussian_option,
    seed_option,
    show_json,
    tabulate,
    take_calendar,
    threads_option,
)
from discreet.cli.progress import quiet_warnings, simulation_bar
from discreet.errors import DiscreetError
from discreet.files import check_writable

if TYPE_CHECKING:
    from discreet.instance import Instance
    from discreet.results import Results
    from discreet.strategies.strategy import Strategy


LEVELS = (0.01, 0.1, 1.0, 10.0)
"""ε of `discreet bounds` unless others are given."""


@click.command()
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
        epsilon = LEVELS if instance.bounded else ()
    found = compute(instance, epsilon, delta, beta, sigma)
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.bounds import show_bounds

        show_bounds(found)


@click.command()
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
    "are drawn person by person]",
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
    from discreet.frames import require_polars
    from discreet.simulation import engine
    from discreet.strategies.presets import expecting, told

    instance = read_arms(take_arms(options), sigma=gaussian)
    days = take_calendar(options)
    strategy = read_strategy(name, options)
    if options["outcomes"] is None:
        strategy = expecting(strategy, instance.outcomes)
    if gaussian is not None:
        strategy = told(strategy, gaussian)
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
