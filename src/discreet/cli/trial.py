"""The commands of live trials: `discreet trial …`."""

import csv
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from discreet.cli.create import create
from discreet.cli.operate import expire, operate
from discreet.cli.options import json_option, opened, show_json, url_option
from discreet.cli.respond import read_number
from discreet.cli.transcript import head_option, show_verification
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import Batch


@click.group(no_args_is_help=False)
def trial() -> None:
    """Run a live trial: assign people, tell outcomes, stop when it is sound,
    publish.
    """


for command in (create, operate, expire):
    trial.add_command(command)


@trial.command()
@click.argument("name")
@click.option(
    "--count", "-n", type=int, default=1, show_default=True, help="How many people to assign."
)
@click.option(
    "--people", type=click.Path(), help="File with one identifier a line: nobody takes part twice."
)
@click.option(
    "--site", help="Where these people come from; it stands in the public record.  [default: none]"
)
@head_option
@url_option
@json_option
def ask(
    name: str,
    count: int,
    people: str | None,
    site: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Assign the next people to arms, up to the next release. Ask when they are there:
    whoever is assigned is in.
    """
    wanted = None
    if people is not None:
        with reading(people) as file:
            wanted = [line.strip() for line in file if line.strip()]
    place = opened(url, name, head)
    batch = place.ask(count, wanted, site)
    if as_json:
        assignments = [{"id": one.id, "arm": one.arm} for one in batch.assignments]
        state = {"waiting": batch.waiting, "stopped": batch.stopped, "middle": batch.middle}
        show_json({"assignments": assignments, **state, "paused": batch.paused})
        return
    for one in batch.assignments:
        click.echo(f"{one.id}  {one.arm}")
    if batch.assignments and place.protocol.strategy.trust_model.randomised:
        options = place.protocol.respond_options.replace("MIDDLE", repr(batch.middle))
        words = "Their outcomes are randomised where they are: discreet respond"
        click.echo(f"{words} {options} --outcome -")
    asked = count if wanted is None else len(wanted)
    if words := _next_words(batch, asked, place.protocol):
        click.echo(words)


def _next_words(batch: "Batch", asked: int, protocol: "Protocol") -> str:
    """What to do after asking for so many people."""
    name = shlex.quote(protocol.name)
    if batch.stopped:
        return f"The trial is over: discreet trial status {name}"
    if batch.paused:
        return (
            "The trial is paused: nobody is assigned until an operator resumes it, with discreet "
            f"trial operate {name} resume --reason …"
        )
    outcomes = f"{batch.waiting} outcome{'' if batch.waiting == 1 else 's'}"
    if protocol.enrolment == "continuous":
        if not batch.assignments:
            return f"The trial has its most people, and waits for {outcomes}."
        short = len(batch.assignments) < asked
        return (
            "The round is full: ask again for the rest, who come into the next one."
            if short
            else ""
        )
    if batch.waiting and protocol.timed:
        return (
            f"The round is full. Its {batch.waiting} people are released by the clock, when the "
            f"deadline of the last one has passed: ask again then, or discreet trial expire {name}"
        )
    return f"Waiting for {outcomes} before anyone else is assigned." if batch.waiting else ""


@trial.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("id", required=False)
@click.argument("outcome", required=False)
@click.option(
    "--csv",
    "table",
    type=click.Path(),
    help="A file (- for stdin) with a line id,outcome for each person.",
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
    """Tell outcomes (randomised responses if the trial has local trust); again changes
    nothing.
    """
    if (table is None) == (id is None) or (id is None) != (outcome is None):
        raise InvalidInputError(
            "give an id and its outcome, or --csv FILE with a line id,outcome for each person"
        )
    if table is None:
        told = {str(id): str(outcome)}
    else:
        with reading(table) as file:
            told = dict(read_outcomes(file))
    place = opened(url, name, head)
    if place.protocol.strategy.trust_model.randomised:
        from discreet.trials.outcomes import Response

        place.answer_many({id: Response.parse(word) for id, word in told.items()})
    else:
        place.tell_many({id: _outcome(id, word, place.protocol) for id, word in told.items()})
    show_json({"accepted": len(told)}) if as_json else click.echo(f"Accepted: {len(told)}.")


@trial.command()
@click.argument("name")
@click.argument("id")
@head_option
@url_option
@json_option
def miss(name: str, id: str, head: str | None, url: str, as_json: bool) -> None:
    """Say that an outcome will not come."""
    opened(url, name, head).miss(id)
    show_json({"accepted": 1}) if as_json else click.echo("Accepted.")


@trial.command()
@click.argument("name")
@head_option
@url_option
@json_option
def status(name: str, head: str | None, url: str, as_json: bool) -> None:
    """The trial as anyone may see it."""
    place = opened(url, name, head)
    found = place.status()
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.terminal import show_trial

        show_trial(found, place.protocol.outcome_words)


@trial.command()
@click.argument("name")
@head_option
@url_option
@json_option
def verify(name: str, head: str | None, url: str, as_json: bool) -> None:
    """Recompute the chain of public events, and the state from them alone."""
    show_verification(opened(url, name).verify(head), as_json)


@trial.command()
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), help="Write it to this file.  [default: stdout]"
)
@head_option
@url_option
@json_option
def transcript(name: str, out: str | None, head: str | None, url: str, as_json: bool) -> None:
    """What may be published, as JSON: protocol, assignments, releases, decisions, and
    the chain that ties them.
    """
    from discreet.files import write

    text = json.dumps(opened(url, name, head).transcript(), indent=1, ensure_ascii=False) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    write(out, text)
    show_json({"transcript": out}) if as_json else click.echo(out)


@trial.command()
@click.argument("name")
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The HTML file to write."
)
@head_option
@url_option
@json_option
def report(name: str, out: str, head: str | None, url: str, as_json: bool) -> None:
    """A page about the trial, made of its transcript: one HTML file that may be
    published.
    """
    from discreet.files import write
    from discreet.reports.trial import trial_page

    write(out, trial_page(opened(url, name, head).transcript()))
    show_json({"report": out}) if as_json else click.echo(out)


@contextmanager
def reading(path: str) -> Iterator[TextIO]:
    """A text file, or stdin for -."""
    if path == "-":
        yield sys.stdin
        return
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file in UTF-8"
        raise InvalidInputError(f"cannot read {path}: {reason}") from None


def _outcome(id: str, word: str, protocol: "Protocol") -> float:
    """An outcome that the protocol takes; the error says whose, not which."""
    try:
        value = read_number(word)
        protocol.scale.reward(value, protocol.outside)
    except InvalidInputError as error:
        raise InvalidInputError(f"of {id}: {error}; nothing was told") from None
    return value


def read_outcomes(file: TextIO) -> Iterator[tuple[str, str]]:
    """(id, outcome) of each line; a first line id,outcome is skipped. Errors name the
    line and not what is in it.
    """
    seen = set()
    rows = csv.reader(file)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            raise InvalidInputError(
                f"line {rows.line_num} cannot be read as a line of a CSV file"
            ) from None
        if row is None:
            return
        number, cells = rows.line_num, [cell.strip().removeprefix("\ufeff") for cell in row]
        if not any(cells) or (number == 1 and cells[:1] == ["id"]):
            continue
        if len(cells) != 2 or not all(cells) or not _is_outcome(cells[1]):
            raise InvalidInputError(
                f"line {number} is not an id and an outcome separated by a comma"
            )
        if cells[0] in seen:
            raise InvalidInputError(
                f"line {number} has an id that was there before: one outcome for each person"
            )
        seen.add(cells[0])
        yield cells[0], cells[1]


def _is_outcome(word: str) -> bool:
    """Whether it may be an outcome: a number, or a randomised response."""
    try:
        float(word)
    except ValueError:
        return "/" in word
    return True
