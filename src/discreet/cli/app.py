"""The command line: read options, call the library, show the result.

Exit code 0: done. 2: bad input, with one line on stderr that says what is wrong and
what to do. 1: anything else. Heavy parts are imported inside the commands, so that each
starts soon.
"""

import errno
import os
import re
from typing import Any, NoReturn

import click

from discreet.cli.audit import audit
from discreet.cli.plan import plan
from discreet.cli.server import serve, token
from discreet.cli.simulate import bounds, reproduce, simulate, sweep
from discreet.cli.transcript import report_file, respond, verify_file
from discreet.cli.trial import trial
from discreet.errors import DiscreetError, InvalidInputError


def show_examples(command: click.Command) -> None:
    """Show the `epilog` of a command and of those below it as the example of its help."""
    command.epilog = f"\b\nExample:\n  {command.epilog}"
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        show_examples(below)


EXTRA = re.compile(r"(?<=unexpected extra argument)(s?) \(.*\)", re.DOTALL)
UNKNOWN = re.compile(r"(No such (?:option|command):? '?-*[a-z-]*)[^a-z' .-][^' ]*")
"""What was typed too much, or ran into another word, may be somebody's outcome: it is
not repeated.
"""
LEFT_OUT = ("numba", "polars")
"""Libraries of the base that somebody who does not need them may have taken out."""
LONGEST = 2000
"""Characters of a line on stderr."""


class OneLine(click.Group):
    """Shows an error of ours, or a misuse of the command, as one line on stderr with
    exit code 2.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what stands before the command; refuse words that nothing can hold."""
        try:
            for word in args:
                os.fsencode(word.replace("\0", "\ud800"))
            return super().parse_args(ctx, args)
        except UnicodeEncodeError:
            _say("a word contains a character that cannot be written: leave it out.")
            ctx.exit(2)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            _refuse(ctx, error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DiscreetError as error:
            _say(str(error))
            ctx.exit(2 if isinstance(error, InvalidInputError) else 1)
        except click.UsageError as error:
            _refuse(ctx, error)
        except ModuleNotFoundError as error:
            if error.name not in LEFT_OUT:
                raise
            _say(f"this needs {error.name}, which is not installed: pip install {error.name}")
            ctx.exit(1)
        except KeyboardInterrupt:
            _say("stopped. If something was not shown, it is safe to give the command again.")
            ctx.exit(130)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _say(f"the command did its work, but its output could not be written: {error.strerror}")
            ctx.exit(1)


def _refuse(ctx: click.Context, error: click.UsageError) -> NoReturn:
    words = UNKNOWN.sub(r"\1…", EXTRA.sub(r"\1.", error.format_message()))
    path = error.ctx.command_path if error.ctx else "discreet"
    _say(f"{words} See '{path} --help'.")
    ctx.exit(2)


def _say(words: str) -> None:
    """One line on stderr, whatever stands in it."""
    plain = "".join(letter if letter.isprintable() else " " for letter in words)
    line = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]} …"
    click.echo(f"discreet: {line}", err=True)


@click.group(
    "discreet",
    cls=OneLine,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="discreet plan --arms 4 --gap 0.2 --epsilon 1",
)
@click.version_option(package_name="discreet")
def main() -> None:
    """Find the best of several arms from participants' outcomes, with a guaranteed error
    rate and with differential privacy for every participant.
    """


for command in (
    bounds,
    simulate,
    plan,
    audit,
    sweep,
    reproduce,
    trial,
    serve,
    token,
    respond,
    verify_file,
    report_file,
):
    main.add_command(command)


@main.command(epilog="discreet demo --out report.html")
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="The HTML file of the report.  [default: a file in a new temporary folder]",
)
def demo(out: str | None) -> None:
    """Walk through a dose-finding trial from beginning to end. It has a plan, a
    simulated trial, a live trial with made-up participants, and reports with pictures.
    """
    from discreet.cli.demo import run_demo

    run_demo(out)


show_examples(main)
