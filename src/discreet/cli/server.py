"""`discreet serve`: trials as a service."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from discreet.cli.options import USUALLY, answer, answer_options, names_of, read_address, url_option
from discreet.cli.output import quiet_warnings
from discreet.cli.trial_admin import moment
from discreet.errors import InvalidInputError
from discreet.validation import quote

if TYPE_CHECKING:
    from discreet.service.auth import TokenStore


@click.group(
    no_args_is_help=False,
    epilog="discreet token create leeds-clinic --role site --trial dose --site Leeds",
)
def token() -> None:
    """Make, list and revoke tokens. People log in to `discreet serve` with them."""


@contextmanager
def _tokens(url: str, must_exist: bool = True) -> Iterator["TokenStore"]:
    from discreet.service.auth import TokenStore
    from discreet.trials.store.database import Database
    from discreet.trials.store.tokens import TokenTable

    store = Database(url, must_exist)
    try:
        yield TokenStore(TokenTable(store))
    finally:
        store.close()


@token.command(epilog="discreet token create leeds-clinic --role site --trial dose --site Leeds")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["manager", "site", "monitor"]),
    required=True,
    help="What its holder may do.",
)
@click.option("--trial", help="The one trial it is for; a site's token needs one.  [default: all]")
@click.option("--site", help="The site at which its holder enrols participants.")
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
        store = tokens.token_table.database
        if trial is not None and trial not in store.list_names():
            raise InvalidInputError(
                f"there is no trial {quote(trial)} in {store.label}: discreet trial list shows "
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
    from discreet.service.auth import check_site
    from discreet.trials.trial import Trial

    place = Trial.open(url, trial)
    try:
        check_site(place.protocol, place.status(), site)
    finally:
        place.close()


@token.command("list", epilog="discreet token list")
@url_option
@answer_options
def list_all(url: str, as_json: bool) -> None:
    """List all tokens, the newest first, without their secrets."""
    from discreet.trials.store.tokens import Token

    with _tokens(url) as tokens:
        found, now = tokens.token_table.list_all(), tokens.token_table.now()
    rows = [{**asdict(one), "valid": one.is_valid(now)} for one in found]
    if answer({"tokens": rows}, as_json, rows, (*names_of(Token), "valid")):
        return
    if not found:
        click.echo("There are no tokens yet: discreet token create makes one.")
    for one in found:
        where = " ".join([*([one.site] if one.site else []), f"of {one.trial or 'all trials'}"])
        used = "never used" if one.used is None else f"last used {moment(one.used)}"
        works = _until(one.expires, one.revoked, one.is_valid(now))
        click.echo("  ".join([str(one.number), one.name, f"{one.role} {where}", works, used]))


def _until(expires: float | None, revoked: float | None, valid: bool) -> str:
    if revoked is not None:
        return "revoked"
    if expires is None:
        return "valid for ever"
    return f"valid until {moment(expires)}" if valid else "expired"


@token.command(epilog="discreet token revoke 3")
@click.argument("number", type=int)
@url_option
@answer_options
def revoke(number: int, url: str, as_json: bool) -> None:
    """Revoke a token, and log out everybody who logged in with it."""
    with _tokens(url) as tokens:
        if not tokens.revoke(number, tokens.token_table.database.user):
            raise InvalidInputError(
                f"there is no token {number}: discreet token list shows all tokens"
            )
    if not answer({"revoked": number}, as_json):
        click.echo(f"Token {number} is revoked.")


@click.command(epilog="discreet serve --url sqlite:///trials.db --port 8642")
@click.option(
    "--url",
    callback=read_address,
    help="The database that the trials are in (sqlite:///… or postgresql://…)." + USUALLY,
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=8642, show_default=True, help="The port to listen on.")
@click.option(
    "--tls-cert", type=click.Path(dir_okay=False), help="The certificate, a file in PEM format."
)
@click.option(
    "--tls-key", type=click.Path(dir_okay=False), help="Its private key, a file in PEM format."
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Set this if a reverse proxy on this machine does the encryption; what it says about "
    "callers (X-Forwarded-For and -Proto) is then trusted.",
)
@click.option(
    "--rate",
    type=float,
    default=50.0,
    show_default=True,
    help="How many calls per second one token may make.",
)
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    help="Whether the lines on stderr are for people (text) or programs (json).  [default: text on "
    "a terminal, else json]",
)
def serve(
    url: str,
    host: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    rate: float,
    log: str | None,
) -> None:
    """Serve trials on the web. There are pages for staff, participants and the public,
    and an API for programs.
    """
    from discreet.reports.charts import require_matplotlib
    from discreet.service import observability
    from discreet.service import server as service
    from discreet.service.limits import LimitConfig

    require_matplotlib()
    if not 0 < rate < float("inf"):
        raise InvalidInputError("rate must be a positive number of calls per second")
    place = service.ServerConfig(
        host, port, tls_cert, tls_key, behind_proxy, LimitConfig(rate=rate)
    )
    observability.start_logs(log or ("text" if sys.stderr.isatty() else "json"))
    with quiet_warnings():
        service.serve(url, place, click.echo, lambda words: click.echo(words, err=True))
