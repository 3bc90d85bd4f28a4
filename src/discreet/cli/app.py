"""The command line. Thin: it reads options, calls the library, and shows what comes
back.

Exit code 0: done. 2: bad input, with one line on stderr that says what is wrong and
what to do. 1: anything else. Heavy parts are imported inside the commands, so that each
starts soon.
"""

import errno
import re
from typing import Any

import click

from discreet.cli.audit import audit
from discreet.cli.demo import demo
from discreet.cli.plan import plan
from discreet.cli.respond import respond
from discreet.cli.simulate import bounds, simulate
from discreet.cli.study import reproduce, sweep
from discreet.cli.transcript import report_file, verify_file
from discreet.cli.trial import trial
from discreet.errors import DiscreetError, InvalidInputError

EXTRA = re.compile(r"(?<=unexpected extra argument)(s?) \(.*\)", re.DOTALL)
"""What was typed too much may be somebody's outcome: it is not repeated."""


class OneLine(click.Group):
    """Shows an error of ours, or a misuse of the command, as one line on stderr with
    exit code 2.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DiscreetError as error:
            code = 2 if isinstance(error, InvalidInputError) else 1
            click.echo(f"discreet: {error}", err=True)
            ctx.exit(code)
        except click.UsageError as error:
            words = EXTRA.sub(r"\1.", error.format_message())
            path = error.ctx.command_path if error.ctx else "discreet"
            click.echo(f"discreet: {words} See '{path} --help'.", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("discreet: stopped. What was not shown may be repeated safely.", err=True)
            ctx.exit(130)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            click.echo(f"discreet: what was done could not be shown: {error.strerror}", err=True)
            ctx.exit(1)


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discreet")
def main() -> None:
    """Find the best of K options from people's outcomes, privately and with a
    guaranteed error rate.
    """


for command in (
    bounds,
    simulate,
    plan,
    audit,
    sweep,
    reproduce,
    demo,
    trial,
    respond,
    verify_file,
    report_file,
):
    main.add_command(command)
