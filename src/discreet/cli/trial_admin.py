"""`discreet trial manage` and `discreet trial expire`: managers and clocks."""

import shlex
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from discreet.cli.options import (
    answer,
    answer_options,
    json_option,
    names_of,
    opened,
    request_option,
    show_json,
    url_option,
)
from discreet.cli.transcript import head_option
from discreet.errors import InvalidInputError
from discreet.wording import format_count

if TYPE_CHECKING:
    from discreet.trials.status import Status


@click.command("open", epilog="discreet trial open dose --site Leeds")
@click.argument("name")
@click.option("--site", help="Show participants of this site only.  [default: of all sites]")
@head_option
@url_option
@answer_options
def open_assignments(
    name: str, site: str | None, head: str | None, url: str, as_json: bool
) -> None:
    """List the participants without an outcome, each with id, arm, site, time since the
    assignment, and deadline. The list is for staff only, because anyone who has an id
    can record its outcome.
    """
    from discreet.trials.status import OpenAssignment

    found = opened(url, name, head).open_assignments(site)
    rows = [asdict(one) for one in found]
    if answer({"open": rows}, as_json, rows, names_of(OpenAssignment)):
        return
    if not found:
        click.echo(
            "No outcome is outstanding: each one is recorded, marked as missing, or past its "
            "deadline."
        )
    for one in found:
        words = [one.id, one.arm, *([one.site] if one.site else [])]
        words.append(f"assigned {span(one.age)} ago")
        words += [] if one.deadline is None else [f"until {moment(one.deadline)}"]
        click.echo("  ".join(words))


@click.command(epilog="discreet trial reissue dose ID")
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


