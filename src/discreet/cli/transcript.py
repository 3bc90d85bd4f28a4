"""`discreet verify` and `discreet report`: of a transcript, without its database."""

from typing import TYPE_CHECKING

import click

from discreet.cli.options import (
    answer,
    answer_options,
    json_option,
    read_number,
    read_stdin,
    setting_option,
    show_json,
)
from discreet.cli.output import check_report, pdf_option, progress_bar, write_report
from discreet.wording import format_count

if TYPE_CHECKING:
    from discreet.trials.status import Verification

head_option = click.option(
    "--head",
    help="A head of the record that you noted earlier; a record older than that is refused.",
)

control_option = click.option(
    "--control",
    metavar="ARM",
    help="Compare the other arms with this one.  [default: the arm that did best]",
)
assessed_option = click.option(
    "--assessed",
    type=int,
    metavar="PEOPLE",
    help="How many participants were assessed for eligibility, which the record does not know.",
)


@click.command("verify", epilog="discreet verify transcript.json")
@click.argument("file", type=click.Path())
@head_option
@answer_options
def verify_file(file: str, head: str | None, as_json: bool) -> None:
    """Check a published transcript. It needs no database."""
    from discreet.trials.transcript import verify_transcript

    with progress_bar("verifying", quiet=as_json) as progress:
        found = verify_transcript(file, head, progress)
    show_verification(found, as_json)


@click.command("report", epilog="discreet report transcript.json --out report.html")
@click.argument("file", type=click.Path())
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The HTML file to write."
)
@pdf_option
@control_option
@assessed_option
@json_option
def report_file(
    file: str,
    out: str,
    pdf: str | None,
    control: str | None,
    assessed: int | None,
    as_json: bool,
) -> None:
    """Check a published transcript, and write a page about the trial."""
    from discreet.reports.html import render
    from discreet.reports.trial import Added, build_trial_report

    check_report(out, pdf, [file])
    document, found = build_trial_report(file, Added(control, assessed))
    files = write_report(out, pdf, render(document))
    if as_json:
        printed = {} if pdf is None else {"pdf": pdf}
        said = {"intact": found.intact, "problems": [*found.problems]}
        show_json({"report": out, **printed, **said})
    else:
        click.echo("\n".join(files))
    end_with(found, as_json)


def show_verification(found: "Verification", as_json: bool) -> None:
    """What was found; the exit code is 1 if anything is wrong."""
    said = {"intact": found.intact, "events": found.events, "head": found.head}
    problems = [*found.problems]
    rows = [{**said, "problem": each} for each in (problems or (None,))]
    shown = answer({**said, "problems": problems}, as_json, rows)
    if found.intact and not shown:
        click.echo(f"Intact: {format_count(found.events, 'event')}, head {found.head}")
    end_with(found, as_json)


def end_with(found: "Verification", as_json: bool) -> None:
    """The problems on stderr, and the exit code."""
    for problem in () if as_json else found.problems:
        click.echo(f"discreet: {problem}", err=True)
    click.get_current_context().exit(0 if found.intact else 1)


@click.command(epilog="discreet respond --epsilon 1 --outcome -")
@click.option("--epsilon", type=float, required=True, help="The privacy level (ε) of the trial.")
@click.option(
    "--outcome", type=str, required=True, help="The participant's outcome; - reads it from stdin."
)
@click.option("--gamma", type=float, help="The γ of the trial's (ε, γ)-privacy, with gauss-tt.")
@click.option(
    "--middle-level",
    type=float,
    help="The middle level that a trial of numbers announces with each assignment.",
)
@setting_option("range")
@setting_option("direction")
@setting_option("out_of_range")
@answer_options
def respond(
    epsilon: float,
    outcome: str,
    gamma: float | None,
    middle_level: float | None,
    range: tuple[float, float],
    direction: str,
    out_of_range: str,
    as_json: bool,
) -> None:
    """Randomise one outcome on the participant's own device. Only what this command prints
    may leave the device.
    """
    from discreet.trials.mechanisms import respond as randomise

    word = read_stdin(line=True) if outcome == "-" else outcome
    scale = (range, direction, out_of_range)
    response = randomise(read_number(word), epsilon, gamma, *scale, middle_level)
    levels = {
        "mechanism": response.mechanism,
        "epsilon": response.epsilon,
        "gamma": response.gamma,
        "middle_level": response.middle_level,
    }
    found = {"response": str(response), **levels, "value": response.value}
    if not answer(found, as_json):
        click.echo(str(response))
