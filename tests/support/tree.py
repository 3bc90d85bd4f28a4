"""The commands as a tree."""

import click


def commands(group: click.Group, path: str = "") -> dict[str, click.Command]:
    """All commands below a group by their full names, `audit correctness` too; a group
    is a command as well.
    """
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        found[f"{path}{name}"] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{path}{name} ")
    return found
