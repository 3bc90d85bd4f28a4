"""What staff see of a trial: `discreet trial open`, `reissue`, `unblind`, `codes` and
`audit trail`.
"""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from discreet.cli.options import (
    answer,
    answer_options,
    names_of,
    opened,
    request_option,
    url_option,
)
from discreet.cli.transcript import head_option
from discreet.words import counted


@click.command("open")
@click.argument("name")
@click.option("--site", help="Show people of this site only.  [default: of all sites]")
@head_option
@url_option
@answer_options
def open_assignments(
    name: str, site: str | None, head: str | None, url: str, as_json: bool
) -> None:
    """List the people whose outcomes are not in. For each of them it shows id, arm,
    site, time since the assignment, and the deadline. The list is for staff only,
    because anyone who has an id can tell its outcome.
    """
    from discreet.trials.status import OpenAssignment

    found = opened(url, name, head).open_assignments(site)
    rows = [asdict(one) for one in found]
    if answer({"open": rows}, as_json, rows, names_of(OpenAssignment)):
        return
    if not found:
        click.echo(
            "No outcome is outstanding: each one is in, declared missing, or past its deadline."
        )
    for one in found:
        words = [one.id, one.arm, *([one.site] if one.site else [])]
        words.append(f"assigned {span(one.age)} ago")
        words += [] if one.deadline is None else [f"until {moment(one.deadline)}"]
        click.echo("  ".join(words))


@click.command()
@click.argument("name")
@click.argument("id")
@request_option
@head_option
@url_option
@answer_options
def reissue(
    name: str, id: str, request: str | None, head: str | None, url: str, as_json: bool
) -> None:
    """Give an assignment a new id, if others have seen the old one. The old id then no
    longer works.
    """
    made = opened(url, name, head).reissue(id, request)
    if not answer({"id": made.id, "arm": made.arm}, as_json):
        click.echo(f"{made.id}  {made.arm}")


@click.command()
@click.argument("name")
@click.argument("id")
@click.option(
    "--reason",
    default="",
    help="The reason, in a sentence. It is required and is published, so it must "
    "not name a person or an outcome.",
)
@request_option
@head_option
@url_option
@answer_options
def unblind(
    name: str,
    id: str,
    reason: str,
    request: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Show which arm a person of a blinded trial has. This is for somebody who must
    know it now. The public record says that it was asked for, and why.
    """
    arm = opened(url, name, head).unblind(id, reason, request)
    if not answer({"id": id, "arm": arm}, as_json):
        click.echo(arm)


@click.command()
@click.argument("name")
@head_option
@url_option
@answer_options
def codes(name: str, head: str | None, url: str, as_json: bool) -> None:
    """List the arm behind the code of each person of a blinded trial. The list is for
    managers, and for those who hand out what people are given.
    """
    found = opened(url, name, head).codes()
    rows = [{"code": code, "arm": arm} for code, arm in found.items()]
    if answer({"codes": found}, as_json, rows, ("code", "arm")):
        return
    if not found:
        click.echo(
            "Nobody is enrolled yet, or nobody is blinded in this trial: there are no codes."
        )
    for code, arm in found.items():
        click.echo(f"{code}  {arm}")


@click.command()
@click.argument("name")
@click.option("--most", type=int, default=100, show_default=True, help="How many calls to show.")
@head_option
@url_option
@answer_options
def audit_trail(name: str, most: int, head: str | None, url: str, as_json: bool) -> None:
    """List who made which call and when, the newest first. The audit trail is private:
    it is not part of the record, and contains no outcomes.
    """
    from discreet.trials.status import AuditEntry

    found = opened(url, name, head).audit_trail(most)
    rows = [one._asdict() for one in found]
    if answer({"audit_trail": rows}, as_json, rows, AuditEntry._fields):
        return
    for one in found:
        people = counted(one.participants, "person", "people")
        words = [moment(one.at), one.user, *([one.site] if one.site else []), one.action, people]
        click.echo("  ".join(words))


def moment(seconds: float) -> str:
    """A time of the clock, the same wherever it is read."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return f"{seconds:.0f} s"


def span(seconds: float) -> str:
    """How long, in one unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
