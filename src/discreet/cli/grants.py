"""`discreet trial grants`: the rights of roles on a PostgreSQL server."""

import click

from discreet.cli.options import json_option, show_json


@click.command()
@click.option(
    "--service",
    "services",
    multiple=True,
    help="A role that `discreet serve` works with. It may be given several times.",
)
@click.option(
    "--manager",
    "managers",
    multiple=True,
    help="A role that creates and conducts trials. It may be given several times.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    help="A role that enrols people and tells outcomes. It may be given several times.",
)
@click.option(
    "--monitor",
    "monitors",
    multiple=True,
    help="A role that sees what anyone may see. It may be given several times.",
)
@click.option(
    "--schema",
    default="public",
    show_default=True,
    help="The schema of the tables, which is made if it is not there.",
)
@json_option
def grants(
    services: tuple[str, ...],
    managers: tuple[str, ...],
    sites: tuple[str, ...],
    monitors: tuple[str, ...],
    schema: str,
    as_json: bool,
) -> None:
    """Print SQL that gives PostgreSQL roles the rights they need. It also creates the
    tables, and takes away all other rights on them. The owner of the tables runs it
    with psql.
    """
    from discreet.trials.store.grants import grants as written

    text = written(managers, sites, monitors, schema, services)
    show_json({"sql": text}) if as_json else click.echo(text, nl=False)
