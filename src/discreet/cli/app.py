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

EXAMPLES = {
    "": "discreet plan --arms 4 --gap 0.2 --epsilon 1",
    "bounds": "discreet bounds --means 0.75,0.7,0.7 --epsilon 0.1,1 --delta 0.01",
    "simulate": "discreet simulate --means 0.75,0.6,0.5 --strategy bet-se --epsilon 1 --runs 200",
    "plan": "discreet plan --arms 4 --gap 0.2 --base 0.5 --epsilon 0.1,1 --budget 3000",
    "audit": "discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1",
    "audit correctness": "discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1",
    "audit privacy": "discreet audit privacy --strategy bet-se --epsilon 1",
    "sweep": "discreet sweep study.toml --out results",
    "reproduce": "discreet reproduce --out study --quick",
    "demo": "discreet demo --out report.html",
    "trial": "discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-participants 2000",
    "trial create": (
        "discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-participants 2000 "
        "--deadline 7d"
    ),
    "trial ask": "discreet trial ask dose --count 20",
    "trial tell": "discreet trial tell dose --csv outcomes.csv",
    "trial amend": "discreet trial amend dose ID 0",
    "trial miss": "discreet trial miss dose ID",
    "trial expire": "discreet trial expire dose",
    "trial open": "discreet trial open dose --site Leeds",
    "trial reissue": "discreet trial reissue dose ID",
    "trial manage": "discreet trial manage dose pause --reason 'The pharmacy is closed.'",
    "trial unblind": "discreet trial unblind dose ID --reason 'Emergency treatment.'",
    "trial codes": "discreet trial codes dose",
    "trial audit-trail": "discreet trial audit-trail dose --most 20",
    "trial list": "discreet trial list",
    "trial status": "discreet trial status dose",
    "trial verify": "discreet trial verify dose",
    "trial transcript": "discreet trial transcript dose --out transcript.json",
    "trial export": "discreet trial export dose --out dose.csv",
    "trial report": "discreet trial report dose --out report.html --pdf report.pdf",
    "trial backup": "discreet trial backup backup.db",
    "trial restore": "discreet trial restore backup.db --head HEAD",
    "trial grants": "discreet trial grants --service web --manager ann --site leeds > grants.sql",
    "serve": "discreet serve --url sqlite:///trials.db --port 8642",
    "token": "discreet token create leeds-clinic --role site --trial dose --site Leeds",
    "token create": "discreet token create leeds-clinic --role site --trial dose --site Leeds",
    "token list": "discreet token list",
    "token revoke": "discreet token revoke 3",
    "respond": "discreet respond --epsilon 1 --outcome -",
    "verify": "discreet verify transcript.json",
    "report": "discreet report transcript.json --out report.html",
}
"""By the command's name without `discreet`."""


def show_examples(command: click.Command, name: str = "") -> None:
    """Let the help of a command and of those below it end with an example."""
    command.epilog = f"\b\nExample:\n  {EXAMPLES[name]}"
    for part, below in command.commands.items() if isinstance(command, click.Group) else ():
        show_examples(below, f"{name} {part}".strip())


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


@click.group("discreet", cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
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


@main.command()
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
