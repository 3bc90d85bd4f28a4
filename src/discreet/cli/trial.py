"""The commands of live trials: `discreet trial …`."""

import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    answer,
    answer_options,
    json_option,
    names_of,
    opened,
    show_json,
    tabulate,
    typed_url,
    url_option,
)
from discreet.cli.output import (
    check_report,
    pdf_option,
    pieces_of,
    progress_bar,
    quiet_warnings,
    read_outcome,
    read_outcomes,
    reading,
    write_report,
)
from discreet.cli.transcript import (
    assessed_option,
    control_option,
    head_option,
    show_verification,
)
from discreet.cli.trial_admin import (
    audit_trail,
    backup,
    codes,
    expire,
    grants,
    manage,
    open_assignments,
    reissue,
    restore,
    unblind,
)
from discreet.cli.trial_create import create
from discreet.errors import DiscreetError, InvalidInputError
from discreet.files import check_writable
from discreet.wording import format_count

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import AskResult, TellResult
    from discreet.trials.trial import Trial


@click.command(epilog="discreet trial ask dose --count 20")
@click.argument("name")
@click.option("--count", "-n", type=int, help="How many participants to assign.  [default: 1]")
@click.option(
    "--participant",
    "persons",
    multiple=True,
    help="An identifier of the participant; only a keyed hash of it is kept.",
)
@click.option(
    "--participants",
    "people",
    type=click.Path(),
    help="A file with one identifier per line, instead of --count.",
)
@click.option(
    "--site",
    help="The site where they are enrolled; it is part of the public record.  [default: none]",
)
@click.option(
    "--key",
    help="A text of your own that names this request. If you repeat the command with the same "
    "text, with or without the other options, the same assignments come back.  [default: a "
    "new one, which is shown where the answer could be lost]",
)
@head_option
@url_option
@answer_options
def ask(
    name: str,
    count: int | None,
    persons: tuple[str, ...],
    people: str | None,
    site: str | None,
    key: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Assign the next participants to arms. If a round is full before, fewer participants
    are assigned than you asked for. Ask only when participants are there: everybody who
    is assigned is analysed.
    """
    from discreet.trials.store.database import DeferredSigint

    wanted = _people(persons, people, count)
    place = opened(url, name, head)
    if key is not None and wanted is None and count is None and not place.was_answered(key):
        raise InvalidInputError(
            "no request has been made with this key: check the key. If it is a new one, say how "
            "many participants arrive, or who, with --count 1, --participant or --participants. "
            "Nobody "
            "was assigned"
        )
    is_new_key, asked = key is None, len(wanted) if wanted else count or 1
    key = key or secrets.token_hex(8)
    again = _again(
        name, key, (("--participants", people), ("--site", site), ("--url", typed_url()))
    )
    with DeferredSigint():  # the answer is shown before Ctrl-C is heard
        batch = place.ask(asked, wanted, site, key=key)
        if is_new_key and batch.assignments and not sys.stdout.isatty():
            click.echo(
                f"discreet: if the answer is lost, this command gives it again: {again}", err=True
            )
        with _shown(again):
            found = _plain(batch, key)
            rows = found["assignments"]
            if not answer(found, as_json, rows, ("id", "arm")):
                click.echo(_words(batch, asked, place))


def _again(name: str, key: str, options: tuple[tuple[str, str | None], ...]) -> str:
    """The command that repeats a request; without identities, as it may be logged."""
    words = ["discreet trial ask", shlex.quote(name), "--key", shlex.quote(key)]
    for option, value in options:
        words += [] if value is None else [option, shlex.quote(value)]
    return " ".join(words)


TITLES = ("id", "identifier", "name", "names", "patient", "people", "person", "subject")


def _people(persons: tuple[str, ...], people: str | None, count: int | None) -> list[str] | None:
    """Who comes, if that is said."""
    if len(persons) > 1:
        raise InvalidInputError(
            "give --participant once; for several participants use --participants FILE"
        )
    if (persons or people is not None) and count is not None:
        raise InvalidInputError(
            "give either --count, or the participants by --participant or --participants, not both"
        )
    if persons and people is not None:
        raise InvalidInputError("give --participant or --participants, not both")
    if people is None:
        return [*persons] or None
    with reading(people) as file:
        named = [line.strip() for line in file if line.strip()]
    if named and named[0].strip('"').lower() in TITLES:
        raise InvalidInputError(
            f"the first line of {people} looks like a title, not like a participant's identifier: "
            "leave it out. Nobody was assigned"
        )
    if wrong := [place for place, line in enumerate(named, start=1) if set(line) & set(";\t")]:
        raise InvalidInputError(
            f"entry {wrong[0]} of {people} has several columns: give a file with one identifier "
            "per line. Nobody was assigned"
        )
    return named


@contextmanager
def _shown(again: str) -> Iterator[None]:
    """Say what to do if the answer cannot be written."""
    try:
        yield
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(
            "discreet: the answer could not be written. Nothing is lost; this command gives it "
            f"again: {again}",
            err=True,
        )
        click.get_current_context().exit(1)


def _plain(batch: "AskResult", key: str) -> dict[str, Any]:
    """The answer for scripts."""
    assignments = [
        {"id": one.id, "arm": one.arm}
        | ({} if one.participant is None else {"participant": one.participant})
        for one in batch.assignments
    ]
    return {
        "assignments": assignments,
        "not_assigned": [*batch.not_assigned],
        "waiting": batch.waiting,
        "stopped": batch.stopped,
        "middle_level": batch.middle_level,
        "paused": batch.paused,
        "key": key,
    }


def _words(batch: "AskResult", asked: int, place: "Trial") -> str:
    """The answer for people."""
    lines = [
        f"{one.id}  {one.arm}" + ("" if one.participant is None else f"  {one.participant}")
        for one in batch.assignments
    ]
    protocol = place.protocol
    if batch.assignments and protocol.strategy.trust_model.randomised:
        options = protocol.respond_options.replace("MIDDLE", repr(batch.middle_level))
        words = "Randomise their outcomes where they are, with: discreet respond"
        lines.append(f"{words} {options} --outcome -")
    if batch.not_assigned and batch.assignments:
        others = "" if len(batch.not_assigned) == 1 else f" and {len(batch.not_assigned) - 1} more"
        lines.append(
            f"Not assigned yet: {batch.not_assigned[0]}{others}. Ask for them in the next "
            "round, with a new key."
        )
    if words := _next_words(batch, asked, protocol):
        lines.append(words)
    return "\n".join(lines)


def _next_words(batch: "AskResult", asked: int, protocol: "Protocol") -> str:
    """What to do after asking for so many people."""
    name = shlex.quote(protocol.name)
    if batch.stopped:
        return f"The trial is over: discreet trial status {name}"
    if batch.paused:
        return (
            "The trial is paused: nobody is assigned until a manager resumes it, with discreet "
            f"trial manage {name} resume --reason …"
        )
    outcomes = format_count(batch.waiting, "outcome")
    if protocol.enrolment == "continuous":
        if not batch.assignments:
            return f"The trial has its maximum number of participants, and waits for {outcomes}."
        short = len(batch.assignments) < asked
        return (
            "The round is full: ask again for the others, who will be in the next one."
            if short
            else ""
        )
    if batch.waiting and protocol.has_times:
        return (
            f"The round is full. Its {format_count(batch.waiting, 'outcome is', 'outcomes are')} "
            "released on schedule, when the deadline of the last participant has passed: ask again "
            f"then, or give discreet trial expire {name}"
        )
    nobody = "" if batch.assignments else "Nobody was assigned. "
    waits = f"{nobody}Waiting for {outcomes} before anyone else is assigned."
    return waits if batch.waiting else ""


@click.group(
    no_args_is_help=False,
    epilog="discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-participants 2000",
)
def trial() -> None:
    """Run a live trial: create it, assign participants to arms, record their outcomes, and
    publish the result.
    """
    click.get_current_context().with_resource(quiet_warnings())


for command in (
    *(create, ask, manage, expire, open_assignments, reissue, unblind, codes, audit_trail),
    *(backup, restore, grants),
):
    trial.add_command(command)


@trial.command(
    context_settings={"ignore_unknown_options": True},
    epilog="discreet trial tell dose --csv outcomes.csv",
)
@click.argument("name")
@click.argument("id", required=False)
@click.argument("outcome", required=False)
@click.option(
    "--csv",
    "table",
    type=click.Path(),
    help="A file with a line id,outcome for each participant. A first line of column titles is "
    "allowed "
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
    """Record outcomes. If nobody is trusted (local trust), record randomised responses.
    An outcome that is recorded again is not changed; until the interim analysis that
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
                    f"{error} of this part of the file. Everything before it was recorded "
                    f"({sums.new} new). It is safe to give the whole file again"
                ) from None
            sums = TellResult(
                sums.new + found.new, sums.already_told + found.already_told, sums.late + found.late
            )
    if not (sums.new or sums.already_told or sums.late):
        raise InvalidInputError("no line has an id and an outcome: nothing was recorded")
    return sums


