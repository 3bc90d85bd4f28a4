"""`discreet verify` and `discreet report`: of a transcript, without its database."""

from typing import TYPE_CHECKING

import click

from discreet.cli.options import answer, answer_options, check_page, json_option, show_json
from discreet.cli.progress import progress_bar

if TYPE_CHECKING:
    from discreet.trials.status import Verification

head_option = click.option(
    "--head", help="The head of the record that you know; a record older than that is refused."
)


@click.command("verify")
@click.argument("file", type=click.Path())
@head_option
@answer_options
def verify_file(file: str, head: str | None, as_json: bool) -> None:
    """Check a published transcript. It needs no database."""
    from discreet.trials.verify import verify_transcript

    with progress_bar("verifying", quiet=as_json) as progress:
        found = verify_transcript(file, head, progress)
    show_verification(found, as_json)


@click.command("report")
@click.argument("file", type=click.Path())
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The HTML file to write."
)
@json_option
def report_file(file: str, out: str, as_json: bool) -> None:
    """Check a published transcript, and write a page about the trial."""
    from discreet.files import write
    from discreet.reports.trial import checked_page

    check_page(out, [file])
    page, found = checked_page(file)
    write(out, page)
    if as_json:
        show_json({"report": out, "intact": found.intact, "problems": [*found.problems]})
    else:
        click.echo(out)
    end_with(found, as_json)


def show_verification(found: "Verification", as_json: bool) -> None:
    """What was found; the exit code is 1 if anything is wrong."""
    said = {"intact": found.intact, "events": found.events, "head": found.head}
    problems = [*found.problems]
    rows = [{**said, "problem": each} for each in (problems or (None,))]
    shown = answer({**said, "problems": problems}, as_json, rows)
    if found.intact and not shown:
        click.echo(f"Intact: {found.events} events, head {found.head}")
    end_with(found, as_json)


def end_with(found: "Verification", as_json: bool) -> None:
    """The problems on stderr, and the exit code."""
    for problem in () if as_json else found.problems:
        click.echo(f"discreet: {problem}", err=True)
    click.get_current_context().exit(0 if found.intact else 1)