@click.command(epilog="discreet trial unblind dose ID --reason 'Emergency treatment.'")
@click.argument("name")
@click.argument("id")
@click.option(
    "--reason",
    default="",
    help="The reason, in a sentence. It is required and is published, so it must "
    "not name a participant or an outcome.",
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
    """Reveal the arm of a participant in a blinded trial, for somebody who must know it
    now. The public record says that it was revealed, and why.
    """
    arm = opened(url, name, head).unblind(id, reason, request)
    if not answer({"id": id, "arm": arm}, as_json):
        click.echo(arm)


@click.command(epilog="discreet trial codes dose")
@click.argument("name")
@head_option
@url_option
@answer_options
def codes(name: str, head: str | None, url: str, as_json: bool) -> None:
    """List the arm behind the code of each participant of a blinded trial. The list is for
    managers, and for those who hand out treatments.
    """
    found = opened(url, name, head).list_codes()
    rows = [{"code": code, "arm": arm} for code, arm in found.items()]
    if answer({"codes": found}, as_json, rows, ("code", "arm")):
        return
    if not found:
        click.echo("Nobody is enrolled yet, or this trial is not blinded: there are no codes.")
    for code, arm in found.items():
        click.echo(f"{code}  {arm}")


@click.command(epilog="discreet trial audit-trail dose --most 20")
@click.argument("name")
@click.option(
    "--most", type=int, default=100, show_default=True, help="The number of entries to show."
)
@head_option
@url_option
@answer_options
def audit_trail(name: str, most: int, head: str | None, url: str, as_json: bool) -> None:
    """List who did what and when, the newest first. The audit trail is private: it is not
    part of the record, and contains no outcomes.
    """
    from discreet.trials.record import AuditEntry

    found = opened(url, name, head).audit_trail(most)
    rows = [one._asdict() for one in found]
    if answer({"audit_trail": rows}, as_json, rows, AuditEntry._fields):
        return
    for one in found:
        people = format_count(one.participants, "participant")
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


SAFE = (
    "Note the heads in another place: a restore asks for them. The file contains outcomes that "
    "are not released yet, and it keeps them even after they are released and erased from the "
    "database. Keep it as safe as the database, and delete it when there is a newer one."
)
AGAIN = (
    "Outcomes that were recorded after the backup was made are not in it: record them again, "
    "which is "
    "safe. Participants who were assigned after it are not in it either: their ids are now "
    "unknown, "
    "and if they are registered again they may get another arm. Before you go on, decide what "
    "is to happen with participants who have been treated already, and keep a list of them. Make a "
    "new backup now, and delete the older ones."
)


@click.command(epilog="discreet trial backup backup.db")
@click.argument("file", type=click.Path())
@url_option
@answer_options
def backup(file: str, url: str, as_json: bool) -> None:
    """Copy all trials at an address into a file. They are copied as they are at one
    moment, and may go on meanwhile.
    """
    from discreet.trials.backup import BackedUp, backup_trials

    found = backup_trials(url, file)
    rows = [asdict(one) for one in found]
    if answer({"backup": file, "trials": rows}, as_json, rows, names_of(BackedUp)):
        return
    for one in found:
        click.echo(f"{one.name}  {one.head}")
    click.echo(SAFE)


@click.command(epilog="discreet trial restore backup.db --head HEAD")
@click.argument("file", type=click.Path())
@click.option(
    "--head",
    "heads",
    multiple=True,
    help="A head that you know from elsewhere, which must be in the file. Give it once for each "
    "trial.",
)
@click.option(
    "--i-know-that-epsilon-is-spent-again",
    "knows",
    is_flag=True,
    help="Restore a backup that may be old, and say so in the public record. It needs --reason.",
)
@click.option(
    "--reason",
    help="The reason, in a sentence. It is published, so it must not name a participant or an "
    "outcome.",
)
@url_option
@answer_options
def restore(
    file: str, heads: tuple[str, ...], knows: bool, reason: str | None, url: str, as_json: bool
) -> None:
    """Put all trials of a backup into a database. Either all of them are restored, or
    none. Nobody else may have the database open.
    """
    from discreet.trials.backup import LEFT, Restored, restore_trials

    found = restore_trials(file, url, heads, knows, reason)
    rows = [asdict(one) for one in found]
    if answer({"trials": rows}, as_json, rows, names_of(Restored)):
        return
    for one in found:
        click.echo(f"{one.name}  {one.done}  {one.head}")
    if any(one.spent_again for one in found):
        from discreet.trials.operations import RECORDED_MEANINGS, RESTORED

        click.echo(f"The public record says: {RECORDED_MEANINGS[RESTORED]}.")
    if any(one.done != LEFT for one in found):
        click.echo(AGAIN)


@click.command(epilog="discreet trial grants --service web --manager ann --site leeds > grants.sql")
@click.option(
    "--service",
    "services",
    multiple=True,
    help="A role that `discreet serve` works with. It may be given several times.",
)
@click.option(
    "--manager",
    "managers",
    multiple=True,
    help="A role that creates and manages trials. It may be given several times.",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    help="A role that enrols participants and records outcomes. It may be given several times.",
)
@click.option(
    "--monitor",
    "monitors",
    multiple=True,
    help="A role that sees what anyone may see. It may be given several times.",
)
@click.option(
    "--schema",
    default="public",
    show_default=True,
    help="The schema of the tables, which is made if it is not there.",
)
@json_option
def grants(
    services: tuple[str, ...],
    managers: tuple[str, ...],
    sites: tuple[str, ...],
    monitors: tuple[str, ...],
    schema: str,
    as_json: bool,
) -> None:
    """Print SQL that gives PostgreSQL roles the rights they need. It also creates the
    tables, and takes away all other rights on them. The owner of the tables runs it
    with psql.
    """
    from discreet.trials.store.grants import make_grants as written

    text = written(managers, sites, monitors, schema, services)
    show_json({"sql": text}) if as_json else click.echo(text, nl=False)


DONE = {
    "raise-maximum": "At most {about} participants take part from now on.",
    "lower-maximum": "At most {about} participants take part from now on.",
    "pause": "The trial is paused: nobody is assigned until it is resumed.",
    "resume": "The trial goes on.",
    "stop": "The trial was stopped by a manager.",
    "close-site": "{about} is closed: nobody is enrolled there.",
    "open-site": "{about} is open: participants are enrolled there.",
    "drop-arm": "{about} is dropped: nobody is assigned to it any more.",
    "add-arm": "{about} is added: participants are assigned to it from the next round on.",
    "set-clock": "From now on deadlines follow the clock as it is now.",
}
"""What has happened when an action was done."""


@click.command(epilog="discreet trial manage dose pause --reason 'The pharmacy is closed.'")
@click.argument("name")
@click.argument("action")
@click.argument("about", required=False)
@click.option(
    "--reason",
    default="",
    help="The reason, in a sentence. It is required and is published, so it must "
    "not name a participant or an outcome.",
)
@click.option("--yes", is_flag=True, help="Do it without asking for confirmation.")
@request_option
@head_option
@url_option
@answer_options
def manage(
    name: str,
    action: str,
    about: str | None,
    reason: str,
    yes: bool,
    request: str | None,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Change how a trial goes on, as its manager. The public record has every management action.

    ACTION is pause, resume, stop, raise-maximum or lower-maximum (ABOUT the number of
    participants), close-site or open-site (ABOUT which site), drop-arm (ABOUT which arm),
    add-arm (ABOUT the new arm's name) or set-clock. Before an action that cannot be
    taken back (stop, drop-arm, add-arm), or that can end the trial (lower-maximum),
    you are asked to confirm it, unless you say --yes.
    """
    from discreet.trials.operations import MEANINGS

    place = opened(url, name, head)
    thing, before = _about(action, about), place.status()
    if not before.stopped:
        _confirm(before, action, about, yes)
    place.manage(action, reason, thing, len(before.actions), request)
    found = place.status()
    done = {"action": action, "about": thing, "reason": reason, "means": MEANINGS[action]}
    if answer({**done, "stopped": found.stopped, "head": found.head}, as_json):
        return
    click.echo(DONE[action].format(about=about))
    click.echo(f"What it means: {MEANINGS[action]}.")
    click.echo("The public record now says so, with the reason.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")


def _confirm(status: "Status", action: str, about: str | None, yes: bool) -> None:
    """Ask again before something that cannot be taken back, or can end the trial."""
    from discreet.trials.operations import IRREVERSIBLE, LOWER, MEANINGS

    if yes or action not in (LOWER, *IRREVERSIBLE):
        return
    what = action if about is None else f"{action} {about}"
    lasts = "can end the trial, which" if action == LOWER else ""
    what = " ".join(filter(None, (what, lasts, "cannot be undone")))
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{what}: add --yes if this is what you want. Nothing was done")
    enrolled = f"{status.participants:,} of at most {status.max_participants:,} participants"
    click.echo(f"{status.name}: {enrolled}. What it means: {MEANINGS[action]}.", err=True)
    if not click.confirm(f"{what}. Do it?", err=True):
        raise InvalidInputError("Nothing was done")


def _about(action: str, about: str | None) -> str | int | None:
    """What an action is about: of the maximum a number, or what was said instead."""
    if action in ("raise-maximum", "lower-maximum") and about is not None:
        with suppress(ValueError):
            return int(about)
    return about


@click.command(epilog="discreet trial expire dose")
@click.argument("name")
@head_option
@url_option
@answer_options
def expire(name: str, head: str | None, url: str, as_json: bool) -> None:
    """Count late outcomes as the worst, and make the releases that are due. An outcome
    is late once its deadline has passed. Run this from a timer, such as cron.
    """
    place = opened(url, name, head)
    released, found = place.expire(), place.status()
    if answer({"released": released, "stopped": found.stopped}, as_json):
        return
    if place.protocol.deadline is None:
        click.echo(
            "This trial has no deadline: an outcome that will not come counts as the worst once "
            "it is marked as missing (discreet trial miss)."
        )
        return
    click.echo(f"Late outcomes count as the worst. Numbers released: {released}.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")
