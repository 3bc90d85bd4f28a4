"""`discreet trial backup` and `discreet trial restore`."""

from dataclasses import asdict

import click

from discreet.cli.options import answer, answer_options, names_of, url_option

SAFE = (
    "Note the heads in another place: a restore asks for them. The file contains outcomes that "
    "are not released yet, and it keeps them even after they are released and erased from the "
    "database. Keep it as safe as the database, and delete it when there is a newer one."
)
AGAIN = (
    "Outcomes that were told after the backup was made are not in it: tell them again, which is "
    "safe. People who were assigned after it are not in it either: their ids are now unknown, "
    "and if they are registered again they may get another arm. Before you go on, decide what "
    "is to happen with people who have been treated already, and keep a list of them. Make a "
    "new backup now, and delete the older ones."
)


@click.command()
@click.argument("file", type=click.Path())
@url_option
@answer_options
def backup(file: str, url: str, as_json: bool) -> None:
    """Copy all trials at an address into a file. They are copied as they are at one
    moment, and may go on meanwhile.
    """
    from discreet.trials.backup import BackedUp, backup_trials

    found = backup_trials(url, file)
    rows = [asdict(one) for one in found]
    if answer({"backup": file, "trials": rows}, as_json, rows, names_of(BackedUp)):
        return
    for one in found:
        click.echo(f"{one.name}  {one.head}")
    click.echo(SAFE)


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--head",
    "heads",
    multiple=True,
    help="A head that you know from elsewhere, which must be in the file. Give it once for each "
    "trial.",
)
@click.option(
    "--i-know-that-epsilon-is-spent-again",
    "knows",
    is_flag=True,
    help="Restore a backup that may be old, and say so in the public record. It needs --reason.",
)
@click.option(
    "--reason",
    help="The reason, in a sentence. It is published, so it must not name a person or an outcome.",
)
@url_option
@answer_options
def restore(
    file: str, heads: tuple[str, ...], knows: bool, reason: str | None, url: str, as_json: bool
) -> None:
    """Put all trials of a backup into a database. Either all of them are restored, or
    none. Nobody else may have the database open.
    """
    from discreet.trials.backup import LEFT, Restored, restore_trials

    found = restore_trials(file, url, heads, knows, reason)
    rows = [asdict(one) for one in found]
    if answer({"trials": rows}, as_json, rows, names_of(Restored)):
        return
    for one in found:
        click.echo(f"{one.name}  {one.done}  {one.head}")
    if any(one.spent_again for one in found):
        from discreet.trials.conduct import RECORDED, RESTORED

        click.echo(f"The public record says: {RECORDED[RESTORED]}.")
    if any(one.done != LEFT for one in found):
        click.echo(AGAIN)
