"""The commands of live trials: `discreet trial …`."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from discreet.cli.create import create
from discreet.cli.operate import expire, operate
from discreet.cli.options import check_writable, json_option, opened, show_json, url_option
from discreet.cli.tables import read_outcome, read_outcomes, reading
from discreet.cli.transcript import head_option, show_verification
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import Batch, Told


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
    """Tell outcomes (randomised responses if the trial has local trust). One that was
    told before stays as it is: amend corrects it.
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
        if not told:
            raise InvalidInputError("no line has an id and an outcome: nothing was told")
    place = opened(url, name, head)
    if place.protocol.strategy.trust_model.randomised:
        from discreet.trials.outcomes import Response

        found = place.answer_many({id: Response.parse(word) for id, word in told.items()})
    else:
        found = place.tell_many(
            {id: read_outcome(id, word, place.protocol) for id, word in told.items()}
        )
    if as_json:
        show_json({"accepted": found.new, "before": [*found.before], "late": [*found.late]})
    else:
        click.echo("\n".join(_told_words(found, place.protocol)))


def _told_words(found: "Told", protocol: "Protocol") -> list[str]:
    """What was taken, and of what was not, why: by ids and times, never by outcomes."""
    words = [f"Accepted: {found.new}."]
    if found.before:
        mended = f": discreet trial amend {shlex.quote(protocol.name)} ID OUTCOME corrects one"
        if protocol.strategy.trust_model.randomised:
            mended = ""
        words.append(
            f"Told before, or declared missing, and left as they were{mended}: "
            f"{_some(found.before)}"
        )
    if found.late:
        words.append(f"Past their deadline, and of no effect: {_some(found.late)}")
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
@json_option
def amend(name: str, id: str, outcome: str, head: str | None, url: str, as_json: bool) -> None:
    """Correct an outcome that was told, until it is released."""
    place = opened(url, name, head)
    place.amend(id, read_outcome(id, outcome, place.protocol))
    show_json({"accepted": 1}) if as_json else click.echo("Accepted.")


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


@trial.command("list")
@url_option
@json_option
def list_all(url: str, as_json: bool) -> None:
    """Every trial at an address, with its state and how many people it has."""
    from discreet.trials.listing import list_trials

    found = list_trials(url)
    if as_json:
        show_json({"trials": [asdict(one) for one in found]})
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

    place = opened(url, name, head)
    if out is not None:
        check_writable(out, place.files)
    text = json.dumps(place.transcript(), indent=1, ensure_ascii=False) + "\n"
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

    place = opened(url, name, head)
    check_writable(out, place.files)
    write(out, trial_page(place.transcript()))
    show_json({"report": out}) if as_json else click.echo(out)
