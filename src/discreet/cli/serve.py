"""`discreet serve`: trials as a service."""

import sys

import click

from discreet.cli.options import USUALLY, read_address
from discreet.cli.progress import quiet_warnings
from discreet.errors import InvalidInputError


@click.command()
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
    from discreet.service import logs
    from discreet.service import serve as service
    from discreet.service.limits import Bounds

    require_matplotlib()
    if not 0 < rate < float("inf"):
        raise InvalidInputError("rate must be a positive number of calls per second")
    place = service.Place(host, port, tls_cert, tls_key, behind_proxy, Bounds(rate=rate))
    logs.start_logs(log or ("text" if sys.stderr.isatty() else "json"))
    with quiet_warnings():
        service.serve(url, place, click.echo, lambda words: click.echo(words, err=True))