def _told_words(found: "TellResult", protocol: "Protocol") -> list[str]:
    """What was taken, and of what was not, why: by ids and times, never by outcomes."""
    words = [f"Accepted: {found.new}."]
    if found.already_told:
        command = f"discreet trial amend {shlex.quote(protocol.name)} ID OUTCOME"
        mended = f" Until the interim analysis that uses it, correct one: {command}"
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


@trial.command(
    context_settings={"ignore_unknown_options": True}, epilog="discreet trial amend dose ID 0"
)
@click.argument("name")
@click.argument("id")
@click.argument("outcome")
@head_option
@url_option
@answer_options
def amend(name: str, id: str, outcome: str, head: str | None, url: str, as_json: bool) -> None:
    """Correct an outcome that was recorded and is not released yet."""
    place = opened(url, name, head)
    place.amend(id, read_outcome(id, outcome, place.protocol))
    if not answer({"accepted": 1}, as_json):
        click.echo("Accepted.")


@trial.command(epilog="discreet trial miss dose ID")
@click.argument("name")
@click.argument("id")
@head_option
@url_option
@answer_options
def miss(name: str, id: str, head: str | None, url: str, as_json: bool) -> None:
    """Mark an outcome as missing. It counts as the worst one."""
    place = opened(url, name, head)
    _show_told(place.miss(id), place.protocol, as_json)


