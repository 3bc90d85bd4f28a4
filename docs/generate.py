"""Write the generated parts of the docs: `python docs/generate.py`.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. With `--check`
nothing is written, and the exit code is 1 if a part is out of date.
"""

import ast
import dataclasses
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from discreet.cli import main
from discreet.service.auth import ACTIONS, PUBLIC
from discreet.trials.settings import SETTINGS, Setting
from discreet.trials.status import Status
from discreet.trials.verbs import ROLES, VERBS

DOCS = Path(__file__).parent
PART = re.compile(r"(<!-- generated: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARED = ("--json", "--csv", "--url", "--head", "--key")
"""Options that the introduction of the page of commands explains."""


def find_command(name: str) -> click.Command:
    """Return a command by its full name, such as `trial create`."""
    command: click.Command = main
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return command


def list_commands(group: click.Group = main, path: str = "") -> Iterator[str]:
    """List the full names of all commands that do something."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def write_command(name: str) -> str:
    """Return a command's help, usage and options. What is explained elsewhere is named."""
    command = find_command(name)
    options = [one for one in command.params if isinstance(one, click.Option)]
    arguments = [usage(one) for one in command.params if not isinstance(one, click.Option)]
    explained: dict[str, list[str]] = {}
    rows = []
    for option in options:
        if where := find_explanation(option, name):
            explained.setdefault(where, []).append(f"`{option.opts[0]}`")
        else:
            rows.append(write_option(option))
    parts = [
        inspect.cleandoc(command.help or ""),
        f"```sh\n{str(command.epilog).rpartition('  ')[2]}\n```",
        "Usage: `" + " ".join(["discreet", name, *arguments, "[OPTIONS]"]) + "`.",
    ]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    parts += [f"{where}: {', '.join(names)}." for where, names in explained.items()]
    return "\n\n".join(parts)


def find_explanation(option: click.Option, name: str) -> str:
    """Return where an option is explained, if that is not at the command of this name."""
    setting = SETTINGS.get(str(option.name))
    if option.opts[0] in SHARED:
        return "As for all commands"
    if setting is not None and str(option.help).startswith(setting.help):
        return "As in [the settings](#settings-of-a-trial)"
    for other in itertools.takewhile(lambda other: other != name, list_commands()):
        for one in find_command(other).params:
            if isinstance(one, click.Option) and write_option(one) == write_option(option):
                return f"As for `{other}`"
    return ""


def usage(argument: click.Parameter) -> str:
    """Return an argument as a usage line shows it."""
    name = argument.make_metavar(click.Context(main)).strip("[]")
    return name if argument.required else f"[{name}]"


def write_option(option: click.Option) -> str:
    """Return a row: what is typed, and what it means."""
    typed = ", ".join(option.opts)
    if not option.is_flag:
        choices = getattr(option.type, "choices", None)
        kind = "|".join(choices) if choices else option.make_metavar(click.Context(main))
        typed = f"{typed} {kind}"
    help = re.sub(r"\s+", " ", option.help or "")
    if option.show_default and option.default is not None:
        help = f"{help} [default: {option.default}]"
    elif option.required:
        help = f"{help} [required]"
    return f"| `{escape(typed)}` | {escape(help)} |"


def escape(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def write_settings() -> str:
    """Return a section for each setting of a trial."""
    return "\n\n".join(write_setting(one) for one in SETTINGS.values())


def write_setting(setting: Setting) -> str:
    """Return the section of a setting."""
    default = f"Default: `{setting.default!r}`." if has_default(setting) else "Required."
    unit = f" Unit: {setting.unit}." if setting.unit else ""
    choices = [f"- `{value}`: {means}." for value, means in setting.choices.items()]
    heading = f"### {setting.label}\n\n`{setting.name}`. {setting.help} {default}{unit}"
    return "\n\n".join([heading, *(["\n".join(choices)] if choices else [])])


def has_default(setting: Setting) -> bool:
    """Return whether a setting may be left out."""
    return setting.default is not dataclasses.MISSING


def write_roles() -> str:
    """Return the table of what each role may do, with a line for each verb of a trial."""
    help = {verb.name: verb.help for verb in VERBS}
    rows = [
        [
            f"`{action}`",
            *("yes" if role in roles else "" for role in ROLES),
            "yes" if action in PUBLIC else "",
            help.get(action, ""),
        ]
        for action, roles in ACTIONS.items()
    ]
    head = ["action", *ROLES, "published", ""]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def write_status() -> str:
    """Return a table of the fields of a trial's status, with their docstrings."""
    (body,) = ast.parse(inspect.getsource(Status)).body
    assert isinstance(body, ast.ClassDef)
    meanings: dict[str, str] = {}
    for line, after in itertools.pairwise([*body.body, ast.Pass()]):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            says = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            words = ast.literal_eval(after.value) if says else ""
            meanings[line.target.id] = " ".join(words.split())
    plain = ", ".join(f"`{name}`" for name, words in meanings.items() if not words)
    rows = [f"| `{name}` | {escape(words)} |" for name, words in meanings.items() if words]
    return "\n".join([f"{plain}, and", "", "| key | meaning |", "|---|---|", *rows])


PARTS: dict[str, Callable[[], str]] = {
    "settings": write_settings,
    "roles": write_roles,
    "status": write_status,
}


def write_part(name: str) -> str:
    """Return the text of a generated part."""
    kind, _, rest = name.partition(" ")
    return write_command(rest) if kind == "command" else PARTS[name]()


def write_page(text: str) -> str:
    """Return a page with its generated parts made anew."""
    return PART.sub(lambda part: f"{part[1]}{write_part(part[2])}\n{part[3]}", text)


def run(words: list[str]) -> int:
    """Write or check all pages; return the exit code."""
    old = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()
        if (made := write_page(text)) != text:
            old.append(page.name)
            if "--check" not in words:
                page.write_text(made)
    print("\n".join(old))
    return 1 if old and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
