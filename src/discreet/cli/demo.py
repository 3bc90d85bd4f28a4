"""`discreet demo`; the story it tells is in story.py."""

from pathlib import Path

import click

from discreet.cli.progress import quiet_warnings
from discreet.files import check_writable


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="The HTML file of the report.  [default: a file in a new temporary folder]",
)
def demo(out: str | None) -> None:
    """Walk through a dose-finding trial from beginning to end. It has a plan, a
    simulated trial, a live trial with made-up people, and reports with pictures.
    """
    import tempfile

    from discreet.cli.story import tell_story
    from discreet.reports.charts import require_matplotlib
    from discreet.trials import mechanisms

    mechanisms.load()
    require_matplotlib()
    if out is not None:
        check_writable(out)
    folder = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
    with quiet_warnings():
        tell_story(Path(out) if out else folder / "report.html", folder)
