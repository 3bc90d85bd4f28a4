"""`discreet token …`: who may come in where trials are a service; for whoever has the
database.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from discreet.cli.options import answer, answer_options, names_of, url_option
from discreet.cli.staff import moment
from discreet.errors import InvalidInputError
from discreet.validate import quoted

if TYPE_CHECKING:
    from discreet.service.tokens import Tokens


@click.group(no_args_is_help=False)
def token() -> None:
    """Make, list and revoke tokens. People log in to `discreet serve` with them."""


@contextmanager
def _tokens(url: str, must_exist: bool = True) -> Iterator["Tokens"]:
    from discreet.service.tokens import Tokens
    from discreet.trials.store.database import Store
    from discreet.trials.store.doors import Doors

    store = Store(url, must_exist)
    try:
        yield Tokens(Doors(store))
    finally:
        store.close()


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["manager", "site", "monitor"]),
    required=True,
    help="What its holder may do.",
)
@click.option("--trial", help="The one trial it is for; a site's token needs one.  [default: all]")
@click.option("--site", help="The site whose people its holder enrols.")
@click.option("--days", type=float, help="After how many days it expires.  [default: never]")
@url_option
@answer_options
def create(
    name: str,
    role: str,
    trial: str | None,
    site: str | None,
    days: float | None,
    url: str,
    as_json: bool,
) -> None:
    """Make a token. Its secret is printed now and never again."""
    with _tokens(url, must_exist=False) as tokens:
        store = tokens.doors.store
        if trial is not None and trial not in store.names():
            raise InvalidInputError(
                f"there is no trial {quoted(trial)} in {store.called}: discreet trial list shows "
                "the trials there"
            )
        if role == "site" and trial is not None and site is not None:
            _check_site(url, trial, site)
        secret, made = tokens.make(name, role, store.user, trial, site, days)
    if answer({"secret": secret, "token": asdict(made)}, as_json):
        return
    click.echo(secret)
    click.echo(
        f"Token {made.number}, {made.role}, is shown only now. Anyone who has it can use it. To "
        f"revoke it: discreet token revoke {made.number}. To log in with it, open the address of "
        "the service in a browser, followed by /login, and paste it there",
        err=True,
    )


def _check_site(url: str, trial: str, site: str) -> None:
    """Refuse a site that the trial does not have, as the service's page does."""
    from discreet.service.tokens import check_site
    from discreet.trials.trial import Trial

    place = Trial.open(url, trial)
    try:
        check_site(place.protocol, place.status(), site)
    finally:
        place.close()


@token.command("list")
@url_option
@answer_options
def list_all(url: str, as_json: bool) -> None:
    """List all tokens, the newest first, without their secrets."""
    from discreet.trials.store.doors import Token

    with _tokens(url) as tokens:
        found, now = tokens.doors.all(), tokens.doors.now()
    rows = [{**asdict(one), "valid": one.valid(now)} for one in found]
    if answer({"tokens": rows}, as_json, rows, (*names_of(Token), "valid")):
        return
    if not found:
        click.echo("There are no tokens yet: discreet token create makes one.")
    for one in found:
        where = " ".join([*([one.site] if one.site else []), f"of {one.trial or 'all trials'}"])
        used = "never used" if one.used is None else f"last used {moment(one.used)}"
        works = _until(one.expires, one.revoked, one.valid(now))
        click.echo("  ".join([str(one.number), one.name, f"{one.role} {where}", works, used]))


def _until(expires: float | None, revoked: float | None, valid: bool) -> str:
    if revoked is not None:
        return "revoked"
    if expires is None:
        return "valid for ever"
    return f"valid until {moment(expires)}" if valid else "expired"


@token.command()
@click.argument("number", type=int)
@url_option
@answer_options
def revoke(number: int, url: str, as_json: bool) -> None:
    """Revoke a token, and log out everybody who logged in with it."""
    with _tokens(url) as tokens:
        if not tokens.revoke(number, tokens.doors.store.user):
            raise InvalidInputError(
                f"there is no token {number}: discreet token list shows all tokens"
            )
    if not answer({"revoked": number}, as_json):
        click.echo(f"Token {number} is revoked.")
