"""The command line. Thin: it reads options, calls the library, and shows what comes back.

Exit code 0: done. 2: bad input, with one line on stderr that says what is wrong and what to do. 1: anything else.
"""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click

from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from discreet.bounds import Bounds
    from discreet.instance import Bernoulli


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
    from discreet.bounds import bounds as compute

    found = compute(read_instance(means, benchmark, names), epsilon, delta, beta, sigma)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False, ensure_ascii=False))
    else:
        _show_bounds(found)


def _show_bounds(found: "Bounds") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout, highlight=False)
    instance = found.instance
    console.print(
        f"[bold]{instance.arms} arms, {instance.names[instance.best]} is best; error rate δ = {found.delta:g}[/]\n"
        f"Without privacy every strategy needs at least {_count(found.lower_bound)} samples on average.\n"
    )
    table = Table(box=box.SIMPLE_HEAD, title="At least this many samples on average under ε-privacy")
    table.add_column("\nε", justify="right", no_wrap=True)
    for trust in ("collector\ntrusted", "nobody\ntrusted"):
        table.add_column(trust, justify="right", no_wrap=True)
        table.add_column("\nprice", justify="right", no_wrap=True)
        table.add_column("privacy\nregime", no_wrap=True)
    for row in found.per_epsilon:
        table.add_row(
            f"{row.epsilon:g}",
            _count(row.lower_bound_global),
            _ratio(row.cost_global),
            row.regime_global,
            _count(row.lower_bound_local_both),
            _ratio(row.cost_local),
            row.regime_local,
        )
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
    table = Table(box=box.SIMPLE_HEAD, title="How an ideal strategy spreads its samples")
    table.add_column("\narm")
    table.add_column("\nmean", justify="right")
    for heading, _ in columns:
        table.add_column(heading, justify="right")
    shown = sorted(range(instance.arms), key=lambda a: -instance.means[a])[:12]
    for a in sorted(shown):
        shares = [f"{time.allocation[a]:.1%}" for _, time in columns]
        table.add_row(instance.names[a], f"{instance.means[a]:g}", *shares)
    console.print(table)
    if len(shown) < instance.arms:
        console.print(f"(the best {len(shown)} of {instance.arms} arms)\n")


def _count(samples: float) -> str:
    """A lower bound on a number of people, rounded up."""
    return f"{math.ceil(samples):,}" if samples < 1e12 else f"{samples:.3e}"


def _ratio(value: float) -> str:
    return f"× {value:.2f}" if value < 100 else f"× {value:,.0f}"


@main.command()
def demo() -> None:
    """What discreet can do so far, on a small dose-finding question."""
    from discreet.bounds import bounds as compute
    from discreet.instance import Bernoulli

    doses = Bernoulli((0.35, 0.5, 0.7, 0.55), ("5 mg", "10 mg", "20 mg", "40 mg"))
    click.echo(
        "Four doses of a drug; 35, 50, 70 and 55 % of patients respond. Which dose is best, wrongly named\n"
        "with probability at most 5 %, each patient's outcome ε-private? First: what is possible at all?\n"
    )
    _show_bounds(compute(doses, (0.05, 0.2, 1.0, 5.0), 0.05))
