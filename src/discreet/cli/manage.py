"""`discreet trial manage` and `discreet trial expire`: managers and clocks."""

import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from discreet.cli.options import answer, answer_options, opened, request_option, url_option
from discreet.cli.transcript import head_option
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.trials.status import Status

DONE = {
    "raise-maximum": "At most {about} people take part from now on.",
    "lower-maximum": "At most {about} people take part from now on.",
    "pause": "The trial is paused: nobody is assigned until it is resumed.",
    "resume": "The trial goes on.",
    "stop": "The trial was stopped by a manager.",
    "close-site": "{about} is closed: nobody is enrolled there.",
    "open-site": "{about} is open: people are enrolled there.",
    "drop-arm": "{about} is dropped: nobody is assigned to it any more.",
    "add-arm": "{about} is added: people are assigned to it from the next round on.",
    "set-clock": "From now on deadlines follow the clock as it is now.",
}
"""What has happened when an action was done."""


@click.command()
@click.argument("name")
@click.argument("action")
@click.argument("about", required=False)
@click.option(
    "--reason",
    default="",
    help="The reason, in a sentence. It is required and is published, so it must "
    "not name a person or an outcome.",
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
    """Act on a trial as its manager. Every action is written into the public record.

    ACTION is pause, resume, stop, raise-maximum or lower-maximum (ABOUT how many
    people), close-site or open-site (ABOUT which site), drop-arm (ABOUT which arm),
    add-arm (ABOUT the new arm's name) or set-clock. Before an action that cannot be
    taken back (stop, drop-arm, add-arm), or that can end the trial (lower-maximum),
    you are asked to confirm it, unless you say --yes.
    """
    from discreet.trials.conduct import MEANS

    place = opened(url, name, head)
    thing, before = _about(action, about), place.status()
    if not before.stopped:
        _confirm(before, action, about, yes)
    place.manage(action, reason, thing, len(before.acts), request)
    found = place.status()
    done = {"action": action, "about": thing, "reason": reason, "means": MEANS[action]}
    if answer({**done, "stopped": found.stopped, "head": found.head}, as_json):
        return
    click.echo(DONE[action].format(about=about))
    click.echo(f"What it means: {MEANS[action]}.")
    click.echo("The public record now says so, with the reason.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")


def _confirm(status: "Status", action: str, about: str | None, yes: bool) -> None:
    """Ask again before something that cannot be taken back, or can end the trial."""
    from discreet.trials.conduct import FOR_GOOD, LOWER, MEANS

    if yes or action not in (LOWER, *FOR_GOOD):
        return
    what = action if about is None else f"{action} {about}"
    lasts = "can end the trial, which" if action == LOWER else ""
    what = " ".join(filter(None, (what, lasts, "cannot be undone")))
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{what}: add --yes if this is what you want. Nothing was done")
    words = f"{status.name}: {status.people:,} of at most {status.max_people:,} people."
    click.echo(f"{words} What it means: {MEANS[action]}.", err=True)
    if not click.confirm(f"{what}. Do it?", err=True):
        raise InvalidInputError("Nothing was done")


def _about(action: str, about: str | None) -> str | int | None:
    """What an action is about: of the maximum a number, or what was said instead."""
    if action in ("raise-maximum", "lower-maximum") and about is not None:
        with suppress(ValueError):
            return int(about)
    return about


@click.command()
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
            "somebody says so (discreet trial miss)."
        )
        return
    click.echo(f"Late outcomes count as the worst. Numbers released: {released}.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")
