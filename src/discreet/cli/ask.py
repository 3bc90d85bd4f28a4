"""`discreet trial ask`: assign people; an answer that was lost can be had again."""

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import answer, answer_options, opened, typed_url, url_option
from discreet.cli.tables import reading
from discreet.cli.transcript import head_option
from discreet.errors import InvalidInputError
from discreet.words import counted

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import AskResult
    from discreet.trials.trial import Trial


@click.command()
@click.argument("name")
@click.option("--count", "-n", type=int, help="How many people to assign.  [default: 1]")
@click.option(
    "--participant",
    "persons",
    multiple=True,
    help="An identifier of the person; only a keyed hash of it is kept.",
)
@click.option(
    "--participants",
    "people",
    type=click.Path(),
    help="A file with one identifier per line, instead of --count.",
)
@click.option(
    "--site",
    help="The site these people come from; it is part of the public record.  [default: none]",
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
    """Assign the next people to arms. If the next release comes first, fewer people are
    assigned than you asked for. Ask only when people are there: everybody who is
    assigned takes part.
    """
    from discreet.trials.interrupts import Later

    wanted = _people(persons, people, count)
    place = opened(url, name, head)
    if key is not None and wanted is None and count is None and not place.was_answered(key):
        raise InvalidInputError(
            "no request has been made with this key: check the key. If it is a new one, say how "
            "many people come, or who, with --count 1, --participant or --participants. Nobody "
            "was assigned"
        )
    is_new_key, asked = key is None, len(wanted) if wanted else count or 1
    key = key or secrets.token_hex(8)
    again = _again(
        name, key, (("--participants", people), ("--site", site), ("--url", typed_url()))
    )
    with Later():  # the answer is shown before Ctrl-C is heard
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
            "give --participant once; for several people use --participants FILE"
        )
    if (persons or people is not None) and count is not None:
        raise InvalidInputError(
            "give either --count, or the people by --participant or --participants, not both"
        )
    if persons and people is not None:
        raise InvalidInputError("give --participant or --participants, not both")
    if people is None:
        return [*persons] or None
    with reading(people) as file:
        named = [line.strip() for line in file if line.strip()]
    if named and named[0].strip('"').lower() in TITLES:
        raise InvalidInputError(
            f"the first line of {people} looks like a title, not like a person's identifier: "
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
    outcomes = counted(batch.waiting, "outcome")
    if protocol.enrolment == "continuous":
        if not batch.assignments:
            return f"The trial has reached its maximum number of people, and waits for {outcomes}."
        short = len(batch.assignments) < asked
        return (
            "The round is full: ask again for the others, who will be in the next one."
            if short
            else ""
        )
    if batch.waiting and protocol.timed:
        return (
            f"The round is full. Its {counted(batch.waiting, 'outcome is', 'outcomes are')} "
            "released by the clock, when the deadline of the last person has passed: ask again "
            f"then, or give discreet trial expire {name}"
        )
    nobody = "" if batch.assignments else "Nobody was assigned. "
    waits = f"{nobody}Waiting for {outcomes} before anyone else is assigned."
    return waits if batch.waiting else ""
