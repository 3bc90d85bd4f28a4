"""`discreet trial ask`: assign people; an answer that was lost can be had again."""

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import json_option, json_text, opened, url_option
from discreet.cli.tables import reading
from discreet.cli.transcript import head_option
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import Batch
    from discreet.trials.trial import Trial


@click.command()
@click.argument("name")
@click.option(
    "--count", "-n", type=int, default=1, show_default=True, help="How many people to assign."
)
@click.option("--person", help="Who comes: an identifier, of which only a keyed hash is kept.")
@click.option(
    "--people", type=click.Path(), help="File with one identifier a line, in place of --count."
)
@click.option(
    "--site", help="Where these people come from; it stands in the public record.  [default: none]"
)
@click.option(
    "--request",
    help="A text of your own for this request: repeated with the same one, it gets the same "
    "assignments again.  [default: a new one, which is shown where the answer could be lost]",
)
@head_option
@url_option
@json_option
def ask(
    name: str,
    count: int,
    person: str | None,
    people: str | None,
    site: str | None,
    request: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Assign the next people to arms, up to the next release. Ask when they are there:
    whoever is assigned is in.
    """
    from discreet.trials.store.interrupts import Later

    wanted = _people(person, people)
    place = opened(url, name, head)
    key = request or secrets.token_hex(8)
    again = f"discreet trial ask {shlex.quote(name)} --request {shlex.quote(key)}"
    with Later():  # the answer is shown before Ctrl-C is heard
        batch = place.ask(count, wanted, site, request=key)
        asked = count if wanted is None else len(wanted)
        if request is None and batch.assignments and not sys.stdout.isatty():
            click.echo(f"discreet: if the answer is lost, this gives it again: {again}", err=True)
        with _shown(again):
            click.echo(json_text(_plain(batch, key)) if as_json else _words(batch, asked, place))


def _people(person: str | None, people: str | None) -> list[str] | None:
    """Who comes, if that is said."""
    if person is not None and people is not None:
        raise InvalidInputError("give --person or --people, not both")
    if people is None:
        return None if person is None else [person]
    with reading(people) as file:
        return [line.strip() for line in file if line.strip()]


@contextmanager
def _shown(again: str) -> Iterator[None]:
    """Say what to do if the answer cannot be written."""
    try:
        yield
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"discreet: the answer could not be written. Nothing is lost: {again}", err=True)
        click.get_current_context().exit(1)


def _plain(batch: "Batch", key: str) -> dict[str, Any]:
    """The answer for scripts."""
    assignments = [
        {"id": one.id, "arm": one.arm} | ({} if one.person is None else {"person": one.person})
        for one in batch.assignments
    ]
    return {
        "assignments": assignments,
        "left": [*batch.left],
        "waiting": batch.waiting,
        "stopped": batch.stopped,
        "middle": batch.middle,
        "paused": batch.paused,
        "request": key,
    }


def _words(batch: "Batch", asked: int, place: "Trial") -> str:
    """The answer for people."""
    lines = [
        f"{one.id}  {one.arm}" + ("" if one.person is None else f"  {one.person}")
        for one in batch.assignments
    ]
    protocol = place.protocol
    if batch.assignments and protocol.strategy.trust_model.randomised:
        options = protocol.respond_options.replace("MIDDLE", repr(batch.middle))
        words = "Their outcomes are randomised where they are: discreet respond"
        lines.append(f"{words} {options} --outcome -")
    if batch.left and batch.assignments:
        lines.append(f"Not assigned yet: the last {len(batch.left)} who are not listed here.")
    if words := _next_words(batch, asked, protocol):
        lines.append(words)
    return "\n".join(lines)


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
