"""The commands of live trials: `discreet trial …`."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from discreet.cli.ask import ask
from discreet.cli.backup import backup, restore
from discreet.cli.create import create
from discreet.cli.grants import grants
from discreet.cli.manage import expire, manage
from discreet.cli.options import (
    answer,
    answer_options,
    json_option,
    names_of,
    opened,
    show_json,
    tabulate,
    url_option,
)
from discreet.cli.progress import progress_bar, quiet_warnings
from discreet.cli.reports import check_report, pdf_option, write_report
from discreet.cli.staff import audit_trail, codes, open_assignments, reissue, unblind
from discreet.cli.tables import pieces_of, read_outcome, read_outcomes, reading
from discreet.cli.transcript import (
    assessed_option,
    control_option,
    head_option,
    show_verification,
)
from discreet.errors import DiscreetError, InvalidInputError
from discreet.files import check_writable

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import TellResult
    from discreet.trials.trial import Trial


@click.group(no_args_is_help=False)
def trial() -> None:
    """Run a live trial. Create it, assign people to arms, tell their outcomes, and
    publish the result.
    """
    click.get_current_context().with_resource(quiet_warnings())


for command in (
    *(create, ask, manage, expire, open_assignments, reissue, unblind, codes, audit_trail),
    *(backup, restore, grants),
):
    trial.add_command(command)


@trial.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("id", required=False)
@click.argument("outcome", required=False)
@click.option(
    "--csv",
    "table",
    type=click.Path(),
    help="A file with a line id,outcome for each person. A first line of column titles is allowed "
    "if it begins with id. - reads stdin.",
)
@head_option
@url_option
@json_option
def tell(
    name: str,
    id: str | None,
    outcome: str | None,
    table: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Tell people's outcomes. If nobody is trusted (local trust), tell their randomised
    responses. Telling an outcome again does not change it; until the look that
    uses it, amend corrects it.
    """
    if (table is None) == (id is None) or (id is None) != (outcome is None):
        raise InvalidInputError(
            "give an id and its outcome, or --csv FILE with a line id,outcome for each person"
        )
    place = opened(url, name, head)
    found = _tell_file(place, table) if table else _tell(place, {str(id): str(outcome)})
    _show_told(found, place.protocol, as_json)


def _show_told(found: "TellResult", protocol: "Protocol", as_json: bool) -> None:
    """What was taken."""
    said = {"accepted": found.new, "already_told": [*found.already_told], "late": [*found.late]}
    if not answer(said, as_json):
        click.echo("\n".join(_told_words(found, protocol)))


def _tell(place: "Trial", told: dict[str, str]) -> "TellResult":
    """Tell what was read."""
    if place.protocol.strategy.trust_model.randomised:
        from discreet.trials.responses import Response

        return place.answer_many({id: Response.parse(word) for id, word in told.items()})
    return place.tell_many(
        {id: read_outcome(id, word, place.protocol) for id, word in told.items()}
    )


def _tell_file(place: "Trial", table: str) -> "TellResult":
    """Tell the outcomes of a file, in pieces; a line that cannot be read is found
    before the first of them is told.
    """
    from discreet.trials.status import TellResult

    randomised = place.protocol.strategy.trust_model.randomised
    with reading(table) as file:
        for line, id, word in read_outcomes(file):
            if not randomised:
                read_outcome(id, word, place.protocol, line)
        sums = TellResult(0)
        for piece in pieces_of(file):
            try:
                found = _tell(place, piece)
            except DiscreetError as error:
                if not (sums.new or sums.already_told or sums.late):
                    raise
                raise type(error)(
                    f"{error} of this part of the file. Everything before it was told "
                    f"({sums.new} new). It is safe to tell the whole file again"
                ) from None
            sums = TellResult(
                sums.new + found.new, sums.already_told + found.already_told, sums.late + found.late
            )
    if not (sums.new or sums.already_told or sums.late):
        raise InvalidInputError("no line has an id and an outcome: nothing was told")
    return sums


def _told_words(found: "TellResult", protocol: "Protocol") -> list[str]:
    """What was taken, and of what was not, why: by ids and times, never by outcomes."""
    words = [f"Accepted: {found.new}."]
    if found.already_told:
        command = f"discreet trial amend {shlex.quote(protocol.name)} ID OUTCOME"
        mended = f" Until the look that uses it, correct one: {command}"
        if protocol.strategy.trust_model.randomised:
            mended = ""
        words.append(
            "Recorded before or declared missing, so nothing was changed: "
            f"{_some(found.already_told)}.{mended}"
        )
    if found.late:
        words.append(f"Past the deadline, so they do not count: {_some(found.late)}")
    return words


