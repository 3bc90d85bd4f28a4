"""`discreet demo`; the story it tells is in story.py."""

from pathlib import Path

import click

from discreet.cli.options import check_page
from discreet.cli.progress import quiet_warnings


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="The report.  [default: a file in a new temporary folder]",
)
def demo(out: str | None) -> None:
    """A dose-finding question from the plan to a report with pictures and a live
    trial.
    """
    import tempfile

    from discreet.cli.story import tell_story

    if out is not None:
        check_page(out)
    folder = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
    with quiet_warnings():
        tell_story(Path(out) if out else folder / "report.html", folder)
