"""Commands about one trial: where its address names it, NAME may be left out."""

from collections.abc import Sequence

import click

NAMES = ("name", "trial_name")
"""What the argument NAME is called in commands about one trial."""


class Trials(click.Group):
    """Commands of trials. `discreet trial status --url https://host/t/dose` needs no
    NAME; one that is given must be that of the address, which is checked where the
    trial is opened.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, and its words, with the name of the trial."""
        called, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return called, command, rest
        return called, command, with_name(command, rest, ctx)


def with_name(command: click.Command, words: list[str], parent: click.Context) -> list[str]:
    """The words of a command, with the name of the trial that its address names before
    them, if they fit the command only so.
    """
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if not arguments or arguments[0].name not in NAMES:
        return words
    read = command.make_context(
        command.name, [*words], parent=parent, resilient_parsing=True
    ).params
    name = _named(read.get("url"))
    if name is None or name.startswith("-"):
        return words
    given = [read[str(one.name)] for one in arguments if read.get(str(one.name)) is not None]
    return words if _has_name(given, name, arguments) else [name, *words]


def _named(url: object) -> str | None:
    """The trial that an address names; None if it names none."""
    from discreet.remote.address import address_of, is_remote

    return address_of(url)[1] if is_remote(url) else None


def _has_name(given: Sequence[str], name: str, arguments: Sequence[click.Argument]) -> bool:
    """Whether the first of these words is a NAME, be it another one, because one word
    more would be too many. A command takes either all of its arguments or those that it
    needs; where both would do, in `operate`, a word that is no action is a NAME.
    """
    fits = (len(arguments), sum(one.required for one in arguments))
    if not given or len(given) + 1 not in fits:
        return bool(given)
    if len(given) not in fits:
        return False
    from discreet.trials.conduct import MEANS

    return given[0] == name or given[0] not in MEANS