@trial.command("list", epilog="discreet trial list")
@url_option
@answer_options
def list_all(url: str, as_json: bool) -> None:
    """List all trials at an address, with their state and their number of participants."""
    from discreet.trials.listing import ListedTrial, list_trials

    found = list_trials(url)
    listed = [asdict(one) for one in found]
    if answer({"trials": listed}, as_json, listed, names_of(ListedTrial)):
        return
    from discreet.reports.document import Table
    from discreet.reports.terminal import print_table

    rows = [
        [one.name, one.strategy, one.state, f"{one.participants} of {one.max_participants}"]
        for one in found
    ]
    heads = ["trial", "strategy", "state", "participants"]
    print_table(Table(heads, rows, words=heads[:3]))


@trial.command(epilog="discreet trial status dose")
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
        from discreet.reports.terminal import render
        from discreet.reports.trial import build_status

        render(build_status(found, place.protocol))


@trial.command(epilog="discreet trial verify dose")
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


@trial.command(epilog="discreet trial transcript dose --out transcript.json")
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
    from discreet.files import write_file
    from discreet.trials.transcript import transcript_frame

    place = opened(url, name, head)
    if out is not None:
        check_writable(out, place.files)
    said = place.transcript()
    tabulate(lambda: transcript_frame(said))
    text = json.dumps(said, indent=1, ensure_ascii=False) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    write_file(out, text)
    show_json({"transcript": out}) if as_json else click.echo(out)


@trial.command(epilog="discreet trial export dose --out dose.csv")
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The CSV file to write."
)
@head_option
@url_option
@json_option
def export(name: str, out: str, head: str | None, url: str, as_json: bool) -> None:
    """Write the public record to a CSV file. It has the events of the transcript, with
    a row for each assignment, release or event, and nothing else.
    """
    from discreet.tabular import write_csv
    from discreet.trials.transcript import transcript_frame

    place = opened(url, name, head)
    check_writable(out, place.files)
    write_csv(out, transcript_frame(place.transcript()))
    show_json({"export": out}) if as_json else click.echo(out)


@trial.command(epilog="discreet trial report dose --out report.html --pdf report.pdf")
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
    help="Publish the days of creation, of the first and the last participant, and of the end.",
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
    from discreet.reports.trial import find_audit_dates, trial_page

    place = opened(url, name, head)
    check_report(out, pdf, place.files)
    said = place.transcript()
    days = find_audit_dates(place.audit_trail(10**6), said["status"]["stopped"]) if dates else None
    files = write_report(out, pdf, trial_page(said, control, assessed, days))
    printed = {} if pdf is None else {"pdf": pdf}
    show_json({"report": out, **printed}) if as_json else click.echo("\n".join(files))