def _some(ids: Sequence[str], most: int = 20) -> str:
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return f"{', '.join(ids[:most])}{more}"


@trial.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("id")
@click.argument("outcome")
@head_option
@url_option
@answer_options
def amend(name: str, id: str, outcome: str, head: str | None, url: str, as_json: bool) -> None:
    """Correct an outcome that was told and is not released yet."""
    place = opened(url, name, head)
    place.amend(id, read_outcome(id, outcome, place.protocol))
    if not answer({"accepted": 1}, as_json):
        click.echo("Accepted.")


@trial.command()
@click.argument("name")
@click.argument("id")
@head_option
@url_option
@answer_options
def miss(name: str, id: str, head: str | None, url: str, as_json: bool) -> None:
    """Say that an outcome will not come."""
    place = opened(url, name, head)
    _show_told(place.miss(id), place.protocol, as_json)


@trial.command("list")
@url_option
@answer_options
def list_all(url: str, as_json: bool) -> None:
    """List all trials at an address. For each of them it shows the state and how many
    people it has.
    """
    from discreet.trials.listing import Listed, list_trials

    found = list_trials(url)
    listed = [asdict(one) for one in found]
    if answer({"trials": listed}, as_json, listed, names_of(Listed)):
        return
    from discreet.reports.terminal import show_grid

    rows = [
        [one.name, one.strategy, one.state, f"{one.people} of {one.max_people}"] for one in found
    ]
    heads = ["trial", "strategy", "state", "people"]
    show_grid(heads, rows, left=heads[:3])


@trial.command()
@click.argument("name")
@head_option
@url_option
@answer_options
def status(name: str, head: str | None, url: str, as_json: bool) -> None:
    """Show the trial as anyone may see it."""
    place = opened(url, name, head)
    found = place.status()
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import show_trial

        show_trial(found, place.protocol)


@trial.command()
@click.argument("name")
@head_option
@url_option
@answer_options
def verify(name: str, head: str | None, url: str, as_json: bool) -> None:
    """Check the public record of a trial. Its chain of hashes is recomputed, and the
    state of the trial is computed from the record alone.
    """
    place = opened(url, name)
    with progress_bar("verifying", quiet=as_json) as progress:
        found = place.verify(head, progress)
    show_verification(found, as_json)


@trial.command()
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), help="The file to write.  [default: stdout]"
)
@head_option
@url_option
@answer_options
def transcript(name: str, out: str | None, head: str | None, url: str, as_json: bool) -> None:
    """Print what may be published, as JSON. It contains the protocol, the assignments,
    releases and decisions, and the chain of hashes that ties them together.
    """
    from discreet.files import write
    from discreet.trials.export import transcript_frame

    place = opened(url, name, head)
    if out is not None:
        check_writable(out, place.files)
    said = place.transcript()
    tabulate(lambda: transcript_frame(said))
    text = json.dumps(said, indent=1, ensure_ascii=False) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    write(out, text)
    show_json({"transcript": out}) if as_json else click.echo(out)


@trial.command()
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The CSV file to write."
)
@head_option
@url_option
@json_option
def export(name: str, out: str, head: str | None, url: str, as_json: bool) -> None:
    """Write the public record to a CSV file. It has the events of the transcript, with
    a row for each person, batch or event, and nothing else.
    """
    from discreet.frames import write_csv
    from discreet.trials.export import transcript_frame

    place = opened(url, name, head)
    check_writable(out, place.files)
    write_csv(out, transcript_frame(place.transcript()))
    show_json({"export": out}) if as_json else click.echo(out)


@trial.command()
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The HTML file to write."
)
@pdf_option
@control_option
@assessed_option
@click.option(
    "--dates",
    is_flag=True,
    help="Publish the days of creation, of the first and the last person, and of the end.",
)
@head_option
@url_option
@json_option
def report(
    name: str,
    out: str,
    pdf: str | None,
    control: str | None,
    assessed: int | None,
    dates: bool,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Write a page about the trial that may be published. It is one HTML file, made
    from the public transcript, and from what you add with --assessed and --dates. The
    dates are taken from the private audit trail.
    """
    from discreet.reports.dates import audit_dates
    from discreet.reports.trial import trial_page

    place = opened(url, name, head)
    check_report(out, pdf, place.files)
    said = place.transcript()
    days = audit_dates(place.audit_trail(10**6), said["status"]["stopped"]) if dates else None
    files = write_report(out, pdf, trial_page(said, control, assessed, days))
    printed = {} if pdf is None else {"pdf": pdf}
    show_json({"report": out, **printed}) if as_json else click.echo("\n".join(files))
