"""`discreet trial operate` and `discreet trial expire`: operators and clocks."""

import shlex
from contextlib import suppress

import click

from discreet.cli.options import json_option, opened, show_json, url_option
from discreet.cli.transcript import head_option

DONE = {
    "maximum": "At most {about} people take part from now on.",
    "pause": "The trial is paused: nobody is assigned until it is resumed.",
    "resume": "The trial goes on.",
    "stop": "The trial was stopped by hand.",
    "close-site": "{about} is closed: nobody is enrolled there.",
    "open-site": "{about} is open: people are enrolled there.",
    "drop-arm": "{about} is dealt no more.",
    "add-arm": "{about} is dealt from the next round on.",
}
"""What has happened when an action was done."""


@click.command()
@click.argument("name")
@click.argument("action")
@click.argument("about", required=False)
@click.option(
    "--reason",
    default="",
    help="Why, in a sentence. It is needed, and stands in the public record: let it name nobody "
    "and no outcome.",
)
@head_option
@url_option
@json_option
def operate(
    name: str,
    action: str,
    about: str | None,
    reason: str,
    head: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Do what an operator may do, for the record.

    ACTION is pause, resume, stop, maximum (ABOUT how many people), close-site or
    open-site (ABOUT which site), drop-arm (ABOUT which arm) or add-arm (ABOUT the new
    arm's name).
    """
    from discreet.trials.conduct import MEANS

    place = opened(url, name, head)
    thing = _about(action, about)
    place.operate(action, reason, thing)
    found = place.status()
    if as_json:
        done = {"action": action, "about": thing, "reason": reason, "means": MEANS[action]}
        show_json({**done, "stopped": found.stopped, "head": found.head})
        return
    click.echo(DONE[action].format(about=about))
    click.echo(f"What it means: {MEANS[action]}.")
    click.echo("It stands in the public record, with the reason.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")


def _about(action: str, about: str | None) -> str | int | None:
    """What an action is about: of the maximum a number, or what was said instead."""
    if action == "maximum" and about is not None:
        with suppress(ValueError):
            return int(about)
    return about


@click.command()
@click.argument("name")
@head_option
@url_option
@json_option
def expire(name: str, head: str | None, url: str, as_json: bool) -> None:
    """Give up outcomes that are past their deadline (or lease), and release what the
    clock says. Let a cron job call it.
    """
    place = opened(url, name, head)
    released, found = place.expire(), place.status()
    if as_json:
        show_json({"released": released, "stopped": found.stopped})
        return
    if place.protocol.deadline is None and place.protocol.lease is None:
        click.echo("This trial has no deadline and no lease: nothing is given up by itself.")
        return
    click.echo(f"Late outcomes are given up. Numbers released: {released}.")
    if found.stopped:
        click.echo(f"The trial is over: discreet trial status {shlex.quote(name)}")
